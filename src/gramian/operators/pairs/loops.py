"""The two phases of a sampled Kronecker product, compiled, for several right-hand sides g at once.

    D_g = V_g Rᵀ                            V_g: b × d with e cells,  R: c × d    (phase one)
    out_gh = Σ_k L[i_h, k] D_g[k, j_h]      at f cells (i_h, j_h),  L: a × b      (phase two)

Each phase has a loop that touches the cells only, and one that multiplies whole blocks by BLAS:

=========  =============================================  ================================================
phase one  `spread`, `spread_transposed`: e c products    `fill` and a matrix product: b d c
phase two  `read`: f b products                           `multiply_and_read`: a b c, then f reads
=========  =============================================  ================================================

Cells are sorted by row (CSR). The loops take four cells at a time, so that a sum or a row of L is loaded once for four
products, and skip coefficients that are zero. Parallel over rows, in parts of equal numbers of cells. The blocks call
BLAS from within each thread, limited to one thread of its own: BLAS threads and compiled threads in turns wait for each
other. `direct` is for a few cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gramian._core.compilation import parallel_loops

_LOOSE = {"contract", "reassoc", "nsz"}
TRANSPOSED_ROWS = 32  # that are written together: long enough stretches


class CellRows(NamedTuple):
    """Cells in compressed rows, cut into parts for threads."""

    bounds: np.ndarray  # rows at which a part begins; the last entry is the number of rows
    ptr: np.ndarray  # where the cells of a row begin
    columns: np.ndarray  # of each cell


@njit(cache=True, fastmath=_LOOSE)
def direct(targets, sources, values, left, right, out):
    """out[g, h] = Σ left[i_h, k] right[j_h, l] values[g, (k, l)], without an intermediate matrix; on one thread."""
    (rows, columns), (source_rows, source_columns) = targets, sources
    for g in range(out.shape[0]):
        for h in range(rows.size):
            row, other = left[rows[h]], right[columns[h]]
            total = out.dtype.type(0)
            for s in range(source_rows.size):
                total += values[g, s] * row[source_rows[s]] * other[source_columns[s]]
            out[g, h] = total


@njit(cache=True)
def _next(values, h, stop):
    """The next cell from h on that is not zero."""
    while h < stop and values[h] == 0:
        h += 1
    return h


@njit(cache=True, fastmath=_LOOSE)
def _add_rows(ptr, columns, values, factor, r, first, row):
    """row += Σ_h values[h] factor[columns[h], first:last] over the cells h of row r."""
    stop, last = ptr[r + 1], first + row.size
    h = _next(values, ptr[r], stop)
    while h < stop:
        h2 = _next(values, h + 1, stop)
        h3 = _next(values, h2 + 1, stop)
        h4 = _next(values, h3 + 1, stop)
        p = factor[columns[h], first:last]
        v = values[h]
        if h4 < stop:
            w, x, y = values[h2], values[h3], values[h4]
            q = factor[columns[h2], first:last]
            s = factor[columns[h3], first:last]
            t = factor[columns[h4], first:last]
            for k in range(row.size):
                row[k] += v * p[k] + w * q[k] + x * s[k] + y * t[k]
            h = _next(values, h4 + 1, stop)
        else:  # fewer than four are left
            for k in range(row.size):
                row[k] += v * p[k]
            h = h2


@parallel_loops(fastmath=_LOOSE)
def spread(cells, values, factor, width, out):
    """out[g] = V_g factor, ``width`` columns at a time so that those of factor stay in the cache."""
    bounds, ptr, columns = cells
    for part in prange(bounds.size - 1):
        for first in range(0, out.shape[2], width):
            last = min(out.shape[2], first + width)
            for r in range(bounds[part], bounds[part + 1]):
                for g in range(out.shape[0]):
                    row = out[g, r, first:last]
                    # compiles faster than a slice that is assigned; in `fill` it would be slower
                    for k in range(row.size):
                        row[k] = 0
                    _add_rows(ptr, columns, values[g], factor, r, first, row)


@parallel_loops(fastmath=_LOOSE)
def spread_transposed(cells, values, factor, width, out):
    """out[g] = (V_g factor)ᵀ; some rows are made in a buffer and written in long stretches."""
    bounds, ptr, columns = cells
    for part in prange(bounds.size - 1):
        buffer = np.empty((TRANSPOSED_ROWS, min(width, out.shape[1])), out.dtype)
        for first in range(0, out.shape[1], width):
            last = min(out.shape[1], first + width)
            for group in range(bounds[part], bounds[part + 1], TRANSPOSED_ROWS):
                count = min(TRANSPOSED_ROWS, bounds[part + 1] - group)
                for g in range(out.shape[0]):
                    for m in range(count):
                        row = buffer[m, : last - first]
                        for k in range(row.size):
                            row[k] = 0
                        _add_rows(ptr, columns, values[g], factor, group + m, first, row)
                    for k in range(last - first):
                        for m in range(count):
                            out[g, first + k, group + m] = buffer[m, k]


@parallel_loops(fastmath=_LOOSE)
def read(cells, left, inner, out):
    """out[g, h] = left[i, :] · inner[g, columns[h], :] for the cells h of row i."""
    bounds, ptr, columns = cells
    for part in prange(bounds.size - 1):
        for i in range(bounds[part], bounds[part + 1]):
            row = left[i]
            for g in range(out.shape[0]):
                D, result = inner[g], out[g]
                h, stop = ptr[i], ptr[i + 1]
                while h + 4 <= stop:
                    p, q = D[columns[h]], D[columns[h + 1]]
                    s, t = D[columns[h + 2]], D[columns[h + 3]]
                    a = b = c = d = out.dtype.type(0)
                    for k in range(row.size):
                        a += row[k] * p[k]
                        b += row[k] * q[k]
                        c += row[k] * s[k]
                        d += row[k] * t[k]
                    result[h], result[h + 1], result[h + 2], result[h + 3] = a, b, c, d
                    h += 4
                while h < stop:
                    p = D[columns[h]]
                    a = out.dtype.type(0)
                    for k in range(row.size):
                        a += row[k] * p[k]
                    result[h] = a
                    h += 1


@parallel_loops()
def fill(cells, values, out):
    """Write V_g as whole matrices."""
    bounds, ptr, columns = cells
    for part in prange(bounds.size - 1):
        for r in range(bounds[part], bounds[part + 1]):
            for g in range(out.shape[0]):
                out[g, r, :] = 0
                for h in range(ptr[r], ptr[r + 1]):
                    out[g, r, columns[h]] = values[g, h]


@parallel_loops()
def multiply_each(bounds, left, stack, out):
    """out[g] = left stack[g], by blocks of rows."""
    for part in prange(bounds.size - 1):
        first, last = bounds[part], bounds[part + 1]
        for g in range(out.shape[0]):
            np.dot(left[first:last], stack[g], out[g, first:last])


@parallel_loops()
def multiply_turned(bounds, left, stack, out):
    """out[g] = left stack[g]ᵀ, by blocks of rows."""
    for part in prange(bounds.size - 1):
        first, last = bounds[part], bounds[part + 1]
        for g in range(out.shape[0]):
            np.dot(left[first:last], stack[g].T, out[g, first:last])


@parallel_loops()
def multiply_and_read(cells, left, inner, whole, out):
    """out[g, h] = (left inner[g])[i, columns[h]], by blocks of rows; ``whole`` is room for one product."""
    bounds, ptr, columns = cells
    for part in prange(bounds.size - 1):
        first, last = bounds[part], bounds[part + 1]
        for g in range(out.shape[0]):
            np.dot(left[first:last], inner[g], whole[first:last])
            for i in range(first, last):
                for h in range(ptr[i], ptr[i + 1]):
                    out[g, h] = whole[i, columns[h]]
