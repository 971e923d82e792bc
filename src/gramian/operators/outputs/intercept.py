"""The intercept as one more Gram matrix: ``σ² 1 1ᵀ``.

An intercept b with prior variance σ² is eliminated (Seeger §3): ``b = σ² 1ᵀ A``. Product: one sum.
"""

from __future__ import annotations

from gramian._core.arrays import Array, device_of, namespace
from gramian.operators.base import InputOperator


class Intercept(InputOperator):
    """The matrix ``σ² 1 1ᵀ``.

    Parameters
    ----------
    variance : float
        Prior variance σ² of the intercept; not a learned parameter.
    like : array
        Latent values or targets of the problem: they say which array library, device and dtype to
        use.
    n_rows : int
    n_columns : int, default=None
        None means n_rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Intercept
    >>> B = np.array([[1.0], [2.0]])
    >>> Intercept(10.0, like=B, n_rows=2) @ B
    array([[30.],
           [30.]])
    """

    def __init__(self, variance: float, like: Array, n_rows: int, n_columns: int | None = None):
        self.variance = float(variance)
        self.shape = (int(n_rows), int(n_rows if n_columns is None else n_columns))
        self.dtype = like.dtype
        self._like = like[:0, ...]

    def _matmul(self, B: Array) -> Array:
        xp = namespace(B)
        sums = self.variance * xp.sum(B, axis=0, keepdims=True)
        return xp.broadcast_to(sums, (self.shape[0], B.shape[1]))

    def _accurate(self, B: Array) -> Array:
        return self._matmul(B)

    def to_dense(self) -> Array:
        xp = namespace(self._like)
        return xp.full(self.shape, self.variance, dtype=self.dtype, device=device_of(self._like))

    def _diagonal(self) -> Array:
        xp = namespace(self._like)
        return xp.full(self.shape[0], self.variance, dtype=self.dtype, device=device_of(self._like))
