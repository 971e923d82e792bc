"""Kernels of pairs ``(i, j)``, made of kernels of their objects.

With K the matrix of the left kernel and T that of the right one, every kernel here is a short sum of terms

    Σ_r Σ_s w_r w_s A[o_r, o_s] B[o'_r, o'_s]

where A and B are K or T, their squares, the identity or ones, and r and s run over a few ways to place the two ends of
a pair on rows and columns. A product with such a term is one vec trick (`operators.SampledKronecker`), and where a
factor is ones not even that; so metric learning needs one vec trick, not ten.

=============  ===========================================  =================================================
kernel         k((i, j), (k, l))                            product with v; V[k, l] = v, z₁, z₂ its margins
=============  ===========================================  =================================================
linear         K_ik + T_jl                                  (K z₁)_i + (T z₂)_j
poly2d         (K_ik + T_jl)²                               (K∘K z₁)_i + 2 (K V T)_ij + (T∘T z₂)_j
kronecker      K_ik T_jl                                    (K V T)_ij
gaussian       exp(−(‖x_i−x_k‖² + ‖y_j−y_l‖²) / 2ℓ²)         kronecker of two Gaussians
cartesian      K_ik [j=l] + [i=k] T_jl                      (K V)_ij + (V T)_ij
symmetric      K_ik K_jl + K_il K_jk                        (K (V + Vᵀ) K)_ij
antisymmetric  K_ik K_jl − K_il K_jk                        (K (V − Vᵀ) K)_ij
ranking        K_ik − K_il − K_jk + K_jl                    f_i − f_j,  f = K (z₁ − z₂)
mlpk           (K_ik − K_il − K_jk + K_jl)²                 M_ii + M_jj − 2 M_ij,  M = K (diag(z₁+z₂) − V − Vᵀ) K
=============  ===========================================  =================================================

The last four are for pairs of one kind of object (homogeneous) and have one kernel. White noise in a kernel of objects
is a property of each training object; as for single examples, predictions never contain it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array
from gramian.kernels import Kernel
from gramian.kernels.similarity import Repaired
from gramian.pairs import Pairs, match_objects

Places = tuple[tuple[int, int, float], ...]
ONE_PLACE: Places = ((0, 1, 1.0),)
# Entries of a matrix that are evaluated together; with them come all others of their rows and columns.
ENTRIES_AT_ONCE = 256


@dataclass(frozen=True)
class Term:
    """One term of a pairwise kernel.

    Attributes
    ----------
    left, right : {"kernel", "square", "identity", "ones"}
        The factors A and B.
    coefficient : float
    reads, sources : tuple of (end, end, weight)
        Where a new and a training pair is placed: which of its ends (0 left, 1 right) is the row, which the column.

    Examples
    --------
    >>> from gramian.kernels.pairwise import Symmetric
    >>> Symmetric.terms[0].sources
    ((0, 1, 1.0), (1, 0, 1.0))
    """

    left: str
    right: str
    coefficient: float = 1.0
    reads: Places = ONE_PLACE
    sources: Places = ONE_PLACE

    @property
    def factors(self) -> tuple[str, str]:
        """A and B."""
        return self.left, self.right

    def products(self) -> Iterator[tuple[list[int], list[int], float]]:
        """Yield the ends of a new pair, the ends of a training pair, and the weight of A times B there."""
        for *ends, weight in self.reads:
            for *origins, source_weight in self.sources:
                yield ends, origins, self.coefficient * weight * source_weight


class PairwiseKernel(Kernel):
    """A kernel whose examples are `Pairs`: ``terms``, and the two kernels of the objects; see a subclass."""

    terms: ClassVar[tuple[Term, ...]]
    homogeneous: ClassVar[bool] = False
    #: Whether exchanging the two ends of a pair changes the sign of the kernel.
    is_odd: ClassVar[bool] = False

    # --- what the kernel is -----------------------------------------------------------------

    def bases(self) -> tuple[Kernel, Kernel]:
        """The kernels of left and right objects."""
        raise NotImplementedError

    def joined(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Gradient in ``theta`` from those in the parameters of `bases`; by default both have the same parameters."""
        return left + right

    @property
    def is_one_product(self) -> bool:
        """Whether the kernel is a single product of the two kernels of the objects."""
        return [term.factors for term in self.terms] == [("kernel", "kernel")]

    @property
    def knows_new_pairs(self) -> bool:
        """Whether it has values other than zero for pairs of two objects that are both new."""
        return not all("identity" in term.factors for term in self.terms)

    @property
    def is_precomputed(self) -> bool:
        return any(kernel.is_precomputed for kernel in self.bases())

    def scales_itself(self) -> bool:
        """Whether some log-parameters multiply the whole kernel by any constant."""
        products_only = all(term.factors == ("kernel", "kernel") for term in self.terms)
        return (any if products_only else all)(kernel.scales_itself() for kernel in self.bases())

    def repaired(self, X: Pairs, repair: str) -> PairwiseKernel:
        """Return the kernel with precomputed similarities of objects repaired where they are no kernels.

        Parameters
        ----------
        X : Pairs
            The training pairs, with tables of similarities.
        repair : {"clip", "flip", "shift"}
            See `gramian.kernels.similarity`.
        """
        return self

    # --- values -----------------------------------------------------------------------------

    def arranged(self, X: Pairs) -> Pairs:
        """The pairs as the kernel needs them: of one table if it is for one kind of object."""
        return X.as_homogeneous() if self.homogeneous else X

    def _evaluate(self, X: Any, Z: Any, offset: int | None) -> Array:
        # the offset is not used: objects, not pairs, are recognised
        X, Z = self._both_arranged(X, Z)
        return self.gathered(X, Z, self.matrices(X, Z))

    def gathered(self, X: Pairs, Z: Pairs, matrices: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the values for all pairs of two sets of `arranged` ones, from the `matrices` of their objects.

        Parameters
        ----------
        X, Z : Pairs
        matrices : pair of ndarray of shape (n_left of X, n_left of Z), (n_right of X, n_right of Z)

        Returns
        -------
        ndarray of shape (len(X), len(Z))
        """
        total = np.zeros((len(X), len(Z)), dtype=X.dtype)
        for term in self.terms:
            factors = _whole_factors(term, matrices, X, Z)
            for ends, origins, weight in term.products():
                left, right = (
                    _at_pairs(factors[side], X, ends[side], Z, origins[side]) for side in (0, 1)
                )
                total += weight * (left * right)
        return total

    def _both_arranged(self, X: Pairs, Z: Pairs) -> tuple[Pairs, Pairs]:
        arranged = self.arranged(X)
        return arranged, arranged if X is Z else self.arranged(Z)

    def matrices(
        self,
        X: Pairs,
        Z: Pairs,
        columns: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Matrices of the base kernels: objects of X by objects of Z.

        ``columns`` are the numbers of the objects of Z in the tables that precomputed similarities were given for;
        by default all of them.
        """
        left, right = self.bases()
        K = _matrix(left, X.left, None if X is Z else Z.left, columns[0])
        if self.homogeneous:
            return K, K
        return K, _matrix(right, X.right, None if X is Z else Z.right, columns[1])

    def diag(self, X: Any) -> Array:
        X = self.arranged(X)
        total = np.zeros(len(X), dtype=X.dtype)
        for term in self.terms:
            for ends, origins, weight in term.products():
                left, right = (
                    self._entries(name, X, side, ends[side], origins[side])
                    for side, name in enumerate(term.factors)
                )
                total += weight * (left * right)
        return total

    def _entries(self, name: str, X: Pairs, side: int, end: int, origin: int) -> Any:
        """Entries of A (side 0) or B of a term at two ends of each pair, without the matrix."""
        if name == "ones":
            return 1.0
        rows, columns = X.sides[end].index, X.sides[origin].index
        if name == "identity":
            number = same_objects(X, X, side)
            return number[rows] == number[columns]
        values = _at(self.bases()[side], X.sides[side].table, rows, columns)
        return values * values if name == "square" else values

    # --- gradients --------------------------------------------------------------------------

    def _vjp(self, X: Any, Z: Any, G: Array, offset: int | None) -> np.ndarray:
        X, Z = self._both_arranged(X, Z)
        new, old = ([selection([(s.index, 1.0)], s.size) for s in pairs.sides] for pairs in (X, Z))
        matrices = self.matrices(X, Z)
        gradients = [np.zeros(matrix.shape) for matrix in matrices]
        for term in self.terms:
            factors = _whole_factors(term, matrices, X, Z)
            for side, name in enumerate(term.factors):
                if name not in ("kernel", "square"):
                    continue
                slope = 1.0 if name == "kernel" else 2 * matrices[side]
                for ends, origins, weight in term.products():
                    rest = _at_pairs(factors[1 - side], X, ends[1 - side], Z, origins[1 - side])
                    share = new[ends[side]].T @ (np.asarray(G) * rest) @ old[origins[side]]
                    gradients[side] += weight * slope * share
        return self.base_vjp(X, Z, *gradients)

    def base_vjp(self, X: Pairs, Z: Pairs, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Gradient in ``theta`` from those in the entries of the two matrices."""
        K, T = self.bases()
        others = (None, None) if X is Z else (Z.left, Z.right)
        if self.homogeneous:  # both matrices are one
            return _vjp_of(K, X.left, others[0], left + right)
        return self.joined(
            _vjp_of(K, X.left, others[0], left), _vjp_of(T, X.right, others[1], right)
        )


def _vjp_of(kernel: Kernel, table: Any, other: Any, G: np.ndarray) -> np.ndarray:
    return kernel.vjp(table, other, G) if kernel.theta.size else np.empty(0)


def _matrix(kernel: Kernel, table: Any, other: Any, columns: np.ndarray | None) -> np.ndarray:
    if not kernel.is_precomputed:
        return kernel(table, other)
    values = table.toarray() if sp.issparse(table) else table
    if isinstance(kernel, Repaired):
        values = kernel.rows(values)
    values = values if columns is None else np.ascontiguousarray(values[:, columns])
    return kernel.of_training(values) if isinstance(kernel, Repaired) and other is None else values


def _at(kernel: Kernel, table: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Entries ``K[rows, columns]`` of the matrix of a table's objects, one for each pair of numbers."""
    if kernel.is_precomputed:
        return _matrix(kernel, table, None, None)[rows, columns]
    values = np.asarray(kernel.diag(table))[rows]
    differ = np.flatnonzero(rows != columns)
    for start in range(0, differ.size, ENTRIES_AT_ONCE):
        some = differ[start : start + ENTRIES_AT_ONCE]
        values[some] = np.diagonal(kernel(table[rows[some]], table[columns[some]]))
    return values


def _whole_factors(
    term: Term, matrices: tuple[np.ndarray, np.ndarray], X: Pairs, Z: Pairs
) -> list[np.ndarray]:
    """A and B of a term as whole matrices: objects of X by objects of Z."""
    factors = []
    for side, name in enumerate(term.factors):
        matrix = matrices[side]
        if name == "square":
            matrix = matrix * matrix
        elif name == "ones":
            matrix = np.ones_like(matrix)
        elif name == "identity":
            matrix = same_objects(X, Z, side)[:, None] == same_objects(Z, Z, side)[None, :]
        factors.append(matrix)
    return factors


def _at_pairs(matrix: np.ndarray, X: Pairs, end: int, Z: Pairs, origin: int) -> np.ndarray:
    """Entries of a matrix of objects for every pair of X with every pair of Z."""
    return matrix[np.ix_(X.sides[end].index, Z.sides[origin].index)]


def same_objects(X: Pairs, Z: Pairs, side: int) -> np.ndarray:
    """For each left (side 0) or right object of X, its number in Z; −1 if it is not there.

    Objects without ids that look alike are one object, whichever tables they are in: the number is that of the first.
    """
    new, old = X.sides[side], Z.sides[side]
    table = new.table
    if table is old.table and old.ids is None:
        table = table.copy()  # otherwise rows would be matched by their numbers
    return match_objects(old.table, old.ids, table, new.ids)


def selection(index: list[tuple[np.ndarray, float]], size: int) -> Any:
    """CSR matrix (n, size) with the given weights at the given columns of each row."""
    n = index[0][0].size
    rows = np.tile(np.arange(n), len(index))
    columns = np.concatenate([part for part, _ in index])
    weights = np.repeat([weight for _, weight in index], n)
    return sp.csr_array((weights, (rows, columns)), shape=(n, size))
