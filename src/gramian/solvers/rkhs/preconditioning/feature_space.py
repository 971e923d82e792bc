"""All functions of a low-rank operator, in coordinates: a `coarse_space` that leaves nothing.

Formula
    For ``𝒦(A) = L Lᵀ A S + σ² 1 1ᵀ A`` with ``S = Q diag(s) Qᵀ``

        𝒦 = Φ Φᵀ,    Φ(v, b) = (L v diag(s)^½ + σ 1 b) Qᵀ.

    Coordinates (v, b) are those of an orthonormal basis Z of functions: ``𝒦Z = Φ``, ``Zᵀ𝒦B = ΦᵀB``, ``Zᵀ𝒦Z = I``. So
    the Newton system is one of m + 1 unknowns for each output, as for a linear model.

Coefficients
    ``A = Z (v, b)`` is any solution of ``Φᵀ A = (v, b)``: rows at the active set and, for the intercept, a multiple of
    ``c = 1 − L e``, what the active set leaves of the constant function (e = L̃⁻¹ 1):

        A = c a + E_I L̃⁻ᵀ (v diag(s)^-½ Qᵀ − Lᵀc a),    a = (b Qᵀ / σ − eᵀ v diag(s)^-½ Qᵀ) / ‖c‖².

Cost
    4 n m C flops for ΦΦᵀ, n m² for the matrices of a Newton step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gramian.operators.base import Operator
from gramian.operators.inputs.low_rank import LowRank
from gramian.solvers.rkhs.preconditioning.coarse_space import (
    analysed,
    coarse_parts,
    eigenvectors,
    from_left,
    mixed,
    weighted_gram,
)

__all__ = ["FeatureSpace", "feature_space"]

DEPENDENT = (
    1e-10  # squared length of c relative to n: less is rounding of a constant within the span of L
)


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """Coordinates of all functions of a low-rank operator; see the header. Methods are those of `CoarseSpace`.

    Attributes
    ----------
    matrix : LowRank
        L Lᵀ.
    variances : ndarray of shape (c,)
        s.
    basis : ndarray of shape (n_outputs, c) or None
        Q; None is the identity.
    intercept : float
        σ².
    rows : ndarray of shape (m, m)
        L̃⁻ᵀ.
    rest, rest_features : ndarray of shape (n,) and (m,)
        c / ‖c‖² and Lᵀc / ‖c‖².
    """

    matrix: LowRank
    variances: np.ndarray
    basis: np.ndarray | None
    intercept: float
    rows: np.ndarray
    rest: np.ndarray
    rest_features: np.ndarray

    left = 0.0

    @property
    def rank(self) -> int:
        """Coordinates of each output."""
        return self.matrix.rank + (self.intercept > 0)

    @property
    def factor(self) -> np.ndarray:
        """L of shape (n, m)."""
        return self.matrix.factor

    def coordinates(self, B: np.ndarray, KB: np.ndarray) -> np.ndarray:
        """ΦᵀB of shape (rank, c, q); 𝒦B is not needed."""
        return self.adjoint(B)

    def adjoint(self, B: np.ndarray) -> np.ndarray:
        """ΦᵀB of shape (rank, c, q) from B of shape (n, C, q)."""
        B = analysed(B, self.basis)
        out = from_left(self.factor.T, B)
        if self.intercept:
            out = np.concatenate([out, np.sum(B, axis=0, keepdims=True, dtype=out.dtype)])
        return out * self._scales

    def values(self, v: np.ndarray) -> np.ndarray:
        """Φv of shape (n, C, q)."""
        scaled, m = v * self._scales, self.matrix.rank
        out = from_left(self.factor, scaled[:m])
        if self.intercept:
            out += scaled[m]
        return mixed(out, self.basis)

    def lifted(self, v: np.ndarray, onto: np.ndarray) -> np.ndarray:
        """Z v added to coefficients of shape (n, C, q)."""
        scaled, m = mixed(v / self._scales, self.basis), self.matrix.rank
        out, features = onto.copy(), scaled[:m]
        if self.intercept:
            amount = scaled[m] - np.tensordot(self.rows.sum(axis=0), features, axes=(0, 0))
            out += (self.rest[:, None, None] * amount).astype(out.dtype, copy=False)
            features = features - self.rest_features[:, None, None] * amount
        out[self.matrix.indices] += from_left(self.rows, features)
        return out

    def blocks(
        self, weights: np.ndarray, strength: float, outputs: np.ndarray, shares: np.ndarray
    ) -> Iterator[np.ndarray]:
        """``λI + ΦᵀWΦ`` for some outputs, where W has weights of shape (n,) times a share for each output."""
        H = weighted_gram(self.factor.T, weights)
        if self.intercept:
            sums = self.factor.T @ weights
            H = np.block([[H, sums[:, None]], [sums, weights.sum()]])
        for scales, share in zip(self._scales[:, outputs, 0].T, shares, strict=True):
            G = share * scales[:, None] * H * scales
            G[np.diag_indices_from(G)] += strength
            yield G

    def gram(self, v: np.ndarray) -> np.ndarray:
        """Zᵀ𝒦Z v = v."""
        return v

    inverse_gram = gram

    @property
    def _scales(self) -> np.ndarray:
        """``diag(s)^½`` for v and σ for b, shape (rank, c, 1)."""
        root = np.broadcast_to(np.sqrt(self.variances), (self.matrix.rank, self.variances.size))
        if self.intercept:
            root = np.concatenate([root, np.full((1, root.shape[1]), np.sqrt(self.intercept))])
        return root[:, :, None]


def feature_space(operator: Operator, n_outputs: int) -> FeatureSpace | None:
    """The coordinates of a low-rank operator; None for others, or if a diagonal is added to L Lᵀ."""
    parts = coarse_parts(operator, n_outputs)
    if parts is None:
        return None
    matrix, S, intercept = parts
    if not isinstance(matrix, LowRank) or matrix.has_diagonal:
        return None
    variances, basis = eigenvectors(S)
    # a singular S has outputs without functions, which still have an intercept
    if not variances.size or (intercept and variances.size < n_outputs):
        return None
    rows = matrix.solved(np.eye(matrix.rank))
    rest = np.zeros(matrix.shape[0], dtype=matrix.dtype)
    if intercept:
        rest = 1.0 - matrix.factor @ rows.sum(axis=0).astype(matrix.dtype)
        squared = float(rest @ rest)
        if not squared > DEPENDENT * len(rest):
            return None
        rest /= squared
    return FeatureSpace(matrix, variances, basis, intercept, rows, rest, matrix.factor.T @ rest)
