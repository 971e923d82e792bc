"""The prior of transition scores that depend on the position: ``G_t[a, b] = g_ab(x_t)``, a function for each pair.

    𝒦 = υ M ⊗ I        on n·C rows with C columns, of which row t·C + a holds the scores of position t after label a

All pairs of labels have the kernel of the positions, so that a product is one of the Gram matrix M with C² columns.
Cost: that of M with C² columns, and n C² numbers.
"""

from __future__ import annotations

import numpy as np

from gramian._core.arrays import Array, namespace
from gramian.operators.base import CompositeOperator, Operator


class TransitionFunctions(CompositeOperator):
    """Prior of transition scores for each position.

    Parameters
    ----------
    matrix : Operator
        Gram operator M of the positions.
    variance : float
        υ > 0, relative to M; its logarithm is the last of ``theta``.
    n_classes : int

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> from gramian.operators import Dense, TransitionFunctions
    >>> M = Dense(Linear(), np.array([[1.0], [2.0]]))
    >>> G = np.array(
    ...     [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    ... )  # positions 0 and 1, two rows each
    >>> TransitionFunctions(M, 10.0, 2) @ G
    array([[10.,  0.],
           [ 0., 20.],
           [20.,  0.],
           [ 0., 40.]])
    """

    def __init__(self, matrix: Operator, variance: float, n_classes: int):
        self.matrix, self.variance, self.n_classes = matrix, float(variance), int(n_classes)
        rows = matrix.shape[0] * self.n_classes
        self.shape, self.dtype = (rows, rows), matrix.dtype
        self._parts = [matrix]

    def __matmul__(self, B: Array) -> Array:
        return self._by_rows(self.matrix @ self.by_position(B), B)

    def accurate(self, B: Array) -> Array:
        return self._by_rows(self.matrix.accurate(self.by_position(B)), B)

    def diagonal(self, n_outputs: int = 1) -> Array:
        values = self.variance * self.matrix.diagonal(n_outputs)
        xp = namespace(values)
        return xp.repeat(values, self.n_classes, axis=0)

    @property
    def theta(self) -> np.ndarray:
        return np.append(self.matrix.theta, np.log(self.variance))

    def clone_with_theta(self, theta: np.ndarray) -> TransitionFunctions:
        matrix = self.matrix.clone_with_theta(theta[:-1])
        return TransitionFunctions(matrix, float(np.exp(theta[-1])), self.n_classes)

    def _with_parts(self, parts: list) -> TransitionFunctions:
        return TransitionFunctions(parts[0], self.variance, self.n_classes)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        of_matrix = self.matrix.vjp(self.by_position(E), self.by_position(F))
        total = np.sum(np.asarray(E) * np.asarray(self @ F), dtype=np.float64)
        return np.append(self.variance * of_matrix, total)

    def compress(self, A: Array) -> tuple[Array | None, Array]:
        return self.matrix.compress(self.by_position(A))

    def by_position(self, B: Array) -> Array:
        """Return scores with a row for each position and a column for each pair of labels."""
        return namespace(B).reshape(B, (self.matrix.shape[0], -1, *B.shape[2:]))

    def _by_rows(self, values: Array, like: Array) -> Array:
        return self.variance * namespace(values).reshape(values, like.shape)
