"""Low-rank Gram operators: against the dense Nyström formula, exact cases, precision, and what is refused."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from oracles import KERNELS, gram, kernel_id, kernel_value

from gramian.kernels import RBF, Linear, Matern, Precomputed, White
from gramian.labels import Diagonal, Identity
from gramian.losses import Logistic
from gramian.operators import (
    Dense,
    Intercept,
    LabelMixed,
    LowRank,
    choose_operator,
    cross_operator,
)
from gramian.operators.choose import default_rank
from gramian.operators.compiled import pivoted_cholesky
from gramian.operators.inputs import low_rank
from gramian.selection import CrossValidationCriterion, fold_masks
from gramian.solvers import Problem, newton
from gramian.testing import check_operator
from gramian.testing._clauses import close, numerical_gradient

pytestmark = pytest.mark.usefixtures("one_thread")
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)
every_rule = pytest.mark.parametrize("pivots", pivoted_cholesky.PIVOTS)
corrected = pytest.mark.parametrize("diagonal", [True, False], ids=["exact-diagonal", "plain"])


def dense_form(operator, kernel, X, X_new):
    """M̃ and its prediction form, by the formula."""
    active = X[operator.indices]
    C, inverse = gram(kernel, X, active), np.linalg.pinv(gram(kernel, active, active))
    M = C @ inverse @ C.T
    full = np.array([kernel_value(kernel, x, x, True) for x in X])
    noiseless = np.array([kernel_value(kernel, x, x, False) for x in X])
    M += np.diag(full - (np.diag(M) if operator.diagonal_correction else noiseless))
    return M, gram(kernel, X_new, active) @ inverse @ C.T


def predicted(operator, X_new, B):
    """Values at new examples, by way of the active set: what estimators do."""
    rows, W = operator.compress(B)
    return cross_operator(operator.kernel, X_new, rows) @ W


def check_predictions(operator, X_new, cross, precision=1e-9):
    """Predictions are products with the matrix ``cross``, for one function and for several."""
    for columns in ((3,), (3, 1), (3, 2)):
        B = np.random.default_rng(0).normal(size=(operator.shape[0], *columns))
        close(predicted(operator, X_new, B), np.tensordot(cross, B, axes=1), precision)


@pytest.fixture
def small_tiles(monkeypatch):
    """Blocks of a few rows, so that small data have many of them."""
    monkeypatch.setattr(low_rank, "TILE_BYTES", 300)
    monkeypatch.setattr(low_rank, "DIAGONAL_BLOCK", 4)
    monkeypatch.setattr(pivoted_cholesky, "BLOCK", 3)


# --- the contract -------------------------------------------------------------------------------


@every_kernel
def test_it_is_the_nystrom_formula(kernel, X, X_new, small_tiles):
    every = [(np.float64, True), (np.float64, False), (np.float32, True)]
    dtype, diagonal = every[KERNELS.index(kernel) % 3]
    X, X_new = X.astype(dtype), X_new.astype(dtype)
    kernel = kernel.resolve(X)
    operator = LowRank(kernel, X, 5, diagonal=diagonal, random_state=0)
    M, cross = dense_form(operator, kernel, X.astype(float), X_new.astype(float))
    check_operator(operator, M)
    check_predictions(operator, X_new, cross, 2e-5 if dtype == np.float32 else 1e-9)
    np.testing.assert_allclose(operator.to_dense(), M, rtol=0, atol=3e-6 * np.abs(M).max())


@pytest.mark.parametrize("kernel", KERNELS[3::3], ids=kernel_id)
@corrected
def test_it_takes_sparse_arrays(kernel, diagonal, X, X_new):
    kernel = kernel.resolve(X)
    operator = LowRank(kernel, sp.csr_array(X), 5, diagonal=diagonal, random_state=0)
    M, cross = dense_form(operator, kernel, X, X_new)
    check_operator(operator, M)
    check_predictions(operator, sp.csr_array(X_new), cross)


@every_rule
def test_every_rule_of_pivots(pivots, X, X_new):
    kernel = RBF(1.0) + White(0.2)
    operator = LowRank(kernel, X, 6, pivots=pivots, random_state=0)
    M, cross = dense_form(operator, kernel, X, X_new)
    check_operator(operator, M)
    check_predictions(operator, X_new, cross)


def test_labels_go_with_it(X):
    operator = LowRank(RBF(1.0), X, 5, random_state=0)
    M, _ = dense_form(operator, RBF(1.0), X, X)
    v = np.array([0.5, 2.0])
    mixed = LabelMixed([(operator, Diagonal(v)), (Intercept(3.0, X, len(X)), Identity())])
    dense = np.kron(np.diag(v), M) + np.kron(np.eye(2), np.full(M.shape, 3.0))
    check_operator(mixed, dense)


@corrected
def test_columns(diagonal, X):
    operator = LowRank(RBF(1.0) + White(0.1), X, 5, diagonal=diagonal, random_state=0)
    chosen = np.array([7, 0, 12])
    np.testing.assert_allclose(operator.columns(chosen), operator.to_dense()[:, chosen], atol=1e-12)


# --- exact cases --------------------------------------------------------------------------------


@every_rule
@pytest.mark.parametrize("kernel", [RBF(1.0), 3.0 * Matern(0.8) + White(0.3), Linear()])
def test_all_examples_give_the_matrix_itself(pivots, kernel, X, X_new):
    operator = LowRank(kernel, X, len(X), pivots=pivots, random_state=0)
    exact = Dense(kernel, X)
    B = np.random.default_rng(0).normal(size=(len(X), 2))
    np.testing.assert_allclose(operator @ B, exact @ B, atol=1e-8)
    expected = cross_operator(kernel, X_new, X) @ B
    np.testing.assert_allclose(predicted(operator, X_new, B), expected, atol=1e-8)
    np.testing.assert_allclose(operator.vjp(B, 2 * B), exact.vjp(B, 2 * B), atol=1e-8)


def test_a_linear_kernel_has_the_rank_of_its_features(X):
    operator = LowRank(Linear(), X, 10, diagonal=False, random_state=0)
    assert operator.rank == 3
    np.testing.assert_allclose(operator.to_dense(), X @ X.T, atol=1e-12)


def test_duplicates_do_no_harm(X, X_new):
    twice = np.concatenate([X, X, X])
    operator = LowRank(RBF(1.0), twice, 40, random_state=0)
    assert operator.rank == len(X)
    np.testing.assert_allclose(operator.to_dense(), RBF(1.0)(twice), atol=1e-10)


def test_white_noise_alone_is_a_diagonal(X, X_new):
    operator = LowRank(White(0.3), X, 5)
    np.testing.assert_array_equal(operator.to_dense(), 0.3 * np.eye(len(X)))
    assert not predicted(operator, X_new, np.ones((len(X), 1))).any()


@corrected
def test_white_noise_takes_no_part_in_the_choice(diagonal, X):
    quiet, noisy = (
        LowRank(kernel, X, 5, diagonal=diagonal, random_state=3)
        for kernel in (RBF(1.0), RBF(1.0) + White(0.4))
    )
    np.testing.assert_array_equal(quiet.active, noisy.active)
    np.testing.assert_allclose(
        noisy.to_dense() - quiet.to_dense(), 0.4 * np.eye(len(X)), atol=1e-12
    )


# --- the active set -----------------------------------------------------------------------------


def test_copies_keep_the_active_set(X):
    operator = LowRank(RBF(0.5), X, 6, random_state=0)
    copy = operator.clone_with_theta(np.log([2.0])).clone_with_theta(np.log([0.8]))
    np.testing.assert_array_equal(copy.active, operator.active)
    np.testing.assert_allclose(copy.to_dense(), dense_form(copy, RBF(0.8), X, X)[0], atol=1e-10)


def test_examples_that_become_dependent_are_left_out_and_come_back(X):
    operator = LowRank(RBF(0.5), X, 14, random_state=0)
    flat = operator.clone_with_theta(np.log([3e4]))
    assert flat.rank < 14
    assert np.isfinite(flat.to_dense()).all()
    np.testing.assert_allclose(flat.to_dense(), RBF(3e4)(X), atol=1e-12)
    back = flat.clone_with_theta(np.log([0.5]))
    assert back.rank == 14
    np.testing.assert_allclose(back.to_dense(), RBF(0.5)(X), atol=1e-10)


def test_a_function_on_the_active_set(X, X_new):
    operator = LowRank(RBF(1.0), X, 5, random_state=0)
    A = np.random.default_rng(0).normal(size=(len(X), 2, 3))
    rows, W = operator.compress(A)
    assert W.shape == (5, 2, 3)
    np.testing.assert_array_equal(rows, X[operator.active])
    found = np.tensordot(RBF(1.0)(X_new, rows), W, axes=1)
    expected = np.tensordot(dense_form(operator, RBF(1.0), X, X_new)[1], A, axes=1)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    everything, same = Dense(RBF(1.0), X).compress(A)
    assert everything is None
    assert same is A


# --- precision ----------------------------------------------------------------------------------


def test_float32_is_not_lost_to_the_condition_number(rng):
    """The active set's matrix has a condition number of 1e12: far beyond float32."""
    X = rng.normal(size=(300, 2)).astype(np.float32)
    kernel, B = RBF(4.0), rng.normal(size=(300, 2))
    single = LowRank(kernel, X, 40, random_state=0)
    double = LowRank(kernel, X.astype(float), 40, random_state=0)
    assert np.linalg.cond(kernel(X[double.indices].astype(float))) > 1e12
    np.testing.assert_array_equal(single.indices, double.indices)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.to_dense(), double.to_dense(), atol=2e-6)
    scale = np.abs(double.to_dense()) @ np.abs(B)
    assert (np.abs(single @ B - double @ B) <= 1e-5 * scale).all()
    # as close as the rounded factor is; float32 sums would be off by more
    rounded = single.to_dense().astype(float) @ B
    assert np.abs(single.accurate(B) - rounded).max() < 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
def test_peak_memory(dtype, rng, monkeypatch):
    """Building takes the factor in float64 and a few blocks on top of what stays, all else a few tiles."""
    n, rank, block = 40_000, 30, 2**20
    monkeypatch.setattr(pivoted_cholesky, "BLOCK_BYTES", block)
    monkeypatch.setattr(low_rank, "TILE_BYTES", block)
    X = rng.normal(size=(n, 5)).astype(dtype)
    B = rng.normal(size=(n, 2))
    warm = LowRank(RBF(2.0), X, 10, random_state=0)
    for product in (warm.__matmul__, warm.accurate):
        product(B)  # compiles
    peaks = {}

    def measured(name, action):
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        result = action()
        peaks[name] = tracemalloc.get_traced_memory()[1] - before
        return result

    tracemalloc.start()
    try:
        operator = measured("build", lambda: LowRank(RBF(2.0), X, rank, random_state=0))
        measured("product", lambda: operator @ B)
        measured("accurate", lambda: operator.accurate(B))
        measured("gradient", lambda: operator.vjp(B, B))
    finally:
        tracemalloc.stop()
    assert operator.rank == rank
    vectors = 8 * n * 2
    assert (
        peaks["build"] < 8 * n * rank + (operator.nbytes if dtype == np.float32 else 0) + 8 * block
    )
    assert peaks["product"] < 4 * vectors
    assert peaks["accurate"] < 4 * vectors + 4 * block
    assert peaks["gradient"] < 4 * vectors + 8 * block


def test_bytes(X):
    operator = LowRank(RBF(1.0), X, 5, random_state=0)
    assert operator.nbytes == 8 * (5 * 14 + 25 + 14)


# --- cross-validation ---------------------------------------------------------------------------


@corrected
def test_the_gradient_of_the_criterion(diagonal, rng):
    X = rng.normal(size=(40, 2))
    y = (X[:, :1] * X[:, 1:] > 0).astype(float)
    kernel = RBF([1.0, 1.5]) + White(0.05)
    operator = LabelMixed(
        [
            (LowRank(kernel, X, 8, diagonal=diagonal, random_state=0), Identity()),
            (Intercept(1.0, y, 40), Identity()),
        ]
    )
    problem = Problem(operator, Logistic(), y, 0.1)
    criterion = CrossValidationCriterion(problem, *fold_masks(4, X, y[:, 0], classifier=True))
    theta = operator.theta
    _, gradient = criterion(theta, tol=1e-13)
    expected = numerical_gradient(lambda t: criterion(t, tol=1e-13)[0], theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-7)


def test_held_out_examples_are_predicted_as_new_ones(rng):
    """The exact diagonal belongs to examples that train, so it is not seen by the others."""
    X = rng.normal(size=(30, 2))
    y = (X[:, :1] > 0).astype(float)
    operator = LowRank(RBF(1.0), X, 6, diagonal=True, random_state=0)
    weights = np.ones(30)
    weights[:8] = 0
    solution = newton(Problem(operator, Logistic(), y, 0.1, weights), tol=1e-12)
    rows, W = operator.compress(solution.coefficients)
    predicted = RBF(1.0)(X[:8], rows) @ W
    np.testing.assert_allclose(solution.latent[:8], predicted, atol=1e-6)


# --- the choice ---------------------------------------------------------------------------------


def test_it_may_be_asked_for(X):
    operator, record = choose_operator(RBF(), X, "low_rank", rank=4, random_state=0)
    assert isinstance(operator, LowRank)
    assert operator.rank == 4
    assert record.name == "low_rank"
    assert record.reason == "asked for, rank 4 of 14"
    assert record.nbytes == operator.nbytes


def test_a_rank_is_consent_where_the_matrix_does_not_fit(X):
    assert choose_operator(RBF(), X, rank=4)[1].name == "dense"
    with sklearn.config_context(working_memory=1e-4):
        assert choose_operator(RBF(), X, rank=4)[1].name == "low_rank"
        assert choose_operator(RBF(), X)[1].name != "low_rank"
        assert choose_operator(RBF(), X, rank=4, copies=2)[1].name != "low_rank"
        xp = pytest.importorskip("array_api_strict")
        assert choose_operator(RBF(), xp.asarray(X), rank=4)[1].name == "streamed"


def test_the_default_rank_fits_the_memory():
    assert default_rank(50) == 50
    assert default_rank(5000) == 1000
    with sklearn.config_context(working_memory=8):
        assert default_rank(5000) == 4 * 2**20 // (8 * 5000)
        assert default_rank(10**9) == 1


# --- what is refused ----------------------------------------------------------------------------


def test_bad_input_is_named(X):
    with pytest.raises(ValueError, match="rank must be a whole number >= 1"):
        LowRank(RBF(), X, 0)
    with pytest.raises(ValueError, match="pivots must be one of"):
        LowRank(RBF(), X, 3, pivots="best")
    with pytest.raises(ValueError, match="precomputed"):
        LowRank(Precomputed(), X @ X.T, 3)


def test_other_array_libraries_are_refused(X):
    xp = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match="needs a NumPy or a sparse array"):
        LowRank(RBF(), xp.asarray(X), 3)
