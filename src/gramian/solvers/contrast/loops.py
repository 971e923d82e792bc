"""Compiled loops of `contrast_ascent`: pairwise steps on the coefficients of one example.

A unit is one loss: an example with a label, a cap, and coefficients for contrasts of the label. Most contrasts of many
classes have a coefficient of zero; those that do not have *slots*, and a unit that needs more of them waits until
`contrast_ascent` has made room.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from gramian.operators.inputs.feature_rows import panel_dot, row_add

MAX_STEPS = 10  # between contrasts, in one visit
ROUNDING = 1e-14  # relative: less room or less to gain than this is rounding


class Ranges(NamedTuple):
    """Ranges of numbers, some for each label."""

    start: np.ndarray  # those of label c are start[c] to start[c + 1] - 1
    first: np.ndarray
    end: np.ndarray


class Dual(NamedTuple):
    """A contrast problem and its dual coefficients; counts, rows, rivals and beta are changed by loops."""

    start: np.ndarray  # rows of contrasts of each label, as `Contrasts` has them
    own: np.ndarray
    first: np.ndarray
    end: np.ndarray
    scale: np.ndarray
    outputs: Ranges  # whose scores a label needs
    latents: Ranges  # whose sums these scores are made of
    form: tuple  # F of S = F Fᵀ: start, latent, value of a `Factor`
    examples: np.ndarray  # of each unit, as labels, caps, begin and counts
    labels: np.ndarray
    caps: np.ndarray
    begin: np.ndarray  # where its slots begin; begin[k + 1] is where they end
    counts: np.ndarray  # how many slots are in use
    row: np.ndarray  # of each slot: the row of its contrast, as rival and beta
    rival: np.ndarray
    beta: np.ndarray


class Scratch(NamedTuple):
    """Space for what is known while a unit is visited."""

    q: np.ndarray  # Y x for the example x, shape (n_latent,)
    f: np.ndarray  # scores F Y x, shape (m,)
    change: np.ndarray  # by how much the coefficients of latent sums grow, shape (n_latent,)
    step: np.ndarray  # Fᵀ e for the direction e of a step, shape (n_latent,)
    places: np.ndarray  # where that may not be zero
    listed: np.ndarray  # whether a latent sum is among the places


@numba.njit(cache=True, nogil=True)
def scratch(m, n_latent):
    """Return empty `Scratch`."""
    return Scratch(
        np.zeros(n_latent),
        np.zeros(m),
        np.zeros(n_latent),
        np.zeros(n_latent),
        np.zeros(n_latent, dtype=np.int64),
        np.zeros(n_latent, dtype=np.bool_),
    )


@numba.njit(cache=True, nogil=True)
def _scores(dual, label, q, f):
    """f = F q for the outputs that a label needs."""
    start, latent, value = dual.form
    for part in range(dual.outputs.start[label], dual.outputs.start[label + 1]):
        for i in range(dual.outputs.first[part], dual.outputs.end[part]):
            total = 0.0
            for e in range(start[i], start[i + 1]):
                total += value[e] * q[latent[e]]
            f[i] = total


@numba.njit(cache=True, nogil=True)
def _dearest(dual, label, f):
    """Row and rival of the contrast of a label that costs most, and what it costs; a row of −1 if none costs any."""
    best, rival, most = -1, -1, 0.0
    for a in range(dual.start[label], dual.start[label + 1]):
        top = dual.first[a]
        for j in range(dual.first[a] + 1, dual.end[a]):
            if f[j] > f[top]:
                top = j
        cost = dual.scale[a] * (1.0 - f[dual.own[a]] + f[top])
        if cost > most:
            best, rival, most = a, top, cost
    return best, rival, most


@numba.njit(cache=True, nogil=True)
def _cost(dual, slot, f):
    """What the contrast of a slot costs."""
    a = dual.row[slot]
    return dual.scale[a] * (1.0 - f[dual.own[a]] + f[dual.rival[slot]])


@numba.njit(cache=True)
def _towards(dual, output, amount, space, n_places):
    """Add a multiple of a row of F to the direction of a step; return the number of its places."""
    start, latent, value = dual.form
    for e in range(start[output], start[output + 1]):
        r = latent[e]
        if not space.listed[r]:
            space.listed[r] = True
            space.places[n_places] = r
            n_places += 1
        space.step[r] += amount * value[e]
    return n_places


@numba.njit(cache=True)
def _slot_of(dual, unit, row, rival):
    """The slot of a contrast, the first free one if it has none, or −1 if there is none."""
    last = dual.begin[unit] + dual.counts[unit]
    for slot in range(dual.begin[unit], last):
        if dual.rival[slot] == rival and dual.row[slot] == row:
            return slot
    if last == dual.begin[unit + 1]:
        return -1
    dual.row[last], dual.rival[last], dual.beta[last] = row, rival, 0.0
    return last


@numba.njit(cache=True)
def _ascend(dual, unit, square, space):
    """Pairwise steps on the coefficients of one unit, in place.

    Each moves weight from the contrast that costs least, of those that have some, to the one that costs most; weight
    that is not used counts as a contrast without cost. ``space.q`` is Y x for the example x of the unit, ``square`` is
    |x|²; ``space.change`` collects by how much the coefficients of latent sums grow. Return whether anything changed.
    """
    label, cap = dual.labels[unit], dual.caps[unit]
    begin, changed, total = dual.begin[unit], False, 0.0
    for slot in range(begin, begin + dual.counts[unit]):
        total += dual.beta[slot]
    for _ in range(MAX_STEPS):
        _scores(dual, label, space.q, space.f)
        best, rival, most = _dearest(dual, label, space.f)
        worst, least = -2, np.inf
        if cap - total > ROUNDING * cap:
            worst, least = -1, 0.0
        for slot in range(begin, begin + dual.counts[unit]):
            cost = _cost(dual, slot, space.f)
            if cost < least:
                worst, least = slot, cost
        if worst == -2 or most - least <= ROUNDING:
            break
        n_places, target = 0, -1
        if best >= 0:
            target = _slot_of(dual, unit, best, rival)
            if target < 0:
                break
            n_places = _towards(dual, dual.own[best], dual.scale[best], space, n_places)
            n_places = _towards(dual, rival, -dual.scale[best], space, n_places)
        if worst >= 0:
            a = dual.row[worst]
            n_places = _towards(dual, dual.own[a], -dual.scale[a], space, n_places)
            n_places = _towards(dual, dual.rival[worst], dual.scale[a], space, n_places)
        curvature = 0.0
        for place in range(n_places):
            curvature += space.step[space.places[place]] ** 2
        step = cap - total if worst < 0 else dual.beta[worst]
        emptied = worst >= 0
        if square * curvature * step > most - least:
            step = (most - least) / (square * curvature)
            emptied = False
        for place in range(n_places):
            r = space.places[place]
            space.change[r] += step * space.step[r]
            space.q[r] += square * step * space.step[r]
            space.step[r], space.listed[r] = 0.0, False
        changed = True
        if target >= 0:
            dual.counts[unit] = max(dual.counts[unit], target - begin + 1)
            dual.beta[target] += step
            total += step
        if worst >= 0:
            total -= step
            dual.beta[worst] -= step
            if emptied:
                _release(dual, unit, worst)
    return changed


@numba.njit(cache=True)
def _release(dual, unit, slot):
    """Give a slot back: the last one in use takes its place."""
    dual.counts[unit] -= 1
    last = dual.begin[unit] + dual.counts[unit]
    dual.row[slot], dual.rival[slot] = dual.row[last], dual.rival[last]
    dual.beta[slot] = dual.beta[last]


@numba.njit(cache=True)
def visit(X, squares, places, order, dual, Y, A):
    """Visit units one after the other: steps on their coefficients, then Y brought up to date.

    ``places`` are those of their examples in X. X are features and Y their latent sums, shape (n_features, n_latent);
    or X is the Gram matrix of a block of examples, Y are the latent scores of these, and A collects the changes of
    their coefficients. With features A is empty. ``squares`` are the inner products of examples with themselves. Return
    how many columns of Y were read and changed.
    """
    by_scores = A.size > 0
    space = scratch(dual.form[0].size - 1, Y.shape[1])
    columns, latents = 0, dual.latents
    for k, x in zip(order, places):
        label = dual.labels[k]
        if dual.caps[k] == 0 or dual.start[label] == dual.start[label + 1]:
            continue
        for part in range(latents.start[label], latents.start[label + 1]):
            first, end = latents.first[part], latents.end[part]
            columns += end - first
            if by_scores:
                for r in range(first, end):  # a slice would take a second to compile
                    space.q[r] = Y[x, r]
            else:
                panel_dot(X, x, Y, first, end, space.q)
        if not _ascend(dual, k, squares[x], space):
            continue
        for part in range(latents.start[label], latents.start[label + 1]):
            for r in range(latents.first[part], latents.end[part]):
                amount = space.change[r]
                if amount != 0:
                    space.change[r] = 0.0
                    row_add(X, x, amount, Y[:, r])
                    if by_scores:
                        A[x, r] += amount
                    columns += 1
    return columns


@numba.njit(cache=True, nogil=True)
def _gap(dual, unit, space):
    """Loss c ℓ of one unit and its part of the gap, from q = Y x."""
    _scores(dual, dual.labels[unit], space.q, space.f)
    _, _, largest = _dearest(dual, dual.labels[unit], space.f)
    paid = 0.0
    for slot in range(dual.begin[unit], dual.begin[unit] + dual.counts[unit]):
        paid += dual.beta[slot] * _cost(dual, slot, space.f)
    return dual.caps[unit] * largest, dual.caps[unit] * largest - paid


@numba.njit(cache=True, nogil=True)
def scan(X, dual, Y, losses, gaps, start, stop):
    """Write the losses and gaps of the units from ``start`` to ``stop``, from features."""
    space, latents = scratch(dual.form[0].size - 1, Y.shape[1]), dual.latents
    for k in range(start, stop):
        label = dual.labels[k]
        for part in range(latents.start[label], latents.start[label + 1]):
            panel_dot(X, dual.examples[k], Y, latents.first[part], latents.end[part], space.q)
        losses[k], gaps[k] = _gap(dual, k, space)


@numba.njit(cache=True, nogil=True)
def scan_scores(V, dual, losses, gaps, start, stop):
    """Write the losses and gaps of the units from ``start`` to ``stop``, from latent scores V (n, n_latent)."""
    space, latents = scratch(dual.form[0].size - 1, V.shape[1]), dual.latents
    for k in range(start, stop):
        label = dual.labels[k]
        for part in range(latents.start[label], latents.start[label + 1]):
            for r in range(latents.first[part], latents.end[part]):
                space.q[r] = V[dual.examples[k], r]
        losses[k], gaps[k] = _gap(dual, k, space)


@numba.njit(cache=True)
def add_sums(X, start, latent, value, Y):
    """Add Xᵀ B to Y, for coefficients B of examples in CSR form."""
    for x in range(start.size - 1):
        for e in range(start[x], start[x + 1]):
            row_add(X, x, value[e], Y[:, latent[e]])
