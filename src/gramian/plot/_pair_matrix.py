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
    small, _, _ = pairs.compact()
    # settings of the pairs as they came: objects of one table are told apart by row, not by features
    setting = None if train is None else pair_setting(train, pairs)
    left_seen, right_seen = _seen(small, setting)
    if small.homogeneous:  # one order for both ends
        ends = np.concatenate([small.left_index, small.right_index])
        left_mean = right_mean = _means(ends, np.concatenate([y, y]), small.n_left)
    else:
        left_mean = _means(small.left_index, y, small.n_left)
        right_mean = _means(small.right_index, y, small.n_right)
    n_seen = None if train is None else (int(left_seen.sum()), int(right_seen.sum()))
    rows, columns = _order(left_mean, left_seen, sort), _order(right_mean, right_seen, sort)
    return small, rows, columns, n_seen


def _seen(pairs: Pairs, setting: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Whether each left and each right object was seen in training; none without training."""
    left, right = np.zeros(pairs.n_left, dtype=bool), np.zeros(pairs.n_right, dtype=bool)
    if setting is None:
        return left, right
    left[pairs.left_index[np.isin(setting, ("A", "C"))]] = True
    right[pairs.right_index[np.isin(setting, ("A", "B"))]] = True
    if pairs.homogeneous:  # an object is the same at both ends
        left = right = left | right
    return left, right


def _means(objects: np.ndarray, y: np.ndarray, n_objects: int) -> np.ndarray:
    """Mean response of each object; each has at least one."""
    return np.bincount(objects, y, n_objects) / np.bincount(objects, minlength=n_objects)


def _order(mean: np.ndarray, seen: np.ndarray, sort: bool) -> np.ndarray:
    return np.lexsort((-mean if sort else np.arange(len(mean)), ~seen))


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
