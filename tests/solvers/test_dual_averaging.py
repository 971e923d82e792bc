"""Dual averaging: bounds around the optimum at every step, whatever is minimised."""

import itertools
from dataclasses import replace

import cvxpy
import numpy as np
import pytest
import scipy.sparse as sp
from contrast_oracles import METHODS, omega, optimum, primal, task
from sklearn.exceptions import ConvergenceWarning

from gramian.kernels import RBF, Linear
from gramian.labels import smallest_eigenvalue
from gramian.operators import GramRows
from gramian.solvers import ContrastSplit, contrast_ascent, dual_averaging

pytestmark = pytest.mark.usefixtures("one_thread")
every_method = pytest.mark.parametrize("method", METHODS)


class AbsoluteDeviations:
    """|A w − b|₁ + ½ |w|²."""

    lower = -np.inf

    def __init__(self, A, b):
        self.A, self.b = A, b

    def start(self):
        return np.zeros(self.A.shape[1])

    def oracle(self, w):
        residual = self.A @ w - self.b
        return float(np.abs(residual).sum()), self.A.T @ np.sign(residual)

    def pairing(self, g, w):
        return float(g @ w)

    def strong(self, w):
        return 0.5 * float(w @ w)

    def minimiser(self, g):
        return -g

    def coefficients(self, w):
        return w


class Primal:
    """A contrast problem in normals W (d, m), in the plainest way: no coefficients, no scores kept.

    ``paper=True`` splits the orthogonal penalty as section 4.3 of the paper does.
    """

    lower = 0.0

    def __init__(self, t, paper=False):
        self.problem, self.X, self.paper = t.problem(), t.X, paper
        self.orthogonal = t.method == "orthogonal"
        if self.orthogonal:
            self.K, self.modulus = t.K, smallest_eigenvalue(t.K)
        else:
            self.S = self.problem.penalty.gram

    def start(self):
        return np.zeros((self.X.shape[1], self.problem.shape[1]))

    def oracle(self, W):
        losses, worst = self.problem.losses(self.X @ W)
        g = self.X.T @ self.problem.subgradient(worst)
        if not self.orthogonal:
            return losses, g
        phi = losses + omega(self.K, W.T) - self.strong(W)
        if self.paper:
            B = self.problem.penalty.subgradient_matrix(W.T @ W)
            return phi, g + W @ B - self.modulus * W
        signed = self.K * np.sign(W.T @ W)
        return phi, np.concatenate([g, signed - np.diag(np.diag(signed))])

    def pairing(self, g, W):
        linear = float(np.sum(g[: len(W)] * W))
        return linear + 0.5 * float(np.sum(g[len(W) :] * (W.T @ W))) if len(g) > len(W) else linear

    def strong(self, W):
        if not self.orthogonal:
            return 0.5 * float(np.trace(W @ np.linalg.pinv(self.S) @ W.T))
        scale = self.modulus if self.paper else np.diag(self.K)
        return 0.5 * float(np.sum(scale * W**2))

    def minimiser(self, g):
        d = self.X.shape[1]
        if not self.orthogonal:
            return -g @ self.S
        if self.paper:
            return -g / self.modulus
        return -np.linalg.solve(np.diag(np.diag(self.K)) + g[d:], g[:d].T).T

    def coefficients(self, W):
        return W


def relative(problem, tol):
    return lambda upper: problem.allowed_gap(upper, tol)


def assert_sandwich(solution, best, slack):
    history = solution.history
    assert np.all(history["value"] >= best - slack)
    assert np.all(history["dual"] <= best + slack)
    np.testing.assert_array_equal(history["objective"], np.minimum.accumulate(history["value"]))
    lower = np.maximum.accumulate(history["dual"])
    np.testing.assert_allclose(history["objective"] - history["gap"], lower, atol=1e-12 * abs(best))


# --- any sum --------------------------------------------------------------------------------------


def test_absolute_deviations():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(20, 4)), rng.normal(size=20)
    w = cvxpy.Variable(4)
    best = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm1(A @ w - b) + 0.5 * cvxpy.sum_squares(w))).solve(
        solver="CLARABEL"
    )
    objective = AbsoluteDeviations(A, b)
    solution = dual_averaging(objective, epsilon=0.05)
    assert solution.status == "converged"
    assert_sandwich(solution, best, 1e-7)
    assert best - 1e-7 <= solution.objective <= best + 0.05
    assert solution.gap <= 0.05
    assert solution.coefficients.shape == (4,)
    value = objective.oracle(solution.coefficients)[0] + objective.strong(solution.coefficients)
    np.testing.assert_allclose(value, solution.objective)
    # ½ |w − w*|² ≤ J − J*, as Ψ is strongly convex with modulus one
    assert np.sum((solution.coefficients - w.value) ** 2) <= 2 * (solution.objective - best) + 1e-6


def test_it_is_algorithm_1():
    """Iterates, by the recursions of the paper."""
    rng = np.random.default_rng(1)
    objective = AbsoluteDeviations(rng.normal(size=(9, 3)), rng.normal(size=9))
    seen = []
    dual_averaging(
        objective,
        epsilon=0.0,
        max_iter=30,
        callback=lambda p: bool(seen.append(p)) or p.iteration == 30,
    )
    w, mean, delta, upper, lower = np.zeros(3), np.zeros(3), 0.0, np.inf, -np.inf
    upper = objective.oracle(w)[0]
    for step, progress in zip(itertools.count(1), seen):
        phi, g = objective.oracle(w)
        mean = (step - 1) / step * mean + g / step
        delta = (step - 1) / step * delta + (phi - g @ w) / step
        w = -mean
        upper = min(upper, objective.oracle(w)[0] + 0.5 * w @ w)
        lower = max(lower, delta + mean @ w + 0.5 * w @ w)
        np.testing.assert_allclose(progress.coefficients, w, atol=1e-13)
        np.testing.assert_allclose([progress.objective, progress.gap], [upper, upper - lower])
    assert len(seen) == 30


def test_the_gap_falls_like_one_over_t():
    """Eq. 10: ten times the steps leave at most a fifth of the gap."""
    rng = np.random.default_rng(2)
    objective = AbsoluteDeviations(rng.normal(size=(20, 4)), rng.normal(size=20))
    with pytest.warns(ConvergenceWarning):
        gap = dual_averaging(objective, epsilon=0.0, max_iter=2000).history["gap"]
    assert gap[200] < 0.2 * gap[20]
    assert gap[2000] < 0.2 * gap[200]


# --- contrast problems ----------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("C", [0.01, 0.5])
def test_bounds_sandwich_the_optimum(method, C):
    t = task(method, C)
    problem, best = t.problem(), optimum(t)
    solution = dual_averaging(ContrastSplit(problem), epsilon=relative(problem, 0.02))
    assert solution.status == "converged"
    assert solution.n_iter > 3
    assert_sandwich(solution, best, 1e-8 * best)
    assert solution.gap <= problem.allowed_gap(solution.objective, 0.02)
    assert solution.objective - best <= solution.gap
    np.testing.assert_allclose(primal(t, solution.coefficients), solution.objective, rtol=1e-9)


@every_method
def test_it_agrees_with_dual_ascent(method):
    t = task(method, 0.1, seed=3)
    problem = t.problem()
    exact = contrast_ascent(problem, tol=1e-9, max_iter=5000)
    solution = dual_averaging(ContrastSplit(problem), epsilon=5e-3)
    assert solution.status == "converged"
    assert_sandwich(solution, exact.objective, 2e-9 * exact.objective)
    assert 0 <= solution.objective - exact.objective <= 5e-3


@every_method
def test_kernel_form_is_primal_form(method):
    """Points are the same whether they are normals, coefficients of features, or of a Gram matrix."""
    t = task(method)
    forms = [t.X, sp.csr_array(t.X), GramRows(Linear(), t.X), GramRows(Linear(), t.X, nbytes=1000)]
    assert forms[3].matrix is None
    seen = [[] for _ in range(5)]
    for objective, found in zip(
        [Primal(t), *(ContrastSplit(t.problem(f)) for f in forms)], seen, strict=True
    ):

        def callback(progress, found=found):
            found.append(progress)
            return progress.iteration == 40

        dual_averaging(objective, epsilon=0.0, callback=callback)
    for expected, *others in zip(*seen, strict=True):
        for other in others:
            np.testing.assert_allclose(
                t.X.T @ other.coefficients, expected.coefficients, atol=1e-10
            )
            np.testing.assert_allclose(other.gap, expected.gap, rtol=1e-9)


def test_the_splitting_of_the_paper_is_valid_and_slower():
    t = task("orthogonal")
    problem, best = t.problem(), optimum(t)
    ours = dual_averaging(ContrastSplit(problem), epsilon=relative(problem, 0.05))
    with pytest.warns(ConvergenceWarning):
        theirs = dual_averaging(Primal(t, paper=True), epsilon=0.0, max_iter=ours.n_iter)
    assert_sandwich(theirs, best, 1e-8 * best)
    assert theirs.gap > 2 * ours.gap


def test_a_kernel_without_features():
    t = task("orthogonal")
    rows = GramRows(RBF(2.0), t.X)
    problem = t.problem(rows)
    exact = contrast_ascent(problem, tol=1e-8, max_iter=5000)
    solution = dual_averaging(ContrastSplit(problem), epsilon=relative(problem, 0.02))
    assert solution.status == "converged"
    assert_sandwich(solution, exact.objective, 1e-7 * exact.objective)


@every_method
def test_one_product_a_step(method):
    class Counting(GramRows):
        products = 0

        def __matmul__(self, A):
            self.products += 1
            return super().__matmul__(A)

    rows = Counting(Linear(), task(method).X)
    problem = task(method).problem(rows)
    solution = dual_averaging(ContrastSplit(problem), epsilon=relative(problem, 0.1))
    assert rows.products == solution.n_products == solution.n_iter + 1
    np.testing.assert_array_equal(
        solution.history["products"], np.arange(1, solution.n_products + 1)
    )
    assert np.all(np.diff(solution.history["seconds"]) >= 0)


@every_method
def test_without_caps_it_is_done_at_once(method):
    problem = task(method, 0.0).problem()
    solution = dual_averaging(ContrastSplit(problem), epsilon=0.0)
    assert solution.status == "converged"
    assert (solution.n_iter, solution.objective, solution.gap) == (0, 0.0, 0.0)


@pytest.mark.parametrize("method", ["orthogonal", "flat"])
def test_several_losses_of_one_example_add_up(method):
    problem = task(method).problem()
    again = np.arange(6)
    several = replace(
        problem,
        labels=np.concatenate([problem.labels, problem.labels[again]]),
        caps=np.concatenate([problem.caps, problem.caps[again]]),
        examples=np.concatenate([problem.examples, again]),
    )
    caps = problem.caps.copy()
    caps[again] *= 2
    one, other = (
        dual_averaging(ContrastSplit(p), epsilon=relative(p, 0.05))
        for p in (replace(problem, caps=caps), several)
    )
    np.testing.assert_allclose(one.history["value"], other.history["value"])
    np.testing.assert_allclose(one.history["dual"], other.history["dual"])
    assert contrast_ascent(several, tol=1e-6).objective <= one.objective


# --- how it ends ----------------------------------------------------------------------------------


def test_a_callback_stops():
    problem, seen = task("orthogonal").problem(), []

    def callback(progress):
        seen.append(progress.iteration)
        return progress.iteration == 5

    solution = dual_averaging(ContrastSplit(problem), epsilon=0.0, callback=callback)
    assert solution.status == "stopped"
    assert seen == [1, 2, 3, 4, 5]
    assert solution.n_iter == 5


def test_max_iter_warns_and_keeps_the_best_point():
    t = task("orthogonal", 5.0)
    with pytest.warns(
        ConvergenceWarning, match="max_iter=7 .* above the 1.00e-09 that epsilon allows"
    ):
        solution = dual_averaging(ContrastSplit(t.problem()), epsilon=1e-9, max_iter=7)
    assert solution.status == "max_iter"
    assert solution.n_iter == 7
    assert solution.objective == solution.history["value"].min() < solution.history["value"][-1]
    np.testing.assert_allclose(primal(t, solution.coefficients), solution.objective)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"epsilon": -1.0}, "epsilon must be >= 0"),
        ({"epsilon": np.nan}, "epsilon must be >= 0"),
        ({"epsilon": 1.0, "max_iter": 0}, "max_iter must be >= 1"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        dual_averaging(ContrastSplit(task("flat").problem()), **options)


def test_an_objective_that_is_not_finite():
    objective = AbsoluteDeviations(np.array([[1.0]]), np.array([np.nan]))
    with pytest.raises(ValueError, match="The objective is nan after 0 steps"):
        dual_averaging(objective, epsilon=1.0)
