"""The label Gram matrix of a taxonomy.

Formula
    Each node p but the root has a function of its own with variance v_p, and the function of a class is the sum over
    the path from the root to its leaf: S = Φ_L diag(v) Φ_Lᵀ, where Φ_L has the rows of Φ (see `sweeps`) that
    belong to leaves. S[c, c'] is the variance that the paths of c and c' share. Nodes of one group have one variance.

Gradient
    With Ě and Ǧ the subtree sums of E and G, ⟨E, G S⟩ = Σ_p v_p ⟨Ě_p, Ǧ_p⟩: its derivative in log v_g is v_g times the
    sum of ⟨Ě_p, Ǧ_p⟩ over the nodes of the group g.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._core.arrays import Array, row_blocks
from gramian._core.validation import check_shape
from gramian.labels.structure import (
    Variances,
    checked_variances,
    column_sums,
    contracted,
    multiplied,
)
from gramian.labels.taxonomy.sweeps import sweep
from gramian.labels.taxonomy.taxonomy import Taxonomy

_BLOCK_BYTES = 2**25


class TreeStructure(Variances):
    """Classes that share the functions of their common ancestors: S = Φ_L diag(v) Φ_Lᵀ.

    Parameters
    ----------
    taxonomy : Taxonomy
    variances : array of shape (n_groups,)
        Positive variances, one for each group.
    groups : int array of shape (n_nodes,), default=None
        The group of each node; -1 for the root, which has no function. By default all nodes are in group 0;
        see `Taxonomy.groups`.
    order : int array of shape (n_leaves,), default=None
        Output c is the leaf with number ``order[c]``. By default ``taxonomy.leaves``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Taxonomy, TreeStructure
    >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None})
    >>> structure = TreeStructure(pets, [1.0, 0.5], groups=pets.groups("level"))
    >>> structure.mix(np.eye(3))  # car, cat, dog
    array([[1. , 0. , 0. ],
           [0. , 1.5, 1. ],
           [0. , 1. , 1.5]])
    """

    def __init__(self, taxonomy: Taxonomy, variances: Any, groups: Any = None, order: Any = None):
        if not isinstance(taxonomy, Taxonomy):
            raise TypeError(
                f"taxonomy must be a Taxonomy, got {type(taxonomy).__name__}; as_taxonomy makes one."
            )
        self.taxonomy = taxonomy
        self.variances = checked_variances("variances", variances)
        if groups is None:
            groups = taxonomy.groups("tied")
        self.groups = _checked_groups(groups, taxonomy.n_nodes, self.variances.size)
        self.order = _checked_order(taxonomy.leaves if order is None else order, taxonomy)
        self.node_variances = np.append(0.0, self.variances[self.groups[1:]])  # the root has none

    def mix(self, B: Array) -> Array:
        tree, leaves, scale = self.taxonomy, self.order, self.node_variances
        return sweep(B, tree, source=leaves, up=True, scale=scale, down=True, target=leaves)

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return self.taxonomy.path_sums(self.node_variances[None, :])[0, self.order]

    def clone_with_theta(self, theta: np.ndarray) -> TreeStructure:
        return TreeStructure(self.taxonomy, np.exp(theta), self.groups, self.order)

    def vjp(self, E: Array, G: Array) -> np.ndarray:
        products = np.zeros(self.taxonomy.n_nodes)
        per_row = 16 * self.taxonomy.n_nodes * (E.shape[2] if E.ndim == 3 else 1)
        for rows in row_blocks(E.shape[0], per_row, _BLOCK_BYTES):
            sums = [self.subtree_sums(values[rows, ...]) for values in (E, G)]
            products += column_sums(sums[0] * sums[1])
        return self._group_sums(self.groups[1:], products[1:])

    def subtree_sums(self, B: Array) -> Array:
        """Return B Φ_L: from one column per output to one per node, the sum over the leaves below it.

        Parameters
        ----------
        B : array of shape (n, n_outputs) or (n, n_outputs, q)

        Returns
        -------
        array of shape (n, n_nodes) or (n, n_nodes, q)
        """
        return sweep(B, self.taxonomy, source=self.order, up=True)


class CoupledTree(TreeStructure):
    """A tree, and a relation between what its leaves have for themselves: S = Φ_L diag(v) Φ_Lᵀ + D^½ (R − I) D^½.

    D has the variances of the leaves, which are in the first term already. With R = I this is the tree alone.

    Parameters
    ----------
    taxonomy, variances, groups, order : see `TreeStructure`
    relation : array of shape (n_outputs, n_outputs)
        R, symmetric and positive semidefinite.
    """

    def __init__(
        self, taxonomy: Taxonomy, variances: Any, groups: Any, order: Any, relation: np.ndarray
    ):
        super().__init__(taxonomy, variances, groups, order)
        self.relation = relation
        root = np.sqrt(self.node_variances[self.order])
        self.more = np.outer(root, root) * (relation - np.eye(len(relation)))

    def mix(self, B: Array) -> Array:
        return super().mix(B) + multiplied(B, self.more)

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return super().diagonal(n_outputs) + np.diagonal(self.more)

    def clone_with_theta(self, theta: np.ndarray) -> CoupledTree:
        return CoupledTree(self.taxonomy, np.exp(theta), self.groups, self.order, self.relation)

    def vjp(self, E: Array, G: Array) -> np.ndarray:
        # ⟨E, G D^½ (R − I) D^½⟩ has the derivative ½ (row sum + column sum) in the logarithm of each entry of D
        parts = contracted(E, G) * self.more
        in_leaves = (parts.sum(axis=0) + parts.sum(axis=1)) / 2
        of_leaves = np.bincount(self.groups[self.order], in_leaves, self.variances.size)
        return super().vjp(E, G) + of_leaves


def _checked_groups(groups: Any, n_nodes: int, n_groups: int) -> np.ndarray:
    array = np.array(groups)
    check_shape("groups", array, (n_nodes,), "one for each node")
    if array.dtype.kind not in "iu":
        raise ValueError(f"groups must be integers, got {array.dtype}.")
    if array[0] != -1 or array[1:].min() < 0 or array[1:].max() >= n_groups:
        raise ValueError(
            f"groups must be -1 for the root and 0 to {n_groups - 1} elsewhere, as there are {n_groups} variances; "
            f"got {array[0]} for the root and {array[1:].min()} to {array[1:].max()} elsewhere."
        )
    return array.astype(np.int64)


def _checked_order(order: Any, taxonomy: Taxonomy) -> np.ndarray:
    array = np.array(order, dtype=np.int64)
    if array.ndim != 1 or not np.array_equal(np.sort(array), taxonomy.leaves):
        raise ValueError(
            "order must hold the number of each leaf once (a permutation of taxonomy.leaves), "
            f"got {array.tolist()[:10]}."
        )
    return array
