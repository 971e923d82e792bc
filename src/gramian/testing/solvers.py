"""The contract of a solver: a true certificate, an honest status, weights and columns that mean what they say."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from gramian.kernels import RBF
from gramian.losses import Logistic, Loss, Softmax, Squared, SquaredHinge
from gramian.operators import Dense
from gramian.solvers import Problem, Solution
from gramian.testing._clauses import assert_close, run_clauses
from gramian.testing.operators import CountingOperator

__all__ = ["check_solver", "optimum"]

Solver = Callable[..., Solution]
LOSSES = (Softmax(), Logistic(), Squared(), SquaredHinge())


@dataclass(frozen=True)
class _Case:
    solve: Solver
    loss: Loss
    X: np.ndarray
    Y: np.ndarray
    tol: float
    strength: float = 0.3

    def problem(self, rows: Any = None, **changes: Any) -> Problem:
        """The problem on some rows; changes are arguments of `Problem`."""
        X, Y = (self.X, self.Y) if rows is None else (self.X[rows], self.Y[rows])
        operator = CountingOperator(Dense(RBF(1.0), X))
        arguments = {"targets": Y, "regularization": self.strength} | changes
        return Problem(operator, self.loss, **arguments)

    def solved(self, problem: Problem, **options: Any) -> Solution:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            solution = self.solve(problem, **({"tol": self.tol} | options))
        assert solution.status == "converged", f"status {solution.status!r}."
        return solution


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
    >>> from gramian.solvers.rkhs import newton
    >>> from gramian.testing import check_solver
    >>> check_solver(newton, losses=[Squared()])
    """
    rng = np.random.default_rng(seed)
    X = 1.5 * rng.normal(size=(n_samples, 2))  # spread, so that slow solvers are done soon
    scores = np.stack([np.sin(X[:, 0]), np.cos(X[:, 1]), X[:, 0] * X[:, 1]], axis=1)
    scores += 0.3 * rng.normal(size=scores.shape)
    clauses = [
        _converges,
        _certificate_is_true,
        _certificate_is_true_all_the_way,
        _has_history,
        _starts_where_told,
        _callback_sees_and_stops,
        _warns_when_short,
        _columns_are_separate,
        _takes_a_path_of_regularization,
        _weight_zero_removes,
        _weight_two_repeats,
        _keeps_single_precision,
    ]
    for loss in losses:
        case = _Case(solve, loss, X, _targets(loss, scores), tol)
        name = getattr(solve, "__name__", repr(solve))
        run_clauses(_Named(f"{name} with {loss!r}"), clauses, case)


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
    basis = np.eye(n * C).reshape(n, C, n * C)
    # the operator takes exactly q trailing columns if it is masked: cut the basis into pieces of q
    pieces = []
    for start in range(0, n * C, q):
        piece = basis[:, :, start : start + q]
        padding = np.zeros((n, C, q - piece.shape[2]))
        product = problem.operator @ np.concatenate([piece, padding], axis=2)
        pieces.append(product[:, :, : piece.shape[2]])
    K = np.concatenate(pieces, axis=2).reshape(n * C, n * C)
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    L = vectors * np.sqrt(np.clip(values, 0, None))
    targets = np.broadcast_to(problem.targets, problem.shape)
    minima, latent = np.empty(q), np.empty(problem.shape)
    for j in range(q):
        Y, strength = targets[:, :, j], float(problem.strength[j])
        w = problem.weights
        w = w[:, j] if w is not None and w.ndim == 2 and w.shape[1] > 1 else w
        w = w[:, 0] if w is not None and w.ndim == 2 else w

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


# --- clauses ----------------------------------------------------------------------------------


def _converges(case: _Case) -> None:
    """At "converged" the gap is at most tol × objective, and both are what A says."""
    problem = case.problem()
    solution = case.solved(problem)
    A = solution.coefficients
    assert A.shape == case.Y.shape, f"coefficients have shape {A.shape}."
    objective, gap = _evaluated(problem, A)
    assert_close(solution.objective, objective[0], 1e-10, "objective")
    assert 0 <= solution.gap <= case.tol * solution.objective, f"gap {solution.gap:.3g}."
    assert gap[0] <= 1.01 * case.tol * objective[0], f"recomputed from A the gap is {gap[0]:.3g}."
    assert solution.gaps.shape == (1,), f"gaps have shape {solution.gaps.shape}."
    assert_close(solution.gaps.sum(), solution.gap, 1e-12, "gaps")
    assert_close(solution.relative_gap, solution.gap / solution.objective, 1e-12, "relative gap")


def _certificate_is_true(case: _Case) -> None:
    """The objective is above its minimum by no more than the gap, and U is within √(2 gap / λ) of the optimum."""
    problem = case.problem()
    (minimum,), latent = optimum(problem)
    for tol in (1e-2, case.tol):
        solution = case.solved(problem, tol=tol)
        rounding = 1e-12 * minimum
        excess = solution.objective - minimum
        assert -rounding <= excess <= solution.gap + rounding, (
            f"objective − minimum is {excess:.3g} and the gap {solution.gap:.3g}."
        )
        U = problem.operator @ solution.coefficients
        bound = np.sqrt(2 * (solution.gap + rounding) / case.strength)  # k(x, x) = 1
        error = np.abs(U - latent[:, :, 0]).max()
        assert error <= bound + 1e-6, f"U is off by {error:.3g}, the bound is {bound:.3g}."


def _certificate_is_true_all_the_way(case: _Case) -> None:
    """In every row of the history, objective − gap ≤ minimum ≤ objective."""
    problem = case.problem()
    (minimum,), _ = optimum(problem)
    history = case.solved(problem).history
    rounding = 1e-12 * history["objective"][0]
    lower = history["objective"] - history["gap"]
    assert np.all(history["objective"] >= minimum - rounding), "the objective is below its minimum."
    assert np.all(lower <= minimum + rounding), "the lower bound is above the minimum."


def _has_history(case: _Case) -> None:
    """history has one row before each iteration and one at the end; products are counted."""
    problem = case.problem()
    solution = case.solved(problem)
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


def _starts_where_told(case: _Case) -> None:
    """Started from the solution it needs at most one iteration; start is not modified; a bad shape is an error."""
    problem = case.problem()
    solution = case.solved(problem)
    start = solution.coefficients.copy()
    again = case.solved(problem, start=start)
    assert again.n_iter <= 1, f"{again.n_iter} iterations from the solution."
    np.testing.assert_array_equal(start, solution.coefficients, err_msg="start was modified.")
    elsewhere = case.solved(problem, start=np.ones_like(start))
    assert_close(elsewhere.objective, solution.objective, 2 * case.tol, "from another start")
    try:
        case.solve(problem, start=start[:-1])
    except ValueError:
        return
    raise AssertionError("a start of the wrong shape is accepted.")


def _callback_sees_and_stops(case: _Case) -> None:
    """callback is told iteration, coefficients, objective and gap of each iteration; True stops the solver."""
    problem = case.problem()
    seen: list[Any] = []
    solution = case.solved(problem, callback=lambda progress: seen.append(progress))
    # nothing is left to stop once the end is verified: the last iteration may go untold
    told = [progress.iteration for progress in seen]
    assert told == list(range(1, len(seen) + 1)), f"iterations {told}."
    assert solution.n_iter - 1 <= len(seen) <= solution.n_iter, f"{len(seen)} calls."
    for progress in seen:
        row = progress.iteration
        assert progress.coefficients.shape == case.Y.shape, "coefficients of another shape."
        assert progress.objective == solution.history["objective"][row], "another objective."
        assert progress.gap == solution.history["gap"][row], "another gap."
    if solution.n_iter < 3:  # too fast to be stopped
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # asked to stop: no reason to warn
        stopped = case.solve(problem, tol=case.tol, callback=lambda progress: True)
    assert stopped.status == "stopped", f"status {stopped.status!r}."
    assert stopped.n_iter == 1, f"{stopped.n_iter} iterations after the first True."


def _warns_when_short(case: _Case) -> None:
    """Out of iterations it warns with what was reached and what to change; the certificate holds all the same."""
    problem = case.problem()
    (minimum,), _ = optimum(problem)
    if case.solved(problem).n_iter <= 1:  # an exact step ends a quadratic
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = case.solve(problem, tol=case.tol, max_iter=1)
    messages = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert len(messages) == 1, f"{len(messages)} ConvergenceWarnings."
    assert solution.status == "max_iter", f"status {solution.status!r}."
    assert solution.n_iter == 1, f"{solution.n_iter} iterations with max_iter=1."
    for words in (f"{solution.relative_gap:.2e}", f"{case.tol:.2e}", "max_iter=1", "Raise"):
        assert words in messages[0], f"{words!r} is not in {messages[0]!r}."
    assert solution.gap > case.tol * solution.objective, "it had converged."
    excess = solution.objective - minimum
    assert excess <= solution.gap + 1e-12 * minimum, f"excess {excess}, gap {solution.gap}."


def _columns_are_separate(case: _Case) -> None:
    """q problems in lockstep, with targets, λ and weights of their own, end where each would alone."""
    n, C = case.Y.shape
    rng = np.random.default_rng(1)
    targets = np.stack([case.Y, case.Y[::-1], case.Y], axis=2)
    strengths = np.array([0.1, 1.0, 5.0])
    weights = rng.uniform(0.5, 2.0, size=(n, 3))
    weights[::3, 1] = 0.0
    together = case.problem(targets=targets, regularization=strengths, weights=weights)
    solution = case.solved(together)
    assert solution.coefficients.shape == (n, C, 3), f"shape {solution.coefficients.shape}."
    assert solution.gaps.shape == (3,), f"gaps have shape {solution.gaps.shape}."
    objectives, _ = _evaluated(together, solution.coefficients)
    assert_close(solution.objective, objectives.sum(), 1e-10, "objective is the sum")
    for j in range(3):
        assert solution.gaps[j] <= case.tol * objectives[j] * (1 + 1e-9), f"gap of column {j}."
        alone = case.problem(
            targets=targets[:, :, j], regularization=strengths[j], weights=weights[:, j]
        )
        _same(case, together, solution, alone, case.solved(alone), column=j, what=f"column {j}")


def _takes_a_path_of_regularization(case: _Case) -> None:
    """An array of λ with targets (n, C) is one problem for each λ."""
    strengths = np.array([0.2, 2.0])
    together = case.problem(regularization=strengths)
    solution = case.solved(together)
    assert solution.coefficients.shape == (*case.Y.shape, 2), "another shape."
    for j, strength in enumerate(strengths):
        alone = case.problem(regularization=float(strength))
        what = f"λ = {strength}"
        _same(case, together, solution, alone, case.solved(alone), column=j, what=what)


def _weight_zero_removes(case: _Case) -> None:
    """Examples of weight zero count for nothing."""
    n = len(case.X)
    kept = np.arange(n) % 3 != 0
    whole, part = case.problem(weights=kept.astype(float)), case.problem(rows=kept)
    with_zeros, without = case.solved(whole), case.solved(part)
    assert_close(with_zeros.objective, without.objective, 2 * case.tol, "objective")
    _same(case, whole, with_zeros, part, without, rows=kept, what="latent values")


def _weight_two_repeats(case: _Case) -> None:
    """An example of weight two is the example twice."""
    n = len(case.X)
    weights = np.ones(n)
    weights[:4] = 2.0
    rows = np.concatenate([np.arange(n), np.arange(4)])
    heavy, repeated = case.problem(weights=weights), case.problem(rows=rows)
    one, two = case.solved(heavy), case.solved(repeated)
    assert_close(one.objective, two.objective, 2 * case.tol, "objective")
    U, V = heavy.operator @ one.coefficients, repeated.operator @ two.coefficients
    error, allowed = np.abs(U - V[:n]).max(), _radius(case, one) + _radius(case, two)
    assert error <= allowed, f"latent values differ by {error:.3g}, allowed {allowed:.3g}."


def _keeps_single_precision(case: _Case) -> None:
    """float32 targets on a float32 operator give float32 coefficients, also with float64 weights."""
    small = replace(case, X=case.X.astype(np.float32), Y=case.Y.astype(np.float32), tol=1e-3)
    double = case.solved(case.problem())
    for weights in (None, np.ones(len(case.X), dtype=np.float32), np.ones(len(case.X))):
        solution = small.solved(small.problem(weights=weights))
        dtype = solution.coefficients.dtype
        assert dtype == np.float32, f"dtype {dtype}, weights {getattr(weights, 'dtype', None)}."
        assert_close(solution.objective, double.objective, 2e-3, "objective")


# --- helpers ----------------------------------------------------------------------------------


class _Named:
    """Printed as its name."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


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


def _radius(case: _Case, solution: Solution, strength: float | None = None) -> float:
    """How far a latent value may be from its optimum: √(2 gap / λ), as k(x, x) = 1."""
    gap = float(solution.gaps.max()) + 1e-14 * solution.objective
    return float(np.sqrt(2 * gap / (case.strength if strength is None else strength))) + 1e-7


def _same(
    case: _Case,
    one: Problem,
    solution: Solution,
    two: Problem,
    other: Solution,
    *,
    column: int | None = None,
    rows: Any = slice(None),
    what: str,
) -> None:
    """Latent values agree as closely as the certificates promise."""
    U = one.operator @ solution.coefficients
    U = U if column is None else U[:, :, column]
    V = two.operator @ other.coefficients
    strength = float(two.strength[0])
    radius = _radius(case, solution, strength) + _radius(case, other, strength)
    error = np.abs(U[rows] - V).max()
    assert error <= radius, f"{what}: latent values differ by {error:.3g}, allowed {radius:.3g}."
