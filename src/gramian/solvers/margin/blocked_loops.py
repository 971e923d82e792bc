"""Compiled loops of `blocked_ascent`: box-constrained quadratic programmes in the signed coefficients of one label.

In a = y α the dual of a margin problem reads: maximise ⟨t, a⟩ − ½ ⟨a, u⟩ with t = y m and low ≤ a ≤ high, where one of
the bounds is zero. Its gradient is the pull p = t − u; the gap of a coefficient is |p| times its way to the bound that
p points to. Sums are kept in float64; products with float32 rows of K are rounded eight rows at a time.
"""

from __future__ import annotations

import numba
import numpy as np

# Bins of pulls by size when the strongest are chosen: sorting would take longer than all the rest.
BINS = 64


@numba.njit(cache=True, nogil=True, fastmath=True)
def pulls(target, low, high, a, u, pull):
    """Write the pull of each coefficient that can move, else zero; return dual value, gap and the strongest pull."""
    dual = gap = strongest = 0.0
    for i in range(a.size):
        p = target[i] - u[i]
        room = (high[i] - a[i]) if p > 0 else (low[i] - a[i])
        dual += a[i] * (target[i] - 0.5 * u[i])
        gap += room * p
        p = p if room != 0 else 0.0
        pull[i] = p
        strongest = max(strongest, abs(p))
    return dual, gap, strongest


@numba.njit(cache=True, nogil=True)
def strongest_points(pull, strongest, points):
    """Fill ``points`` with coefficients of strong pull, half of each sign if there are so many; return how many.

    Both signs, because coefficients that all pull in one direction only shift what the others see.
    """
    size = points.size
    counts = np.zeros((2, BINS), dtype=np.int64)
    scale = 0.99999 * BINS / strongest
    for i in range(pull.size):
        if pull[i] > 0:
            counts[0, int(pull[i] * scale)] += 1
        elif pull[i] < 0:
            counts[1, int(-pull[i] * scale)] += 1
    totals = counts.sum(axis=1)
    least = np.zeros(2)
    for side in range(2):
        limit = max(size // 2, size - totals[1 - side])
        taken, b = 0, BINS
        while b > 0 and taken + counts[side, b - 1] <= limit:
            b -= 1
            taken += counts[side, b]
        least[side] = (b if taken > 0 or b == 0 else b - 1) / scale
    found = 0
    for i in range(pull.size):
        p = pull[i]
        if found < size and ((p > 0 and p >= least[0]) or (p < 0 and -p >= least[1])):
            points[found] = i
            found += 1
    return found


@numba.njit(cache=True, nogil=True, fastmath=True)
def ascend(H, inverse, target, low, high, a, u, precision):
    """Move the coefficient of largest gain, again and again, until gains are below ``precision`` × the first.

    H is small enough for the cache. Return the number of moves.
    """
    size = a.size
    first = 0.0
    moves = 0
    while moves < 10 * size:
        best, chosen = 0.0, -1
        for s in range(size):
            p = target[s] - u[s]
            step = min(max(a[s] + p * inverse[s], low[s]), high[s]) - a[s]
            gain = step * (p - 0.5 * step * H[s, s])
            if gain > best:
                best, chosen = gain, s
        if chosen < 0 or best < precision * first:
            break
        first = max(first, best)
        s = chosen
        new = min(max(a[s] + (target[s] - u[s]) * inverse[s], low[s]), high[s])
        step = new - a[s]
        a[s] = new
        for t in range(size):
            u[t] += step * H[s, t]
        moves += 1
    return moves


@numba.njit(cache=True, nogil=True, fastmath=True)
def add_rows(K, slots, factors, count, u):
    """Add ``count`` multiples of rows of K to u, eight rows at a time: as fast as memory gives them."""
    n = u.size
    s = 0
    while s + 8 <= count:
        k0, k1, k2, k3 = K[slots[s]], K[slots[s + 1]], K[slots[s + 2]], K[slots[s + 3]]
        k4, k5, k6, k7 = K[slots[s + 4]], K[slots[s + 5]], K[slots[s + 6]], K[slots[s + 7]]
        f0, f1, f2, f3 = factors[s], factors[s + 1], factors[s + 2], factors[s + 3]
        f4, f5, f6, f7 = factors[s + 4], factors[s + 5], factors[s + 6], factors[s + 7]
        for j in range(n):
            u[j] += (
                (f0 * k0[j] + f1 * k1[j])
                + (f2 * k2[j] + f3 * k3[j])
                + ((f4 * k4[j] + f5 * k5[j]) + (f6 * k6[j] + f7 * k7[j]))
            )
        s += 8
    while s < count:
        row, factor = K[slots[s]], factors[s]
        for j in range(n):
            u[j] += factor * row[j]
        s += 1


@numba.njit(cache=True, nogil=True)
def improve(K, slots, points, count, variance, target, low, high, a, u, precision):
    """Solve for the first ``count`` of ``points``, whose rows of K are in ``slots``; return multiply-adds."""
    H = np.empty((count, count))
    inverse = np.empty(count)
    here = points[:count]
    for s in range(count):
        row = K[slots[s]]
        for t in range(count):
            H[s, t] = variance * row[here[t]]
        inverse[s] = 1.0 / H[s, s] if H[s, s] > 0 else 1e300
    old, now = a[here], u[here]
    new = old.copy()
    moves = ascend(H, inverse, target[here], low[here], high[here], new, now, precision)
    factors = np.empty(count, dtype=K.dtype)
    changed = 0
    for s in range(count):
        if new[s] != old[s]:
            a[here[s]] = new[s]
            slots[changed] = slots[s]
            factors[changed] = variance * (new[s] - old[s])
            changed += 1
    add_rows(K, slots, factors, changed, u)
    return float(changed) * a.size + float(moves) * count


@numba.njit(cache=True, nogil=True)
def visit(K, variance, target, low, high, a, u, factor, floor, size, rounds, precision):
    """Lower the gap of one label to ``factor`` times what it is, or to ``floor``; return multiply-adds."""
    pull = np.empty(a.size)
    points = np.empty(size, dtype=np.int64)
    goal = work = 0.0
    for turn in range(rounds):
        _, gap, strongest = pulls(target, low, high, a, u, pull)
        if turn == 0:
            goal = max(factor * gap, floor)
        if gap <= goal or strongest == 0:
            break
        count = strongest_points(pull, strongest, points)
        slots = points.copy()
        work += improve(K, slots, points, count, variance, target, low, high, a, u, precision)
    return work


@numba.njit(cache=True, nogil=True, fastmath=True)
def mixed(V, weights, u):
    """Write Σ_k weights_k V_k, the latent values of one label, into u; return multiply-adds."""
    u[:] = 0.0
    work = 0.0
    for k in range(V.shape[0]):
        weight, row = weights[k], V[k]
        if weight != 0:
            for j in range(u.size):
                u[j] += weight * row[j]
            work += u.size
    return work


@numba.njit(cache=True, parallel=True)
def visit_labels(K, R, batch, target, low, high, A, V, factor, floor, size, rounds, precision):
    """Visit the labels of a batch side by side, each as if the others stood still, and take their common step.

    The common step is the best multiple, at most 1, of all changes together: exactly 1 for labels without correlation.
    Return multiply-adds.
    """
    n = A.shape[1]
    change = np.empty((batch.size, n))
    product = np.empty((batch.size, n))  # K times the change
    slope = np.zeros(batch.size)
    work = np.zeros(batch.size)
    for b in numba.prange(batch.size):
        label = batch[b]
        u = np.empty(n)
        work[b] = mixed(V, R[label], u)
        a, before = A[label].copy(), u.copy()
        variance = R[label, label]
        work[b] += visit(
            K, variance, target[label], low[label], high[label], a, u, factor, floor, size, rounds, precision
        )  # fmt: skip
        for i in range(n):
            change[b, i] = a[i] - A[label, i]
            product[b, i] = (u[i] - before[i]) / variance
            slope[b] += change[b, i] * (target[label, i] - before[i])
    step = 1.0
    if batch.size > 1:
        curvature = 0.0
        for b in range(batch.size):
            for c in range(batch.size):
                weight = R[batch[b], batch[c]]
                if weight != 0:
                    curvature += weight * np.dot(change[b], product[c])
        if curvature > 0:
            step = min(1.0, slope.sum() / curvature)
    for b in range(batch.size):
        label = batch[b]
        for i in range(n):
            new = A[label, i] + step * change[b, i]
            A[label, i] = min(max(new, low[label, i]), high[label, i])
            V[label, i] += step * product[b, i]
    return work.sum()


@numba.njit(cache=True, nogil=True)
def visit_worst(
    K, R, visits, target, low, high, A, V, pull, up, down, gaps, factor, floor, size, rounds, precision
):  # fmt: skip
    """Visit the label of largest gap, tell all others at once, and again.

    Pulls T − R V, ways ``up`` = high − A and ``down`` = low − A (float32: they only weigh pulls) and ``gaps`` of all
    labels are kept up to date. Return multiply-adds.
    """
    n_labels, n = A.shape
    change = np.empty(n)
    work = 0.0
    for _ in range(visits):
        label = np.argmax(gaps)
        if gaps[label] <= floor:
            break
        variance = R[label, label]
        before = target[label] - pull[label]
        u = before.copy()
        work += visit(
            K, variance, target[label], low[label], high[label], A[label], u,
            factor, floor, size, rounds, precision,
        )  # fmt: skip
        for i in range(n):
            change[i] = (u[i] - before[i]) / variance
            V[label, i] += change[i]
            up[label, i] = high[label, i] - A[label, i]
            down[label, i] = low[label, i] - A[label, i]
        for k in range(
            n_labels
        ):  # in parallel it took twice as long: threads must be woken after each visit
            gaps[k] = shifted_gap(R[label, k], change, pull[k], up[k], down[k])
        work += float(n) * n_labels
    return work


@numba.njit(cache=True, nogil=True, fastmath=True)
def shifted_gap(weight, change, pull, up, down):
    """Subtract a multiple of ``change`` from the pulls of a label; return its gap."""
    gap = 0.0
    for i in range(pull.size):
        p = pull[i] - weight * change[i]
        pull[i] = p
        gap += max(p, 0.0) * up[i] + min(p, 0.0) * down[i]
    return gap
