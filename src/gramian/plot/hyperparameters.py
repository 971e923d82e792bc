"""How the parameters of a model were learned."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian.plot._axes import RIGHT_OF_AXES, Display, axes_below, integer_ticks, log_ordinate

_SIZE = (7.0, 6.0)
_HEIGHTS = (1, 1.4)
_COLOURS = 10  # more cannot be told apart


@dataclass(eq=False, repr=False)
class HyperparameterPathDisplay(Display):
    """Cross-validation loss, and the parameters below it, against the evaluations of a search.

    A line joins the evaluations that the search accepted; crosses are those it tried on the way
    and did not keep. Evaluations on a part of the examples only have a grey background; their
    losses cannot be compared with the others, so the line breaks there. Of more than ten
    parameters the ones that moved most have colours and names, the others are grey.
    Use `from_estimator` or `from_path`.

    Parameters
    ----------
    names : sequence of str
        One for each parameter.
    theta : array of shape (n_evaluations, n_parameters)
        Logarithms of the parameters.
    loss : array of shape (n_evaluations,)
    accepted : array of shape (n_evaluations,), bool
    n_samples : array of shape (n_evaluations,)
        How many examples were used.

    Attributes
    ----------
    loss_lines_ : list of matplotlib Line2D
        Accepted evaluations; one line for each run of evaluations with the same examples.
    rejected_ : matplotlib Line2D or None
    parameter_lines_ : list of matplotlib Line2D
        In the order of `names`.
    coarse_spans_ : list of matplotlib Rectangle
        Of the upper axes.
    ax_ : matplotlib Axes
        Of the loss.
    parameter_ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gramian.plot import HyperparameterPathDisplay
    >>> display = HyperparameterPathDisplay(
    ...     names=("variance", "length_scale"),
    ...     theta=np.log([[1.0, 1.0], [2.0, 0.5], [4.0, 0.3], [3.0, 0.4]]),
    ...     loss=[1.2, 0.6, 0.5, 0.4],
    ...     accepted=[True, True, False, True],
    ...     n_samples=[100, 500, 500, 500],
    ... ).plot()
    >>> [line.get_label() for line in display.parameter_lines_]
    ['variance = 3', 'length_scale = 0.4']
    """

    names: Any
    theta: Any
    loss: Any
    accepted: Any
    n_samples: Any

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> HyperparameterPathDisplay:
        """Plot how a fitted estimator learned its parameters.

        Parameters
        ----------
        estimator : estimator of gramian
            Fitted with ``optimize="cv"``: its ``optimization_path_`` is shown.
        ax : matplotlib Axes, default=None
            A new figure by default. The axes share their place with a second one below.

        Returns
        -------
        HyperparameterPathDisplay
        """
        check_is_fitted(estimator)
        path = getattr(estimator, "optimization_path_", None)
        if path is None:
            raise TypeError(
                "estimator must have an optimization_path_: fit a "
                f'KernelLogisticRegression(optimize="cv"); got {type(estimator).__name__}.'
            )
        return cls.from_path(path, ax=ax)

    @classmethod
    def from_path(cls, path: Any, *, ax: Any = None) -> HyperparameterPathDisplay:
        """Plot the path of a search.

        Parameters
        ----------
        path : gramian.selection.OptimizationPath
        ax : matplotlib Axes, default=None
            A new figure by default. The axes share their place with a second one below.

        Returns
        -------
        HyperparameterPathDisplay
        """
        names = [field.name for field in fields(cls)]
        missing = [name for name in names if not hasattr(path, name)]
        if missing:
            raise TypeError(
                f"path must be an OptimizationPath, got {type(path).__name__} without {missing[0]}."
            )
        return cls(*(getattr(path, name) for name in names)).plot(ax)

    def plot(self, ax: Any = None) -> HyperparameterPathDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default. The axes share their place with a second one below.

        Returns
        -------
        HyperparameterPathDisplay
        """
        self.parameter_ax_ = axes_below(self._begin(ax, _SIZE), _HEIGHTS)
        self._plot_coarse()
        self._plot_loss()
        self._plot_parameters()
        integer_ticks(self.parameter_ax_.xaxis)
        self.parameter_ax_.set(xlabel="Evaluations", xlim=(0.5, len(self.loss) + 0.5))
        return self

    def _plot_coarse(self) -> None:
        """Shade the evaluations with fewer examples than the largest number."""
        self.coarse_spans_ = []
        all_samples = np.max(self.n_samples)
        for first, last in _runs(self.n_samples):
            n = self.n_samples[first]
            style = {"color": "0.92", "linewidth": 0, "label": f"{n} of {all_samples} examples"}
            if n < all_samples:
                place = (first + 0.5, last + 0.5)
                self.coarse_spans_.append(self.ax_.axvspan(*place, zorder=0, **style))
                self.parameter_ax_.axvspan(*place, zorder=0, **style)

    def _plot_loss(self) -> None:
        loss, accepted = np.asarray(self.loss), np.asarray(self.accepted, dtype=bool)
        evaluation = np.arange(1, len(loss) + 1)
        self.loss_lines_ = []
        for first, last in _runs(self.n_samples):
            kept = np.flatnonzero(accepted[first:last]) + first
            label = "accepted" if not self.loss_lines_ else None
            style = {"color": "C0", "markersize": 4, "label": label}
            self.loss_lines_ += self.ax_.plot(evaluation[kept], loss[kept], "o-", **style)
        self.rejected_ = None
        if not accepted.all():
            style = {"color": "C3", "markersize": 5, "label": "tried"}
            (self.rejected_,) = self.ax_.plot(evaluation[~accepted], loss[~accepted], "x", **style)
        self.ax_.set(ylabel="Cross-validation loss")
        if np.nanmin(loss) > 0:
            log_ordinate(self.ax_, loss)
        self.ax_.legend(**RIGHT_OF_AXES)

    def _plot_parameters(self) -> None:
        accepted = np.flatnonzero(self.accepted)
        theta = np.asarray(self.theta)[accepted]
        values = np.exp(theta)
        moved = np.ptp(theta, axis=0) if len(theta) else np.zeros(len(self.names))
        named = np.sort(np.argsort(-moved, kind="stable")[:_COLOURS])
        colours = {int(parameter): f"C{c}" for c, parameter in enumerate(named)}
        self.parameter_lines_ = lines = []
        for parameter, name in enumerate(self.names):
            style: dict[str, Any] = {"color": "0.75", "linewidth": 0.8, "zorder": 1.5}
            if parameter in colours:
                end = f" = {values[-1, parameter]:.3g}" if len(values) else ""
                style = {"color": colours[parameter], "marker": "o", "markersize": 3}
                style["label"] = f"{name}{end}"
            lines += self.parameter_ax_.plot(accepted + 1, values[:, parameter], **style)
        entries = [lines[parameter] for parameter in named]
        labels = [line.get_label() for line in entries]
        grey = [line for parameter, line in enumerate(lines) if parameter not in colours]
        if grey:  # one entry for all of them, in the end
            entries.append(grey[0])
            labels.append("1 other" if len(grey) == 1 else f"{len(grey)} others")
        self.parameter_ax_.set(ylabel="Parameter")
        log_ordinate(self.parameter_ax_, values)
        self.parameter_ax_.legend(entries, labels, **RIGHT_OF_AXES)


def _runs(values: Any) -> list[tuple[int, int]]:
    """Ranges of equal neighbours: first, and one after the last."""
    values = np.asarray(values)
    edges = np.flatnonzero(values[1:] != values[:-1]) + 1
    return list(zip([0, *edges.tolist()], [*edges.tolist(), len(values)]))
