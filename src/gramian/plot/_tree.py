"""What displays of taxonomies share, and where the nodes go in a figure.

Depth first, each node takes as many places as there are leaves below it. With nodes numbered
breadth first, two sweeps over them suffice, without recursion: from the last to the first to count,
from the first to the last to hand out the places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian.labels import Taxonomy, as_taxonomy

LABELLED_LEAVES = 40  # above, names are too many to be read
_WIDTH_OF_LETTER = 0.56  # in units of the font size, on average


def spans(taxonomy: Taxonomy, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First place and number of places of each node, depth first.

    ``shown`` (n_nodes,) says which nodes have a place of their own, before those below them.
    """
    size = shown.astype(np.int64)
    for node in range(taxonomy.n_nodes - 1, 0, -1):
        size[taxonomy.parent[node]] += size[node]
    first = np.zeros(taxonomy.n_nodes, dtype=np.int64)
    free = shown.astype(np.int64)  # places before the next child, from the first place on
    for node in range(1, taxonomy.n_nodes):
        parent = taxonomy.parent[node]
        first[node] = first[parent] + free[parent]
        free[parent] += size[node]
    return first, size


def depth_first(taxonomy: Taxonomy, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How to sort nodes depth first, and first place and number of places of each node of the tree."""
    shown = np.zeros(taxonomy.n_nodes, dtype=bool)
    shown[nodes] = True
    first, size = spans(taxonomy, shown)
    return np.argsort(first[nodes]), first, size


def box(row: float, column: float, height: float, width: float) -> list[tuple[float, float]]:
    """Corners of a rectangle of cells, closed."""
    top, left = row - 0.5, column - 0.5
    bottom, right = top + height, left + width
    return [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]


def heights(taxonomy: Taxonomy) -> np.ndarray:
    """Place of each node across the tree: leaves 0, 1, …; parents in the middle of their children."""
    place = np.where(taxonomy.is_leaf, spans(taxonomy, taxonomy.is_leaf)[0], 0.0)
    low = np.where(taxonomy.is_leaf, place, np.inf)
    high = np.where(taxonomy.is_leaf, place, -np.inf)
    for node in range(taxonomy.n_nodes - 1, -1, -1):
        place[node] = (low[node] + high[node]) / 2
        if node:
            parent = taxonomy.parent[node]
            low[parent] = min(low[parent], place[node])
            high[parent] = max(high[parent], place[node])
    return place


def taxonomy_of(estimator: Any, taxonomy: Any) -> Taxonomy:
    """Return the taxonomy that was given, or that of the fitted estimator."""
    check_is_fitted(estimator)
    if taxonomy is None:
        taxonomy = getattr(estimator, "taxonomy_", None)
    if taxonomy is None:
        raise ValueError(
            f"taxonomy must be given: {type(estimator).__name__} has no taxonomy_. "
            "Only classifiers with hierarchy=... have one."
        )
    return as_taxonomy(taxonomy)


def short_names(taxonomy: Taxonomy) -> list[str]:
    """Names without the name of the parent in front, as in "a/b/c" below "a/b"."""
    names = [str(name) for name in taxonomy.names]
    short = list(names)
    for node in range(1, taxonomy.n_nodes):
        above, name = names[taxonomy.parent[node]], names[node]
        if name.startswith(above) and not name[len(above) :][:1].isalnum():
            short[node] = name[len(above) + 1 :] or name
    return short


def fitted(text: str, points: float, font_size: float) -> str:
    """The text, cut to a width; empty if fewer than three letters fit."""
    letters = int(points / (_WIDTH_OF_LETTER * font_size))
    if len(text) <= letters:
        return text
    return text[: letters - 1] + "…" if letters >= 3 else ""


def width_of(text: str, font_size: float) -> float:
    """About how wide the text is, in points."""
    return _WIDTH_OF_LETTER * font_size * len(text)
