"""The picture of `large_n.py`: maps as they are and as they were reconstructed, and seconds against points."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LightSource, Normalize

CELL = 30.0  # metres


def draw(file: str, elevation: np.ndarray, fits: list[Any], products: list[Any]) -> None:
    """Draw the true map, one reconstruction for each fit, the error of the last, and seconds against n."""
    figure, axes = plt.subplots(3, 2, figsize=(12, 10.2), layout="constrained")
    panels = list(axes.flat)
    heights = Normalize(elevation.min(), elevation.max())
    terrain = plt.get_cmap("gist_earth")
    sun = LightSource(azdeg=315, altdeg=45)
    maps = [(f"true map, {elevation.size:,} points", elevation)]
    for fit in fits:
        title = f"from {fit.n:,} points: "
        title += (
            "fitted to all" if fit.rmse is None else f"{fit.rmse:.1f} m off where held out (RMSE)"
        )
        maps.append((title, fit.picture.reshape(elevation.shape)))
    for panel, (title, heights_of_map) in zip(panels, maps, strict=False):
        panel.imshow(
            sun.shade(
                np.clip(heights_of_map, heights.vmin, heights.vmax),
                cmap=terrain, norm=heights, dx=CELL, dy=CELL, vert_exag=1.5, blend_mode="soft",
            )
        )  # fmt: skip
        panel.set_title(title)
        figure.colorbar(ScalarMappable(heights, terrain), ax=panel, label="metres")
        panel.set_axis_off()
    used = len(maps)
    for fit in fits[: len(panels) - 1 - used]:
        error = fit.picture.reshape(elevation.shape) - elevation
        largest = float(np.quantile(np.abs(error), 0.99))
        image = panels[used].imshow(error, cmap="RdBu_r", vmin=-largest, vmax=largest)
        panels[used].set_title(f"error from {fit.n:,} points")
        panels[used].set_axis_off()
        figure.colorbar(image, ax=panels[used], label="metres")
        used += 1
    for panel in panels[used:-1]:
        panel.remove()
    _draw_seconds(panels[-1], products)
    figure.savefig(file, dpi=130)
    plt.close(figure)


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
    axis.legend(fontsize=8)
