"""Learning hyperparameters: how to search, and what to believe beforehand (Seeger §5). `walk` does it.

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

from gramian.selection.descent import Criterion
from gramian.selection.walk import Walk

COARSE_ROWS = (250, 1000)  # of the first stages of "auto"; half of all rows follow
COARSE_FACTOR = 2  # a coarse stage must have this many times fewer rows than the last one
EXAMPLES_PER_CLASS = 5  # a sample of fewer would leave classes out of folds


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

    def walk(
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
    ) -> Walk:
        """Return a search that has not begun; each stage goes on from the best point of the last.

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
        Walk
        """
        return Walk(
            self,
            list(zip(stages, n_samples, strict=True)),
            start,
            bounds,
            names,
            total_weight,
            tied=tied,
            starts=starts,
            report=report,
        )
