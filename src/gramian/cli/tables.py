"""Reading data files: columns (CSV, Parquet), arrays (NPZ) and sparse rows (svmlight). `sequence_tables` reads tokens.

A `Layout` remembers what the training data looked like. New data are read by it, so that a column
is a number or a text because it was one in training, whatever the new file happens to hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.cli.errors import UserError, read_or_say, require
from gramian.cli.unpacking import check_archive, open_gzip

COLUMNS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
SPARSE_ROWS = (".svm", ".svmlight", ".libsvm")
ARRAYS = (".npz",)
TOKENS = (".conll", ".bio", ".iob")

NUMBER, CATEGORY, TEXT = "number", "category", "text"

# Up to here text is a category even if it has several words ("Married, civil union").
MOST_CATEGORIES = 50
WORDS_OF_TEXT = 1.5

MOST_FEATURES = 2**25  # of sparse rows: scaling keeps a number for each, 256 MiB then


@dataclass(frozen=True)
class Layout:
    """What the training data looked like.

    Attributes
    ----------
    source : {"columns", "array", "sparse", "tokens"}
    target : str or None
        Name of the target column or array, number of the field of a token; None in svmlight files.
    n_features : int
        For tokens the number of fields in a line, with the target.
    columns : dict of str: str
        "number", "category" or "text" for each column that is used; empty for arrays.
    left_out : dict of str: str
        Columns that are not used, and why.
    first_index : int or None
        Whether features of svmlight files are counted from 0 or 1; None if there was no such file.
    labels : {"text", "integer", "number"}
        How the target is to be read.
    sequence : str or None
        Column that says which rows are a sequence; None if there is no such column.
    """

    source: str
    target: str | None
    n_features: int
    columns: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    first_index: int | None = None
    labels: str = TEXT
    sequence: str | None = None

    @property
    def of_sequences(self) -> bool:
        """Whether an example is a sequence of positions with a label each."""
        return self.sequence is not None or self.source == "tokens"

    def with_labels(self, y: np.ndarray) -> Layout:
        """Remember how the target is to be read."""
        kind = {"i": "integer", "u": "integer", "f": NUMBER}.get(y.dtype.kind, TEXT)
        return replace(self, labels=kind)


def read_training(
    path: Path, target: str | None, *, labels_are_text: bool
) -> tuple[Any, np.ndarray, Layout]:
    """Read features and target, and find out what they are.

    Parameters
    ----------
    path : Path
    target : str or None
        Column of a table, array of an .npz file (default "y"); None for svmlight files.
    labels_are_text : bool
        Read labels as they are written: 007 stays 007.

    Returns
    -------
    X : DataFrame, ndarray or CSR array
    y : ndarray of shape (n_samples,), text, int64 or float64
    layout : Layout
    """
    extension = extension_of(path)
    if extension in COLUMNS:
        if target is None:
            raise UserError(f"Name the column of {path} to predict: --target COLUMN.")
        frame = read_frame(path, text=[target])
        y = column_target(frame, target, path, labels_are_text)
        layout = column_layout(frame.drop(columns=target), target, path)
        return as_kinds(frame, layout, path), y, layout
    if extension in SPARSE_ROWS:
        if target is not None:
            raise UserError(f"{path} has the target in front of each row: leave --target out.")
        X, y = _read_svmlight(path)
        first = _first_index(X)
        X = X[:, first:]
        layout = Layout("sparse", None, X.shape[1], first_index=first)
    else:
        X, y = _read_npz(path, target or "y")
        layout = Layout("sparse" if sp.issparse(X) else "array", target or "y", X.shape[1])
    _check_target(X, y, path, f"has no array {layout.target!r}; name another by --target.")
    return X, labels_as(y, TEXT if labels_are_text else None, path), layout


def read_new(path: Path, layout: Layout, *, need_target: bool) -> tuple[Any, Any]:
    """Read data in the layout of the training data; the target only where it is needed.

    Parameters
    ----------
    path : Path
    layout : Layout
    need_target : bool

    Returns
    -------
    X : DataFrame, ndarray or CSR array
    y : ndarray of shape (n_samples,) or None
    """
    extension = extension_of(path)
    if extension in TOKENS or (extension in COLUMNS) != (layout.source == "columns"):
        wanted = COLUMNS if layout.source == "columns" else ARRAYS + SPARSE_ROWS
        raise UserError(f"The model was trained on other data: it reads {', '.join(wanted)}.")
    if extension in COLUMNS:
        text = [name for name, kind in layout.columns.items() if kind != NUMBER]
        frame = read_frame(path, text=[*text, layout.target or ""])
        X = as_kinds(frame, layout, path)
        return X, new_target(frame, layout, path) if need_target else None
    if extension in SPARSE_ROWS:
        X, y = _read_svmlight(path)
        X = X[:, _first_index(X) if layout.first_index is None else layout.first_index :]
        # Rows end at their last feature. A feature the model never saw is like an unknown word.
        X = sp.csr_array(X[:, : layout.n_features])
        X.resize(X.shape[0], layout.n_features)
    else:
        X, y = _read_npz(path, layout.target or "y")
    if X.shape[1] != layout.n_features:
        raise UserError(
            f"{path} has {X.shape[1]} features; the model was trained on {layout.n_features}."
        )
    if layout.source == "sparse":
        X = sp.csr_array(X)
    elif sp.issparse(X):
        X = X.toarray()
    if not need_target:
        return X, None
    _check_target(X, y, path, f"has no array {layout.target or 'y'!r} to compare with.")
    return X, labels_as(y, layout.labels, path)


def extension_of(path: Path) -> str:
    """Return the end of the name that says what kind of file it is."""
    known = COLUMNS + SPARSE_ROWS + ARRAYS + TOKENS
    for extension in known:
        if path.name.lower().endswith(extension):
            return extension
    names = ", ".join(known)
    raise UserError(f"{path}: unknown kind of file; the name must end in one of {names}.")


# --- columns ---------------------------------------------------------------------------------------


def read_frame(
    path: Path, text: list[str], *, keep_index: bool = False, n_rows: int | None = None
) -> Any:
    """Read a DataFrame, or its first rows; the columns named in `text` as they are written.

    A Parquet file may have an index. It is dropped, or with `keep_index` made the first columns if it names the rows.
    """
    require("pandas", purpose=f"Reading {path}")
    import pandas as pd

    extension = extension_of(path)
    if extension == ".parquet":
        require("pyarrow", purpose=f"Reading {path}")
        frame = read_or_say(path, lambda: pd.read_parquet(path))
        numbered = pd.api.types.is_integer_dtype(frame.index) and frame.index.name is None
        if keep_index and not numbered:
            frame = frame.reset_index()
    else:
        separator = "\t" if extension.startswith(".tsv") else ","

        def read(**options: Any) -> Any:
            shared = {"sep": separator, "low_memory": False, "nrows": n_rows}
            if not extension.endswith(".gz"):
                return pd.read_csv(path, **shared, **options)
            with open_gzip(path) as file:
                return pd.read_csv(file, **shared, **options)

        frame = read_or_say(path, lambda: read(dtype=dict.fromkeys(text, str)))
        # pandas takes "true" for a bool and would write it "True"; a category stays as written.
        booleans = [name for name, kind in frame.dtypes.items() if kind.kind in "bO"]
        if booleans:
            frame[booleans] = read(usecols=booleans, dtype=str)
    frame.columns = frame.columns.astype(str)
    if len(frame) == 0 and n_rows is None:
        raise UserError(f"{path} has no rows.")
    return frame.reset_index(drop=True)


def column_layout(frame: Any, target: str, path: Path) -> Layout:
    """Find out what each column is."""
    kinds = {name: _kind(frame[name], name) for name in frame.columns}
    columns = {name: kind for name, (kind, _) in kinds.items() if kind is not None}
    left_out = {name: reason for name, (kind, reason) in kinds.items() if kind is None}
    if not columns:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        alone = "only the target" if target else "only the ids"
        raise UserError(f"{path} has no column to learn from ({reasons or alone}).")
    return Layout("columns", target, len(columns), columns, left_out)


def _kind(column: Any, name: str) -> tuple[str | None, str]:
    """Return what a column is, or None and why it is of no use."""
    import pandas as pd

    present = column.dropna()
    if present.empty:
        return None, "no values"
    boolean = pd.api.types.is_bool_dtype(column)
    number = pd.api.types.is_numeric_dtype(column) and not boolean
    category = boolean or isinstance(column.dtype, pd.CategoricalDtype)
    if not number and not category and not present.map(lambda value: isinstance(value, str)).all():
        return None, f"neither numbers nor text, but {column.dtype}"
    distinct = present.nunique()
    if distinct == 1 and len(present) == len(column):
        return None, "the same value in all rows"
    if name.startswith("Unnamed:") and number and distinct == len(column):  # pandas' own index
        return None, "row numbers"
    if number:
        return NUMBER, ""
    if category or distinct <= min(MOST_CATEGORIES, len(present) / 2):
        return CATEGORY, ""
    if present.str.split().str.len().mean() > WORDS_OF_TEXT:
        return TEXT, ""
    if distinct == len(present):
        return None, "another word in each row"
    return CATEGORY, ""


def as_kinds(frame: Any, layout: Layout, path: Path) -> Any:
    """Return the columns of the layout: float64, or str with "" where a value is missing."""
    import pandas as pd

    missing = [name for name in layout.columns if name not in frame.columns]
    if missing:
        names = ", ".join(repr(name) for name in missing)
        raise UserError(f"{path} lacks columns of the training data: {names}.")
    columns = {}
    for name, kind in layout.columns.items():
        column = frame[name]
        if kind == NUMBER:
            columns[name] = _numbers(column, name, path)
        else:
            words = column.astype(object).where(column.notna(), "")
            columns[name] = words.map(str).astype(object)
    return pd.DataFrame(columns)


def _numbers(column: Any, name: str, path: Path) -> Any:
    import pandas as pd

    values = pd.to_numeric(column, errors="coerce")
    bad = values.isna() & column.notna()
    if bad.any():
        raise UserError(
            f"{path}: column {name!r} held numbers in training, and now {column[bad].iloc[0]!r}."
        )
    return values.astype(np.float64)


def column_target(frame: Any, target: str, path: Path, labels_are_text: bool) -> np.ndarray:
    """Return the target as it is written, or as numbers where all of it are numbers."""
    import pandas as pd

    check_names(path, frame.columns, target)
    column = frame[target]
    missing = column.isna()
    if missing.any():
        raise UserError(
            f"{path}: the target {target!r} is missing in {missing.sum()} rows, first in row "
            f"{int(missing.argmax()) + 1} (empty, NA, None and the like count as missing)."
        )
    if not labels_are_text and not pd.api.types.is_bool_dtype(column):
        numbers = pd.to_numeric(column.astype(object), errors="coerce")
        if numbers.notna().all():
            return labels_as(np.asarray(numbers), None, path)
    return labels_as(np.asarray(column.astype(object), dtype=object), TEXT, path)


def new_target(frame: Any, layout: Any, path: Path) -> np.ndarray:
    """Return the target of new data as it was read in training."""
    y = column_target(frame, layout.target or "", path, labels_are_text=layout.labels == TEXT)
    return labels_as(y, layout.labels, path)


def check_names(path: Path, names: Any, *needed: str) -> None:
    """Refuse a table without a column that is needed."""
    for name in needed:
        if name not in names:
            raise UserError(f"{path} has no column {name!r}; it has {some_of(names)}.")


def some_of(names: Any) -> str:
    """Return the first names, separated by commas."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


# --- arrays ----------------------------------------------------------------------------------------


def _read_svmlight(path: Path) -> tuple[Any, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    # By itself it would guess from each file anew whether features are counted from 0 or 1.
    X, y = read_or_say(path, lambda: load_svmlight_file(str(path), zero_based=True))
    if X.shape[0] == 0:
        raise UserError(f"{path} has no rows.")
    if X.shape[1] > MOST_FEATURES:
        raise UserError(
            f"{path} has a feature with the number {X.shape[1] - 1}; at most {MOST_FEATURES} features are read. Number "
            "them anew, or hash them with sklearn.feature_extraction.FeatureHasher."
        )
    return sp.csr_array(X), y


def _first_index(X: Any) -> int:
    """Count features from 1 if nobody has feature 0."""
    return int(X.shape[1] > 0 and X[:, [0]].count_nonzero() == 0)


def _read_npz(path: Path, target: str) -> tuple[Any, Any]:
    def read() -> tuple[Any, Any]:
        check_archive(path, path)
        with np.load(path, allow_pickle=False) as file:
            y = file.get(target)
            if "X" in file:
                return file["X"], y
            parts = [f"X_{part}" for part in ("data", "indices", "indptr", "shape")]
            if not all(part in file for part in parts):
                raise UserError(f"{path} has no array X, and not all of {', '.join(parts)}.")
            data, indices, indptr, shape = (file[part] for part in parts)
            X = sp.csr_array((data, indices, indptr), shape=tuple(int(s) for s in shape))
            X.check_format(full_check=True)
            return X, y

    X, y = read_or_say(path, read)
    if X.ndim != 2 or X.dtype.kind not in "fiub" or X.shape[0] == 0:
        raise UserError(
            f"{path}: X must be numbers of shape (rows, features), "
            f"got {X.dtype} of shape {X.shape}."
        )
    return X if X.dtype.kind == "f" else X.astype(np.float64), y


def _check_target(X: Any, y: Any, path: Path, missing: str) -> None:
    """Refuse a target that is missing, or has another length than the features."""
    if y is None:
        raise UserError(f"{path} {missing}")
    if y.shape != (X.shape[0],):
        raise UserError(
            f"{path}: the target must have shape ({X.shape[0]},), one value for each row of X; "
            f"got {y.shape}."
        )


# --- labels ----------------------------------------------------------------------------------------


def labels_as(y: np.ndarray, kind: str | None, path: Path) -> np.ndarray:
    """Return text, int64 (all numbers whole) or float64; kind None is what the values are."""
    numeric = y.dtype.kind in "iuf"
    if numeric and not np.isfinite(y).all():
        raise UserError(f"{path}: the target holds values that are not finite.")
    whole = numeric and bool((y == np.trunc(y)).all()) and bool((np.abs(y) < 2**53).all())
    if kind is None:
        kind = "integer" if whole else NUMBER if numeric else TEXT
    if kind == TEXT:
        return np.asarray(y.astype(np.int64) if whole else y).astype(str)
    if not numeric or (kind == "integer" and not whole):
        bad = y[0] if not numeric else y[y != np.trunc(y)][0]
        wanted = "whole numbers" if kind == "integer" else "numbers"
        raise UserError(f"{path}: the target was {wanted} in training, and now holds {bad!r}.")
    return y.astype(np.int64 if kind == "integer" else np.float64)
