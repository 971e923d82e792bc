"""The quadratic model of a search against SciPy's least squares and against what freed parameters have in common."""

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import lsq_linear

from gramian.selection.quasi_newton import freed, known_curvature, lowest_in_box, updated


def _matrix(p, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(p, p)) * np.exp(spread * rng.normal(size=p))
    return root @ root.T + 0.1 * np.eye(p)


@pytest.mark.parametrize("seed", range(5))
def test_an_update_agrees_with_the_change_of_the_gradient(seed):
    rng, H = np.random.default_rng(seed), _matrix(4, seed)
    step = rng.normal(size=4)
    np.testing.assert_allclose(updated(np.eye(4), step, H @ step) @ step, H @ step)


@pytest.mark.parametrize("seed", range(5))
def test_a_model_stays_convex_where_the_function_bends_down(seed):
    rng, B = np.random.default_rng(seed), _matrix(3, seed)
    step = rng.normal(size=3)
    after = updated(B, step, -3 * step)
    assert np.linalg.eigvalsh(after)[0] > 0
    np.testing.assert_allclose(step @ after @ step, 0.2 * step @ B @ step)


def test_a_step_of_length_zero_changes_nothing():
    np.testing.assert_array_equal(updated(np.eye(2), np.zeros(2), np.ones(2)), np.eye(2))


@pytest.mark.parametrize("p, spread", [(1, 0.0), (2, 1.0), (6, 1.0), (12, 2.0)])
def test_the_lowest_point_in_a_box(p, spread):
    """SciPy's bounded least squares on the Cholesky factor."""
    rng, B = np.random.default_rng(p), _matrix(p, p, spread)
    gradient = B @ rng.normal(size=p)
    low, high = -rng.random(p), rng.random(p)
    low[0] = 0.0  # at a bound
    step, fall = lowest_in_box(B, gradient, low, high)
    R = cholesky(B)
    target = -solve_triangular(R, gradient, trans="T")
    expected = lsq_linear(R, target, (low, high), method="bvls", tol=1e-14).x
    np.testing.assert_allclose(step, expected, atol=1e-5)
    np.testing.assert_allclose(fall, -(gradient @ expected + 0.5 * expected @ B @ expected))


@pytest.mark.parametrize("tied", [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0, 1]])
def test_freed_parameters_have_the_curvature_of_the_common_ones_together(tied):
    tied = np.array(tied)
    B = _matrix(2, 0)
    together = np.eye(2)[tied]
    each = freed(B, tied)
    np.testing.assert_allclose(together.T @ each @ together, B)
    assert np.linalg.eigvalsh(each)[0] > 0


def test_curvature_is_known_of_the_same_variables_or_of_common_ones():
    common, own = np.array([0, 0, 1]), np.array([0, 1, 2])
    B = _matrix(2, 1)
    np.testing.assert_array_equal(known_curvature({tuple(common): B}, common), B)
    np.testing.assert_array_equal(known_curvature({tuple(common): B}, own), freed(B, common))
    assert known_curvature({tuple(own): np.eye(3)}, common) is None
