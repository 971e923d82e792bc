"""The loop that margin solvers share: what is certified has no drift of rounding errors."""

import numpy as np
import pytest
from margin_oracles import random_margins
from sklearn.exceptions import ConvergenceWarning

from gramian.kernels import RBF
from gramian.operators import GramRows
from gramian.solvers import MarginProblem
from gramian.solvers.margin.ascent import Ascent


class Drifting(Ascent):
    """Latent values that meet every margin exactly, so that there is no gap until they are computed anew."""

    solver = "drifting"
    inputs = GramRows

    def prepare(self):
        self.U = np.zeros(self.problem.shape)

    def refresh(self):
        self.U = self.problem.latent(self.A.T)

    def values(self):
        return self.problem.values(np.ascontiguousarray(self.A.T), self.U)

    def sweep(self, objective, gaps):
        self.A[:] = self.problem.signs.T
        self.U = self.problem.signs.astype(float)
        self.operations += 5.0
        self.moved = self.n_sweeps < 2


def test_a_drifted_latent_does_not_certify():
    data = random_margins(0, 7, 3, 4)
    problem = MarginProblem(GramRows(RBF(1.0), data.X), data.signs, data.R)
    with pytest.warns(ConvergenceWarning, match="rounding"):
        solution = Drifting(problem, None, tol=1e-6).solve(10, None)
    A = data.signs.astype(float)
    objective, gaps, violation = problem.values(A, problem.latent(A))
    assert gaps.sum() > 0.01 * objective
    assert (solution.status, solution.n_products) == ("stalled", 3)
    np.testing.assert_allclose(solution.objective, objective)
    np.testing.assert_allclose(solution.gaps, gaps)
    np.testing.assert_allclose(solution.gaps.sum(), solution.gap)
    np.testing.assert_allclose(solution.history["violation"][1:], violation)
    np.testing.assert_array_equal(solution.history["operations"], [0.0, 5.0, 10.0, 15.0])
