"""Spaces of functions in which 𝒦 is known, for operators of the form ``𝒦(A) = M A S + σ² 1 1ᵀ A``.

`CoarseSpace` has the functions of few examples, `FeatureSpace` all functions of a low-rank M. Both have coordinates v
of shape (rank, c, q) in a basis Z; with ``S = Q diag(s) Qᵀ`` the c columns are those of Q, and 𝒦 does not mix them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from gramian._core.arrays import is_numpy, row_blocks
from gramian.labels import Identity, LabelStructure
from gramian.operators.base import InputOperator, Operator
from gramian.operators.inputs.tiles import TILE_BYTES
from gramian.operators.outputs.intercept import Intercept
from gramian.operators.outputs.label_mixed import LabelMixed

MAX_OUTPUTS = 512  # a label matrix of more outputs is not decomposed
# relative to the largest eigenvalue of S: smaller ones have no functions in a space
SMALLEST_EIGENVALUE = 1e-10


class Parts(NamedTuple):
    """M, s, Q (None is the identity) and σ² of an operator ``M A Q diag(s) Qᵀ + σ² 1 1ᵀ A``."""

    matrix: InputOperator
    variances: np.ndarray
    basis: np.ndarray | None
    intercept: float


def parts_of(
    operator: Operator, n_outputs: int, *, most: int = MAX_OUTPUTS, columns: bool = True
) -> Parts | None:
    """Take an operator apart; None if it is not of that form or not on NumPy arrays.

    Or if it mixes more than ``most`` outputs, or has no cheap columns but ``columns`` are needed.
    """
    split = split_operator(operator)
    if split is None or (n_outputs > most and split.structure is not None):
        return None
    S = np.eye(n_outputs)
    if split.structure is not None:
        S = np.asarray(split.structure.mix(S), dtype=np.float64)
    variances, basis = _eigenvectors(S)
    if not variances.size:
        return None
    if columns and split.matrix.columns(np.zeros(1, dtype=np.int64)) is None:
        return None
    return Parts(split.matrix, variances, basis, split.intercept)


class Split(NamedTuple):
    """M, S (None is the identity) and σ² of an operator ``M A S + σ² 1 1ᵀ A``."""

    matrix: InputOperator
    structure: LabelStructure | None
    intercept: float


def split_operator(operator: Operator) -> Split | None:
    """Find the terms of an operator; None if it is not of that form or not on NumPy arrays. Costs nothing."""
    structure, intercept = None, 0.0
    if isinstance(operator, LabelMixed):
        (operator, structure), *others = operator.terms
        for term, own in others:
            if not isinstance(term, Intercept) or not isinstance(own, Identity):
                return None
            intercept += term.variance
    if not isinstance(operator, InputOperator) or not is_numpy(operator.diagonal()):
        return None
    return Split(operator, structure, intercept)


def _eigenvectors(S: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Eigenvalues that are not negligible, and eigenvectors unless these are the outputs."""
    diagonal = np.diag(S).copy()
    if not np.any(S - np.diag(diagonal)) and np.all(diagonal > SMALLEST_EIGENVALUE * np.max(S)):
        return diagonal, None
    variances, basis = np.linalg.eigh(S)
    used = variances > max(0.0, SMALLEST_EIGENVALUE * variances[-1])
    return variances[used], basis[:, used]


@dataclass(frozen=True, eq=False)
class FunctionSpace(ABC):
    """Functions with coordinates in a basis Z; what a `Preconditioner` asks of them.

    Attributes
    ----------
    parts : Parts
    indices : ndarray of int of shape (m,)
        The active set I.
    factor : ndarray of shape (n, m)
        L, with ``L L̃ᵀ = M[:, I]`` for ``L̃ = L[I]``.
    rows : ndarray of shape (m, m)
        L̃⁻ᵀ.
    """

    parts: Parts
    indices: np.ndarray
    factor: np.ndarray
    rows: np.ndarray

    complete: ClassVar[bool]  # whether it has all functions of the operator

    @property
    def rank(self) -> int:
        """Coordinates of each column."""
        return len(self.indices)

    @abstractmethod
    def coordinates(self, B: np.ndarray, KB: np.ndarray) -> np.ndarray:
        """Zᵀ 𝒦 B of shape (rank, c, q) from B and 𝒦B of shape (n, C, q)."""

    @abstractmethod
    def lifted(self, v: np.ndarray, onto: np.ndarray) -> np.ndarray:
        """Z v added to coefficients of shape (n, C, q)."""

    @abstractmethod
    def values(self, v: np.ndarray) -> np.ndarray:
        """𝒦 Z v of shape (n, C, q)."""

    @abstractmethod
    def adjoint(self, B: np.ndarray) -> np.ndarray:
        """(𝒦Z)ᵀ B of shape (rank, c, q) from B of shape (n, C, q)."""

    @abstractmethod
    def blocks(
        self, weights: np.ndarray, strength: float, outputs: np.ndarray, shares: np.ndarray
    ) -> Iterator[np.ndarray]:
        """``λT + (𝒦Z)ᵀ W (𝒦Z)`` for some columns, where W has weights of shape (n,) times a share for each column."""

    def gram(self, v: np.ndarray) -> np.ndarray:
        """T v with ``T = Zᵀ 𝒦 Z``; the identity if the basis is orthonormal."""
        return v

    inverse_gram = gram  # T⁻¹ v

    @cached_property
    def ones(self) -> np.ndarray:
        """e = L̃⁻¹ 1 of shape (m,)."""
        return self.rows.sum(axis=0)

    def analysed(self, B: np.ndarray) -> np.ndarray:
        """B Q along the second axis."""
        basis = self.parts.basis
        return B if basis is None else np.einsum("mcq,cd->mdq", B, basis, optimize=True)

    def mixed(self, v: np.ndarray) -> np.ndarray:
        """v Qᵀ along the second axis."""
        basis = self.parts.basis
        return v if basis is None else np.einsum("mdq,cd->mcq", v, basis, optimize=True)


def from_left(matrix: np.ndarray, v: np.ndarray) -> np.ndarray:
    """``matrix v`` along the first axis of v, in the dtype of the matrix.

    Written from the right, which is the faster order for few columns and a matrix in column order.
    """
    flat = v.reshape(v.shape[0], -1).astype(matrix.dtype, copy=False)
    return np.ascontiguousarray((flat.T @ matrix.T).T).reshape(-1, *v.shape[1:])


def weighted_gram(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``rows diag(weights) rowsᵀ`` in float64, by blocks of columns and without those of weight zero."""
    m, n = rows.shape
    out, kept = np.zeros((m, m)), np.flatnonzero(weights)
    for block in row_blocks(len(kept), 8 * m, TILE_BYTES):
        columns = slice(block.start, block.stop) if len(kept) == n else kept[block]
        scaled = rows[:, columns] * np.sqrt(weights[columns])
        out += scaled @ scaled.T
    return out
