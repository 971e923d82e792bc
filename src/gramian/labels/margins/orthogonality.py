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

Signs and the factor of S belong to a solver: `OrthogonalPenalty.start` returns them as a form
    (`labels.margins.forms`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from gramian.labels.margins.forms import FixedForm, SignedForm
from gramian.labels.taxonomy.taxonomy import Taxonomy

ROUNDING = 1e-14  # relative: smaller eigenvalues are those of rounding errors
LARGE = 1000  # matrices of sparse weights from here on have their extreme eigenvalues found by Lanczos' method


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
    K = sparse_orthogonality_weights(taxonomy).toarray()
    diagonal = np.diag(K.diagonal())
    return diagonal + alpha * (K - diagonal)


def sparse_orthogonality_weights(taxonomy: Taxonomy) -> sp.csr_array:
    """Return the K of `orthogonality_weights` as a sparse array: its entries are a node's ancestors and descendants."""
    nodes = range(1, taxonomy.n_nodes)
    above = [taxonomy.ancestors(node)[:-1] - 1 for node in nodes]
    counts = [some.size for some in above]
    i, j = np.repeat(np.arange(len(counts)), counts), np.concatenate(above)
    ones, shape = np.ones(i.size), (len(counts), len(counts))
    upper = sp.csr_array((ones, (j, i)), shape=shape)
    return sp.csr_array(upper + upper.T + sp.diags_array(taxonomy.sizes[1:].astype(np.float64)))


def with_unit_diagonal(K: Any) -> Any:
    """Return K_ij / √(K_ii K_jj): weights with a unit diagonal, for which C means the same at every node.

    With the diagonal D of K this is D^-½ K D^-½. Its comparison matrix is congruent to that of K, so that one is
    positive definite if and only if the other is, and `largest_alpha` is the same for both.

    Parameters
    ----------
    K : array or sparse array of shape (m, m)
        With a positive diagonal.

    Returns
    -------
    ndarray or CSR array of shape (m, m)

    Examples
    --------
    >>> from gramian.labels import Taxonomy, orthogonality_weights
    >>> from gramian.labels.margins.orthogonality import with_unit_diagonal
    >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None})
    >>> with_unit_diagonal(orthogonality_weights(pets))[0].round(3)
    array([1.   , 0.   , 0.577, 0.577])
    """
    scale = sp.diags_array(1.0 / np.sqrt(K.diagonal()))
    scaled = scale @ K @ scale
    if sp.issparse(scaled):
        scaled = sp.csr_array(scaled)
        scaled.setdiag(1.0)
    else:
        np.fill_diagonal(scaled, 1.0)  # rounding would leave some of them off by a digit
    return scaled


def comparison_matrix(K: Any) -> Any:
    """Return K̄: ``|K_ii|`` on the diagonal, ``−|K_ij|`` elsewhere; K may be sparse, and K̄ is then."""
    if sp.issparse(K):
        return sp.csr_array(2.0 * sp.diags_array(np.abs(K.diagonal())) - abs(K))
    return 2.0 * np.diag(np.abs(np.diag(K))) - np.abs(K)


def smallest_eigenvalue(K: Any) -> float:
    """Return λ_min of the comparison matrix: the modulus of strong convexity of Ω, if it is positive."""
    return -_largest_eigenvalue(-comparison_matrix(K))


def largest_alpha(K: Any) -> float:
    """Return the factor by which what is off the diagonal of K may grow until Ω is convex no longer.

    With D the diagonal, K̄ = D − a (K − D) is positive semidefinite iff a ≤ 1 / ρ(D^-½ (K − D) D^-½). It is infinite if
    K is diagonal. K may be sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import largest_alpha
    >>> round(largest_alpha(np.array([[4.0, 1.0], [1.0, 1.0]])), 6)
    2.0
    """
    diagonal = K.diagonal()
    scale = sp.diags_array(1.0 / np.sqrt(diagonal))
    radius = _largest_eigenvalue(scale @ (K - sp.diags_array(diagonal)) @ scale)
    return np.inf if radius <= 0 else 1.0 / radius


def _largest_eigenvalue(K: Any) -> float:
    if sp.issparse(K) and K.shape[0] >= LARGE:
        return float(eigsh(K, k=1, which="LA", v0=np.ones(K.shape[0]))[0][0])
    return float(np.linalg.eigvalsh(K.toarray() if sp.issparse(K) else K)[-1])


class QuadraticPenalty:
    """½ tr(Wᵀ S⁺ W) with a given S: W = S P costs ½ tr(S P Pᵀ), and S need not be invertible.

    Parameters
    ----------
    gram : array of shape (m, m), default=None
        S, symmetric and positive semidefinite: the Gram matrix of the outputs.
    factor : CSR array of shape (m, r), default=None
        F with S = F Fᵀ, instead of S: where it is sparse, S need not be formed.
    """

    def __init__(self, gram: Any = None, *, factor: Any = None):
        if factor is None:
            self.gram = np.array(gram, dtype=np.float64)
            factor = _root(self.gram)
        self._factor = factor
        self.n_outputs = int(factor.shape[0])

    @cached_property
    def gram(self) -> np.ndarray:
        """S, which solvers of small problems form."""
        return (self._factor @ self._factor.T).toarray()

    def start(self) -> FixedForm:
        """Return S as a form."""
        return FixedForm(self._factor)


class OrthogonalPenalty:
    """``Ω(W) = ½ Σ K_ij |w_iᵀ w_j|``.

    Parameters
    ----------
    weights : array or sparse array of shape (m, m)
        K, symmetric and nonnegative; its comparison matrix is positive definite.
    """

    def __init__(self, weights: Any):
        self._weights = sp.csr_array(weights, dtype=np.float64)
        self._weights.eliminate_zeros()
        self.n_outputs = self._weights.shape[0]

    @cached_property
    def weights(self) -> np.ndarray:
        """K as an array, which solvers of small problems need."""
        return self._weights.toarray()

    @property
    def pairs(self) -> np.ndarray:
        """The pairs i < j with K_ij > 0, shape (n_pairs, 2)."""
        return np.argwhere(np.triu(self.weights, 1) > 0)

    def start(self) -> SignedForm:
        """Return the form with signs of zero, for which normals are independent; refuse weights that are not convex."""
        weights = self._weights
        try:
            form = SignedForm(weights)
            form.signs[:] = -1.0  # the comparison matrix: the least definite of all forms
            form.signs[form.factor.start[:-1]] = 1.0
            form.renew()
        except np.linalg.LinAlgError:
            form = None
        if form is None or weights.data.min(initial=0.0) < 0:
            raise ValueError(
                "weights must not be negative, and their comparison matrix must be positive definite: the smallest "
                f"weight is {weights.min():.3g}, the smallest eigenvalue {smallest_eigenvalue(weights):.3g}. Raise the "
                "diagonal, or scale the rest by less than largest_alpha(weights)."
            )
        form.signs[form.signs < 0] = 0.0
        form.renew()
        return form

    def of_normals(self, T: np.ndarray) -> float:
        """Return the penalty from the Gram matrix T = W Wᵀ of the normals."""
        return 0.5 * float(np.sum(self.weights * np.abs(T)))

    def subgradient_matrix(self, T: np.ndarray) -> np.ndarray:
        """Return B of shape (m, m) such that B W is a subgradient at W, from T = W Wᵀ (theorem 4)."""
        B = self.weights * np.sign(T)
        np.fill_diagonal(B, np.diag(self.weights))
        return B


def _root(gram: np.ndarray) -> sp.csr_array:
    """F with F Fᵀ = S, by eigenvectors of each connected part."""
    _, part = connected_components(sp.csr_array(gram), directed=False)
    blocks, places = [], []
    for label in range(part.max(initial=-1) + 1):
        outputs = np.flatnonzero(part == label)
        values, vectors = np.linalg.eigh(gram[np.ix_(outputs, outputs)])
        some = values > ROUNDING * values.max()
        blocks.append(vectors[:, some] * np.sqrt(values[some]))
        places.append(outputs)
    order = np.argsort(np.concatenate([np.empty(0, dtype=np.int64), *places]))
    return sp.csr_array(sp.csr_array(sp.block_diag(blocks))[order])
