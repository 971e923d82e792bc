"""The cross-validation criterion is the mean held-out loss, and its gradient is the derivative of that."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import KERNELS, kernel_id, total_loss
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from gramian._core.arrays import to_numpy
from gramian.kernels import RBF, Constant, Laplacian, Linear, Matern, RationalQuadratic, White
from gramian.labels import (
    DenseStructure,
    Diagonal,
    Identity,
    Scalar,
    Taxonomy,
    TreeStructure,
)
from gramian.losses import Logistic, Softmax, Squared, SquaredHinge
from gramian.operators import (
    Dense,
    Intercept,
    LabelMixed,
    Lifted,
    LinearFeatures,
    Separate,
    Streamed,
)
from gramian.operators.inputs import tiles
from gramian.operators.inputs.distances import Distances
from gramian.selection import CrossValidationCriterion, fold_masks
from gramian.selection.prior import GramSettings, assemble_prior
from gramian.solvers import Problem, newton
from gramian.testing import CountingOperator

pytestmark = pytest.mark.usefixtures("one_thread")

N, STRENGTH, VARIANCE = 45, 0.7, 0.5
STEP = 1e-4
TIGHT = 1e-15


def _data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    noisy = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=N)
    return X, np.digitize(noisy, [-0.6, 0.6])


X, CLASSES = _data()
INDICATOR = (CLASSES[:, None] == np.arange(3)).astype(float)
TARGETS = {
    Softmax(): INDICATOR,
    Logistic(): INDICATOR[:, 1:],
    Squared(): np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]),
    SquaredHinge(): 2 * INDICATOR - 1,
}
WEIGHTS = np.random.default_rng(1).uniform(0.3, 2.0, N)
FOLDS = KFold(3, shuffle=True, random_state=0)
TREE = Taxonomy.from_dict({"a": ["a1", "a2"], "b": None})  # leaves: b, a1, a2


def masks(cv=FOLDS):
    return fold_masks(cv, X, CLASSES)


def criterion(operator, loss=None, weights=None, cv=FOLDS, targets=None):
    loss = loss or Softmax()
    Y = TARGETS[loss] if targets is None else targets
    return CrossValidationCriterion(Problem(operator, loss, Y, STRENGTH, weights), *masks(cv))


def operator_of(kernel, share="tied", taxonomy=None, X=X, name="dense", n_outputs=3):
    """What an estimator multiplies with while it learns."""
    kernel = kernel.resolve(X)
    functions = list(range(n_outputs)) if taxonomy is None else taxonomy.names[1:].tolist()
    prior = assemble_prior(kernel, share, functions, taxonomy)
    return prior.operator(X, INDICATOR, GramSettings(name, VARIANCE), learning=True)[0]


def assert_gradient(function, theta, rtol=1e-5):
    """Central differences in every parameter."""
    gradient = function(theta, tol=TIGHT)[1]
    assert gradient.shape == theta.shape
    differences = [
        (function(theta + STEP * e, tol=TIGHT)[0] - function(theta - STEP * e, tol=TIGHT)[0])
        / (2 * STEP)
        for e in np.eye(theta.size)
    ]
    size = np.abs(gradient).max()
    assert size > 1e-5, "a gradient of zero proves nothing"
    np.testing.assert_allclose(gradient, differences, rtol=0, atol=rtol * size)


# --- the value ----------------------------------------------------------------------------------

CVS = {
    "every example once": FOLDS,
    "some never": ShuffleSplit(3, test_size=0.2, random_state=0),
    "some neither train nor judge": ShuffleSplit(2, test_size=0.3, train_size=0.4, random_state=0),
    "every example twice": RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
}
every_cv = pytest.mark.parametrize("cv", CVS.values(), ids=list(CVS))
both_weights = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])


@every_cv
@both_weights
@pytest.mark.parametrize("loss", TARGETS, ids=repr)
def test_the_value_is_the_mean_loss_of_separate_fits(loss, weights, cv):
    """One fit for each fold on its training rows, then scalar arithmetic on the rows held out."""
    kernel, Y = 2.0 * RBF(1.5), TARGETS[loss]
    w = np.ones(N) if weights is None else weights
    total = weight = 0.0
    for train, test in cv.split(X):
        rows = X[train]
        terms = [(Dense(kernel, rows), Identity())]
        terms.append((Intercept(VARIANCE, Y, len(rows)), Identity()))
        alone = Problem(LabelMixed(terms), loss, Y[train], STRENGTH, w[train])
        A = newton(alone, tol=TIGHT).coefficients
        U = (kernel(X[test], rows) + VARIANCE) @ A
        total += total_loss(type(loss).__name__, U, Y[test], w[test])
        weight += w[test].sum()
    operator = operator_of(kernel, n_outputs=Y.shape[1])
    value, _ = criterion(operator, loss, weights, cv)(operator.theta, tol=TIGHT)
    np.testing.assert_allclose(value, total / weight, rtol=1e-7)


def test_held_out_is_all_that_does_not_train_unless_said():
    operator, (training, held_out) = operator_of(RBF(1.5)), masks()
    problem = Problem(operator, Softmax(), INDICATOR, STRENGTH)
    implied = CrossValidationCriterion(problem, training)(operator.theta)[0]
    explicit = CrossValidationCriterion(problem, training, held_out)(operator.theta)[0]
    assert implied == explicit


def test_the_latent_values_of_held_out_examples_are_predictions():
    operator, (_, held_out) = operator_of(RBF(1.5)), masks()
    function = criterion(operator)
    value, _ = function(operator.theta, tol=TIGHT)
    assert function.latent.shape == (N, 3, 3)
    U = (function.latent * held_out[:, None, :]).sum(axis=2)
    np.testing.assert_allclose(total_loss("Softmax", U, INDICATOR) / N, value, rtol=1e-8)


# --- the gradient ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)
def test_gradient_of_every_kernel(kernel):
    """Every number that is not fixed, and the variance."""
    operator = operator_of(kernel)
    assert_gradient(criterion(operator), operator.theta)


@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)
def test_streaming_gives_the_same_value_and_gradient(kernel, monkeypatch):
    monkeypatch.setattr(tiles, "TILE_BYTES", 2000)
    dense, streamed = operator_of(kernel), operator_of(kernel, name="streamed")
    assert isinstance(streamed.terms[0][0], Streamed)
    value, gradient = criterion(dense)(dense.theta, tol=TIGHT)
    other, slope = criterion(streamed)(streamed.theta, tol=TIGHT)
    np.testing.assert_allclose(other, value, rtol=1e-9)
    np.testing.assert_allclose(slope, gradient, atol=1e-6 * np.abs(gradient).max())


def test_fixed_parameters_drop_out():
    fixed = Constant(2.0) * RBF(1.5, length_scale_bounds="fixed")
    operator = operator_of(fixed)
    np.testing.assert_allclose(operator.theta, np.log([2.0]))
    free = operator_of(2.0 * RBF(1.5))
    value, gradient = criterion(operator)(operator.theta, tol=TIGHT)
    full, (_, in_variance) = criterion(free)(free.theta, tol=TIGHT)
    np.testing.assert_allclose(value, full, rtol=1e-10)
    np.testing.assert_allclose(gradient, [in_variance], rtol=1e-6)


@every_cv
@both_weights
@pytest.mark.parametrize("loss", TARGETS, ids=repr)
def test_gradient_of_every_loss(loss, weights, cv):
    """The squared hinge has kinks in its slope only, so that differences across one are still accurate."""
    operator = operator_of(2.0 * RBF([1.0, 1.5, 3.0]), n_outputs=TARGETS[loss].shape[1])
    rtol = 1e-4 if isinstance(loss, SquaredHinge) else 1e-5
    assert_gradient(criterion(operator, loss, weights, cv), operator.theta, rtol)


SHARES = {
    "tied": "tied",
    "class": "class",
    "mapping": {0: "low", 1: "middle", 2: "low"},
}
TREE_SHARES = ["tied", "class", "level", "subtree", {"a": 0, "b": 1, "a1": 1, "a2": 0}]
KINDS = {
    "isotropic": 2.0 * Matern(1.5, nu=2.5),
    "ard": 2.0 * RBF([1.0, 1.5, 3.0]),
    "sum": RBF(1.5) + 0.5 * Linear() + White(0.1),
    "variance only": 2.0 * RBF(1.5, length_scale_bounds="fixed"),
}
every_kind = pytest.mark.parametrize("kernel", KINDS.values(), ids=list(KINDS))


@every_kind
@pytest.mark.parametrize("share", SHARES.values(), ids=list(SHARES))
def test_gradient_of_every_sharing_pattern(share, kernel):
    operator = operator_of(kernel, share)
    assert_gradient(criterion(operator), operator.theta)


@every_kind
@pytest.mark.parametrize("share", TREE_SHARES, ids=[*TREE_SHARES[:4], "mapping"])
def test_gradient_of_every_sharing_pattern_in_a_taxonomy(share, kernel):
    operator = operator_of(kernel, share, TREE)
    matrix, structure = operator.terms[0]
    separate = share != "tied" and kernel is not KINDS["variance only"]
    assert isinstance(matrix, Lifted) if separate else isinstance(structure, TreeStructure)
    assert_gradient(criterion(operator), operator.theta)


S = np.array([[1.0, 0.2, -0.4], [0.2, 0.5, 0.1], [-0.4, 0.1, 2.0]])
STRUCTURES = {
    "Identity": Identity(),
    "Scalar": Scalar(2.5),
    "Diagonal": Diagonal([0.5, 1.0, 2.0]),
    "groups": Diagonal([0.5, 2.0], groups=[1, 0, 1]),
    "DenseStructure": DenseStructure(S),
    "TreeStructure": TreeStructure(TREE, [0.5, 1.0, 2.0], [-1, 0, 2, 1, 0], order=[3, 2, 4]),
}


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=list(STRUCTURES))
def test_gradient_of_every_label_structure(structure):
    matrix = Dense(RBF([1.0, 1.5, 3.0]), X)
    operator = LabelMixed([(matrix, structure), (Intercept(VARIANCE, X, N), Identity())])
    assert_gradient(criterion(operator, weights=WEIGHTS), operator.theta)


def test_gradient_of_operators_within_operators():
    """Sums of terms, separate kernels of different kinds, and a taxonomy over them."""
    parts = [Dense(RBF(1.0), X), Streamed(Matern(2.0), X), LinearFeatures(0.5 * Linear(), X)]
    nodes = LabelMixed([(Separate(parts, [0, 1, 2, 1]), Diagonal([1.0, 2.0], [0, 1, 1, 0]))])
    operator = LabelMixed(
        [
            (Lifted(nodes, TREE, order=[4, 2, 3]), Identity()),
            (Dense(RationalQuadratic(), X), DenseStructure(S)),
        ]
    )
    assert operator.theta.size == 7
    assert_gradient(criterion(operator), operator.theta)


@pytest.mark.parametrize("loss", TARGETS, ids=repr)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_gradient_through_linear_features(kind, loss):
    thin = np.where(X > 0, X, 0.0)
    operator = operator_of(
        0.5 * Linear(), X=kind(thin), name="linear", n_outputs=TARGETS[loss].shape[1]
    )
    assert isinstance(operator.terms[0][0], LinearFeatures)
    assert_gradient(criterion(operator, loss), operator.theta)


@pytest.mark.parametrize("name", ["dense", "streamed"])
def test_gradient_on_sparse_rows(name):
    thin = sp.csr_array(np.where(X > 0, X, 0.0))
    operator = operator_of(2.0 * RBF(1.5), X=thin, name=name)
    assert_gradient(criterion(operator), operator.theta)


ISOTROPIC = [
    RBF(1.5),
    RBF(1.5, length_scale_bounds="fixed"),
    *(Matern(1.5, nu=nu) for nu in (0.5, 1.5, 2.5)),
    RationalQuadratic(1.5, alpha=0.7),
    RationalQuadratic(1.5, alpha=0.7, alpha_bounds="fixed"),
    Laplacian(1.5),
]


@pytest.mark.parametrize("kernel", ISOTROPIC, ids=kernel_id)
def test_stored_distances_change_nothing(kernel):
    """Other length scales reuse the distances; the numbers are those of a kernel evaluated anew."""
    shared, structure = Distances(X, metric=kernel.metric), Scalar(2.0)
    with_, without = (
        LabelMixed([(Dense(kernel, X, distances), structure)]) for distances in (shared, None)
    )
    theta = with_.theta + 0.3
    assert with_.clone_with_theta(theta).terms[0][0].distances is shared
    value, gradient = criterion(with_)(theta, tol=TIGHT)
    other, slope = criterion(without)(theta, tol=TIGHT)
    np.testing.assert_allclose(value, other, rtol=1e-10)
    np.testing.assert_allclose(gradient, slope, atol=1e-8 * np.abs(slope).max())


@pytest.mark.parametrize("share", ["tied", "class", "level"])
def test_other_array_libraries_give_the_same(xp, share):
    kernel = 2.0 * RBF([1.0, 1.5, 3.0]) + 0.3 * Matern(1.0)
    ours = operator_of(kernel, share, TREE)
    prior = assemble_prior(kernel, share, TREE.names[1:].tolist(), TREE)
    Y, rows = xp.asarray(INDICATOR), xp.asarray(X)
    theirs, _ = prior.operator(rows, Y, GramSettings("dense", VARIANCE), learning=True)
    problem = Problem(theirs, Softmax(), Y, STRENGTH, xp.asarray(WEIGHTS))
    value, gradient = CrossValidationCriterion(problem, *masks())(theirs.theta, tol=1e-12)
    expected, slope = criterion(ours, weights=WEIGHTS)(ours.theta, tol=1e-12)
    assert isinstance(value, float)
    assert isinstance(gradient, np.ndarray)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(gradient, slope, atol=1e-5 * np.abs(slope).max())


def test_single_precision_is_near_double():
    operator = operator_of(2.0 * RBF(1.5))
    value, gradient = criterion(operator)(operator.theta)
    X32, Y32 = X.astype(np.float32), INDICATOR.astype(np.float32)
    prior = assemble_prior(2.0 * RBF(1.5), "tied", [0, 1, 2])
    single, _ = prior.operator(X32, Y32, GramSettings("dense", VARIANCE), learning=True)
    problem = Problem(single, Softmax(), INDICATOR, STRENGTH)
    other, slope = CrossValidationCriterion(problem, *masks())(single.theta)
    np.testing.assert_allclose(other, value, rtol=1e-5)
    np.testing.assert_allclose(slope, gradient, atol=1e-4 * np.abs(gradient).max())


# --- inexact fits -------------------------------------------------------------------------------


def uncorrected(function):
    """Mean held-out loss of the latent values as they are."""
    _, held_out = masks()
    U = (to_numpy(function.latent) * held_out[:, None, :]).sum(axis=2)
    return total_loss("Softmax", U, INDICATOR) / N


@pytest.mark.parametrize("shift", [-0.5, 0.0, 0.5])
def test_the_value_is_corrected_for_an_inexact_fit(shift):
    """What a loose fit gets wrong is predicted by the adjoint, up to second order."""
    operator = operator_of(30.0 * RBF(1.5))
    theta = operator.theta + shift
    exact, slope = criterion(operator)(theta, tol=TIGHT)
    function = criterion(operator)
    value, gradient = function(theta, tol=1e-4)
    off, plain = abs(value - exact), abs(uncorrected(function) - exact)
    assert plain > 1e-4 * exact  # there is something to correct
    assert off < 0.1 * plain
    np.testing.assert_allclose(gradient, slope, atol=0.1 * np.abs(slope).max())


def test_a_correction_that_is_too_large_refines_the_fit():
    """The correction is of first order: asked for more accuracy, the fit itself gets better."""
    operator = operator_of(30.0 * RBF(1.5))
    exact = criterion(operator)(operator.theta, tol=TIGHT)[0]
    loose, fine = criterion(operator), criterion(operator)
    rough = loose(operator.theta, tol=1e-2, accuracy=np.inf)[0]
    refined = fine(operator.theta, tol=1e-2, accuracy=1e-6)[0]
    assert fine.n_products > loose.n_products
    assert abs(refined - exact) < 0.01 * abs(rough - exact)
    assert abs(uncorrected(fine) - exact) < 0.01 * abs(uncorrected(loose) - exact)


def test_fits_that_do_not_get_near_their_optimum_are_judged_as_they_are(monkeypatch):
    """Far from the optimum the prediction means nothing: a log loss of −1.2 once won a search."""
    monkeypatch.setattr("gramian.selection.criterion.MAX_STEPS", 1)
    operator = operator_of(1e5 * RBF(1.5))
    function = criterion(operator)
    value, _ = function(operator.theta, tol=1e-3)
    assert value == pytest.approx(uncorrected(function), rel=1e-12)  # sums may be rounded otherwise
    assert value > 0


# --- cost ---------------------------------------------------------------------------------------


class Counting(CountingOperator):
    """Copies with other parameters count on the same counter."""

    def __init__(self, operator, counts):
        super().__init__(operator)
        self.counts = counts

    def __matmul__(self, B):
        self.counts.append(B.shape)
        return super().__matmul__(B)

    def accurate(self, B):
        self.counts.append(B.shape)
        return super().accurate(B)

    def clone_with_theta(self, theta):
        return Counting(self.operator.clone_with_theta(theta), self.counts)


def products(n_parameters):
    """Products of an evaluation for a kernel with so many length scales, all of the same size."""
    rng = np.random.default_rng(3)
    wide = rng.normal(size=(N, 30))
    scale = 6.0 if n_parameters == 1 else np.full(n_parameters, 6.0)
    counts = []
    matrix = Counting(Dense(RBF(scale), wide), counts)
    function = criterion(LabelMixed([(matrix, Scalar(20.0))]))
    value, gradient = function(np.concatenate([matrix.theta, np.log([20.0])]), tol=1e-8)
    assert gradient.size == n_parameters + 1
    assert counts[0][2] == 3  # for all folds
    assert all(shape[2] <= 3 for shape in counts)  # without those that are done
    return value, len(counts), function.n_products


def test_products_do_not_grow_with_the_number_of_hyperparameters():
    """2 or 31 of them: the adjoint is one system, and all derivatives are contracted at once."""
    few_value, few, few_said = products(1)
    many_value, many, many_said = products(30)
    np.testing.assert_allclose(few_value, many_value, rtol=1e-10)
    assert abs(many - few) <= 2
    assert (few_said, many_said) == (few, many)  # what the criterion reports is what happened


def test_a_warm_start_needs_fewer_products():
    operator = operator_of(30.0 * RBF(1.5))
    function = criterion(operator)
    function(operator.theta, tol=1e-6)
    cold = function.n_products
    value, gradient = function(operator.theta + 0.02, tol=1e-6)
    warm = function.n_products
    assert warm < 0.8 * cold
    function(
        operator.theta + 0.02, tol=1e-6
    )  # fits and adjoint are there already: only checks are left
    assert function.n_products <= 8
    fresh, slope = criterion(operator)(operator.theta + 0.02, tol=1e-6)
    np.testing.assert_allclose(value, fresh, rtol=1e-5)
    np.testing.assert_allclose(gradient, slope, atol=1e-2 * np.abs(slope).max())


def test_combined_coefficients_are_a_start_on_all_examples():
    """Means over the folds an example trains in: nearer to the fit on all examples than zero."""
    operator = operator_of(2.0 * RBF(1.5))
    function = criterion(operator)
    function(operator.theta, tol=1e-8)
    start = function.combined_coefficients()
    assert start.shape == (N, 3)
    problem = Problem(operator, Softmax(), INDICATOR, STRENGTH)
    full = newton(problem, tol=1e-12).coefficients
    assert np.linalg.norm(start - full) < 0.3 * np.linalg.norm(full)


# --- what is refused ----------------------------------------------------------------------------

GOOD, HELD = masks()
BAD_MASKS = {
    "shape": ((GOOD[:-1], None), rf"training must have shape \({N}, n_folds\), got \({N - 1}, 3\)"),
    "one axis": ((GOOD[:, 0], None), rf"training must have shape \({N}, n_folds\), got \({N},\)"),
    "held_out": ((GOOD, HELD[:-1]), rf"held_out must have shape \({N}, n_folds\)"),
    "folds": ((GOOD, HELD[:, :2]), r"must have one shape, got \(45, 3\) and \(45, 2\)"),
    "fractions": ((0.5 * GOOD, HELD), "training must hold zeros and ones"),
    "negative": ((GOOD, -HELD), "held_out must hold zeros and ones"),
    "both": ((np.ones((N, 3)), HELD), "must not both train and be held out"),
    "no training": ((GOOD * [1, 0, 1], HELD), "training must keep at least one example in every"),
    "nothing judged": ((GOOD, 0 * HELD), "held_out must give weight to at least one example"),
}


@pytest.mark.parametrize("name", BAD_MASKS)
def test_bad_masks_are_refused(name):
    given, words = BAD_MASKS[name]
    problem = Problem(Dense(RBF(), X), Softmax(), INDICATOR)
    with pytest.raises(ValueError, match=words):
        CrossValidationCriterion(problem, *given)


def test_weights_of_zero_for_all_that_is_judged_are_refused():
    weights = 1.0 - HELD[:, 0]
    problem = Problem(Dense(RBF(), X), Softmax(), INDICATOR, 1.0, weights)
    with pytest.raises(ValueError, match="held_out must give weight"):
        CrossValidationCriterion(problem, GOOD[:, :1], HELD[:, :1])


def test_targets_must_be_one_problem():
    problem = Problem(Dense(RBF(), X), SquaredHinge(), (2 * INDICATOR - 1)[:, None, :])
    with pytest.raises(ValueError, match=r"targets of shape \(n, C\), got \(45, 1, 3\)"):
        CrossValidationCriterion(problem, GOOD, HELD)


# --- where the fits start -------------------------------------------------------------------------


def test_a_larger_variance_starts_from_the_same_function():
    """Coefficients are divided by the growth of the variance, so that few steps of Newton are left."""
    operator = LabelMixed([(Dense(RBF(1.0), X), Scalar(1.0))])
    function = criterion(operator)
    theta = operator.theta + np.log([1.0, 10.0])
    function(theta, tol=1e-6)
    latent, larger = function.latent, operator.clone_with_theta(theta + np.log([1.0, 7.0]))
    start = function._start(larger)
    np.testing.assert_allclose(larger @ start, latent, rtol=1e-6, atol=1e-6)
