"""The compiled loops of `gaussian_grid`: from points to the nodes of their cells and back.

Threads share the cells: no two of them write to one place. A cell with very many points is the work of one. The weights
of a point are an outer product, that of its last feature and of all others, so that the points of a cell meet its nodes
in a matrix product, block by block. These are the business of BLAS, which gets one thread from the caller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gramian.operators.compiled.radial_loops import FLAGS

BLOCK = 64  # points whose weights are known at a time: with 24³ nodes they take 300 KiB


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


class _Room(NamedTuple):
    """What is known of a block of points of one cell."""

    each: np.ndarray  # (points, p): weights of the nodes of the last feature
    outer: np.ndarray  # (points, p^(d − 1)): products of the weights of all others


@njit(cache=True)
def _room(d, p):
    return _Room(np.empty((BLOCK, p)), np.empty((BLOCK, p ** (d - 1))))


@njit(cache=True)
def _centre(number, side):
    """Centre of the cell with this number."""
    d, rest = side.shape.size, number
    centre = np.empty(d)
    for f in range(d - 1, -1, -1):
        centre[f] = side.corner[f] + side.half[f] * (2 * (rest % side.shape[f]) + 1)
        rest //= side.shape[f]
    return centre


@njit(cache=True, fastmath=FLAGS, error_model="numpy")
def _weights(begin, end, side, centre, rule, room):
    """Interpolation weights of the points begin to end − 1, which lie in one cell, into the first rows of the room."""
    unit, barycentric = rule
    each, outer = room
    p, d = unit.size, centre.size
    for i in range(end - begin):
        outer[i, 0], filled = 1.0, 1
        for f in range(d):
            t = (side.points[begin + i, f] - centre[f]) / side.half[f]
            total = 0.0
            for q in range(p):
                each[i, q] = barycentric[q] / (t - unit[q])
                total += each[i, q]
            if np.isfinite(total):
                factor = 1.0 / total
                for q in range(p):
                    each[i, q] *= factor
            else:  # the point is a node
                for q in range(p):
                    each[i, q] = 1.0 if t == unit[q] else 0.0
            if f < d - 1:
                for a in range(filled - 1, -1, -1):
                    so_far = outer[i, a]
                    for q in range(p):
                        outer[i, a * p + q] = so_far * each[i, q]
                filled *= p


@njit(cache=True, nogil=True, fastmath=FLAGS)
def add_to_nodes(first, last, side, rule, values, grid):
    """Add the values (n, k) of the points of cells first to last − 1 to the nodes, grid (cells, k, p^(d − 1), p)."""
    room = _room(side.half.size, rule.unit.size)
    scaled, product = np.empty_like(room.outer), np.empty((grid.shape[2], grid.shape[3]))
    for cell in range(first, last):
        number = side.cells[cell]
        centre = _centre(number, side)
        for begin in range(side.starts[cell], side.starts[cell + 1], BLOCK):
            end = min(begin + BLOCK, side.starts[cell + 1])
            _weights(begin, end, side, centre, rule, room)
            for k in range(values.shape[1]):
                for i in range(end - begin):
                    for a in range(scaled.shape[1]):
                        scaled[i, a] = values[begin + i, k] * room.outer[i, a]
                np.dot(scaled[: end - begin].T, room.each[: end - begin], product)
                for a in range(product.shape[0]):
                    for q in range(product.shape[1]):
                        grid[number, k, a, q] += product[a, q]


@njit(cache=True, nogil=True, fastmath=FLAGS)
def sum_over_nodes(first, last, side, rule, grid, values):
    """Interpolate from the nodes, grid as above, to the points of cells first to last − 1, values (n, k)."""
    room = _room(side.half.size, rule.unit.size)
    product = np.empty_like(room.outer)
    for cell in range(first, last):
        number = side.cells[cell]
        centre = _centre(number, side)
        for begin in range(side.starts[cell], side.starts[cell + 1], BLOCK):
            end = min(begin + BLOCK, side.starts[cell + 1])
            _weights(begin, end, side, centre, rule, room)
            for k in range(values.shape[1]):
                np.dot(room.each[: end - begin], grid[number, k].T, product[: end - begin])
                for i in range(end - begin):
                    total = 0.0
                    for a in range(product.shape[1]):
                        total += room.outer[i, a] * product[i, a]
                    values[begin + i, k] = total
