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
from gramian.solvers.rkhs.preconditioning.space import (
    FunctionSpace,
    from_left,
    parts_of,
    weighted_gram,
)

# squared length of c relative to n: less is rounding of a constant function within the span of L
SMALLEST_SQUARED_REST = 1e-10


@dataclass(frozen=True, eq=False)
class FeatureSpace(FunctionSpace):
    """Coordinates of all functions of a low-rank operator; see the header.

    Attributes
    ----------
    rest, rest_features : ndarray of shape (n,) and (m,)
        c / ‖c‖² and Lᵀc / ‖c‖².
    """

    rest: np.ndarray
    rest_features: np.ndarray

    complete, left = True, 0.0  # nothing of 𝒦 is left

    @property
    def rank(self) -> int:
        return len(self.indices) + (self.parts.intercept > 0)

    def coordinates(self, B: np.ndarray, KB: np.ndarray) -> np.ndarray:
        return self.adjoint(B)

    def adjoint(self, B: np.ndarray) -> np.ndarray:
        B = self.analysed(B)
        out = from_left(self.factor.T, B)
        if self.parts.intercept:
            out = np.concatenate([out, np.sum(B, axis=0, keepdims=True, dtype=out.dtype)])
        return out * self._scales

    def values(self, v: np.ndarray) -> np.ndarray:
        scaled, m = v * self._scales, len(self.indices)
        out = from_left(self.factor, scaled[:m])
        if self.parts.intercept:
            out += scaled[m]
        return self.mixed(out)

    def lifted(self, v: np.ndarray, onto: np.ndarray) -> np.ndarray:
        scaled, m = self.mixed(v / self._scales), len(self.indices)
        out, features = onto.copy(), scaled[:m]
        if self.parts.intercept:
            amount = scaled[m] - np.tensordot(self.ones, features, axes=(0, 0))
            out += (self.rest[:, None, None] * amount).astype(out.dtype, copy=False)
            features = features - self.rest_features[:, None, None] * amount
        out[self.indices] += from_left(self.rows, features)
        return out

    def blocks(
        self, weights: np.ndarray, strength: float, outputs: np.ndarray, shares: np.ndarray
    ) -> Iterator[np.ndarray]:
        H = weighted_gram(self.factor.T, weights)
        if self.parts.intercept:
            sums = self.factor.T @ weights
            H = np.block([[H, sums[:, None]], [sums, weights.sum()]])
        for scales, share in zip(self._scales[:, outputs, 0].T, shares, strict=True):
            G = share * scales[:, None] * H * scales
            G[np.diag_indices_from(G)] += strength
            yield G

    @property
    def _scales(self) -> np.ndarray:
        """``diag(s)^½`` for v and σ for b, shape (rank, c, 1)."""
        variances = self.parts.variances
        out = np.full((self.rank, variances.size, 1), np.sqrt(self.parts.intercept))
        out[: len(self.indices)] = np.sqrt(variances)[:, None]
        return out


def feature_space(operator: Operator, n_outputs: int) -> FeatureSpace | None:
    """The coordinates of a low-rank operator; None for others, or if a diagonal is added to L Lᵀ."""
    parts = parts_of(operator, n_outputs)
    if parts is None:
        return None
    matrix, intercept = parts.matrix, parts.intercept
    if not isinstance(matrix, LowRank) or matrix.has_diagonal:
        return None
    # a singular S has outputs without functions, which still have an intercept
    if intercept and parts.variances.size < n_outputs:
        return None
    rows = matrix.solved(np.eye(matrix.rank))
    rest = np.zeros(matrix.shape[0], dtype=matrix.dtype)
    if intercept:
        rest = 1.0 - matrix.factor @ rows.sum(axis=0).astype(matrix.dtype)
        squared = float(rest @ rest)
        if not squared > SMALLEST_SQUARED_REST * len(rest):
            return None
        rest /= squared
    features = matrix.factor.T @ rest
    return FeatureSpace(parts, matrix.indices, matrix.factor, rows, rest, features)
