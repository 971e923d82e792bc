"""Which classes are taken for which, in the order of the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian._core.validation import check_choice
from gramian.labels import Taxonomy
from gramian.metrics._checks import check_tree_labels
from gramian.plot import _tree
from gramian.plot._axes import Display, add_lines, size_in_points

_COUNTED_LEAVES = 15  # above, counts do not fit into their cells
_SMALLEST_FONT = 5.5
_LONGEST_LABEL = 90.0  # of a class, in points
_COLOUR_LABELS = {
    "true": "Share of the true class",
    "pred": "Share of the predicted class",
    None: "Examples",
}


@dataclass(eq=False, repr=False)
class HierarchicalConfusionDisplay(Display):
    """Confusion matrix with the classes in the order of the tree.

    Lines part the subtrees below the root, fainter squares those below them: confusions within a
    subtree lie in the blocks on the diagonal, grave ones outside. Colours go with the square root,
    so that rare confusions show. Inner nodes have a row and a column only if they occur as labels.
    Use `from_predictions` or `from_estimator`.

    Parameters
    ----------
    confusion_matrix : array of shape (n_shown, n_shown)
        Number of examples (or their weight) for each true (row) and predicted (column) node.
    nodes : array of shape (n_shown,)
        The number of the node of each row and column, depth first.
    taxonomy : Taxonomy

    Attributes
    ----------
    im_ : matplotlib AxesImage
    text_ : ndarray of matplotlib Text, of shape (n_shown, n_shown), or None
        The counts.
    borders_ : matplotlib LineCollection
        Between the subtrees below the root.
    blocks_ : matplotlib LineCollection
        Around the deeper subtrees.
    groups_ : list of matplotlib Text
        The names of the subtrees below the root, of the columns (above) and of the rows (right).
    colorbar_ : matplotlib Colorbar
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from gramian.plot import HierarchicalConfusionDisplay
    >>> animals = {"cat": "mammal", "owl": "bird", "dog": "mammal", "emu": "bird"}
    >>> display = HierarchicalConfusionDisplay.from_predictions(
    ...     ["cat", "dog", "owl", "emu"], ["cat", "cat", "owl", "dog"], animals
    ... )
    >>> display.taxonomy.names[display.nodes].tolist()
    ['cat', 'dog', 'owl', 'emu']
    >>> display.confusion_matrix
    array([[1., 0., 0., 0.],
           [1., 0., 0., 0.],
           [0., 0., 1., 0.],
           [0., 1., 0., 0.]])
    """

    confusion_matrix: np.ndarray
    nodes: np.ndarray
    taxonomy: Taxonomy

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        taxonomy: Any,
        *,
        sample_weight: Any = None,
        ax: Any = None,
        normalize: str | None = "true",
        cmap: Any = "Blues",
    ) -> HierarchicalConfusionDisplay:
        """Plot the confusions of predictions.

        Parameters
        ----------
        y_true : array of shape (n_samples,)
            Names of nodes, leaves or inner ones.
        y_pred : array of shape (n_samples,)
        taxonomy : Taxonomy, or what `gramian.labels.as_taxonomy` takes
        sample_weight : array of shape (n_samples,), default=None
        ax : matplotlib Axes, default=None
            A new figure by default.
        normalize : {"true", "pred", None}, default="true"
            What the colours show: fractions of each row, of each column, or the counts.
        cmap : str or matplotlib Colormap, default="Blues"

        Returns
        -------
        HierarchicalConfusionDisplay
        """
        tree, true, pred, weights = check_tree_labels(y_true, y_pred, taxonomy, sample_weight)
        nodes = np.unique(np.concatenate([tree.leaves, true, pred]))
        rows, place, _ = _tree.depth_first(tree, nodes)
        n = len(nodes)
        cells = np.bincount(place[true] * n + place[pred], weights, minlength=n * n)
        display = cls(cells.reshape(n, n), nodes[rows], tree)
        return display.plot(ax, normalize=normalize, cmap=cmap)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        taxonomy: Any = None,
        sample_weight: Any = None,
        ax: Any = None,
        normalize: str | None = "true",
        cmap: Any = "Blues",
    ) -> HierarchicalConfusionDisplay:
        """Plot the confusions of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted.
        X : array of shape (n_samples, n_features)
            Examples that were not used for training.
        y : array of shape (n_samples,)
            Names of their nodes, leaves or inner ones.
        taxonomy : Taxonomy, or what `gramian.labels.as_taxonomy` takes, default=None
            By default ``estimator.taxonomy_``.
        sample_weight : array of shape (n_samples,), default=None
        ax : matplotlib Axes, default=None
            A new figure by default.
        normalize : {"true", "pred", None}, default="true"
            What the colours show: fractions of each row, of each column, or the counts.
        cmap : str or matplotlib Colormap, default="Blues"

        Returns
        -------
        HierarchicalConfusionDisplay
        """
        tree = _tree.taxonomy_of(estimator, taxonomy)
        options: dict[str, Any] = {"sample_weight": sample_weight, "ax": ax}
        return cls.from_predictions(
            y, estimator.predict(X), tree, **options, normalize=normalize, cmap=cmap
        )

    def plot(
        self, ax: Any = None, *, normalize: str | None = "true", cmap: Any = "Blues"
    ) -> HierarchicalConfusionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default.
        normalize : {"true", "pred", None}, default="true"
            What the colours show: fractions of each row, of each column, or the counts. The
            numbers in the cells are counts always; they are shown for at most 15 classes.
        cmap : str or matplotlib Colormap, default="Blues"

        Returns
        -------
        HierarchicalConfusionDisplay
        """
        if normalize is not None:
            check_choice("normalize", normalize, ("true", "pred"))
        n = len(self.nodes)
        side = min(11.0, max(5.0, 2.5 + 0.2 * n))
        ax = self._begin(ax, (side + 1.0, side))
        from matplotlib.colors import PowerNorm

        colours = _fractions(self.confusion_matrix, normalize)
        # square roots of values as colours, so that rare confusions can be seen
        norm = PowerNorm(0.5, vmin=0.0, vmax=1.0 if normalize else max(1.0, colours.max()))
        self.im_ = ax.imshow(colours, cmap=cmap, norm=norm, interpolation="nearest")
        self.colorbar_ = self.figure_.colorbar(
            self.im_, ax=ax, label=_COLOUR_LABELS[normalize], shrink=0.7, aspect=30
        )
        self.text_ = self._write_counts() if n <= _COUNTED_LEAVES else None
        self._write_classes()
        self._plot_blocks()
        ax.set(xlabel="Predicted", ylabel="True")
        return self

    def _cell(self) -> float:
        """About how wide a cell will be, in points, once labels and colour bar have their room."""
        return 0.8 * min(size_in_points(self.ax_)) / len(self.nodes)

    def _write_counts(self) -> np.ndarray:
        n = len(self.nodes)
        text = np.empty((n, n), dtype=object)
        style = {"ha": "center", "va": "center", "fontsize": min(10.0, 0.4 * self._cell())}
        for (i, j), count in np.ndenumerate(self.confusion_matrix):
            red, green, blue, _ = self.im_.cmap(self.im_.norm(self.im_.get_array()[i, j]))
            style["color"] = "white" if 0.3 * red + 0.6 * green + 0.1 * blue < 0.5 else "black"
            text[i, j] = self.ax_.text(j, i, f"{count:.3g}" if count else "", **style)
        return text

    def _write_classes(self) -> None:
        n, cell = len(self.nodes), self._cell()
        size = min(10.0, cell)
        if n > _tree.LABELLED_LEAVES or size < _SMALLEST_FONT:
            self.ax_.set(xticks=[], yticks=[])
            return
        names = _tree.short_names(self.taxonomy)
        shown = [_tree.fitted(names[node], _LONGEST_LABEL, size) for node in self.nodes]
        turned = any(_tree.width_of(name, size) > 0.9 * cell for name in shown)
        self.ax_.set_xticks(range(n), shown, rotation=90 if turned else 0, fontsize=size)
        self.ax_.set_yticks(range(n), shown, fontsize=size)
        self.ax_.tick_params(length=0)

    def _plot_blocks(self) -> None:
        tree, n = self.taxonomy, len(self.nodes)
        _, first, size = _tree.depth_first(tree, self.nodes)
        inner = ~tree.is_leaf & (size > 0)
        low, high = first - 0.5, first + size - 0.5
        groups = np.flatnonzero(inner & (tree.depth == 1))
        start, end = -0.5, n - 0.5
        cuts = np.setdiff1d([*low[groups], *high[groups]], [start, end])
        across = [[(cut, start), (cut, end)] for cut in cuts]
        across += [[(start, cut), (end, cut)] for cut in cuts]
        deep = np.flatnonzero(inner & (tree.depth > 1) & (size > 1))
        squares = [_tree.box(first[node], first[node], size[node], size[node]) for node in deep]
        faint = np.maximum(0.3, 1.0 - 0.2 * (tree.depth[deep] - 1))
        self.blocks_ = add_lines(self.ax_, squares, colors="0.4", linewidths=faint)
        self.borders_ = add_lines(self.ax_, across, colors="0.25", linewidths=1.0)
        self._write_groups(groups, low, high)

    def _write_groups(self, groups: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Names of the subtrees below the root, at brackets above and right of the matrix."""
        ax, names, cell = self.ax_, _tree.short_names(self.taxonomy), self._cell()
        self.groups_ = []
        above, right = ax.get_xaxis_transform(), ax.get_yaxis_transform()
        line = {"color": "0.25", "linewidth": 1.5, "clip_on": False}
        widths = {node: (high[node] - low[node]) * cell for node in groups}
        turned = any(_tree.width_of(names[node], 9) > width for node, width in widths.items())
        place = {"annotation_clip": False, "textcoords": "offset points", "fontsize": 9}
        column = {"xycoords": above, "ha": "center", "va": "bottom", "rotation": 90 * turned}
        row = {"xycoords": right, "ha": "left", "va": "center"}
        gap = max(0.15, 2 / cell)
        for node in groups:
            ends = (low[node] + gap, high[node] - gap)
            middle = (low[node] + high[node]) / 2
            ax.plot(ends, (1.015, 1.015), transform=above, **line)
            ax.plot((1.015, 1.015), ends, transform=right, **line)
            if widths[node] >= 9:  # lower than a letter, names would overlap
                text = _tree.fitted(names[node], _LONGEST_LABEL, 9)
                self.groups_ += [
                    ax.annotate(text, (middle, 1.015), (0, 3), **column, **place),
                    ax.annotate(text, (1.015, middle), (3, 0), **row, **place),
                ]


def _fractions(counts: np.ndarray, normalize: str | None) -> np.ndarray:
    """Divide by the sums of the rows ("true") or columns ("pred"); zero where these are."""
    if normalize is None:
        return counts
    total = counts.sum(axis=1 if normalize == "true" else 0, keepdims=True)
    return np.divide(counts, total, out=np.zeros_like(counts, dtype=float), where=total > 0)
