"""The picture of `large_n.py`: maps as they are and as they were reconstructed, and seconds against points."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LightSource, Normalize

CELL = 30.0  # metres


def draw(file: str, elevation: np.ndarray, fits: list[Any], products: list[Any]) -> None:
    """Draw the true map and seconds against n, then the reconstructions, then the errors of the last two."""
    errors = fits[-2:]
    rows = 1 + math.ceil(len(fits) / 2) + 1
    figure, axes = plt.subplots(rows, 2, figsize=(12, 3.4 * rows), layout="constrained")
    panels = list(axes.flat)
    _draw_map(figure, panels[0], f"true map, {elevation.size:,} points", elevation, elevation)
    _draw_seconds(panels[1], products)
    for panel, fit in zip(panels[2:-2], fits, strict=False):
        off = "" if fit.rmse is None else f": RMSE {fit.rmse:.1f} m where held out"
        heights = fit.picture.reshape(elevation.shape)
        _draw_map(figure, panel, f"{fit.n:,} points, {fit.setting}{off}", heights, elevation)
    for panel, fit in zip(panels[-2:], errors, strict=False):
        error = fit.picture.reshape(elevation.shape) - elevation
        largest = float(np.quantile(np.abs(error), 0.99))
        image = panel.imshow(error, cmap="RdBu_r", vmin=-largest, vmax=largest)
        panel.set_title(f"error, {fit.n:,} points, {fit.setting}", fontsize=10)
        figure.colorbar(image, ax=panel, label="metres", shrink=0.85)
    for panel in (panels[0], *panels[2:]):
        panel.set_axis_off()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _draw_map(
    figure: Any, panel: Any, title: str, heights: np.ndarray, elevation: np.ndarray
) -> None:
    """A shaded map, its colours those of the true map."""
    norm, terrain = Normalize(elevation.min(), elevation.max()), plt.get_cmap("gist_earth")
    sun = LightSource(azdeg=315, altdeg=45)
    options = {"dx": CELL, "dy": CELL, "vert_exag": 1.5, "blend_mode": "soft"}
    inside = np.clip(heights, norm.vmin, norm.vmax)
    panel.imshow(sun.shade(inside, cmap=terrain, norm=norm, **options))
    panel.set_title(title, fontsize=10)
    figure.colorbar(ScalarMappable(norm, terrain), ax=panel, label="metres", shrink=0.85)


def _draw_seconds(axis: Any, products: list[Any]) -> None:
    for name, dtype in dict.fromkeys((p.name, p.dtype) for p in products):
        chosen = [p for p in products if (p.name, p.dtype) == (name, dtype)]
        axis.loglog(
            [p.n for p in chosen],
            [p.seconds for p in chosen],
            marker="o",
            markersize=4,
            linestyle="--" if dtype == "float32" else "-",
            color="C1" if name == "streamed" else "C0" if name.endswith("8") else "C2",
            label=f"{name}, {dtype}",
        )
    axis.set(
        xlabel="training points",
        ylabel="seconds a product",
        title="one product with the Gram matrix",
    )
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)
