"""The prior of weights of features: ``v B S`` for rows of weights, one for each feature.

A linear function ``f(x) = Wᵀ x`` has the kernel ``v ⟨x, x'⟩ S`` if the rows of W are independent with covariance v S.
Its weights are then rows of coefficients like any other, and this operator stands in the place of a Gram matrix.
Cost: O(d C).
"""

from __future__ import annotations

from typing import Any

from gramian._core.arrays import Array, device_of, namespace
from gramian.labels import LabelStructure
from gramian.operators.base import Operator


class Weights(Operator):
    """Prior of the weights of some features.

    Parameters
    ----------
    variance : float
        v > 0; not a learned parameter.
    structure : LabelStructure
        S; its parameters are not learned here, either.
    n_features : int
    like : array
        Says which array library, device and dtype to use.
    features : LinearFeatures or LowRank, default=None
        Whose weights they are; it says how a function is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Identity
    >>> from gramian.operators import Weights
    >>> Weights(2.0, Identity(), 2, like=np.ones((1, 1))) @ np.ones((2, 1))
    array([[2.],
           [2.]])
    """

    def __init__(
        self,
        variance: float,
        structure: LabelStructure,
        n_features: int,
        like: Array,
        features: Any = None,
    ):
        self.variance, self.structure = float(variance), structure
        self.shape, self.dtype = (int(n_features), int(n_features)), like.dtype
        self._like, self.features = like[:0, ...], features

    def __matmul__(self, B: Array) -> Array:
        return self.variance * self.structure.mix(B)

    def accurate(self, B: Array) -> Array:
        return self @ B

    def diagonal(self, n_outputs: int = 1) -> Array:
        xp, own = namespace(self._like), self.variance * self.structure.diagonal(n_outputs)
        row = xp.asarray(own, dtype=self.dtype, device=device_of(self._like))
        return xp.broadcast_to(row[None, :], (self.shape[0], n_outputs))

    def compress(self, A: Array) -> tuple[Array | None, Array]:
        return (None, A) if self.features is None else self.features.represented(A)

    @property
    def is_diagonal(self) -> bool:
        return self.structure.is_diagonal
