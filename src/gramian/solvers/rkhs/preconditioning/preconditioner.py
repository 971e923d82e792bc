"""Preconditioners in the RKHS inner product: the Newton system solved in a small space of functions.

System
    ``(λI + W𝒦) s = −ρ``, self-adjoint in ``⟨x, y⟩_𝒦 = ⟨x, 𝒦y⟩``. With a coarse space Z, ``T = Zᵀ𝒦Z`` and the Galerkin
    matrix ``G = λT + (𝒦Z)ᵀ W (𝒦Z)``, the preconditioner is

        P r = r + Z (λ G⁻¹ − T⁻¹) Zᵀ 𝒦 r :

    λ times the inverse in the space, the identity on its 𝒦-orthogonal complement. It is self-adjoint and positive
    in the same inner product, so CG stays CG and the certificate ⟨r, 𝒦r⟩ stays at hand. What is left of the
    condition number is that of 𝒦 minus its Nyström approximation, over λ.

Products
    None: ``Zᵀ𝒦r`` are m rows of 𝒦r, which CG carries anyway, and 𝒦Pr follows from 𝒦r by one n × m product.

Label side
    In the basis of S = Q diag(s) Qᵀ (`coarse_space`) the columns of v decouple if all outputs of an example have the
    same weight w_i: G has then the blocks

        s_c Lᵀ diag(w) L + σ² (u eᵀ + e uᵀ) + σ² (λ + σ² Σw) / s_c  e eᵀ + λI,    u = Lᵀ w,

    one for each eigenvalue of S, all from one n × m product. So for the squared loss, whatever S. Outputs that neither
    the loss nor S couples (several logistic losses) have weights and blocks of their own. Otherwise (softmax,
    hierarchies) G with W replaced by its average over outputs, times what softmax sees of each column of Q (nothing
    of 1, which is one of them in a balanced tree), preconditions conjugate gradients within the space, for G v = y;
    a step costs 2m/n of a product with a stored 𝒦.

Low rank
    The space has all functions (`feature_space`), and P is λ times the inverse up to what those steps leave: the Newton
    system is then solved within the space, without an outer iteration.

Cost
    For each new W: n m² flops, m³ for each eigenvalue of S. For each step of CG: 2 n m for each output, coupled ones
    4 n m for each step within the space.

Deviates from the papers: Seeger (footnote 3) found that incomplete Cholesky costs more than it saves, and that tensor
products do not help. The factor here is of 𝒦, not of the system, so that one serves all Newton steps, and it takes m
columns. The average over classes, alone, does save products: 137, 81 and 218 instead of 318, 272 and 1279 without
(n = 2000, 6 classes, m = 200); within the space it needs 147, 78 and 307 steps of CG and 24, 22 and 43 products. (With
one block for each class, each with a factor of its own, these were 278, 84 and 503 steps.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.linalg import solve_triangular

from gramian._core.arrays import ratio
from gramian._core.fused import inner
from gramian._core.threads import quiet_blas
from gramian.losses import Curvature
from gramian.solvers.rkhs.preconditioning.space import FunctionSpace

INNER_REDUCTION = 0.3  # factor by which conjugate gradients within the space reduce the residual
MAX_INNER_STEPS = 100
# weight of an example in a block that only preconditions, relative to the largest
NEGLIGIBLE_WEIGHT = 1e-5
EIGENVALUE_DIGITS = 9  # eigenvalues of S whose logarithms agree to so many decimals are one


class Preconditioner:
    """P for one curvature; see the header.

    Parameters
    ----------
    space : FunctionSpace
    curvature : Curvature
        W.
    strength : ndarray of shape (q,)
        λ.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import DiagonalCurvature
    >>> from gramian.operators import Dense
    >>> from gramian.solvers.rkhs.preconditioning.coarse_space import coarse_space
    >>> from gramian.solvers.rkhs.preconditioning.preconditioner import Preconditioner
    >>> K = Dense(RBF(), np.linspace(0, 1, 20)[:, None])
    >>> W, r = DiagonalCurvature(np.ones((20, 1, 1))), np.ones((20, 1, 1))
    >>> P = Preconditioner(coarse_space(K, 1, rank=10), W, np.array([0.1]))
    >>> s, Ks = P.apply(r, K @ r)  # λ times the solution of (λI + WK) s = r
    >>> left = 0.1 * s + Ks - 0.1 * r
    >>> bool(np.sum(left * (K @ left)) < 1e-12)  # the squared residual in the RKHS norm
    True
    """

    def __init__(self, space: FunctionSpace, curvature: Curvature, strength: np.ndarray):
        self.space = space
        self.curvature = curvature
        self.n_inner = 0  # steps within the space
        D = np.asarray(curvature.diagonal, dtype=np.float64)
        alike = not curvature.coupled and not np.any(D - D[:, :1])
        self.coupled = curvature.coupled or not (alike or space.parts.basis is None)
        self._strength = np.broadcast_to(strength, D.shape[2:])
        weights = _averaged(D, curvature.coupled) if alike or self.coupled else D
        if self.coupled:  # many examples may have next to no weight, and λ may be smaller still
            weights = np.where(weights > NEGLIGIBLE_WEIGHT * weights.max(axis=0), weights, 0.0)
        # outputs, column of λ, and the inverse of the triangle of their block
        self._blocks = [
            (outputs, j, _inverse_triangle(G))
            for j in range(D.shape[2])
            for outputs, G in self._galerkin(weights[:, :, j], float(self._strength[j]))
        ]

    def apply(self, r: np.ndarray, Kr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P r and 𝒦 P r of shape (n, C, q), from r and 𝒦r."""
        space = self.space
        with quiet_blas(4.0 * space.factor.size * math.prod(r.shape[1:])):
            y = space.coordinates(r, Kr)
            v = self._solved(y, MAX_INNER_STEPS) if self.coupled else self._blockwise(y)
            change = self._strength * v - space.inverse_gram(y)
            values = space.values(change)
        return space.lifted(change, r), Kr + values.astype(Kr.dtype, copy=False)

    def solve(
        self, r: np.ndarray, goal: np.ndarray, max_iter: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """s and 𝒦s with ``(λI + W𝒦) s = r`` up to a squared residual of ``goal`` (q,), if the space is complete."""
        space = self.space
        y = space.coordinates(r, r)
        y[:, :, inner(y, y) <= goal] = 0.0  # columns that are done stay where they are
        v = self.galerkin_solve(y, goal, max_iter)
        return space.lifted(v, np.zeros_like(r)), space.values(v).astype(r.dtype, copy=False)

    def galerkin_solve(
        self,
        y: np.ndarray,
        goal: np.ndarray,
        max_iter: int = MAX_INNER_STEPS,
        curvature: Curvature | None = None,
    ) -> np.ndarray:
        """Solve ``G v = y`` within the space up to a squared residual of ``goal`` (q,), or exactly by blocks.

        Another ``curvature`` has a G of its own, for which the blocks at hand are still a good preconditioner.
        """
        if curvature is None and not self.coupled:
            return self._blockwise(y)
        self.curvature = self.curvature if curvature is None else curvature
        return self._solved(y, max_iter, goal)

    def _galerkin(
        self, weights: np.ndarray, strength: float
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Blocks of G for one column, with the outputs that have them."""
        space = self.space
        if weights.shape[1] > 1:
            for output, own in enumerate(weights.T):
                outputs = np.array([output])
                yield outputs, next(space.blocks(own, strength, outputs, np.ones(1)))
            return
        shares = self._shares()
        keys = np.round(np.stack([np.log(space.parts.variances), shares]), EIGENVALUE_DIGITS)
        _, first, groups = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        blocks = space.blocks(weights[:, 0], strength, first, shares[first])
        for group, block in enumerate(blocks):
            yield np.flatnonzero(groups == group), block

    def _shares(self) -> np.ndarray:
        """Part of each column of Q that softmax sees: it is blind to what is added to all outputs."""
        basis = self.space.parts.basis
        if basis is None or not self.curvature.coupled:
            return np.ones(len(self.space.parts.variances))
        return np.maximum(0.0, 1.0 - basis.sum(axis=0) ** 2 / len(basis))

    def _blockwise(self, y: np.ndarray) -> np.ndarray:
        """Solve with the blocks."""
        v = np.empty_like(y)
        for outputs, j, inverse in self._blocks:
            v[:, outputs, j] = inverse.T @ (inverse @ y[:, outputs, j])
        return v

    def _solved(self, y: np.ndarray, max_iter: int, goal: np.ndarray | None = None) -> np.ndarray:
        """Solve with G by conjugate gradients, preconditioned by the blocks.

        Down to a squared residual of ``goal``. If there is none, until its norm in the blocks falls by the factor
        `INNER_REDUCTION`.
        """
        v, r = np.zeros_like(y), y
        p = self._blockwise(r)
        steep = inner(r, p)
        least = INNER_REDUCTION**2 * steep
        for _ in range(max_iter):
            self.n_inner += 1
            q = self._multiplied(p)
            bend = inner(p, q)
            length = ratio(steep, bend, bend > 0)
            v, r = v + length * p, r - length * q
            z = self._blockwise(r)
            new = inner(r, z)
            if np.all(new <= least if goal is None else inner(r, r) <= goal):
                break
            p, steep = z + ratio(new, steep, steep > 0) * p, new
        return v

    def _multiplied(self, v: np.ndarray) -> np.ndarray:
        """G v."""
        bent = self.curvature.apply(self.space.values(v))
        return self._strength * self.space.gram(v) + self.space.adjoint(bent)


def _averaged(D: np.ndarray, coupled: bool) -> np.ndarray:
    """Average of the eigenvalues of each W_i, shape (n, 1, q); one of softmax's is always zero."""
    total = D.sum(axis=1, keepdims=True)
    if not coupled:
        return total / D.shape[1]
    squares = np.einsum("icq,icq->iq", D, D)[:, None]
    traces = total - np.divide(squares, total, out=np.zeros_like(total), where=total > 0)
    return traces / max(1, D.shape[1] - 1)


def _inverse_triangle(G: np.ndarray) -> np.ndarray:
    """Inverse of the Cholesky factor, of a larger matrix if rounding made G indefinite: any positive will do."""
    diagonal = np.diagonal(G).copy()
    for jitter in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        np.fill_diagonal(G, diagonal + jitter * diagonal.max())
        try:
            triangle = np.linalg.cholesky(G)
        except np.linalg.LinAlgError:
            continue
        return solve_triangular(triangle, np.eye(len(G)), lower=True, check_finite=False)
    return np.diag(diagonal**-0.5)
