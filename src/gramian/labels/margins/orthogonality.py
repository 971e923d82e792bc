"""Penalties on the normals of nodes: towards orthogonality, or any quadratic form.

Objective
    Ω(W) = ½ Σ_ij K_ij |w_iᵀ w_j| with K symmetric and nonnegative pushes the normals of nodes i, j with K_ij > 0 to be
    orthogonal. Its terms are not convex, but Ω is if the comparison matrix K̄ (the diagonal of K, minus all else) is
    positive semidefinite, and only then if there are enough features; it is strongly convex with modulus λ_min(K̄)
    (Zhou, Xiao & Wu 2011, theorem 1 and corollary 2). Theorem 4: K∘sign(W Wᵀ) applied to W is a subgradient.

As a maximum of quadratic forms
    |t| is the largest σ t with −1 ≤ σ ≤ 1, hence

        Ω(W) = max over signs σ of ½ Σ_ij (K∘σ)_ij w_iᵀ w_j,        σ_ii = 1,  |σ_ij| ≤ 1.

    The comparison matrix of K∘σ is at least K̄, so that K∘σ is positive definite for all σ, and with S = (K∘σ)⁻¹ the
    conjugate of each form is ½ tr(S P Pᵀ), attained at W = S P. This matrix-fractional function is *jointly* convex in
    P and σ: a hierarchical SVM with orthogonal transfer has a concave dual in its coefficients and the signs,

        maximise over β, σ    Σ β ρ − ½ tr(S_σ G),        G = P Pᵀ,  P = Aᵀ X,

    with simple constraints, which the paper does not use. Its gradient in σ_ij is K_ij w_iᵀ w_j: at the optimum a pair
    is orthogonal, or its sign is that of its inner product.

Method
    `OrthogonalPenalty.improve` visits the pairs in turn with a Newton step each, clipped to [−1, 1] and halved until
    the dual does not fall; S changes by a matrix of rank two.

Cost
    O(k³) for a sweep over the pairs of a tree of k nodes below the root's child; examples and features do not matter.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numba
import numpy as np
from scipy.sparse.csgraph import connected_components

from gramian.labels.taxonomy.taxonomy import Taxonomy


def orthogonality_weights(taxonomy: Taxonomy, alpha: float = 1.0) -> np.ndarray:
    """Return K: nodes below and including i on the diagonal, ``alpha`` between ancestors and descendants (eq. 6).

    Parameters
    ----------
    taxonomy : Taxonomy
    alpha : float, default=1.0

    Returns
    -------
    ndarray of shape (n_nodes - 1, n_nodes - 1)
        Row p is node p + 1: there is none for the root.

    Examples
    --------
    >>> from gramian.labels import Taxonomy, orthogonality_weights
    >>> orthogonality_weights(Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None}), 0.5)
    array([[3. , 0. , 0.5, 0.5],
           [0. , 1. , 0. , 0. ],
           [0.5, 0. , 1. , 0. ],
           [0.5, 0. , 0. , 1. ]])
    """
    place, sizes = taxonomy.preorder[1:], taxonomy.sizes[1:]
    below = (place[:, None] < place) & (place < (place + sizes)[:, None])
    return np.diag(sizes.astype(np.float64)) + alpha * (below | below.T)


def with_unit_diagonal(K: np.ndarray) -> np.ndarray:
    """Return K_ij / √(K_ii K_jj): weights with a unit diagonal, for which C means the same at every node.

    With the diagonal D of K this is D^-½ K D^-½. Its comparison matrix is congruent to that of K, so that one is
    positive definite if and only if the other is, and `largest_alpha` is the same for both.

    Parameters
    ----------
    K : array of shape (m, m)
        With a positive diagonal.

    Returns
    -------
    ndarray of shape (m, m)

    Examples
    --------
    >>> from gramian.labels import Taxonomy, orthogonality_weights
    >>> from gramian.labels.margins.orthogonality import with_unit_diagonal
    >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None})
    >>> with_unit_diagonal(orthogonality_weights(pets))[0].round(3)
    array([1.   , 0.   , 0.577, 0.577])
    """
    scale = 1.0 / np.sqrt(np.diag(K))
    scaled = K * np.outer(scale, scale)
    np.fill_diagonal(scaled, 1.0)  # rounding would leave some of them off by a digit
    return scaled


def comparison_matrix(K: np.ndarray) -> np.ndarray:
    """Return K̄: ``|K_ii|`` on the diagonal, ``−|K_ij|`` elsewhere."""
    return 2.0 * np.diag(np.abs(np.diag(K))) - np.abs(K)


def smallest_eigenvalue(K: np.ndarray) -> float:
    """Return λ_min of the comparison matrix: the modulus of strong convexity of Ω, if it is positive."""
    return float(np.linalg.eigvalsh(comparison_matrix(K))[0])


def largest_alpha(K: np.ndarray) -> float:
    """Return the factor by which what is off the diagonal of K may grow until Ω is convex no longer.

    With D the diagonal, K̄ = D − a (K − D) is positive semidefinite iff a ≤ 1 / ρ(D^-½ (K − D) D^-½). It is infinite if
    K is diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import largest_alpha
    >>> round(largest_alpha(np.array([[4.0, 1.0], [1.0, 1.0]])), 6)
    2.0
    """
    scale = 1.0 / np.sqrt(np.diag(K))
    coupling = (K - np.diag(np.diag(K))) * np.outer(scale, scale)
    radius = float(np.linalg.eigvalsh(coupling)[-1])
    return np.inf if radius <= 0 else 1.0 / radius


class QuadraticPenalty:
    """½ tr(Wᵀ S⁺ W) with a given S: W = S P costs ½ tr(S P Pᵀ), and S need not be invertible.

    Parameters
    ----------
    gram : array of shape (m, m)
        S, symmetric and positive semidefinite: the Gram matrix of the outputs.
    """

    def __init__(self, gram: Any):
        self.gram = np.array(gram, dtype=np.float64)

    @property
    def pattern(self) -> np.ndarray:
        """Which pairs of outputs are coupled, boolean of shape (m, m)."""
        return self.gram != 0

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Return signs (there are none) and S, which solvers may change."""
        return np.empty(0), self.gram.copy()

    def improve(self, signs: np.ndarray, S: np.ndarray, G: np.ndarray, sweeps: int = 1) -> None:
        """Do nothing: S is what it is."""

    def value(self, S: np.ndarray, G: np.ndarray) -> float:
        """Return the penalty of W = S P from G = P Pᵀ."""
        return 0.5 * float(np.sum(S * G))


class OrthogonalPenalty:
    """``Ω(W) = ½ Σ K_ij |w_iᵀ w_j|``.

    Parameters
    ----------
    weights : array of shape (m, m)
        K, symmetric and nonnegative; its comparison matrix is positive definite.
    """

    def __init__(self, weights: Any):
        self.weights = np.array(weights, dtype=np.float64)
        self.pairs = np.argwhere(np.triu(self.weights, 1) > 0)

    @property
    def pattern(self) -> np.ndarray:
        """Which pairs of outputs are coupled, boolean of shape (m, m)."""
        return self.weights != 0

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Return signs of zero, for which normals are independent, and S; refuse weights that are not convex."""
        lowest = smallest_eigenvalue(self.weights)
        if self.weights.min() < 0 or lowest <= 0:
            raise ValueError(
                "weights must not be negative, and their comparison matrix must be positive definite: the smallest "
                f"weight is {self.weights.min():.3g}, the smallest eigenvalue {lowest:.3g}. Raise the diagonal, or "
                "scale the rest by less than largest_alpha(weights)."
            )
        return np.zeros(len(self.pairs)), np.diag(1.0 / np.diag(self.weights))

    def improve(self, signs: np.ndarray, S: np.ndarray, G: np.ndarray, sweeps: int = 1) -> None:
        """Raise −½ tr(S G) by sweeps over the signs; change signs and S in place.

        Parameters
        ----------
        signs : array of shape (n_pairs,)
        S : array of shape (m, m)
        G : array of shape (m, m)
            P Pᵀ, at least where the pattern connects outputs.
        sweeps : int, default=1
        """
        for outputs, pairs in self._parts:
            block = np.ix_(outputs, outputs)
            local = np.searchsorted(outputs, self.pairs[pairs])
            some = signs[pairs]
            S[block] = _improved(self.weights[block], local, some, G[block], sweeps)
            signs[pairs] = some

    @cached_property
    def _parts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Outputs and pairs of each connected part with more than one output."""
        _, part = connected_components(self.pattern, directed=False)
        of_pairs = part[self.pairs[:, 0]]
        return [
            (np.flatnonzero(part == label), np.flatnonzero(of_pairs == label))
            for label in np.unique(of_pairs)
        ]

    def value(self, S: np.ndarray, G: np.ndarray) -> float:
        """Return the penalty of W = S P from G = P Pᵀ."""
        return self.of_normals(S @ G @ S)

    def of_normals(self, T: np.ndarray) -> float:
        """Return the penalty from the Gram matrix T = W Wᵀ of the normals."""
        return 0.5 * float(np.sum(self.weights * np.abs(T)))

    def subgradient_matrix(self, T: np.ndarray) -> np.ndarray:
        """Return B of shape (m, m) such that B W is a subgradient at W, from T = W Wᵀ (theorem 4)."""
        B = self.weights * np.sign(T)
        np.fill_diagonal(B, np.diag(self.weights))
        return B


@numba.njit(cache=True)
def _improved(K, pairs, signs, G, sweeps):
    """Newton steps on the signs of one connected part; return S = (K∘σ)⁻¹."""
    A = np.diag(np.diag(K))
    for e in range(len(pairs)):
        i, j = pairs[e]
        A[i, j] = A[j, i] = signs[e] * K[i, j]
    S = np.ascontiguousarray(np.linalg.inv(A))  # anew each time: updates of rank two drift
    for _ in range(sweeps):
        for e in range(len(pairs)):
            i, j = pairs[e]
            left, right = G @ S[i], G @ S[j]
            t_ii, t_ij, t_jj = S[i] @ left, S[i] @ right, S[j] @ right
            a, b, c = S[i, i], S[i, j], S[j, j]
            curvature = a * t_jj + c * t_ii + 2.0 * b * t_ij
            if curvature <= 0:
                continue
            step = min(1.0, max(-1.0, signs[e] + t_ij / (curvature * K[i, j]))) - signs[e]
            for _ in range(50):
                # K∘σ + d (e_i e_jᵀ + e_j e_iᵀ): S changes by −s Z sᵀ with s = (S_i, S_j)
                d = step * K[i, j]
                det = (1.0 + b * d) ** 2 - a * c * d * d
                z_ii, z_jj, z_ij = -c * d * d / det, -a * d * d / det, (1.0 + b * d) * d / det
                gain = 0.5 * (z_ii * t_ii + z_jj * t_jj + 2.0 * z_ij * t_ij)
                if gain >= 0 or step == 0:
                    break
                step *= 0.5
            if gain <= 0:
                continue
            signs[e] += step
            s_i, s_j = S[i].copy(), S[j].copy()
            for p in range(len(S)):
                u, v = z_ii * s_i[p] + z_ij * s_j[p], z_ij * s_i[p] + z_jj * s_j[p]
                for q in range(len(S)):
                    S[p, q] -= u * s_i[q] + v * s_j[q]
    return S
