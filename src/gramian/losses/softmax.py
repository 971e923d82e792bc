"""Softmax (multinomial logistic) loss ``log Σ_c exp(u_c) − Σ_c y_c u_c`` (Seeger eq. 1).

Rows of Y are probability vectors: one-hot for known classes, anything in the simplex for soft
targets. Gradient ``π − y``, curvature ``diag π − π πᵀ``.
"""

from __future__ import annotations

from gramian._core.arrays import Array, namespace, total
from gramian._core.fused import divided, exponentials
from gramian.losses.base import Loss, SoftmaxCurvature, weighted


class Softmax(Loss):
    """``log Σ_c exp(u_c) − Σ_c y_c u_c``; rows of Y sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import Softmax
    >>> round(float(Softmax().value(np.zeros((1, 4)), np.array([[0.0, 1.0, 0.0, 0.0]]))), 4)
    1.3863
    """

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return total(log_sum_exp(U) - namespace(U).sum(Y * U, axis=1, keepdims=True), weights)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return weighted(softmax(U) - Y, weights)

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> SoftmaxCurvature:
        return SoftmaxCurvature(softmax(U), weights)

    def partial(self) -> Loss:
        from gramian.losses.partial_softmax import PartialSoftmax  # which is made of this one

        return PartialSoftmax()


def softmax(U: Array) -> Array:
    """Probabilities along axis 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import softmax
    >>> softmax(np.zeros((1, 2)))
    array([[0.5, 0.5]])
    """
    E, _, sums = exponentials(U)
    return divided(E, sums)


def log_sum_exp(U: Array) -> Array:
    """``log Σ_c exp(u_c)`` along axis 1, which is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import log_sum_exp
    >>> log_sum_exp(np.array([[1000.0, 1000.0]])).round(4)
    array([[1000.6931]])
    """
    _, highest, sums = exponentials(U)
    return highest + namespace(U).log(sums)
