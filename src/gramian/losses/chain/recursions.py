"""Scaled forward–backward recursions of linear chains, and their derivative: compiled loops over sequences.

With ``e_t = exp(u_t − max u_t)`` and ``E = exp(T − max T)`` the recursions are

    f_t = (α_{t-1} E) ∘ e_t,   α_t = f_t / c_t,   c_t = Σ f_t          forwards
    g_t = e_t ∘ β_t / c_t,     β_{t-1} = E g_t                        backwards
    p_t = α_t ∘ β_t,           ξ_t = E ∘ (α_{t-1}ᵀ g_t)                marginals of labels and of pairs
    log Z = Σ_t (log c_t + max u_t) + (length − 1) max T.

The product of the Hessian with (v, V) comes from differentiating them, without divisions and logarithms:

    L_t = (L_{t-1} E + α_{t-1} (E∘V)) ∘ e_t/c_t + α_t ∘ v_t
    R_{t-1} = E (g_t∘v_t + h_t) + (E∘V) g_t,      h_t = e_t∘R_t/c_t
    (Wv)_t = L_t∘β_t + α_t∘R_t − p_t φ,      φ = Σ (L_t∘β_t + α_t∘R_t), the same at every t
    (Wv)_T = E ∘ Σ_t [(L_{t-1} − φ α_{t-1})ᵀ g_t + α_{t-1}ᵀ (g_t∘v_t + h_t)] + (E∘V) ∘ Σ_t α_{t-1}ᵀ g_t.

T and V may be other tables at each position; sums over t are then kept apart. A *unit* is one sequence of one of the q
problems in lockstep; units are shared among threads. Arrays of positions are (q, n, C), so that what a loop reads lies
side by side.

Cost: 2 n C² multiplications for the marginals, 6 n C² for a product. Where a scale c_t is tiny the path that the labels
take has been lost to underflow, or soon will be; such a unit is marked and left to `log_recursions`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

# Sums may be reordered; infinities and NaN keep their meaning, because forbidden labels have a score of −∞.
FLAGS = {"reassoc", "contract", "nsz", "arcp"}

SMALLEST_SCALE = 1e-50  # of c_t: forward and backward messages stay within the range of float64


class Units(NamedTuple):
    """The sequences of q problems, and which of them count."""

    bounds: np.ndarray  # (n_sequences + 1,): first positions
    tables: np.ndarray  # (n,): which table of transitions leads to each position
    live: np.ndarray  # (q, n_sequences): whether a unit has weight
    lost: np.ndarray  # (q, n_sequences): whether it has to go through logarithms
    weights: np.ndarray  # (q, n_sequences)


class Messages(NamedTuple):
    """What a sweep finds; logarithms of it for units that are lost."""

    alpha: np.ndarray  # (q, n, C)
    beta: np.ndarray  # (q, n, C)
    scaled: np.ndarray  # (q, n, C): e_t / c_t
    log_z: np.ndarray  # (q, n_sequences)


@njit(cache=True, nogil=True, fastmath=FLAGS)
def sweep(first, last, units, u, E, most, messages):
    """Fill the messages of some units, and mark those that are lost."""
    n_sequences, C = units.bounds.size - 1, E.shape[2]
    f = np.empty(C)
    for unit in range(first, last):
        j, s = unit // n_sequences, unit % n_sequences
        lo, hi = units.bounds[s], units.bounds[s + 1]
        if not units.live[j, s] or lo == hi:
            continue
        z = (hi - lo - 1) * most[j]
        for t in range(lo, hi):
            ut, scaled, alpha = u[j, t], messages.scaled[j, t], messages.alpha[j, t]
            top = ut[0]
            for b in range(1, C):
                top = max(top, ut[b])
            if t == lo:
                f[:] = 1.0
            else:
                f[:] = 0.0
                before, table = messages.alpha[j, t - 1], E[j, units.tables[t]]
                for a in range(C):
                    weight, row = before[a], table[a]
                    for b in range(C):
                        f[b] += weight * row[b]
            c = 0.0
            for b in range(C):
                scaled[b] = math.exp(ut[b] - top)
            for b in range(C):
                f[b] *= scaled[b]
                c += f[b]
            if not c >= SMALLEST_SCALE:
                units.lost[j, s] = True
                break
            share = 1.0 / c
            for b in range(C):
                alpha[b] = f[b] * share
                scaled[b] *= share
            z += math.log(c) + top
        if units.lost[j, s]:
            continue
        messages.log_z[j, s] = z
        messages.beta[j, hi - 1, :] = 1.0
        for t in range(hi - 1, lo, -1):
            scaled, beta, before = (
                messages.scaled[j, t],
                messages.beta[j, t],
                messages.beta[j, t - 1],
            )
            table = E[j, units.tables[t]]
            for b in range(C):
                f[b] = scaled[b] * beta[b]
            for a in range(C):
                row, total = table[a], 0.0
                for b in range(C):
                    total += row[b] * f[b]
                before[a] = total


@njit(cache=True, nogil=True, fastmath=FLAGS)
def expect(first, last, units, messages, out, joint):
    """Add weighted marginals of labels to ``out`` and ``Σ_t w α_{t-1}ᵀ g_t`` to ``joint``, for some units."""
    n_sequences, C = units.bounds.size - 1, out.shape[2]
    g = np.empty(C)
    for unit in range(first, last):
        j, s = unit // n_sequences, unit % n_sequences
        if not units.live[j, s] or units.lost[j, s]:
            continue
        lo, hi, w = units.bounds[s], units.bounds[s + 1], units.weights[j, s]
        for t in range(lo, hi):
            alpha, beta, scaled, row = (
                messages.alpha[j, t],
                messages.beta[j, t],
                messages.scaled[j, t],
                out[j, t],
            )
            for b in range(C):
                row[b] += w * alpha[b] * beta[b]
                g[b] = w * scaled[b] * beta[b]
            if t > lo:
                before, pairs = messages.alpha[j, t - 1], joint[j, units.tables[t]]
                for a in range(C):
                    weight, sums = before[a], pairs[a]
                    for b in range(C):
                        sums[b] += weight * g[b]


@njit(cache=True, nogil=True, fastmath=FLAGS)
def differentiate(first, last, units, messages, matrices, v, out, joint):
    """Fill the rows of W v of some units, and add the first sum of (Wv)_T, without its factor E, to ``joint``.

    ``matrices`` are E and E∘V.
    """
    E, EV = matrices
    n_sequences, C = units.bounds.size - 1, E.shape[2]
    g, gh, R, f = np.empty(C), np.empty(C), np.empty(C), np.empty(C)
    for unit in range(first, last):
        j, s = unit // n_sequences, unit % n_sequences
        lo, hi, w = units.bounds[s], units.bounds[s + 1], units.weights[j, s]
        if not units.live[j, s] or units.lost[j, s] or lo == hi:
            continue
        for t in range(lo, hi):  # L, in the place of the result
            f[:] = 0.0
            if t > lo:
                before, alpha = out[j, t - 1], messages.alpha[j, t - 1]
                table, change = E[j, units.tables[t]], EV[j, units.tables[t]]
                for a in range(C):
                    left, weight, row, bent = before[a], alpha[a], table[a], change[a]
                    for b in range(C):
                        f[b] += left * row[b] + weight * bent[b]
            alpha, scaled, vt, left_sum = (
                messages.alpha[j, t],
                messages.scaled[j, t],
                v[j, t],
                out[j, t],
            )
            for b in range(C):
                left_sum[b] = f[b] * scaled[b] + alpha[b] * vt[b]
        mean = 0.0
        for b in range(C):
            mean += out[j, hi - 1, b] * messages.beta[j, hi - 1, b]
        R[:] = 0.0
        for t in range(hi - 1, lo - 1, -1):
            alpha, beta, scaled = messages.alpha[j, t], messages.beta[j, t], messages.scaled[j, t]
            vt, row_out = v[j, t], out[j, t]
            for b in range(C):
                g[b] = scaled[b] * beta[b]
                gh[b] = g[b] * vt[b] + scaled[b] * R[b]
                together = row_out[b] * beta[b] + alpha[b] * R[b]
                row_out[b] = w * (together - alpha[b] * beta[b] * mean)
            if t > lo:
                before, left_sum, number = messages.alpha[j, t - 1], out[j, t - 1], units.tables[t]
                table, change, pairs = E[j, number], EV[j, number], joint[j, number]
                for a in range(C):
                    weight = w * before[a]
                    left = w * left_sum[a] - mean * weight
                    total, row, bent, sums = 0.0, table[a], change[a], pairs[a]
                    for b in range(C):
                        sums[b] += left * g[b] + weight * gh[b]
                        total += row[b] * gh[b] + bent[b] * g[b]
                    R[a] = total
