"""Compiled loops of `coordinate_ascent`: steps on single coefficients, with products through features.

The pull of a coefficient is the gradient y m − u − r a of the dual; its bounds are 0 and y c. The ridge r is that of
squared losses, else zero. X is `FeatureRows.compiled`. Threads are given labels or examples by the caller.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from gramian.operators.inputs.feature_rows import fetch_row, panel_add, panel_dot, row_add, row_dot
from gramian.solvers.margin.problem import gap_with_ridge

PANEL = 16  # labels side by side when all examples are looked at: two cache lines of float64
FEW = 4  # labels that are looked at one by one: less than a quarter of a panel costs as much as half of it
BLOCK = 256  # examples of a panel that are looked at together
EPOCHS = 10  # passes over the active coefficients in one visit, at most
SHRINK = 0.1  # of the largest violation of the pass before: who is pulled harder to its bound leaves the visit
AHEAD = 2  # rows by which memory is asked for them before they are needed
TURNS = 30  # around the labels of one example, at most
END_OF_TURNS = 0.01  # of the largest step of the first turn: one without a larger step is the last
DIRECTIONS = 100  # conjugate gradients of one step of all free coefficients, at most
LITTLE_GAIN = 0.2  # of the largest gain of a direction: one that gains less is the last


class LinearMargins(NamedTuple):
    """A linear margin problem but for its features; A, V and active are changed by loops."""

    norms: np.ndarray  # squared, of the examples
    R: np.ndarray
    signs: np.ndarray  # (L, n), as margins, caps, A and active
    margins: np.ndarray  # as caps (L, n), or (L, 1) if they are the same for all examples
    caps: np.ndarray
    ridge: np.ndarray | None  # (L, n), or none if losses are not squared
    A: np.ndarray
    V: np.ndarray  # Aᵀ X, shape (L, d)
    active: np.ndarray  # which coefficients a visit looks at


@numba.njit(cache=True, nogil=True)
def _of(values, label, i):
    """The margin or cap of a label and an example."""
    return values[label, i if values.shape[1] > 1 else 0]


@numba.njit(cache=True, nogil=True)
def _ridge(ridges, label, i):
    """The ridge of a coefficient. The compiled code has none where ``ridges`` is None."""
    return 0.0 if ridges is None else ridges[label, i]


@numba.njit(cache=True, nogil=True, fastmath=True)
def _best(a, pull, curvature, bound):
    """The coefficient between zero and its bound for which the dual is largest."""
    low, high = min(bound, 0.0), max(bound, 0.0)
    if curvature > 0:
        return min(max(a + pull / curvature, low), high)
    return high if pull > 0 else low


@numba.njit(cache=True, nogil=True)
def scan(X, linear, Z, slack, labels, start, stop):
    """Look at the examples from ``start`` to ``stop`` of some labels, one for each column of Z.

    Write which coefficients are active. Return dual value, gap and strongest pull of each label, shape (labels, 3).
    """
    width = Z.shape[1]
    U, sums = np.empty((BLOCK, width)), np.zeros((width, 3))
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        for i in range(first, last):
            if width == 1:
                U[i - first, 0] = row_dot(X, i, Z.reshape(-1))
            else:
                panel_dot(X, i, Z, 0, width, U[i - first])
        for c in range(width):
            _look(linear, labels[c], first, last, U[:, c], slack[labels[c]], sums[c])
    return sums


@numba.njit(cache=True, nogil=True)
def _look(linear, label, first, last, u, slack, sums):
    """Add dual value, gap and strongest pull of some examples of a label to ``sums``, and write which are active.

    Active are coefficients that can move, and those at a bound whose pull is below ``slack``.
    """
    for i in range(first, last):
        a, y = linear.A[label, i], linear.signs[label, i]
        target, bound = y * _of(linear.margins, label, i), y * _of(linear.caps, label, i)
        ridge, lack = _ridge(linear.ridge, label, i), target - u[i - first]
        pull = lack - ridge * a
        room = (max(bound, 0.0) if pull > 0 else min(bound, 0.0)) - a
        sums[0] += a * (target - 0.5 * (u[i - first] + ridge * a))
        sums[1] += _gap(lack, ridge, bound, a, pull, room)
        if room != 0:
            sums[2] = max(sums[2], abs(pull))
        free = a != 0 and a != bound
        near = bound != 0 and abs(pull) < slack
        linear.active[label, i] = room != 0 or free or near


@numba.njit(cache=True, nogil=True)
def _gap(lack, ridge, bound, a, pull, room):
    """What a coefficient adds to the duality gap."""
    return gap_with_ridge(lack, ridge, bound, a) if ridge > 0 else room * pull


@numba.njit(cache=True, nogil=True)
def _shuffled(points, state):
    """Put points into a random order; return the next state of the generator."""
    for last in range(points.size - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        other = int((state >> np.uint64(33)) % np.uint64(last + 1))
        points[last], points[other] = points[other], points[last]
    return state


@numba.njit(cache=True, nogil=True)
def _epoch(X, linear, label, z, points, limit):
    """One pass over the coefficients of ``points``, which are put together in place if they stay in the visit.

    Coefficients leave it that are pulled to the bound where they are by more than ``limit``. Return how many points
    stay, how many steps were taken, the largest violation, and the gap of all that was met.
    """
    a, variance = linear.A[label], linear.R[label, label]
    signs = linear.signs[label]
    worst = gap = 0.0
    kept = taken = 0
    for s in range(points.size):
        if s + AHEAD < points.size:
            fetch_row(X, points[s + AHEAD])
        i = points[s]
        bound = signs[i] * _of(linear.caps, label, i)
        ridge = _ridge(linear.ridge, label, i)
        lack = signs[i] * _of(linear.margins, label, i) - row_dot(X, i, z)
        pull = lack - ridge * a[i]
        room = (max(bound, 0.0) if pull > 0 else min(bound, 0.0)) - a[i]
        if room != 0:
            worst = max(worst, abs(pull))
            gap += _gap(lack, ridge, bound, a[i], pull, room)
            new = _best(a[i], pull, variance * linear.norms[i] + ridge, bound)
            row_add(X, i, (new - a[i]) * variance, z)
            a[i] = new
            taken += 1
        if room != 0 or abs(pull) <= limit:
            points[kept] = i
            kept += 1
    return kept, taken, worst, gap


@numba.njit(cache=True, nogil=True)
def visit(X, linear, label, z, points, state, goal, share):
    """Coordinate ascent over the coefficients ``points`` of one label, in random order, until the gap has fallen.

    It has fallen enough below ``goal``, or below a ``share`` of that of the first pass. z = R_ll Xᵀ a + what other
    labels add. Order and length of ``points`` are lost. Return the number of products with an example.
    """
    steps = 0
    limit = np.inf
    for _ in range(EPOCHS):
        state = _shuffled(points, state)
        kept, taken, worst, gap = _epoch(X, linear, label, z, points, limit)
        goal = max(goal, share * gap) if steps == 0 else goal
        steps += points.size + taken
        if gap <= goal:
            break
        points = points[:kept]
        limit = SHRINK * worst
    return steps


@numba.njit(cache=True, nogil=True)
def _sum_of_rows(X, points, factors, out):
    """Write the sum of some examples, each times its factor, to ``out``."""
    out[:] = 0.0
    for s in range(points.size):
        if factors[s] != 0:
            row_add(X, points[s], factors[s], out)


@numba.njit(cache=True, nogil=True, fastmath=True)
def free_step(X, linear, label, z, points):
    """Move all coefficients of ``points`` that are between their bounds to where they would be without these.

    They go there by conjugate gradients, until a direction gains little; then back into their box, and as far on that
    way as the dual rises. Return the number of products with an example.
    """
    a, variance = linear.A[label], linear.R[label, label]
    signs = linear.signs[label]
    n_free = 0
    for i in points:
        if a[i] != 0 and a[i] != signs[i] * _of(linear.caps, label, i):
            points[n_free] = i
            n_free += 1
    points = points[:n_free]
    pull, ridge, step = np.empty(n_free), np.zeros(n_free), np.zeros(n_free)
    for s, i in enumerate(points):
        ridge[s] = _ridge(linear.ridge, label, i)
        pull[s] = signs[i] * _of(linear.margins, label, i) - row_dot(X, i, z) - ridge[s] * a[i]
    slopes, way = pull.copy(), pull.copy()
    change = np.empty(z.size)  # of Xᵀ a
    steepness = np.dot(pull, pull)
    best, products = 0.0, 2 * n_free
    for _ in range(DIRECTIONS):
        _sum_of_rows(X, points, way, change)
        curvature = variance * np.dot(change, change) + np.dot(ridge * way, way)
        if curvature <= 1e-14 * np.dot(way, way):
            break
        length = steepness / curvature
        products += 2 * n_free
        for s, i in enumerate(points):
            step[s] += length * way[s]
            pull[s] -= length * (variance * row_dot(X, i, change) + ridge[s] * way[s])
        best = max(best, length * steepness)
        if length * steepness <= LITTLE_GAIN * best:
            break
        before, steepness = steepness, np.dot(pull, pull)
        way = pull + steepness / before * way
    for s, i in enumerate(points):
        bound = signs[i] * _of(linear.caps, label, i)
        way[s] = min(max(a[i] + step[s], min(bound, 0.0)), max(bound, 0.0))
        step[s] = way[s] - a[i]
    _sum_of_rows(X, points, step, change)
    slope = np.dot(slopes, step)
    if slope > 0:
        curvature = variance * np.dot(change, change) + np.dot(ridge * step, step)
        length = 1.0 if slope >= curvature else slope / curvature
        z += length * variance * change
        for s, i in enumerate(points):
            a[i] = way[s] if length == 1 else a[i] + length * step[s]
    return products


@numba.njit(cache=True, nogil=True, fastmath=True)
def visit_points(X, linear, points, Z):
    """Coordinate ascent over examples, the active labels of each; Z = (R V)ᵀ has shape (d, L).

    The labels of an example are brought to their optimum while other examples stand still: the condition of R then
    hardly slows the sweeps down, if few coefficients are at bounds. Return the number of steps taken.
    """
    A, R = linear.A, linear.R
    n_labels = A.shape[0]
    u, change, mixed = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    taken = 0
    for s, i in enumerate(points):
        if s + AHEAD < points.size:
            fetch_row(X, points[s + AHEAD])
        norm = linear.norms[i]
        panel_dot(X, i, Z, 0, n_labels, u)
        for label in range(n_labels):
            change[label] = mixed[label] = 0.0
        before = taken
        first = 0.0
        for turn in range(TURNS):
            largest = 0.0
            for label in range(n_labels):
                if not linear.active[label, i]:
                    continue
                y, old = linear.signs[label, i], A[label, i]
                ridge = _ridge(linear.ridge, label, i)
                pull = y * _of(linear.margins, label, i) - u[label] - norm * mixed[label]
                bound = y * _of(linear.caps, label, i)
                new = _best(old, pull - ridge * old, norm * R[label, label] + ridge, bound)
                if new == old:
                    continue
                A[label, i] = new
                change[label] += new - old
                largest = max(largest, abs(new - old))
                taken += 1
                row, value = R[label], new - old
                for k in range(n_labels):
                    mixed[k] += value * row[k]
            first = largest if turn == 0 else first
            if largest <= END_OF_TURNS * first:
                break
        if taken > before:
            panel_add(X, i, mixed, Z)
            # few labels change: not worth a pass over whole rows of V
            for label in range(n_labels):
                if change[label] != 0:
                    row_add(X, i, change[label], linear.V[label])
    return taken


@numba.njit(cache=True, nogil=True, fastmath=True)
def visit_points_apart(X, linear, points, first, Z):
    """As `visit_points` for labels without correlation, from ``first`` on; Z has their rows of V as columns."""
    width = Z.shape[1]
    u, change = np.empty(width), np.empty(width)
    for s, i in enumerate(points):
        if s + AHEAD < points.size:
            fetch_row(X, points[s + AHEAD])
        panel_dot(X, i, Z, 0, width, u)
        moved = False
        for c in range(width):
            label = first + c
            y, old, variance = linear.signs[label, i], linear.A[label, i], linear.R[label, label]
            ridge = _ridge(linear.ridge, label, i)
            pull = y * _of(linear.margins, label, i) - variance * u[c] - ridge * old
            bound = y * _of(linear.caps, label, i)
            new = _best(old, pull, linear.norms[i] * variance + ridge, bound)
            linear.A[label, i] = new
            change[c] = new - old
            moved = moved or new != old
        if moved:
            panel_add(X, i, change, Z)
