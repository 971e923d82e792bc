"""Contrast problems as sums φ + Ψ for `dual_averaging`.

Objective
    J(W) = Ω(W) + H(W) of `ContrastProblem`; points are coefficients c (n, m) with w_i = Σ_k c_ki x_k (theorem 3 of
    Zhou, Xiao & Wu 2011), so that features and Gram matrices are treated alike.

Splitting
    - *Quadratic penalties*: Ψ = Ω and φ = H. With W = S P everything happens in the inner product ⟨P, P'⟩_S, where a
      subgradient of H is Σ_k ± c_k ρ x_k and the minimiser is P = −ḡ. S may be singular.
    - *Orthogonal penalty*: Ψ = ½ Σ_i K_ii |w_i|², and φ = H + ½ Σ_{i≠j} K_ij |w_iᵀ w_j|. At normals W the signs
      σ = sign(W Wᵀ) of theorem 4 give a quadratic minorant of the second part, which is exact at W:

          ½ Σ_{i≠j} K_ij |v_iᵀ v_j| ≥ ½ Σ_{i≠j} K_ij σ_ij v_iᵀ v_j.

      It is linear in σ: a subgradient is the pair of one of H and K∘σ, and averages of it are minimised at
      W = −(diag K + K∘σ̄)⁻¹ ḡ, where the inverse exists for all |σ̄| ≤ 1. The lower bound is the dual function of
      `ContrastProblem` at averages.

Cost
    One product with the Gram matrix an iteration, of the new subgradient: averages carry their scores along. Beyond
    that n m² + m³, and a few arrays of shape (n, m).

Deviations
    Section 4.3 of the paper keeps Ψ = λ_min/2 |w|² and linearises the rest of Ω. Its subgradients then grow with w, at
    first by up to λ_max / λ_min a step, and the mean constant δ does not forget it. Iterations to a proven relative gap
    of 1 %, orthogonal penalty with C = 1/n and 1: on 300 generated examples in trees of 30 to 40 nodes 350 to 450; on
    5000 documents of RCV1 in the tree below CCAT 157 and 419. With the paper's Ψ, or with the largest multiple of
    ½ Σ K_ii |w_i|² that leaves a convex φ, the relative gap was still 100 % or more after 4000 and 400 iterations.
    Weights 2 / (t + 1), an exact line search for the mean, and J at averages of iterates gained nothing worth its cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.labels.margins.orthogonality import OrthogonalPenalty
from gramian.solvers.contrast.problem import ContrastProblem


@dataclass(frozen=True, eq=False)
class _Point:
    """Coefficients c (n, m), scores U = K c (n, m), Ψ, and W Wᵀ (m, m) if the penalty is orthogonal, else (0, m)."""

    coefficients: np.ndarray
    latent: np.ndarray
    normals: np.ndarray
    strong: float


class ContrastSplit:
    """A contrast problem, split for dual averaging.

    Parameters
    ----------
    problem : ContrastProblem

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import QuadraticPenalty, Taxonomy, sibling_contrasts
    >>> from gramian.solvers import ContrastProblem, ContrastSplit, dual_averaging
    >>> tree = Taxonomy.from_dict({"a": None, "b": None})
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> contrasts = sibling_contrasts(tree, np.array([1, 2]))
    >>> problem = ContrastProblem(X, np.array([0, 1]), contrasts, QuadraticPenalty(np.eye(2)))
    >>> solution = dual_averaging(
    ...     ContrastSplit(problem), epsilon=lambda upper: problem.allowed_gap(upper, 0.01)
    ... )
    >>> (X.T @ solution.coefficients).round(1)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """

    lower = 0.0  # neither losses nor penalties are negative

    def __init__(self, problem: ContrastProblem):
        problem.penalty.start()  # refuses weights that are not convex, whose bounds would be none
        self.problem = problem
        penalty = problem.penalty
        self.matrix = penalty.weights if isinstance(penalty, OrthogonalPenalty) else penalty.gram
        self.orthogonal = isinstance(problem.penalty, OrthogonalPenalty)

    def start(self) -> _Point:
        """Return zero."""
        n, m = self.problem.shape
        return _Point(np.zeros((n, m)), np.zeros((n, m)), np.zeros((m * self.orthogonal, m)), 0.0)

    def oracle(self, w: _Point) -> tuple[float, np.ndarray]:
        """Return φ and a subgradient: one of H, its scores and, of an orthogonal penalty, K∘σ without its diagonal.

        All have a column for each output, and lie below each other.
        """
        losses, worst = self.problem.losses(w.latent)
        A = self.problem.subgradient(worst)
        parts = [A, self.problem.latent(A)]
        if not self.orthogonal:
            return losses, np.concatenate(parts)
        penalty = self.problem.penalty
        signed = penalty.subgradient_matrix(w.normals)
        np.fill_diagonal(signed, 0.0)
        phi = losses + penalty.of_normals(w.normals) - w.strong
        return phi, np.concatenate([*parts, signed])

    def pairing(self, g: np.ndarray, w: _Point) -> float:
        """Return ⟨g, w⟩, with the quadratic form of signs where there are any."""
        n = self.problem.shape[0]
        return float(np.vdot(g[:n], w.latent) + 0.5 * np.vdot(g[2 * n :], w.normals))

    def strong(self, w: _Point) -> float:
        """Return Ψ."""
        return w.strong

    def minimiser(self, g: np.ndarray) -> _Point:
        """Return W = −S ḡ with the S of the penalty, or of averaged signs."""
        n = self.problem.shape[0]
        P, Q = -g[:n], -g[n : 2 * n]
        if not self.orthogonal:
            c = P @ self.matrix
            return _Point(c, Q @ self.matrix, np.empty((0, c.shape[1])), 0.5 * float(np.vdot(c, Q)))
        diagonal = np.diag(self.matrix)
        S = np.linalg.inv(np.diag(diagonal) + g[2 * n :])
        normals = S @ (P.T @ Q) @ S
        return _Point(P @ S, Q @ S, normals, 0.5 * float(diagonal @ np.diag(normals)))

    def coefficients(self, w: _Point) -> np.ndarray:
        """Return c."""
        return w.coefficients
