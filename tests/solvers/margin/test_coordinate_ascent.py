"""What is special to coordinate ascent: sparse features, with and without a correlation."""

import numpy as np
import pytest
import scipy.sparse as sp
from margin_oracles import random_margins

from gramian.solvers import MarginProblem, coordinate_ascent

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("correlated", [True, False])
def test_sparse_features_are_solved_as_dense_ones(correlated):
    data = random_margins(0, n=30, d=6, n_labels=3)
    X = np.where(np.abs(data.X) < 0.5, 0.0, data.X)
    X[:, 4] = 0.0
    R = data.R if correlated else None
    problems = [
        MarginProblem(inputs, data.signs, R, data.margins, data.caps)
        for inputs in (X, sp.csr_array(X))
    ]
    dense, sparse = (coordinate_ascent(problem, tol=1e-9) for problem in problems)
    assert dense.status == sparse.status == "converged"
    np.testing.assert_allclose(sparse.objective, dense.objective, rtol=1e-8)
    U = [problems[0].latent(solution.coefficients) for solution in (dense, sparse)]
    np.testing.assert_allclose(*U, atol=1e-3)
