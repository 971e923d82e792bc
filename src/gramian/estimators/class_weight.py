"""Weights of the classes as weights of their examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from gramian._core.validation import check_sample_weight


def of_examples(class_weight: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray | None:
    """Return the weight of each example, or None if ``class_weight`` is None.

    Parameters
    ----------
    class_weight : mapping of class to weight, "balanced" or None
        Classes that are not listed have the weight 1; "balanced" makes all classes weigh the same.
    classes : ndarray of shape (n_classes,)
    codes : ndarray of int of shape (n,)
        Number of the class of each example.
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
        values = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    except ValueError as error:
        raise ValueError(f"class_weight does not fit the classes in y: {error}") from None
    return check_sample_weight(values[codes], np.empty(len(codes)), name="class_weight")
