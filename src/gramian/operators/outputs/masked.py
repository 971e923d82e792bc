"""Rows restricted by zeroing, never by copying: ``m ∘ 𝒦(m ∘ B)``.

A mask for each trailing column lets q folds share one pass over the Gram matrix.
"""

from __future__ import annotations

import numpy as np

from gramian._core.arrays import Array, asarray_like, column
from gramian.operators.base import Operator


class Masked(Operator):
    """An operator restricted to some rows.

    Parameters
    ----------
    operator : Operator
    mask : array of shape (n,) or (n, q), of zeros and ones in the operator's dtype
        With (n, q), trailing column ``j`` of ``(n, C, q)`` arrays is restricted by ``mask[:, j]``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> from gramian.operators import Dense, Masked
    >>> M = Dense(Linear(), np.array([[1.0], [2.0]]))
    >>> Masked(M, np.array([0.0, 1.0])) @ np.ones((2, 1))
    array([[0.],
           [4.]])
    """

    def __init__(self, operator: Operator, mask: Array):
        if mask.ndim not in (1, 2) or mask.shape[0] != operator.shape[0]:
            raise ValueError(
                f"mask must have shape ({operator.shape[0]},) or ({operator.shape[0]}, q), got {mask.shape}."
            )
        self.operator = operator
        self.mask = mask
        self.shape = operator.shape
        self.dtype = operator.dtype

    def __matmul__(self, B: Array) -> Array:
        mask = self._column(B)
        return mask * (self.operator @ (mask * B))

    def accurate(self, B: Array) -> Array:
        mask = self._column(B)
        return mask * self.operator.accurate(mask * B)

    def _column(self, B: Array) -> Array:
        """The mask, shaped to multiply B."""
        # products with the mask would broadcast: one row to n rows, (n, C) to (n, n, C)
        n, *columns = self.mask.shape
        if B.shape[0] != n or (columns and (B.ndim != 3 or columns[0] not in (1, B.shape[2]))):
            expected = (
                f"({n}, C, {columns[0]}), one column for each mask" if columns else f"({n}, ...)"
            )
            raise ValueError(f"Masked multiplies arrays of shape {expected}; got {tuple(B.shape)}.")
        return column(asarray_like(self.mask, B), B)

    def diagonal(self, n_outputs: int = 1) -> Array:
        values = self.operator.diagonal(n_outputs)
        if self.mask.ndim == 1:
            return values * self.mask[:, None]
        return values[:, :, None] * self.mask[:, None, :]

    def cross(self, X_new: Array) -> Operator:
        return self.operator.cross(X_new)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        mask = column(self.mask, E)
        return self.operator.vjp(mask * E, mask * F)

    @property
    def theta(self) -> np.ndarray:
        return self.operator.theta

    def clone_with_theta(self, theta: np.ndarray) -> Masked:
        return Masked(self.operator.clone_with_theta(theta), self.mask)

    @property
    def nbytes(self) -> int:
        return self.operator.nbytes
