"""The compiled loops of `gaussian_grid`: from points to the nodes of their cells and back.

Threads share the cells: no two of them write to one place. A cell with very many points is the work of one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gramian.operators.compiled.radial_loops import FLAGS


class Side(NamedTuple):
    """Points sorted by cells, and the grid of their cells."""

    points: np.ndarray  # (n, d) in units of ℓ from the corner, sorted by cell
    order: np.ndarray
    cells: np.ndarray  # numbers of the occupied cells
    starts: np.ndarray  # of the points of each occupied cell
    shape: np.ndarray  # cells for each feature
    half: np.ndarray  # half-width of a cell for each feature
    corner: np.ndarray

    def nodes(self, f: int, unit: np.ndarray) -> np.ndarray:
        """Coordinates of all nodes of feature f."""
        centres = self.corner[f] + self.half[f] * (2 * np.arange(self.shape[f]) + 1)
        return (centres[:, None] + self.half[f] * unit).ravel()


class Rule(NamedTuple):
    """Interpolation in one feature of one cell."""

    unit: np.ndarray  # the nodes on [−1, 1]
    barycentric: np.ndarray  # their weights


@njit(cache=True)
def _cell(number, shape, half, corner, p):
    """Centre of the cell with this number, and room for the `_weights` of its points."""
    d, rest = shape.size, number
    centre = np.empty(d)
    for f in range(d - 1, -1, -1):
        centre[f] = corner[f] + half[f] * (2 * (rest % shape[f]) + 1)
        rest //= shape[f]
    return centre, np.empty(p), np.empty(p ** (d - 1))


@njit(cache=True, fastmath=FLAGS, error_model="numpy")
def _weights(x, centre, half, rule, each, outer):
    """Interpolation weights of a point: the last feature into ``each``, products of all others into ``outer``."""
    unit, barycentric = rule
    p, d = unit.size, x.size
    outer[0], filled = 1.0, 1
    for f in range(d):
        t = (x[f] - centre[f]) / half[f]
        total = 0.0
        for q in range(p):
            each[q] = barycentric[q] / (t - unit[q])
            total += each[q]
        if np.isfinite(total):
            factor = 1.0 / total
            for q in range(p):
                each[q] *= factor
        else:  # the point is a node
            for q in range(p):
                each[q] = 1.0 if t == unit[q] else 0.0
        if f < d - 1:
            for a in range(filled - 1, -1, -1):
                for q in range(p - 1, -1, -1):
                    outer[a * p + q] = outer[a] * each[q]
            filled *= p


@njit(cache=True, nogil=True, fastmath=FLAGS)
def add_to_nodes(first, last, side, rule, values, grid):
    """Add the values (n, k) of the points of cells first to last − 1 to the nodes, grid (cells, k, p^d)."""
    points, _, cells, starts, shape, half, corner = side
    p = rule[0].size
    for cell in range(first, last):
        nodes = grid[cells[cell]]
        centre, each, outer = _cell(cells[cell], shape, half, corner, p)
        for i in range(starts[cell], starts[cell + 1]):
            _weights(points[i], centre, half, rule, each, outer)
            for k in range(values.shape[1]):
                row = nodes[k]
                for a in range(outer.size):
                    factor = outer[a] * values[i, k]
                    for q in range(p):
                        row[a * p + q] += factor * each[q]


@njit(cache=True, nogil=True, fastmath=FLAGS)
def sum_over_nodes(first, last, side, rule, grid, values):
    """Interpolate from the nodes, grid (cells, k, p^d), to the points of cells first to last − 1, values (n, k)."""
    points, _, cells, starts, shape, half, corner = side
    p = rule[0].size
    for cell in range(first, last):
        nodes = grid[cells[cell]]
        centre, each, outer = _cell(cells[cell], shape, half, corner, p)
        for i in range(starts[cell], starts[cell + 1]):
            _weights(points[i], centre, half, rule, each, outer)
            for k in range(values.shape[1]):
                row, total = nodes[k], 0.0
                for a in range(outer.size):
                    part = 0.0
                    for q in range(p):
                        part += each[q] * row[a * p + q]
                    total += outer[a] * part
                values[i, k] = total
