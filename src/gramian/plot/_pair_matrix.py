"""Pairs as a matrix: which cell goes where, and what it holds."""

from __future__ import annotations

import numpy as np

from gramian.pairs import Pairs
from gramian.selection import pair_setting

SHOWN_CELLS = 400  # of a side at most; more would be smaller than a pixel


def arranged(
    pairs: Pairs, y: np.ndarray, train: Pairs | None, sort: bool
) -> tuple[Pairs, np.ndarray, np.ndarray, tuple[int, int] | None]:
    """Order the objects that occur: those seen in training first, then by response or row number.

    Returns the pairs of these objects only, the order of their left and of their right objects, and how
    many of both were seen.
    """
    small = pairs.compact()[0]
    # settings of the pairs as they came: objects of one table are told apart by row, not by features
    setting = np.full(len(pairs), "D") if train is None else pair_setting(train, pairs)
    ends = [
        (side.index, y, np.isin(setting, known))
        for side, known in zip(small.sides, (("A", "C"), ("A", "B")), strict=True)
    ]
    if small.homogeneous:  # an object is the same at both ends: one order for both
        ends = [tuple(map(np.concatenate, zip(*ends, strict=True)))] * 2
    orders, n_seen = [], []
    for side, (index, response, known) in zip(small.sides, ends, strict=True):
        seen = np.bincount(index, known, side.size) > 0
        rank = -_means(index, response, side.size) if sort else np.arange(side.size)
        orders.append(np.lexsort((rank, ~seen)))
        n_seen.append(int(seen.sum()))
    return small, orders[0], orders[1], None if train is None else (n_seen[0], n_seen[1])


def _means(objects: np.ndarray, y: np.ndarray, n_objects: int) -> np.ndarray:
    """Mean response of each object; each has at least one."""
    return np.bincount(objects, y, n_objects) / np.bincount(objects, minlength=n_objects)


def matrix_of(pairs: Pairs, y: np.ndarray) -> np.ndarray:
    """Mean response of each cell, NaN where there is none."""
    rows, columns, cell = pairs.distinct()
    matrix = np.full((pairs.n_left, pairs.n_right), np.nan)
    matrix[rows, columns] = _means(cell, y, len(rows))
    return matrix


def coarse(matrix: np.ndarray) -> np.ndarray:
    """Means of blocks without the missing values, where there are more cells than can be seen."""
    known = np.isfinite(matrix).astype(float)
    total = np.where(known > 0, matrix, 0.0)
    for axis, n in enumerate(matrix.shape):
        first = np.unique(np.arange(min(n, SHOWN_CELLS)) * n // min(n, SHOWN_CELLS))
        total = np.add.reduceat(total, first, axis=axis)
        known = np.add.reduceat(known, first, axis=axis)
    return np.divide(total, known, out=np.full_like(total, np.nan), where=known > 0)
