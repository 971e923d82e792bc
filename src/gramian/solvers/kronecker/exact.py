"""The closed form of `ridge` as a solver: every cell of a Kronecker product kernel observed once.

Optimality: ρ = 0, up to the rounding of two eigendecompositions. Cost: O(m³ + q³), and three products for the
certificate.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gramian._core.arrays import Array
from gramian.solvers.kronecker.ridge import KroneckerRidge
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder, squeezed
from gramian.solvers.rkhs.requirements import (
    COMPLETE_KRONECKER,
    NO_WEIGHTS,
    SQUARED_LOSS,
    require,
)
from gramian.solvers.solution import Callback, Solution

REQUIREMENTS = (SQUARED_LOSS, NO_WEIGHTS, COMPLETE_KRONECKER)


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
    return all(requirement.met(problem) for requirement in REQUIREMENTS)


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
        With the squared loss, no weights, and a Kronecker product as its operator, with or without an intercept.
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
    require(problem, "closed_form", REQUIREMENTS, instead="minres")
    form = problem.operator.kronecker()
    assert form is not None  # it is required
    K, T, order, constant = form
    recorder = Recorder(problem, tol, 1, callback, patience=2)
    A = problem.start(None)
    objective, gap, _, _ = recorder.certificate(A, np.zeros_like(A))
    recorder.verdict(partial(squeezed, A), objective, gap)
    ridge = KroneckerRidge(K, T, constant)
    targets = np.broadcast_to(problem.targets, problem.shape)
    for c in range(problem.shape[1]):
        for column in range(problem.shape[2]):
            Y = targets[order, c, column].reshape(len(K), len(T))
            strength = float(problem.strength[column])
            A[order, c, column] = ridge.coefficients(Y, strength).reshape(-1)
    U = recorder.accurate_product(A)
    objective, gap, _, _ = recorder.certificate(A, U)
    recorder.verdict(partial(squeezed, A), objective, gap)
    # the one iteration is all there is: what is missing is due to rounding
    status = recorder.confirmed("stalled", objective, gap)
    return recorder.verified(A, U, objective, gap, status, fresh=True)
