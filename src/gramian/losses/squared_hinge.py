"""Squared hinge ``½ max(0, 1 − y u)²`` with y = ±1 (Airola & Pahikkala, Table 1, L2-SVM).

Its gradient is piecewise linear, so the curvature is a generalised Hessian: 1 inside the margin, 0
outside.
"""

from __future__ import annotations

from gramian._core.arrays import Array, namespace, total
from gramian.losses.base import DiagonalCurvature, Loss, weighted


class SquaredHinge(Loss):
    """``½ max(0, 1 − y u)²`` with targets −1 and +1.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import SquaredHinge
    >>> float(SquaredHinge().value(np.array([[-1.0]]), np.array([[1.0]])))
    2.0
    """

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return 0.5 * total(_slack(U, Y) ** 2, weights)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return weighted(-Y * _slack(U, Y), weights)

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> DiagonalCurvature:
        xp = namespace(U)
        return DiagonalCurvature(weighted(xp.astype(_slack(U, Y) > 0, U.dtype), weights))


def _slack(U: Array, Y: Array) -> Array:
    return namespace(U).clip(1 - Y * U, min=0)
