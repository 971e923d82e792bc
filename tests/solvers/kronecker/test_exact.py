"""The closed form as a solver: where it applies, and its certificate with an intercept."""

import numpy as np
import pytest

from gramian import Pairs
from gramian.kernels import RBF
from gramian.kernels import pairwise as pk
from gramian.labels import Diagonal, Identity, Scalar
from gramian.losses import Squared
from gramian.operators import Intercept, LabelMixed, PairGram
from gramian.solvers import Problem, has_closed_form, kronecker_exact

RNG = np.random.default_rng(0)
PAIRS = Pairs.complete(RNG.normal(size=(6, 2)), RNG.normal(size=(4, 2)))[RNG.permutation(24)]
Y = 5 + RNG.normal(size=(24, 1, 2))
GRAM = PairGram(pk.Kronecker(RBF(1.0), RBF(1.5)), PAIRS, form="dual")
INTERCEPT = Intercept(1.5, Y, 24)


def test_an_intercept_is_part_of_the_closed_form():
    operator = LabelMixed([(GRAM, Scalar(2.0)), (INTERCEPT, Identity())])
    assert operator.kronecker().constant == 1.5
    problem = Problem(operator, Squared(), Y, np.array([0.1, 3.0]))
    assert has_closed_form(problem)
    solution = kronecker_exact(problem, tol=1e-12)
    assert solution.status == "converged"
    K = 2.0 * GRAM.to_dense() + 1.5
    for k, strength in enumerate([0.1, 3.0]):
        a = np.linalg.solve(K + strength * np.eye(24), Y[:, 0, k])
        np.testing.assert_allclose(solution.coefficients[:, 0, k], a, atol=1e-10)
        np.testing.assert_allclose(solution.latent[:, 0, k], K @ a, atol=1e-9)
    assert np.all(solution.gaps >= 0)


@pytest.mark.parametrize(
    "terms",
    [
        [(GRAM, Scalar(2.0)), (INTERCEPT, Diagonal([1.0, 2.0], [0, 1]))],
        [(GRAM, Scalar(2.0)), (GRAM, Identity())],
        [(INTERCEPT, Identity()), (GRAM, Identity())],
    ],
    ids=["intercepts that differ", "two kernels", "another order"],
)
def test_sums_without_a_closed_form(terms):
    assert LabelMixed(terms).kronecker() is None
