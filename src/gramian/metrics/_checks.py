"""Checks of what the metrics are given. Errors name the argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._core.arrays import to_numpy
from gramian._core.validation import check_sample_weight
from gramian.labels import Taxonomy


def as_numpy(values: Any) -> np.ndarray:
    """Return the values as a NumPy array, from any array library or from lists."""
    return to_numpy(values) if hasattr(values, "__array_namespace__") else np.asarray(values)


def check_labels(name: str, values: Any, n_samples: int | None = None) -> np.ndarray:
    """Return labels of shape (n_samples,), at least one."""
    y = as_numpy(values)
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"{name} must have shape (n_samples,) with n_samples >= 1, got {y.shape}.")
    if n_samples is not None and len(y) != n_samples:
        raise ValueError(
            f"{name} must have shape ({n_samples},), one for each label in y_true; got {y.shape}."
        )
    return y


def check_numbers(name: str, values: Any, n_samples: int | None = None) -> np.ndarray:
    """Return finite numbers of shape (n_samples,) in float64."""
    y = check_labels(name, values, n_samples)
    if y.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got dtype {y.dtype}.")
    y = y.astype(np.float64)
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


def check_probabilities(name: str, values: Any, n_samples: int) -> np.ndarray:
    """Return probabilities of shape (n_samples, n_classes), float64."""
    P = as_numpy(values)
    if P.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got dtype {P.dtype}.")
    P = P.astype(np.float64)
    if P.ndim not in (1, 2) or len(P) != n_samples:
        raise ValueError(
            f"{name} must have shape ({n_samples}, n_classes) or ({n_samples},), "
            f"one row for each label in y_true; got {P.shape}."
        )
    if not np.all(np.isfinite(P)) or P.min(initial=0.0) < 0 or P.max(initial=1.0) > 1 + 1e-6:
        raise ValueError(f"{name} must lie between 0 and 1.")
    if P.ndim == 1 or P.shape[1] == 1:
        P = np.column_stack([1 - P.reshape(-1), P.reshape(-1)])
    sums = P.sum(axis=1)
    if np.max(np.abs(sums - 1)) > 1e-3:
        worst = sums[np.argmax(np.abs(sums - 1))]
        raise ValueError(f"Each row of {name} must add up to 1; one adds up to {worst:.4g}.")
    return P


def check_columns(
    name: str, values: Any, y: np.ndarray, n_classes: int, *, proba: str
) -> np.ndarray:
    """Return the class of each column of the probabilities; by default those in ``y``, sorted."""
    present = np.unique(y)
    if values is None:
        if len(present) != n_classes:
            raise ValueError(
                f"y_true holds {len(present)} classes and {proba} has {n_classes} columns: "
                f"say with {name} which class each column is for."
            )
        return present
    columns = as_numpy(values)
    if columns.shape != (n_classes,):
        raise ValueError(
            f"{name} must have shape ({n_classes},), one for each column of {proba}; "
            f"got {columns.shape}."
        )
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
