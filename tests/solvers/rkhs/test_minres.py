"""MINRES: the contract, SciPy's iterates, shared products, indefinite operators, the ends of Krylov spaces."""

import warnings

import numpy as np
import pytest
import scipy.sparse.linalg
from sklearn.exceptions import ConvergenceWarning

from gramian._core.arrays import to_numpy
from gramian.kernels import RBF, Precomputed
from gramian.labels import DenseStructure
from gramian.losses import Logistic, Squared
from gramian.operators import Dense, LabelMixed
from gramian.solvers import Problem, exact, kernel_cg, minres
from gramian.testing import CountingOperator, check_solver

pytestmark = pytest.mark.usefixtures("one_thread")


def _data(n=40, C=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, :1]) + 0.3 * rng.normal(size=(n, C))


def _precomputed(K):
    return Dense(Precomputed(), K)


def _similarity(eigenvalues, seed=0):
    """A symmetric matrix with given eigenvalues."""
    n = len(eigenvalues)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    K = (Q * eigenvalues) @ Q.T
    return (K + K.T) / 2


def test_keeps_the_contract():
    check_solver(minres, losses=[Squared()], tol=1e-10)


# --- the iterates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("indefinite", [False, True])
@pytest.mark.parametrize("strength", [0.05, 2.0])
def test_iterates_are_those_of_scipy(indefinite, strength):
    X, y = _data()
    K = _similarity(np.linspace(-6, 10, 40)) if indefinite else RBF()(X)
    seen = []
    minres(
        Problem(_precomputed(K), Squared(), y, strength),
        tol=1e-22,
        callback=lambda progress: seen.append(progress.coefficients),
    )
    expected = []
    scipy.sparse.linalg.minres(
        K + strength * np.eye(40), y[:, 0], rtol=1e-14, callback=lambda x: expected.append(x.copy())
    )
    for ours, theirs in zip(
        seen[:10], expected[:10], strict=True
    ):  # later, roundings are magnified
        np.testing.assert_allclose(ours[:, 0], theirs, atol=1e-9 * np.abs(theirs).max())


def test_objective_and_gap_are_those_of_the_iterates():
    """By recurrences; here from the coefficients of each iteration."""
    X, y = _data()
    rng = np.random.default_rng(1)
    w = rng.uniform(0.0, 2.0, size=40) * (rng.random(40) < 0.8)
    problem = Problem(Dense(RBF(), X), Squared(), y, np.array([0.05, 1.0]), w)
    seen = []
    minres(problem, tol=1e-10, callback=seen.append)
    for progress in seen:
        A = progress.coefficients
        U = problem.operator @ A
        rho = problem.residual(A, U)
        gap = problem.gap(np.sum(rho * (problem.operator @ rho), axis=(0, 1)))
        assert progress.objective == pytest.approx(problem.objective(A, U).sum(), rel=1e-10)
        assert progress.gap == pytest.approx(gap.sum(), rel=1e-6, abs=1e-13)


# --- the solution ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_other_solvers(weighted):
    X, Y = _data(C=3)
    w = np.random.default_rng(1).uniform(0.0, 2.0, size=40) if weighted else None
    problem = Problem(Dense(RBF(), X), Squared(), Y, 0.1, w)
    W = np.diag(np.ones(40) if w is None else w)
    found = minres(problem, tol=1e-22).coefficients
    expected = np.linalg.solve(W @ RBF()(X) + 0.1 * np.eye(40), W @ Y)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    for solve in (exact, kernel_cg):
        np.testing.assert_allclose(found, solve(problem, tol=1e-16).coefficients, atol=1e-6)


def test_outputs_that_an_operator_couples():
    X, Y = _data(C=2)
    S = np.array([[2.0, 0.7], [0.7, 1.0]])
    operator = LabelMixed([(Dense(RBF(), X), DenseStructure(S))])
    found = minres(Problem(operator, Squared(), Y, 0.5), tol=1e-18).coefficients
    system = np.kron(RBF()(X), S) + 0.5 * np.eye(80)
    np.testing.assert_allclose(found.reshape(-1), np.linalg.solve(system, Y.reshape(-1)), atol=1e-8)


def test_starts_anywhere_also_where_the_weight_is_zero():
    X, y = _data()
    w = (np.arange(40) % 4 > 0).astype(float)
    problem = Problem(Dense(RBF(), X), Squared(), y, 0.1, w)
    expected = minres(problem, tol=1e-16).coefficients
    found = minres(problem, start=np.ones((40, 1)), tol=1e-16).coefficients
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert not found[w == 0].any()


# --- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_a_path_costs_the_products_of_one_fit(weighted):
    X, y = _data()
    w = np.random.default_rng(1).uniform(0.5, 2.0, size=40) if weighted else None
    path = np.logspace(-2, 3, 21)
    operator = CountingOperator(Dense(RBF(), X))
    together = minres(Problem(operator, Squared(), y, path, w), tol=1e-12)
    alone = [minres(Problem(operator.operator, Squared(), y, s, w), tol=1e-12) for s in path]
    for k, solution in enumerate(alone):
        np.testing.assert_allclose(
            together.coefficients[:, :, k], solution.coefficients, atol=1e-5 / path[k] ** 0.5
        )
    assert together.n_products == max(solution.n_products for solution in alone)
    # one vector in each product but the two that verify the end for all λ
    assert operator.n_products == together.n_products
    assert operator.n_columns == together.n_products - 2 + 2 * 21


def test_a_start_that_is_not_zero_shares_nothing_but_gives_the_same():
    X, y = _data()
    path = np.array([0.1, 1.0, 10.0])
    problem = Problem(Dense(RBF(), X), Squared(), y, path)
    expected = minres(problem, tol=1e-14)
    found = minres(problem, start=np.ones((40, 1, 3)), tol=1e-14)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-6)
    zero = minres(problem, start=np.zeros((40, 1, 3)), tol=1e-14)
    np.testing.assert_array_equal(zero.coefficients, expected.coefficients)


def test_folds_are_columns_of_weights():
    X, y = _data()
    masks = (np.arange(40)[:, None] % 3 != np.arange(3)).astype(float)
    solution = minres(Problem(Dense(RBF(), X), Squared(), y, 0.1, masks), tol=1e-16)
    for k in range(3):
        kept = masks[:, k] > 0
        expected = np.linalg.solve(RBF()(X[kept]) + 0.1 * np.eye(kept.sum()), y[kept])
        np.testing.assert_allclose(solution.coefficients[kept, :, k], expected, atol=1e-7)
        assert not solution.coefficients[~kept, :, k].any()
        U = RBF()(X, X[kept]) @ expected
        np.testing.assert_allclose(solution.latent[:, :, k], U, atol=1e-7)


def test_weights_are_repeated_rows():
    X, y = _data(20)
    w = np.array([1.0, 2.0, 3.0, 0.0] * 5)
    rows = np.repeat(np.arange(20), w.astype(int))
    heavy = minres(Problem(Dense(RBF(), X), Squared(), y, 0.2, w), tol=1e-16)
    repeated = minres(Problem(Dense(RBF(), X[rows]), Squared(), y[rows], 0.2), tol=1e-16)
    np.testing.assert_allclose(heavy.latent[rows], repeated.latent, atol=1e-7)
    assert heavy.objective == pytest.approx(repeated.objective, rel=1e-12)


# --- indefinite operators -------------------------------------------------------------------------


@pytest.mark.parametrize("path", [0.5, np.array([0.3, 0.5, 2.0])], ids=["one", "path"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_indefinite_operator(path, weighted):
    """The solution of the linear system; kernel CG does not get there."""
    rng = np.random.default_rng(0)
    K = _similarity(np.linspace(-3.1, 9.0, 30))
    y = rng.normal(size=(30, 1))
    w = rng.uniform(0.5, 2.0, size=30) if weighted else np.ones(30)
    problem = Problem(_precomputed(K), Squared(), y, path, w if weighted else None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = minres(problem, tol=1e-20)
    assert solution.status == "converged"
    for k, strength in enumerate(np.atleast_1d(path)):
        expected = np.linalg.solve(np.diag(w) @ K + strength * np.eye(30), w[:, None] * y)
        A = solution.coefficients if np.ndim(path) == 0 else solution.coefficients[:, :, k]
        np.testing.assert_allclose(A, expected, atol=1e-7)


def test_an_indefinite_operator_stops_by_its_residual():
    rng = np.random.default_rng(0)
    K = _similarity(np.concatenate([-np.geomspace(0.01, 5, 30), np.geomspace(0.01, 50, 70)]))
    y = rng.normal(size=(100, 1))
    for tol in (1e-2, 1e-6):
        solution = minres(Problem(_precomputed(K), Squared(), y, 0.5), tol=tol)
        residual = y - K @ solution.coefficients - 0.5 * solution.coefficients
        assert solution.status == "converged"
        assert np.linalg.norm(residual) <= tol**0.5 * np.linalg.norm(y)
        assert solution.gap >= 0


def test_a_negative_definite_operator():
    y = np.random.default_rng(0).normal(size=(12, 1))
    K = _similarity(-np.linspace(1.0, 5.0, 12))
    solution = minres(Problem(_precomputed(K), Squared(), y, 0.25), tol=1e-20)
    expected = np.linalg.solve(K + 0.25 * np.eye(12), y)
    np.testing.assert_allclose(solution.coefficients, expected, atol=1e-7)


def test_a_system_without_solution_stops():
    """K has the eigenvalue −λ; the residual cannot fall to zero."""
    K = np.diag([-1.0, 2.0, 3.0])
    with pytest.warns(ConvergenceWarning):
        solution = minres(Problem(_precomputed(K), Squared(), np.ones((3, 1)), 1.0), max_iter=20)
    assert np.all(np.isfinite(solution.coefficients))
    assert solution.status in ("stalled", "max_iter")


# --- ends -----------------------------------------------------------------------------------------


def test_targets_of_zero():
    X, y = _data(10)
    solution = minres(Problem(Dense(RBF(), X), Squared(), 0 * y, np.array([0.1, 1.0])))
    assert solution.status == "converged"
    assert solution.n_iter == 0
    assert not solution.coefficients.any()


def test_one_example():
    solution = minres(Problem(_precomputed(np.array([[3.0]])), Squared(), np.array([[2.0]]), 1.0))
    assert solution.coefficients == pytest.approx(0.5)
    assert solution.n_iter == 1


def test_all_weights_zero():
    X, y = _data(6)
    solution = minres(Problem(Dense(RBF(), X), Squared(), y, 1.0, np.zeros(6)))
    assert solution.status == "converged"
    assert not solution.coefficients.any()


@pytest.mark.parametrize("distinct", [1, 2, 4])
def test_as_many_iterations_as_distinct_eigenvalues(distinct):
    eigenvalues = np.repeat(np.arange(1.0, distinct + 1), 24 // distinct)
    y = np.random.default_rng(0).normal(size=(24, 1))
    problem = Problem(_precomputed(_similarity(eigenvalues)), Squared(), y, np.array([0.1, 1.0]))
    solution = minres(problem, tol=1e-13)
    assert solution.status == "converged"
    assert solution.n_iter == distinct


def test_columns_that_end_at_different_times():
    """An exhausted column waits for the others."""
    X, y = _data(20)
    K = RBF()(X)
    eigenvector = np.linalg.eigh(K)[1][:, -1:]
    targets = np.stack([eigenvector, y, 0 * y], axis=2)
    solution = minres(Problem(_precomputed(K), Squared(), targets, 0.1), tol=1e-16)
    expected = np.linalg.solve(K + 0.1 * np.eye(20), targets[:, 0])
    np.testing.assert_allclose(solution.coefficients[:, 0], expected, atol=1e-7)


def test_a_matrix_of_low_rank_is_not_taken_for_indefinite():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(60, 5))
    problem = Problem(_precomputed(F @ F.T), Squared(), rng.normal(size=(60, 1)), 1e-3)
    solution = minres(problem, tol=1e-12)
    assert solution.status == "converged"
    assert solution.gap <= 1e-12 * solution.objective


@pytest.mark.parametrize("tol", [1e-4, 1e-10])
def test_a_float32_operator_is_refined(tol):
    X, y = _data(200)
    problem = Problem(Dense(RBF(), X.astype(np.float32)), Squared(), y, np.array([0.05, 1.0]))
    solution = minres(problem, tol=tol)
    assert solution.status == "converged"
    assert solution.coefficients.dtype == np.float64
    expected = exact(problem, tol=1e-12)
    assert solution.objective == pytest.approx(expected.objective, rel=2 * tol)


def test_any_array_library(xp):
    X, y = _data()
    w = np.random.default_rng(1).uniform(0.5, 2.0, size=40)
    path = np.array([0.1, 1.0])
    expected = minres(Problem(Dense(RBF(), X), Squared(), y, path, w), tol=1e-12)
    operator = Dense(RBF(), xp.asarray(X))
    found = minres(Problem(operator, Squared(), xp.asarray(y), path, xp.asarray(w)), tol=1e-12)
    np.testing.assert_allclose(to_numpy(found.coefficients), expected.coefficients, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shared", [True, False])
def test_large_arrays_give_the_results_of_small_ones(shared, dtype):
    """Long vectors are updated by compiled loops."""
    rng = np.random.default_rng(0)
    n, blocks = 32, 64
    operator = _precomputed(RBF()(rng.normal(size=(n, 2))).astype(dtype))
    y = rng.normal(size=(n, 1)).astype(dtype)
    path = np.geomspace(0.1, 10, 20)
    tol = 1e-18 if dtype == np.float64 else 1e-5
    few = minres(Problem(operator, Squared(), y, path), tol=tol)
    many = Problem(operator, Squared(), np.repeat(y, blocks, axis=1), path)
    start = None if shared else np.ones(many.shape)
    found = minres(many, start=start, tol=tol)
    assert found.coefficients.dtype == dtype
    assert found.objective == pytest.approx(blocks * few.objective, rel=max(2 * tol, 1e-10))
    if dtype == np.float64:
        np.testing.assert_allclose(found.coefficients[:, 7], few.coefficients[:, 0], atol=1e-6)


# --- what it says ---------------------------------------------------------------------------------


def test_a_callback_keeps_what_it_saw():
    X, y = _data()
    seen = []
    minres(
        Problem(Dense(RBF(), X), Squared(), y, 0.1),
        callback=lambda p: seen.append(p) or p.iteration == 3,
    )
    assert [progress.iteration for progress in seen] == [1, 2, 3]
    assert np.abs(seen[0].coefficients - seen[2].coefficients).max() > 1e-6


def test_too_few_iterations_warn():
    X, y = _data()
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        solution = minres(Problem(Dense(RBF(), X), Squared(), y, 1e-3), max_iter=3)
    assert solution.status == "max_iter"
    assert solution.n_iter == 3


def test_other_losses_are_refused():
    X, y = _data()
    with pytest.raises(
        ValueError,
        match=r"solver='minres' .*Squared\(\), got loss .*Logistic. Use solver='newton'",
    ):
        minres(Problem(Dense(RBF(), X), Logistic(), (y > 0).astype(float)))
