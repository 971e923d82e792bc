"""Contrasts: which outputs of a model must beat which others, given the true label.

Formula
    The contrast (i, j, ρ) of an example asks that its score for output i exceed that for output j by one. What it lacks
    costs ``ρ (1 − u_i + u_j)``, and the loss of an example with label y is the largest cost, or nothing:

        ℓ_y(u) = max(0, max over contrasts (i, j, ρ) of y of ρ (1 − u_i + u_j)).

    - *Siblings*, for recursive decisions from the root down: each node on the path to y against its siblings. Zhou,
      Xiao & Wu (2011), eq. 4; all levels of a path share one slack. Outputs are the nodes without the root.
    - *Families*, for one problem at each inner node: as before, but a level is a label of its own.
    - *Leaves*, for flat decisions: y against each leaf that is not below it. Outputs are the leaves and after them the
      inner nodes that occur as labels. ρ is 1 (eq. 12) or half the path between the two (TREELOSS, slack rescaling).
      Their rivals are all nodes, leaves or not; ours are those that can be the answer.

Labels may be inner nodes: nothing is then asked of the levels below.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gramian.labels.taxonomy.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Contrasts of each label; those of label c are ``start[c]`` to ``start[c + 1] - 1``.

    Attributes
    ----------
    start : int array of shape (n_labels + 1,)
    own, rival : int arrays of shape (n_contrasts,)
        Outputs i and j.
    scale : float array of shape (n_contrasts,)
        ρ > 0.
    n_outputs : int

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Taxonomy, sibling_contrasts
    >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None})
    >>> contrasts = sibling_contrasts(pets, pets.index(["cat", "car"]))
    >>> for c in range(2):
    ...     some = slice(*contrasts.start[c : c + 2])
    ...     print(
    ...         pets.names[1 + contrasts.own[some]], "beat", pets.names[1 + contrasts.rival[some]]
    ...     )
    ['cat' 'animal'] beat ['dog' 'car']
    ['car'] beat ['animal']
    """

    start: np.ndarray
    own: np.ndarray
    rival: np.ndarray
    scale: np.ndarray
    n_outputs: int

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.start.size - 1

    def most(self) -> np.ndarray:
        """Return the loss of each label at scores of zero, shape (n_labels,): its largest ρ, or 0."""
        return np.array([self.scale[a:b].max(initial=0.0) for a, b in pairwise(self.start)])


def sibling_contrasts(taxonomy: Taxonomy, labels: np.ndarray) -> Contrasts:
    """Return the contrasts of recursive decisions.

    Parameters
    ----------
    taxonomy : Taxonomy
    labels : int array of shape (n_labels,)
        Numbers of nodes.

    Returns
    -------
    Contrasts
        Output p is node p + 1.
    """
    found = []
    for label in labels:
        pairs = [_against_siblings(taxonomy, node) for node in path_from(taxonomy, label)]
        found.append(tuple(np.concatenate(part) for part in zip(*pairs, strict=True)))
    return _stacked(found, taxonomy.n_nodes - 1)


def family_contrasts(taxonomy: Taxonomy) -> Contrasts:
    """Return contrasts for each node against its siblings: label and output p are node p + 1."""
    found = [_against_siblings(taxonomy, node) for node in range(1, taxonomy.n_nodes)]
    return _stacked(found, taxonomy.n_nodes - 1)


def leaf_contrasts(
    taxonomy: Taxonomy, labels: np.ndarray, outputs: np.ndarray, *, by_distance: bool
) -> Contrasts:
    """Return the contrasts of flat decisions.

    Parameters
    ----------
    taxonomy : Taxonomy
    labels : int array of shape (n_labels,)
        Numbers of nodes.
    outputs : int array of shape (n_outputs,)
        Node of each output; contains the labels and all leaves.
    by_distance : bool
        Whether ρ is half the path between the two nodes instead of 1.
    """
    place = np.empty(taxonomy.n_nodes, dtype=np.int64)
    place[outputs] = np.arange(outputs.size)
    found = []
    for label in labels:
        rivals = taxonomy.leaves[~taxonomy.descends(label)[0]]
        scale = 0.5 * taxonomy.distance(label, rivals) if by_distance else np.ones(rivals.size)
        found.append((np.full(rivals.size, place[label]), place[rivals], scale))
    return _stacked(found, outputs.size)


def path_from(taxonomy: Taxonomy, label: int) -> np.ndarray:
    """Return the nodes from a label up to the first level."""
    return np.append(label, taxonomy.ancestors(label)[:-1])


def _against_siblings(taxonomy: Taxonomy, node: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    siblings = taxonomy.children(taxonomy.parent[node])
    others = siblings[siblings != node] - 1
    return np.full(others.size, node - 1), others, np.ones(others.size)


def _stacked(found: list[tuple[np.ndarray, ...]], n_outputs: int) -> Contrasts:
    start = np.concatenate([[0], np.cumsum([own.size for own, _, _ in found])]).astype(np.int64)
    own, rival, scale = (np.concatenate(part) for part in zip(*found, strict=True))
    return Contrasts(start, own.astype(np.int64), rival.astype(np.int64), scale, n_outputs)
