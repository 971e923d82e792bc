"""Manhattan distances ``D_ij = Σ_k |x_ik − z_jk|`` and weighted sums of their parts, dense and sparse.

Method
    Dense rows are compared one feature at a time, over stretches of columns that stay in the first-level cache. Sparse
    rows differ from ``‖x‖₁ + ‖z‖₁`` only in features that both have, which the columns of Z list. Other array
    libraries add up one matrix for each feature.

Cost
    n m d subtractions, magnitudes and additions. Sparse: n m additions, and as many steps as the product of X and Zᵀ
    has multiplications.

Deviates from the textbook in
    nothing. There is no way through a matrix product, as squared distances have one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numba import njit

from gramian._core.arrays import Array, device_of, float_sum, is_numpy, namespace
from gramian._core.compilation import read_only
from gramian._core.threads import share

STRETCH = 1024  # columns at a time
ALONE = 2**16  # steps of a loop that take less time than to wake a thread


def manhattan_distances(X: Array, Z: Array) -> Array:
    """Return the distances of all rows of X and Z.

    Parameters
    ----------
    X : array or sparse array of shape (n, d)
    Z : array or sparse array of shape (m, d)

    Returns
    -------
    array of shape (n, m)
    """
    if sp.issparse(X):
        return _sparse_distances(X.tocsr(), Z.tocsc())
    if not is_numpy(X):
        xp, shape = namespace(X, Z), (X.shape[0], Z.shape[0])
        D = xp.zeros(shape, dtype=X.dtype, device=device_of(X))
        for part in _parts(X, Z):
            D += part
        return D
    D = np.zeros((X.shape[0], Z.shape[0]), X.dtype)
    rows, columns = _laid_out(X, Z)
    share(_add_distances, len(D), rows, columns, D, alone=D.size * X.shape[1] < ALONE)
    return D


def manhattan_sums(X: Array, Z: Array, H: Array) -> np.ndarray:
    """Return ``Σ_ij H_ij |x_ik − z_jk|`` for every feature k.

    Parameters
    ----------
    X : array or sparse array of shape (n, d)
    Z : array or sparse array of shape (m, d)
    H : array of shape (n, m)

    Returns
    -------
    ndarray of shape (d,)
    """
    if sp.issparse(X) or not is_numpy(X):
        return np.array([float_sum(H * part) for part in _parts(X, Z)])
    sums = np.zeros(X.shape)
    rows, columns = _laid_out(X, Z)
    weights = read_only(np.ascontiguousarray(H, X.dtype))
    share(_add_weighted, len(sums), rows, columns, weights, sums, alone=H.size * X.shape[1] < ALONE)
    return sums.sum(axis=0)


def _laid_out(X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X by rows, and Z by columns."""
    Z = np.asarray(Z, X.dtype)
    return read_only(np.ascontiguousarray(X)), read_only(np.ascontiguousarray(Z.T))


def _parts(X: Array, Z: Array) -> Iterator[Array]:
    """Yield ``|x_ik − z_jk|`` for each feature k."""
    xp = namespace(X, Z)
    for k in range(X.shape[1]):
        x, z = X[:, [k]] if sp.issparse(X) else X[:, k], Z[:, [k]] if sp.issparse(Z) else Z[:, k]
        if sp.issparse(X):
            x, z = x.toarray()[:, 0], z.toarray()[:, 0]
        yield xp.abs(x[:, None] - z[None, :])


def _sparse_distances(X: sp.csr_array, Z: sp.csc_array) -> np.ndarray:
    sizes = [np.asarray(abs(part).sum(axis=1), X.dtype).reshape(-1) for part in (X, Z)]
    D = np.add.outer(*sizes)
    noise = 16 * np.finfo(D.dtype).eps * D  # what sums and differences of parts are rounded by
    tables = (read_only(part) for A in (X, Z) for part in (A.data, A.indices, A.indptr))
    share(_take_off_shared, len(D), *tables, D, alone=D.size < ALONE)
    D[D <= noise] = 0
    return D


@njit(cache=True, nogil=True)
def _add_distances(first, last, X, columns, D):
    """D[i, j] += Σ_k |x_ik − z_jk|."""
    for start in range(0, D.shape[1], STRETCH):
        stop = min(D.shape[1], start + STRETCH)
        for i in range(first, last):
            sums = D[i, start:stop]
            for k in range(X.shape[1]):
                x, z = X[i, k], columns[k, start:stop]
                for j in range(sums.size):
                    sums[j] += abs(x - z[j])


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _add_weighted(first, last, X, columns, H, sums):
    """sums[i, k] += Σ_j H_ij |x_ik − z_jk|."""
    for start in range(0, H.shape[1], STRETCH):
        stop = min(H.shape[1], start + STRETCH)
        for i in range(first, last):
            weights = H[i, start:stop]
            for k in range(X.shape[1]):
                x, z = X[i, k], columns[k, start:stop]
                total = H.dtype.type(0)
                for j in range(weights.size):
                    total += weights[j] * abs(x - z[j])
                sums[i, k] += total


@njit(cache=True, nogil=True)
def _take_off_shared(first, last, values, features, ends, others, rows, starts, D):
    """Take ``|a| + |b| − |a − b|`` off D[i, j] for each feature that rows i of X and j of Z have both."""
    for i in range(first, last):
        for place in range(ends[i], ends[i + 1]):
            a, k = values[place], features[place]
            for other in range(starts[k], starts[k + 1]):
                b = others[other]
                D[i, rows[other]] -= abs(a) + abs(b) - abs(a - b)
