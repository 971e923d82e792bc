"""A loss of linear functions, in their weights: the primal form of a linear kernel.

    L(W, b, T) = loss(X W + 1 b; T),     ∇ = (Xᵀ G, 1ᵀ G; G_T),  G = ∇ loss

Rows of weights are those of d features, then one of the intercept if there is one, then rows of scores that depend
on no features (transitions of chains), which pass as they are. With the `operators.Weights` of their prior in the place
of the Gram operator, solvers, certificate and line search are the same as in dual coefficients. In weights, a diagonal
preconditioner is possible: rare and frequent features have curvatures of different orders of magnitude, and the
curvature of a weight is about ``Σ_i x_i² D_i``, with D the diagonal of the curvature of the loss.

Cost: two products with X for a gradient or a product with the curvature, besides those of the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from gramian._core.arrays import Array
from gramian.losses.base import Curvature, Loss


class Features(Protocol):
    """A table X as something to multiply with: `operators.LinearFeatures`, or the factor of `operators.LowRank`."""

    shape: tuple[int, int]  # its first number is that of the rows of X

    @property
    def n_weights(self) -> int:
        """Columns of X."""
        ...

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray | None:
        """``Xᵀ diag(weights) X``, or None where that is not cheap."""
        ...

    def times(self, W: np.ndarray) -> np.ndarray:
        """X W."""
        ...

    def transposed_times(self, G: np.ndarray) -> np.ndarray:
        """Xᵀ G."""
        ...

    def transposed_squares_times(self, D: np.ndarray) -> np.ndarray:
        """(X∘X)ᵀ D."""
        ...


class FeatureMap(NamedTuple):
    """How rows of weights become rows of scores."""

    features: Features
    intercept: bool

    @property
    def n_weights(self) -> int:
        """Rows of weights that are those of features and of the intercept."""
        return self.features.n_weights + self.intercept

    def scores(self, W: np.ndarray) -> np.ndarray:
        """Rows of scores (n + k, C, q) from rows of weights (d + k, C, q), or (d + 1 + k, C, q) with an intercept."""
        d = self.features.n_weights
        on_rows = self.features.times(W[:d])
        if self.intercept:
            on_rows += W[d]
        return np.concatenate([on_rows, W[d + self.intercept :]])

    def weights(self, G: np.ndarray) -> np.ndarray:
        """The transpose of `scores`."""
        n = self.features.shape[0]
        sums = [G[:n].sum(axis=0, keepdims=True)] if self.intercept else []
        return np.concatenate([self.features.transposed_times(G[:n]), *sums, G[n:]])

    def squares(self, D: np.ndarray) -> np.ndarray:
        """`weights` with squared features: the diagonal of a curvature whose diagonal is D."""
        n = self.features.shape[0]
        sums = [D[:n].sum(axis=0, keepdims=True)] if self.intercept else []
        return np.concatenate([self.features.transposed_squares_times(D[:n]), *sums, D[n:]])

    def gram(self, weights: np.ndarray) -> np.ndarray | None:
        """``Φᵀ diag(weights) Φ`` for the rows of weights that are those of features and of the intercept."""
        H = self.features.weighted_gram(weights)
        if H is None or not self.intercept:
            return H
        sums = self.features.transposed_times(weights[:, None])
        return np.block([[H, sums], [sums.T, weights.sum()]]).astype(H.dtype, copy=False)


class FeatureCurvature(Curvature):
    """``Φᵀ W Φ`` for the curvature W of a loss and the map Φ from weights to scores."""

    coupled = True
    diagonal = None

    def __init__(self, curvature: Curvature, map_: FeatureMap):
        self.curvature, self.map = curvature, map_

    def apply(self, V: Array) -> Array:
        return self.map.weights(self.curvature.apply(self.map.scores(np.asarray(V))))

    def jacobi(self) -> Array | None:
        return None if self._own is None else self.map.squares(self._own)

    def sums(self) -> tuple[Any, Array] | None:
        return self.curvature.sums() if self.map.intercept else None

    def grams(self) -> Iterator[Array | None]:
        """The curvature of the weights of each output, without what couples outputs and rows of scores.

        Examples whose label is about certain are many and have next to no curvature. They are taken in proportion to
        it, with the weight of those that are left out, so that all matrices together take as many examples as there
        are: what one matrix of all examples costs.
        """
        own = self._on_rows()
        level = own.sum() / max(1, len(own))
        return (self.map.gram(thinned(weights, level)) for weights in own.T)

    def average_gram(self) -> Array | None:
        """One matrix in the place of `grams`, with the average curvature of the outputs."""
        own = self._on_rows()
        return self.map.gram(own.sum(axis=1) / max(1, own.shape[1] - 1))

    @cached_property
    def _own(self) -> Array | None:
        """The diagonal of the curvature of the loss."""
        return self.curvature.jacobi()

    def _on_rows(self) -> np.ndarray:
        """The same in rows of features, (n, C)."""
        assert self._own is not None
        return self._own[: self.map.features.shape[0], :, 0]


def thinned(weights: np.ndarray, level: float) -> np.ndarray:
    """Weights of which those below a level are zero or, in proportion to what they were, raised to it.

    The sum is about the same: each time that small weights have added up to the level, the last of them stands for all.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses.features import thinned
    >>> thinned(np.array([0.5, 0.5, 3.0, 0.25, 0.25, 0.5]), level=1.0)
    array([0., 1., 3., 0., 0., 1.])
    """
    if not level > 0:
        return weights
    passed = np.floor(np.cumsum(np.minimum(1.0, weights / level)))
    return np.where(np.diff(passed, prepend=0.0) > 0, np.maximum(weights, level), 0.0)


class FeatureLoss(Loss):
    """A loss as a function of weights; it knows its targets and weights of examples.

    Parameters
    ----------
    loss : Loss
        Of rows of scores.
    features : Features
        X, with rows for the first rows of scores.
    targets : ndarray of shape (n + k, C, 1)
    weights : ndarray of shape (n + k,) or None
        Of the rows of scores.
    intercept : bool
        Whether there is a row of weights for it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> from gramian.losses import FeatureLoss, Logistic
    >>> from gramian.operators import LinearFeatures
    >>> X, signs = np.array([[1.0], [2.0]]), np.array([[[1.0]], [[0.0]]])
    >>> loss = FeatureLoss(Logistic(), LinearFeatures(Linear(), X), signs, None, intercept=False)
    >>> loss.gradient(np.zeros((1, 1, 1)), None).ravel()
    array([0.5])
    """

    separable = False

    def __init__(
        self, loss: Any, features: Features, targets: Any, weights: Any, *, intercept: bool
    ):
        self.loss, self.map = loss, FeatureMap(features, intercept)
        self.targets, self.weights = targets, weights

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return self.loss.value(self.map.scores(U), self.targets, self.weights)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        scores = self.map.scores(U)
        return self.map.weights(self.loss.gradient(scores, self.targets, self.weights))

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> Curvature:
        own = self.loss.curvature(self.map.scores(U), self.targets, self.weights)
        return FeatureCurvature(own, self.map)

    def partial(self) -> FeatureLoss:
        features, intercept = self.map
        parts = self.loss.partial(), features, self.targets, self.weights
        return FeatureLoss(*parts, intercept=intercept)

    def majorant(self, U: Array, weights: Array | None = None) -> Curvature:
        """Curvature of the convex function above the loss, if it has one."""
        return FeatureCurvature(self.loss.majorant(self.map.scores(U), self.weights), self.map)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.loss!r})"

    def _identity(self) -> tuple:
        return type(self), self.loss, id(self.map.features)
