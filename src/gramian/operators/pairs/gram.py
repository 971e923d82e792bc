"""The Gram operator of pairs: a pairwise kernel as a sum of sampled Kronecker products.

Objects that occur in no pair are left out, repeated pairs are merged, and cells are sorted once; other parameters of
the kernels only make new matrices of objects. Three forms:

- dual: matrices of the objects are stored and multiplied by `KroneckerProduct` (O(m² + q²) memory, none of n²);
- primal: linear kernels through weights of products of features (`ThroughFeatures`), where that is cheaper;
- streamed: a side whose matrix does not fit ``working_memory`` is multiplied without storing it.
"""

from __future__ import annotations

import copy
import operator
from functools import reduce
from typing import Any

import numpy as np

from gramian._core.arrays import Array
from gramian._core.memory import working_memory
from gramian._core.validation import check_choice
from gramian.kernels import Kernel
from gramian.kernels.pairwise.base import PairwiseKernel, Places, Term, same_objects, selection
from gramian.operators.base import InputOperator, KernelOperator, KroneckerForm
from gramian.operators.inputs.dense import Dense
from gramian.operators.inputs.linear import LinearFeatures
from gramian.operators.inputs.streamed import Streamed
from gramian.operators.pairs.cells import Cells
from gramian.operators.pairs.kronecker import KroneckerProduct, TermOperator, dense, product_shape
from gramian.operators.pairs.route import best_route
from gramian.operators.pairs.terms import OneSided, ThroughFeatures, ThroughOperators
from gramian.pairs import Pairs

FORMS = ("auto", "dual", "primal")


class PairGram(KernelOperator):
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

    kernel: PairwiseKernel

    def __init__(
        self, kernel: PairwiseKernel, X: Pairs, Z: Pairs | None = None, form: str = "auto"
    ):
        check_choice("form", form, FORMS)
        super().__init__(kernel, X if Z is None else X.in_format_of(Z), Z)
        self.asked = form
        self._new, left, right = kernel.arranged(self.X).compact()
        self._old = self._new
        if Z is not None:
            self._old, left, right = kernel.arranged(Z).compact()
        self._used = (left, right)  # numbers of the training objects in their tables
        self._cells = [self._placed(term) for term in kernel.terms]
        self._build()

    # --- assemble ---------------------------------------------------------------------------

    def _placed(self, term: Term) -> tuple[Any, Any]:
        """Targets and sources of a term: cells, or selections of objects where a factor is ones."""
        new, old = self._new, self._old
        if "ones" in term.factors:
            side = 1 - term.factors.index("ones")
            reads, sources = _selected(new, term.reads, side), _selected(old, term.sources, side)
            return reads, sources.T.tocsr()
        if "identity" in term.factors:
            return self._matched(term.factors.index("identity"))
        targets = _cells(new, term.reads)
        if new is old and term.reads == term.sources:
            return targets, targets
        return targets, _cells(old, term.sources)

    def _matched(self, side: int) -> tuple[Cells, Cells]:
        """Cells with the objects of one side numbered as in training; unknown ones have an empty row or column."""
        n_known = self._old.sides[side].size
        cells = []
        for pairs in (self._new, self._old):
            number = same_objects(pairs, self._old, side)
            index, size = [s.index for s in pairs.sides], [s.size for s in pairs.sides]
            index[side] = np.where(number < 0, n_known, number)[index[side]]
            size[side] = n_known + 1
            cells.append(Cells.of(index[0], index[1], (size[0], size[1])))
        return cells[0], cells[1]

    def _build(self) -> None:
        self._matrices: tuple[Any, Any] = (None, None)
        self.form, self.reason, operators = self._chosen()
        coefficients = [term.coefficient for term in self.kernel.terms]
        self._terms = list(zip(coefficients, operators, strict=True))

    def _chosen(self) -> tuple[str, str, list[Any]]:
        """The form, why it was chosen, and an operator for each term."""
        primal = self._primal() if self.asked != "dual" else None
        if self.asked == "primal":
            if primal is None:
                raise ValueError(
                    "The primal form needs a Kronecker kernel with linear kernels of features on both sides, and "
                    f"tables and weights that fit working_memory; got {self.kernel!r}. Use the dual form."
                )
            return "primal", "asked for", [primal]
        fits = self._fits()
        if primal is not None and (not fits or self._dual_cost() > primal.cost):
            reason = "less work or memory through products of features than through objects"
            return "primal", reason, [primal]
        if not fits:
            reason = "the matrices of the objects are larger than working_memory"
            return "streamed", reason, [self._streamed()]
        self._matrices = self.kernel.matrices(self._new, self._old, self._used)
        terms = zip(self.kernel.terms, self._cells, strict=True)
        operators = [self._term(term, *cells) for term, cells in terms]
        reasons = [op.route_.reason for op in operators if op.route_ is not None]
        return "dual", "; ".join(reasons), operators

    def _term(self, term: Term, targets: Any, sources: Any) -> TermOperator:
        """The product with one term through stored matrices."""
        A, B = (_factor(*side) for side in zip(term.factors, self._matrices, strict=True))
        if "ones" in term.factors:
            return OneSided(B if term.left == "ones" else A, targets, sources)
        return KroneckerProduct(A, B, targets, sources, once=self.Z is not None)

    def _primal(self) -> ThroughFeatures | None:
        """The form through features, if there is one and its dense tables and weights fit the memory."""
        left, right = self.kernel.bases()
        scales = left.linear_variance, right.linear_variance
        if not self.kernel.is_one_product or scales[0] is None or scales[1] is None:
            return None
        new, old = self._new, self._old
        m, d, q, r = *old.left.shape, *old.right.shape
        entries = (m + new.n_left) * d + (q + new.n_right) * r + 4 * d * r + (m + new.n_left) * r
        if entries * self.dtype.itemsize > working_memory():
            return None
        scaled = dense(old.left) * self.dtype.type(scales[0] * scales[1])
        tables = (dense(new.left), dense(new.right)), (scaled, dense(old.right))
        return ThroughFeatures(*tables, *self._cells[0])

    def _dual_cost(self) -> float:
        """Estimated cost of the dual form, without its matrices."""
        targets, sources = self._cells[0]
        shape = product_shape(targets, sources, sources.n_cells)
        return best_route(shape, self.dtype.itemsize).cost

    def _fits(self) -> bool:
        """Whether the matrices of the objects fit the memory, or must be stored anyway."""
        new, old = self._new, self._old
        need = new.n_left * old.n_left + new.n_right * old.n_right
        must = not self.kernel.is_one_product or self.kernel.is_precomputed
        return must or need * self.dtype.itemsize <= working_memory()

    def _streamed(self) -> ThroughOperators:
        square = self.Z is None
        sides = zip(self.kernel.bases(), self._new.sides, self._old.sides, strict=True)
        left, right = (_streamed_side(k, new.table, old.table, square) for k, new, old in sides)
        return ThroughOperators((left, right), *self._cells[0], nbytes=working_memory() / 4)

    # --- the operator -----------------------------------------------------------------------

    def _matmul(self, B: Array) -> Array:
        return reduce(operator.add, (coefficient * (op @ B) for coefficient, op in self._terms))

    def _accurate(self, B: Array) -> Array:
        return reduce(operator.add, (c * op.accurate(B) for c, op in self._terms))

    def to_dense(self) -> Array:
        if self.form != "dual":
            return super().to_dense()
        return self.kernel.gathered(self._new, self._old, self._matrices)

    def kronecker(self) -> KroneckerForm | None:
        (coefficient, op), *others = self._terms
        factors = None if others or self.Z is not None else op.whole_factors()
        if factors is None:
            return None
        K, T, order = factors
        return KroneckerForm(coefficient * K, T, order)

    @property
    def route_(self) -> Any:
        """Route of the first vec trick; None if there is none."""
        return next((op.route_ for _, op in self._terms if op.route_ is not None), None)

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
            coefficient, op = self._terms[0]
            return coefficient * self.kernel.joined(*op.kernel_gradients(E, F))
        totals = [np.zeros(matrix.shape) for matrix in self._matrices]
        for term, (coefficient, op) in zip(self.kernel.terms, self._terms, strict=True):
            gradients = op.factor_gradients(E, F)
            if term.left == "ones":
                gradients = gradients[::-1]
            for side, name in enumerate(term.factors):
                if name == "square":
                    totals[side] += 2 * coefficient * self._matrices[side] * gradients[side]
                elif name == "kernel":
                    totals[side] += coefficient * gradients[side]
        return self.kernel.base_vjp(self._new, self._old, *totals)

    def _with_kernel(self, kernel: Kernel) -> PairGram:
        other = copy.copy(self)  # the cells are the same
        other.kernel = kernel
        other._build()
        return other


def _cells(pairs: Pairs, places: Places) -> Cells:
    parts = [(pairs.sides[i].index, pairs.sides[j].index, weight) for i, j, weight in places]
    return Cells.combined(parts, (pairs.n_left, pairs.n_right))


def _factor(name: str, matrix: np.ndarray) -> Any:
    """A factor of a term; None for ones and for the identity."""
    if name == "kernel":
        return matrix
    return matrix * matrix if name == "square" else None


def _selected(pairs: Pairs, places: Places, side: int) -> Any:
    """Which objects of one side the pairs are placed on: a matrix of pairs × objects."""
    index = [(pairs.sides[ends[side]].index, weight) for *ends, weight in places]
    return selection(index, pairs.sides[side].size)


def _streamed_side(kernel: Kernel, new: Any, old: Any, square: bool) -> InputOperator:
    """The operator of one side: stored if it is small, else through features or streamed."""
    if square and new.shape[0] * old.shape[0] * old.dtype.itemsize <= working_memory() / 2:
        return Dense(kernel, old)
    kind = LinearFeatures if kernel.linear_variance is not None else Streamed
    return kind(kernel, old) if square else kind(kernel, new, old)
