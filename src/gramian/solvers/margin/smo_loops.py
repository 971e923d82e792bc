"""The compiled loops of `smo`: choose two points of a label, maximise over their coefficients, update gradients.

Gradients are float64 whatever the kernel values are. None of the loops is parallel: a step takes microseconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np


class Visit(NamedTuple):
    """All that steps in one label need; a, rise, fall, g and u are changed by them."""

    a: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    rise: np.ndarray  # whether a coefficient is below its upper bound
    fall: np.ndarray  # whether it is above its lower bound
    g: np.ndarray  # the gradient, up to date for active points
    u: np.ndarray  # what the other labels have to hear
    active: np.ndarray
    diagonal: np.ndarray  # of K, with the ridge over R_ll
    ridge: np.ndarray  # empty if losses are not squared
    variance: float  # R_ll
    parallel: float  # share of K_pp K_qq that the determinant of a pair has to exceed
    floor: float  # violation that is small enough


def steps_by_rows(K, visit, limit):
    """Take up to ``limit`` steps; return how many there were and how many coefficients they changed."""
    steps = changed = 0
    while steps < limit:
        p = first_point(visit)
        if p < 0:
            break
        row = K[p]
        q = second_point(visit, p, row)
        moved = step(visit, p, row, q, K[q] if q >= 0 else row)
        if moved == 0:
            break
        steps, changed = steps + 1, changed + moved
    return steps, changed


steps_by_matrix = numba.njit(steps_by_rows, cache=True)


@numba.njit(cache=True)
def active_points(g, rise, fall, violation):
    """Points that violate optimality, or might within a few steps."""
    kept = np.empty(g.size, np.int64)
    n_kept = 0
    for i in range(g.size):
        if (rise[i] and (fall[i] or g[i] >= -violation)) or (fall[i] and g[i] <= violation):
            kept[n_kept] = i
            n_kept += 1
    return kept[:n_kept].copy()


@numba.njit(cache=True)
def first_point(visit):
    """The point with the largest violation (eq. 32), or −1 if that is small enough."""
    g, rise, fall = visit.g, visit.rise, visit.fall
    p, worst = -1, visit.floor
    for i in visit.active:
        size = abs(g[i])
        if size > worst and (rise[i] if g[i] > 0 else fall[i]):
            p, worst = i, size
    return p


@numba.njit(cache=True)
def second_point(visit, p, row):
    """The point that promises the largest gain together with p (eq. 30), or −1."""
    g, rise, fall, diagonal = visit.g, visit.rise, visit.fall, visit.diagonal
    q, best = -1, 0.0
    for i in visit.active:
        if i == p or g[i] == 0.0 or not (rise[i] if g[i] > 0 else fall[i]):
            continue
        product = diagonal[p] * diagonal[i]
        determinant = product - row[i] * row[i]
        if determinant <= visit.parallel * product:
            continue
        gain = g[p] * g[p] * diagonal[i] + g[i] * (g[i] * diagonal[p] - 2.0 * g[p] * row[i])
        if gain > best * determinant:
            q, best = i, gain / determinant
    return q


@numba.njit(cache=True)
def step(visit, p, row_p, q, row_q):
    """Maximise over the coefficients of p and, unless it is −1, q; return how many changed."""
    a, lower, upper, g = visit.a, visit.lower, visit.upper, visit.g
    k = visit.variance * visit.diagonal[p]
    e = 0.0
    if q < 0:
        d = _line_maximum(g[p], k, lower[p] - a[p], upper[p] - a[p])
    else:
        d, e = _box_maximum(
            (g[p], g[q]),
            (k, visit.variance * visit.diagonal[q], visit.variance * row_p[q]),
            (lower[p] - a[p], lower[q] - a[q]),
            (upper[p] - a[p], upper[q] - a[q]),
        )
        e = _move(visit, q, e)
    d = _move(visit, p, d)
    _follow(visit, row_p, d, row_q, e)
    if visit.ridge.size > 0:
        g[p] -= visit.ridge[p] * d
        if q >= 0:
            g[q] -= visit.ridge[q] * e
    return (1 if d != 0.0 else 0) + (1 if e != 0.0 else 0)


@numba.njit(cache=True)
def _move(visit, i, d):
    """Add d to a coefficient; return what bounds and rounding have left of it."""
    a, lower, upper = visit.a, visit.lower, visit.upper
    before = a[i]
    if d >= upper[i] - before:
        a[i] = upper[i]  # before + d may miss the bound by rounding
    elif d <= lower[i] - before:
        a[i] = lower[i]
    else:
        a[i] = before + d
    visit.rise[i] = a[i] < upper[i]
    visit.fall[i] = a[i] > lower[i]
    return a[i] - before


@numba.njit(cache=True, fastmath={"contract"})
def _follow(visit, row_p, d, row_q, e):
    """Let u, and the gradients of active points, follow a step."""
    g, u = visit.g, visit.u
    for i in range(u.size):
        u[i] += d * row_p[i] + e * row_q[i]
    d, e = visit.variance * d, visit.variance * e
    for i in visit.active:
        g[i] -= d * row_p[i] + e * row_q[i]


@numba.njit(cache=True)
def _line_maximum(g, k, lower, upper):
    """The x in [lower, upper] with the largest g x − k x² / 2."""
    if k > 0.0:
        return min(max(g / k, lower), upper)
    return upper if g > 0.0 else lower


@numba.njit(cache=True)
def _box_maximum(g, k, lower, upper):
    """The (x, z) in a box with the largest g₀ x + g₁ z − (k₀ x² + k₁ z² + 2 k₂ x z) / 2, which is concave."""
    determinant = k[0] * k[1] - k[2] * k[2]
    x = (k[1] * g[0] - k[2] * g[1]) / determinant
    z = (k[0] * g[1] - k[2] * g[0]) / determinant
    if lower[0] <= x <= upper[0] and lower[1] <= z <= upper[1]:
        return x, z
    best = -np.inf
    best_x = best_z = 0.0
    for edge in range(4):
        if edge < 2:
            x = lower[0] if edge == 0 else upper[0]
            z = _line_maximum(g[1] - k[2] * x, k[1], lower[1], upper[1])
        else:
            z = lower[1] if edge == 2 else upper[1]
            x = _line_maximum(g[0] - k[2] * z, k[0], lower[0], upper[0])
        value = x * (g[0] - 0.5 * k[0] * x - k[2] * z) + z * (g[1] - 0.5 * k[1] * z)
        if value > best:
            best, best_x, best_z = value, x, z
    # where a side of the box is so short that values are equal up to rounding, the slopes still tell its better end
    best_x = _line_maximum(g[0] - k[2] * best_z, k[0], lower[0], upper[0])
    return best_x, _line_maximum(g[1] - k[2] * best_x, k[1], lower[1], upper[1])


@numba.njit(cache=True, fastmath={"nnan", "nsz", "contract", "reassoc"})
def tell(G, rise, fall, weights, u, violation):
    """Bring the gradients and the largest violation of each label up to date with u (eq. 35)."""
    for k in range(G.shape[0]):
        weight = weights[k]
        if weight == 0.0:
            continue
        worst = 0.0
        for i in range(u.size):
            g = G[k, i] - weight * u[i]
            G[k, i] = g
            worst = max(worst, rise[k, i] * g, -(fall[k, i] * g))
        violation[k] = worst
