"""Where matplotlib is imported."""

from __future__ import annotations

from typing import Any

import numpy as np

_BELOW = (0.0, -0.34, 1.0, 0.26)  # of axes below others, in units of those
_BESIDE = (1.25, 0.0, 1.0, 1.0)


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
    wide = (
        None if ax.figure.get_layout_engine() else 0.35
    )  # without an engine, labels need the room
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
        few = (
            MaxNLocator(nbins=5)
            if span < 3
            else LogLocator(subs=(1, 2, 3, 5) if span < 10 else (1, 2, 5))
        )
        ax.yaxis.set_major_locator(few)
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_locator(NullLocator())


def size_in_points(ax: Any) -> tuple[float, float]:
    """Return width and height of the axes in points, as of now."""
    box = ax.get_window_extent()
    return box.width * 72 / ax.figure.dpi, box.height * 72 / ax.figure.dpi


def curve_styles(curve_kwargs: Any, n_curves: int) -> list[dict[str, Any]]:
    """Return one dictionary of styles for each curve."""
    if curve_kwargs is None:
        return [{} for _ in range(n_curves)]
    if isinstance(curve_kwargs, dict):
        return [dict(curve_kwargs) for _ in range(n_curves)]
    if len(curve_kwargs) != n_curves:
        raise ValueError(
            f"curve_kwargs must be a dict or a list of {n_curves} dicts, one for each curve; "
            f"got {len(curve_kwargs)}."
        )
    return [dict(style) for style in curve_kwargs]
