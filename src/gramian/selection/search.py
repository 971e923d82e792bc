"""Learning hyperparameters: L-BFGS-B on the cross-validation criterion (Seeger §5).

The criterion is evaluated only as well as the search can use it. Measured on satimage, the relative error of
the gradient is about 0.04 √tol for fits to a relative gap of tol, and that of the value far smaller (see `criterion`),
so the tolerance follows the square of the relative gradient: the error stays a few per cent of the gradient all the
way to the optimum, and the line search never sees noise.

Deviates from the paper in

1. tolerances instead of fixed numbers of steps;
2. a coarse search on some of the rows, whose optimum starts the search on all of them;
3. an optional log-normal prior on the hyperparameters.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

Criterion = Callable[..., tuple[float, np.ndarray]]

LOOSEST, TIGHTEST = 1e-3, 1e-9  # relative gaps of the fits
SHARE_OF_SLOPE = 0.3  # tol = this × (relative gradient)²
RADIUS = 3.0  # no step leads further than this from where a descent began: extremes are costly to evaluate
LEAST_CAUTION = 1e-4  # factor on the tolerance after descents that stopped early
SLOW = 1 / 30  # a descent by less than this × tol is no progress
MAX_TRIALS = 6  # a line search of more steps is led astray by a value that was too low: look closer
COARSE_TOL = 5  # the coarse search stops this many times earlier: its optimum is only a start
COARSE_SAMPLES = 1000
WORTH_COARSE = 2500  # rows from which "auto" searches coarsely first


@dataclass(frozen=True, eq=False)
class OptimizationPath:
    """All evaluations of a search.

    Attributes
    ----------
    names : tuple of str
        One for each log-parameter.
    theta : ndarray of shape (n_evaluations, n_parameters)
    loss : ndarray of shape (n_evaluations,)
        Mean held-out loss, with the prior if there is one.
    gradient : ndarray of shape (n_evaluations, n_parameters)
    accepted : ndarray of bool of shape (n_evaluations,)
        Whether the search went on from there; the others are trial steps.
    products : ndarray of int of shape (n_evaluations,)
        Products with the Gram operator, each for all folds.
    seconds : ndarray of shape (n_evaluations,)
        Since the start of the search.
    n_samples : ndarray of int of shape (n_evaluations,)
        Rows used: the coarse search uses fewer.
    message : str
        Why the search ended.
    converged : bool

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelLogisticRegression
    >>> path = (
    ...     KernelLogisticRegression(optimize="cv")
    ...     .fit(*load_iris(return_X_y=True))
    ...     .optimization_path_
    ... )
    >>> path.names
    ('RBF.length_scale', 'variance')
    >>> bool(path.loss[-1] < path.loss[0])
    True
    """

    names: tuple[str, ...]
    theta: np.ndarray
    loss: np.ndarray
    gradient: np.ndarray
    accepted: np.ndarray
    products: np.ndarray
    seconds: np.ndarray
    n_samples: np.ndarray
    message: str
    converged: bool

    @property
    def best(self) -> int:
        """Number of the best evaluation: the last accepted one, or a lower trial step from there."""
        last = int(
            np.flatnonzero(self.accepted)[-1]
        )  # earlier losses were computed less accurately
        return last + int(np.argmin(self.loss[last:]))


class LogNormalPrior(BaseEstimator):
    """A prior on hyperparameters: Gaussian in the log-parameters.

    Parameters
    ----------
    deviation : float or array of shape (n_parameters,)
        Standard deviation of the log-parameters.
    median : float or array of shape (n_parameters,), default=None
        Where the prior is centred, in natural units; None means where the search starts.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.selection import LogNormalPrior
    >>> prior = LogNormalPrior(deviation=2.0, median=1.0)
    >>> prior(np.log([np.e]), start=np.zeros(1))
    (0.125, array([0.25]))
    """

    def __init__(self, deviation: Any, median: Any = None):
        self.deviation = deviation
        self.median = median

    def __call__(self, theta: np.ndarray, start: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the negative log density, up to a constant, and its gradient."""
        centre = start if self.median is None else np.log(np.asarray(self.median, dtype=float))
        off = (theta - centre) / np.asarray(self.deviation, dtype=float) ** 2
        return float(0.5 * np.sum(off * (theta - centre))), off

    def check(self, n_parameters: int) -> None:
        """Refuse what is not positive or does not fit the number of parameters."""
        for name in ("deviation", "median"):
            value = getattr(self, name)
            if name == "median" and value is None:
                continue
            array = np.asarray(value, dtype=float)
            if array.shape not in ((), (n_parameters,)) or not np.all(array > 0):
                raise ValueError(
                    f"LogNormalPrior({name}=...) must be a positive number or {n_parameters} of them, "
                    f"got {value!r}."
                )


class CrossValidationSearch(BaseEstimator):
    """How to learn hyperparameters by cross-validation; ``optimize="cv"`` is this with its defaults.

    Parameters
    ----------
    tol : float, default=1e-2
        Stop when moving all log-parameters by one unit would change the criterion by at most this share of it, or when
        two steps in a row lower it by less than a thirtieth of this share.
    max_evaluations : int, default=50
        Most evaluations of criterion and gradient on all rows.
    coarse : int, "auto" or None, default="auto"
        Search on this many rows first and finish on all of them. "auto" takes 1000 if there are more than 2500.
    prior : LogNormalPrior, default=None
        Prior on the hyperparameters.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelLogisticRegression
    >>> from gramian.selection import CrossValidationSearch, LogNormalPrior
    >>> search = CrossValidationSearch(prior=LogNormalPrior(deviation=1.0))
    >>> model = KernelLogisticRegression(optimize=search).fit(*load_iris(return_X_y=True))
    >>> model.optimization_path_.converged
    True
    """

    def __init__(
        self,
        tol: float = 1e-2,
        max_evaluations: int = 50,
        coarse: Any = "auto",
        prior: LogNormalPrior | None = None,
    ):
        self.tol = tol
        self.max_evaluations = max_evaluations
        self.coarse = coarse
        self.prior = prior

    def coarse_samples(self, n_samples: int) -> int | None:
        """Rows of the coarse search; None if there is none."""
        if self.coarse is None or (self.coarse == "auto" and n_samples <= WORTH_COARSE):
            return None
        size = COARSE_SAMPLES if self.coarse == "auto" else int(self.coarse)
        return size if size < n_samples else None

    def run(
        self,
        stages: Sequence[Callable[[], Criterion]],
        n_samples: Sequence[int],
        start: np.ndarray,
        bounds: np.ndarray,
        names: Sequence[str],
        total_weight: float,
        report: Callable[[np.ndarray, float], Any] | None = None,
    ) -> OptimizationPath:
        """Minimise one criterion after the other, each from the best point of the last.

        Parameters
        ----------
        stages : sequence of callables
            Each makes a criterion: a function of theta and ``tol`` with value and gradient. The last one is the
            criterion on all rows.
        n_samples : sequence of int
            Rows of each stage.
        start : ndarray of shape (n_parameters,)
        bounds : ndarray of shape (n_parameters, 2)
            Equal bounds fix a parameter.
        names : sequence of str
        total_weight : float
            Weight of the held-out examples, against which the prior counts.
        report : callable, default=None
            Called with theta and the loss after each evaluation; stops the search if it returns True.

        Returns
        -------
        OptimizationPath
        """
        log = _Log(self, start, bounds, total_weight, report)
        message, converged = "nothing to learn: all parameters are fixed", True
        theta = np.clip(start, bounds[:, 0], bounds[:, 1])
        for make, size in zip(stages, n_samples, strict=True):
            last = size == n_samples[-1]
            log.begin(make(), size, theta)
            if log.free.any():
                message, converged = log.descend(self.tol * (1 if last else COARSE_TOL))
            else:
                log.only_evaluate()
            theta = log.best_theta()
            if log.stopped:
                break
        return log.path(names, message, converged)


class _Stop(Exception):
    """Ends SciPy's minimiser from within."""


class _Log:
    """The function that SciPy minimises, and what it has seen."""

    def __init__(self, search: CrossValidationSearch, start, bounds, total_weight, report):
        self.search, self.start, self.bounds = search, start, bounds
        self.total_weight, self.report = total_weight, report
        self.free = bounds[:, 0] < bounds[:, 1]
        # SciPy's first step has length one: all parameters together then move by two units
        self.unit = 2.0
        self.rows: list[list[Any]] = []
        self.began = time.perf_counter()
        self.stopped = False

    def begin(self, criterion: Criterion, n_samples: int, theta: np.ndarray) -> None:
        self.criterion, self.n_samples, self.theta = criterion, n_samples, theta
        self.first = self.began_at = len(self.rows)
        self.tol, self.accuracy, self.caution = LOOSEST, 0.05, 1.0

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient in the free parameters, which are x times the unit; both relative to the first value."""
        theta = self.theta.copy()
        theta[self.free] = x * self.unit
        known = next(
            (row for row in self.rows[self.first :] if np.allclose(row[0], theta, 0, 1e-12)), None
        )
        if known is None:
            known = self._evaluated(theta)
        if len(self.rows) - self.kept[-1] > MAX_TRIALS:
            self.misled = True
            raise _Stop
        scale = abs(self.rows[self.first][1]) or 1.0
        return known[1] / scale, known[2][self.free] * self.unit / scale

    def _evaluated(self, theta: np.ndarray) -> list[Any]:
        with warnings.catch_warnings():  # the last fit says itself whether it converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            value, gradient = self.criterion(theta, tol=self.tol, accuracy=self.accuracy)
        if self.search.prior is not None:
            penalty, slope = self.search.prior(theta, self.start)
            value, gradient = (
                value + penalty / self.total_weight,
                gradient + slope / self.total_weight,
            )
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
        if len(self.rows) - self.began_at >= self.search.max_evaluations:
            raise _Stop
        return self.rows[-1]

    def _steepness(self, theta: np.ndarray, value: float, gradient: np.ndarray) -> float:
        """How much the value falls, relative to itself, if all parameters move by one unit as the bounds allow."""
        return float(self._slopes(theta, value, gradient).sum())

    def _slopes(self, theta: np.ndarray, value: float, gradient: np.ndarray) -> np.ndarray:
        """Slopes that the bounds leave, relative to the value."""
        low, high = self.bounds.T
        blocked = (
            ((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0)) | ~self.free
        )
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
        start = self.theta[self.free] / self.unit
        self(start)
        if self._steepness(*self.rows[self._best()][:3]) <= tol:  # SciPy would step first
            return
        minimize(
            self,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack([low, high], axis=1)[self.free] / self.unit,
            callback=lambda x: self._accept(x, tol),
            options={"maxfun": 10**6, "maxiter": 10**6, "ftol": 1e-12, "gtol": 0.0},
        )

    def _accept(self, x: np.ndarray, tol: float) -> None:
        """Note a point that SciPy keeps, which need not be the last one evaluated."""
        recent = range(self.first, len(self.rows))
        off = [np.abs(self.rows[k][0][self.free] - x * self.unit).max() for k in recent]
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
        if len(self.rows) - self.began_at >= self.search.max_evaluations:
            reached = f"max_evaluations={self.search.max_evaluations} reached"
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
        return self.rows[self._best()][0]

    def path(self, names: Sequence[str], message: str, converged: bool) -> OptimizationPath:
        columns = [np.array(column) for column in zip(*self.rows, strict=True)]
        return OptimizationPath(tuple(names), *columns, message=message, converged=converged)
