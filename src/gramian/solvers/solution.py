"""What a solver returns: coefficients, a certificate, the reason it stopped, and how it got there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian._core.arrays import Array


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of a solver.

    Attributes
    ----------
    coefficients : array of shape (n, C) or (n, C, q)
        The dual coefficients A.
    status : {"converged", "max_iter", "stalled", "stopped"}
        "stalled": rounding errors allow no further progress. "stopped": a callback said so.
    objective : float
        P(A), summed over independent columns.
    gap : float
        The certificate: P(A) is at most this far above its minimum.
    gaps : ndarray of shape (q,)
        The gap of each independent column.
    n_iter : int
    n_products : int
        Products with the Gram operator, each for all columns.
    history : dict of ndarray
        "objective", "gap", "products" and "seconds" before each iteration and at the end. The lower
        bound is objective − gap.
    latent : array of shape (n, C) or (n, C, q)
        U = 𝒦A, as computed for the certificate; estimators do not keep it.
    choices : tuple of str
        What an estimator decided by itself before it solved, in words.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelLogisticRegression
    >>> solution = KernelLogisticRegression().fit(*load_iris(return_X_y=True)).solution_
    >>> solution.status, solution.relative_gap < 1e-8
    ('converged', True)
    """

    coefficients: Array
    status: str
    objective: float
    gap: float
    gaps: np.ndarray
    n_iter: int
    n_products: int
    history: dict[str, np.ndarray]
    latent: Array = None
    choices: tuple[str, ...] = ()

    @property
    def relative_gap(self) -> float:
        """Gap divided by the objective."""
        return self.gap / self.objective if self.objective > 0 else self.gap


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration; it returns True to stop.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Squared
    >>> from gramian.operators import Dense
    >>> from gramian.solvers import Problem, kernel_cg
    >>> X = np.linspace(0, 1, 9)[:, None]
    >>> problem = Problem(Dense(RBF(0.1), X), Squared(), np.sin(9 * X))
    >>> kernel_cg(problem, callback=lambda progress: progress.iteration == 2).n_iter
    2
    """

    iteration: int
    coefficients: Array
    objective: float
    gap: float


Callback = Callable[[Progress], Any]
