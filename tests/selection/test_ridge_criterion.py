"""The closed form of ridge regression is the iterative criterion, value and gradient."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import KFold, ShuffleSplit

from gramian import PairKFold, PairwiseRidge
from gramian.datasets import make_interactions
from gramian.kernels import RBF, Linear, White
from gramian.kernels import pairwise as pk
from gramian.labels import Identity, Scalar
from gramian.losses import Softmax, Squared, SquaredRanking
from gramian.operators import Dense, Intercept, LabelMixed, PairGram, Streamed
from gramian.selection import (
    CrossValidationCriterion,
    RidgeCriterion,
    choose_criterion,
    fold_masks,
)
from gramian.selection import ridge_criterion as module
from gramian.solvers import Problem, newton

N = 50


@pytest.fixture
def data(rng):
    X = rng.normal(size=(N, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(N, 2))
    return X, Y


def _problem(X, Y, kernel, weights=None, make=Dense, loss=None):
    terms = [(make(kernel, X), Scalar(2.0)), (Intercept(1.5, Y, len(X)), Identity())]
    return Problem(LabelMixed(terms), loss or Squared(), Y, 0.2, weights)


KERNELS = [RBF(1.5), RBF([1.0, 2.0, 3.0]), 0.5 * Linear() + RBF(0.7) + White(0.3)]


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "ard", "sum"])
@pytest.mark.parametrize("weighting", ["none", "positive", "some zero"])
def test_closed_form_is_the_iterative_criterion(kernel, weighting, data, rng):
    X, Y = data
    weights = None if weighting == "none" else rng.uniform(0.5, 2.0, N)
    if weighting == "some zero":
        weights[::5] = 0.0
    problem = _problem(X, Y, kernel, weights)
    training, held_out = fold_masks(KFold(4, shuffle=True, random_state=0), X, Y[:, 0])
    theta = problem.operator.theta + 0.3
    closed = RidgeCriterion(problem, training)
    iterative = CrossValidationCriterion(problem, training, held_out)
    value, gradient = closed(theta)
    expected, expected_gradient = iterative(theta, tol=1e-16)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-6 * abs(expected))
    mask = held_out[:, None, :] > 0
    np.testing.assert_allclose(
        np.where(mask, closed.latent, 0), np.where(mask, iterative.latent, 0), atol=1e-6
    )


def test_the_start_is_the_fit_to_all_examples(data):
    X, Y = data
    problem = _problem(X, Y, RBF(1.5))
    criterion = RidgeCriterion(problem, fold_masks(5, X, Y[:, 0])[0])
    criterion(problem.operator.theta)
    fitted = newton(problem, tol=1e-16).coefficients
    np.testing.assert_allclose(criterion.combined_coefficients(), fitted, atol=1e-7)


def test_it_is_chosen_where_it_holds_and_pays(data, monkeypatch):
    X, Y = data
    training, held_out = fold_masks(5, X, Y[:, 0])
    partly = fold_masks(ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0), X, Y[:, 0])
    indicator = (Y > 0).astype(float)

    def chosen(problem, masks=(training, held_out)):
        return type(choose_criterion(problem, *masks))

    assert chosen(_problem(X, Y, RBF(1.5))) is RidgeCriterion
    assert chosen(_problem(X, Y, RBF(1.5)), partly) is RidgeCriterion
    assert chosen(_problem(X, Y, RBF(1.5), loss=SquaredRanking())) is CrossValidationCriterion
    assert chosen(_problem(X, Y, RBF(1.5), make=Streamed)) is CrossValidationCriterion
    zero = np.ones(N) - np.eye(N)[0]
    assert chosen(_problem(X, Y, RBF(1.5), weights=zero)) is RidgeCriterion
    both = np.column_stack([indicator[:, 0], 1 - indicator[:, 0]])
    assert chosen(_problem(X, both, RBF(1.5), loss=Softmax())) is CrossValidationCriterion
    monkeypatch.setattr(module, "CLOSED_FORM_ROWS", N - 1)
    assert chosen(_problem(X, Y, RBF(1.5))) is CrossValidationCriterion


def test_examples_that_neither_train_nor_are_judged(data):
    """As in setting D of pairs: they are left out of both, and the two criteria agree."""
    X, Y = data
    masks = fold_masks(ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0), X, Y[:, 0])
    problem = _problem(X, Y, RBF(1.5))
    theta = problem.operator.theta
    exact, slope = RidgeCriterion(problem, *masks)(theta)
    iterative, gradient = CrossValidationCriterion(problem, *masks)(theta, tol=1e-12)
    np.testing.assert_allclose(exact, iterative, rtol=1e-8)
    np.testing.assert_allclose(slope, gradient, rtol=1e-5, atol=1e-8)


# --- pairs ------------------------------------------------------------------------------------------

PAIRS, VALUES = make_interactions(n_left=12, n_right=9, n_features=2, density=0.6)
OF_PAIRS = {
    "kronecker": pk.Kronecker(RBF(1.5), RBF(1.2)),
    "gaussian": pk.Gaussian(2.0),
    "linear": pk.Linear(RBF(1.5), 2.0 * Linear()),
    "poly2d": pk.Poly2D(RBF(1.5), RBF(1.2)),
    "cartesian": pk.Cartesian(RBF(1.5), RBF(1.2)),
    "primal": pk.Kronecker(2.0 * Linear(), 1.5 * Linear()),
}


def _problem_of_pairs(kernel, Y, weights=None, form="auto"):
    terms = [(PairGram(kernel, PAIRS, form=form), Scalar(2.0))]
    terms.append((Intercept(1.5, Y, len(PAIRS)), Identity()))
    return Problem(LabelMixed(terms), Squared(), Y, 0.2, weights)


@pytest.mark.parametrize("name", OF_PAIRS)
@pytest.mark.parametrize("setting", ["A", "D"])
@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form_of_pairs_is_the_iterative_criterion(name, setting, weighted, rng):
    weights = rng.uniform(0.5, 2.0, len(PAIRS)) if weighted else None
    Y = np.column_stack([VALUES + 6, VALUES**2])
    form = "primal" if name == "primal" else "auto"
    problem = _problem_of_pairs(OF_PAIRS[name], Y, weights, form)
    masks = fold_masks(PairKFold(setting, random_state=1), PAIRS, VALUES)
    closed = choose_criterion(problem, *masks)
    assert type(closed) is RidgeCriterion
    theta = problem.operator.theta + 0.3
    value, gradient = closed(theta)
    expected, expected_gradient = CrossValidationCriterion(problem, *masks)(theta, tol=1e-16)
    assert value == pytest.approx(expected, rel=1e-9)
    size = np.abs(expected_gradient).max()
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-5 * size)
    step = 3e-4
    differences = [
        (closed(theta + step * e)[0] - closed(theta - step * e)[0]) / (2 * step)
        for e in np.eye(theta.size)
    ]
    np.testing.assert_allclose(gradient, differences, atol=1e-5 * size)


def test_the_matrix_of_pairs_must_fit_the_memory(monkeypatch):
    masks = fold_masks(PairKFold("A"), PAIRS, VALUES)
    problem = _problem_of_pairs(OF_PAIRS["kronecker"], VALUES[:, None])
    with sklearn.config_context(working_memory=1e-3):
        assert type(choose_criterion(problem, *masks)) is CrossValidationCriterion
    monkeypatch.setattr(module, "CLOSED_FORM_PAIRS", len(PAIRS) - 1)
    assert type(choose_criterion(problem, *masks)) is CrossValidationCriterion


def test_pairs_are_learned_by_the_closed_form(monkeypatch):
    """The same parameters come out as by iterations."""
    model = PairwiseRidge(RBF(2.0), RBF(2.0), optimize="cv", cv=PairKFold("A"), tol=1e-12)
    model.fit(PAIRS, VALUES)
    assert model.optimization_path_.converged
    monkeypatch.setattr(module, "CLOSED_FORM_PAIRS", 1)
    other = PairwiseRidge(RBF(2.0), RBF(2.0), optimize="cv", cv=PairKFold("A"), tol=1e-12)
    other.fit(PAIRS, VALUES)
    assert model.cv_loss_ == pytest.approx(other.cv_loss_, rel=1e-2)
