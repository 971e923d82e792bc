"""y of any kind as signs of labels, and decision values as predictions in the kind of y.

No mathematics. Kinds of y: "indicator" (0/1), "signs" (−1/+1), "bool", "sparse array" and "sparse matrix" (0/1)
have a column for each label; "binary" and "multiclass" are one-dimensional.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import column_or_1d

from gramian.estimators.classes import distinct
from gramian.estimators.examples import TrainingData
from gramian.estimators.fitting import Targets

_VALUES = {"signs": np.array([-1, 1]), "bool": np.array([False, True])}


@dataclass(frozen=True, eq=False)
class LabelSigns:
    """What y says.

    Attributes
    ----------
    signs : ndarray of int8 of shape (n, L)
        +1 where an example has a label, −1 where it has not.
    kind : str
        Kind of y.
    classes : ndarray of shape (n_classes,), or list of L ndarrays of shape (2,)
        What scikit-learn calls ``classes_``; a list if y has a column for each label.
    names : ndarray of shape (L,) or None
        Names of the labels: columns of a data frame, or the classes of a multi-class y.
    """

    signs: np.ndarray
    kind: str
    classes: Any
    names: np.ndarray | None

    @property
    def has_columns(self) -> bool:
        """Whether y has a column for each label."""
        return isinstance(self.classes, list)

    @property
    def codes(self) -> np.ndarray:
        """Number of the class of each example, if y is one-dimensional."""
        positive = self.signs > 0
        return positive[:, 0].astype(int) if self.kind == "binary" else positive.argmax(axis=1)


class Labels(Targets):
    """Labels of examples as targets: a column for each label, or one class for each example."""

    checks: ClassVar = {"multi_output": True}

    def read(self, data: TrainingData) -> LabelSigns:
        return label_signs(data.y, data.given)


def label_signs(y: Any, given: Any) -> LabelSigns:
    """Read y.

    Parameters
    ----------
    y : ndarray or CSR array of shape (n,) or (n, L)
        As validated by scikit-learn.
    given : object
        As it came from the user, which may know names.

    Returns
    -------
    LabelSigns
    """
    if sp.issparse(y):
        kind = "sparse array" if isinstance(given, sp.sparray) else "sparse matrix"
        return _with_columns(_signs_of_sparse(y), kind, given)
    if y.ndim == 2:
        kind = _kind_of_columns(y)
        if kind is not None:
            signs = np.where(y == 1, np.int8(1), np.int8(-1))
            return _with_columns(signs, kind, given)
        if y.shape[1] > 1:
            raise ValueError(
                f"y has {y.shape[1]} columns, so it must say which labels each example has by 0 and 1, by -1 and 1 or "
                f"by booleans; got {reprlib.repr(np.unique(y.astype(str)).tolist())}. Classes that exclude each other "
                "are one-dimensional."
            )
        y = column_or_1d(y, warn=True)
    classes, codes = distinct(y)
    if classes.size == 2:
        signs = (2 * codes - 1).astype(np.int8)[:, None]
        return LabelSigns(signs, "binary", classes, None)
    signs = np.full((len(y), classes.size), -1, dtype=np.int8)
    signs[np.arange(len(y)), codes] = 1
    return LabelSigns(signs, "multiclass", classes, classes)


def in_kind(kind: str, classes: Any, values: np.ndarray) -> Any:
    """Return what is predicted for decision values of shape (n, L), in the kind of y."""
    if kind == "multiclass":
        return classes[values.argmax(axis=1)]
    positive = values > 0
    if kind == "binary":
        return classes[positive[:, 0].astype(int)]
    if kind.startswith("sparse"):
        container = sp.csr_array if kind == "sparse array" else sp.csr_matrix
        return container(positive, dtype=np.int64)
    return positive if kind == "bool" else _VALUES.get(kind, np.array([0, 1]))[positive.astype(int)]


def _with_columns(signs: np.ndarray, kind: str, given: Any) -> LabelSigns:
    columns = getattr(given, "columns", None)
    names = None if columns is None else np.asarray(list(columns))
    values = _VALUES.get(kind, np.array([0, 1]))
    return LabelSigns(signs, kind, [values.copy() for _ in range(signs.shape[1])], names)


def _kind_of_columns(y: np.ndarray) -> str | None:
    """Kind of a y with columns, or None if it is no indicator of labels."""
    if y.dtype.kind == "b":
        return "bool"
    if y.dtype.kind == "O":  # columns of a data frame that differ in type
        try:
            y = y.astype(float)
        except (TypeError, ValueError):
            return None
    if y.dtype.kind not in "iuf":
        return None
    if ((y == 0) | (y == 1)).all():
        return "indicator"
    return "signs" if ((y == -1) | (y == 1)).all() else None


def _signs_of_sparse(y: Any) -> np.ndarray:
    y = sp.csr_array(y, copy=True)
    y.sum_duplicates()
    if not ((y.data == 0) | (y.data == 1)).all():
        wrong = y.data[(y.data != 0) & (y.data != 1)][0]
        raise ValueError(
            f"A sparse y must hold 0 and 1, got {wrong:g}: what is not stored is 0, which is neither -1 nor 1. "
            "Pass y > 0, or a dense y of -1 and 1."
        )
    signs = np.full(y.shape, -1, dtype=np.int8)
    stored = y.data == 1
    rows = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))
    signs[rows[stored], y.indices[stored]] = 1
    return signs
