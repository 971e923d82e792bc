"""A stored matrix times a few columns, at the speed of memory.

Formula
    ``out = M B`` with M of shape (n, m) in C order and B of shape (m, k), k small.

Method
    Four rows of M and two columns of B at a time: eight sums in registers for six loads, on stretches
    of columns that stay in the first-level cache. Parallel over rows.

Cost
    2 n m k flops, and M is read once.

Floor
    Bytes of M over the memory bandwidth. Milliseconds for n = m = 4435 on two cores, ours against the
    general matrix product, whose packing costs more than so few columns give back (the floor is 3 to 5
    in float64 and half of that in float32, at the 50 to 33 GB/s that were measured):
    float64, k = 2, 6, 12, 20: 4.2 / 12.4, 6.2 / 14.3, 9.2 / 16.1, 13.6 / 18.3;
    float32, k = 2, 6, 12, 20: 2.1 / 5.2, 3.3 / 6.6, 4.8 / 7.7, 7.2 / 8.3.
    Where vectors have 512 bits and BLAS uses half of them (OpenBLAS on a Zen 5), more columns are worth it, too:
    n = m = 1000, float64, k = 20, 35, 55: 0.37 / 0.45, 0.63 / 0.79, 0.99 / 1.12; n = m = 4435, k = 36: 16.1 / 17.6.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache

import numpy as np
from llvmlite.binding import get_host_cpu_features
from numba import prange

from gramian._core.compilation import parallel_loops, read_only
from gramian._core.threads import blas_libraries, exclusive, one_thread
from gramian.operators.compiled.radial_loops import FLAGS

# Columns of four rows: 64 KiB, half of it streamed from memory while the rest is used.
_STRETCH = 2048
_ROWS = 4
SMALL_MATRIX = 2**18  # entries below which both take well under a millisecond
# Entries times columns below which a thread that must be waited for costs more than it gives.
SMALL_WORK = 2**22
# Columns of one pass over M: more of them do not stay in the second-level cache. Beyond two passes BLAS is faster.
_COLUMNS_OF_A_PASS = 36
_FEW_COLUMNS = 20  # where BLAS uses the widest vectors that there are
_HALF_VECTORS = {"haswell", "zen", "sandybridge", "barcelona", "nehalem", "prescott"}


@cache
def most_columns() -> int:
    """Return how many columns a product may have to be faster than that of BLAS."""
    try:
        wide = get_host_cpu_features().get("avx512f", False)
    except RuntimeError:  # LLVM does not know how to ask this processor
        wide = False
    architectures = {str(library.get("architecture")).lower() for library in blas_libraries()}
    half = bool(architectures) and architectures <= _HALF_VECTORS
    return 2 * _COLUMNS_OF_A_PASS if wide and half else _FEW_COLUMNS


def is_skinny(M: np.ndarray, B: np.ndarray) -> bool:
    """Whether `skinny_product` beats BLAS on ``M B``."""
    fewest = 2 if M.dtype == B.dtype else 1  # BLAS would need a copy of M in double precision
    return (
        M.flags.c_contiguous and fewest <= B.shape[1] <= most_columns() and M.size >= SMALL_MATRIX
    )


def skinny_product(M: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return ``M B``.

    Parameters
    ----------
    M : ndarray of shape (n, m), in C order
    B : ndarray of shape (m, k), of the dtype of M or float64

    Returns
    -------
    ndarray of shape (n, k)
        Summed in the dtype of B, which it has.

    Examples
    --------
    >>> import numpy as np
    >>> skinny_product(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    out = np.zeros((M.shape[0], B.shape[1]), B.dtype)
    whole = M.shape[0] - M.shape[0] % _ROWS
    k = B.shape[1]
    columns = read_only(np.ascontiguousarray(B.T))
    n_passes = -(-k // _COLUMNS_OF_A_PASS)
    with exclusive(), one_thread() if M.size * k < SMALL_WORK else nullcontext():
        for number in range(n_passes):
            some = k * number // n_passes, k * (number + 1) // n_passes
            _multiply(read_only(M[:whole]), columns, *some, out)
    out[whole:] = M[whole:] @ B
    return out


@parallel_loops(fastmath=FLAGS)
def _multiply(M, columns, first_column, last_column, out):
    """Fill some columns of the product."""
    for group in prange(M.shape[0] // _ROWS):
        i = group * _ROWS
        for first in range(0, M.shape[1], _STRETCH):
            last = min(M.shape[1], first + _STRETCH)
            a, b = M[i, first:last], M[i + 1, first:last]
            c, d = M[i + 2, first:last], M[i + 3, first:last]
            for s in range(first_column, last_column, 2):
                # an odd last column is multiplied twice and written once
                t = min(s + 1, last_column - 1)
                u, v = columns[s, first:last], columns[t, first:last]
                au = bu = cu = du = av = bv = cv = dv = columns.dtype.type(0)
                for j in range(u.size):
                    au += a[j] * u[j]
                    bu += b[j] * u[j]
                    cu += c[j] * u[j]
                    du += d[j] * u[j]
                    av += a[j] * v[j]
                    bv += b[j] * v[j]
                    cv += c[j] * v[j]
                    dv += d[j] * v[j]
                out[i, s] += au
                out[i + 1, s] += bu
                out[i + 2, s] += cu
                out[i + 3, s] += du
                if t > s:
                    out[i, t] += av
                    out[i + 1, t] += bv
                    out[i + 2, t] += cv
                    out[i + 3, t] += dv
