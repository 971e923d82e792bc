"""`gaussian_grid`: the inequalities behind its bound one by one, then rows of the matrix itself."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.polynomial import hermite_e
from tree_oracles import (
    PLACES,
    errors,
    exact_matrix,
    make_points,
    repeatable,
    rounding,
    row_error,
    seeds,
)

from gramian.operators.tree_code import gaussian_grid
from gramian.operators.tree_code.gaussian_grid import ORDERS, find_gaussian_grid
from gramian.operators.tree_code.task import Task

pytestmark = pytest.mark.usefixtures("one_thread")


def grid_of(X, Z, length_scale, error, most_work=np.inf):
    return find_gaussian_grid(Task(X, Z, np.asarray(length_scale), "rbf", error), most_work)


def matrix_of(grid):
    return grid.product(np.eye(len(grid.sources.points)))


def spread_of(grid):
    """Largest coordinate in units of ℓ, and what interpolation does to rounding."""
    return float(np.abs(grid.sources.points).max()) + 8.0 ** grid.sources.points.shape[1]


# --- the inequalities ---------------------------------------------------------------------------


def lebesgue_constant(p, t):
    unit = np.cos((np.arange(p) + 0.5) * np.pi / p)
    return np.abs(weights_at(unit, t)).sum(axis=1).max()


def weights_at(unit, t):
    """Lagrange polynomials as products: shares nothing with barycentric weights."""
    columns = []
    for q, node in enumerate(unit):
        others = np.delete(unit, q)
        columns.append(np.prod((t[:, None] - others) / (node - others), axis=1))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("p", ORDERS)
def test_cramers_inequality(p):
    t = np.linspace(0, 30, 20_001)
    values = np.abs(hermite_e.hermeval(t, [0] * p + [1])) * np.exp(-t * t / 4)
    assert 0.5 < values.max() / math.sqrt(math.factorial(p)) <= 1.0865


@pytest.mark.parametrize("p", ORDERS)
def test_lebesgue_constant(p):
    found = lebesgue_constant(p, np.linspace(-1, 1, 4001))
    assert 0.95 < found - 2 / math.pi * math.log(p) <= 1.0


@pytest.mark.parametrize("p", [4, 7, 12, 20])
@pytest.mark.parametrize("h", [0.1, 0.7, 1.5, 3.0])
@pytest.mark.parametrize("apart", [0.0, 0.4, 2.0, 9.0])
def test_error_of_one_feature(p, h, apart):
    """Interpolating exp(−(x − z)²/2) in x and z, on two cells at a distance."""
    unit = np.cos((np.arange(p) + 0.5) * np.pi / p)
    t = np.linspace(-1, 1, 101)
    W, gap = weights_at(unit, t), max(0.0, apart - 2 * h)
    x, z = h * t, apart + h * t
    G = np.exp(-0.5 * np.square(np.subtract.outer(h * unit, apart + h * unit)))
    worst = np.abs(W @ G @ W.T - np.exp(-0.5 * np.square(np.subtract.outer(x, z)))).max()
    assert worst <= gaussian_grid._one_feature_error(p, h) * math.exp(-gap * gap / 4) + 1e-14


@repeatable
@given(st.sampled_from(PLACES), st.integers(1, 300), st.integers(1, 3), st.floats(0.05, 3.0), seeds)
def test_row_sums_of_gaps(place, n, d, h, seed):
    rng = np.random.default_rng(seed)
    points = np.minimum(3 * make_points(place, n, d, rng), 100.0)
    side = gaussian_grid._side(points, h)
    assert np.all(side.half <= h * (1 + 1e-12))
    cells = np.array(np.unravel_index(side.cells, side.shape)).T
    gaps = 2 * side.half * np.maximum(0, np.abs(cells[:, None] - cells) - 1)
    sums = np.exp(-np.square(gaps).sum(axis=2) / 4) @ np.diff(side.starts)
    assert sums.max() <= gaussian_grid._Density(points, points).row_sum(h) * (1 + 1e-9)


# --- the matrix -----------------------------------------------------------------------------------


@repeatable
@given(
    st.sampled_from(PLACES), st.integers(1, 60), st.integers(1, 6), st.floats(-2, 6), st.booleans(), errors, seeds,
)  # fmt: skip
def test_rows_of_the_symmetric_matrix(place, n, d, log_scale, ard, error, seed):
    rng = np.random.default_rng(seed)
    X = make_points(place, n, d, rng)
    length_scale = 10.0**log_scale * (rng.uniform(0.3, 3.0, d) if ard else 1.0)
    grid = grid_of(X, None, length_scale, error, most_work=2.5e8)
    assume(grid is not None)
    K, found = exact_matrix("rbf", X, X, length_scale), matrix_of(grid)
    slack = rounding(K, spread=spread_of(grid))
    assert grid.error_bound <= error
    assert row_error(found, K) <= grid.error_bound + slack
    assert row_error(found, found.T) <= slack


@repeatable
@given(
    st.sampled_from(PLACES), st.integers(1, 40), st.integers(1, 60), st.integers(1, 4), st.floats(-1.5, 4),
    st.sampled_from([0.0, 2.0, 30.0]), errors, seeds,
)  # fmt: skip
def test_rows_of_rectangular_matrices(place, n, m, d, log_scale, away, error, seed):
    rng = np.random.default_rng(seed)
    Z, X = make_points(place, m, d, rng), make_points("random", n, d, rng)
    X[: n // 2] += away
    grid = grid_of(X, Z, 10.0**log_scale, error, most_work=2.5e8)
    assume(grid is not None)
    K = exact_matrix("rbf", X, Z, 10.0**log_scale)
    assert grid.error_bound <= error
    assert row_error(matrix_of(grid), K) <= grid.error_bound + rounding(K, spread=spread_of(grid))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("length_scale", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("error", [1e-3, 1e-9])
def test_there_is_an_error_and_it_is_below_the_bound(d, length_scale, error, rng):
    X = rng.random((150, d))
    grid = grid_of(X, None, length_scale, error)
    K = exact_matrix("rbf", X, X, length_scale)
    assert 1e-8 * error < row_error(matrix_of(grid), K) <= grid.error_bound <= error


def test_nothing_to_summarise(rng):
    """Far apart points, also so many boxes that a matrix of them would fill the memory."""
    for span in (1e5, 1e9, 1e300):
        assert grid_of(np.linspace(0.0, span, 500)[:, None], None, 1.0, 1e-8) is None
    assert grid_of(rng.normal(size=(500, 2)), None, 1e-300, 1e-8) is None


@pytest.mark.parametrize(
    "X", [np.zeros((1, 1)), np.full((300, 3), 5.0), np.array([[0.0, 7.0], [0.0, 9.0]])]
)
@pytest.mark.parametrize("length_scale", [1.0, 1e12])
def test_one_two_and_equal_points(X, length_scale):
    found = matrix_of(grid_of(X, None, length_scale, 1e-8))
    np.testing.assert_allclose(found, exact_matrix("rbf", X, X, length_scale), atol=1e-8)


def test_far_from_the_origin(rng):
    """A large offset costs no more digits than the data themselves have lost."""
    X = 1e8 + rng.random((300, 2))
    grid = grid_of(X, None, 0.1, 1e-10)
    K = exact_matrix("rbf", X, X, 0.1)
    assert row_error(matrix_of(grid), K) <= grid.error_bound + rounding(K, spread=spread_of(grid))


def test_float32_columns_come_back_as_float32(rng):
    X = rng.random((100, 2)).astype(np.float32)
    B = rng.normal(size=(100, 6)).astype(np.float32)
    found = grid_of(X, None, 1.0, 1e-6).product(B)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact_matrix("rbf", X, X, 1.0) @ B, atol=1e-5)


def test_columns_take_turns_in_a_large_grid(rng):
    X = rng.random((3000, 3))
    grid = grid_of(X, None, 0.05, 1e-8)
    n_nodes = math.prod(grid.sources.shape) * grid.rule.unit.size**3
    assert n_nodes > 2 * gaussian_grid.SMALL_NODES
    B = rng.normal(size=(3000, 3))
    tracemalloc.start()
    found = grid.product(B)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 128 * 2**20
    np.testing.assert_allclose(found[:50], exact_matrix("rbf", X[:50], X, 0.05) @ B, atol=1e-7)
