"""Squared hinge losses: every solver finds the optimum of L-BFGS, and certifies it by the formula of the gap."""

from dataclasses import replace

import numpy as np
import pytest
from margin_oracles import random_margins
from scipy.optimize import minimize

from gramian.kernels import Linear
from gramian.operators import GramRows
from gramian.solvers import MarginProblem, blocked_ascent, coordinate_ascent, smo

pytestmark = pytest.mark.usefixtures("one_thread")
SOLVERS = {
    "smo": (smo, lambda X: GramRows(Linear(), X)),
    "blocked_ascent": (blocked_ascent, lambda X: GramRows(Linear(), X)),
    "rows": (blocked_ascent, lambda X: GramRows(Linear(), X, nbytes=8 * len(X) * 5)),
    "coordinate_ascent": (coordinate_ascent, lambda X: X),
}


def primal(data, W):
    """The objective in the weights of features, shape (d, L)."""
    lack = np.maximum(0.0, data.margins - data.signs * (data.X @ W))
    return np.sum(data.caps * lack**2) + 0.5 * np.sum(W * np.linalg.solve(data.R, W.T).T)


def optimum(data):
    """The least objective, by L-BFGS with its exact gradient."""
    shape = (data.X.shape[1], data.signs.shape[1])

    def value(flat):
        W = flat.reshape(shape)
        lack = np.maximum(0.0, data.margins - data.signs * (data.X @ W))
        gradient = np.linalg.solve(data.R, W.T).T
        gradient -= 2.0 * data.X.T @ (data.caps * lack * data.signs)
        return primal(data, W), gradient.ravel()

    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
    return minimize(value, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("case", [(0, 12, 3, 4), (2, 25, 4, 3), (5, 9, 2, 1)])
def test_every_solver_finds_the_optimum(name, case):
    data = random_margins(*case)
    solve, inputs = SOLVERS[name]
    problem = MarginProblem(
        inputs(data.X), data.signs, data.R, data.margins, data.caps, squared=True
    )
    solution = solve(problem, tol=1e-9)
    best = optimum(data)
    assert solution.status == "converged"
    W = data.X.T @ solution.coefficients @ data.R
    assert solution.objective == pytest.approx(primal(data, W), rel=1e-7)
    assert solution.objective == pytest.approx(best.fun, rel=1e-7)
    np.testing.assert_allclose(W.ravel(), best.x, atol=2e-3 * np.abs(best.x).max())
    assert not solution.coefficients[data.caps == 0].any()


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_primal_minus_dual(seed):
    data = random_margins(seed, 8, 3, 3)
    rng = np.random.default_rng(seed)
    alpha = rng.uniform(-0.5, 2.0, size=data.signs.shape).clip(0) * (data.caps > 0)
    A = data.signs * alpha
    problem = MarginProblem(data.X, data.signs, data.R, data.margins, data.caps, squared=True)
    U = problem.latent(A)
    objective, gaps, _ = problem.values(A, U)
    ridge = np.divide(0.5, data.caps, out=np.zeros_like(data.caps), where=data.caps > 0)
    dual = np.sum(data.margins * alpha) - 0.5 * np.sum(A * U) - 0.5 * np.sum(ridge * alpha**2)
    lack = np.maximum(0.0, data.margins - data.signs * U)
    expected = np.sum(data.caps * lack**2) + 0.5 * np.sum(A * U)
    assert objective == pytest.approx(expected, rel=1e-10)
    assert gaps.sum() == pytest.approx(expected - dual, rel=1e-9)
    assert (gaps >= 0).all()


def test_a_start_needs_no_box():
    data = random_margins(1, 20, 3, 3)
    problem = MarginProblem(data.X, data.signs, data.R, data.margins, data.caps, squared=True)
    found = coordinate_ascent(problem, tol=1e-8)
    again = coordinate_ascent(problem, tol=1e-6, start=found.coefficients)
    assert again.n_iter == 0
    without = replace(problem, caps=problem.caps * (np.arange(20) > 4)[:, None])
    assert not coordinate_ascent(without, tol=1e-3, start=found.coefficients).coefficients[:5].any()
