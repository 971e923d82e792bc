"""Preconditioners of problems in weights of features."""

import numpy as np

from gramian.labels import Identity
from gramian.losses import Logistic
from gramian.operators import Weights
from gramian.solvers import Problem
from gramian.solvers.rkhs.preconditioning.weights import WeightPreconditioner


def test_the_diagonal_remains_where_there_is_no_factor(rng):
    """Rounding of extreme features can leave a matrix that is not positive definite."""
    like = np.zeros((2, 1))
    problem = Problem(Weights(1.0, Identity(), 2, like), Logistic(), like, regularization=1.0)
    diagonal, r = np.ones((2, 1, 1)), rng.normal(size=(2, 1, 1))
    indefinite = np.array([[1.0, 9.0], [9.0, 1.0]])
    found = WeightPreconditioner(problem, diagonal, indefinite).apply(r, r)
    expected = WeightPreconditioner(problem, diagonal, None).apply(r, r)
    np.testing.assert_array_equal(found, expected)
