"""MINRES for the squared loss: minimal residuals, also where 𝒦 is indefinite, and a path of λ at the price of one.

With the weights ``D² = W``, ``M = D𝒦D`` and ``c = DY`` the optimality condition ρ = W(U − Y) + λA = 0 is

    (M + λI) b = c,    A = D b,    ρ = −D r,    r = c − (M + λI) b.

Examples of weight zero drop out. MINRES (Paige & Saunders, SIAM J. Numer. Anal. 12, 1975) minimises ‖r‖ over Krylov
spaces: a Lanczos process tridiagonalises M, and one plane rotation (c_k, s_k) for each step solves the least-squares
problem. M need not be positive semidefinite: it also solves systems with similarities that are not, where conjugate
gradients fail.

*Shifts.* The Lanczos vectors of M from c do not depend on λ. Columns that differ in λ only share one process, so that a
path costs the products of one fit; each λ has its own rotations and directions.

*Certificate.* ``r_k = φ_k z_k`` with ``z_k = s_k z_{k−1} − c_k v_{k+1}`` of norm one, hence

    ⟨z_k, M z_k⟩ = s_k² ⟨z_{k−1}, M z_{k−1}⟩ + 2 s_k c_k c_{k−1} β_{k+1} + c_k² α_{k+1}

and the duality gap ⟨ρ, 𝒦ρ⟩ / (2λ) = φ_k² ⟨z_k, M z_k⟩ / (2λ) is known from the product that the next step needs anyway.
The objective is ``½‖r‖² + (λ/2) ⟨b, r + c⟩``. The end is verified with U = 𝒦A computed afresh; where that shows more
than the recurrences did, the process starts again from the true residual (iterative refinement).

*Indefinite 𝒦.* The objective is not convex then and its gap certifies nothing. As soon as a Ritz value of M is clearly
negative, a column is done when ``‖r‖ ≤ √tol ‖c‖``, and its "gap" is the estimate ``‖r‖² ‖M‖ / (2λ)``, with ‖M‖ as far
as the Lanczos process has seen it. The solution is that of the linear system, and not a minimum.

Optimality: r = 0. Cost: one product with 𝒦 per iteration, two to verify the end, O(nCq) otherwise.

Deviates from the paper in: q systems in lockstep, shifts, the gap as stopping rule. The outputs C of a column are one
vector.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gramian._core.arrays import Array, asarray_like, itemsize, namespace, to_numpy
from gramian.solvers.rkhs.lanczos import Process, System
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder
from gramian.solvers.rkhs.requirements import SQUARED_LOSS, require
from gramian.solvers.solution import Callback, Solution

PATIENCE = 3  # refinements that do not halve the gap, after which rounding errors are to blame
# By bytes of a number of the operator. A Ritz value below minus this, relative to the largest, is no rounding error.
RITZ_ROUNDING = {4: 1e-5, 8: 1e-10}


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
        With the squared loss. The operator need not be positive semidefinite; see the notes on indefinite operators in
        this module.
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
    require(problem, "minres", [SQUARED_LOSS], instead="newton")
    xp = namespace(problem.targets)
    recorder = _Recorder(problem, tol, max_iter, callback)
    system = System(recorder)
    b = system.unscaled(problem.start(start))
    if bool(xp.any(b != 0)):
        process, U = _restarted(system, b)
    else:
        U = xp.zeros_like(b)
        process = Process(system, b, U + system.c, shared=system.c.shape[2] == 1)
    fresh = moved = True
    while True:
        process.multiply()
        objective, gap = recorder.judge(process)
        done = recorder.converged(objective, gap)
        if bool(xp.all(done)) and not fresh:
            (process, U), fresh = _restarted(system, process.b), True
            continue
        if fresh:
            moved = recorder.progress(gap)
        status = recorder.verdict(
            partial(system.coefficients, process.b), objective, gap, moved=moved
        )
        if status is not None:
            if not fresh:
                process, U = _restarted(system, process.b)
                process.multiply()
                objective, gap = recorder.judge(process)
                status = recorder.confirmed(status, objective, gap)
            A = system.scaled(process.b)
            return recorder.verified(A, U, objective, gap, status, fresh=True)
        moved, fresh = process.step(~done), False


def _restarted(system: System, b: Array) -> tuple[Process, Array]:
    """A process from b with its true residual, and U = 𝒦A."""
    problem = system.recorder.problem
    U = system.recorder.accurate_product(system.scaled(b))
    r = system.c - system.scaled(U) - problem.spread(problem.strength) * b
    return Process(system, b, r, shared=False), U


class _Recorder(Recorder):
    """Judges columns with an indefinite M by their residuals."""

    semidefinite = False

    def __init__(self, problem: Problem, tol: float, max_iter: int, callback: Callback | None):
        # residuals may rest for hundreds of iterations before they fall: that is no sign of rounding
        super().__init__(problem, tol, max_iter, callback, patience=max_iter + 1)
        self.indefinite = self.small = problem.strength < 0
        self.best_fresh, self.refuted = float("inf"), 0

    def progress(self, gap: Array) -> bool:
        """Whether true gaps still fall; what recurrences promise in between always does."""
        total = float(to_numpy(gap).sum())
        self.refuted = 0 if total < 0.5 * self.best_fresh else self.refuted + 1
        self.best_fresh = min(total, self.best_fresh)
        return self.refuted < PATIENCE

    def judge(self, process: Process) -> tuple[Array, Array]:
        """Return objective and gap of each column; note which columns have a small residual or an indefinite M."""
        squared_norm = process.norm**2
        objective = 0.5 * squared_norm + 0.5 * self.problem.strength * process.overlap
        gap = self.problem.gap(squared_norm * process.quotient)
        size = namespace(gap).zeros_like(gap) + process.size
        self.small = process.norm <= self.tol**0.5 * process.system.norm_c
        # definiteness matters, and is looked at, when one of the two rules is satisfied or the gap is negative
        asked = self.small | super().converged(objective, gap) | (process.quotient < 0)
        found = to_numpy(self.indefinite).copy()
        columns = np.flatnonzero(to_numpy(asked & process.active) & ~found)
        rounding = RITZ_ROUNDING[itemsize(self.problem.operator)]
        found[columns] = process.lowest(columns) < -rounding * to_numpy(size)[columns]
        self.indefinite = asarray_like(found, self.indefinite)
        estimate = self.problem.gap(squared_norm * size)
        return objective, namespace(gap).where(self.indefinite, estimate, gap)

    def converged(self, objective: Array, gap: Array) -> Array:
        certified = super().converged(objective, gap)
        return namespace(gap).where(self.indefinite, self.small, certified)
