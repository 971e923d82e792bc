"""Angles between the normals of the nodes of a taxonomy, arranged by the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian.labels import Taxonomy, as_taxonomy
from gramian.plot._axes import Display, add_lines, heat_map, size_in_points
from gramian.plot._tree import box, depth_first, short_names

_CELL = 0.17  # side in inches, where there is room
_SIDE = (2.6, 7.0)  # of all cells, least and most
_FONT, _SMALLEST_FONT = 9.0, 5.0
_LONGEST = 18  # letters of a name
_LEVEL = 9.0  # indentation in points
_GAP = 6.0  # between names and cells, in points
_LETTER_TO_CELL = 0.8  # height of letters, as a fraction of a cell

RELATED = "mean |cos| of ancestors and descendants"


@dataclass(eq=False, repr=False)
class NormalCosineDisplay(Display):
    """Cosines of the angles between the normals of nodes, in the order of the tree.

    Rows and columns go through the tree depth first, so that a subtree is a block; the tree is drawn beside them.
    Colours go from −1 (blue) over 0 (white) to 1 (red). Thick lines surround the subtrees of the first level, thin ones
    the pairs of a node and those below it: these are white where transfer is orthogonal, and red where nodes are
    drawn to their parents. The mean of their absolute values is below the picture. Normals of zero, such as that of an
    only child, are grey. Use `from_estimator`.

    Parameters
    ----------
    cosines : array of shape (m, m)
        NaN for normals of zero.
    taxonomy : Taxonomy
    nodes : int array of shape (m,)
        Number of the node of each row, not the root.

    Attributes
    ----------
    order_ : int array of shape (m,)
        The node in each row and column.
    related_ : float
        Mean absolute cosine of pairs of which one is an ancestor of the other; NaN if there are none.
    image_ : matplotlib AxesImage
    blocks_, related_outlines_, tree_ : matplotlib LineCollection
    texts_ : list of matplotlib Text
        Names, as far as there is room.
    colorbar_ : matplotlib Colorbar or None
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gramian import HierarchicalSVC
    >>> from gramian.plot import NormalCosineDisplay
    >>> X = np.array([[2.0, 0.3], [2.0, -0.3], [-2.0, 0.1]])
    >>> model = HierarchicalSVC({"animal": ["cat", "dog"], "car": None}, "orthogonal", C=1.0)
    >>> display = NormalCosineDisplay.from_estimator(model.fit(X, ["cat", "dog", "car"]))
    >>> model.taxonomy_.names[display.order_]
    array(['animal', 'cat', 'dog', 'car'], dtype='<U6')
    >>> bool(display.related_ < 0.01)
    True
    """

    cosines: np.ndarray
    taxonomy: Taxonomy
    nodes: np.ndarray

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, X: Any = None, ax: Any = None, colorbar: bool = True
    ) -> NormalCosineDisplay:
        """Plot the normals of a fitted classifier.

        Parameters
        ----------
        estimator : HierarchicalSVC
            Fitted. Intercepts count as coefficients of the constant feature that they are.
        X : array of shape (n_samples, n_samples), default=None
            The Gram matrix of the training examples, for a precomputed kernel only.
        ax : matplotlib Axes, default=None
            A new figure by default, as large as the tree needs.
        colorbar : bool, default=True

        Returns
        -------
        NormalCosineDisplay
        """
        check_is_fitted(estimator)
        if not (hasattr(estimator, "taxonomy_") and hasattr(estimator, "nodes_")):
            kind = type(estimator).__name__
            raise TypeError(
                f"estimator must have normals of nodes, nodes_, as HierarchicalSVC does; got {kind}."
            )
        T = _inner_products(estimator, X)
        length = np.sqrt(np.diag(T))
        with np.errstate(invalid="ignore", divide="ignore"):
            cosines = np.clip(T / length / length[:, None], -1.0, 1.0)
        taxonomy = as_taxonomy(estimator.taxonomy_)
        display = cls(cosines, taxonomy, taxonomy.index(estimator.nodes_))
        return display.plot(ax, colorbar=colorbar)

    def plot(self, ax: Any = None, *, colorbar: bool = True) -> NormalCosineDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default, as large as the tree needs.
        colorbar : bool, default=True

        Returns
        -------
        NormalCosineDisplay
        """
        nodes = np.asarray(self.nodes)
        rows, first, size = depth_first(self.taxonomy, nodes)
        self.order_ = nodes[rows]
        C = self.cosines[np.ix_(rows, rows)]
        side = min(_SIDE[1], max(_SIDE[0], _CELL * nodes.size))
        ax = self._begin(ax, (side + 2.2, side + 1.2))
        self.image_ = heat_map(ax, C)
        self.image_.set_cmap(self.image_.get_cmap().with_extremes(bad="0.75"))
        ax.set(xticks=[], yticks=[])
        # place of each node that has others below it, the first of these, and the one behind the last
        above = self.order_[size[self.order_] > 1]
        strips = np.stack([first[above], first[above] + 1, first[above] + size[above]], axis=1)
        self._outline(first, size, strips)
        values = np.abs(
            np.concatenate([C[v, low:high] for v, low, high in strips] or [np.empty(0)])
        )
        values = values[np.isfinite(values)]
        self.related_ = float(values.mean()) if values.size else np.nan
        if values.size:
            ax.set_xlabel(f"{RELATED}: {self.related_:.2f}", fontsize="small")
        self._draw_tree(first, size)
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(
                self.image_, ax=ax, label="Cosine of two normals", shrink=0.8, aspect=25
            )
        return self

    def _outline(self, first: np.ndarray, size: np.ndarray, strips: np.ndarray) -> None:
        related = []
        for place, low, high in strips:
            related += [box(place, low, 1, high - low), box(low, place, high - low, 1)]
        branches = [int(v) for v in self.taxonomy.children(0) if size[v]]
        blocks = [box(first[v], first[v], size[v], size[v]) for v in branches]
        self.related_outlines_ = add_lines(self.ax_, related, colors="0.45", linewidths=0.6)
        self.blocks_ = add_lines(self.ax_, blocks, colors="0.15", linewidths=1.4)

    def _draw_tree(self, first: np.ndarray, size: np.ndarray) -> None:
        """Names at the left, indented by depth, and lines from parents to children; without room, branches only."""
        from matplotlib.textpath import TextPath
        from matplotlib.transforms import ScaledTranslation, blended_transform_factory

        tree, names = self.taxonomy, short_names(self.taxonomy)
        cell = min(size_in_points(self.ax_)) / len(self.order_)
        font = min(_FONT, _LETTER_TO_CELL * cell)
        everyone = font >= _SMALLEST_FONT
        if everyone:
            named, at = self.order_, first.astype(float)
        else:
            font, branches = _FONT, tree.children(0)
            named = branches[size[branches] * cell >= font]  # one below the other
            at = first + (size - 1) / 2
        texts = {v: _cut(names[v]) for v in named}
        indent = _LEVEL * np.maximum(tree.depth - 1, 0) * everyone
        ends = [
            indent[v] + TextPath((0, 0), texts[v], size=font).get_extents().width for v in named
        ]
        left = -max(ends, default=0.0) - _GAP
        # abscissas in points from the left edge of the cells, ordinates in rows
        edge = self.figure_.dpi_scale_trans + ScaledTranslation(0, 0, self.ax_.transAxes)
        place = blended_transform_factory(edge, self.ax_.transData)
        style = {"va": "center_baseline", "fontsize": font, "transform": place, "clip_on": False}
        self.texts_ = [
            self.ax_.text((left + indent[v]) / 72, at[v], texts[v], **style) for v in named
        ]
        lines = []
        for v in named if everyone else ():
            above = tree.parent[v]
            if above in texts:
                x = (left + indent[above] + 0.3 * _LEVEL) / 72
                end = (left + indent[v] - 1.5) / 72
                lines.append([(x, at[above] + 0.5), (x, at[v]), (end, at[v])])
        style = {"colors": "0.6", "linewidths": 0.7, "transform": place, "clip_on": False}
        self.tree_ = add_lines(self.ax_, lines, **style)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _inner_products(estimator: Any, X: Any) -> np.ndarray:
    """⟨w_i, w_j⟩ as the penalty has them: with the intercepts, and in the space of the kernel."""
    kernel, intercept = estimator.kernel_, np.asarray(estimator.intercept_, dtype=np.float64)
    variance = kernel.linear_variance
    if kernel.is_precomputed and X is None:
        raise ValueError(
            "X must be given for a precomputed kernel: the Gram matrix of the training examples."
        )
    if variance is not None:
        coef = np.asarray(estimator.coef_, dtype=np.float64)
        T = coef @ coef.T / variance
    else:
        rows = np.ix_(estimator.support_, estimator.support_)
        gram = np.asarray(X)[rows] if kernel.is_precomputed else kernel(estimator.X_fit_)
        A = np.asarray(estimator.dual_coef_, dtype=np.float64)
        T = A.T @ np.asarray(gram, dtype=np.float64) @ A
    if estimator.intercept_variance:
        T = T + np.outer(intercept, intercept) / estimator.intercept_variance
    return T
