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
from functools import partial

from gramian._core.arrays import Array, namespace
from gramian._core.fused import inner
from gramian.solvers.rkhs.line_search import minimise_along
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder, squeezed
from gramian.solvers.solution import Callback, Solution

# The gap is not what CG minimises and may rise for a while; so long without progress, rounding is to
# blame.
PATIENCE = 200


Gradient = Callable[[Recorder, Array, Array], tuple[Array, Array, bool]]


def conjugate_gradient(
    problem: Problem,
    gradient: Gradient,
    *,
    start: Array | None,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> Solution:
    """Minimise; see `kernel_cg` for the arguments.

    ``gradient(recorder, ρ, 𝒦ρ)`` returns Pρ, 𝒦Pρ and whether P is a new one, so that directions start afresh.
    """
    recorder = Recorder(problem, tol, max_iter, callback, PATIENCE)
    xp = namespace(problem.targets)
    A = problem.start(start)
    U = xp.zeros_like(A) if start is None else recorder.accurate_product(A)
    fresh = moved = True
    K_rho_old = norm_old = h = Kh = None
    while True:
        rho = problem.residual(A, U)
        K_rho = recorder.product(rho)
        objective, gap = problem.objective(A, U), problem.gap(inner(rho, K_rho))
        done = recorder.converged(objective, gap)
        if bool(xp.all(done)) and not fresh:
            U, fresh, K_rho_old = recorder.accurate_product(A), True, None
            continue
        status = recorder.verdict(partial(squeezed, A), objective, gap, moved=moved)
        if status is not None:
            return recorder.verified(A, U, objective, gap, status, fresh=fresh)
        g, Kg, changed = gradient(recorder, rho, K_rho)
        norm = inner(g, K_rho)
        if K_rho_old is None or changed:
            h, Kh = -g, -Kg
        else:
            turn = problem.spread(_turn(norm, inner(g, K_rho_old), norm_old))
            h, Kh = turn * h - g, turn * Kh - Kg
            uphill = problem.spread(inner(K_rho, h) >= 0)
            h, Kh = h - uphill * (h + g), Kh - uphill * (Kh + Kg)
        step = minimise_along(problem, A, U, h, Kh)
        step = xp.where(done, xp.zeros_like(step), step)
        t = problem.spread(step)
        A, U, fresh = A + t * h, U + t * Kh, False
        K_rho_old, norm_old = K_rho, norm
        moved = bool(xp.any((step > 0) & ~done))


def _turn(norm: Array, overlap: Array, old_norm: Array) -> Array:
    """Polak–Ribière⁺."""
    xp = namespace(norm)
    safe = xp.where(old_norm > 0, old_norm, xp.ones_like(old_norm))
    return xp.clip((norm - overlap) / safe, min=0)
