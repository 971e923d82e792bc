"""The one loop of all solvers that step along a direction: certificate, verdict, step.

    A ← A + t s,    U ← U + t 𝒦s

for the minimisation of `problem`. A method is a *direction*: a function from the `State` of the descent to s, 𝒦s and
the step length t of each of the q problems. Everything else is the same for all of them.

Optimality: ρ = 0. Certificate: the duality gap ``⟨ρ, 𝒦ρ⟩ / (2λ)``. U is carried by updates, which drift; before
convergence is claimed, and at the end, it is computed anew from A (iterative refinement). A gap from a fresh U is one
of accurate products where others are in single precision; if such gaps no longer fall, all products are accurate.
Problems that have converged rest until all of them have.

Cost: one product with 𝒦 in each iteration for 𝒦ρ, those of the direction, and two to verify the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from gramian._core.arrays import Array, namespace
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder, squeezed
from gramian.solvers.solution import Solution


class State(NamedTuple):
    """Where a descent stands.

    Attributes
    ----------
    A, U : array of shape (n, C, q)
        Coefficients and 𝒦A.
    rho, K_rho : array of shape (n, C, q)
        The residual and its product with 𝒦.
    objective : array of shape (q,)
    done : bool array of shape (q,)
        Problems that have converged; their steps are not taken.
    fresh : bool
        Whether U was computed from A, and not updated: at the start, and after a refinement.
    """

    A: Array
    U: Array
    rho: Array
    K_rho: Array
    objective: Array
    done: Array
    fresh: bool


# Returns s, 𝒦s and the step lengths of shape (q,). None in the place of 𝒦s asks for U to be computed anew.
Direction = Callable[[State], tuple[Array, Array | None, Array]]


def descend(
    recorder: Recorder,
    direction: Direction,
    start: Array | None,
    known: tuple[Array, Array] | None = None,
    *,
    convex: bool = True,
) -> Solution:
    """Minimise the problem of the recorder by steps along a direction.

    Parameters
    ----------
    recorder : Recorder
        Knows the problem, the tolerance and the limits, and counts the products.
    direction : callable
        From a `State` to s, 𝒦s and step lengths.
    start : array of shape (n, C) or (n, C, q), or None
        Starting coefficients; None means zeros.
    known : pair of array of shape (n, C, q), default=None
        Coefficients to start from with their product with 𝒦, instead of ``start``. They are told to the callback. The
        product is trusted for a first step, but not for a claim of convergence.
    convex : bool, default=True
        Whether any start leads to the same end. One that is worse than zeros is then replaced by these.
    """
    problem = recorder.problem
    xp = namespace(problem.targets)
    A = problem.start(start)
    U = xp.zeros_like(A) if start is None else recorder.refreshed_product(A)
    if known is not None:
        A, U = known
        recorder.tells_start = True
    elif start is not None and convex:
        A, U = _no_worse_than_zeros(problem, A, U)
    fresh, moved, trusted = True, True, known is None
    while True:
        objective, gap, rho, K_rho = recorder.certificate(A, U, fresh=fresh)
        done = recorder.converged(objective, gap)
        finished = bool(xp.all(done))
        if finished and not (fresh and trusted):
            U, fresh, trusted = recorder.refreshed_product(A), True, True
            continue
        if recorder.in_single and fresh and not finished and not recorder.refined(gap):
            recorder.multiply_in_double("refinement no longer helps")
        status = recorder.verdict(partial(squeezed, A), objective, gap, moved=moved)
        if status == "stalled" and recorder.in_single:
            recorder.multiply_in_double("single precision allows no further progress")
            U, fresh, moved = recorder.refreshed_product(A), True, True
            continue
        if status is not None:
            return recorder.verified(A, U, objective, gap, status, fresh=fresh and trusted)
        s, Ks, step = direction(State(A, U, rho, K_rho, objective, done, fresh))
        step = xp.where(done, xp.zeros_like(step), step)
        moved = bool(xp.any(step > 0))
        t = problem.spread(step)
        A, fresh = A + t * s, Ks is None
        U = recorder.refreshed_product(A) if fresh else U + t * Ks


def _no_worse_than_zeros(problem: Problem, A: Array, U: Array) -> tuple[Array, Array]:
    """A start and its U, or zeros in the columns where these have the smaller objective: they need no product."""
    xp = namespace(A)
    zeros = xp.zeros_like(A)
    helps = problem.objective(A, U) <= problem.objective(zeros, zeros)  # not for NaN
    helps = xp.reshape(helps, (1, 1, -1))
    return xp.where(helps, A, zeros), xp.where(helps, U, zeros)
