"""What a solver returns: coefficients, a certificate, the reason it stopped, and how it got there."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian._arrays import Array, to_numpy
from gramian.solvers.problem import Problem


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of a solver.

    Attributes
    ----------
    coefficients : array of shape (n, C) or (n, C, q)
        The dual coefficients A.
    status : {"converged", "max_iter", "stalled", "stopped"}
        "stalled": rounding errors allow no further progress. "stopped": a callback said so.
    objective : float
        P(A), summed over independent columns.
    gap : float
        The certificate: P(A) is at most this far above its minimum.
    gaps : ndarray of shape (q,)
        The gap of each independent column.
    n_iter : int
    n_products : int
        Products with the Gram operator, each for all columns.
    history : dict of ndarray
        "objective", "gap", "products" and "seconds" before each iteration and at the end. The lower
        bound is objective − gap.
    """

    coefficients: Array
    status: str
    objective: float
    gap: float
    gaps: np.ndarray
    n_iter: int
    n_products: int
    history: dict[str, np.ndarray]

    @property
    def relative_gap(self) -> float:
        """Gap divided by the objective."""
        return self.gap / self.objective if self.objective > 0 else self.gap


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration; it returns True to stop."""

    iteration: int
    coefficients: Array
    objective: float
    gap: float


Callback = Callable[[Progress], Any]


class Recorder:
    """Counts products, keeps the history and decides when a solver is done."""

    def __init__(self, problem: Problem, tol: float, callback: Callback | None):
        if not tol >= 0:
            raise ValueError(f"tol must be >= 0, got {tol!r}.")
        self.problem = problem
        self.tol = tol
        self.callback = callback
        self.n_products = 0
        self.rows: list[tuple[float, float, int, float]] = []
        self.started = time.perf_counter()

    def product(self, B: Array) -> Array:
        """𝒦B, counted."""
        self.n_products += 1
        return self.problem.operator @ B

    def converged(self, objective: Array, gap: Array) -> Array:
        """Boolean (q,): the gap is at most tol × objective."""
        return gap <= self.tol * objective

    def record(self, objective: Array, gap: Array) -> None:
        """Append a row to the history."""
        seconds = time.perf_counter() - self.started
        total = (float(to_numpy(objective).sum()), float(to_numpy(gap).sum()))
        self.rows.append((*total, self.n_products, seconds))

    def should_stop(self, A: Array) -> bool:
        """Tell the callback about the iteration just recorded."""
        if self.callback is None:
            return False
        objective, gap, _, _ = self.rows[-1]
        return bool(self.callback(Progress(len(self.rows) - 1, squeezed(A), objective, gap)))

    def solution(self, A: Array, gap: Array, status: str, n_iter: int, advice: str) -> Solution:
        """Assemble the result, and warn if the tolerance was not reached."""
        objective, total_gap, _, _ = self.rows[-1]
        names = ("objective", "gap", "products", "seconds")
        history = {
            name: np.array(values)
            for name, values in zip(names, zip(*self.rows, strict=True), strict=True)
        }
        result = Solution(
            squeezed(A),
            status,
            objective,
            total_gap,
            to_numpy(gap).copy(),
            n_iter,
            self.n_products,
            history,
        )
        if status in ("max_iter", "stalled"):
            reached = f"relative duality gap {result.relative_gap:.2e} against tol={self.tol:.2e}"
            why = (
                f"after max_iter={n_iter} iterations"
                if status == "max_iter"
                else "at the limit of rounding"
            )
            warnings.warn(
                f"Stopped {why} with {reached}. {advice}", ConvergenceWarning, stacklevel=4
            )
        return result


def squeezed(A: Array) -> Array:
    """Drop a trailing axis of length one."""
    return A[:, :, 0] if A.shape[2] == 1 else A
