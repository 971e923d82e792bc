"""The closed form of `ridge` as a solver: every cell of a Kronecker product kernel observed once.

Optimality: ρ = 0, up to the rounding of two eigendecompositions. Cost: O(m³ + q³), and three products for the
certificate.
"""

from __future__ import annotations

import numpy as np

from gramian._core.arrays import Array
from gramian._core.fused import inner
from gramian.losses import Squared
from gramian.solvers.kronecker.ridge import KroneckerRidge
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.solution import Callback, Recorder, Solution

__all__ = ["has_closed_form", "kronecker_exact"]


def has_closed_form(problem: Problem) -> bool:
    """Whether `kronecker_exact` can solve the problem.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Squared
    >>> from gramian.operators import Dense
    >>> from gramian.solvers import Problem, has_closed_form
    >>> has_closed_form(Problem(Dense(RBF(), np.eye(2)), Squared(), np.ones((2, 1))))  # no pairs
    False
    """
    squared = isinstance(problem.loss, Squared) and problem.weights is None
    return squared and problem.operator.kronecker() is not None


def kronecker_exact(
    problem: Problem,
    *,
    start: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 1,
    callback: Callback | None = None,
) -> Solution:
    """Solve ridge regression on complete pairs in closed form.

    Parameters
    ----------
    problem : Problem
        With the squared loss, no weights, and a Kronecker product as its operator.
    start : array, default=None
        Not used: nothing is iterated.
    tol : float, default=1e-8
        What the certificate is compared with.
    max_iter : int, default=1
        Not used.
    callback : callable, default=None
        Called once.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Pairs
    >>> from gramian.kernels.pairwise import Kronecker
    >>> from gramian.losses import Squared
    >>> from gramian.operators import PairGram
    >>> from gramian.solvers import Problem, kronecker_exact
    >>> pairs = Pairs.complete(np.eye(2), np.eye(3))
    >>> operator = PairGram(Kronecker("linear", "linear"), pairs, form="dual")
    >>> kronecker_exact(Problem(operator, Squared(), np.ones((6, 1)))).status
    'converged'
    """
    factors = problem.operator.kronecker()
    if factors is None or not has_closed_form(problem):
        raise ValueError(
            "solver='closed_form' needs the squared loss, the Kronecker kernel in its dual form, every pair of the "
            "objects exactly once, no sample_weight and intercept_variance=0. Use solver='minres'."
        )
    K, T, order = factors
    recorder = Recorder(problem, tol, 1, callback, patience=2)
    A = problem.start(None)
    objective, gap = _certificate(recorder, A, np.zeros_like(A))
    recorder.verdict(A, objective, gap, moved=True)
    ridge = KroneckerRidge(K, T)
    targets = np.broadcast_to(problem.targets, problem.shape)
    for c in range(problem.shape[1]):
        for column in range(problem.shape[2]):
            Y = targets[order, c, column].reshape(len(K), len(T))
            strength = float(problem.strength[column])
            A[order, c, column] = ridge.coefficients(Y, strength).reshape(-1)
    U = recorder.accurate_product(A)
    objective, gap = _certificate(recorder, A, U)
    status = recorder.verdict(A, objective, gap, moved=True)
    # the one iteration is all there is: what is missing is due to rounding
    return recorder.solution(
        A, U, objective, gap, "converged" if status == "converged" else "stalled"
    )


def _certificate(recorder: Recorder, A: np.ndarray, U: np.ndarray) -> tuple[Array, Array]:
    problem = recorder.problem
    rho = problem.residual(A, U)
    return problem.objective(A, U), problem.gap(inner(rho, recorder.product(rho)))
