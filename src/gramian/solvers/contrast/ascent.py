"""Contrast problems by dual ascent: examples in random order, and the signs of an orthogonal penalty in between.

Objective and optimality
    Those of `ContrastProblem`. Coefficients β and signs σ are optimal iff each example has weight on contrasts of
    largest cost only, all of its cap if that is positive, and each pair of normals is orthogonal or has its sign.

Method
    Block coordinate ascent on the dual, which is concave in (β, σ) jointly, smooth, and has separable constraints. A
    visit to an example takes the scores u = S P x that its contrasts ask about, then a few pairwise steps between
    these, each of exact length: from the cheapest contrast that has weight to the dearest. Several times a sweep the
    signs are improved. All of it happens in latent sums Y = Fᵀ P of a sparse factor S = F Fᵀ (`solvers.contrast.state`,
    `labels.margins.forms`): in a tree a visit reads the families along the path to its label and changes what is above
    outputs that change. With a Gram matrix latent scores are kept, and examples are visited in blocks whose kernel
    values fit the cache, one matrix product a block. Each sweep ends with a look at all examples, whose gaps are exact;
    the next one leaves out those whose gaps together do not matter.
    Visits need sweeps in proportion to caps times kernel values. Problems of few coefficients that crawl leap instead:
    an interior-point method finds all coefficients at once (`solvers.interior`), and visits go on from there.

Cost
    Non-zeros of an example × the outputs that its label needs for a visit and for a look: siblings along a path, or all
    leaves for flat decisions. With a Gram matrix n × outputs for each example of a block visited.

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
from sklearn.utils import check_random_state

from gramian.solvers.contrast.problem import ContrastProblem
from gramian.solvers.contrast.state import STATES, Snapshot, State
from gramian.solvers.history import Bounds
from gramian.solvers.interior import CRAWLING, SHARE
from gramian.solvers.solution import Callback, Solution

MAX_ITER = 10_000  # sweeps; small problems with few features and large caps take thousands, of a millisecond each
PATIENCE = 50  # sweeps without progress after which rounding errors are to blame
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
        Its coefficients c, `MixedCoefficients` of shape (n, m), make the normals w_i = Σ_k c_ki x_k of the best
        iterate. The history has the best bounds as "objective" and "objective" − "gap", and those of each iterate as
        "value" and "dual".

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


def _certified(recorder: Bounds, state: State, best: Snapshot, status: str) -> Solution:
    """The solution at the end; bounds that were found with rows in float32 are computed anew, in float64."""
    if not state.exact:
        recorder.forget()
        for candidate in (best, state.snapshot()):
            state.restore(candidate)
            state.refresh()
            recorder.n_products += 1
            objective, lower, _ = state.values()
            if objective < recorder.upper:
                best = candidate
            recorder.upper = min(recorder.upper, objective)
            recorder.lower = max(recorder.lower, lower)
        status = recorder.confirmed(status, recorder.upper, recorder.gap)
    state.restore(best)
    return recorder.done(state.current(), status)
