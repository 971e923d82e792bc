"""Contrast problems by dual ascent: examples in random order, and the signs of an orthogonal penalty in between.

Objective and optimality
    Those of `ContrastProblem`. Coefficients β and signs σ are optimal iff each example has weight on contrasts of
    largest cost only, all of its cap if that is positive, and each pair of normals is orthogonal or has its sign.

Method
    Block coordinate ascent on the dual, which is concave in (β, σ) jointly, smooth, and has separable constraints. A
    visit to an example takes its scores u = S P x, then a few pairwise steps between its contrasts, each of exact
    length: from the cheapest contrast that has weight to the dearest. Several times a sweep the signs are improved,
    which needs the m × m matrix G = P Pᵀ only; visits keep it up to date at the cost of a few numbers. With features X
    the sums P = AᵀX are kept, so that a change of signs changes S and nothing else. With a Gram matrix Q = K A is kept,
    and examples are visited in blocks whose kernel values fit the cache, one matrix product a block. Each sweep ends
    with a look at all examples, whose gaps are exact; the next one leaves out those whose gaps together do not matter.
    Visits need sweeps in proportion to caps times kernel values. Problems of few coefficients that crawl leap instead:
    an interior-point method finds all coefficients at once (`solvers.interior`), and visits go on from there.

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

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from gramian._core.threads import in_parts, single_threaded_blas
from gramian.operators.inputs.feature_rows import FeatureRows
from gramian.operators.inputs.gram_rows import GramRows
from gramian.solvers.contrast import loops
from gramian.solvers.contrast.problem import ContrastProblem
from gramian.solvers.history import Bounds
from gramian.solvers.interior import CRAWLING, MOST, SHARE, Coefficients, interior_point
from gramian.solvers.solution import Callback, Solution

MAX_ITER = 10_000  # sweeps; small problems with few features and large caps take thousands, of a millisecond each
PATIENCE = 50  # sweeps without progress after which rounding errors are to blame
SWEEP_PARTS = 4  # of a sweep, with better signs after each
MAX_VISITS = 5000  # in one compiled call: interruptions get through
BLOCK_EXAMPLES = 128  # whose kernel values are worked on together
ROWS_BYTES = 24 * 2**20  # of a block; it has fewer examples if they take more (the last: twice)
PASSES = 3  # over a block; over all examples between two looks at their gaps
FIRST_SWEEPS = 2  # of one pass: far from the optimum gaps change too fast
UNVISITED_SHARE = 0.3  # of the gap allowed may stay unvisited, shared by all units


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
    recorder = Bounds(allowed, f"tol={tol:.2e}", limit, callback, patience=PATIENCE)
    state = STATES[type(problem.inputs)](problem, check_random_state(random_state))
    best = state.snapshot()
    patient = int(CRAWLING * PATIENCE)
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
        status = recorder.record(state.current, objective, lower, operations=state.operations)
        if status is not None:
            return _certified(recorder, state, best, status)
        if state.can_leap and recorder.crawls(patient):
            state.leap(SHARE * problem.allowed_gap(recorder.upper, tol))
            patient += recorder.n_iter
            continue
        share = UNVISITED_SHARE * problem.allowed_gap(recorder.upper, tol) / gaps.size
        passes = PASSES if recorder.n_iter >= FIRST_SWEEPS else 1
        state.sweep(np.flatnonzero(gaps > share), passes)


def _certified(recorder: Bounds, state: _State, best: _Snapshot, status: str) -> Solution:
    """The solution at the end; bounds that were found with rows in float32 are computed anew, in float64."""
    if not state.exact:
        recorder.forget()
        for candidate in (best, state.snapshot()):
            state.restore(candidate)
            recorder.n_products += 1
            objective, lower, _ = state.values()
            if objective < recorder.upper:
                best = candidate
            recorder.upper = min(recorder.upper, objective)
            recorder.lower = max(recorder.lower, lower)
        status = recorder.confirmed(status, recorder.upper, recorder.gap)
    return recorder.done(state.coefficients(*best), status)


_Snapshot = tuple[np.ndarray, np.ndarray]  # β and S


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
        sizes = np.bincount(part)
        high = np.cumsum(sizes)[part[self.order]]
        low = high - sizes[part[self.order]]
        own, rival = self.place[contrasts.own], self.place[contrasts.rival]
        spans = np.zeros((contrasts.n_labels, 2), dtype=np.int64)
        for label in range(contrasts.n_labels):
            used = slice(*contrasts.start[label : label + 2])
            outputs = np.concatenate([own[used], rival[used]])
            if outputs.size:
                spans[label] = low[outputs].min(), high[outputs].max()
        begin = np.concatenate([[0], np.cumsum(np.diff(contrasts.start)[problem.labels])])
        self.signs, S = penalty.start()
        S = S[np.ix_(self.order, self.order)]
        assert problem.examples is not None
        self.dual = loops.Dual(
            S=S,
            low=low,
            high=high,
            start=contrasts.start,
            own=own,
            rival=rival,
            scale=contrasts.scale,
            spans=spans,
            examples=problem.examples,
            labels=problem.labels,
            caps=problem.caps,
            begin=begin,
            beta=np.zeros(begin[-1]),
            G=np.zeros_like(S),
        )
        self.fresh = True
        self.operations = 0.0  # multiply-adds so far

    def _in_order_of_problem(self) -> tuple[np.ndarray, np.ndarray]:
        """Copies of S and G."""
        back = np.ix_(self.place, self.place)
        return self.dual.S[back], self.dual.G[back]

    def improve_signs(self) -> None:
        """Better signs, and S for them."""
        if self.signs.size:
            S, G = self._in_order_of_problem()
            self.problem.penalty.improve(self.signs, S, G)
            self.dual.S[:] = S[np.ix_(self.order, self.order)]

    def values(self) -> tuple[float, float, np.ndarray]:
        """J, D and the gap of each unit."""
        losses, gaps = np.zeros(self.problem.labels.size), np.zeros(self.problem.labels.size)
        self.scan(losses, gaps)
        S, G = self._in_order_of_problem()
        penalty = self.problem.penalty.value(S, G)
        objective = penalty + losses.sum()
        gap = np.maximum(gaps, 0.0).sum() + max(penalty - 0.5 * float(np.sum(S * G)), 0.0)
        gap += 0.0 if self.exact else self.rounding_of_matrix()
        return float(objective), float(objective - gap), gaps

    @property
    def can_leap(self) -> bool:
        """Whether there are few enough coefficients for `leap`, and some."""
        return 0 < max(self.dual.beta.size, self.problem.shape[0]) <= MOST

    def leap(self, allowed: float) -> None:
        """Find all coefficients by an interior-point method, with better signs before each of its steps.

        What it found is left if the dual is not higher there: signs may need more steps, or rounding rules.
        """
        dual, scale = self.dual, self.dual.scale
        beta, signs, lower = dual.beta.copy(), self.signs.copy(), self.values()[1]
        counts = np.where(dual.caps > 0, np.diff(dual.start)[dual.labels], 0)
        used = np.flatnonzero(counts)
        unit = np.repeat(np.arange(used.size), counts[used])
        each = np.arange(unit.size)
        within = each - np.repeat(np.cumsum(counts[used]) - counts[used], counts[used])
        contrast = dual.start[dual.labels[used]][unit] + within
        places, examples = dual.begin[used][unit] + within, dual.examples[used][unit]
        outputs = np.zeros((unit.size, len(dual.S)))
        outputs[each, dual.own[contrast]] = scale[contrast]
        outputs[each, dual.rival[contrast]] = -scale[contrast]
        K = self.problem.inputs.rows(examples)[:, examples]

        def set_to(beta: np.ndarray) -> np.ndarray:
            dual.beta[places] = beta
            self.refresh()
            self.improve_signs()
            return dual.S

        found = Coefficients(K, outputs, scale[contrast], unit, dual.caps[used])
        dual.beta[places] = interior_point(found, set_to, allowed)
        self.refresh()  # with the signs that coefficients were found for: with large kernel values better ones undo it
        if not self.values()[1] > lower:
            self.signs[:] = signs
            set_to(beta[places])
        self.fresh = False  # bounds so far are of sums that were updated

    def dual_coefficients(self, beta: np.ndarray) -> np.ndarray:
        """A, with outputs in the order of this state."""
        A = np.zeros(self.problem.shape)
        loops.coefficients(self.dual, beta, A)
        return A

    def snapshot(self) -> _Snapshot:
        """What coefficients are made of."""
        return self.dual.beta.copy(), self.dual.S.copy()

    def restore(self, snapshot: _Snapshot) -> None:
        """Go back to a snapshot, with sums computed anew."""
        self.dual.beta[:], self.dual.S[:] = snapshot
        self.refresh()

    def rounding_of_matrix(self) -> float:
        """Return by how much ½ tr(S AᵀK A) may be wrong because entries of K are rounded to float32.

        Rounding errors of at most ε max(K) / 2 in a matrix have a norm of about √n times that.
        """
        A = self.dual_coefficients(self.dual.beta)
        largest = float(self.problem.inputs.diagonal().max(initial=0.0)) * len(A) ** 0.5
        return 2.0**-25 * largest * max(0.0, float(np.sum(self.dual.S * (A.T @ A))))

    def current(self) -> np.ndarray:
        """The coefficients c of this state."""
        return self.coefficients(*self.snapshot())

    def coefficients(self, beta: np.ndarray, S: np.ndarray) -> np.ndarray:
        """c = A S, with outputs in the order of the problem."""
        with single_threaded_blas():
            return np.take(self.dual_coefficients(beta) @ S, self.place, axis=1)

    def scan(self, losses: np.ndarray, gaps: np.ndarray) -> None:
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
        self.features = problem.inputs
        self.P = np.zeros((self.features.n_features, problem.shape[1]))

    def scan(self, losses: np.ndarray, gaps: np.ndarray) -> None:
        self._multiply_sums()
        of_features = (self.features.compiled, self.dual, self.P, losses, gaps)
        in_parts(partial(loops.scan, *of_features), losses.size)
        self.operations += self.features.n_entries * losses.size * self.P.shape[1]

    def sweep(self, units: np.ndarray, passes: int) -> None:
        self.fresh = False
        features, m = self.features, self.P.shape[1]
        X, squares, nothing = features.compiled, features.diagonal(), np.empty((0, m))
        orders = [self.random.permutation(units) for _ in range(passes)]
        for part in [part for order in orders for part in np.array_split(order, SWEEP_PARTS)]:
            for some in np.array_split(part, 1 + part.size // MAX_VISITS):
                places = self.dual.examples[some]
                columns = loops.visit(X, squares, places, some, self.dual, self.P, nothing)
                self.operations += features.n_entries * (some.size * m + columns)
            self.improve_signs()

    def refresh(self) -> None:
        sums = self.features.sums(self.dual_coefficients(self.dual.beta))
        self.P = np.ascontiguousarray(sums)
        self._multiply_sums()
        self.fresh = True

    def _multiply_sums(self) -> None:
        """Compute G = PᵀP without the rounding errors of updates, where outputs are coupled."""
        low, high, G = self.dual.low, self.dual.high, self.dual.G
        with single_threaded_blas():  # its threads would spin beside those of the scan
            for first in np.unique(low):
                block = slice(first, high[first])
                G[block, block] = self.P[:, block].T @ self.P[:, block]


class _GramState(_State):
    """With rows of a Gram matrix: Q = K A."""

    drift = np.inf  # sums are in the precision of the matrix

    def __init__(self, problem: ContrastProblem, random: np.random.RandomState):
        super().__init__(problem, random)
        self.Q = np.zeros(problem.shape)
        self.exact = problem.inputs.dtype == np.float64
        affordable = ROWS_BYTES // (problem.shape[0] * problem.inputs.dtype.itemsize)
        self.block = max(1, min(BLOCK_EXAMPLES, affordable))

    def scan(self, losses: np.ndarray, gaps: np.ndarray) -> None:
        in_parts(partial(loops.scan_scores, self.Q, self.dual, losses, gaps), losses.size)

    def sweep(self, units: np.ndarray, passes: int) -> None:
        self.fresh = False
        units = units[np.argsort(self.dual.examples[units], kind="stable")]
        examples, first = np.unique(self.dual.examples[units], return_index=True)
        units_of = np.split(units, first[1:])
        chosen = self.random.permutation(examples.size)
        for some in np.array_split(chosen, max(1, chosen.size // self.block)):
            block = examples[some]
            places = np.repeat(np.arange(some.size), [units_of[x].size for x in some])
            order = np.concatenate([units[:0], *(units_of[x] for x in some)])
            rows = self.problem.inputs.rows(block)
            K = rows[:, block].astype(np.float64)
            A = np.zeros((block.size, self.Q.shape[1]))
            Q, squares = self.Q[block], np.diagonal(K).copy()
            for _ in range(passes):
                loops.visit(K, squares, places, order, self.dual, Q, A)
            self.Q += rows.T @ A.astype(rows.dtype, copy=False)
            self.operations += float(rows.size) * self.Q.shape[1]
            del rows  # before the next ones are evaluated
            self.improve_signs()

    def refresh(self) -> None:
        A = self.dual_coefficients(self.dual.beta)
        self.Q = np.ascontiguousarray(self.problem.inputs @ A)
        self.dual.G[:] = A.T @ self.Q
        self.fresh = True


STATES: dict[type, type[_State]] = {FeatureRows: _FeatureState, GramRows: _GramState}
