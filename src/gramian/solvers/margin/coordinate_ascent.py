"""Linear margin problems by dual coordinate ascent on features.

Objective and optimality
    Those of `MarginProblem` with K = X Xᵀ. V = Xᵀ A (one row a label) and Z = V R, the primal weights, give
    u_il = ⟨x_i, z_l⟩.

Method
    A step moves one coefficient to its best value (eq. 39) and costs the non-zeros of its example twice. Sweeps:

    - *Along labels.* A visit takes z of its label and passes in random order over the label's active coefficients only,
      a few times; V of other labels learns of it once a visit (eqs. 41-43). Labels with little correlation are visited
      side by side with one line search, as in `blocked_ascent`; unrelated ones need none, and are visited until their
      gap seems small enough. A label that creeps ends its visit with a step of all its free coefficients, by
      conjugate gradients that end as in GPCG (Moré & Toraldo, 1991).
    - *Across labels.* All labels of an example in turn and again, example by example, where sweeps along labels slow
      down. With all labels of an example at their optimum the condition of R counts little, if few are at bounds.

    After each sweep all examples are looked at, sixteen labels at a time: that gives the duality gap, and which
    coefficients are active. Of unrelated labels only those are looked at that were visited.

    Labels whose gap is below half the mean wait for a later sweep.

Cost
    O(non-zeros) for each active coefficient, O(d L) for each visit to a correlated label, O(non-zeros) for each look at
    a label. Rows in random order come from memory: that is half the time of a step, although they are asked for ahead.

Measured
    Products with an example in units of n, for a label of 5000 documents of RCV1 (C = 2, hinge, gap 1e-5): 111 with
    passes in random order only, 66 with steps of free coefficients where a label creeps, above 200 with passes in one
    order that are extrapolated (Anderson), 118 for LIBLINEAR. Sweeps with R = second moments of 40 topics (condition
    307) on 3000 documents to 1e-4: 224 with two turns around the labels of an example, 93 with ten, 36 with up to 30,
    35 with up to 100; 78, 32, 12 and 14 for squared losses.

Hariharan, Vishwanathan & Varma (2012) §6. Differs: what leaves the active set of a label is decided by exact gradients
of all its examples once a sweep, so that bounds coupled by |R| (eqs. 44-45) are not needed; it ends by a duality gap.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gramian._core.threads import in_parts, side_by_side, single_threaded_blas
from gramian.operators.inputs.feature_rows import FeatureRows
from gramian.solvers.margin import coordinate_loops as loops
from gramian.solvers.margin.ascent import Ascent
from gramian.solvers.margin.batches import common_step, label_batches
from gramian.solvers.margin.problem import MarginProblem
from gramian.solvers.solution import Callback, Solution

VISITED_GAP = (
    0.5  # of the share of a label in the gap that is allowed: a visit ends where it has come so far
)
VISITED_SHARE = (
    0.1  # or where so little of the gap of the label is left, if other labels will change it, too
)
CREEPING_LABEL = (
    0.3  # of the gap before the last sweep: a label with more takes a step of all free coefficients
)
BUSY_LABEL = 0.5  # of the mean gap of labels: those with less wait for a later sweep
FIRST_SWEEPS_ACROSS = 2  # all coefficients are active at first, and labels side by side are cheap
SLOW_SWEEP = 0.9  # a sweep along labels that leaves more than this share of the gap is followed by one across
DRIFT = 1e-9  # tolerances below which the drift of V by rounding would show in the gap
ACTIVE_SLACK = 0.02  # of the largest violation of a label: how far beyond its bound an active coefficient may be


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
    ascent = _CoordinateAscent(problem, start, tol)
    ascent.random = check_random_state(random_state)
    return ascent.solve(max_iter, callback)


class _CoordinateAscent(Ascent):
    """V = Aᵀ X, one row a label, the active coefficients, and the two kinds of sweeps."""

    solver = "coordinate_ascent"
    inputs = FeatureRows
    patience = 200
    random: np.random.RandomState
    along = False  # whether the last sweep was one along labels

    def prepare(self) -> None:
        problem, features = self.problem, self.problem.inputs
        n_labels = len(self.A)
        self.V = np.zeros((n_labels, features.n_features))
        self.linear = loops.LinearMargins(
            norms=features.diagonal(),
            R=self.R,
            signs=np.ascontiguousarray(problem.signs.T),
            margins=_for_labels(problem.margins),
            caps=_for_labels(problem.bounds()),
            ridge=problem.ridge() if problem.squared else None,
            A=self.A,
            V=self.V,
            active=np.ones(self.A.shape, dtype=np.bool_),
        )
        self.X = features.compiled
        self.batches = label_batches(self.R)
        self.slack = np.zeros(n_labels)
        self.sums = np.zeros((n_labels, 3))  # dual value, gap and violation of each label
        self.changed = np.ones(n_labels, dtype=bool)  # since these were computed
        self.gaps = np.full(n_labels, np.inf)  # before the last sweep
        self.drifts = self.tol < DRIFT

    def refresh(self) -> None:
        self.V[:] = self.problem.inputs.sums(self.A.T).T
        self.changed[:] = True

    def _count(self, n_examples: float) -> None:
        """Count the multiply-adds of products with so many examples."""
        self.operations += n_examples * self.problem.inputs.n_entries

    def weights(self, labels: np.ndarray) -> np.ndarray:
        """Rows (R V)[labels]."""
        if not self.correlated:
            return np.take(self.V, labels, axis=0)
        self.operations += labels.size * float(self.V.size)
        return self.R[labels] @ self.V

    def values(self) -> tuple[float, np.ndarray, float]:
        """Return what `Ascent.values` does, and find anew which coefficients are active."""
        changed = np.flatnonzero(self.changed)
        with single_threaded_blas():
            for labels in _panels(changed):
                Z = np.ascontiguousarray(self.weights(labels).T)
                of_panel = (self.X, self.linear, Z, self.slack, labels)
                parts = np.array(in_parts(partial(loops.scan, *of_panel), self.A.shape[1]))
                self.sums[labels, :2] = parts[:, :, :2].sum(axis=0)
                self.sums[labels, 2] = parts[:, :, 2].max(axis=0)
        dual, gaps, violation = self.sums.T
        self.slack = ACTIVE_SLACK * violation
        self.changed[:] = False
        self._count(float(changed.size * self.A.shape[1]))
        return float(dual.sum() + gaps.sum()), gaps.copy(), float(violation.max())

    def sweep(self, objective: float, gaps: np.ndarray) -> None:
        gap = gaps.sum()
        crawls = self.correlated and self.along and gap >= SLOW_SWEEP * self.last_gap
        self.along = self.n_sweeps >= FIRST_SWEEPS_ACROSS and not crawls
        self.creeps = gaps > CREEPING_LABEL * self.gaps
        self.gaps = gaps
        self.changed[:] = True
        if self.along:
            busy = gaps > BUSY_LABEL * gaps.mean()
            if not self.correlated:
                self.changed[:] = busy
            self.sweep_along(busy, VISITED_GAP * self.tol * objective / len(gaps))
        else:
            self.sweep_across()

    def sweep_along(self, busy: np.ndarray, goal: float) -> None:
        """Visit every label that is busy, until its gap is about ``goal``."""
        seeds = self.random.randint(1, 2**31, size=len(self.A)).astype(np.uint64)
        for every in self.batches:
            batch = every[busy[every]]
            if not self.correlated:  # a label is then a problem of its own
                with single_threaded_blas():
                    alone = partial(self._alone, batch, seeds, goal)
                    self._count(sum(side_by_side(alone, batch.size)))
                continue
            before = self.A[batch]
            with single_threaded_blas():
                start = self.weights(batch)
                change = start.copy()  # of R V while labels are visited, of V after that
                of_batch = (batch, seeds, goal, start, change)
                self._count(sum(side_by_side(partial(self._visit_in_batch, *of_batch), batch.size)))
                step = self._common_step(batch, start, before, change)
                side_by_side(partial(self._follow, batch, step, change), batch.size)
            if step < 1:
                self.A[batch] = before + step * (self.A[batch] - before)

    def _alone(self, batch: np.ndarray, seeds: np.ndarray, goal: float, b: int) -> int:
        """Visit a label of a batch whose row of V is that of R V."""
        return self._visit(batch[b], self.V[batch[b]], seeds[batch[b]], goal, 0.0)

    def _visit_in_batch(
        self,
        batch: np.ndarray,
        seeds: np.ndarray,
        goal: float,
        start: np.ndarray,
        change: np.ndarray,
        b: int,
    ) -> int:
        """Visit a label of a batch from its row of R V; turn the row of ``change`` into that of V."""
        steps = self._visit(batch[b], change[b], seeds[batch[b]], goal, VISITED_SHARE)
        change[b] -= start[b]
        change[b] /= self.R[batch[b], batch[b]]
        return steps

    def _follow(self, batch: np.ndarray, step: float, change: np.ndarray, b: int) -> None:
        """Let V follow the change of a label of a batch."""
        self.V[batch[b]] += step * change[b]

    def _visit(self, label: int, z: np.ndarray, seed: Any, goal: float, share: float) -> int:
        """Visit a label as if all others stood still, and change its row z of R V; return the number of products."""
        points = np.flatnonzero(self.linear.active[label])
        steps = loops.visit(self.X, self.linear, label, z, points.copy(), seed, goal, share)
        if self.creeps[label]:
            steps += loops.free_step(self.X, self.linear, label, z, points)
        return steps

    def _common_step(
        self, batch: np.ndarray, start: np.ndarray, before: np.ndarray, change: np.ndarray
    ) -> float:
        """How far the changes of V of a batch are taken; labels that are not coupled take their whole step."""
        R = self.R[np.ix_(batch, batch)]
        if not np.count_nonzero(R - np.diag(np.diag(R))):
            return 1.0
        linear, step = self.linear, self.A[batch] - before
        margins = np.broadcast_to(linear.margins[batch], step.shape)
        slope = np.vdot(linear.signs[batch] * margins, step) - np.vdot(start, change)
        curvature = 0.0
        if linear.ridge is not None:
            slope -= np.vdot(linear.ridge[batch] * before, step)
            curvature = float(np.vdot(linear.ridge[batch], step**2))
        return common_step(self.R, batch, slope, change, change, curvature)

    def sweep_across(self) -> None:
        """Visit every example that has an active coefficient."""
        n_labels = len(self.A)
        points = self.random.permutation(np.flatnonzero(self.linear.active.any(axis=0)))
        self._count(2.0 * points.size * n_labels)
        if not self.correlated:
            side_by_side(partial(self._visit_panel, points), -(-n_labels // loops.PANEL))
            return
        Z = np.ascontiguousarray(self.V.T) @ self.R
        taken = 0
        for chunk in np.array_split(points, 1 + points.size // 5000):  # interruptions get through
            taken += loops.visit_points(self.X, self.linear, chunk, Z)
        self._count(taken)
        self.operations += (self.V.size + float(taken)) * n_labels

    def _visit_panel(self, points: np.ndarray, panel: int) -> None:
        """Visit examples for a panel of labels without correlation."""
        first = panel * loops.PANEL
        rows = self.V[first : first + loops.PANEL]
        columns = np.array(rows.T, order="C")
        loops.visit_points_apart(self.X, self.linear, points, first, columns)
        rows[:] = columns.T


def _panels(labels: np.ndarray) -> list[np.ndarray]:
    """Labels in panels, a few that are left one by one."""
    rest = labels.size % loops.PANEL
    whole = labels.size - (rest if rest <= loops.FEW else 0)
    panels = [labels[first : first + loops.PANEL] for first in range(0, whole, loops.PANEL)]
    return [*panels, *labels[whole:, None]]


def _for_labels(values: np.ndarray) -> np.ndarray:
    """Values of examples and labels with a row for each label, of length one if all examples have the same."""
    return np.array(values[:1].T if values.strides[0] == 0 else values.T, order="C")
