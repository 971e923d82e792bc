"""Tokens and their labels from column files, as the shared tasks of CoNLL have used them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gramian._core.validation import check_number
from gramian.sequences.values import object_vector

_BLANKS = re.compile("[ \t]+")
_DOCUMENT = "-DOCSTART-"


class ConllData(NamedTuple):
    """What is in a column file.

    Attributes
    ----------
    tokens : list of lists of str
        The tokens of each sentence: what `SequenceVectorizer` takes.
    columns : list of object ndarrays of shape (n_sentences,)
        The labels of each further column: one array of labels for each sentence, as `Sequences.split` returns them
        and scikit-learn takes them as y.
    """

    tokens: list[list[str]]
    columns: list[np.ndarray]


def read_conll(
    path_or_file: str | os.PathLike[str] | Iterable[str], *, columns: Iterable[int] | None = None
) -> ConllData:
    """Read a file with one token in each line, its labels beside it, and a blank line after each sentence.

    Fields are separated by tabs if the first line with a token has one, and by blanks or tabs otherwise. All lines
    have as many fields as that one. A line that begins with ``-DOCSTART-`` is left out and ends the sentence. Comments
    are left out: lines that begin with ``#`` and a blank and have another number of fields.

    Parameters
    ----------
    path_or_file : path, open text file or list of lines
        A file that is named by its path is read as UTF-8.
    columns : list of int, default=None
        The fields to keep, counted from 0 or, if negative, from the end of the line; that of the token comes first.
        None: all of them, the token in field 0. In the files of CoNLL-2003 ``[0, -1]`` are words and entities, in
        those of Universal Dependencies ``[1, 3]`` are words and parts of speech.

    Returns
    -------
    ConllData
        ``tokens``, a list of tokens for each sentence, and ``columns``, the labels of each further column in the same
        order as the fields: one array of labels for each sentence.

    Examples
    --------
    >>> from gramian.sequences import read_conll
    >>> data = read_conll(["Peter NNP B-PER", "sleeps VBZ O", "", "Rain NN O"])
    >>> data.tokens
    [['Peter', 'sleeps'], ['Rain']]
    >>> tags, entities = data.columns
    >>> entities
    array([array(['B-PER', 'O'], dtype=object), array(['O'], dtype=object)],
          dtype=object)
    """
    name, lines = _named_lines(path_or_file)
    kept = None if columns is None else _checked_columns(columns)
    sentences, n_fields = _sentences(name, lines)
    if kept is None:
        kept = list(range(n_fields)) or [0]
    for field in kept:
        if sentences and not -n_fields <= field < n_fields:
            raise ValueError(
                f"columns holds {field}, but the lines of {name} have {n_fields} fields."
            )
    tokens, *labels = ([[fields[k] for fields in sentence] for sentence in sentences] for k in kept)
    return ConllData(tokens, [object_vector(map(object_vector, column)) for column in labels])


def _named_lines(path_or_file: Any) -> tuple[str, list[str]]:
    """Return what errors call the file, and its lines."""
    if not isinstance(path_or_file, (str, os.PathLike)):
        name = str(getattr(path_or_file, "name", "path_or_file"))
        lines = list(path_or_file)
        if not all(isinstance(line, str) for line in lines):
            raise TypeError(f"{name} must hold text, not bytes. Open the file in text mode.")
        return name, lines
    try:
        # The signature that some editors put before UTF-8 is no part of the first token.
        with Path(path_or_file).open(encoding="utf-8-sig") as file:
            return str(path_or_file), list(file)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path_or_file} must be UTF-8 text: {error}. "
            "Pass a file that was opened with another encoding."
        ) from None


def _checked_columns(columns: Any) -> list[int]:
    """Return the numbers of the fields to keep as a list that is not empty."""
    if isinstance(columns, (str, int)):
        raise TypeError(
            f"columns must be a list of field numbers, that of the token first; got {columns!r}."
        )
    kept = list(columns)
    if not kept:
        raise ValueError("columns must name at least the field of the token, got an empty list.")
    for field in kept:
        check_number("columns", field, low=-np.inf, whole=True)
    return kept


def _sentences(name: str, lines: list[str]) -> tuple[list[list[list[str]]], int]:
    """Return the fields of each token of each sentence, and how many fields a token has (0 if there is none)."""
    stripped = [line.strip(" \t\r\n") for line in lines]
    plain = (
        i
        for i, line in enumerate(stripped)
        if line and not line.startswith(_DOCUMENT) and not _like_a_comment(line)
    )
    first = next(plain, None)
    if first is None:
        return [], 0
    tabs = "\t" in stripped[first]
    n_fields = len(_fields(stripped[first], tabs))
    sentences: list[list[list[str]]] = [[]]
    for i, line in enumerate(stripped):
        if not line or line.startswith(_DOCUMENT):
            sentences.append([])
            continue
        fields = _fields(line, tabs)
        if len(fields) == n_fields:
            sentences[-1].append(fields)
        elif not _like_a_comment(line):
            raise ValueError(
                f"{name}, line {i + 1} must have {n_fields} fields like line {first + 1}, got {len(fields)}: {line!r}. "
                f"Separate fields by {'tabs' if tabs else 'blanks or tabs'} and sentences by a blank line."
            )
    return [sentence for sentence in sentences if sentence], n_fields


def _like_a_comment(line: str) -> bool:
    """Whether the line begins like a comment; the token # can begin a line, too."""
    return line == "#" or line.startswith("# ")


def _fields(line: str, tabs: bool) -> list[str]:
    """Cut a line into its fields; other kinds of blanks, such as one that does not break, may be part of a token."""
    return [field.strip(" ") for field in line.split("\t")] if tabs else _BLANKS.split(line)
