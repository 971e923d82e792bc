"""Pairs from tables with one row for each pair: the features of both objects side by side, or their ids."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import to_numpy
from gramian._core.tables import is_frame
from gramian.pairs.matching import distinct_rows
from gramian.pairs.tables import checked_table, rows_of_ids


def sides_of_wide(X: Any, left_columns: Any, right_columns: Any) -> tuple[Any, Any, Any, Any]:
    """Return the tables of left and of right objects and their index arrays; see `Pairs.from_wide`."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(f"X must have shape (n, d), one row for each pair; got {tuple(X.shape)}.")
    names = list(X.columns) if is_frame(X) else None
    tables, indices = [], []
    for columns in split_columns(left_columns, right_columns, int(X.shape[1]), names):
        table = checked_table("X", _taken(X, columns))
        if len(columns) == 0:
            table = np.ones((int(X.shape[0]), 1), dtype=table.dtype)
        first, inverse = distinct_rows(table)
        tables.append(table[first])
        indices.append(inverse)
    return *tables, *indices


def split_columns(
    left_columns: Any, right_columns: Any, n_columns: int, names: list | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the columns of left and right objects in a wide table; see `Pairs.from_wide`."""
    everything = np.arange(n_columns)
    left = _positions("left_columns", left_columns, n_columns, names)
    right = _positions("right_columns", right_columns, n_columns, names)
    if left is None and right is None and n_columns % 2:
        raise ValueError(
            f"X has {n_columns} columns, an odd number, so that its first half cannot be the left object: say which "
            "columns are, by left_columns or right_columns."
        )
    if left is None:
        half = everything[: n_columns // 2]
        left = half if right is None else np.setdiff1d(everything, right)
    return left, np.setdiff1d(everything, left) if right is None else right


def _positions(name: str, columns: Any, n_columns: int, names: list | None) -> np.ndarray | None:
    """Positions of the columns that are meant, or None."""
    if columns is None:
        return None
    if isinstance(columns, slice):
        return np.arange(n_columns)[columns]
    if not isinstance(columns, Iterable):
        raise TypeError(
            f"{name} must be a list of columns (names, numbers or a mask) or a slice, got {columns!r}."
        )
    listed = [columns] if isinstance(columns, str) else list(columns)
    if listed and all(isinstance(value, (bool, np.bool_)) for value in listed):
        if len(listed) != n_columns:
            raise ValueError(
                f"{name} as a mask must have {n_columns} entries, one for each column of X; got {len(listed)}."
            )
        return np.flatnonzero(listed)
    positions = []
    for value in listed:
        if names is not None and value in names:
            value = names.index(value)
        elif not isinstance(value, (int, np.integer)) or isinstance(value, bool):
            known = "X is not a DataFrame" if names is None else f"X has {reprlib.repr(names)}"
            raise ValueError(f"{name} holds {value!r}, which is no column: {known}.")
        elif not -n_columns <= value < n_columns:
            raise ValueError(f"{name} holds {value}, but X has {n_columns} columns.")
        positions.append(int(value) % n_columns)
    return np.array(positions, dtype=np.int64)


def _taken(X: Any, columns: np.ndarray) -> Any:
    """Some columns of a table of any kind."""
    if hasattr(X, "iloc"):
        return X.iloc[:, columns]
    if is_frame(X):
        return X[:, columns.tolist()]
    return (sp.csr_array(X) if sp.issparse(X) else to_numpy(X))[:, columns]


def looked_up(
    side: str, frame: Any, column: Any, table_name: str, table: Any
) -> tuple[list, np.ndarray]:
    """The ids of a table, and the row in it of each id in a column of the frame; see `Pairs.from_frame`."""
    if not hasattr(table, "iloc"):
        raise TypeError(
            f"{table_name} must be a pandas DataFrame with the ids as its index, got {type(table).__name__}. "
            "With row numbers instead of ids, use Pairs(left, right, left_index, right_index)."
        )
    if not is_frame(frame):
        raise TypeError(
            f"frame must be a DataFrame with one row for each pair, got {type(frame).__name__}."
        )
    if column not in list(frame.columns):
        raise ValueError(
            f"{side}={column!r} must be a column of frame, which has {reprlib.repr(list(frame.columns))}."
        )
    ids = table.index.tolist()
    rows = rows_of_ids(f"the index of {table_name}", ids)
    wanted = frame[column].to_list()
    index = np.array([rows.get(value, -1) for value in wanted], dtype=np.int64)
    missing = np.flatnonzero(index < 0)
    if len(missing):
        first = wanted[missing[0]]
        who = "1 pair names" if len(missing) == 1 else f"{len(missing)} pairs name"
        kinds = ""
        if ids and type(first) is not type(ids[0]):
            kinds = (
                f" Its type is {type(first).__name__}, that of the index {type(ids[0]).__name__}."
            )
        raise ValueError(
            f"{who} a {side} object that {table_name} does not have, first: {first!r} (row {missing[0]}).{kinds} "
            f"Add these objects to {table_name}, or drop the pairs: frame[frame[{column!r}].isin({table_name}.index)]."
        )
    return ids, index
