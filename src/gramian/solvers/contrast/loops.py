"""Compiled loops of `contrast_ascent`: pairwise steps on the coefficients of one example.

What loops share goes by three tuples:

- ``coupling = (S, low, high)``: outputs are numbered so that those the penalty couples to i are ``low[i]`` to
  ``high[i] - 1``; S and G are zero, or not needed, elsewhere;
- ``table = (start, own, rival, scale, spans)``: the contrasts of each label, and the range of outputs they need;
- ``units = (examples, labels, caps, first)``: example, label and cap of each loss, and where its coefficients begin.

Features are a dense array or a triple (indptr, indices, data) with unsigned indices.
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
def mixed(coupling, first, last, q, f):
    """f = S q for the outputs first to last − 1."""
    S, low, high = coupling
    for i in range(first, last):
        if high[i] == low[i] + 1:
            f[i] = S[i, i] * q[i]
            continue
        total = 0.0
        for j in range(low[i], high[i]):
            total += S[i, j] * q[j]
        f[i] = total


@numba.njit(cache=True)
def _raise(coupling, output, amount, f, change):
    """Let the coefficient of an output grow by ``amount`` / |x|²: note it in ``change``, follow it with f = S q."""
    S, low, high = coupling
    change[output] += amount
    for j in range(low[output], high[output]):
        f[j] += amount * S[output, j]


@numba.njit(cache=True)
def _curvature(S, i, j, k, l):
    """(e_i − e_j)ᵀ S (e_k − e_l)."""
    return S[i, k] - S[i, l] - S[j, k] + S[j, l]


@numba.njit(cache=True)
def ascend(coupling, contrasts, f, square, beta, cap, change, steps):
    """Pairwise steps on the coefficients of one example, in place.

    Each moves weight from the contrast that costs least, of those that have some, to the one that costs most; weight
    that is not used counts as a contrast without cost. ``f`` are the scores, ``square`` is |x|², ``change`` collects by
    how much the coefficients of outputs grow, times |x|². Return whether anything changed.
    """
    S = coupling[0]
    own, rival, scale = contrasts
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
            curvature += scale[best] ** 2 * _curvature(S, i, j, i, j)
        if worst >= 0:
            k, l = own[worst], rival[worst]
            curvature += scale[worst] ** 2 * _curvature(S, k, l, k, l)
            if best >= 0:
                curvature -= 2.0 * scale[best] * scale[worst] * _curvature(S, i, j, k, l)
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
            _raise(coupling, own[best], amount, f, change)
            _raise(coupling, rival[best], -amount, f, change)
        if worst >= 0:
            total -= step
            amount = square * step * scale[worst]
            _raise(coupling, own[worst], -amount, f, change)
            _raise(coupling, rival[worst], amount, f, change)
    return changed


@numba.njit(cache=True)
def _contrasts_of(table, label):
    """Own output, rival and scale of each contrast of a label."""
    start, own, rival, scale, _ = table
    a, b = start[label], start[label + 1]
    return own[a:b], rival[a:b], scale[a:b]


@numba.njit(cache=True)
def _follow(coupling, G, output, amount, square, q):
    """G after the coefficient of an output has grown by ``amount``, for an example with scores q before and |x|²."""
    _, low, high = coupling
    for j in range(low[output], high[output]):
        G[output, j] += amount * q[j]
        G[j, output] += amount * q[j]
    G[output, output] += amount * amount * square


@numba.njit(cache=True)
def visit(X, squares, order, units, table, coupling, beta, P, G, steps):
    """Visit units one after the other: scores from P, steps, P and G brought up to date. Return columns changed."""
    examples, labels, caps, begin = units
    m = P.shape[1]
    q, f, change = np.empty(m), np.empty(m), np.zeros(m)
    touched = 0
    for k in order:
        x, label = examples[k], labels[k]
        first, last = table[4][label]
        if caps[k] == 0 or first == last:
            continue
        square = squares[x]
        outputs_of(X, x, P, first, last, q)
        mixed(coupling, first, last, q, f)
        coefficients = beta[begin[k] : begin[k + 1]]
        contrasts = _contrasts_of(table, label)
        if ascend(coupling, contrasts, f, square, coefficients, caps[k], change, steps):
            for output in range(first, last):
                if change[output] != 0:
                    amount = change[output] / square
                    change[output] = 0.0
                    _follow(coupling, G, output, amount, square, q)
                    q[output] += amount * square
                    add_example(X, x, amount, P, output)
                    touched += 1
    return touched


@numba.njit(cache=True)
def visit_block(K, local, order, units, table, coupling, beta, Q, A, G, steps, passes):
    """Visit units whose examples are a block with Gram matrix K and scores Q, several times over.

    ``local`` is the place of each unit's example in the block, A (block, m) collects changes of its coefficients.
    """
    _, labels, caps, begin = units
    f, change = np.empty(Q.shape[1]), np.zeros(Q.shape[1])
    for _ in range(passes):
        for place in range(order.size):
            k, x = order[place], local[place]
            label, square = labels[k], K[x, x]
            first, last = table[4][label]
            if caps[k] == 0 or first == last:
                continue
            mixed(coupling, first, last, Q[x], f)
            coefficients = beta[begin[k] : begin[k + 1]]
            contrasts = _contrasts_of(table, label)
            if ascend(coupling, contrasts, f, square, coefficients, caps[k], change, steps):
                for output in range(first, last):
                    if change[output] != 0:
                        amount = change[output] / square
                        change[output] = 0.0
                        _follow(coupling, G, output, amount, square, Q[x])
                        A[x, output] += amount
                        for other in range(len(K)):
                            Q[other, output] += amount * K[other, x]


@numba.njit(cache=True)
def _gap_of(contrasts, f, beta, cap):
    """Loss c ℓ of one unit and its part of the gap."""
    own, rival, scale = contrasts
    largest, paid = 0.0, 0.0
    for a in range(own.size):
        cost = scale[a] * (1.0 - f[own[a]] + f[rival[a]])
        largest = max(largest, cost)
        paid += beta[a] * cost
    return cap * largest, cap * largest - paid


@numba.njit(cache=True, parallel=True)
def scan(X, units, table, coupling, beta, P, losses, gaps, chunks):
    """Losses and gaps of all units, from features."""
    examples, labels, caps, begin = units
    for chunk in numba.prange(chunks):
        q, f = np.empty(P.shape[1]), np.empty(P.shape[1])
        for k in range(chunk * labels.size // chunks, (chunk + 1) * labels.size // chunks):
            first, last = table[4][labels[k]]
            outputs_of(X, examples[k], P, first, last, q)
            mixed(coupling, first, last, q, f)
            contrasts = _contrasts_of(table, labels[k])
            losses[k], gaps[k] = _gap_of(contrasts, f, beta[begin[k] : begin[k + 1]], caps[k])


@numba.njit(cache=True, parallel=True)
def scan_scores(Q, units, table, coupling, beta, losses, gaps, chunks):
    """Losses and gaps of all units, from scores Q (n, m)."""
    examples, labels, caps, begin = units
    for chunk in numba.prange(chunks):
        f = np.empty(Q.shape[1])
        for k in range(chunk * labels.size // chunks, (chunk + 1) * labels.size // chunks):
            first, last = table[4][labels[k]]
            mixed(coupling, first, last, Q[examples[k]], f)
            contrasts = _contrasts_of(table, labels[k])
            losses[k], gaps[k] = _gap_of(contrasts, f, beta[begin[k] : begin[k + 1]], caps[k])


@numba.njit(cache=True)
def coefficients(units, table, beta, A):
    """Add ±β ρ of all units to the coefficients A (n, m) of their examples."""
    examples, labels, _, begin = units
    for k in range(labels.size):
        own, rival, scale = _contrasts_of(table, labels[k])
        for a in range(own.size):
            weight = beta[begin[k] + a] * scale[a]
            A[examples[k], own[a]] += weight
            A[examples[k], rival[a]] -= weight
