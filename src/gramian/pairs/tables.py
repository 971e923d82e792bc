"""What pairs are made of, checked: tables of objects, row numbers and names. Errors name the argument and the fix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gramian._core import tables


class Side(NamedTuple):
    """One end of all pairs: its objects, their names, and the row of each pair."""

    table: Any
    ids: np.ndarray | None
    index: np.ndarray

    @property
    def size(self) -> int:
        """Number of objects, also those in no pair."""
        return int(self.table.shape[0])

    def only(self, seen: np.ndarray) -> Side:
        """The same end with a table of the objects that were seen."""
        index = (np.cumsum(seen) - 1)[self.index]
        if self.table is None or seen.all():
            return self._replace(index=index)
        return Side(self.table[seen], None if self.ids is None else self.ids[seen], index)

    def copied(self) -> Side:
        """The same end with a table of its own."""
        return self if self.table is None else self._replace(table=self.table.copy())

    def in_format_of(self, other: Side) -> Side:
        """The same end with a table that is sparse or dense as another one."""
        if self.table is None or sp.issparse(self.table) == sp.issparse(other.table):
            return self
        sparse = sp.issparse(self.table)
        return self._replace(table=self.table.toarray() if sparse else sp.csr_array(self.table))


def checked_table(name: str, table: Any) -> Any:
    """Return a finite table as float32 or float64, C-contiguous or csr_array."""
    return tables.checked_table(name, table, "objects", "Encode text first.")


def checked_index(name: str, index: Any, table: str, n_objects: int) -> np.ndarray:
    """Return row numbers of a table as a new int64 array of shape (n,)."""
    return tables.checked_whole_numbers(
        name,
        index,
        n_objects - 1,
        "(n,), one row number for each pair",
        f"row numbers of {table}, which has {n_objects} rows (Pairs.from_frame looks up ids)",
    )


def checked_ids(side: str, ids: Any, table: Any, n_objects: int) -> np.ndarray | None:
    """Return unique ids as an array: of str, of int64, or of objects if they are mixed.

    By default they are the index of a pandas DataFrame, unless it only counts the rows.
    """
    if ids is None and hasattr(table, "iloc") and type(table.index).__name__ != "RangeIndex":
        ids = table.index
    if ids is None:
        return None
    name = f"{side}_ids"
    listed = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    listed = [value.item() if isinstance(value, np.generic) else value for value in listed]
    if len(listed) != n_objects:
        raise ValueError(
            f"{name} must have one id for each of the {n_objects} rows of {side}, got {len(listed)}."
        )
    rows_of_ids(name, listed)
    if all(isinstance(value, str) for value in listed):
        return np.array(listed, dtype=str)
    if all(isinstance(value, int) and abs(value) < 2**63 for value in listed):
        return np.array(listed, dtype=np.int64)
    return np.fromiter(listed, dtype=object)  # np.array would make a table of tuples


def rows_of_ids(name: str, ids: list) -> dict[Any, int]:
    """Return the row of each id; an id that is missing or occurs twice is an error."""
    rows: dict[Any, int] = {}
    for row, value in enumerate(ids):
        if value is None or value != value:
            raise ValueError(f"{name} must name every object, got {value!r} at row {row}.")
        if rows.setdefault(value, row) != row:
            raise ValueError(
                f"{name} must be unique, but {value!r} is at rows {rows[value]} and {row}. "
                "Keep one row for each object."
            )
    return rows
