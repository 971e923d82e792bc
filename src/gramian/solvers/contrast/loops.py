"""Compiled loops of `contrast_ascent`: pairwise steps on the coefficients of one example.

A unit is one loss: an example with a label, a cap, and coefficients for contrasts of the label. Most contrasts of many
classes have a coefficient of zero; those that do not have *slots*, and a unit that needs more of them waits until
`contrast_ascent` has made room.

Small functions are inlined: Numba counts references to every array of a tuple that it passes on, which took half of the
time of a visit.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from gramian.operators.inputs.feature_rows import panel_dot, row_add, row_dot

LINE = 8  # a column of sums that is read alone costs a line of the cache, as much as so many neighbours
MAX_STEPS = 10  # between contrasts, in one visit
MOST_FOLLOWED = 32  # scores that follow a step one by one; where it changes more, those needed are computed anew
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
    width: np.ndarray  # how many of these each label needs
    form: tuple  # F of S = F Fᵀ: start, latent, value of a `Factor`
    columns: tuple  # F by its columns: start, output, and the place of the entry in the rows
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
    read: np.ndarray  # the latent sums that are read one by one
    seen: np.ndarray  # whether a latent sum is one of them


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
        np.zeros(n_latent, dtype=np.int64),
        np.zeros(n_latent, dtype=np.bool_),
    )


@numba.njit(cache=True, nogil=True, inline="always")
def _scores(form, first, end, q, f):
    """Write the scores of the outputs first to end − 1, F q."""
    start, latent, value = form
    for i in range(first, end):
        total = 0.0
        for e in range(start[i], start[i + 1]):
            total += value[e] * q[latent[e]]
        f[i] = total


@numba.njit(cache=True, nogil=True, inline="always")
def _scores_of(dual, unit, everything, q, f):
    """Write the scores of the outputs that the label of a unit needs, or of those that its slots need."""
    if everything:
        label, outputs = dual.labels[unit], dual.outputs
        for part in range(outputs.start[label], outputs.start[label + 1]):
            _scores(dual.form, outputs.first[part], outputs.end[part], q, f)
        return
    for slot in range(dual.begin[unit], dual.begin[unit] + dual.counts[unit]):
        for i in (dual.own[dual.row[slot]], dual.rival[slot]):
            _scores(dual.form, i, i + 1, q, f)


@numba.njit(cache=True, nogil=True, inline="always")
def _largest(f, first, end):
    """The number of the largest score of a range."""
    top = first
    for j in range(first + 1, end):
        if f[j] > f[top]:
            top = j
    return top


@numba.njit(cache=True, nogil=True, inline="always")
def _dearest(dual, label, f):
    """Row and rival of the contrast of a label that costs most, and what it costs; a row of −1 if none costs any."""
    best, rival, most = -1, -1, 0.0
    for a in range(dual.start[label], dual.start[label + 1]):
        top = _largest(f, dual.first[a], dual.end[a])
        cost = dual.scale[a] * (1.0 - f[dual.own[a]] + f[top])
        if cost > most:
            best, rival, most = a, top, cost
    return best, rival, most


@numba.njit(cache=True, nogil=True, inline="always")
def _towards(form, output, amount, direction, n_places):
    """Add a multiple of a row of F to the direction of a step; return the number of its places."""
    start, latent, value = form
    step, places, listed = direction
    for e in range(start[output], start[output + 1]):
        r = latent[e]
        if not listed[r]:
            listed[r] = True
            places[n_places] = r
            n_places += 1
        step[r] += amount * value[e]
    return n_places


@numba.njit(cache=True, nogil=True, inline="always")
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
def _ascend(dual, unit, square, everything, space):
    """Pairwise steps on the coefficients of one unit, in place.

    Each moves weight from the contrast that costs least, of those that have some, to the one that costs most, of all or
    of those that have a slot; weight that is not used counts as a contrast without cost. ``space.q`` is Y x for the
    example x of the unit, ``square`` is |x|²; ``space.change`` collects by how much the coefficients of latent sums
    grow. Return whether anything changed.
    """
    label, cap, form, f = dual.labels[unit], dual.caps[unit], dual.form, space.f
    own, scale, row, rivals, beta = dual.own, dual.scale, dual.row, dual.rival, dual.beta
    direction = space.step, space.places, space.listed
    begin, total, changed = dual.begin[unit], 0.0, False
    for slot in range(begin, begin + dual.counts[unit]):
        total += beta[slot]
    stale = True
    for _ in range(MAX_STEPS):
        if stale:
            _scores_of(dual, unit, everything, space.q, f)
        target, best, rival, most = -1, -1, -1, 0.0
        if everything:
            best, rival, most = _dearest(dual, label, f)
        worst, least = -2, np.inf
        if cap - total > ROUNDING * cap:
            worst, least = -1, 0.0
        for slot in range(begin, begin + dual.counts[unit]):
            cost = scale[row[slot]] * (1.0 - f[own[row[slot]]] + f[rivals[slot]])
            if cost < least:
                worst, least = slot, cost
            if cost > most:
                best, rival, most = row[slot], rivals[slot], cost
        if worst == -2 or most - least <= ROUNDING:
            break
        n_places = 0
        if best >= 0:
            target = _slot_of(dual, unit, best, rival)
            if target < 0:
                break
            n_places = _towards(form, own[best], scale[best], direction, n_places)
            n_places = _towards(form, rival, -scale[best], direction, n_places)
        if worst >= 0:
            a = row[worst]
            n_places = _towards(form, own[a], -scale[a], direction, n_places)
            n_places = _towards(form, rivals[worst], scale[a], direction, n_places)
        curvature = square * _squared(direction, n_places)
        step = cap - total if worst < 0 else beta[worst]
        emptied = worst >= 0
        if curvature * step > most - least:
            step, emptied = (most - least) / curvature, False
        stale, changed = _take(dual, space, n_places, step, square), True
        if target >= 0:
            dual.counts[unit] = max(dual.counts[unit], target - begin + 1)
            beta[target] += step
            total += step
        if worst >= 0:
            total -= step
            beta[worst] -= step
            if emptied:
                _release(dual, unit, worst)
    return changed


@numba.njit(cache=True, nogil=True, inline="always")
def _squared(direction, n_places):
    """The square of the direction of a step."""
    step, places, _ = direction
    total = 0.0
    for place in range(n_places):
        total += step[places[place]] ** 2
    return total


@numba.njit(cache=True, nogil=True, inline="always")
def _take(dual, space, n_places, step, square):
    """Take a step, and forget its direction; return whether scores are stale, since it changes many of them."""
    q, f, change, direction, places = space.q, space.f, space.change, space.step, space.places
    (start, output, entry), value = dual.columns, dual.form[2]
    reached = 0
    for place in range(n_places):
        reached += start[places[place] + 1] - start[places[place]]
    for place in range(n_places):
        r = places[place]
        amount = step * direction[r]
        change[r] += amount
        q[r] += square * amount
        direction[r], space.listed[r] = 0.0, False
        if reached <= MOST_FOLLOWED:
            for e in range(start[r], start[r + 1]):
                f[output[e]] += square * amount * value[entry[e]]
    return reached > MOST_FOLLOWED


@numba.njit(cache=True, nogil=True, inline="always")
def _release(dual, unit, slot):
    """Give a slot back: the last one in use takes its place."""
    dual.counts[unit] -= 1
    last = dual.begin[unit] + dual.counts[unit]
    dual.row[slot], dual.rival[slot] = dual.row[last], dual.rival[last]
    dual.beta[slot] = dual.beta[last]


@numba.njit(cache=True)
def _needed_by_slots(dual, unit, space):
    """List the latent sums that scores of the slots of a unit are made of; return how many there are."""
    start, latent, _ = dual.form
    size, read, seen = 0, space.read, space.seen
    for slot in range(dual.begin[unit], dual.begin[unit] + dual.counts[unit]):
        for i in (dual.own[dual.row[slot]], dual.rival[slot]):
            for e in range(start[i], start[i + 1]):
                if not seen[latent[e]]:
                    seen[latent[e]] = True
                    read[size] = latent[e]
                    size += 1
    for place in range(size):
        seen[read[place]] = False
    return size


@numba.njit(cache=True, nogil=True, inline="always")
def _follow(X, x, r, change, Y, A):
    """Let column r of Y, and of A, follow the change of an example."""
    row_add(X, x, change[r], Y[:, r])
    if A.size > 0:
        A[x, r] += change[r]
    change[r] = 0.0


@numba.njit(cache=True, nogil=True, inline="always")
def _alone(dual, unit):
    """At most how many columns the scores of the slots of a unit are made of."""
    start, total = dual.form[0], 0
    for slot in range(dual.begin[unit], dual.begin[unit] + dual.counts[unit]):
        i, j = dual.own[dual.row[slot]], dual.rival[slot]
        total += start[i + 1] - start[i] + start[j + 1] - start[j]
    return total


@numba.njit(cache=True)
def visit(X, squares, places, order, everything, dual, Y, A):
    """Visit units one after the other: steps on their coefficients, then Y brought up to date.

    ``places`` are those of their examples in X. X are features and Y their latent sums, shape (n_features, n_latent);
    or X is the Gram matrix of a block of examples, Y are the latent scores of these, and A collects the changes of
    their coefficients. With features A is empty. ``squares`` are the inner products of examples with themselves.
    ``everything`` says whether to look at all contrasts; else it is those with a slot, unless all of them take no more
    lines of the cache. Return how many columns of Y were read and changed.
    """
    by_scores, latents = A.size > 0, dual.latents
    space, columns = scratch(dual.form[0].size - 1, Y.shape[1]), 0
    for k, x in zip(order, places):
        if dual.caps[k] == 0 or not (everything or dual.counts[k]):
            continue
        label, size = dual.labels[k], 0
        every = everything or LINE * _alone(dual, k) >= dual.width[label]
        if every:
            for part in range(latents.start[label], latents.start[label + 1]):
                if not by_scores:
                    panel_dot(X, x, Y, latents.first[part], latents.end[part], space.q)
                for r in range(latents.first[part], latents.end[part]):
                    space.read[size] = r
                    size += 1
        else:
            size = _needed_by_slots(dual, k, space)
            if not by_scores:
                for r in space.read[:size]:
                    space.q[r] = row_dot(X, x, Y[:, r])
        if by_scores:
            for r in space.read[:size]:
                space.q[r] = Y[x, r]
        columns += size
        if _ascend(dual, k, squares[x], every, space):
            for r in space.read[:size]:
                if space.change[r] != 0:
                    _follow(X, x, r, space.change, Y, A)
                    columns += 1
    return columns


@numba.njit(cache=True, nogil=True)
def _gap(dual, unit, space):
    """Loss c ℓ of one unit and its part of the gap, from q = Y x."""
    f, own, scale = space.f, dual.own, dual.scale
    _scores_of(dual, unit, True, space.q, f)
    _, _, largest = _dearest(dual, dual.labels[unit], f)
    paid = 0.0
    for slot in range(dual.begin[unit], dual.begin[unit] + dual.counts[unit]):
        a = dual.row[slot]
        paid += dual.beta[slot] * scale[a] * (1.0 - f[own[a]] + f[dual.rival[slot]])
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
