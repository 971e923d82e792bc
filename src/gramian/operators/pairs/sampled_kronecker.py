"""Entries of a Kronecker product, as something to multiply with: the sampled vec trick.

    (op v)_h = Σ_g left[i_h, k_g] right[j_h, l_g] v_g = (left V rightᵀ)[i_h, j_h],      V[k_g, l_g] = v_g

The paper (Airola & Pahikkala, Proposition 1 and Algorithm 1) computes it in ``O(min(ae + df, ce + bf))`` for factors of
sizes a × b and c × d, e sources and f targets. Repeated pairs are merged first (Remark 1), and a complete grid needs
no indices (Remark 2).

Deviates from the paper in

1. each phase may also multiply whole blocks, which wins as soon as a fair part of the cells is observed; see
   `kronecker_route` for the choice and `kronecker_loops` for the loops;
2. coefficients that are zero are skipped in phase one, and the route is chosen for those that are left (their mean
   number if there are several right-hand sides);
3. cells are sorted once, so that the loops run over rows in parallel and without conflicts.

Cost: that of the best of nine routes. Memory: the intermediate matrix, b × c or a × d, and one more of that size for
routes by blocks; kept between products.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import get_num_threads

from gramian._core.threads import exclusive, one_thread, single_threaded_blas
from gramian.operators.pairs.cells import Cells
from gramian.operators.pairs.loops import (
    direct,
    fill,
    multiply,
    multiply_and_read,
    multiply_each,
    multiply_turned,
    read,
    spread,
    spread_transposed,
)
from gramian.operators.pairs.route import Route, Shape, best_route

__all__ = ["SampledKronecker"]

WORTH_THREADS = 3e4  # estimated nanoseconds from which other threads are worth waking
WORTH_THREADS_ONCE = 4e6  # the same right after a matrix product, whose threads are still spinning
CACHED = 2**24  # bytes of the factor that a stretch of `spread` may use
ROOM = 2**27  # bytes of intermediate matrices beyond which right-hand sides go one by one


class SampledKronecker:
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
        dtype = _common_dtype(left, right)
        self.left = None if left is None else _matrix("left", left, dtype)
        self.right = None if right is None else _matrix("right", right, dtype)
        self.dtype = dtype
        if (source_rows is None) != (source_columns is None):
            raise ValueError("source_rows and source_columns must be given together.")
        rows, columns = _index("rows", rows), _index("columns", columns)
        origin = None
        if source_rows is not None:
            origin = (_index("source_rows", source_rows), _index("source_columns", source_columns))
        tall = _extent(self.left, rows, origin and origin[0])
        wide = _extent(self.right, columns, origin and origin[1])
        heights, widths = (tall[0], wide[0]), (tall[1], wide[1])
        _check_range(("rows", "columns"), (rows, columns), heights)
        targets = Cells.of(rows, columns, heights)
        if origin is not None:
            _check_range(("source_rows", "source_columns"), origin, widths)
            sources = Cells.of(*origin, widths)
        else:
            sources = targets if heights == widths else Cells.grid(*widths)
        self._setup(targets, sources, route)
        self.worth_threads = WORTH_THREADS

    def _setup(self, targets: Cells, sources: Cells, route: Any) -> None:
        self.targets = targets
        self.sources = sources
        self.shape = (targets.n_pairs, sources.n_pairs)
        self._fixed = None if route is None else _checked_route(route, self.left, self.right)
        self._room: dict[tuple[str, tuple[int, ...]], np.ndarray] = {}
        self.route_ = self._route(sources.n_cells)

    @classmethod
    def from_cells(
        cls,
        left: np.ndarray | None,
        right: np.ndarray | None,
        targets: Cells,
        sources: Cells,
        *,
        once: bool = False,
    ) -> SampledKronecker:
        """Make one from C-ordered matrices and cells that are sorted already; pairs may be on several cells.

        ``once`` says that it will be used right after the matrices were computed, not again and again.
        """
        op = cls.__new__(cls)
        op.left, op.right = left, right
        op.dtype = (right if left is None else left).dtype  # type: ignore[union-attr]
        op._setup(targets, sources, None)
        op.worth_threads = WORTH_THREADS_ONCE if once else WORTH_THREADS
        return op

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_room": {}}

    # --- products ---------------------------------------------------------------------------

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        """Multiply coefficients of shape (e,) or (e, ...), in the precision of the factors.

        Parameters
        ----------
        B : array of shape (e,) or (e, ...)

        Returns
        -------
        array of shape (f,) or (f, ...), of the dtype of B
        """
        B = np.asarray(B)
        if B.shape[:1] != self.shape[1:]:
            raise ValueError(
                f"SampledKronecker of shape {self.shape} cannot multiply an array of shape {B.shape}: it needs one "
                "row for each source pair."
            )
        flat = _flat(B)
        cells = self.sources.gathered(flat.astype(self.dtype, copy=False))
        at_once = self._columns_at_once()
        rows = [np.empty((0, self.targets.n_cells), self.dtype)] * (not flat.shape[1])
        rows += [
            self._products(np.ascontiguousarray(cells[:, k : k + at_once].T))
            for k in range(0, flat.shape[1], at_once)
        ]
        values = (rows[0] if len(rows) == 1 else np.concatenate(rows)).T
        kind = B.dtype if B.dtype.kind == "f" else self.dtype
        out = self.targets.handed_out(values).astype(kind, copy=False)
        return out.reshape((self.shape[0], *B.shape[1:]))

    def accurate(self, B: np.ndarray) -> np.ndarray:
        """Multiply with everything in float64."""
        return self._double @ B

    @cached_property
    def _double(self) -> SampledKronecker:
        if self.dtype == np.float64:
            return self
        left, right = (None if m is None else m.astype(np.float64) for m in (self.left, self.right))
        return SampledKronecker.from_cells(left, right, self.targets, self.sources)

    @property
    def T(self) -> SampledKronecker:
        """The transposed operator, from targets to sources."""
        left, right = (
            None if m is None else np.ascontiguousarray(m.T) for m in (self.left, self.right)
        )
        return SampledKronecker.from_cells(left, right, self.sources, self.targets)

    def to_dense(self) -> np.ndarray:
        """Return the matrix itself; for small problems and tests."""
        return self @ np.eye(self.shape[1], dtype=self.dtype)

    def factor_gradients(
        self, E: np.ndarray, F: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the gradients of ``⟨E, op F⟩`` in the entries of left and right.

        Parameters
        ----------
        E : array of shape (f, k)
        F : array of shape (e, k)

        Returns
        -------
        left, right : ndarray of shape (a, b) and (c, d), or None for an identity
        """
        E_cells = self.targets.gathered(_flat(np.asarray(E, dtype=np.float64)))
        F_cells = self.sources.gathered(_flat(np.asarray(F, dtype=np.float64)))
        left = None if self.left is None else np.zeros(self.left.shape)
        right = None if self.right is None else np.zeros(self.right.shape)
        for k in range(E_cells.shape[1]):
            V, W = self.sources.matrix(F_cells[:, k]), self.targets.matrix(E_cells[:, k])
            if left is not None:  # W right Vᵀ
                inner = V.T if self.right is None else (V @ self.right.T).T
                left += _dense(W @ inner)
            if right is not None:  # Wᵀ left V
                inner = V if self.left is None else (V.T @ self.left.T).T
                right += _dense(W.T @ inner)
        return left, right

    # --- some columns -----------------------------------------------------------------------

    def _columns_at_once(self) -> int:
        (a, c), (b, d) = self.targets.size, self.sources.size
        return max(1, ROOM // (max(1, b * c, a * d, b * d) * self.dtype.itemsize))

    def _shape(self, count: int) -> Shape:
        (a, c), (b, d) = self.targets.size, self.sources.size
        return Shape(a, b, c, d, count, self.targets.n_cells, self.left is None, self.right is None)

    def _route(self, count: int) -> Route:
        return self._fixed or best_route(self._shape(count), self.dtype.itemsize)

    def _products(self, values: np.ndarray) -> np.ndarray:
        """Values (k, n_target_cells) from those at the source cells, (k, n_source_cells)."""
        count = int(np.count_nonzero(values)) // max(1, len(values))
        route = self.route_ if count == values.shape[1] else self._route(count)
        if route.first == "neither":
            return self._directly(values)
        turned = route.first == "left"
        left = self.right if turned else self.left
        assert left is not None  # routes never end with an identity
        target = self.targets.by_column() if turned else self.targets.by_row()
        alone = route.cost * len(values) < self.worth_threads
        with (
            exclusive(),
            one_thread() if alone else nullcontext(),
            single_threaded_blas() if route.needs_blas else nullcontext(),
        ):
            inner = self._inner(values, route, turned)
            out = np.empty((len(values), target.columns.size), self.dtype)
            rows, columns = target.size
            threads = get_num_threads()
            if route.phase_two == "cells":
                bounds = target.bounds(threads)
                read(bounds, target.ptr, target.columns, left, inner, out)
            elif target.is_grid:
                multiply_each(
                    _even(rows, threads), left, inner, out.reshape(len(values), rows, columns)
                )
            else:
                whole = self._buffer("whole", (rows, columns))
                multiply_and_read(
                    _even(rows, threads), target.ptr, target.columns, left, inner, whole, out
                )
        if target.order is None:
            return out
        back = np.empty_like(out)
        back[:, target.order] = out
        return back

    def _directly(self, values: np.ndarray) -> np.ndarray:
        """Products of cells one by one."""
        out = np.empty((len(values), self.targets.n_cells), self.dtype)
        targets, sources = self.targets, self.sources
        places = (targets.rows, targets.columns, sources.rows, sources.columns)
        direct(*places, values, self.left, self.right, out)
        return out

    def _inner(self, values: np.ndarray, route: Route, turned: bool) -> np.ndarray:
        """Phase one: D of shape (k, b, c), or its transpose (k, c, b) if phase two reads cells."""
        right = self.left if turned else self.right
        source = self.sources.by_column() if turned else self.sources.by_row()
        values = values if source.order is None else np.take(values, source.order, axis=1)
        k, (b, d) = len(values), source.size
        c = self.targets.size[0 if turned else 1]
        by_cells = route.phase_two == "cells"
        threads = get_num_threads()
        inner = self._buffer("inner", (k, c, b) if by_cells else (k, b, c))
        bounds = source.bounds(threads)
        if route.phase_one == "cells" and right is not None:
            width = max(256, CACHED // (max(1, d) * self.dtype.itemsize))
            loop = spread_transposed if by_cells else spread
            factor = self._transposed(turned)
            loop(bounds, source.ptr, source.columns, values, factor, width, inner)
            return inner
        if right is None and not by_cells:
            fill(bounds, source.ptr, source.columns, values, inner)
            return inner
        if source.is_grid:
            V = values.reshape(k, b, d)
        else:
            V = self._buffer("V", (k, b, d))
            fill(bounds, source.ptr, source.columns, values, V)
        if right is None:
            inner[:] = V.transpose(0, 2, 1)
        elif by_cells:
            multiply_turned(_even(c, threads), right, V, inner)
        else:
            flat = V.reshape(k * b, d)
            multiply(_even(k * b, threads), flat, self._transposed(turned), inner.reshape(k * b, c))
        return inner

    def _transposed(self, turned: bool) -> np.ndarray:
        """The factor that multiplies first, its columns as rows."""
        return self._left_transposed if turned else self._right_transposed

    @cached_property
    def _left_transposed(self) -> np.ndarray:
        return _transposed(self.left)

    @cached_property
    def _right_transposed(self) -> np.ndarray:
        return _transposed(self.right)

    def _buffer(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Room that is kept between products: fresh memory costs more than using it."""
        if (name, shape) not in self._room:
            self._room = {key: room for key, room in self._room.items() if key[0] != name}
            self._room[name, shape] = np.zeros(shape, self.dtype)
        return self._room[name, shape]

    @property
    def nbytes(self) -> int:
        """Bytes of the factors and of the room for intermediate results."""
        kept = [m for m in (self.left, self.right) if m is not None]
        return sum(m.nbytes for m in (*kept, *self._room.values()))

    def __repr__(self) -> str:
        (a, c), (b, d) = self.targets.size, self.sources.size
        return f"SampledKronecker({self.shape[0]} of {a} x {c} cells from {self.shape[1]} of {b} x {d}, {self.dtype})"


def _common_dtype(left: Any, right: Any) -> np.dtype:
    kinds = {np.asarray(m).dtype for m in (left, right) if m is not None}
    return np.dtype(np.float32 if kinds == {np.dtype(np.float32)} else np.float64)


def _matrix(name: str, values: Any, dtype: np.dtype) -> np.ndarray:
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


def _extent(
    factor: np.ndarray | None, index: np.ndarray, source: np.ndarray | None
) -> tuple[int, int]:
    """Shape of a factor; an identity is as large as its indices need."""
    if factor is not None:
        return (factor.shape[0], factor.shape[1])
    largest = max(int(part.max(initial=-1)) for part in (index, source) if part is not None)
    return (largest + 1, largest + 1)


def _check_range(
    names: tuple[str, str], index: tuple[np.ndarray, np.ndarray], size: tuple[int, int]
) -> None:
    first, second = index
    if first.size != second.size:
        raise ValueError(
            f"{names[0]} and {names[1]} must have one length, got {first.size} and {second.size}."
        )
    for name, values, limit in zip(names, index, size, strict=True):
        bad = np.flatnonzero((values < 0) | (values >= limit))
        if bad.size:
            raise ValueError(
                f"{name} must be between 0 and {limit - 1}, got {values[bad[0]]} at position {bad[0]}."
            )


def _checked_route(route: Any, left: np.ndarray | None, right: np.ndarray | None) -> Route:
    phases = ("cells", "blocks")
    good = isinstance(route, tuple) and len(route) == 3 and set(route[1:]) <= set(phases)
    if good and route[0] == "neither":
        good = route[1:] == ("cells", "cells") and left is not None and right is not None
    if not good or route[0] not in ("right", "left", "neither"):
        raise ValueError(
            "route must be (first, phase_one, phase_two) with first 'right' or 'left' and phases 'cells' or 'blocks', "
            f"or ('neither', 'cells', 'cells') for two matrices; got {route!r}."
        )
    if route[0] != "neither" and (left if route[0] == "right" else right) is None:
        raise ValueError(f"route {route!r} ends with an identity: take its factor first.")
    return Route(*route)


def _flat(B: np.ndarray) -> np.ndarray:
    """All axes but the first as one; -1 would not do without rows."""
    return B.reshape(B.shape[0], prod(B.shape[1:]))


def _transposed(factor: np.ndarray | None) -> np.ndarray:
    assert factor is not None
    if factor.shape[0] == factor.shape[1] and np.array_equal(factor, factor.T):
        return factor  # symmetric: no copy
    return np.ascontiguousarray(factor.T)


@lru_cache(maxsize=256)
def _even(n: int, threads: int) -> np.ndarray:
    """Rows at which to cut for BLAS: one block a thread, or several equal ones where blocks get large."""
    parts = threads * -(-n // (2048 * threads)) if n else threads
    return np.linspace(0, n, parts + 1).astype(np.int64)


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
