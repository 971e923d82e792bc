"""The history of a solver of a `Problem`: it counts products and certifies the end."""

from __future__ import annotations

import logging

import numpy as np

from gramian._core.arrays import Array, itemsize, namespace, to_numpy
from gramian._core.fused import inner
from gramian.operators import Intercept, LabelMixed, Operator
from gramian.solvers.history import History
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.solution import Callback, Solution

logger = logging.getLogger("gramian")

# Relative gap. Measured on 4435 rows: with plain products of a float32 operator 1e-7 is reached, 1e-8 is not.
TOLERANCE_OF_PLAIN_PRODUCTS = 1e-6
EPSILON_FLOAT32 = 2.0**-23

# Products of data in float64 are in single precision while ε √n max(𝒦), about the norm of what rounding does to 𝒦 (see
# `selection.rounded`), times the largest curvature of a loss is at most this much of λ. Conjugate gradients lose
# their orthogonality sooner, and a product in single precision takes 0.45 of the time. Without a preconditioner, the
# squared loss (n = 200, d = 3, to 1e-8) takes 1.7, 2.6 and 3 times the products at 8e-5, 8e-4 and 3e-3 λ, softmax
# (n = 2000, d = 10, to 1e-6) 1.05, 1.2 and 1.9 times at 1e-6, 7e-5 and 7e-3 λ.
MOST_FELT = 3e-4
# Factor by which each refinement must reduce the gap for another one to be worth it in single precision.
LEAST_REFINEMENT = 0.25


# Of |⟨ρ, 𝒦ρ⟩|, relative to the largest entry of 𝒦 times (Σ|ρ|)², by bytes of a number: a hundred times and more what
# rounding does, so that the errors of tree codes and low-rank products are within it, too.
ROUNDING = {4: 1e-5, 8: 1e-7}


class Recorder(History):
    """Multiplies with the operator of a problem, counts that, and keeps the history of the solve.

    Parameters
    ----------
    problem : Problem
    tol, max_iter, callback, patience
        As for `History`.
    """

    semidefinite = True  # whether the solver needs an operator that is

    def __init__(
        self, problem: Problem, tol: float, max_iter: int, callback: Callback | None, patience: int
    ):
        super().__init__(tol, max_iter, callback, patience)
        self.problem = problem
        self._single: Operator | None = None
        self._refined_gap = float("inf")

    @property
    def operator(self) -> Operator:
        """What products are taken with: 𝒦, or 𝒦 in single precision."""
        return self._single or self.problem.operator

    @property
    def in_single(self) -> bool:
        """Whether products are in single precision though the operator is in double."""
        return self._single is not None

    def multiply_in_single(self) -> None:
        """Multiply in single precision from now on, if that is faster and can be refined."""
        problem = self.problem
        single = problem.operator.in_single()
        bend = problem.curvature(problem.start(None)).diagonal if single is not None else None
        if bend is None:
            return
        n, n_outputs, _ = problem.shape
        operator = problem.operator
        if isinstance(
            operator, LabelMixed
        ):  # an intercept, however large, is a sum in double precision
            operator = LabelMixed([t for t in operator.terms if not isinstance(t[0], Intercept)])
        largest = float(np.max(operator.diagonal(n_outputs))) * float(np.max(bend))
        felt = 0.5 * EPSILON_FLOAT32 * n**0.5 * largest / float(np.min(problem.strength))
        if felt > MOST_FELT:
            logger.info("products in double precision: single would be off by %.1g λ", felt)
            return
        logger.info("products in single precision, refined by some in double precision")
        self._single = single

    def multiply_in_double(self, why: str) -> None:
        """Give up products in single precision."""
        logger.info("products in double precision from step %d on: %s", self.n_iter, why)
        self._single, self.best_row = None, self.n_iter

    def refined(self, gap: Array) -> bool:
        """Note a gap from accurate products; return whether such gaps still fall."""
        total = float(to_numpy(gap).sum())
        falls = total < LEAST_REFINEMENT * self._refined_gap
        self._refined_gap = total
        return falls

    def product(self, B: Array) -> Array:
        """𝒦B, counted."""
        self.n_products += 1
        return self.operator @ B

    def accurate_product(self, B: Array) -> Array:
        """𝒦B with sums in float64, counted."""
        self.n_products += 1
        return self.problem.operator.accurate(B)

    def refreshed_product(self, B: Array) -> Array:
        """𝒦B with sums in float64 if the tolerance asks for them, counted."""
        accurate = self.tol < TOLERANCE_OF_PLAIN_PRODUCTS or self.in_single
        return self.accurate_product(B) if accurate else self.product(B)

    def certificate(
        self, A: Array, U: Array, *, final: bool = False, fresh: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        """Objective, gap, ρ and 𝒦ρ at A with U = 𝒦A, for one product; an accurate one if this is ``final``.

        The norm of a rough residual is a small difference of large numbers. Where products are in single precision,
        a ``fresh`` U is accurate, and so is the gap.
        """
        objective, rho = self.problem.objective(A, U), self.problem.residual(A, U)
        accurate = final or (fresh and self.in_single)
        K_rho = self.accurate_product(rho) if accurate else self.product(rho)
        squared_norm = inner(rho, K_rho)
        if self.semidefinite:
            rounded = self.in_single and not accurate
            self._check_sign(squared_norm, rho, 4 if rounded else itemsize(self.problem.operator))
        if final and itemsize(self.problem.operator) < 8:
            squared_norm = abs(squared_norm) + self._rounding_of_matrix(rho)
        return objective, self.problem.gap(squared_norm), rho, K_rho

    def _rounding_of_matrix(self, rho: Array) -> Array:
        """What the rounding of entries of 𝒦 to float32 may hide of a squared norm: ε max(𝒦) √n ‖ρ‖².

        Rounding may leave directions in which 𝒦 is negative, and a residual in them would make the gap too small.
        """
        operator, (n, outputs, _) = self.problem.operator, rho.shape
        largest = float(namespace(rho).max(operator.diagonal(int(outputs))))
        return EPSILON_FLOAT32 * largest * n**0.5 * inner(rho, rho)

    def _check_sign(self, squared_norm: Array, rho: Array, nbytes: int) -> None:
        """Refuse a squared norm that is negative beyond rounding: there is no duality gap for such operators."""
        worst = float(to_numpy(squared_norm).min())
        if not worst < 0:
            return
        operator, xp = self.problem.operator, namespace(rho)
        largest = float(xp.max(operator.diagonal(int(rho.shape[1]))))
        sums = xp.sum(xp.abs(rho), axis=(0, 1), dtype=xp.float64)
        explained = ROUNDING[nbytes] * largest * float(xp.max(sums)) ** 2
        if worst < -explained:
            raise ValueError(
                f"The Gram matrix is not positive semidefinite: the squared norm of a residual is {worst:.3g}, and "
                f"rounding explains {-explained:.1g} at most. Repair the similarities, for example by "
                "clip, flip or shift of gramian.kernels.similarity, or use solver='minres' for squared losses."
            )

    def verified(
        self, A: Array, U: Array, objective: Array, gap: Array, status: str, *, fresh: bool
    ) -> Solution:
        """Return the solution with a certificate from ``U = 𝒦A`` itself, computed unless it is ``fresh``.

        With entries in float32 it is computed in any case, by accurate products. A solver for indefinite operators has
        judged its end by other rules.
        """
        rounded = self.semidefinite and itemsize(self.problem.operator) < 8
        if not fresh or rounded:
            U = self.accurate_product(A)
            objective, gap, _, _ = self.certificate(A, U, final=True)
            status = self.confirmed(status, objective, gap)
        return self.solution(squeezed(A), objective, gap, status, latent=squeezed(U))


def squeezed(A: Array) -> Array:
    """Drop a trailing axis of length one."""
    return A[..., 0] if A.shape[-1] == 1 else A
