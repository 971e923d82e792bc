"""Negative log likelihood of label sequences in a linear chain: a conditional random field as one more loss.

    L(U) = Σ_s w_s [log Z_s − score_s(y)],     score(y) = start[y_1] + Σ_t u_t[y_t] + Σ_t T[y_{t-1}, y_t] + end[y_L]

and Z is the sum of exp(score) over all labels of the sequence. log Z is convex in all scores, so everything that holds
for convex losses holds here: Newton, the duality gap, folds as weights, the gradient of the cross-validated loss. The
gradient is "expected minus observed": marginals of labels and of pairs. The Hessian is a covariance; products with it
come from differentiating the recursions, see `recursions`.

Seeger §7.1 announces this loss and leaves the page empty. With sequences of length one and no scores of ends it is the
softmax loss.

A sequence whose labels are known only in part has the loss ``log Z − log Z(possible labels)``, which is not convex. The
first term alone is the curvature of the convex function above it that expectation maximisation minimises.

Cost: O(n C²) for value, gradient and each product with the curvature.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from gramian._core.arrays import Array
from gramian._core.memory import working_memory
from gramian.losses.base import Curvature, CurvatureDifference, Loss
from gramian.losses.chain.marginals import ChainLayout, ChainMarginals
from gramian.losses.chain.sums import sum_curvature, sum_directions

COPIES_OF_SUMS = 4  # of the curvature in sums, which has 25 C² numbers: parts, systems and a factor


class ChainCurvature(Curvature):
    """The Hessian of ``Σ w log Z`` in all scores.

    Parameters
    ----------
    marginals : ChainMarginals

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import ChainLikelihood
    >>> loss = ChainLikelihood([2], n_classes=2)
    >>> curvature = loss.curvature(np.zeros((6, 2)), np.zeros((6, 2)))
    >>> curvature.apply(np.array([[1.0, 0.0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]))[0]
    array([ 0.25, -0.25])
    """

    coupled = True
    diagonal = None

    def __init__(self, marginals: ChainMarginals):
        self.marginals = marginals

    def apply(self, V: Array) -> Array:
        layout = self.marginals.layout
        out = layout.join(*self.marginals.product(*layout.split(np.asarray(V))))
        return out if V.ndim == 3 else out[:, :, 0]

    def jacobi(self) -> Array:
        """Variances of labels and of pairs of labels, as if those at different positions were independent."""
        layout, (expected, pairs) = self.marginals.layout, self._expectations
        spread = self._spread[:, :, None]
        share = np.divide(expected, spread, out=np.zeros_like(expected), where=spread > 0)
        variances = np.maximum(0.0, pairs - self.marginals.squared_pairs())  # rounding
        return layout.join(expected * np.maximum(0.0, 1 - share), variances)

    def sums(self) -> tuple[Any, Array] | None:
        layout, (expected, _) = self.marginals.layout, self._expectations
        if layout.moving or COPIES_OF_SUMS * 8 * (5 * layout.n_classes) ** 2 > working_memory():
            return None
        return sum_directions(layout), sum_curvature(layout, expected[0], self._spread[0])

    @cached_property
    def _expectations(self) -> tuple[np.ndarray, np.ndarray]:
        return self.marginals.expectations()

    @property
    def _spread(self) -> np.ndarray:
        """The weight of each position, (q, n)."""
        return np.repeat(self.marginals.weights, self.marginals.layout.lengths, axis=1)


class ChainLikelihood(Loss):
    """``log Z − score`` of sequences of labels.

    Rows of U and of the targets are those of `ChainLayout`: positions, transitions, ends. Targets are one-hot rows of
    positions; their other rows are ignored. Weights are of rows, too; that of a sequence is the one of its first row.

    Parameters
    ----------
    lengths : int array of shape (n_sequences,)
    n_classes : int
    ends : bool, default=True
        Whether there are scores of first and last labels.
    allowed : bool array of shape (n_classes + 2, n_classes), default=None
        False for transitions, first and last labels that are impossible.
    moving : bool, default=False
        Whether each position has scores of its own for the transition that leads to it.

    Examples
    --------
    Two positions with two labels each have four paths.

    >>> import numpy as np
    >>> from gramian.losses import ChainLikelihood
    >>> loss = ChainLikelihood([2], n_classes=2)
    >>> labels = np.array([[1.0, 0.0], [0.0, 1.0], [0, 0], [0, 0], [0, 0], [0, 0]])
    >>> round(float(loss.value(np.zeros((6, 2)), labels)), 4)
    1.3863
    """

    separable = False

    def __init__(
        self,
        lengths: Any,
        n_classes: int,
        *,
        ends: bool = True,
        allowed: Any = None,
        moving: bool = False,
    ):
        self.layout = ChainLayout(
            np.asarray(lengths), int(n_classes), bool(ends), allowed, bool(moving)
        )

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        marginals, w = self._at(U, weights)
        per = w * (marginals.log_z - self._scores(np.asarray(U), Y, w))
        return _like(per.sum(axis=1), U)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        marginals, w = self._at(U, weights)
        expected, pairs = marginals.expectations()
        codes = self._codes(Y)
        rows = np.arange(codes.size)
        spread = np.repeat(w, self.layout.lengths, axis=1)
        expected[:, rows, codes] -= spread
        return self._joined(expected, pairs - self._pair_counts(codes, spread), U)

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> Curvature:
        return ChainCurvature(self._at(U, weights)[0])

    def of_rows(self, rows: Array) -> ChainLikelihood:
        """Return the loss of some sequences."""
        return self._alike(type(self), self.layout.lengths[rows])

    def partial(self) -> PartialChainLikelihood:
        return self._alike(PartialChainLikelihood, self.layout.lengths)

    def _alike(self, kind: Any, lengths: np.ndarray) -> Any:
        """A loss of some kind for sequences of other lengths."""
        layout = self.layout
        options = {"ends": layout.ends, "allowed": layout.allowed, "moving": layout.moving}
        return kind(lengths, layout.n_classes, **options)

    def log_probability(self, U: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Log probability of the labels of each sequence, shape (n_sequences,).

        Parameters
        ----------
        U : ndarray of shape (rows, C)
        codes : int ndarray of shape (n,)
            Numbers of the labels. What is not allowed has a probability of zero.
        """
        marginals, w = self._at(U, None)
        return (
            self._scores(U, np.eye(self.layout.n_classes)[codes], w, strict=True)[0]
            - marginals.log_z[0]
        )

    def _at(
        self, U: Array, weights: Array | None, possible: Any = None
    ) -> tuple[ChainMarginals, np.ndarray]:
        U = np.asarray(U)
        w = self.layout.weights(weights, U.shape[2] if U.ndim == 3 else 1)
        return ChainMarginals(self.layout, U, w, possible), w

    def _codes(self, Y: Array) -> np.ndarray:
        labels = np.asarray(Y)[: self.layout.n_positions]
        return np.argmax(
            labels.reshape(labels.shape[0], self.layout.n_classes, -1)[:, :, 0], axis=1
        )

    def _scores(
        self, U: np.ndarray, Y: Array, w: np.ndarray, *, strict: bool = False
    ) -> np.ndarray:
        """Score of the labels of each sequence, (q, n_sequences); −∞ for what is not allowed, if ``strict``."""
        layout, codes = self.layout, self._codes(Y)
        u, T = layout.split(U)
        if strict:
            u, T = layout.forbid(u, T)
        each = u[:, np.arange(codes.size), codes]
        inner = np.ones(codes.size, dtype=bool)
        inner[layout.first] = False
        each[:, inner] += T[:, layout.tables[1:], codes[:-1], codes[1:]][:, inner[1:]]
        out = np.zeros(w.shape)
        out[:, layout.filled] = np.add.reduceat(each, layout.first, axis=1) if codes.size else 0.0
        return out

    def _pair_counts(self, codes: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Weighted numbers of transitions between labels, for each table, (q, m, C, C)."""
        layout, C, q = self.layout, self.layout.n_classes, spread.shape[0]
        inner = np.ones(codes.size, dtype=bool)
        inner[layout.first] = False
        number = ((layout.tables[1:] * C + codes[:-1]) * C + codes[1:])[inner[1:]]
        n_tables = layout.n_positions if layout.moving else 1
        size = n_tables * C * C
        counts = [np.bincount(number, row[1:][inner[1:]], minlength=size) for row in spread]
        return np.stack(counts).reshape(q, n_tables, C, C)

    def _joined(self, u: np.ndarray, T: np.ndarray, U: Array) -> np.ndarray:
        out = self.layout.join(u, T)
        return out if U.ndim == 3 else out[:, :, 0]

    def __repr__(self) -> str:
        layout = self.layout
        return f"{type(self).__name__}(<{layout.lengths.size} sequences>, n_classes={layout.n_classes})"

    def _identity(self) -> tuple:
        layout = self.layout
        allowed = None if layout.allowed is None else layout.allowed.tobytes()
        kind = type(self), layout.n_classes, layout.ends, layout.moving
        return *kind, layout.lengths.tobytes(), allowed


class PartialChainLikelihood(ChainLikelihood):
    """``log Z − log Z(possible)``: targets hold ones for the labels that a position may have.

    Parameters
    ----------
    lengths, n_classes, ends, allowed, moving : see `ChainLikelihood`

    Examples
    --------
    The first of two labels is known, the second is not: the probability of what is known is a half.

    >>> import numpy as np
    >>> from gramian.losses import PartialChainLikelihood
    >>> loss = PartialChainLikelihood([2], n_classes=2)
    >>> possible = np.array([[1.0, 0.0], [1.0, 1.0], [0, 0], [0, 0], [0, 0], [0, 0]])
    >>> round(float(loss.value(np.zeros((6, 2)), possible)), 4)
    0.6931
    """

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        marginals, within, w = self._both(U, Y, weights)
        return _like((w * (marginals.log_z - within.log_z)).sum(axis=1), U)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        marginals, within, _ = self._both(U, Y, weights)
        parts = zip(marginals.expectations(), within.expectations(), strict=True)
        expected, pairs = (every - possible for every, possible in parts)
        return self._joined(expected, pairs, U)

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> Curvature:
        marginals, within, _ = self._both(U, Y, weights)
        return CurvatureDifference(ChainCurvature(marginals), ChainCurvature(within))

    def majorant(self, U: Array, weights: Array | None = None) -> Curvature:
        """Curvature of the convex function above the loss that touches it at U."""
        return ChainCurvature(self._at(U, weights)[0])

    def _both(
        self, U: Array, Y: Array, weights: Array | None
    ) -> tuple[ChainMarginals, ChainMarginals, np.ndarray]:
        """Marginals of all labels and of the possible ones, and the weights."""
        possible = np.asarray(Y)[: self.layout.n_positions]
        possible = possible.reshape(possible.shape[0], self.layout.n_classes, -1)[:, :, 0] > 0
        marginals, w = self._at(U, weights)
        return marginals, self._at(U, weights, possible)[0], w


def _like(values: np.ndarray, U: Array) -> Any:
    """Values of the q problems: shape (q,), or () where U has no third axis."""
    return values if U.ndim == 3 else values[0]
