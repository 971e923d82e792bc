"""Compiled loops of `coordinate_ascent`: steps on single coefficients, with products through features.

The pull of a coefficient is the gradient y m − u − r a of the dual; its bounds are 0 and y c. The ridge r is that of
squared losses, else zero. X is `FeatureRows.compiled`. Threads are given labels or examples by the caller.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from gramian.operators.inputs.feature_rows import panel_add, panel_dot, row_add, row_dot
from gramian.solvers.margin.problem import gap_with_ridge

PANEL = 16  # labels side by side when all examples are looked at: two cache lines of float64
EPOCHS = 10  # passes over the active coefficients in one visit, at most
END_OF_VISIT = 0.1  # of the largest violation of the first pass: a pass with less ends the visit
SHRINK = 0.1  # of the largest violation of the pass before: who is pulled harder to its bound leaves the visit


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
def scan(X, linear, Z, slack, first, start, stop):
    """Look at the examples from ``start`` to ``stop`` of the labels from ``first`` on, one for each column of Z.

    Write which coefficients are active: those that can move, and those at a bound whose pull is below the label's
    ``slack``. Return dual value, gap and strongest pull of each label, shape (labels, 3).
    """
    width = Z.shape[1]
    u, sums = np.empty(width), np.zeros((width, 3))
    for i in range(start, stop):
        panel_dot(X, i, Z, 0, width, u)
        for c in range(width):
            label = first + c
            a, y = linear.A[label, i], linear.signs[label, i]
            target, bound = y * _of(linear.margins, label, i), y * _of(linear.caps, label, i)
            ridge = _ridge(linear.ridge, label, i)
            pull = target - u[c] - ridge * a
            room = max(bound, 0.0) - a if pull > 0 else min(bound, 0.0) - a
            sums[c, 0] += a * (target - 0.5 * (u[c] + ridge * a))
            if ridge > 0:
                sums[c, 1] += gap_with_ridge(target - u[c], ridge, bound, a)
            else:
                sums[c, 1] += room * pull
            if room != 0:
                sums[c, 2] = max(sums[c, 2], abs(pull))
            free = a != 0 and a != bound
            near = bound != 0 and abs(pull) < slack[label]
            linear.active[label, i] = room != 0 or free or near
    return sums


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
    stay, how many steps were taken, and the largest violation.
    """
    a, variance = linear.A[label], linear.R[label, label]
    signs = linear.signs[label]
    worst = 0.0
    kept = taken = 0
    for i in points:
        bound = signs[i] * _of(linear.caps, label, i)
        ridge = _ridge(linear.ridge, label, i)
        pull = signs[i] * _of(linear.margins, label, i) - row_dot(X, i, z) - ridge * a[i]
        moves = a[i] != (max(bound, 0.0) if pull > 0 else min(bound, 0.0))
        if moves:
            worst = max(worst, abs(pull))
            new = _best(a[i], pull, variance * linear.norms[i] + ridge, bound)
            row_add(X, i, (new - a[i]) * variance, z)
            a[i] = new
            taken += 1
        if moves or abs(pull) <= limit:
            points[kept] = i
            kept += 1
    return kept, taken, worst


@numba.njit(cache=True, nogil=True)
def visit(X, linear, label, z, everyone, state, path, places):
    """Coordinate ascent over the coefficients ``everyone`` of one label, in random order, until pulls have fallen.

    z = R_ll Xᵀ a + what other labels add. Write z and the coefficients after each epoch to the rows of ``path`` and
    ``places``, if these have any. Return the number of steps tried and taken, and whether all epochs were needed.
    """
    points = everyone.copy()
    keeps = path.shape[0] > 0
    steps = 0
    first, limit = 0.0, np.inf
    for epoch in range(EPOCHS):
        # differences of epochs are a geometric series only in one order
        if epoch == 0 or not keeps:
            state = _shuffled(points, state)
        kept, taken, worst = _epoch(X, linear, label, z, points, limit)
        steps += points.size + taken
        points = points[:kept]
        first = worst if epoch == 0 else first
        if worst <= END_OF_VISIT * first:
            return steps, False
        limit = SHRINK * worst
        if keeps:
            for j in range(z.size):
                path[epoch, j] = z[j]
            for s in range(everyone.size):
                places[epoch, s] = linear.A[label, everyone[s]]
    return steps, True


@numba.njit(cache=True, nogil=True)
def add_rows(X, points, factors, z):
    """Add multiples of examples to z."""
    for s in range(points.size):
        if factors[s] != 0:
            row_add(X, points[s], factors[s], z)


@numba.njit(cache=True, nogil=True, fastmath=True)
def visit_points(X, linear, points, Z):
    """Coordinate ascent over examples, all labels of each; Z = (R V)ᵀ has shape (d, L).

    Return the number of steps taken.
    """
    A, R = linear.A, linear.R
    n_labels = A.shape[0]
    u, change, mixed = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    taken = 0
    for i in points:
        norm = linear.norms[i]
        panel_dot(X, i, Z, 0, n_labels, u)
        for label in range(n_labels):
            change[label] = mixed[label] = 0.0
        before = taken
        for _ in range(2):
            for label in range(n_labels):
                y, old = linear.signs[label, i], A[label, i]
                ridge = _ridge(linear.ridge, label, i)
                pull = y * _of(linear.margins, label, i) - u[label] - norm * mixed[label]
                bound = y * _of(linear.caps, label, i)
                new = _best(old, pull - ridge * old, norm * R[label, label] + ridge, bound)
                if new == old:
                    continue
                A[label, i] = new
                change[label] += new - old
                taken += 1
                row, value = R[label], new - old
                for k in range(n_labels):
                    mixed[k] += value * row[k]
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
    for i in points:
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
