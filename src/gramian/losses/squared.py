"""Squared loss ``½ (u − y)²``, for regression. Curvature 1."""

from __future__ import annotations

from gramian._core.arrays import Array, namespace, total
from gramian.losses.base import DiagonalCurvature, Loss, weighted


class Squared(Loss):
    """``½ (u − y)²``, summed over outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import Squared
    >>> float(Squared().value(np.array([[3.0]]), np.array([[1.0]])))
    2.0
    """

    quadratic = True

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return 0.5 * total((U - Y) ** 2, weights)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return weighted(U - Y, weights)

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> DiagonalCurvature:
        return DiagonalCurvature(weighted(namespace(U).ones_like(U), weights))
