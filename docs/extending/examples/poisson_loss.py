"""A loss of your own: counts."""

import numpy as np

from gramian._core.arrays import Array, namespace, total
from gramian.losses import DiagonalCurvature, Loss
from gramian.losses.base import weighted

# From here on the exponential goes on as its second-order Taylor polynomial: still convex and twice
# differentiable, but finite wherever a line search may try it.
CAP = 30.0


class Poisson(Loss):
    """``eᵘ − y u − (y − y log y)`` with counts y ≥ 0: half the Poisson deviance, at least zero."""

    def value(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        xp = namespace(U)
        constant = Y * (1 - xp.log(xp.where(Y > 0, Y, xp.ones_like(Y))))
        return total(_exp(U)[0] - Y * U - constant, weights)

    def gradient(self, U: Array, Y: Array, weights: Array | None = None) -> Array:
        return weighted(_exp(U)[1] - Y, weights)

    def curvature(self, U: Array, Y: Array, weights: Array | None = None) -> DiagonalCurvature:
        return DiagonalCurvature(weighted(_exp(U)[2], weights))


def _exp(U: Array) -> tuple[Array, Array, Array]:
    """eᵘ and its first two derivatives."""
    xp = namespace(U)
    curvature = xp.exp(xp.clip(U, max=CAP))
    beyond = xp.clip(U - CAP, min=0)
    slope = curvature * (1 + beyond)
    return curvature * (1 + beyond + beyond**2 / 2), slope, curvature


if __name__ == "__main__":
    from gramian.kernels import RBF
    from gramian.operators import Dense
    from gramian.solvers import Problem, newton
    from gramian.testing import check_loss

    rng = np.random.default_rng(0)
    check_loss(Poisson(), rng.normal(size=(6, 2)), rng.poisson(2.0, size=(6, 2)))

    X = np.linspace(0, 1, 200)[:, None]
    rate = np.exp(1 + np.sin(6 * X))
    problem = Problem(Dense(9.0 * RBF(0.2), X), Poisson(), rng.poisson(rate).astype(float))
    solution = newton(problem)
    estimate = np.exp(problem.operator @ solution.coefficients)
    print(solution.status, f"{np.mean(np.abs(estimate / rate - 1)):.0%} off on average")
