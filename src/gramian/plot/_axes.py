"""What displays share: where matplotlib is imported, axes and their places, and what estimators must have."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian.solvers import Solution

_BELOW = (0.0, -0.34, 1.0, 0.26)  # of axes below others, in units of those
_BESIDE = (1.25, 0.0, 1.0, 1.0)
# Where legends go that have no room within the axes.
RIGHT_OF_AXES = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False}


class Display:
    """A figure in the manner of scikit-learn's displays: made from data, drawn by `plot`."""

    ax_: Any
    figure_: Any

    def _begin(self, ax: Any, size: tuple[float, float] | None = None) -> Any:
        """Set ``ax_`` and ``figure_`` to the axes given, or to new ones of a size in inches; return the axes."""
        self.ax_ = axes_or_new(ax, f"{type(self).__name__}.plot", size)
        self.figure_ = self.ax_.figure
        return self.ax_


@dataclass(eq=False, repr=False)
class CurveDisplay(Display):
    """A display of one curve that has a name and a number in the legend."""

    curve: Any
    _: KW_ONLY
    name: str | None = None

    def _label(self, name: str | None, number: str) -> str:
        shown = self.name if name is None else name
        return number if shown is None else f"{shown} ({number})"


def solution_of(estimator: Any, argument: str) -> Solution:
    """Return the solution of a fitted estimator of gramian."""
    check_is_fitted(estimator)
    solution = getattr(estimator, "solution_", None)
    if not isinstance(solution, Solution):
        raise TypeError(
            f"{argument} must have a Solution as solution_, as estimators of gramian do; "
            f"got {type(estimator).__name__}."
        )
    return solution


def probabilities_of(estimator: Any, X: Any, advice: str) -> Any:
    """Return the probabilities that a fitted classifier gives to its classes, or advise what to do without them."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "predict_proba"):
        kind = type(estimator).__name__
        raise TypeError(f"estimator must have predict_proba, got {kind}. {advice}")
    return estimator.predict_proba(X)


def check_has(estimator: Any, attribute: str) -> None:
    """Refuse an estimator that is not fitted, or not a model of label sequences with this attribute."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        kind = type(estimator).__name__
        raise TypeError(f"estimator must have {attribute}, as KernelCRF does; got {kind}.")


def integer_ticks(axis: Any) -> None:
    """Let an axis that counts something have ticks at whole numbers only."""
    axis.get_major_locator().set_params(integer=True)


def heat_map(ax: Any, matrix: np.ndarray) -> Any:
    """Draw numbers from −1 (blue) over 0 (white) to 1 (red)."""
    return ax.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")


def add_lines(ax: Any, lines: list[Any], **style: Any) -> Any:
    """Draw lines of given corners; they do not change the limits of the axes."""
    from matplotlib.collections import LineCollection

    return ax.add_collection(LineCollection(lines, **style), autolim=False)


def axes_or_new(ax: Any, caller: str, size: tuple[float, float] | None = None) -> Any:
    """Return the axes, or those of a new figure (of a width and height in inches)."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            f'{caller} needs matplotlib: pip install "gramian[plot]"', name=error.name
        ) from error
    _, ax = plt.subplots(layout="constrained", figsize=size)
    return ax


def axes_below(ax: Any, heights: tuple[float, float]) -> Any:
    """Give the lower part of the place of the axes to new ones, with the same abscissa."""
    place = ax.get_subplotspec()
    if place is None:  # not part of a grid
        below = ax.inset_axes(_BELOW, sharex=ax)
    else:
        above, lower = place.subgridspec(2, 1, height_ratios=heights)
        ax.set_subplotspec(above)
        below = ax.figure.add_subplot(lower, sharex=ax)
    ax.tick_params(labelbottom=False)
    return below


def axes_beside(ax: Any, **shared: Any) -> Any:
    """Give the right half of the place of the axes to new ones; they may share axes (sharex, sharey)."""
    place = ax.get_subplotspec()
    if place is None:  # not part of a grid
        return ax.inset_axes(_BESIDE, **shared)
    # without a layout engine, labels need the room
    wide = None if ax.figure.get_layout_engine() else 0.35
    left, right = place.subgridspec(1, 2, wspace=wide)
    ax.set_subplotspec(left)
    return ax.figure.add_subplot(right, **shared)


def log_ordinate(ax: Any, values: np.ndarray) -> None:
    """Make the ordinate logarithmic; where it spans few decades, with plain numbers as ticks."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    ax.set_yscale("log")
    finite = values[np.isfinite(values) & (values > 0)]
    span = finite.max() / finite.min() if finite.size else 1.0
    if span < 1e3:
        subs = (1, 2, 3, 5) if span < 10 else (1, 2, 5)
        few = MaxNLocator(nbins=5) if span < 3 else LogLocator(subs=subs)
        ax.yaxis.set_major_locator(few)
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_locator(NullLocator())


def size_in_points(ax: Any) -> tuple[float, float]:
    """Return width and height of the axes in points, as of now."""
    box = ax.get_window_extent()
    return box.width * 72 / ax.figure.dpi, box.height * 72 / ax.figure.dpi


def curve_styles(curve_kwargs: Any, n_curves: int) -> list[dict[str, Any]]:
    """Return one dictionary of styles for each curve."""
    if curve_kwargs is None or isinstance(curve_kwargs, dict):
        return [dict(curve_kwargs or {}) for _ in range(n_curves)]
    if len(curve_kwargs) != n_curves:
        raise ValueError(
            f"curve_kwargs must be a dict or a list of {n_curves} dicts, one for each curve; "
            f"got {len(curve_kwargs)}."
        )
    return [dict(style) for style in curve_kwargs]
