"""The contract of a solver: a true certificate, an honest status, weights and columns that mean what they say."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from gramian.kernels import RBF
from gramian.losses import Logistic, Loss, Softmax, Squared, SquaredHinge
from gramian.operators import Dense
from gramian.solvers import Problem, Solution
from gramian.testing import _clauses as check
from gramian.testing.operators import CountingOperator

Solver = Callable[..., Solution]
LOSSES = (Softmax(), Logistic(), Squared(), SquaredHinge())
STRENGTH = 0.3  # of the regularization, where a clause asks for no other


def check_solver(
    solve: Solver,
    *,
    losses: Sequence[Loss] = LOSSES,
    tol: float = 1e-9,
    n_samples: int = 18,
    seed: int = 0,
) -> None:
    """Check that a solver keeps its contract, on small problems with each loss.

    Parameters
    ----------
    solve : callable
        ``solve(problem, *, start, tol, max_iter, callback)``.
    losses : sequence of Loss, default=(Softmax(), Logistic(), Squared(), SquaredHinge())
        Those the solver is made for.
    tol : float, default=1e-9
        A tolerance the solver reaches with its default ``max_iter``.
    n_samples : int, default=18
    seed : int, default=0

    Raises
    ------
    AssertionError
        The message names the clause that fails.

    Examples
    --------
    >>> from gramian.losses import Squared
    >>> from gramian.solvers import newton
    >>> from gramian.testing import check_solver
    >>> check_solver(newton, losses=[Squared()])
    """
    rng = np.random.default_rng(seed)
    X = 1.5 * rng.normal(size=(n_samples, 2))  # spread, so that slow solvers are done soon
    scores = np.stack([np.sin(X[:, 0]), np.cos(X[:, 1]), X[:, 0] * X[:, 1]], axis=1)
    scores += 0.3 * rng.normal(size=scores.shape)
    for loss in losses:
        _SolverContract(solve, seed, loss, X, _targets(loss, scores), tol)._check()


def optimum(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum of each column of a small problem and the latent values there, by L-BFGS.

    With ``𝒦 = L Lᵀ`` and ``w = Lᵀ vec(A)`` the objective is ``loss(L w) + (λ/2) ‖w‖²``: well
    conditioned, and far from every solver of this package.

    Parameters
    ----------
    problem : Problem
        On NumPy arrays.

    Returns
    -------
    minima : ndarray of shape (q,)
    U : ndarray of shape (n, C, q)
    """
    n, C, q = problem.shape
    K = problem.operator.accurate(np.eye(n * C).reshape(n, C, n * C)).reshape(n * C, n * C)
    L = root(K)
    targets = np.broadcast_to(problem.targets, problem.shape)
    weights = np.ones(n) if problem.weights is None else np.asarray(problem.weights)
    weights = np.broadcast_to(weights.reshape(n, -1), (n, q))
    minima, latent = np.empty(q), np.empty(problem.shape)
    for j in range(q):
        Y, strength, w = targets[:, :, j], float(problem.strength[j]), weights[:, j]

        def objective(v, Y=Y, strength=strength, w=w):
            U = (L @ v).reshape(n, C)
            value = float(problem.loss.value(U, Y, w)) + 0.5 * strength * float(v @ v)
            return value, L.T @ problem.loss.gradient(U, Y, w).reshape(-1) + strength * v

        v = np.zeros(n * C)
        for _ in range(3):  # restarts, because L-BFGS-B stops when a line search finds nothing
            options = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 50, "ftol": 0, "gtol": 1e-12}
            v = minimize(objective, v, jac=True, method="L-BFGS-B", options=options).x
        minima[j], latent[:, :, j] = objective(v)[0], (L @ v).reshape(n, C)
    return minima, latent


def root(matrix: np.ndarray) -> np.ndarray:
    """Return L with ``L Lᵀ`` the matrix without its negative eigenvalues, which come from rounding."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return vectors * np.sqrt(np.clip(values, 0.0, None))


class _Solved(NamedTuple):
    """A problem and what a solver made of it."""

    problem: Problem
    solution: Solution

    @property
    def latent(self) -> np.ndarray:
        return self.problem.operator @ self.solution.coefficients

    def radius(self, strength: float) -> float:
        """How far a latent value may be from its optimum: √(2 gap / λ), as k(x, x) = 1."""
        gap = float(self.solution.gaps.max()) + 1e-14 * self.solution.objective
        return float(np.sqrt(2 * gap / strength)) + 1e-7


@dataclass(frozen=True)
class _SolverContract(check.Contract):
    subject: Solver
    loss: Loss
    X: np.ndarray
    Y: np.ndarray
    tol: float

    @property
    def _title(self) -> str:
        return f"{getattr(self.subject, '__name__', repr(self.subject))} with {self.loss!r}"

    def _problem(self, rows: Any = slice(None), **changes: Any) -> Problem:
        """The problem on some rows; changes are arguments of `Problem`."""
        operator = CountingOperator(Dense(RBF(1.0), self.X[rows]))
        arguments = {"targets": self.Y[rows], "regularization": STRENGTH} | changes
        return Problem(operator, self.loss, **arguments)

    def _solve(self, problem: Problem, status: str = "converged", **options: Any) -> Solution:
        """Solve without a ConvergenceWarning, with this status in the end."""
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            solution = self.subject(problem, **({"tol": self.tol} | options))
        assert solution.status == status, f"status {solution.status!r}."
        return solution

    def _solved(self, rows: Any = slice(None), **changes: Any) -> _Solved:
        problem = self._problem(rows, **changes)
        return _Solved(problem, self._solve(problem))

    @cached_property
    def _optimum(self) -> tuple[float, np.ndarray]:
        """The minimum of the problem without changes, and the latent values there."""
        (minimum,), latent = optimum(self._problem())
        return float(minimum), latent[:, :, 0]

    def converges(self) -> None:
        """At "converged" the gap is at most tol × objective, and both are what A says."""
        problem, solution = self._solved()
        A = solution.coefficients
        assert A.shape == self.Y.shape, f"coefficients have shape {A.shape}."
        objective, gap = _evaluated(problem, A)
        check.close(solution.objective, objective[0], 1e-10, "objective")
        assert 0 <= solution.gap <= self.tol * solution.objective, f"gap {solution.gap:.3g}."
        assert gap[0] <= 1.01 * self.tol * objective[0], f"recomputed from A: gap {gap[0]:.3g}."
        assert solution.gaps.shape == (1,), f"gaps have shape {solution.gaps.shape}."
        check.close(solution.gaps.sum(), solution.gap, 1e-12, "gaps")
        relative = solution.gap / solution.objective
        check.close(solution.relative_gap, relative, 1e-12, "relative gap")

    def certificate_is_true(self) -> None:
        """The objective is above its minimum by no more than the gap, and U is within √(2 gap / λ) of the optimum."""
        problem, (minimum, latent) = self._problem(), self._optimum
        rounding = 1e-12 * minimum
        for tol in (1e-2, self.tol):
            solution = self._solve(problem, tol=tol)
            excess = solution.objective - minimum
            assert -rounding <= excess <= solution.gap + rounding, (
                f"objective − minimum is {excess:.3g} and the gap {solution.gap:.3g}."
            )
            bound = np.sqrt(2 * (solution.gap + rounding) / STRENGTH)  # k(x, x) = 1
            error = np.abs(_Solved(problem, solution).latent - latent).max()
            assert error <= bound + 1e-6, f"U is off by {error:.3g}, the bound is {bound:.3g}."

    def certificate_is_true_all_the_way(self) -> None:
        """In every row of the history, objective − gap ≤ minimum ≤ objective."""
        minimum, history = self._optimum[0], self._solved().solution.history
        objective, rounding = history["objective"], 1e-12 * history["objective"][0]
        lower = objective - history["gap"]
        assert np.all(objective >= minimum - rounding), "the objective is below its minimum."
        assert np.all(lower <= minimum + rounding), "the lower bound is above the minimum."

    def has_history(self) -> None:
        """history has one row before each iteration and one at the end; products are counted."""
        problem, solution = self._solved()
        history = solution.history
        names = ("objective", "gap", "products", "seconds")
        missing = [name for name in names if name not in history]
        assert not missing, f"history lacks {missing}."
        for name in names:
            shape = history[name].shape
            assert shape == (solution.n_iter + 1,), f"history[{name!r}] has shape {shape}."
        for name in ("products", "seconds"):
            assert np.all(np.diff(history[name]) >= 0), f"{name} decrease."
        assert history["products"][-1] == solution.n_products, "the last row lacks products."
        made = problem.operator.n_products  # type: ignore[attr-defined]
        # a solver may also multiply with the dense blocks of the operator, which go uncounted here
        assert made <= solution.n_products, f"{made} products made, {solution.n_products} counted."
        assert history["objective"][-1] == solution.objective, "the last row is not the solution."
        assert history["gap"][-1] == solution.gap, "the last row is not the solution."
        assert history["objective"][-1] <= history["objective"][0], "the objective has risen."

    def starts_where_told(self) -> None:
        """Started from the solution it needs at most one iteration; start is not modified; a bad shape is an error."""
        problem, solution = self._solved()
        start = solution.coefficients.copy()
        again = self._solve(problem, start=start)
        assert again.n_iter <= 1, f"{again.n_iter} iterations from the solution."
        np.testing.assert_array_equal(start, solution.coefficients, err_msg="start was modified.")
        elsewhere = self._solve(problem, start=np.ones_like(start))
        check.close(elsewhere.objective, solution.objective, 2 * self.tol, "from another start")
        with check.refusal("a start of the wrong shape is accepted.", ValueError):
            self.subject(problem, start=start[:-1])

    def callback_sees_and_stops(self) -> None:
        """callback is told iteration, coefficients, objective and gap of each iteration; True stops the solver."""
        problem, seen = self._problem(), []
        solution = self._solve(problem, callback=lambda progress: seen.append(progress))
        # nothing is left to stop once the end is verified: the last iteration may go untold
        told = [progress.iteration for progress in seen]
        assert told == list(range(1, len(seen) + 1)), f"iterations {told}."
        assert solution.n_iter - 1 <= len(seen) <= solution.n_iter, f"{len(seen)} calls."
        for progress in seen:
            row = progress.iteration
            assert progress.coefficients.shape == self.Y.shape, "coefficients of another shape."
            assert progress.objective == solution.history["objective"][row], "another objective."
            assert progress.gap == solution.history["gap"][row], "another gap."
        if solution.n_iter >= 3:  # slow enough to be stopped; nobody is warned who asked for it
            stopped = self._solve(problem, status="stopped", callback=lambda progress: True)
            assert stopped.n_iter == 1, f"{stopped.n_iter} iterations after the first True."

    def warns_when_short(self) -> None:
        """Out of iterations it warns with what was reached and what to change; the certificate holds all the same."""
        problem, solution = self._solved()
        if solution.n_iter <= 1:  # an exact step ends a quadratic
            return
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solution = self.subject(problem, tol=self.tol, max_iter=1)
        messages = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
        assert len(messages) == 1, f"{len(messages)} ConvergenceWarnings."
        assert solution.status == "max_iter", f"status {solution.status!r}."
        assert solution.n_iter == 1, f"{solution.n_iter} iterations with max_iter=1."
        for words in (f"{solution.relative_gap:.2e}", f"{self.tol:.2e}", "max_iter=1", "Raise"):
            assert words in messages[0], f"{words!r} is not in {messages[0]!r}."
        assert solution.gap > self.tol * solution.objective, "it had converged."
        minimum = self._optimum[0]
        excess = solution.objective - minimum
        assert excess <= solution.gap + 1e-12 * minimum, f"excess {excess}, gap {solution.gap}."

    def columns_are_separate(self) -> None:
        """q problems in lockstep, with targets, λ and weights of their own, end where each would alone."""
        n, C = self.Y.shape
        targets = np.stack([self.Y, self.Y[::-1], self.Y], axis=2)
        strengths = np.array([0.1, 1.0, 5.0])
        weights = np.random.default_rng(1).uniform(0.5, 2.0, size=(n, 3))
        weights[::3, 1] = 0.0
        together = self._solved(targets=targets, regularization=strengths, weights=weights)
        problem, solution = together
        assert solution.coefficients.shape == (n, C, 3), f"shape {solution.coefficients.shape}."
        assert solution.gaps.shape == (3,), f"gaps have shape {solution.gaps.shape}."
        objectives, _ = _evaluated(problem, solution.coefficients)
        check.close(solution.objective, objectives.sum(), 1e-10, "objective is the sum")
        for j in range(3):
            assert solution.gaps[j] <= self.tol * objectives[j] * (1 + 1e-9), f"gap of column {j}."
            alone = self._solved(
                targets=targets[:, :, j], regularization=strengths[j], weights=weights[:, j]
            )
            _assert_same(together, np.s_[:, :, j], alone, f"column {j}")

    def takes_a_path_of_regularization(self) -> None:
        """An array of λ with targets (n, C) is one problem for each λ."""
        strengths = np.array([0.2, 2.0])
        together = self._solved(regularization=strengths)
        assert together.solution.coefficients.shape == (*self.Y.shape, 2), "another shape."
        for j, strength in enumerate(strengths):
            alone = self._solved(regularization=float(strength))
            _assert_same(together, np.s_[:, :, j], alone, f"λ = {strength}")

    def weight_zero_removes(self) -> None:
        """Examples of weight zero count for nothing."""
        kept = np.arange(len(self.X)) % 3 != 0
        whole, part = self._solved(weights=kept.astype(float)), self._solved(rows=kept)
        check.close(whole.solution.objective, part.solution.objective, 2 * self.tol, "objective")
        _assert_same(whole, kept, part, "weight zero")

    def weight_two_repeats(self) -> None:
        """An example of weight two is the example twice."""
        n = len(self.X)
        heavy = self._solved(weights=np.where(np.arange(n) < 4, 2.0, 1.0))
        twice = self._solved(rows=np.concatenate([np.arange(n), np.arange(4)]))
        check.close(heavy.solution.objective, twice.solution.objective, 2 * self.tol, "objective")
        _assert_same(twice, np.s_[:n], heavy, "weight two")

    def keeps_single_precision(self) -> None:
        """float32 targets on a float32 operator give float32 coefficients, also with float64 weights."""
        single = replace(self, X=self.X.astype(np.float32), Y=self.Y.astype(np.float32), tol=1e-3)
        double = self._solved().solution
        for weights in (None, np.ones(len(self.X), dtype=np.float32), np.ones(len(self.X))):
            solution = single._solved(weights=weights).solution
            dtype = solution.coefficients.dtype
            assert dtype == np.float32, f"dtype {dtype}, weights {getattr(weights, 'dtype', None)}."
            check.close(solution.objective, double.objective, 2e-3, "objective")


def _targets(loss: Loss, scores: np.ndarray) -> np.ndarray:
    """Targets the losses of this package accept; a new loss gets real numbers."""
    if isinstance(loss, Softmax):
        return np.eye(scores.shape[1])[scores.argmax(axis=1)]
    if isinstance(loss, Logistic):
        return (scores > 0).astype(float)
    if isinstance(loss, SquaredHinge):
        return np.where(scores > 0, 1.0, -1.0)
    return scores


def _evaluated(problem: Problem, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Objective and gap of each column, from A alone."""
    A = A if A.ndim == 3 else A[:, :, None]
    U = problem.operator @ A
    rho = problem.residual(A, U)
    norm = np.sum(rho * (problem.operator @ rho), axis=(0, 1))
    return problem.objective(A, U), norm / (2 * problem.strength)


def _assert_same(one: _Solved, part: Any, two: _Solved, what: str) -> None:
    """Part of the latent values of one problem are those of the other, as closely as the certificates promise."""
    strength = float(two.problem.strength[0])
    radius = one.radius(strength) + two.radius(strength)
    error = np.abs(one.latent[part] - two.latent).max()
    assert error <= radius, f"{what}: latent values differ by {error:.3g}, allowed {radius:.3g}."
