"""Gram matrices from stored distances, and the arrays they are written to."""

import gc

import numpy as np
import pytest

from gramian.kernels import RBF, Laplacian, Matern
from gramian.operators import Dense
from gramian.operators.inputs.distances import Distances


@pytest.mark.parametrize(
    "kernel", [RBF(0.7), *(Matern(0.7, nu=nu) for nu in (0.5, 1.5, 2.5)), Laplacian(0.7)], ids=repr
)
@pytest.mark.parametrize(("dtype", "error"), [(None, 1e-12), (np.float32, 2e-6)])
def test_matrices_are_those_of_the_kernel(kernel, dtype, error, rng):
    """In single precision, too: distances far from the origin are computed in double precision first."""
    X = 1000.0 + rng.normal(size=(40, 3))
    operator = Dense(kernel, X, Distances(X, dtype, kernel.metric))
    assert operator.matrix.dtype == operator.dtype == (dtype or np.float64)
    np.testing.assert_allclose(operator.matrix, kernel(X), atol=error)


def test_an_array_is_taken_again_when_nobody_holds_it(rng):
    distances = Distances(rng.normal(size=(20, 2)))
    first = distances.gram(RBF(1.0))
    address = first.ctypes.data
    second = distances.gram(RBF(2.0))
    assert second.ctypes.data != address
    del first
    gc.collect()
    third = distances.gram(RBF(3.0))
    assert third.ctypes.data == address
    np.testing.assert_allclose(second, RBF(2.0)(distances.X))


def test_a_part_of_a_matrix_keeps_its_array(rng):
    """Otherwise the next matrix would be written over it."""
    distances = Distances(rng.normal(size=(20, 2)))
    matrix = distances.gram(RBF(1.0))
    part, diagonal = matrix[:3], np.linalg.diagonal(matrix)
    expected = part.copy()
    del matrix
    gc.collect()
    distances.gram(RBF(0.1))
    np.testing.assert_array_equal(part, expected)
    np.testing.assert_array_equal(diagonal, np.ones(20))


def test_a_matrix_that_is_not_used_is_not_computed(rng):
    operator = Dense(RBF(1.0), rng.normal(size=(20, 2)))
    other = operator.clone_with_theta(np.zeros(1))
    assert "matrix" not in vars(operator)
    assert other.nbytes == 20 * 20 * 8
    assert "matrix" not in vars(other)
