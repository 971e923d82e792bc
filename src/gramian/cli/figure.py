"""The figure of the demo."""

from __future__ import annotations

from typing import Any

from gramian.cli.demo import OURS, SIGMOID, TEMPERATURE
from gramian.metrics import reliability_curve
from gramian.plot import ConvergenceDisplay, ReliabilityDisplay
from gramian.plot.reliability import CONFIDENCE

# Okabe & Ito: distinct for every kind of colour vision.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
# Name in the legend, colour and marker of each model that is drawn.
DRAWN = {
    OURS: ("gramian", BLUE, "o"),
    SIGMOID: ("SVC, sigmoid", VERMILION, "s"),
    TEMPERATURE: ("SVC, temperature", GREEN, "^"),
}
TITLE_PAD = 48  # points between title and axes, with a legend in them


def demo_figure(results: list[Any], data: Any) -> Any:
    """Return the figure; needs no screen and changes no global settings."""
    import matplotlib
    from matplotlib.figure import Figure

    by_name = {result.name: result for result in results}
    style: dict[Any, Any] = {"font.size": 11, "axes.titlelocation": "left", "legend.frameon": False}
    style |= {"axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(11, 5.2), layout="constrained")
        axes = figure.subplot_mosaic("AB;AC", height_ratios=[3, 1])
        _convergence(axes["A"], by_name[OURS].model)
        _reliability(axes["B"], axes["C"], by_name, data)
    return figure


def _convergence(ax: Any, model: Any) -> None:
    name, style = f"gramian, {model.n_iter_} Newton steps", {"color": BLUE, "markersize": 5}
    ConvergenceDisplay.from_estimator(model, ax=ax, name=name, curve_kwargs=style)
    ax.set_title("Convergence: proven distance to the optimum", pad=TITLE_PAD)
    ax.set_xlabel("Products with the Gram matrix, all 10 classes at once")
    ax.grid(axis="y", color="0.92")
    _legend_above(ax)


def _reliability(ax: Any, below: Any, by_name: dict[str, Any], data: Any) -> None:
    width = 0.1 / (len(DRAWN) + 1)
    for place, (name, (short, color, marker)) in enumerate(DRAWN.items()):
        proba, classes = by_name[name].proba, by_name[name].model.classes_
        curve = reliability_curve(data.y_test, proba, classes=classes, n_bins=10)
        display = ReliabilityDisplay(curve, name=short)
        display.plot(ax, histogram=False, curve_kwargs={"color": color, "marker": marker})
        display.line_.set_linewidth(0)  # bins of few examples are no trend
        display.points_.set_clip_on(False)
        left = curve.edges[:-1] + (place + 0.5) * width  # side by side in each bin
        below.bar(left, 100 * curve.weight, width, align="edge", color=color)
    lowest = min(by_name[name].proba.max(axis=1).min() for name in DRAWN)
    ax.set_title("Reliability: do probabilities mean what they say?", pad=TITLE_PAD)
    ax.set(xlim=(0.1 * int(10 * lowest), 1.03), ylim=(0, 1.0), xlabel="")
    ax.set_ylabel("Accuracy (95 % interval)")
    ax.tick_params(labelbottom=False)
    below.set(xlim=ax.get_xlim(), ylim=(0, 100), xlabel=CONFIDENCE, ylabel="Examples")
    below.set_yticks([0, 50, 100], ["0", "50 %", "100 %"])
    _legend_above(ax)


def _legend_above(ax: Any) -> None:
    """Draw the legend where it is never over the data."""
    spaces = {"borderaxespad": 0.2, "columnspacing": 1.0, "handlelength": 1.8}
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.03), ncols=2, fontsize=9, **spaces)
