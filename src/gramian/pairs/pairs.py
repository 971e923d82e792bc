"""Pairs of objects: two tables of objects and, for each pair, the rows it joins.

A pair (i, j) joins left object i and right object j. With n pairs of n_left and n_right objects the wide
table of n (d_left + d_right) numbers repeats each object in all its pairs; here the objects are kept once

    wide[h] = (left[left_index[h]], right[right_index[h]]),      h = 1..n,

which is n_left d_left + n_right d_right numbers and 2 n integers. Selecting pairs touches the integers only.

The way back, `Pairs.from_wide`, finds the objects among the wide rows; see `_row_keys`.
"""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import to_numpy
from gramian.pairs.row_keys import distinct_rows, row_keys

__all__ = ["Pairs", "match_objects", "split_columns"]


class Pairs:
    """Pairs (left object, right object), with the features of each object stored once.

    Takes the place of X in estimators for pairs and in scikit-learn's tools: it has a length, a shape, and
    rows can be selected. Selections share the tables.

    Parameters
    ----------
    left : array, sparse array or DataFrame of shape (n_left, d_left)
        Features of the left objects, finite numbers. Sparse tables are kept in CSR format.
    right : array, sparse array or DataFrame of shape (n_right, d_right), or None
        Features of the right objects. None: both ends of a pair are rows of `left` (homogeneous pairs).
    left_index : int array of shape (n,)
        Row of `left` for each pair, from 0.
    right_index : int array of shape (n,)
        Row of `right` for each pair, from 0.
    left_ids, right_ids : sequence of length n_left, n_right, default=None
        Unique names of the objects, to recognise them in other tables. By default the index of a DataFrame,
        unless it only counts its rows.

    Attributes
    ----------
    left, right : ndarray or csr_array
        float32 if both tables were, otherwise float64.
    left_index, right_index : int64 ndarray of shape (n,)
    left_ids, right_ids : ndarray or None
    homogeneous : bool
        Whether both ends come from one table; `right` is then `left`.
    n_left, n_right : int
    shape : (n, d_left + d_right)

    See Also
    --------
    gramian.PairKFold : Folds for pairs, for four ways of being new.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Pairs
    >>> drugs, targets = np.eye(3), np.array([[0.5, 1.0], [0.0, 2.0]])
    >>> pairs = Pairs(drugs, targets, [0, 1, 2, 2], [1, 0, 0, 1])
    >>> pairs
    Pairs(n=4, left 3 x 3, right 2 x 2, 66.7 % of cells)
    >>> pairs[pairs.left_index == 2]
    Pairs(n=2, left 3 x 3, right 2 x 2, 33.3 % of cells)
    >>> pairs[:1].to_wide()
    array([[1., 0., 0., 0., 2.]])
    """

    left: Any
    left_index: np.ndarray
    right_index: np.ndarray
    left_ids: np.ndarray | None

    def __init__(
        self,
        left: Any,
        right: Any,
        left_index: Any,
        right_index: Any,
        *,
        left_ids: Any = None,
        right_ids: Any = None,
    ):
        if right is None and right_ids is not None:
            raise ValueError(
                "right_ids must be None when right is None: both ends come from left, name them by left_ids."
            )
        left_ids = _index_of(left) if left_ids is None else left_ids
        right_ids = _index_of(right) if right_ids is None else right_ids
        left = _checked_table("left", left)
        right = None if right is None else _checked_table("right", right)
        if right is not None and left.dtype != right.dtype:
            left, right = left.astype(np.float64), right.astype(np.float64)
        self.left = left
        self._right = right
        self.left_ids = _checked_ids("left", left_ids, self.n_left)
        self._right_ids = None if right is None else _checked_ids("right", right_ids, self.n_right)
        self.left_index = _checked_index("left", left_index, self.n_left)
        right_name = "left" if right is None else "right"
        self.right_index = _checked_index("right", right_index, self.n_right, table=right_name)
        if len(self.left_index) != len(self.right_index):
            raise ValueError(
                f"left_index and right_index must have the same length, one entry for each pair; "
                f"got {len(self.left_index)} and {len(self.right_index)}."
            )

    def _derived(
        self, left_index: np.ndarray, right_index: np.ndarray, tables: tuple | None = None
    ) -> Pairs:
        """Pairs with indices that are known to be good, and by default the same tables."""
        other = object.__new__(type(self))
        if tables is None:
            tables = (self.left, self._right, self.left_ids, self._right_ids)
        other.left, other._right, other.left_ids, other._right_ids = tables
        other.left_index = np.ascontiguousarray(left_index)
        other.right_index = np.ascontiguousarray(right_index)
        return other

    @classmethod
    def from_wide(cls, X: Any, left_columns: Any = None, right_columns: Any = None) -> Pairs:
        """Find the objects in a table with one row for each pair: equal rows are one object.

        Parameters
        ----------
        X : array, sparse array or DataFrame of shape (n, d)
        left_columns, right_columns : slice, ints, bool mask or names, default=None
            Columns that describe the left and the right object; names if X is a DataFrame. One is given: the
            other is the rest. None is: the first half, rounded up, is left. A column may be on both sides; a
            side without columns gets a constant one.

        Returns
        -------
        Pairs
            Objects are in the order of ``numpy.unique(axis=0)``.

        Examples
        --------
        >>> pairs = Pairs.from_wide([[2.0, 5.0], [1.0, 5.0], [2.0, 6.0]])
        >>> pairs.left[:, 0], pairs.left_index
        (array([1., 2.]), array([1, 0, 1]))
        """
        shape = getattr(X, "shape", None)
        if shape is None:
            X = np.asarray(X)
            shape = X.shape
        if len(shape) != 2:
            raise ValueError(
                f"X must have shape (n, d), one row for each pair; got {tuple(shape)}."
            )
        names = _column_names(X)
        n_columns = int(shape[1])
        left, right = split_columns(left_columns, right_columns, n_columns, names)
        sides = []
        for columns in (left, right):
            table = _checked_table("X", _take_columns(X, columns))
            if len(columns) == 0:
                table = np.ones((int(shape[0]), 1), dtype=table.dtype)
            first, inverse = distinct_rows(table)
            sides.append((table[first], inverse))
        (left_table, left_index), (right_table, right_index) = sides
        return cls(left_table, right_table, left_index, right_index)

    @classmethod
    def from_frame(
        cls, frame: Any, left_table: Any, right_table: Any = None, *, left: Any, right: Any
    ) -> Pairs:
        """Look the objects up by their ids.

        Parameters
        ----------
        frame : DataFrame with one row for each pair
        left_table : pandas DataFrame
            Features of the left objects; its index holds their ids.
        right_table : pandas DataFrame, default=None
            Features of the right objects. None: both ends are in `left_table`.
        left, right : name of a column of `frame`
            Where the ids of the left and of the right object are.

        Returns
        -------
        Pairs

        Examples
        --------
        >>> import pandas as pd
        >>> drugs = pd.DataFrame({"mass": [180.2, 194.2]}, index=["aspirin", "caffeine"])
        >>> targets = pd.DataFrame({"length": [576.0, 410.0]}, index=["COX1", "A2A"])
        >>> frame = pd.DataFrame({"drug": ["caffeine", "aspirin"], "target": ["A2A", "COX1"]})
        >>> Pairs.from_frame(frame, drugs, targets, left="drug", right="target").left_index
        array([1, 0])
        """
        left_ids, left_index = _looked_up("left", frame, left, "left_table", left_table)
        if right_table is None:
            right_ids = None
            _, right_index = _looked_up("right", frame, right, "left_table", left_table)
        else:
            right_ids, right_index = _looked_up("right", frame, right, "right_table", right_table)
        return cls(
            left_table, right_table, left_index, right_index, left_ids=left_ids, right_ids=right_ids
        )

    @classmethod
    def complete(cls, left: Any, right: Any) -> Pairs:
        """All pairs of the objects of two tables, those of the first left object first.

        Parameters
        ----------
        left : array, sparse array or DataFrame of shape (n_left, d_left)
        right : array, sparse array or DataFrame of shape (n_right, d_right), or None
            None: homogeneous pairs, all (i, j) of the rows of `left`.

        Returns
        -------
        Pairs
            With n_left × n_right pairs; ``values.reshape(n_left, n_right)`` is the matrix of their values.

        Examples
        --------
        >>> import numpy as np
        >>> pairs = Pairs.complete(np.eye(2), np.eye(3))
        >>> pairs.left_index, pairs.right_index
        (array([0, 0, 0, 1, 1, 1]), array([0, 1, 2, 0, 1, 2]))
        """
        empty = cls(left, right, [], [])
        left_index = np.repeat(np.arange(empty.n_left), empty.n_right)
        return empty._derived(left_index, np.tile(np.arange(empty.n_right), empty.n_left))

    @property
    def homogeneous(self) -> bool:
        """Whether both ends of a pair come from one table."""
        return self._right is None

    @property
    def right(self) -> Any:
        """Features of the right objects; `left` itself if the pairs are homogeneous."""
        return self.left if self._right is None else self._right

    @property
    def right_ids(self) -> np.ndarray | None:
        """Names of the right objects, or None."""
        return self.left_ids if self._right is None else self._right_ids

    @property
    def n_left(self) -> int:
        """Number of left objects, also those in no pair."""
        return int(self.left.shape[0])

    @property
    def n_right(self) -> int:
        """Number of right objects, also those in no pair."""
        return int(self.right.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the wide table."""
        return len(self), int(self.left.shape[1] + self.right.shape[1])

    @property
    def ndim(self) -> int:
        """Always 2, like an array of examples and features."""
        return 2

    @property
    def dtype(self) -> np.dtype:
        """Of both tables."""
        return self.left.dtype

    @property
    def is_complete(self) -> bool:
        """Whether every cell (i, j) occurs exactly once, in any order."""
        n_cells = self.n_left * self.n_right
        return len(self) == n_cells and self._n_distinct() == n_cells

    def __len__(self) -> int:
        return len(self.left_index)

    def __getitem__(self, key: Any) -> Pairs:
        """Select pairs by an int, a slice, an int array or a mask; the tables are shared."""
        rows = _checked_key(key, len(self))
        return self._derived(self.left_index[rows], self.right_index[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # Without this NumPy would take a Pairs for a sequence of sequences of sequences...
        raise TypeError(
            "Pairs is not an array of features. Use an estimator for pairs, or pass pairs.to_wide()."
        )

    def __repr__(self) -> str:
        parts = [f"n={len(self)}"]
        if len(self) == 1 and self.left_ids is not None and self.right_ids is not None:
            names = (self.left_ids[self.left_index[0]], self.right_ids[self.right_index[0]])
            parts.append(" with ".join(map(str, names)))
        left = f"{self.n_left} x {self.left.shape[1]}"
        if self.homogeneous:
            parts.append(f"both ends {left}")
        else:
            parts += [f"left {left}", f"right {self.n_right} x {self.right.shape[1]}"]
        share = self._n_distinct() / max(1, self.n_left * self.n_right)
        return f"Pairs({', '.join(parts)}, {100 * share:.1f} % of cells)"

    def compact(self) -> tuple[Pairs, np.ndarray, np.ndarray]:
        """Keep only the objects that occur in a pair.

        Returns
        -------
        pairs : Pairs
            The same pairs with smaller tables, or with the same ones if nothing was left out.
        left_used, right_used : int64 ndarray
            Rows of the old tables, ascending. Homogeneous pairs keep one table, of the objects that occur at
            either end.

        Examples
        --------
        >>> import numpy as np
        >>> pairs, left_used, right_used = Pairs(np.eye(4), np.eye(2), [3, 1], [0, 0]).compact()
        >>> pairs.left_index, left_used, right_used
        (array([1, 0]), array([1, 3]), array([0]))
        """
        left_seen = np.zeros(self.n_left, dtype=bool)
        left_seen[self.left_index] = True
        right_seen = left_seen if self.homogeneous else np.zeros(self.n_right, dtype=bool)
        right_seen[self.right_index] = True
        left_used = np.flatnonzero(left_seen)
        right_used = left_used if self.homogeneous else np.flatnonzero(right_seen)
        left, left_ids = _taken(self.left, self.left_ids, left_used)
        right, right_ids = _taken(self._right, self._right_ids, right_used)
        compacted = self._derived(
            (np.cumsum(left_seen) - 1)[self.left_index],
            (np.cumsum(right_seen) - 1)[self.right_index],
            (left, right, left_ids, right_ids),
        )
        return compacted, left_used, right_used

    def as_homogeneous(self) -> Pairs:
        """The same pairs with one table for both ends; objects that are in both tables are kept once.

        Returns
        -------
        Pairs

        Examples
        --------
        >>> Pairs([[1.0], [2.0]], [[2.0], [3.0]], [0, 1], [1, 0]).as_homogeneous().right_index
        array([2, 1])
        """
        if self.homogeneous:
            return self
        left, right = self.left, self.right
        if left.shape[1] != right.shape[1]:
            raise ValueError(
                f"Pairs of one kind of object need tables with the same features: left has {left.shape[1]} columns, "
                f"right has {right.shape[1]}. Pass right=None if both ends come from one table."
            )
        both = (self.left_ids, self.right_ids)
        number = match_objects(left, both[0], right, both[1])
        new = np.flatnonzero(number < 0)
        number[new] = self.n_left + np.arange(new.size)
        if new.size:
            stack = sp.vstack if sp.issparse(left) or sp.issparse(right) else np.concatenate
            table = stack([left, right[new]])
            table = sp.csr_array(table) if sp.issparse(table) else table
        else:
            table = left
        ids = None
        if both[0] is not None and both[1] is not None:
            ids = np.concatenate([both[0], both[1][new]])
        return self._derived(self.left_index, number[self.right_index], (table, None, ids, None))

    def in_format_of(self, other: Pairs) -> Pairs:
        """The same pairs with each table sparse or dense as that of ``other``.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse as sp
        >>> sparse = Pairs(sp.csr_array(np.eye(2)), np.eye(2), [0], [1])
        >>> type(sparse.in_format_of(Pairs(np.eye(2), np.eye(2), [0], [1])).left).__name__
        'ndarray'
        """
        left = _formatted(self.left, other.left)
        right = None if self._right is None else _formatted(self._right, other.right)
        if left is self.left and right is self._right:
            return self
        tables = (left, right, self.left_ids, self._right_ids)
        return self._derived(self.left_index, self.right_index, tables)

    def distinct(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The cells (i, j) that occur, each once.

        Returns
        -------
        cells_left, cells_right : int64 ndarray of shape (n_cells,)
            Sorted by the left object, then by the right one.
        inverse : int64 ndarray of shape (n,)
            The number of the cell of each pair.

        Examples
        --------
        >>> import numpy as np
        >>> Pairs(np.eye(2), np.eye(2), [1, 0, 1], [0, 1, 0]).distinct()
        (array([0, 1]), array([1, 0]), array([1, 0, 1]))
        """
        cells, inverse = np.unique(self._cells(), return_inverse=True)
        cells_left, cells_right = np.divmod(cells, max(1, self.n_right))
        return cells_left, cells_right, inverse

    def to_wide(self) -> Any:
        """Write out the features of both objects of each pair.

        Returns
        -------
        ndarray or csr_array of shape (n, d_left + d_right)
            Sparse if one of the tables is.

        Examples
        --------
        >>> Pairs([[1.0], [2.0]], [[5.0]], [1, 0], [0, 0]).to_wide()
        array([[2., 5.],
               [1., 5.]])
        """
        left, right = self.left, self.right
        if sp.issparse(left) or sp.issparse(right):
            ends = sp.csr_array(left)[self.left_index], sp.csr_array(right)[self.right_index]
            return sp.csr_array(sp.hstack(ends, format="csr"))
        return np.concatenate([left[self.left_index], right[self.right_index]], axis=1)

    def _cells(self) -> np.ndarray:
        return self.left_index * self.n_right + self.right_index

    def _n_distinct(self) -> int:
        return len(np.unique(self._cells()))


def _formatted(table: Any, like: Any) -> Any:
    if sp.issparse(table) == sp.issparse(like):
        return table
    return table.toarray() if sp.issparse(table) else sp.csr_array(table)


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
        keys_a = row_keys(table_a.astype(low, copy=False))
        keys_b = row_keys(table_b.astype(low, copy=False))
    row_of = {}
    for row, key in enumerate(keys_a):
        row_of.setdefault(key, row)
    return np.fromiter((row_of.get(key, -1) for key in keys_b), np.int64, table_b.shape[0])


def _taken(table: Any, ids: np.ndarray | None, rows: np.ndarray) -> tuple[Any, np.ndarray | None]:
    """Some rows of a table and their ids; the same objects if all of them are asked for."""
    if table is None or len(rows) == table.shape[0]:
        return table, ids
    return table[rows], None if ids is None else ids[rows]


def _as_numpy(values: Any) -> np.ndarray:
    return to_numpy(values) if hasattr(values, "__array_namespace__") else np.asarray(values)


def _is_frame(values: Any) -> bool:
    """Whether the values are a DataFrame, of pandas or of another library."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def _index_of(table: Any) -> Any:
    """The index of a pandas DataFrame if it says more than the row number."""
    if not (_is_frame(table) and hasattr(table, "iloc")):
        return None
    return None if type(table.index).__name__ == "RangeIndex" else table.index


def _checked_table(name: str, table: Any) -> Any:
    """Return a finite table as float32 or float64, C-contiguous or csr_array."""
    if sp.issparse(table):
        table = sp.csr_array(table)
    elif _is_frame(table):
        table = table.to_numpy()
    else:
        table = _as_numpy(table)
    if table.dtype.kind == "O" and not sp.issparse(table):
        try:
            table = table.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} must hold numbers: {error}. Encode text first.") from None
    if table.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} must hold real numbers, got dtype {table.dtype}. Encode text first."
        )
    if table.ndim != 2:
        raise ValueError(
            f"{name} must have shape (objects, features), got {table.shape}. "
            "Reshape one feature by values.reshape(-1, 1)."
        )
    dtype = np.float32 if table.dtype == np.float32 else np.float64
    if sp.issparse(table):
        table = sp.csr_array(table, dtype=dtype)
        if not table.has_canonical_format:
            table = table.copy()  # the caller's array stays as it is
            table.sum_duplicates()
        good = np.isfinite(table.data)
        rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))[~good]
    else:
        table = np.ascontiguousarray(table, dtype=dtype)
        rows = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(rows):
        raise ValueError(
            f"{name} must be finite, but row {rows[0]} holds NaN or infinity "
            f"({len(np.unique(rows))} such rows). Impute or drop them first."
        )
    return table


def _checked_index(side: str, index: Any, n_objects: int, table: str | None = None) -> np.ndarray:
    """Return row numbers as a new int64 array of shape (n,)."""
    name, table = f"{side}_index", table or side
    values = index.to_numpy() if hasattr(index, "to_numpy") else np.asarray(index)
    if values.ndim != 1:
        raise ValueError(
            f"{name} must have shape (n,), one row number for each pair; got {values.shape}."
        )
    if values.dtype.kind not in "iu" and len(values):
        for position, value in enumerate(values.tolist()):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
                raise TypeError(
                    f"{name} must hold integers, the rows of {table}; got {value!r} at position {position}. "
                    "Ids are looked up by Pairs.from_frame."
                )
    bad = np.flatnonzero((values < 0) | (values >= n_objects))
    if len(bad):
        raise ValueError(
            f"{name} must lie between 0 and {n_objects - 1}, the rows of {table}; "
            f"got {values[bad[0]]} at position {bad[0]}, and {table} has {n_objects} rows."
        )
    return np.array(values, dtype=np.int64)


def _checked_ids(side: str, ids: Any, n_objects: int) -> np.ndarray | None:
    """Return unique ids as an array: of str, of int64, or of objects if they are mixed."""
    if ids is None:
        return None
    name = f"{side}_ids"
    listed = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    listed = [value.item() if isinstance(value, np.generic) else value for value in listed]
    if len(listed) != n_objects:
        raise ValueError(
            f"{name} must have one id for each of the {n_objects} rows of {side}, got {len(listed)}."
        )
    _refuse_repeated(name, listed)
    if all(isinstance(value, str) for value in listed):
        return np.array(listed, dtype=str)
    if all(isinstance(value, int) and abs(value) < 2**63 for value in listed):
        return np.array(listed, dtype=np.int64)
    array = np.empty(len(listed), dtype=object)
    for row, value in enumerate(listed):  # one by one: NumPy would make a table of tuples
        array[row] = value
    return array


def _refuse_repeated(name: str, ids: list) -> dict[Any, int]:
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


def _looked_up(
    side: str, frame: Any, column: Any, table_name: str, table: Any
) -> tuple[list, np.ndarray]:
    """The ids of a table, and the row in it of each id in a column of the frame."""
    if not hasattr(table, "iloc"):
        raise TypeError(
            f"{table_name} must be a pandas DataFrame with the ids as its index, got {type(table).__name__}. "
            "With row numbers instead of ids, use Pairs(left, right, left_index, right_index)."
        )
    if not _is_frame(frame):
        raise TypeError(
            f"frame must be a DataFrame with one row for each pair, got {type(frame).__name__}."
        )
    if column not in list(frame.columns):
        raise ValueError(
            f"{side}={column!r} must be a column of frame, which has {reprlib.repr(list(frame.columns))}."
        )
    ids = table.index.tolist()
    rows = _refuse_repeated(f"the index of {table_name}", ids)
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


def _column_names(X: Any) -> list | None:
    return list(X.columns) if _is_frame(X) else None


def split_columns(
    left_columns: Any, right_columns: Any, n_columns: int, names: list | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the columns of left and right objects in a wide table; see `Pairs.from_wide`."""
    everything = np.arange(n_columns)
    left = _columns("left_columns", left_columns, n_columns, names)
    right = _columns("right_columns", right_columns, n_columns, names)
    if left is None:
        half = everything[: (n_columns + 1) // 2]
        left = half if right is None else np.setdiff1d(everything, right)
    return left, np.setdiff1d(everything, left) if right is None else right


def _columns(name: str, columns: Any, n_columns: int, names: list | None) -> np.ndarray | None:
    """Positions of the columns that are meant, or None."""
    if columns is None:
        return None
    if isinstance(columns, slice):
        return np.arange(n_columns)[columns]
    listed = list(columns) if not isinstance(columns, str) else [columns]
    if all(isinstance(value, (bool, np.bool_)) for value in listed) and listed:
        if len(listed) != n_columns:
            raise ValueError(
                f"{name} as a mask must have {n_columns} entries, one for each column of X; got {len(listed)}."
            )
        return np.flatnonzero(listed)
    positions = []
    for value in listed:
        if names is not None and value in names:
            positions.append(names.index(value))
        elif not isinstance(value, (int, np.integer)) or isinstance(value, bool):
            known = "X is not a DataFrame" if names is None else f"X has {reprlib.repr(names)}"
            raise ValueError(f"{name} holds {value!r}, which is no column: {known}.")
        elif not -n_columns <= value < n_columns:
            raise ValueError(f"{name} holds {value}, but X has {n_columns} columns.")
        else:
            positions.append(int(value) % n_columns)
    return np.array(positions, dtype=np.int64)


def _take_columns(X: Any, columns: np.ndarray) -> Any:
    if sp.issparse(X):
        return sp.csr_array(X)[:, columns]
    if hasattr(X, "iloc"):
        return X.iloc[:, columns]
    if _is_frame(X):
        return X[:, columns.tolist()]
    return _as_numpy(X)[:, columns]


def _checked_key(key: Any, n: int) -> Any:
    """Return a slice or an int64 array or a mask that selects along the first axis."""
    if isinstance(key, tuple):
        if len(key) == 2 and (key[1] is Ellipsis or key[1] == slice(None)):
            return _checked_key(key[0], n)
        raise IndexError(
            f"Pairs have one axis to select from, the pairs; got {reprlib.repr(key)}. "
            "Features are in pairs.left and pairs.right."
        )
    if isinstance(key, slice):
        return key
    if key is Ellipsis:
        return slice(None)
    rows = key.to_numpy() if hasattr(key, "to_numpy") else np.asarray(key)
    if rows.ndim == 0 and rows.dtype.kind in "iu":
        rows = rows.reshape(1)
    if rows.ndim != 1:
        raise IndexError(
            f"Select pairs by an int, a slice, an int array or a mask; got {reprlib.repr(key)}."
        )
    if rows.dtype.kind == "b":
        if len(rows) != n:
            raise IndexError(f"A mask must have {n} entries, one for each pair; got {len(rows)}.")
        return rows
    if len(rows) == 0:
        return rows.astype(np.int64)
    if rows.dtype.kind not in "iu":
        raise IndexError(f"Pairs are selected by integers or a mask, got dtype {rows.dtype}.")
    bad = np.flatnonzero((rows < -n) | (rows >= n))
    if len(bad):
        raise IndexError(f"Pair {rows[bad[0]]} is out of range: there are {n} pairs.")
    return rows
