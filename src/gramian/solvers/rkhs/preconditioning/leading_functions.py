"""A preconditioner for many outputs: the leading functions of M for every eigenvector of S, from products alone.

System
    ``λI + W𝒦`` with ``𝒦(A) = M A S + σ² 1 1ᵀ A`` and ``S = Q diag(s) Qᵀ``, as in `preconditioner`. The space is spanned
    by ``B v Qᵀ``: B (n × m) has the leading eigenvectors of M, and 1 if there is an intercept. With u = Bᵀ1

        T_c = s_c BᵀMB + σ² u uᵀ,     𝒦B in column c of Q:  V_c = s_c MB + σ² 1 uᵀ,     G_c = λ T_c + V_cᵀ diag(w_c) V_c

        P r = r + B (N_c Bᵀ(𝒦r Q)_c)_c Qᵀ,     N_c = λ G_c⁻¹ − T_c⁻¹,

    where ``w_ic = q_cᵀ W_i q_c`` is what the curvature of example i is in direction c. So G is block diagonal, a small
    matrix for each column of Q, and nothing is solved iteratively.

    Softmax is blind to what is added to all outputs: ``v_c = T_c⁻¹ x (Qᵀ1)_c`` for any x. The blocks do not know this,
    so N_c is applied between projections E on the 𝒦-orthogonal complement of these functions. (Without, residuals that
    these functions were given by mistake took long to go: 57 products instead of 34.)

Why
    Documents have much in common. The largest eigenvalue of M belongs to their mean and is as large as n, and a tree
    multiplies it by the eigenvalues of S, which are as large as a node has leaves: that product over λ is the condition
    number. In a tree, w_c for a direction that parents share is the curvature of the parents' softmax. (One average
    weight for all directions overestimates that for documents whose parent is known: three kinds
    of generated text: 23, 21 and 29 products instead of 18, 17 and 12. Newton with it took 123 instead of 77 once.)

Cost
    B takes three products with m + `SPARE` columns and S an eigendecomposition. W changes: 4 n C² flops for w (none
    where S is diagonal), n C m² for G. Application: 6 n m C flops, no product.

Paper: Halko, Martinsson & Tropp (2011), Algorithm 4.4, for B. A space of pivots (`coarse_space`) needs columns of M,
which operators through sparse features do not have, and is meant for many functions and few outputs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramian._core.arrays import row_blocks
from gramian._core.threads import quiet_blas
from gramian.losses import Curvature
from gramian.operators.inputs.tiles import TILE_BYTES
from gramian.solvers.rkhs.preconditioning.space import Parts, parts_of, split_operator
from gramian.solvers.rkhs.problem import Problem

# Functions of M, and columns beside them for the range. Three kinds of generated text in trees of 100 to 120 leaves,
# 1000 to 2000 documents, products to a relative gap of 1e-4: 29, 21 and 25 with one function, 20, 19 and 26 with four,
# 18, 17 and 12 with 16; Newton takes 118, 106 and 77.
FUNCTIONS, SPARE = 16, 4
POWERS = 2  # products that turn random columns towards the leading eigenvectors
# Outputs: with fewer, B costs as much as several products; with more, eigenvectors of S cost too much.
LEAST_OUTPUTS, MOST_OUTPUTS = 4 * FUNCTIONS, 2048
SMALLEST_RITZ_VALUE = (
    1e-6  # relative to the largest; smaller ones are no part of the condition number
)


class LeadingFunctions(NamedTuple):
    """The space; arrays as in the header.

    Attributes
    ----------
    parts : Parts
    basis, products : ndarray of shape (n, m)
        B and MB.
    sums : ndarray of shape (m,)
        u.
    grams : ndarray of shape (c, m, m)
        T_c.
    """

    parts: Parts
    basis: np.ndarray
    products: np.ndarray
    sums: np.ndarray
    grams: np.ndarray


def is_many(problem: Problem) -> bool:
    """Whether a problem has so many outputs that this preconditioner pays, and an operator of the form for it."""
    n, n_outputs, q = problem.shape
    return (
        LEAST_OUTPUTS <= n_outputs <= MOST_OUTPUTS
        and q == 1
        and n >= LEAST_OUTPUTS
        and problem.loss.separable
        and isinstance(problem.targets, np.ndarray)
        and (problem.weights is None or problem.weights.ndim == 1)
        and split_operator(problem.operator) is not None
    )


def leading_functions(problem: Problem) -> LeadingFunctions | None:
    """Find the space; None if the operator is not of the form that the header says, or if M is zero.

    Examples of weight zero have no coefficients in it: they have no curvature, either.
    """
    parts = parts_of(problem.operator, problem.shape[1], most=MOST_OUTPUTS, columns=False)
    if parts is None:
        return None
    M, n = parts.matrix, problem.shape[0]
    kept = np.ones(n) if problem.weights is None else (problem.weights > 0).astype(np.float64)
    columns = np.random.default_rng(0).standard_normal((n, FUNCTIONS + SPARE)) * kept[:, None]
    for _ in range(POWERS):
        columns = np.linalg.qr((M @ columns) * kept[:, None])[0] * kept[:, None]
    products = M @ columns
    values, vectors = np.linalg.eigh(columns.T @ products)
    used = np.flatnonzero(values > SMALLEST_RITZ_VALUE * max(values[-1], 0.0))[-FUNCTIONS:]
    if not used.size or not np.all(np.isfinite(values)):
        return None
    B, MB = columns @ vectors[:, used], products @ vectors[:, used]
    if parts.intercept:
        rest = kept - B @ (B.T @ kept)
        length = np.linalg.norm(rest)
        if length > SMALLEST_RITZ_VALUE * n**0.5:
            rest = (rest / length)[:, None]
            B, MB = np.hstack([B, rest]), np.hstack([MB, M @ rest])
    u, H = B.sum(axis=0), B.T @ MB
    grams = parts.variances[:, None, None] * (H + H.T) / 2 + parts.intercept * np.outer(u, u)
    return LeadingFunctions(parts, B, MB, u, grams)


class LeadingPreconditioner:
    """P for one curvature; see the header.

    Parameters
    ----------
    space : LeadingFunctions
    curvature : Curvature
        W.
    strength : float
        λ.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Softmax
    >>> from gramian.operators import Dense
    >>> from gramian.solvers import Problem
    >>> K = Dense(RBF(), np.linspace(0, 1, 80)[:, None])
    >>> problem = Problem(K, Softmax(), np.eye(80), regularization=0.1)
    >>> P = LeadingPreconditioner(
    ...     leading_functions(problem), problem.curvature(np.eye(80)[:, :, None]), 0.1
    ... )
    >>> r = np.ones((80, 80, 1))
    >>> Pr, KPr = P.apply(r, K @ r)
    >>> bool(np.allclose(KPr, K @ Pr))
    True
    """

    def __init__(self, space: LeadingFunctions, curvature: Curvature, strength: float):
        self.space = space
        with quiet_blas(4.0 * curvature.diagonal.size * len(space.parts.variances)):
            G = _galerkin(space, curvature) + strength * space.grams
        self._inverse = _inverses(space.grams)
        self._change = strength * _inverses(G) - self._inverse
        self._blind = None
        if curvature.coupled:
            Q = space.parts.basis
            t = np.ones(len(self._inverse)) if Q is None else Q.sum(axis=0)
            overlap = np.einsum("c,cab->ab", t**2, self._inverse)
            self._blind = t, _inverses(overlap[None])[0]

    def apply(self, r: np.ndarray, Kr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P r and 𝒦 P r of shape (n, C, 1), from r and 𝒦r."""
        space, (s, Q) = self.space, self.space.parts[1:3]
        with quiet_blas(6.0 * r.size * len(space.sums)):
            y = space.basis.T @ Kr[:, :, 0]
            v = self._changed(y if Q is None else y @ Q)
            constant = space.parts.intercept * (space.sums @ v)
            scaled = v * s
            if Q is not None:
                v, scaled, constant = v @ Q.T, scaled @ Q.T, constant @ Q.T
            change, values = space.basis @ v, space.products @ scaled
        change += r[:, :, 0]
        values += Kr[:, :, 0]
        values += constant
        return change[:, :, None], values[:, :, None]

    def _changed(self, y: np.ndarray) -> np.ndarray:
        """The coefficients of P r − r in the space from those of Bᵀ𝒦r Q; E of the header on both sides."""
        if self._blind is None:
            return np.einsum("cab,bc->ac", self._change, y)
        t, inverse = self._blind
        y = y - np.outer(inverse @ np.einsum("cab,bc,c->a", self._inverse, y, t), t)
        v = np.einsum("cab,bc->ac", self._change, y)
        return v - np.einsum("cab,b,c->ac", self._inverse, inverse @ (v @ t), t)


def _galerkin(space: LeadingFunctions, curvature: Curvature) -> np.ndarray:
    """``V_cᵀ diag(w_c) V_c`` for each column c, shape (c, m, m)."""
    parts, m = space.parts, len(space.sums)
    n, count = len(space.basis), len(parts.variances)
    rows, columns = np.triu_indices(m + 1)
    sums = np.zeros((len(rows), count))
    for block in row_blocks(n, 8 * (len(rows) + 3 * count), 4 * TILE_BYTES):
        # the functions MB and 1, of which all V_c consist
        functions = np.ones((block.stop - block.start, m + 1))
        functions[:, :m] = space.products[block]
        weights = _directional(curvature.diagonal[block, :, 0], curvature.coupled, parts.basis)
        sums += (functions[:, rows] * functions[:, columns]).T @ weights
    full = np.empty((count, m + 1, m + 1))
    full[:, rows, columns] = full[:, columns, rows] = sums.T
    shares = np.zeros((count, m + 1, m))
    shares[:, :m] = parts.variances[:, None, None] * np.eye(m)
    shares[:, m] = parts.intercept * space.sums
    return np.swapaxes(shares, 1, 2) @ full @ shares


def _directional(D: np.ndarray, coupled: bool, basis: np.ndarray | None) -> np.ndarray:
    """``q_cᵀ W_i q_c`` for rows of D and columns of the basis; single precision is enough for it."""
    D = D.astype(np.float32)
    Q = None if basis is None else basis.astype(np.float32)
    weights = D if Q is None else D @ (Q * Q)
    if coupled:
        total = D.sum(axis=1, keepdims=True)
        along = D if Q is None else D @ Q
        weights = weights - np.divide(
            along * along, total, out=np.zeros_like(along), where=total > 0
        )
    return np.maximum(weights, 0.0)


def _inverses(matrices: np.ndarray) -> np.ndarray:
    """Inverses of positive definite matrices, of slightly larger ones where rounding left them singular."""
    m = matrices.shape[1]
    trace = np.trace(matrices, axis1=1, axis2=2)[:, None, None]
    inverse = np.linalg.inv(matrices + 1e-13 * trace * np.eye(m))
    return (inverse + np.swapaxes(inverse, 1, 2)) / 2
