"""Searching along a direction costs no product: U + t 𝒦s is known when 𝒦s is (Seeger §6.1.2).

`backtrack` is Armijo's rule for Newton directions, whose natural length is 1. `minimise_along`
finds the minimum for directions without a natural length; on a quadratic it is exact in one step.
Both work on q columns at once.
"""

from __future__ import annotations

from gramian._core.arrays import Array, namespace, ratio
from gramian._core.fused import inner
from gramian.solvers.rkhs.descend import State
from gramian.solvers.rkhs.problem import Problem

SUFFICIENT_DECREASE = 1e-4  # share of the decrease that the slope promises
HALVED = 0.5  # share of the slope that is left where values cannot tell whether the objective falls
REMAINING_SLOPE = (
    1e-4  # share of the first derivative along a direction at which its minimum is found
)


def backtrack(problem: Problem, state: State, s: Array, Ks: Array) -> Array:
    """Halve the step until the objective falls enough.

    Losses that are nearly zero are differences of large scores, and their sum is rounded by more than its own last
    digits. Where a step promises no more than half of the digits of the objective, it is therefore also taken if the
    slope at its end is half of that at its beginning or less, in either direction, and the objective is the same in
    these digits (the approximate conditions of Hager & Zhang, 2005).

    Parameters
    ----------
    problem : Problem
    state : State
    s, Ks : array of shape (n, C, q)
        The direction and its product with 𝒦.

    Returns
    -------
    step : array of shape (q,)
        0 where no decrease was found.
    """
    A, U, objective = state.A, state.U, state.objective
    slope = inner(state.rho, Ks)
    xp = namespace(U)
    # rounding of a sum of n·C losses; without it the last Newton steps would be refused
    eps = float(xp.finfo(U.dtype).eps)
    slack = 4 * eps * xp.abs(objective)
    half_of_the_digits = eps**0.5 * xp.abs(objective)
    tiny = -slope <= half_of_the_digits
    step = xp.ones_like(objective)
    for _ in range(40):
        t = problem.spread(step)
        trial = problem.objective(A + t * s, U + t * Ks)
        bad = ~(trial <= objective + SUFFICIENT_DECREASE * step * slope + slack)  # true for NaN
        if bool(xp.any(bad & tiny)):
            flatter = xp.abs(_slope(problem, state, s, Ks, step)) <= HALVED * xp.abs(slope)
            bad &= ~(tiny & flatter & (trial <= objective + half_of_the_digits))
        if not bool(xp.any(bad)):
            return step
        step = xp.where(bad, step / 2, step)
    return xp.where(bad, xp.zeros_like(step), step)


def _slope(problem: Problem, state: State, s: Array, Ks: Array, step: Array) -> Array:
    """The derivative of the objective along a direction, at a step."""
    V = state.U + problem.spread(step) * Ks
    gradient = problem.loss.gradient(V, problem.targets, problem.weights)
    return inner(gradient, Ks) + problem.strength * (inner(state.A, Ks) + step * inner(s, Ks))


def minimise_along(
    problem: Problem, state: State, s: Array, Ks: Array, remaining: float = REMAINING_SLOPE
) -> Array:
    """Minimise the objective along a direction by a safeguarded Newton method in one variable.

    Parameters
    ----------
    problem : Problem
    state : State
    s, Ks : array of shape (n, C, q)
        The direction and its product with 𝒦.
    remaining : float
        Share of the slope at which the minimum is found.

    Returns
    -------
    step : array of shape (q,)
    """
    A, U = state.A, state.U
    xp = namespace(U)
    strength = problem.strength
    # the penalty is a parabola in t: its derivative is λ(⟨A, 𝒦s⟩ + t ⟨s, 𝒦s⟩)
    first, second = strength * inner(A, Ks), strength * inner(s, Ks)

    def slope_at(V: Array, step: Array) -> Array:
        gradient = problem.loss.gradient(V, problem.targets, problem.weights)
        return inner(gradient, Ks) + first + step * second

    def bend_at(V: Array) -> Array:
        return inner(Ks, problem.curvature(V).apply(Ks)) + second

    zero = xp.zeros_like(strength)
    step, low, high = zero, zero, zero + float("inf")
    slope, bend = inner(state.rho, Ks), bend_at(U)
    goal = remaining * xp.abs(slope)
    for _ in range(50):
        newton = step - ratio(slope, bend, bend > 0)
        bracketed = xp.isfinite(high)
        middle = (low + xp.where(bracketed, high, low)) / 2
        beyond = xp.where(bracketed, middle, 2 * step + 1)
        inside = (newton > low) & (newton < high) & (bend > 0)
        moving = xp.abs(slope) > goal
        step = xp.where(moving, xp.where(inside, newton, beyond), step)
        V = U + problem.spread(step) * Ks
        slope = slope_at(V, step)
        low = xp.where(slope < 0, step, low)
        high = xp.where(slope > 0, step, high)
        if not bool(xp.any(xp.abs(slope) > goal)):
            break
        bend = bend_at(V)
    return step
