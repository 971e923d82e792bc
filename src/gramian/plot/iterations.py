"""What each iteration of a solver is worth: the objective on the training data, the score on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from gramian.plot import _axes

_DASHES = ("-", "--", "-.", ":")
_BRIGHTEST = 0.8  # of the colour map, from 0 to 1; yellow is hard to see on white
_SIZE_OF_PANEL = (3.7, 3.4)
_WIDTH_OF_LEGEND = 2.2


@dataclass(eq=False, repr=False)
class IterationDisplay(_axes.Display):
    """Regularised risk and, beside it, validation score against the iterations of one or several fits.

    The risk falls with every iteration; the score on data not used for training often has its best
    value before the end, which a marker shows: stopping there regularises. Curves go from dark to
    bright in the order given, for instance of λ. Use `from_estimators`.

    Parameters
    ----------
    curves : list of dict
        For each fit "label" (str), "objective" (array; the first value is that of the start, before
        any iteration) and "score" (array of the scores after each iteration, the larger the better; or
        None).
    score_name : str, default="Validation score"
        For the axis.

    Attributes
    ----------
    objective_lines_ : list of matplotlib Line2D
    score_lines_ : list of matplotlib Line2D
        One for each curve with scores.
    best_ : list of matplotlib Line2D
        The markers of the best iterations, one for each curve with scores that are not all NaN.
    ax_ : matplotlib Axes
        Of the risk.
    score_ax_ : matplotlib Axes or None
        None if no curve has scores.
    legend_ : matplotlib Legend
    figure_ : matplotlib Figure

    See Also
    --------
    ConvergenceDisplay : How far from the optimum a solver was, with its certificate.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from gramian.plot import IterationDisplay
    >>> display = IterationDisplay(
    ...     [
    ...         dict(label="λ = 1", objective=[9.0, 4.0, 3.0, 2.9], score=[0.6, 0.8, 0.7]),
    ...         dict(label="λ = 10", objective=[9.0, 6.0, 5.0], score=None),
    ...     ]
    ... ).plot()
    >>> [text.get_text() for text in display.legend_.get_texts()]
    ['λ = 1 (0.8 at 2)', 'λ = 10']
    """

    curves: Sequence[Mapping[str, Any]]
    _: KW_ONLY
    score_name: str = "Validation score"

    @classmethod
    def from_estimators(
        cls,
        estimators: Sequence[Any],
        labels: Sequence[str] | None = None,
        *,
        score_name: str = "Validation score",
        ax: Any = None,
        curve_kwargs: Any = None,
    ) -> IterationDisplay:
        """Plot the iterations of fitted estimators.

        Parameters
        ----------
        estimators : list of estimators of gramian
            Fitted: ``solution_.history["objective"]`` is shown and, where an estimator has it,
            ``validation_score_``.
        labels : list of str, default=None
            One for each estimator; by default its ``regularization``, or the name of its class.
        score_name : str, default="Validation score"
            For the axis.
        ax : matplotlib Axes, default=None
            A new figure by default. The axes share their place with a second one beside.
        curve_kwargs : dict or list of dict, default=None
            Passed to matplotlib's ``plot``; a list has one for each curve.

        Returns
        -------
        IterationDisplay
        """
        if labels is not None and len(labels) != len(estimators):
            raise ValueError(
                f"labels must have one text for each of the {len(estimators)} estimators, "
                f"got {len(labels)}."
            )
        curves = [
            {
                "label": _label(estimator) if labels is None else labels[i],
                "objective": _axes.solution_of(estimator, "estimators").history["objective"],
                "score": getattr(estimator, "validation_score_", None),
            }
            for i, estimator in enumerate(estimators)
        ]
        return cls(curves, score_name=score_name).plot(ax, curve_kwargs=curve_kwargs)

    def plot(self, ax: Any = None, *, curve_kwargs: Any = None) -> IterationDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default. The axes share their place with a second one beside if there
            are scores.
        curve_kwargs : dict or list of dict, default=None
            Passed to matplotlib's ``plot``; a list has one for each curve.

        Returns
        -------
        IterationDisplay
        """
        if not self.curves:
            raise ValueError("curves is empty: give one dict for each fit.")
        scored = any(curve.get("score") is not None for curve in self.curves)
        styles = _axes.curve_styles(curve_kwargs, len(self.curves))
        width, height = _SIZE_OF_PANEL
        ax = self._begin(ax, ((1 + scored) * width + _WIDTH_OF_LEGEND, height))
        self.score_ax_ = _axes.axes_beside(ax) if scored else None
        self.objective_lines_, self.score_lines_, self.best_ = [], [], []
        labels = []
        colours = _dark_to_bright(len(self.curves))
        for i, (curve, style) in enumerate(zip(self.curves, styles, strict=True)):
            style = {"color": colours[i], "linestyle": _DASHES[i % len(_DASHES)]} | style
            objective = np.asarray(curve["objective"], dtype=float)
            shown = np.where(objective > 0, objective, np.nan)  # a log scale has no place for zero
            self.objective_lines_ += ax.plot(np.arange(len(shown)), shown, **style)
            labels.append(f"{curve['label']}{self._plot_score(curve.get('score'), style)}")
        _axes.log_ordinate(ax, np.concatenate([line.get_ydata() for line in self.objective_lines_]))
        panels = [(ax, "Regularised risk"), (self.score_ax_, self.score_name)]
        for panel, ylabel in panels[: 1 + scored]:
            panel.set(xlabel="Iterations", ylabel=ylabel)
            _axes.integer_ticks(panel.xaxis)
            panel.spines[["top", "right"]].set_visible(False)
        self._plot_legend(labels)
        return self

    def _plot_score(self, score: Any, style: Mapping[str, Any]) -> str:
        """Draw the scores of one curve with a marker; return what the legend says of it."""
        if score is None or self.score_ax_ is None:
            return ""
        score = np.asarray(score, dtype=float)
        iteration = np.arange(1, len(score) + 1)
        self.score_lines_ += self.score_ax_.plot(iteration, score, **style)
        if not np.isfinite(score).any():
            return ""
        best = int(np.nanargmax(score))
        marker = {"color": style["color"], "marker": "o", "markersize": 7, "zorder": 3}
        self.best_ += self.score_ax_.plot(
            iteration[best], score[best], **marker, markeredgecolor="white", linestyle="none"
        )
        return f" ({score[best]:.3g} at {iteration[best]})"

    def _plot_legend(self, labels: list[str]) -> None:
        place = {"loc": "best", "fontsize": "small"}
        if self.figure_.get_layout_engine():  # makes room outside
            place = _axes.RIGHT_OF_AXES
        title = "Best score (at iteration)" if self.best_ else None
        panel = self.score_ax_ or self.ax_
        self.legend_ = panel.legend(
            self.objective_lines_, labels, title=title, alignment="left", **place
        )


def _label(estimator: Any) -> str:
    value = getattr(estimator, "regularization", None)
    return type(estimator).__name__ if value is None else f"λ = {value:.3g}"


def _dark_to_bright(n_curves: int) -> np.ndarray:
    """Colours that differ in brightness too, so that no reader and no printer mixes them up."""
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0, _BRIGHTEST, n_curves))
