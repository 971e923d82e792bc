"""What a loss is: value, gradient and curvature in the latent values U.

Arrays are ``(n, C)`` or ``(n, C, q)``; weights are ``(n,)`` or ``(n, q)`` and multiply the loss of
an example. Values are summed over examples and outputs, one for each trailing column, in float64.

The curvature of a loss that is a sum over examples is ``W = D − D 1 w⁻¹ 1ᵀ D`` within an example (w its
weight), or just D when outputs are not coupled. W is positive semidefinite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from gramian._core.arrays import Array, as_vector, column, namespace
from gramian._core.fused import centred


class Curvature(ABC):
    """The Hessian W of a loss in U, as something to multiply with."""

    diagonal: Any  # D, of the shape of U; None if W is not of this form
    coupled: bool  # whether the rank-one term is there

    @abstractmethod
    def apply(self, V: Array) -> Array:
        """Return ``W V``."""

    def jacobi(self) -> Array | None:
        """Return about the diagonal of W, of the shape of U, or None if it is not known."""
        return None

    def sums(self) -> tuple[Any, Array] | None:
        """Return directions in which an intercept and rows of no example about cancel, and the curvature in them.

        Returns
        -------
        directions : sparse array of shape ((1 + rows of U that belong to no example) C, k)
            The first C entries are those of the intercepts.
        curvature : array of shape (k, k)
            None in the place of both if there are no such directions.
        """
        return None


class DiagonalCurvature(Curvature):
    """W = D: outputs are not coupled by the loss.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import DiagonalCurvature
    >>> DiagonalCurvature(np.array([[2.0]])).apply(np.array([[3.0]]))
    array([[6.]])
    """

    coupled = False

    def __init__(self, diagonal: Array):
        self.diagonal = diagonal

    def apply(self, V: Array) -> Array:
        return self.diagonal * V


class SoftmaxCurvature(Curvature):
    """W = w (diag π − π πᵀ) within each example.

    Parameters
    ----------
    probabilities : array of shape (n, C) or (n, C, q)
    weights : array of shape (n,) or (n, q), or None

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import SoftmaxCurvature
    >>> SoftmaxCurvature(np.array([[0.5, 0.5]]), None).apply(np.array([[1.0, 0.0]]))
    array([[ 0.25, -0.25]])
    """

    coupled = True

    def __init__(self, probabilities: Array, weights: Array | None):
        self.probabilities = probabilities
        self.diagonal = weighted(probabilities, weights)

    def apply(self, V: Array) -> Array:
        return centred(self.diagonal, self.probabilities, V)


class CurvatureDifference(Curvature):
    """``W₁ − W₂``: the Hessian of a loss that is a convex function minus another one.

    Parameters
    ----------
    above, below : Curvature
        W₁ and W₂.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import CurvatureDifference, DiagonalCurvature
    >>> parts = (DiagonalCurvature(np.array([[d]])) for d in (2.0, 0.5))
    >>> CurvatureDifference(*parts).apply(np.array([[2.0]]))
    array([[3.]])
    """

    coupled = True
    diagonal = None

    def __init__(self, above: Curvature, below: Curvature):
        self.above, self.below = above, below

    def apply(self, V: Array) -> Array:
        return self.above.apply(V) - self.below.apply(V)


class Loss(ABC):
    """Base class of losses: convex, differentiable in U and not negative (tolerances are relative)."""

    quadratic = False  # whether one exact Newton step minimises it
    separable = True  # whether it is a sum over examples

    @abstractmethod
    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        """Return the weighted sum of losses over examples and outputs, shape () or (q,)."""

    @abstractmethod
    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        """Return the gradient in U, of the shape of U."""

    @abstractmethod
    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> Curvature:
        """Return the Hessian in U."""

    def of_rows(self, rows: Array) -> Loss:
        """Return the loss of some of the examples; itself unless it knows about single examples."""
        return self

    def partial(self) -> Any:
        """Return the loss of examples whose label is known up to a set, with a method ``majorant``.

        See `PartialSoftmax`.
        """
        raise ValueError(
            f"{self!r} has no form for labels that are known up to a set; use Softmax or ChainLikelihood."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _identity(self) -> tuple:
        """What makes two losses equal."""
        return (type(self),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loss) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


def weighted(values: Array, weights: Array | None) -> Array:
    """Multiply by the weights of the examples."""
    return values if weights is None else values * column(weights, values)


def of_single_examples(loss: Loss, U: Array, Y: Array) -> Any:
    """Return the loss of each example, shape (n,), of latent values and targets of shape (n, C, 1).

    Examples go to the trailing axis, over which no loss is summed. The loss must be separable.
    """
    swapped = (namespace(U).permute_dims(values, (2, 1, 0)) for values in (U, Y))
    return as_vector(loss.value(*swapped))
