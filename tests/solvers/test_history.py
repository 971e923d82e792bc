"""A history knows no problem: it says when a solver is done from objectives and gaps alone."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gramian.solvers.history import Bounds, DualHistory, History


def nothing():
    raise AssertionError("nobody asked for the coefficients")


def test_the_gap_relative_to_the_objective_decides():
    history = History(0.1, 10, None, patience=5)
    assert history.verdict(nothing, 2.0, 0.3) is None
    assert history.verdict(nothing, 2.0, 0.2) == "converged"
    solution = history.solution(np.ones(3), 2.0, 0.2, "converged")
    assert (solution.objective, solution.gap, solution.n_iter) == (2.0, 0.2, 1)
    np.testing.assert_array_equal(solution.history["gap"], [0.3, 0.2])
    np.testing.assert_array_equal(solution.gaps, [0.2])


def test_all_problems_of_a_lockstep_must_converge():
    history = History(0.1, 10, None, patience=5)
    assert history.verdict(nothing, np.ones(2), np.array([0.0, 0.2])) is None
    assert history.rows[0]["gap"] == 0.2
    assert history.verdict(nothing, np.ones(2), np.array([0.0, 0.1])) == "converged"


@pytest.mark.parametrize(
    ("limits", "moved", "status"),
    [((1, 9), True, "max_iter"), ((9, 1), True, "stalled"), ((9, 9), False, "stalled")],
)
def test_limits_end_a_solve_with_a_warning(limits, moved, status):
    history = History(1e-6, limits[0], None, limits[1])
    assert history.verdict(nothing, 1.0, 0.5) is None
    assert history.verdict(nothing, 1.0, 0.5, moved=moved) == status
    with pytest.warns(ConvergenceWarning, match=r"gap of 5\.00e-01, above tol=1\.00e-06"):
        assert history.solution(np.ones(1), 1.0, 0.5, status).status == status


def test_a_callback_sees_each_iteration_and_stops():
    seen = []

    def callback(progress):
        seen.append((progress.iteration, progress.coefficients, progress.gap))
        return progress.iteration == 2

    history = History(0.0, 10, callback, patience=5)
    statuses = [history.verdict(lambda: "A", 1.0, gap) for gap in (3.0, 2.0, 1.0)]
    assert statuses == [None, None, "stopped"]
    assert seen == [(1, "A", 2.0), (2, "A", 1.0)]


def test_what_was_computed_anew_confirms_or_refutes():
    history = History(0.1, 10, None, patience=5)
    assert history.confirmed("max_iter", 1.0, 0.05) == "converged"
    assert history.confirmed("converged", 1.0, 0.2) == "stalled"
    assert history.confirmed("max_iter", 1.0, 0.2) == "max_iter"


def test_a_dual_that_rises_is_progress():
    """The objective and the gap both grow, but the lower bound does as well."""
    primal, dual = History(0.0, 10, None, patience=1), DualHistory(0.0, 10, None, patience=1)
    for history, status in ((primal, "stalled"), (dual, None)):
        assert history.verdict(nothing, 1.0, 0.5) is None
        assert history.verdict(nothing, 1.5, 0.6) == status


def test_the_best_bounds_count():
    bounds = Bounds(lambda objective: 0.1 * objective, "tol", 10, None, patience=9)
    for value, dual in ((3.0, 0.0), (2.0, 1.0), (2.5, 1.5)):
        assert bounds.record(nothing, value, dual) is None
    assert (bounds.upper, bounds.lower, bounds.gap) == (2.0, 1.5, 0.5)
    assert bounds.record(nothing, 4.0, 1.9, operations=7.0) == "converged"
    bounds.rows[:-1] = [row | {"operations": 0.0} for row in bounds.rows[:-1]]
    solution = bounds.done(np.ones(1), "converged")
    assert (solution.objective, solution.gap) == (2.0, pytest.approx(0.1))
    np.testing.assert_array_equal(solution.history["value"], [3.0, 2.0, 2.5, 4.0])
    bounds.forget()
    assert bounds.upper == np.inf


@pytest.mark.parametrize("tol", [-1.0, np.nan])
def test_a_negative_tolerance_is_refused(tol):
    with pytest.raises(ValueError, match="tol must be >= 0"):
        History(tol, 1, None, 1)


def test_gaps_that_fall_by_chance_are_no_progress():
    """Where rounding rules, gaps of 1e8 to 1e18 follow each other while the dual hardly rises."""
    history, status, iteration = DualHistory(1e-6, 1000, None, 50), None, 0
    sizes = np.random.default_rng(0).uniform(8, 18, size=1001)
    while status is None:
        dual, gap = 5e4 + 10.0 * iteration, 10.0 ** sizes[iteration] if iteration else 1e5
        status = history.verdict(np.empty, dual + gap, gap)
        iteration += 1
    assert (status, history.n_iter) == ("stalled", 50)


def test_a_dual_that_rises_is_progress_although_the_gap_does_not_fall():
    history = DualHistory(1e-6, 200, None, 50)
    statuses = [history.verdict(np.empty, 1.0, 0.5 - 1e-4 * k) for k in range(201)]
    assert statuses[-1] == "max_iter"
    assert set(statuses[:-1]) == {None}
