"""L-BFGS-B on a criterion that is evaluated only as well as the descent can use it.

A criterion is a function of theta, ``tol`` and ``accuracy`` (see `criterion`). Measured on satimage, the relative error
of its gradient is about 0.04 √tol for fits to a relative gap of tol, and that of its value far smaller. So the
tolerance follows the square of the relative gradient: the error stays a few per cent of the gradient all the way to the
optimum. On badly conditioned problems the error can be larger. It then shows as a value and a gradient that disagree:
when a line search fails, the same point is evaluated more tightly, and the tolerance stays tighter from there on.

No step leads further than `RADIUS` from where a descent began; there SciPy starts anew. The end: a small enough sum of
slopes (all parameters together could gain no more), two steps with hardly any gain, or no descent even with tight fits.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

Criterion = Callable[..., tuple[float, np.ndarray]]

LOOSEST, TIGHTEST = 1e-3, 1e-9  # relative gaps of the fits
SHARE_OF_SLOPE = 0.3  # tol = this × (relative gradient)²
RADIUS = 3.0  # no step leads further than this from where a descent began: extremes are costly to evaluate
LEAST_CAUTION = 1e-4  # factor on the tolerance after descents that stopped early
SLOW = 1 / 30  # a descent by less than this × tol is no progress
MAX_TRIALS = 6  # a line search of more steps is led astray by a value that was too low: look closer


class _Stop(Exception):
    """Ends SciPy's minimiser from within."""


class Descent:
    """The function that SciPy minimises, and what it has seen.

    Parameters
    ----------
    bounds : ndarray of shape (n_parameters, 2)
        Equal bounds fix a parameter.
    max_evaluations : int
        For each criterion.
    penalty : callable
        Value and gradient of what is added to the criterion, as a function of theta.
    report : callable or None
        Called with theta and the value after each evaluation; stops the descent if it returns True.
    """

    def __init__(
        self,
        bounds: np.ndarray,
        max_evaluations: int,
        penalty: Criterion,
        report: Callable[[np.ndarray, float], Any] | None = None,
    ):
        self.bounds, self.max_evaluations = bounds, max_evaluations
        self.penalty, self.report = penalty, report
        self.free = bounds[:, 0] < bounds[:, 1]
        self.drivers = np.empty(0, dtype=np.int64)
        # SciPy's first step has length one: all parameters together then move by two units
        self.unit = 2.0
        self.rows: list[list[Any]] = []
        self.began = time.perf_counter()
        self.stopped = False

    def begin(
        self,
        criterion: Criterion,
        n_samples: int,
        theta: np.ndarray,
        tied: np.ndarray | None = None,
    ) -> None:
        """Turn to a criterion, at theta. Parameters with the same number in ``tied`` move together."""
        tied = np.arange(theta.size) if tied is None else tied
        self.drivers = np.unique(tied[self.free], return_inverse=True)[1]
        self.criterion, self.n_samples, self.theta = criterion, n_samples, theta
        self.first = self.began_at = len(self.rows)
        self.tol, self.accuracy, self.caution = LOOSEST, 0.05, 1.0

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient in the variables, both relative to the first value."""
        theta = self.theta.copy()
        theta[self.free] = (x * self.unit)[self.drivers]
        known = next(
            (row for row in self.rows[self.first :] if np.allclose(row[0], theta, 0, 1e-12)), None
        )
        if known is None:
            known = self._evaluated(theta)
        if len(self.rows) - self.kept[-1] > MAX_TRIALS:
            self.misled = True
            raise _Stop
        scale = abs(self.rows[self.first][1]) or 1.0
        return known[1] / scale, self._driving(known[2]) * self.unit / scale

    def _driving(self, gradient: np.ndarray) -> np.ndarray:
        """Gradient in the variables: the free parameters, those that are tied together as one."""
        return np.bincount(self.drivers, gradient[self.free])

    def _one_each(self, values: np.ndarray) -> np.ndarray:
        """Values of parameters as values of the variables."""
        first = np.unique(self.drivers, return_index=True)[1]
        return values[self.free][first]

    def _evaluated(self, theta: np.ndarray) -> list[Any]:
        with warnings.catch_warnings():  # the last fit says itself whether it converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            value, gradient = self.criterion(theta, tol=self.tol, accuracy=self.accuracy)
        more, slope = self.penalty(theta)
        value, gradient = value + more, gradient + slope
        if not np.isfinite(value):
            raise ValueError(
                f"The cross-validation criterion is {value} at parameters {np.exp(theta)}. Narrow their bounds."
            )
        seconds = time.perf_counter() - self.began
        products = getattr(self.criterion, "n_products", 0)
        self.rows.append([theta, value, gradient, False, products, seconds, self.n_samples])
        steepness = float(self._slopes(theta, value, gradient).max(initial=0.0))
        self.tol = float(np.clip(self.caution * SHARE_OF_SLOPE * steepness**2, TIGHTEST, LOOSEST))
        self.accuracy = float(np.clip(np.sqrt(self.caution) * steepness, 1e-6, 0.05))
        if self.report is not None and self.report(theta, value):
            self.stopped = True
            raise _Stop
        if len(self.rows) - self.began_at >= self.max_evaluations:
            raise _Stop
        return self.rows[-1]

    def _steepness(self, theta: np.ndarray, value: float, gradient: np.ndarray) -> float:
        """How much the value falls, relative to itself, if all variables move by one unit as the bounds allow."""
        return float(self._slopes(theta, value, gradient).sum())

    def _slopes(self, theta: np.ndarray, value: float, gradient: np.ndarray) -> np.ndarray:
        """Slopes that the bounds leave, relative to the value."""
        if not self.free.any():
            return np.zeros(1)
        low, high = self._one_each(self.bounds).T
        theta, gradient = self._one_each(theta), self._driving(gradient)
        blocked = ((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0))
        return np.where(blocked, 0.0, np.abs(gradient)) / (abs(value) or np.inf)

    def descend(self, tol: float) -> tuple[str, bool]:
        """Minimise by L-BFGS-B in one box after the other; say why it ended and whether it converged."""
        ended = None
        self.kept, self.slow = [self.first], 0
        while ended is None:
            moved_from, self.misled = self.theta, False
            with contextlib.suppress(_Stop):
                self._within_box(tol)
            self.theta = self.best_theta()
            stuck = self.misled or np.array_equal(self.theta, moved_from)
            ended = self._ended(tol, stuck=stuck and self.caution <= LEAST_CAUTION)
            if ended is None and stuck:  # value and gradient disagree: look closer, from here
                self.caution /= 100
                self._look_closer()
        for place in self.kept:
            self.rows[place][3] = True
        return ended

    def only_evaluate(self) -> None:
        """Evaluate where nothing is free to move."""
        with contextlib.suppress(_Stop):
            self._evaluated(self.theta)
        self.rows[-1][3] = True

    def _look_closer(self) -> None:
        self.tol, self.accuracy = max(TIGHTEST, self.tol / 100), self.accuracy / 10
        self.first = len(self.rows)
        self.kept.append(self.first)
        with contextlib.suppress(_Stop):
            self._evaluated(self.theta)

    def _within_box(self, tol: float) -> None:
        low, high = self.bounds.T
        low, high = np.maximum(low, self.theta - RADIUS), np.minimum(high, self.theta + RADIUS)
        start = self._one_each(self.theta) / self.unit
        self(start)
        if self._steepness(*self.rows[self._best()][:3]) <= tol:  # SciPy would step first
            return
        minimize(
            self,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=self._one_each(np.stack([low, high], axis=1)) / self.unit,
            callback=lambda x: self._accept(x, tol),
            options={"maxfun": 10**6, "maxiter": 10**6, "ftol": 1e-12, "gtol": 0.0},
        )

    def _accept(self, x: np.ndarray, tol: float) -> None:
        """Note a point that SciPy keeps, which need not be the last one evaluated."""
        recent = range(self.first, len(self.rows))
        off = [np.abs(self._one_each(self.rows[k][0]) - x * self.unit).max() for k in recent]
        place = self.first + int(np.argmin(off))
        before, now = self.rows[self.kept[-1]][1], self.rows[place][1]
        self.slow = self.slow + 1 if before - now <= SLOW * tol * abs(now) else 0
        self.kept.append(place)
        if np.abs(self.rows[place][0] - self.theta).max() >= RADIUS:  # on to the next box
            self.slow = 0
            raise _Stop
        if self.slow == 2 or self._steepness(*self.rows[place][:3]) <= tol:
            raise _Stop

    def _ended(self, tol: float, *, stuck: bool) -> tuple[str, bool] | None:
        """Why the search is over; None if it goes on in another box."""
        steepness = self._steepness(*self.rows[self._best()][:3])
        if steepness <= tol:
            return f"the relative gradient is {steepness:.1e}, at most tol={tol:.1e}", True
        if self.slow == 2:
            return f"the loss falls by less than {SLOW * tol:.1e} of itself per step", True
        if self.stopped:
            return "a callback stopped the search", False
        if len(self.rows) - self.began_at >= self.max_evaluations:
            reached = f"max_evaluations={self.max_evaluations} reached"
            return (
                f"{reached} with a relative gradient of {steepness:.1e}, above tol={tol:.1e}",
                False,
            )
        if stuck:  # the squared hinge gives the criterion kinks, and a minimum at one has no small gradient
            return f"no further descent at a relative gradient of {steepness:.1e}", True
        return None

    def _best(self) -> int:
        values = [row[1] for row in self.rows[self.first :]]
        return self.first + int(np.argmin(values))

    def best_theta(self) -> np.ndarray:
        """Where the criterion is lowest, of what was evaluated to the present tolerance."""
        return self.rows[self._best()][0]
