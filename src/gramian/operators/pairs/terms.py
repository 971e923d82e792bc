"""Ways to multiply with one term of a pairwise kernel, besides `KroneckerProduct`.

Each has ``@`` and ``accurate``; gradients of ``⟨E, op F⟩`` are in the entries of the factors or in the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gramian._core.arrays import row_blocks
from gramian.operators import costs
from gramian.operators.base import InputOperator
from gramian.operators.inputs.tiles import TILE_BYTES
from gramian.operators.pairs.cells import Cells, SortedCells
from gramian.operators.pairs.kronecker import KroneckerProduct, TermOperator

Tables = tuple[np.ndarray, np.ndarray]
Operators = tuple[InputOperator, InputOperator]
# A number of a sparse matrix times one column, in the unit of `costs` and on the machine that it names.
SPARSE_ENTRY_FLOPS = 20
# A sparse matrix is stored as a dense one, for BLAS, if that has at most so many times as many numbers.
DENSE_RATIO = 8


@dataclass(frozen=True, eq=False)
class OneSided(TermOperator):
    """``R A S`` where one factor of the Kronecker product is ones: no vec trick.

    S adds the coefficients of all pairs of an object, R reads the value of the object for its pairs.

    Parameters
    ----------
    matrix : ndarray of shape (a, b)
    reads : csr_array of shape (f, a)
    sources : csr_array of shape (b, e)

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from gramian.operators.pairs.terms import OneSided
    >>> op = OneSided(np.array([[2.0]]), sp.csr_array([[1.0], [1.0]]), sp.csr_array([[1.0, 1.0]]))
    >>> op @ np.array([[1.0], [3.0]])
    array([[8.],
           [8.]])
    """

    matrix: np.ndarray
    reads: Any
    sources: Any

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        inner = (self.sources @ B).astype(self.matrix.dtype, copy=False)
        return (self.reads @ (self.matrix @ inner)).astype(B.dtype, copy=False)

    def accurate(self, B: np.ndarray) -> np.ndarray:
        """Multiply with everything in float64."""
        return self.reads @ (self.matrix.astype(np.float64) @ (self.sources @ B))

    def factor_gradients(self, E: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, None]:
        """Gradient of ``⟨E, op F⟩`` in the matrix."""
        return (self.reads.T @ E) @ (self.sources @ F).T, None

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix."""
        return self.matrix.nbytes


class ThroughFeatures(TermOperator):
    """A Kronecker product of linear kernels through the weights of products of features.

        W = Dᵀ V T,      out = (D W Tᵀ) at the pairs

    with tables D (m × d) and T (q × r) of features. It is what the primal algorithm of Airola & Pahikkala
    (Algorithm 3) multiplies with; conjugate gradients in the RKHS inner product take the same steps in both forms.

    Parameters
    ----------
    new : tuple of ndarray of shape (a, d) and (c, r)
        Tables of the left and of the right objects whose pairs are read.
    old : tuple of ndarray of shape (b, d) and (m, r)
        The same for the pairs that the coefficients belong to.
    targets, sources : Cells
    """

    def __init__(self, new: Tables, old: Tables, targets: Cells, sources: Cells):
        weights = Cells.grid(old[0].shape[1], old[1].shape[1])
        left, right = (np.ascontiguousarray(table.T) for table in old)
        self.collect = KroneckerProduct(left, right, weights, sources)
        self.read = KroneckerProduct(*new, targets, weights)

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        return self.read @ (self.collect @ B)

    def accurate(self, B: np.ndarray) -> np.ndarray:
        """Multiply with everything in float64."""
        return self.read.accurate(self.collect.accurate(B))

    @property
    def cost(self) -> float:
        """Estimated cost of a product on one core, in flops."""
        return self.read.route_.cost + self.collect.route_.cost

    @property
    def nbytes(self) -> int:
        """Bytes of the tables and of the room for intermediate results."""
        return self.read.nbytes + self.collect.nbytes


class _Order(NamedTuple):
    """Which side is evaluated by tiles and which one multiplies, with cells sorted accordingly."""

    tiled: InputOperator
    other: InputOperator
    sources: SortedCells  # a row for each object of `other`
    targets: SortedCells  # a row for each object of `tiled`


class ThroughOperators(TermOperator):
    """A Kronecker product whose matrices are not stored: one side by tiles of rows, products with the other.

        inner = V T_Jᵀ,      out = O inner at the pairs with J       for panels J of the objects of one side

    with O = left and T = right, or the other way round with Vᵀ, whichever is estimated to cost less. The panels are for
    sets of objects so many that a dense V would not fit; each takes all kernel values of O anew.

    Parameters
    ----------
    sides : tuple of InputOperator of shape (a, b) and (c, d)
        Left and right.
    targets, sources : Cells
    nbytes : float
        Budget for ``inner``; its product takes as much again, and so may copies in another precision.
    """

    def __init__(self, sides: Operators, targets: Cells, sources: Cells, nbytes: float):
        left, right = sides
        self.targets = targets
        self.sources = sources
        self.panel_bytes = nbytes
        self.right_tiled = _Order(right, left, sources.by_row, targets.by_column)
        self.left_tiled = _Order(left, right, sources.by_column, targets.by_row)

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        return self._multiplied(B, lambda operator, values: operator @ values)

    def accurate(self, B: np.ndarray) -> np.ndarray:
        """Multiply with sums in float64."""
        return self._multiplied(B, lambda operator, values: operator.accurate(values))

    def _multiplied(self, B: np.ndarray, times: Any) -> np.ndarray:
        cells = self.sources.gathered(B)
        order = min((self.right_tiled, self.left_tiled), key=lambda o: _work(o, B.shape[1]))
        targets = order.targets
        out = np.empty((self.targets.n_cells, B.shape[1]), B.dtype)
        for first, inner in self._panels(order, cells):
            ends = targets.ptr[first : first + inner.shape[1] + 1]
            some = slice(ends[0], ends[-1])
            place = np.repeat(np.arange(inner.shape[1]), np.diff(ends))
            values = times(order.other, inner)[targets.columns[some], place]
            out[some if targets.order is None else targets.order[some]] = values
        return self.targets.handed_out(out)

    def kernel_gradients(self, E: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradients of ``⟨E, op F⟩`` in the log-parameters of the left and the right kernel."""
        E, F = self.targets.gathered(E), self.sources.gathered(F)
        return self._gradient(self.right_tiled, E, F), self._gradient(self.left_tiled, E, F)

    def _gradient(self, order: _Order, E: np.ndarray, F: np.ndarray) -> np.ndarray:
        """Gradient of ``⟨W, O V Tᵀ⟩`` in the log-parameters of O."""
        total = np.zeros(order.other.theta.size)
        if not total.size:
            return total
        W = [order.targets.matrix(values) for values in E.T]
        for first, inner in self._panels(order, F):
            some = slice(first, first + inner.shape[1])
            weights = np.stack([part[some].toarray().T for part in W], axis=2)
            total += order.other.vjp(weights, inner)
        return total

    def _panels(self, order: _Order, cells: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first object of each panel and ``V T_Jᵀ``, of shape (objects of O, |J|, k)."""
        m, k = order.other.shape[1], cells.shape[1]
        affordable = int(self.panel_bytes // max(1, 8 * k * max(order.other.shape)))
        width = max(1, min(affordable, order.tiled.shape[0]))
        V = [order.sources.matrix(values) for values in cells.T]
        if V and DENSE_RATIO * V[0].nnz > m * V[0].shape[1]:
            V = [part.toarray() for part in V]
        inner = np.empty((m, width, k), cells.dtype)
        first = filled = 0
        for tile in order.tiled._tiles():
            for piece in row_blocks(len(tile), 8 * max(tile.shape[1], m), TILE_BYTES):
                rows = tile[piece]
                while len(rows):
                    some, rows = rows[: width - filled], rows[width - filled :]
                    turned = np.ascontiguousarray(some.T, dtype=cells.dtype)
                    for i, part in enumerate(V):
                        inner[:, filled : filled + len(some), i] = part @ turned
                    filled += len(some)
                    if filled == width:
                        yield first, inner
                        first, filled = first + width, 0
        if filled:
            yield first, inner[:, :filled]

    @property
    def nbytes(self) -> int:
        """Bytes of the operators."""
        return self.left_tiled.tiled.nbytes + self.left_tiled.other.nbytes


def _work(order: _Order, k: int) -> float:
    """Estimated cost of a product with k columns, in flops."""
    rows, columns = order.tiled.shape
    return order.other.work(rows * k) + rows * (
        costs.TILED_VALUE_FLOPS * columns + SPARSE_ENTRY_FLOPS * k * order.sources.columns.size
    )
