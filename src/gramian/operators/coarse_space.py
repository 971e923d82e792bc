"""A small space of functions in which 𝒦 is known: what preconditioners solve exactly.

Formula
    For ``𝒦(A) = M A S + σ² 1 1ᵀ A`` and an active set I, ``M[I, I] = L̃ L̃ᵀ``, ``M[:, I] = L L̃ᵀ``
    (`pivoted_cholesky`), ``S = R R``: the space is spanned by the kernel functions of I, for every output, in the
    basis ``Z v = E_I L̃⁻ᵀ v R⁻¹`` (E_I puts rows at I; R⁻¹ and S⁻¹ are pseudo-inverses if S is singular). There

        𝒦 Z v = L v R + σ² 1 eᵀ v R⁻¹,    Zᵀ 𝒦 B = L̃⁻¹ (𝒦B)[I] R⁻¹,    T v = Zᵀ 𝒦 Z v = v + σ² e eᵀ v S⁻¹,

    with ``e = L̃⁻¹ 1``: the space of Seeger's low-rank matrices (§7.4, eq. 9).

    So if 𝒦B is at hand, projecting B on the space needs m rows of it, and the product of 𝒦 with a function of the
    space is one n × m product: no pass over M.

Cost
    m columns of M, n m² flops for the factor, C³ for the root of S; 2 n m C for a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gramian._arrays import Array, is_numpy
from gramian.labels import Identity
from gramian.operators.base import InputOperator, Operator
from gramian.operators.intercept import Intercept
from gramian.operators.label_mixed import LabelMixed
from gramian.operators.pivoted_cholesky import pivoted_cholesky

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
    factor : ndarray of shape (n, m)
        L.
    rows : ndarray of shape (m, m)
        L̃⁻ᵀ.
    root, inverse_root : ndarray of shape (n_outputs, n_outputs)
        R and R⁻¹.
    intercept : float
        σ².
    ones : ndarray of shape (m,)
        e.
    damping : ndarray of shape (n_outputs, n_outputs)
        ``T⁻¹ v = v − e eᵀ v damping``.
    left : float
        Trace of M − L Lᵀ, times the largest eigenvalue of S.
    """

    indices: np.ndarray
    factor: np.ndarray
    rows: np.ndarray
    root: np.ndarray
    inverse_root: np.ndarray
    intercept: float
    ones: np.ndarray
    damping: np.ndarray
    left: float

    def restricted(self, KB: np.ndarray) -> np.ndarray:
        """Zᵀ 𝒦 B of shape (m, C, q) from 𝒦B of shape (n, C, q)."""
        rows = _from_left(self.rows.T.__matmul__, KB[self.indices])
        return _mixed(rows, self.inverse_root)

    def extended(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows I of Z v, shape (m, C, q), and 𝒦 Z v, shape (n, C, q)."""
        rows = _mixed(_from_left(self.rows.__matmul__, v), self.inverse_root)
        values = _from_left(self.factor.__matmul__, _mixed(v, self.root))
        if self.intercept:
            values += self.intercept * np.sum(rows, axis=0, keepdims=True)
        return rows, values

    def adjoint(self, B: np.ndarray) -> np.ndarray:
        """(𝒦Z)ᵀ B of shape (m, C, q) from B of shape (n, C, q)."""
        out = _mixed(_from_left(self.factor.T.__matmul__, B), self.root)
        if self.intercept:
            sums = self.intercept * np.sum(B, axis=0, keepdims=True)
            out += self.ones[:, None, None] * _mixed(sums, self.inverse_root)
        return out

    def gram(self, v: np.ndarray) -> np.ndarray:
        """T v."""
        if not self.intercept:
            return v
        sums = self.intercept * np.tensordot(self.ones, v, axes=(0, 0))[None]
        twice = _mixed(_mixed(sums, self.inverse_root), self.inverse_root)
        return v + self.ones[:, None, None] * twice

    def inverse_gram(self, v: np.ndarray) -> np.ndarray:
        """T⁻¹ v."""
        if not self.intercept:
            return v
        sums = np.tensordot(self.ones, v, axes=(0, 0))[None]
        return v - self.ones[:, None, None] * _mixed(sums, self.damping)


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
    variances, basis = np.linalg.eigh(S)
    if not variances[-1] > 0:
        return None
    used = variances > SMALLEST * variances[-1]
    variances, basis = variances[used], basis[:, used]
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
        tol=min(1.0, max(rounding, enough / (variances[-1] * trace))),
        random_state=0,
    )
    if not found.indices.size:
        return None
    L = found.factor
    identity = np.eye(len(found.indices))
    rows = solve_triangular(L[found.indices], identity, lower=True, trans=1, check_finite=False)
    ones = rows.sum(axis=0)
    share = intercept / variances
    damping = basis * (share / (1 + share * float(ones @ ones))) @ basis.T
    root = basis * np.sqrt(variances) @ basis.T
    inverse = basis / np.sqrt(variances) @ basis.T
    left = float(variances[-1] * found.residual.sum())
    return CoarseSpace(
        found.indices, L, rows, root, inverse, intercept, ones, damping,
        left,
    )  # fmt: skip


def _float64(values: Array | None) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


def _mixed(v: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """``v matrix`` for v of shape (m, C, q) and a symmetric matrix (C, C)."""
    if len(matrix) == 1:
        return v * matrix[0, 0]
    return np.einsum("mcq,cd->mdq", v, matrix, optimize=True)


def _from_left(function: Any, v: np.ndarray) -> np.ndarray:
    """Apply a function of (m, k) arrays to the first axis."""
    flat = function(np.ascontiguousarray(v).reshape(v.shape[0], -1))
    return flat.reshape(len(flat), *v.shape[1:])
