"""Contrast problems by dual ascent: examples in random order, and the signs of an orthogonal penalty in between.

Objective and optimality
    Those of `contrast_problem`. Coefficients β and signs σ are optimal iff each example has weight on contrasts of
    largest cost only, all of its cap if that is positive, and each pair of normals is orthogonal or has its sign.

Method
    Block coordinate ascent on the dual, which is concave in (β, σ) jointly, smooth, and has separable constraints. A
    visit to an example takes its scores u = S P x, then a few pairwise steps between its contrasts, each of exact
    length: from the cheapest contrast that has weight to the dearest. Several times a sweep the signs are improved,
    which needs the m × m matrix G = P Pᵀ only; visits keep it up to date at the cost of a few numbers. With features X
    the sums P = AᵀX are kept, so that a change of signs changes S and nothing else. With a Gram matrix Q = K A is kept,
    and examples are visited in blocks whose kernel values fit the cache, one matrix product a block. Each sweep ends
    with a look at all examples, whose gaps are exact; the next one leaves out those whose gaps together do not matter.

Cost
    Non-zeros of an example × outputs for a visit and for a look; n × outputs for each example of a block visited.

Deviations
    Zhou, Xiao & Wu (2011) use dual averaging (`dual_averaging`), whose lower bound comes from averaged subgradients.
    The dual in (β, σ) bounds the same optimum from below and is maximised directly. Keerthi et al. (2008) visit
    examples in the same way for flat classes (S = I), and solve for all coefficients of an example at once.

Measured
    CCAT tree of RCV1 (5660 documents, 32 nodes, C = 1): 4 sweeps to a gap of 1 %, 7 to 0.1 %, some 50 to 1e-5. Anderson
    extrapolation of the coefficients every five sweeps saved a sixth to a third of the sweeps to 1e-5, up to half on
    problems of 30 examples, and none to 1e-3: not kept.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from gramian._core.threads import exclusive, single_threaded_blas
from gramian.solvers.contrast import loops as loops
from gramian.solvers.contrast.problem import ContrastProblem
from gramian.solvers.history import Bounds
from gramian.solvers.solution import Callback, Solution

__all__ = ["contrast_ascent"]

MAX_ITER = 10_000  # sweeps; small problems with few features and large caps take thousands, of a millisecond each
STEPS = 10  # between contrasts, at most, in one visit
PARTS = 4  # of a sweep, with better signs after each
LONGEST = 5000  # visits in one compiled call: interruptions get through
BLOCK = 128  # examples whose kernel values are worked on together
ROWS_BYTES = 24 * 2**20  # of their rows, beyond which they are fewer (the last few: up to twice)
PASSES = 3  # over a block; over all examples between two looks at their gaps
FIRST = 2  # sweeps of one pass: far from the optimum gaps change too fast
SKIP = 0.3  # of the gap allowed may stay unvisited, shared by all units


def contrast_ascent(
    problem: ContrastProblem,
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    callback: Callback | None = None,
    random_state: Any = 0,
) -> Solution:
    """Solve a contrast problem by dual ascent.

    Parameters
    ----------
    problem : ContrastProblem
    tol : float, default=1e-3
        Stop when the duality gap is at most ``tol`` times the smaller of J and J(0) − J.
    max_iter : int, default=None
        Sweeps; None is 10000.
    callback : callable, default=None
        Called after each sweep; returns True to stop.
    random_state : int or RandomState, default=0
        Order of visits.

    Returns
    -------
    Solution
        Its coefficients c, shape (n, m), make the normals w_i = Σ_k c_ki x_k of the best iterate. The history has the
        best bounds as "objective" and "objective" − "gap", and those of each iterate as "value" and "dual".

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import QuadraticPenalty, Taxonomy, sibling_contrasts
    >>> from gramian.solvers import ContrastProblem, contrast_ascent
    >>> tree = Taxonomy.from_dict({"a": None, "b": None})
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> contrasts = sibling_contrasts(tree, np.array([1, 2]))
    >>> problem = ContrastProblem(X, np.array([0, 1]), contrasts, QuadraticPenalty(np.eye(2)))
    >>> solution = contrast_ascent(problem, tol=1e-9)
    >>> (X.T @ solution.coefficients).round(6)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    if not tol >= 0:
        raise ValueError(f"tol must be >= 0, got {tol!r}.")
    limit = MAX_ITER if max_iter is None else max_iter
    allowed = partial(problem.allowed_gap, tol=tol)
    recorder = Bounds(allowed, f"tol={tol:.2e}", limit, callback, patience=50)
    operations = 0.0
    kind = _GramState if hasattr(problem.inputs, "rows") else _FeatureState
    state = kind(problem, check_random_state(random_state))
    best = state.snapshot()
    while True:
        objective, lower, gaps = state.values()
        near = objective - lower <= 2 * problem.allowed_gap(objective, tol)
        if near and not state.fresh and tol < state.drift:
            state.refresh()
            recorder.n_products += 1
            if not state.exact:
                recorder.forget()
            objective, lower, gaps = state.values()
        if objective < recorder.upper:
            best = state.snapshot()
        status = recorder.record(
            lambda: state.coefficients(*state.snapshot()), objective, lower, operations=operations
        )
        if status is not None:
            return recorder.done(state.coefficients(*best), status)
        share = SKIP * problem.allowed_gap(recorder.upper, tol) / gaps.size
        state.sweep(np.flatnonzero(gaps > share), PASSES if recorder.n_iter >= FIRST else 1)
        operations += state.work()


class _State:
    """Coefficients β, signs σ, S and G, with coupled outputs side by side."""

    drift: float  # tolerances below this are certified with sums computed anew
    exact = True  # whether sums before were in float64, too

    def __init__(self, problem: ContrastProblem, random: np.random.RandomState):
        self.problem = problem
        self.random = random
        contrasts, penalty = problem.contrasts, problem.penalty
        _, part = connected_components(penalty.pattern, directed=False)
        self.order = np.argsort(part, kind="stable")  # the output at each place
        self.place = np.argsort(self.order)  # and the place of each output
        ends = np.cumsum(np.bincount(part))
        self.high = ends[part[self.order]]
        self.low = self.high - np.bincount(part)[part[self.order]]
        own, rival = self.place[contrasts.own], self.place[contrasts.rival]
        spans = np.zeros((contrasts.n_labels, 2), dtype=np.int64)
        for label in range(contrasts.n_labels):
            used = np.arange(*contrasts.start[label : label + 2])
            if used.size:
                outputs = np.concatenate([own[used], rival[used]])
                spans[label] = self.low[outputs].min(), self.high[outputs].max()
        self.table = (contrasts.start, own, rival, contrasts.scale, spans)
        counts = np.diff(contrasts.start)[problem.labels]
        begin = np.concatenate([[0], np.cumsum(counts)])
        assert problem.examples is not None
        self.units = (problem.examples, problem.labels, problem.caps, begin)
        self.beta = np.zeros(begin[-1])
        self.signs, S = penalty.start()
        self.S = S[np.ix_(self.order, self.order)]
        self.G = np.zeros_like(self.S)
        self.fresh = True
        self.touched = 0.0

    @property
    def coupling(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """S, and the range of outputs that each is coupled to."""
        return self.S, self.low, self.high

    def improve_signs(self) -> None:
        """Better signs, and S for them."""
        if not self.signs.size:
            return
        back = np.ix_(self.place, self.place)
        S = self.S[back]
        self.problem.penalty.improve(self.signs, S, self.G[back])
        self.S = S[np.ix_(self.order, self.order)]

    def penalty_values(self) -> tuple[float, float]:
        """Ω(W) and ½ tr(S G)."""
        back = np.ix_(self.place, self.place)
        S, G = self.S[back], self.G[back]
        return self.problem.penalty.value(S, G), 0.5 * float(np.sum(S * G))

    def values(self) -> tuple[float, float, np.ndarray]:
        """J, D and the gap of each unit."""
        losses, gaps = np.zeros(self.problem.labels.size), np.zeros(self.problem.labels.size)
        with exclusive():
            self.scan(losses, gaps, numba.get_num_threads())
        penalty, half = self.penalty_values()
        objective = penalty + losses.sum()
        gap = np.maximum(gaps, 0.0).sum() + max(penalty - half, 0.0)
        return float(objective), float(objective - gap), gaps

    def dual_coefficients(self, beta: np.ndarray) -> np.ndarray:
        """A, with outputs in the order of this state."""
        A = np.zeros(self.problem.shape)
        loops.coefficients(self.units, self.table, beta, A)
        return A

    def snapshot(self) -> tuple[np.ndarray, np.ndarray]:
        """What coefficients are made of."""
        return self.beta.copy(), self.S.copy()

    def coefficients(self, beta: np.ndarray, S: np.ndarray) -> np.ndarray:
        """c = A S, with outputs in the order of the problem."""
        with single_threaded_blas():
            return np.take(self.dual_coefficients(beta) @ S, self.place, axis=1)

    def work(self) -> float:
        """Multiply-adds since the last call."""
        work, self.touched = self.touched, 0.0
        return work

    def scan(self, losses: np.ndarray, gaps: np.ndarray, chunks: int) -> None:
        """Write losses and gaps of all units."""
        raise NotImplementedError

    def sweep(self, units: np.ndarray, passes: int) -> None:
        """Visit units that many times."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Compute sums anew from β."""
        raise NotImplementedError


class _FeatureState(_State):
    """With features X: P = XᵀA, one row a feature."""

    drift = 1e-7  # sums are in float64

    def __init__(self, problem: ContrastProblem, random: np.random.RandomState):
        super().__init__(problem, random)
        X = problem.inputs
        if sp.issparse(X):
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()  # an entry that is stored in two parts has one square
            used = np.zeros(X.shape[1], dtype=bool)
            used[X.indices] = True
            indices = (np.cumsum(used) - 1).astype(np.uint32)[X.indices]
            self.X: Any = (X.indptr.astype(np.int64), indices, X.data)
            self.squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).reshape(-1)
            n_features, self.nonzeros = int(used.sum()), X.nnz / max(1, X.shape[0])
            self.features = sp.csr_array(
                (X.data, indices.astype(np.int64), X.indptr), shape=(X.shape[0], n_features)
            )
        else:
            self.X = self.features = np.ascontiguousarray(X)
            self.squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
            n_features, self.nonzeros = X.shape[1], float(X.shape[1])
        self.P = np.zeros((n_features, problem.shape[1]))

    def scan(self, losses: np.ndarray, gaps: np.ndarray, chunks: int) -> None:
        self.sum_up()
        loops.scan(
            self.X, self.units, self.table, self.coupling, self.beta, self.P, losses, gaps, chunks
        )
        self.touched += self.nonzeros * losses.size * len(self.low)

    def sum_up(self) -> None:
        """G = PᵀP without the rounding errors of updates, where outputs are coupled."""
        with single_threaded_blas():  # its threads would spin beside those of the scan
            for first in np.unique(self.low):
                block = slice(first, self.high[first])
                self.G[block, block] = self.P[:, block].T @ self.P[:, block]

    def sweep(self, units: np.ndarray, passes: int) -> None:
        self.fresh = False
        orders = [self.random.permutation(units) for _ in range(passes)]
        for part in [part for order in orders for part in np.array_split(order, PARTS)]:
            for some in np.array_split(part, 1 + part.size // LONGEST):
                columns = loops.visit(
                    self.X, self.squares, some, self.units, self.table, self.coupling, self.beta, self.P, self.G, STEPS
                )  # fmt: skip
                self.touched += self.nonzeros * (some.size * len(self.low) + columns)
            self.improve_signs()

    def refresh(self) -> None:
        self.P = np.ascontiguousarray(self.features.T @ self.dual_coefficients(self.beta))
        self.fresh = True


class _GramState(_State):
    """With rows of a Gram matrix: Q = K A."""

    drift = np.inf  # sums are in the precision of the matrix

    def __init__(self, problem: ContrastProblem, random: np.random.RandomState):
        super().__init__(problem, random)
        self.Q = np.zeros(problem.shape)
        self.exact = problem.inputs.dtype == np.float64
        affordable = ROWS_BYTES // (problem.shape[0] * problem.inputs.dtype.itemsize)
        self.block = max(1, min(BLOCK, affordable))
        examples = self.units[0]
        self.by_example = np.argsort(examples, kind="stable")
        self.first_unit = np.searchsorted(
            examples[self.by_example], np.arange(problem.shape[0] + 1)
        )

    def scan(self, losses: np.ndarray, gaps: np.ndarray, chunks: int) -> None:
        loops.scan_scores(
            self.Q, self.units, self.table, self.coupling, self.beta, losses, gaps, chunks
        )

    def sweep(self, units: np.ndarray, passes: int) -> None:
        self.fresh = False
        visited = np.zeros(self.problem.labels.size, dtype=bool)
        visited[units] = True
        points = self.random.permutation(np.unique(self.units[0][units]))
        for block in np.array_split(points, max(1, points.size // self.block)):
            found = [self.by_example[self.first_unit[x] : self.first_unit[x + 1]] for x in block]
            local = np.repeat(np.arange(block.size), [part.size for part in found])
            some = np.concatenate(found)
            local, some = local[visited[some]], some[visited[some]]
            rows = self.problem.inputs.rows(block)
            K = rows[:, block].astype(np.float64)
            A = np.zeros((block.size, len(self.low)))
            loops.visit_block(
                K, local, some, self.units, self.table, self.coupling, self.beta, np.take(self.Q, block, axis=0), A,
                self.G, STEPS, passes,
            )  # fmt: skip
            self.Q += rows.T @ A.astype(rows.dtype, copy=False)
            self.touched += float(rows.size) * len(self.low)
            del rows  # before the next ones are evaluated
            self.improve_signs()

    def refresh(self) -> None:
        A = self.dual_coefficients(self.beta)
        self.Q = np.ascontiguousarray(self.problem.inputs @ A)
        self.G = A.T @ self.Q
        self.fresh = True
