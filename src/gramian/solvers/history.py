"""The history of a solve: what each iteration reached, when to stop, and the `Solution` at the end.

A `History` knows no kind of problem. Each solver tells it the objective and the gap of every iteration; it answers with
the status once the solve is over. `DualHistory` is for solvers that raise a lower bound, `Bounds` for those whose
iterations may make either bound worse, so that the best ones count.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian._core.arrays import Array, to_numpy
from gramian._core.caller import level_of_caller
from gramian.solvers.solution import Callback, Progress, Solution

# What happened, and what the user can do about it.
_REASONS = {
    "max_iter": "after max_iter={} iterations with {}. Raise max_iter or the tolerance, or regularise more.",
    "stalled": "after {} iterations, at the limit of rounding errors, with {}. Raise tol, scale the kernel down or "
    "regularise more.",
}


class History:
    """Keeps what each iteration reached, says when a solver is done and assembles its `Solution`.

    Objectives and gaps are numbers, or arrays with one number for each of the problems solved in lockstep.

    Parameters
    ----------
    tol : float
        A problem has converged when its gap is at most ``tol`` × objective.
    max_iter : int
    callback : callable or None
        Called with a `Progress` after each iteration; stops the solver if it returns True.
    patience : int
        Iterations with neither a smaller gap nor a lower merit after which rounding errors are to blame.

    Attributes
    ----------
    n_products : int
        Products with the Gram operator so far. The solver counts them.
    rows : list of dict
        The columns of `Solution.history`, for the start and for each iteration.
    """

    tells_start = False  # whether the start is worth a call of the callback

    # A relative fall of the merit that is progress and not rounding. The gap alone does not tell:
    # far from the optimum it may rise for many steps.
    smallest_fall = 1e-9

    def __init__(self, tol: float, max_iter: int, callback: Callback | None, patience: int):
        if not tol >= 0:
            raise ValueError(f"tol must be >= 0, got {tol!r}.")
        self.tol, self.max_iter, self.callback, self.patience = tol, max_iter, callback, patience
        self.n_products = 0
        self.rows: list[dict[str, float]] = []
        self.best_gap, self.best_merit, self.best_row = float("inf"), 0.0, 0
        self.started = time.perf_counter()

    @property
    def n_iter(self) -> int:
        """Iterations done."""
        return len(self.rows) - 1

    def converged(self, objective: Array, gap: Array) -> Array:
        """Whether the gap is small enough, for each problem."""
        return gap <= self.tol * objective

    def merit(self, objective: float, gap: float) -> float:
        """What each iteration of the solver lowers."""
        return objective

    def least_fall(self, objective: float, gap: float) -> float:
        """By how much the merit must fall for an iteration to count as progress."""
        return self.smallest_fall * abs(self.best_merit)

    def shortfall(self, result: Solution) -> str:
        """Say in a warning which gap is left."""
        return f"a relative duality gap of {result.relative_gap:.2e}, above tol={self.tol:.2e}"

    def verdict(
        self,
        coefficients: Callable[[], Array],
        objective: Array,
        gap: Array,
        *,
        moved: bool = True,
        columns: dict[str, float] | None = None,
    ) -> str | None:
        """Record an iteration; return the status if it was the last one, else None.

        Parameters
        ----------
        coefficients : callable
            Returns the coefficients; called only if a callback wants to see them.
        objective, gap : float or array of shape (q,)
        moved : bool, default=True
            Whether the iteration changed anything.
        columns : dict, default=None
            What the history shall have besides.
        """
        self.rows.append(self._row(objective, gap) | (columns or {}))
        total, total_gap = self.rows[-1]["objective"], self.rows[-1]["gap"]
        merit = self.merit(total, total_gap)
        lower = merit < self.best_merit - self.least_fall(total, total_gap)
        if total_gap < 0.9 * self.best_gap or lower:
            self.best_gap = min(total_gap, self.best_gap)
            self.best_merit, self.best_row = merit, self.n_iter
        stop = False
        if self.callback is not None and (self.n_iter > 0 or self.tells_start):
            stop = bool(self.callback(Progress(self.n_iter, coefficients(), total, total_gap)))
        if self._all_converged(objective, gap):
            return "converged"
        if stop:
            return "stopped"
        if not moved or self.n_iter - self.best_row >= self.patience:
            return "stalled"
        return "max_iter" if self.n_iter >= self.max_iter else None

    def confirmed(self, status: str, objective: Array, gap: Array) -> str:
        """Return the status after objective and gap were computed anew, without the drift of rounding errors."""
        if self._all_converged(objective, gap):
            return "converged"
        return "stalled" if status == "converged" else status

    def remaining(self) -> float:
        """Products to come if the gap goes on falling at the rate so far; infinite if that is not known."""
        if len(self.rows) < 2:
            return float("inf")
        first, gap = self.rows[0]["gap"], self.rows[-1]["gap"]
        goal = self.tol * abs(self.rows[-1]["objective"])
        if not 0 < goal < gap < first:
            return float("inf") if gap > goal else 0.0
        spent = self.n_products - self.rows[0]["products"]
        return math.log(gap / goal) / math.log(first / gap) * spent

    def solution(
        self,
        coefficients: Array,
        objective: Array,
        gap: Array,
        status: str,
        *,
        latent: Array = None,
        columns: dict[str, float] | None = None,
    ) -> Solution:
        """Assemble the result from the values at the end, and warn if the tolerance was not reached."""
        self.rows[-1] |= self._row(objective, gap) | (columns or {})
        history = {name: np.array([row[name] for row in self.rows]) for name in self.rows[-1]}
        result = Solution(
            coefficients,
            status,
            objective=self.rows[-1]["objective"],
            gap=self.rows[-1]["gap"],
            gaps=np.array(to_numpy(gap), ndmin=1),
            n_iter=self.n_iter,
            n_products=self.n_products,
            history=history,
            latent=latent,
        )
        if status in _REASONS:
            why = _REASONS[status].format(self.n_iter, self.shortfall(result))
            warnings.warn(f"Stopped {why}", ConvergenceWarning, stacklevel=level_of_caller())
        return result

    def _row(self, objective: Array, gap: Array) -> dict[str, float]:
        return {
            "objective": float(to_numpy(objective).sum()),
            "gap": float(to_numpy(gap).sum()),
            "products": self.n_products,
            "seconds": time.perf_counter() - self.started,
        }

    def _all_converged(self, objective: Array, gap: Array) -> bool:
        return bool(to_numpy(self.converged(objective, gap)).all())


class DualHistory(History):
    """The history of a solver that raises the dual; the primal objective may do what it likes."""

    # The dual is flat: its distance from the optimum is as the square of the gap.
    smallest_fall = 1e-13
    # A rise by less than this share of that distance is as good as none: with huge kernels the dual rises for ever.
    hopeless = 1e-6

    def merit(self, objective: float, gap: float) -> float:
        return gap - objective

    def crawls(self, iterations: int) -> bool:
        """Whether so many iterations have not halved the gap."""
        before = self.rows[-1 - iterations] if iterations <= self.n_iter else {"gap": math.inf}
        return self.rows[-1]["gap"] > 0.5 * before["gap"]

    def least_fall(self, objective: float, gap: float) -> float:
        # the middle one of the last distances: where rounding rules, gaps go up and down by chance
        rows = self.rows[-self.patience :]
        distances = [
            row["gap"] * (row["gap"] / row["objective"]) for row in rows if row["objective"] > 0
        ]
        flat = self.hopeless * float(np.median(distances)) if distances else 0.0
        return max(flat, super().least_fall(objective, gap))


class Bounds(DualHistory):
    """The best upper and lower bound of a minimum, and whether they are close enough.

    Parameters
    ----------
    allowed : callable
        Returns the gap that is allowed at an objective.
    tolerance : str
        The argument of the solver behind ``allowed``, for the warning.
    max_iter : int
    callback : callable or None
    patience : int
    """

    def __init__(
        self,
        allowed: Callable[[float], float],
        tolerance: str,
        max_iter: int,
        callback: Callback | None,
        patience: int,
    ):
        super().__init__(0.0, max_iter, callback, patience)
        self.allowed, self.tolerance = allowed, tolerance
        self.forget()

    def forget(self) -> None:
        """Drop the bounds so far: those to come have no drift of rounding errors."""
        self.upper, self.lower = math.inf, -math.inf

    @property
    def gap(self) -> float:
        """How far the bounds are apart."""
        return max(self.upper - self.lower, 0.0)

    def converged(self, objective: Any, gap: Any) -> Any:
        return gap <= self.allowed(objective)

    def shortfall(self, result: Solution) -> str:
        allowed = self.allowed(result.objective)
        return f"a duality gap of {result.gap:.2e}, above the {allowed:.2e} that {self.tolerance} allows"

    def record(
        self, coefficients: Callable[[], Array], value: float, dual: float, **columns: float
    ) -> str | None:
        """Record the objective and the lower bound of an iteration; return the status as `verdict` does."""
        self.upper, self.lower = min(self.upper, value), max(self.lower, dual)
        columns = {"value": value, "dual": dual} | columns
        return self.verdict(coefficients, self.upper, self.gap, columns=columns)

    def done(self, coefficients: Any, status: str) -> Solution:
        """Return the solution with the best bounds."""
        return self.solution(coefficients, self.upper, self.gap, status)
