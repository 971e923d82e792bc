"""What is special to coordinate ascent: sparse features, with and without a correlation."""

import numpy as np
import pytest
import scipy.sparse as sp
from margin_oracles import random_margins

from gramian.solvers import MarginProblem, coordinate_ascent
from gramian.solvers.margin import coordinate_ascent as module

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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("squared", [False, True])
def test_labels_that_were_not_visited_keep_an_honest_gap(squared):
    data = random_margins(1, n=60, d=12, n_labels=20)
    problem = MarginProblem(data.X, data.signs, None, data.margins, data.caps, squared)
    for max_iter in (3, 5, None):
        found = coordinate_ascent(problem, tol=1e-6, max_iter=max_iter)
        A = found.coefficients
        objective, gaps, _ = problem.values(A, problem.latent(A))
        np.testing.assert_allclose(found.objective, objective, rtol=1e-10)
        np.testing.assert_allclose(found.gap, gaps.sum(), atol=1e-10 * objective)
    assert found.status == "converged"


def _creeping(condition):
    """A label whose coefficients are all free, with features of very different size."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(60, 40)))[0] * np.geomspace(1, condition**-0.5, 40)
    signs = np.where(rng.normal(size=(60, 1)) > 0, 1, -1).astype(np.int8)
    return MarginProblem(X, signs, None, 1.0, 1e3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_label_that_creeps_takes_steps_of_all_free_coefficients(monkeypatch):
    problem = _creeping(1e3)
    assert coordinate_ascent(problem, tol=1e-6, max_iter=150).status == "converged"
    monkeypatch.setattr(module, "CREEPING_LABEL", np.inf)
    slow = coordinate_ascent(problem, tol=1e-6, max_iter=150)
    assert slow.gap > 1e-5 * slow.objective


def test_the_condition_of_the_correlation_does_not_slow_down_sweeps():
    data = random_margins(2, n=80, d=30, n_labels=12)
    alike = 0.9 + 0.1 * np.eye(12)
    problem = MarginProblem(data.X, data.signs, alike, 1.0, 1.0, squared=True)
    # two turns around the labels of an example would need 114 sweeps
    assert coordinate_ascent(problem, tol=1e-5, max_iter=40).status == "converged"
