"""Margin problems by working sets that fit the cache: labels side by side, or the worst label first.

Objective and optimality
    Those of `MarginProblem`; in signed coefficients a box-constrained quadratic programme with Hessian R ⊗ K.

Method
    V = K A is kept, one row a label; R enters only where latent values are needed. A visit takes u = V R of its label,
    then works on the 64 examples of strongest pull (half of each sign): K among them fits the cache, greedy coordinate
    ascent there, one pass over their rows of K for all other examples, and again. Other labels learn of it once a
    visit: O(n² L) in all (eqs. 34-36). Two kinds of sweeps:

    - *Side by side.* Every label once; those with little correlation at the same time, and one exact line search scales
      their changes, so that the dual never falls whatever R is.
    - *Worst label first.* One label at a time, always the one with the largest gap; all others are told after each
      visit. For strong correlations, where each visit changes what all labels need.

    Squared hinge losses put a ridge on the diagonal of the working sets.

Cost
    n multiply-adds for each coefficient a visit changes, n L for each visit to a correlated label. Rows of K are read
    from memory eight at a time, which is the floor.

Measured
    5000 examples, 100 labels, float32 RBF kernel: greedy working sets change six to eight coefficients for each support
    vector (LIBSVM five); cyclic blocks of 256 examples changed 35 times as many and had a gap of 4 % left. With R =
    second moments of 102 topics (condition 820) on 200 documents, 400 cyclic sweeps leave a gap of 30 to 90 % at
    C = 64, worst label first reaches 0.1 % in 200.

Hariharan, Vishwanathan & Varma (2012) §5.1 visit the label with the largest gradient and take two coefficients a step;
see `smo`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from gramian._core.threads import side_by_side, single_threaded_blas
from gramian.operators.inputs.gram_rows import GramRows
from gramian.solvers.margin import blocked_loops as loops
from gramian.solvers.margin.ascent import Ascent
from gramian.solvers.margin.batches import common_step, label_batches
from gramian.solvers.margin.problem import MarginProblem, certificate
from gramian.solvers.solution import Callback, Solution

LARGEST_ROOM = (
    1e30  # between a coefficient and a bound: what is not bounded at all must fit float32
)
ROWS_BYTES = (
    24 * 2**20
)  # of a working set, if K is not stored: examples are fewer if they take more
BATCHES_A_LABEL = 0.5  # with more of them, labels are not visited side by side
# A sweep side by side that leaves more than this share of the gap is the last of its kind.
SLOW_SWEEP = 0.5
FEWEST_ROUNDS = 5  # of a visit, however many before were in vain
SWEEPS_TO_START = (
    10  # after which coefficients worse than none at all show that rounding errors rule
)
SWEEPS_BEFORE_REFRESH = 30  # after which V is computed anew
ACCURATE_BELOW = 1e-5  # tolerances for which products with a float32 matrix are summed in float64


def blocked_ascent(
    problem: MarginProblem,
    *,
    start: np.ndarray | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Solve a margin problem by greedy working sets, one label at a time or several side by side.

    Parameters
    ----------
    problem : MarginProblem
        Its inputs are `GramRows`.
    start : array of shape (n, L), default=None
        Coefficients to start from, clipped into their boxes; zeros by default.
    tol : float, default=1e-4
        Relative duality gap.
    max_iter : int, default=None
        Sweeps; None is 1000.
    callback : callable, default=None
        Called after each sweep; returns True to stop.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.operators import GramRows
    >>> from gramian.solvers import MarginProblem, blocked_ascent
    >>> X = np.linspace(-1, 1, 12)[:, None]
    >>> signs = np.where(np.hstack([X, -X, X**2 - 0.3]) > 0, 1, -1).astype(np.int8)
    >>> R = np.array([[1.0, -0.9, 0.1], [-0.9, 1.0, 0.0], [0.1, 0.0, 1.0]])
    >>> problem = MarginProblem(GramRows(RBF(), X, 1.0), signs, R)
    >>> blocked_ascent(problem, tol=1e-8).status
    'converged'
    """
    return _BlockedAscent(problem, start, tol).solve(max_iter, callback)


class _BlockedAscent(Ascent):
    """V = A K, one row a label, and the two kinds of sweeps."""

    solver = "blocked_ascent"
    inputs = GramRows

    def prepare(self) -> None:
        self.gram = self.problem.inputs
        matrix = self.gram.matrix
        K = np.empty((0, 0), dtype=self.gram.dtype) if matrix is None else matrix
        boxes = (*self.problem.boxes(), self.problem.ridge())
        self.labels = loops.Labels(K, self.R, *boxes, self.A, np.zeros(self.A.shape))
        self.batches = label_batches(self.R)
        # batches of hardly more than one label: nothing to gain side by side
        few_batches = len(self.batches) <= BATCHES_A_LABEL * len(self.A)
        self.side_by_side = not self.correlated or few_batches
        self.vain_rounds = self.most_rounds = loops.VAIN_ROUNDS
        loss_of_none = self.problem.margins ** (2 if self.problem.squared else 1)
        self.objective_of_none = float(np.sum(self.problem.caps * loss_of_none))
        if matrix is None:  # evaluating rows takes all threads
            self.batches = [np.array([k]) for k in range(len(self.A))]

    def due(self) -> bool:
        return self.n_sweeps % SWEEPS_BEFORE_REFRESH == 0

    def refresh(self) -> None:
        matrix = self.gram.matrix
        if matrix is None or self.tol < ACCURATE_BELOW:
            self.labels.V[:] = (self.gram @ self.A.T).T
        else:
            self.labels.V[:] = self.A.astype(matrix.dtype) @ matrix

    def latent(self) -> np.ndarray:
        """U = R V."""
        return self.R @ self.labels.V if self.correlated else self.labels.V

    def values(self) -> tuple[float, np.ndarray, float]:
        _, _, target, low, high, ridge, A, _ = self.labels
        with single_threaded_blas():
            return certificate(target, low, high, ridge, A, self.latent())

    def sweep(self, objective: float, gaps: np.ndarray) -> None:
        # the first sweep starts from nothing, where gaps say little
        slow = self.n_sweeps > 1 and gaps.sum() > SLOW_SWEEP * self.last_gap
        if slow and self.correlated:
            self.side_by_side = False
        worse_than_none = objective > self.objective_of_none and self.n_sweeps > SWEEPS_TO_START
        self.most_rounds = FEWEST_ROUNDS if worse_than_none else loops.VAIN_ROUNDS
        # no label need be better than its share of the tolerance, or than rounding allows
        floor = max(0.3 * self.tol, 1e-14) * objective / len(self.A)
        if self.side_by_side:
            self.sweep_side_by_side(floor)
        else:
            self.sweep_worst_first(gaps, floor)

    def sweep_side_by_side(self, floor: float) -> None:
        """Visit every label, those of a batch as if all others stood still, and take their common step."""
        _, _, target, low, high, ridge, A, V = self.labels
        factor = 0.3 if self.correlated else 0.1
        for batch in self.batches:
            with single_threaded_blas():
                visits = side_by_side(partial(self._visit, batch, factor, floor), batch.size)
            new, before, change = map(np.array, list(zip(*visits, strict=True))[:3])
            self._note(visits)
            if batch.size == 1:
                A[batch], V[batch] = new, V[batch] + change
                continue
            move = new - A[batch]
            slope, curvature = float(np.vdot(move, target[batch] - before)), 0.0
            if self.problem.squared:
                slope -= float(np.vdot(move, ridge[batch] * A[batch]))
                curvature = float(np.vdot(ridge[batch], move**2))
            step = common_step(self.R, batch, slope, move, change, curvature)
            A[batch] = np.clip(A[batch] + step * move, low[batch], high[batch])
            V[batch] += step * change

    def sweep_worst_first(self, gaps: np.ndarray, floor: float) -> None:
        """Visit as many labels as there are, always the one with the largest gap, and tell all others at once."""
        _, _, target, low, high, _, A, V = self.labels
        lack, gaps = target - self.latent(), gaps.copy()
        high, low = np.minimum(high, LARGEST_ROOM), np.maximum(low, -LARGEST_ROOM)
        up, down = (np.subtract(end, A, dtype=np.float32) for end in (high, low))
        for _ in range(len(A)):
            k = int(np.argmax(gaps))
            if gaps[k] <= floor:
                break
            visit = self._visit(np.array([k]), 0.3, floor, 0)
            A[k] = visit.coefficients
            V[k] += visit.change
            up[k], down[k] = high[k] - A[k], low[k] - A[k]
            loops.tell_others(self.labels, k, visit.change, lack, up, down, gaps)
            self._note([visit])
            self.operations += float(A.size)

    def _note(self, visits: list[_Visit]) -> None:
        """Count operations, and be less patient with visits after some that were in vain."""
        self.operations += sum(visit.operations for visit in visits)
        vain = any(visit.vain for visit in visits)
        fewer = max(FEWEST_ROUNDS, self.vain_rounds // 2) if vain else loops.VAIN_ROUNDS
        self.vain_rounds = min(fewer, self.most_rounds)

    def _visit(self, batch: np.ndarray, factor: float, floor: float, place: int) -> _Visit:
        """Visit a label of a batch; nothing but the result is written, so that threads may do so together."""
        K, R, target, low, high, ridge, A, V = self.labels
        k = batch[place]
        a, u = A[k].copy(), np.empty(A.shape[1])
        operations = loops.mixed(V, R[k], u)
        before = u.copy()
        variance = float(R[k, k])
        label = loops.Label(variance, target[k], low[k], high[k], ridge[k], a, u)
        if self.gram.matrix is None:
            affordable = ROWS_BYTES // (u.size * self.gram.dtype.itemsize)
            size = max(2, min(loops.WORKING_SET, affordable))
            work, vain = loops.visit(self.gram, label, factor, floor, size, self.vain_rounds)
        else:
            size = loops.WORKING_SET
            work, vain = loops.visit_stored(K, label, factor, floor, size, self.vain_rounds)
        return _Visit(a, before, (u - before) / variance, operations + work, vain)


class _Visit(NamedTuple):
    """What a visit to a label found."""

    coefficients: np.ndarray
    before: np.ndarray  # latent values before the visit
    change: np.ndarray  # of the row of V
    operations: float
    vain: bool  # whether it ended without having lowered the gap for long
