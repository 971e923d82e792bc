"""Examples whose class is known only up to a set: expectation maximisation by Newton steps (Seeger §7.3).

    minimise over A    J(A) = Σ_i w_i (log Σ_c exp u_ic − log Σ_{c ∈ I_i} exp u_ic) + (λ/2) ⟨A, 𝒦A⟩

I_i is the set of classes that example i may have: one if it is labelled, the leaves below a node if only the node is
known. J is not convex. The E step spreads each example over its classes, ``q_ic ∝ 1[c ∈ I_i] exp u_ic``; with q as soft
targets the softmax objective is convex, lies above J and touches it, so a step that lowers it (M step) lowers J. The
gradients of the two agree.

Each iteration takes a truncated Newton step with the curvature of J itself. Where the linear solver meets negative
curvature at once, or the step does not lower J, it takes one with the curvature of the convex function above J
instead: a generalised M step, which always descends. J never rises.

Optimality: the residual ρ vanishes. Certificate: ``⟨ρ, 𝒦ρ⟩ / (2λ)``, which bounds what the next M step can gain; unlike
the gap of a convex problem it says nothing about other local minima.

Deviates from the paper in using the curvature of J: plain expectation maximisation converges linearly. On data like
those of the gallery's example it had a relative gap between 1e-2 and 1e-5 after 200 M steps; this takes 15 steps
to 1e-8.
"""

from __future__ import annotations

from dataclasses import replace

from gramian._core.arrays import Array, namespace
from gramian._core.fused import inner
from gramian.solvers.rkhs.descend import State, descend
from gramian.solvers.rkhs.line_search import backtrack
from gramian.solvers.rkhs.newton import FORCING, MAX_INNER, PATIENCE
from gramian.solvers.rkhs.newton_system import solve_newton_system
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder
from gramian.solvers.solution import Callback, Solution


def expectation_maximization(
    problem: Problem,
    *,
    start: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    callback: Callback | None = None,
) -> Solution:
    """Minimise the loss of examples that may have several classes; arguments as for `newton`.

    ``problem.targets`` holds ones where an example may have a class and zeros elsewhere, shape (n, C), and
    ``problem.loss`` is the loss of examples whose class is known; its `partial` form is minimised.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> from gramian.losses import Softmax
    >>> from gramian.operators import Dense
    >>> from gramian.solvers import Problem, expectation_maximization
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.9, 0.2]])
    >>> allowed = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    >>> solution = expectation_maximization(Problem(Dense(Linear(), X), Softmax(), allowed))
    >>> solution.status
    'converged'
    """
    loss = problem.loss.partial()
    problem = replace(problem, loss=loss)
    recorder = Recorder(problem, tol, max_iter, callback, PATIENCE)
    xp = namespace(problem.targets)

    def direction(state: State) -> tuple[Array, Array, Array]:
        for curvature in (problem.curvature(state.U), loss.majorant(state.U, problem.weights)):
            s, Ks = solve_newton_system(recorder, curvature, state, FORCING, MAX_INNER)
            downhill = inner(state.rho, Ks) < 0
            step = xp.astype(downhill, xp.float64) * backtrack(problem, state, s, Ks)
            if bool(xp.all(step > 0)):
                break
        return s, Ks, step

    return descend(recorder, direction, start, convex=False)
