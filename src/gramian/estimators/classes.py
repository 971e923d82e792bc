"""Classes that y holds or a tree has, and their weights as weights of the examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from gramian._core.arrays import Array, is_numpy, namespace, to_numpy
from gramian._core.validation import check_sample_weight
from gramian.labels import Taxonomy, as_taxonomy


def distinct(y: Array, least: int = 2) -> tuple[Array, Array]:
    """Return the classes in y, sorted, and the number of each example's class; refuse fewer than ``least``."""
    try:
        check_classification_targets(y)
    except ValueError:
        if not (is_numpy(y) and y.dtype == object):
            raise
        kinds = sorted({type(label).__name__ for label in y.flat})
        raise ValueError(
            f"Unknown label type: y must hold strings, or whole numbers in an array of numbers; got objects of type "
            f"{', '.join(kinds)}. Use y.astype(str) or y.astype(int), after examples without a label are taken out."
        ) from None
    if is_numpy(y):
        classes, codes = np.unique(y, return_inverse=True)
        codes = codes.reshape(-1)
    else:
        classes, codes = namespace(y).unique_inverse(y)
    if classes.shape[0] < least:
        only = to_numpy(classes).item()
        raise ValueError(f"y must hold at least two classes, got one class: {only!r}.")
    return classes, codes


def class_tree(hierarchy: Any) -> tuple[Taxonomy, np.ndarray, np.ndarray]:
    """Return a taxonomy, the classes that its leaves are, sorted, and the place of each among the leaves."""
    taxonomy = as_taxonomy(hierarchy)
    names = taxonomy.leaf_names
    if names.dtype == object:
        raise ValueError(
            f"hierarchy must name its leaves by strings or by integers, not both; got {names.tolist()[:5]!r}."
        )
    if names.size < 2:
        raise ValueError(
            f"hierarchy must have at least two leaves, the classes; got one class: {names.item()!r}."
        )
    return taxonomy, *np.unique(names, return_index=True)


def of_examples(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray | None
) -> np.ndarray | None:
    """Return the weight of the class of each example, or None if ``class_weight`` is None.

    Parameters
    ----------
    class_weight : mapping of class to weight, "balanced" or None
        Classes that are not listed have the weight 1; "balanced" makes all classes weigh the same.
    classes : ndarray of shape (n_classes,)
    codes : ndarray of int of shape (n,)
        Number of the class of each example.
    weights : ndarray of shape (n,) or None
        Weights of the examples, which "balanced" counts: a weight of two is a row twice.
    """
    if class_weight is None:
        return None
    if not isinstance(class_weight, Mapping) and class_weight != "balanced":
        raise ValueError(
            f"class_weight must be None, 'balanced' or a dict of class: weight, got {class_weight!r}."
        )
    if isinstance(class_weight, Mapping):
        given = [*class_weight.values(), 1.0]  # and one more, because those given may all be zero
        check_sample_weight(given, np.empty(len(given)), name="class_weight")
    try:
        values = compute_class_weight(
            class_weight, classes=classes, y=classes[codes], sample_weight=weights
        )
    except ValueError as error:
        raise ValueError(f"class_weight does not fit the classes in y: {error}") from None
    return check_sample_weight(values[codes], np.empty(len(codes)), name="class_weight")
