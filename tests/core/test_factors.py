"""Diagonals that are raised no more than rounding asks for."""

import numpy as np
import pytest
from scipy.linalg import cholesky

from gramian._core.factors import raise_diagonal


def factor_of(matrix, tried):
    def attempt(more):
        tried.append(more)
        return cholesky(matrix + more * np.eye(len(matrix)), lower=True, check_finite=False)

    return attempt


def test_definite_matrices_are_left_alone():
    tried = []
    found = raise_diagonal(factor_of(np.eye(3), tried), 1.0, 3, np.dtype(float))
    np.testing.assert_array_equal(found, np.eye(3))
    assert tried == [0.0]


def test_singular_matrices_are_raised_by_rounding_errors():
    tried = []
    matrix = np.ones((20, 20)) - 1e-13 * np.eye(20)
    found = raise_diagonal(factor_of(matrix, tried), 1.0, 20, np.dtype(float))
    assert tried[-1] < 1e-11
    np.testing.assert_allclose(found @ found.T, matrix, atol=1e-11)


def test_values_that_are_not_finite_end_soon():
    """Each attempt costs n³ operations: there are few, and the error says what is wrong."""
    matrix, tried = np.eye(3), []
    matrix[1, 0] = matrix[0, 1] = np.inf
    with pytest.raises(ValueError, match="values that are not finite"):
        raise_diagonal(factor_of(matrix, tried), 1.0, 3, np.dtype(float))
    assert len(tried) < 20
