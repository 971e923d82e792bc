"""What sequences are made of, checked: a table of positions and lengths. Errors name the argument and the fix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.tables import checked_table, checked_whole_numbers, is_frame
from gramian._core.validation import check_present, listed


def checked_positions(name: str, table: Any) -> Any:
    """Return a finite table as float32 or float64, C-contiguous or csr_array; copied only if it was not so."""
    return checked_table(name, table, "positions", "Encode text first, by SequenceVectorizer.")


def checked_lengths(lengths: Any, n_positions: int) -> np.ndarray:
    """Return the lengths of sequences that fill ``n_positions`` rows as a new int64 array."""
    checked = checked_whole_numbers(
        "lengths",
        lengths,
        n_positions,
        "(n_sequences,), one number for each sequence",
        f"numbers of positions, of which there are {n_positions} rows",
    )
    if checked.sum() != n_positions:
        raise ValueError(
            f"lengths must add up to {n_positions}, the number of rows of positions; they add up to {checked.sum()}. "
            "Give the length of every sequence, in the order of the rows."
        )
    return checked


def names_of(table: Any) -> np.ndarray | None:
    """Return the column names of a DataFrame if all of them are text, as scikit-learn does; otherwise None."""
    names = list(table.columns) if is_frame(table) else []
    if not names or not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def stacked(argument: str, tables: list[Any], names: list[Any]) -> tuple[Any, np.ndarray | None]:
    """Put checked tables below each other; return the table and the feature names if every part has them.

    Parts of different width, or with different feature names, are refused: their columns would not mean the same.
    """
    if not tables:
        raise ValueError(
            f"{argument} must not be empty: the number of features is not known without a sequence. "
            "Use Sequences(numpy.empty((0, d)), []) for no sequences of d features."
        )
    for i, table in enumerate(tables):
        if table.shape[1] != tables[0].shape[1]:
            raise ValueError(
                f"{argument} must have the same features: {argument}[0] has {tables[0].shape[1]} columns, "
                f"{argument}[{i}] has {table.shape[1]}."
            )
    known = [(i, own) for i, own in enumerate(names) if own is not None]
    for i, own in known:
        first, expected = known[0]
        if list(own) != list(expected):
            raise ValueError(
                f"{argument} must have the same features: those of {argument}[{first}] are {listed(expected)}, those "
                f"of {argument}[{i}] are {listed(own)}. Select the same columns in the same order."
            )
    sparse = any(map(sp.issparse, tables))
    table = sp.csr_array(sp.vstack(tables, format="csr")) if sparse else np.concatenate(tables)
    return table, names[0] if len(known) == len(names) else None


def lengths_of_groups(frame: Any, group: Any) -> list[int]:
    """Return how many consecutive rows of a DataFrame each group has; see `Sequences.from_frame`."""
    if not is_frame(frame):
        raise TypeError(
            f"frame must be a DataFrame with one row for each position, got {type(frame).__name__}."
        )
    check_present(
        f"group must be a column of frame, which has {listed(frame.columns)}",
        [group],
        list(frame.columns),
    )
    column = frame[group]
    missing = np.flatnonzero(column.isna() if hasattr(column, "isna") else column.is_null())
    if len(missing):
        raise ValueError(
            f"Column {group!r} of frame must name the sequence of every row, but it is missing in row {missing[0]} "
            f"({len(missing)} such rows). Fill it in or drop these rows."
        )
    starts: dict[Any, int] = {}
    lengths: list[int] = []
    previous: Any = None
    for row, value in enumerate(column.to_list()):
        if lengths and value == previous:
            lengths[-1] += 1
            continue
        if starts.setdefault(value, row) != row:
            pandas = f"sort_values({group!r}, kind='stable')"
            how = pandas if hasattr(frame, "iloc") else f"sort({group!r}, maintain_order=True)"
            raise ValueError(
                f"Rows of one group must be consecutive, but those of {group} = {value!r} begin at row "
                f"{starts[value]} and again at row {row}. Sort them first: frame.{how}."
            )
        lengths.append(1)
        previous = value
    return lengths


def feature_columns(frame: Any, group: Any, columns: Any) -> list[Any]:
    """Return the columns of a DataFrame that are features: those asked for, or all numbers but the group."""
    every = list(frame.columns)
    if columns is None:
        chosen = [name for name in every if name != group and _is_numeric(frame[name].dtype)]
        if not chosen:
            raise ValueError(
                f"frame must have a column of numbers besides {group!r}; it has {listed(every)}. "
                "Encode text first, by SequenceVectorizer."
            )
        return chosen
    chosen = [columns] if isinstance(columns, str) else list(columns)
    check_present(f"columns must be columns of frame, which has {listed(every)}", chosen, every)
    return chosen


def _is_numeric(dtype: Any) -> bool:
    """Whether a column of this type holds numbers or truth values; polars types have no letter for their kind."""
    if hasattr(dtype, "is_numeric"):
        return dtype.is_numeric() or str(dtype) == "Boolean"
    return dtype.kind in "fiub"
