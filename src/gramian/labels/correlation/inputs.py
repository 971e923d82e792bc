"""Reading what label correlations are made from: labels in 0/1 or ±1, weights, symmetric matrices, names."""

from __future__ import annotations

import contextlib
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.validation import (
    check_present,
    check_sample_weight,
    check_shape,
    listed,
    repeated,
)


def indicators(name: str, values: Any, shape: tuple[str, str]) -> Any:
    """Return labels in 0/1 or ±1 as 0/1 in float64, sparse if they are sparse."""
    if sp.issparse(values):
        csr = sp.csr_array(values)
        csr.sum_duplicates()
        array = csr.toarray() if csr.dtype.kind in "fi" and np.any(csr.data < 0) else csr
    else:
        array = as_numbers(name, values)
    check_shape(name, array, shape, "with at least one row and one column")
    entries: Any = array.data if sp.issparse(array) else array
    positive, negative, zero = entries == 1, entries == -1, entries == 0
    if not np.all(positive | zero) and not np.all(positive | negative):
        bad = entries[~(positive | negative | zero)]
        got = f"{bad.flat[0]!s}" if bad.size else "0 and -1 together"
        raise ValueError(
            f"{name} must hold 0/1 or ±1, got {got}. Threshold it first, for instance {name} > 0.5."
        )
    return array.astype(np.float64) if sp.issparse(array) else positive.astype(np.float64)


def normalized_weights(name: str, values: Any, n: int, unit: str) -> np.ndarray:
    """Return weights that sum to one, one for each ``unit``; equal ones by default."""
    weights = check_sample_weight(values, np.ones(n), name=name, unit=unit)
    return np.full(n, 1.0 / n) if weights is None else weights / weights.sum()


def in_class_order(priors: Any, classes: list[Any] | None, known: Any = None) -> Any:
    """Return priors that are named by classes in the order of the classes; others that are known do not count."""
    if classes is not None and hasattr(priors, "index") and hasattr(priors, "to_dict"):  # a Series
        priors = priors.to_dict()
    if not isinstance(priors, Mapping):
        return priors
    if classes is None:
        raise ValueError(
            "priors are named by classes, but signatures are not: pass an array with one number for each row, or "
            "signatures as a dict or DataFrame."
        )
    check_present("priors must name every class", classes, priors)
    check_present("priors must name classes with a signature", priors, known or set(classes))
    return [priors[name] for name in classes]


def symmetric_array(
    argument: str, matrix: Any, names: Any = None, unit: str = "label"
) -> np.ndarray:
    """Return a finite symmetric matrix as a new float64 array; a DataFrame in the order of names.

    ``unit`` is what errors call the things that have rows and columns.
    """
    values = as_numbers(argument, _in_order(argument, matrix, names, unit))
    check_shape(argument, values, (f"n_{unit}s",) * 2, f"one row and column for each {unit}")
    array = values.astype(np.float64)
    if not np.all(np.isfinite(array)):
        i, j = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(
            f"{argument} must be finite, got {array[i, j]} for {unit}s {name_of(i, names)} and {name_of(j, names)}. "
            "Use 0 where nothing is known."
        )
    # half of the digits: the matrix may come from single precision, or from a text file
    rounding = np.finfo(values.dtype if values.dtype.kind == "f" else np.float64).eps ** 0.5
    difference = np.abs(array - array.T)
    if difference.max() > rounding * np.abs(array).max():
        i, j = np.unravel_index(int(difference.argmax()), difference.shape)
        raise ValueError(
            f"{argument} must be symmetric, but entries for {unit}s {name_of(i, names)} and {name_of(j, names)} are "
            f"{array[i, j]:.6g} and {array[j, i]:.6g}, a difference of {difference[i, j]:.3g}. Pass (A + A.T) / 2 of "
            "this matrix A if both mean the same."
        )
    return (array + array.T) / 2


def as_numbers(argument: str, matrix: Any) -> np.ndarray:
    """Return a matrix of real numbers as a dense array; text, complex numbers and objects are refused."""
    try:
        array = matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
    except ValueError:  # lists of several lengths
        array = np.empty(0, dtype=object)
    if array.dtype == object and array.size:  # of a DataFrame with columns of several types
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{argument} must be a matrix of numbers with rows of equal length, got {reprlib.repr(matrix)}."
        )
    return array


def _in_order(argument: str, matrix: Any, names: Any, unit: str) -> Any:
    """Return the values of a DataFrame with rows and columns in the order of names; others as they are."""
    if not hasattr(matrix, "columns"):
        return matrix
    columns = list(matrix.columns)
    index = list(getattr(matrix, "index", columns))  # a DataFrame of polars names its columns only
    values = np.asarray(matrix)
    wanted = index if names is None else list(names)
    numbered = columns == index == list(range(len(columns)))
    if numbered and not set(wanted) <= set(columns):
        return values
    places = []
    for place, labels in (("index", index), ("columns", columns)):
        if twice := repeated(labels):
            raise ValueError(f"{argument} names {unit}s twice in its {place}: {listed(twice)}.")
        known = {name: k for k, name in enumerate(labels)}
        places.append(known)
        demand = f"{argument} must name every {unit} in its {place}, or be an array in their order"
        check_present(demand, dict.fromkeys([*wanted, *index]), known)
    return values[np.ix_(*([place[name] for name in wanted] for place in places))]


def name_of(position: Any, names: Any) -> str:
    """Return what errors call a label: its name, or its number."""
    return str(int(position)) if names is None else repr(list(names)[int(position)])
