"""Newton with exact steps by Cholesky and Woodbury, O(C n³) per step (Seeger, appendix B, flat case).

The step solves ``(λI + W𝒦) s = −ρ`` with ``W = D − D 1 w⁻¹ 1ᵀ D`` within examples and 𝒦
block-diagonal over outputs. With ``E_c = D_c^½ (λI + D_c^½ K_c D_c^½)⁻¹ D_c^½``,

    s = −(ρ − F 𝒦ρ) / λ,    F = E − E O (Σ_c E_c)⁻¹ Oᵀ E

(O sums over outputs; F = E when they are not coupled): one Cholesky factor per output and one for
Σ_c E_c. Nothing is divided by a probability. One Newton step solves a squared loss, and outputs
that share a matrix and weights then share the factor.

Where rounding errors leave the matrix without a factor, λ is raised for the step, which is then a damped one; the
certificate is that of the problem as it was.

Optimality and certificate as in `newton`. Deviates from the appendix (marked there as not up to
date): written for any λ, weights and diagonal losses, rederived in the form of Rasmussen &
Williams' Algorithm 3.3. NumPy arrays only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from gramian._core.arrays import Array
from gramian._core.factors import raise_diagonal
from gramian.losses import Curvature
from gramian.solvers.rkhs.descend import State, descend
from gramian.solvers.rkhs.line_search import backtrack
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder
from gramian.solvers.rkhs.requirements import NUMPY_ARRAYS, SUM_OVER_EXAMPLES, require
from gramian.solvers.solution import Callback, Solution

PATIENCE = 6  # steps without progress, after which rounding errors are to blame


def exact(
    problem: Problem,
    *,
    start: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> Solution:
    """Minimise by Newton with exact steps; arguments as for `newton`.

    Columns of lockstep problems are factored one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Logistic
    >>> from gramian.operators import Dense
    >>> from gramian.solvers import Problem, exact
    >>> X = np.linspace(-1, 1, 6)[:, None]
    >>> problem = Problem(Dense(RBF(), X), Logistic(), (X > 0).astype(float), regularization=0.1)
    >>> solution = exact(problem)
    >>> solution.status, solution.gap <= 1e-8 * solution.objective
    ('converged', True)
    """
    require(problem, "exact", [NUMPY_ARRAYS], instead="newton")
    require(problem, "exact", [SUM_OVER_EXAMPLES], instead="kernel_cg")
    recorder = _BlockRecorder(problem, tol, max_iter, callback, PATIENCE)

    def direction(state: State) -> tuple[Array, None, Array]:
        s = _steps(problem, recorder.blocks, problem.curvature(state.U), state)
        return s, None, backtrack(problem, state, s, recorder.product(s))

    return descend(recorder, direction, problem.start(start))


class _BlockRecorder(Recorder):
    """Multiplies with the dense blocks of the operator, in the precision of the coefficients.

    Blocks of a float32 operator are rounded. Products that certificates rest on are those of the operator itself.
    """

    @cached_property
    def blocks(self) -> list[tuple[np.ndarray, list[int]]]:
        """Matrices with the outputs that each one serves."""
        problem = self.problem
        blocks, dtype = problem.operator.blocks(problem.shape[1]), problem.targets.dtype
        return [(np.asarray(K, dtype=dtype), outputs) for K, outputs in blocks]

    def product(self, B: np.ndarray) -> np.ndarray:
        self.n_products += 1
        out = np.empty_like(B)
        for matrix, outputs in self.blocks:
            columns = B[:, outputs, :]
            out[:, outputs, :] = (matrix @ columns.reshape(len(B), -1)).reshape(columns.shape)
        return out


def _steps(problem: Problem, blocks: list, curvature: Curvature, state: State) -> np.ndarray:
    """Newton steps; zero for columns that are done."""
    rho, K_rho, strength = state.rho, state.K_rho, problem.strength
    D = np.broadcast_to(curvature.diagonal, rho.shape)
    steps = np.zeros_like(rho)
    largest = max(float(np.max(np.diagonal(matrix))) for matrix, _ in blocks)

    def solved(
        columns: Any, D: np.ndarray, F: Callable[[float], np.ndarray], strength: float
    ) -> np.ndarray:
        """The step −(ρ − F 𝒦ρ) / λ of some columns."""

        def attempt(more: float) -> np.ndarray:
            return -(rho[columns] - F(strength + more)) / (strength + more)

        bound = largest * float(np.max(D, initial=0.0)) + strength
        return raise_diagonal(attempt, bound, len(rho), rho.dtype)

    shared = not curvature.coupled and np.all(D == D[:, :1, :1]) and len(blocks) == 1
    if shared and np.all(strength == strength[0]):  # one factor serves all: ridge regression

        def of_all(strength: float) -> np.ndarray:
            factor = _factor(blocks[0][0], D[:, 0, 0], strength)
            return _apply(factor, K_rho.reshape(len(rho), -1)).reshape(rho.shape)

        steps = solved(..., D, of_all, float(strength[0]))
    else:
        for j in np.flatnonzero(~state.done):
            weights, right = D[:, :, j], K_rho[:, :, j]
            of_one = partial(_coupled, blocks, curvature.coupled, weights, right)
            steps[:, :, j] = solved(np.s_[:, :, j], weights, of_one, float(strength[j]))
    return steps * problem.spread(~state.done)


def _coupled(
    blocks: list, coupled: bool, D: np.ndarray, V: np.ndarray, strength: float
) -> np.ndarray:
    """F V for one column."""
    factors = [
        (c, _factor(matrix, D[:, c], strength)) for matrix, outputs in blocks for c in outputs
    ]
    EV = np.empty_like(V)
    for c, factor in factors:
        EV[:, c] = _apply(factor, V[:, c])
    if not coupled:
        return EV
    kept = D.sum(axis=1) > 0  # examples of weight zero drop out
    total = np.sum([_inverse(factor) for _, factor in factors], axis=0)
    chol = cho_factor(total[np.ix_(kept, kept)], lower=True)
    correction = np.zeros(len(V), dtype=V.dtype)
    correction[kept] = cho_solve(chol, EV.sum(axis=1)[kept])
    for c, factor in factors:
        EV[:, c] -= _apply(factor, correction)
    return EV


def _factor(K: np.ndarray, d: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Root of d, and the Cholesky factor of λI + d^½ K d^½."""
    root = np.sqrt(d)
    matrix = root[:, None] * K * root
    matrix[np.diag_indices_from(matrix)] += strength
    return root, cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)


def _apply(factor: tuple[np.ndarray, np.ndarray], V: np.ndarray) -> np.ndarray:
    """E V."""
    root, chol = factor
    root = root if V.ndim == 1 else root[:, None]
    return root * cho_solve((chol, True), root * V, check_finite=False)


def _inverse(factor: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """E itself."""
    root, chol = factor
    half = solve_triangular(chol, np.diag(root), lower=True, check_finite=False)
    return half.T @ half
