"""The scores with which one label follows another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian._core.validation import check_shape
from gramian.metrics._checks import check_labels, check_numbers
from gramian.plot._axes import Display, check_has, size_in_points
from gramian.plot._tree import fitted, width_of

_GAP = 0.35  # between the transitions and those from the start or to the end, in cells
_WRITTEN_CLASSES = 12  # above, scores do not fit into their cells
_FONT, _SMALLEST_FONT = 10.0, 5.5
_LONGEST_LABEL = 90.0  # of a class, in points


@dataclass(eq=False, repr=False)
class TransitionDisplay(Display):
    """Scores of the transitions between the labels of neighbouring positions.

    A row is the label before, a column the label after. Sequences begin in the row above, "start", and end in the
    column on the right, "end". Colours go from unlikely (blue) over 0 (white) to likely (red). Use `from_estimator` or
    `from_values`.

    Parameters
    ----------
    transitions : array of shape (n_classes, n_classes)
        −∞ stands for a transition that cannot be.
    classes : array of shape (n_classes,)
    start, end : array of shape (n_classes,), default=None
        Scores of the first and of the last label of a sequence.

    Attributes
    ----------
    mesh_ : matplotlib QuadMesh
    texts_ : list of matplotlib Text
        The scores, if there are at most 12 classes.
    colorbar_ : matplotlib Colorbar
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from gramian.plot import TransitionDisplay
    >>> display = TransitionDisplay.from_values(
    ...     [[1.0, -0.5], [0.25, 2.0]], ["noun", "verb"], start=[0.5, -1.0]
    ... )
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['start', 'noun', 'verb']
    >>> [text.get_text() for text in display.texts_]
    ['0.5', '−1.0', '1.0', '−0.5', '0.2', '2.0']
    """

    transitions: np.ndarray
    classes: np.ndarray
    start: np.ndarray | None = None
    end: np.ndarray | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, cmap: Any = None
    ) -> TransitionDisplay:
        """Plot the transitions that an estimator has learned.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``transitions_``, ``classes_``, ``start_`` and ``end_``, as `gramian.KernelCRF` has.
        ax : matplotlib Axes, default=None
            A new figure by default.
        cmap : str or matplotlib Colormap, default=None
            A diverging one; "RdBu_r" by default.

        Returns
        -------
        TransitionDisplay
        """
        check_has(estimator, "transitions_")
        scores = estimator.transitions_, estimator.classes_, estimator.start_, estimator.end_
        return cls.from_values(*scores, ax=ax, cmap=cmap)

    @classmethod
    def from_values(
        cls,
        transitions: Any,
        classes: Any,
        start: Any = None,
        end: Any = None,
        *,
        ax: Any = None,
        cmap: Any = None,
    ) -> TransitionDisplay:
        """Plot transitions that are given.

        Parameters
        ----------
        transitions : array of shape (n_classes, n_classes)
            Scores of the label in the column after that in the row; −∞ for a transition that cannot be.
        classes : array of shape (n_classes,)
        start, end : array of shape (n_classes,), default=None
            Scores of the first and of the last label of a sequence.
        ax : matplotlib Axes, default=None
            A new figure by default.
        cmap : str or matplotlib Colormap, default=None
            A diverging one; "RdBu_r" by default.

        Returns
        -------
        TransitionDisplay
        """
        names = check_labels("classes", classes)
        n = len(names)
        T = _checked_scores("transitions", transitions, (n, n))
        edges = [
            None if scores is None else _checked_scores(name, scores, (n,))
            for name, scores in (("start", start), ("end", end))
        ]
        return cls(T, names, *edges).plot(ax, cmap=cmap)

    def plot(self, ax: Any = None, *, cmap: Any = None) -> TransitionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default, as large as the classes need.
        cmap : str or matplotlib Colormap, default=None
            A diverging one; "RdBu_r" by default.

        Returns
        -------
        TransitionDisplay
        """
        scores, rows, columns = self._grid()
        side = min(10.0, max(3.6, 1.6 + 0.45 * len(self.classes)))
        ax = self._begin(ax, (side + 1.2, side))
        largest = np.abs(scores[np.isfinite(scores)]).max(initial=0.0) or 1.0
        across, down = _edges(columns), _edges(rows)
        cells = np.full((len(down) - 1, len(across) - 1), np.nan)  # the gaps stay NaN: not drawn
        places = np.ix_(np.searchsorted(down, rows - 0.5), np.searchsorted(across, columns - 0.5))
        cells[places] = np.clip(scores, -largest, largest)
        colours = {"cmap": "RdBu_r" if cmap is None else cmap, "vmin": -largest, "vmax": largest}
        self.mesh_ = ax.pcolormesh(across, down, cells, **colours)
        ax.set(aspect="equal", xlabel="to", ylabel="from", facecolor="none")
        ax.invert_yaxis()
        ax.spines[:].set_visible(False)
        self._write_classes(rows, columns)
        self.texts_ = []
        if len(self.classes) <= _WRITTEN_CLASSES:
            self._write_scores(scores, rows, columns, largest)
        self.colorbar_ = self.figure_.colorbar(
            self.mesh_, ax=ax, label="Score of the transition", shrink=0.8, aspect=25
        )
        return self

    def _grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores with those of start above and of end on the right, and the middles of rows and columns."""
        n = len(self.classes)
        scores, rows, columns = self.transitions, np.arange(float(n)), np.arange(float(n))
        if self.start is not None:
            scores, rows = np.vstack([self.start, scores]), np.append(-1 - _GAP, rows)
        if self.end is not None:
            # sequences do not go from the start to the end
            last = np.append(np.full(len(rows) - n, np.nan), self.end)
            scores, columns = np.column_stack([scores, last]), np.append(columns, n + _GAP)
        return scores, rows, columns

    def _cell(self, n_cells: int) -> float:
        """About how wide a cell will be, in points, once labels and colour bar have their room."""
        return 0.75 * min(size_in_points(self.ax_)) / n_cells

    def _write_classes(self, rows: np.ndarray, columns: np.ndarray) -> None:
        ax, cell = self.ax_, self._cell(len(rows))
        size = min(_FONT, cell)
        ax.set(xticks=[], yticks=[])
        if size < _SMALLEST_FONT:
            return
        names = [fitted(str(name), _LONGEST_LABEL, size) for name in self.classes]
        turned = any(width_of(name, size) > 0.9 * cell for name in names)
        before, after = ["start"] * (len(rows) > len(names)), ["end"] * (len(columns) > len(names))
        ax.set_xticks(columns, names + after, rotation=90 if turned else 0, fontsize=size)
        ax.set_yticks(rows, before + names, fontsize=size)
        ax.tick_params(length=0)
        # italics tell them from classes, which may have the same names
        for label in ax.get_xticklabels()[len(names) :] + ax.get_yticklabels()[: len(before)]:
            label.set_fontstyle("italic")

    def _write_scores(
        self, scores: np.ndarray, rows: np.ndarray, columns: np.ndarray, largest: float
    ) -> None:
        decimals = int(np.clip(1 - np.floor(np.log10(largest)), 1, 4))
        style = {
            "ha": "center",
            "va": "center",
            "fontsize": min(_FONT, 0.33 * self._cell(len(rows))),
        }
        for (i, j), score in np.ndenumerate(scores):
            if np.isnan(score):
                continue
            red, green, blue, _ = self.mesh_.cmap(self.mesh_.norm(score))
            style["color"] = "white" if 0.3 * red + 0.6 * green + 0.1 * blue < 0.5 else "black"
            text = f"{score:z.{decimals}f}".replace("-", "−").replace("inf", "∞")
            self.texts_.append(self.ax_.text(columns[j], rows[i], text, **style))


def _edges(middles: np.ndarray) -> np.ndarray:
    """Both edges of each cell of width 1; those that neighbours share only once."""
    return np.unique(np.concatenate([middles - 0.5, middles + 0.5]))


def _checked_scores(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return scores of a shape, which may be infinite."""
    scores = check_numbers(name, values)
    check_shape(name, scores, shape, "one for each of classes along each axis")
    if np.any(np.isnan(scores)):
        raise ValueError(f"{name} must not be NaN; use -inf for what cannot be.")
    return scores
