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

import numpy as np
from scipy.linalg import solve_triangular

from gramian.operators.base import Operator
from gramian.operators.compiled.pivoted_cholesky import pivoted_cholesky
from gramian.solvers.rkhs.preconditioning.space import (
    FunctionSpace,
    from_left,
    parts_of,
    weighted_gram,
)

# roundings of the dtype of M, relative to the trace: what is left then says nothing about products
ROUNDINGS_OF_TRACE = 100


@dataclass(frozen=True, eq=False)
class CoarseSpace(FunctionSpace):
    """Functions spanned by an active set; arrays as in the header.

    Attributes
    ----------
    left : float
        Trace of M − L Lᵀ, times the largest eigenvalue of S.
    """

    left: float

    complete = False

    def leading(self, rank: int) -> CoarseSpace:
        """Return the space of the first functions, at least one: their coordinates are the same in both."""
        rank = max(1, rank)
        tail = self.factor[:, rank:]
        left = self.left + self.parts.variances.max() * np.einsum("ij,ij->", tail, tail)
        some = self.indices[:rank], self.factor[:, :rank], self.rows[:rank, :rank]
        return CoarseSpace(self.parts, *some, float(left))

    def coordinates(self, B: np.ndarray, KB: np.ndarray) -> np.ndarray:
        return self.analysed(from_left(self.rows.T, KB[self.indices])) / self._root

    def lifted(self, v: np.ndarray, onto: np.ndarray) -> np.ndarray:
        out = onto.copy()
        out[self.indices] += self._active(v)
        return out

    def values(self, v: np.ndarray) -> np.ndarray:
        out = self.mixed(from_left(self.factor, v * self._root))
        if self.parts.intercept:
            out += self.parts.intercept * np.sum(self._active(v), axis=0, keepdims=True)
        return out

    def adjoint(self, B: np.ndarray) -> np.ndarray:
        out = from_left(self.factor.T, self.analysed(B)) * self._root
        if self.parts.intercept:
            sums = self.analysed(B.sum(axis=0, keepdims=True, dtype=np.float64))
            out += self.ones[:, None, None] * (self.parts.intercept * sums / self._root)
        return out

    def blocks(
        self, weights: np.ndarray, strength: float, outputs: np.ndarray, shares: np.ndarray
    ) -> Iterator[np.ndarray]:
        H, e, sigma2 = weighted_gram(self.factor.T, weights), self.ones, self.parts.intercept
        if sigma2:
            mixed = sigma2 * np.outer(self.factor.T @ weights, e)
            mixed, ones = mixed + mixed.T, np.outer(e, e)
        for variance, share in zip(self.parts.variances[outputs], shares, strict=True):
            G = share * variance * H
            if sigma2:
                total = strength + sigma2 * share * weights.sum()
                G += share * mixed + sigma2 * total / variance * ones
            G[np.diag_indices_from(G)] += strength
            yield G

    def gram(self, v: np.ndarray) -> np.ndarray:
        return v + self._along_ones(v, self._share)

    def inverse_gram(self, v: np.ndarray) -> np.ndarray:
        factors = self._share / (1 + self._share * float(self.ones @ self.ones))
        return v - self._along_ones(v, factors)

    @property
    def _root(self) -> np.ndarray:
        return np.sqrt(self.parts.variances)[:, None]

    @property
    def _share(self) -> np.ndarray:
        return self.parts.intercept / self.parts.variances

    def _active(self, v: np.ndarray) -> np.ndarray:
        """Rows I of Z v, shape (m, C, q)."""
        return self.mixed(from_left(self.rows, v / self._root))

    def _along_ones(self, v: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """``e eᵀ v diag(factors)``."""
        if not self.parts.intercept:
            return np.zeros_like(v)
        sums = np.tensordot(self.ones, v, axes=(0, 0))[None]
        return self.ones[:, None, None] * (factors[:, None] * sums)


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
    parts = parts_of(operator, n_outputs)
    if parts is None:
        return None
    M, largest = parts.matrix, float(parts.variances.max())
    diagonal = np.array(M.diagonal()[:, 0], dtype=np.float64)
    if weights is not None:
        diagonal[weights == 0] = 0.0
    trace = float(diagonal.sum())
    if not (0 < trace < np.inf) or diagonal.min() < 0:
        return None
    rounding = ROUNDINGS_OF_TRACE * float(np.finfo(M.dtype).eps)
    found = pivoted_cholesky(
        lambda indices: np.asarray(M.columns(indices), dtype=np.float64),
        diagonal,
        rank,
        tol=min(1.0, max(rounding, enough / (largest * trace))),
        random_state=0,
    )
    if not found.indices.size:
        return None
    triangle, identity = found.factor[found.indices], np.eye(len(found.indices))
    rows = solve_triangular(triangle, identity, lower=True, trans=1, check_finite=False)
    left = float(largest * found.residual.sum())
    return CoarseSpace(parts, found.indices, found.factor, rows, left)
