"""What `near_cells` leaves out: rows of the matrix itself, against the bound; symmetry; extreme inputs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_oracles import (
    PLACES,
    PROFILES,
    errors,
    exact_matrix,
    make_points,
    repeatable,
    rounding,
    row_error,
    seeds,
)

from gramian.operators.compiled.radial import PROFILES as PARAMETERS
from gramian.operators.tree_code import near_cells
from gramian.operators.tree_code.near_cells import find_near_cells
from gramian.operators.tree_code.task import Task

pytestmark = pytest.mark.usefixtures("one_thread")


def near(X, Z, length_scale, profile, error, dtype=np.float64, most_pairs=np.inf):
    task = Task(X, Z, np.asarray(length_scale), profile, error, dtype)
    return find_near_cells(task, most_pairs)


def matrix_of(cells, dtype=np.float64):
    """The matrix that is multiplied with, by its columns."""
    return cells.product(np.eye(cells.lists.Z.shape[1], dtype=dtype)).astype(np.float64)


@repeatable
@given(
    st.sampled_from(PROFILES), st.sampled_from(PLACES), st.integers(1, 250), st.integers(1, 6),
    st.floats(-6, 4), errors, st.sampled_from([np.float32, np.float64]), seeds,
)  # fmt: skip
def test_rows_of_the_symmetric_matrix(profile, place, n, d, log_scale, error, dtype, seed):
    X = make_points(place, n, d, np.random.default_rng(seed)).astype(dtype)
    cells = near(X, None, 10.0**log_scale, profile, error, dtype)
    K, found = exact_matrix(profile, X, X, 10.0**log_scale), matrix_of(cells, dtype)
    assert cells.error_bound <= error
    assert row_error(found, K) <= cells.error_bound + rounding(K, dtype)
    np.testing.assert_allclose(found, found.T, rtol=1e-5 if dtype == np.float32 else 1e-13, atol=0)
    assert cells.n_pairs <= n * n


@repeatable
@given(
    st.sampled_from(PROFILES), st.sampled_from(PLACES), st.integers(1, 100), st.integers(1, 150),
    st.integers(1, 6), st.floats(-5, 3), st.sampled_from([0.0, 3.0, 1e3, 1e7]), st.booleans(), errors, seeds,
)  # fmt: skip
def test_rows_of_rectangular_matrices(profile, place, n, m, d, log_scale, away, ard, error, seed):
    rng = np.random.default_rng(seed)
    Z, X = make_points(place, m, d, rng), make_points("random", n, d, rng)
    X[: n // 2] += away
    length_scale = 10.0**log_scale * (rng.uniform(0.3, 3.0, d) if ard else 1.0)
    cells = near(X, Z, length_scale, profile, error)
    K = exact_matrix(profile, X, Z, length_scale)
    spread = np.abs((Z - Z.mean(axis=0)) / length_scale).max() if ard else 0.0
    assert cells.error_bound <= error
    assert row_error(matrix_of(cells), K) <= cells.error_bound + rounding(K, spread=spread)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("error", [1e-3, 1e-8])
def test_something_is_left_out(profile, error, rng):
    """A bound that holds because nothing is left out would show nothing."""
    X = rng.random((1500, 2))
    cells = near(X, None, 0.01, profile, error)
    K, found = exact_matrix(profile, X, X, 0.01), matrix_of(cells)
    assert cells.n_pairs < 0.5 * K.size
    assert 1e-8 * error < row_error(found, K) <= cells.error_bound <= error
    np.testing.assert_allclose(found, found.T, rtol=1e-13, atol=0)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_ring_that_a_few_leaves_do_not_show(profile, monkeypatch, rng):
    """The leaf that is looked at first is far from everything; one other has 600 points around it."""
    monkeypatch.setattr(near_cells, "SAMPLE_LEAVES", 1)
    ring = rng.normal(size=(600, 2))
    ring /= np.linalg.norm(ring, axis=1, keepdims=True)
    far = -1e3 * np.arange(1, 101)[:, None] * np.ones((1, 2))
    X = np.concatenate([0.001 * rng.normal(size=(30, 2)), 5.0 * ring, far])
    reach = near_cells._reach(PARAMETERS[profile], 1e-6)  # where one point is worth the error
    cells = near(X, None, 4.9 / reach, profile, 1e-6)
    K = exact_matrix(profile, X, X, 4.9 / reach)
    assert row_error(matrix_of(cells), K) <= cells.error_bound + rounding(K)
    assert cells.error_bound <= 1e-6
    assert K[:30, 30:630].sum(axis=1).min() > 1e-5


def test_gives_up_where_there_are_too_many(rng):
    X = rng.random((500, 2))
    assert near(X, None, 10.0, "rbf", 1e-6, most_pairs=0.9 * 500**2) is None
    narrow = near(X, None, 0.01, "rbf", 1e-6)
    assert near(X, None, 0.01, "rbf", 1e-6, most_pairs=narrow.n_pairs) is not None
    assert near(X, None, 0.01, "rbf", 1e-6, most_pairs=narrow.n_pairs - 1) is None


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length_scale", [1e-100, 1e-30, 1e-12, 1e12, 1e30, 1e100])
def test_extreme_length_scales(profile, dtype, length_scale, rng):
    X = rng.normal(size=(60, 2)).astype(dtype)
    found = matrix_of(near(X, None, length_scale, profile, 1e-8, dtype), dtype)
    np.testing.assert_allclose(found, np.eye(60) if length_scale < 1 else 1.0, atol=1e-6)


@pytest.mark.parametrize("profile", PROFILES)
def test_distances_that_overflow(profile, rng):
    cells = near(1e60 * rng.normal(size=(60, 2)), None, 1e-100, profile, 1e-8)
    np.testing.assert_array_equal(matrix_of(cells), np.eye(60))
    assert cells.error_bound == 0.0


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "X", [np.zeros((1, 1)), np.zeros((300, 3)), np.array([[0.0, 7.0], [0.0, 9.0]])]
)
def test_one_two_and_equal_points(profile, X):
    found = matrix_of(near(X, None, 1.0, profile, 1e-8))
    np.testing.assert_allclose(found, exact_matrix(profile, X, X, 1.0), atol=1e-8)


@pytest.mark.parametrize("ard", [False, True])
def test_far_from_the_origin(ard, rng):
    """A large offset costs no more digits than the data themselves have lost."""
    X = 1e8 + rng.random((300, 2))
    length_scale = np.array([0.02, 0.03]) if ard else 0.02
    K = exact_matrix("rbf", X, X, length_scale)
    cells = near(X, None, length_scale, "rbf", 1e-10)
    assert row_error(matrix_of(cells), K) <= cells.error_bound + rounding(
        K, spread=50.0 if ard else 0.0
    )
    assert cells.n_pairs < 0.7 * K.size


def test_bytes_are_counted(rng):
    X = rng.random((400, 2))
    symmetric, cross = near(X, None, 0.01, "rbf", 1e-6), near(X[:300], X, 0.01, "rbf", 1e-6)
    arrays = (cross.target_order, cross.source_order, *cross.lists)
    assert cross.nbytes == sum(a.nbytes for a in arrays)
    assert symmetric.nbytes < cross.nbytes + 8 * 1000
