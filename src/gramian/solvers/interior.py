"""The dual of a large-margin problem by an interior-point method, where moves of single coefficients crawl.

Objective and optimality
    Coefficients β ≥ 0 belong to units k with caps c_k (an example with its contrasts, or one label of an example):

        maximise over β    ρᵀβ − ½ βᵀHβ,      β ≥ 0,   s_k = c_k − Σ_a β_ka ≥ 0,      H = K ∘ (E S Eᵀ),

    for kernel values K between the examples of coefficients, the outputs E that each of them moves, and the Gram matrix
    S of outputs. With costs v = ρ − Hβ it is optimal iff there are losses ℓ_k ≥ 0 and z_ka ≥ 0 with v_ka = ℓ_k − z_ka,
    z_ka β_ka = 0 and ℓ_k s_k = 0.

Method
    Mehrotra's predictor and corrector (SIAM J. Optim. 2, 1992) for these equations with a product μ in place of zero.
    Newton's steps solve (H + diag(z / β) + Σ_k (ℓ_k / s_k) 1_k 1_kᵀ) Δβ = r by a Cholesky factor.

Cost
    N³ / 3 for each of some 30 steps, for N coefficients; a few N² numbers. It does not matter how large caps and kernel
    values are, while moves of single coefficients are needed in proportion to their product.

Deviation
    S may change before each step, as signs of an orthogonal penalty do: the equations are those of the new S then, and
    what they lack is made up for by the next steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

MOST = 1500  # coefficients: a step takes some hundredths of a second
CRAWLING = 0.8  # of a solver's patience: if so many sweeps do not halve the gap, all coefficients are found here
SHARE = (
    0.1  # of the gap that a solver may leave, for what is asked of coefficients that are found here
)
MAX_STEPS = 80
SHORT = 0.99  # of the way to the nearest bound
JITTER = 1e-15  # of the largest curvature: what rounding makes of one that is zero


class Coefficients(NamedTuple):
    """What is known of N coefficients in U units."""

    K: np.ndarray  # (N, N)
    outputs: np.ndarray  # E, (N, m)
    gains: np.ndarray  # ρ, (N,)
    unit: np.ndarray  # (N,), each of 0 to U − 1 at least once
    caps: np.ndarray  # (U,), positive


@np.errstate(
    over="ignore", invalid="ignore", divide="ignore"
)  # a step that is not finite is the last
def interior_point(
    problem: Coefficients, gram: Callable[[np.ndarray], np.ndarray], allowed: float
) -> np.ndarray:
    """Return coefficients whose dual is ``allowed`` below the maximum, or as near as rounding permits.

    Parameters
    ----------
    problem : Coefficients
    gram : callable
        Returns S, shape (m, m), for coefficients; called before each step.
    allowed : float

    Returns
    -------
    array of shape (N,)
    """
    _, _, gains, unit, caps = problem
    beta = (0.5 * caps / np.bincount(unit))[unit]
    slack = 0.5 * caps
    cost = gains - _curvature(problem, gram(beta)) @ beta
    loss = np.zeros(caps.size)
    np.maximum.at(loss, unit, cost)
    loss += 0.1 * max(1.0, float(np.abs(cost).max()))
    z = loss[unit] - cost
    for _ in range(MAX_STEPS):
        H = _curvature(problem, gram(beta))
        lack = gains - H @ beta - loss[unit] + z
        total = float(beta @ z + slack @ loss)
        if total + float(caps.sum() * np.abs(lack).max()) <= allowed:
            break
        H += (loss / slack)[unit][:, None] * (unit[:, None] == unit)
        H[np.diag_indices_from(H)] += z / beta + JITTER * H.diagonal().max()
        try:
            factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            break
        point = beta, slack, z, loss
        ahead = _stepped(factor, lack, unit, point, 0.1 * allowed)
        if not all(np.isfinite(part).all() for part in ahead):
            break
        beta, slack, z, loss = ahead
    return beta


def _curvature(problem: Coefficients, S: np.ndarray) -> np.ndarray:
    return problem.K * (problem.outputs @ S @ problem.outputs.T)


Point = tuple[np.ndarray, ...]  # β, s, z and ℓ


def _stepped(factor: Any, lack: np.ndarray, unit: np.ndarray, point: Point, least: float) -> Point:
    """The point after a step: a predictor says which μ to aim at, and what the corrector must make up for.

    The sum of all products need not be below ``least``: factors get worse as products fall.
    """
    beta, slack, z, loss = point
    aims = -beta * z, -slack * loss  # by how much products shall change
    predicted = _changes(factor, lack, unit, point, aims)
    ahead = _moved(point, predicted)
    total = -(aims[0].sum() + aims[1].sum())
    left = ahead[0] @ ahead[2] + ahead[1] @ ahead[3]
    mean = max(total * (left / total) ** 3, least) / (beta.size + slack.size)
    aims = (
        mean + aims[0] - predicted[0] * predicted[2],
        mean + aims[1] - predicted[1] * predicted[3],
    )
    return _moved(point, _changes(factor, lack, unit, point, aims))


def _changes(
    factor: Any,
    lack: np.ndarray,
    unit: np.ndarray,
    point: Point,
    aims: tuple[np.ndarray, np.ndarray],
) -> Point:
    """The solution of Newton's equations."""
    beta, slack, z, loss = point
    right = lack + aims[0] / beta - (aims[1] / slack)[unit]
    of_beta = cho_solve(factor, right, check_finite=False)
    of_slack = -np.bincount(unit, of_beta)
    return of_beta, of_slack, (aims[0] - z * of_beta) / beta, (aims[1] - loss * of_slack) / slack


def _moved(point: Point, changes: Point) -> Point:
    """The point with all its changes, or with as much of them as leaves everything positive."""
    step = 1.0
    for value, change in zip(point, changes, strict=True):
        falls = change < 0
        step = min(step, SHORT * float(np.min(-value[falls] / change[falls], initial=np.inf)))
    return tuple(value + step * change for value, change in zip(point, changes, strict=True))
