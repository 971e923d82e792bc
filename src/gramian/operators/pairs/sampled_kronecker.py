"""Entries of a Kronecker product that belong to given pairs: checks of the arguments, then `KroneckerProduct`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.operators.pairs.cells import Cells
from gramian.operators.pairs.kronecker import KroneckerProduct
from gramian.operators.pairs.route import ROUTES, Route


class SampledKronecker(KroneckerProduct):
    """Rows and columns of ``left ⊗ right`` that belong to given pairs.

    Parameters
    ----------
    left : array of shape (a, b) or None
    right : array of shape (c, d) or None
        None is the identity, for one of the two.
    rows, columns : int array of shape (f,)
        The pairs to read: rows of left and of right.
    source_rows, source_columns : int array of shape (e,), default=None
        The pairs that the coefficients belong to: columns of left and of right. None means the same pairs when
        both factors are square, else every cell of the b × d matrix V, row by row.
    route : tuple (first, phase_one, phase_two), default=None
        A fixed route, see `Route`; None chooses the cheapest.

    Attributes
    ----------
    shape : tuple (f, e)
    dtype : dtype
    route_ : Route
        What is done when no coefficient is zero, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import SampledKronecker
    >>> left, right = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[3.0, 0.0], [0.0, 3.0]])
    >>> op = SampledKronecker(left, right, rows=[0, 1, 1], columns=[0, 0, 1])
    >>> op @ np.array([1.0, 1.0, 1.0])
    array([9., 9., 6.])
    """

    def __init__(
        self,
        left: Any,
        right: Any,
        rows: Any,
        columns: Any,
        source_rows: Any = None,
        source_columns: Any = None,
        *,
        route: tuple[str, str, str] | None = None,
    ):
        if left is None and right is None:
            raise ValueError("left and right must not both be None: at least one is a matrix.")
        if (source_rows is None) != (source_columns is None):
            raise ValueError("source_rows and source_columns must be given together.")
        kinds = {np.asarray(m).dtype for m in (left, right) if m is not None}
        dtype = np.dtype(np.float32 if kinds == {np.dtype(np.float32)} else np.float64)
        left, right = _factor("left", left, dtype), _factor("right", right, dtype)
        index = [_index("rows", rows), _index("columns", columns)]
        origin = index
        if source_rows is not None:
            origin = [_index("source_rows", source_rows), _index("source_columns", source_columns)]
        (a, b), (c, d) = (_extent(*side) for side in zip((left, right), index, origin, strict=True))
        targets = _cells(("rows", "columns"), index, (a, c))
        if source_rows is not None:
            sources = _cells(("source_rows", "source_columns"), origin, (b, d))
        else:
            sources = targets if (a, c) == (b, d) else Cells.grid(b, d)
        fixed = None if route is None else _checked_route(route, left, right)
        super().__init__(left, right, targets, sources, route=fixed)


def _factor(name: str, values: Any, dtype: np.dtype) -> np.ndarray | None:
    if values is None:
        return None
    matrix = np.ascontiguousarray(values, dtype=dtype)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix, got shape {matrix.shape}.")
    return matrix


def _index(name: str, values: Any) -> np.ndarray:
    index = np.asarray(values)
    if index.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {index.shape}.")
    if index.dtype.kind not in "iu" and index.size:
        raise TypeError(f"{name} must hold integers, got {index.dtype}.")
    return index.astype(np.int64)


def _extent(factor: np.ndarray | None, *indices: np.ndarray) -> tuple[int, int]:
    """Shape of a factor; an identity is as large as its indices need."""
    if factor is not None:
        return (factor.shape[0], factor.shape[1])
    size = 1 + max(int(index.max(initial=-1)) for index in indices)
    return (size, size)


def _cells(names: tuple[str, str], index: list[np.ndarray], size: tuple[int, int]) -> Cells:
    """Cells from two arrays of indices, once they are known to be good."""
    if index[0].size != index[1].size:
        raise ValueError(
            f"{names[0]} and {names[1]} must have one length, got {index[0].size} and {index[1].size}."
        )
    for name, values, limit in zip(names, index, size, strict=True):
        bad = np.flatnonzero((values < 0) | (values >= limit))
        if bad.size:
            raise ValueError(
                f"{name} must be between 0 and {limit - 1}, got {values[bad[0]]} at position {bad[0]}."
            )
    return Cells.of(index[0], index[1], size)


def _checked_route(route: Any, left: np.ndarray | None, right: np.ndarray | None) -> Route:
    """The route that was asked for; only a matrix may be the last factor, or one of two that go side by side."""
    matrices = {"right": (left,), "left": (right,), "neither": (left, right)}
    if route not in ROUTES or any(matrix is None for matrix in matrices[route[0]]):
        raise ValueError(
            "route must be (first, phase_one, phase_two) with first 'right' or 'left' and phases 'cells' or 'blocks', "
            "where the other factor is a matrix, or ('neither', 'cells', 'cells') for two matrices; "
            f"got {route!r}."
        )
    return Route(*route)
