"""L-BFGS-B on a criterion that is evaluated only as well as the descent can use it.

A criterion is a function of theta, ``tol`` and ``accuracy`` (see `criterion`). Measured on satimage, the relative error
of its gradient is about 0.04 √tol for fits to a relative gap of tol, and that of its value far smaller. So the
tolerance follows the square of the relative gradient: the error stays a few per cent of the gradient all the way to the
optimum. On badly conditioned problems the error can be larger. It then shows as a value and a gradient that disagree:
when a line search fails, the same point is evaluated more tightly, and the tolerance stays tighter from there on.

What a descent on fewer rows learned about curvature is not lost: a later one with the same variables moves in
coordinates in which the BFGS matrix of the earlier one is the identity (see `curvature`), and its first step is that of
a quasi-Newton method.

No step leads further than a radius from where a descent began; there SciPy starts anew. A descent ends with a small
enough sum of slopes (all parameters together could gain no more), after two steps with hardly any gain, or when even
tight fits show no descent.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from gramian.selection.curvature import quasi_newton_basis

LOOSEST_TOL, TIGHTEST_TOL = 1e-3, 1e-9  # relative gaps of the fits
LOOKING_TOL = 1e-2  # the same, where points that are far apart are compared
WORTH_GOING_ON = (
    0.01  # of the value, by one more step of the kind that led to the lowest of several points
)
LARGEST_CORRECTION = 0.05  # of the value for inexact fits, relative to it
GRADIENT_ERROR = 0.04  # relative, for fits to a relative gap of one; it goes with the root
TOL_PER_SQUARED_SLOPE = 0.3  # relative gap of the fits, for a relative gradient of one
# Log-units that each parameter moves at first, in the mean square, and that no step leads further than from where a
# descent began: extremes are costly to evaluate. The second pair is for descents from where one on fewer rows ended.
FIRST_REACH, LATER_REACH = (1.4, 3.0), (0.5, 1.5)
LEAST_CAUTION = 1e-4  # factor on the tolerance after descents that stopped early
SLOW_SHARE = 1 / 30  # a descent by less than this × tol is no progress
JUDGES_PATIENCE = (
    5  # evaluations without a better one for the folds that judge: a descent is then in vain
)
ROUNDING = 1e-12  # of log-parameters
MAX_TRIALS = 6  # a line search of more steps is led astray by a value that was too low: look closer


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
        self.begun: list[tuple[int, int]] = []  # rows and variables of the descents so far
        self.pairs: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}  # steps by variables
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
        """Minimise a criterion from theta by L-BFGS-B in one box after the other.

        Parameters with the same number in ``tied`` move together. Returns the best theta, why the descent ended, and
        whether it converged.
        """
        looked = self.first if self.rows and self.criterion is criterion else len(self.rows)
        self._begin(criterion, n_samples, theta, tied)
        places = [k for k in range(looked, self.first) if np.array_equal(self.rows[k].theta, theta)]
        if places:  # what `lowest` or the last descent found need not be evaluated again
            self.first, self.kept = looked, [places[-1]]
            self._tighten(self.rows[places[-1]])
        self.begun.append((n_samples, int(self.drivers.max(initial=0)) + 1))
        ended = None if self.free.any() else self._only_evaluated()
        while ended is None:
            moved_from, self.misled = self.theta, False
            with contextlib.suppress(Stop):
                self._within_box(tol)
            self.theta = self._best().theta
            stuck = self.misled or np.array_equal(self.theta, moved_from)
            ended = self._ended(tol, stuck=stuck and self.caution <= LEAST_CAUTION)
            if ended is None and stuck:  # value and gradient disagree: look closer, from here
                self.caution /= 100
                self._look_closer()
            elif ended is not None and self._is_doubtful(tol):
                ended = None
                self._look_closer()
        self.accepted.update(self.kept)
        self._remember()
        return (self._best().theta, *ended)

    def _remember(self) -> None:
        """Keep steps and changes of the gradient, relative to the loss, for descents on more rows."""
        known = [self.rows[k] for k in dict.fromkeys(self.kept)]
        places = [self._one_each(row.theta) for row in known]
        scale = abs(known[-1].loss) or 1.0  # the same for all: curvature is that of the loss
        slopes = [self._driving(row.gradient) / scale for row in known]
        steps = zip(np.diff(places, axis=0), np.diff(slopes, axis=0), strict=True)
        self.pairs.setdefault(places[0].size, []).extend(steps)

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
        # SciPy's first step has length one. From the optimum on fewer rows the way is not far.
        size = int(self.drivers.max(initial=0)) + 1
        later = any(rows < n_samples and variables == size for rows, variables in self.begun)
        step, self.radius = LATER_REACH if later else FIRST_REACH
        self.unit = step * np.sqrt(size)
        self.learned = self.pairs.get(size, []) if later else []

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient in the variables, both relative to the first value."""
        theta = self.theta.copy()
        theta[self.free] = self._place(x)[self.drivers]
        seen = (row for row in self.rows[self.first :] if np.allclose(row.theta, theta, 0, 1e-12))
        known = next(seen, None) or self._evaluated(theta)
        if len(self.rows) - max(self.kept[-1], self.began_at) > MAX_TRIALS:
            self.misled = True
            raise Stop
        scale = abs(self.rows[self.first].loss) or 1.0
        return known.loss / scale, self.basis.T @ self._driving(known.gradient) / scale

    def _place(self, x: np.ndarray) -> np.ndarray:
        """Values of the variables at a point of SciPy's."""
        low, high = self.box
        place = np.clip(self.origin + self.basis @ x, low, high)
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
        row = Evaluation(
            theta, value, gradient, products, seconds, self.n_samples, judged, self.tol
        )
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
        self.tol = float(np.clip(tol, TIGHTEST_TOL, LOOSEST_TOL))
        accuracy = np.sqrt(self.caution) * steepest
        self.accuracy = float(np.clip(accuracy, 1e-6, LARGEST_CORRECTION))

    def _slopes(self, row: Evaluation) -> np.ndarray:
        """Slopes that the bounds leave, relative to the value: what moving each variable by one unit would gain."""
        low, high = self._one_each(self.bounds).T
        theta, gradient = self._one_each(row.theta), self._driving(row.gradient)
        blocked = ((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0))
        return np.where(blocked, 0.0, np.abs(gradient)) / (abs(row.loss) or np.inf)

    def _only_evaluated(self) -> tuple[str, bool]:
        with contextlib.suppress(Stop):
            self._evaluated(self.theta)
        return "nothing to learn: all parameters are fixed", True

    def _is_doubtful(self, tol: float) -> bool:
        """Whether the slopes are small enough, but were computed from fits too loose to tell."""
        best = self._best()
        small = self._slopes(best).sum() <= tol and not self.stopped and not self._exhausted()
        return small and GRADIENT_ERROR * np.sqrt(best.tol) > tol and best.tol > TIGHTEST_TOL

    def _look_closer(self) -> None:
        self.tol, self.accuracy = max(TIGHTEST_TOL, self.tol / 100), self.accuracy / 10
        self.first = len(self.rows)
        self.kept.append(self.first)
        with contextlib.suppress(Stop):
            self._evaluated(self.theta)

    def _within_box(self, tol: float) -> None:
        low = np.maximum(self.bounds[:, 0], self.theta - self.radius)
        high = np.minimum(self.bounds[:, 1], self.theta + self.radius)
        self.origin = self._one_each(self.theta)
        self.box = self._one_each(np.stack([low, high], axis=1)).T
        self.basis = self.unit * np.eye(self.origin.size)
        start = np.zeros_like(self.origin)
        self(start)
        if self._slopes(self._best()).sum() <= tol:  # SciPy would step first
            return
        bounds = ((self.box - self.origin) / self.unit).T
        if self.learned:
            row = self.rows[-1] if np.array_equal(self.rows[-1].theta, self.theta) else self._best()
            slopes = self._driving(row.gradient) / (abs(row.loss) or 1.0)
            self.basis = quasi_newton_basis(self.learned, slopes, self.unit)
            bounds, self.learned = None, []  # later boxes have steps of their own
        minimize(
            self,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=lambda x: self._accept(x, tol),
            options={"maxfun": 10**6, "maxiter": 10**6, "ftol": 1e-12, "gtol": 0.0},
        )

    def _accept(self, x: np.ndarray, tol: float) -> None:
        """Note a point that SciPy keeps, which need not be the last one evaluated."""
        recent = self.rows[self.first :]
        off = [np.abs(self._one_each(row.theta) - self._place(x)).max() for row in recent]
        place = self.first + int(np.argmin(off))
        before, now = self.rows[self.kept[-1]].loss, self.rows[place]
        self.slow = self.slow + 1 if before - now.loss <= SLOW_SHARE * tol * abs(now.loss) else 0
        self.kept.append(place)
        if np.abs(now.theta - self.theta).max() >= self.radius:  # on to the next box
            self.slow = 0
            raise Stop
        if self.slow == 2 or self._slopes(now).sum() <= tol:
            raise Stop

    def _ended(self, tol: float, *, stuck: bool) -> tuple[str, bool] | None:
        """Why the search is over; None if it goes on in another box."""
        steepness = float(self._slopes(self._best()).sum())
        if steepness <= tol:
            return f"the relative gradient is {steepness:.1e}, at most tol={tol:.1e}", True
        if self.slow == 2:
            return f"the loss falls by less than {SLOW_SHARE * tol:.1e} of itself per step", True
        if self.stopped:
            return "a callback stopped the search", False
        if limit := self._exhausted():
            left = f"with a relative gradient of {steepness:.1e}, above tol={tol:.1e}"
            return f"{limit} reached {left}", False
        if self._in_vain():
            return f"folds that judge approved of none of the last {self.patience} points", True
        if stuck:  # the squared hinge gives the criterion kinks, and a minimum at one has no small gradient
            return f"no further descent at a relative gradient of {steepness:.1e}", True
        return None

    def _best(self) -> Evaluation:
        """The lowest of what was evaluated to the present tolerance."""
        return min(self.rows[self.first :], key=lambda row: row.loss)
