"""A small space of functions in which 𝒦 is known: what preconditioners solve exactly.

Formula
    For ``𝒦(A) = M A S + σ² 1 1ᵀ A`` and an active set I, ``M[I, I] = L̃ L̃ᵀ``, ``M[:, I] = L L̃ᵀ``
    (`pivoted_cholesky`), ``S = Q diag(s) Qᵀ``: the space is spanned by the kernel functions of I, for every output, in
    the basis ``Z v = E_I L̃⁻ᵀ v diag(s)^-½ Qᵀ`` (E_I puts rows at I; Q has no columns for s = 0). There

        𝒦 Z v = L v diag(s)^½ Qᵀ + σ² 1 eᵀ v diag(s)^-½ Qᵀ,
        Zᵀ 𝒦 B = L̃⁻¹ (𝒦B)[I] Q diag(s)^-½,
        T v = Zᵀ 𝒦 Z v = v + σ² e eᵀ v diag(s)⁻¹,

    with ``e = L̃⁻¹ 1``: the space of Seeger's low-rank matrices (§7.4, eq. 9), in which columns of v are not mixed.

    So if 𝒦B is at hand, projecting B on the space needs m rows of it, and the product of 𝒦 with a function of the
    space is one n × m product: no pass over M.

Cost
    m columns of M, n m² flops for the factor, C³ for the eigenvectors of S; 2 n m C for a product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gramian._core.arrays import Array, is_numpy, row_blocks
from gramian.labels import Identity
from gramian.operators.base import InputOperator, Operator
from gramian.operators.compiled.pivoted_cholesky import pivoted_cholesky
from gramian.operators.inputs.tiles import TILE_BYTES
from gramian.operators.outputs.intercept import Intercept
from gramian.operators.outputs.label_mixed import LabelMixed

__all__ = ["CoarseSpace", "coarse_parts", "coarse_space"]

MOST_OUTPUTS = 512  # whose label matrix is decomposed
SMALLEST = (
    1e-10  # eigenvalue of S, relative to the largest; those below have no functions in the space
)

NOISE = 100  # roundings of M's dtype, relative to the trace: what is left then says nothing about products


@dataclass(frozen=True, eq=False)
class CoarseSpace:
    """Functions spanned by an active set; arrays as in the header.

    Attributes
    ----------
    indices : ndarray of int of shape (m,)
    factor : ndarray of shape (n, m), in column order
        L.
    rows : ndarray of shape (m, m)
        L̃⁻ᵀ.
    variances : ndarray of shape (c,)
        s, of the c ≤ n_outputs columns of v.
    basis : ndarray of shape (n_outputs, c) or None
        Q; None is the identity.
    intercept : float
        σ².
    ones : ndarray of shape (m,)
        e.
    left : float
        Trace of M − L Lᵀ, times the largest eigenvalue of S.
    """

    indices: np.ndarray
    factor: np.ndarray
    rows: np.ndarray
    variances: np.ndarray
    basis: np.ndarray | None
    intercept: float
    ones: np.ndarray
    left: float

    @property
    def rank(self) -> int:
        """m."""
        return len(self.indices)

    def coordinates(self, B: np.ndarray, KB: np.ndarray) -> np.ndarray:
        """Zᵀ 𝒦 B of shape (m, c, q) from 𝒦B of shape (n, C, q)."""
        rows = from_left(self.rows.T, KB[self.indices])
        return analysed(rows, self.basis) / self._root

    def lifted(self, v: np.ndarray, onto: np.ndarray) -> np.ndarray:
        """Z v added to coefficients of shape (n, C, q)."""
        out = onto.copy()
        out[self.indices] += self._active(v)
        return out

    def values(self, v: np.ndarray) -> np.ndarray:
        """𝒦 Z v of shape (n, C, q)."""
        out = mixed(from_left(self.factor, v * self._root), self.basis)
        if self.intercept:
            out += self.intercept * np.sum(self._active(v), axis=0, keepdims=True)
        return out

    def adjoint(self, B: np.ndarray) -> np.ndarray:
        """(𝒦Z)ᵀ B of shape (m, c, q) from B of shape (n, C, q)."""
        out = from_left(self.factor.T, analysed(B, self.basis)) * self._root
        if self.intercept:
            sums = np.asarray(np.sum(B, axis=0, keepdims=True, dtype=np.float64))
            sums = analysed(sums, self.basis)
            out += self.ones[:, None, None] * (self.intercept * sums / self._root)
        return out

    def blocks(
        self, weights: np.ndarray, strength: float, outputs: np.ndarray, shares: np.ndarray
    ) -> Iterator[np.ndarray]:
        """``λT + (𝒦Z)ᵀ W (𝒦Z)`` for some outputs, where W has weights of shape (n,) times a share for each output."""
        H, e, sigma2 = weighted_gram(self.factor.T, weights), self.ones, self.intercept
        if sigma2:
            mixed = sigma2 * np.outer(self.factor.T @ weights, e)
            mixed, ones = mixed + mixed.T, np.outer(e, e)
        for variance, share in zip(self.variances[outputs], shares, strict=True):
            G = share * variance * H
            if sigma2:
                total = strength + sigma2 * share * weights.sum()
                G += share * mixed + sigma2 * total / variance * ones
            G[np.diag_indices_from(G)] += strength
            yield G

    @property
    def _root(self) -> np.ndarray:
        return np.sqrt(self.variances)[:, None]

    def _active(self, v: np.ndarray) -> np.ndarray:
        """Rows I of Z v, shape (m, C, q)."""
        return mixed(from_left(self.rows, v / self._root), self.basis)

    def gram(self, v: np.ndarray) -> np.ndarray:
        """T v."""
        return v + self._along_ones(v, self.intercept / self.variances)

    def inverse_gram(self, v: np.ndarray) -> np.ndarray:
        """T⁻¹ v."""
        share = self.intercept / self.variances
        return v - self._along_ones(v, share / (1 + share * float(self.ones @ self.ones)))

    def _along_ones(self, v: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """``e eᵀ v diag(factors)``."""
        if not self.intercept:
            return np.zeros_like(v)
        sums = np.tensordot(self.ones, v, axes=(0, 0))[None]
        return self.ones[:, None, None] * (factors[:, None] * sums)


def coarse_parts(operator: Operator, n_outputs: int) -> tuple[InputOperator, Any, float] | None:
    """The input operator, S and σ² of ``M A S + σ² 1 1ᵀ A``; None if it is not of that form."""
    S, intercept = np.eye(n_outputs), 0.0
    if isinstance(operator, LabelMixed):
        if n_outputs > MOST_OUTPUTS:
            return None
        (operator, structure), *others = operator.terms
        for term, own in others:
            if not isinstance(term, Intercept) or not isinstance(own, Identity):
                return None
            intercept += term.variance
        S = np.asarray(structure.mix(S), dtype=np.float64)
    if not isinstance(operator, InputOperator) or not is_numpy(operator.diagonal()):
        return None
    if operator.columns(np.zeros(1, dtype=np.int64)) is None:
        return None
    return operator, S, intercept


def coarse_space(
    operator: Operator,
    n_outputs: int,
    rank: int,
    *,
    enough: float = 0.0,
    weights: np.ndarray | None = None,
) -> CoarseSpace | None:
    """Build the space of at most ``rank`` functions for each output.

    Parameters
    ----------
    operator : Operator
        Of the form ``M A S + σ² 1 1ᵀ A``, on NumPy arrays; otherwise there is no such space.
    n_outputs : int
    rank : int
    enough : float, default=0.0
        Stop when the trace of what is left of 𝒦 is at most this.
    weights : ndarray of shape (n,), default=None
        Of the examples. Those of weight zero are not in the active set, so that their coefficients stay zero, and do
        not count in the trace: W is zero there.
    """
    parts = coarse_parts(operator, n_outputs)
    if parts is None:
        return None
    M, S, intercept = parts
    variances, basis = eigenvectors(S)
    if not variances.size:
        return None
    diagonal = np.array(M.diagonal()[:, 0], dtype=np.float64)
    if weights is not None:
        diagonal[weights == 0] = 0.0
    trace = float(diagonal.sum())
    if not (0 < trace < np.inf) or diagonal.min() < 0:
        return None
    rounding = NOISE * float(np.finfo(M.dtype).eps)
    found = pivoted_cholesky(
        lambda indices: _float64(M.columns(indices)),
        diagonal,
        rank,
        tol=min(1.0, max(rounding, enough / (variances.max() * trace))),
        random_state=0,
    )
    if not found.indices.size:
        return None
    identity = np.eye(len(found.indices))
    rows = solve_triangular(
        found.factor[found.indices], identity, lower=True, trans=1, check_finite=False
    )
    left = float(variances.max() * found.residual.sum())
    return CoarseSpace(
        found.indices, found.factor, rows, variances, basis, intercept, rows.sum(axis=0), left
    )


def eigenvectors(S: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Eigenvalues that are not negligible, and eigenvectors unless these are the outputs."""
    if not np.any(S - np.diag(np.diag(S))) and np.all(np.diag(S) > SMALLEST * np.max(S)):
        return np.diag(S).copy(), None
    variances, basis = np.linalg.eigh(S)
    used = variances > max(0.0, SMALLEST * variances[-1])
    return variances[used], basis[:, used]


def _float64(values: Array | None) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


def from_left(matrix: np.ndarray, v: np.ndarray) -> np.ndarray:
    """``matrix v`` along the first axis of v, in the dtype of the matrix.

    Written from the right, which is the faster order for few columns and a matrix in column order.
    """
    flat = v.reshape(v.shape[0], -1).astype(matrix.dtype, copy=False)
    return np.ascontiguousarray((flat.T @ matrix.T).T).reshape(-1, *v.shape[1:])


def analysed(B: np.ndarray, basis: np.ndarray | None) -> np.ndarray:
    """B Q along the second axis."""
    return B if basis is None else np.einsum("mcq,cd->mdq", B, basis, optimize=True)


def mixed(v: np.ndarray, basis: np.ndarray | None) -> np.ndarray:
    """v Qᵀ along the second axis."""
    return v if basis is None else np.einsum("mdq,cd->mcq", v, basis, optimize=True)


def weighted_gram(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``rows diag(weights) rowsᵀ`` in float64, by blocks of columns and without those of weight zero."""
    m, n = rows.shape
    out, kept = np.zeros((m, m)), np.flatnonzero(weights)
    for block in row_blocks(len(kept), 8 * m, TILE_BYTES):
        columns = slice(block.start, block.stop) if len(kept) == n else kept[block]
        scaled = rows[:, columns] * np.sqrt(weights[columns])
        out += scaled @ scaled.T
    return out
