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
    If neither the loss nor S couples outputs, G has one m × m block for each, and is factored. Otherwise (softmax,
    hierarchies) G v = y is solved by conjugate gradients in the space, preconditioned by those blocks: its products
    cost 2m/n of one with 𝒦. In the basis ``R = S^½`` the blocks weigh examples by ``[R W_i R]_cc``.

Cost
    For each new W: 2 n m² flops and m³ for each output. For each step of CG: 2 n m for each output, coupled ones
    4 n m for each step within the space.

Deviates from the papers: Seeger (footnote 3) found that incomplete Cholesky costs more than it saves, and that tensor
products do not help. The factor here is of 𝒦, not of the system, so that one serves all Newton steps, and it takes m
columns. Weights of examples averaged over classes, which decouple the classes, do help where examples keep weights of
their own: 71, 54 and 132 products instead of 298, 174 and 896 without (n = 1500, 6 classes, m = 300). Solving the
coupled system as above took 23, 20 and 32.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from gramian._fused import inner
from gramian._threads import quiet_blas
from gramian.losses import Curvature
from gramian.operators.coarse_space import CoarseSpace

__all__ = ["Preconditioner"]

INNER = 0.3  # by which the residual within the space falls
MOST_INNER = 100
NEGLIGIBLE = (
    1e-5  # weight of an example in a block that only preconditions, relative to the largest
)


class Preconditioner:
    """P for one curvature; see the header.

    Parameters
    ----------
    space : CoarseSpace
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
    >>> from gramian.operators.coarse_space import coarse_space
    >>> from gramian.solvers.preconditioner import Preconditioner
    >>> K = Dense(RBF(), np.linspace(0, 1, 20)[:, None])
    >>> W, r = DiagonalCurvature(np.ones((20, 1, 1))), np.ones((20, 1, 1))
    >>> P = Preconditioner(coarse_space(K, 1, rank=10), W, np.array([0.1]))
    >>> s, Ks = P.apply(r, K @ r)  # λ times the solution of (λI + WK) s = r
    >>> left = 0.1 * s + Ks - 0.1 * r
    >>> bool(np.sum(left * (K @ left)) < 1e-12)  # the squared residual in the RKHS norm
    True
    """

    def __init__(self, space: CoarseSpace, curvature: Curvature, strength: np.ndarray):
        self.space = space
        self.curvature = curvature
        self.n_inner = 0  # steps within the space
        self.coupled = curvature.coupled or bool(np.any(space.root != np.diag(np.diag(space.root))))
        weights = _Weights(space, curvature)
        self._strength = np.broadcast_to(strength, weights.inner.shape[2:])
        shape = weights.inner.shape[1:]
        blocks = {index: self._block(weights, *index) for index in np.ndindex(shape)}
        if self.coupled:
            # used many times, for all outputs in one product
            identity = np.eye(len(space.indices))
            inverses = np.stack(
                [
                    cho_solve(_factor(block), identity, check_finite=False)
                    for block in blocks.values()
                ]
            )
            self._inverses = inverses.reshape(*shape, *inverses.shape[1:])
        else:
            self._factors = {index: _factor(block) for index, block in blocks.items()}

    def apply(self, r: np.ndarray, Kr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P r and 𝒦 P r of shape (n, C, q), from r and 𝒦r."""
        space = self.space
        with quiet_blas(4.0 * space.factor.size * math.prod(r.shape[1:])):
            y = space.restricted(Kr)
            v = self._solved(y) if self.coupled else self._blockwise(y)
            rows, values = space.extended(self._strength * v - space.inverse_gram(y))
        z = r.copy()
        z[space.indices] += rows
        return z, Kr + values.astype(Kr.dtype, copy=False)

    def _block(self, weights: _Weights, c: int, j: int) -> np.ndarray:
        """G of output c and column j."""
        space, strength = self.space, float(self._strength[j])
        weight = weights.inner[:, c, j]
        # where G is solved by its blocks, examples of small weight count: there are many, and λ may be smaller still
        kept = weight > (NEGLIGIBLE * weight.max() if self.coupled else 0.0)
        L = space.factor if kept.all() else space.factor[kept]
        scaled = L * np.sqrt(weight[kept])[:, None]
        G = scaled.T @ scaled
        if space.intercept:
            u, e = space.factor.T @ weights.mixed[:, c, j], space.ones
            outer = strength * space.intercept * weights.inverse[c] + weights.outer[:, c, j].sum()
            G += np.outer(u, e) + np.outer(e, u) + outer * np.outer(e, e)
        G[np.diag_indices_from(G)] += strength
        return G

    def _blockwise(self, y: np.ndarray) -> np.ndarray:
        """Solve with the blocks of G for single outputs."""
        if self.coupled:
            return np.einsum("cqmk,kcq->mcq", self._inverses, y, optimize=True)
        v = np.empty_like(y)
        for (c, j), factor in self._factors.items():
            v[:, c, j] = cho_solve(factor, y[:, c, j], check_finite=False)
        return v

    def _solved(self, y: np.ndarray) -> np.ndarray:
        """Solve with G by conjugate gradients, preconditioned by its blocks."""
        v, r = np.zeros_like(y), y
        p = self._blockwise(r)
        steep = inner(r, p)
        goal = INNER**2 * steep
        for _ in range(MOST_INNER):
            self.n_inner += 1
            q = self._multiplied(p)
            length = _ratio(steep, inner(p, q))
            v, r = v + length * p, r - length * q
            z = self._blockwise(r)
            new = inner(r, z)
            if np.all(new <= goal):
                break
            p, steep = z + _ratio(new, steep) * p, new
        return v

    def _multiplied(self, v: np.ndarray) -> np.ndarray:
        """G v."""
        _, values = self.space.extended(v)
        bent = self.curvature.apply(values)
        return self._strength * self.space.gram(v) + self.space.adjoint(bent)


class _Weights:
    """Diagonals of A W_i B for A and B out of R and σ² R⁻¹; shape (n, C, q) each."""

    def __init__(self, space: CoarseSpace, curvature: Curvature):
        D = np.asarray(curvature.diagonal, dtype=np.float64)
        total = D.sum(axis=1, keepdims=True)
        share = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        R, V = space.root, space.intercept * space.inverse_root

        def diagonal(A: np.ndarray, B: np.ndarray) -> np.ndarray:
            once = _along(D, A * B)
            return once - share * _along(D, A) * _along(D, B) if curvature.coupled else once

        self.inner = np.maximum(diagonal(R, R), 0.0)
        if space.intercept:
            self.mixed, self.outer = diagonal(R, V), diagonal(V, V)
        self.inverse = np.einsum("ij,ij->i", space.inverse_root, space.inverse_root)


def _factor(G: np.ndarray) -> tuple[np.ndarray, bool]:
    """Cholesky factor, of a slightly larger matrix if rounding made G indefinite: any positive one will do."""
    diagonal = np.diagonal(G).copy()
    for jitter in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        np.fill_diagonal(G, diagonal + jitter * diagonal.max())
        try:
            return cho_factor(G, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
    return np.diag(np.sqrt(diagonal)), True


def _along(D: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    if len(matrix) == 1:
        return D * matrix[0, 0]
    return np.einsum("icq,cd->idq", D, matrix, optimize=True)


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
