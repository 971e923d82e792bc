"""What the y of label sequences says: a label, a set of labels, a node of a tree, or nothing, for each position."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from gramian.estimators.classes import class_tree
from gramian.labels import Taxonomy

SETS = (tuple, set, frozenset, list)


@dataclass(frozen=True, eq=False)
class ReadLabels:
    """Labels of positions as numbers.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    codes : int ndarray of shape (n,)
        Number of the label of each position; -1 where it is not certain.
    possible : bool ndarray of shape (n, n_classes) or None
        The labels that each position may have; None if all are certain.
    taxonomy : Taxonomy or None
    order : int ndarray or None
        Node numbers of the classes.
    """

    classes: np.ndarray
    codes: np.ndarray
    possible: np.ndarray | None
    taxonomy: Taxonomy | None = None
    order: np.ndarray | None = None


def read_labels(flat: np.ndarray, hierarchy: Any = None) -> ReadLabels:
    """Return labels of positions as numbers.

    Parameters
    ----------
    flat : object ndarray of shape (n,)
        Labels, sets of labels, or None for a label that is not known.
    hierarchy : anything that `gramian.labels.as_taxonomy` reads, default=None
        Labels are then its nodes; an inner one stands for the leaves below it.
    """
    for meaning in flat:
        for label in meaning if isinstance(meaning, SETS) else (meaning,):
            _check_label(label)
    meanings = {
        meaning for meaning in flat if not isinstance(meaning, SETS) and meaning is not None
    }
    sets = {_frozen(meaning) for meaning in flat if isinstance(meaning, SETS)}
    known = sorted(meanings.union(*sets), key=lambda label: (type(label).__name__, label))
    if not known:
        raise ValueError("y must hold at least one label that is not None.")
    labels = np.array(known)
    if labels.dtype.kind in "US" and not all(isinstance(label, str) for label in known):
        kinds = ", ".join(sorted({type(label).__name__ for label in known}))
        raise ValueError(
            f"y must hold labels of one type, got {kinds}. Use strings for all of them."
        )
    if labels.dtype.kind == "f" and not np.all(labels == np.round(labels)):
        raise ValueError(
            "y must hold classes, strings or whole numbers, got numbers with fractions."
        )
    taxonomy = order = None
    if hierarchy is None:
        if labels.size < 2:
            raise ValueError(f"y must hold at least two classes, got one class: {labels.item()!r}.")
        classes, rows = labels, np.eye(labels.size, dtype=bool)
    else:
        taxonomy, classes, place = class_tree(hierarchy)
        rows = taxonomy.descends(taxonomy.index(labels))[:, place]
        order = taxonomy.leaves[place]
    allowed = dict(zip(known, rows, strict=True))
    table = [allowed[label] for label in known] + [np.ones(classes.size, dtype=bool)]
    number: dict[Any, int] = {label: k for k, label in enumerate(known)} | {None: len(known)}
    for several in sets:
        if not several:
            raise ValueError(
                "y must not hold empty sets: a position has some label. Use None for any."
            )
        number[several] = len(table)
        table.append(np.any([allowed[label] for label in several], axis=0))
    which = np.array([number[_frozen(meaning)] for meaning in flat], dtype=np.int64)
    rows = np.array(table)
    codes = np.where(rows.sum(axis=1) == 1, rows.argmax(axis=1), -1)[which]
    possible = None if np.all(codes >= 0) else rows[which]
    return ReadLabels(classes, codes, possible, taxonomy, order)


def _check_label(label: Any) -> None:
    if label is not None and not isinstance(label, (str, bytes, Real, np.bool_)):
        raise TypeError(
            "y must hold labels, which are strings or whole numbers, sets of labels or None; "
            f"got {reprlib.repr(label)} of type {type(label).__name__}."
        )


def _frozen(meaning: Any) -> Any:
    return frozenset(meaning) if isinstance(meaning, SETS) else meaning


def codes_of(flat: np.ndarray, classes: np.ndarray, name: str) -> np.ndarray:
    """Return the number of each label among the classes, -1 for None; refuse labels that are not among them."""
    number: dict[Any, int] = {label: k for k, label in enumerate(classes.tolist())} | {None: -1}
    try:
        return np.array([number[label] for label in flat], dtype=np.int64)
    except (KeyError, TypeError):
        unknown = next(
            label
            for label in flat
            if isinstance(label, SETS) or not isinstance(label, Hashable) or label not in number
        )
        shown = ", ".join(map(repr, classes.tolist()[:10])) + (", …" if classes.size > 10 else "")
        raise ValueError(
            f"{name} holds the label {unknown!r}, which was not in training; the labels are {shown}."
        ) from None


def allowed_rows(rule: Any, classes: np.ndarray) -> np.ndarray | None:
    """Return which transitions, first and last labels are possible, shape (n_classes + 2, n_classes); None if all are.

    Parameters
    ----------
    rule : None, "BIO" or iterable of pairs
        Pairs (a, b) of labels: b may follow a. With None in the place of a, b may be first; in the place of b, a may be
        last. Without pairs of one of these kinds all labels may be there. "BIO" lets I-x follow B-x and I-x only.
    classes : ndarray of shape (n_classes,)
    """
    if rule is None:
        return None
    labels, C = classes.tolist(), classes.size
    if isinstance(rule, str):
        return _bio_rows(rule, labels)
    pairs = _pairs(rule)
    number = {label: k for k, label in enumerate(labels)}
    out = np.zeros((C + 2, C), dtype=bool)
    for a, b in pairs:
        for label in (a, b):
            if label is not None and label not in number:
                raise ValueError(
                    f"allowed_transitions names the label {label!r}, which is not in y; the labels are {labels[:10]!r}."
                )
        if b is None:
            out[C + 1, number[a]] = True
        else:
            out[C if a is None else number[a], number[b]] = True
    for row in (C, C + 1):
        if not out[row].any():
            out[row] = True
    return out


def _pairs(rule: Any) -> list[tuple[Any, Any]]:
    pairs: list[Any] = list(rule) if isinstance(rule, Iterable) else [None]
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise TypeError(
            f"allowed_transitions must be None, 'BIO' or pairs (label, next label), got {rule!r}."
        )
    if any(a is None and b is None for a, b in pairs):
        raise ValueError("allowed_transitions must not hold the pair (None, None).")
    return [(a, b) for a, b in pairs]


def _bio_rows(rule: str, labels: list[Any]) -> np.ndarray:
    if rule != "BIO":
        raise ValueError(
            f"allowed_transitions must be None, 'BIO' or pairs (label, next label), got {rule!r}."
        )
    if not all(
        isinstance(label, str) and (label == "O" or label[:2] in ("B-", "I-")) for label in labels
    ):
        raise ValueError(
            f"allowed_transitions='BIO' needs labels 'O', 'B-…' and 'I-…', got {labels[:10]!r}."
        )
    out = np.ones((len(labels) + 2, len(labels)), dtype=bool)
    for b, label in enumerate(labels):
        if label.startswith("I-"):
            out[:-1, b] = [a in ("B-" + label[2:], label) for a in labels] + [False]
    return out
