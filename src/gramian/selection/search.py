"""Learning hyperparameters: quasi-Newton steps on the cross-validation criterion (Seeger §5).

Deviates from the paper in

1. tolerances instead of fixed numbers of steps (see `descent`);
2. separate kernels start from the best tied ones, which are soon found;
3. coarse searches on some of the rows, whose optimum starts the search on more of them;
4. a few scales and variances are looked at before the first descent, because criteria have plateaus;
5. many parameters for few examples are freed only as far as held-out folds approve of it;
6. an optional log-normal prior on the hyperparameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gramian.selection.criterion import NoRoles
from gramian.selection.descent import Criterion, Descent, Evaluation
from gramian.selection.judged import gain_and_error, judged_descents

UNTOLD = ("judged", "judged_losses", "tol")  # of evaluations, which a path does not tell
COARSE_TOL_FACTOR = 3  # on the tolerance of the coarse search: its optimum is only a start
COARSE_ROWS = (250, 1000)  # of the first stages of "auto"; half of all rows follow
COARSE_FACTOR = 2  # a coarse stage must have this many times fewer rows than the last one
EXAMPLES_PER_CLASS = 5  # a sample of fewer would leave classes out of folds
# With fewer examples for each parameter beyond the tied ones, a search fits the folds: each parameter costs about half
# an example's log loss, and more where it can go to infinity.
EXAMPLES_PER_PARAMETER = 200
# Standard errors by which freed parameters must be better, as folds that do not drive see it: what they choose is the
# best of several points, and looks better than it is by about as much.
CONFIDENCE = 1.0
ROWS_PER_PARAMETER = (
    50  # with fewer rows, coarse searches keep parameters tied: what they would find is noise
)


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
        last = int(np.flatnonzero(self.accepted)[-1])  # earlier losses were less accurate
        return last + int(np.argmin(self.loss[last:]))


@dataclass(eq=False, repr=False)
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

    deviation: Any
    median: Any = None

    def __call__(self, theta: np.ndarray, start: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the negative log density, up to a constant, and its gradient."""
        centre = start if self.median is None else np.log(np.asarray(self.median, dtype=float))
        off = (theta - centre) / np.asarray(self.deviation, dtype=float) ** 2
        return float(0.5 * np.sum(off * (theta - centre))), off

    def check(self, n_parameters: int) -> None:
        """Refuse what is not positive or does not fit the number of parameters."""
        median = 1.0 if self.median is None else self.median
        for name, value in (("deviation", self.deviation), ("median", median)):
            array = np.asarray(value, dtype=float)
            if array.shape not in ((), (n_parameters,)) or not np.all(array > 0):
                raise ValueError(
                    f"LogNormalPrior({name}=...) must be a positive number or {n_parameters} of them, "
                    f"got {value!r}."
                )


@dataclass(eq=False, repr=False)
class CrossValidationSearch(BaseEstimator):
    """How to learn hyperparameters by cross-validation; ``optimize="cv"`` is this with its defaults.

    Parameters
    ----------
    tol : float, default=1e-2
        Stop when moving all log-parameters by one unit would change the criterion by at most this share of it; by at
        most three times as much, if the quadratic model of the criterion promises to lower it by less than the square
        of this share; or when two steps in a row lower it by less than that.
    max_evaluations : int, default=50
        Most evaluations of criterion and gradient in each stage, on fewer rows and on all of them.
    coarse : int, "auto" or None, default="auto"
        Search on this many rows first and finish on all of them. "auto" takes 250, then 1000 rows, then half of them,
        each if there are twice as many or more.
    prior : LogNormalPrior, default=None
        Prior on the hyperparameters. Without one, many parameters for few examples (length scales of features, kernels
        of classes) are freed from common values only as far as folds that do not drive the search approve of it.
    max_samples : int, default=None
        Learn from at most this many examples (or five of each class, if that is more), with classes in proportion; for
        pairs from those of a sample of the objects. None takes all.
    max_products : int, default=None
        End each stage after so many products with the Gram operator, however far it is.

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

    tol: float = 1e-2
    max_evaluations: int = 50
    coarse: Any = "auto"
    prior: LogNormalPrior | None = None
    max_samples: int | None = None
    max_products: int | None = None

    def sizes(self, n_samples: int, n_classes: int = 1, *, coarse: bool = True) -> list[int]:
        """Rows of the stages of the search; ``coarse`` says whether "auto" may begin with few of them."""
        least = EXAMPLES_PER_CLASS * n_classes
        last = n_samples if self.max_samples is None else max(int(self.max_samples), least)
        last = min(last, n_samples)
        if self.coarse == "auto":
            first = [max(size, least) for size in COARSE_ROWS if coarse]
            if coarse and last >= COARSE_FACTOR**2 * first[-1]:
                first.append(last // COARSE_FACTOR)
            return sorted({*(size for size in first if COARSE_FACTOR * size <= last), last})
        return [last] if self.coarse is None or self.coarse >= last else [int(self.coarse), last]

    def run(
        self,
        stages: Sequence[Callable[[], Criterion]],
        n_samples: Sequence[int],
        start: np.ndarray,
        bounds: np.ndarray,
        names: Sequence[str],
        total_weight: float,
        *,
        tied: np.ndarray | None = None,
        starts: np.ndarray | None = None,
        report: Callable[[np.ndarray, float], Any] | None = None,
    ) -> OptimizationPath:
        """Minimise one criterion after the other, each from the best point of the last.

        Parameters
        ----------
        stages : sequence of callables
            Each makes a criterion: a function of theta and ``tol`` with value and gradient. The last one decides.
        n_samples : sequence of int
            Rows of each stage, as `sizes` says.
        start : ndarray of shape (n_parameters,)
        bounds : ndarray of shape (n_parameters, 2)
            Equal bounds fix a parameter.
        names : sequence of str
        total_weight : float
            Weight of the held-out examples, against which the prior counts.
        tied : int array of shape (n_parameters,), default=None
            Parameters with the same number move together in a first, quick search, so that separate kernels start
            from the best tied ones.
        starts : ndarray of shape (n_starts, n_parameters), default=None
            Points to look at first; the descent begins at the lowest.
        report : callable, default=None
            Called with theta and the loss after each evaluation; stops the search if it returns True.

        Returns
        -------
        OptimizationPath
        """

        def penalty(theta: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = self.prior(theta, start) if self.prior is not None else (0.0, 0 * theta)
            return value / total_weight, slope / total_weight

        limits = self.max_evaluations, np.inf if self.max_products is None else self.max_products
        descent = Descent(bounds, limits, penalty, report)
        more = 0 if tied is None else int(descent.free.sum()) - np.unique(tied[descent.free]).size
        guarded = self.prior is None and total_weight < EXAMPLES_PER_PARAMETER * more
        theta = np.clip(start, bounds[:, 0], bounds[:, 1])
        message, converged = "a callback stopped the search", False
        for make, size in zip(stages, n_samples, strict=True):
            criterion, coarse_tol = make(), COARSE_TOL_FACTOR * self.tol
            last = size == n_samples[-1]
            if starts is not None and not descent.rows and descent.free.any():
                theta = descent.lowest(criterion, size, starts)
            tol = self.tol if last else coarse_tol
            if tied is not None and size == n_samples[0] and not descent.stopped:
                theta, _, _ = descent.minimise(criterion, size, theta, coarse_tol, tied)
            if not descent.stopped:  # a sample, and few rows, decide only what all have in common
                few = not last and size < ROWS_PER_PARAMETER * more
                few = few or self.max_samples is not None
                together = tied if few or guarded else None
                theta, message, converged = descent.minimise(criterion, size, theta, tol, together)
            if guarded and last and self.max_samples is None and not descent.stopped:
                theta, message, converged = self._guarded(descent, criterion, size, theta)
            if descent.stopped:
                break
        columns = zip(Evaluation._fields, zip(*descent.rows, strict=True), strict=True)
        return OptimizationPath(
            tuple(names),
            accepted=np.isin(np.arange(len(descent.rows)), list(descent.accepted)),
            message=message,
            converged=converged,
            **{name: np.array(v) for name, v in columns if name not in UNTOLD},
        )

    def _guarded(
        self, descent: Descent, criterion: Any, size: int, theta: np.ndarray
    ) -> tuple[np.ndarray, str, bool]:
        """Free tied parameters as far as folds that do not drive the descent approve of it."""

        def descend(theta: np.ndarray) -> tuple[np.ndarray, str, bool]:
            return descent.minimise(criterion, size, theta, self.tol)

        try:
            verdicts = list(judged_descents(descent, criterion, size, theta, descend))
        except NoRoles:
            return theta, "there are no folds to approve of more than common values", True
        ends, last = [verdict.end.theta for verdict in verdicts], verdicts[-1]
        if last.start.judged_losses is not None:  # of a loss that is a sum over examples
            gain, error = gain_and_error(verdicts)
            ends = ends if gain > CONFIDENCE * error else [theta]
        theta = descent.lowest(criterion, size, np.mean(ends, axis=0)[None])
        message = f"folds that did not drive the search chose; in the last one {last.message}"
        return theta, message, last.converged
