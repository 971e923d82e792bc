"""A taxonomy as a tree, and where in it predictions go wrong."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from gramian.labels import Taxonomy, as_taxonomy
from gramian.metrics._checks import check_tree_labels
from gramian.plot import _tree
from gramian.plot._axes import Display, add_lines, size_in_points

_SMALLEST, _LARGEST = 18.0, 260.0  # squared diameters of nodes, in points
_BEND = 0.25  # where an edge turns, from the parent (0) to the child (1)
_FONT, _SMALLEST_FONT = 10.0, 4.5
_WIDEST_LABEL = 0.4  # of a leaf, as a fraction of the axes


@dataclass(eq=False, repr=False)
class TaxonomyDisplay(Display):
    """The tree of a taxonomy; with predictions, the accuracy and the examples at each node.

    An example counts for a node if its true label is there or below. It is right at the node if
    the prediction is there or below, too: colours fade from the root to the leaves where
    predictions take the wrong branch. Points grow with the number of examples; white ones have
    none. Use `from_taxonomy`, `from_predictions` or `from_estimator`.

    Parameters
    ----------
    taxonomy : Taxonomy
    count : array of shape (n_nodes,), default=None
        Number of examples of each node, or their weight.
    accuracy : array of shape (n_nodes,), default=None
        Fraction of them that are right; NaN where there are none.

    Attributes
    ----------
    points_ : matplotlib PathCollection
        The nodes, in their order.
    edges_ : matplotlib LineCollection
        From the parents to the nodes 1, 2, …
    texts_ : list of matplotlib Text
    colorbar_ : matplotlib Colorbar or None
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from gramian.plot import TaxonomyDisplay
    >>> animals = {"cat": "mammal", "dog": "mammal", "owl": "bird", "emu": "bird"}
    >>> display = TaxonomyDisplay.from_predictions(
    ...     ["cat", "dog", "owl", "emu"], ["cat", "cat", "owl", "dog"], animals
    ... )
    >>> bird = display.taxonomy.index(["bird"])
    >>> display.count[bird], display.accuracy[bird]
    (array([2.]), array([0.5]))
    """

    taxonomy: Taxonomy
    _: KW_ONLY
    count: np.ndarray | None = None
    accuracy: np.ndarray | None = None

    @classmethod
    def from_taxonomy(
        cls, taxonomy: Any, *, ax: Any = None, labels: bool | None = None
    ) -> TaxonomyDisplay:
        """Plot the tree alone.

        Parameters
        ----------
        taxonomy : Taxonomy, or what `gramian.labels.as_taxonomy` takes
        ax : matplotlib Axes, default=None
            A new figure by default, as high as the tree needs.
        labels : bool, default=None
            Whether to write names; by default if there are at most 40 leaves.

        Returns
        -------
        TaxonomyDisplay
        """
        return cls(as_taxonomy(taxonomy)).plot(ax, labels=labels)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        taxonomy: Any,
        *,
        sample_weight: Any = None,
        ax: Any = None,
        labels: bool | None = None,
        cmap: Any = "RdYlBu",
    ) -> TaxonomyDisplay:
        """Plot where predictions are right.

        Parameters
        ----------
        y_true : array of shape (n_samples,)
            Names of nodes, leaves or inner ones.
        y_pred : array of shape (n_samples,)
        taxonomy : Taxonomy, or what `gramian.labels.as_taxonomy` takes
        sample_weight : array of shape (n_samples,), default=None
        ax : matplotlib Axes, default=None
            A new figure by default, as high as the tree needs.
        labels : bool, default=None
            Whether to write names; by default if there are at most 40 leaves.
        cmap : str or matplotlib Colormap, default="RdYlBu"

        Returns
        -------
        TaxonomyDisplay
        """
        tree, true, pred, weights = check_tree_labels(y_true, y_pred, taxonomy, sample_weight)
        # truth and prediction are both below a node if and only if their lowest common ancestor is
        shared = tree.lowest_common_ancestor(true, pred)
        held = np.stack([np.bincount(v, weights, minlength=tree.n_nodes) for v in (true, shared)])
        count, right = tree.subtree_sums(held)
        with np.errstate(invalid="ignore"):
            display = cls(tree, count=count, accuracy=right / count)
        return display.plot(ax, labels=labels, cmap=cmap)

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
        labels: bool | None = None,
        cmap: Any = "RdYlBu",
    ) -> TaxonomyDisplay:
        """Plot where a fitted classifier is right.

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
            A new figure by default, as high as the tree needs.
        labels : bool, default=None
            Whether to write names; by default if there are at most 40 leaves.
        cmap : str or matplotlib Colormap, default="RdYlBu"

        Returns
        -------
        TaxonomyDisplay
        """
        tree = _tree.taxonomy_of(estimator, taxonomy)
        options: dict[str, Any] = {"sample_weight": sample_weight, "ax": ax}
        return cls.from_predictions(
            y, estimator.predict(X), tree, **options, labels=labels, cmap=cmap
        )

    def plot(
        self, ax: Any = None, *, labels: bool | None = None, cmap: Any = "RdYlBu"
    ) -> TaxonomyDisplay:
        """Draw, with the root at the left.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default, as high as the tree needs.
        labels : bool, default=None
            Whether to write names; by default if there are at most 40 leaves. Names without the
            space for three letters are left out, longer ones are cut.
        cmap : str or matplotlib Colormap, default="RdYlBu"

        Returns
        -------
        TaxonomyDisplay
        """
        tree = self.taxonomy
        height = min(12.0, max(3.0, 1.0 + 0.22 * tree.n_leaves))
        width = min(12.0, 4.0 + 1.4 * tree.height)
        ax = self._begin(ax, (width, height))
        ax.set_axis_off()
        x, y = tree.depth.astype(float), _tree.heights(tree)
        self._plot_nodes(x, y, cmap)
        ax.set_ylim(tree.n_leaves - 0.3, -0.7)  # the first leaf at the top
        ax.set_xlim(-0.15, max(1, tree.height) + 0.15)
        self.texts_ = []
        if labels or (labels is None and tree.n_leaves <= _tree.LABELLED_LEAVES):
            self._write_names(x, y)
        return self

    def _plot_nodes(self, x: np.ndarray, y: np.ndarray, cmap: Any) -> None:
        tree = self.taxonomy
        above = tree.parent[1:]
        bend = x[above] + _BEND
        corners = [[x[above], y[above]], [bend, y[above]], [bend, y[1:]], [x[1:], y[1:]]]
        lines = list(np.moveaxis(np.array(corners), 2, 0))
        self.edges_ = add_lines(self.ax_, lines, colors="0.7", linewidths=0.8, zorder=1)
        share = np.zeros(tree.n_nodes) if self.count is None else self.count / self.count[0]
        size = _SMALLEST + (_LARGEST - _SMALLEST) * np.sqrt(share)
        row = size_in_points(self.ax_)[1] / tree.n_leaves
        size = np.minimum(size, (0.9 * row * _tree.spans(tree, tree.is_leaf)[1]) ** 2)  # no overlap
        if self.accuracy is None:
            self.points_ = self.ax_.scatter(x, y, s=size, zorder=2, color="0.45")
            self.colorbar_ = None
            return
        style = {"c": self.accuracy, "cmap": cmap, "vmin": 0.0, "vmax": 1.0, "edgecolors": "0.3"}
        style |= {"linewidths": 0.6, "plotnonfinite": True}
        self.points_ = self.ax_.scatter(x, y, s=size, zorder=2, **style)
        self.points_.set_cmap(self.points_.get_cmap().with_extremes(bad="white"))
        place = {"location": "bottom", "shrink": 0.6, "aspect": 40, "pad": 0.02}
        self.colorbar_ = self.figure_.colorbar(
            self.points_, ax=self.ax_, label="Accuracy at the node", **place
        )

    def _write_names(self, x: np.ndarray, y: np.ndarray) -> None:
        """Leaves have their name at the right, inner nodes above the edge that leads to them."""
        tree, names = self.taxonomy, _tree.short_names(self.taxonomy)
        width, height = size_in_points(self.ax_)
        font = min(_FONT, 0.85 * height / tree.n_leaves)
        if font < _SMALLEST_FONT:
            return
        radius = np.sqrt(self.points_.get_sizes()) / 2  # a size is the square of a diameter
        # the deepest leaves need room behind them: widen the axes by the longest name there
        behind = [_tree.width_of(names[v], font) + radius[v] + 4 for v in tree.leaves]
        depth = x[tree.leaves]
        room = min(_WIDEST_LABEL * width, max(np.array(behind) * (depth / max(1, tree.height))))
        left, right = self.ax_.get_xlim()
        right += (right - left) * room / (width - room)
        self.ax_.set_xlim(left, right)
        level = width / (right - left)
        for node in range(tree.n_nodes):
            offset, space = (radius[node] + 3, 0.0), (right - x[node]) * level - radius[node] - 3
            style = {"ha": "left", "va": "center", "fontsize": font, "color": "black"}
            if not tree.is_leaf[node]:
                offset, space = (-radius[node] - 1, 1.5), (1 - _BEND) * level - radius[node]
                style = {"ha": "right", "va": "bottom", "fontsize": 0.85 * font, "color": "0.35"}
            if node == 0:
                offset, space = (0, radius[0] + 2), level
                style["ha"] = "center"
            text, at = _tree.fitted(names[node], space, style["fontsize"]), (x[node], y[node])
            if text:
                style |= {"textcoords": "offset points"}
                self.texts_.append(self.ax_.annotate(text, at, offset, **style))
