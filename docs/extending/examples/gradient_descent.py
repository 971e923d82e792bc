"""A solver of your own: steepest descent in the RKHS."""

from functools import partial

from gramian._core.arrays import namespace
from gramian._core.fused import inner
from gramian.solvers.rkhs.line_search import minimise_along
from gramian.solvers.rkhs.recorder import Recorder, squeezed

PATIENCE = 500  # iterations without a smaller gap, after which rounding errors are to blame


def gradient_descent(problem, *, start=None, tol=1e-8, max_iter=10_000, callback=None):
    """Walk along −ρ, the functional gradient, to the minimum on that line; one product a step."""
    recorder = Recorder(problem, tol, max_iter, callback, PATIENCE)
    xp = namespace(problem.targets)
    A = problem.start(start)
    U = recorder.accurate_product(A)
    fresh = moved = True  # fresh: U is 𝒦A as computed, not as updated
    while True:
        objective, rho = problem.objective(A, U), problem.residual(A, U)
        K_rho = recorder.product(rho)
        gap = problem.gap(inner(rho, K_rho))
        done = recorder.converged(objective, gap)
        if bool(xp.all(done)) and not fresh:
            U, fresh = recorder.accurate_product(A), True  # believe only what was computed afresh
            continue
        status = recorder.verdict(partial(squeezed, A), objective, gap, moved=moved)
        if status is not None:
            return recorder.verified(A, U, objective, gap, status, fresh=fresh)
        step = minimise_along(problem, A, U, -rho, -K_rho)
        step = xp.where(done, xp.zeros_like(step), step)  # finished columns rest
        t = problem.spread(step)
        A, U, fresh = A - t * rho, U - t * K_rho, False
        moved = bool(xp.any(step > 0))


if __name__ == "__main__":
    import numpy as np

    from gramian.kernels import RBF
    from gramian.losses import Softmax, Squared
    from gramian.operators import Dense
    from gramian.solvers import Problem, newton
    from gramian.testing import check_solver

    check_solver(gradient_descent, losses=[Squared(), Softmax()], tol=1e-6)

    X = np.random.default_rng(0).normal(size=(100, 2))
    Y = np.eye(4)[2 * (X[:, 0] > 0) + (X[:, 1] > 0)]
    problem = Problem(Dense(RBF(1.0), X), Softmax(), Y, regularization=0.1)
    for solve in (gradient_descent, newton):
        print(f"{solve.__name__:17} {solve(problem).n_products} products")
