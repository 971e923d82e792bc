"""The Lanczos process of `minres` and its rotations: one process may serve many shifts λ.

    M V_k = V_{k+1} T_k,      (T_k + λ) rotated to an upper triangle with three diagonals

for a symmetric M, in as many columns as there are systems. Notation and paper: see `minres`. With the columns of
the triangle (ε_k, δ_k, γ_k), steps go along ``d_k = (v_k − δ_k d_{k−1} − ε_k d_{k−2}) / γ_k``:

    b_k = b_{k−1} + c_k φ_{k−1} d_k,    φ_k = s_k φ_{k−1},    r_k = s_k² r_{k−1} − c_k φ_k v_{k+1},    ‖r_k‖ = φ_k.

Cost beside the product: one pass over b, r and two directions for each shift, compiled for long NumPy arrays.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.linalg import eigvalsh_tridiagonal

from gramian._core.arrays import Array, column, device_of, is_numpy, namespace, ratio, to_numpy
from gramian._core.fused import COMPILED_ENTRIES, add_scaled, by_rows, inner
from gramian.solvers.rkhs.recorder import Recorder, squeezed


class System:
    """``(M + λI) b = c`` with ``M = D𝒦D``: a problem with the squared loss in the variables of MINRES.

    Attributes
    ----------
    recorder : Recorder
        Knows the problem and counts the products.
    root : array of shape (n, 1, 1) or (n, 1, q), or None
        D; None is the identity.
    c : array of shape (n, C, 1) or (n, C, q)
    norm_c : array of shape (1,) or (q,)
    """

    def __init__(self, recorder: Recorder):
        self.recorder = recorder
        targets, weights = recorder.problem.targets, recorder.problem.weights
        xp = namespace(targets)
        self.root = None if weights is None else xp.sqrt(column(weights, targets))
        self.c = self.scaled(targets)
        self.norm_c = xp.sqrt(inner(self.c, self.c))

    def scaled(self, b: Array) -> Array:
        """D b."""
        return b if self.root is None else self.root * b

    def unscaled(self, A: Array) -> Array:
        """D⁻¹ A, zero for examples of weight zero."""
        return A if self.root is None else ratio(A, self.root, self.root > 0)

    def coefficients(self, b: Array) -> Array:
        """A as a callback sees it: a copy, because b is updated in place."""
        return squeezed(namespace(b).asarray(self.scaled(b), copy=True))

    def product(self, v: Array) -> Array:
        """M v."""
        return self.scaled(self.recorder.product(self.scaled(v)))


class Process:
    """A Lanczos process from given residuals, with the rotations of MINRES for each column of the problem.

    Scalars of the Lanczos process (α, β) have shape (m,), those of the rotations (q,), where m is q or 1.

    Parameters
    ----------
    system : System
    b, r : array of shape (n, C, q)
        A point and its residual; both are updated in place.
    shared : bool
        All residuals are equal: one process serves all columns, which differ in λ only.

    Attributes
    ----------
    norm, overlap : array of shape (q,)
        ‖r‖ and ⟨b, r + c⟩.
    quotient : array of shape (q,)
        ⟨z, M z⟩ of the residual r = ‖r‖ z, once multiplied.
    size : array of shape (m,)
        ‖M‖ as far as it was seen.
    active : array of shape (q,)
        Columns that the last step moved.
    """

    def __init__(self, system: System, b: Array, r: Array, *, shared: bool):
        xp = namespace(r)
        self.system = system
        self.problem = problem = system.recorder.problem
        if is_numpy(r):  # the loops write to them
            b, r = np.ascontiguousarray(b), np.ascontiguousarray(r)
        self.b, self.r = b, r
        r = xp.asarray(r[:, :, :1], copy=True) if shared else r
        norm = xp.sqrt(inner(r, r))
        self.v = r * problem.spread(ratio(xp.ones_like(norm), norm, norm != 0))
        self.v_old = xp.zeros_like(r)
        self.p = self.v  # M v − β v_old, once multiplied
        self.alpha = self.beta = self.size = xp.zeros_like(norm)
        self.alphas: list[np.ndarray] = []
        self.betas: list[np.ndarray] = []
        self.d = xp.zeros(problem.shape, dtype=r.dtype, device=device_of(r))
        self.d_old = xp.zeros_like(self.d)
        zeros = xp.zeros_like(problem.strength)
        self.active = zeros == 0
        self.norm = zeros + norm
        self.overlap = inner(b, self.r) + inner(b, system.c)
        self.cosine, self.sine = zeros - 1, zeros
        self.delta, self.epsilon = zeros, zeros
        self.quotient, self.last = zeros, zeros + 1  # without its last term, last × α

    def multiply(self) -> None:
        """The product with M for the next step, which also gives ⟨z, M z⟩ of this one."""
        spread = self.problem.spread
        self.p = add_scaled(self.system.product(self.v), spread(-self.beta), self.v_old)
        self.alpha = inner(self.v, self.p)
        self.alphas.append(to_numpy(self.alpha))
        self.quotient = self.quotient + self.last * self.alpha
        xp = namespace(self.v)
        self.size = xp.maximum(self.size, xp.sqrt(self.beta**2 + self.alpha**2))

    def step(self, active: Array) -> bool:
        """Update b and r of the active columns; whether that moved anything."""
        xp = namespace(self.b)
        problem = self.problem
        spread, one = problem.spread, xp.ones_like(problem.strength)
        p = add_scaled(self.p, spread(-self.alpha), self.v)
        beta = xp.sqrt(inner(p, p))
        # what is left of an exhausted Krylov space is rounding, and no direction
        beta = xp.where(beta > xp.finfo(p.dtype).eps * self.size, beta, xp.zeros_like(beta))
        self.size = xp.maximum(self.size, xp.sqrt(self.alpha**2 + beta**2))
        v_new = p * spread(ratio(xp.ones_like(beta), beta, beta != 0))
        self.betas.append(to_numpy(beta))

        # the rotation that takes β out of the tridiagonal matrix of M + λI
        diagonal = self.alpha + problem.strength
        below = self.cosine * self.delta + self.sine * diagonal
        corner = self.sine * self.delta - self.cosine * diagonal
        two_below = self.epsilon
        pivot = xp.sqrt(corner**2 + beta**2)
        cosine, sine = ratio(corner, pivot, pivot != 0), ratio(beta * one, pivot, pivot != 0)
        self.epsilon, self.delta = self.sine * beta, -self.cosine * beta
        step = xp.where(active, cosine * self.norm, 0 * one)
        norm = sine * self.norm
        quotient = sine**2 * self.quotient + 2 * sine * cosine * self.cosine * beta

        self._advance(
            v_new,
            direction=(-two_below, -below, ratio(one, pivot, pivot != 0)),
            step=step,
            residual=(xp.where(active, sine**2, one), xp.where(active, -cosine * norm, 0 * one)),
        )
        self.v, self.v_old, self.beta = v_new, self.v, beta
        self.cosine, self.sine, self.active = cosine, sine, active
        self.norm = xp.where(active, norm, self.norm)
        self.quotient = xp.where(active, quotient, self.quotient)
        self.last = xp.where(active, cosine**2, 0 * one)
        return bool(xp.any(step != 0))

    def _advance(self, v_new: Array, *, direction: tuple, step: Array, residual: tuple) -> None:
        """The next direction, b, r and their overlap, from factors of shape (q,)."""
        scalars = (*direction, step, *residual)
        c = self.system.c
        if is_numpy(self.b) and self.b.size >= COMPILED_ENTRIES:
            vectors = (self.b, self.d_old, self.d, self.r, self.v, v_new, c)
            flat = [np.ascontiguousarray(x).reshape(-1, x.shape[2]) for x in vectors]
            scalars = np.array(scalars, dtype=self.b.dtype)
            self.overlap = np.sum(by_rows(_loop, flat, scalars), axis=0)
            self.d, self.d_old = self.d_old, self.d
            return
        two_back, one_back, scale, step, kept, added = (self.problem.spread(x) for x in scalars)
        d = (self.v + two_back * self.d_old + one_back * self.d) * scale
        self.d, self.d_old = d, self.d
        self.b = self.b + step * d
        self.r = kept * self.r + added * v_new
        self.overlap = inner(self.b, self.r) + inner(self.b, c)

    def lowest(self, columns: np.ndarray) -> np.ndarray:
        """The smallest Ritz value of M that each of the columns has seen."""
        alphas, betas = np.array(self.alphas), np.array(self.betas)
        kept, place = np.unique(np.minimum(columns, alphas.shape[1] - 1), return_inverse=True)
        if not self.betas:
            return alphas[0, kept][place]
        first = {"select": "i", "select_range": (0, 0)}
        values = [eigvalsh_tridiagonal(alphas[:, k], betas[:, k], **first)[0] for k in kept]
        return np.array(values)[place]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _loop(b, d_old, d, r, v, v_new, c, scalars):
    """All updates of `Process._advance` in one pass; d_old becomes the new direction. Return the overlaps."""
    q = b.shape[1]
    sums = np.zeros(q)
    shared, same = v.shape[1] < q, c.shape[1] < q
    for i in range(b.shape[0]):
        for k in range(q):
            j = 0 if shared else k
            direction = v[i, j] + scalars[0, k] * d_old[i, k] + scalars[1, k] * d[i, k]
            direction *= scalars[2, k]
            d_old[i, k] = direction
            b[i, k] += scalars[3, k] * direction
            r[i, k] = scalars[4, k] * r[i, k] + scalars[5, k] * v_new[i, j]
            sums[k] += np.float64(b[i, k]) * np.float64(r[i, k] + c[i, 0 if same else k])
    return sums
