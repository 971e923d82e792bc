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

A *unit* is one sequence of one of the q problems in lockstep; units are shared among threads. Arrays of positions are
(q, n, C), so that what a loop reads lies side by side.

Cost: 2 n C² multiplications for the marginals, 6 n C² for a product. Where a scale c_t is tiny the path that the labels
take has been lost to underflow, or soon will be; such a unit is marked and left to `log_recursions`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# Sums may be reordered; infinities and NaN keep their meaning, because forbidden labels have a score of −∞.
FLAGS = {"reassoc", "contract", "nsz", "arcp"}

SMALLEST_SCALE = 1e-50  # of c_t: forward and backward messages stay within the range of float64


@njit(cache=True, nogil=True, fastmath=FLAGS)
def sweep(first, last, bounds, live, u, E, most, alpha, beta, scaled, log_z, lost):
    """Fill ``alpha``, ``beta``, ``scaled`` (e_t / c_t), ``log_z`` and ``lost`` for some units."""
    n_sequences, C = bounds.size - 1, E.shape[1]
    f = np.empty(C)
    for unit in range(first, last):
        j, s = unit // n_sequences, unit % n_sequences
        lo, hi = bounds[s], bounds[s + 1]
        if not live[j, s] or lo == hi:
            continue
        z = (hi - lo - 1) * most[j]
        for t in range(lo, hi):
            top = u[j, t, 0]
            for b in range(1, C):
                top = max(top, u[j, t, b])
            for b in range(C):
                f[b] = 1.0 if t == lo else 0.0
            if t > lo:
                for a in range(C):
                    weight = alpha[j, t - 1, a]
                    for b in range(C):
                        f[b] += weight * E[j, a, b]
            c = 0.0
            for b in range(C):
                score = math.exp(u[j, t, b] - top)
                scaled[j, t, b] = score
                f[b] *= score
                c += f[b]
            if not c >= SMALLEST_SCALE:
                lost[j, s] = True
                break
            share = 1.0 / c
            for b in range(C):
                alpha[j, t, b] = f[b] * share
                scaled[j, t, b] *= share
            z += math.log(c) + top
        if lost[j, s]:
            continue
        log_z[j, s] = z
        for b in range(C):
            beta[j, hi - 1, b] = 1.0
        for t in range(hi - 1, lo, -1):
            for b in range(C):
                f[b] = scaled[j, t, b] * beta[j, t, b]
            for a in range(C):
                total = 0.0
                for b in range(C):
                    total += E[j, a, b] * f[b]
                beta[j, t - 1, a] = total


@njit(cache=True, nogil=True, fastmath=FLAGS)
def expect(first, last, bounds, live, lost, weights, alpha, beta, scaled, out, joint):
    """Add weighted marginals of labels to ``out`` and ``Σ_t w α_{t-1}ᵀ g_t`` to ``joint``, for some units."""
    n_sequences, C = bounds.size - 1, alpha.shape[2]
    g = np.empty(C)
    for unit in range(first, last):
        j, s = unit // n_sequences, unit % n_sequences
        if not live[j, s] or lost[j, s]:
            continue
        w = weights[j, s]
        for t in range(bounds[s], bounds[s + 1]):
            for b in range(C):
                out[j, t, b] += w * alpha[j, t, b] * beta[j, t, b]
                g[b] = w * scaled[j, t, b] * beta[j, t, b]
            if t > bounds[s]:
                for a in range(C):
                    weight = alpha[j, t - 1, a]
                    for b in range(C):
                        joint[j, a, b] += weight * g[b]


@njit(cache=True, nogil=True, fastmath=FLAGS)
def differentiate(
    first, last, bounds, live, lost, weights, messages, scores, directions, out, joint
):
    """Fill the rows of W v of some units, and add the first sum of (Wv)_T, without its factor E, to ``joint``."""
    alpha, beta, scaled = messages
    E, EV = scores
    v = directions
    n_sequences, C = bounds.size - 1, E.shape[1]
    g, gh, R, f = np.empty(C), np.empty(C), np.empty(C), np.empty(C)
    for unit in range(first, last):
        j, s = unit // n_sequences, unit % n_sequences
        lo, hi = bounds[s], bounds[s + 1]
        if not live[j, s] or lost[j, s] or lo == hi:
            continue
        w = weights[j, s]
        for b in range(C):
            out[j, lo, b] = alpha[j, lo, b] * v[j, lo, b]
        for t in range(lo + 1, hi):  # L, in the place of the result
            for b in range(C):
                f[b] = 0.0
            for a in range(C):
                left, weight = out[j, t - 1, a], alpha[j, t - 1, a]
                for b in range(C):
                    f[b] += left * E[j, a, b] + weight * EV[j, a, b]
            for b in range(C):
                out[j, t, b] = f[b] * scaled[j, t, b] + alpha[j, t, b] * v[j, t, b]
        mean = 0.0
        for b in range(C):
            mean += out[j, hi - 1, b] * beta[j, hi - 1, b]
            R[b] = 0.0
        for t in range(hi - 1, lo - 1, -1):
            for b in range(C):
                g[b] = scaled[j, t, b] * beta[j, t, b]
                gh[b] = g[b] * v[j, t, b] + scaled[j, t, b] * R[b]
                together = out[j, t, b] * beta[j, t, b] + alpha[j, t, b] * R[b]
                out[j, t, b] = w * (together - alpha[j, t, b] * beta[j, t, b] * mean)
            if t > lo:
                for a in range(C):
                    weight = w * alpha[j, t - 1, a]
                    left = w * out[j, t - 1, a] - mean * weight
                    total = 0.0
                    for b in range(C):
                        joint[j, a, b] += left * g[b] + weight * gh[b]
                        total += E[j, a, b] * gh[b] + EV[j, a, b] * g[b]
                    R[a] = total
