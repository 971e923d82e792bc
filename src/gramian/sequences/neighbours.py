"""Rows of positions: those of chosen sequences, and those that stand beside each position."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def rows_of(bounds: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the rows of the chosen sequences, one sequence after the other."""
    lengths = bounds[chosen + 1] - bounds[chosen]
    new_starts = np.cumsum(lengths) - lengths
    shift = np.repeat(bounds[chosen] - new_starts, lengths)
    return np.arange(len(shift)) + shift


def offsets_of(before: int, after: int) -> list[int]:
    """Return the distances to the neighbours, the nearest first: −1, +1, −2, +2 and so on."""
    both = [sign * k for k in range(1, max(before, after) + 1) for sign in (-1, 1)]
    return [offset for offset in both if -before <= offset <= after]


def beside(positions: Any, lengths: np.ndarray, offsets: list[int], weight: float) -> Any:
    """Return the features of each position, and beside them those of the neighbours times ``weight``.

    The weight is a number of Python, which leaves the precision of the table as it is. What is beyond the ends of a
    sequence is zero: the neighbour of row t at an offset o is row t + o only if it is in the same sequence, that is, if
    the place of t in its sequence plus o is at least 0 and below its length.
    """
    n, d = positions.shape
    starts = np.cumsum(lengths) - lengths
    place = np.arange(n) - np.repeat(starts, lengths)
    length = np.repeat(lengths, lengths)
    inside = [(place + offset >= 0) & (place + offset < length) for offset in offsets]
    if sp.issparse(positions):
        moved = (_moved(positions, o, rows, weight) for o, rows in zip(offsets, inside))
        return sp.csr_array(sp.hstack([positions, *moved], format="csr"))
    wide = np.zeros((n, d * (1 + len(offsets))), dtype=positions.dtype)
    wide[:, :d] = positions
    for k, (offset, rows) in enumerate(zip(offsets, inside), start=1):
        wide[rows, k * d : (k + 1) * d] = weight * positions[np.flatnonzero(rows) + offset]
    return wide


def _moved(positions: Any, offset: int, rows: np.ndarray, weight: float) -> Any:
    """Return a sparse table whose given rows are those of the positions at an offset; all others are empty."""
    taken = positions[np.flatnonzero(rows) + offset]
    counts = np.zeros(len(rows), dtype=taken.indptr.dtype)
    counts[rows] = np.diff(taken.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((weight * taken.data, taken.indices, indptr), shape=positions.shape)
