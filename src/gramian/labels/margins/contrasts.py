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

Storage
    Nodes are numbered breadth first, so that siblings, and what is below a node on one level, are ranges of numbers.
    Contrasts with the same i and ρ whose rivals j are a range are one *row*: a label has some rows for each level,
    however many classes there are. One by one, the contrasts of n leaves would be n² triples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gramian.labels.taxonomy.taxonomy import Taxonomy


class Triples(NamedTuple):
    """Contrasts one by one; those of label c are ``start[c]`` to ``start[c + 1] - 1``."""

    start: np.ndarray
    own: np.ndarray
    rival: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Contrasts of each label, by rows; those of label c are ``start[c]`` to ``start[c + 1] - 1``.

    Attributes
    ----------
    start : int array of shape (n_labels + 1,)
    own : int array of shape (n_rows,)
        Output i.
    first, end : int arrays of shape (n_rows,)
        It must beat each of the outputs ``first`` to ``end - 1``, of which there is at least one.
    scale : float array of shape (n_rows,)
        ρ > 0.
    n_outputs : int

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Taxonomy, sibling_contrasts
    >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None})
    >>> contrasts = sibling_contrasts(pets, pets.index(["cat", "car"]))
    >>> triples = contrasts.triples()
    >>> for c in range(2):
    ...     some = slice(*triples.start[c : c + 2])
    ...     print(pets.names[1 + triples.own[some]], "beat", pets.names[1 + triples.rival[some]])
    ['cat' 'animal'] beat ['dog' 'car']
    ['car'] beat ['animal']
    """

    start: np.ndarray
    own: np.ndarray
    first: np.ndarray
    end: np.ndarray
    scale: np.ndarray
    n_outputs: int

    @classmethod
    def from_triples(cls, triples: Triples, n_outputs: int) -> Contrasts:
        """Return contrasts that are given one by one."""
        start, own, rival, scale = triples
        return cls(start, own, rival, rival + 1, scale, n_outputs)

    def triples(self) -> Triples:
        """Return the contrasts one by one: for small problems, their number grows with the square of the classes."""
        sizes = self.end - self.first
        before = np.concatenate([[0], np.cumsum(sizes)])
        row = np.repeat(np.arange(sizes.size), sizes)
        rival = self.first[row] + np.arange(row.size) - before[row]
        return Triples(before[self.start], self.own[row], rival, self.scale[row])

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.start.size - 1

    def counts(self) -> np.ndarray:
        """Return the number of contrasts of each label, shape (n_labels,)."""
        before = np.concatenate([[0], np.cumsum(self.end - self.first)])
        return np.diff(before[self.start])

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
    of_node = _against_siblings(taxonomy)
    found = (
        [row for node in path_from(taxonomy, label) for row in of_node(node)] for label in labels
    )
    return _stacked(found, taxonomy.n_nodes - 1)


def family_contrasts(taxonomy: Taxonomy) -> Contrasts:
    """Return contrasts for each node against its siblings: label and output p are node p + 1."""
    found = map(_against_siblings(taxonomy), range(1, taxonomy.n_nodes))
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
        Node of each output: all leaves, ascending, and after them the labels that are inner nodes.
    by_distance : bool
        Whether ρ is half the path between the two nodes instead of 1.
    """
    place = np.empty(taxonomy.n_nodes, dtype=np.int64)
    place[outputs] = np.arange(outputs.size)
    below = _LeavesBelow(taxonomy)
    found = (
        [(int(place[label]), *span) for span in _rivals(taxonomy, below, int(label), by_distance)]
        for label in labels
    )
    return _stacked(found, outputs.size)


def path_from(taxonomy: Taxonomy, label: int) -> np.ndarray:
    """Return the nodes from a label up to the first level."""
    return np.append(label, taxonomy.ancestors(label)[:-1])


Row = tuple[int, int, int, float]  # own, first, end, scale


def _against_siblings(taxonomy: Taxonomy):
    """A function that returns the rows of a node: the siblings before it, and those after it."""
    begin = np.searchsorted(taxonomy.parent, np.arange(taxonomy.n_nodes + 1)).tolist()
    parent = taxonomy.parent.tolist()

    def rows(node: int) -> list[Row]:
        first, end, own = begin[parent[node]] - 1, begin[parent[node] + 1] - 1, int(node) - 1
        return [(own, a, b, 1.0) for a, b in ((first, own), (own + 1, end)) if a < b]

    return rows


class _LeavesBelow:
    """What is below a node, level by level: ranges of places among the leaves."""

    def __init__(self, taxonomy: Taxonomy):
        self.begin = np.searchsorted(taxonomy.parent, np.arange(taxonomy.n_nodes + 1)).tolist()
        self.rank = np.concatenate([[0], np.cumsum(taxonomy.is_leaf)]).tolist()
        self.known: dict[int, list[tuple[int, int]]] = {}

    def __call__(self, node: int) -> list[tuple[int, int]]:
        """The range of leaves on the level of a node, and on each below it."""
        if node not in self.known:
            spans, first, end = [], node, node + 1
            while first < end:
                spans.append((self.rank[first], self.rank[end]))
                first, end = max(self.begin[first], 1), self.begin[end]
            self.known[node] = spans
        return self.known[node]


def _rivals(
    taxonomy: Taxonomy, below: _LeavesBelow, label: int, by_distance: bool
) -> Iterator[tuple[int, int, float]]:
    """Ranges of the leaves that are not below a label, with ρ; with a ρ of 1 neighbours are one range."""
    spans: list[tuple[int, int, float]] = []
    inner = label
    for up, above in enumerate(taxonomy.ancestors(label).tolist(), start=1):
        own = [(0, 0), *below(inner)]  # one level deeper
        for down, (first, end) in enumerate(below(above)):
            a, b = own[down] if down < len(own) else (end, end)
            a, b = (a, b) if a < b else (end, end)
            half = 0.5 * (up + down) if by_distance else 1.0
            spans += [(c, d, half) for c, d in ((first, a), (b, end)) if c < d]
        inner = above
    if by_distance:
        yield from spans
        return
    first, end = -1, -1
    for a, b, _ in sorted(spans):
        if a != end:
            if first < end:
                yield first, end, 1.0
            first = a
        end = b
    if first < end:
        yield first, end, 1.0


def _stacked(found: Iterable[list[Row]], n_outputs: int) -> Contrasts:
    rows: list[Row] = []
    start = [0]
    for some in found:
        rows += some
        start.append(len(rows))
    own, first, end, scale = zip(*rows, strict=True) if rows else ((),) * 4
    places, owns, firsts, ends = (
        np.array(part, dtype=np.int64) for part in (start, own, first, end)
    )
    return Contrasts(places, owns, firsts, ends, np.array(scale, dtype=np.float64), n_outputs)
