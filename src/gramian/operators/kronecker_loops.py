"""The two phases of a sampled Kronecker product, compiled.

    D = V Rᵀ                          V: b × d with e cells,  R: c × d    (phase one)
    out_h = Σ_k L[i_h, k] D[k, j_h]   at f cells (i_h, j_h),  L: a × b    (phase two)

Each phase has a loop that touches the cells only, and one that multiplies whole blocks by BLAS:

=========  =============================================  ================================================
phase one  `spread`, `spread_transposed`: e c products    `fill` and `multiply`: b d c
phase two  `read`: f b products                           `multiply_and_read`: a b c, then f reads
=========  =============================================  ================================================

Cells are sorted by row (CSR). The loops take four cells at a time, so that a sum or a row of L is loaded once for four
products. Parallel over rows, in parts of equal numbers of cells. The blocks call BLAS from within each thread, limited
to one thread of its own: BLAS threads and compiled threads in turns wait for each other.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = [
    "compress",
    "fill",
    "multiply",
    "multiply_and_read",
    "read",
    "spread",
    "spread_transposed",
]

_LOOSE = {"contract", "reassoc", "nsz"}
_LINE = 32  # rows that are transposed together: long enough stretches to write


@njit(cache=True, fastmath=_LOOSE)
def _add_rows(ptr, columns, values, factor, r, first, last, row):
    """row += Σ_h values[h] factor[columns[h], first:last] over the cells h of row r."""
    h, stop = ptr[r], ptr[r + 1]
    while h + 4 <= stop:
        v, w, x, y = values[h], values[h + 1], values[h + 2], values[h + 3]
        p = factor[columns[h], first:last]
        q = factor[columns[h + 1], first:last]
        s = factor[columns[h + 2], first:last]
        t = factor[columns[h + 3], first:last]
        for k in range(row.size):
            row[k] += v * p[k] + w * q[k] + x * s[k] + y * t[k]
        h += 4
    while h < stop:
        v = values[h]
        p = factor[columns[h], first:last]
        for k in range(row.size):
            row[k] += v * p[k]
        h += 1


@njit(cache=True, parallel=True, fastmath=_LOOSE)
def spread(bounds, ptr, columns, values, factor, width, out):
    """out = V factor, ``width`` columns at a time so that those of factor stay in the cache."""
    for part in prange(bounds.size - 1):
        for first in range(0, out.shape[1], width):
            last = min(out.shape[1], first + width)
            for r in range(bounds[part], bounds[part + 1]):
                row = out[r, first:last]
                row[:] = 0
                _add_rows(ptr, columns, values, factor, r, first, last, row)


@njit(cache=True, parallel=True, fastmath=_LOOSE)
def spread_transposed(bounds, ptr, columns, values, factor, width, out):
    """out = (V factor)ᵀ; some rows are made in a buffer and written as whole cache lines."""
    for part in prange(bounds.size - 1):
        buffer = np.empty((_LINE, min(width, out.shape[0])), out.dtype)
        for first in range(0, out.shape[0], width):
            last = min(out.shape[0], first + width)
            for group in range(bounds[part], bounds[part + 1], _LINE):
                count = min(_LINE, bounds[part + 1] - group)
                for g in range(count):
                    row = buffer[g, : last - first]
                    row[:] = 0
                    _add_rows(ptr, columns, values, factor, group + g, first, last, row)
                for k in range(last - first):
                    for g in range(count):
                        out[first + k, group + g] = buffer[g, k]


@njit(cache=True, parallel=True, fastmath=_LOOSE)
def read(bounds, ptr, columns, left, inner, out):
    """out[h] = left[i, :] · inner[columns[h], :] for the cells h of row i."""
    for part in prange(bounds.size - 1):
        for i in range(bounds[part], bounds[part + 1]):
            row = left[i]
            h, stop = ptr[i], ptr[i + 1]
            while h + 4 <= stop:
                p, q = inner[columns[h]], inner[columns[h + 1]]
                s, t = inner[columns[h + 2]], inner[columns[h + 3]]
                a = b = c = d = out.dtype.type(0)
                for k in range(row.size):
                    a += row[k] * p[k]
                    b += row[k] * q[k]
                    c += row[k] * s[k]
                    d += row[k] * t[k]
                out[h], out[h + 1], out[h + 2], out[h + 3] = a, b, c, d
                h += 4
            while h < stop:
                p = inner[columns[h]]
                a = out.dtype.type(0)
                for k in range(row.size):
                    a += row[k] * p[k]
                out[h] = a
                h += 1


@njit(cache=True, parallel=True)
def fill(bounds, ptr, columns, values, out):
    """Write V as a whole matrix."""
    for part in prange(bounds.size - 1):
        for r in range(bounds[part], bounds[part + 1]):
            out[r, :] = 0
            for h in range(ptr[r], ptr[r + 1]):
                out[r, columns[h]] = values[h]


@njit(cache=True, parallel=True)
def multiply(bounds, left, right, out):
    """out = left right, by blocks of rows."""
    for part in prange(bounds.size - 1):
        first, last = bounds[part], bounds[part + 1]
        np.dot(left[first:last], right, out[first:last])


@njit(cache=True, parallel=True)
def multiply_and_read(bounds, ptr, columns, left, inner, whole, out):
    """out[h] = (left inner)[i, columns[h]], by blocks of rows; ``whole`` is room for the product."""
    for part in prange(bounds.size - 1):
        first, last = bounds[part], bounds[part + 1]
        np.dot(left[first:last], inner, whole[first:last])
        for i in range(first, last):
            for h in range(ptr[i], ptr[i + 1]):
                out[h] = whole[i, columns[h]]


@njit(cache=True)
def compress(ptr, columns, values, count):
    """The same cells without those of value zero, of which ``count`` are left."""
    new_ptr = np.zeros_like(ptr)
    new_columns, new_values = np.empty(count, columns.dtype), np.empty(count, values.dtype)
    g = 0
    for r in range(ptr.size - 1):
        for h in range(ptr[r], ptr[r + 1]):
            if values[h] != 0:
                new_columns[g], new_values[g] = columns[h], values[h]
                g += 1
        new_ptr[r + 1] = g
    return new_ptr, new_columns, new_values
