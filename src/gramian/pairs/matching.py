"""Which objects are the same: equal rows of one table or of two, found by one dictionary.

Each row becomes a string of bytes whose order is that of the numbers (sign bit flipped, negative numbers inverted, most
significant byte first), so one dictionary finds equal rows and one sort of its keys numbers them as ``numpy.unique``
does: O(n d) for the keys and a sort of the distinct ones. A sparse row is the sequence of its
entries, where an entry at an earlier column weighs more: no zeros are written out, which ``numpy.unique`` would need.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import row_blocks
from gramian.pairs.tables import Side

KEY_BLOCK_BYTES = 1 << 24  # of keys that are made at once


def _row_keys(table: Any) -> Iterator[bytes]:
    """One string of bytes for each row; they compare as the rows of numbers do."""
    n_rows, n_columns = table.shape
    if not sp.issparse(table):
        for block in row_blocks(n_rows, n_columns * table.dtype.itemsize, KEY_BLOCK_BYTES):
            for row in _ordered_bytes(table[block]):
                yield row.tobytes()
        return
    # An entry is (2, −column, value) if positive and (0, column, value) if negative, and the row ends with 1
    # for "zeros from here on": at the first entry that differs, the larger row has the larger bytes.
    table = table.copy()
    table.sum_duplicates()
    table.eliminate_zeros()
    columns = table.indices.astype(np.int64)
    positive = table.data > 0
    entries = np.empty((table.nnz, 9 + table.dtype.itemsize), dtype=np.uint8)
    entries[:, 0] = np.where(positive, 2, 0)
    places = np.where(positive, n_columns - columns, columns).astype(">u8")
    entries[:, 1:9] = places.view(np.uint8).reshape(-1, 8)
    entries[:, 9:] = _ordered_bytes(table.data[:, None])
    for row in range(n_rows):
        yield entries[table.indptr[row] : table.indptr[row + 1]].tobytes() + b"\x01"


def _ordered_bytes(values: np.ndarray) -> np.ndarray:
    """Bytes of shape (n, d × itemsize) that compare as the rows of floating-point numbers do."""
    size = values.dtype.itemsize
    unsigned = np.dtype(f"u{size}")
    bits = (values + 0).view(unsigned)  # + 0 turns -0.0 into 0.0
    sign = unsigned.type(1 << (8 * size - 1))
    bits = np.where(bits & sign, ~bits, bits | sign).astype(unsigned.newbyteorder(">"))
    return np.ascontiguousarray(bits).view(np.uint8).reshape(len(values), size * values.shape[1])


def distinct_rows(table: Any) -> tuple[np.ndarray, np.ndarray]:
    """First occurrence of each distinct row, in the order of the rows' values, and the inverse."""
    first: dict[bytes, int] = {}
    occurrence = np.fromiter(
        (first.setdefault(key, row) for row, key in enumerate(_row_keys(table))),
        np.int64,
        table.shape[0],
    )
    ordered = np.array([first[key] for key in sorted(first)], dtype=np.int64)
    number = np.empty(table.shape[0], dtype=np.int64)
    number[ordered] = np.arange(len(ordered))
    return ordered, number[occurrence]


def match_objects(table_a: Any, ids_a: Any, table_b: Any, ids_b: Any) -> np.ndarray:
    """Find the objects of one table in another.

    Rows of one and the same table are themselves. Otherwise objects are recognised by their ids if both
    tables have them, and by equal features if not, in float32 if one of the tables is.

    Parameters
    ----------
    table_a : ndarray or csr_array of shape (n_a, d)
        Where to look.
    ids_a : ndarray of shape (n_a,) or None
    table_b : ndarray or csr_array of shape (n_b, d)
        What to look for.
    ids_b : ndarray of shape (n_b,) or None

    Returns
    -------
    int64 ndarray of shape (n_b,)
        The row in `table_a` of each row of `table_b`, the first of several; -1 where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pairs import match_objects
    >>> match_objects(np.array([[1.0], [2.0]]), None, np.array([[2.0], [3.0]]), None)
    array([ 1, -1])
    """
    if table_a is table_b:
        return np.arange(table_a.shape[0])
    if ids_a is not None and ids_b is not None:
        keys_a, keys_b = iter(ids_a.tolist()), iter(ids_b.tolist())
    else:
        if table_a.shape[1] != table_b.shape[1]:
            raise ValueError(
                f"Objects without ids are matched by their features, but the tables have {table_a.shape[1]} and "
                f"{table_b.shape[1]} of them. Give ids to both tables, or the same features."
            )
        if sp.issparse(table_a) != sp.issparse(table_b):
            table_a, table_b = sp.csr_array(table_a), sp.csr_array(table_b)
        # what was rounded to single precision on one side only would never be equal
        low = np.float32 if np.float32 in (table_a.dtype, table_b.dtype) else np.float64
        keys_a, keys_b = (_row_keys(table.astype(low, copy=False)) for table in (table_a, table_b))
    row_of: dict[Any, int] = {}
    for row, key in enumerate(keys_a):
        row_of.setdefault(key, row)
    return np.fromiter((row_of.get(key, -1) for key in keys_b), np.int64, table_b.shape[0])


def one_table(left: Side, right: Side) -> tuple[Any, np.ndarray | None, np.ndarray]:
    """Join two tables of one kind of object; an object that is in both is kept once.

    Returns the table, its ids if both sides have them, and the row in it of each right object.
    """
    if left.table.shape[1] != right.table.shape[1]:
        raise ValueError(
            "Pairs of one kind of object need tables with the same features: "
            f"left has {left.table.shape[1]} columns, right has {right.table.shape[1]}. "
            "Pass right=None if both ends come from one table."
        )
    number = match_objects(left.table, left.ids, right.table, right.ids)
    new = np.flatnonzero(number < 0)
    number[new] = left.size + np.arange(new.size)
    table = left.table
    if new.size:
        rows = [left.table, right.table[new]]
        sparse = any(map(sp.issparse, rows))
        table = sp.csr_array(sp.vstack(rows)) if sparse else np.concatenate(rows)
    ids = None
    if left.ids is not None and right.ids is not None:
        ids = np.concatenate([left.ids, right.ids[new]])
    return table, ids, number
