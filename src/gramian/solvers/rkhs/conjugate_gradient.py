"""Nonlinear conjugate gradients, Polak–Ribière⁺ with restarts, in the RKHS inner product.

    h ← −g' + η h,    g = Pρ,    η = max(0, ⟨g', ρ' − ρ⟩_𝒦 / ⟨g, ρ⟩_𝒦),    ⟨g, g'⟩_𝒦 = ⟨g, 𝒦g'⟩

(restarted where h is no descent direction), followed by a line minimisation, exact for quadratics
(Ratliff & Bagnell, Algorithm 1; the digits of the paper's formulas were lost and are rederived).
ρ = ∇L(U) + λA has the coefficients of the functional gradient of P. The methods differ in P, which is self-adjoint in
the RKHS inner product. On a quadratic all are linear conjugate gradients.

`kernel_cg`
    P is the identity or a `preconditioner`, which takes the leading part of 𝒦 out of the condition number. Cost: one
    product with 𝒦 per iteration. Condition number (RLS): that of 𝒦 + λI.

`parameter_cg`
    Conjugate gradients on the coefficients, the baseline of the paper (§3): P is 𝒦 itself, which makes ``⟨g, ρ⟩_𝒦`` the
    Euclidean norm of the gradient 𝒦ρ in the coefficients. Cost: two products per iteration (𝒦ρ and 𝒦g; the paper
    counts one). Condition number (RLS): that of ``𝒦(𝒦 + λI)``.

Optimality: ρ = 0. Deviates from the paper in: the stopping rule is the duality gap for every loss; q problems in
lockstep, finished ones frozen; U is recomputed from A to verify the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gramian._core.arrays import Array, namespace, ratio
from gramian._core.fused import inner
from gramian.solvers.rkhs.descend import State, descend
from gramian.solvers.rkhs.line_search import minimise_along
from gramian.solvers.rkhs.preconditioning.policy import Preconditioning
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder
from gramian.solvers.solution import Callback, Solution

# Iterations. The gap is not what CG minimises and may rise for a while; so long without progress, rounding is to blame.
PATIENCE = 200

# From ρ and 𝒦ρ to Pρ, 𝒦Pρ and whether P is a new one, so that directions start afresh.
Gradient = Callable[[Array, Array], tuple[Array, Array, bool]]


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
        Starting coefficients; zeros by default, and wherever these have the smaller objective.
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
    recorder = Recorder(problem, tol, max_iter, callback, PATIENCE)
    recorder.multiply_in_single()
    usable = problem.loss.quadratic
    preconditioning = Preconditioning(problem, preconditioner, recorder.operator, usable=usable)
    # that of a quadratic loss is the same everywhere; other losses have no preconditioner
    curvature = problem.curvature(problem.start(None)) if problem.loss.quadratic else None

    def gradient(rho: Array, K_rho: Array) -> tuple[Array, Array, bool]:
        if curvature is None:
            return rho, K_rho, False
        changed = preconditioning.grown(recorder, curvature)
        P = preconditioning.at(curvature)
        return (rho, K_rho, changed) if P is None else (*P.apply(rho, K_rho), changed)

    known = preconditioning.start(tol) if start is None else None
    return descend(recorder, ConjugateDirections(problem, gradient), start, known)


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
    recorder = Recorder(problem, tol, max_iter, callback, PATIENCE)

    def gradient(rho: Array, K_rho: Array) -> tuple[Array, Array, bool]:
        return K_rho, recorder.product(K_rho), False

    return descend(recorder, ConjugateDirections(problem, gradient), start)


class ConjugateDirections:
    """The directions of nonlinear conjugate gradients; see the header.

    Parameters
    ----------
    problem : Problem
    gradient : callable
        From ρ and 𝒦ρ to Pρ, 𝒦Pρ and whether P is a new one.
    """

    def __init__(self, problem: Problem, gradient: Gradient):
        self.problem, self.gradient = problem, gradient
        self.h: Array = None
        self.Kh = self.K_rho_old = self.norm_old = self.h

    def __call__(self, state: State) -> tuple[Array, Array, Array]:
        """Return h, 𝒦h and the step lengths to the minimum along h."""
        xp, spread = namespace(state.rho), self.problem.spread
        g, Kg, changed = self.gradient(state.rho, state.K_rho)
        norm = inner(g, state.K_rho)
        if state.fresh or changed:
            h, Kh = -g, -Kg
        else:
            fall = ratio(norm - inner(g, self.K_rho_old), self.norm_old, self.norm_old > 0)
            turn = spread(xp.clip(fall, min=0))
            h, Kh = turn * self.h - g, turn * self.Kh - Kg
            uphill = spread(inner(state.K_rho, h) >= 0)
            h, Kh = h - uphill * (h + g), Kh - uphill * (Kh + Kg)
        self.h, self.Kh, self.K_rho_old, self.norm_old = h, Kh, state.K_rho, norm
        return h, Kh, minimise_along(self.problem, state, h, Kh)
