"""Compiled loops of `contrast_ascent`: pairwise steps on the coefficients of one example.

A unit is one loss: an example with a label, a cap, and a coefficient for each contrast of the label.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from gramian.operators.inputs.feature_rows import panel_dot, row_add

MAX_STEPS = 10  # between contrasts, in one visit
ROUNDING = 1e-14  # relative: less room or less to gain than this is rounding


class Dual(NamedTuple):
    """A contrast problem and its dual coefficients; beta and G are changed by loops."""

    S: (
        np.ndarray
    )  # (m, m); zero, or not needed, between outputs that the penalty does not couple, as G is
    low: np.ndarray  # outputs are numbered so that those coupled to i are low[i] to high[i] − 1
    high: np.ndarray
    start: np.ndarray  # contrasts of each label, as `Contrasts` has them
    own: np.ndarray
    rival: np.ndarray
    scale: np.ndarray
    spans: (
        np.ndarray
    )  # the range of outputs that the contrasts of a label need, shape (n_labels, 2)
    examples: np.ndarray  # of each unit, as labels, caps and begin
    labels: np.ndarray
    caps: np.ndarray
    begin: np.ndarray  # where its coefficients begin
    beta: np.ndarray
    G: np.ndarray  # P Pᵀ, shape (m, m)


@numba.njit(cache=True)
def _mixed(dual, first, last, q, f):
    """f = S q for the outputs first to last − 1."""
    S, low, high = dual.S, dual.low, dual.high
    for i in range(first, last):
        if high[i] == low[i] + 1:
            f[i] = S[i, i] * q[i]
            continue
        total = 0.0
        for j in range(low[i], high[i]):
            total += S[i, j] * q[j]
        f[i] = total


@numba.njit(cache=True)
def _raise(dual, a, amount, f, change):
    """Let the coefficient of contrast a grow: note what its outputs gain in ``change``, follow it with f = S q.

    ``amount`` is what the coefficient grows by, times the scale of the contrast and |x|².
    """
    for output, gain in ((dual.own[a], amount), (dual.rival[a], -amount)):
        change[output] += gain
        for j in range(dual.low[output], dual.high[output]):
            f[j] += gain * dual.S[output, j]


@numba.njit(cache=True)
def _curvature(dual, a, b):
    """(e_i − e_j)ᵀ S (e_k − e_l) of two contrasts, times their scales."""
    S, i, j, k, l = dual.S, dual.own[a], dual.rival[a], dual.own[b], dual.rival[b]
    return dual.scale[a] * dual.scale[b] * (S[i, k] - S[i, l] - S[j, k] + S[j, l])


@numba.njit(cache=True)
def _ascend(dual, unit, square, q, f, change):
    """Pairwise steps on the coefficients of one unit, in place.

    Each moves weight from the contrast that costs least, of those that have some, to the one that costs most; weight
    that is not used counts as a contrast without cost. ``q`` is P x for the example x of the unit, ``square`` is |x|²,
    ``f`` is scratch space, ``change`` collects by how much the coefficients of outputs grow, times |x|². Return whether
    anything changed.
    """
    own, rival, scale = dual.own, dual.rival, dual.scale
    label, cap = dual.labels[unit], dual.caps[unit]
    contrasts = range(dual.start[label], dual.start[label + 1])
    beta = dual.beta[dual.begin[unit] : dual.begin[unit + 1]]
    offset = dual.start[label]
    _mixed(dual, dual.spans[label, 0], dual.spans[label, 1], q, f)
    total = 0.0
    for value in beta:
        total += value
    changed = False
    for _ in range(MAX_STEPS):
        best, most = -1, 0.0
        worst, least = -2, np.inf
        if cap - total > ROUNDING * cap:
            worst, least = -1, 0.0
        for a in contrasts:
            cost = scale[a] * (1.0 - f[own[a]] + f[rival[a]])
            if cost > most:
                best, most = a, cost
            if beta[a - offset] > 0 and cost < least:
                worst, least = a, cost
        if worst == -2 or most - least <= ROUNDING:
            break
        curvature = 0.0
        if best >= 0:
            curvature += _curvature(dual, best, best)
        if worst >= 0:
            curvature += _curvature(dual, worst, worst)
            if best >= 0:
                curvature -= 2.0 * _curvature(dual, best, worst)
        step = cap - total if worst < 0 else beta[worst - offset]
        if square * curvature * step > most - least:
            step = (most - least) / (square * curvature)
            if worst >= 0:
                beta[worst - offset] -= step
        elif worst >= 0:
            beta[worst - offset] = 0.0
        changed = True
        if best >= 0:
            beta[best - offset] += step
            total += step
            _raise(dual, best, square * step * scale[best], f, change)
        if worst >= 0:
            total -= step
            _raise(dual, worst, -square * step * scale[worst], f, change)
    return changed


@numba.njit(cache=True)
def _follow(dual, output, square, q, change):
    """Let G follow the change of an output's coefficient, for an example whose P x was q; return the change."""
    amount = change[output] / square
    change[output] = 0.0
    G = dual.G
    for j in range(dual.low[output], dual.high[output]):
        G[output, j] += amount * q[j]
        G[j, output] += amount * q[j]
    G[output, output] += amount * amount * square
    return amount


@numba.njit(cache=True)
def visit(X, squares, places, order, dual, P, A):
    """Visit units one after the other: steps on their coefficients, then P and G brought up to date.

    ``places`` are those of their examples in X. X are features and P = XᵀA their sums; or X is the Gram matrix of a
    block of examples, P are the scores of these, and A collects the changes of their coefficients. With features A is
    empty. ``squares`` are the inner products of examples with themselves. Return how many columns of P were changed.
    """
    m, by_scores = P.shape[1], A.size > 0
    q, f, change = np.empty(m), np.empty(m), np.zeros(m)
    touched = 0
    for k, x in zip(order, places):
        label = dual.labels[k]
        first, last = dual.spans[label, 0], dual.spans[label, 1]
        if dual.caps[k] == 0 or first == last:
            continue
        if by_scores:
            for output in range(first, last):  # a slice would take a second to compile
                q[output] = P[x, output]
        else:
            panel_dot(X, x, P, first, last, q)
        if not _ascend(dual, k, squares[x], q, f, change):
            continue
        for output in range(first, last):
            if change[output] != 0:
                amount = _follow(dual, output, squares[x], q, change)
                q[output] += amount * squares[x]
                row_add(X, x, amount, P[:, output])
                if by_scores:
                    A[x, output] += amount
                touched += 1
    return touched


@numba.njit(cache=True, nogil=True)
def _gap(dual, unit, q, f):
    """Loss c ℓ of one unit and its part of the gap, from q = P x; f is scratch space."""
    label, cap = dual.labels[unit], dual.caps[unit]
    _mixed(dual, dual.spans[label, 0], dual.spans[label, 1], q, f)
    coefficient = dual.begin[unit]
    largest, paid = 0.0, 0.0
    for a in range(dual.start[label], dual.start[label + 1]):
        cost = dual.scale[a] * (1.0 - f[dual.own[a]] + f[dual.rival[a]])
        largest = max(largest, cost)
        paid += dual.beta[coefficient] * cost
        coefficient += 1
    return cap * largest, cap * largest - paid


@numba.njit(cache=True, nogil=True)
def scan(X, dual, P, losses, gaps, start, stop):
    """Write the losses and gaps of the units from ``start`` to ``stop``, from features."""
    q, f = np.empty(P.shape[1]), np.empty(P.shape[1])
    for k in range(start, stop):
        label = dual.labels[k]
        panel_dot(X, dual.examples[k], P, dual.spans[label, 0], dual.spans[label, 1], q)
        losses[k], gaps[k] = _gap(dual, k, q, f)


@numba.njit(cache=True, nogil=True)
def scan_scores(Q, dual, losses, gaps, start, stop):
    """Write the losses and gaps of the units from ``start`` to ``stop``, from scores Q (n, m)."""
    f = np.empty(Q.shape[1])
    for k in range(start, stop):
        losses[k], gaps[k] = _gap(dual, k, Q[dual.examples[k]], f)


@numba.njit(cache=True)
def coefficients(dual, beta, A):
    """Add ±β ρ of all units to the coefficients A (n, m) of their examples."""
    for k in range(dual.labels.size):
        x, coefficient = dual.examples[k], dual.begin[k]
        for a in range(dual.start[dual.labels[k]], dual.start[dual.labels[k] + 1]):
            weight = beta[coefficient] * dual.scale[a]
            A[x, dual.own[a]] += weight
            A[x, dual.rival[a]] -= weight
            coefficient += 1
