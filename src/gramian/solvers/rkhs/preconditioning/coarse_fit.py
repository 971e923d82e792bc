"""The best function of a coarse space: where a descent starts when products are dear.

Objective
    The one of `problem` for functions of a `coarse_space` only, ``A = Z v`` with ``T = Zᵀ𝒦Z``,

        minimise over v    L(𝒦Z v) + (λ/2) ⟨v, T v⟩.

    A minimum is that of Nyström approximation (Seeger §7.4; falkon), but v are coefficients of 𝒦 itself:
    ``U = 𝒦Z v`` is exact, so that the descent goes on from (A, U) as it is.

Optimality: ``y = (𝒦Z)ᵀ ∇L + λ T v = 0``. Certificate: within the space the duality gap ``⟨y, T⁻¹ y⟩ / (2λ)``. That of
the problem is known when 𝒦 has been multiplied with the residual, which the descent does first.

Method
    Newton. A step solves ``G s = −y`` with the Galerkin matrix G of `Preconditioner`. The first steps are taken with
    the functions of the first quarter of the active set: their bases are nested, and a step with a quarter of the
    functions costs a sixteenth. With all functions the blocks of the first step precondition the later ones, whose
    curvature is about the same. It ends when the gap within the space is a tenth of what the space is expected to
    leave, ``Σ_i (𝒦 − 𝒦_Z)_ii ‖∇L_i‖² / (2λ)``, where the signs of gradients are as good as random.

Cost
    No product with 𝒦. What a preconditioner costs in as many Newton steps.
"""

from __future__ import annotations

import numpy as np

from gramian._core.fused import inner
from gramian.solvers.rkhs.descend import State
from gramian.solvers.rkhs.line_search import backtrack
from gramian.solvers.rkhs.preconditioning.coarse_space import CoarseSpace
from gramian.solvers.rkhs.preconditioning.preconditioner import Preconditioner
from gramian.solvers.rkhs.problem import Problem

FIRST_SHARE = 4  # the first steps have so many times fewer functions
FORCING = 0.05  # relative residual of a Newton step: its matrix costs more than solving with it
REMAINDER = 0.1  # of what the space leaves
MOST_STEPS = 20  # with each number of functions


def coarse_fit(problem: Problem, space: CoarseSpace, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Minimise within a coarse space.

    Parameters
    ----------
    problem : Problem
    space : CoarseSpace
    tol : float
        Stop at a gap of ``tol`` × objective within the space, if what it leaves does not stop earlier.

    Returns
    -------
    A, U : ndarray of shape (n, C, q)
        Coefficients, which are zero outside the active set, and their product with 𝒦.
    """
    A = problem.start(None)
    U = np.zeros_like(A)
    v = np.zeros((0, space.parts.variances.size, A.shape[2]))
    some = space.leading(space.rank // FIRST_SHARE)
    v, U = _minimised(problem, some, v, U, tol)
    v, U = _minimised(problem, space, v, U, tol, renewed=False)
    return space.lifted(v, A), U


def _minimised(
    problem: Problem,
    space: CoarseSpace,
    v: np.ndarray,
    U: np.ndarray,
    tol: float,
    *,
    renewed: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Newton steps from v with ``U = 𝒦Z v``; a v of fewer functions is one of theirs.

    Blocks are those of each step if ``renewed``, else those of the first one.
    """
    strength, preconditioner = problem.strength, None
    v = np.concatenate([v, np.zeros((space.rank - len(v), *v.shape[1:]))])
    for _ in range(MOST_STEPS):
        A = space.lifted(v, problem.start(None))
        objective, gradient = problem.objective(A, U), problem.residual(np.zeros_like(A), U)
        y = space.adjoint(gradient) + strength * space.gram(v)
        gap = inner(y, space.inverse_gram(y)) / (2 * strength)
        expected = space.left / len(U) * inner(gradient, gradient) / (2 * strength)
        if np.all(gap <= np.maximum(REMAINDER * expected, tol * objective)):
            break
        curvature, goal = problem.curvature(U), FORCING**2 * inner(y, y)
        if preconditioner is None or renewed:
            preconditioner = Preconditioner(space, curvature, strength)
        step = -preconditioner.galerkin_solve(y, goal, curvature=curvature)
        s, Ks = space.lifted(step, problem.start(None)), space.values(step)
        rho = gradient + problem.spread(strength) * A
        done = np.zeros(objective.shape, dtype=bool)
        length = backtrack(problem, State(A, U, rho, Ks, objective, done, True), s, Ks)
        if not np.any(length > 0):
            break
        v, U = v + length * step, U + length * Ks
    return v, U
