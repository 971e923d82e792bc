"""MINRES for the squared loss: minimal residuals, also where 𝒦 is indefinite, and a path of λ at the price of one.

With the weights ``D² = W``, ``M = D𝒦D`` and ``c = DY`` the optimality condition ρ = W(U − Y) + λA = 0 is

    (M + λI) b = c,    A = D b,    ρ = −D r,    r = c − (M + λI) b.

Examples of weight zero drop out. MINRES (Paige & Saunders, SIAM J. Numer. Anal. 12, 1975) minimises ‖r‖ over Krylov
spaces: a Lanczos process tridiagonalises M, and one plane rotation (c_k, s_k) for each step solves the least-squares
problem. M need not be positive: similarities that are no kernels will do, where conjugate gradients fail.

*Shifts.* The Lanczos vectors of M from c do not depend on λ. Columns that differ in λ only share one process, so that a
path costs the products of one fit; each λ has its own rotations and directions.

*Certificate.* ``r_k = φ_k z_k`` with ``z_k = s_k z_{k−1} − c_k v_{k+1}`` of norm one, hence

    ⟨z_k, M z_k⟩ = s_k² ⟨z_{k−1}, M z_{k−1}⟩ + 2 s_k c_k c_{k−1} β_{k+1} + c_k² α_{k+1}

and the duality gap ⟨ρ, 𝒦ρ⟩ / (2λ) = φ_k² ⟨z_k, M z_k⟩ / (2λ) is known from the product that the next step needs anyway.
The objective is ``½‖r‖² + (λ/2) ⟨b, r + c⟩``. The end is verified with U = 𝒦A computed afresh; where that shows more
than the recurrences did, the process starts again from the true residual (iterative refinement).

*Indefinite 𝒦.* The objective is not convex then and its gap certifies nothing. As soon as a Ritz value of M is clearly
negative, a column is done when ``‖r‖ ≤ √tol ‖c‖``, and its "gap" is the estimate ``‖r‖² ‖M‖ / (2λ)``, with ‖M‖ as far
as the Lanczos process has seen it. The solution is that of the linear system, no minimum.

Optimality: r = 0. Cost: one product with 𝒦 per iteration, two to verify the end, O(nCq) otherwise.

Deviates from the paper in: q systems in lockstep, shifts, the gap as stopping rule. The outputs C of a column are one
vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from gramian._arrays import Array, asarray_like, column, device_of, itemsize, namespace, to_numpy
from gramian._fused import add_scaled, inner
from gramian.losses import Squared
from gramian.operators import Masked
from gramian.solvers.problem import Problem
from gramian.solvers.solution import Callback, Recorder, Solution

PATIENCE = 200
# A Ritz value below minus this, relative to the largest, is no rounding error of a float32 or float64 operator.
ROUNDING = {4: 1e-5, 8: 1e-10}


def minres(
    problem: Problem,
    *,
    start: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> Solution:
    """Solve regularised least squares by minimal residuals.

    Parameters
    ----------
    problem : Problem
        With the squared loss. The operator need not be positive; see the notes on indefinite operators in this module.
        Columns that differ in ``regularization`` only share their products.
    start : array of shape (n, C) or (n, C, q), default=None
        Starting coefficients; zeros by default. From another start columns share nothing.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective, in every column; for an indefinite operator, when the
        residual of the linear system is at most ``√tol`` × its right-hand side.
    max_iter : int, default=1000
    callback : callable, default=None
        Called with a `Progress` after each iteration; stops if it returns True.

    Returns
    -------
    Solution

    Examples
    --------
    A path of regularisation for the products of one fit:

    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Squared
    >>> from gramian.operators import Dense
    >>> from gramian.solvers import Problem, minres
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> problem = Problem(Dense(RBF(0.3), X), Squared(), np.sin(5 * X), np.logspace(-3, 3, 7))
    >>> solution = minres(problem)
    >>> solution.status, solution.coefficients.shape, solution.n_products < 30
    ('converged', (50, 1, 7), True)
    """
    if not isinstance(problem.loss, Squared):
        raise ValueError(
            f"solver='minres' solves a linear system and needs the loss Squared(), got {problem.loss!r}. "
            "Use solver='newton' or solver='kernel_cg' for other losses."
        )
    xp = namespace(problem.targets)
    recorder = _Recorder(problem, tol, max_iter, callback, PATIENCE)
    system = _System(problem, recorder)
    b = system.unscaled(problem.start(start))
    r, U = xp.zeros_like(b) + system.c, xp.zeros_like(b)
    shared = system.shares_products
    if bool(xp.any(b != 0)):
        (r, U), shared = system.residual(b), False
    process = _Process(system, r[:, :, :1] if shared else r)
    fresh = moved = True
    while True:
        process.multiply()
        objective = system.objective(b, r, process.norm)
        gap = recorder.judge(process, objective)
        done = recorder.converged(objective, gap)
        finished = bool(xp.all(done))
        if not finished or fresh:
            if fresh:
                recorder.renew(gap)
            A = system.scaled(b)
            seen = xp.asarray(A, copy=True) if callback is not None else A  # b is updated in place
            status = recorder.verdict(seen, objective, gap, moved=moved)
            if status is not None and fresh:
                return recorder.solution(A, U, objective, gap, status)
            if status is not None:
                return _verified(recorder, system, b, status)
            b, r, moved = process.step(b, r, ~done)
            fresh = False
        else:
            r, U = system.residual(b)
            process, fresh = _Process(system, r), True


def _verified(recorder: _Recorder, system: _System, b: Array, status: str) -> Solution:
    """The solution with a certificate from ``U = 𝒦A`` itself."""
    r, U = system.residual(b)
    process = _Process(system, r)
    process.multiply()
    objective = system.objective(b, r, process.norm)
    gap = recorder.judge(process, objective)
    if bool(namespace(gap).all(recorder.converged(objective, gap))):
        status = "converged"
    return recorder.solution(system.scaled(b), U, objective, gap, status)


class _System:
    """``(M + λI) b = c`` with ``M = D𝒦D``: the problem in the variables of MINRES.

    Attributes
    ----------
    c : array of shape (n, C, 1) or (n, C, q)
    norm_c : array of shape (1,) or (q,)
    shares_products : bool
        Whether columns differ in λ only.
    """

    def __init__(self, problem: Problem, recorder: Recorder):
        self.problem = problem
        self.recorder = recorder
        xp = namespace(problem.targets)
        self.root = None
        if problem.weights is not None:
            self.root = xp.sqrt(column(problem.weights, problem.targets))
        self.c = self.scaled(problem.targets)
        self.norm_c = xp.sqrt(inner(self.c, self.c))
        masked = isinstance(problem.operator, Masked) and problem.operator.mask.ndim == 2
        self.shares_products = self.c.shape[2] == 1 and not masked

    def scaled(self, b: Array) -> Array:
        """D b."""
        return b if self.root is None else self.root * b

    def unscaled(self, A: Array) -> Array:
        """D⁻¹ A, zero for examples of weight zero."""
        if self.root is None:
            return A
        xp = namespace(A)
        there = self.root > 0
        return xp.where(there, A, xp.zeros_like(A)) / xp.where(
            there, self.root, xp.ones_like(self.root)
        )

    def product(self, v: Array) -> Array:
        """M v."""
        return self.scaled(self.recorder.product(self.scaled(v)))

    def residual(self, b: Array) -> tuple[Array, Array]:
        """r and U = 𝒦A, computed afresh."""
        U = self.recorder.accurate_product(self.scaled(b))
        r = self.c - self.scaled(U) - self.problem.spread(self.problem.strength) * b
        return r, U

    def objective(self, b: Array, r: Array, norm: Array) -> Array:
        """P from ``‖r‖`` and ``⟨b, r + c⟩``."""
        return 0.5 * norm**2 + 0.5 * self.problem.strength * (inner(b, r) + inner(b, self.c))


class _Process:
    """A Lanczos process from given residuals, with the rotations of MINRES for each column of the problem.

    Scalars of the Lanczos process (α, β) have shape (m,), those of the rotations (q,), where m is q or 1.

    Parameters
    ----------
    system : _System
    r : array of shape (n, C, m)
        Residuals to start from. With m = 1 all columns share them and the products.
    """

    def __init__(self, system: _System, r: Array):
        xp = namespace(r)
        self.system = system
        problem = system.problem
        norm = xp.sqrt(inner(r, r))
        self.v = r * problem.spread(_ratio(xp.ones_like(norm), norm))
        self.v_old = xp.zeros_like(r)
        self.p = self.v  # M v − β v_old, once multiplied
        self.alpha = self.beta = xp.zeros_like(norm)
        self.alphas: list[np.ndarray] = []
        self.betas: list[np.ndarray] = []
        self.size = xp.zeros_like(norm)  # ‖M‖ as far as it was seen
        zeros = xp.zeros_like(problem.strength)
        d = xp.zeros(problem.shape, dtype=r.dtype, device=device_of(r))
        self.d, self.d_old = d, xp.zeros_like(d)
        self.active = zeros == 0
        self.norm = zeros + norm  # ‖r‖ of each column
        self.cosine, self.sine = zeros - 1, zeros
        self.delta, self.epsilon = zeros, zeros
        self.quotient, self.last = zeros, zeros + 1  # ⟨z, M z⟩ but for its last term, last × α

    def multiply(self) -> None:
        """The product with M for the next step, which also gives ⟨z, M z⟩ of this one."""
        spread = self.system.problem.spread
        self.p = add_scaled(self.system.product(self.v), spread(-self.beta), self.v_old)
        self.alpha = inner(self.v, self.p)
        self.alphas.append(to_numpy(self.alpha))
        self.quotient = self.quotient + self.last * self.alpha
        xp = namespace(self.v)
        self.size = xp.maximum(self.size, xp.sqrt(self.beta**2 + self.alpha**2))

    def step(self, b: Array, r: Array, active: Array) -> tuple[Array, Array, bool]:
        """Update b and r of the active columns, which may be in place; and whether anything moved."""
        xp = namespace(b)
        problem = self.system.problem
        spread, one = problem.spread, xp.ones_like(problem.strength)
        p = add_scaled(self.p, spread(-self.alpha), self.v)
        beta = xp.sqrt(inner(p, p))
        # what is left of an exhausted Krylov space is rounding, and no direction
        beta = xp.where(beta > xp.finfo(p.dtype).eps * self.size, beta, xp.zeros_like(beta))
        self.size = xp.maximum(self.size, xp.sqrt(self.alpha**2 + beta**2))
        v_new = p * spread(_ratio(xp.ones_like(beta), beta))
        self.betas.append(to_numpy(beta))

        # the rotation that takes β out of the tridiagonal matrix of M + λI
        diagonal = self.alpha + problem.strength
        below = self.cosine * self.delta + self.sine * diagonal
        corner = self.sine * self.delta - self.cosine * diagonal
        two_below = self.epsilon
        pivot = xp.sqrt(corner**2 + beta**2)
        cosine, sine = _ratio(corner, pivot), _ratio(beta + 0 * one, pivot)
        self.epsilon, self.delta = self.sine * beta, -self.cosine * beta
        step = xp.where(active, cosine * self.norm, 0 * one)
        norm = sine * self.norm
        quotient = sine**2 * self.quotient + 2 * sine * cosine * self.cosine * beta

        d_new = self.d_old * spread(-two_below) + self.v
        d_new = add_scaled(d_new, spread(-below), self.d) * spread(_ratio(one, pivot))
        b = add_scaled(b, spread(step), d_new)
        kept, added = xp.where(active, sine**2, one), xp.where(active, -cosine * norm, 0 * one)
        r = r * spread(kept) + spread(added) * v_new

        self.d, self.d_old, self.v, self.v_old, self.beta = d_new, self.d, v_new, self.v, beta
        self.cosine, self.sine, self.active = cosine, sine, active
        self.norm = xp.where(active, norm, self.norm)
        self.quotient = xp.where(active, quotient, self.quotient)
        self.last = xp.where(active, cosine**2, 0 * one)
        return b, r, bool(xp.any(step != 0))

    def lowest(self, k: Any) -> float:
        """The smallest Ritz value of M that column k has seen."""
        k = min(k, len(self.alphas[0]) - 1)
        alphas = np.array([alpha[k] for alpha in self.alphas])
        if len(alphas) == 1:
            return float(alphas[0])
        betas = np.array([beta[k] for beta in self.betas])
        return float(eigvalsh_tridiagonal(alphas, betas, select="i", select_range=(0, 0))[0])


class _Recorder(Recorder):
    """Judges columns with an indefinite M by their residuals."""

    def __init__(
        self, problem: Problem, tol: float, max_iter: int, callback: Callback | None, patience: int
    ):
        super().__init__(problem, tol, max_iter, callback, patience)
        self.indefinite = self.small = problem.strength < 0
        self.best_fresh = float("inf")

    def renew(self, gap: Array) -> None:
        """Measure progress from a true gap, if that has fallen, and not from what recurrences promised before."""
        total = float(to_numpy(gap).sum())
        if total < 0.5 * self.best_fresh:
            self.best_fresh, self.best_gap = total, float("inf")

    def judge(self, process: _Process, objective: Array) -> Array:
        """Gap of each column. Notes which have a small residual, and which an indefinite M."""
        xp = namespace(objective)
        self.small = process.norm <= self.tol**0.5 * process.system.norm_c
        gap = self.problem.gap(process.norm**2 * process.quotient)
        size = process.size + 0 * gap
        # definiteness matters, and is looked at, when one of the two rules is satisfied
        asked = (self.small | super().converged(objective, gap)) & process.active
        found = to_numpy(self.indefinite).copy()
        rounding = ROUNDING[itemsize(self.problem.operator)]
        for k in np.flatnonzero(to_numpy(asked) & ~found):
            found[k] = process.lowest(k) < -rounding * float(size[k])
        self.indefinite = asarray_like(found, self.indefinite)
        return xp.where(self.indefinite, self.problem.gap(process.norm**2 * size), gap)

    def converged(self, objective: Array, gap: Array) -> Array:
        certified = super().converged(objective, gap)
        return namespace(gap).where(self.indefinite, self.small, certified)


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Numerator / denominator, zero where the denominator is."""
    xp = namespace(numerator)
    there = denominator != 0
    safe = xp.where(there, denominator, xp.ones_like(denominator))
    return xp.where(there, numerator / safe, xp.zeros_like(numerator))
