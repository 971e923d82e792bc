"""Where matplotlib is imported."""

from __future__ import annotations

from typing import Any


def axes_or_new(ax: Any, caller: str) -> Any:
    """Return the axes, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            f'{caller} needs matplotlib: pip install "gramian[plot]"', name=error.name
        ) from error
    _, ax = plt.subplots(layout="constrained")
    return ax


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
