"""Responses of pairs as a matrix of left and right objects, observed beside predicted."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian._core.validation import check_flag
from gramian.metrics._checks import check_values
from gramian.pairs import Pairs
from gramian.pairs.container import check_pairs
from gramian.plot._axes import axes_beside, axes_or_new, size_in_points
from gramian.plot._pair_matrix import arranged, coarse, matrix_of
from gramian.plot._tree import fitted, width_of

MOST_NAMED_OBJECTS = 40  # of a side; more names cannot be read
FONT_POINTS = 9.0
SMALLEST_FONT_POINTS = 5.5
LONGEST_NAME_POINTS = 70.0
LONGEST_SIDE_INCHES = 4.2  # of a panel
LARGEST_SIDE_RATIO = 2.0  # of a panel
MISSING_GREY = "0.88"  # of cells without a response, between black and white


@dataclass(eq=False, repr=False)
class PairMatrixDisplay:
    """The matrix of observed responses and, beside it, of predictions, in one scale of colours.

    Rows are left objects and columns right ones, those that occur in a pair; grey cells have no
    response. The objects that respond most come first, unless `sort` is False. With training pairs,
    objects seen in training come before new ones and thick lines part the four settings: A both
    objects seen, B the left one new, C the right one new, D both new. Of more than 400 rows or columns
    neighbours are shown by their mean. Use `from_predictions` or `from_estimator`.

    Parameters
    ----------
    observed : array of shape (n_rows, n_columns)
        NaN where nothing was observed.
    predicted : array of shape (n_rows, n_columns), default=None
    n_seen : tuple of two int, default=None
        How many rows and columns, the first ones, were seen in training.
    left_names : array of shape (n_rows,), default=None
        Written at the rows if there is room.
    right_names : array of shape (n_columns,), default=None
    response_name : str, default="Response"
        For the colour bar.

    Attributes
    ----------
    images_ : list of matplotlib AxesImage
        One or two.
    borders_ : list of matplotlib LineCollection
        Between the settings, one for each image; empty without training pairs.
    settings_ : list of matplotlib Text
        The letters of the settings.
    colorbar_ : matplotlib Colorbar
    ax_ : matplotlib Axes
        Of what was observed.
    predicted_ax_ : matplotlib Axes or None
    figure_ : matplotlib Figure

    See Also
    --------
    gramian.selection.pair_setting : The setting of each pair.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from gramian.datasets import make_interactions
    >>> from gramian.plot import PairMatrixDisplay
    >>> pairs, y = make_interactions(n_left=30, n_right=20)
    >>> train = (pairs.left_index < 20) & (pairs.right_index < 15)
    >>> display = PairMatrixDisplay.from_predictions(pairs, y, train=pairs[train])
    >>> display.observed.shape, display.n_seen
    ((30, 20), (20, 15))
    >>> [text.get_text() for text in display.settings_]
    ['A', 'B', 'C', 'D']
    """

    observed: np.ndarray
    predicted: np.ndarray | None = None
    _: KW_ONLY
    n_seen: tuple[int, int] | None = None
    left_names: Any = None
    right_names: Any = None
    response_name: str = "Response"

    @classmethod
    def from_predictions(
        cls,
        pairs: Pairs,
        y_true: Any,
        y_score: Any = None,
        *,
        train: Pairs | None = None,
        setting_lines: bool = True,
        sort: bool = True,
        response_name: str = "Response",
        ax: Any = None,
        cmap: Any = "viridis",
    ) -> PairMatrixDisplay:
        """Plot responses, and predictions if there are any.

        Parameters
        ----------
        pairs : Pairs
            Where a pair is repeated, the mean is shown.
        y_true : array of shape (n_pairs,)
            Numbers.
        y_score : array of shape (n_pairs,), default=None
            Predictions on the scale of `y_true`.
        train : Pairs, default=None
            The pairs a model was trained with.
        setting_lines : bool, default=True
            Part and name the four settings; without `train` there is nothing to part.
        sort : bool, default=True
            Order objects by their mean response, the largest first, instead of their row number.
        response_name : str, default="Response"
            For the colour bar.
        ax : matplotlib Axes, default=None
            A new figure by default. With predictions the axes share their place with a second one.
        cmap : str or matplotlib Colormap, default="viridis"

        Returns
        -------
        PairMatrixDisplay
        """
        check_pairs("pairs", pairs)
        if not len(pairs):
            raise ValueError("pairs is empty: there is nothing to show.")
        check_flag("sort", sort)
        y = check_values("y_true", y_true, len(pairs))
        score = None if y_score is None else check_values("y_score", y_score, len(pairs))
        small, rows, columns, n_seen = arranged(pairs, y, train, sort)
        shown = np.ix_(rows, columns)
        display = cls(
            matrix_of(small, y)[shown],
            None if score is None else matrix_of(small, score)[shown],
            n_seen=n_seen,
            left_names=None if small.left_ids is None else small.left_ids[rows],
            right_names=None if small.right_ids is None else small.right_ids[columns],
            response_name=response_name,
        )
        return display.plot(ax, setting_lines=setting_lines, cmap=cmap)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        pairs: Pairs,
        y: Any,
        *,
        train: Pairs | None = None,
        setting_lines: bool = True,
        sort: bool = True,
        ax: Any = None,
        cmap: Any = "viridis",
    ) -> PairMatrixDisplay:
        """Plot responses and the predictions of a fitted estimator for pairs.

        Parameters
        ----------
        estimator : estimator
            Fitted. Shown is its ``decision_function``, with the two classes as −1 and 1, or
            ``predict`` if it has none.
        pairs : Pairs
            Where a pair is repeated, the mean is shown.
        y : array of shape (n_pairs,)
        train : Pairs, default=None
            The pairs the estimator was trained with.
        setting_lines : bool, default=True
            Part and name the four settings; without `train` there is nothing to part.
        sort : bool, default=True
            Order objects by their mean response, the largest first, instead of their row number.
        ax : matplotlib Axes, default=None
            A new figure by default. The axes share their place with a second one.
        cmap : str or matplotlib Colormap, default="viridis"

        Returns
        -------
        PairMatrixDisplay
        """
        check_is_fitted(estimator)
        if hasattr(estimator, "decision_function"):
            score = estimator.decision_function(pairs)
            y, name = _signs(estimator.classes_, y)
        else:
            score, name = estimator.predict(pairs), "Response"
        return cls.from_predictions(
            pairs,
            y,
            score,
            train=train,
            setting_lines=setting_lines,
            sort=sort,
            response_name=name,
            ax=ax,
            cmap=cmap,
        )

    def plot(
        self, ax: Any = None, *, setting_lines: bool = True, cmap: Any = "viridis"
    ) -> PairMatrixDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default. With predictions the axes share their place with a second one.
        setting_lines : bool, default=True
            Part and name the four settings, if it is known what was seen in training.
        cmap : str or matplotlib Colormap, default="viridis"

        Returns
        -------
        PairMatrixDisplay
        """
        check_flag("setting_lines", setting_lines)
        matrices = [matrix for matrix in (self.observed, self.predicted) if matrix is not None]
        width, height = _size_of_panel(*self.observed.shape)
        size = (len(matrices) * (width + 0.1) + 1.4, height + 0.8)
        self.ax_ = axes_or_new(ax, f"{type(self).__name__}.plot", size)
        self.figure_ = self.ax_.figure
        self.predicted_ax_ = None
        if self.predicted is not None:
            self.predicted_ax_ = axes_beside(self.ax_, sharex=self.ax_, sharey=self.ax_)
            self.predicted_ax_.tick_params(labelleft=False)
        axes = list(filter(None, (self.ax_, self.predicted_ax_)))
        matrices = [coarse(matrix) for matrix in matrices]
        low, high = _range_of(matrices)
        n_rows, n_columns = self.observed.shape
        self.images_ = []
        for panel, matrix, title in zip(axes, matrices, ("Observed", "Predicted")):
            image = panel.imshow(
                np.ma.masked_invalid(matrix), extent=(-0.5, n_columns - 0.5, n_rows - 0.5, -0.5),
                cmap=cmap, vmin=low, vmax=high, aspect="auto", interpolation="nearest", rasterized=True,
            )  # fmt: skip
            panel.set(title=title, xlabel="Right objects", facecolor=MISSING_GREY)
            self.images_.append(image)
        self.ax_.set(ylabel="Left objects")
        # a layout engine keeps panels equal, and the bar as high as the panel it belongs to
        place = axes[-1] if self.figure_.get_layout_engine() else axes
        self.colorbar_ = self.figure_.colorbar(
            self.images_[0], ax=place, label=self.response_name, aspect=30, pad=0.02
        )
        self._write_objects(setting_lines)
        self.borders_, self.settings_ = [], []
        if setting_lines and self.n_seen is not None:
            for panel in axes:
                self._plot_settings(panel, *self.n_seen)
        return self

    def _write_objects(self, setting_lines: bool) -> None:
        """Names of objects where there is room, else how many were seen in training."""
        n_rows, n_columns = self.observed.shape
        rows, columns = (self.n_seen if setting_lines else None) or (None, None)
        width, height = size_in_points(self.ax_)
        x_places, x_texts, x_size = _ticks(self.right_names, n_columns, columns, width)
        y_places, y_texts, y_size = _ticks(self.left_names, n_rows, rows, height)
        room = width / max(1, len(x_texts))
        x_turned = any(width_of(text, x_size) > 0.8 * room for text in x_texts)
        y_turned = len(y_texts) < n_rows  # counts, not names
        for panel in filter(None, (self.ax_, self.predicted_ax_)):
            panel.set_xticks(x_places, x_texts, fontsize=x_size, rotation=90 if x_turned else 0)
            panel.set_yticks(
                y_places, y_texts, fontsize=y_size, rotation=90 if y_turned else 0, va="center"
            )
            panel.tick_params(length=0)

    def _plot_settings(self, panel: Any, rows: int, columns: int) -> None:
        """Lines between the settings, and the letter of each at the outer corner of its block."""
        from matplotlib.collections import LineCollection
        from matplotlib.patheffects import Normal, Stroke

        n_rows, n_columns = self.observed.shape
        lines = []
        if 0 < rows < n_rows:
            lines.append([(-0.5, rows - 0.5), (n_columns - 0.5, rows - 0.5)])
        if 0 < columns < n_columns:
            lines.append([(columns - 0.5, -0.5), (columns - 0.5, n_rows - 0.5)])
        halo = [Stroke(linewidth=3.4, foreground="white"), Normal()]
        borders = LineCollection(lines, colors="black", linewidths=1.8, path_effects=halo)
        self.borders_.append(panel.add_collection(borders, autolim=False))
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "0.3", "alpha": 0.9}
        for letter, x, y, n_cells in (
            ("A", 0, 1, rows * columns),
            ("B", 0, 0, (n_rows - rows) * columns),
            ("C", 1, 1, rows * (n_columns - columns)),
            ("D", 1, 0, (n_rows - rows) * (n_columns - columns)),
        ):
            if n_cells:
                text = panel.annotate(
                    letter, (x, y), (6 - 12 * x, 6 - 12 * y), xycoords="axes fraction",
                    textcoords="offset points", ha=("left", "right")[x], va=("bottom", "top")[y],
                    fontsize=10, fontweight="bold", bbox=box,
                )  # fmt: skip
                self.settings_.append(text)


def _ticks(
    names: Any, n_objects: int, n_seen: int | None, room: float
) -> tuple[list[float], list[str], float]:
    """Places, texts and font size for one axis that is ``room`` points long."""
    size = min(FONT_POINTS, 0.7 * room / n_objects)
    if names is not None and n_objects <= MOST_NAMED_OBJECTS and size >= SMALLEST_FONT_POINTS:
        texts = [fitted(str(name), LONGEST_NAME_POINTS, size) for name in names]
        return list(range(n_objects)), texts, size
    if n_seen is None:
        return [], [], FONT_POINTS
    parts = [(0, n_seen, "seen"), (n_seen, n_objects, "new")]
    parts = [(first, last, word) for first, last, word in parts if first < last]
    places = [(first + last - 1) / 2 for first, last, _ in parts]
    return places, [f"{last - first} {word}" for first, last, word in parts], FONT_POINTS


def _range_of(matrices: list[np.ndarray]) -> tuple[float, float]:
    shown = np.concatenate([matrix.ravel() for matrix in matrices])
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _size_of_panel(n_rows: int, n_columns: int) -> tuple[float, float]:
    """Width and height in inches that make cells about square, if the sides are not too different."""
    ratio = min(max(n_rows / n_columns, 1 / LARGEST_SIDE_RATIO), LARGEST_SIDE_RATIO)
    return LONGEST_SIDE_INCHES * min(1, 1 / ratio), LONGEST_SIDE_INCHES * min(1, ratio)


def _signs(classes: Any, y: Any) -> tuple[np.ndarray, str]:
    """The two classes as −1 and 1, and what to call the scale of a decision function."""
    if len(classes) != 2:
        raise ValueError(
            f"estimator must know two classes, got {len(classes)}. Pass the scores of one class to "
            "from_predictions instead."
        )
    low, high = classes
    y = np.asarray(y)
    unknown = y[(y != low) & (y != high)]
    if unknown.size:
        raise ValueError(f"y must hold the classes {low} and {high} only, got {unknown.flat[0]}.")
    return np.where(y == high, 1.0, -1.0), f"Decision function ({low}: −1, {high}: 1)"
