"""Five ways to ask for large margins in a taxonomy: contrasts between outputs, and a penalty on their normals.

Zhou, Xiao & Wu (2011). Each is an objective Ω(W) + Σ_k c_k ℓ_{y_k}(W x_k) of `gramian.solvers.contrast.problem`:

    ============  =======================  ==================================================  ===================
    class         contrasts                penalty Ω                                           in the paper
    ============  =======================  ==================================================  ===================
    Orthogonal    siblings along the path  ½ Σ K_ij |w_iᵀ w_j|                                 eqs. 4 to 7
    Similarity    siblings along the path  ½ Σ_i |w_i|² + ½ Σ over edges i → j of |w_i − w_j|² TRANSFER, section 5
    Independent   siblings, node by node   ½ Σ_i |w_i|²                                        HIERMULT, section 5
    PathSum       leaves, ρ by distance    ½ Σ_i |u_i|², w_y = sum of u along the path to y    TREELOSS, section 5
    Flat          leaves                   ½ Σ over leaves |w_i|²                              FLATMULT, eq. 12
    ============  =======================  ==================================================  ===================

The first three decide recursively, from the root to a leaf (eq. 1), and have an output for each node but the root;
edges from the root do not count, as it has no normal. The last two choose the leaf with the largest score (eq. 2). An
inner node as a label has the sum along its path in PathSum, and in Flat the mean of the normals of its leaves: examples
of it ask that its leaves, on average, beat all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.labels.margins.contrasts import (
    Contrasts,
    family_contrasts,
    leaf_contrasts,
    path_from,
    sibling_contrasts,
)
from gramian.labels.margins.forms import inverse_factor
from gramian.labels.margins.orthogonality import OrthogonalPenalty, QuadraticPenalty
from gramian.labels.taxonomy.taxonomy import Taxonomy


class TreeMargins:
    """Outputs, contrasts and penalty of one objective.

    Parameters
    ----------
    taxonomy : Taxonomy
    labels : int array of shape (n_labels,)
        Numbers of the nodes that occur as labels, not the root.

    Attributes
    ----------
    outputs : int array of shape (m,)
        The node of each output.
    contrasts : Contrasts
    penalty : QuadraticPenalty or OrthogonalPenalty
    recursive : bool
        Whether decisions go from the root to a leaf.
    """

    recursive = True

    def __init__(self, taxonomy: Taxonomy, labels: Any):
        self.taxonomy = taxonomy
        self.labels = np.asarray(labels, dtype=np.int64)
        self.outputs = np.arange(1, taxonomy.n_nodes)
        self.contrasts = self._contrasts()
        self.penalty = self._penalty()

    def _contrasts(self) -> Contrasts:
        return sibling_contrasts(self.taxonomy, self.labels)

    def _penalty(self) -> Any:
        return QuadraticPenalty(factor=sp.eye_array(self.outputs.size, format="csr"))

    def units(self, codes: np.ndarray, caps: np.ndarray) -> dict[str, np.ndarray]:
        """Return labels, caps and examples of the losses.

        Parameters
        ----------
        codes : int array of shape (n,)
            Place of each example's label in ``labels``.
        caps : array of shape (n,)
        """
        return {"labels": codes, "caps": caps, "examples": np.arange(codes.size)}


class Orthogonal(TreeMargins):
    """Each node's normal is pushed to be orthogonal to those of its ancestors.

    Parameters
    ----------
    taxonomy : Taxonomy
    labels : int array of shape (n_labels,)
    weights : array or sparse array of shape (n_nodes - 1, n_nodes - 1)
        K, with a positive definite comparison matrix.

    Examples
    --------
    >>> from gramian.labels import Taxonomy, orthogonality_weights
    >>> from gramian.labels.margins.tree_margins import Orthogonal
    >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None})
    >>> margins = Orthogonal(pets, pets.leaves, orthogonality_weights(pets, 0.5))
    >>> margins.penalty.pairs
    array([[0, 2],
           [0, 3]])
    """

    def __init__(self, taxonomy: Taxonomy, labels: Any, weights: Any):
        self.weights = weights
        super().__init__(taxonomy, labels)

    def _penalty(self) -> OrthogonalPenalty:
        return OrthogonalPenalty(self.weights)


class Similarity(TreeMargins):
    """Each node's normal is drawn to that of its parent."""

    def _penalty(self) -> QuadraticPenalty:
        child = np.flatnonzero(self.taxonomy.parent > 0)  # the root has no normal
        row, m = np.tile(np.arange(child.size), 2), self.outputs.size
        ends = np.concatenate([child, self.taxonomy.parent[child]]) - 1
        signs = np.repeat([1.0, -1.0], child.size)
        edges = sp.csr_array((signs, (row, ends)), shape=(child.size, m))
        return QuadraticPenalty(factor=inverse_factor(sp.eye_array(m) + edges.T @ edges))


class Independent(TreeMargins):
    """One problem at each inner node; they share nothing but the solver."""

    def _contrasts(self) -> Contrasts:
        return family_contrasts(self.taxonomy)

    def units(self, codes: np.ndarray, caps: np.ndarray) -> dict[str, np.ndarray]:
        paths = [path_from(self.taxonomy, label) - 1 for label in self.labels]
        labels = np.concatenate([paths[code] for code in codes])
        examples = np.repeat(np.arange(codes.size), [paths[code].size for code in codes])
        return {"labels": labels, "caps": caps[examples], "examples": examples}


class Flat(TreeMargins):
    """Leaves against each other, without the tree (Crammer & Singer)."""

    recursive = False
    by_distance = False

    def _contrasts(self) -> Contrasts:
        tree = self.taxonomy
        inner = self.labels[~tree.is_leaf[self.labels]]
        self.outputs = np.concatenate([tree.leaves, np.unique(inner)])
        return leaf_contrasts(tree, self.labels, self.outputs, by_distance=self.by_distance)

    def _penalty(self) -> QuadraticPenalty:
        tree = self.taxonomy
        below = [
            np.flatnonzero(tree.descends(v)[0]) for v in self.outputs[tree.n_leaves :].tolist()
        ]
        leaves = _rows([*np.arange(tree.n_leaves)[:, None], *below], tree.n_leaves)
        return QuadraticPenalty(factor=sp.csr_array(leaves / leaves.sum(axis=1)[:, None]))


class PathSum(Flat):
    """Leaves against each other; the normal of each is a sum along its path, and mistakes cost their distance."""

    by_distance = True

    def _penalty(self) -> QuadraticPenalty:
        paths = [path_from(self.taxonomy, node)[::-1] - 1 for node in self.outputs.tolist()]
        return QuadraticPenalty(factor=_rows(paths, self.taxonomy.n_nodes - 1))


def _rows(columns: list[np.ndarray], n_columns: int) -> sp.csr_array:
    """A CSR array with ones in the given columns of each row."""
    start = np.concatenate([[0], np.cumsum([some.size for some in columns])])
    indices = np.concatenate(columns)
    return sp.csr_array((np.ones(indices.size), indices, start), shape=(len(columns), n_columns))


METHODS: dict[str, type[TreeMargins]] = {
    "orthogonal": Orthogonal,
    "similarity": Similarity,
    "independent": Independent,
    "tree_loss": PathSum,
    "flat": Flat,
}
