"""The least objective of a contrast problem, found by L-BFGS of SciPy on a smoothed form of it.

With K = L Lᵀ the scores are U = L V for coordinates V (r × m) of the normals, whose inner products are T = VᵀV. The
largest of some costs is smoothed to ``width log Σ exp(cost / width)``, and |T_ij| in an orthogonal penalty to
``√(T_ij² + width²)``, more and more sharply; the optimum of each is the start of the next. What is returned is the
unsmoothed objective of the best point found, which is never below the minimum.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from gramian.labels import OrthogonalPenalty
from gramian.solvers import ContrastProblem
from gramian.testing.solvers import root

SHARPNESS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # widths of smoothed corners, one after the other


def contrast_objective(problem: ContrastProblem, U: np.ndarray, T: np.ndarray) -> float:
    """The objective of normals with scores U, shape (n, m), and inner products T, shape (m, m)."""
    penalty = problem.penalty
    if isinstance(penalty, OrthogonalPenalty):
        of_normals = penalty.of_normals(T)
    else:
        of_normals = 0.5 * float(np.sum(np.linalg.pinv(penalty.gram, hermitian=True) * T))
    return of_normals + problem.losses(np.ascontiguousarray(U))[0]


def least_contrast_objective(problem: ContrastProblem, L: np.ndarray) -> float:
    """The least objective that L-BFGS finds, for K = L Lᵀ."""
    orthogonal = isinstance(problem.penalty, OrthogonalPenalty)
    # V = Z Bᵀ: a quadratic penalty is ½ ‖Z‖² then
    B = np.eye(problem.shape[1]) if orthogonal else root(problem.penalty.gram)
    shape, costs = (L.shape[1], B.shape[1]), _Costs(problem)
    best, z = problem.value_at_zero, np.zeros(shape[0] * shape[1])
    for width in SHARPNESS:

        def objective(z: np.ndarray, width: float = width) -> tuple[float, np.ndarray]:
            Z = z.reshape(shape)
            loss, slope = costs.smoothed(L @ Z @ B.T, width)
            gradient = L.T @ slope @ B
            if not orthogonal:
                return loss + 0.5 * float(z @ z), (gradient + Z).reshape(-1)
            T, weights = Z.T @ Z, problem.penalty.weights
            size = np.sqrt(T * T + width * width)
            sign = T / size
            np.fill_diagonal(size, np.diag(T))
            np.fill_diagonal(sign, 1.0)
            gradient = gradient + Z @ (weights * sign)
            return loss + 0.5 * float(np.sum(weights * size)), gradient.reshape(-1)

        options = {"maxiter": 5000, "maxfun": 20_000, "maxcor": 30, "ftol": 0.0, "gtol": 1e-10}
        z = minimize(objective, z, jac=True, method="L-BFGS-B", options=options).x
        V = z.reshape(shape) @ B.T
        best = min(best, contrast_objective(problem, L @ V, V.T @ V))
    return best


class _Costs:
    """The contrasts of all losses, one after the other."""

    def __init__(self, problem: ContrastProblem):
        c, units = problem.contrasts.triples(), np.arange(problem.labels.size)
        counts = np.diff(c.start)[problem.labels]
        self.unit = np.repeat(units, counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        contrast = c.start[problem.labels][self.unit] + np.arange(self.unit.size) - first
        self.own, self.rival, self.scale = c.own[contrast], c.rival[contrast], c.scale[contrast]
        self.row, self.caps = problem.examples[self.unit], problem.caps

    def smoothed(self, U: np.ndarray, width: float) -> tuple[float, np.ndarray]:
        """The sum of all losses with smoothed corners, and its gradient in U."""
        costs = self.scale * (1.0 - U[self.row, self.own] + U[self.row, self.rival]) / width
        top = np.zeros(self.caps.size)
        np.maximum.at(top, self.unit, costs)
        shares = np.exp(costs - top[self.unit])
        total = np.exp(-top) + np.bincount(self.unit, shares, minlength=top.size)
        slope = self.caps[self.unit] * self.scale * shares / total[self.unit]
        gradient = np.zeros_like(U)
        np.add.at(gradient, (self.row, self.own), -slope)
        np.add.at(gradient, (self.row, self.rival), slope)
        return float(width * (self.caps @ (top + np.log(total)))), gradient
