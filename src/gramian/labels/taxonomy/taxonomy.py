"""Taxonomies: classes as the leaves of a tree.

Nodes are numbered breadth first and node 0 is the root. With Φ[p, p'] = 1 if p' is p or an ancestor of p,
`Taxonomy.path_sums` is B Φᵀ and `Taxonomy.subtree_sums` is B Φ, in O(n_nodes) for each row of B.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from gramian._core.arrays import Array
from gramian._core.validation import check_choice
from gramian.labels.taxonomy import builders
from gramian.labels.taxonomy.rooted_tree import RootedTree
from gramian.labels.taxonomy.sweeps import sweep
from gramian.labels.taxonomy.text import html_tree, text_tree

SHARES = ("tied", "class", "level", "subtree")


class Taxonomy(RootedTree):
    """A tree whose leaves are classes.

    Use one of the ``from_...`` methods, or `as_taxonomy`; they number the nodes. One top node with children is the
    root; several top nodes hang under an implicit root named "root".

    Parameters
    ----------
    names : sequence of str or int, of length n_nodes
        Unique names, in breadth-first order. The first is the root.
    parent : int array of shape (n_nodes,)
        Number of each node's parent; -1 for the root, node 0.

    Attributes
    ----------
    names : ndarray of shape (n_nodes,)
    parent : int64 ndarray of shape (n_nodes,)

    Examples
    --------
    >>> from gramian.labels import Taxonomy
    >>> pets = Taxonomy.from_parents({"cat": "animal", "dog": "animal", "car": None})
    >>> pets
    Taxonomy: 5 nodes, 3 leaves, height 2
    root (3 leaves)
    ├─ animal (2 leaves)
    │  ├─ cat
    │  └─ dog
    └─ car
    >>> pets.leaf_names
    array(['car', 'cat', 'dog'], dtype='<U6')
    >>> pets.delta()
    array([[0. , 1.5, 1.5],
           [1.5, 0. , 1. ],
           [1.5, 1. , 0. ]])
    """

    def __init__(self, names: Iterable[Any], parent: Any):
        listed = [builders.checked_name(name) for name in names]
        builders.refuse_repetitions(listed)
        self.names = builders.name_array(listed)
        super().__init__(builders.checked_parent(parent, len(listed)))

    @classmethod
    def from_parents(cls, mapping: Mapping[Any, Any]) -> Taxonomy:
        """Build from ``{child: parent}``; the parent of a top node is None, or it is not listed as a child.

        Examples
        --------
        >>> Taxonomy.from_parents({"cat": "animal", "dog": "animal"}).names
        array(['animal', 'cat', 'dog'], dtype='<U6')
        """
        return cls(*builders.number_nodes(builders.parents_from_mapping(mapping)))

    @classmethod
    def from_edges(cls, pairs: Iterable[Any]) -> Taxonomy:
        """Build from pairs ``(parent, child)``.

        Examples
        --------
        >>> Taxonomy.from_edges([("animal", "cat"), ("animal", "dog")]).parent
        array([-1,  0,  0])
        """
        return cls(*builders.number_nodes(builders.parents_from_edges(pairs)))

    @classmethod
    def from_paths(cls, paths: Any, separator: str = "/") -> Taxonomy:
        """Build from paths: strings, tuples, or the rows of a table whose columns are levels.

        A node's name is its whole path, so that equal words at different places stay apart. Missing values (None,
        NaN, "") at the end of a row mean that this path is shorter.

        Examples
        --------
        >>> Taxonomy.from_paths(["animal/cat", "animal/dog", "car"]).leaf_names
        array(['car', 'animal/cat', 'animal/dog'], dtype='<U10')
        """
        return cls(*builders.number_nodes(builders.parents_from_paths(paths, separator)))

    @classmethod
    def from_dict(cls, nested: Mapping[Any, Any]) -> Taxonomy:
        """Build from nested dictionaries; the children of a node may also be a list of names, or None.

        A dictionary parent → list of children works too: a name at the top that is somebody's child is not a top node.

        Examples
        --------
        >>> Taxonomy.from_dict(
        ...     {"animal": {"cat": {"lion": None}, "dog": {}}, "car": ["van"]}
        ... ).leaf_names
        array(['dog', 'van', 'lion'], dtype='<U6')
        """
        return cls(*builders.number_nodes(builders.parents_from_dict(nested)))

    @classmethod
    def from_networkx(cls, graph: Any) -> Taxonomy:
        """Build from a ``networkx.DiGraph`` with edges parent → child."""
        return cls(*builders.number_nodes(builders.parents_from_graph(graph)))

    @classmethod
    def from_linkage(cls, Z: Any, names: Iterable[Any] | None = None) -> Taxonomy:
        """Build from a dendrogram: a linkage matrix of ``scipy.cluster.hierarchy``.

        Parameters
        ----------
        Z : array of shape (n_leaves - 1, 4)
        names : sequence of length n_leaves, default=None
            Names of the leaves; by default 0, 1, 2, ... The k-th merged cluster is named "cluster n+k", or is the
            number n+k if the names are integers.

        Examples
        --------
        >>> from scipy.cluster.hierarchy import linkage
        >>> Taxonomy.from_linkage(linkage([[0.0], [1.0], [5.0]]), names=["a", "b", "c"])
        Taxonomy: 5 nodes, 3 leaves, height 2
        cluster 4 (3 leaves)
        ├─ c
        └─ cluster 3 (2 leaves)
           ├─ a
           └─ b
        """
        return cls(*builders.number_nodes(builders.parents_from_linkage(Z, names)))

    @property
    def leaf_names(self) -> np.ndarray:
        """Names of the leaves, in the order of ``leaves``."""
        names = self.names[self.leaves]
        # an implicit root of another type must not make objects of the leaves
        return builders.name_array(names.tolist()) if names.dtype == object else names

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return {name: number for number, name in enumerate(self.names.tolist())}

    def index(self, labels: Any) -> Any:
        """Return the number of each named node, in the shape of ``labels``.

        Examples
        --------
        >>> Taxonomy.from_parents({"cat": "animal", "dog": "animal"}).index(["dog", "animal"])
        array([2, 0])
        """
        if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
            return self.index([labels])[0]
        shape = getattr(labels, "shape", None)
        flat = np.asarray(labels).reshape(-1).tolist() if shape is not None else list(labels)
        try:
            found = [self._numbers.get(label, -1) for label in flat]
        except TypeError:
            raise TypeError(f"labels must be names of nodes, got {reprlib.repr(labels)}.") from None
        if unknown := [label for label, number in zip(flat, found) if number < 0]:
            raise ValueError(self._unknown(unknown))
        return np.array(found, dtype=np.int64).reshape(-1 if shape is None else shape)

    def _unknown(self, labels: list[Any]) -> str:
        distinct = list(dict.fromkeys(labels))
        by_text = {str(name): name for name in self._numbers}
        matches = difflib.get_close_matches(str(distinct[0]), by_text, n=3)
        hint = ", ".join(repr(by_text[match]) for match in matches)
        known = f"Close to it: {hint}." if hint else f"It has {reprlib.repr(self.names.tolist())}."
        others = f" and {len(distinct) - 1} more" if len(distinct) > 1 else ""
        return f"The taxonomy has no node {distinct[0]!r}{others}. {known}"

    def path(self, name: Any) -> np.ndarray:
        """Return the names from the root to a named node."""
        node = int(self.index([name])[0])
        return self.names[[*self.ancestors(node)[::-1], node]]

    def groups(self, share: str) -> np.ndarray:
        """Return the group of each node's function, shape (n_nodes,); the root has none: -1.

        Parameters
        ----------
        share : {"tied", "class", "level", "subtree"}
            One group for all nodes, one for each node, one for each level, or one for each child of the root with
            all that is below it.

        Examples
        --------
        >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": ["van"]})
        >>> pets.groups("level"), pets.groups("subtree")
        (array([-1,  0,  0,  1,  1,  1]), array([-1,  0,  1,  0,  0,  1]))
        """
        check_choice("share", share, SHARES)
        if share == "tied":
            groups = np.zeros(self.n_nodes, dtype=np.int64)
        elif share == "class":
            groups = np.arange(self.n_nodes) - 1
        elif share == "level":
            groups = self.depth - 1
        else:
            starts = self.preorder[self.children(0)]  # ascending, as siblings are
            groups = np.searchsorted(starts, self.preorder, side="right") - 1
        groups[0] = -1
        return groups

    def node_proba(self, P: Array) -> Array:
        """Return the probability of every node: the sum over its leaves.

        Parameters
        ----------
        P : array of shape (n, n_leaves)
            Probabilities of the leaves, in the order of ``leaves``.

        Returns
        -------
        array of shape (n, n_nodes)
            Column p is node p.

        Examples
        --------
        >>> import numpy as np
        >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None})
        >>> pets.node_proba(np.array([[0.5, 0.25, 0.25]]))
        array([[1.  , 0.5 , 0.5 , 0.25, 0.25]])
        """
        return sweep(P, self, source=self.leaves, up=True)

    def path_sums(self, B: Array) -> Array:
        """Return B Φᵀ: column p is the sum of the columns of B from the root to p.

        Parameters
        ----------
        B : array of shape (n, n_nodes) or (n, n_nodes, q)
        """
        return sweep(B, self, down=True)

    def subtree_sums(self, B: Array) -> Array:
        """Return B Φ: column p is the sum of the columns of B over the subtree of p.

        Parameters
        ----------
        B : array of shape (n, n_nodes) or (n, n_nodes, q)
        """
        return sweep(B, self, up=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Taxonomy) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple:
        return tuple(self.names.tolist()), self.parent.tobytes()

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.names, "parent": self.parent}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for array in state.values():
            array.setflags(write=False)
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"{self._summary()}\n{text_tree(self.names.tolist(), self)}"

    def _repr_html_(self) -> str:
        return f"<div>{self._summary()}{html_tree(self.names.tolist(), self)}</div>"

    def _summary(self) -> str:
        leaves = f"{self.n_leaves} {'leaf' if self.n_leaves == 1 else 'leaves'}"
        return f"Taxonomy: {self.n_nodes} nodes, {leaves}, height {self.height}"


def as_taxonomy(hierarchy: Any) -> Taxonomy:
    """Return a taxonomy from whatever describes one.

    Parameters
    ----------
    hierarchy : Taxonomy, mapping, networkx.DiGraph, DataFrame, or list
        - a mapping child → parent, or nested dictionaries (a value is a dictionary or a list of names);
        - a graph with edges parent → child;
        - a list of pairs: edges (parent, child);
        - a list of strings "a/b/c", of tuples of other lengths, or a DataFrame with one column per level: paths.

    Examples
    --------
    >>> from gramian.labels import as_taxonomy
    >>> by_dict = as_taxonomy({"animal": ["cat", "dog"], "car": None})
    >>> by_dict == as_taxonomy({"animal": None, "car": None, "cat": "animal", "dog": "animal"})
    True
    """
    if isinstance(hierarchy, Taxonomy):
        return hierarchy
    return Taxonomy(*builders.number_nodes(builders.parents_from_any(hierarchy)))
