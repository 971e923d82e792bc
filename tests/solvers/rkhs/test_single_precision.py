"""Solvers that multiply in single precision: what they certify is true in double precision."""

import logging

import numpy as np
import pytest

from gramian.kernels import RBF
from gramian.labels import Identity, Scalar
from gramian.losses import Logistic, Softmax, Squared
from gramian.operators import Dense, Intercept, LabelMixed, Streamed
from gramian.solvers import Problem, kernel_cg, newton

pytestmark = pytest.mark.usefixtures("one_thread")
N = 200
X = np.random.default_rng(0).normal(size=(N, 3))
CLASSES = (np.sin(X[:, 0]) + X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)


class Watched(Streamed):
    """Notes the precision of its products."""

    def __init__(self, kernel, X):
        super().__init__(kernel, X)
        self.products = []

    def _matmul(self, B):
        self.products.append(B.dtype)
        return super()._matmul(B)


def problem_of(loss, variance=1.0, operator=Watched, strength=1.0, intercept=1.0):
    targets = {"Softmax": np.eye(3)[CLASSES], "Logistic": 1.0 * (CLASSES[:, None] > 0)}
    Y = targets.get(type(loss).__name__, np.sin(3 * X[:, :2]))
    terms = [(operator(RBF(1.5), X), Scalar(variance)), (Intercept(intercept, Y, N), Identity())]
    return Problem(LabelMixed(terms), loss, Y, strength)


def true_gap(problem, solution):
    """The gap, by dense products in float64."""
    terms = [(Dense(RBF(1.5), X), problem.operator.terms[0][1]), problem.operator.terms[1]]
    K, A = LabelMixed(terms), solution.coefficients[:, :, None]
    rho = problem.residual(A, K @ A)
    return float(np.sum(rho * (K @ rho)) / (2 * problem.strength[0]))


def precisions(problem):
    """How many products were in single and in double precision."""
    products = problem.operator.terms[0][0].products
    return products.count(np.dtype(np.float32)), products.count(np.dtype(np.float64))


@pytest.mark.parametrize("solve", [newton, kernel_cg])
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax()])
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-10])
def test_the_certificate_is_that_of_double_precision(solve, loss, tol):
    problem = problem_of(loss)
    solution = solve(problem, tol=tol, preconditioner=None)
    assert solution.status == "converged"
    assert solution.gap == pytest.approx(true_gap(problem, solution), rel=1e-6)
    assert solution.gap <= tol * solution.objective
    single, double = precisions(problem)
    assert double <= 7 < single
    assert solution.n_products == single + double


@pytest.mark.parametrize("solve", [newton, kernel_cg])
def test_more_digits_are_refined(solve):
    """Where single precision alone is far from what is asked for."""
    problem = problem_of(Squared(), variance=300)
    solution = solve(problem, tol=1e-11, preconditioner=None)
    assert solution.status == "converged"
    assert true_gap(problem, solution) <= 1e-11 * solution.objective
    single, double = precisions(problem)
    assert single > 5 * double


def test_a_large_intercept_is_not_rounded():
    problem = problem_of(Squared(), intercept=1e6)
    solution = newton(problem, tol=1e-8)
    assert solution.status == "converged"
    assert solution.gap == pytest.approx(true_gap(problem, solution), rel=1e-4)
    assert precisions(problem)[0] > 0


def test_large_kernels_stay_in_double_precision(caplog):
    problem = problem_of(Logistic(), variance=1e5)
    with caplog.at_level(logging.INFO, "gramian"):
        solution = newton(problem, tol=1e-8)
    assert solution.status == "converged"
    assert precisions(problem)[0] == 0
    assert "products in double precision" in caplog.text


class Wrong(Watched):
    """Its products in single precision are those of another kernel."""

    def in_single(self):
        single = super().in_single()
        single.kernel = RBF(1.4)
        return single


@pytest.mark.parametrize("solve", [newton, kernel_cg])
@pytest.mark.parametrize("loss", [Squared(), Softmax()])
def test_double_precision_takes_over_where_refinement_fails(solve, loss, caplog):
    problem = problem_of(loss, 30.0, Wrong)
    with caplog.at_level(logging.INFO, "gramian"):
        solution = solve(problem, tol=1e-8, preconditioner=None)
    assert solution.status == "converged"
    assert solution.gap == pytest.approx(true_gap(problem, solution), rel=1e-6)
    assert "products in double precision from step" in caplog.text
    single, double = precisions(problem)
    assert single > 0
    assert double > 10


def test_stopping_early_is_certified_in_double_precision():
    problem = problem_of(Softmax())
    solution = newton(problem, callback=lambda progress: progress.iteration == 2)
    assert solution.status == "stopped"
    assert solution.gap == pytest.approx(true_gap(problem, solution), rel=1e-6)
