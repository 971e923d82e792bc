"""The recursions of `recursions` in the logarithmic domain, for sequences whose messages underflow there.

    a_t(b) = s_t(b) + log Σ_a exp(a_{t-1}(a) + T_ab),      s_t = u_t − log c_t
    b_{t-1}(a) = log Σ_b exp(T_ab + s_t(b) + b_t(b)),       p_t = exp(a_t + b_t)

so ``a`` and ``b`` are the logarithms of α and β. The product with the Hessian is the covariance of the labels with
``Σ_t v_t + V``, written with conditional expectations of that sum up to t and after t, which cannot overflow:

    L_t(b) = v_t(b) + Σ_a P(y_{t-1} = a | y_t = b) (L_{t-1}(a) + V_ab)
    R_{t-1}(a) = Σ_b P(y_t = b | y_{t-1} = a) (V_ab + v_t(b) + R_t(b))
    (Wv)_t = p_t ∘ (L_t + R_t − φ),     (Wv)_T = Σ_t ξ_t ∘ (L_{t-1} + V + v_t + R_t − φ).

The arrays of the scaled recursions are used again; they hold logarithms for these units. Cost: n C² exponentials for
the marginals and 3 n C² for a product, which is why this is the exception.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gramian.losses.chain.recursions import FLAGS


@njit(cache=True, nogil=True, inline="always")
def _log_sum(values):
    """log Σ exp of a vector; −∞ for nothing but −∞."""
    top = values[0]
    for b in range(1, values.size):
        top = max(top, values[b])
    if top == -math.inf:
        return top
    total = 0.0
    for b in range(values.size):
        total += math.exp(values[b] - top)
    return top + math.log(total)


@njit(cache=True, nogil=True, fastmath=FLAGS)
def log_sweep(units, u, T, messages):
    """Fill the messages of the units that are lost, as logarithms."""
    bounds, tables, lost = units.bounds, units.tables, units.lost
    alpha, beta, scaled = messages.alpha, messages.beta, messages.scaled
    n_sequences, C = bounds.size - 1, T.shape[2]
    f = np.empty(C)
    for unit in range(lost.size):
        j, s = unit // n_sequences, unit % n_sequences
        if not lost[j, s]:
            continue
        lo, hi = bounds[s], bounds[s + 1]
        z = 0.0
        for t in range(lo, hi):
            for b in range(C):
                alpha[j, t, b] = u[j, t, b]
                if t > lo:
                    for a in range(C):
                        f[a] = alpha[j, t - 1, a] + T[j, tables[t], a, b]
                    alpha[j, t, b] += _log_sum(f)
            for b in range(C):
                f[b] = alpha[j, t, b]
            c = _log_sum(f)
            z += c
            for b in range(C):
                scaled[j, t, b] = u[j, t, b] - c
                alpha[j, t, b] -= c
        messages.log_z[j, s] = z
        for b in range(C):
            beta[j, hi - 1, b] = 0.0
        for t in range(hi - 1, lo, -1):
            for a in range(C):
                for b in range(C):
                    f[b] = T[j, tables[t], a, b] + scaled[j, t, b] + beta[j, t, b]
                beta[j, t - 1, a] = _log_sum(f)


@njit(cache=True, nogil=True, fastmath=FLAGS)
def log_expect(units, T, messages, out, pairs):
    """Add weighted marginals of labels to ``out`` and of pairs to ``pairs``, for the units that are lost."""
    bounds, tables, lost, weights = units.bounds, units.tables, units.lost, units.weights
    alpha, beta, scaled = messages.alpha, messages.beta, messages.scaled
    n_sequences, C = bounds.size - 1, T.shape[2]
    for unit in range(lost.size):
        j, s = unit // n_sequences, unit % n_sequences
        if not lost[j, s]:
            continue
        for t in range(bounds[s], bounds[s + 1]):
            for b in range(C):
                out[j, t, b] += weights[j, s] * math.exp(alpha[j, t, b] + beta[j, t, b])
                if t > bounds[s]:
                    ahead = scaled[j, t, b] + beta[j, t, b]
                    for a in range(C):
                        together = alpha[j, t - 1, a] + T[j, tables[t], a, b] + ahead
                        pairs[j, tables[t], a, b] += weights[j, s] * math.exp(together)


@njit(cache=True, nogil=True, fastmath=FLAGS)
def log_differentiate(units, messages, T, V, v, out, pairs):
    """Fill the rows of W v of the units that are lost, and add their (Wv)_T to ``pairs``."""
    bounds, tables, lost, weights = units.bounds, units.tables, units.lost, units.weights
    alpha, beta, scaled = messages.alpha, messages.beta, messages.scaled
    n_sequences, C = bounds.size - 1, T.shape[2]
    R, before = np.empty(C), np.empty(C)
    for unit in range(lost.size):
        j, s = unit // n_sequences, unit % n_sequences
        if not lost[j, s]:
            continue
        lo, hi, w = bounds[s], bounds[s + 1], weights[j, s]
        for t in range(lo, hi):  # L, in the place of the result
            for b in range(C):
                expected = v[j, t, b]
                if t > lo and alpha[j, t, b] > -math.inf:
                    behind = scaled[j, t, b] - alpha[j, t, b]
                    for a in range(C):
                        chance = math.exp(alpha[j, t - 1, a] + T[j, tables[t], a, b] + behind)
                        if chance > 0:
                            expected += chance * (out[j, t - 1, a] + V[j, tables[t], a, b])
                out[j, t, b] = expected
        mean = 0.0
        for b in range(C):
            mean += math.exp(alpha[j, hi - 1, b]) * out[j, hi - 1, b]
            R[b] = 0.0
        for t in range(hi - 1, lo - 1, -1):
            if t > lo:
                for a in range(C):
                    expected = 0.0
                    for b in range(C):
                        ahead = T[j, tables[t], a, b] + scaled[j, t, b] + beta[j, t, b]
                        if ahead > -math.inf:
                            rest = V[j, tables[t], a, b] + v[j, t, b] + R[b]
                            expected += math.exp(ahead - beta[j, t - 1, a]) * rest
                            chance = math.exp(alpha[j, t - 1, a] + ahead)
                            pairs[j, tables[t], a, b] += (
                                w * chance * (out[j, t - 1, a] + rest - mean)
                            )
                    before[a] = expected
            for b in range(C):
                chance = math.exp(alpha[j, t, b] + beta[j, t, b])
                out[j, t, b] = w * chance * (out[j, t, b] + R[b] - mean)
                R[b] = before[b]
