"""How a solver got to its optimum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from gramian._core.validation import check_choice
from gramian.plot._axes import Display, curve_styles, integer_ticks, solution_of
from gramian.solvers import Solution

_X_LABELS = {
    "products": "Products with the Gram matrix",
    "seconds": "Seconds",
    "iterations": "Iterations",
    "operations": "Multiplications and additions",
}
_Y_LABELS = {
    "relative_gap": "Duality gap / objective",
    "gap": "Duality gap",
    "objective": "Objective",
    "dual_distance": "(best dual − dual) / best dual",
    "bounds": "Upper and lower bound of the minimum",
}


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """Duality gap, objective, dual or both bounds of the minimum against the work done.

    The gap is the distance between the objective and a proven lower bound: the optimum is no
    further away than the curve is high. That bound is the dual objective; "dual_distance" shows how far
    below the best one of all curves it is, relative to that one, as solvers that climb the dual are
    compared. "bounds" shows objective and lower bound, and between them where the minimum must be; its
    scale is linear, the others are logarithmic. Use `from_estimator` or `from_solutions`.

    Parameters
    ----------
    histories : dict of str: dict of ndarray
        For each curve "objective", "gap", "products" and "seconds", as in `Solution.history`; for
        "operations" also that, which the solvers of margin problems count.
    tol : float, default=None
        The tolerance of the relative gap.

    Attributes
    ----------
    line_ : matplotlib Line2D, or a list of them if there are several curves
        With "bounds", the upper ones.
    lower_line_, band_ : matplotlib Line2D and PolyCollection, or lists of them if there are several curves
        Lower bounds, and what is between both; None unless y is "bounds".
    tol_line_ : matplotlib Line2D or None
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from gramian import KernelLogisticRegression
    >>> from gramian.datasets import make_spirals
    >>> from gramian.plot import ConvergenceDisplay
    >>> X, y = make_spirals(n_samples=60)
    >>> model = KernelLogisticRegression(regularization=0.01).fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(model, x="iterations")
    >>> display.ax_.get_yscale()
    'log'
    """

    histories: Mapping[str, Mapping[str, np.ndarray]]
    _: KW_ONLY
    tol: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        ax: Any = None,
        x: str = "products",
        y: str = "relative_gap",
        name: str | None = None,
        curve_kwargs: Any = None,
    ) -> ConvergenceDisplay:
        """Plot how a fitted estimator converged.

        Parameters
        ----------
        estimator : estimator of gramian
            Fitted: its ``solution_`` is shown.
        ax : matplotlib Axes, default=None
            A new figure by default.
        x : {"products", "seconds", "iterations", "operations"}, default="products"
        y : {"relative_gap", "gap", "objective", "dual_distance", "bounds"}, default="relative_gap"
        name : str, default=None
            For the legend; the name of the class by default.
        curve_kwargs : dict, default=None
            Passed to matplotlib's ``plot``.

        Returns
        -------
        ConvergenceDisplay
        """
        histories = {name or type(estimator).__name__: solution_of(estimator, "estimator").history}
        display = cls(histories, tol=estimator.get_params(deep=False).get("tol"))
        return display.plot(ax, x=x, y=y, curve_kwargs=curve_kwargs)

    @classmethod
    def from_solutions(
        cls,
        solutions: Mapping[str, Solution],
        *,
        tol: float | None = None,
        ax: Any = None,
        x: str = "products",
        y: str = "relative_gap",
        curve_kwargs: Any = None,
    ) -> ConvergenceDisplay:
        """Compare solvers.

        Parameters
        ----------
        solutions : dict of str: Solution
            The name of each curve, and what its solver returned.
        tol : float, default=None
            The tolerance to draw, if any.
        ax : matplotlib Axes, default=None
            A new figure by default.
        x : {"products", "seconds", "iterations", "operations"}, default="products"
        y : {"relative_gap", "gap", "objective", "dual_distance", "bounds"}, default="relative_gap"
        curve_kwargs : dict or list of dict, default=None
            Passed to matplotlib's ``plot``; a list has one for each curve.

        Returns
        -------
        ConvergenceDisplay
        """
        for name, solution in solutions.items():
            if not isinstance(solution, Solution):
                kind = type(solution).__name__
                raise TypeError(f"solutions must hold Solution objects, got {name!r}: {kind}.")
        histories = {name: solution.history for name, solution in solutions.items()}
        return cls(histories, tol=tol).plot(ax, x=x, y=y, curve_kwargs=curve_kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        x: str = "products",
        y: str = "relative_gap",
        curve_kwargs: Any = None,
    ) -> ConvergenceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default.
        x : {"products", "seconds", "iterations", "operations"}, default="products"
        y : {"relative_gap", "gap", "objective", "dual_distance", "bounds"}, default="relative_gap"
            The tolerance is drawn with "relative_gap" only.
        curve_kwargs : dict or list of dict, default=None
            Passed to matplotlib's ``plot``; a list has one for each curve.

        Returns
        -------
        ConvergenceDisplay
        """
        check_choice("x", x, tuple(_X_LABELS))
        check_choice("y", y, tuple(_Y_LABELS))
        styles = curve_styles(curve_kwargs, len(self.histories))
        ax = self._begin(ax)
        lines, lower_lines, bands = [], [], []
        best = max((_dual(history).max() for history in self.histories.values()), default=0.0)
        for (name, history), style in zip(self.histories.items(), styles, strict=True):
            style = {"marker": "o", "markersize": 4, "label": name} | style
            abscissa, ordinate = _abscissa(name, history, x), _ordinate(history, y, best)
            lines += ax.plot(abscissa, ordinate, **style)
            if y == "bounds":
                lower = _dual(history)
                lower = np.where(np.isfinite(lower), lower, np.nan)  # nothing is known yet
                style |= {"color": lines[-1].get_color(), "label": None}
                lower_lines += ax.plot(abscissa, lower, **style)
                fill = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
                bands.append(ax.fill_between(abscissa, lower, ordinate, **fill))
        self.line_, self.lower_line_, self.band_ = map(_alone, (lines, lower_lines, bands))
        self.tol_line_ = None
        if self.tol and y == "relative_gap":
            style = {"color": "0.4", "linestyle": "--", "linewidth": 1}
            self.tol_line_ = ax.axhline(self.tol, label=f"tol = {self.tol:g}", **style)
        ax.set(xlabel=_X_LABELS[x], ylabel=_Y_LABELS[y])
        if y != "bounds":
            ax.set_yscale("log")
        elif best > 0 > ax.get_ylim()[0]:
            # objectives are not negative: lower bounds below 0 say nothing
            ax.set_ylim(bottom=0)
        if x in ("products", "iterations"):
            integer_ticks(ax.xaxis)
        ax.legend()
        return self


def _alone(artists: list[Any]) -> Any:
    """The artist if there is one, None if there is none, the list of several."""
    return artists if len(artists) > 1 else next(iter(artists), None)


def _abscissa(name: str, history: Mapping[str, np.ndarray], x: str) -> np.ndarray:
    if x == "iterations":
        return np.arange(len(history["gap"]))
    if x not in history:
        raise ValueError(
            f"x={x!r} is not in the history of {name!r}: its solver does not count them. "
            'Use "iterations" or "seconds".'
        )
    return history[x]


def _dual(history: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.asarray(history["objective"]) - history["gap"]


def _ordinate(history: Mapping[str, np.ndarray], y: str, best_dual: float) -> np.ndarray:
    if y == "bounds":
        return np.asarray(history["objective"])
    if y == "relative_gap":
        values = history["gap"] / history["objective"]
    elif y == "dual_distance":
        values = (best_dual - _dual(history)) / (abs(best_dual) or 1.0)
    else:
        values = history[y]
    return np.where(values > 0, values, np.nan)  # a log scale has no place for zero
