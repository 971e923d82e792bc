"""Errors of a classifier that may decline to answer.

Of m examples only the k most confident predictions are asked for. The curve is

    error(k) = (wrong ones among these k) / m,

so that its right end, k = m, is the ordinary error rate, and lower is better everywhere. Divided
by m and not by k the curve never falls, and small k do not make it noisy.

Examples of equal confidence are in no order. The curve has a point only where the confidence
changes; in between, the straight line is the mean over all orders of the equal ones. Hence weight
2 is the same as the example twice.

References
----------
Seeger (2006), section 8.1, footnote 11, figures 3 and 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gramian.metrics._checks import check_labels, check_numbers, check_probabilities, check_weights


class RejectCurve(NamedTuple):
    """Error against the fraction of examples that are not rejected.

    Attributes
    ----------
    fraction : ndarray of shape (n_points,)
        Fraction of the examples, or of their weight, that is predicted. Rises from 0 to 1.
    error : ndarray of shape (n_points,)
        Fraction of all examples that is predicted, and wrong. Rises from 0 to the error rate.

    Examples
    --------
    >>> from gramian.metrics import reject_curve
    >>> fraction, error = reject_curve([0, 1, 1], [0.1, 0.8, 0.3])
    >>> error
    array([0.    , 0.    , 0.    , 0.333...])
    """

    fraction: np.ndarray
    error: np.ndarray


def reject_curve(
    y_true: Any,
    proba: Any = None,
    *,
    labels: Any = None,
    y_pred: Any = None,
    confidence: Any = None,
    sample_weight: Any = None,
) -> RejectCurve:
    """Error against the fraction of examples that are predicted, the most confident ones first.

    Give either `proba`, of which the largest entry is both the prediction and its confidence, or
    `y_pred` and `confidence` for any other rule.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Class labels.
    proba : array of shape (n_samples, n_classes) or (n_samples,), default=None
        Class probabilities; if one-dimensional, those of the second of two classes.
    labels : array of shape (n_classes,), default=None
        The class of each column of `proba`, in a classifier its ``classes_``. By default the
        sorted labels in `y_true`, which must then be as many as there are columns.
    y_pred : array of shape (n_samples,), default=None
        Predicted labels.
    confidence : array of shape (n_samples,), default=None
        The larger, the later `y_pred` is rejected; on any scale.
    sample_weight : array of shape (n_samples,), default=None

    Returns
    -------
    RejectCurve
        The arrays `fraction` and `error`, from (0, 0) to (1, error rate), with one point for each
        confidence that occurs. Interpolate linearly in between.

    See Also
    --------
    gramian.plot.RejectCurveDisplay : The same as a figure.

    Examples
    --------
    >>> from gramian.metrics import reject_curve
    >>> P = [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]]
    >>> fraction, error = reject_curve(["a", "b", "b", "b"], P)
    >>> fraction
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> error
    array([0.  , 0.  , 0.  , 0.  , 0.25])

    The same from predictions and confidences:

    >>> again = reject_curve(
    ...     ["a", "b", "b", "b"], y_pred=["a", "a", "b", "b"], confidence=[0.9, 0.6, 0.7, 0.8]
    ... )
    >>> bool((again.error == error).all())
    True
    """
    y = check_labels("y_true", y_true)
    if (proba is None) == (y_pred is None) or (y_pred is None) != (confidence is None):
        arguments = {"proba": proba, "y_pred": y_pred, "confidence": confidence}
        given = " and ".join(name for name, value in arguments.items() if value is not None)
        raise TypeError(f"Give proba, or y_pred and confidence; got {given or 'none of them'}.")
    if proba is not None:
        P, columns = check_probabilities(y, proba, labels)
        predicted, sure = columns[np.argmax(P, axis=1)], np.max(P, axis=1)
    else:
        if labels is not None:
            raise TypeError("labels names the columns of proba; leave it out with y_pred.")
        predicted = check_labels("y_pred", y_pred, len(y))
        sure = check_numbers("confidence", check_labels("confidence", confidence, len(y)))
        if np.any(np.isnan(sure)):
            raise ValueError("confidence must not be NaN.")
    weights = check_weights(sample_weight, len(y))
    counted = np.flatnonzero(weights)  # weight zero is the example not at all
    order = counted[np.argsort(-sure[counted], kind="stable")]
    sure, weights, wrong = sure[order], weights[order], (predicted != y)[order]
    last = np.flatnonzero(np.append(sure[1:] != sure[:-1], True))
    asked, errors = np.cumsum(weights)[last], np.cumsum(weights * wrong)[last]
    return RejectCurve(*(np.append(0.0, sums / asked[-1]) for sums in (asked, errors)))
