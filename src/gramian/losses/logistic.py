"""Binary logistic loss ``log(1 + eᵘ) − y u`` with y in [0, 1]; y between 0 and 1 is a soft target.

For y = 0 and 1 this is ``log(1 + exp(∓u))``. Curvature ``p (1 − p)`` with ``p = 1 / (1 + e⁻ᵘ)``.
"""

from __future__ import annotations

from gramian._core.arrays import Array, namespace, total
from gramian.losses.base import DiagonalCurvature, Loss, weighted


class Logistic(Loss):
    """``log(1 + eᵘ) − y u`` with targets in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import Logistic
    >>> round(float(Logistic().value(np.array([[0.0]]), np.array([[1.0]]))), 4)
    0.6931
    """

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        xp = namespace(U)
        softplus = xp.clip(U, min=0) + xp.log1p(xp.exp(-xp.abs(U)))
        return total(softplus - Y * U, weights)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return weighted(sigmoid(U) - Y, weights)

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> DiagonalCurvature:
        # p (1 − p) as a product of two sigmoids: no cancellation where p is near 1
        return DiagonalCurvature(weighted(sigmoid(U) * sigmoid(-U), weights))


def sigmoid(U: Array) -> Array:
    """``1 / (1 + e⁻ᵘ)`` without overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import sigmoid
    >>> sigmoid(np.array([-1000.0, 0.0]))
    array([0. , 0.5])
    """
    xp = namespace(U)
    small = xp.exp(-xp.abs(U))
    return xp.where(U >= 0, xp.ones_like(U), small) / (1 + small)
