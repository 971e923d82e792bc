"""What it is worth to let a classifier say that it does not know."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.metrics import RejectCurve, reject_curve
from gramian.plot._axes import CurveDisplay, probabilities_of


class RejectCurveDisplay(CurveDisplay):
    """Errors against the fraction of examples that are predicted, the most confident ones first.

    The right end of the curve is the ordinary error rate. The further a curve stays down before
    it rises there, the better the classifier knows where it errs. Use `from_estimator` or
    `from_predictions`.

    Parameters
    ----------
    curve : RejectCurve
        From `gramian.metrics.reject_curve`.
    name : str, default=None
        For the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
    zero_line_ : matplotlib Line2D or None
        Drawn with differences only.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    gramian.metrics.reject_curve : The numbers.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.linear_model import LogisticRegression
    >>> from gramian import KernelLogisticRegression
    >>> from gramian.datasets import make_spirals
    >>> from gramian.kernels import RBF
    >>> from gramian.plot import RejectCurveDisplay
    >>> X, y = make_spirals(n_samples=200, noise=0.1)
    >>> X_new, y_new = make_spirals(n_samples=200, noise=0.1, random_state=1)
    >>> linear = LogisticRegression().fit(X, y)
    >>> model = KernelLogisticRegression(RBF(0.2), regularization=0.1).fit(X, y)

    Two curves in the same axes:

    >>> first = RejectCurveDisplay.from_estimator(linear, X_new, y_new)
    >>> second = RejectCurveDisplay.from_estimator(model, X_new, y_new, ax=first.ax_)

    The errors that the second one saves, in axes of their own:

    >>> difference = second.plot(baseline=first)
    >>> difference.ax_.get_ylabel()
    'Error of LogisticRegression − error'
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
        baseline: RejectCurveDisplay | None = None,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> RejectCurveDisplay:
        """Plot the reject curve of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``; from any library.
        X : array of shape (n_samples, n_features)
            Examples that were not used for training.
        y : array of shape (n_samples,)
            Their classes.
        sample_weight : array of shape (n_samples,), default=None
        name : str, default=None
            For the legend; the name of the class by default.
        ax : matplotlib Axes, default=None
            A new figure by default.
        baseline : RejectCurveDisplay, default=None
            Draw by how much the error is smaller than that of this curve.
        curve_kwargs : dict, default=None
            Passed to matplotlib's ``plot``.

        Returns
        -------
        RejectCurveDisplay
        """
        advice = "With another measure of confidence, use from_predictions(y, y_pred=..., confidence=...)."
        proba = probabilities_of(estimator, X, advice)
        curve = reject_curve(y, proba, labels=estimator.classes_, sample_weight=sample_weight)
        display = cls(curve, name=name or type(estimator).__name__)
        return display.plot(ax, baseline=baseline, curve_kwargs=curve_kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        proba: Any = None,
        *,
        labels: Any = None,
        y_pred: Any = None,
        confidence: Any = None,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
        baseline: RejectCurveDisplay | None = None,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> RejectCurveDisplay:
        """Plot the reject curve of predictions: `proba`, or `y_pred` and `confidence`.

        Parameters
        ----------
        y_true : array of shape (n_samples,)
        proba : array of shape (n_samples, n_classes) or (n_samples,), default=None
            If one-dimensional, probabilities of the second of two classes.
        labels : array of shape (n_classes,), default=None
            The class of each column; the sorted labels in `y_true` by default.
        y_pred : array of shape (n_samples,), default=None
            Predicted labels.
        confidence : array of shape (n_samples,), default=None
            The larger, the later `y_pred` is rejected; on any scale.
        sample_weight : array of shape (n_samples,), default=None
        name : str, default=None
            For the legend.
        ax : matplotlib Axes, default=None
            A new figure by default.
        baseline : RejectCurveDisplay, default=None
            Draw by how much the error is smaller than that of this curve.
        curve_kwargs : dict, default=None
            Passed to matplotlib's ``plot``.

        Returns
        -------
        RejectCurveDisplay
        """
        curve = reject_curve(
            y_true,
            proba,
            labels=labels,
            y_pred=y_pred,
            confidence=confidence,
            sample_weight=sample_weight,
        )
        return cls(curve, name=name).plot(ax, baseline=baseline, curve_kwargs=curve_kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        baseline: RejectCurveDisplay | None = None,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> RejectCurveDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default.
        name : str, default=None
            For the legend; that of the display by default.
        baseline : RejectCurveDisplay, default=None
            Draw the error of this curve minus the own one: the errors saved, as a fraction of all
            examples.
        curve_kwargs : dict, default=None
            Passed to matplotlib's ``plot``.

        Returns
        -------
        RejectCurveDisplay
        """
        if baseline is not None and not isinstance(baseline, RejectCurveDisplay):
            kind = type(baseline).__name__
            raise TypeError(f"baseline must be a RejectCurveDisplay, got {kind}.")
        ax = self._begin(ax)
        fraction, error = self.curve
        self.zero_line_ = None
        if baseline is None:
            label = self._label(name, f"error = {error[-1]:.3g}")
            ylabel = "Wrong predictions / all examples"
        else:
            fraction, error = _difference(baseline.curve, self.curve)
            shown = self.name if name is None else name
            label = "difference" if shown is None else shown
            ylabel = f"Error of {baseline.name or 'the baseline'} − error"
            self.zero_line_ = ax.axhline(0, color="0.6", linestyle="--", linewidth=1)
        (self.line_,) = ax.plot(fraction, error, **({"label": label} | (curve_kwargs or {})))
        ax.set(xlim=(0, 1), xlabel="Fraction of examples predicted", ylabel=ylabel)
        if baseline is None:
            ax.set_ylim(bottom=0, auto=True)  # further curves may be higher
        ax.legend()
        return self


def _difference(upper: RejectCurve, lower: RejectCurve) -> RejectCurve:
    """Subtract errors, at all fractions at which one of the curves has a point."""
    fraction = np.union1d(upper.fraction, lower.fraction)
    above, below = (np.interp(fraction, *curve) for curve in (upper, lower))
    return RejectCurve(fraction, above - below)
