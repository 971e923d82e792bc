"""Linear margin problems by dual coordinate ascent on features.

Objective and optimality
    Those of `margin_problem` with K = X Xᵀ. V = Xᵀ A (one row a label) and Z = V R, the primal weights, give
    u_il = ⟨x_i, z_l⟩.

Method
    A step moves one coefficient to its best value (eq. 39) and costs the non-zeros of its example twice. Sweeps:

    - *Along labels.* A visit takes z of its label and passes in random order over the label's active coefficients only,
      a few times; V of other labels learns of it once a visit (eqs. 41-43). Labels with little correlation are visited
      side by side with one line search, as in `blocked_ascent`; unrelated ones need none. Near the optimum a visit
      keeps its order and ends with an Anderson extrapolation (Bertrand & Massias, 2021).
    - *Across labels.* All labels of an example in turn, example by example, where sweeps along labels slow down.

    Before each sweep all examples are looked at, sixteen labels at a time: that gives the duality gap, and which
    coefficients are active.

    Labels whose gap is below half the mean wait for a later sweep.

Cost
    O(non-zeros) for each active coefficient, O(d L) for each visit to a correlated label, O(non-zeros L) for each look.

Hariharan, Vishwanathan & Varma (2012) §6. Differs: what leaves the active set of a label is decided by exact gradients
of all its examples once a sweep, so that bounds coupled by |R| (eqs. 44-45) are not needed; it ends by a duality gap.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from gramian._core.threads import exclusive, single_threaded_blas
from gramian.solvers.margin import coordinate_loops as loops
from gramian.solvers.margin.problem import MarginProblem, MarginRecorder, label_batches
from gramian.solvers.solution import Callback, Solution

__all__ = ["coordinate_ascent"]

NEAR = 0.01  # relative gap below which visits extrapolate; further away random orders do better
BUSY = 0.5  # of the mean gap of labels: those with less wait for a later sweep
EPOCHS = 10  # passes over the active coefficients in one visit, at most
FALL = 0.1  # of the largest violation, which ends a visit
FIRST = 2  # sweeps across labels to begin with: all coefficients are active, and labels side by side are cheap
SLOW = 0.9  # a sweep along labels that leaves more of the gap than this is followed by one across
DRIFT = 1e-9  # tolerances below which the drift of V by rounding would show in the gap
SLACK = 0.02  # of the largest violation of a label: how far beyond its bound an active coefficient may be


def coordinate_ascent(
    problem: MarginProblem,
    *,
    start: np.ndarray | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    callback: Callback | None = None,
    random_state: Any = 0,
) -> Solution:
    """Solve a linear margin problem by dual coordinate ascent.

    Parameters
    ----------
    problem : MarginProblem
        Its inputs are features, dense or CSR.
    start : array of shape (n, L), default=None
        Coefficients to start from, clipped into their boxes; zeros by default.
    tol : float, default=1e-4
        Relative duality gap.
    max_iter : int, default=None
        Sweeps; None is 1000.
    callback : callable, default=None
        Called after each sweep; returns True to stop.
    random_state : int or RandomState, default=0
        Order of the steps.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.solvers import MarginProblem, coordinate_ascent
    >>> X = np.array([[1.0, 2.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> signs = np.array([[1, -1], [-1, -1], [-1, 1]], dtype=np.int8)
    >>> coordinate_ascent(MarginProblem(X, signs), tol=1e-9).status
    'converged'
    """
    limit = 1000 if max_iter is None else max_iter
    recorder = MarginRecorder(problem, tol, limit, callback, patience=200)
    state = _State(problem, problem.start(start), check_random_state(random_state))
    along, before = True, np.inf
    while True:
        objective, gaps, violation = state.values()
        if gaps.sum() <= tol * objective and tol < DRIFT and not state.fresh:
            state.refresh()
            recorder.n_products += 1
            objective, gaps, violation = state.values()
        recorder.operations += state.work()
        status = recorder.record(state.A.T, objective, gaps, violation)
        if status is not None:
            verified = state.fresh or tol >= DRIFT
            return recorder.done(np.ascontiguousarray(state.A.T), status, verified=verified)
        gap = gaps.sum()
        if recorder.n_iter < FIRST:
            along = False
        else:
            along = not state.correlated or not along or gap < SLOW * before
        before = gap
        if along:
            busy = gaps > BUSY * gaps.mean()
            state.sweep_along(busy, extrapolate=gap < NEAR * objective)
        else:
            state.sweep_across()


class _State:
    """Coefficients A (L, n), V = Xᵀ A (L, d) and the active coefficients."""

    def __init__(
        self, problem: MarginProblem, start: np.ndarray | None, random: np.random.RandomState
    ):
        X = problem.inputs
        if hasattr(X, "rows"):
            raise TypeError(
                "coordinate_ascent needs features as problem.inputs, got GramRows; use blocked_ascent for them."
            )
        n, n_labels = problem.shape
        self.X: Any
        if sp.issparse(X):
            unsigned = X.indices.astype(f"u{X.indices.itemsize}", copy=False)
            self.X = (X.indptr.astype(np.uint64), unsigned, X.data)
            self.norms = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
            self.nonzeros = X.nnz / max(1, n)
        else:
            self.X = np.ascontiguousarray(X)
            self.norms = np.einsum("ij,ij->i", X, X, dtype=np.float64)
            self.nonzeros = float(X.shape[1])
        self.boxes = (np.ascontiguousarray(problem.signs.T), problem.margins.T, problem.caps.T)
        self.correlated = problem.correlation is not None
        self.R = np.eye(n_labels) if problem.correlation is None else problem.correlation
        self.batches = label_batches(self.R)
        self.random = random
        self.A = np.zeros((n_labels, n))
        self.V = np.zeros((n_labels, X.shape[1]))
        self.features = X
        self.fresh = True
        if start is not None:
            self.A[:] = start.T
            self.refresh()
        self.active = np.ones((n_labels, n), dtype=np.bool_)
        self.slack = np.zeros(n_labels)
        self.rows_touched = 0.0
        self.mixed = 0.0

    def refresh(self) -> None:
        """V = Xᵀ A anew."""
        self.V[:] = np.asarray(self.features.T @ self.A.T).T
        self.fresh = True

    def work(self) -> float:
        """Multiply-adds since the last call."""
        work = self.rows_touched * self.nonzeros + self.mixed
        self.rows_touched = self.mixed = 0.0
        return work

    def weights(self, labels: np.ndarray) -> np.ndarray:
        """Rows (R V)[labels]."""
        if not self.correlated:
            return np.take(self.V, labels, axis=0)
        self.mixed += labels.size * float(self.V.size)
        return self.R[labels] @ self.V

    def values(self) -> tuple[float, np.ndarray, float]:
        """Objective, gap of each label, largest violation; and anew which coefficients are active."""
        n_labels, n = self.A.shape
        sums = []
        with exclusive(), single_threaded_blas():
            for first in range(0, n_labels, loops.PANEL):
                labels = np.arange(first, min(first + loops.PANEL, n_labels))
                Z = np.ascontiguousarray(self.weights(labels).T)
                threads = numba.get_num_threads()
                parts = loops.scan(
                    self.X, Z, *self.boxes, self.A, self.active, self.slack, first, threads
                )
                sums.append(
                    np.concatenate(
                        [parts[:, :, :2].sum(axis=0), parts[:, :, 2:].max(axis=0)], axis=1
                    )
                )
        dual, gaps, violation = np.concatenate(sums).T
        self.slack = SLACK * violation
        self.rows_touched += float(n) * n_labels
        return float(dual.sum() + gaps.sum()), gaps.copy(), float(violation.max())

    def sweep_along(self, busy: np.ndarray, *, extrapolate: bool) -> None:
        """Visit every label that is busy."""
        self.fresh = False
        seeds = self.random.randint(1, 2**31, size=len(self.A)).astype(np.uint64)
        for every in self.batches:
            batch = every[busy[every]]
            R = self.R[np.ix_(batch, batch)]
            line_search = bool(np.count_nonzero(R - np.diag(np.diag(R))))
            with exclusive(), single_threaded_blas():
                counts = loops.visit_labels(
                    self.X, self.norms, self.R, batch, *self.boxes, self.active, self.A, self.V,
                    self.weights(batch), EPOCHS, FALL, seeds, line_search, extrapolate,
                )  # fmt: skip
            self.rows_touched += counts.sum()

    def sweep_across(self) -> None:
        """Visit every example that has an active coefficient."""
        self.fresh = False
        points = self.random.permutation(np.flatnonzero(self.active.any(axis=0)))
        if not self.correlated:
            variances = np.diag(self.R).copy()
            with exclusive():
                loops.visit_points_apart(
                    self.X, self.norms, variances, points, *self.boxes, self.A, self.V
                )
            self.rows_touched += 2.0 * points.size * len(self.A)
            return
        Z = np.ascontiguousarray(self.V.T) @ self.R
        n_labels = len(self.A)
        taken = 0
        for chunk in np.array_split(points, 1 + points.size // 5000):  # interruptions get through
            taken += loops.visit_points(
                self.X, self.norms, self.R, chunk, *self.boxes, self.A, self.V, Z
            )
        self.rows_touched += 2.0 * points.size * n_labels + taken
        self.mixed += (self.V.size + float(taken)) * n_labels
