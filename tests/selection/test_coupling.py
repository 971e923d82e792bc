"""Learning a coupling: gradients against numerical ones, paths of relations, and judges that say no."""

import numpy as np
import pytest

from gramian.kernels import RBF, Constant
from gramian.labels import (
    Coupling,
    Diagonal,
    FactoredCoupling,
    Identity,
    LearnedCoupling,
    Scalar,
)
from gramian.losses import Logistic, Softmax, Squared, SquaredHinge
from gramian.operators import Dense, Intercept, LabelMixed, LowRank, Streamed
from gramian.selection import CrossValidationCriterion, RidgeCriterion, fold_masks
from gramian.selection.coupling import (
    LEAST_EIGENVALUE,
    POWER,
    Paths,
    learn_coupling,
    relations_of,
)
from gramian.selection.prior import GramSettings, assemble_prior
from gramian.selection.ridge_criterion import choose_criterion
from gramian.solvers import Problem, newton

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


@pytest.mark.parametrize("own", [np.full(4, 2.0), np.array([0.5, 1.0, 2.0, 0.3])])
def test_each_turn_lowers_the_objective(own):
    """L(U) + (λ/2) ⟨A, 𝒦A⟩ + c tr(R^a), with the c that makes the trace of R that of unrelated outputs."""
    problem = Problem(LabelMixed([(OPERATORS["dense"](), Diagonal(own))]), Softmax(), ONE_HOT, 0.5)
    paths = Paths(problem, fold_masks(3, X, CODES, classifier=True), own)
    K, root = RBF(1.5)(X), np.sqrt(own)

    def moments(point):
        R, A = point.relations[-1, 0], point.coefficients[:, :, -1] * root
        return R @ A.T @ K @ A @ R

    point = paths.fitted(np.tile(np.eye(4), (4, 1, 1, 1)), None)
    for _ in range(3):
        following = paths.next_relations(point, LearnedCoupling())
        R, F = following[-1, 0], moments(point)
        np.testing.assert_allclose(np.trace(R), 4, rtol=0.01)
        values, vectors = np.linalg.eigh(R)
        large = values > 2 * LEAST_EIGENVALUE  # others are held where they are
        powers = np.diag(vectors.T @ F @ vectors)[large] ** POWER
        np.testing.assert_allclose(powers / values[large], powers.sum() / 4, rtol=1e-2)
        # R minimises tr(R⁻¹F) + c tr(R^a): no other matrix of the same trace norm is better
        a = 1 / POWER - 1
        c = (powers / values[large]).mean() ** (1 / POWER) / a

        def energy(S, F=F, a=a, c=c):
            return np.trace(np.linalg.solve(S, F)) + c * np.sum(np.linalg.eigvalsh(S) ** a)

        for seed in range(3):
            off = 1e-3 * np.random.default_rng(seed).normal(size=(4, 4))
            used = vectors[:, large] @ vectors[:, large].T
            assert energy(R) <= energy(R + used @ (off + off.T) @ used) + 1e-9
        point = paths.fitted(following, point.coefficients)


def test_what_a_fold_holds_out_does_not_change_its_relation():
    """Nor does it change the coefficients; that of all examples it does change."""
    relations = []
    for sign in (1.0, -1.0):
        training, held_out = fold_masks(3, X, LATENT[:, 0])
        Y = np.where(held_out[:, :1] > 0, sign * LATENT, LATENT)
        problem = Problem(LabelMixed([(OPERATORS["dense"](), Scalar(2.0))]), Squared(), Y, 0.5)
        paths = Paths(problem, (training, held_out), np.full(4, 2.0))
        point = paths.fitted(np.tile(np.eye(4), (4, 1, 1, 1)), None)
        relations.append(paths.next_relations(point, LearnedCoupling()))
    np.testing.assert_array_equal(relations[0][0], relations[1][0])
    assert not np.allclose(relations[0][3], relations[1][3])


def test_points_are_those_of_fits_one_by_one():
    """A path for each fold is a column; single problems with the same relation come to the same losses."""
    training, held_out = fold_masks(3, X, CODES, classifier=True)
    terms = [(OPERATORS["dense"](), Scalar(2.0)), (Intercept(1.0, ONE_HOT, len(X)), Identity())]
    weights = 1.0 + np.arange(len(X)) % 2
    problem = Problem(LabelMixed(terms), Softmax(), ONE_HOT, 0.5, weights)
    paths = Paths(problem, (training, held_out), np.full(4, 2.0))
    start = paths.fitted(np.tile(np.eye(4), (4, 1, 1, 1)), None)
    point = paths.fitted(paths.next_relations(start, LearnedCoupling()), start.coefficients)
    judged = 0.0
    for k in range(3):
        operator = LabelMixed([(terms[0][0], Coupling(point.relations[k, 0], 2.0)), terms[1]])
        alone = newton(Problem(operator, Softmax(), ONE_HOT, 0.5, weights * training[:, k]))
        rows = held_out[:, k] > 0
        judged += Softmax().value(alone.latent[rows], ONE_HOT[rows], weights[rows])
    np.testing.assert_allclose(point.judged, judged / weights.sum(), rtol=5e-3)
    gain, error = paths.gain_and_error(start, point)
    np.testing.assert_allclose(gain, start.judged - point.judged)
    assert 0 < error < 1


@pytest.mark.parametrize("kind", ["tied", "free"])
def test_a_number_of_factors_leaves_a_diagonal_beside_them(kind):
    V = np.linalg.qr(RNG.normal(size=(5, 5)))[0]
    moments = ((V * [8.0, 4.0, 0.1, 0.05, 0.02]) @ V.T)[None]
    (R,) = relations_of(moments, LearnedCoupling(2, kind))
    np.testing.assert_allclose(np.trace(R), 5, rtol=1e-3)
    values = np.linalg.eigvalsh(R)
    assert values[0] > 0
    if kind == "tied":
        np.testing.assert_allclose(values[:3], values[0])
        common = R - values[0] * np.eye(5)
        assert np.linalg.matrix_rank(common, tol=1e-8) == 2
    else:
        (full,) = relations_of(moments, LearnedCoupling())
        np.testing.assert_allclose(np.diag(R), np.diag(full))
    many = relations_of(moments, LearnedCoupling(5, kind))
    np.testing.assert_array_equal(many, relations_of(moments, LearnedCoupling()))
    unmoved = relations_of(np.zeros((2, 3, 3)), LearnedCoupling())
    np.testing.assert_array_equal(unmoved, np.stack([np.eye(3)] * 2))


def test_each_term_keeps_its_trace():
    """Functions of a wide kernel have small norms, which says nothing about how much they are used."""
    moments = np.stack([np.diag([4.0, 1.0]), 1e-6 * np.diag([1.0, 4.0])])
    one, other = relations_of(moments, LearnedCoupling(summands="apart"))
    np.testing.assert_allclose(np.diag(one), np.array([4**POWER, 1.0]) * 2 / (4**POWER + 1))
    np.testing.assert_allclose(other, one[::-1, ::-1])


def data(rank, seed=0, n=72):
    """Six outputs that are mixtures of so many functions of single features (six: no mixtures), and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    functions = np.sin(X)[:, :rank]
    mixture = rng.normal(size=(rank, 6)) if rank < 6 else np.eye(6)
    return X, functions @ mixture + 0.5 * rng.normal(size=(n, 6))


def learned(X, Y, report=lambda value: False, bounds="fixed", kernel=None, asked=None):
    """The prior that is learned from folds, and how it was judged."""
    kernel = Constant(2.0, bounds) * RBF(1.5, bounds) if kernel is None else kernel
    prior = assemble_prior(kernel, "tied", range(Y.shape[1]))

    def problem_of(prior):
        operator, _ = prior.operator(X, Y, GramSettings("dense", 1.0), learning=True)
        return Problem(operator, Squared(), Y, 0.5), fold_masks(5, X, Y[:, 0])

    return learn_coupling(prior, problem_of, asked or LearnedCoupling(), report)


def test_outputs_of_one_function_are_found_to_be_related():
    X, Y = data(rank=1)
    prior, judged = learned(X, Y)
    assert judged.n_approved == 5
    assert judged.judged_loss < judged.unrelated.judged
    correlation = np.corrcoef(Y.T)
    relation = prior.coupling.matrix
    strong = np.abs(correlation) > 0.5
    np.testing.assert_array_equal(np.sign(relation[strong]), np.sign(correlation[strong]))
    assert "coupled" in judged.told()


def test_unrelated_outputs_stay_unrelated():
    prior, judged = learned(*data(rank=6), bounds=(1e-3, 1e3))
    np.testing.assert_array_equal(prior.coupling.matrix, np.eye(6))
    assert judged.n_approved == 0
    assert judged.judged_loss == judged.unrelated.judged
    np.testing.assert_allclose(prior.theta, np.log([1.5, 2.0]))  # no other kernel is tried
    assert "unrelated" in judged.told()


def test_a_smoother_kernel_is_kept_where_judges_like_it():
    """The kernel is far too narrow for one function of the first feature; fixed parameters stay."""
    X, Y = data(rank=1)
    X = X[:, :1]
    prior, judged = learned(10 * X, Y, bounds=(1e-3, 1e3))
    fixed, alone = learned(10 * X, Y)
    np.testing.assert_allclose(fixed.theta, np.log([2.0]))
    steps = np.log2(prior.kernels[0].length_scale / 1.5)
    assert steps >= 1
    np.testing.assert_allclose(prior.variances, 2.0 * 4**steps)
    assert judged.judged_loss < alone.judged_loss
    assert judged.unrelated.judged == alone.unrelated.judged


def test_terms_of_a_kernel_relate_outputs_in_their_own_way():
    """Half of the outputs share a wide function, the other half a narrow one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(90, 1))
    wide, narrow = np.sin(X), np.sin(9 * X)
    Y = np.hstack([wide * [1.0, -1.0, 0.8], narrow * [1.0, -1.0, 0.8]])
    Y += 0.3 * rng.normal(size=Y.shape)
    kernel = RBF(2.0, "fixed") + RBF(0.2, "fixed")
    apart, judged = learned(X, Y, kernel=kernel, asked=LearnedCoupling(summands="apart"))
    together, alike = learned(X, Y, kernel=kernel)
    assert judged.judged_loss < alike.judged_loss
    of_wide, of_narrow = apart.coupling.matrix
    assert np.trace(of_wide[:3, :3]) > 5 * np.trace(of_wide[3:, 3:])
    assert np.trace(of_narrow[3:, 3:]) > 5 * np.trace(of_narrow[:3, :3])
    assert together.coupling.matrix.shape == (6, 6)


def test_a_report_ends_it():
    seen = []

    def report(value):
        seen.append(value)
        return len(seen) == 2

    learned(*data(rank=1), report=report)
    assert len(seen) == 2
    assert seen[1] < seen[0]


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
