"""Examples whose class is known only up to a set: expectation maximisation (Seeger §7.3).

    minimise over A    J(A) = Σ_i w_i (log Σ_c exp u_ic − log Σ_{c ∈ I_i} exp u_ic) + (λ/2) ⟨A, 𝒦A⟩

I_i holds the classes that example i may have: one if it is labelled, the leaves below a node if only the node
is known. J is not convex. The E step spreads each example over its classes, ``q_ic ∝ 1[c ∈ I_i] exp u_ic``; with q as
soft targets the softmax objective is convex, touches J up to a constant and lies above it, so that any
decrease in the M step (warm-started Newton) is a decrease of J.

Optimality: the residual ρ vanishes for targets q computed from U itself. Certificate: ``⟨ρ, 𝒦ρ⟩ / (2λ)`` for these
targets. It bounds what the next M step can gain; unlike the gap of a convex problem it says nothing about other
local minima.

Cost: the products of the M steps, which are solved only ten times better than where they start.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gramian._arrays import Array, namespace, to_numpy, total
from gramian._fused import inner
from gramian.losses import log_sum_exp
from gramian.solvers.newton import newton
from gramian.solvers.problem import Problem
from gramian.solvers.solution import Callback, Recorder, Solution

M_STEP = 0.1  # an M step reduces the gap by this factor
PATIENCE = 20


def expectation_maximization(
    problem: Problem,
    *,
    start: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    callback: Callback | None = None,
) -> Solution:
    """Minimise the softmax loss of examples that may have several classes; arguments as for `newton`.

    ``problem.targets`` holds ones where an example may have a class and zeros elsewhere, shape (n, C).

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
    xp = namespace(problem.targets)
    allowed = problem.targets > 0
    recorder = Recorder(problem, tol, max_iter, callback, PATIENCE)
    A = problem.start(start)
    U = xp.zeros_like(A) if start is None else recorder.accurate_product(A)
    moved = True
    while True:
        step = replace(problem, targets=_spread(U, allowed))
        rho = step.residual(A, U)
        gap = step.gap(inner(rho, recorder.product(rho)))
        objective = _objective(problem, allowed, A, U)
        status = recorder.verdict(A, objective, gap, moved=moved)
        if status is not None:
            return recorder.solution(A, U, objective, gap, status)
        # the M step's tolerance is relative to its own objective, which lies above J
        upper = float(to_numpy(step.objective(A, U)).sum())
        goal = max(
            0.5 * tol * float(to_numpy(objective).sum()), M_STEP * float(to_numpy(gap).sum())
        )
        result = newton(step, start=A, tol=goal / upper)
        recorder.n_products += result.n_products
        moved = bool(np.isfinite(result.gap)) and result.n_iter > 0
        A, U = (part[:, :, None] for part in (result.coefficients, result.latent))


def _spread(U: Array, allowed: Array) -> Array:
    """q: probabilities of the classes among those allowed."""
    xp = namespace(U)
    inside = xp.where(allowed, U, xp.full_like(U, -float("inf")))
    return xp.exp(inside - log_sum_exp(inside))


def _objective(problem: Problem, allowed: Array, A: Array, U: Array) -> Array:
    """J, shape (1,)."""
    xp = namespace(U)
    inside = xp.where(allowed, U, xp.full_like(U, -float("inf")))
    loss = total(log_sum_exp(U) - log_sum_exp(inside), problem.weights)
    return loss + 0.5 * problem.strength * inner(A, U)
