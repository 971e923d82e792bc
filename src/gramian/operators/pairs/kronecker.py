"""A Kronecker product between observed cells, as something to multiply with: the sampled vec trick.

    (op v)_h = Σ_g left[i_h, k_g] right[j_h, l_g] v_g = (left V rightᵀ)[i_h, j_h],      V[k_g, l_g] = v_g

The paper (Airola & Pahikkala, Proposition 1 and Algorithm 1) computes it in ``O(min(ae + df, ce + bf))`` for factors of
sizes a × b and c × d, e sources and f targets. Repeated pairs are merged first (Remark 1), and a complete grid needs
no indices (Remark 2).

Deviates from the paper in

1. each phase may also multiply whole blocks, which wins as soon as a fair part of the cells is observed; see
   `route` for the choice and `loops` for the loops;
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

from gramian._core.threads import (
    exclusive,
    number_of_threads,
    one_thread,
    single_threaded_blas,
)
from gramian.operators.pairs import loops
from gramian.operators.pairs.cells import Cells
from gramian.operators.pairs.route import Route, Shape, best_route, flops

# From which estimated cost other threads are worth waking, and the same right after a matrix product, whose threads
# are still spinning. Measured on both cores of the machine of benchmarks/RESULTS.md.
THREADED_FLOPS = flops(3e4)
THREADED_FLOPS_AFTER_BLAS = flops(4e6)
FACTOR_CACHE_BYTES = 2**24  # of the factor that a stretch of `spread` may use
INTERMEDIATE_BYTES = 2**27  # of matrices between the phases; beyond, right-hand sides go one by one
BLAS_BLOCK_ROWS = 2048  # the most rows of a block that one call of BLAS multiplies


class TermOperator:
    """One term of a pairwise kernel as something to multiply with."""

    route_: Route | None = None

    def whole_factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Both factors and the pair of each cell if the term is a whole Kronecker product, else None."""
        return None


class KroneckerProduct(TermOperator):
    """``left ⊗ right`` from the cells of coefficients to the cells that are read.

    Parameters
    ----------
    left : C-ordered ndarray of shape (a, b) or None
    right : C-ordered ndarray of shape (c, d) or None
        Of one dtype. None is the identity, for one of the two.
    targets : Cells of size (a, c)
    sources : Cells of size (b, d)
    route : Route, default=None
        A fixed route; None chooses the cheapest.
    once : bool, default=False
        Whether it is used right after the matrices were computed, and not again and again.
    """

    route_: Route

    def __init__(
        self,
        left: np.ndarray | None,
        right: np.ndarray | None,
        targets: Cells,
        sources: Cells,
        *,
        route: Route | None = None,
        once: bool = False,
    ):
        self.left, self.right = left, right
        self.targets, self.sources = targets, sources
        self.shape = (targets.n_pairs, sources.n_pairs)
        self.dtype = (right if left is None else left).dtype  # type: ignore[union-attr]
        self.threaded_flops = THREADED_FLOPS_AFTER_BLAS if once else THREADED_FLOPS
        self._fixed = route
        self._room: dict[tuple[str, tuple[int, ...]], np.ndarray] = {}
        self._transposes: dict[bool, np.ndarray] = {}
        self.route_ = self._route(sources.n_cells)

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
                f"{type(self).__name__} of shape {self.shape} cannot multiply an array of shape {B.shape}: it needs "
                "one row for each source pair."
            )
        flat = _flat(B)
        cells = self.sources.gathered(flat.astype(self.dtype, copy=False))
        (a, c), (b, d) = self.targets.size, self.sources.size
        entry_bytes = max(1, b * c, a * d, b * d) * self.dtype.itemsize
        at_once = max(1, INTERMEDIATE_BYTES // entry_bytes)
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
    def _double(self) -> KroneckerProduct:
        if self.dtype == np.float64:
            return self
        left, right = (None if m is None else m.astype(np.float64) for m in (self.left, self.right))
        return KroneckerProduct(left, right, self.targets, self.sources)

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
            V = self.sources.by_row.matrix(F_cells[:, k])
            W = self.targets.by_row.matrix(E_cells[:, k])
            if left is not None:  # W right Vᵀ
                inner = V.T if self.right is None else (V @ self.right.T).T
                left += dense(W @ inner)
            if right is not None:  # Wᵀ left V
                inner = V if self.left is None else (V.T @ self.left.T).T
                right += dense(W.T @ inner)
        return left, right

    def whole_factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        cells = self.targets
        whole = self.sources is cells and cells.by_row.is_grid and cells.combine is None
        if not whole or self.left is None or self.right is None:
            return None
        order = np.arange(cells.n_cells) if cells.order is None else cells.order
        return self.left, self.right, order

    # --- some columns -----------------------------------------------------------------------

    def _route(self, count: int) -> Route:
        """The route where ``count`` coefficients are not zero."""
        if self._fixed is not None:
            return self._fixed
        identities = (self.left is None, self.right is None)
        shape = product_shape(self.targets, self.sources, count, *identities)
        return best_route(shape, self.dtype.itemsize)

    def _products(self, values: np.ndarray) -> np.ndarray:
        """Values (k, n_target_cells) from those at the source cells, (k, n_source_cells)."""
        count = int(np.count_nonzero(values)) // max(1, len(values))
        route = self.route_ if count == values.shape[1] else self._route(count)
        out = np.empty((len(values), self.targets.n_cells), self.dtype)
        if route.first == "neither":
            read, given = ((cells.rows, cells.columns) for cells in (self.targets, self.sources))
            loops.direct(read, given, values, self.left, self.right, out)
            return out
        turned = route.first == "left"
        last = self.right if turned else self.left
        target = self.targets.by_column if turned else self.targets.by_row
        alone = route.cost * len(values) < self.threaded_flops
        with (
            exclusive(),
            one_thread() if alone else nullcontext(),
            single_threaded_blas() if route.needs_blas else nullcontext(),
        ):
            inner = self._inner(values, route, turned)
            threads = number_of_threads()
            blocks = _even(target.size[0], threads)
            if route.phase_two == "cells":
                loops.read(target.parts(threads), last, inner, out)
            elif target.is_grid:
                loops.multiply_each(blocks, last, inner, out.reshape(len(values), *target.size))
            else:
                whole = self._buffer("whole", target.size)
                cells = target.parts(threads)._replace(bounds=blocks)
                loops.multiply_and_read(cells, last, inner, whole, out)
        if target.order is None:
            return out
        back = np.empty_like(out)
        back[:, target.order] = out
        return back

    def _inner(self, values: np.ndarray, route: Route, turned: bool) -> np.ndarray:
        """Phase one: D of shape (k, b, c), or its transpose (k, c, b) if phase two reads cells."""
        first = self.left if turned else self.right
        source = self.sources.by_column if turned else self.sources.by_row
        values = values if source.order is None else np.take(values, source.order, axis=1)
        k, (b, d) = len(values), source.size
        c = self.targets.size[0 if turned else 1]
        by_cells = route.phase_two == "cells"
        threads = number_of_threads()
        cells = source.parts(threads)
        inner = self._buffer("inner", (k, c, b) if by_cells else (k, b, c))
        if route.phase_one == "cells" and first is not None:
            width = max(256, FACTOR_CACHE_BYTES // (max(1, d) * self.dtype.itemsize))
            loop = loops.spread_transposed if by_cells else loops.spread
            loop(cells, values, self._transposed(first, turned), width, inner)
            return inner
        if first is None and not by_cells:
            loops.fill(cells, values, inner)
            return inner
        V = values.reshape(k, b, d) if source.is_grid else self._buffer("V", (k, b, d))
        if not source.is_grid:
            loops.fill(cells, values, V)
        if first is None:
            inner[:] = V.transpose(0, 2, 1)
        elif by_cells:
            loops.multiply_turned(_even(c, threads), first, V, inner)
        else:  # one product for all right-hand sides
            stack = self._transposed(first, turned)[None]
            flat = V.reshape(k * b, d)
            loops.multiply_each(_even(k * b, threads), flat, stack, inner.reshape(1, k * b, c))
        return inner

    def _transposed(self, factor: np.ndarray, turned: bool) -> np.ndarray:
        """The factor that multiplies first, its columns as rows."""
        if turned not in self._transposes:
            symmetric = factor.shape[0] == factor.shape[1] and np.array_equal(factor, factor.T)
            self._transposes[turned] = factor if symmetric else np.ascontiguousarray(factor.T)
        return self._transposes[turned]

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
        cells = f"{self.shape[0]} of {a} x {c} cells from {self.shape[1]} of {b} x {d}"
        return f"{type(self).__name__}({cells}, {self.dtype})"


def product_shape(targets: Cells, sources: Cells, count: int, *identities: bool) -> Shape:
    """Sizes of a product with ``count`` coefficients, and whether left and right are identities."""
    (a, c), (b, d) = targets.size, sources.size
    return Shape(a, b, c, d, count, targets.n_cells, *identities)


def _flat(B: np.ndarray) -> np.ndarray:
    """All axes but the first as one; without rows, reshape could not work out the size of -1."""
    return B.reshape(B.shape[0], prod(B.shape[1:]))


@lru_cache(maxsize=256)
def _even(n: int, threads: int) -> np.ndarray:
    """Rows at which to cut for BLAS: one block a thread, or several equal ones where blocks get large."""
    parts = threads * -(-n // (BLAS_BLOCK_ROWS * threads)) if n else threads
    return np.linspace(0, n, parts + 1).astype(np.int64)


def dense(matrix: Any) -> np.ndarray:
    """A sparse or dense matrix with all its entries."""
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
