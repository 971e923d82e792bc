"""Softmax loss of examples whose class is known up to a set: ``log Σ_c exp(u_c) − log Σ_{c ∈ I} exp(u_c)``.

The negative log likelihood of "the class is one of I" (Seeger §7.3). Y holds ones for the classes in I and zeros
elsewhere; with one class in I it is the softmax loss. Gradient ``π − q`` with ``q_c ∝ 1[c ∈ I] exp(u_c)``; curvature
``(diag π − π πᵀ) − (diag q − q qᵀ)``, which is not positive where I holds several classes: the loss is not convex. The
first bracket alone is the curvature of the convex function above it that expectation maximisation minimises.
"""

from __future__ import annotations

from gramian._core.arrays import Array, namespace, total
from gramian.losses.base import Curvature, CurvatureDifference, Loss, SoftmaxCurvature, weighted
from gramian.losses.softmax import log_sum_exp, softmax


class PartialSoftmax(Loss):
    """``log Σ_c exp(u_c) − log Σ_{c ∈ I} exp(u_c)``; Y holds ones for the classes in I.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import PartialSoftmax
    >>> round(float(PartialSoftmax().value(np.zeros((1, 4)), np.array([[1.0, 1.0, 0.0, 0.0]]))), 4)
    0.6931
    """

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return total(log_sum_exp(U) - log_sum_exp(_inside(U, Y)), weights)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return weighted(softmax(U) - softmax(_inside(U, Y)), weights)

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> Curvature:
        return CurvatureDifference(
            self.majorant(U, weights), SoftmaxCurvature(softmax(_inside(U, Y)), weights)
        )

    def majorant(self, U: Array, weights: Array | None = None) -> SoftmaxCurvature:
        """Curvature of the convex function above the loss that touches it at U."""
        return SoftmaxCurvature(softmax(U), weights)


def _inside(U: Array, Y: Array) -> Array:
    """U where Y allows the class, else minus infinity."""
    xp = namespace(U)
    return xp.where(Y > 0, U, xp.full_like(U, -float("inf")))
