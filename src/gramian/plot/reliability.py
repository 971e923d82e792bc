"""Whether a probability means what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian.metrics import ReliabilityCurve, reliability_curve
from gramian.plot._axes import axes_below, axes_or_new

SMALLEST, LARGEST = 8.0, 130.0  # areas of points, in square points
_HEIGHTS = (3, 1)


class ReliabilityDisplay:
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

    def __init__(self, curve: ReliabilityCurve, *, name: str | None = None):
        self.curve = curve
        self.name = name

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
        check_is_fitted(estimator)
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"estimator must have predict_proba, got {type(estimator).__name__}. "
                "CalibratedClassifierCV gives probabilities to a classifier without."
            )
        return cls.from_predictions(
            y,
            estimator.predict_proba(X),
            classes=estimator.classes_,
            n_bins=n_bins,
            sample_weight=sample_weight,
            name=name or type(estimator).__name__,
            ax=ax,
            histogram=histogram,
            curve_kwargs=curve_kwargs,
        )

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
        self.ax_ = axes_or_new(ax, f"{type(self).__name__}.plot")
        self.figure_ = self.ax_.figure
        if reference and not any(line.get_gid() == "reference" for line in self.ax_.lines):
            style = {"color": "0.6", "linestyle": "--", "linewidth": 1, "zorder": 1}
            self.ax_.plot([0, 1], [0, 1], gid="reference", label="Calibrated", **style)
        filled = self.curve.weight > 0
        x, y = self.curve.confidence[filled], self.curve.accuracy[filled]
        style = {"marker": "o", "markersize": 7, "linewidth": 1, "label": self._label(name)}
        (self.line_,) = self.ax_.plot(x, y, **(style | (curve_kwargs or {})))
        self.line_.set_markevery([])  # the legend shows the marker, the points have their sizes
        self.points_ = self.ax_.scatter(
            x,
            y,
            s=SMALLEST + LARGEST * np.sqrt(self.curve.weight[filled]),
            color=self.line_.get_color(),
            marker=self.line_.get_marker(),
            zorder=self.line_.get_zorder() + 1,
        )
        self.intervals_ = None
        if intervals:
            low, high = _wilson(y, self.curve.count[filled])
            self.intervals_ = self.ax_.vlines(
                x, low, high, color=self.line_.get_color(), linewidth=1, alpha=0.5
            )
        self.ax_.set(
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            xlabel="Confidence: probability of the predicted class",
            ylabel="Accuracy",
        )
        self.ax_.legend()
        self._plot_histogram(histogram)
        return self

    def _plot_histogram(self, histogram: Any) -> None:
        self.histogram_ax_ = self.bars_ = None
        if histogram is False or histogram is None:
            return
        below = histogram
        if histogram is True:
            below = axes_below(self.ax_, _HEIGHTS)
        self.histogram_ax_ = below
        self.bars_ = below.stairs(
            100 * self.curve.weight,
            self.curve.edges,
            color=self.line_.get_color(),
            linewidth=1.5,
        )
        below.set(xlabel=self.ax_.get_xlabel(), ylabel="% of examples")
        below.set_ylim(bottom=0)
        self.ax_.set_xlabel("")

    def _label(self, name: str | None) -> str:
        shown = self.name if name is None else name
        error = f"ECE = {self.curve.expected_calibration_error:.3f}"
        return error if shown is None else f"{shown} ({error})"


def _wilson(accuracy: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of 95 %; unlike ± 2 standard errors it is right at 0 and 1 too."""
    z2 = 1.96**2
    centre = (accuracy + z2 / (2 * count)) / (1 + z2 / count)
    half = np.sqrt(accuracy * (1 - accuracy) / count + z2 / (4 * count**2)) / (1 + z2 / count)
    return centre - half * 1.96, centre + half * 1.96
