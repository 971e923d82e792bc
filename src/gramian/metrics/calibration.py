"""How much probabilities can be trusted: calibration of the predicted class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian._core.docstrings import described
from gramian._core.validation import check_number
from gramian.metrics._checks import check_labels, check_probabilities, check_weights


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Confidence against accuracy, in bins of equal width.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Bin b holds the examples with edges[b] <= confidence < edges[b + 1]; the last one holds 1.
    confidence : ndarray of shape (n_bins,)
        Mean probability of the predicted class; NaN where a bin is empty.
    accuracy : ndarray of shape (n_bins,)
        Fraction of right predictions; NaN where a bin is empty.
    weight : ndarray of shape (n_bins,)
        Fraction of the examples, or of their weight. Adds up to one.
    count : ndarray of shape (n_bins,)
        Number of examples.
    """

    edges: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    weight: np.ndarray
    count: np.ndarray

    @property
    def expected_calibration_error(self) -> float:
        """Mean of |accuracy − confidence| over the bins, weighted."""
        filled = self.weight > 0
        return float(self.weight[filled] @ np.abs(self.accuracy - self.confidence)[filled])


def reliability_curve(
    y_true: Any, y_proba: Any, *, classes: Any = None, n_bins: int = 15, sample_weight: Any = None
) -> ReliabilityCurve:
    """Compare the probability of the predicted class with how often it is right.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Class labels.
    y_proba : array of shape (n_samples, n_classes) or (n_samples,)
        Class probabilities; if one-dimensional, those of the second of two classes.
    classes : array of shape (n_classes,), default=None
        The class of each column of `y_proba`, in a classifier its ``classes_``. By default the
        sorted labels in `y_true`, which must then be as many as there are columns.
    n_bins : int, default=15
        Bins of equal width between 0 and 1.
    sample_weight : array of shape (n_samples,), default=None

    Returns
    -------
    ReliabilityCurve

    See Also
    --------
    expected_calibration_error : The same in one number.
    gramian.plot.ReliabilityDisplay : The same as a figure.

    Examples
    --------
    >>> from gramian.metrics import reliability_curve
    >>> curve = reliability_curve([0, 1, 1, 0], [0.1, 0.9, 0.7, 0.6], n_bins=2)
    >>> curve.count
    array([0, 4])
    >>> curve.confidence, curve.accuracy
    (array([ nan, 0.775]), array([ nan, 0.75]))
    """
    check_number("n_bins", n_bins, low=1, whole=True)
    y = check_labels("y_true", y_true)
    P, columns = check_probabilities(y, y_proba, classes, names=("y_proba", "classes"))
    weights = check_weights(sample_weight, len(y))
    top = np.argmax(P, axis=1)
    confidence = P[np.arange(len(y)), top]
    right = columns[top] == y
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bins = np.searchsorted(edges[1:-1], confidence, side="right")
    total, sure, correct = (
        np.bincount(bins, weights * values, n_bins) for values in (1.0, confidence, right)
    )
    count = np.bincount(bins, minlength=n_bins)
    with np.errstate(invalid="ignore"):  # 0 / 0 in empty bins
        return ReliabilityCurve(edges, sure / total, correct / total, total / total.sum(), count)


@described(reliability_curve)
def expected_calibration_error(
    y_true: Any, y_proba: Any, *, classes: Any = None, n_bins: int = 15, sample_weight: Any = None
) -> float:
    """Mean distance between confidence and accuracy of the predicted class; 0 is best, 1 is worst.

    Parameters
    ----------
    |y_true|
    |y_proba|
    |classes|
    |n_bins|
    |sample_weight|

    Returns
    -------
    float

    See Also
    --------
    reliability_curve : The bins behind the number.

    Notes
    -----
    The error is biased upwards, the more the fewer examples there are in a bin: compare only values
    computed from the same number of examples and bins.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017). On calibration of modern neural networks. ICML.

    Examples
    --------
    >>> from gramian.metrics import expected_calibration_error
    >>> expected_calibration_error(["a", "b", "b"], [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])
    0.166...
    """
    curve = reliability_curve(
        y_true, y_proba, classes=classes, n_bins=n_bins, sample_weight=sample_weight
    )
    return curve.expected_calibration_error
