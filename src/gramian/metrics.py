"""How much probabilities can be trusted: calibration of the predicted class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian._arrays import to_numpy
from gramian._validation import check_number, check_sample_weight

__all__ = ["ReliabilityCurve", "expected_calibration_error", "reliability_curve"]


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
    y = _labels(y_true)
    P = _probabilities(y_proba, len(y))
    columns = _columns(classes, y, P.shape[1])
    weights = check_sample_weight(sample_weight, P)
    weights = np.ones(len(y)) if weights is None else weights
    top = np.argmax(P, axis=1)
    confidence = P[np.arange(len(y)), top]
    right = columns[top] == y
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bins = np.searchsorted(edges[1:-1], confidence, side="right")
    total = np.bincount(bins, weights=weights, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        return ReliabilityCurve(
            edges=edges,
            confidence=np.bincount(bins, weights=weights * confidence, minlength=n_bins) / total,
            accuracy=np.bincount(bins, weights=weights * right, minlength=n_bins) / total,
            weight=total / total.sum(),
            count=np.bincount(bins, minlength=n_bins),
        )


def expected_calibration_error(
    y_true: Any, y_proba: Any, *, classes: Any = None, n_bins: int = 15, sample_weight: Any = None
) -> float:
    """Mean distance between confidence and accuracy of the predicted class; 0 is best, 1 is worst.

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


def _labels(y_true: Any) -> np.ndarray:
    y = _as_numpy(y_true)
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"y_true must have shape (n_samples,) with n_samples >= 1, got {y.shape}.")
    return y


def _probabilities(y_proba: Any, n_samples: int) -> np.ndarray:
    """Return probabilities of shape (n_samples, n_classes), float64."""
    P = _as_numpy(y_proba)
    if P.dtype.kind not in "fiub":
        raise TypeError(f"y_proba must be numbers, got dtype {P.dtype}.")
    P = P.astype(np.float64)
    if P.ndim not in (1, 2) or len(P) != n_samples:
        raise ValueError(
            f"y_proba must have shape ({n_samples}, n_classes) or ({n_samples},), "
            f"one row for each label in y_true; got {P.shape}."
        )
    if not np.all(np.isfinite(P)) or P.min(initial=0.0) < 0 or P.max(initial=1.0) > 1 + 1e-6:
        raise ValueError("y_proba must lie between 0 and 1.")
    if P.ndim == 1 or P.shape[1] == 1:
        P = np.column_stack([1 - P.reshape(-1), P.reshape(-1)])
    sums = P.sum(axis=1)
    if np.max(np.abs(sums - 1)) > 1e-3:
        worst = sums[np.argmax(np.abs(sums - 1))]
        raise ValueError(f"Each row of y_proba must add up to 1; one adds up to {worst:.4g}.")
    return P


def _columns(classes: Any, y: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the class of each column of the probabilities."""
    present = np.unique(y)
    if classes is None:
        if len(present) != n_classes:
            raise ValueError(
                f"y_true holds {len(present)} classes and y_proba has {n_classes} columns: "
                "say with classes which class each column is for."
            )
        return present
    columns = _as_numpy(classes)
    if columns.shape != (n_classes,):
        raise ValueError(
            f"classes must have shape ({n_classes},), one for each column of y_proba; "
            f"got {columns.shape}."
        )
    if len(np.unique(columns)) != n_classes:
        raise ValueError("classes must not hold the same class twice.")
    strange = present[~np.isin(present, columns)]
    if len(strange):
        raise ValueError(f"y_true holds {strange[0]!r}, which is not among classes.")
    return columns


def _as_numpy(values: Any) -> np.ndarray:
    return to_numpy(values) if hasattr(values, "__array_namespace__") else np.asarray(values)
