"""Linear kernel conjugate gradients: the Newton system in the RKHS inner product.

    (λI + W𝒦) s = −ρ

is self-adjoint and positive in ``⟨x, y⟩_𝒦 = ⟨x, 𝒦y⟩``, so plain CG runs in that inner product.
Minimises the Newton model ``⟨ρ, s⟩_𝒦 + ½ ⟨s, (λI + W𝒦) s⟩_𝒦`` over Krylov spaces, hence every
truncated solution is a descent direction.

Papers: Ratliff & Bagnell, Algorithm 1 in its linear form; Seeger eq. 4 is the system.

Cost: one product with 𝒦 per iteration (𝒦p and 𝒦r are carried beside p and r), O(nCq) otherwise.

Deviates from Seeger §6.1.1: no symmetrisation, no square roots or divisions by probabilities, W
needs no factor. q systems advance in lockstep; finished ones are frozen by zero steps, and are not multiplied any more:
in searches with five folds a quarter of all columns.
"""

from __future__ import annotations

import numpy as np

from gramian._core.arrays import Array, is_numpy, namespace, ratio
from gramian._core.fused import add_scaled, inner, scale_and_add
from gramian.losses import Curvature
from gramian.solvers.rkhs.descend import State
from gramian.solvers.rkhs.preconditioning.policy import Preconditioning
from gramian.solvers.rkhs.preconditioning.preconditioner import Preconditioner
from gramian.solvers.rkhs.recorder import Recorder

SAFETY_FACTOR = 0.7  # on the residual that the tolerance asks for: the model is not the loss


def solve_newton_system(
    recorder: Recorder,
    curvature: Curvature,
    state: State,
    relative: Array | float,
    max_iter: int,
    preconditioning: Preconditioning | None = None,
) -> tuple[Array, Array]:
    """Solve ``(λI + W𝒦) s = −ρ`` to a relative residual in the RKHS norm.

    Parameters
    ----------
    recorder : Recorder
        Knows the problem and counts the products.
    curvature : Curvature
        W.
    state : State
        With ρ, 𝒦ρ and P at the current point. Each CG step lowers the model by ``½ a ⟨r, 𝒦r⟩``, which predicts P at the
        end and thereby the residual that the tolerance asks for: nothing is solved better than that.
    relative : float or array of shape (q,)
        Stop a column when its residual norm has fallen by this factor; 1 or more leaves it untouched. Columns that are
        done stay untouched as well.
    max_iter : int
    preconditioning : Preconditioning, default=None
        If it grows a new space, the solution is handed back as it is: the next Newton step is then easier.

    Returns
    -------
    s, K_s : array of shape (n, C, q)
        The solution and its product with 𝒦.
    """
    problem = recorder.problem
    xp = namespace(state.rho)
    strength = problem.spread(problem.strength)
    r, Kr, objective = -state.rho, -state.K_rho, state.objective
    norm = inner(r, Kr)
    one = xp.ones_like(norm)
    relative = xp.where(state.done, one, relative * one)
    enough = SAFETY_FACTOR**2 * 2 * problem.strength * recorder.tol
    preconditioner = preconditioning and preconditioning.at(curvature)
    if isinstance(preconditioner, Preconditioner) and preconditioner.space.complete:
        goal = xp.maximum(relative**2 * norm, enough * objective)
        s, Ks = preconditioner.solve(r, goal, max_iter)
        recorder.n_products += preconditioner.n_inner  # each costs as much as one
        return s, Ks
    if preconditioner is None:
        steep = norm
        p, Kp = xp.asarray(r, copy=True), xp.asarray(Kr, copy=True)  # updates may be in place
    else:
        p, Kp = preconditioner.apply(r, Kr)
        steep = inner(p, Kr)
    s, Ks = xp.zeros_like(r), xp.zeros_like(r)
    goal = relative**2 * norm
    active = (norm > 0) & (relative < 1)
    for _ in range(max_iter):
        q = add_scaled(curvature.apply(Kp), strength, p)
        bend = inner(Kp, q)
        active = active & (bend > 0)
        length = ratio(steep, bend, active)
        objective = objective - 0.5 * length * steep
        step = problem.spread(length)
        s, Ks = add_scaled(s, step, p), add_scaled(Ks, step, Kp)
        r = add_scaled(r, -step, q)
        old, Kr = Kr, _product_of_active(recorder, r, Kr, active)
        norm = inner(r, Kr)
        active = active & (norm > goal) & (norm > enough * objective)
        if not bool(xp.any(active)):
            break
        if preconditioning and preconditioning.grown(recorder, curvature):
            break
        z, Kz = (r, Kr) if preconditioner is None else preconditioner.apply(r, Kr)
        new_steep = norm if preconditioner is None else inner(z, Kr)
        # a preconditioner that is itself iterative is not quite the same each time
        fall = new_steep if preconditioner is None else new_steep - inner(z, old)
        turn = problem.spread(ratio(fall, steep, active))
        p, Kp = scale_and_add(p, turn, z), scale_and_add(Kp, turn, Kz)
        steep = new_steep
    return s, Ks


def _product_of_active(recorder: Recorder, r: Array, Kr: Array, active: Array) -> Array:
    """𝒦r; columns that are done have not changed since the product ``Kr``."""
    if not is_numpy(r) or active.all() or not recorder.problem.operator.columns_alike:
        return recorder.product(r)
    columns, out = np.flatnonzero(active), Kr.copy()
    if columns.size:
        out[:, :, columns] = recorder.product(np.ascontiguousarray(r[:, :, columns]))
    return out
