"""Squared loss ``½ (u − y)²`` over the targets that are known: a target that is NaN has weight zero. Curvature 1 or 0.

A weight for each cell rather than each example, carried by the targets themselves: weights of examples, folds and
samples of rows work as for any loss.
"""

from __future__ import annotations

from gramian._core.arrays import Array, namespace, total
from gramian.losses.base import DiagonalCurvature, Loss, weighted


class ObservedSquared(Loss):
    """``½ (u − y)²``, summed over the outputs whose target is known, not NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import ObservedSquared
    >>> float(ObservedSquared().value(np.array([[3.0, 7.0]]), np.array([[1.0, np.nan]])))
    2.0
    """

    quadratic = True

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return 0.5 * total(_residual(U, Y) ** 2, weights)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return weighted(_residual(U, Y), weights)

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> DiagonalCurvature:
        xp = namespace(U)
        known = xp.astype(~xp.isnan(Y), U.dtype) * xp.ones_like(U)
        return DiagonalCurvature(weighted(known, weights))


def _residual(U: Array, Y: Array) -> Array:
    """u − y where y is known, else zero."""
    xp = namespace(U)
    return xp.where(xp.isnan(Y), xp.zeros_like(U), U - Y)
