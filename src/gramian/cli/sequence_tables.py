"""Label sequences from files: tables with one row for each position, and column files of tokens.

In a table, the column of --sequence has the same value in all rows of a sequence, and these rows are consecutive and in
order. A column file has one token in each line, its labels beside it, and a blank line after each sentence. Positions
without a label in a table have the label None: it is not known.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from gramian import Sequences
from gramian.cli import tables as files
from gramian.cli.errors import UserError, read_or_say
from gramian.cli.pair_tables import ids_of
from gramian.cli.tables import TOKENS, Layout
from gramian.sequences import read_conll
from gramian.sequences.tables import lengths_of_groups
from gramian.sequences.values import object_vector


class SequenceColumns(BaseEstimator):
    """Make `Sequences` of a table with one row for each position: the first step of a pipeline.

    Parameters
    ----------
    sequence : str
        Column with the same value in all rows of a sequence, which are consecutive.
    columns : transformer
        From the other columns to features of positions.

    Attributes
    ----------
    columns_ : transformer
        The fitted copy of `columns`.
    """

    def __init__(self, sequence: str, columns: Any):
        self.sequence = sequence
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> SequenceColumns:
        """Fit the transformer of the columns on all positions.

        Parameters
        ----------
        X : DataFrame
        y : ignored

        Returns
        -------
        self
        """
        self.columns_ = clone(self.columns).fit(X)
        return self

    def transform(self, X: Any) -> Sequences:
        """Return the features of positions, cut into sequences.

        Parameters
        ----------
        X : DataFrame

        Returns
        -------
        Sequences
        """
        return Sequences(self.columns_.transform(X), lengths_of_groups(X, self.sequence))


def read_training_sequences(
    path: Path, sequence: str | None, target: str | None, *, labels_are_text: bool
) -> tuple[Any, np.ndarray, Layout]:
    """Read positions and labels, and find out what they are.

    Parameters
    ----------
    path : Path
    sequence : str or None
        Column of a table that says which rows are a sequence; None for a column file.
    target : str or None
        Column of a table, or number of a field, by default the last.
    labels_are_text : bool
        Read labels as they are written: 007 stays 007.

    Returns
    -------
    X : DataFrame with the column of sequences, or list with a list of tokens for each sentence
    y : object ndarray of shape (n_sequences,)
        An array for each sequence, with None for labels that are not known.
    layout : Layout
    """
    extension = files.extension_of(path)
    if extension in TOKENS:
        if sequence is not None:
            raise UserError(
                f"--sequence {sequence} is for tables; in {path} a blank line ends a sequence: leave it out."
            )
        return _training_tokens(path, target)
    if sequence is None or extension not in files.COLUMNS:
        raise UserError(
            f"--sequence {sequence} is for tables, which end in one of {', '.join(files.COLUMNS)}; got {path}."
        )
    if target is None:
        raise UserError(f"Name the column of {path} to predict: --target COLUMN.")
    if target == sequence:
        raise UserError(f"--sequence {sequence} is the column of --target, too: name another one.")
    frame = files.read_frame(path, text=[sequence, target])
    files.check_names(path, frame.columns, sequence, target)
    ids = _sequence_ids(frame, sequence, path)
    labelled = frame[frame[target].notna()]
    if labelled.empty:
        raise UserError(f"{path}: the target {target!r} is missing in all rows.")
    labels = files.column_target(labelled, target, path, labels_are_text)
    layout = files.column_layout(frame.drop(columns=[sequence, target]), target, path)
    layout = replace(layout.with_labels(labels), sequence=sequence)
    X = files.as_kinds(frame, layout, path).assign(**{sequence: ids})
    return X, _split(frame, target, labels, ids), layout


def read_new_sequences(path: Path, layout: Layout, *, need_target: bool) -> tuple[Any, Any]:
    """Read positions in the layout of the training data; the labels only where they are needed.

    Parameters
    ----------
    path : Path
    layout : Layout
    need_target : bool

    Returns
    -------
    X : DataFrame with the column of sequences, or list with a list of tokens for each sentence
    y : object ndarray of shape (n_sequences,), or None
    """
    wanted = TOKENS if layout.sequence is None else files.COLUMNS
    if files.extension_of(path) not in wanted:
        raise UserError(
            f"The model was trained on other data than {path}: it reads {', '.join(wanted)}."
        )
    if layout.sequence is None:
        return _new_tokens(path, layout, need_target=need_target)
    target, sequence = layout.target or "", layout.sequence
    text = [name for name, kind in layout.columns.items() if kind != files.NUMBER]
    frame = files.read_frame(path, text=[*text, sequence, target])
    files.check_names(path, frame.columns, sequence)
    ids = _sequence_ids(frame, sequence, path)
    X = files.as_kinds(frame, layout, path).assign(**{sequence: ids})
    if not need_target:
        return X, None
    files.check_names(path, frame.columns, target)
    labelled = frame[frame[target].notna()]
    if labelled.empty:
        raise UserError(
            f"{path}: the target {target!r} is missing in all rows; give labels to compare with."
        )
    return X, _split(frame, target, files.new_target(labelled, layout, path), ids)


def known_labels(y: np.ndarray) -> np.ndarray:
    """Return the labels of all positions that have one, as an array of text or numbers."""
    return np.array([label for labels in y for label in labels if label is not None])


# --- tables ----------------------------------------------------------------------------------------


def _sequence_ids(frame: Any, column: str, path: Path) -> np.ndarray:
    """Return the sequence of each row as text; refuse rows of one sequence that are apart."""
    ids = ids_of(frame, column, path).to_numpy(dtype=str)
    begun: dict[str, int] = {}
    for row in _first_rows(ids).tolist():
        before = begun.setdefault(str(ids[row]), row)
        if before != row:
            raise UserError(
                f"{path}: the rows of the sequence {str(ids[row])!r} in column {column!r} are not consecutive: they "
                f"begin in row {before + 1} and again in row {row + 1}. Sort the rows by {column!r}, and keep their "
                "order within a sequence."
            )
    return ids


def _first_rows(ids: np.ndarray) -> np.ndarray:
    """Return the rows where another sequence begins."""
    return np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))


def _split(frame: Any, target: str, labels: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return one array of labels for each sequence, from the labels of the rows that have one."""
    every = np.full(len(frame), None, dtype=object)
    every[frame[target].notna().to_numpy()] = labels.tolist()
    return object_vector(np.split(every, _first_rows(ids)[1:]))


# --- column files ----------------------------------------------------------------------------------


def _training_tokens(path: Path, target: str | None) -> tuple[list[Any], np.ndarray, Layout]:
    tokens, columns = _fields(path)
    field = _target_field(target, 1 + len(columns), path)
    labels = columns.pop(field - 1)
    return _with_fields(tokens, columns), labels, Layout("tokens", str(field), 2 + len(columns))


def _new_tokens(path: Path, layout: Layout, *, need_target: bool) -> tuple[list[Any], Any]:
    """Read tokens; where the labels are not needed, their field may be missing."""
    tokens, columns = _fields(path)
    n_fields, expected = 1 + len(columns), layout.n_features
    if n_fields == expected:
        labels = columns.pop(int(layout.target or -1) - 1)
        return _with_fields(tokens, columns), labels if need_target else None
    if n_fields != expected - 1 or need_target:
        raise UserError(
            f"{path} must have {expected} fields in a line, as the training data had, got {n_fields}; only the target, "
            f"field {layout.target} counted from 0, may be missing, and only for predict."
        )
    return _with_fields(tokens, columns), None


def _fields(path: Path) -> tuple[list[list[str]], list[np.ndarray]]:
    """Return the first field of all lines, and the other ones, for each sentence."""
    tokens, columns = read_or_say(path, lambda: read_conll(path))
    if not tokens:
        raise UserError(f"{path} has no tokens.")
    return tokens, columns


def _target_field(target: str | None, n_fields: int, path: Path) -> int:
    """Return the number of the field with the labels, counted from 0; the token is field 0."""
    if n_fields == 1:
        raise UserError(f"{path} has one field in a line; put the label behind the token.")
    try:
        field = -1 if target is None else int(target)
    except ValueError:
        field = 0
    if field % n_fields == 0 or not -n_fields <= field < n_fields:
        raise UserError(
            f"--target {target} must be the number of a field of {path}, 1 to {n_fields - 1}; field 0 is the token."
        )
    return field % n_fields


def _with_fields(tokens: list[list[str]], columns: list[np.ndarray]) -> list[Any]:
    """Return tokens alone, or tuples of a token and its other fields if there are any."""
    if not columns:
        return tokens
    return [list(zip(*fields, strict=True)) for fields in zip(tokens, *columns, strict=True)]
