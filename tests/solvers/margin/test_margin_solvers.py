"""What every solver of margin problems has to find: CVXPY's optimum, LIBSVM's, and what symmetry says.

A solver is added with one line in `SOLVERS`: itself, and what makes its inputs from features.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margin_oracles import (
    Margins,
    cvxpy_dual,
    cvxpy_primal,
    dual,
    mirrored_svc,
    primal,
    random_correlation,
    random_margins,
)
from sklearn.exceptions import ConvergenceWarning

from gramian.kernels import RBF, Linear
from gramian.operators import GramRows
from gramian.solvers import MarginProblem, blocked_ascent, coordinate_ascent, smo


def gram_rows(X):
    """Inputs of solvers that ask for rows of K."""
    return GramRows(Linear(), X)


def features(X):
    """Inputs of solvers that ask for X."""
    return X


SOLVERS = {
    "smo": (smo, gram_rows),
    "blocked_ascent": (blocked_ascent, gram_rows),
    "coordinate_ascent": (coordinate_ascent, features),
}

pytestmark = pytest.mark.usefixtures("one_thread")
every_solver = pytest.mark.parametrize("name", SOLVERS)


def solved(name: str, data: Margins, tol: float = 1e-9, R=True, **options):
    """The solution of one solver; R=None leaves the correlation out."""
    solve, inputs = SOLVERS[name]
    correlation = data.R if R is True else R
    problem = MarginProblem(inputs(data.X), data.signs, correlation, data.margins, data.caps)
    solution = solve(problem, tol=tol, **options)
    return replace(solution, latent=problem.latent(solution.coefficients))


def hamming_data(seed: int, n: int, d: int, n_labels: int, cap: float = 2.0) -> Margins:
    """Noisy linear labels, margins of one, and a correlation."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.normal(size=(n, d)), np.ones((n, 1))])
    scores = X @ rng.normal(size=(d + 1, n_labels)) + 0.5 * rng.normal(size=(n, n_labels))
    signs = np.where(scores > 0, 1, -1).astype(np.int8)
    ones = np.ones((n, n_labels))
    return Margins(X, signs, random_correlation(rng, n_labels), ones, cap * ones)


def rows_of(data: Margins, rows) -> Margins:
    return Margins(data.X[rows], data.signs[rows], data.R, data.margins[rows], data.caps[rows])


# --- the optimum ----------------------------------------------------------------------------------


@every_solver
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 12),
    d=st.integers(1, 5),
    n_labels=st.integers(1, 5),
)
def test_primal_dual_and_solver_meet(name, seed, n, d, n_labels):
    data = random_margins(seed, n, d, n_labels)
    solution = solved(name, data)
    near = {"rtol": 1e-6, "atol": 1e-7}
    np.testing.assert_allclose(solution.objective, cvxpy_primal(data), **near)
    np.testing.assert_allclose(solution.objective - solution.gap, cvxpy_dual(data), **near)
    formula = (data.X @ data.X.T, data.signs, data.R, data.margins, data.caps)
    A = solution.coefficients
    np.testing.assert_allclose(solution.objective, primal(*formula, A), **near)
    np.testing.assert_allclose(solution.objective - solution.gap, dual(*formula, A), **near)


@every_solver
@pytest.mark.parametrize("cap", [0.02, 2.0, 50.0])
def test_without_correlation_it_is_one_vs_all_svc(name, cap):
    data = hamming_data(3, n=60, d=4, n_labels=5, cap=cap)
    K = data.X @ data.X.T
    A = mirrored_svc(K, data.signs, data.caps)
    solution = solved(name, data, R=None)
    expected = dual(K, data.signs, np.eye(5), data.margins, data.caps, A)
    np.testing.assert_allclose(solution.objective, expected, rtol=1e-6)
    np.testing.assert_array_equal(np.sign(solution.latent), np.sign(K @ A))


@every_solver
def test_example_weights_are_caps_of_svc(name):
    data = hamming_data(4, n=50, d=3, n_labels=3)
    caps = np.random.default_rng(0).uniform(0.1, 5, size=data.caps.shape)
    data = Margins(data.X, data.signs, data.R, data.margins, caps)
    K = data.X @ data.X.T
    expected = dual(K, data.signs, np.eye(3), data.margins, caps, mirrored_svc(K, data.signs, caps))
    np.testing.assert_allclose(solved(name, data, R=None).objective, expected, rtol=1e-6)


@every_solver
def test_the_identity_is_no_correlation(name):
    data = hamming_data(5, n=40, d=3, n_labels=3)
    one, other = (solved(name, data, R=R) for R in (None, np.eye(3)))
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-8)
    np.testing.assert_allclose(one.latent, other.latent, atol=1e-3)


# --- what symmetry says ---------------------------------------------------------------------------


@every_solver
def test_a_cap_twice_as_large_is_the_row_twice(name):
    data = random_margins(0, n=12, d=4, n_labels=3)
    weights = np.array([1, 2] * 6)
    heavy = Margins(data.X, data.signs, data.R, data.margins, data.caps * weights[:, None])
    repeated = rows_of(data, np.repeat(np.arange(12), weights))
    np.testing.assert_allclose(
        solved(name, heavy).objective, solved(name, repeated).objective, rtol=1e-7
    )


@every_solver
def test_a_cap_of_zero_leaves_the_row_out(name):
    data = random_margins(1, n=12, d=4, n_labels=3)
    kept = np.arange(12) % 3 > 0
    silenced = Margins(data.X, data.signs, data.R, data.margins, data.caps * kept[:, None])
    one, other = solved(name, silenced), solved(name, rows_of(data, kept))
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-7)
    np.testing.assert_allclose(one.latent[kept], other.latent, atol=1e-3)
    assert (one.coefficients[~kept] == 0).all()


@every_solver
def test_order_of_rows_and_labels_does_not_matter(name):
    data = random_margins(2, n=12, d=4, n_labels=4)
    rows, labels = (np.random.default_rng(0).permutation(size) for size in (12, 4))
    both = np.ix_(rows, labels)
    permuted = Margins(
        data.X[rows],
        data.signs[both],
        data.R[np.ix_(labels, labels)],
        data.margins[both],
        data.caps[both],
    )
    one, other = solved(name, data), solved(name, permuted)
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-7)
    np.testing.assert_allclose(one.latent[both], other.latent, atol=1e-3)


@every_solver
def test_scaling_the_correlation_scales_caps_or_features(name):
    data = random_margins(3, n=12, d=4, n_labels=3)
    scaled = Margins(data.X, data.signs, 4 * data.R, data.margins, data.caps)
    by_caps = Margins(data.X, data.signs, data.R, data.margins, 4 * data.caps)
    by_features = Margins(2 * data.X, data.signs, data.R, data.margins, data.caps)
    objective = solved(name, scaled).objective
    np.testing.assert_allclose(objective, solved(name, by_caps).objective / 4, rtol=1e-7)
    np.testing.assert_allclose(objective, solved(name, by_features).objective, rtol=1e-7)


@every_solver
def test_block_diagonal_correlation_is_two_problems(name):
    data = random_margins(4, n=10, d=4, n_labels=5)
    R = data.R.copy()
    R[:2, 2:] = R[2:, :2] = 0
    parts = (np.s_[:, :2], R[:2, :2]), (np.s_[:, 2:], R[2:, 2:])
    separate = sum(
        solved(name, Margins(data.X, data.signs[l], block, data.margins[l], data.caps[l])).objective
        for l, block in parts
    )
    np.testing.assert_allclose(solved(name, data, R=R).objective, separate, rtol=1e-7)


# --- certificate, start, stopping -----------------------------------------------------------------


@every_solver
def test_coefficients_are_in_the_box_and_the_gap_is_a_bound(name):
    data = random_margins(5, n=12, d=4, n_labels=3)
    best = solved(name, data, tol=1e-10).objective
    for tol in (1e-1, 1e-3, 1e-6):
        solution = solved(name, data, tol=tol)
        assert solution.status == "converged"
        assert solution.relative_gap <= tol
        assert solution.objective - solution.gap <= best * (1 + 1e-9)
        assert best <= solution.objective * (1 + 1e-9)
        alpha = data.signs * solution.coefficients
        assert (alpha >= 0).all()
        assert (alpha <= data.caps).all()
        np.testing.assert_allclose(solution.gaps.sum(), solution.gap)


@every_solver
def test_the_dual_never_falls(name):
    history = solved(name, hamming_data(6, n=60, d=5, n_labels=4), tol=1e-6).history
    lower = history["objective"] - history["gap"]
    assert (np.diff(lower) >= -1e-9 * abs(lower[-1])).all()
    assert (np.diff(history["operations"]) >= 0).all()
    assert {len(values) for values in history.values()} == {len(lower)}
    assert history["violation"][-1] < 0.01 * history["violation"][0]


@every_solver
def test_a_start_saves_work_and_is_clipped(name):
    data = hamming_data(7, n=60, d=5, n_labels=4)
    cold = solved(name, data, tol=1e-6)
    warm = solved(name, data, tol=1e-6, start=cold.coefficients)
    assert warm.history["operations"][-1] < 0.2 * cold.history["operations"][-1]
    outside = solved(name, data, tol=1e-6, start=100 * np.ones(data.signs.shape))
    np.testing.assert_allclose(outside.objective, cold.objective, rtol=1e-5)
    with pytest.raises(ValueError, match="start must have shape"):
        solved(name, data, start=np.zeros((3, 2)))


@every_solver
def test_the_same_twice(name):
    data = hamming_data(8, n=40, d=5, n_labels=4)
    one, other = (solved(name, data) for _ in range(2))
    np.testing.assert_array_equal(one.coefficients, other.coefficients)


@every_solver
def test_labels_of_one_kind_and_caps_of_zero(name):
    data = hamming_data(9, n=20, d=3, n_labels=3)
    data.signs[:, 0] = 1
    data.signs[:, 1] = -1
    data.caps[:, 2] = 0
    solution = solved(name, data)
    np.testing.assert_allclose(solution.objective, cvxpy_primal(data), rtol=1e-6)
    nothing = solved(name, Margins(data.X, data.signs, data.R, data.margins, 0 * data.caps))
    assert (nothing.status, nothing.objective, nothing.n_iter) == ("converged", 0, 0)


@every_solver
def test_rows_of_zeros_go_to_their_bound(name):
    data = random_margins(6, n=10, d=3, n_labels=3)
    data.X[::3] = 0
    solution = solved(name, data)
    np.testing.assert_allclose(solution.objective, cvxpy_primal(data), rtol=1e-6)
    at_zero = (data.signs * solution.coefficients)[::3]
    positive = data.margins[::3] > 0
    np.testing.assert_array_equal(at_zero[positive], data.caps[::3][positive])


@every_solver
def test_stopping_by_callback_and_by_max_iter(name):
    data = hamming_data(10, n=80, d=6, n_labels=4, cap=50.0)
    seen = []

    def callback(progress):
        seen.append((progress.iteration, progress.coefficients.shape))
        return progress.iteration == 2

    stopped = solved(name, data, callback=callback)
    assert (stopped.status, stopped.n_iter) == ("stopped", 2)
    assert seen == [(1, data.signs.shape), (2, data.signs.shape)]
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        assert solved(name, data, max_iter=1).status == "max_iter"


@every_solver
def test_an_impossible_tolerance_ends(name):
    with pytest.warns(ConvergenceWarning, match="rounding errors"):
        solution = solved(name, hamming_data(11, n=15, d=3, n_labels=2), tol=0.0)
    assert solution.status == "stalled"
    assert solution.relative_gap < 1e-10


@every_solver
def test_work_grows_linearly_in_the_number_of_labels(name):
    """Dense correlations whose spectrum does not depend on their size, labels alike, rows enough for all steps."""
    sizes = np.array([10, 20, 40, 80])
    rng = np.random.default_rng(12)
    data = hamming_data(12, n=1000, d=20, n_labels=80)
    operations = []
    for size in sizes:
        part = np.s_[:, :size]
        R = np.corrcoef(rng.normal(size=(size, 3 * size)))
        some = Margins(data.X, data.signs[part], R, data.margins[part], data.caps[part])
        operations.append(solved(name, some, tol=1e-2).history["operations"][-1])
    exponent = np.polyfit(np.log(sizes), np.log(operations), 1)[0]
    assert exponent < 1.2


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("solve", [coordinate_ascent, blocked_ascent, smo])
def test_large_costs_of_hinges_converge_as_small_ones_do(solve, correlated):
    """Sweeps alone stopped with a relative gap of 0.2 to 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    signs = np.where(rng.random((30, 3)) < 0.5, -1, 1).astype(np.int8)
    R = np.corrcoef(rng.normal(size=(3, 12))) if correlated else None
    inputs = X if solve is coordinate_ascent else GramRows(Linear(), X)
    objectives = []
    for caps in (1e4, 1e8):
        problem = MarginProblem(inputs, signs, R, caps=caps)
        solution = solve(problem, tol=1e-4, max_iter=500)
        assert solution.status == "converged"
        objectives.append(solution.objective / caps)
    np.testing.assert_allclose(*objectives, rtol=1e-2)


def test_equal_examples_of_all_signs():
    signs = np.where(np.arange(39).reshape(13, 3) % 5 < 2, -1, 1).astype(np.int8)
    rows = GramRows(RBF(), np.ones((13, 2)))
    solution = blocked_ascent(MarginProblem(rows, signs, caps=1e8), tol=1e-4)
    assert solution.status == "converged"
