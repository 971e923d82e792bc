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

from gramian._core.arrays import Array, row_blocks
from gramian.labels.taxonomy import builders
from gramian.labels.taxonomy.rooted_tree import RootedTree
from gramian.labels.taxonomy.sweeps import sweep
from gramian.labels.taxonomy.text import html_tree, text_tree

__all__ = ["Taxonomy", "as_taxonomy"]

SHARES = ("tied", "class", "level", "subtree")


class Taxonomy:
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
        self.names = _name_array(listed)
        self.parent = _checked_parent(parent, len(listed))

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
    def n_nodes(self) -> int:
        """Number of nodes with the root."""
        return self.parent.size

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.leaves.size

    @property
    def leaves(self) -> np.ndarray:
        """Numbers of the leaves, ascending."""
        return self.tree.leaves

    @property
    def leaf_names(self) -> np.ndarray:
        """Names of the leaves, in the order of ``leaves``."""
        names = self.names[self.leaves]
        # an implicit root of another type must not make objects of the leaves
        return _name_array(names.tolist()) if names.dtype == object else names

    @property
    def is_leaf(self) -> np.ndarray:
        """Whether each node is a leaf, shape (n_nodes,)."""
        return self.tree.child_counts == 0

    @property
    def depth(self) -> np.ndarray:
        """Number of edges from the root to each node, shape (n_nodes,)."""
        return self.tree.depth

    @property
    def height(self) -> int:
        """The largest depth."""
        return int(self.depth[-1])

    @cached_property
    def tree(self) -> RootedTree:
        """The shape of the tree, without names."""
        return RootedTree(self.parent)

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
        numbers = np.array(found, dtype=np.int64)
        if numbers.size and numbers.min() < 0:
            raise ValueError(self._unknown([label for label in flat if label not in self._numbers]))
        return numbers if shape is None else numbers.reshape(shape)

    def _unknown(self, labels: list[Any]) -> str:
        distinct = list(dict.fromkeys(labels))
        by_text = {str(name): name for name in self._numbers}
        matches = difflib.get_close_matches(str(distinct[0]), by_text, n=3)
        hint = ", ".join(repr(by_text[match]) for match in matches)
        known = f"Close to it: {hint}." if hint else f"It has {reprlib.repr(self.names.tolist())}."
        others = f" and {len(distinct) - 1} more" if len(distinct) > 1 else ""
        return f"The taxonomy has no node {distinct[0]!r}{others}. {known}"

    def children(self, node: int) -> np.ndarray:
        """Return the numbers of a node's children."""
        return self.tree.children(int(self.checked_nodes(node)))

    def ancestors(self, node: int) -> np.ndarray:
        """Return the numbers from a node's parent up to the root."""
        return self.tree.ancestors(int(self.checked_nodes(node)))

    def path(self, name: Any) -> np.ndarray:
        """Return the names from the root to a named node."""
        node = int(self.index([name])[0])
        return self.names[[*self.ancestors(node)[::-1], node]]

    def descends(self, nodes: Any) -> np.ndarray:
        """Return whether each leaf is a node or below it, shape (len(nodes), n_leaves).

        Examples
        --------
        >>> Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None}).descends([0, 1, 2])
        array([[ True,  True,  True],
               [False,  True,  True],
               [ True, False, False]])
        """
        nodes = np.atleast_1d(self.checked_nodes(nodes))
        places = self.tree.preorder[self.leaves]
        first = self.tree.preorder[nodes][:, None]
        return (places >= first) & (places < first + self.tree.sizes[nodes][:, None])

    def lowest_common_ancestor(self, a: Any, b: Any) -> np.ndarray:
        """Return the deepest node that is above (or equal to) nodes a and b, which broadcast."""
        return self.tree.common_ancestors(self.checked_nodes(a), self.checked_nodes(b))

    def distance(self, a: Any, b: Any) -> np.ndarray:
        """Return the number of edges between nodes a and b, which broadcast."""
        top = self.lowest_common_ancestor(a, b)
        return self.depth[np.asarray(a)] + self.depth[np.asarray(b)] - 2 * self.depth[top]

    def delta(self, a: Any = None, b: Any = None) -> np.ndarray:
        """Return half the number of edges between all nodes of a and all of b, by default the leaves.

        For two leaves under one parent that is 1. Shape (len(a), len(b)).
        """
        a = self.leaves if a is None else np.atleast_1d(self.checked_nodes(a))
        b = self.leaves if b is None else np.atleast_1d(self.checked_nodes(b))
        out = np.empty((a.size, b.size))
        for rows in row_blocks(a.size, 8 * b.size, 2**23):
            out[rows] = 0.5 * self.distance(a[rows, None], b)
        return out

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
        if share not in SHARES:
            raise ValueError(f"share must be one of {', '.join(map(repr, SHARES))}; got {share!r}.")
        if share == "tied":
            groups = np.zeros(self.n_nodes, dtype=np.int64)
        elif share == "class":
            groups = np.arange(self.n_nodes) - 1
        elif share == "level":
            groups = self.depth - 1
        else:
            tops = self.children(0)
            starts = self.tree.preorder[tops]  # ascending, as siblings are
            groups = np.searchsorted(starts, self.tree.preorder, side="right") - 1
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
        _check_columns("P", P, self.n_leaves, "leaf")
        return sweep(P, self.tree, source=self.leaves, up=True)

    def path_sums(self, B: Array) -> Array:
        """Return B Φᵀ: column p is the sum of the columns of B from the root to p.

        Parameters
        ----------
        B : array of shape (n, n_nodes) or (n, n_nodes, q)
        """
        _check_columns("B", B, self.n_nodes, "node")
        return sweep(B, self.tree, down=True)

    def subtree_sums(self, B: Array) -> Array:
        """Return B Φ: column p is the sum of the columns of B over the subtree of p.

        Parameters
        ----------
        B : array of shape (n, n_nodes) or (n, n_nodes, q)
        """
        _check_columns("B", B, self.n_nodes, "node")
        return sweep(B, self.tree, up=True)

    def checked_nodes(self, nodes: Any) -> np.ndarray:
        """Return node numbers as an int64 array, or say what is wrong with them."""
        numbers = np.asarray(nodes)
        if numbers.size == 0:
            return numbers.astype(np.int64)
        if numbers.dtype.kind not in "iu":
            raise TypeError(
                f"Nodes are given by number, got {reprlib.repr(nodes)}. Use index(labels) for names."
            )
        if numbers.min() < 0 or numbers.max() >= self.n_nodes:
            raise IndexError(f"Nodes are 0 to {self.n_nodes - 1}, got {reprlib.repr(nodes)}.")
        return numbers.astype(np.int64)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return self.names.tolist() == other.names.tolist() and np.array_equal(
            self.parent, other.parent
        )

    def __hash__(self) -> int:
        return hash((tuple(self.names.tolist()), self.parent.tobytes()))

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.names, "parent": self.parent}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for array in state.values():
            array.setflags(write=False)
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"{self._summary()}\n{text_tree(self.names.tolist(), self.tree)}"

    def _repr_html_(self) -> str:
        return f"<div>{self._summary()}{html_tree(self.names.tolist(), self.tree)}</div>"

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
    if isinstance(hierarchy, Mapping):
        nests = (Mapping, list, tuple, set, frozenset)
        if any(isinstance(value, nests) for value in hierarchy.values()):
            return Taxonomy.from_dict(hierarchy)
        return Taxonomy.from_parents(hierarchy)
    if hasattr(hierarchy, "is_directed"):
        return Taxonomy.from_networkx(hierarchy)
    if hasattr(hierarchy, "columns"):
        return Taxonomy.from_paths(hierarchy)
    if isinstance(hierarchy, (str, bytes)) or not isinstance(hierarchy, Iterable):
        raise TypeError(
            "hierarchy must be a Taxonomy, a mapping child → parent, nested dictionaries, a list of edges or "
            f"paths, a DataFrame or a networkx.DiGraph; got {type(hierarchy).__name__} "
            f"{reprlib.repr(hierarchy)}."
        )
    entries = list(hierarchy)
    lengths = {len(e) if hasattr(e, "__len__") and not isinstance(e, str) else 0 for e in entries}
    if lengths == {2}:
        return Taxonomy.from_edges(entries)
    return Taxonomy.from_paths(entries)


def _name_array(names: list[Any]) -> np.ndarray:
    """Strings and integers as such, anything else as objects; read-only."""
    array = np.empty(len(names), dtype=object)
    array[:] = names
    if all(type(name) is str for name in names):
        array = array.astype(str)
    elif all(type(name) is int and abs(name) < 2**63 for name in names):
        array = array.astype(np.int64)
    array.setflags(write=False)
    return array


def _checked_parent(parent: Any, n_names: int) -> np.ndarray:
    given = np.asarray(parent)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise TypeError(f"parent must be a vector of integers, got {reprlib.repr(parent)}.")
    if given.size != n_names:
        raise ValueError(f"There are {n_names} names but {given.size} parents.")
    if n_names < 2:
        raise ValueError("The taxonomy is empty: it needs at least one node besides the root.")
    array = given.astype(np.int64)
    ordered = np.all(np.diff(array) >= 0) and np.all(array[1:] < np.arange(1, n_names))
    if array[0] != -1 or array[1] != 0 or not ordered:
        raise ValueError(
            "parent must number the nodes breadth first: -1 for node 0 and for no other, then 0, never decreasing, "
            f"and smaller than the node itself; got {reprlib.repr(given.tolist())}. "
            "Taxonomy.from_parents({child: parent}) numbers the nodes for you."
        )
    array.setflags(write=False)
    return array


def _check_columns(name: str, array: Array, columns: int, kind: str) -> None:
    if array.ndim < 2 or array.shape[1] != columns:
        raise ValueError(
            f"{name} must have one column for each {kind}, {columns}; got shape {tuple(array.shape)}."
        )
