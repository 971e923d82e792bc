"""Quadratic forms of outputs by a sparse factor, S = F Fᵀ: what a penalty is to a solver.

Formula
    With sums P = Aᵀ X the normals are W = S P and ½ tr(S P Pᵀ) is what they cost. Solvers keep the *latent* sums
    Y = Fᵀ P: then W = F Y, the cost is ½ ‖Y‖², and if the coefficient of an example x grows by δ for output i, Y grows
    by δ F_i xᵀ, in the few rows r with F_ir ≠ 0.

Signs
    With an orthogonal penalty S is the inverse of A = K∘σ (`labels.margins.orthogonality`). A = L Lᵀ, outputs from the
    last to the first, has no entries beyond the paths of the *elimination tree* of K, and so does F = L⁻ᵀ: row i is
    zero but for i and its ancestors. For K of a taxonomy whose nodes are numbered breadth first that tree is the
    taxonomy: the factor has no fill-in, and a visit to an example of label y reads the families along the path to y
    and changes sums along the paths of those outputs that change. Other weights have another tree, up to a chain.

    A change E of A that is confined to a set of outputs which holds with each output all its ancestors leaves L as it
    is outside the set. Within it, L Lᵀ + E = L' L'ᵀ, and Y' = L'⁻¹ L Y (all restricted to the set). So pairs of
    some siblings with their ancestors can be improved with matrices of the size of the set only, exactly as if S and
    P Pᵀ were known: S restricted to it is F Fᵀ, and the inner products of its normals are F (Y Yᵀ) Fᵀ.

Method
    `SignedForm.improve` visits pairs in turn, siblings by siblings, with a Newton step each, clipped to [−1, 1] and
    halved until the dual does not fall.

Cost
    Of a sweep over the signs of m outputs with paths of length h: O(m h) products of two rows of Y, and O(m h²) beyond.
    The two orders of a sweep with S and P Pᵀ, which it replaces, were O(m h) products of m × m matrices with a vector.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gramian._core.threads import in_parts, share
from gramian.labels.margins import path_loops as loops

CHUNK = 8  # siblings whose signs are improved together: neighbours share lines of the cache
WORTH_A_THREAD = 2**20  # multiply-adds: a tenth of a millisecond and more


class Factor(NamedTuple):
    """F of shape (m, n_latent) by its rows, for compiled loops: ``start[i]`` to ``start[i + 1] - 1`` is row i."""

    start: np.ndarray
    latent: np.ndarray
    value: np.ndarray

    def matrix(self, n_latent: int) -> sp.csr_array:
        """Return F."""
        shape = (self.start.size - 1, n_latent)
        return sp.csr_array((self.value, self.latent, self.start), shape=shape)


class FixedForm:
    """S = F Fᵀ for a given sparse F.

    Parameters
    ----------
    factor : CSR array of shape (m, n_latent)

    Attributes
    ----------
    factor : Factor
        Changed in place by `improve`.
    n_latent : int
    n_products : int
        Products of columns of Y that `improve` takes.
    signs : array of shape (0,)
    """

    def __init__(self, factor: Any):
        self.n_latent = int(factor.shape[1])
        start, latent = (part.astype(np.int64) for part in (factor.indptr, factor.indices))
        self.factor = Factor(start, latent, factor.data.astype(np.float64))
        self.signs = np.empty(0)
        self.n_products = 0

    def improve(self, left: np.ndarray, right: np.ndarray) -> None:
        """Do nothing: S is what it is."""

    def renew(self) -> None:
        """Do nothing, as there are no signs."""

    def value(self, left: np.ndarray, right: np.ndarray) -> float:
        """Return the penalty of the normals of Y, where Y Yᵀ is leftᵀ right."""
        return 0.5 * float(np.vdot(left, right))

    def matrix(self) -> sp.csr_array:
        """Return F, a copy."""
        return self.factor.matrix(self.n_latent).copy()


class SignedForm:
    """S = (K∘σ)⁻¹ for signs σ that begin at zero and improve.

    Parameters
    ----------
    weights : CSR array of shape (m, m)
        K, symmetric.

    Attributes
    ----------
    factor : Factor
        F = L⁻ᵀ; entries of row i are those of i, its parent in the elimination tree, the parent of that, and so on.
    signs : array of the shape of ``factor.value``
        σ_ij of output i and its ancestors j; 1 for i itself.
    weights : array of the shape of ``factor.value``
        K_ij.
    """

    def __init__(self, weights: Any):
        self.n_latent = int(weights.shape[0])
        weights = sp.csr_array(weights)
        parent = loops.elimination_tree(weights.indptr, weights.indices)
        start, latent = loops.paths(parent)
        self.weights = loops.along_paths(
            weights.indptr, weights.indices, weights.data, start, latent
        )
        self.signs = np.zeros(latent.size)
        self.signs[start[:-1]] = 1.0
        self.lower = np.empty(latent.size)  # L_ji for output i and its ancestors j
        self.factor = Factor(start, latent, np.empty(latent.size))
        self._sets = _sets_of(parent, self.factor)
        self.n_products = self._sets.products
        self.renew()

    def renew(self) -> None:
        """Compute L and F from the signs; refuse a form that is not positive definite."""
        np.multiply(self.weights, self.signs, out=self.lower)
        if not loops.eliminate(self.factor.start, self.factor.latent, self.lower):
            raise np.linalg.LinAlgError("The form is not positive definite.")
        loops.invert(self.factor.start, self.factor.latent, self.lower, self.factor.value)

    def improve(self, left: np.ndarray, right: np.ndarray) -> None:
        """Raise −½ ‖Y‖² by a sweep over the signs.

        Parameters
        ----------
        left, right : arrays of shape (k, n_latent)
            leftᵀ right is Y Yᵀ; they may be one array. Both are changed in place to those of the new signs.
        """
        start, latent, value = self.factor
        form = start, self.weights, self.signs, self.lower
        few = left.shape[0] * self.n_products < WORTH_A_THREAD
        n_parts = self._sets.part.size - 1
        share(loops.improve, n_parts, self._sets[:4], form, left, right, left is right, alone=few)
        loops.invert(start, latent, self.lower, value)

    def value(self, left: np.ndarray, right: np.ndarray) -> float:
        """Return the penalty of the normals of Y, where Y Yᵀ is leftᵀ right: ½ Σ K_ij |w_iᵀ w_j|."""
        products = sum(in_parts(partial(loops.products, self.factor, left, right), left.shape[0]))
        size = self.weights * np.abs(products)
        return float(size.sum() - 0.5 * size[self.factor.start[:-1]].sum())

    def matrix(self) -> sp.csr_array:
        """Return F, a copy."""
        return self.factor.matrix(self.n_latent).copy()


def inverse_factor(Q: Any) -> sp.csr_array:
    """Return F with F Fᵀ = Q⁻¹, for a positive definite CSR array Q: sparse along the paths of its elimination tree."""
    form = SignedForm(Q)
    form.signs[:] = 1.0
    form.renew()
    return form.matrix()


class _Sets(NamedTuple):
    """Sets of outputs that are improved together: some siblings, and then their ancestors from the parent up."""

    part: np.ndarray  # where the sets of each tree of the forest begin
    start: np.ndarray  # where the outputs of each set begin
    output: np.ndarray
    siblings: np.ndarray  # how many of a set are
    products: int  # of pairs of outputs in all sets


def _sets_of(parent: np.ndarray, factor: Factor) -> _Sets:
    """Sets of a forest, trees one after the other and each from its root down."""
    root = parent.copy()  # parents have smaller numbers
    for i in range(root.size):
        root[i] = i if parent[i] < 0 else root[parent[i]]
    children = np.flatnonzero(parent >= 0)
    children = children[np.lexsort((children, parent[children], root[children]))]
    sets, trees, siblings = [], [], []
    ends = np.flatnonzero(np.diff(parent[children], append=-1)) + 1 if children.size else []
    for family in np.split(children, ends[:-1]) if children.size else []:
        above = factor.latent[slice(*factor.start[parent[family[0]] :][:2])]
        for some in np.array_split(family, -(-family.size // CHUNK)):
            sets.append(np.concatenate([some, above]))
            trees.append(root[some[0]])
            siblings.append(some.size)
    sizes = np.array([some.size for some in sets], dtype=np.int64)
    first = np.flatnonzero(np.diff(trees, prepend=-1)) if sets else []
    return _Sets(
        np.append(first, len(sets)).astype(np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([np.empty(0, dtype=np.int64), *sets]),
        np.array(siblings, dtype=np.int64),
        int(np.sum(sizes**2)),
    )
