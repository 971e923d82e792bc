"""Partial Cholesky factors: against the textbook loop, the law of random pivots, and what is refused."""

import numpy as np
import pytest

from gramian.kernels import RBF, Linear
from gramian.operators.compiled import pivoted_cholesky as module
from gramian.operators.compiled.pivoted_cholesky import PIVOTS, pivoted_cholesky

every_rule = pytest.mark.parametrize("pivots", PIVOTS)
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])


def factored(M, rank, **options):
    return pivoted_cholesky(lambda indices: M[:, indices], np.diag(M), rank, **options)


def textbook(M, rank):
    """Greedy pivots one by one."""
    left, pivots = M.copy(), []
    for _ in range(rank):
        i = int(np.argmax(np.diag(left)))
        pivots.append(i)
        left = left - np.outer(left[:, i], left[i]) / left[i, i]
    return np.array(pivots)


@pytest.fixture
def M(rng):
    """Positive definite, with a diagonal that is not constant."""
    X, scale = rng.normal(size=(150, 3)), 1 + rng.random(150)
    return RBF(1.2)(X) * np.outer(scale, scale)


# --- the factor ---------------------------------------------------------------------------------


@every_rule
@both_dtypes
@pytest.mark.parametrize("rank", [1, 7, 100])
def test_the_factor_is_the_nystrom_approximation(pivots, dtype, rank, M):
    found = factored(M.astype(dtype), rank, pivots=pivots, random_state=0)
    L, active = found.factor.astype(float), found.indices
    precision = 1e-4 if dtype == np.float32 else 1e-10
    assert found.factor.dtype == dtype
    assert found.factor.shape == (150, rank)
    assert np.unique(active).size == rank
    assert not np.triu(L[active], 1).any(), "L[I] is not lower triangular."
    np.testing.assert_allclose(L[active] @ L[active].T, M[np.ix_(active, active)], atol=precision)
    np.testing.assert_allclose(L @ L[active].T, M[:, active], atol=precision)
    nystrom = M[:, active] @ np.linalg.solve(M[np.ix_(active, active)], M[active])
    loose = 100 * precision  # columns in float32 do not determine more
    np.testing.assert_allclose(L @ L.T, nystrom, atol=loose)
    assert found.residual.dtype == np.float64
    assert (found.residual >= 0).all()
    np.testing.assert_allclose(found.residual, np.diag(M - nystrom), atol=loose)


@every_rule
def test_all_pivots_give_the_matrix(pivots, M):
    found = factored(M, 10_000, pivots=pivots, random_state=0)
    assert found.factor.shape == (150, 150)
    np.testing.assert_allclose(found.factor @ found.factor.T, M, atol=1e-12)
    assert not found.residual.any()


@every_rule
@pytest.mark.parametrize("block", [1, 5, 64])
def test_the_size_of_a_block_does_not_matter(pivots, block, M, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    found = factored(M, 40, pivots=pivots, random_state=0)
    L, active = found.factor, found.indices
    np.testing.assert_allclose(L @ L[active].T, M[:, active], atol=1e-12)
    if pivots == "greedy":
        np.testing.assert_array_equal(active, textbook(M, 40))


@every_rule
def test_few_bytes_mean_few_columns_at_a_time(pivots, M, monkeypatch):
    asked = []

    def columns(indices):
        asked.append(len(indices))
        return M[:, indices]

    monkeypatch.setattr(module, "BLOCK_BYTES", 3 * 8 * 150)
    pivoted_cholesky(columns, np.diag(M), 20, pivots=pivots, random_state=0)
    assert max(asked) == 3


# --- which pivots -------------------------------------------------------------------------------


def test_greedy_pivots_are_those_of_the_textbook(M):
    np.testing.assert_array_equal(factored(M, 60, pivots="greedy").indices, textbook(M, 60))


def test_given_pivots_are_taken_in_order(M):
    given = np.array([5, 90, 3, 70])
    found = factored(M, 4, pivots=given)
    np.testing.assert_array_equal(found.indices, given)
    assert factored(M, 2, pivots=given).indices.tolist() == [5, 90]


@pytest.mark.parametrize("block", [1, 4])
def test_random_pivots_follow_the_residual(block, monkeypatch):
    """Frequencies of ordered pairs of pivots: diagonal / trace, then residual / its trace."""
    monkeypatch.setattr(module, "BLOCK", block)
    root = np.array([[2.0, 0, 0], [1.5, 0.5, 0], [0.3, 0.2, 1.0]])
    M, count = root @ root.T, 1500
    expected = np.zeros((3, 3))
    for i in range(3):
        left = np.diag(M - np.outer(M[:, i], M[i]) / M[i, i]).clip(0)
        left[i] = 0
        expected[i] = M[i, i] / np.trace(M) * left / left.sum()
    state, found = np.random.RandomState(0), np.zeros((3, 3))
    for _ in range(count):
        first, second = factored(M, 2, random_state=state).indices
        found[first, second] += 1
    error = np.sqrt(expected * (1 - expected) / count)
    assert (np.abs(found / count - expected) <= 4 * error + 1e-12).all()


def test_uniform_pivots_do_not_look_at_the_diagonal():
    M = np.diag([1000.0, 1.0, 1.0, 1.0])
    state = np.random.RandomState(0)
    counts = np.zeros(4)
    for _ in range(1000):
        counts[factored(M, 1, pivots="uniform", random_state=state).indices[0]] += 1
    assert (np.abs(counts / 1000 - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 1000)).all()


@pytest.mark.parametrize("pivots", ["random", "uniform"])
def test_a_seed_fixes_the_pivots(pivots, M):
    first, again, other = (
        factored(M, 20, pivots=pivots, random_state=seed).indices for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


# --- where it stops -----------------------------------------------------------------------------


@every_rule
def test_a_linear_kernel_needs_as_many_pivots_as_features(pivots, rng):
    M = Linear()(rng.normal(size=(200, 5)))
    found = factored(M, 50, pivots=pivots, random_state=0)
    assert found.indices.size == 5
    np.testing.assert_allclose(found.factor @ found.factor.T, M, atol=1e-12)


@every_rule
@both_dtypes
def test_duplicates_are_no_pivots(pivots, dtype, rng):
    X = np.tile(rng.normal(size=(20, 2)), (4, 1)).astype(dtype)
    M = RBF(0.2)(X)
    found = factored(M, 80, pivots=pivots, random_state=0)
    assert np.unique(found.indices % 20).size == found.indices.size <= 20
    np.testing.assert_allclose(found.factor @ found.factor.T, M, atol=1e-5)


@every_rule
@pytest.mark.parametrize("tol", [0.5, 0.05, 0.001])
def test_the_tolerance_is_met_and_not_exceeded(pivots, tol, M):
    found = factored(M, 150, pivots=pivots, tol=tol, random_state=0)
    L, trace = found.factor, np.trace(M)
    assert trace - np.sum(L**2) <= tol * trace * (1 + 1e-12)
    assert trace - np.sum(L[:, :-1] ** 2) > tol * trace
    np.testing.assert_allclose(found.residual, np.diag(M - L @ L.T), atol=1e-12)


@every_rule
def test_nothing_to_factor(pivots):
    found = factored(np.zeros((6, 6)), 3, pivots=pivots)
    assert found.factor.shape == (6, 0)
    assert found.indices.shape == (0,)


@every_rule
def test_some_zeros_on_the_diagonal(pivots):
    found = factored(np.diag([0.0, 2.0, 0.0, 1.0]), 4, pivots=pivots, random_state=0)
    assert sorted(found.indices) == [1, 3]


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rank": 0}, ValueError, "rank must be a whole number >= 1"),
        ({"rank": 2.5}, TypeError, "rank must be a whole number >= 1"),
        ({"rank": True}, TypeError, "rank must be a whole number >= 1"),
        ({"pivots": "best"}, ValueError, "pivots must be one of 'greedy', 'random', 'uniform'"),
        ({"pivots": [0.5]}, ValueError, "array of whole numbers"),
        ({"pivots": [0, 3]}, ValueError, "different numbers from 0 to 2"),
        ({"pivots": [1, 1]}, ValueError, "different numbers from 0 to 2"),
        ({"tol": -0.1}, ValueError, "tol must be a number from 0 to 1"),
        ({"tol": "small"}, ValueError, "tol must be a number from 0 to 1"),
        ({"diagonal": [1.0, -1.0, 1.0]}, ValueError, "diagonal must be finite and not negative"),
        ({"diagonal": [1.0, np.nan, 1.0]}, ValueError, "diagonal must be finite and not negative"),
        ({"diagonal": np.eye(3)}, ValueError, r"diagonal must have shape \(n,\)"),
    ],
)
def test_bad_arguments_are_named(options, error, message):
    M = np.eye(3)
    arguments = {"columns": lambda i: M[:, i], "diagonal": np.ones(3), "rank": 2} | options
    with pytest.raises(error, match=message):
        pivoted_cholesky(**arguments)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (lambda i: np.ones((2, len(i))), ValueError, "columns must return an array of shape"),
        (lambda i: np.ones((3, len(i)), dtype=int), TypeError, "float32 or float64"),
        (lambda i: np.full((3, len(i)), np.nan), ValueError, "not finite"),
    ],
)
def test_bad_columns_are_named(columns, error, message):
    with pytest.raises(error, match=message):
        pivoted_cholesky(columns, np.ones(3), 2)
