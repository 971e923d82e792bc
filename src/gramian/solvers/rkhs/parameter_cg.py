"""Conjugate gradient on the coefficients: the baseline of kernel CG (Ratliff & Bagnell §3).

The gradient of P in the coefficients is ``g = 𝒦ρ``, and the inner product is the Euclidean one.

Optimality: 𝒦ρ = 0. Cost: two products with 𝒦 per iteration (𝒦ρ and 𝒦g; the paper counts one).
Condition number (RLS): that of ``𝒦(𝒦 + λI)``.
"""

from __future__ import annotations

from gramian._core.arrays import Array
from gramian.solvers.rkhs.conjugate_gradient import conjugate_gradient
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder
from gramian.solvers.solution import Callback, Solution


def parameter_cg(
    problem: Problem,
    *,
    start: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 10_000,
    callback: Callback | None = None,
) -> Solution:
    """Minimise by conjugate gradient on the coefficients; arguments as for `kernel_cg`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Logistic
    >>> from gramian.operators import Dense
    >>> from gramian.solvers import Problem, parameter_cg
    >>> X = np.linspace(-1, 1, 6)[:, None]
    >>> problem = Problem(Dense(RBF(), X), Logistic(), (X > 0).astype(float), regularization=0.1)
    >>> solution = parameter_cg(problem)
    >>> solution.status, solution.gap <= 1e-8 * solution.objective
    ('converged', True)
    """

    def gradient(recorder: Recorder, rho: Array, K_rho: Array) -> tuple[Array, Array, bool]:
        return K_rho, recorder.product(K_rho), False

    return conjugate_gradient(
        problem, gradient, start=start, tol=tol, max_iter=max_iter, callback=callback
    )
