"""A solver of your own: steepest descent in the RKHS."""

from gramian.solvers.rkhs.descend import descend
from gramian.solvers.rkhs.line_search import minimise_along
from gramian.solvers.rkhs.recorder import Recorder

PATIENCE = 500  # iterations without a smaller gap, after which rounding errors are to blame


def gradient_descent(problem, *, start=None, tol=1e-8, max_iter=10_000, callback=None):
    """Walk along −ρ, the functional gradient, to the minimum on that line; one product a step."""

    def direction(state):
        s, Ks = -state.rho, -state.K_rho
        return s, Ks, minimise_along(problem, state, s, Ks)

    return descend(Recorder(problem, tol, max_iter, callback, PATIENCE), direction, start)


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
