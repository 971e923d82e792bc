"""How outputs are related: their correlations in an order that shows groups, and a map of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian._core.arrays import to_numpy
from gramian._core.validation import check_number
from gramian.plot._axes import Display, axes_beside, heat_map
from gramian.plot.correlation import clustered, correlation_of

_NAMED_OUTPUTS = 40  # above, names are too many to be read
_SIZE = (9.0, 4.2)  # in inches


@dataclass(eq=False, repr=False)
class CouplingDisplay(Display):
    """How outputs are related.

    On the left the correlations, blue for opposed and red for similar outputs, in an order in which similar ones are
    neighbours. On the right each output has its place in the plane of the two largest eigenvectors of the coupling,
    scaled by the roots of their eigenvalues: outputs that share are in the same direction from the cross. Use
    `from_estimator` or `from_matrix`.

    Parameters
    ----------
    coupling : array of shape (n_outputs, n_outputs)
    names : list of str

    Attributes
    ----------
    order_ : int array of shape (n_outputs,)
        Number of the output in each row and column.
    places_ : ndarray of shape (n_outputs, 2)
        Where outputs are on the map.
    image_ : matplotlib AxesImage
    points_ : matplotlib PathCollection
    colorbar_ : matplotlib Colorbar
    ax_, map_ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gramian.plot import CouplingDisplay
    >>> factors = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, -0.8]])
    >>> display = CouplingDisplay.from_matrix(factors @ factors.T + np.eye(4), list("abcd"))
    >>> display.places_.shape
    (4, 2)
    """

    coupling: np.ndarray
    names: list[str]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, names: Any = None, term: int = 0, ax: Any = None
    ) -> CouplingDisplay:
        """Plot the coupling of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted with ``coupling``, so that it has ``coupling_``.
        names : sequence of str, default=None
            Names of the outputs; by default the classes, or numbers.
        term : int, default=0
            Which coupling to draw, where each term of the kernel has its own.
        ax : matplotlib Axes, default=None
            A new figure by default.

        Returns
        -------
        CouplingDisplay
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "coupling_"):
            raise TypeError(
                f"estimator must have coupling_, as estimators fitted with coupling=... do; "
                f"got {type(estimator).__name__}."
            )
        matrices = estimator.coupling_.reshape(-1, *estimator.coupling_.shape[-2:])
        check_number("term", term, low=0, high=len(matrices) - 1, whole=True)
        matrix, classes = matrices[int(term)], getattr(estimator, "classes_", None)
        if names is None and classes is not None and len(classes) == len(matrix):
            names = to_numpy(classes).tolist()
        return cls.from_matrix(matrix, names, ax=ax)

    @classmethod
    def from_matrix(cls, coupling: Any, names: Any = None, *, ax: Any = None) -> CouplingDisplay:
        """Plot a coupling that is given.

        Parameters
        ----------
        coupling : array of shape (n_outputs, n_outputs)
            Symmetric, with a positive diagonal.
        names : sequence of str, default=None
            Names of the outputs; numbers by default.
        ax : matplotlib Axes, default=None
            A new figure by default.

        Returns
        -------
        CouplingDisplay
        """
        correlation_of("coupling", coupling, names)  # refuses what is no coupling
        matrix = np.asarray(coupling, dtype=float)
        shown = [str(name) for name in (range(len(matrix)) if names is None else names)]
        if len(shown) != len(matrix):
            raise ValueError(f"names must be {len(matrix)}, one for each output; got {len(shown)}.")
        return cls(matrix, shown).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> CouplingDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default.

        Returns
        -------
        CouplingDisplay
        """
        ax = self._begin(ax, _SIZE)
        self.map_ax_ = axes_beside(ax)
        self._draw_correlations(ax)
        self._draw_map(self.map_ax_)
        return self

    def _draw_correlations(self, ax: Any) -> None:
        correlation = correlation_of("coupling", self.coupling, None)
        self.order_ = order = clustered(correlation)
        self.image_ = heat_map(ax, correlation[np.ix_(order, order)])
        ax.set(title="Correlation of outputs", xticks=[], yticks=[])
        if len(order) <= _NAMED_OUTPUTS:
            ordered = [self.names[output] for output in order]
            ax.set_xticks(range(len(order)), ordered, rotation=90)
            ax.set_yticks(range(len(order)), ordered)
            ax.tick_params(length=0, labelsize="small")
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, shrink=0.8)

    def _draw_map(self, ax: Any) -> None:
        values, vectors = np.linalg.eigh(self.coupling)
        few = min(2, len(values))
        places = np.zeros((len(values), 2))
        places[:, :few] = vectors[:, ::-1][:, :few] * np.sqrt(np.maximum(values[::-1][:few], 0.0))
        # eigenvectors have no sign of their own: the largest entry is positive
        signs = np.sign(places[np.abs(places).argmax(axis=0), [0, 1]])
        self.places_ = places * np.where(signs == 0, 1.0, signs)
        self.points_ = ax.scatter(*self.places_.T, s=18)
        style = {"color": "0.75", "linewidth": 0.8, "zorder": 0}
        ax.axhline(0.0, **style)
        ax.axvline(0.0, **style)
        if len(places) <= _NAMED_OUTPUTS:
            for name, place in zip(self.names, self.places_, strict=True):
                ax.annotate(
                    name, place, xytext=(3, 3), textcoords="offset points", fontsize="small"
                )
        ax.set(title="Outputs", xlabel="First eigenvector", ylabel="Second eigenvector")
        ax.set_aspect("equal", adjustable="datalim")
        ax.spines[["top", "right"]].set_visible(False)
