"""Nonlinear conjugate gradients, Polak–Ribière⁺ with restarts, in the RKHS inner product.

    h ← −g' + η h,    g = Pρ,    η = max(0, ⟨g', ρ' − ρ⟩_𝒦 / ⟨g, ρ⟩_𝒦),    ⟨g, g'⟩_𝒦 = ⟨g, 𝒦g'⟩

(restarted where h is no descent direction), followed by a line minimisation, exact for quadratics
(Ratliff & Bagnell, Algorithm 1; the digits of the paper's formulas were lost and are rederived).
ρ = ∇L(U) + λA has the coefficients of the functional gradient of P. The methods differ in P, which is self-adjoint in
the RKHS inner product. On a quadratic all are linear conjugate gradients.

`kernel_cg`
    P is the identity, a `preconditioner` for a quadratic loss, or `leading_functions` where outputs are many: both take
    the leading part of 𝒦 out of the condition number, and the latter follows the curvature of the loss. Cost: one
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
from gramian._core.fused import inner, scale_and_add
from gramian.solvers.rkhs.descend import State, descend
from gramian.solvers.rkhs.line_search import REMAINING_SLOPE, minimise_along
from gramian.solvers.rkhs.preconditioning.leading_functions import (
    LeadingFunctions,
    LeadingPreconditioner,
    is_many,
    leading_functions,
)
from gramian.solvers.rkhs.preconditioning.policy import Preconditioning
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder
from gramian.solvers.solution import Callback, Solution

# Iterations. The gap is not what CG minimises and may rise for a while; so long without progress, rounding is to blame.
PATIENCE = 200

# Share of the slope along a direction that may be left, where outputs are many and looks at the loss cost as much as
# products. On generated text 1e-4 is no better, and 0.5 once took twice the iterations.
LOOSE_SLOPE = 0.1

# From the state to Pρ, 𝒦Pρ and whether P is a new one, so that directions start afresh.
Gradient = Callable[[State], tuple[Array, Array, bool]]


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
        As for `newton` where the loss is squared, so that its curvature does not change. Other losses have one if
        this is "auto" and outputs are many, see `leading_functions`.

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
    quadratic = problem.loss.quadratic
    preconditioning = Preconditioning(problem, preconditioner, recorder.operator, usable=quadratic)
    if not quadratic:
        space = (
            leading_functions(problem) if preconditioner == "auto" and is_many(problem) else None
        )
        if space is None:
            return descend(recorder, ConjugateDirections(problem, _plain), start)
        following = _Following(problem, space)
        return descend(recorder, ConjugateDirections(problem, following, LOOSE_SLOPE), start)
    curvature = problem.curvature(problem.start(None))  # the same everywhere

    def gradient(state: State) -> tuple[Array, Array, bool]:
        changed = preconditioning.grown(recorder, curvature)
        P = preconditioning.at(curvature)
        if P is None:
            return state.rho, state.K_rho, changed
        P_rho, KP_rho = P.apply(state.rho, state.K_rho)
        return P_rho, KP_rho, changed

    known = preconditioning.start(tol) if start is None else None
    return descend(recorder, ConjugateDirections(problem, gradient), start, known)


def _plain(state: State) -> tuple[Array, Array, bool]:
    """No preconditioner: Pρ is ρ."""
    return state.rho, state.K_rho, False


class _Following:
    """A preconditioner that follows the curvature of the loss: it is made anew after 1, 2, 4, 8 ... iterations.

    The curvature changes most at the beginning. Directions go on when P changes: P is about the same.
    """

    def __init__(self, problem: Problem, space: LeadingFunctions):
        self.problem, self.space, self.iterations, self.renewal = problem, space, 0, 0
        self.P: LeadingPreconditioner | None = None

    def __call__(self, state: State) -> tuple[Array, Array, bool]:
        if self.P is None or self.iterations >= self.renewal:
            curvature = self.problem.curvature(state.U)
            self.P = LeadingPreconditioner(self.space, curvature, float(self.problem.strength[0]))
            self.renewal = max(1, 2 * self.iterations)
        self.iterations += 1
        P_rho, KP_rho = self.P.apply(state.rho, state.K_rho)
        return P_rho, KP_rho, False


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

    def gradient(state: State) -> tuple[Array, Array, bool]:
        return state.K_rho, recorder.product(state.K_rho), False

    return descend(recorder, ConjugateDirections(problem, gradient), start)


class ConjugateDirections:
    """The directions of nonlinear conjugate gradients; see the header.

    Parameters
    ----------
    problem : Problem
    gradient : callable
        From the state to Pρ, 𝒦Pρ and whether P is a new one.
    remaining : float
        As for `minimise_along`.
    """

    def __init__(self, problem: Problem, gradient: Gradient, remaining: float = REMAINING_SLOPE):
        self.problem, self.gradient, self.remaining = problem, gradient, remaining
        self.h: Array = None
        self.Kh = self.K_rho_old = self.norm_old = self.h

    def __call__(self, state: State) -> tuple[Array, Array, Array]:
        """Return h, 𝒦h and the step lengths to the minimum along h."""
        xp, spread = namespace(state.rho), self.problem.spread
        g, Kg, changed = self.gradient(state)
        norm = inner(g, state.K_rho)
        if state.fresh or changed:
            h, Kh = -g, -Kg
        else:
            fall = ratio(norm - inner(g, self.K_rho_old), self.norm_old, self.norm_old > 0)
            turn = spread(xp.clip(fall, min=0))
            h, Kh = scale_and_add(self.h, turn, -g), scale_and_add(self.Kh, turn, -Kg)
            uphill = inner(state.K_rho, h) >= 0
            if bool(xp.any(uphill)):
                back = spread(uphill)
                h, Kh = h - back * (h + g), Kh - back * (Kh + Kg)
        self.h, self.Kh, self.K_rho_old, self.norm_old = h, Kh, state.K_rho, norm
        return h, Kh, minimise_along(self.problem, state, h, Kh, self.remaining)
