"""What a solver lacks is named: the solver, what it needs, what lacks it, and the solver to use instead."""

import numpy as np
import pytest

from gramian.kernels import RBF
from gramian.losses import Logistic, Squared
from gramian.operators import Dense
from gramian.solvers import Problem, has_closed_form, kronecker_exact, minres
from gramian.solvers.rkhs.requirements import NO_WEIGHTS, NUMPY_ARRAYS, SQUARED_LOSS, require

X = np.linspace(0, 1, 6)[:, None]
Y = (X > 0.5).astype(float)


def test_what_is_met_passes():
    problem = Problem(Dense(RBF(), X), Squared(), Y)
    needs = [NUMPY_ARRAYS, SQUARED_LOSS, NO_WEIGHTS]
    assert require(problem, "any", needs, instead="newton") is None


def test_the_first_thing_that_is_missing_is_named():
    problem = Problem(Dense(RBF(), X), Logistic(), Y, weights=np.ones(6))
    with pytest.raises(
        ValueError, match=r"solver='any' needs the loss .*got loss .*Logistic\. Use solver='newton'"
    ):
        require(problem, "any", [SQUARED_LOSS, NO_WEIGHTS], instead="newton")


@pytest.mark.parametrize(
    ("loss", "weights", "words"),
    [
        (Logistic(), None, "the loss Squared"),
        (Squared(), np.ones(6), "without sample_weight"),
        (Squared(), None, "Kronecker kernel in its dual form and every pair"),
    ],
)
def test_the_closed_form_says_what_it_needs(loss, weights, words):
    problem = Problem(Dense(RBF(), X), loss, Y, weights=weights)
    assert not has_closed_form(problem)
    with pytest.raises(ValueError, match=f"solver='closed_form' needs .*{words}.*solver='minres'"):
        kronecker_exact(problem)


def test_a_solver_of_linear_systems_refuses_other_losses():
    with pytest.raises(ValueError, match="solver='minres' needs the loss"):
        minres(Problem(Dense(RBF(), X), Logistic(), Y))
