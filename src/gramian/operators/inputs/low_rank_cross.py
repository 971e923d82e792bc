"""Predictions of a low-rank Gram matrix: from training examples to new ones, by way of the active set.

Formula (Seeger §7.4)
    ``M[*, :] = k(X_new, X_I) M[I, I]⁻¹ M[I, :]``, without the exact diagonal: new examples are other examples.

Gradient
    With ``Ẽ = M[I, I]⁻¹ k(X_I, X_new) E`` and ``F̃ = M[I, I]⁻¹ M[I, :] F``

        ⟨E, dM F⟩ = ⟨E F̃ᵀ, dk(X_new, X_I)⟩ + ⟨F Ẽᵀ, dM[:, I]⟩ − ⟨Ẽ F̃ᵀ, dM[I, I]⟩.

Cost
    n r k flops for the coefficients of the active set, n_new r kernel values and as many flops again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gramian._core.arrays import Array
from gramian.operators.base import InputOperator
from gramian.operators.inputs.streamed import Streamed
from gramian.operators.inputs.tiles import tiled_vjp

if TYPE_CHECKING:
    from gramian.operators.inputs.low_rank import LowRank


class LowRankCross(InputOperator):
    """The matrix ``k(X_new, X_I) L̃⁻ᵀ Lᵀ`` from training to new examples.

    Parameters
    ----------
    operator : LowRank
    X_new : ndarray or sparse array of shape (n_new, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.operators import LowRank
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> LowRank(RBF(), X, rank=6, random_state=0).cross(X[:3]).shape
    (3, 50)
    """

    def __init__(self, operator: LowRank, X_new: Array):
        self.operator = operator
        self.X_new = X_new
        self.values = Streamed(operator.kernel, X_new, operator.X[operator.indices])
        self.shape = (int(X_new.shape[0]), operator.shape[0])
        self.dtype = X_new.dtype

    def _matmul(self, B: Array) -> Array:
        return self.values @ self.operator.compress(B)[1].astype(self.dtype)

    def _accurate(self, B: Array) -> Array:
        return self.values.accurate(self.operator.compress(B)[1])

    def _tiles(self) -> Iterator[Array]:
        yield self.to_dense()

    def to_dense(self) -> Array:
        return self @ np.eye(self.shape[1], dtype=self.dtype)

    def _diagonal(self) -> Array:
        return np.diagonal(self.to_dense())

    def cross(self, X_new: Array) -> LowRankCross:
        return LowRankCross(self.operator, X_new)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        low_rank, kernel, active = self.operator, self.operator.kernel, self.values.Z
        E, F = (np.asarray(B, dtype=np.float64).reshape(B.shape[0], -1) for B in (E, F))
        F_active = low_rank.compress(F)[1]
        E_active = low_rank.solved(Streamed(kernel, active, self.X_new) @ E, fully=True)
        return (
            tiled_vjp(kernel, self.X_new, active, E, F_active)
            + tiled_vjp(kernel, low_rank.X, active, F, E_active)
            - tiled_vjp(kernel, active, active, E_active, F_active)
        )

    @property
    def theta(self) -> np.ndarray:
        return self.operator.theta

    def clone_with_theta(self, theta: np.ndarray) -> LowRankCross:
        return LowRankCross(self.operator.clone_with_theta(theta), self.X_new)
