"""Compiled loops of `blocked_ascent`: box-constrained quadratic programmes in the signed coefficients of one label.

In a = y α the dual of a margin problem reads: maximise ⟨t, a⟩ − ½ ⟨a, u⟩ with t = y m and low ≤ a ≤ high, where one of
the bounds is zero. Its gradient is the pull p = t − u; the gap of a coefficient is |p| times its way to the bound that
p points to (`pulls`). Sums are kept in float64; products with float32 rows of K are rounded eight rows at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numba.extending import overload

from gramian.solvers.margin.problem import gap_with_ridge, pulls

WORKING_SET = 64  # examples a round along a label: 32 to 128 take about as long, 256 twice
MAX_ROUNDS = 1000  # in one visit
MOVES_EACH = 10  # coefficients of a working set are moved so often on average, at most
SUBSPACE_STEPS = 20  # between such moves, where they do not suffice
VAIN_ROUNDS = 300  # after which a visit ends, if the gap has not fallen by a thousandth; fewer after visits in vain
OVERFLOW = 1e300  # pulls beyond it, or that are no numbers, are left alone: the gap shows them
PRECISION = 0.1  # of the first gain, in the cache; more changes coefficients that change again
PULL_BINS = 64  # by size, to choose the strongest: sorting would take longer than all the rest


class Labels(NamedTuple):
    """A margin problem as loops need it, one row a label; A and V are changed by them."""

    K: np.ndarray  # empty where rows are evaluated when they are needed
    R: np.ndarray
    target: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ridge: np.ndarray  # without columns if losses are not squared
    A: np.ndarray
    V: np.ndarray  # A K


class Label(NamedTuple):
    """One label of it: coefficients a and latent values u are changed by loops."""

    variance: float  # R_ll
    target: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ridge: np.ndarray
    a: np.ndarray
    u: np.ndarray


@numba.njit(cache=True, nogil=True)
def _strongest_points(pull, strongest, points):
    """Fill ``points`` with coefficients of strong pull, half of each sign if there are so many; return how many.

    Both signs, because coefficients that all pull in one direction only shift what the others see.
    """
    size = points.size
    counts = np.zeros((2, PULL_BINS), dtype=np.int64)
    scale = 0.99999 * PULL_BINS / strongest
    for i in range(pull.size):
        if pull[i] > 0:
            counts[0, int(pull[i] * scale)] += 1
        elif pull[i] < 0:
            counts[1, int(-pull[i] * scale)] += 1
    least = np.zeros(2)
    for side in range(2):
        others = 0
        for b in range(PULL_BINS):
            others += counts[1 - side, b]
        limit = max(size // 2, size - others)
        taken, b = 0, PULL_BINS
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
def _ascend(H, label):
    """Move the coefficient of largest gain, again and again, until gains are below `PRECISION` × the first.

    H is small enough for the cache, and has the ridge on its diagonal, as u has. Return the number of moves.
    """
    _, target, low, high, _, a, u = label
    size = a.size
    inverse = np.empty(size)
    for s in range(size):
        inverse[s] = 1.0 / H[s, s] if H[s, s] > 0 else 1e300
    first = 0.0
    moves = 0
    while moves < MOVES_EACH * size:
        best, chosen = 0.0, -1
        for s in range(size):
            p = target[s] - u[s]
            step = min(max(a[s] + p * inverse[s], low[s]), high[s]) - a[s]
            gain = step * (p - 0.5 * step * H[s, s])
            if gain > best:
                best, chosen = gain, s
        if chosen < 0 or best < PRECISION * first:
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


@numba.njit(cache=True, nogil=True)
def _subspace_step(H, label):
    """Move all coefficients that are inside their bounds towards their common optimum, as far as the bounds allow.

    Single moves crawl where H is nearly singular: equal examples with large C. Directions in which it is singular,
    up to rounding, lead straight to a bound. Return by how much the dual rises.
    """
    _, target, low, high, _, a, u = label
    free = np.empty(a.size, dtype=np.int64)
    count = 0
    for s in range(a.size):
        if low[s] < a[s] < high[s]:
            free[count] = s
            count += 1
    L, d = np.zeros((count, count)), np.zeros(count)
    dependent = np.zeros(count, dtype=np.bool_)  # on those before, up to rounding
    for i in range(count):  # Cholesky, and the solution of the lower triangle
        for j in range(i + 1):
            total = H[free[i], free[j]]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i > j:
                L[i, j] = 0.0 if dependent[j] else total / L[j, j]
            else:
                least = 1e-11 * H[free[i], free[i]]
                dependent[i] = not total > least
                L[i, i] = np.sqrt(max(total, least, 1e-300))
        rest = target[free[i]] - u[free[i]]
        for k in range(i):
            rest -= L[i, k] * d[k]
        d[i] = rest / L[i, i]
    for i in range(count - 1, -1, -1):
        rest = d[i]
        for k in range(i + 1, count):
            rest -= L[k, i] * d[k]
        d[i] = rest / L[i, i]
    step = 1.0
    for i in range(count):
        s = free[i]
        end = high[s] if d[i] > 0 else low[s]
        if abs(step * d[i]) > abs(end - a[s]):
            step = abs(end - a[s]) / abs(d[i])
    gain = 0.0
    for i in range(count):
        s = free[i]
        new = min(max(a[s] + step * d[i], low[s]), high[s])
        change = new - a[s]
        gain += change * (target[s] - u[s] - 0.5 * change * H[s, s])
        a[s] = new
        for t in range(a.size):
            u[t] += change * H[s, t]
    return gain


@numba.njit(cache=True, nogil=True, fastmath=True)
def _add_rows(K, slots, factors, u):
    """Add multiples of rows of K to u, eight rows at a time: as fast as memory gives them."""
    n = u.size
    s = 0
    while s + 8 <= slots.size:
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
    while s < slots.size:
        row, factor = K[slots[s]], factors[s]
        for j in range(n):
            u[j] += factor * row[j]
        s += 1


@numba.njit(cache=True, nogil=True)
def _entries(values, points):
    """``values[points]``, which would take Numba a second to compile."""
    entries = np.empty(points.size)
    for s in range(points.size):
        entries[s] = values[points[s]]
    return entries


@numba.njit(cache=True, nogil=True)
def _improve(stored, points, label):
    """Solve for ``points``, with rows of K as `_rows` returns them; return multiply-adds."""
    K, slots = stored
    variance, target, low, high, ridge, a, u = label
    count = points.size
    H = np.empty((count, count))
    for s in range(count):
        row = K[slots[s]]
        for t in range(count):
            H[s, t] = variance * row[points[t]]
    old, new, latent = _entries(a, points), _entries(a, points), _entries(u, points)
    if ridge.size > 0:
        for s in range(count):
            H[s, s] += ridge[points[s]]
            latent[s] += ridge[points[s]] * old[s]
    boxes = _entries(target, points), _entries(low, points), _entries(high, points)
    some = Label(variance, *boxes, ridge, new, latent)
    moves = total = _ascend(H, some)
    most = 0.0
    for _ in range(SUBSPACE_STEPS):
        if moves < MOVES_EACH * count:
            break
        gain = _subspace_step(H, some)
        most = max(most, gain)
        if gain <= PRECISION * most:
            break
        moves = _ascend(H, some)
        total += moves + count * count
    factors = np.empty(count, dtype=K.dtype)
    changed = 0
    for s in range(count):
        if new[s] != old[s]:
            a[points[s]] = new[s]
            slots[changed] = slots[s]
            factors[changed] = variance * (new[s] - old[s])
            changed += 1
    # a number that begins as a literal zero would be compiled for twice, as a literal and as an integer
    _add_rows(K, slots[:changed], factors[:changed], u)
    return float(changed) * a.size + float(total) * count


def _rows(gram, points):
    """Rows of K that hold those of some points, and in which places: here just these, evaluated when needed."""
    return gram.rows(points), np.arange(points.size)


@overload(_rows)
def _stored_rows(K, points):
    return lambda K, points: (K, points.copy())


def visit(K, label, factor, floor, size, vain_rounds):
    """Lower the gap of one label to ``factor`` times what it is, or to ``floor``.

    K is `GramRows`, or a stored matrix for the compiled form; ``size`` is the number of points in a working set.
    Returns multiply-adds, and whether ``vain_rounds`` rounds did not lower the gap.
    """
    _, target, low, high, ridge, a, u = label
    pull = np.empty(a.size)
    points = np.empty(size, dtype=np.int64)
    goal = work = 0.0
    best, since, vain = np.inf, 0, False
    for turn in range(MAX_ROUNDS):
        _, gap, strongest = pulls(target, low, high, ridge, a, u, pull)
        if turn == 0:
            goal = max(factor * gap, floor)
        if gap < 0.999 * best:
            best, since = gap, turn
        vain = turn - since > vain_rounds
        if gap <= goal or strongest == 0 or not strongest < OVERFLOW or vain:
            break
        chosen = points[: _strongest_points(pull, strongest, points)]
        # no name holds the rows: they are gone before the next ones are evaluated
        work += _improve(_rows(K, chosen), chosen, label)
    return work, vain


visit_stored = numba.njit(visit, cache=True, nogil=True)


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


@numba.njit(cache=True, nogil=True)
def tell_others(labels, label, change, lack, up, down, gaps):
    """Let the lacks T − R V of all labels follow the change of one row of V, and write their gaps.

    ``up`` = high − A and ``down`` = low − A are in float32: they only weigh lacks, of losses that are not squared.
    """
    # in parallel it took twice as long: threads must be woken after each visit
    for k in range(gaps.size):
        weight = labels.R[label, k]
        if labels.ridge.shape[1] == 0:
            gaps[k] = _shifted_gap(weight, change, lack[k], up[k], down[k])
        else:
            gaps[k] = _shifted_gap_with_ridge(labels, k, weight, change, lack[k])


@numba.njit(cache=True, nogil=True, fastmath=True)
def _shifted_gap(weight, change, lack, up, down):
    """Subtract a multiple of ``change`` from the lacks of a label; return its gap."""
    gap = 0.0
    for i in range(lack.size):
        p = lack[i] - weight * change[i]
        lack[i] = p
        gap += max(p, 0.0) * up[i] + min(p, 0.0) * down[i]
    return gap


@numba.njit(cache=True, nogil=True)
def _shifted_gap_with_ridge(labels, k, weight, change, lack):
    """As `_shifted_gap`, for squared hinge losses."""
    gap = 0.0
    for i in range(lack.size):
        lack[i] -= weight * change[i]
        bound = labels.high[k, i] + labels.low[k, i]
        gap += gap_with_ridge(lack[i], labels.ridge[k, i], bound, labels.A[k, i])
    return gap
