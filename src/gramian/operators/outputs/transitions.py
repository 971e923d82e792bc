"""The prior of transition scores: ``τ² S T S`` for the scores T of pairs of labels, ``τ² b S`` for those of ends.

Scores of transitions, and of first and last labels, depend on no input. They are independent with variance τ² a priori;
with a tree of labels, S makes those of labels in one branch alike. Cost: O(C²) without and O(C² depth) with a tree.
"""

from __future__ import annotations

import numpy as np

from gramian._core.arrays import Array, device_of, float_sum, namespace
from gramian.labels import LabelStructure
from gramian.operators.base import Operator


class Transitions(Operator):
    """Prior of C rows of transition scores and further rows of scores of ends.

    Parameters
    ----------
    variance : float
        τ² > 0, whose logarithm is ``theta``.
    structure : LabelStructure
        S, of C labels; its own parameters are not learned.
    n_classes : int
    n_ends : int
        Rows of scores of ends.
    like : array
        Says which array library, device and dtype to use.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Identity
    >>> from gramian.operators import Transitions
    >>> T = np.arange(4.0).reshape(2, 2)
    >>> Transitions(2.0, Identity(), 2, 0, like=T) @ T
    array([[0., 2.],
           [4., 6.]])
    """

    def __init__(
        self, variance: float, structure: LabelStructure, n_classes: int, n_ends: int, like: Array
    ):
        self.variance, self.structure = float(variance), structure
        self.n_classes, self.n_ends = int(n_classes), int(n_ends)
        rows = self.n_classes + self.n_ends
        self.shape, self.dtype = (rows, rows), like.dtype
        self._like = like[:0, ...]

    def __matmul__(self, B: Array) -> Array:
        xp, C = namespace(B), self.n_classes
        mixed = self.structure.mix(B)
        turned = xp.moveaxis(self.structure.mix(xp.moveaxis(mixed[:C, ...], 0, 1)), 0, 1)
        return self.variance * xp.concat([turned, mixed[C:, ...]], axis=0)

    def accurate(self, B: Array) -> Array:
        return self @ B

    def diagonal(self, n_outputs: int = 1) -> Array:
        xp, own = namespace(self._like), self.structure.diagonal(self.n_classes)
        rows = np.concatenate([own, np.ones(self.n_ends)])
        # an operator may be asked for fewer outputs than there are labels, where all of them are alike
        values = self.variance * rows[:, None] * own[None, :n_outputs]
        return xp.asarray(values, dtype=self.dtype, device=device_of(self._like))

    @property
    def is_diagonal(self) -> bool:
        return self.structure.is_diagonal

    @property
    def theta(self) -> np.ndarray:
        return np.log([self.variance])

    def clone_with_theta(self, theta: np.ndarray) -> Transitions:
        variance = float(np.exp(theta[0]))
        return Transitions(variance, self.structure, self.n_classes, self.n_ends, self._like)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        return np.array([float_sum(E * (self @ F))])
