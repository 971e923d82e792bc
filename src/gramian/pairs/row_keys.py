"""Equal rows of a table, found by one dictionary.

Each row becomes a string of bytes whose order is that of the numbers (sign bit flipped, negative numbers inverted, most
significant byte first), so one dictionary finds equal rows and one sort of its keys numbers them as ``numpy.unique``
does:
O(n d) for the keys and a sort of the distinct ones. A sparse row is the sequence of its entries, where an entry at an
earlier column weighs more: no zeros are written out, which ``numpy.unique`` would need.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import row_blocks

__all__ = ["distinct_rows", "row_keys"]

_BLOCK_BYTES = 1 << 24  # of keys that are made at once


def row_keys(table: Any) -> Iterator[bytes]:
    """One string of bytes for each row; they compare as the rows of numbers do."""
    n_rows, n_columns = table.shape
    if not sp.issparse(table):
        for block in row_blocks(n_rows, n_columns * table.dtype.itemsize, _BLOCK_BYTES):
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
        (first.setdefault(key, row) for row, key in enumerate(row_keys(table))),
        np.int64,
        table.shape[0],
    )
    ordered = np.array([first[key] for key in sorted(first)], dtype=np.int64)
    number = np.empty(table.shape[0], dtype=np.int64)
    number[ordered] = np.arange(len(ordered))
    return ordered, number[occurrence]
