"""Compiled loops of `contrast_ascent`: pairwise steps on the coefficients of one example.

Outputs are numbered so that those coupled by the penalty are ranges ``low[i]`` to ``high[i] - 1``; S and G are zero, or
not needed, elsewhere. Features are a dense array or a triple (indptr, indices, data) with unsigned indices.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import types
from numba.extending import overload

TINY = 1e-14  # relative: less room or less to gain than this is rounding


def outputs_of(X, i, P, first, last, out):
    """Inner products of example i with the columns first to last − 1 of P, into out."""
    raise NotImplementedError


@overload(outputs_of, jit_options={"fastmath": True})
def _outputs_of(X, i, P, first, last, out):
    if isinstance(X, types.Array):

        def dense(X, i, P, first, last, out):
            row = X[i]
            for c in range(first, last):
                out[c] = 0.0
            for j in range(row.size):
                value, column = row[j], P[j]
                for c in range(first, last):
                    out[c] += value * column[c]

        return dense

    def sparse(X, i, P, first, last, out):
        indptr, indices, data = X
        for c in range(first, last):
            out[c] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            value, column = data[e], P[indices[e]]
            for c in range(first, last):
                out[c] += value * column[c]

    return sparse


def add_example(X, i, factor, P, column):
    """Add a multiple of example i to a column of P."""
    raise NotImplementedError


@overload(add_example, jit_options={"fastmath": True})
def _add_example(X, i, factor, P, column):
    if isinstance(X, types.Array):

        def dense(X, i, factor, P, column):
            row = X[i]
            for j in range(row.size):
                P[j, column] += factor * row[j]

        return dense

    def sparse(X, i, factor, P, column):
        indptr, indices, data = X
        for e in range(indptr[i], indptr[i + 1]):
            P[indices[e], column] += factor * data[e]

    return sparse


@numba.njit(cache=True)
def mixed(S, low, high, first, last, q, f):
    """f = S q for the outputs first to last − 1."""
    for i in range(first, last):
        if high[i] == low[i] + 1:
            f[i] = S[i, i] * q[i]
            continue
        total = 0.0
        for j in range(low[i], high[i]):
            total += S[i, j] * q[j]
        f[i] = total


@numba.njit(cache=True)
def _raise(S, low, high, output, amount, f, change):
    """Let the coefficient of an output grow by ``amount`` / |x|²: note it in ``change``, follow it with f = S q."""
    change[output] += amount
    for j in range(low[output], high[output]):
        f[j] += amount * S[output, j]


@numba.njit(cache=True)
def _moved(S, i, j, k, l):
    """(e_i − e_j)ᵀ S (e_k − e_l)."""
    return S[i, k] - S[i, l] - S[j, k] + S[j, l]


@numba.njit(cache=True)
def ascend(S, low, high, f, square, own, rival, scale, beta, cap, change, steps):
    """Pairwise steps on the coefficients of one example, in place.

    Each moves weight from the contrast that costs least, of those that have some, to the one that costs most; not to be
    used is a contrast without cost. ``f`` are the scores, ``square`` is |x|², ``change`` collects by how much the
    coefficients of outputs grow, times |x|². Return whether anything changed.
    """
    total = beta.sum()
    changed = False
    for _ in range(steps):
        best, most = -1, 0.0
        worst, least = -2, np.inf
        if cap - total > TINY * cap:
            worst, least = -1, 0.0
        for a in range(own.size):
            cost = scale[a] * (1.0 - f[own[a]] + f[rival[a]])
            if cost > most:
                best, most = a, cost
            if beta[a] > 0 and cost < least:
                worst, least = a, cost
        if worst == -2 or most - least <= TINY:
            break
        curvature = 0.0
        if best >= 0:
            i, j = own[best], rival[best]
            curvature += scale[best] ** 2 * _moved(S, i, j, i, j)
        if worst >= 0:
            k, l = own[worst], rival[worst]
            curvature += scale[worst] ** 2 * _moved(S, k, l, k, l)
            if best >= 0:
                curvature -= 2.0 * scale[best] * scale[worst] * _moved(S, i, j, k, l)
        step = cap - total if worst < 0 else beta[worst]
        if square * curvature * step > most - least:
            step = (most - least) / (square * curvature)
            if worst >= 0:
                beta[worst] -= step
        elif worst >= 0:
            beta[worst] = 0.0
        changed = True
        if best >= 0:
            beta[best] += step
            total += step
            amount = square * step * scale[best]
            _raise(S, low, high, own[best], amount, f, change)
            _raise(S, low, high, rival[best], -amount, f, change)
        if worst >= 0:
            total -= step
            amount = square * step * scale[worst]
            _raise(S, low, high, own[worst], -amount, f, change)
            _raise(S, low, high, rival[worst], amount, f, change)
    return changed


@numba.njit(cache=True)
def _follow(G, low, high, output, amount, square, q):
    """G and q after the coefficient of an output has grown by ``amount`` for an example with scores q and |x|²."""
    for j in range(low[output], high[output]):
        G[output, j] += amount * q[j]
        G[j, output] += amount * q[j]
    G[output, output] += amount * amount * square
    q[output] += amount * square


@numba.njit(cache=True)
def visit(
    X,
    squares,
    units,
    examples,
    labels,
    caps,
    table,
    spans,
    first_beta,
    beta,
    P,
    S,
    G,
    low,
    high,
    steps,
):
    """Visit units one after the other: scores from P, steps, P and G brought up to date. Return columns changed."""
    start, own, rival, scale = table
    m = len(low)
    q, f, change = np.empty(m), np.empty(m), np.zeros(m)
    touched = 0
    for k in units:
        x, label = examples[k], labels[k]
        first, last = spans[label]
        square = squares[x]
        if caps[k] == 0 or square == 0 or first == last:
            continue
        outputs_of(X, x, P, first, last, q)
        mixed(S, low, high, first, last, q, f)
        some = slice(start[label], start[label + 1])
        coefficients = beta[first_beta[k] : first_beta[k + 1]]
        if ascend(
            S,
            low,
            high,
            f,
            square,
            own[some],
            rival[some],
            scale[some],
            coefficients,
            caps[k],
            change,
            steps,
        ):
            for output in range(first, last):
                if change[output] != 0:
                    amount = change[output] / square
                    change[output] = 0.0
                    _follow(G, low, high, output, amount, square, q)
                    add_example(X, x, amount, P, output)
                    touched += 1
    return touched


@numba.njit(cache=True)
def visit_block(
    K,
    local,
    units,
    labels,
    caps,
    table,
    spans,
    first_beta,
    beta,
    Q,
    A,
    S,
    G,
    low,
    high,
    steps,
    passes,
):
    """Visit units whose examples are a block with Gram matrix K and scores Q, several times over.

    ``local`` is the place of each unit's example in the block, A (block, m) collects changes of its coefficients.
    """
    start, own, rival, scale = table
    m = len(low)
    f, change = np.empty(m), np.zeros(m)
    for _ in range(passes):
        for unit in range(units.size):
            k, x = units[unit], local[unit]
            label, square = labels[k], K[x, x]
            first, last = spans[label]
            if caps[k] == 0 or square <= 0 or first == last:
                continue
            mixed(S, low, high, first, last, Q[x], f)
            some = slice(start[label], start[label + 1])
            coefficients = beta[first_beta[k] : first_beta[k + 1]]
            if ascend(
                S,
                low,
                high,
                f,
                square,
                own[some],
                rival[some],
                scale[some],
                coefficients,
                caps[k],
                change,
                steps,
            ):
                for output in range(first, last):
                    if change[output] != 0:
                        amount = change[output] / square
                        change[output] = 0.0
                        for j in range(low[output], high[output]):
                            G[output, j] += amount * Q[x, j]
                            G[j, output] += amount * Q[x, j]
                        G[output, output] += amount * amount * square
                        A[x, output] += amount
                        for other in range(len(K)):
                            Q[other, output] += amount * K[other, x]


@numba.njit(cache=True)
def _gap_of(f, own, rival, scale, beta, cap):
    """Loss c ℓ of one unit and its part of the gap."""
    largest, paid = 0.0, 0.0
    for a in range(own.size):
        cost = scale[a] * (1.0 - f[own[a]] + f[rival[a]])
        largest = max(largest, cost)
        paid += beta[a] * cost
    return cap * largest, cap * largest - paid


@numba.njit(cache=True, parallel=True)
def scan(
    X,
    units,
    examples,
    labels,
    caps,
    table,
    spans,
    first_beta,
    beta,
    P,
    S,
    low,
    high,
    losses,
    gaps,
    chunks,
):
    """Losses and gaps of units, from features."""
    start, own, rival, scale = table
    m = len(low)
    for chunk in numba.prange(chunks):
        q, f = np.empty(m), np.empty(m)
        for unit in range(chunk * units.size // chunks, (chunk + 1) * units.size // chunks):
            k = units[unit]
            label = labels[k]
            first, last = spans[label]
            outputs_of(X, examples[k], P, first, last, q)
            mixed(S, low, high, first, last, q, f)
            some = slice(start[label], start[label + 1])
            losses[k], gaps[k] = _gap_of(
                f,
                own[some],
                rival[some],
                scale[some],
                beta[first_beta[k] : first_beta[k + 1]],
                caps[k],
            )


@numba.njit(cache=True, parallel=True)
def scan_scores(
    Q, examples, labels, caps, table, spans, first_beta, beta, S, low, high, losses, gaps, chunks
):
    """Losses and gaps of all units, from scores Q (n, m)."""
    start, own, rival, scale = table
    m = len(low)
    for chunk in numba.prange(chunks):
        f = np.empty(m)
        for k in range(chunk * labels.size // chunks, (chunk + 1) * labels.size // chunks):
            label = labels[k]
            first, last = spans[label]
            mixed(S, low, high, first, last, Q[examples[k]], f)
            some = slice(start[label], start[label + 1])
            losses[k], gaps[k] = _gap_of(
                f,
                own[some],
                rival[some],
                scale[some],
                beta[first_beta[k] : first_beta[k + 1]],
                caps[k],
            )


@numba.njit(cache=True)
def coefficients(examples, labels, table, first_beta, beta, A):
    """Add ±β ρ of all units to the coefficients A (n, m) of their examples."""
    start, own, rival, scale = table
    for k in range(labels.size):
        for a in range(start[labels[k]], start[labels[k] + 1]):
            weight = beta[first_beta[k] + a - start[labels[k]]] * scale[a]
            A[examples[k], own[a]] += weight
            A[examples[k], rival[a]] -= weight
