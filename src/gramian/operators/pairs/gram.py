"""The Gram operator of pairs: a pairwise kernel as a sum of sampled Kronecker products.

Objects that occur in no pair are left out, repeated pairs are merged, and cells are sorted once; other parameters of
the kernels only make new matrices of objects. Three forms:

- dual: matrices of the objects are stored and multiplied by `SampledKronecker` (O(m² + q²) memory, none of n²);
- primal: linear kernels through weights of products of features (`ThroughFeatures`), where that is cheaper;
- streamed: a side whose matrix does not fit ``working_memory`` is multiplied without storing it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array, row_blocks
from gramian._core.memory import working_memory
from gramian.kernels import Kernel
from gramian.kernels.pairwise.base import (
    PairwiseKernel,
    Places,
    Term,
    same_objects,
    selection,
)
from gramian.operators.base import InputOperator
from gramian.operators.inputs.dense import Dense
from gramian.operators.inputs.linear import LinearFeatures, linear_variance
from gramian.operators.inputs.streamed import Streamed
from gramian.operators.inputs.tiles import TILE_BYTES
from gramian.operators.pairs.cells import Cells
from gramian.operators.pairs.route import Shape, best_route
from gramian.operators.pairs.sampled_kronecker import SampledKronecker
from gramian.operators.pairs.terms import OneSided, ThroughFeatures, ThroughOperators
from gramian.pairs import Pairs

__all__ = ["PairGram"]

FORMS = ("auto", "dual", "primal")


class PairGram(InputOperator):
    """The matrix ``k(X, Z)`` of a pairwise kernel, never formed.

    Parameters
    ----------
    kernel : PairwiseKernel
    X : Pairs
    Z : Pairs, default=None
        None means X itself.
    form : {"auto", "dual", "primal"}, default="auto"
        "primal" is for linear kernels of both objects; "auto" takes it where its estimated cost is less.

    Attributes
    ----------
    form : {"dual", "primal", "streamed"}
        What was chosen.
    reason : str
        Why, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Pairs
    >>> from gramian.kernels.pairwise import Kronecker
    >>> from gramian.operators import PairGram
    >>> pairs = Pairs([[1.0], [2.0]], [[3.0]], [0, 1], [0, 0])
    >>> PairGram(Kronecker("linear", "linear"), pairs) @ np.ones((2, 1))
    array([[27.],
           [54.]])
    """

    def __init__(
        self, kernel: PairwiseKernel, X: Pairs, Z: Pairs | None = None, form: str = "auto"
    ):
        if form not in FORMS:
            raise ValueError(f"form must be one of {', '.join(map(repr, FORMS))}; got {form!r}.")
        X = X if Z is None else X.in_format_of(Z)
        self.asked = form
        self.pairs = X
        self.others = Z
        self._new, left, right = kernel.arranged(X).compact()
        self._old = self._new
        if Z is not None:
            self._old, left, right = kernel.arranged(Z).compact()
        self._used = (left, right)  # numbers of the training objects in their tables
        self._cells = [self._placed(kernel, term) for term in kernel.terms]
        self.shape = (len(X), len(self._old))
        self.dtype = X.dtype
        self._build(kernel)

    # --- assemble ---------------------------------------------------------------------------

    def _placed(self, kernel: PairwiseKernel, term: Term) -> tuple[Any, Any]:
        """Targets and sources of a term: cells, or selections of objects where a factor is ones."""
        new, old = self._new, self._old
        if "ones" in (term.left, term.right):
            side = 0 if term.right == "ones" else 1
            reads, sources = _selected(new, term.reads, side), _selected(old, term.sources, side)
            return reads, sources.T.tocsr()
        if "identity" in (term.left, term.right):
            return self._matched(0 if term.left == "identity" else 1)
        targets = _cells(new, term.reads)
        if new is old and term.reads == term.sources:
            return targets, targets
        return targets, _cells(old, term.sources)

    def _matched(self, side: int) -> tuple[Cells, Cells]:
        """Cells with the objects of one side numbered as in training; unknown ones have an empty row or column."""
        new, old = self._new, self._old
        number, known = same_objects(new, old, side), same_objects(old, old, side)
        size = (old.n_left, old.n_right)[side]
        number = np.where(number < 0, size, number)
        if side == 0:
            targets = Cells.of(number[new.left_index], new.right_index, (size + 1, new.n_right))
            sources = Cells.of(known[old.left_index], old.right_index, (size + 1, old.n_right))
        else:
            targets = Cells.of(new.left_index, number[new.right_index], (new.n_left, size + 1))
            sources = Cells.of(old.left_index, known[old.right_index], (old.n_left, size + 1))
        return targets, sources

    def _build(self, kernel: PairwiseKernel) -> None:
        self.kernel = kernel
        self._matrices: tuple[Any, Any] = (None, None)
        self._terms: list[tuple[float, Any]]
        primal = self._primal() if self.asked != "dual" else None
        if self.asked == "primal" and primal is None:
            raise ValueError(
                "The primal form needs a Kronecker kernel with linear kernels of features on both sides, and tables "
                f"and weights that fit working_memory; got {kernel!r}. Use the dual form."
            )
        if self.asked == "primal":
            self.form, self.reason, self._terms = "primal", "asked for", [(1.0, primal)]
            return
        fits = self._fits()
        if primal is not None and (not fits or self._dual_cost() > primal.cost):
            self.form, self._terms = "primal", [(1.0, primal)]
            self.reason = "less work or memory through products of features than through objects"
            return
        if not fits:
            self.form, self._terms = "streamed", [(1.0, self._streamed())]
            self.reason = "the matrices of the objects are larger than working_memory"
            return
        self.form = "dual"
        self._matrices = kernel.matrices(self._new, self._old, self._used)
        self._terms = [
            (term.coefficient, self._term(term, *cells))
            for term, cells in zip(kernel.terms, self._cells, strict=True)
        ]
        self.reason = "; ".join(
            op.route_.reason for _, op in self._terms if isinstance(op, SampledKronecker)
        )

    def _term(self, term: Term, targets: Any, sources: Any) -> Any:
        names = (term.left, term.right)
        A, B = (_factor(n, matrix) for n, matrix in zip(names, self._matrices, strict=True))
        if "ones" in (term.left, term.right):
            return OneSided(_given(B if A is None else A), targets, sources)
        once = self.others is not None  # predictions
        return SampledKronecker.from_cells(A, B, targets, sources, once=once)

    def _primal(self) -> ThroughFeatures | None:
        """The form through features, if there is one and its dense tables and weights fit the memory."""
        left, right = self.kernel.bases()
        scales = linear_variance(left), linear_variance(right)
        if not self._is_one_product() or scales[0] is None or scales[1] is None:
            return None
        new, old = self._new, self._old
        m, d, q, r = *old.left.shape, *old.right.shape
        entries = (m + new.n_left) * d + (q + new.n_right) * r + 4 * d * r + (m + new.n_left) * r
        if entries * self.dtype.itemsize > _budget():
            return None
        scaled = _dense(old.left) * self.dtype.type(scales[0] * scales[1])
        targets, sources = self._cells[0]
        tables = _dense(new.left), _dense(new.right), scaled, _dense(old.right)
        return ThroughFeatures(*tables, targets, sources)

    def _is_one_product(self) -> bool:
        return [(t.left, t.right) for t in self.kernel.terms] == [("kernel", "kernel")]

    def _dual_cost(self) -> float:
        """Estimated cost of the dual form, without its matrices."""
        targets, sources = self._cells[0]
        (a, c), (b, d) = targets.size, sources.size
        shape = Shape(a, b, c, d, sources.n_cells, targets.n_cells)
        return best_route(shape, self.dtype.itemsize).cost

    def _fits(self) -> bool:
        """Whether the matrices of the objects fit the memory, or must be stored anyway."""
        new, old = self._new, self._old
        need = new.n_left * old.n_left + new.n_right * old.n_right
        must = not self._is_one_product() or self.kernel.is_precomputed
        return must or need * self.dtype.itemsize <= _budget()

    def _streamed(self) -> ThroughOperators:
        left, right = self.kernel.bases()
        square = self.others is None
        targets, sources = self._cells[0]
        return ThroughOperators(
            _streamed_side(left, self._new.left, self._old.left, square),
            _streamed_side(right, self._new.right, self._old.right, square),
            targets,
            sources,
            nbytes=_budget() / 4,
        )

    # --- the operator -----------------------------------------------------------------------

    def _matmul(self, B: Array) -> Array:
        return _summed(coefficient * (op @ B) for coefficient, op in self._terms)

    def accurate(self, B: Array) -> Array:
        if self.dtype == np.float64:
            return self @ B
        return self._flattened(self._accurate, B, np.float64)

    def _accurate(self, B: Array) -> Array:
        return _summed(coefficient * op.accurate(B) for coefficient, op in self._terms)

    def _tiles(self) -> Iterator[Array]:
        others = self.pairs if self.others is None else self.others
        for rows in row_blocks(self.shape[0], 8 * self.shape[1], TILE_BYTES):
            yield self.kernel(self.pairs[rows], others)

    def to_dense(self) -> Array:
        return self.kernel(self.pairs, self.others)

    def _diagonal(self) -> Array:
        return self.kernel.diag(self.pairs)

    def cross(self, X_new: Any) -> PairGram:
        return PairGram(self.kernel, X_new, self.pairs, self.asked)

    def kronecker(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        op, coefficient = self._terms[0][1], self._terms[0][0]
        if len(self._terms) > 1 or not isinstance(op, SampledKronecker) or self.others is not None:
            return None
        cells = op.targets
        plain = op.sources is cells and (
            cells.combine is None or isinstance(cells.combine, np.ndarray)
        )
        if not plain or op.left is None or op.right is None or not cells.by_row().is_grid:
            return None
        order = np.arange(cells.n_cells) if cells.combine is None else cells.combine
        return coefficient * op.left, op.right, order

    @property
    def route_(self) -> Any:
        """Route of the first vec trick; None if there is none."""
        for _, op in self._terms:
            if isinstance(op, SampledKronecker):
                return op.route_
        return None

    @property
    def nbytes(self) -> int:
        return sum(op.nbytes for _, op in self._terms)

    # --- parameters -------------------------------------------------------------------------

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        if not self.theta.size:
            return np.empty(0)
        E, F = (np.asarray(part, np.float64).reshape(part.shape[0], -1) for part in (E, F))
        if self.form == "primal":  # every parameter of a linear kernel is a factor
            value = float(np.sum(E * self._accurate(F)))
            return self.kernel.joined(*(np.full(k.theta.size, value) for k in self.kernel.bases()))
        if self.form == "streamed":
            return self.kernel.joined(*self._terms[0][1].kernel_gradients(E, F))
        totals = [np.zeros(matrix.shape) for matrix in self._matrices]
        for term, (coefficient, op) in zip(self.kernel.terms, self._terms, strict=True):
            gradients = op.factor_gradients(E, F)
            if term.left == "ones":
                gradients = gradients[::-1]
            for side, name in enumerate((term.left, term.right)):
                if name == "square":
                    totals[side] += 2 * coefficient * self._matrices[side] * gradients[side]
                elif name == "kernel":
                    totals[side] += coefficient * gradients[side]
        return self.kernel.base_vjp(self._new, self._old, *totals)

    @property
    def theta(self) -> np.ndarray:
        return self.kernel.theta

    def clone_with_theta(self, theta: np.ndarray) -> PairGram:
        if not self.theta.size:
            return self
        other = copy.copy(self)  # the cells are the same
        other._build(self.kernel.clone_with_theta(theta))
        return other


def _cells(pairs: Pairs, places: Places) -> Cells:
    ends = (pairs.left_index, pairs.right_index)
    parts = [(ends[row], ends[column], weight) for row, column, weight in places]
    return Cells.combined(parts, (pairs.n_left, pairs.n_right))


def _factor(name: str, matrix: np.ndarray) -> np.ndarray | None:
    """A factor of a term; None for ones and for the identity."""
    if name == "kernel":
        return matrix
    return matrix * matrix if name == "square" else None


def _budget() -> float:
    """Bytes that matrices may take."""
    return working_memory()


def _given(matrix: np.ndarray | None) -> np.ndarray:
    assert matrix is not None  # one factor of every term is a matrix
    return matrix


def _selected(pairs: Pairs, places: Places, side: int) -> Any:
    """Which objects of one side the pairs are placed on: a matrix of pairs × objects."""
    ends, sizes = (pairs.left_index, pairs.right_index), (pairs.n_left, pairs.n_right)
    return selection([(ends[int(place[side])], place[2]) for place in places], sizes[side])


def _streamed_side(kernel: Kernel, new: Any, old: Any, square: bool) -> InputOperator:
    """The operator of one side: stored if it is small, else through features or streamed."""
    if square and new.shape[0] * old.shape[0] * old.dtype.itemsize <= _budget() / 2:
        return Dense(kernel, old)
    operator = LinearFeatures if linear_variance(kernel) is not None else Streamed
    return operator(kernel, old) if square else operator(kernel, new, old)


def _dense(table: Any) -> np.ndarray:
    return table.toarray() if sp.issparse(table) else np.ascontiguousarray(table)


def _summed(parts: Iterator[np.ndarray]) -> np.ndarray:
    total = next(parts)
    for part in parts:
        total = total + part
    return total
