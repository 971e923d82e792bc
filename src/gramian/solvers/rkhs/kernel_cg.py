"""Kernel conjugate gradient: nonlinear CG in the RKHS inner product (Ratliff & Bagnell, Algorithm 1).

The functional gradient of P has coefficients ``g = ρ = ∇L(U) + λA``, and ``⟨g, g'⟩_𝒦 = ⟨g, 𝒦g'⟩``.

Optimality: ρ = 0. Cost: one product with 𝒦 per iteration. Condition number (RLS): that of 𝒦 + λI,
against that of ``𝒦(𝒦 + λI)`` for CG on the coefficients. A `preconditioner` takes the leading part of 𝒦 out of it.
"""

from __future__ import annotations

from typing import Any

from gramian._core.arrays import Array
from gramian.solvers.rkhs.conjugate_gradient import conjugate_gradient
from gramian.solvers.rkhs.preconditioning.policy import Preconditioning
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder
from gramian.solvers.solution import Callback, Solution


def kernel_cg(
    problem: Problem,
    *,
    start: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    callback: Callback | None = None,
    preconditioner: Any = "auto",
) -> Solution:
    """Minimise by kernel conjugate gradient.

    Parameters
    ----------
    problem : Problem
    start : array of shape (n, C) or (n, C, q), default=None
        Starting coefficients; zeros by default.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective, in every column.
    max_iter : int, default=1000
    callback : callable, default=None
        Called with a `Progress` after each iteration; stops if it returns True.
    preconditioner : {"auto"}, int or None, default="auto"
        As for `newton`; for the squared loss only, whose curvature does not change.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Logistic
    >>> from gramian.operators import Dense
    >>> from gramian.solvers import Problem, kernel_cg
    >>> X = np.linspace(-1, 1, 6)[:, None]
    >>> problem = Problem(Dense(RBF(), X), Logistic(), (X > 0).astype(float), regularization=0.1)
    >>> solution = kernel_cg(problem)
    >>> solution.status, solution.gap <= 1e-8 * solution.objective
    ('converged', True)
    """
    preconditioning = Preconditioning(problem, preconditioner, usable=problem.loss.quadratic)
    curvature = problem.curvature(problem.start(None)) if problem.loss.quadratic else None

    def gradient(recorder: Recorder, rho: Array, K_rho: Array) -> tuple[Array, Array, bool]:
        if curvature is None:
            return rho, K_rho, False
        changed = preconditioning.grown(recorder, curvature)
        P = preconditioning.at(curvature)
        return (rho, K_rho, changed) if P is None else (*P.apply(rho, K_rho), changed)

    return conjugate_gradient(
        problem, gradient, start=start, tol=tol, max_iter=max_iter, callback=callback
    )
