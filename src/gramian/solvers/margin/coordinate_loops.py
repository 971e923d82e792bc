"""Compiled loops of `coordinate_ascent`: steps on single coefficients, with products through features.

Features are a dense array or a triple (indptr, indices, data) of a CSR array; `row_dot` and `row_add` hide which. The
indices are unsigned: a signed one may count from the end, which Numba checks each time, at a multiple of the cost.
Pulls, targets and bounds are those of `margin_loops`.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import types
from numba.extending import overload

SHRINK = 0.1  # of the largest violation of an epoch: who is pulled harder to where it is leaves the visit
PANEL = 16  # labels side by side when all examples are looked at: two cache lines of float64


def row_dot(X, i, z):
    """Inner product of example i with z."""
    raise NotImplementedError


@overload(row_dot, jit_options={"fastmath": True})
def _row_dot(X, i, z):
    if isinstance(X, types.Array):

        def dense(X, i, z):
            row = X[i]
            total = 0.0
            for j in range(row.size):
                total += row[j] * z[j]
            return total

        return dense

    def sparse(X, i, z):
        indptr, indices, data = X
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e] * z[indices[e]]
        return total

    return sparse


def row_add(X, i, factor, z):
    """Add a multiple of example i to z."""
    raise NotImplementedError


@overload(row_add, jit_options={"fastmath": True})
def _row_add(X, i, factor, z):
    if isinstance(X, types.Array):

        def dense(X, i, factor, z):
            row = X[i]
            for j in range(row.size):
                z[j] += factor * row[j]

        return dense

    def sparse(X, i, factor, z):
        indptr, indices, data = X
        for e in range(indptr[i], indptr[i + 1]):
            z[indices[e]] += factor * data[e]

    return sparse


def panel_dot(X, i, Z, out):
    """Inner products of example i with the columns of Z, into out."""
    raise NotImplementedError


@overload(panel_dot, jit_options={"fastmath": True})
def _panel_dot(X, i, Z, out):
    if isinstance(X, types.Array):

        def dense(X, i, Z, out):
            row = X[i]
            out[:] = 0.0
            for j in range(row.size):
                value, column = row[j], Z[j]
                for c in range(out.size):
                    out[c] += value * column[c]

        return dense

    def sparse(X, i, Z, out):
        indptr, indices, data = X
        out[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            value, column = data[e], Z[indices[e]]
            for c in range(out.size):
                out[c] += value * column[c]

    return sparse


def panel_add(X, i, factors, Z):
    """Add multiples of example i to the columns of Z."""
    raise NotImplementedError


@overload(panel_add, jit_options={"fastmath": True})
def _panel_add(X, i, factors, Z):
    if isinstance(X, types.Array):

        def dense(X, i, factors, Z):
            row = X[i]
            for j in range(row.size):
                value, column = row[j], Z[j]
                for c in range(factors.size):
                    column[c] += value * factors[c]

        return dense

    def sparse(X, i, factors, Z):
        indptr, indices, data = X
        for e in range(indptr[i], indptr[i + 1]):
            value, column = data[e], Z[indices[e]]
            for c in range(factors.size):
                column[c] += value * factors[c]

    return sparse


@numba.njit(cache=True, parallel=True)
def scan(X, Z, signs, margins, caps, A, active, slack, first, n_chunks):
    """Look at all examples of the labels from ``first`` on, one for each column of Z.

    Signs, margins, caps, A and active have shape (L, n). Write which coefficients are active: those that can move, and
    those at a bound whose pull is below the label's ``slack``. Return dual value, gap and strongest pull of each chunk
    and label, shape (n_chunks, labels, 3).
    """
    n, width = A.shape[1], Z.shape[1]
    sums = np.zeros((n_chunks, width, 3))
    for chunk in numba.prange(n_chunks):
        u = np.empty(width)
        for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            panel_dot(X, i, Z, u)
            for c in range(width):
                label = first + c
                y = signs[label, i]
                a = A[label, i]
                pull = y * margins[label, i] - u[c]
                bound = y * caps[label, i]
                room = max(bound, 0.0) - a if pull > 0 else min(bound, 0.0) - a
                sums[chunk, c, 0] += a * (y * margins[label, i] - 0.5 * u[c])
                sums[chunk, c, 1] += room * pull
                if room != 0:
                    sums[chunk, c, 2] = max(sums[chunk, c, 2], abs(pull))
                free = a != 0 and a != bound
                active[label, i] = room != 0 or free or (bound != 0 and abs(pull) < slack[label])
    return sums


@numba.njit(cache=True, nogil=True)
def _shuffled(points, count, state):
    """Put the first ``count`` points into a random order; return the next state of the generator."""
    for last in range(count - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        other = int((state >> np.uint64(33)) % np.uint64(last + 1))
        points[last], points[other] = points[other], points[last]
    return state


@numba.njit(cache=True, nogil=True)
def visit(
    X, norms, variance, signs, margins, caps, active, a, z, epochs, factor, state, extrapolate
):
    """Coordinate ascent over the active coefficients of one label, in random order, until pulls have fallen.

    z = variance Xᵀ a + what other labels add. Coefficients at a bound that they are pulled to harder than SHRINK times
    the largest violation of the epoch before leave the visit.
    Return the number of steps tried and of steps taken.
    """
    points = np.flatnonzero(active)
    everyone = points.copy()
    count = points.size
    path = np.empty((epochs + 1 if extrapolate else 0, z.size))
    places = np.empty((epochs + 1 if extrapolate else 0, count))
    if extrapolate:
        path[0] = z
    tried = taken = 0
    first = before = 0.0
    for epoch in range(epochs):
        if (
            epoch == 0 or not extrapolate
        ):  # differences of epochs are a geometric series only in one order
            state = _shuffled(points, count, state)
        worst = 0.0
        kept = 0
        for s in range(count):
            i = points[s]
            bound = signs[i] * caps[i]
            low, high = min(bound, 0.0), max(bound, 0.0)
            pull = signs[i] * margins[i] - row_dot(X, i, z)
            end = high if pull > 0 else low
            if a[i] == end:
                if epoch == 0 or abs(pull) <= SHRINK * before:
                    points[kept] = i
                    kept += 1
                continue
            points[kept] = i
            kept += 1
            worst = max(worst, abs(pull))
            curvature = variance * norms[i]
            new = min(max(a[i] + pull / curvature, low), high) if curvature > 0 else end
            row_add(X, i, (new - a[i]) * variance, z)
            a[i] = new
            taken += 1
        tried += count
        count = kept
        first = max(first, worst) if epoch == 0 else first
        before = worst
        if worst <= factor * first:
            return tried, taken
        if extrapolate:
            path[epoch + 1] = z
            places[epoch + 1] = a[everyone]
    if extrapolate:
        _extrapolate(X, variance, signs, margins, caps, everyone, places, path, a, z)
        taken += everyone.size
    return tried, taken


@numba.njit(cache=True, nogil=True)
def _extrapolate(X, variance, signs, margins, caps, points, places, path, a, z):
    """Step towards the Anderson extrapolation of the epochs, clipped into the box, as far as the dual rises.

    Coordinate ascent creeps where curvature is small; differences of its epochs then shrink like a geometric series,
    whose limit the combination of epochs with the smallest difference estimates (Bertrand & Massias, 2021).
    """
    epochs = path.shape[0] - 1
    differences = path[1:] - path[:-1]
    gram = differences @ differences.T
    scale = np.trace(gram)
    if scale == 0:
        return
    for e in range(epochs):
        gram[e, e] += 1e-10 * scale
    weights = np.linalg.solve(gram, np.ones(epochs))
    total = weights.sum()
    if not np.isfinite(total) or total == 0:
        return
    weights /= total
    step = np.empty(points.size)
    change = np.zeros(z.size)  # of Xᵀ a
    slope = 0.0
    for s in range(points.size):
        i = points[s]
        want = 0.0
        for e in range(epochs):
            want += weights[e] * places[e + 1, s]
        bound = signs[i] * caps[i]
        step[s] = min(max(want, min(bound, 0.0)), max(bound, 0.0)) - a[i]
        if step[s] != 0:
            row_add(X, i, step[s], change)
            slope += signs[i] * margins[i] * step[s]
    slope -= np.dot(change, z)
    curvature = variance * np.dot(change, change)
    if slope <= 0:
        return
    length = 1.0 if slope >= curvature else slope / curvature
    for s in range(points.size):
        i = points[s]
        bound = signs[i] * caps[i]
        a[i] = min(max(a[i] + length * step[s], min(bound, 0.0)), max(bound, 0.0))
    for j in range(z.size):
        z[j] += length * variance * change[j]


@numba.njit(cache=True, parallel=True)
def visit_labels(
    X,
    norms,
    R,
    batch,
    signs,
    margins,
    caps,
    active,
    A,
    V,
    Z,
    epochs,
    factor,
    seeds,
    line_search,
    extrapolate,
):
    """Visit the labels of a batch side by side, each as if the others stood still, and take their common step.

    Z holds the rows (R V)[batch]. As `margin_loops.visit_labels`; ``line_search`` is false if no two labels of the
    batch are correlated. Return steps tried and taken.
    """
    n = A.shape[1]
    before = np.empty((batch.size if line_search else 0, n))
    change = np.empty((batch.size, Z.shape[1]))  # of V
    slope = np.zeros(batch.size)
    counts = np.zeros((batch.size, 2))
    for b in numba.prange(batch.size):
        label = batch[b]
        a, z, variance = A[label], Z[b], R[label, label]
        if line_search:
            before[b] = a
        change[b] = -z
        counts[b] = visit(
            X, norms, variance, signs[label], margins[label], caps[label], active[label],
            a, z, epochs, factor, seeds[label], extrapolate,
        )  # fmt: skip
        for j in range(z.size):
            start = -change[b, j]
            change[b, j] = (z[j] - start) / variance
            slope[b] -= start * change[b, j]
        if line_search:
            for i in range(n):
                slope[b] += signs[label, i] * margins[label, i] * (a[i] - before[b, i])
    step = 1.0
    if line_search:
        curvature = 0.0
        for b in range(batch.size):
            for c in range(batch.size):
                weight = R[batch[b], batch[c]]
                if weight != 0:
                    curvature += weight * np.dot(change[b], change[c])
        if curvature > 0:
            step = min(1.0, slope.sum() / curvature)
    for b in numba.prange(batch.size):
        label = batch[b]
        for j in range(Z.shape[1]):
            V[label, j] += step * change[b, j]
        if step < 1:
            for i in range(n):
                A[label, i] = before[b, i] + step * (A[label, i] - before[b, i])
    return counts


@numba.njit(cache=True, nogil=True, fastmath=True)
def visit_points(X, norms, R, points, signs, margins, caps, A, V, Z):
    """Coordinate ascent over examples, all labels of each; Z = (R V)ᵀ has shape (d, L), all others have labels first.

    Return the number of steps taken.
    """
    n_labels = A.shape[0]
    u, change, mixed = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    taken = 0
    for i in points:
        panel_dot(X, i, Z, u)
        change[:] = 0.0
        mixed[:] = 0.0
        before = taken
        for _ in range(2):
            for label in range(n_labels):
                bound = signs[label, i] * caps[label, i]
                pull = signs[label, i] * margins[label, i] - u[label] - norms[i] * mixed[label]
                low, high = min(bound, 0.0), max(bound, 0.0)
                old = A[label, i]
                curvature = norms[i] * R[label, label]
                new = high if pull > 0 else low
                if curvature > 0:
                    new = min(max(old + pull / curvature, low), high)
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
            for label in range(
                n_labels
            ):  # few labels change: not worth a pass over whole rows of V
                if change[label] != 0:
                    row_add(X, i, change[label], V[label])
    return taken


@numba.njit(cache=True, nogil=True, fastmath=True)
def _visit_points_of_panel(X, norms, variances, points, signs, margins, caps, A, V):
    """As `visit_points` for labels without correlation."""
    n_labels = A.shape[0]
    u, change = np.empty(n_labels), np.empty(n_labels)
    taken = 0
    for i in points:
        panel_dot(X, i, V, u)
        moved = False
        for label in range(n_labels):
            bound = signs[label, i] * caps[label, i]
            low, high = min(bound, 0.0), max(bound, 0.0)
            variance = variances[label]
            pull = signs[label, i] * margins[label, i] - variance * u[label]
            old = A[label, i]
            curvature = norms[i] * variance
            new = high if pull > 0 else low
            if curvature > 0:
                new = min(max(old + pull / curvature, low), high)
            A[label, i] = new
            change[label] = new - old
            if new != old:
                moved = True
                taken += 1
        if moved:
            panel_add(X, i, change, V)
    return taken


@numba.njit(cache=True, parallel=True)
def visit_points_apart(X, norms, variances, points, signs, margins, caps, A, V):
    """Coordinate ascent over examples for labels without correlation, a panel of labels at a time; V is (L, d)."""
    n_labels = A.shape[0]
    for panel in numba.prange((n_labels + PANEL - 1) // PANEL):
        one, end = panel * PANEL, min((panel + 1) * PANEL, n_labels)
        columns = np.ascontiguousarray(V[one:end].T)
        _visit_points_of_panel(
            X, norms, variances[one:end], points, signs[one:end], margins[one:end], caps[one:end],
            A[one:end], columns,
        )  # fmt: skip
        V[one:end] = columns.T
