"""Sequences of positions: one table with the features of all positions, and the length of each sequence.

With sequences of lengths L_1..L_n the rows of the table belong to

    positions[bounds[i] : bounds[i + 1]],      bounds = (0, L_1, L_1 + L_2, ...),      i = 0..n-1,

so that work on all positions is work on one table, while the sequences are what is counted and selected: their
positions depend on each other and must stay together when examples are split.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from gramian._core.validation import check_number
from gramian.sequences.neighbours import beside, offsets_of, rows_of
from gramian.sequences.tables import (
    checked_lengths,
    checked_positions,
    feature_columns,
    lengths_of_groups,
    names_of,
    stacked,
)
from gramian.sequences.values import flat_labels, object_vector, of_positions


class Sequences:
    """Sequences of positions, with the features of all positions in one table.

    Takes the place of X in estimators for sequences and in scikit-learn's tools. A sample is a whole sequence: the
    length, the shape and the selection of rows count sequences, so that folds never cut through one.

    Parameters
    ----------
    positions : array, sparse array or DataFrame of shape (n_positions, d)
        Features of the positions, finite numbers, one sequence after the other. Arrays of other libraries are copied
        to NumPy. What already is a C-contiguous array or a csr_array of float32 or float64 is not copied: call `copy`
        if it will change.
    lengths : int array of shape (n_sequences,)
        Number of positions of each sequence. Zero is allowed, for an empty sequence.

    Attributes
    ----------
    positions : ndarray or csr_array of shape (n_positions, d)
        float32 if they came as such, otherwise float64. Sparse arrays are in canonical CSR format.
    lengths : int64 ndarray of shape (n_sequences,)
    bounds : int64 ndarray of shape (n_sequences + 1,)
        Sequence i is in the rows from ``bounds[i]`` up to but without ``bounds[i + 1]``.
    feature_names : ndarray of shape (d,) or None
        Names of the columns if the positions came as a DataFrame and all of them are text.
    n_positions : int
    shape : (n_sequences, d)
    dtype : dtype of the positions

    See Also
    --------
    gramian.sequences.SequenceVectorizer : Sequences of sparse features from lists of tokens.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.sequences import Sequences
    >>> X = Sequences(np.arange(12.0).reshape(6, 2), lengths=[3, 1, 2])
    >>> X
    Sequences(n=3, 6 positions x 2, lengths 1 to 3)
    >>> X[2]
    array([[ 8.,  9.],
           [10., 11.]])
    >>> X[[2, 1]]
    Sequences(n=2, 3 positions x 2, lengths 1 to 2)
    >>> y = X.split(["a", "b", "b", "a", "a", "b"])
    >>> y[0]
    array(['a', 'b', 'b'], dtype=object)
    >>> X.flat(y)
    array(['a', 'b', 'b', 'a', 'a', 'b'], dtype=object)
    """

    ndim = 2  # like an array of examples and features

    positions: Any
    lengths: np.ndarray
    bounds: np.ndarray
    feature_names: np.ndarray | None

    def __init__(self, positions: Any, lengths: Any):
        table = checked_positions("positions", positions)
        self._keep(table, checked_lengths(lengths, table.shape[0]), names_of(positions))

    def _keep(self, positions: Any, lengths: np.ndarray, names: np.ndarray | None) -> None:
        """Store parts that are known to be good."""
        self.positions = positions
        self.lengths = lengths
        self.bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        self.feature_names = names

    @classmethod
    def _made_of(cls, positions: Any, lengths: Any, names: np.ndarray | None) -> Sequences:
        """Sequences of parts that are known to be good."""
        made = object.__new__(cls)
        made._keep(positions, np.asarray(lengths, dtype=np.int64), names)
        return made

    @classmethod
    def from_arrays(cls, arrays: Iterable[Any]) -> Sequences:
        """Join one table for each sequence.

        Parameters
        ----------
        arrays : list of arrays, sparse arrays or DataFrames of shape (L_i, d)
            At least one of them. An empty sequence is an array of shape (0, d).

        Returns
        -------
        Sequences
            Sparse if one of the arrays is.

        Examples
        --------
        >>> import numpy as np
        >>> Sequences.from_arrays([np.eye(3), np.zeros((0, 3)), np.ones((2, 3))]).lengths
        array([3, 0, 2])
        """
        given = list(arrays)
        tables = [checked_positions(f"arrays[{i}]", table) for i, table in enumerate(given)]
        positions, names = stacked("arrays", tables, [names_of(table) for table in given])
        return cls._made_of(positions, [table.shape[0] for table in tables], names)

    @classmethod
    def from_frame(cls, frame: Any, group: Any, columns: Any = None) -> Sequences:
        """Cut a DataFrame into sequences wherever the value of one column changes.

        Parameters
        ----------
        frame : DataFrame with one row for each position
            Of pandas, polars or a library with the same attributes.
        group : name of a column of `frame`
            Says to which sequence a row belongs. The rows of a sequence must be consecutive and in order, and the
            sequences come in the order of the rows.
        columns : list of names, default=None
            Columns that are features. None: all columns of numbers or truth values but `group`.

        Returns
        -------
        Sequences

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"day": ["mon", "mon", "tue"], "load": [0.5, 0.7, 0.1]})
        >>> X = Sequences.from_frame(frame, "day")
        >>> X.lengths, X.feature_names
        (array([2, 1]), array(['load'], dtype=object))
        """
        lengths = lengths_of_groups(frame, group)
        return cls(frame[feature_columns(frame, group, columns)], lengths)

    @classmethod
    def concatenate(cls, parts: Iterable[Sequences]) -> Sequences:
        """Put several collections of sequences after each other.

        Parameters
        ----------
        parts : list of Sequences
            At least one, all with the same number of features.

        Returns
        -------
        Sequences
            Sparse if one of the parts is.

        Examples
        --------
        >>> import numpy as np
        >>> X = Sequences(np.eye(3), [2, 1])
        >>> Sequences.concatenate([X, X[1:]]).lengths
        array([2, 1, 1])
        """
        given = list(parts)
        for i, part in enumerate(given):
            check_sequences(f"parts[{i}]", part)
        tables = [part.positions for part in given]
        positions, names = stacked("parts", tables, [part.feature_names for part in given])
        return cls._made_of(positions, np.concatenate([part.lengths for part in given]), names)

    @property
    def n_positions(self) -> int:
        """Number of positions of all sequences together."""
        return int(self.positions.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of sequences, and number of features of a position."""
        return len(self), int(self.positions.shape[1])

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the positions."""
        return self.positions.dtype

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[Any]:
        for start, stop in pairwise(self.bounds.tolist()):
            yield self.positions[start:stop]

    def __getitem__(self, key: Any) -> Any:
        """Select sequences by a slice, an int array or a mask; an int gives the positions of one sequence.

        Rows of positions are copied, except from a dense table by an int or by a slice without a step.
        """
        rows, *rest = key if isinstance(key, tuple) else (key,)
        if rest not in ([], [Ellipsis], [slice(None)]):  # scikit-learn selects X[rows, ...]
            raise IndexError(
                f"Sequences have one axis to select from, the sequences; got {reprlib.repr(key)}. "
                "Features are in X.positions."
            )
        chosen = np.arange(len(self))[rows]
        if chosen.ndim == 0:
            return self.positions[self.bounds[chosen] : self.bounds[chosen + 1]]
        if chosen.ndim != 1:
            raise IndexError(
                f"Select sequences by an int, a slice, an int array or a mask; got {reprlib.repr(key)}."
            )
        if isinstance(rows, slice) and rows.step in (None, 1) and len(chosen):
            taken = slice(self.bounds[chosen[0]], self.bounds[chosen[-1] + 1])
        else:
            taken = rows_of(self.bounds, chosen)
        return self._made_of(self.positions[taken], self.lengths[chosen], self.feature_names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # Without this NumPy would read all positions as an array of arrays, or fail with a riddle.
        raise TypeError(
            "Sequences is not an array of features. Use an estimator for sequences, or pass X.positions, "
            "which has one row for each position."
        )

    def __repr__(self) -> str:
        parts = [f"n={len(self)}", f"{self.n_positions} positions x {self.shape[1]}"]
        if len(self):
            parts.append(f"lengths {self.lengths.min()} to {self.lengths.max()}")
        return f"Sequences({', '.join(parts)})"

    def split(self, values: Any) -> np.ndarray:
        """Cut values of all positions into those of each sequence.

        Parameters
        ----------
        values : array or Series of shape (n_positions, ...), or list of n_positions values
            Labels, scores or anything else. A list becomes an array with one axis, whatever it holds: of numbers if
            it has nothing else, otherwise of objects.

        Returns
        -------
        object ndarray of shape (n_sequences,)
            Views of `values` of shape (L_i, ...). As y, this is what scikit-learn takes and cuts for any estimator;
            from a classifier it does not accept lists of lists.

        Examples
        --------
        >>> import numpy as np
        >>> Sequences(np.eye(3), [1, 2]).split([10, 20, 30])
        array([array([10]), array([20, 30])], dtype=object)
        """
        array = of_positions(values, self.n_positions)
        bounds = pairwise(self.bounds.tolist())
        return object_vector(array[start:stop] for start, stop in bounds)

    def flat(self, y: Any, name: str = "y") -> np.ndarray:
        """Join the labels of each sequence to those of all positions; the inverse of `split`.

        Parameters
        ----------
        y : list, tuple, array or Series with one sequence of labels for each sequence
            Each of them is a list, a tuple or an array with one axis. A label can be anything: text, a number, None,
            a tuple or a set. If all sequences have length one, their labels alone will do, unless these are tuples.
        name : str, default="y"
            What errors call the argument.

        Returns
        -------
        object ndarray of shape (n_positions,)

        Examples
        --------
        >>> import numpy as np
        >>> Sequences(np.eye(3), [1, 2]).flat([["a"], [("b", "c"), None]])
        array(['a', ('b', 'c'), None], dtype=object)
        """
        return flat_labels(name, y, self.lengths)

    def copy(self) -> Sequences:
        """The same sequences with positions of their own: those that these were made from may then change."""
        return self._made_of(self.positions.copy(), self.lengths.copy(), self.feature_names)

    def with_neighbours(self, before: int = 1, after: int = 1, weight: float = 1.0) -> Sequences:
        """Put the features of the neighbours of each position beside its own ones.

        Parameters
        ----------
        before, after : int, default=1
            How many neighbours on each side.
        weight : float, default=1.0
            Factor of the features of neighbours, not negative.

        Returns
        -------
        Sequences
            With d (1 + before + after) features: its own, then those at −1, +1, −2, +2 and so on. Beyond the ends of
            a sequence they are zero. The neighbour at +1 has the feature name ``name[+1]``.

        Examples
        --------
        >>> import numpy as np
        >>> X = Sequences(np.array([[1.0], [2.0], [3.0], [4.0]]), [3, 1])
        >>> X.with_neighbours(weight=0.5).positions
        array([[1. , 0. , 1. ],
               [2. , 0.5, 1.5],
               [3. , 1. , 0. ],
               [4. , 0. , 0. ]])
        """
        check_number("before", before, whole=True)
        check_number("after", after, whole=True)
        check_number("weight", weight)
        offsets = offsets_of(before, after)
        names = self.feature_names
        if names is not None:
            moved = [f"{name}[{offset:+d}]" for offset in offsets for name in names]
            names = np.array([*names, *moved], dtype=object)
        positions = beside(self.positions, self.lengths, offsets, float(weight))
        return self._made_of(positions, self.lengths, names)


def check_sequences(name: str, sequences: Any) -> None:
    """Refuse what is not a Sequences."""
    if not isinstance(sequences, Sequences):
        raise TypeError(
            f"{name} must be a Sequences, got {type(sequences).__name__}. "
            "Use Sequences(positions, lengths) or Sequences.from_arrays."
        )
