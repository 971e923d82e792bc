"""Factors of symmetric matrices along the paths of a forest, compiled; `labels.margins.forms` says what they are for.

Numbering
    Parents have smaller numbers than their children. Row i of a factor has an entry for i, for its parent, for the
    parent of that, and so on: the paths share one pair of arrays ``start`` and ``latent``. The entry of row i for the
    ancestor that is t steps up is ``start[i] + t``.

Method
    The elimination tree is that of Liu (ACM Trans. Math. Softw. 12, 1986), for outputs from the last to the first.
"""

from __future__ import annotations

import numba
import numpy as np

HALVINGS = 50  # of a step that would lower the dual


@numba.njit(cache=True)
def elimination_tree(indptr, indices):
    """Return the parent of each output, or −1, for a symmetric pattern in CSR form."""
    m = indptr.size - 1
    parent, top = np.full(m, -1), np.full(m, -1)  # top: a shortcut towards the root
    for i in range(m - 1, -1, -1):
        for e in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[e])
            while j > i:
                above = top[j]
                top[j] = i
                if above < 0:
                    parent[j] = i
                    break
                j = above
    return parent


@numba.njit(cache=True)
def paths(parent):
    """Return ``start`` and ``latent`` of a forest."""
    m = parent.size
    start = np.zeros(m + 1, dtype=np.int64)
    for i in range(m):
        above = 0 if parent[i] < 0 else start[parent[i] + 1] - start[parent[i]]
        start[i + 1] = start[i] + above + 1
    latent = np.empty(start[m], dtype=np.int64)
    for i in range(m):
        latent[start[i]] = i
        if parent[i] >= 0:
            p = parent[i]
            for t in range(start[p + 1] - start[p]):
                latent[start[i] + 1 + t] = latent[start[p] + t]
    return start, latent


@numba.njit(cache=True)
def along_paths(indptr, indices, data, start, latent):
    """Return the entries of a symmetric CSR matrix in the places of paths, with zeros where it has none."""
    values, row = np.zeros(latent.size), np.zeros(start.size - 1)
    for i in range(start.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            row[indices[e]] = data[e]
        for e in range(start[i], start[i + 1]):
            values[e] = row[latent[e]]
        for e in range(indptr[i], indptr[i + 1]):
            row[indices[e]] = 0.0
    return values


@numba.njit(cache=True)
def eliminate(start, latent, values):
    """Replace the entries of A = L Lᵀ by those of L, L_ji in the place of output i and its ancestor j.

    Return whether A is positive definite.
    """
    for i in range(start.size - 2, -1, -1):
        first, height = start[i], start[i + 1] - start[i]
        if not values[first] > 0:
            return False
        values[first] = np.sqrt(values[first])
        for t in range(1, height):
            values[first + t] /= values[first]
        for t in range(1, height):
            of_t = start[latent[first + t]]
            for u in range(t, height):
                values[of_t + u - t] -= values[first + t] * values[first + u]
    return True


@numba.njit(cache=True)
def invert(start, latent, lower, values):
    """Write F = L⁻ᵀ."""
    for i in range(start.size - 1):
        first, height = start[i], start[i + 1] - start[i]
        values[first] = 1.0 / lower[first]
        for t in range(1, height):
            total = 0.0
            for u in range(t):
                total += lower[start[latent[first + u]] + t - u] * values[first + u]
            values[first + t] = -total / lower[start[latent[first + t]]]


@numba.njit(cache=True, nogil=True, fastmath=True)
def products(factor, left, right, first, last):
    """Return w_iᵀ w_j in the places of paths, summed over the rows first to last − 1 of left and right."""
    start, latent, value = factor
    m = start.size - 1
    out, one, other = np.zeros(latent.size), np.empty(m), np.empty(m)
    for row in range(first, last):
        for i in range(m):
            u = v = 0.0
            for e in range(start[i], start[i + 1]):
                u += value[e] * left[row, latent[e]]
                v += value[e] * right[row, latent[e]]
            one[i], other[i] = u, v
        for i in range(m):
            for e in range(start[i], start[i + 1]):
                out[e] += one[i] * other[latent[e]]
    return out


@numba.njit(cache=True, nogil=True)
def improve(first, last, sets, form, left, right, same):
    """Improve the signs of the trees first to last − 1, and bring L and the sums up to date."""
    part, begin, outputs, siblings = sets
    start, weights, signs, lower = form
    for c in range(part[first], part[last]):
        nodes, k = outputs[begin[c] : begin[c + 1]], siblings[c]
        s = nodes.size
        L = np.zeros((s, s))
        for a in range(s):
            e = start[nodes[a]]
            L[a, a] = lower[e]
            beyond = k if a < k else a + 1
            for b in range(beyond, s):
                L[b, a] = lower[e + 1 + b - beyond]
        M = _inverse(L)
        A, S = _product(L, L, False, True), _product(M, M, True, False)
        T = _product(_product(M, _gram(left, right, nodes), True, False), M, False, False)
        if not _newton(nodes, k, start, weights, signs, S, T, A):
            continue
        new = _cholesky(A)
        C = _product(_inverse(new), L, False, False)
        _transform(left, nodes, C)
        if not same:
            _transform(right, nodes, C)
        for a in range(s):
            e = start[nodes[a]]
            lower[e] = new[a, a]
            beyond = k if a < k else a + 1
            for b in range(beyond, s):
                lower[e + 1 + b - beyond] = new[b, a]


@numba.njit(cache=True, nogil=True)
def _newton(nodes, k, start, weights, signs, S, T, A):
    """Newton steps on the signs of the first k outputs of a set with their ancestors; return whether any changed.

    S, the inner products T of the normals and A = S⁻¹ follow, all restricted to the set.
    """
    changed = False
    for i in range(k):
        for j in range(k, nodes.size):
            e = start[nodes[i]] + 1 + j - k
            if weights[e] == 0:
                continue
            a, b, c = S[i, i], S[i, j], S[j, j]
            t_ii, t_ij, t_jj = T[i, i], T[i, j], T[j, j]
            curvature = a * t_jj + c * t_ii + 2.0 * b * t_ij
            if curvature <= 0:
                continue
            step = min(1.0, max(-1.0, signs[e] + t_ij / (curvature * weights[e]))) - signs[e]
            gain, d = 0.0, 0.0
            z_ii = z_jj = z_ij = 0.0
            for _ in range(HALVINGS):
                # A + d (e_i e_jᵀ + e_j e_iᵀ): S changes by −s Z sᵀ with s = (S_i, S_j)
                d = step * weights[e]
                det = (1.0 + b * d) ** 2 - a * c * d * d
                z_ii, z_jj, z_ij = -c * d * d / det, -a * d * d / det, (1.0 + b * d) * d / det
                gain = 0.5 * (z_ii * t_ii + z_jj * t_jj + 2.0 * z_ij * t_ij)
                if gain >= 0 or step == 0:
                    break
                step *= 0.5
            if gain <= 0:
                continue
            changed = True
            signs[e] += step
            A[i, j] += d
            A[j, i] += d
            _follow(S, T, i, j, z_ii, z_ij, z_jj)
    return changed


@numba.njit(cache=True, nogil=True)
def _follow(S, T, i, j, z_ii, z_ij, z_jj):
    """Let S and T follow a sign: S' = S − s Z sᵀ, and normals become W − s Z (w_i, w_j)."""
    t_ii, t_ij, t_jj = T[i, i], T[i, j], T[j, j]
    s_i, s_j, r_i, r_j = S[i].copy(), S[j].copy(), T[i].copy(), T[j].copy()
    for p in range(s_i.size):
        u, v = z_ii * s_i[p] + z_ij * s_j[p], z_ij * s_i[p] + z_jj * s_j[p]
        g, h = u * t_ii + v * t_ij, u * t_ij + v * t_jj
        for q in range(s_i.size):
            x, y = z_ii * s_i[q] + z_ij * s_j[q], z_ij * s_i[q] + z_jj * s_j[q]
            S[p, q] -= u * s_i[q] + v * s_j[q]
            T[p, q] += g * x + h * y - u * r_i[q] - v * r_j[q] - x * r_i[p] - y * r_j[p]


@numba.njit(cache=True, nogil=True, fastmath=True)
def _gram(left, right, nodes):
    """leftᵀ right of some columns, made symmetric."""
    s = nodes.size
    H, one, other = np.zeros((s, s)), np.empty(s), np.empty(s)
    for row in range(left.shape[0]):
        for a in range(s):
            one[a], other[a] = left[row, nodes[a]], right[row, nodes[a]]
        for a in range(s):
            for b in range(s):
                H[a, b] += one[a] * other[b]
    for a in range(s):
        for b in range(a):
            H[a, b] = H[b, a] = 0.5 * (H[a, b] + H[b, a])
    return H


@numba.njit(cache=True, nogil=True, fastmath=True)
def _transform(Y, nodes, C):
    """Multiply some columns of Y by a lower triangular matrix: y_a becomes Σ_b C_ab y_b."""
    s, some = nodes.size, np.empty(nodes.size)
    for row in range(Y.shape[0]):
        for a in range(s):
            some[a] = Y[row, nodes[a]]
        for a in range(s):
            total = 0.0
            for b in range(a + 1):
                total += C[a, b] * some[b]
            Y[row, nodes[a]] = total


@numba.njit(cache=True, nogil=True)
def _product(A, B, turn_A, turn_B):
    """A B of small square matrices, either of them transposed: loops compile sooner than calls of BLAS."""
    s = len(A)
    C = np.zeros((s, s))
    for a in range(s):
        for c in range(s):
            left = A[c, a] if turn_A else A[a, c]
            for b in range(s):
                C[a, b] += left * (B[b, c] if turn_B else B[c, b])
    return C


@numba.njit(cache=True, nogil=True)
def _cholesky(A):
    """L with L Lᵀ = A."""
    L = np.zeros_like(A)
    for a in range(len(A)):
        for b in range(a + 1):
            total = A[a, b]
            for c in range(b):
                total -= L[a, c] * L[b, c]
            L[a, b] = np.sqrt(total) if a == b else total / L[b, b]
    return L


@numba.njit(cache=True, nogil=True)
def _inverse(L):
    """The inverse of a lower triangular matrix."""
    M = np.zeros_like(L)
    for b in range(len(L)):
        M[b, b] = 1.0 / L[b, b]
        for a in range(b + 1, len(L)):
            total = 0.0
            for c in range(b, a):
                total += L[a, c] * M[c, b]
            M[a, b] = -total / L[a, a]
    return M
