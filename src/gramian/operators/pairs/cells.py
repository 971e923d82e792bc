"""Observed cells of a matrix, and how values over pairs become values over cells.

Pairs may repeat, and a pairwise kernel may place a pair on several cells (`(i, j)` and `(j, i)` for a symmetric one).
``C`` is the cells × pairs matrix of these weights: coefficients go in as ``C v``, values come out as ``Cᵀ u``.
Merging repeats is Remark 1 of Airola & Pahikkala.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["Cells", "SortedCells"]


@dataclass(frozen=True, eq=False)
class SortedCells:
    """Cells in compressed rows.

    Attributes
    ----------
    ptr : ndarray of int64 of shape (n_rows + 1,)
    columns : ndarray of int32 of shape (n_cells,)
    order : ndarray of shape (n_cells,) or None
        Number of each cell in the order of `Cells`; None if they are the same.
    size : tuple (n_rows, n_columns)
    is_grid : bool
        Whether every cell is there.
    """

    ptr: np.ndarray
    columns: np.ndarray
    order: np.ndarray | None
    size: tuple[int, int]
    is_grid: bool
    _cuts: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    def bounds(self, threads: int) -> np.ndarray:
        """Rows at which to cut into parts of about equal numbers of cells (and rows), four for each thread."""
        if threads not in self._cuts:
            cost = self.ptr + np.arange(self.ptr.size)
            at = np.linspace(0, cost[-1], 4 * threads + 1)
            self._cuts[threads] = np.searchsorted(cost, at).astype(np.int64)
        return self._cuts[threads]


class Cells:
    """Distinct cells, sorted by row and column.

    Parameters
    ----------
    rows, columns : ndarray of int64 of shape (n_cells,)
        Sorted by row, then column, without repeats.
    size : tuple (n_rows, n_columns)
    n_pairs : int
    combine : None, ndarray of shape (n_cells,) or csr_array of shape (n_cells, n_pairs)
        C: the identity, the pair of each cell, or any weights.
    """

    def __init__(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        size: tuple[int, int],
        n_pairs: int,
        combine: Any = None,
    ):
        self.rows = rows
        self.columns = columns
        self.size = size
        self.n_pairs = n_pairs
        self.combine = combine

    @classmethod
    def of(cls, rows: np.ndarray, columns: np.ndarray, size: tuple[int, int]) -> Cells:
        """Cells of pairs that are each on one cell."""
        code = rows.astype(np.int64) * size[1] + columns
        step = np.diff(code)
        if np.all(step > 0):
            return cls(rows.astype(np.int64), columns.astype(np.int64), size, code.size)
        distinct, first, inverse = np.unique(code, return_index=True, return_inverse=True)
        combine: Any = first
        if distinct.size < code.size:
            ones = np.ones(code.size)
            pairs = np.arange(code.size)
            combine = sp.csr_array((ones, (inverse, pairs)), shape=(distinct.size, code.size))
        return cls(distinct // size[1], distinct % size[1], size, code.size, combine)

    @classmethod
    def combined(
        cls, parts: Sequence[tuple[np.ndarray, np.ndarray, float]], size: tuple[int, int]
    ) -> Cells:
        """Cells of pairs that are on several cells, each part with its weight."""
        if len(parts) == 1 and parts[0][2] == 1:
            return cls.of(parts[0][0], parts[0][1], size)
        n_pairs = parts[0][0].size
        code = np.concatenate([r.astype(np.int64) * size[1] + c for r, c, _ in parts])
        weights = np.repeat([weight for _, _, weight in parts], n_pairs)
        distinct, inverse = np.unique(code, return_inverse=True)
        pairs = np.tile(np.arange(n_pairs), len(parts))
        combine = sp.csr_array((weights, (inverse, pairs)), shape=(distinct.size, n_pairs))
        return cls(distinct // size[1], distinct % size[1], size, n_pairs, combine)

    @classmethod
    def grid(cls, n_rows: int, n_columns: int) -> Cells:
        """Every cell, row by row."""
        rows = np.repeat(np.arange(n_rows), n_columns)
        return cls(
            rows, np.tile(np.arange(n_columns), n_rows), (n_rows, n_columns), n_rows * n_columns
        )

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return int(self.rows.size)

    def gathered(self, B: np.ndarray) -> np.ndarray:
        """C B: values over cells from coefficients (n_pairs, k) over pairs."""
        if self.combine is None:
            return B
        if isinstance(self.combine, np.ndarray):
            return B[self.combine]
        return (self.combine @ B).astype(B.dtype, copy=False)

    def handed_out(self, values: np.ndarray) -> np.ndarray:
        """Cᵀ u: values over pairs from values (n_cells, k) over cells."""
        if self.combine is None:
            return values
        if isinstance(self.combine, np.ndarray):
            out = np.empty_like(values)
            out[self.combine] = values
            return out
        return (self._handing_out @ values).astype(values.dtype, copy=False)

    @cached_property
    def _handing_out(self) -> Any:
        return self.combine.T.tocsr()

    def matrix(self, values: np.ndarray) -> Any:
        """Values over cells as a sparse matrix."""
        cells = self._by_row
        return sp.csr_array((values, cells.columns, cells.ptr), shape=self.size)

    def by_row(self) -> SortedCells:
        """Cells in compressed rows."""
        return self._by_row

    def by_column(self) -> SortedCells:
        """Cells of the transposed matrix in compressed rows."""
        return self._by_column

    @cached_property
    def _by_row(self) -> SortedCells:
        return self._sorted(self.rows, self.columns, self.size, None)

    @cached_property
    def _by_column(self) -> SortedCells:
        order = np.argsort(self.columns, kind="stable")  # rows ascend within a column already
        turned = (self.size[1], self.size[0])
        return self._sorted(self.columns[order], self.rows[order], turned, order)

    def _sorted(
        self, rows: np.ndarray, columns: np.ndarray, size: tuple[int, int], order: Any
    ) -> SortedCells:
        ptr = np.zeros(size[0] + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=size[0]), out=ptr[1:])
        grid = self.n_cells == size[0] * size[1]
        return SortedCells(ptr, columns.astype(np.int32), order, size, grid)
