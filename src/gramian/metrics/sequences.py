"""How well the labels of sequences are predicted: position by position, as a whole, and chunk by chunk.

Labels are a list with one array of labels for each sequence. A true label of None is not known, and accuracies leave
its position out.

A chunk is a run of positions that form one thing, such as the words of a name. Tags say where chunks are: B-PER begins
a chunk of the type PER, I-PER goes on with it, and O is outside of all chunks (BIO, also called IOB2). Two more
prefixes are in use: E-PER is the last position of a chunk and S-PER a chunk of one position (BIOES, also called
IOBES). Predictions need not be well formed, so that one rule reads them all. The tag t at a position goes on with the
chunk of the tag s before it if

    t has the prefix I or E,   s has the prefix B or I,   both have the same type;

otherwise it ends that chunk, and unless it is O it begins a chunk itself. A predicted chunk is right if there is a true
one with the same first position, the same last position and the same type.

References
----------
Tjong Kim Sang and Buchholz (2000). Introduction to the CoNLL-2000 shared task: chunking. Their program conlleval reads
tags by this rule, and so does the package seqeval unless it is told to be strict.
"""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gramian._core.arrays import ratio
from gramian._core.docstrings import described
from gramian._core.validation import check_choice, check_sample_weight
from gramian.metrics._checks import check_label_sequences, check_sequence

_PREFIXES = "BIES"
_NO_TYPE = "_"  # stands for the type of tags without one, such as a bare "B"


def position_accuracy(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Fraction of the positions whose label is predicted; 1 is best.

    Parameters
    ----------
    y_true : list of n_sequences arrays of shape (length,)
        The labels of each sequence. Positions with the label None, which is not known, do not count.
    y_pred : list of n_sequences arrays of shape (length,)
        The predicted labels, of the same lengths.
    sample_weight : array of shape (n_sequences,), default=None
        The weight of every position of a sequence.

    Returns
    -------
    float
        NaN, with a warning, if no label is known.

    See Also
    --------
    sequence_accuracy : Fraction of the sequences without any error.

    Examples
    --------
    >>> from gramian.metrics import position_accuracy
    >>> position_accuracy([["N", "V", None], ["N"]], [["N", "N", "N"], ["N"]])
    0.666...
    """
    known, wrong, weights = _errors(y_true, y_pred, sample_weight)
    return _share("position_accuracy", known - wrong, known, weights)


@described(position_accuracy)
def sequence_accuracy(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Fraction of the sequences whose labels are all predicted; 1 is best.

    A sequence is judged by the labels that are known. It does not count if there are none, as in an empty sequence.

    Parameters
    ----------
    |y_true|
    |y_pred|
    sample_weight : array of shape (n_sequences,), default=None

    Returns
    -------
    float
        NaN, with a warning, if no label is known.

    See Also
    --------
    position_accuracy : Fraction of the positions, which forgives single errors.

    Examples
    --------
    >>> from gramian.metrics import sequence_accuracy
    >>> sequence_accuracy([["N", "V", None], ["N"], []], [["N", "N", "N"], ["N"], []])
    0.5
    """
    known, wrong, weights = _errors(y_true, y_pred, sample_weight)
    counts = known > 0
    return _share("sequence_accuracy", counts & (wrong == 0), counts, weights)


def chunks(labels: Any) -> list[tuple[str, int, int]]:
    """Return the chunks of one sequence of BIO or BIOES tags.

    Tags that do not fit together are read leniently: an I- or E- that has no chunk of its type to go on with begins
    one.

    Parameters
    ----------
    labels : array of shape (length,)
        "O", or a type with the prefix "B-", "I-", "E-" or "S-". A prefix without a type has the type "_".

    Returns
    -------
    list of (str, int, int)
        The type, the first position, and the position behind the last: the chunk is ``labels[start:stop]``.

    Examples
    --------
    >>> from gramian.metrics import chunks
    >>> chunks(["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-PER"])
    [('PER', 0, 2), ('LOC', 3, 4), ('LOC', 4, 5), ('PER', 5, 6)]
    """
    tags = check_sequence("labels", labels)
    types: dict[str, int] = {}
    kind, stop = _read(tags, [tags.size], types, lambda position: f"labels[{position}]")
    names, begins = list(types), np.flatnonzero(kind >= 0)
    return [(names[kind[start]], start, int(stop[start])) for start in begins.tolist()]


class ChunkScores(NamedTuple):
    """How well chunks are found.

    Attributes
    ----------
    precision : float or ndarray of shape (n_types,)
        Fraction of the predicted chunks that are right; 0 if none is predicted.
    recall : float or ndarray of shape (n_types,)
        Fraction of the true chunks that are found; 0 if there is none.
    f1 : float or ndarray of shape (n_types,)
        Harmonic mean of precision and recall.
    support : int or ndarray of shape (n_types,)
        Number of true chunks.
    types : tuple of str
        The types of the true and the predicted chunks, sorted.

    Examples
    --------
    >>> from gramian.metrics import chunk_scores
    >>> scores = chunk_scores([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "O"]])
    >>> scores.precision, scores.recall
    (1.0, 0.5)
    """

    precision: Any
    recall: Any
    f1: Any
    support: Any
    types: tuple[str, ...]


def chunk_scores(y_true: Any, y_pred: Any, *, average: str | None = "micro") -> ChunkScores:
    """Precision, recall and F1 of chunks.

    Parameters
    ----------
    y_true : list of n_sequences arrays of shape (length,)
        BIO or BIOES tags of each sequence, read as `chunks` does. All must be known.
    y_pred : list of n_sequences arrays of shape (length,)
        The predicted tags, of the same lengths.
    average : {"micro", "macro", None}, default="micro"
        "micro" counts all chunks alike, "macro" takes the mean over the types that occur in `y_true` or `y_pred`, and
        None gives the scores of each type.

    Returns
    -------
    ChunkScores

    See Also
    --------
    chunk_report : The scores of each type and their averages as text.

    Examples
    --------
    >>> from gramian.metrics import chunk_scores
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "O"]]
    >>> y_pred = [["B-PER", "I-PER", "O", "B-PER"], ["B-PER", "O"]]
    >>> scores = chunk_scores(y_true, y_pred, average=None)
    >>> scores.types
    ('LOC', 'PER')
    >>> scores.f1
    array([0. , 0.8])
    """
    if average is not None:
        check_choice("average", average, ("micro", "macro"))
    true, pred, lengths = check_label_sequences(y_true, y_pred)
    types: dict[str, int] = {}
    true_kind, true_stop = _read(true, lengths, types, _naming("y_true", lengths))
    pred_kind, pred_stop = _read(pred, lengths, types, _naming("y_pred", lengths))
    right = (true_kind == pred_kind) & (true_stop == pred_stop)  # at the first position of a chunk
    names = tuple(sorted(types))
    order = np.array([types[name] for name in names], dtype=np.int64)
    found, support, predicted = (
        np.bincount(kind[kind >= 0], minlength=len(types))[order]
        for kind in (np.where(right, true_kind, -1), true_kind, pred_kind)
    )
    if average == "micro":
        totals = [counts.sum(keepdims=True) for counts in (found, support, predicted)]
        precision, recall, f1 = (float(score[0]) for score in _precision_recall_f1(*totals))
        return ChunkScores(precision, recall, f1, int(support.sum()), names)
    scores = _precision_recall_f1(found, support, predicted)
    if average is None:
        return ChunkScores(*scores, support, names)
    precision, recall, f1 = (float(score.mean()) if names else 0.0 for score in scores)
    return ChunkScores(precision, recall, f1, int(support.sum()), names)


@described(chunk_scores)
def chunk_f1_score(y_true: Any, y_pred: Any, *, average: str | None = "micro") -> Any:
    """Harmonic mean of precision and recall of chunks; 1 is best.

    Parameters
    ----------
    |y_true|
    |y_pred|
    |average|

    Returns
    -------
    float or ndarray of shape (n_types,)
        0 where no chunk is found, also where there is none to be found.

    See Also
    --------
    chunk_scores : Precision and recall as well, and the types that the entries of an array are for.

    Examples
    --------
    >>> from gramian.metrics import chunk_f1_score
    >>> chunk_f1_score([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "O"]])
    0.666...
    """
    return chunk_scores(y_true, y_pred, average=average).f1


@described(chunk_scores)
def chunk_report(y_true: Any, y_pred: Any) -> str:
    """Scores of each type of chunk and their averages as a table of text.

    Parameters
    ----------
    |y_true|
    |y_pred|

    Returns
    -------
    str
        One line for each type and two for the averages. The support is the number of true chunks.

    Examples
    --------
    >>> from gramian.metrics import chunk_report
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "O"]]
    >>> y_pred = [["B-PER", "I-PER", "O", "B-PER"], ["B-PER", "O"]]
    >>> print(chunk_report(y_true, y_pred))
               precision  recall    f1  support
    LOC             0.00    0.00  0.00        1
    PER             0.67    1.00  0.80        2
    micro avg       0.67    0.67  0.67        3
    macro avg       0.33    0.50  0.40        3
    """
    each = chunk_scores(y_true, y_pred, average=None)
    rows = list(zip(each.types, each.precision, each.recall, each.f1, each.support, strict=True))
    for average in ("micro", "macro"):
        mean = chunk_scores(y_true, y_pred, average=average)
        rows.append((f"{average} avg", mean.precision, mean.recall, mean.f1, mean.support))
    width = max(len(row[0]) for row in rows)
    lines = [f"{'':{width}}  precision  recall    f1  support"]
    for name, precision, recall, f1, support in rows:
        lines.append(f"{name:{width}}  {precision:9.2f}  {recall:6.2f}  {f1:4.2f}  {support:7d}")
    return "\n".join(lines)


def _errors(
    y_true: Any, y_pred: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each sequence how many labels are known, how many of these are wrong, and the weight."""
    true, pred, lengths = check_label_sequences(y_true, y_pred)
    weights = check_sample_weight(sample_weight, np.empty(len(lengths)), unit="sequence")
    known = np.array([label is not None for label in true], dtype=bool)
    wrong = known & (true != pred).astype(bool)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    n_known, n_wrong = (
        np.bincount(sequence[chosen], minlength=len(lengths)) for chosen in (known, wrong)
    )
    return n_known, n_wrong, np.ones(len(lengths)) if weights is None else weights


def _share(score: str, part: np.ndarray, whole: np.ndarray, weights: np.ndarray) -> float:
    total = float(weights @ whole)
    if total == 0:
        message = f"{score} has nothing to compare: no label in y_true is known and has a weight."
        warnings.warn(message, UserWarning, stacklevel=3)
        return float("nan")
    return float(weights @ part) / total


def _precision_recall_f1(
    found: np.ndarray, support: np.ndarray, predicted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three scores of each type, with zero in place of 0 / 0."""
    pairs = ((found, predicted), (found, support), (2 * found, support + predicted))
    precision, recall, f1 = (ratio(part, whole, whole > 0) for part, whole in pairs)
    return precision, recall, f1


def _read(
    tags: np.ndarray, lengths: list[int], types: dict[str, int], where: Callable[[int], str]
) -> tuple[np.ndarray, np.ndarray]:
    """Find the chunks of concatenated sequences.

    Returns, of shape (n_positions,), the number of the type of the chunk that begins at each position, or −1, and the
    position behind the end of that chunk, or −1. Types get the next free number in ``types`` when they first occur.
    """
    parsed: dict[Any, tuple[str, int]] = {"O": ("O", -1)}
    for position, tag in enumerate(tags):
        if not isinstance(tag, str) or tag not in parsed:
            name = _type_of(tag, where(position))
            parsed[tag] = tag[0], types.setdefault(name, len(types))
    prefix = np.array([parsed[tag][0] for tag in tags], dtype="U1")
    kind = np.array([parsed[tag][1] for tag in tags], dtype=np.int64)
    goes_on = np.isin(prefix, ["I", "E"])
    goes_on[1:] &= np.isin(prefix[:-1], ["B", "I"]) & (kind[1:] == kind[:-1])
    firsts = np.cumsum([0, *lengths[:-1]])
    goes_on[firsts[firsts < tags.size]] = False  # no chunk goes on from one sequence to the next
    begins = np.flatnonzero(~goes_on & (kind >= 0))
    ends = np.append(np.flatnonzero(~goes_on), tags.size)
    begun, stop = np.full(tags.size, -1), np.full(tags.size, -1)
    begun[begins] = kind[begins]
    stop[begins] = ends[np.searchsorted(ends, begins, side="right")]
    return begun, stop


def _type_of(tag: Any, where: str) -> str:
    """Return the type of a tag other than O; refuse what is not a tag."""
    if tag is None:
        raise ValueError(
            f"{where} is None, a label that is not known. Chunks need all labels: leave such sequences out."
        )
    if not isinstance(tag, str):
        raise TypeError(
            f"{where} must be a string such as 'B-PER', 'I-PER' or 'O', got {reprlib.repr(tag)}. "
            "Use position_accuracy for labels that are no tags."
        )
    if tag[:1] not in tuple(_PREFIXES) or tag[1:2] not in ("", "-"):
        raise ValueError(
            f"{where} must be 'O' or begin with 'B-', 'I-', 'E-' or 'S-', got {tag!r}. "
            "Rename the tags of other schemes: L- and U- of BILOU are E- and S- here."
        )
    return tag[2:] or _NO_TYPE


def _naming(name: str, lengths: list[int]) -> Callable[[int], str]:
    """Return a function that says where in a list of sequences a position of the concatenated ones is."""

    ends = np.cumsum(lengths)

    def where(position: int) -> str:
        sequence = int(np.searchsorted(ends, position, side="right"))
        return f"{name}[{sequence}][{position - ends[sequence] + lengths[sequence]}]"

    return where
