"""The labels that one sequence may have, and those that are predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian._core.validation import check_number, check_present, check_shape
from gramian.metrics._checks import check_labels, check_numbers, check_sequence
from gramian.plot._axes import Display, check_has, integer_ticks, size_in_points
from gramian.plot._tree import fitted, width_of

_ALL_CLASSES = 40  # above, classes without a noticeable probability are left out
_NOTICEABLE = 0.01
_FONT, _SMALLEST_FONT = 10.0, 5.5
_LONGEST_LABEL = 90.0  # of a class or token, in points
_CERTAIN = "#4292c6"  # a blue on which both black and white lines can be seen
_WRONG = "#e03c1c"  # a red that the colour-blind can tell from this blue


@dataclass(eq=False, repr=False)
class SequenceDisplay(Display):
    """Probabilities of the labels at each position of one sequence, and the labels that were predicted.

    The darker a cell, or the brighter on dark ground, the more probable is its label. The line joins the predicted
    labels. Open circles are the true ones where they are given, red where the prediction differs. Use
    `from_estimator` or `from_values`.

    Parameters
    ----------
    marginals : array of shape (length, n_classes)
    classes : array of shape (n_classes,)
    decoded : array of shape (length,)
        The predicted labels.
    y_true : array of shape (length,), default=None
        The true labels; None where a label is not known.
    tokens : sequence of length str, default=None
        Written below the positions.

    Attributes
    ----------
    image_ : matplotlib AxesImage
    path_ : matplotlib Line2D
        The predicted labels.
    right_, wrong_ : matplotlib Line2D or None
        The true labels that were predicted, and those that were not; None where there are none of them.
    shown_ : int array of shape (n_shown,)
        The numbers of the classes that have a row. Of more than 40 classes, those with a probability above 1 %
        somewhere, and those that are predicted or true.
    colorbar_ : matplotlib Colorbar
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from gramian.plot import SequenceDisplay
    >>> display = SequenceDisplay.from_values(
    ...     [[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]],
    ...     ["noun", "verb"],
    ...     ["noun", "verb", "noun"],
    ...     y_true=["noun", "verb", "verb"],
    ...     tokens=["time", "flies", "fast"],
    ... )
    >>> display.path_.get_ydata().tolist(), display.wrong_.get_xdata().tolist()
    ([0, 1, 0], [2])
    """

    marginals: np.ndarray
    classes: np.ndarray
    decoded: np.ndarray
    y_true: np.ndarray | None = None
    tokens: list[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        index: int = 0,
        *,
        y_true: Any = None,
        tokens: Any = None,
        ax: Any = None,
    ) -> SequenceDisplay:
        """Plot what an estimator says of one sequence.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``predict_marginals``, ``predict`` and ``classes_``, as `gramian.KernelCRF` has.
        X : Sequences
            One or more sequences. All of them are predicted, so that few are faster.
        index : int, default=0
            Which of the sequences to show.
        y_true : list of n_sequences arrays of shape (length,), default=None
            The true labels of all sequences in `X`; None where a label is not known.
        tokens : list of n_sequences sequences of str, default=None
            What to write below the positions, for all sequences in `X`.
        ax : matplotlib Axes, default=None
            A new figure by default.

        Returns
        -------
        SequenceDisplay
        """
        check_has(estimator, "predict_marginals")
        marginals = estimator.predict_marginals(X)
        n = len(marginals)
        check_number("index", index, high=n - 1, whole=True)
        for name, values in (("y_true", y_true), ("tokens", tokens)):
            if values is not None and len(values) != n:
                raise ValueError(
                    f"{name} must hold {n} sequences, one for each in X; got {len(values)}."
                )
        return cls.from_values(
            marginals[index],
            estimator.classes_,
            estimator.predict(X)[index],
            None if y_true is None else y_true[index],
            None if tokens is None else tokens[index],
            ax=ax,
        )

    @classmethod
    def from_values(
        cls,
        marginals: Any,
        classes: Any,
        decoded: Any,
        y_true: Any = None,
        tokens: Any = None,
        *,
        ax: Any = None,
    ) -> SequenceDisplay:
        """Plot probabilities and labels that are given.

        Parameters
        ----------
        marginals : array of shape (length, n_classes)
            Probabilities of the labels at each position.
        classes : array of shape (n_classes,)
        decoded : array of shape (length,)
            The predicted labels.
        y_true : array of shape (length,), default=None
            The true labels; None where a label is not known.
        tokens : sequence of length str, default=None
            What to write below the positions.
        ax : matplotlib Axes, default=None
            A new figure by default.

        Returns
        -------
        SequenceDisplay
        """
        names = check_labels("classes", classes)
        P = check_numbers("marginals", marginals)
        check_shape("marginals", P, ("length", len(names)), "one column for each of classes")
        if P.min() < 0 or P.max() > 1 + 1e-6 or np.any(np.isnan(P)):
            raise ValueError("marginals must be probabilities, between 0 and 1.")
        known = set(names.tolist())
        labels = _checked_path("decoded", decoded, len(P), known)
        truth = None
        if y_true is not None:
            truth = _checked_path("y_true", y_true, len(P), known | {None})
        words = None
        if tokens is not None:
            words = [str(token) for token in tokens]
            if len(words) != len(P):
                raise ValueError(
                    f"tokens must be {len(P)}, one for each row of marginals; got {len(words)}."
                )
        return cls(P, names, labels, truth, words).plot(ax)

    def plot(self, ax: Any = None) -> SequenceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default, as large as the sequence needs.

        Returns
        -------
        SequenceDisplay
        """
        number = {label: k for k, label in enumerate(self.classes.tolist())}
        path = np.array([number[label] for label in self.decoded])
        truth = np.full(len(path), -1)  # not known
        if self.y_true is not None:
            truth = np.array([number.get(label, -1) for label in self.y_true])
        self.shown_ = self._noticeable(path, truth)
        row = np.full(len(self.classes), -1)
        row[self.shown_] = np.arange(len(self.shown_))
        width = min(14.0, max(5.0, 2.0 + 0.4 * len(path)))
        height = min(10.0, max(2.8, 1.4 + 0.26 * len(self.shown_)))
        ax = self._begin(ax, (width, height))
        self.image_ = ax.imshow(
            self.marginals[:, self.shown_].T,
            cmap=self._from_ground_to_blue(),
            vmin=0.0,
            vmax=1.0,
            aspect="auto",
            interpolation="nearest",
        )
        self._draw_labels(row[path], np.where(truth < 0, -1, row[truth]))
        self._write_classes()
        self._write_tokens()
        self.colorbar_ = self.figure_.colorbar(
            self.image_, ax=ax, label="Marginal probability", aspect=25
        )
        return self

    def _noticeable(self, path: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Numbers of the classes that get a row: all if they are few, otherwise those that matter here."""
        if len(self.classes) <= _ALL_CLASSES:
            return np.arange(len(self.classes))
        probable = np.flatnonzero(self.marginals.max(axis=0) > _NOTICEABLE)
        return np.unique(np.concatenate([probable, path, truth[truth >= 0]]))

    def _from_ground_to_blue(self) -> Any:
        """Colours that begin with that of the axes, so that they suit light and dark styles."""
        from matplotlib.colors import LinearSegmentedColormap

        *ground, opacity = self.ax_.get_facecolor()
        if opacity == 0:
            ground = self.figure_.get_facecolor()[:3]
        return LinearSegmentedColormap.from_list("probability", [ground, _CERTAIN])

    def _cell(self) -> tuple[float, float]:
        """About how wide and high a cell will be, in points, once labels and colour bar have their room."""
        width, height = size_in_points(self.ax_)
        return 0.8 * width / len(self.decoded), 0.75 * height / len(self.shown_)

    def _draw_labels(self, path: np.ndarray, truth: np.ndarray) -> None:
        """Draw lines and circles at the rows given; −1 is a true label that is not known."""
        ax, positions, cell = self.ax_, np.arange(len(path)), min(self._cell())
        ink = ax.xaxis.label.get_color()
        dot, ring = np.clip([0.25 * cell, 0.6 * cell], [2.0, 5.0], [5.0, 11.0])
        style = {"color": ink, "marker": "o", "markersize": dot, "linewidth": 1.2}
        (self.path_,) = ax.plot(positions, path, label="predicted", **style)
        right = truth == path
        wrong = ~right & (truth >= 0)
        circles = []
        for chosen, color, label in ((right, ink, "true"), (wrong, _WRONG, "true, not predicted")):
            style = {"markersize": ring, "markerfacecolor": "none", "markeredgewidth": 1.8}
            circles.append(
                ax.plot(positions[chosen], truth[chosen], "o", color=color, label=label, **style)[0]
                if chosen.any()
                else None
            )
        self.right_, self.wrong_ = circles
        ax.legend(
            loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False, fontsize="small"
        )

    def _write_classes(self) -> None:
        size = min(_FONT, self._cell()[1])
        names = [fitted(str(self.classes[k]), _LONGEST_LABEL, size) for k in self.shown_]
        self.ax_.set_yticks([])
        if size >= _SMALLEST_FONT:
            self.ax_.set_yticks(range(len(names)), names, fontsize=size)
        self.ax_.tick_params(axis="y", length=0)
        left_out = len(self.classes) - len(names)
        if left_out:
            self.ax_.set_ylabel(f"{len(names)} of {len(self.classes)} classes")

    def _write_tokens(self) -> None:
        cell = self._cell()[0]
        size = min(_FONT, cell)
        if self.tokens is None or size < _SMALLEST_FONT:
            integer_ticks(self.ax_.xaxis)
            self.ax_.set_xlabel("Position")
            return
        words = [fitted(token, _LONGEST_LABEL, size) for token in self.tokens]
        turned = any(width_of(word, size) > 0.9 * cell for word in words)
        self.ax_.set_xticks(range(len(words)), words, rotation=90 if turned else 0, fontsize=size)
        self.ax_.tick_params(axis="x", length=0)


def _checked_path(name: str, labels: Any, length: int, known: set[Any]) -> np.ndarray:
    """Return one known label for each position."""
    path = check_sequence(name, labels)
    check_shape(name, path, (length,), "one label for each row of marginals")
    check_present(f"{name} must hold labels that are among classes", path, known)
    return path
