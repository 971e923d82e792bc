"""The compiled loops of `gaussian_grid`: from points to the nodes of their cells and back.

Parallel over cells: no two tasks write to one place. A cell with very many points is one task. To be called under
`gramian._core.threads.exclusive`.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from gramian.operators.compiled.radial_loops import FLAGS

__all__ = ["from_grid", "to_grid"]


@njit(cache=True)
def _cell(number, shape, half, corner, p):
    """Centre of the cell with this number, features in the order of the array, and room for `_weights`."""
    d, rest = shape.size, number
    centre = np.empty(d)
    for f in range(d - 1, -1, -1):
        centre[f] = corner[f] + half[f] * (2 * (rest % shape[f]) + 1)
        rest //= shape[f]
    return centre, np.empty(p), np.empty(p ** (d - 1))


@njit(cache=True)
def _weights(x, centre, half, unit, barycentric, each, outer):
    """Interpolation weights of a point: the last feature into ``each``, products of all others into ``outer``."""
    p, d = unit.size, x.size
    outer[0], filled = 1.0, 1
    for f in range(d):
        t = (x[f] - centre[f]) / half[f]
        total, node = 0.0, -1
        for q in range(p):
            gap = t - unit[q]
            if gap == 0.0:
                node = q
                break
            each[q] = barycentric[q] / gap
            total += each[q]
        if node >= 0:
            each[:] = 0.0
            each[node] = 1.0
        else:
            for q in range(p):
                each[q] /= total
        if f < d - 1:
            for a in range(filled - 1, -1, -1):
                for q in range(p - 1, -1, -1):
                    outer[a * p + q] = outer[a] * each[q]
            filled *= p


@njit(cache=True, parallel=True, fastmath=FLAGS)
def to_grid(side, unit, barycentric, B, grid, part):
    """Add B (n, k) of the points of cells part[0] to part[1] − 1 to the nodes, grid (cells, k, p^d)."""
    points, cells, starts, shape, half, corner = side
    for cell in prange(part[0], part[1]):
        p, nodes = unit.size, grid[cells[cell]]
        centre, each, outer = _cell(cells[cell], shape, half, corner, p)
        for i in range(starts[cell], starts[cell + 1]):
            _weights(points[i], centre, half, unit, barycentric, each, outer)
            for k in range(B.shape[1]):
                row = nodes[k]
                for a in range(outer.size):
                    factor = outer[a] * B[i, k]
                    for q in range(p):
                        row[a * p + q] += factor * each[q]


@njit(cache=True, parallel=True, fastmath=FLAGS)
def from_grid(side, unit, barycentric, grid, out, part):
    """Interpolate from the nodes to the points of cells part[0] to part[1] − 1, into rows of out (n, k)."""
    points, cells, starts, shape, half, corner = side
    for cell in prange(part[0], part[1]):
        p, nodes = unit.size, grid[cells[cell]]
        centre, each, outer = _cell(cells[cell], shape, half, corner, p)
        for i in range(starts[cell], starts[cell + 1]):
            _weights(points[i], centre, half, unit, barycentric, each, outer)
            for k in range(out.shape[1]):
                row = nodes[k]
                total = 0.0
                for a in range(outer.size):
                    part_sum = 0.0
                    for q in range(p):
                        part_sum += each[q] * row[a * p + q]
                    total += outer[a] * part_sum
                out[i, k] = total
