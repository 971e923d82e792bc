"""Nonlinear conjugate gradients, Polak–Ribière⁺ with restarts, in any inner product.

    h ← −g' + η h,    η = max(0, ⟨g', g' − g⟩ / ⟨g, g⟩)

(restarted where h is no descent direction), followed by a line minimisation, exact for quadratics
(Ratliff & Bagnell, Algorithm 1; the digits of the paper's formulas were lost and are rederived).
What "gradient" means is the `Metric`: `kernel_cg` takes the RKHS inner product, `parameter_cg` the
Euclidean one of the coefficients. On a quadratic both are linear conjugate gradients.

Deviates from the paper in: the stopping rule is the duality gap for every loss; q problems in
lockstep, finished ones frozen; U is recomputed from A to verify the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from gramian._arrays import Array, namespace
from gramian._fused import inner
from gramian.solvers.line_search import minimise_along
from gramian.solvers.problem import Problem
from gramian.solvers.solution import Callback, Recorder, Solution

# The gap is not what CG minimises and may rise for a while; so long without progress, rounding is to
# blame.
PATIENCE = 200


class Metric(ABC):
    """How a residual becomes a gradient: coefficients g, their product 𝒦g, and an inner product."""

    @abstractmethod
    def gradient(self, recorder: Recorder, rho: Array, K_rho: Array) -> tuple[Array, Array]:
        """Return (g, 𝒦g) from (ρ, 𝒦ρ)."""

    @abstractmethod
    def inner(self, g: Array, other: Array, K_other: Array) -> Array:
        """Return ⟨g, other⟩ for each column."""


def conjugate_gradient(
    problem: Problem,
    metric: Metric,
    *,
    start: Array | None,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> Solution:
    """Minimise; see `kernel_cg` for the arguments."""
    recorder = Recorder(problem, tol, max_iter, callback, PATIENCE)
    xp = namespace(problem.targets)
    A = problem.start(start)
    U = xp.zeros_like(A) if start is None else recorder.accurate_product(A)
    fresh = moved = True
    g_old = norm_old = h = Kh = None
    while True:
        rho = problem.residual(A, U)
        K_rho = recorder.product(rho)
        objective, gap = problem.objective(A, U), problem.gap(inner(rho, K_rho))
        done = recorder.converged(objective, gap)
        if bool(xp.all(done)) and not fresh:
            U, fresh, g_old = recorder.accurate_product(A), True, None
            continue
        status = recorder.verdict(A, objective, gap, moved=moved)
        if status is not None:
            return recorder.verified(A, U, objective, gap, status, fresh=fresh)
        g, Kg = metric.gradient(recorder, rho, K_rho)
        norm = metric.inner(g, g, Kg)
        if g_old is None:
            h, Kh = -g, -Kg
        else:
            turn = problem.spread(_turn(norm, metric.inner(g_old, g, Kg), norm_old))
            h, Kh = turn * h - g, turn * Kh - Kg
            uphill = problem.spread(inner(K_rho, h) >= 0)
            h, Kh = h - uphill * (h + g), Kh - uphill * (Kh + Kg)
        step = minimise_along(problem, A, U, h, Kh)
        step = xp.where(done, xp.zeros_like(step), step)
        t = problem.spread(step)
        A, U, fresh = A + t * h, U + t * Kh, False
        g_old, norm_old = g, norm
        moved = bool(xp.any((step > 0) & ~done))


def _turn(norm: Array, overlap: Array, old_norm: Array) -> Array:
    """Polak–Ribière⁺."""
    xp = namespace(norm)
    safe = xp.where(old_norm > 0, old_norm, xp.ones_like(old_norm))
    return xp.clip((norm - overlap) / safe, min=0)
