"""From what people have (edges, paths, nested dicts, dendrograms) to names and parents, numbered breadth first.

Every source becomes a dictionary child → parent, and `number_nodes` does the rest: siblings keep the order in which
they were first seen (names are never sorted, so they need not be comparable), and errors show the offending names.
"""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import is_valid_linkage

from gramian._core.validation import listed, repeated

Name = Any  # hashable, mostly str or int
Parents = dict[Name, Name]  # None is the parent of a top node

IMPLICIT_ROOT = "root"
_NESTED = (Mapping, list, tuple, set, frozenset)  # what may be below a node in nested dictionaries


def number_nodes(parents: Parents) -> tuple[list[Name], list[int]]:
    """Return the names in breadth-first order and the number of each one's parent.

    Examples
    --------
    >>> number_nodes({"a": None, "cat": "a", "b": None, "car": "b", "dog": "a"})
    (['root', 'a', 'b', 'cat', 'dog', 'car'], [-1, 0, 0, 1, 1, 2])
    """
    children: dict[Name, list[Name]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    tops = children.get(None, [])
    if len(tops) == 1 and tops[0] in children:
        names = tops.copy()
    elif tops and IMPLICIT_ROOT in parents:
        raise ValueError(
            f"There are {len(tops)} top nodes ({listed(tops)}) and they would hang under a new node "
            f"{IMPLICIT_ROOT!r}, but a node of this name is there already. Rename it, or make it the parent "
            "of the other top nodes."
        )
    else:
        names, children[IMPLICIT_ROOT] = [IMPLICIT_ROOT], tops
    parent_of = [-1]
    for place, name in enumerate(names):  # grows while we walk: breadth first, without recursion
        below = children.get(name, ())
        names.extend(below)
        parent_of.extend([place] * len(below))
    reached = set(names)
    lost = next((name for name in parents if name not in reached), None)
    if lost is not None:
        raise ValueError(_cycle_message(parents, lost))
    return names, parent_of


def parents_from_any(hierarchy: Any) -> Parents:
    """Read any of the sources below; see `gramian.labels.as_taxonomy`."""
    if isinstance(hierarchy, Mapping):
        nested = any(isinstance(value, _NESTED) for value in hierarchy.values())
        return parents_from_dict(hierarchy) if nested else parents_from_mapping(hierarchy)
    if hasattr(hierarchy, "is_directed"):
        return parents_from_graph(hierarchy)
    if hasattr(hierarchy, "columns"):
        return parents_from_paths(hierarchy)
    if isinstance(hierarchy, (str, bytes)) or not isinstance(hierarchy, Iterable):
        raise TypeError(
            "hierarchy must be a Taxonomy, a mapping child → parent, nested dictionaries, a list of edges or "
            f"paths, a DataFrame or a networkx.DiGraph; got {_short(hierarchy)}."
        )
    entries = list(hierarchy)
    pairs = entries and all(_is_pair(entry) for entry in entries)
    return parents_from_edges(entries) if pairs else parents_from_paths(entries)


def parents_from_mapping(mapping: Mapping[Name, Name]) -> Parents:
    """Read {child: parent}."""
    if not isinstance(mapping, Mapping):
        raise TypeError(f"from_parents needs a mapping child → parent, got {_short(mapping)}.")
    return _collect(
        (None if _is_missing(parent) else parent, child) for child, parent in mapping.items()
    )


def parents_from_edges(pairs: Iterable[Any]) -> Parents:
    """Read (parent, child) pairs."""

    def edges() -> Iterator[tuple[Name, Name]]:
        for pair in pairs:
            if not _is_pair(pair):
                raise ValueError(f"Each edge must be a pair (parent, child), got {_short(pair)}.")
            yield checked_name(pair[0]), pair[1]

    return _collect(edges())


def _is_pair(entry: Any) -> bool:
    return not isinstance(entry, str) and hasattr(entry, "__len__") and len(entry) == 2


def parents_from_paths(paths: Any, separator: str = "/") -> Parents:
    """Read paths from the top down: strings, tuples, rows of a table."""
    if isinstance(paths, (str, bytes, Mapping)):
        raise TypeError(f"paths must be a list of paths or a table, got {_short(paths)}.")
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator must be a string that is not empty, got {separator!r}.")
    if hasattr(paths, "columns"):  # a DataFrame, which would iterate over its columns
        paths = paths.to_numpy()
    parents: Parents = {}
    for path in paths:
        name = None
        for part in _parts(path, separator):
            parent, name = name, part if name is None else f"{name}{separator}{part}"
            parents.setdefault(name, parent)
    return parents


def join_paths(rows: Any, separator: str = "/") -> np.ndarray:
    """Return rows of a table, from the top down, as the node names that `Taxonomy.from_paths` gives.

    Examples
    --------
    >>> join_paths([["animal", "cat"], ["car", None]])
    array(['animal/cat', 'car'], dtype='<U10')
    """
    table = np.asarray(rows, dtype=object)
    return np.array([separator.join(_parts(tuple(row), separator)) for row in table])


def _parts(path: Any, separator: str) -> list[str]:
    if isinstance(path, str):
        parts = path.split(separator)
    elif isinstance(path, Iterable):
        parts = list(path)
    else:
        raise TypeError(f"A path must be a string or a sequence of names, got {_short(path)}.")
    while parts and _is_blank(parts[-1]):
        parts.pop()
    if not parts:
        raise ValueError(f"A path is empty: {_short(path)}. Leave it out.")
    names = [str(part) for part in parts]
    for part, name in zip(parts, names):
        if _is_blank(part):
            raise ValueError(f"The path {_short(path)} has an empty part that is not at its end.")
        if separator in name:
            raise ValueError(
                f"The name {name!r} in the path {_short(path)} contains the separator {separator!r}; "
                "choose another one with separator=."
            )
    return names


def parents_from_dict(nested: Mapping[Name, Any]) -> Parents:
    """Read nested dictionaries, or lists of children."""
    if not isinstance(nested, Mapping):
        raise TypeError(f"from_dict needs a nested dictionary, got {_short(nested)}.")

    def edges() -> Iterator[tuple[Name, Name]]:
        waiting: list[tuple[Name, Any]] = [(None, nested)]
        for parent, below in waiting:  # grows while we walk: breadth first, without recursion
            for child in below:
                yield parent, child
                grandchildren = below[child] if isinstance(below, Mapping) else None
                if isinstance(grandchildren, _NESTED):
                    waiting.append((child, grandchildren))
                elif grandchildren is not None:
                    raise TypeError(
                        f"Below {child!r} there must be a dictionary, a list of names or None, got "
                        f"{_short(grandchildren)}. For a mapping child → parent use from_parents."
                    )

    return _collect(edges())


def parents_from_graph(graph: Any) -> Parents:
    """Read a networkx DiGraph with edges parent → child."""
    if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise TypeError(f"from_networkx needs a networkx.DiGraph, got {_short(graph)}.")
    if not graph.is_directed():
        raise ValueError(
            "The graph is undirected, so that parents and children cannot be told apart. Pass a "
            "networkx.DiGraph with edges parent → child, for example networkx.bfs_tree(graph, root)."
        )
    parents = _collect(graph.edges())
    for node in graph.nodes():
        parents.setdefault(checked_name(node), None)
    return parents


def parents_from_linkage(Z: Any, names: Iterable[Name] | None) -> Parents:
    """Read a linkage matrix of SciPy."""
    Z = np.asarray(Z, dtype=float)
    is_valid_linkage(Z, throw=True, name="Z")
    n = Z.shape[0] + 1
    leaves = list(range(n)) if names is None else [checked_name(name) for name in names]
    if len(leaves) != n:
        raise ValueError(f"The linkage has {n} leaves, but {len(leaves)} names were given.")
    whole = all(isinstance(name, int) for name in leaves)
    clusters = [n + k if whole else f"cluster {n + k}" for k in range(n - 1)]
    every = [*leaves, *clusters]
    refuse_repetitions(every)
    parents: Parents = {every[-1]: None}
    for k in range(n - 2, -1, -1):
        parents.update((every[int(child)], clusters[k]) for child in Z[k, :2])
    return parents


def _collect(edges: Iterable[tuple[Name | None, Name]]) -> Parents:
    """Gather (parent, child) pairs; a child with two parents and loops are refused."""
    parents: Parents = {}
    for parent, child in edges:
        child = checked_name(child)
        if parent is not None:
            parent = checked_name(parent)
            if parent == child:
                raise ValueError(f"Node {child!r} is its own parent. Remove this edge.")
            parents.setdefault(parent, None)
            known = parents.get(child)
            if known is not None and known != parent:
                raise ValueError(
                    f"Node {child!r} has two parents, {known!r} and {parent!r}. In a tree each node has one: "
                    "remove an edge, or give the two nodes different names."
                )
        parents[child] = parent
    return parents


def checked_name(name: Any) -> Name:
    """Return a name as a Python object, or say why it cannot be one."""
    if isinstance(name, np.generic):
        name = name.item()
    if not isinstance(name, Hashable):
        raise TypeError(
            f"A node's name must be hashable (a string or an integer), got {_short(name)}. For nested dictionaries use "
            "from_dict."
        )
    if _is_missing(name):
        raise ValueError(f"{name!r} cannot be the name of a node. Drop rows with missing values.")
    return name


def refuse_repetitions(names: list[Name]) -> None:
    """Names must be unique."""
    if twice := repeated(names):
        raise ValueError(f"names must be unique, but these occur more than once: {listed(twice)}.")


def name_array(names: list[Name]) -> np.ndarray:
    """Return strings and integers as such, anything else as objects; read-only."""
    array = np.empty(len(names), dtype=object)
    array[:] = names
    if all(type(name) is str for name in names):
        array = array.astype(str)
    elif all(type(name) is int and abs(name) < 2**63 for name in names):
        array = array.astype(np.int64)
    array.setflags(write=False)
    return array


def checked_parent(parent: Any, n_names: int) -> np.ndarray:
    """Return the parent of each node as a read-only array, or say why it is not numbered breadth first."""
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


def _is_missing(value: Any) -> bool:
    try:
        return value is None or (isinstance(value, Hashable) and bool(value != value))
    except TypeError:  # pandas.NA refuses to say
        return True


def _is_blank(part: Any) -> bool:
    return _is_missing(part) or part == ""


def _cycle_message(parents: Parents, name: Name) -> str:
    order: dict[Name, int] = {}
    while name not in order:
        order[name] = len(order)
        name = parents[name]
    cycle = [*list(order)[order[name] :], name]
    shown = [repr(entry) for entry in cycle]
    if len(shown) > 7:
        shown = [*shown[:4], "…", *shown[-2:]]
    return (
        f"The taxonomy has a cycle of {len(cycle) - 1} nodes, from child to parent: {' → '.join(shown)}. "
        "Remove one of these edges."
    )


def _short(value: Any) -> str:
    return f"{type(value).__name__} {reprlib.repr(value)}"
