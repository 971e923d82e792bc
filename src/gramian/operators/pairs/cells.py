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

from gramian.operators.pairs.loops import CellRows


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
    """

    ptr: np.ndarray
    columns: np.ndarray
    order: np.ndarray | None
    size: tuple[int, int]
    _parts: dict[int, CellRows] = field(default_factory=dict, repr=False)

    @property
    def is_grid(self) -> bool:
        """Whether every cell is there."""
        return self.columns.size == self.size[0] * self.size[1]

    def parts(self, threads: int) -> CellRows:
        """The cells, cut into parts of about equal numbers of cells (and rows), four for each thread."""
        if threads not in self._parts:
            cost = self.ptr + np.arange(self.ptr.size)
            bounds = np.searchsorted(cost, np.linspace(0, cost[-1], 4 * threads + 1))
            self._parts[threads] = CellRows(bounds.astype(np.int64), self.ptr, self.columns)
        return self._parts[threads]

    def matrix(self, values: np.ndarray) -> Any:
        """Values over cells, in the order of `Cells`, as a sparse matrix of these rows."""
        ordered = values if self.order is None else values[self.order]
        return sp.csr_array((ordered, self.columns, self.ptr), shape=self.size)


@dataclass(frozen=True, eq=False)
class Cells:
    """Distinct cells, sorted by row and column.

    Attributes
    ----------
    rows, columns : ndarray of int64 of shape (n_cells,)
        Sorted by row, then column, without repeats.
    size : tuple (n_rows, n_columns)
    n_pairs : int
    order : ndarray of shape (n_cells,) or None
        The pair of each cell, if C is a permutation; None if they are in the same order.
    combine : csr_array of shape (n_cells, n_pairs) or None
        C itself, if it is no permutation.
    """

    rows: np.ndarray
    columns: np.ndarray
    size: tuple[int, int]
    n_pairs: int
    order: np.ndarray | None = None
    combine: Any = None

    @classmethod
    def of(cls, rows: np.ndarray, columns: np.ndarray, size: tuple[int, int]) -> Cells:
        """Cells of pairs that are each on one cell."""
        return cls.combined([(rows, columns, 1.0)], size)

    @classmethod
    def combined(
        cls, parts: Sequence[tuple[np.ndarray, np.ndarray, float]], size: tuple[int, int]
    ) -> Cells:
        """Cells of pairs that are on several cells, each part with its weight."""
        n_pairs = parts[0][0].size
        code = np.concatenate([r.astype(np.int64) * size[1] + c for r, c, _ in parts])
        plain = len(parts) == 1 and parts[0][2] == 1
        if plain and np.all(np.diff(code) > 0):
            return cls(*np.divmod(code, max(1, size[1])), size, n_pairs)
        distinct, first, inverse = np.unique(code, return_index=True, return_inverse=True)
        cells = np.divmod(distinct, max(1, size[1]))
        if plain and distinct.size == code.size:
            return cls(*cells, size, n_pairs, order=first)
        weights = np.repeat([weight for _, _, weight in parts], n_pairs)
        pairs = np.tile(np.arange(n_pairs), len(parts))
        combine = sp.csr_array((weights, (inverse, pairs)), shape=(distinct.size, n_pairs))
        return cls(*cells, size, n_pairs, combine=combine)

    @classmethod
    def grid(cls, n_rows: int, n_columns: int) -> Cells:
        """Every cell, row by row."""
        code = np.arange(n_rows * n_columns)
        return cls(*np.divmod(code, max(1, n_columns)), (n_rows, n_columns), code.size)

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return int(self.rows.size)

    def gathered(self, B: np.ndarray) -> np.ndarray:
        """C B: values over cells from coefficients (n_pairs, k) over pairs."""
        if self.combine is not None:
            return (self.combine @ B).astype(B.dtype, copy=False)
        return B if self.order is None else B[self.order]

    def handed_out(self, values: np.ndarray) -> np.ndarray:
        """Cᵀ u: values over pairs from values (n_cells, k) over cells."""
        if self.combine is not None:
            return (self._handing_out @ values).astype(values.dtype, copy=False)
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out

    @cached_property
    def _handing_out(self) -> Any:
        return self.combine.T.tocsr()

    @cached_property
    def by_row(self) -> SortedCells:
        """Cells in compressed rows."""
        return _sorted(self.rows, self.columns, self.size, None)

    @cached_property
    def by_column(self) -> SortedCells:
        """Cells of the transposed matrix in compressed rows."""
        order = np.argsort(self.columns, kind="stable")  # rows ascend within a column already
        turned = (self.size[1], self.size[0])
        return _sorted(self.columns[order], self.rows[order], turned, order)


def _sorted(
    rows: np.ndarray, columns: np.ndarray, size: tuple[int, int], order: np.ndarray | None
) -> SortedCells:
    ptr = np.zeros(size[0] + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=size[0]), out=ptr[1:])
    return SortedCells(ptr, columns.astype(np.int32), order, size)
