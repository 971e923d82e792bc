"""The best function of a coarse space, and descents that start from it."""

import warnings

import numpy as np
import pytest

from gramian import KernelLogisticRegression
from gramian.kernels import RBF
from gramian.labels import Identity, Scalar
from gramian.losses import Logistic, Softmax, Squared
from gramian.operators import Intercept, LabelMixed, Streamed
from gramian.solvers import Problem, kernel_cg, newton
from gramian.solvers.rkhs.preconditioning import policy
from gramian.solvers.rkhs.preconditioning.coarse_fit import coarse_fit
from gramian.solvers.rkhs.preconditioning.coarse_space import coarse_space

pytestmark = pytest.mark.usefixtures("one_thread")
N = 150
X = np.random.default_rng(0).normal(size=(N, 3))
CLASSES = (np.sin(X[:, 0]) + X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
WEIGHTS = np.random.default_rng(1).integers(0, 3, N).astype(float)
every_loss = pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax()])


def problem_of(loss, weights=None, variance=3.0, strength=0.1):
    targets = {"Softmax": np.eye(3)[CLASSES], "Logistic": 1.0 * (CLASSES[:, None] > 0)}
    Y = targets.get(type(loss).__name__, np.sin(3 * X[:, :2]))
    terms = [(Streamed(RBF(2.0), X), Scalar(variance)), (Intercept(2.0, Y, N), Identity())]
    return Problem(LabelMixed(terms), loss, Y, strength, weights)


@every_loss
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
def test_nothing_in_the_space_is_better(loss, weights):
    problem = problem_of(loss, weights)
    space = coarse_space(problem.operator, problem.shape[1], 20, weights=weights)
    A, U = coarse_fit(problem, space, tol=1e-12)
    np.testing.assert_allclose(U, problem.operator @ A, atol=1e-9)
    outside = np.setdiff1d(np.arange(N), space.indices)
    assert not A[outside].any()
    # 𝒦ρ on the active set is the gradient in its coefficients
    gradient = (problem.operator @ problem.residual(A, U))[space.indices]
    at_zero = (problem.operator @ problem.residual(0 * A, 0 * U))[space.indices]
    allowed = problem.gap(space.left / N * np.sum(problem.residual(0 * A, U) ** 2, axis=(0, 1)))
    assert np.abs(gradient).max() < 0.05 * np.abs(at_zero).max()
    fewer = coarse_fit(problem, space.leading(5), tol=1e-12)
    objective = problem.objective(A, U)
    assert objective < problem.objective(*fewer)
    assert objective < problem.objective(0 * A, 0 * U)
    best = newton(problem, tol=1e-12)
    assert objective - best.objective < 50 * allowed


def test_leading_functions_have_the_same_coordinates():
    problem = problem_of(Softmax())
    space = coarse_space(problem.operator, 3, 12)
    some = space.leading(4)
    v = np.random.default_rng(3).normal(size=(4, 3, 1))
    padded = np.concatenate([v, np.zeros((8, 3, 1))])
    np.testing.assert_allclose(some.values(v), space.values(padded), atol=1e-12)
    zeros = np.zeros((N, 3, 1))
    np.testing.assert_allclose(some.lifted(v, zeros), space.lifted(padded, zeros), atol=1e-12)
    assert some.left == pytest.approx(3.0 * (N - np.sum(some.factor**2)), rel=1e-9)


@pytest.fixture
def cheap(monkeypatch):
    """Spaces are always worth their price."""
    monkeypatch.setattr(policy, "PRICE_OF_FIRST", 1e9)
    monkeypatch.setattr(policy, "APPLICATION_PRODUCTS", 1e9)


@pytest.mark.parametrize(
    "solve, loss", [(newton, Squared()), (kernel_cg, Squared()), (newton, Softmax())]
)
def test_streams_start_from_it(solve, loss, cheap, monkeypatch):
    problem, states = problem_of(loss), []
    started = solve(problem, tol=1e-8, callback=states.append)
    assert started.status == "converged"
    assert states[0].iteration == 0
    assert np.count_nonzero(states[0].coefficients.any(axis=1)) <= N // policy.EXAMPLES_PER_FUNCTION
    monkeypatch.setattr(policy, "PRICE_OF_FIRST", -1.0)
    plain_states = []
    plain = solve(problem, tol=1e-8, callback=plain_states.append)
    assert plain_states[0].iteration == 1
    assert 2 * started.n_products < plain.n_products
    assert started.objective == pytest.approx(plain.objective, rel=1e-7)


@pytest.mark.parametrize("tol, max_iter", [(1e-4, 50), (1e-10, 50), (1e-10, 0)])
def test_a_start_that_is_nearly_the_end_is_verified(tol, max_iter, cheap):
    """Of a smooth kernel the space leaves next to nothing, and its coefficients are large."""
    Y = np.eye(3)[CLASSES]
    M = LabelMixed([(Streamed(RBF(30.0), X), Scalar(1e4))])
    problem = Problem(M, Softmax(), Y, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = newton(problem, tol=tol, max_iter=max_iter)
    A = solution.coefficients[:, :, None]
    rho = problem.residual(A, M @ A)
    gap = float(problem.gap(np.sum(rho * (M @ rho), axis=(0, 1)))[0])
    assert solution.gap == pytest.approx(gap, rel=1e-6)
    assert (solution.status == "converged") == (solution.gap <= tol * solution.objective)
    np.testing.assert_allclose(solution.latent[:, :, None], M @ A, atol=1e-12)


def test_callbacks_of_estimators_see_it(cheap):
    seen = []

    class Watch:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if context.task_name == "iteration":
                seen.append(fitted_estimator)

        def teardown(self, estimator, context):
            pass

    model = KernelLogisticRegression(
        5.0 * RBF(2.0), operator="streamed", optimize=None, regularization=1.0
    )
    model.set_callbacks(Watch()).fit(X, CLASSES)
    assert len(seen) == model.solution_.n_iter + 1
    assert np.count_nonzero(seen[0].dual_coef_.any(axis=1)) < N
    agreement = np.mean(seen[0].predict(X) == model.predict(X))
    assert agreement > 0.9
