"""Compiled loops of `coordinate_ascent`: steps on single coefficients, with products through features.

The pull of a coefficient is the gradient y m − u − r a of the dual; its bounds are 0 and y c. The ridge r is that of
squared losses, else zero. X is `FeatureRows.compiled`; it
is no part of the tuple, because Numba's parallel loops take no tuple inside another one.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from gramian._core.compilation import parallel_loops
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


# A loop over threads whose body is another function compiles in a fraction of the time.


@parallel_loops()
def scan(X, linear, Z, slack, first, n_chunks):
    """Look at all examples of the labels from ``first`` on, one for each column of Z.

    Write which coefficients are active: those that can move, and those at a bound whose pull is below the label's
    ``slack``. Return dual value, gap and strongest pull of each chunk and label, shape (n_chunks, labels, 3).
    """
    sums = np.zeros((n_chunks, Z.shape[1], 3))
    for chunk in numba.prange(n_chunks):
        _scan_chunk(X, linear, Z, slack, first, chunk, sums)
    return sums


@numba.njit(cache=True, nogil=True)
def _scan_chunk(X, linear, Z, slack, first, chunk, sums):
    """As `scan`, for one chunk of the examples."""
    n, width, n_chunks = linear.A.shape[1], Z.shape[1], sums.shape[0]
    u = np.empty(width)
    for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
        panel_dot(X, i, Z, 0, width, u)
        for c in range(width):
            label = first + c
            a, y = linear.A[label, i], linear.signs[label, i]
            target, bound = y * _of(linear.margins, label, i), y * _of(linear.caps, label, i)
            ridge = _ridge(linear.ridge, label, i)
            pull = target - u[c] - ridge * a
            room = max(bound, 0.0) - a if pull > 0 else min(bound, 0.0) - a
            sums[chunk, c, 0] += a * (target - 0.5 * (u[c] + ridge * a))
            if ridge > 0:
                sums[chunk, c, 1] += gap_with_ridge(target - u[c], ridge, bound, a)
            else:
                sums[chunk, c, 1] += room * pull
            if room != 0:
                sums[chunk, c, 2] = max(sums[chunk, c, 2], abs(pull))
            free = a != 0 and a != bound
            near = bound != 0 and abs(pull) < slack[label]
            linear.active[label, i] = room != 0 or free or near


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
        goal, bound = 0.0, signs[i] * _of(linear.caps, label, i)
        for e in range(weights.size):
            goal += weights[e] * places[e + 1, s]
        step[s] = min(max(goal, min(bound, 0.0)), max(bound, 0.0)) - a[i]
        if step[s] != 0:
            row_add(X, i, step[s], change)
            ridge = _ridge(linear.ridge, label, i)
            slope += (signs[i] * _of(linear.margins, label, i) - ridge * a[i]) * step[s]
            curvature += ridge * step[s] ** 2
    for j in range(z.size):
        slope -= change[j] * z[j]
        curvature += variance * change[j] * change[j]
    if not slope > 0:
        return
    length = 1.0 if slope >= curvature else slope / curvature
    for s, i in enumerate(points):
        bound = signs[i] * _of(linear.caps, label, i)
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


@parallel_loops()
def visit_labels(X, linear, batch, Z, before, change, seeds, extrapolate):
    """Visit the labels of a batch side by side, each as if the others stood still; write the change of their rows of V.

    Z holds the rows (R V)[batch]; ``before`` the rows A[batch], or none of their columns if no slope is asked for.
    Return for each label the number of steps tried and taken, and the slope of the dual along its change.
    """
    results = np.zeros((batch.size, 2))
    for b in numba.prange(batch.size):
        results[b, 0], results[b, 1] = _visit_beside_others(
            X, linear, batch[b], Z[b], before[b], change[b], seeds[batch[b]], extrapolate
        )
    return results


@numba.njit(cache=True, nogil=True)
def _visit_beside_others(X, linear, label, z, before, change, seed, extrapolate):
    """As `visit_labels`, for one of them."""
    a, variance = linear.A[label], linear.R[label, label]
    for j in range(z.size):
        change[j] = -z[j]
    tried, taken = _visit(X, linear, label, z, seed, extrapolate)
    slope = 0.0
    for j in range(z.size):
        start = -change[j]
        change[j] = (z[j] - start) / variance
        slope -= start * change[j]
    for i in range(before.size):
        target = linear.signs[label, i] * _of(linear.margins, label, i)
        ridge = _ridge(linear.ridge, label, i)
        slope += (target - ridge * before[i]) * (a[i] - before[i])
    return float(tried + taken), slope


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
            ridge = _ridge(linear.ridge, label, i)
            pull = y * _of(linear.margins, label, i) - variance * u[c] - ridge * old
            bound = y * _of(linear.caps, label, i)
            new = _best(old, pull, linear.norms[i] * variance + ridge, bound)
            linear.A[label, i] = new
            change[c] = new - old
            moved = moved or new != old
        if moved:
            panel_add(X, i, change, Z)


@parallel_loops()
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
