"""The shape of a tree, from its array of parents alone.

Numbering
    Breadth first, node 0 is the root. So the parents of 1, 2, 3, ... never decrease, each level of the tree
    and the children of each node are ranges of numbers, and an ancestor has a smaller number than its descendants.

Depth first
    ``preorder[p]`` is the place of p when each node is followed by its whole subtree. A subtree is then the range
    ``[preorder[p], preorder[p] + sizes[p])``: "is below" are two comparisons.

Lowest common ancestors
    From each node one edge goes to its *heavy* child, the one with the largest subtree. Heavy edges form paths, and
    there are at most log2(nodes) light edges from any node to the root. While two nodes are on different paths, the
    one whose path starts at the larger number jumps above the start of its path: O(log nodes) jumps, also in chains.

There is no recursion: loops run over levels, and each level is a few vectorised operations.
"""

from __future__ import annotations

import reprlib
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gramian._core.arrays import BLOCK_BYTES, row_blocks


class RootedTree:
    """A tree with nodes numbered breadth first.

    Parameters
    ----------
    parent : int array of shape (n_nodes,)
        Parent of each node; -1 for node 0, the root. Not checked here.

    Examples
    --------
    >>> tree = RootedTree([-1, 0, 0, 1, 1])
    >>> tree.depth, tree.sizes, tree.leaves
    (array([0, 1, 1, 2, 2]), array([5, 3, 1, 1, 1]), array([2, 3, 4]))
    >>> tree.lowest_common_ancestor([3, 3], [4, 2])
    array([1, 0])
    """

    def __init__(self, parent: Any):
        self.parent = _frozen(np.array(parent, dtype=np.int64))

    @property
    def n_nodes(self) -> int:
        """Number of nodes with the root."""
        return self.parent.size

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.leaves.size

    @property
    def is_leaf(self) -> np.ndarray:
        """Whether each node is a leaf, shape (n_nodes,)."""
        return self.child_counts == 0

    @property
    def height(self) -> int:
        """The largest depth."""
        return int(self.depth[-1])

    @cached_property
    def bounds(self) -> np.ndarray:
        """Level d holds the nodes from ``bounds[d]`` to ``bounds[d + 1] - 1``."""
        # A level ends with the last child of its predecessor's last node.
        ends = np.searchsorted(self.parent, np.arange(self.n_nodes + 1), side="left")
        bounds = [0, 1]
        while bounds[-1] < self.n_nodes:
            bounds.append(int(ends[bounds[-1]]))
        return _frozen(np.array(bounds, dtype=np.int64))

    @cached_property
    def depth(self) -> np.ndarray:
        """Number of edges from the root to each node, shape (n_nodes,)."""
        return _frozen(np.repeat(np.arange(self.bounds.size - 1), np.diff(self.bounds)))

    @cached_property
    def child_counts(self) -> np.ndarray:
        """Number of children of each node, shape (n_nodes,)."""
        return _frozen(np.bincount(self.parent[1:], minlength=self.n_nodes).astype(np.int64))

    @cached_property
    def families(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inner nodes, ascending, with the first child and one past the last child of each."""
        inner = np.flatnonzero(self.child_counts)
        ends = 1 + np.cumsum(self.child_counts[inner])
        return _frozen(inner), _frozen(ends - self.child_counts[inner]), _frozen(ends)

    @cached_property
    def leaves(self) -> np.ndarray:
        """Numbers of the nodes without children, ascending."""
        return _frozen(np.flatnonzero(self.is_leaf))

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of nodes in each subtree, shape (n_nodes,)."""
        # a plain loop is as fast for a chain of a million levels as for a star
        sizes, parent = [1] * self.n_nodes, self.parent.tolist()
        for node in range(self.n_nodes - 1, 0, -1):
            sizes[parent[node]] += sizes[node]
        return _frozen(np.array(sizes, dtype=np.int64))

    @cached_property
    def preorder(self) -> np.ndarray:
        """Place of each node in depth-first order, shape (n_nodes,)."""
        before = np.cumsum(self.sizes) - self.sizes  # ... of the nodes with smaller numbers
        inner, first_child, _ = self.families
        eldest = np.zeros(self.n_nodes, dtype=np.int64)
        eldest[inner] = first_child
        steps = (before - before[eldest[self.parent]] + 1).tolist()
        places, parent = [0] * self.n_nodes, self.parent.tolist()
        for node in range(1, self.n_nodes):
            places[node] = places[parent[node]] + steps[node]
        return _frozen(np.array(places, dtype=np.int64))

    @cached_property
    def leaf_counts(self) -> np.ndarray:
        """Number of leaves in each subtree, shape (n_nodes,); 1 for a leaf."""
        places = np.sort(self.preorder[self.leaves])
        ends = np.searchsorted(places, self.preorder + self.sizes)
        return _frozen(ends - np.searchsorted(places, self.preorder))

    @cached_property
    def _path_starts(self) -> np.ndarray:
        """The top node of the heavy path through each node."""
        by_size = np.lexsort((self.sizes[1:], self.parent[1:])) + 1  # the heaviest child comes last
        _, _, ends = self.families
        heavy = np.zeros(self.n_nodes, dtype=bool)
        heavy[by_size[ends - 2]] = True
        starts = np.arange(self.n_nodes)
        for first, last in self._level_ranges():
            above = starts[self.parent[first:last]]
            starts[first:last] = np.where(heavy[first:last], above, starts[first:last])
        return starts

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

    def children(self, node: int) -> np.ndarray:
        """Return the numbers of a node's children."""
        return np.arange(*np.searchsorted(self.parent, self.checked_nodes(node) + np.arange(2)))

    def ancestors(self, node: int) -> np.ndarray:
        """Return the numbers from a node's parent up to the root."""
        node, above = int(self.checked_nodes(node)), []
        while node > 0:
            node = int(self.parent[node])
            above.append(node)
        return np.array(above, dtype=np.int64)

    def lowest_common_ancestor(self, a: Any, b: Any) -> np.ndarray:
        """Return the deepest node that is above (or equal to) nodes a and b, which broadcast."""
        starts, parent = self._path_starts, self.parent
        a, b = np.broadcast_arrays(self.checked_nodes(a), self.checked_nodes(b))
        while True:
            start_a, start_b = starts[a], starts[b]
            if np.array_equal(start_a, start_b):
                return np.minimum(a, b)
            a = np.where(start_a > start_b, parent[start_a], a)
            b = np.where(start_b > start_a, parent[start_b], b)

    def distance(self, a: Any, b: Any) -> np.ndarray:
        """Return the number of edges between nodes a and b, which broadcast."""
        top = self.lowest_common_ancestor(a, b)
        return self.depth[np.asarray(a)] + self.depth[np.asarray(b)] - 2 * self.depth[top]

    def delta(self, a: Any = None, b: Any = None) -> np.ndarray:
        """Return half the number of edges between all nodes of a and all of b, by default the leaves.

        For two leaves under one parent that is 1. Shape (len(a), len(b)).
        """
        a, b = (self.leaves if nodes is None else np.atleast_1d(nodes) for nodes in (a, b))
        out = np.empty((a.size, b.size))
        for rows in row_blocks(a.size, 8 * b.size, BLOCK_BYTES):
            out[rows] = 0.5 * self.distance(a[rows, None], b)
        return out

    def descends(self, nodes: Any) -> np.ndarray:
        """Return whether each leaf is a node or below it, shape (len(nodes), n_leaves).

        Examples
        --------
        >>> from gramian.labels import Taxonomy
        >>> Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None}).descends([0, 1, 2])
        array([[ True,  True,  True],
               [False,  True,  True],
               [ True, False, False]])
        """
        nodes = np.atleast_1d(self.checked_nodes(nodes))[:, None]
        places, first = self.preorder[self.leaves], self.preorder[nodes]
        return (places >= first) & (places < first + self.sizes[nodes])

    def _level_ranges(self) -> list[tuple[int, int]]:
        """First node and one past the last of each level below the root."""
        return list(pairwise(self.bounds[1:].tolist()))


def _frozen(array: np.ndarray) -> np.ndarray:
    """Shared arrays are read-only."""
    array.setflags(write=False)
    return array
