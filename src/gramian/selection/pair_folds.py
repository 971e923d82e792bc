"""Folds for pairs: what is new at prediction decides what may be known at training.

A pair (i, j) of a test set is in one of four settings, by which of its objects occur in training:

    A  both          a new cell of a known table
    B  right only    the left object is new
    C  left only     the right object is new
    D  none          both are new

Objects are divided into k folds; let f(i) be the fold of object i. For different left and right objects

    A  folds of cells:      test = the cells of fold s,        train = the others
    B  folds of rows:       test = {f(i) = s},                 train = {f(i) ≠ s}
    C  folds of columns:    test = {f(j) = s},                 train = {f(j) ≠ s}
    D  k × k blocks:        test = {f(i) = s, f(j) = t},       train = {f(i) ≠ s, f(j) ≠ t},

so that each pair is tested once. In D the pairs that share a row fold or a column fold with the block belong to
neither part: with k = 3 this is the ninefold scheme of Airola and Pahikkala (figure 2).

If both ends come from one set of objects, one partition serves both ends: an object that is new is new wherever it
occurs. Test pairs then have the objects of fold s at the named end only, and training pairs at neither; pairs within
fold s are in neither part of B and C. D has blocks (s, t) with training pairs that have no end in s or t.
With `symmetric` the pair (j, i) is where (i, j) is: A divides unordered pairs, B and C test the pairs with exactly one
end in s (each pair between two folds twice), and D has the blocks s <= t.

Cost: O(n) for each fold, and a sort of the cells for A.

References
----------
Airola and Pahikkala. Fast Kronecker product kernel methods via sampled vec trick. arXiv:1601.01507.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from gramian._core.validation import check_choice, check_flag, check_number
from gramian.pairs import Pairs, match_objects
from gramian.pairs.container import check_pairs

_LOGGER = logging.getLogger("gramian")
SETTINGS = ("A", "B", "C", "D")


@dataclass(eq=False, repr=False)
class PairKFold(BaseCrossValidator):
    """Folds for pairs, in which cells, left objects, right objects or both are new.

    Use it as ``cv`` wherever scikit-learn takes one. X is a `gramian.Pairs`, or a table with one row for each pair in
    which equal rows are one object.

    Parameters
    ----------
    setting : {"A", "B", "C", "D"}, default="D"
        What is new in the test pairs: the cell only (A), the left object (B), the right object (C), both (D).
    n_splits : int, default=3
        Folds of the cells (A) or of the objects (B, C, D), at least 2. D has ``n_splits ** 2`` blocks.
    symmetric : bool, default=False
        Keep (j, i) where (i, j) is. For homogeneous pairs only.
    shuffle : bool, default=True
        Divide at random; otherwise in the order of the tables.
    random_state : int, RandomState or None, default=0
        For `shuffle`.
    left_columns, right_columns : default=None
        For an X that is not a Pairs, as in `Pairs.from_wide`.

    See Also
    --------
    pair_setting : The setting of each pair of a given test set.

    Notes
    -----
    Folds without test pairs or without training pairs are left out, with a warning. In setting D with few objects most
    pairs may be in neither part: `summary` says how many.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PairKFold, Pairs
    >>> pairs = Pairs.complete(np.eye(6), np.eye(9))
    >>> folds = PairKFold("D", n_splits=3)
    >>> folds.get_n_splits()
    9
    >>> folds.summary(pairs)[0]
    {'fold': 0, 'train': 24, 'test': 6, 'discarded': 24}
    >>> train, test = next(folds.split(pairs))
    >>> bool(np.isin(pairs[test].left_index, pairs[train].left_index).any())
    False
    """

    setting: str = "D"
    n_splits: int = 3
    _: KW_ONLY
    symmetric: bool = False
    shuffle: bool = True
    random_state: Any = 0
    left_columns: Any = None
    right_columns: Any = None

    def __post_init__(self) -> None:
        check_choice("setting", self.setting, SETTINGS)
        check_number("n_splits", self.n_splits, low=2, whole=True)
        check_flag("symmetric", self.symmetric)
        check_flag("shuffle", self.shuffle)

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Divide the pairs.

        Parameters
        ----------
        X : Pairs, or array, sparse array or DataFrame of shape (n, d)
        y : array of shape (n,), default=None
            If it has two values, folds in which a part has only one of them give a warning.
        groups : ignored

        Yields
        ------
        train, test : int64 ndarray
            Numbers of pairs, ascending.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import PairKFold, Pairs
        >>> pairs = Pairs.complete(np.eye(2), np.eye(2))
        >>> for train, test in PairKFold("B", n_splits=2, shuffle=False).split(pairs):
        ...     print(train, test)
        [2 3] [0 1]
        [0 1] [2 3]
        """
        pairs = self._pairs(X)
        positive = _two_classes(y, len(pairs))
        skipped = 0
        for fold, (where, training, testing) in enumerate(self._folds(pairs)):
            train, test = np.flatnonzero(training), np.flatnonzero(testing)
            if len(train) == 0 or len(test) == 0:
                skipped += 1
                warnings.warn(
                    f"PairKFold leaves out fold {fold} of setting {self.setting} ({where}): it has {len(test)} test "
                    f"and {len(train)} training pairs. Use fewer than n_splits={self.n_splits} or more pairs.",
                    UserWarning,
                    stacklevel=2,
                )
                continue
            if positive is not None:
                self._warn_of_one_class(fold, where, positive, train, test)
            counts = (len(train), len(test), len(pairs) - len(train) - len(test))
            text = "PairKFold setting %s, fold %d (%s): %d training pairs, %d test pairs, %d in neither"
            _LOGGER.info(text, self.setting, fold, where, *counts)
            yield train, test
        if skipped == self._n_folds():
            raise ValueError(
                f"PairKFold(setting={self.setting!r}, n_splits={self.n_splits}) finds no fold with training and test "
                f"pairs among {len(pairs)} pairs. Use another setting, fewer n_splits or more pairs."
            )

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; if X is given, without those that are left out.

        Parameters
        ----------
        X : Pairs, or array, sparse array or DataFrame of shape (n, d), default=None
        y, groups : ignored

        Returns
        -------
        int

        Examples
        --------
        >>> from gramian import PairKFold
        >>> PairKFold("A", 5).get_n_splits(), PairKFold("D", 5, symmetric=True).get_n_splits()
        (5, 15)
        """
        return self._n_folds() if X is None else len(self.summary(X))

    def summary(self, X: Any) -> list[dict[str, int]]:
        """Count the pairs in the parts of each fold.

        Parameters
        ----------
        X : Pairs, or array, sparse array or DataFrame of shape (n, d)

        Returns
        -------
        list of dict
            For each fold that `split` gives: its number "fold", and the numbers of pairs "train", "test" and
            "discarded", which add up to n.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import PairKFold, Pairs
        >>> PairKFold("C", 2).summary(Pairs.complete(np.eye(3), np.eye(4)))[1]
        {'fold': 1, 'train': 6, 'test': 6, 'discarded': 0}
        """
        pairs = self._pairs(X)
        counts = []
        for fold, (_, training, testing) in enumerate(self._folds(pairs)):
            train, test = int(training.sum()), int(testing.sum())
            if train and test:
                discarded = len(pairs) - train - test
                counts.append({"fold": fold, "train": train, "test": test, "discarded": discarded})
        return counts

    def _n_folds(self) -> int:
        if self.setting != "D":
            return int(self.n_splits)
        return int(self.n_splits * (self.n_splits + 1) // 2 if self.symmetric else self.n_splits**2)

    def _pairs(self, X: Any) -> Pairs:
        columns = self.left_columns, self.right_columns
        pairs = X if isinstance(X, Pairs) else Pairs.from_wide(X, *columns)
        if self.symmetric and not pairs.homogeneous:
            raise ValueError(
                "symmetric=True needs homogeneous pairs, with both ends from one table: "
                "Pairs(table, None, left_index, right_index)."
            )
        if len(pairs) == 0:
            raise ValueError("X must hold at least one pair to be divided into folds, got none.")
        return pairs

    def _folds(self, pairs: Pairs) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Name, training mask and test mask of all folds, also of empty ones."""
        random = check_random_state(self.random_state) if self.shuffle else None
        folds = range(self.n_splits)
        if self.setting == "A" or (self.setting != "D" and not pairs.homogeneous):
            what, members = self._members(pairs)
            fold_of = self._partition(what, members, random)
            for s in folds:
                yield f"{what} {s}", fold_of != s, fold_of == s
        elif not pairs.homogeneous:
            row = self._partition("left objects", pairs.left_index, random)
            column = self._partition("right objects", pairs.right_index, random)
            for s, t in product(folds, folds):
                where = f"left objects {s}, right objects {t}"
                yield where, (row != s) & (column != t), (row == s) & (column == t)
        else:
            ends = np.concatenate([pairs.left_index, pairs.right_index])
            left, right = np.split(self._partition("objects", ends, random), 2)
            blocks = product(folds, folds) if self.setting == "D" else zip(folds, folds)
            for s, t in blocks:
                if s <= t or not self.symmetric:
                    training = (left != s) & (left != t) & (right != s) & (right != t)
                    where = f"objects {s} and {t}" if self.setting == "D" else f"objects {s}"
                    yield where, training, self._tested(left, right, s, t)

    def _members(self, pairs: Pairs) -> tuple[str, np.ndarray]:
        """What is divided into folds for A, and for B and C of two sets of objects; for each pair, which it has."""
        if self.setting == "B":
            return "left objects", pairs.left_index
        if self.setting == "C":
            return "right objects", pairs.right_index
        if not self.symmetric:
            return "cells", pairs.distinct()[2]
        low = np.minimum(pairs.left_index, pairs.right_index)
        high = np.maximum(pairs.left_index, pairs.right_index)
        return "cells", low * pairs.n_right + high

    def _tested(self, left: np.ndarray, right: np.ndarray, s: int, t: int) -> np.ndarray:
        """Test pairs within one set of objects, from the folds of their two ends."""
        if self.setting == "D":
            block = (left == s) & (right == t)
            return block | (left == t) & (right == s) if self.symmetric else block
        if self.symmetric:
            return (left == s) != (right == s)
        new, known = (left, right) if self.setting == "B" else (right, left)
        return (new == s) & (known != s)

    def _partition(self, what: str, members: np.ndarray, random: Any) -> np.ndarray:
        """Divide the distinct members evenly and return the fold of each entry of ``members``."""
        distinct, inverse = np.unique(members, return_inverse=True)
        if len(distinct) < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} in setting {self.setting} needs at least {self.n_splits} {what}, "
                f"the pairs have {len(distinct)}. Use fewer n_splits or another setting."
            )
        fold_of = np.arange(len(distinct)) * self.n_splits // len(distinct)
        if random is not None:
            fold_of = fold_of[random.permutation(len(distinct))]
        return fold_of[inverse]

    def _warn_of_one_class(
        self, fold: int, where: str, positive: np.ndarray, train: np.ndarray, test: np.ndarray
    ) -> None:
        for part, rows in (("training", train), ("test", test)):
            if positive[rows].all() or not positive[rows].any():
                warnings.warn(
                    f"The {part} part of fold {fold} of setting {self.setting} ({where}) has one class only, in all "
                    f"{len(rows)} pairs. Use fewer than n_splits={self.n_splits} or another random_state than "
                    f"{self.random_state!r}.",
                    UserWarning,
                    stacklevel=3,
                )


def pair_setting(train: Pairs, new: Pairs) -> np.ndarray:
    """Say for each new pair which of its objects were in the training pairs.

    Objects are the same if they are one row of one table; in different tables, if they have the same id, or, where a
    table has no ids, the same features. In homogeneous training pairs an object is known if it was at either end.

    Parameters
    ----------
    train : Pairs
    new : Pairs

    Returns
    -------
    ndarray of shape (len(new),)
        "A" both objects are known, "B" the left one is new, "C" the right one is new, "D" both are new.

    See Also
    --------
    PairKFold : Folds for one of the settings.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Pairs
    >>> from gramian.selection import pair_setting
    >>> pairs = Pairs.complete(np.eye(2), np.eye(2))
    >>> pair_setting(pairs[:1], pairs)
    array(['A', 'C', 'B', 'D'], dtype='<U1')
    """
    check_pairs("train", train)
    check_pairs("new", new)
    known = []
    for side, old in zip(new.sides, train.sides, strict=True):
        ends = np.concatenate([train.left_index, train.right_index])
        used = np.unique(ends if train.homogeneous else old.index)
        if side.table is old.table:
            objects = np.isin(np.arange(old.size), used)
        else:
            ids = None if old.ids is None else old.ids[used]
            objects = match_objects(old.table[used], ids, side.table, side.ids) >= 0
        known.append(objects[side.index])
    return np.array(SETTINGS)[2 * ~known[1] + ~known[0]]


def _two_classes(y: Any, n_pairs: int) -> np.ndarray | None:
    """Whether each pair has the second of two classes; None if y does not have exactly two."""
    if y is None:
        return None
    y = np.asarray(y)
    if y.shape[:1] != (n_pairs,):
        raise ValueError(f"y must have {n_pairs} entries, one for each pair in X; got {y.shape}.")
    values = np.unique(y)
    return y == values[1] if y.ndim == 1 and len(values) == 2 else None
