"""Whether a probability means what it says."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.metrics import reliability_curve
from gramian.plot._axes import CurveDisplay, axes_below, probabilities_of

SMALLEST, LARGEST = 8.0, 130.0  # areas of points, in square points
_HEIGHTS = (3, 1)
CONFIDENCE = "Confidence: probability of the predicted class"


class ReliabilityDisplay(CurveDisplay):
    """Accuracy against confidence of the predicted class, with a histogram of the confidences.

    On the diagonal, of the predictions made with 80 % confidence 80 % are right. Below it the
    classifier is too sure, above it not sure enough. Points grow with the share of the examples in
    their bin; bars are 95 % confidence intervals. Use `from_estimator` or `from_predictions`.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `gramian.metrics.reliability_curve`.
    name : str, default=None
        For the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
    points_ : matplotlib PathCollection
    intervals_ : matplotlib LineCollection or None
    bars_ : matplotlib StepPatch or None
        The histogram.
    ax_ : matplotlib Axes
    histogram_ax_ : matplotlib Axes or None
    figure_ : matplotlib Figure

    See Also
    --------
    gramian.metrics.expected_calibration_error : The number in the legend.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.linear_model import LogisticRegression
    >>> from gramian import KernelLogisticRegression
    >>> from gramian.datasets import make_spirals
    >>> from gramian.kernels import RBF
    >>> from gramian.plot import ReliabilityDisplay
    >>> X, y = make_spirals(n_samples=200, noise=0.1)
    >>> X_new, y_new = make_spirals(n_samples=200, noise=0.1, random_state=1)
    >>> model = KernelLogisticRegression(RBF(0.2), regularization=0.1).fit(X, y)
    >>> first = ReliabilityDisplay.from_estimator(model, X_new, y_new, n_bins=5)

    A second curve goes into the same axes:

    >>> other = LogisticRegression().fit(X, y)
    >>> second = ReliabilityDisplay.from_estimator(
    ...     other, X_new, y_new, n_bins=5, ax=first.ax_, histogram=first.histogram_ax_
    ... )
    >>> second.line_.axes is first.line_.axes
    True
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 15,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
        histogram: Any = True,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> ReliabilityDisplay:
        """Plot the reliability of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``; from any library.
        X : array of shape (n_samples, n_features)
            Examples that were not used for training.
        y : array of shape (n_samples,)
            Their classes.
        n_bins : int, default=15
        sample_weight : array of shape (n_samples,), default=None
        name : str, default=None
            For the legend; the name of the class by default.
        ax : matplotlib Axes, default=None
            A new figure by default.
        histogram : bool or matplotlib Axes, default=True
            Whether, or where, to show how often each confidence occurs.
        curve_kwargs : dict, default=None
            Passed to matplotlib's ``plot``.

        Returns
        -------
        ReliabilityDisplay
        """
        advice = "CalibratedClassifierCV gives probabilities to a classifier without."
        proba, classes = probabilities_of(estimator, X, advice), estimator.classes_
        curve = reliability_curve(
            y, proba, classes=classes, n_bins=n_bins, sample_weight=sample_weight
        )
        display = cls(curve, name=name or type(estimator).__name__)
        return display.plot(ax, histogram=histogram, curve_kwargs=curve_kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        classes: Any = None,
        n_bins: int = 15,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
        histogram: Any = True,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> ReliabilityDisplay:
        """Plot the reliability of predicted probabilities.

        Parameters
        ----------
        y_true : array of shape (n_samples,)
        y_proba : array of shape (n_samples, n_classes) or (n_samples,)
            If one-dimensional, probabilities of the second of two classes.
        classes : array of shape (n_classes,), default=None
            The class of each column; the sorted labels in `y_true` by default.
        n_bins : int, default=15
        sample_weight : array of shape (n_samples,), default=None
        name : str, default=None
            For the legend.
        ax : matplotlib Axes, default=None
            A new figure by default.
        histogram : bool or matplotlib Axes, default=True
            Whether, or where, to show how often each confidence occurs.
        curve_kwargs : dict, default=None
            Passed to matplotlib's ``plot``.

        Returns
        -------
        ReliabilityDisplay
        """
        curve = reliability_curve(
            y_true, y_proba, classes=classes, n_bins=n_bins, sample_weight=sample_weight
        )
        return cls(curve, name=name).plot(ax, histogram=histogram, curve_kwargs=curve_kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        reference: bool = True,
        intervals: bool = True,
        histogram: Any = True,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> ReliabilityDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default.
        name : str, default=None
            For the legend; that of the display by default.
        reference : bool, default=True
            Whether to draw the diagonal, unless the axes have one already.
        intervals : bool, default=True
            Whether to draw Wilson's 95 % confidence intervals of the accuracies.
        histogram : bool or matplotlib Axes, default=True
            Whether, or where, to show how often each confidence occurs.
        curve_kwargs : dict, default=None
            Passed to matplotlib's ``plot``.

        Returns
        -------
        ReliabilityDisplay
        """
        ax = self._begin(ax)
        if reference and not any(line.get_gid() == "reference" for line in ax.lines):
            style = {"color": "0.6", "linestyle": "--", "linewidth": 1, "zorder": 1}
            ax.plot([0, 1], [0, 1], gid="reference", label="Calibrated", **style)
        filled = self.curve.weight > 0
        x, y = self.curve.confidence[filled], self.curve.accuracy[filled]
        label = self._label(name, f"ECE = {self.curve.expected_calibration_error:.3f}")
        style = {"marker": "o", "markersize": 7, "linewidth": 1, "label": label}
        (self.line_,) = ax.plot(x, y, **(style | (curve_kwargs or {})))
        self.line_.set_markevery([])  # the legend shows the marker, the points have their sizes
        areas = SMALLEST + LARGEST * np.sqrt(self.curve.weight[filled])
        color, marker = self.line_.get_color(), self.line_.get_marker()
        above = self.line_.get_zorder() + 1
        self.points_ = ax.scatter(x, y, s=areas, color=color, marker=marker, zorder=above)
        self.intervals_ = None
        if intervals:
            low, high = _wilson(y, self.curve.count[filled])
            self.intervals_ = ax.vlines(x, low, high, color=color, linewidth=1, alpha=0.5)
        limits = (-0.02, 1.02)
        ax.set(xlim=limits, ylim=limits, xlabel=CONFIDENCE, ylabel="Accuracy")
        ax.legend()
        self._plot_histogram(histogram)
        return self

    def _plot_histogram(self, histogram: Any) -> None:
        self.histogram_ax_ = self.bars_ = None
        if histogram is False or histogram is None:
            return
        below = axes_below(self.ax_, _HEIGHTS) if histogram is True else histogram
        self.histogram_ax_ = below
        style = {"color": self.line_.get_color(), "linewidth": 1.5}
        self.bars_ = below.stairs(100 * self.curve.weight, self.curve.edges, **style)
        below.set(xlabel=CONFIDENCE, ylabel="% of examples")
        below.set_ylim(bottom=0)
        self.ax_.set_xlabel("")


def _wilson(accuracy: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of 95 %; unlike ± 2 standard errors it is right at 0 and 1 too."""
    z2 = 1.96**2
    centre = (accuracy + z2 / (2 * count)) / (1 + z2 / count)
    half = np.sqrt(accuracy * (1 - accuracy) / count + z2 / (4 * count**2)) / (1 + z2 / count)
    return centre - half * 1.96, centre + half * 1.96
