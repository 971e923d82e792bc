"""Kernels on the nodes of a taxonomy: ``𝒦(A) = Φ_L 𝒦̌(Φ_Lᵀ A)`` (Seeger eq. 2, §6.4).

Each node has a function of its own, with a kernel of its own; a class is the sum of the functions on its
path from the root. Coefficients go up the tree (subtree sums), through 𝒦̌, and latent values come down (path
sums).

Cost: one product of 𝒦̌ with as many columns as nodes, and two sweeps. When all nodes share one Gram matrix, use
`LabelMixed` with a `TreeStructure` instead: that multiplies the leaves only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._core.arrays import Array, device_of, namespace
from gramian.labels import Taxonomy
from gramian.labels.taxonomy.sweeps import sweep
from gramian.operators.base import Operator


class Lifted(Operator):
    """An operator on the nodes of a taxonomy, seen from its leaves.

    Parameters
    ----------
    operator : Operator
        𝒦̌, on all nodes but the root, in the order of their numbers.
    taxonomy : Taxonomy
    order : array of int of shape (n_leaves,), default=None
        Node numbers of the outputs; None means ``taxonomy.leaves``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> from gramian.labels import Taxonomy
    >>> from gramian.operators import Dense, Lifted, Separate
    >>> tree = Taxonomy.from_paths(["a/b", "a/c", "d"])  # leaves: d, a/b, a/c
    >>> nodes = Separate([Dense(Linear(), np.array([[1.0]]))], groups=[0, 0, 0, 0])
    >>> Lifted(nodes, tree) @ np.array([[0.0, 1.0, 0.0]])  # b and c share a
    array([[0., 2., 1.]])
    """

    def __init__(self, operator: Operator, taxonomy: Taxonomy, order: Any = None):
        self.operator = operator
        self.taxonomy = taxonomy
        self.order = np.asarray(taxonomy.leaves if order is None else order, dtype=np.int64)
        self.shape = operator.shape
        self.dtype = operator.dtype

    def __matmul__(self, B: Array) -> Array:
        return self._down(self.operator @ self._up(B))

    def accurate(self, B: Array) -> Array:
        return self._down(self.operator.accurate(self._up(B)))

    def in_single(self) -> Lifted | None:
        single = self.operator.in_single()
        return None if single is None else Lifted(single, self.taxonomy, self.order)

    def _up(self, B: Array) -> Array:
        """Coefficients of the nodes, without the root."""
        if B.shape[1] != self.order.size:
            raise ValueError(
                f"The taxonomy has {self.order.size} leaves, but the array has {B.shape[1]} outputs."
            )
        return sweep(B, self.taxonomy, source=self.order, up=True)[:, 1:, ...]

    def _down(self, V: Array) -> Array:
        """Latent values of the leaves from those of the nodes."""
        xp = namespace(V)
        root = xp.zeros((V.shape[0], 1, *V.shape[2:]), dtype=V.dtype, device=device_of(V))
        nodes = xp.concat([root, V], axis=1)
        return sweep(nodes, self.taxonomy, down=True, target=self.order)

    def diagonal(self, n_outputs: int = 1) -> Array:
        return self._down(self.operator.diagonal(self.taxonomy.n_nodes - 1))

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        return self.operator.vjp(self._up(E), self._up(F))

    @property
    def theta(self) -> np.ndarray:
        return self.operator.theta

    def clone_with_theta(self, theta: np.ndarray) -> Lifted:
        return Lifted(self.operator.clone_with_theta(theta), self.taxonomy, self.order)

    @property
    def nbytes(self) -> int:
        return self.operator.nbytes
