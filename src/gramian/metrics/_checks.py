"""Checks of what the metrics are given. Errors name the argument."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from gramian._core.arrays import to_numpy
from gramian._core.validation import check_sample_weight, check_shape
from gramian.labels import Taxonomy, as_taxonomy


def check_labels(name: str, values: Any, n_samples: int | None = None) -> np.ndarray:
    """Return labels of shape (n_samples,), at least one."""
    y = to_numpy(values)
    check_shape(name, y, (n_samples or "n_samples",), "one for each example, at least one")
    return y


def check_values(name: str, values: Any, n_samples: int | None = None) -> np.ndarray:
    """Return finite numbers of shape (n_samples,) in float64."""
    y = check_numbers(name, check_labels(name, values, n_samples))
    bad = np.flatnonzero(~np.isfinite(y))
    if len(bad):
        raise ValueError(f"{name} must be finite, got {y[bad[0]]} at position {bad[0]}.")
    return y


def check_nodes(
    name: str, values: Any, taxonomy: Taxonomy, n_samples: int | None = None
) -> np.ndarray:
    """Return the numbers of the nodes that are named, of shape (n_samples,)."""
    y = check_labels(name, values, n_samples)
    try:
        return taxonomy.index(y)
    except ValueError as error:
        raise ValueError(f"{name} must hold names of nodes of the taxonomy. {error}") from None


def check_tree_labels(
    y_true: Any, y_pred: Any, taxonomy: Any, sample_weight: Any
) -> tuple[Taxonomy, np.ndarray, np.ndarray, np.ndarray]:
    """Return the taxonomy, the numbers of the true and predicted nodes, and the weights."""
    tree = as_taxonomy(taxonomy)
    true = check_nodes("y_true", y_true, tree)
    pred = check_nodes("y_pred", y_pred, tree, len(true))
    return tree, true, pred, check_weights(sample_weight, len(true))


def check_numbers(name: str, values: Any) -> np.ndarray:
    """Return real numbers in float64."""
    array = to_numpy(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got dtype {array.dtype}.")
    return array.astype(np.float64)


def check_probabilities(
    y: np.ndarray, proba: Any, labels: Any, names: tuple[str, str] = ("proba", "labels")
) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of shape (n_samples, n_classes) and the class of each column.

    By default the classes are those in ``y``, sorted. ``names`` are those of the two arguments in errors.
    """
    name, n = names[0], len(y)
    P = check_numbers(name, proba)
    shape = (n, "n_classes") if P.ndim == 2 else (n,)
    check_shape(name, P, shape, f"or ({n}, n_classes), one row for each label in y_true")
    if not np.all(np.isfinite(P)) or P.min(initial=0.0) < 0 or P.max(initial=1.0) > 1 + 1e-6:
        raise ValueError(f"{name} must lie between 0 and 1.")
    if P.ndim == 1 or P.shape[1] == 1:
        P = np.column_stack([1 - P.reshape(-1), P.reshape(-1)])
    sums = P.sum(axis=1)
    if np.max(np.abs(sums - 1)) > 1e-3:
        worst = sums[np.argmax(np.abs(sums - 1))]
        raise ValueError(f"Each row of {name} must add up to 1; one adds up to {worst:.4g}.")
    return P, _columns(y, labels, P.shape[1], names)


def _columns(y: np.ndarray, labels: Any, n_classes: int, names: tuple[str, str]) -> np.ndarray:
    """Return the class of each column of the probabilities; by default those in ``y``, sorted."""
    proba, name = names
    present = np.unique(y)
    columns = present if labels is None else to_numpy(labels)
    if labels is None and len(present) != n_classes:
        raise ValueError(
            f"y_true holds {len(present)} classes and {proba} has {n_classes} columns: "
            f"say with {name} which class each column is for."
        )
    check_shape(name, columns, (n_classes,), f"one for each column of {proba}")
    if len(np.unique(columns)) != n_classes:
        raise ValueError(f"{name} must not hold the same class twice.")
    strange = present[~np.isin(present, columns)]
    if len(strange):
        raise ValueError(f"y_true holds {strange[0]!r}, which is not among {name}.")
    return columns


def check_weights(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return weights of shape (n_samples,); ones by default."""
    weights = check_sample_weight(sample_weight, np.empty(n_samples))
    return np.ones(n_samples) if weights is None else weights


def check_sequence(name: str, labels: Any) -> np.ndarray:
    """Return the labels of one sequence as an object array, in which None, words and tuples stay what they are."""
    if isinstance(labels, list | tuple):
        array = np.fromiter(labels, dtype=object)
    else:
        array = to_numpy(labels).astype(object)
    if array.ndim != 1 or any(isinstance(label, list | np.ndarray) for label in array):
        raise ValueError(
            f"{name} must be a one-dimensional array of labels, one for each position of a sequence; "
            f"got {reprlib.repr(labels)}."
        )
    return array


def check_label_sequences(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return true and predicted labels of all positions, of shape (n_positions,), and the lengths of the sequences."""
    true, pred = _sequences("y_true", y_true), _sequences("y_pred", y_pred)
    if not true:
        raise ValueError("y_true must hold the labels of at least one sequence; it is empty.")
    if len(pred) != len(true):
        raise ValueError(
            f"y_pred must hold {len(true)} sequences, as many as y_true; got {len(pred)}."
        )
    for i, (expected, got) in enumerate(zip(true, pred, strict=True)):
        if got.size != expected.size:
            raise ValueError(
                f"y_pred[{i}] must hold {expected.size} labels, one for each in y_true[{i}]; got {got.size}."
            )
    return np.concatenate(true), np.concatenate(pred), [labels.size for labels in true]


def _sequences(name: str, values: Any) -> list[np.ndarray]:
    try:
        sequences = list(values)
    except TypeError:
        raise TypeError(
            f"{name} must be a list with one array of labels for each sequence, got {reprlib.repr(values)}."
        ) from None
    return [check_sequence(f"{name}[{i}]", labels) for i, labels in enumerate(sequences)]
