"""Nonlinear conjugate gradients, Polak–Ribière⁺ with restarts, in the RKHS inner product.

    h ← −g' + η h,    g = Pρ,    η = max(0, ⟨g', ρ' − ρ⟩_𝒦 / ⟨g, ρ⟩_𝒦)

(restarted where h is no descent direction), followed by a line minimisation, exact for quadratics
(Ratliff & Bagnell, Algorithm 1; the digits of the paper's formulas were lost and are rederived).
What differs is P, self-adjoint in the RKHS inner product: `kernel_cg` takes the identity or a `preconditioner`,
`parameter_cg` takes 𝒦 itself, which makes ``⟨g, ρ⟩_𝒦`` the Euclidean norm of the gradient 𝒦ρ in the coefficients.
On a quadratic all are linear conjugate gradients.

Deviates from the paper in: the stopping rule is the duality gap for every loss; q problems in
lockstep, finished ones frozen; U is recomputed from A to verify the end.
"""

from __future__ import annotations

from collections.abc import Callable

from gramian._core.arrays import Array, namespace, ratio
from gramian._core.fused import inner
from gramian.solvers.rkhs.descend import State
from gramian.solvers.rkhs.line_search import minimise_along
from gramian.solvers.rkhs.problem import Problem

__all__ = ["PATIENCE", "ConjugateDirections"]

# Iterations. The gap is not what CG minimises and may rise for a while; so long without progress, rounding is to blame.
PATIENCE = 200

# From ρ and 𝒦ρ to Pρ, 𝒦Pρ and whether P is a new one, so that directions start afresh.
Gradient = Callable[[Array, Array], tuple[Array, Array, bool]]


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
        self.h = self.Kh = self.K_rho_old = self.norm_old = None

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
