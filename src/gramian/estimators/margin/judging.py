"""What decisions about labels are worth: scores of held-out examples, and a warning of a model that says nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
from sklearn.metrics import label_ranking_average_precision_score

from gramian._core.caller import level_of_caller
from gramian.estimators.margin.label_signs import LabelSigns

METRICS = ("hamming", "ranking")


def held_out_score(
    metric: str, labels: LabelSigns, caps: np.ndarray, rows: np.ndarray, values: np.ndarray
) -> float:
    """Return the share of right decisions, or how well the labels of each example are ranked.

    Decisions weigh as their losses do in training. Of classes that exclude each other the one with the largest value is
    decided for; a single label has no ranking, and its decisions are counted.

    Parameters
    ----------
    metric : {"hamming", "ranking"}
    labels : LabelSigns
        Of all examples.
    caps : ndarray of shape (n, L)
        Weights of the losses.
    rows : int array of shape (m,)
        The examples that were held out.
    values : ndarray of shape (m, L)
        Their decision values.
    """
    has, weights = labels.signs[rows] > 0, caps[rows]
    if metric == "ranking" and has.shape[1] > 1:
        mean = weights.mean(axis=1)
        return float(label_ranking_average_precision_score(has, values, sample_weight=mean))
    if labels.kind == "multiclass":
        own = np.argmax(has, axis=1)[:, None]
        right = np.argmax(values, axis=1)[:, None] == own
        return float(np.average(right, weights=np.take_along_axis(weights, own, axis=1)))
    return float(np.average((values > 0) == has, weights=weights))


def warn_of_silence(labels: LabelSigns, C: float, values: Iterable[np.ndarray]) -> None:
    """Warn if no training example is given any label although some have one.

    Parameters
    ----------
    labels : LabelSigns
    C : float
        That the model was fitted with.
    values : iterable of ndarray of shape (rows, L)
        Decision values of the training examples, some rows at a time; no more are asked for than it takes.
    """
    n_labels = int(np.sum(labels.signs > 0))
    if n_labels and not any(np.any(part > 0) for part in values):
        warnings.warn(
            f"The model predicts no label for any training example, although they have {n_labels}: labels are so rare, "
            f"or C={C:.3g} is so small, that leaving them out costs least. Raise C, pass class_weight='balanced' or a "
            "loss that makes missed labels dear, or scale the features up.",
            UserWarning,
            stacklevel=level_of_caller(),
        )
