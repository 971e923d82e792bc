"""Quasi-Newton steps in a box that is trusted, on a criterion that is evaluated only as well as they can use it.

Method
    ``m(s) = gᵀs + ½ sᵀBs`` models the criterion around the best point (see `quasi_newton`). Each step minimises m
    within the bounds and within a box, whose radius doubles where the model predicted well and shrinks where the
    criterion did not fall. B learns from every evaluation, also from those that are not kept, and from descents on
    fewer rows or with tied parameters: these are where a search learns most, and they cost little.

A criterion is a function of theta, ``tol`` and ``accuracy`` (see `criterion`). Measured on satimage, the relative error
of its gradient is about 0.04 √tol for fits to a relative gap of tol, and that of its value far smaller. So the
tolerance follows the square of the relative gradient: the error stays a few per cent of the gradient all the way to the
optimum. On badly conditioned problems the error can be larger. It then shows as a value and a gradient that disagree:
before a descent ends with such a step, or when steps fail one after the other, the same point is evaluated more
tightly, and the tolerance stays tighter from there on.

A descent ends with a small enough sum of slopes (all parameters together could gain no more), when the model promises
hardly any gain, after two steps with hardly any gain, or when even tight fits show no descent.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.selection.quasi_newton import known_curvature, lowest_in_box, updated

LOOSEST_TOL, TIGHTEST_TOL = 1e-3, 1e-9  # relative gaps of the fits
LOOKING_TOL = 1e-2  # the same, where points that are far apart are compared
# Of the value, by one more step of the kind that led to the lowest of several points.
WORTH_GOING_ON = 0.01
LARGEST_CORRECTION = 0.05  # of the value for inexact fits, relative to it
GRADIENT_ERROR = 0.04  # relative, for fits to a relative gap of one; it goes with the root
TOL_PER_SQUARED_SLOPE = 0.3  # relative gap of the fits, for a relative gradient of one
# Log-units that each parameter moves at first, in the mean square, where nothing is known of curvature; the largest
# radius of the box; and the first one where something is known. Extremes are costly to evaluate.
FIRST_REACH, LARGEST_RADIUS, LATER_RADIUS = 1.4, 3.0, 1.5
# Of the fall that the model promises: what a step must keep, and beyond which the box shrinks or grows.
LEAST_FALL, POOR_FALL, GOOD_FALL = 1e-4, 0.25, 0.75
LEAST_CAUTION = 1e-4  # factor on the tolerance after descents that stopped early
# A fall of less than this × tol² of the loss is none: slopes of tol promise as much where curvature is half of it. A
# promise is believed where slopes are at most so many × tol: the model may be too stiff in a direction seldom taken.
LEAST_GAIN, BELIEVED_SLOPES = 1.0, 3.0
# Evaluations without a better one for the folds that judge: a descent is then in vain.
JUDGES_PATIENCE = 5
ROUNDING = 1e-12  # of log-parameters
MAX_TRIALS = 6  # more steps that fail one after the other are led astray by a value that was too low: look closer


class Criterion(Protocol):
    """What is minimised."""

    n_products: int  # products with the Gram operator in the last evaluation
    judged: float  # what folds that do not drive say of the last evaluation

    def __call__(
        self, theta: np.ndarray, *, tol: float, accuracy: float
    ) -> tuple[float, np.ndarray]:
        """Return value and gradient."""
        ...


class Evaluation(NamedTuple):
    """What is known of one point."""

    theta: np.ndarray
    loss: float
    gradient: np.ndarray
    products: int
    seconds: float
    n_samples: int
    judged: float
    tol: float  # relative gap of its fits
    judged_losses: np.ndarray | None  # of the single examples behind it


class Stop(Exception):
    """Ends SciPy's minimiser from within."""


class Descent:
    """The function that SciPy minimises, and what it has seen.

    Parameters
    ----------
    bounds : ndarray of shape (n_parameters, 2)
        Equal bounds fix a parameter.
    limits : tuple of int
        Most evaluations, and most products, for each criterion.
    penalty : callable
        Value and gradient of what is added to the criterion, as a function of theta.
    report : callable or None
        Called with theta and the value after each evaluation; stops the descent if it returns True.

    Attributes
    ----------
    rows : list of Evaluation
    accepted : set of int
        Numbers of the evaluations from which a descent went on; the others are trial steps.
    stopped : bool
        Whether ``report`` said so.
    """

    def __init__(
        self,
        bounds: np.ndarray,
        limits: tuple[int, float],
        penalty: Callable[[np.ndarray], tuple[float, np.ndarray]],
        report: Callable[[np.ndarray, float], Any] | None = None,
    ):
        self.bounds, (self.max_evaluations, self.max_products) = bounds, limits
        self.penalty, self.report = penalty, report
        self.free = bounds[:, 0] < bounds[:, 1]
        self.criterion: Any = None
        self.models: dict[tuple[int, ...], np.ndarray] = {}  # relative to the loss, by variables
        self.rows: list[Evaluation] = []
        self.accepted: set[int] = set()
        self.began = time.perf_counter()
        self.stopped = False

    def minimise(
        self,
        criterion: Criterion,
        n_samples: int,
        theta: np.ndarray,
        tol: float,
        tied: np.ndarray | None = None,
    ) -> tuple[np.ndarray, str, bool]:
        """Minimise a criterion from theta.

        Parameters with the same number in ``tied`` move together. Returns the best theta, why the descent ended, and
        whether it converged.
        """
        looked = self.first if self.rows and self.criterion is criterion else len(self.rows)
        self._begin(criterion, n_samples, theta, tied)
        self.finest = tol**2  # the error of the slopes is then a few per cent of tol
        nothing = "nothing to learn: all parameters are fixed", True
        ended: tuple[str, bool] | None = None if self.free.any() else nothing
        with contextlib.suppress(Stop):
            self._start(looked)
            while ended is None:
                if (ended := self._ended(tol)) is None:
                    self._step(tol)
                elif self._is_doubtful(tol):
                    ended = None
                    self._look_closer()
        self.accepted.update(self.kept)
        best = self._best()
        if self.free.any():
            self.models[tuple(self.drivers)] = self.model / (abs(best.loss) or 1.0)
        message, converged = ended or self._cut_short(tol)
        return best.theta, message, converged

    def lowest(self, criterion: Criterion, n_samples: int, thetas: np.ndarray) -> np.ndarray:
        """Return the one of several points where a criterion is lowest, by loose evaluations.

        From the second lowest to the lowest one goes on as long as that pays: slopes of a few per cent over several
        orders of magnitude look like convergence to a descent.
        """
        self._begin(criterion, n_samples, thetas[0], None)
        with contextlib.suppress(Stop):
            for theta in thetas:
                self._looked_at(theta)
            self._go_on()
        losses = [row.loss for row in self.rows[self.first :]]
        self.accepted.add(self.first + int(np.argmin(losses)))
        return self._best().theta

    def _looked_at(self, theta: np.ndarray) -> Evaluation:
        self.tol, self.accuracy = LOOKING_TOL, LARGEST_CORRECTION
        return self._evaluated(theta)

    def _go_on(self) -> None:
        """Repeat the step from the second lowest point to the lowest one, downhill and up to the bounds."""
        seen = sorted(self.rows[self.first :], key=lambda row: row.loss)
        if len(seen) < 2:
            return
        best, step = seen[0], seen[0].theta - seen[1].theta
        while best.gradient @ step < 0:  # else the lowest point lies between
            theta = np.clip(best.theta + step, *self.bounds.T)
            if any(np.allclose(row.theta, theta) for row in self.rows[self.first :]):
                return
            further = self._looked_at(theta)
            if further.loss > (1 - WORTH_GOING_ON) * best.loss:
                return
            best = further

    def evaluate(self, criterion: Criterion, n_samples: int, theta: np.ndarray) -> None:
        """Evaluate a criterion that folds judge at one point."""
        self._begin(criterion, n_samples, theta, None)
        self.tol = LOOSEST_TOL
        with contextlib.suppress(Stop):
            self._evaluated(theta)

    def forget(self) -> None:
        """Do not take earlier evaluations of the criterion for what it is now."""
        self.criterion = None

    def _begin(
        self, criterion: Criterion, n_samples: int, theta: np.ndarray, tied: np.ndarray | None
    ) -> None:
        tied = np.arange(theta.size) if tied is None else tied
        self.drivers = np.unique(tied[self.free], return_inverse=True)[1]
        self.criterion, self.n_samples, self.theta = criterion, n_samples, theta
        self.first = self.began_at = len(self.rows)
        self.tol, self.accuracy, self.caution = LOOSEST_TOL, LARGEST_CORRECTION, 1.0
        self.kept, self.slow, self.patience = [self.first], 0, JUDGES_PATIENCE
        self.finest = 0.0

    def _start(self, looked: int) -> None:
        """Evaluate the first point, unless that was done since row ``looked``, and make a model of what is known."""
        places = [
            k for k in range(looked, self.first) if np.array_equal(self.rows[k].theta, self.theta)
        ]
        if places:  # what `lowest` or the last descent found need not be evaluated again
            self.first, self.kept = looked, [places[-1]]
            self._tighten(self.rows[places[-1]])
        model, others = (
            known_curvature(self.models, self.drivers),
            self.rows[looked : self.began_at],
        )
        others = [row for row in others if not np.array_equal(row.theta, self.theta)]
        known = model is not None or bool(others)
        self.reach = self.radius = LATER_RADIUS if known else LARGEST_RADIUS
        self.failures, self.disagree, self.model = 0, False, np.eye(0)
        if not places:
            self._evaluated(self.theta)
        here = self.rows[self.kept[-1]]
        slope = self._driving(here.gradient)
        if model is not None:
            self.model = model * (abs(here.loss) or 1.0)
            return
        steepness = float(np.sqrt(slope @ slope)) or 1.0
        self.model = steepness / (FIRST_REACH * np.sqrt(max(1, slope.size))) * np.eye(slope.size)
        self._learn(here, others)

    def _learn(self, here: Evaluation, others: list[Evaluation]) -> None:
        """Learn the curvature between a point and others, that of the nearest one last."""
        for row in sorted(others, key=lambda row: -np.abs(row.theta - here.theta).max()):
            step = self._one_each(row.theta) - self._one_each(here.theta)
            change = self._driving(row.gradient) - self._driving(here.gradient)
            self.model = updated(self.model, step, change)

    def _step(self, tol: float) -> None:
        """Evaluate the lowest point of the model within the box, and go there if the criterion falls."""
        here = self.rows[self.kept[-1]]
        step, promise = self._lowest_of_model(self.radius)
        theta = self.theta.copy()
        theta[self.free] = self._place(self._one_each(here.theta) + step)[self.drivers]
        row = self._evaluated(theta)
        self._learn(here, [row])
        self.disagree = self._disagree(here, row, LEAST_GAIN * tol**2)
        fall, length = here.loss - row.loss, float(np.max(np.abs(step), initial=0.0))
        if fall > GOOD_FALL * promise and length > 0.99 * self.radius:
            self.radius = min(2 * self.radius, LARGEST_RADIUS)
        elif fall < POOR_FALL * promise:
            self.radius = length / 2
        if not fall > LEAST_FALL * promise:
            self.failures += 1
            return
        self.failures = 0
        self.slow = self.slow + 1 if fall <= LEAST_GAIN * tol**2 * abs(row.loss) else 0
        self.kept.append(len(self.rows) - 1)

    def _disagree(self, before: Evaluation, after: Evaluation, least: float) -> bool:
        """Whether a change of the value is not what the slopes at both ends say; changes below a share do not count."""
        slopes = (before.gradient + after.gradient) / 2
        change, told = after.loss - before.loss, float(slopes @ (after.theta - before.theta))
        largest = max(abs(change), abs(told))
        return largest > least * abs(before.loss) and abs(change - told) > largest / 2

    def _lowest_of_model(self, radius: float) -> tuple[np.ndarray, float]:
        """Step and fall to the lowest point of the model within the bounds and a radius."""
        here = self.rows[self.kept[-1]]
        origin, (low, high) = self._one_each(here.theta), self._one_each(self.bounds).T
        low, high = np.maximum(low - origin, -radius), np.minimum(high - origin, radius)
        return lowest_in_box(self.model, self._driving(here.gradient), low, high)

    def _place(self, place: np.ndarray) -> np.ndarray:
        """Values of the variables within the bounds."""
        low, high = self._one_each(self.bounds).T
        # what rounding leaves before a bound is at it: slopes that lead beyond do not count there
        place = np.where(place - low < ROUNDING, low, place)
        return np.where(high - place < ROUNDING, high, place)

    def _driving(self, gradient: np.ndarray) -> np.ndarray:
        """Gradient in the variables: the free parameters, those that are tied together as one."""
        return np.bincount(self.drivers, gradient[self.free])

    def _one_each(self, values: np.ndarray) -> np.ndarray:
        """Values of parameters as values of the variables."""
        first = np.unique(self.drivers, return_index=True)[1]
        return values[self.free][first]

    def _evaluated(self, theta: np.ndarray) -> Evaluation:
        with warnings.catch_warnings():  # the last fit says itself whether it converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            value, gradient = self.criterion(theta, tol=self.tol, accuracy=self.accuracy)
        more, slope = self.penalty(theta)
        value, gradient = value + more, gradient + slope
        if not np.isfinite(value):
            raise ValueError(
                f"Numbers overflowed: the cross-validation criterion is {value} at parameters {np.exp(theta)}. "
                "Scale X and y, or narrow the bounds of the kernel."
            )
        seconds, products = time.perf_counter() - self.began, self.criterion.n_products
        judged = getattr(self.criterion, "judged", np.nan)
        losses = getattr(self.criterion, "judged_losses", None)
        told = {"judged": judged, "tol": self.tol, "judged_losses": losses}
        row = Evaluation(theta, value, gradient, products, seconds, self.n_samples, **told)
        self.rows.append(row)
        self._tighten(row)
        self.stopped = self.report is not None and bool(self.report(theta, value))
        if self.stopped or self._exhausted() or self._in_vain():
            raise Stop
        return row

    def _in_vain(self) -> bool:
        """Whether folds judge, and have not approved of any of the last points."""
        judged = [row.judged for row in self.rows[self.began_at :]]
        if not judged or np.isnan(judged).any():
            return False
        return len(judged) - 1 - int(np.argmin(judged)) >= self.patience

    def _exhausted(self) -> str:
        """Which limit was reached; nothing if none."""
        rows = self.rows[self.began_at :]
        if len(rows) >= self.max_evaluations:
            return f"max_evaluations={self.max_evaluations}"
        enough = sum(row.products for row in rows) >= self.max_products
        return f"max_products={self.max_products}" if enough else ""

    def _tighten(self, row: Evaluation) -> None:
        """Set the tolerance of the next evaluation by the slopes of this one."""
        steepest = float(self._slopes(row).max(initial=0.0))
        tol = self.caution * TOL_PER_SQUARED_SLOPE * steepest**2
        finest = max(TIGHTEST_TOL, self.caution * self.finest)
        self.tol = float(np.clip(tol, finest, LOOSEST_TOL))
        accuracy = np.sqrt(self.caution) * steepest
        self.accuracy = float(np.clip(accuracy, 1e-6, LARGEST_CORRECTION))

    def _slopes(self, row: Evaluation) -> np.ndarray:
        """Slopes that the bounds leave, relative to the value: what moving each variable by one unit would gain."""
        low, high = self._one_each(self.bounds).T
        theta, gradient = self._one_each(row.theta), self._driving(row.gradient)
        blocked = ((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0))
        return np.where(blocked, 0.0, np.abs(gradient)) / (abs(row.loss) or np.inf)

    def _look_closer(self) -> None:
        self.tol, self.accuracy = max(TIGHTEST_TOL, self.tol / 100), self.accuracy / 10
        theta, others, self.first = self._best().theta, self.rows[self.first :], len(self.rows)
        self.kept.append(self.first)
        self.radius, self.failures, self.disagree = self.reach, 0, False
        here = self._evaluated(theta)  # curvature from slopes that were wrong is replaced
        self._learn(here, [row for row in others if not np.array_equal(row.theta, theta)])

    def _is_doubtful(self, tol: float) -> bool:
        """Whether fits are too loose to tell the end: value and gradient disagree, or slopes are rough."""
        best = self._best()
        if self.caution > LEAST_CAUTION and (self.disagree or self.failures > MAX_TRIALS):
            self.caution /= 100
            return True
        return GRADIENT_ERROR * np.sqrt(best.tol) > tol and best.tol > TIGHTEST_TOL

    def _ended(self, tol: float) -> tuple[str, bool] | None:
        """Why the descent is over; None if it goes on."""
        best, enough = self._best(), LEAST_GAIN * tol**2
        steepness = float(self._slopes(best).sum())
        settled = len(self.rows) > self.began_at + 1 and steepness <= BELIEVED_SLOPES * tol
        if steepness <= tol:
            return f"the relative gradient is {steepness:.1e}, at most tol={tol:.1e}", True
        if self.slow == 2:
            return f"the loss falls by less than {enough:.1e} of itself per step", True
        if settled and self._lowest_of_model(self.reach)[1] <= enough * abs(best.loss):
            return f"no step promises to lower the loss by more than {enough:.1e} of itself", True
        if self.failures > MAX_TRIALS:
            # the squared hinge gives the criterion kinks, and a minimum at one has no small gradient
            return f"no further descent at a relative gradient of {steepness:.1e}", True
        return None

    def _cut_short(self, tol: float) -> tuple[str, bool]:
        """Why an evaluation ended the descent."""
        if self.stopped:
            return "a callback stopped the search", False
        steepness = float(self._slopes(self._best()).sum())
        if steepness <= tol:
            return f"the relative gradient is {steepness:.1e}, at most tol={tol:.1e}", True
        if limit := self._exhausted():
            left = f"with a relative gradient of {steepness:.1e}, above tol={tol:.1e}"
            return f"{limit} reached {left}", False
        return f"folds that judge approved of none of the last {self.patience} points", True

    def _best(self) -> Evaluation:
        """The lowest of what was evaluated to the present tolerance."""
        return min(self.rows[self.first :], key=lambda row: row.loss)
