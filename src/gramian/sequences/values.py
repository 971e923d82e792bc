"""Values and labels of positions: all in one array, or one array for each sequence."""

from __future__ import annotations

import reprlib
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import to_numpy


def object_vector(items: Any) -> np.ndarray:
    """Return the items as they are in an array with one axis; ``numpy.array`` would make tables of tuples."""
    return np.fromiter(items, dtype=object)


def is_sequence(values: Any) -> bool:
    """Whether the values are in order and can be counted; text is one label, and sets have no order."""
    return isinstance(values, (list, tuple)) or len(getattr(values, "shape", ())) == 1


def as_list(values: Any) -> list[Any]:
    """Return the entries of a list, tuple, array or Series, numbers of NumPy as those of Python."""
    if isinstance(values, (list, tuple)):
        return list(values)
    return values.to_list() if hasattr(values, "to_list") else values.tolist()


def of_positions(values: Any, n_positions: int) -> np.ndarray:
    """Return values of positions as an array whose first axis is that of the positions."""
    if sp.issparse(values):
        raise TypeError(
            "values must be a dense array, a list or a Series, got a sparse array. Use values.toarray()."
        )
    if hasattr(values, "to_numpy"):
        array = values.to_numpy()
    elif hasattr(values, "shape"):
        array = to_numpy(values)
    else:
        entries = list(values)
        numbers = all(isinstance(entry, (Real, np.bool_)) for entry in entries)
        array = np.asarray(entries) if numbers else object_vector(entries)
    if array.ndim == 0 or array.shape[0] != n_positions:
        raise ValueError(
            f"values must have {n_positions} entries along their first axis, one for each position; "
            f"got shape {array.shape}."
        )
    return array


def flat_labels(name: str, y: Any, lengths: np.ndarray) -> np.ndarray:
    """Return the labels of all positions, of shape (n_positions,); see `Sequences.flat`."""
    if not isinstance(y, (list, tuple)) and not hasattr(y, "tolist") and not hasattr(y, "to_list"):
        raise TypeError(
            f"{name} must be a list or an array with one sequence of labels for each sequence of X, "
            f"got {reprlib.repr(y)}."
        )
    sequences = as_list(y)
    hint = f"Labels that stand one after another are cut into sequences by X.split({name})."
    if len(sequences) != len(lengths):
        raise ValueError(
            f"{name} must have one sequence of labels for each of the {len(lengths)} sequences of X, "
            f"got {len(sequences)}." + (f" {hint}" if len(sequences) == lengths.sum() else "")
        )
    if np.all(lengths == 1) and not any(map(is_sequence, sequences)):
        return object_vector(sequences)
    labels: list[Any] = []
    for i, (sequence, length) in enumerate(zip(sequences, lengths.tolist(), strict=True)):
        if not is_sequence(sequence):
            raise TypeError(
                f"{name}[{i}] must be a list, tuple or array of {length} labels, got {reprlib.repr(sequence)}. {hint}"
            )
        if len(sequence) != length:
            raise ValueError(
                f"{name}[{i}] must have {length} labels, one for each position of X[{i}]; got {len(sequence)}."
            )
        labels += as_list(sequence)
    return object_vector(labels)
