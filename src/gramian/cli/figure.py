"""The figure of the demo."""

from __future__ import annotations

from typing import Any

from gramian.cli.demo import OURS, SIGMOID, TEMPERATURE
from gramian.plot import ConvergenceDisplay, ReliabilityDisplay

# Okabe & Ito: distinct for every kind of colour vision.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
STYLES = {
    OURS: {"color": BLUE, "marker": "o"},
    SIGMOID: {"color": VERMILION, "marker": "s"},
    TEMPERATURE: {"color": GREEN, "marker": "^"},
}
TITLE_PAD = 48
SHORT = {OURS: "gramian", SIGMOID: "SVC, sigmoid", TEMPERATURE: "SVC, temperature"}


def demo_figure(results: list[Any], data: Any) -> Any:
    """Return the figure; needs no screen and changes no global settings."""
    import matplotlib
    from matplotlib.figure import Figure

    by_name = {result.name: result for result in results}
    style: dict[Any, Any] = {
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "legend.frameon": False,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(11, 5.2), layout="constrained")
        axes = figure.subplot_mosaic(
            [["convergence", "reliability"], ["convergence", "histogram"]],
            height_ratios=[3, 1],
        )
        _convergence(axes["convergence"], by_name[OURS].model)
        _reliability(axes["reliability"], axes["histogram"], by_name, data)
    return figure


def _convergence(ax: Any, model: Any) -> None:
    ConvergenceDisplay.from_estimator(
        model,
        ax=ax,
        name=f"gramian, {model.n_iter_} Newton steps",
        curve_kwargs={"color": BLUE, "markersize": 5},
    )
    ax.set_title("Convergence: proven distance to the optimum", pad=TITLE_PAD)
    ax.set_xlabel("Products with the Gram matrix, all 10 classes at once")
    ax.grid(axis="y", color="0.92")
    _legend_above(ax)


def _reliability(ax: Any, below: Any, by_name: dict[str, Any], data: Any) -> None:
    width = 0.1 / (len(STYLES) + 1)
    for place, (name, style) in enumerate(STYLES.items()):
        result = by_name[name]
        display = ReliabilityDisplay.from_predictions(
            data.y_test,
            result.proba,
            classes=result.model.classes_,
            n_bins=10,
            name=SHORT[name],
            ax=ax,
            histogram=False,
            curve_kwargs=style,
        )
        display.line_.set_linewidth(0)  # bins of few examples are no trend
        display.points_.set_clip_on(False)
        left = display.curve.edges[:-1] + (place + 0.5) * width  # side by side in each bin
        below.bar(left, 100 * display.curve.weight, width, align="edge", color=style["color"])
    lowest = min(by_name[name].proba.max(axis=1).min() for name in STYLES)
    for each in (ax, below):
        each.set_xlim(0.1 * int(10 * lowest), 1.03)
    ax.set_title("Reliability: do probabilities mean what they say?", pad=TITLE_PAD)
    ax.set_ylabel("Accuracy (95 % interval)")
    ax.set_xlabel("")
    ax.tick_params(labelbottom=False)
    below.set_xlabel("Confidence: probability of the predicted class")
    ax.set_ylim(0, 1.0)
    below.set(ylabel="Examples", yticks=[0, 50, 100], yticklabels=["0", "50 %", "100 %"])
    below.set_ylim(0, 100)
    _legend_above(ax)


def _legend_above(ax: Any) -> None:
    """Never over the data."""
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.03),
        ncols=2,
        fontsize=9,
        borderaxespad=0.2,
        columnspacing=1.0,
        handlelength=1.8,
    )
