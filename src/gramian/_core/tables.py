"""Tables of numbers that containers are made of, checked. Errors name the argument and the fix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import given_array


def is_frame(values: Any) -> bool:
    """Whether the values are a DataFrame, of pandas or of another library."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def checked_table(name: str, table: Any, rows: str, encoding: str) -> Any:
    """Return a finite table as float32 or float64, C-contiguous or csr_array; copied only if it was not so.

    Parameters
    ----------
    name : str
        Of the argument, for messages.
    table : array, DataFrame or sparse array of shape (n, d)
    rows : str
        What rows are, for messages.
    encoding : str
        What to do about text, for messages.
    """
    table = sp.csr_array(table) if sp.issparse(table) else given_array(name, table)
    if table.dtype.kind == "O":
        try:
            table = table.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"{name} must hold numbers: {error}. {encoding}") from None
    if table.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {table.dtype}. {encoding}")
    if table.ndim != 2:
        raise ValueError(
            f"{name} must have shape ({rows}, features), got {table.shape}. "
            "Reshape one feature by values.reshape(-1, 1)."
        )
    dtype = np.float32 if table.dtype == np.float32 else np.float64
    if sp.issparse(table):
        table = sp.csr_array(table, dtype=dtype)
        if not table.has_canonical_format:
            table = table.copy()  # the caller's array stays as it is
            table.sum_duplicates()
        bad = np.unique(table.tocoo().row[~np.isfinite(table.data)])
    else:
        table = np.ascontiguousarray(table, dtype=dtype)
        bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        raise ValueError(
            f"{name} must be finite, but row {bad[0]} holds NaN or infinity ({len(bad)} such rows). "
            "Impute or drop them first."
        )
    return table


def checked_whole_numbers(
    name: str, values: Any, most: int, shape: str, meaning: str
) -> np.ndarray:
    """Return whole numbers from 0 to ``most`` as a new int64 array.

    Parameters
    ----------
    name : str
        Of the argument, for messages.
    values : array of shape (n,)
    most : int
    shape : str
        The shape that is asked for and what a number belongs to, for messages.
    meaning : str
        What the numbers count, for messages.
    """
    numbers = given_array(name, values)
    if numbers.ndim != 1:
        raise ValueError(f"{name} must have shape {shape}; got {numbers.shape}.")
    if numbers.dtype.kind not in "iu":
        for position, value in enumerate(numbers.tolist()):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
                raise TypeError(
                    f"{name} must hold integers; got {value!r} at position {position}. "
                    f"These are {meaning}."
                )
    bad = np.flatnonzero((numbers < 0) | (numbers > most))
    if len(bad):
        raise ValueError(
            f"{name} must lie between 0 and {most}; got {numbers[bad[0]]} at position {bad[0]}. "
            f"These are {meaning}."
        )
    return np.array(numbers, dtype=np.int64)
