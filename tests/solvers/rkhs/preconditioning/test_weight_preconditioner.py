"""Preconditioners of problems in weights of features."""

import numpy as np

from gramian.kernels import Linear
from gramian.labels import Identity
from gramian.losses import ChainLikelihood, FeatureLoss, Logistic
from gramian.operators import DirectSum, LinearFeatures, Transitions, Weights
from gramian.solvers import Problem
from gramian.solvers.rkhs.preconditioning.weights import (
    WeightPreconditioner,
    weight_preconditioner,
)


def test_matrices_of_outputs_are_inverted(rng):
    like = np.zeros((4, 3))
    problem = Problem(Weights(2.0, Identity(), 4, like), Logistic(), like, regularization=0.5)
    roots = rng.normal(size=(3, 4, 4))
    grams = roots @ np.swapaxes(roots, 1, 2)
    r = rng.normal(size=(4, 3, 1))
    P = WeightPreconditioner(problem, np.ones((4, 3, 1)), [gram.copy() for gram in grams])
    s, Ks = P.apply(r, problem.operator @ r)
    np.testing.assert_allclose(Ks, problem.operator @ s)
    product = 0.5 * s[:, :, 0] + np.einsum("cij,jc->ic", grams, Ks[:, :, 0])
    np.testing.assert_allclose(product, 0.5 * r[:, :, 0])  # (λI + H𝒦) s = λ r


def test_it_is_self_adjoint_and_positive_for_chains(rng):
    lengths, C = [3, 1, 0, 4, 2], 3
    X, like = rng.normal(size=(10, 2)), np.zeros((1, C))
    features = LinearFeatures(Linear(), X)
    parts = [Weights(2.0, Identity(), 2, like), Weights(1.5, Identity(), 1, like)]
    operator = DirectSum([*parts, Transitions(10.0, Identity(), C, 2, like)])
    labels = np.zeros((15, C, 1))
    labels[np.arange(10), rng.integers(C, size=10)] = 1.0
    loss = FeatureLoss(ChainLikelihood(lengths, C), features, labels, None, intercept=True)
    problem = Problem(operator, loss, np.zeros((8, C, 1)), regularization=0.3)
    curvature = problem.curvature(rng.normal(size=(8, C, 1)))
    P = weight_preconditioner(problem, curvature)
    r, t = rng.normal(size=(2, 8, C, 1))
    (Pr, KPr), (_, KPt) = P.apply(r, operator @ r), P.apply(t, operator @ t)
    np.testing.assert_allclose(KPr, operator @ Pr)
    np.testing.assert_allclose(np.sum(KPr * t), np.sum(KPt * r))
    assert np.sum(KPr * r) > 0


def test_the_diagonal_remains_where_there_is_no_factor(rng):
    """Rounding of extreme features can leave a matrix that is not positive definite."""
    like = np.zeros((2, 1))
    problem = Problem(Weights(1.0, Identity(), 2, like), Logistic(), like, regularization=1.0)
    diagonal, r = np.ones((2, 1, 1)), rng.normal(size=(2, 1, 1))
    indefinite = np.array([[1.0, 9.0], [9.0, 1.0]])
    found = WeightPreconditioner(problem, diagonal, [indefinite]).apply(r, r)
    expected = WeightPreconditioner(problem, diagonal).apply(r, r)
    np.testing.assert_array_equal(found, expected)
