"""Squared loss of all differences within a group: magnitude-preserving ranking, RankRLS.

    L = ¼ Σ_g Σ_{i,j∈g} w_i w_j ((y_i − u_i) − (y_j − u_j))² = ½ Σ_g [ W_g Σ_{i∈g} w_i e_i² − (Σ_{i∈g} w_i e_i)² ]

with ``e = u − y`` and ``W_g`` the sum of the weights in group g (Airola & Pahikkala, Table 1, with one group and no
weights). Only differences count: a constant added to all latent values of a group changes nothing. With ``ē_g`` the
weighted mean of a group,

    L = ½ Σ_g W_g Σ w_i (e_i − ē_g)²,    ∇L_i = w_i W_g (e_i − ē_g),    (W v)_i = w_i W_g (v_i − v̄_g).

Optimality of the objective: ρ = ∇L + λA = 0, as for every loss. Cost: O(n) for each of value, gradient and product
with the curvature, against O(n²) pairs.

Deviates from the paper: groups, weights (a pair counts w_i w_j, so that weight two is the row twice), and the centred
form, which does not subtract large sums from each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array, asarray_like, column, in_float64, namespace, to_numpy, total
from gramian._core.validation import check_shape
from gramian.losses.base import Curvature, Loss


class RankingCurvature(Curvature):
    """W = w (W_g I − 1 wᵀ) within each group: examples are coupled, outputs are not.

    Parameters
    ----------
    loss : SquaredRanking
    like : array of shape (n, C) or (n, C, q)
        Of the shape, library and dtype that ``diagonal`` shall have.
    weights : array of shape (n,) or (n, q), or None

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import RankingCurvature, SquaredRanking
    >>> RankingCurvature(SquaredRanking(), np.zeros((2, 1)), None).apply(np.array([[1.0], [0.0]]))
    array([[ 1.],
           [-1.]])
    """

    coupled = False

    def __init__(self, loss: SquaredRanking, like: Array, weights: Array | None):
        self.loss = loss
        self.weights = weights
        w = _columns(weights, like)
        values = w * (loss._spread_sums(w) - w)
        self.diagonal = asarray_like(values + namespace(like).zeros_like(like), like)

    def apply(self, V: Array) -> Array:
        return self.loss._pull(V, self.weights)


class SquaredRanking(Loss):
    """``¼ Σ_ij ((y_i − u_i) − (y_j − u_j))²`` over all i, j of a group, summed over groups and outputs.

    Parameters
    ----------
    groups : array of shape (n,) of integers, default=None
        Group of each example; only examples of one group are compared. None: all examples are one group.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import SquaredRanking
    >>> U, Y = np.array([[3.0], [1.0], [5.0]]), np.array([[1.0], [0.0], [1.0]])
    >>> float(SquaredRanking().value(U, Y))  # differences of 1, 2 and 3, each ½ of its square
    7.0
    >>> float(SquaredRanking(groups=[0, 0, 1]).value(U, Y))
    0.5
    """

    quadratic = True
    separable = False  # not a sum over examples: weights and curvature couple them

    def __init__(self, groups: Any = None):
        self.groups = None
        self._membership = None
        if groups is None:
            return
        codes = np.asarray(to_numpy(groups))
        check_shape("groups", codes, ("n",), "one for each example")
        if codes.dtype.kind not in "iu":
            raise TypeError(
                f"groups must be integers, got {codes.dtype}; "
                "np.unique(groups, return_inverse=True)[1] makes codes of labels."
            )
        self.groups = codes.astype(np.int64)
        distinct, group = np.unique(self.groups, return_inverse=True)
        n = len(codes)
        entries = (np.ones(n), (group.reshape(-1), np.arange(n)))
        self._membership = sp.csr_array(entries, shape=(len(distinct), n))

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        e = in_float64(U, U) - in_float64(Y, U)
        w = _columns(weights, e)
        return 0.5 * total(w * self._spread_sums(w) * self._centred(e, w) ** 2, None)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return self._pull(U - Y, weights)

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> RankingCurvature:
        return RankingCurvature(self, U, weights)

    def of_rows(self, rows: Array) -> SquaredRanking:
        return SquaredRanking(None if self.groups is None else self.groups[rows])

    def _pull(self, V: Array, weights: Array | None) -> Array:
        """w_i W_g (v_i − v̄_g), in the dtype of V."""
        w = _columns(weights, V)
        return asarray_like(w * self._spread_sums(w) * self._centred(in_float64(V, V), w), V)

    def _centred(self, values: Array, w: Array) -> Array:
        """Values minus the weighted mean of their group; minus nothing in a group without weight."""
        xp = namespace(values)
        sums = self._spread_sums(w)
        return values - self._spread_sums(w * values) / xp.where(sums > 0, sums, xp.ones_like(sums))

    def _spread_sums(self, values: Array) -> Array:
        """Sum over the group of each example, of a shape that broadcasts against that of the values."""
        if self._membership is None:
            return namespace(values).sum(values, axis=0, keepdims=True)
        n = self._membership.shape[1]
        if values.shape[0] != n:
            raise ValueError(
                f"groups has {n} entries; give one for each of {values.shape[0]} examples."
            )
        flat = to_numpy(values).reshape(n, -1)
        sums = self._membership.T @ (self._membership @ flat)
        return asarray_like(sums.reshape(values.shape), values)

    def __repr__(self) -> str:
        if self._membership is None:
            return "SquaredRanking()"
        count, n = self._membership.shape
        return f"SquaredRanking(groups=<{count} groups of {n} examples>)"

    def _identity(self) -> tuple:
        return type(self), None if self.groups is None else self.groups.tobytes()


def _columns(weights: Array | None, like: Array) -> Array:
    """Weights in float64, (n, 1) or (n, 1, 1) or (n, 1, q), ones by default."""
    ones = np.ones(like.shape[0])
    return column(in_float64(ones if weights is None else weights, like), like)
