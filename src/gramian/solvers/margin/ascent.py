"""What the solvers of margin problems share: the coefficients, and the loop of sweeps that ends with a certificate.

A solver is an `Ascent` with its own sums of products, which its sweeps keep up to date. Updates drift by rounding
errors; what is certified at the end is computed anew wherever the drift could show. Sweeps are needed in proportion to
caps times kernel values; if those of a small problem crawl, its coefficients are found by an interior-point method;
where that fails again and again, too, rounding leaves nothing to gain and the solver says so.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gramian.operators.inputs.feature_rows import FeatureRows
from gramian.operators.inputs.gram_rows import GramRows
from gramian.solvers.history import DualHistory
from gramian.solvers.interior import CRAWLING, MOST, SHARE, Coefficients, interior_point
from gramian.solvers.margin.problem import MarginProblem
from gramian.solvers.solution import Callback, Solution

_DESCRIPTIONS: dict[type, str] = {
    GramRows: "rows of the Gram matrix, as in MarginProblem(GramRows(kernel, X), ...)",
    FeatureRows: "features, as in MarginProblem(X, ...)",
}
LEAPS = 3  # one after the other that do not help while sweeps crawl: rounding errors are to blame


class Ascent:
    """Coefficients of a margin problem, one row a label because loops run along labels, and what changes them.

    Parameters
    ----------
    problem : MarginProblem
    start : array of shape (n, L) or None
        Coefficients to start from, clipped into their boxes; None is zero.
    tol : float
        Relative duality gap to reach.
    """

    solver: ClassVar[str]  # its name, for messages
    inputs: ClassVar[type]  # GramRows or FeatureRows
    max_sweeps = 1000
    patience = 50  # sweeps without progress after which rounding errors are to blame
    drifts = True  # whether the rounding errors of updates could show in the gap

    def __init__(self, problem: MarginProblem, start: np.ndarray | None, tol: float):
        if not isinstance(problem.inputs, self.inputs):
            raise TypeError(
                f"{self.solver} needs a problem whose inputs are {_DESCRIPTIONS[self.inputs]}; "
                f"got {type(problem.inputs).__name__}."
            )
        n, n_labels = problem.shape
        begin = problem.start(start)
        self.problem = problem
        self.tol = tol
        self.A = np.zeros((n_labels, n))
        identity = np.eye(n_labels)
        R = identity if problem.correlation is None else problem.correlation
        self.R = np.ascontiguousarray(R, dtype=np.float64)
        self.correlated = not np.array_equal(self.R, identity)
        self.operations = 0.0  # multiply-adds so far
        self.n_sweeps = 0
        self.last_gap = np.inf  # before the last sweep
        self.moved = True  # whether the last sweep changed anything
        if begin is not None:
            self.A[:] = begin.T
        self.prepare()
        if begin is not None:
            self.refresh()

    def prepare(self) -> None:
        """Make what sweeps need, with the sums of products for coefficients of zero."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Compute the sums of products anew."""
        raise NotImplementedError

    def values(self) -> tuple[float, np.ndarray, float]:
        """Return the objective, the gap of each label, and the largest violation of optimality."""
        raise NotImplementedError

    def sweep(self, objective: float, gaps: np.ndarray) -> None:
        """Improve the coefficients."""
        raise NotImplementedError

    def rounding_of_matrix(self) -> np.ndarray:
        """Return by how much the objective of each label may be wrong because entries of K are rounded to float32.

        Rounding errors E of at most ε max(K) / 2 in a matrix have a norm of about √n times that, and change
        ½ ⟨A, K A R⟩ by at most half of it times ⟨A, A R⟩. Features are not rounded.
        """
        inputs = self.problem.inputs
        if isinstance(inputs, FeatureRows) or inputs.dtype.itemsize == 8:
            return np.zeros(len(self.A))
        largest = float(inputs.diagonal().max(initial=0.0)) * len(self.A[0]) ** 0.5
        squares = np.sum(self.A * (self.R @ self.A), axis=1)
        return 2.0**-25 * largest * np.maximum(squares, 0.0)

    @property
    def can_leap(self) -> bool:
        """Whether there are few enough coefficients for `leap`, and whether their losses are piecewise linear."""
        return not self.problem.squared and self.A.size <= MOST

    def leap(self, allowed: float) -> bool:
        """Find all coefficients by an interior-point method, if the dual is higher there; return whether it is."""
        before, lower = self.A.copy(), self._dual()
        target, low, high = self.problem.boxes()
        labels, examples = np.nonzero(high - low)
        chosen, signs = (labels, examples), np.where(high > 0, 1.0, -1.0)[labels, examples]
        outputs = np.zeros((signs.size, len(self.A)))
        outputs[np.arange(signs.size), labels] = signs
        K = self.problem.inputs.rows(examples)[:, examples]
        caps, unit = (high - low)[chosen], np.arange(signs.size)
        found = Coefficients(K, outputs, signs * target[chosen], unit, caps)
        self.A[chosen] = signs * interior_point(found, lambda _: self.R, allowed)
        self.refresh()
        self.moved = True
        helped = self._dual() > lower
        if not helped:
            self.A[:] = before
            self.refresh()
        return helped

    def _dual(self) -> float:
        objective, gaps, _ = self.values()
        return float(objective - gaps.sum())

    def due(self) -> bool:
        """Return whether sums are computed anew although nothing is to be certified."""
        return False

    def solve(self, max_iter: int | None, callback: Callback | None) -> Solution:
        """Sweep until the gap is small enough."""
        limit = self.max_sweeps if max_iter is None else max_iter
        history = DualHistory(self.tol, limit, callback, self.patience)
        fresh = True  # whether the sums of products have no drift
        patient = int(CRAWLING * self.patience)  # and longer after each leap
        in_vain = 0  # leaps since one that helped

        def refreshed() -> tuple[float, np.ndarray, float]:
            self.refresh()
            history.n_products += 1
            return self.values()

        while True:
            objective, gaps, violation = self.values()
            reached = gaps.sum() <= self.tol * objective
            if not fresh and (self.due() or (reached and self.drifts)):
                objective, gaps, violation = refreshed()
                fresh = True
            columns = {"violation": violation, "operations": self.operations}
            status = history.verdict(
                self.A.T.copy,
                objective,
                gaps.sum(),
                moved=self.moved and in_vain < LEAPS,
                columns=columns,
            )
            if status is not None:
                break
            if self.can_leap and history.crawls(patient):
                in_vain = 0 if self.leap(SHARE * self.tol * objective) else in_vain + 1
                patient += history.n_iter
            else:
                self.sweep(objective, gaps)
            self.n_sweeps, self.last_gap = self.n_sweeps + 1, gaps.sum()
            fresh = False
        if self.drifts and not fresh:
            objective, gaps, columns["violation"] = refreshed()
            status = history.confirmed(status, objective, gaps.sum())
        rounding = self.rounding_of_matrix()
        if rounding.any():
            gaps = gaps + rounding
            status = history.confirmed(status, objective, gaps.sum())
        A = np.ascontiguousarray(self.A.T)
        return history.solution(A, objective, gaps, status, columns=columns)
