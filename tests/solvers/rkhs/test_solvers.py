"""Solvers: the contract, one optimum for all of them, true bounds, finite termination, any array library."""

import warnings

import numpy as np
import pytest
from oracles import block_diagonal, kronecker, lbfgs
from oracles import objective as naive_objective
from sklearn.exceptions import ConvergenceWarning

from gramian._core.arrays import to_numpy
from gramian.kernels import RBF, Linear, Matern, Precomputed, White
from gramian.labels import DenseStructure, Diagonal, Identity, Scalar
from gramian.losses import Logistic, Softmax, Squared, SquaredHinge
from gramian.operators import Dense, Intercept, LabelMixed, LinearFeatures, Separate, Streamed
from gramian.solvers import Problem, Progress, exact, kernel_cg, newton, parameter_cg
from gramian.testing import CountingOperator, check_solver, optimum

pytestmark = pytest.mark.usefixtures("one_thread")
SOLVERS = [newton, kernel_cg, parameter_cg, exact]
LOSSES = [Softmax(), Logistic(), Squared(), SquaredHinge()]
every_solver = pytest.mark.parametrize("solve", SOLVERS, ids=lambda solve: solve.__name__)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def _targets(loss, n: int, C: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if isinstance(loss, Softmax):
        return np.eye(C)[rng.integers(C, size=n)]
    if isinstance(loss, Logistic):
        return rng.integers(2, size=(n, C)).astype(float)
    if isinstance(loss, SquaredHinge):
        return np.where(rng.random((n, C)) < 0.5, -1.0, 1.0)
    return rng.normal(size=(n, C))


def _operators(X: np.ndarray) -> dict:
    """Operators of three outputs, with the dense matrix each is on column-stacked vec(A)."""
    kernel, n = RBF(0.8), len(X)
    M, ones = kernel(X), np.ones((n, n))
    intercept = Intercept(2.0, X, n)
    variances = [0.5, 1.0, 2.0]
    kernels = [RBF(0.8), Matern(1.0), 2.0 * Linear() + White(0.3)]
    return {
        "input": (Dense(kernel, X), kronecker((M, np.eye(3)))),
        "streamed": (Streamed(kernel, X), kronecker((M, np.eye(3)))),
        "linear": (LinearFeatures(Linear(), X), kronecker((X @ X.T, np.eye(3)))),
        "intercept": (
            LabelMixed([(Dense(kernel, X), Diagonal(variances)), (intercept, Identity())]),
            kronecker((M, np.diag(variances)), (ones, 2 * np.eye(3))),
        ),
        "separate": (
            Separate([Dense(k, X) for k in kernels]),
            block_diagonal([k(X) for k in kernels]),
        ),
    }


# --- the contract -------------------------------------------------------------------------------


@every_solver
@every_loss
def test_keeps_the_contract(solve, loss):
    slow = solve is parameter_cg  # its condition number is the square of the others'
    options = {"tol": 1e-7, "n_samples": 12} if slow else {"tol": 1e-10}
    check_solver(solve, losses=[loss], **options)


@pytest.mark.parametrize("solve", [newton, kernel_cg, exact])
@every_loss
def test_examples_of_weight_zero_have_coefficients_of_zero(solve, loss, X):
    """Exactly zero, so that they can be left out of predictions."""
    weights = (np.arange(len(X)) % 3 > 0).astype(float)
    problem = Problem(Dense(RBF(), X), loss, _targets(loss, len(X), 3), 0.3, weights)
    assert not solve(problem).coefficients[weights == 0].any()


# --- one optimum for all ------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("name", ["input", "streamed", "linear", "intercept", "separate"])
def test_all_solvers_find_the_optimum_of_lbfgs(loss, name, X):
    """Newton = kernel CG = parameter CG = exact = L-BFGS on an objective written with loops."""
    operator, K = _operators(X)[name]
    Y = _targets(loss, len(X), 3)
    weights = np.linspace(0.5, 1.5, len(X))
    minimum, latent = lbfgs(type(loss).__name__, K, Y, 0.3, weights)
    for solve in SOLVERS:
        solution = solve(Problem(operator, loss, Y, 0.3, weights), tol=1e-11)
        A = solution.coefficients
        value = naive_objective(type(loss).__name__, K, A, Y, 0.3, weights)
        assert solution.status == "converged", solve.__name__
        assert value == pytest.approx(minimum, rel=1e-10), solve.__name__
        assert solution.objective == pytest.approx(value, rel=1e-12), solve.__name__
        np.testing.assert_allclose(operator @ A, latent, atol=1e-5, err_msg=solve.__name__)


@every_loss
def test_iterative_solvers_find_the_optimum_of_mixed_outputs(loss, X):
    """Outputs coupled by S have no block-diagonal form: all but `exact`, which says so."""
    B = np.array([[1.0, 0.2], [-0.5, 1.0], [0.3, 0.3]])
    S, kernel = B @ B.T, RBF(1.5)
    operator = LabelMixed([(Dense(kernel, X), DenseStructure(S))])
    Y = _targets(loss, len(X), 3)
    minimum, latent = lbfgs(type(loss).__name__, kronecker((kernel(X), S)), Y, 0.3)
    problem = Problem(operator, loss, Y, 0.3)
    for solve in (newton, kernel_cg, parameter_cg):
        solution = solve(problem, tol=1e-11)
        assert solution.objective == pytest.approx(minimum, rel=1e-10), solve.__name__
        U = operator @ solution.coefficients
        np.testing.assert_allclose(U, latent, atol=1e-5, err_msg=solve.__name__)
    with pytest.raises(ValueError, match="solver='newton'"):
        exact(problem)


@every_solver
def test_ridge_regression_has_its_closed_form(solve, X):
    """(K + λI) A = Y, reached to eight digits."""
    K, Y = RBF(1.0)(X), _targets(Squared(), len(X), 2)
    expected = np.linalg.solve(K + 0.5 * np.eye(len(X)), Y)
    solution = solve(Problem(Dense(RBF(1.0), X), Squared(), Y, 0.5), tol=1e-20)
    np.testing.assert_allclose(solution.coefficients, expected, atol=1e-8)


@every_solver
def test_the_suites_own_optimum_is_that_of_the_oracle(solve, X):
    """Two independent L-BFGS references agree, also for weights and strengths by column."""
    Y, K = _targets(Softmax(), len(X), 3), RBF(1.0)(X)
    weights = np.stack([np.ones(len(X)), np.arange(len(X)) % 2], axis=1)
    problem = Problem(Dense(RBF(1.0), X), Softmax(), Y, np.array([0.1, 2.0]), weights)
    minima, latent = optimum(problem)
    for j, strength in enumerate([0.1, 2.0]):
        matrix = kronecker((K, np.eye(3)))
        minimum, U = lbfgs("Softmax", matrix, Y, strength, weights[:, j])
        assert minima[j] == pytest.approx(minimum, rel=1e-12)
        np.testing.assert_allclose(latent[:, :, j], U, atol=1e-6)


# --- bounds and termination ---------------------------------------------------------------------


@every_solver
@pytest.mark.parametrize("strength", [0.01, 1.0])
def test_regularised_least_squares_is_sandwiched_at_every_iteration(solve, strength, X):
    """The upper bound is the objective, the lower one objective − gap, as in Gibbs' bounds."""
    K, Y = RBF(1.0)(X), _targets(Squared(), len(X), 1)
    least = (
        0.5 * strength * float(Y[:, 0] @ np.linalg.solve(K + strength * np.eye(len(X)), Y)[:, 0])
    )
    history = solve(Problem(Dense(RBF(1.0), X), Squared(), Y, strength), tol=1e-10).history
    upper, lower = history["objective"], history["objective"] - history["gap"]
    assert np.all(upper >= least * (1 - 1e-12))
    assert np.all(lower <= least * (1 + 1e-12))
    assert upper[-1] - lower[-1] <= 1e-10 * upper[-1]


@pytest.mark.parametrize("solve", [kernel_cg, parameter_cg, newton])
@pytest.mark.parametrize("n_distinct", [1, 2, 4])
def test_conjugate_gradients_end_after_as_many_steps_as_distinct_eigenvalues(solve, n_distinct):
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    K = basis * np.linspace(1.0, 3.0, n_distinct)[np.arange(12) % n_distinct] @ basis.T
    operator = CountingOperator(Dense(Precomputed(), (K + K.T) / 2))
    Y = rng.normal(size=(12, 1))
    solution = solve(Problem(operator, Squared(), Y, 0.5), tol=1e-14)
    assert solution.status == "converged"
    assert solution.history["gap"][0] > 1e-3
    if solve is newton:  # one Newton step, whose CG steps are products
        assert solution.n_iter == 1
        assert operator.n_products == 1 + n_distinct + 1 + 2  # 𝒦ρ, steps, 𝒦ρ, fresh U and 𝒦ρ
    else:
        assert solution.n_iter == n_distinct


@pytest.mark.parametrize(
    "solve, per_iteration", [(kernel_cg, 1), (parameter_cg, 2)], ids=["kernel_cg", "parameter_cg"]
)
def test_an_iteration_costs_the_promised_products(solve, per_iteration, X):
    operator = CountingOperator(Dense(RBF(1.0), X))
    problem = Problem(operator, Softmax(), _targets(Softmax(), len(X), 3), 0.1)
    solution = solve(problem, tol=1e-8)
    assert operator.n_products == solution.n_products
    # one for the first residual, two to verify the end
    assert operator.n_products == 1 + per_iteration * solution.n_iter + 2


def test_kernel_cg_needs_fewer_products_than_cg_on_the_coefficients(rng):
    """The condition number is that of 𝒦 + λI, not of 𝒦(𝒦 + λI) (Ratliff & Bagnell §3)."""
    X = rng.normal(size=(60, 2))
    problem = Problem(Dense(RBF(1.0), X), Squared(), rng.normal(size=(60, 1)), 0.1)
    ours, theirs = (solve(problem, tol=1e-6).n_products for solve in (kernel_cg, parameter_cg))
    assert 3 * ours < theirs


@every_loss
def test_an_exact_newton_step_ends_a_quadratic_and_few_end_the_others(loss, X):
    problem = Problem(Dense(RBF(1.0), X), loss, _targets(loss, len(X), 3), 0.3)
    n_iter = exact(problem, tol=1e-12).n_iter
    assert n_iter <= (1 if loss.quadratic else 6)


def test_newton_takes_a_handful_of_steps(rng):
    """Fewer than ten Newton steps, and the products are counted, not guessed."""
    X = rng.normal(size=(120, 4))
    operator = CountingOperator(Dense(RBF(1.5), X))
    Y = np.eye(4)[(2 * X).argmax(axis=1)]
    solution = newton(Problem(operator, Softmax(), Y, 0.01), tol=1e-6)
    assert solution.n_iter <= 10
    assert operator.n_products == solution.n_products <= 80
    assert operator.n_columns == 4 * operator.n_products


@pytest.mark.parametrize("solve", [newton, kernel_cg, parameter_cg])
def test_lockstep_columns_share_every_product(solve, X):
    """Eight problems cost about as many passes over the Gram matrix as the slowest of them."""
    Y = np.stack([_targets(Softmax(), len(X), 3, seed) for seed in range(8)], axis=2)
    alone = [solve(Problem(Dense(RBF(), X), Softmax(), Y[:, :, j], 0.3)) for j in range(8)]
    together = solve(Problem(Dense(RBF(), X), Softmax(), Y, 0.3))
    assert together.n_products <= 1.5 * max(solution.n_products for solution in alone) + 5


def test_columns_that_are_done_are_not_multiplied_any_more(X):
    """An easy problem beside a hard one takes few products, and both end where they do alone."""
    Y = np.stack([_targets(Softmax(), len(X), 3, seed) for seed in range(2)], axis=2)
    strength = np.array([30.0, 1e-3])
    operator = CountingOperator(Dense(RBF(0.7), X))
    together = newton(Problem(operator, Softmax(), Y, strength), tol=1e-8, preconditioner=None)
    assert operator.n_columns < 0.7 * 6 * operator.n_products
    for j in range(2):
        alone = newton(Problem(Dense(RBF(0.7), X), Softmax(), Y[:, :, j], strength[j]), tol=1e-8)
        A, B = together.coefficients[:, :, j], alone.coefficients.reshape(len(X), 3)
        np.testing.assert_allclose(A, B, atol=2e-3 * np.abs(B).max())


@every_solver
def test_finished_columns_stay_where_they_are(solve, X):
    """A column that starts at its optimum is not moved by the others."""
    Y = np.stack([_targets(Softmax(), len(X), 3, seed) for seed in range(2)], axis=2)
    first = solve(Problem(Dense(RBF(), X), Softmax(), Y[:, :, 0], 0.3), tol=1e-10).coefficients
    start = np.stack([first, np.zeros_like(first)], axis=2)
    problem = Problem(Dense(RBF(), X), Softmax(), Y, 0.3)
    solution = solve(problem, start=start, tol=1e-8)
    assert solution.status == "converged"
    np.testing.assert_array_equal(solution.coefficients[:, :, 0], first)


# --- hard cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize("solve", [newton, kernel_cg, exact])
@every_loss
def test_weak_regularisation_converges(solve, loss, X):
    """λ = 1e-4: the objective falls by orders of magnitude and steps must be found by searching."""
    problem = Problem(Dense(RBF(0.7), X), loss, _targets(loss, len(X), 3), 1e-4)
    solution = solve(problem, tol=1e-4)
    (minimum,), _ = optimum(problem)
    assert solution.status == "converged"
    assert solution.objective <= minimum * (1 + 2e-4)


@pytest.mark.parametrize("solve", [newton, kernel_cg, exact])
@every_loss
def test_targets_that_cannot_be_fitted_better_are_done_at_once(solve, loss, X):
    """All weights zero: the optimum is zero, found without a step."""
    Y = _targets(loss, len(X), 3)
    solution = solve(Problem(Dense(RBF(), X), loss, Y, 1.0, np.zeros(len(X))))
    assert (solution.status, solution.n_iter, solution.objective) == ("converged", 0, 0.0)
    assert solution.relative_gap == 0.0


@pytest.mark.parametrize("solve", [newton, kernel_cg, exact])
@pytest.mark.parametrize("start", [1e6, np.nan])
def test_a_start_that_is_worse_than_zeros_is_not_used(solve, start, X):
    operator = _operators(X)["input"][0]
    Y = np.stack([_targets(Logistic(), len(X), 3, seed) for seed in range(2)], axis=-1)
    problem = Problem(operator, Logistic(), Y, regularization=[0.3, 0.3])
    cold = solve(problem, tol=1e-9)
    bad = solve(problem, tol=1e-9, start=np.full(problem.shape, start))
    np.testing.assert_allclose(bad.history["objective"], cold.history["objective"])
    # columns are looked at one by one
    mixed = np.where([False, True], cold.coefficients, start)
    warm = solve(problem, tol=1e-9, start=mixed)
    assert warm.n_iter <= cold.n_iter
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-8)


@pytest.mark.parametrize("solve", [newton, exact])
def test_losses_that_are_nearly_zero_do_not_hide_the_last_steps(solve):
    # scores of ±20 are rounded by more than what the last steps gain of a sum of losses of 0.01
    rng = np.random.RandomState(42)
    X, y = rng.rand(45, 30), rng.randint(0, 3, size=45)
    targets = np.eye(3)[y]
    operator = Dense(1e5 * RBF(1.1), X)
    problem = Problem(operator, Softmax(), targets, regularization=1.0)
    solution = solve(problem, tol=1e-17, max_iter=100)
    assert solution.status == "converged"
    assert solution.relative_gap <= 1e-17


@pytest.mark.parametrize("solve", [newton, kernel_cg, exact])
def test_a_tolerance_below_rounding_stalls_with_a_warning(solve, X):
    """Never silently short: float32 cannot reach 1e-30, and the warning says so."""
    X32 = X.astype(np.float32)
    Y = _targets(Softmax(), len(X), 3).astype(np.float32)
    problem = Problem(Dense(RBF(), X32), Softmax(), Y, 0.1)
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        solution = solve(problem, tol=1e-30, max_iter=60)
    assert solution.status in ("stalled", "max_iter")
    (minimum,), _ = optimum(Problem(Dense(RBF(), X), Softmax(), Y.astype(float), 0.1))
    assert solution.objective == pytest.approx(minimum, rel=1e-5)


@every_solver
def test_the_gap_does_not_lie_about_float32(solve, X):
    """The end is verified with U computed afresh, so rounding of the updates cannot hide."""
    Y = _targets(Softmax(), len(X), 3)
    single = Problem(Dense(RBF(), X.astype(np.float32)), Softmax(), Y.astype(np.float32), 0.1)
    double = Problem(Dense(RBF(), X), Softmax(), Y, 0.1)
    solution = solve(single, tol=1e-6)
    A = solution.coefficients.astype(float)[:, :, None]
    U = double.operator @ A
    (minimum,), _ = optimum(double)
    assert double.objective(A, U)[0] - minimum <= solution.gap + 1e-6 * minimum


@every_solver
def test_a_callback_may_look_at_the_coefficients(solve, X):
    seen = []

    def callback(progress: Progress):
        seen.append((progress.iteration, progress.coefficients.copy()))
        return progress.iteration == 2

    problem = Problem(Dense(RBF(), X), Softmax(), _targets(Softmax(), len(X), 3), 0.01)
    solution = solve(problem, tol=1e-12, callback=callback)
    assert [iteration for iteration, _ in seen] == [1, 2]
    assert solution.status == "stopped"
    np.testing.assert_array_equal(solution.coefficients, seen[-1][1])


# --- any array library --------------------------------------------------------------------------


@pytest.mark.parametrize("solve", [newton, kernel_cg])
@every_loss
def test_any_array_library_gives_the_solution_of_numpy(solve, loss, xp, X):
    Y = _targets(loss, len(X), 3)
    weights = np.stack([np.ones(len(X)), (np.arange(len(X)) % 3 > 0).astype(float)], axis=1)
    strengths = np.array([0.1, 1.0])
    expected = solve(_mixed_problem(loss, X, Y, weights, strengths), tol=1e-10)
    arrays = [xp.asarray(a.copy()) for a in (X, Y, weights)]
    found = solve(_mixed_problem(loss, *arrays, strengths), tol=1e-10)
    assert type(found.coefficients) is type(arrays[0])
    assert found.status == "converged"
    assert found.objective == pytest.approx(expected.objective, rel=1e-10)
    assert found.gaps.shape == (2,)
    coefficients = to_numpy(found.coefficients)
    assert coefficients.shape == expected.coefficients.shape
    np.testing.assert_allclose(coefficients, expected.coefficients, atol=1e-4)


def _mixed_problem(loss, X, Y, weights, strengths) -> Problem:
    terms = [
        (Dense(RBF(1.5), X), Diagonal([0.5, 1.0, 2.0])),
        (Streamed(Matern(1.0), X), Scalar(0.5)),
        (Intercept(1.0, Y, X.shape[0]), Identity()),
    ]
    return Problem(LabelMixed(terms), loss, Y, strengths, weights)


def test_exact_needs_numpy(X):
    xp = pytest.importorskip("array_api_strict")
    X, Y = xp.asarray(X.copy()), xp.asarray(_targets(Squared(), len(X), 2))
    with pytest.raises(TypeError, match="solver='newton'"):
        exact(Problem(Dense(RBF(), X), Squared(), Y))


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"targets": np.zeros((5, 2))}, r"targets must have shape \(14, C\)"),
        ({"targets": np.zeros(14)}, "targets must have shape"),
        ({"regularization": 0.0}, "regularization must be positive"),
        ({"regularization": np.nan}, "regularization must be positive"),
        ({"regularization": [1.0, -1.0]}, "regularization must be positive"),
        ({"weights": np.ones(5)}, r"weights must have shape \(14,\)"),
        ({"targets": np.zeros((14, 2, 3)), "regularization": [1.0, 2.0]}, "disagree about q"),
        ({"weights": np.ones((14, 3)), "regularization": [1.0, 2.0]}, "disagree about q"),
    ],
)
def test_bad_problems_are_named(changes, words, X):
    arguments = {"targets": np.zeros((14, 2))} | changes
    with pytest.raises(ValueError, match=words):
        Problem(Dense(RBF(), X), Squared(), **arguments)


@every_solver
@pytest.mark.parametrize("tol", [-1.0, np.nan])
def test_a_negative_tolerance_is_refused(solve, tol, X):
    with pytest.raises(ValueError, match="tol must be >= 0"):
        solve(Problem(Dense(RBF(), X), Squared(), np.zeros((14, 1))), tol=tol)


@every_solver
def test_no_iterations_return_the_start(solve, X):
    problem = Problem(Dense(RBF(), X), Squared(), _targets(Squared(), len(X), 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = solve(problem, max_iter=0)
    assert [w.category for w in caught] == [ConvergenceWarning]
    assert solution.n_iter == 0
    assert not solution.coefficients.any()


def test_the_warning_points_at_the_line_that_asked():
    """Not at a line of gramian or scikit-learn."""
    from gramian import KernelLogisticRegression

    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.warns(ConvergenceWarning) as record:
        KernelLogisticRegression(max_iter=1, tol=1e-12, regularization=1.0).fit(X, X[:, 0] > 0)
    assert record[0].filename == __file__
