"""How high the true class is ranked.

    score = mean over the examples of 1 / r(y),     r(y) = |{c : p_c >= p_y}|

Classes of equal probability share the lowest of their places, so that r(c) <= r(c') if and only
if p_c >= p_c', and a prediction without opinion earns 1 / n_classes.

References
----------
Seeger (2006), section 8.2, where the score is called precision, after Cai and Hofmann (2004).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.metrics._checks import check_labels, check_probabilities, check_weights


def reciprocal_rank(
    y_true: Any, proba: Any, *, labels: Any = None, sample_weight: Any = None
) -> float:
    """Mean of one over the rank of the true class; 1 is best.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Class labels.
    proba : array of shape (n_samples, n_classes) or (n_samples,)
        Class probabilities; if one-dimensional, those of the second of two classes.
    labels : array of shape (n_classes,), default=None
        The class of each column of `proba`, in a classifier its ``classes_``. By default the
        sorted labels in `y_true`, which must then be as many as there are columns.
    sample_weight : array of shape (n_samples,), default=None

    Returns
    -------
    float
        Between 1 / n_classes and 1. Not below the accuracy, unless the largest probability of
        an example occurs twice: equal probabilities share the lowest of their ranks.

    Examples
    --------
    >>> from gramian.metrics import reciprocal_rank
    >>> P = [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.4, 0.35, 0.25]]
    >>> reciprocal_rank(["a", "b", "c"], P)
    0.6111...
    """
    y = check_labels("y_true", y_true)
    P, columns = check_probabilities(y, proba, labels)
    weights = check_weights(sample_weight, len(y))
    order = np.argsort(columns)
    true = order[np.searchsorted(columns, y, sorter=order)]
    of_true = np.take_along_axis(P, true[:, None], axis=1)
    rank = np.sum(P >= of_true, axis=1)
    return float(np.average(1.0 / rank, weights=weights))
