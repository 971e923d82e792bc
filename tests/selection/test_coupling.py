"""Learning a coupling: gradients against numerical ones, the way it departs, and judges that say no."""

import numpy as np
import pytest

from gramian.kernels import RBF
from gramian.labels import FactoredCoupling, Identity, LearnedCoupling
from gramian.losses import Logistic, Softmax, Squared, SquaredHinge
from gramian.operators import Dense, Intercept, LabelMixed, LowRank, Streamed
from gramian.selection import CrossValidationCriterion, RidgeCriterion, fold_masks
from gramian.selection.coupling import _promising, learn_coupling
from gramian.selection.gradient_path import GradientPath
from gramian.selection.judged import gain_and_error, judged_descents
from gramian.selection.prior import GramSettings, assemble_prior
from gramian.selection.ridge_criterion import choose_criterion
from gramian.solvers import Problem

RNG = np.random.default_rng(3)
X = RNG.normal(size=(36, 3))
LATENT = np.tanh(X @ RNG.normal(size=(3, 4)))
CODES = LATENT.argmax(axis=1)
ONE_HOT = np.eye(4)[CODES]
LOSSES = {
    "softmax": (Softmax(), ONE_HOT),
    "logistic": (Logistic(), ONE_HOT),
    "squared hinge": (SquaredHinge(), 2 * ONE_HOT - 1),
    "squared": (Squared(), LATENT),
}
OPERATORS = {
    "dense": lambda: Dense(RBF(1.5), X),
    "streamed": lambda: Streamed(RBF(1.5), X),
    "low rank": lambda: LowRank(RBF(1.5), X, rank=12, random_state=0),
}
FACTORS = RNG.normal(size=(4, 2))


def criterion(loss, targets, structure, matrix=None, folds=3):
    matrix = OPERATORS["dense"]() if matrix is None else matrix
    intercept = Intercept(1.0, like=targets, n_rows=len(X))
    operator = LabelMixed([(matrix, structure), (intercept, Identity())])
    problem = Problem(operator, loss, targets, 0.5)
    return CrossValidationCriterion(problem, *fold_masks(folds, X, CODES, classifier=True))


@pytest.mark.parametrize("own", [0.7, [0.5, 1.0, 2.0, 0.3]], ids=["tied", "free"])
@pytest.mark.parametrize(
    "name, operator",
    [(name, "dense") for name in LOSSES] + [("softmax", "streamed"), ("softmax", "low rank")],
)
def test_gradients_are_numerical_ones(name, operator, own):
    loss, targets = LOSSES[name]
    function = criterion(loss, targets, FactoredCoupling(FACTORS, own, 2.0), OPERATORS[operator]())
    theta = function.problem.operator.theta
    _, gradient = function(theta, tol=1e-15, accuracy=1e-12)
    step, numerical = 1e-4, []
    for e in np.eye(theta.size):
        around = [
            function(theta + k * step * e, tol=1e-15, accuracy=1e-12)[0] for k in (-2, -1, 1, 2)
        ]
        numerical.append(np.dot([1, -8, 8, -1], around) / (12 * step))
    np.testing.assert_allclose(gradient, numerical, atol=1e-6 * np.abs(gradient).max())


def test_the_label_gradient_is_that_of_every_direction_of_the_label_matrix():
    """Along a small factor the criterion changes by what the gradient in S says, to second order."""
    loss, targets = LOSSES["softmax"]
    function = criterion(loss, targets, FactoredCoupling(np.zeros((4, 1)), 1.0, 2.0))
    theta = function.problem.operator.theta
    value, _ = function(theta, tol=1e-14)
    slope = function.label_gradient(function.problem.operator.terms[0][0])
    np.testing.assert_allclose(slope, slope.T)
    np.testing.assert_allclose(
        slope.sum(axis=0), 0, atol=1e-6
    )  # what all classes share is not seen
    for seed in range(3):
        u = np.random.default_rng(seed).normal(size=4)
        beside = theta.copy()
        beside[1:5] = 1e-2 * u
        change = function(beside, tol=1e-14)[0] - value
        np.testing.assert_allclose(change, 2.0 * 1e-4 * u @ slope @ u, rtol=0.02, atol=1e-9)


def test_factors_depart_where_the_criterion_falls():
    V = np.linalg.qr(RNG.normal(size=(5, 5)))[0]
    slope = (V * [-4.0, -1.0, -0.1, 0.0, 2.0]) @ V.T
    factors = _promising(slope, 4, "auto")
    lengths = np.linalg.norm(factors, axis=0)
    np.testing.assert_allclose(lengths[0], 2 * lengths[1])
    assert (lengths > 0).tolist() == [True, True, False, False]  # the third promises too little
    np.testing.assert_allclose(np.abs(V[:, 0] @ factors[:, 0]), lengths[0])
    assert (np.linalg.norm(_promising(slope, 4, 4), axis=0) > 0).tolist() == [1, 1, 1, 0]
    assert not _promising(-slope @ slope * 0 + np.eye(5), 3, "auto").any()


def data(rank, seed=0, n=72):
    """Six outputs that are mixtures of so many functions of single features (six: no mixtures), and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    functions = np.sin(X)[:, :rank]
    mixture = rng.normal(size=(rank, 6)) if rank < 6 else np.eye(6)
    return X, functions @ mixture + 0.5 * rng.normal(size=(n, 6))


def learned(X, Y, asked=None, report=lambda theta, value: False, loss=None, cv=5):
    prior = assemble_prior(2.0 * RBF(1.5), "tied", range(Y.shape[1]))
    operator, _ = prior.operator(X, Y, GramSettings("dense", 1.0), learning=True)
    problem = Problem(operator, loss or Squared(), Y, 0.5)
    folds = fold_masks(cv, X, Y[:, 0])
    return learn_coupling(2.0, problem, folds, asked or LearnedCoupling(), report)


def test_outputs_of_one_function_are_found_to_be_related():
    X, Y = data(rank=1)
    judged = learned(X, Y)
    assert judged.n_approved == judged.n_roles == 5
    assert judged.judged_loss < judged.judged_flat_loss
    correlation = np.corrcoef(Y.T)
    relation = judged.relation.matrix
    strong = np.abs(correlation) > 0.5
    np.testing.assert_array_equal(np.sign(relation[strong]), np.sign(correlation[strong]))
    assert judged.relation.variance == 2.0
    assert "coupled" in judged.told()


def test_unrelated_outputs_stay_unrelated():
    judged = learned(*data(rank=6))
    np.testing.assert_array_equal(judged.relation.matrix, np.eye(6))
    assert judged.n_approved == 0
    assert judged.judged_loss == judged.judged_flat_loss
    assert "unrelated" in judged.told()


def test_a_free_diagonal_has_a_number_for_each_output():
    X, Y = data(rank=1)
    report = lambda theta, value: sizes.append(theta.size)  # noqa: E731
    for kind, more in (("tied", 1), ("free", 6)):
        sizes = []
        learned(X, Y, LearnedCoupling(2, kind), report=report)
        assert set(sizes) == {
            1 + 2 * 6 + more
        }  # the length scale, two factors, and what outputs keep


def test_a_report_ends_it():
    seen = []

    def report(theta, value):
        seen.append(value)
        return len(seen) == 3

    judged = learned(*data(rank=1), report=report)
    assert len(seen) == 3
    assert judged.n_roles == 1


def test_one_fold_cannot_judge():
    X, Y = data(rank=1)
    with pytest.raises(ValueError, match=r"cv leaves no examples to .* Use cv=5"):
        learned(X, Y, cv=[(np.arange(36), np.arange(36, 72))])


def test_related_outputs_have_no_closed_form():
    X, Y = data(rank=1)
    matrix = Dense(RBF(1.0), X)
    folds = fold_masks(3, X, Y[:, 0])
    mixed = LabelMixed([(matrix, FactoredCoupling(np.ones((6, 1)), 1.0))])
    chosen = choose_criterion(Problem(mixed, Squared(), Y, 1.0), *folds)
    assert type(chosen) is CrossValidationCriterion
    alone = choose_criterion(Problem(LabelMixed([(matrix, Identity())]), Squared(), Y, 1.0), *folds)
    assert type(alone) is RidgeCriterion


def test_the_closed_form_judges_like_the_iterative_criterion():
    X, Y = data(rank=6)
    operator = LabelMixed([(Dense(RBF(1.0), X), Identity())])
    problem, folds = Problem(operator, Squared(), Y, 1.0), fold_masks(4, X, Y[:, 0])
    both = [kind(problem, *folds) for kind in (RidgeCriterion, CrossValidationCriterion)]
    for one in both:
        one.drive(np.array([True, True, False, True]))
    (value, slope), (expected, steep) = (one(operator.theta, tol=1e-13) for one in both)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(slope, steep, rtol=1e-4)
    np.testing.assert_allclose(both[0].judged, both[1].judged, rtol=1e-4)
    np.testing.assert_allclose(both[0].judged_losses, both[1].judged_losses, rtol=1e-3)


LOGS = np.array([True, True])


class Fitted:
    """A criterion that falls for ever, with judges whose loss rises beyond one unit."""

    n_folds, n_products = 4, 1
    judging_weights, warm_start = np.ones(3), None

    def drive(self, folds):
        self.roles = folds

    def __call__(self, theta, tol, accuracy):
        self.judged_losses = 1 + (np.linalg.norm(theta) - 1) ** 2 + np.array([-0.1, 0.0, 0.1])
        self.judged = float(self.judged_losses.mean())
        return 10 - float(theta.sum()), -np.ones(2)


def test_the_best_judged_point_of_a_path_is_kept():
    function, start = Fitted(), np.full(2, 0.1)
    descent = GradientPath(np.tile([-50.0, 50.0], (2, 1)), (20, np.inf), lambda t: (0.0, 0 * t))
    verdicts = list(
        judged_descents(
            descent,
            function,
            7,
            start,
            lambda theta: descent.follow(function, 7, theta, ~LOGS, 0.3),
            2,
        )
    )
    assert len(verdicts) == 2
    for verdict in verdicts:
        assert abs(np.linalg.norm(verdict.end.theta) - 1) < 0.2
        assert "judge" in verdict.message
        np.testing.assert_array_equal(verdict.start.theta, start)
    gain, error = gain_and_error(verdicts)
    np.testing.assert_allclose(gain, verdicts[0].gain)
    np.testing.assert_allclose(error, 0, atol=1e-12)  # all examples gain the same
    assert function.roles is None


def test_a_path_goes_back_where_the_value_rises():
    class Bowl(Fitted):
        def __call__(self, theta, tol, accuracy):
            self.calls = getattr(self, "calls", 0) + 1
            self.judged, self.judged_losses = -float(self.calls), np.zeros(3)  # content with all
            return 1 + float(np.sum((theta - 1) ** 2)), 2 * (theta - 1)

    descent = GradientPath(np.tile([-50.0, 50.0], (2, 1)), (60, np.inf), lambda t: (0.0, 0 * t))
    theta, _, converged = descent.follow(Bowl(), 7, np.array([0.1, 0.2]), ~LOGS, 0.5)
    np.testing.assert_allclose(theta, 1, atol=0.05)
    assert converged
