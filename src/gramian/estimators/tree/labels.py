"""Labels that are nodes of a tree: reading them, their weights, their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.estimators.classes import class_tree, distinct, of_examples
from gramian.estimators.examples import TrainingData
from gramian.estimators.fitting import Targets
from gramian.labels import Taxonomy


@dataclass(frozen=True)
class TreeLabels(Targets):
    """Names of nodes of a tree as targets; without a hierarchy all of them are below one root."""

    hierarchy: Any

    def read(self, data: TrainingData) -> tuple[Taxonomy, np.ndarray, np.ndarray]:
        return read_labels(self.hierarchy, data.y)


def read_labels(hierarchy: Any, y: np.ndarray) -> tuple[Taxonomy, np.ndarray, np.ndarray]:
    """Return the taxonomy, the classes, and the node of each example.

    Parameters
    ----------
    hierarchy : what `gramian.labels.as_taxonomy` takes, or None
        None has all labels below one root.
    y : ndarray of shape (n,)
        Names of nodes, not the root.

    Returns
    -------
    taxonomy : Taxonomy
    classes : ndarray of shape (n_classes,)
        Names of the leaves, sorted.
    nodes : int ndarray of shape (n,)
    """
    if hierarchy is None:
        classes, codes = distinct(y)
        return _flat_tree(classes), classes, codes + 1
    taxonomy, classes, _ = class_tree(hierarchy)
    return taxonomy, classes, _nodes_of(taxonomy, y)


def label_weights(
    class_weight: Any, taxonomy: Taxonomy, nodes: np.ndarray, weights: np.ndarray | None
) -> np.ndarray | None:
    """Return the weight of each example by its label; weights of labels that y does not hold are ignored."""
    numbers, codes = np.unique(nodes, return_inverse=True)
    if isinstance(class_weight, Mapping):
        try:
            listed = taxonomy.index(list(class_weight)).tolist()
        except ValueError as error:
            raise ValueError(f"class_weight must name labels. {error}") from None
        given = dict(zip(listed, class_weight.values(), strict=True))
        class_weight = {number: given.get(number, 1.0) for number in numbers.tolist()}
    return of_examples(class_weight, numbers, codes, weights)


def node_names(taxonomy: Taxonomy, nodes: np.ndarray) -> np.ndarray:
    """Return names of nodes; not as objects if a root of another type is the only reason for that."""
    names = taxonomy.names[nodes]
    kinds = {type(name) for name in names.tolist()}
    return np.array(names.tolist()) if len(kinds) == 1 else names


def _flat_tree(classes: np.ndarray) -> Taxonomy:
    """All classes below one root, whose name is none of them."""
    names, root = classes.tolist(), "root"
    while root in names:
        root = f"({root})"
    return Taxonomy([root, *names], np.array([-1, *[0] * len(names)]))


def _nodes_of(taxonomy: Taxonomy, y: np.ndarray) -> np.ndarray:
    """The node of each label."""
    try:
        nodes = taxonomy.index(y)
    except ValueError as error:
        raise ValueError(f"y must hold names of nodes of the hierarchy. {error}") from None
    if not nodes.all():
        raise ValueError(
            f"y must not hold the root of the hierarchy, {taxonomy.names[0]!r}: every class is below it, so that it "
            f"says nothing. Leave out the {np.sum(nodes == 0)} examples that have this label."
        )
    return nodes
