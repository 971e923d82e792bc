"""The history of a solver of a `Problem`: it counts products and certifies the end."""

from __future__ import annotations

from gramian._core.arrays import Array, itemsize, namespace, to_numpy
from gramian._core.fused import inner
from gramian.solvers.history import History
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.solution import Callback, Solution

# Relative gap. Measured on 4435 rows: with plain products of a float32 operator 1e-7 is reached, 1e-8 is not.
TOLERANCE_OF_PLAIN_PRODUCTS = 1e-6
EPSILON_FLOAT32 = 2.0**-23


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

    def product(self, B: Array) -> Array:
        """𝒦B, counted."""
        self.n_products += 1
        return self.problem.operator @ B

    def accurate_product(self, B: Array) -> Array:
        """𝒦B with sums in float64, counted."""
        self.n_products += 1
        return self.problem.operator.accurate(B)

    def refreshed_product(self, B: Array) -> Array:
        """𝒦B with sums in float64 if the tolerance asks for them, counted."""
        accurate = self.tol < TOLERANCE_OF_PLAIN_PRODUCTS
        return self.accurate_product(B) if accurate else self.product(B)

    def certificate(
        self, A: Array, U: Array, *, final: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        """Objective, gap, ρ and 𝒦ρ at A with U = 𝒦A, for one product; an accurate one if this is ``final``.

        The norm of a rough residual is a small difference of large numbers.
        """
        objective, rho = self.problem.objective(A, U), self.problem.residual(A, U)
        K_rho = self.accurate_product(rho) if final else self.product(rho)
        squared_norm = inner(rho, K_rho)
        if self.semidefinite:
            self._check_sign(squared_norm, rho)
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

    def _check_sign(self, squared_norm: Array, rho: Array) -> None:
        """Refuse a squared norm that is negative beyond rounding: there is no duality gap for such operators."""
        worst = float(to_numpy(squared_norm).min())
        if not worst < 0:
            return
        operator, xp = self.problem.operator, namespace(rho)
        largest = float(xp.max(operator.diagonal(int(rho.shape[1]))))
        sums = xp.sum(xp.abs(rho), axis=(0, 1), dtype=xp.float64)
        explained = ROUNDING[itemsize(operator)] * largest * float(xp.max(sums)) ** 2
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
