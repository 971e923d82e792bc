"""Pairs of objects: two tables of objects and, for each pair, the rows it joins.

A pair (i, j) joins left object i and right object j. With n pairs of n_left and n_right objects the wide
table of n (d_left + d_right) numbers repeats each object in all its pairs; here the objects are kept once

    wide[h] = (left[left_index[h]], right[right_index[h]]),      h = 1..n,

which is n_left d_left + n_right d_right numbers and 2 n integers. Selecting pairs touches the integers only.

The way back, `Pairs.from_wide`, finds the objects among the wide rows; see `matching`.
"""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.pairs.matching import one_table
from gramian.pairs.reading import looked_up, sides_of_wide
from gramian.pairs.tables import Side, checked_ids, checked_index, checked_table


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
    left_index, right_index : int array of shape (n,)
        Row of `left` and row of `right` for each pair, from 0.
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

    ndim = 2  # like an array of examples and features

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
        self.left = checked_table("left", left)
        self._right = None if right is None else checked_table("right", right)
        if self._right is not None and self.left.dtype != self._right.dtype:
            self.left, self._right = (t.astype(np.float64) for t in (self.left, self._right))
        self.left_ids = checked_ids("left", left_ids, left, self.n_left)
        self._right_ids = checked_ids("right", right_ids, right, self.n_right)
        self.left_index = checked_index("left_index", left_index, "left", self.n_left)
        right_table = "left" if right is None else "right"
        self.right_index = checked_index("right_index", right_index, right_table, self.n_right)
        if len(self.left_index) != len(self.right_index):
            raise ValueError(
                f"left_index and right_index must have the same length, one entry for each pair; "
                f"got {len(self.left_index)} and {len(self.right_index)}."
            )

    def _made_of(self, left: Side, right: Side) -> Pairs:
        """Pairs of parts that are known to be good; the table on the right is None if they are homogeneous."""
        other = object.__new__(type(self))
        other.left, other.left_ids, other.left_index = left
        other._right, other._right_ids, other.right_index = right
        return other

    def _indexed(self, *indices: np.ndarray) -> Pairs:
        """The same tables with other pairs, known to be good."""
        sides = zip(self._parts, map(np.ascontiguousarray, indices), strict=True)
        return self._made_of(*(side._replace(index=index) for side, index in sides))

    @property
    def _parts(self) -> tuple[Side, Side]:
        """What `_made_of` takes."""
        left = Side(self.left, self.left_ids, self.left_index)
        return left, Side(self._right, self._right_ids, self.right_index)

    @classmethod
    def from_wide(cls, X: Any, left_columns: Any = None, right_columns: Any = None) -> Pairs:
        """Find the objects in a table with one row for each pair: equal rows are one object.

        Parameters
        ----------
        X : array, sparse array or DataFrame of shape (n, d)
        left_columns, right_columns : slice, ints, bool mask or names, default=None
            Columns that describe the left and the right object; names if X is a DataFrame. If one of the two is
            None, it is all other columns; if both are, the first half of the columns is left, and an odd number of
            columns is an error. A column may be on both sides, and a side without columns gets a constant one.

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
        return cls(*sides_of_wide(X, left_columns, right_columns))

    @classmethod
    def from_frame(
        cls, frame: Any, left_table: Any, right_table: Any = None, *, left: Any, right: Any
    ) -> Pairs:
        """Look the objects up by their ids.

        Parameters
        ----------
        frame : DataFrame with one row for each pair
        left_table, right_table : pandas DataFrame
            Features of the left and of the right objects, with their ids as the index. If `right_table` is None,
            both ends are in `left_table`.
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
        one = right_table is None
        where = ("left_table", left_table) if one else ("right_table", right_table)
        left_ids, left_index = looked_up("left", frame, left, "left_table", left_table)
        right_ids, right_index = looked_up("right", frame, right, *where)
        ids = {"left_ids": left_ids, "right_ids": None if one else right_ids}
        return cls(left_table, right_table, left_index, right_index, **ids)

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
        cells = np.arange(empty.n_left * empty.n_right)
        return empty._indexed(*np.divmod(cells, max(1, empty.n_right)))

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
    def sides(self) -> tuple[Side, Side]:
        """Table, names and index of the left and of the right objects."""
        left, right = self._parts
        return left, left._replace(index=right.index) if self.homogeneous else right

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
    def dtype(self) -> np.dtype:
        """The floating-point type of both tables."""
        return self.left.dtype

    @property
    def is_complete(self) -> bool:
        """Whether every cell (i, j) occurs exactly once, in any order."""
        n_cells = self.n_left * self.n_right
        return len(self) == n_cells and len(self.distinct()[0]) == n_cells

    def __len__(self) -> int:
        return len(self.left_index)

    def __getitem__(self, key: Any) -> Pairs:
        """Select pairs by an int, a slice, an int array or a mask; the tables are shared."""
        rows, *rest = key if isinstance(key, tuple) else (key,)
        if rest not in ([], [Ellipsis], [slice(None)]):  # scikit-learn selects X[rows, ...]
            raise IndexError(
                f"Pairs have one axis to select from, the pairs; got {reprlib.repr(key)}. "
                "Features are in pairs.left and pairs.right."
            )
        left_index, right_index = (np.atleast_1d(side.index[rows]) for side in self._parts)
        if left_index.ndim != 1:
            raise IndexError(
                f"Select pairs by an int, a slice, an int array or a mask; got {reprlib.repr(key)}."
            )
        return self._indexed(left_index, right_index)

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
        share = len(self.distinct()[0]) / max(1, self.n_left * self.n_right)
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
        seen = [np.bincount(side.index, minlength=side.size) > 0 for side in self.sides]
        if self.homogeneous:
            seen = [seen[0] | seen[1]] * 2
        left_used = np.flatnonzero(seen[0])
        right_used = left_used if self.homogeneous else np.flatnonzero(seen[1])
        parts = zip(self._parts, seen, strict=True)
        return self._made_of(*(part.only(s) for part, s in parts)), left_used, right_used

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
        table, ids, number = one_table(*self.sides)
        left = Side(table, ids, self.left_index)
        return self._made_of(left, Side(None, None, number[self.right_index]))

    def copy(self) -> Pairs:
        """The same pairs with tables of their own: those that these were made from may then change."""
        return self._made_of(*(part.copied() for part in self._parts))

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
        sides = zip(self._parts, other.sides, strict=True)
        return self._made_of(*(part.in_format_of(side) for part, side in sides))

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
        cells = self.left_index * self.n_right + self.right_index
        cells, inverse = np.unique(cells, return_inverse=True)
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


def check_pairs(name: str, pairs: Any) -> None:
    """Refuse what is not a Pairs."""
    if not isinstance(pairs, Pairs):
        raise TypeError(f"{name} must be a Pairs, got {type(pairs).__name__}. Use Pairs.from_wide.")
