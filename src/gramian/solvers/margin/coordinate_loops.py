"""Compiled loops of `coordinate_ascent`: steps on single coefficients, with products through features.

The pull of a coefficient is the gradient y m − u of the dual; its bounds are 0 and y c. X is `FeatureRows.compiled`; it
is no part of the tuple, because Numba's parallel loops take no tuple inside another one.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from gramian.operators.inputs.feature_rows import panel_add, panel_dot, row_add, row_dot
from gramian.solvers.margin.batches import common_step

PANEL = 16  # labels side by side when all examples are looked at: two cache lines of float64
EPOCHS = 10  # passes over the active coefficients in one visit, at most
END_OF_VISIT = 0.1  # of the largest violation of the first pass: a pass with less ends the visit
SHRINK = 0.1  # of the largest violation of the pass before: who is pulled harder to its bound leaves the visit


class LinearMargins(NamedTuple):
    """A linear margin problem but for its features; A, V and active are changed by loops."""

    norms: np.ndarray  # squared, of the examples
    R: np.ndarray
    signs: np.ndarray  # (L, n), as margins, caps, A and active
    margins: np.ndarray
    caps: np.ndarray
    A: np.ndarray
    V: np.ndarray  # Aᵀ X, shape (L, d)
    active: np.ndarray  # which coefficients a visit looks at


@numba.njit(cache=True, nogil=True)
def _best(a, pull, curvature, bound):
    """The coefficient between zero and its bound for which the dual is largest."""
    low, high = min(bound, 0.0), max(bound, 0.0)
    if curvature > 0:
        return min(max(a + pull / curvature, low), high)
    return high if pull > 0 else low


@numba.njit(cache=True, parallel=True)
def scan(X, linear, Z, slack, first, n_chunks):
    """Look at all examples of the labels from ``first`` on, one for each column of Z.

    Write which coefficients are active: those that can move, and those at a bound whose pull is below the label's
    ``slack``. Return dual value, gap and strongest pull of each chunk and label, shape (n_chunks, labels, 3).
    """
    n, width = linear.A.shape[1], Z.shape[1]
    active = linear.active  # Numba forgets what a parallel loop writes to an array inside a tuple
    sums = np.zeros((n_chunks, width, 3))
    for chunk in numba.prange(n_chunks):
        u = np.empty(width)
        for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            panel_dot(X, i, Z, 0, width, u)
            for c in range(width):
                label = first + c
                a, y = linear.A[label, i], linear.signs[label, i]
                target, bound = y * linear.margins[label, i], y * linear.caps[label, i]
                pull = target - u[c]
                room = max(bound, 0.0) - a if pull > 0 else min(bound, 0.0) - a
                sums[chunk, c, 0] += a * (target - 0.5 * u[c])
                sums[chunk, c, 1] += room * pull
                if room != 0:
                    sums[chunk, c, 2] = max(sums[chunk, c, 2], abs(pull))
                free = a != 0 and a != bound
                near = bound != 0 and abs(pull) < slack[label]
                active[label, i] = room != 0 or free or near
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
    signs, margins, caps = linear.signs[label], linear.margins[label], linear.caps[label]
    worst = 0.0
    kept = taken = 0
    for i in points:
        bound = signs[i] * caps[i]
        pull = signs[i] * margins[i] - row_dot(X, i, z)
        moves = a[i] != (max(bound, 0.0) if pull > 0 else min(bound, 0.0))
        if moves:
            worst = max(worst, abs(pull))
            new = _best(a[i], pull, variance * linear.norms[i], bound)
            row_add(X, i, (new - a[i]) * variance, z)
            a[i] = new
            taken += 1
        if moves or abs(pull) <= limit:
            points[kept] = i
            kept += 1
    return kept, taken, worst


@numba.njit(cache=True, nogil=True)
def _visit(X, linear, label, z, state, extrapolate):
    """Coordinate ascent over the active coefficients of one label, in random order, until pulls have fallen.

    z = R_ll Xᵀ a + what other labels add. Return the number of steps tried and of steps taken.
    """
    everyone = np.flatnonzero(linear.active[label])
    points = everyone.copy()
    n_kept = EPOCHS + 1 if extrapolate else 0
    path, places = np.empty((n_kept, z.size)), np.empty((n_kept, everyone.size))
    if extrapolate:
        path[0] = z
    tried = taken = 0
    first, limit = 0.0, np.inf
    for epoch in range(EPOCHS):
        # differences of epochs are a geometric series only in one order
        if epoch == 0 or not extrapolate:
            state = _shuffled(points, state)
        kept, steps, worst = _epoch(X, linear, label, z, points, limit)
        tried, taken = tried + points.size, taken + steps
        points = points[:kept]
        first = worst if epoch == 0 else first
        if worst <= END_OF_VISIT * first:
            return tried, taken
        limit = SHRINK * worst
        if extrapolate:
            path[epoch + 1] = z
            places[epoch + 1] = linear.A[label][everyone]
    if extrapolate:
        _extrapolate(X, linear, label, z, everyone, places, path)
        taken += everyone.size
    return tried, taken


@numba.njit(cache=True, nogil=True)
def _extrapolate(X, linear, label, z, points, places, path):
    """Step towards the Anderson extrapolation of the epochs, clipped into the box, as far as the dual rises.

    Coordinate ascent creeps where curvature is small; differences of its epochs then shrink like a geometric series,
    whose limit the combination of epochs with the smallest difference estimates (Bertrand & Massias, 2021).
    """
    a, variance, signs = linear.A[label], linear.R[label, label], linear.signs[label]
    weights = _smallest_combination(path)
    change, step = np.zeros(z.size), np.zeros(points.size)  # of Xᵀ a and of a
    slope = curvature = 0.0
    for s, i in enumerate(points):
        goal, bound = 0.0, signs[i] * linear.caps[label, i]
        for e in range(weights.size):
            goal += weights[e] * places[e + 1, s]
        step[s] = min(max(goal, min(bound, 0.0)), max(bound, 0.0)) - a[i]
        if step[s] != 0:
            row_add(X, i, step[s], change)
            slope += signs[i] * linear.margins[label, i] * step[s]
    for j in range(z.size):
        slope -= change[j] * z[j]
        curvature += variance * change[j] * change[j]
    if not slope > 0:
        return
    length = 1.0 if slope >= curvature else slope / curvature
    for s, i in enumerate(points):
        bound = signs[i] * linear.caps[label, i]
        a[i] = min(max(a[i] + length * step[s], min(bound, 0.0)), max(bound, 0.0))
    for j in range(z.size):
        z[j] += length * variance * change[j]


@numba.njit(cache=True, nogil=True)
def _smallest_combination(path):
    """Weights that sum to one and make the combination of the differences of a path the smallest.

    Gaussian elimination of their few normal equations; NumPy's solver takes seconds to compile.
    """
    n = path.shape[0] - 1
    D, b = np.empty((n, path.shape[1])), np.ones(n)
    for e in range(n):
        for j in range(path.shape[1]):
            D[e, j] = path[e + 1, j] - path[e, j]
    M = D @ D.T
    ridge = 1e-10 * np.trace(M)
    if ridge == 0:  # nothing has moved: the last epoch is as good as any
        b[: n - 1] = 0.0
        return b
    for k in range(n):
        M[k, k] += ridge
    for k in range(n):
        for e in range(k + 1, n):
            factor = M[e, k] / M[k, k]
            b[e] -= factor * b[k]
            for f in range(k, n):
                M[e, f] -= factor * M[k, f]
    for k in range(n - 1, -1, -1):
        for f in range(k + 1, n):
            b[k] -= M[k, f] * b[f]
        b[k] /= M[k, k]
    return b / b.sum()


@numba.njit(cache=True, parallel=True)
def visit_labels(X, linear, batch, Z, seeds, line_search, extrapolate):
    """Visit the labels of a batch side by side, each as if the others stood still, and take their common step.

    Z holds the rows (R V)[batch]; ``line_search`` is false if no two labels of the batch are correlated. Return steps
    tried and taken by each label.
    """
    A, V = linear.A, linear.V
    n = A.shape[1]
    before = np.empty((batch.size if line_search else 0, n))
    change = np.empty((batch.size, Z.shape[1]))  # of V
    slope = np.zeros(batch.size)
    counts = np.zeros((batch.size, 2))
    for b in numba.prange(batch.size):
        label = batch[b]
        a, z, variance = A[label], Z[b], linear.R[label, label]
        for i in range(n if line_search else 0):
            before[b, i] = a[i]
        for j in range(z.size):
            change[b, j] = -z[j]
        counts[b, 0], counts[b, 1] = _visit(X, linear, label, z, seeds[label], extrapolate)
        for j in range(z.size):
            start = -change[b, j]
            change[b, j] = (z[j] - start) / variance
            slope[b] -= start * change[b, j]
        if line_search:
            for i in range(n):
                target = linear.signs[label, i] * linear.margins[label, i]
                slope[b] += target * (a[i] - before[b, i])
    step = common_step(linear.R, batch, slope.sum(), change, change) if line_search else 1.0
    for b in numba.prange(batch.size):
        label = batch[b]
        for j in range(Z.shape[1]):
            V[label, j] += step * change[b, j]
        if step < 1:
            for i in range(n):
                A[label, i] = before[b, i] + step * (A[label, i] - before[b, i])
    return counts


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
        change[:] = 0.0
        mixed[:] = 0.0
        before = taken
        for _ in range(2):
            for label in range(n_labels):
                y, old = linear.signs[label, i], A[label, i]
                pull = y * linear.margins[label, i] - u[label] - norm * mixed[label]
                new = _best(old, pull, norm * R[label, label], y * linear.caps[label, i])
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
def _visit_points_of_panel(X, linear, points, first, Z):
    """As `visit_points` for labels without correlation, from ``first`` on; Z has their rows of V as columns."""
    width = Z.shape[1]
    u, change = np.empty(width), np.empty(width)
    for i in points:
        panel_dot(X, i, Z, 0, width, u)
        moved = False
        for c in range(width):
            label = first + c
            y, old, variance = linear.signs[label, i], linear.A[label, i], linear.R[label, label]
            pull = y * linear.margins[label, i] - variance * u[c]
            new = _best(old, pull, linear.norms[i] * variance, y * linear.caps[label, i])
            linear.A[label, i] = new
            change[c] = new - old
            moved = moved or new != old
        if moved:
            panel_add(X, i, change, Z)


@numba.njit(cache=True, parallel=True)
def visit_points_apart(X, linear, points):
    """Coordinate ascent over examples for labels without correlation, a panel of labels at a time."""
    V = linear.V
    for panel in numba.prange((V.shape[0] + PANEL - 1) // PANEL):
        first, last = panel * PANEL, min((panel + 1) * PANEL, V.shape[0])
        columns = np.empty((V.shape[1], last - first))
        for c in range(last - first):
            for j in range(V.shape[1]):
                columns[j, c] = V[first + c, j]
        _visit_points_of_panel(X, linear, points, first, columns)
        for c in range(last - first):
            for j in range(V.shape[1]):
                V[first + c, j] = columns[j, c]
