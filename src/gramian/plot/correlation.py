"""Correlations of labels as heat maps, and what a correlation is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from gramian.labels.correlation.inputs import symmetric_array
from gramian.metrics._checks import check_values
from gramian.plot._axes import axes_or_new, heat_map

_NAMED_LABELS = 30  # above, names are too many to be read
_SORTED_LABELS = 500  # above, an optimal order of the leaves takes too long
_SIDE_OF_PANEL = (2.6, 5.0)  # in inches, least and most
_TITLES = {"prior": "Prior", "train": "Training labels", "predicted": "Predictions"}


@dataclass(frozen=True, eq=False)
class LabelCorrelationDisplay:
    """What `plot_label_correlation` has drawn.

    Attributes
    ----------
    order_ : int array of shape (n_labels,)
        Number of the label in each row and column.
    images_ : list of matplotlib AxesImage
    colorbar_ : matplotlib Colorbar
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from gramian.plot import plot_label_correlation
    >>> plot_label_correlation([[1.0, -0.5], [-0.5, 1.0]]).order_
    array([0, 1])
    """

    order_: np.ndarray
    images_: list[Any]
    colorbar_: Any
    axes_: list[Any]
    figure_: Any


def plot_label_correlation(
    prior: Any,
    train: Any = None,
    predicted: Any = None,
    *,
    names: Any = None,
    axes: Any = None,
    order: bool = True,
) -> LabelCorrelationDisplay:
    """Show correlations of labels side by side: those believed, those of the training labels, those predicted.

    Colours go from −1 (blue) over 0 (white) to 1 (red) in every map. Matrices without a unit diagonal are scaled to
    one.

    Parameters
    ----------
    prior : array or DataFrame of shape (n_labels, n_labels)
        For instance ``label_correlation_`` of a fitted classifier.
    train, predicted : array or DataFrame of shape (n_labels, n_labels), default=None
        Correlations too: see `gramian.labels.empirical_correlation` for a label matrix.
    names : sequence of length n_labels, default=None
        Names of the labels; by default those of ``prior`` if it is a DataFrame, or numbers. Shown for at most 30
        labels.
    axes : matplotlib Axes or a sequence of them, default=None
        One for each matrix. A new figure by default.
    order : bool, default=True
        Whether to bring labels with a high prior correlation together, by hierarchical clustering.

    Returns
    -------
    LabelCorrelationDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gramian.labels import empirical_correlation, taxonomy_correlation
    >>> from gramian.plot import plot_label_correlation
    >>> names = ["cat", "car", "dog", "van"]
    >>> tree = {"cat": "animal", "dog": "animal", "car": "machine", "van": "machine"}
    >>> Y = np.random.default_rng(0).integers(0, 2, size=(50, 4))
    >>> display = plot_label_correlation(
    ...     taxonomy_correlation(tree, names), empirical_correlation(Y, centered=True), names=names
    ... )
    >>> [names[label] for label in display.order_]
    ['cat', 'dog', 'van', 'car']
    """
    if names is None and hasattr(prior, "columns"):
        names = list(prior.columns)
    given = {"prior": prior, "train": train, "predicted": predicted}
    matrices = {
        argument: correlation_of(argument, matrix, names)
        for argument, matrix in given.items()
        if matrix is not None
    }
    believed = matrices["prior"]
    n_labels = len(believed)
    for argument, matrix in matrices.items():
        if len(matrix) != n_labels:
            raise ValueError(
                f"{argument} must have the shape of prior, {believed.shape}; got {matrix.shape}."
            )
    shown = [str(name) for name in (range(n_labels) if names is None else names)]
    if len(shown) != n_labels:
        raise ValueError(f"names must be {n_labels}, one for each label; got {len(shown)}.")
    places = clustered(believed) if order else np.arange(n_labels)
    panels = _panels(axes, len(matrices), n_labels)
    ticks = [shown[place] for place in places]
    images = []
    for ax, (argument, matrix) in zip(panels, matrices.items(), strict=True):
        images.append(heat_map(ax, matrix[np.ix_(places, places)]))
        ax.set(title=_TITLES[argument], xticks=[], yticks=[])
        if n_labels <= _NAMED_LABELS:
            ax.set_xticks(range(n_labels), ticks, rotation=90)
            ax.tick_params(length=0, labelsize="small")
    if n_labels <= _NAMED_LABELS:
        panels[0].set_yticks(range(n_labels), ticks)
    figure = panels[0].figure
    bar = figure.colorbar(images[0], ax=panels, label="Correlation", shrink=0.8, aspect=25)
    return LabelCorrelationDisplay(places, images, bar, panels, figure)


@dataclass(frozen=True, eq=False)
class CorrelationLossDisplay:
    """What `plot_hamming_against_correlation` has drawn.

    Attributes
    ----------
    line_ : matplotlib Line2D
    band_ : matplotlib FillBetweenPolyCollection or None
        One standard error to both sides.
    zero_line_ : matplotlib Line2D
        Where labels are unrelated.
    minimum_ : matplotlib Line2D
        The marker of the least loss.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from gramian.plot import plot_hamming_against_correlation
    >>> plot_hamming_against_correlation([-0.5, 0.0], [0.2, 0.3]).minimum_.get_xdata().tolist()
    [-0.5]
    """

    line_: Any
    band_: Any
    zero_line_: Any
    minimum_: Any
    ax_: Any
    figure_: Any


def plot_hamming_against_correlation(
    correlations: Any, losses: Any, *, errors: Any = None, ax: Any = None
) -> CorrelationLossDisplay:
    """Show the Hamming loss of two labels against the prior correlation r in R = [[1, r], [r, 1]].

    At r = 0 the labels are learned one by one; where the least loss is elsewhere, the prior helps. Figure 5 of
    Hariharan, Vishwanathan & Varma (2012).

    Parameters
    ----------
    correlations : array of shape (n_fits,)
        r, between −1 and 1.
    losses : array of shape (n_fits,)
        Hamming loss on examples not used for training.
    errors : array of shape (n_fits,), default=None
        Standard errors of the losses.
    ax : matplotlib Axes, default=None
        A new figure by default.

    Returns
    -------
    CorrelationLossDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from gramian.plot import plot_hamming_against_correlation
    >>> display = plot_hamming_against_correlation([-0.8, -0.4, 0, 0.4], [0.22, 0.2, 0.25, 0.31])
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['r = 0: unrelated labels', 'least loss: 0.2 at r = −0.4']
    """
    r = check_values("correlations", correlations)
    loss = check_values("losses", losses, r.size)
    if np.abs(r).max() >= 1:
        worst = r[np.abs(r).argmax()]
        raise ValueError(f"correlations must lie between -1 and 1, got {worst:g}.")
    rows = np.argsort(r, kind="stable")
    r, loss = r[rows], loss[rows]
    ax = axes_or_new(ax, "plot_hamming_against_correlation", (4.8, 3.4))
    (line,) = ax.plot(r, loss, marker="o", markersize=4)
    band = None
    if errors is not None:
        width = check_values("errors", errors, r.size)[rows]
        if width.min() < 0:
            raise ValueError(f"errors must not be negative, got {width.min():g}.")
        colours = {"color": line.get_color(), "alpha": 0.2, "linewidth": 0}
        band = ax.fill_between(r, loss - width, loss + width, label="± standard error", **colours)
    style = {"color": "0.4", "linestyle": "--", "linewidth": 1}
    zero = ax.axvline(0.0, label="r = 0: unrelated labels", **style)
    best = int(loss.argmin())
    label = f"least loss: {loss[best]:.3g} at r = {r[best]:g}".replace("-", "−")
    ring = {"color": "C3", "markersize": 9, "markerfacecolor": "none", "markeredgewidth": 2}
    (minimum,) = ax.plot(r[best], loss[best], "o", label=label, **ring)
    ax.set(xlabel="Prior correlation r", ylabel="Hamming loss")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(edgecolor="none")
    return CorrelationLossDisplay(line, band, zero, minimum, ax, ax.figure)


def correlation_of(argument: str, matrix: Any, names: Any) -> np.ndarray:
    """Return a covariance, or correlation, as a correlation; refuse what is neither."""
    array = symmetric_array(argument, matrix, names)
    diagonal = np.diagonal(array)
    if diagonal.min() <= 0:
        raise ValueError(
            f"{argument} must have a positive diagonal, got {diagonal.min():.3g}. It takes correlations; see "
            "gramian.labels.empirical_correlation for a label matrix."
        )
    scale = np.sqrt(diagonal)
    return array / scale / scale[:, None]


def clustered(R: np.ndarray) -> np.ndarray:
    """Order of the labels by average linkage of 1 − r."""
    n = len(R)
    if n < 3:
        return np.arange(n)
    distance = np.maximum(1.0 - R, 0.0)
    np.fill_diagonal(distance, 0.0)
    distances = squareform(distance, checks=False)
    tree = linkage(distances, "average", optimal_ordering=n <= _SORTED_LABELS)
    return leaves_list(tree).astype(np.int64)


def _panels(axes: Any, n_panels: int, n_labels: int) -> list[Any]:
    """The axes given, one for each matrix, or those of a new figure."""
    if axes is not None:
        panels = list(np.ravel(axes))
        if len(panels) != n_panels:
            raise ValueError(
                f"axes must be {n_panels}, one for each matrix that is shown; got {len(panels)}."
            )
        return panels
    least, most = _SIDE_OF_PANEL
    side = min(most, max(least, 1.4 + 0.12 * n_labels))
    first = axes_or_new(None, "plot_label_correlation", (n_panels * side + 1.2, side + 0.6))
    places = first.get_subplotspec().subgridspec(1, n_panels)
    first.set_subplotspec(places[0])
    return [first, *(first.figure.add_subplot(places[i]) for i in range(1, n_panels))]
