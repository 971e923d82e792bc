"""Sparse rows times a dense block, in parallel.

Formula
    ``out_i = Σ_p data_p B[indices_p]`` over the stored entries p of row i of a CSR matrix.

Method
    Rows are cut into tasks with equally many stored entries (not equally many rows, so that a few long rows do
    not hold up the rest), and each task writes rows of its own: no locks, and the result does not depend
    on the number of threads. The k entries of a row of B are contiguous, so the inner loop is a
    vectorised axpy.

Cost
    nnz·k multiply-adds; O(number of tasks) extra memory.

Floor
    Memory traffic: every stored entry reads one row of B (k numbers), from cache while B fits into it.

Differs from the textbook in
    nothing but the cutting by entries. SciPy's product runs on one thread. The transposed product is left
    to the caller, who keeps the CSR form of Xᵀ: scattering would need locks or copies of the output.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numba import njit, prange

from gramian._threads import exclusive

__all__ = ["csr_dot", "sparse_dot"]

_TASKS = 64  # enough to keep many cores busy to the end, few enough to cost nothing
_TASK_WORK = 1 << 15  # multiply-adds; less is not worth a task
_REGION_WORK = 1 << 29  # multiply-adds in one parallel region: Ctrl-C is honoured between regions


def csr_dot(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Multiply a CSR matrix, given by its three arrays, with a dense block.

    Parameters
    ----------
    indptr : ndarray of shape (n + 1,)
    indices : ndarray of shape (nnz,)
        Column numbers below m, sorted or not. They are not checked.
    data : ndarray of shape (nnz,)
    B : ndarray of shape (m, k)

    Returns
    -------
    ndarray of shape (n, k)
        In C order; float32 if data and B are, else float64.

    Examples
    --------
    >>> import numpy as np
    >>> csr_dot(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]), np.eye(2))
    array([[1., 2.],
           [0., 3.]])
    """
    if B.ndim != 2:
        raise ValueError(f"B must be two-dimensional, it has shape {B.shape}.")
    dtype = np.float32 if np.result_type(data, B) == np.float32 else np.float64
    data = np.ascontiguousarray(data, dtype)
    B = np.ascontiguousarray(B, dtype)
    indptr, indices = np.ascontiguousarray(indptr), np.ascontiguousarray(indices)
    n, k = indptr.size - 1, B.shape[1]
    out = np.empty((n, k), dtype)
    if out.size == 0:
        return out
    # An empty row costs something, too: it is written.
    regions = _cut(indptr, 0, n, 1 + (data.size + n) * k // _REGION_WORK)
    for first, last in pairwise(regions):
        work = (indptr[last] - indptr[first] + last - first) * k
        bounds = _cut(indptr, first, last, int(min(_TASKS, 1 + work // _TASK_WORK)))
        with exclusive():
            if k == 1:
                _times_vector(indptr, indices, data, B[:, 0], bounds, out[:, 0])
            else:
                _times_block(indptr, indices, data, B, bounds, out)
    return out


def sparse_dot(A: sp.csr_array | sp.csr_matrix, B: np.ndarray) -> np.ndarray:
    """Return ``A @ B`` for a SciPy CSR array or matrix A and a dense B of shape (m, k)."""
    if not (sp.issparse(A) and A.format == "csr"):
        raise TypeError(f"A must be a SciPy CSR array, not {type(A).__name__}; use A.tocsr().")
    if B.ndim != 2 or B.shape[0] != A.shape[1]:
        raise ValueError(f"B has shape {B.shape}; A has {A.shape[1]} columns.")
    return csr_dot(A.indptr, A.indices, A.data, B)


def _cut(indptr: np.ndarray, first: int, last: int, parts: int) -> np.ndarray:
    """Row numbers that cut the rows from first to last into parts of about equal work."""
    if parts == 1:
        return np.array([first, last])
    work = indptr[first : last + 1] + np.arange(last - first + 1)
    bounds = first + np.searchsorted(work, np.linspace(work[0], work[-1], parts + 1))
    bounds[0], bounds[-1] = first, last
    return bounds


# Unsigned column numbers: Numba would test each signed one for counting from the end.


@njit(cache=True, parallel=True, fastmath={"contract"})
def _times_block(indptr, indices, data, B, bounds, out):
    for task in prange(bounds.size - 1):
        for i in range(bounds[task], bounds[task + 1]):
            row = out[i]
            row[:] = 0
            columns, values = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
            for p in range(
                0, values.size - 1, 2
            ):  # two entries share a load and a store of the sum
                a, b = values[p], values[p + 1]
                u, v = B[np.uintp(columns[p])], B[np.uintp(columns[p + 1])]
                for k in range(row.size):
                    row[k] += a * u[k] + b * v[k]
            if values.size % 2:
                a, u = values[values.size - 1], B[np.uintp(columns[values.size - 1])]
                for k in range(row.size):
                    row[k] += a * u[k]


@njit(cache=True, parallel=True, fastmath={"contract", "reassoc"})
def _times_vector(indptr, indices, data, vector, bounds, out):
    for task in prange(bounds.size - 1):
        for i in range(bounds[task], bounds[task + 1]):
            columns, values = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
            total = out.dtype.type(0)
            for p in range(values.size):
                total += values[p] * vector[np.uintp(columns[p])]
            out[i] = total
