"""Estimators for pairs against dense matrices, other estimators, and themselves in other forms."""

import copy
import pickle
import warnings
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from pair_oracles import one_kind, pair_gram
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.svm import SVC, NuSVC

from gramian import (
    KernelLogisticRegression,
    KernelRidge,
    KernelSVC,
    PairKFold,
    Pairs,
    PairwiseLogisticRegression,
    PairwiseRanker,
    PairwiseRidge,
    PairwiseSVC,
)
from gramian.datasets import make_interactions
from gramian.kernels import RBF, Linear, White
from gramian.kernels import pairwise as pk
from gramian.losses import Logistic, Squared, SquaredHinge, SquaredRanking
from gramian.metrics import concordance_index
from gramian.operators import PairGram
from gramian.pairwise import pairwise_from_svc
from gramian.selection import CrossValidationCriterion, CrossValidationSearch, fold_masks
from gramian.solvers import Problem

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings(
        "ignore:The test part of fold"
    ),  # few pairs: some folds have one class
]

RIDGE, KLR, MARGIN, RANK = PairwiseRidge, PairwiseLogisticRegression, PairwiseSVC, PairwiseRanker
CLASSIFIERS = [KLR, MARGIN]
ESTIMATORS = [RIDGE, KLR, MARGIN, RANK]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
classifiers = pytest.mark.parametrize("estimator", CLASSIFIERS)
OPTIONS = {"n_left": 12, "n_right": 9, "n_features": 2, "density": 0.6}
PAIRS, VALUES = make_interactions(**OPTIONS)
LABELS = make_interactions(**OPTIONS, binary=True)[1]
N = len(PAIRS)
NEW = Pairs(
    np.concatenate([PAIRS.left[::3], np.random.default_rng(8).normal(size=(3, 2))]),
    np.concatenate([PAIRS.right[::4], np.random.default_rng(9).normal(size=(2, 2))]),
    np.repeat(np.arange(7), 5),
    np.tile(np.arange(5), 7),
)
KERNEL = pk.Kronecker(RBF(1.5), RBF(1.2))
TIGHT = {"tol": 1e-15, "regularization": 0.3, "max_iter": 2000}


def target(estimator):
    return LABELS if estimator in CLASSIFIERS else VALUES


def latent(model, X):
    return model.decision_function(X) if isinstance(model, (KLR, MARGIN)) else model.predict(X)


def fitted(estimator, X=PAIRS, y=None, sample_weight=None, fit=None, **params):
    """A model that is solved as well as it can be."""
    model = estimator(**({"pairwise_kernel": KERNEL} | TIGHT | params))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        return model.fit(X, target(estimator) if y is None else y, sample_weight, **(fit or {}))


# --- against dense matrices -----------------------------------------------------------------


@cache
def gram(kernel, new=False):
    """The matrix of the training pairs, or from them to the new ones; once for all tests."""
    return pair_gram(kernel, NEW if new else PAIRS, PAIRS)


EVERY_KERNEL = [
    KERNEL,
    pk.Linear(RBF(1.5), Linear()),
    pk.Poly2D(Linear(), RBF(1.2)),
    pk.Gaussian(2.0),
    pk.Cartesian(RBF(1.5), RBF(1.2)),
    pk.Kronecker(Linear(), Linear()),
]


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("solver", ["auto", "kernel_cg", "newton"])
@pytest.mark.parametrize("variance", [0.0, 2.0])
def test_ridge_solves_the_linear_system(kernel, solver, variance):
    K = gram(kernel) + variance
    dual = np.linalg.solve(K + 0.3 * np.eye(N), VALUES)
    model = fitted(RIDGE, pairwise_kernel=kernel, solver=solver, intercept_variance=variance)
    np.testing.assert_allclose(model.predict(PAIRS), K @ dual, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, variance * dual.sum(), atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # cartesian, new objects
        found = model.predict(NEW)
    expected = (gram(kernel, new=True) + variance) @ dual
    np.testing.assert_allclose(found, expected, atol=1e-6)
    objective = 0.5 * np.sum((K @ dual - VALUES) ** 2) + 0.15 * dual @ K @ dual
    assert model.solution_.objective == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize("make", [pk.Symmetric, pk.Antisymmetric, pk.Ranking, pk.MLPK])
def test_ridge_on_one_kind_of_object(make):
    """Where exchanging the ends is to change the sign there is no intercept, whatever its variance."""
    X, kernel = one_kind(n=25, n_objects=9), make(RBF(1.1))
    y = np.sin(X.left_index + 2.0 * X.right_index) + 3  # repeated pairs have one value
    odd = make in (pk.Antisymmetric, pk.Ranking)
    variance = 0.0 if odd else 1.0
    dual = np.linalg.solve(pair_gram(kernel, X) + variance + 0.3 * np.eye(25), y)
    model = fitted(RIDGE, X, y, pairwise_kernel=kernel, intercept_variance=1.0)
    np.testing.assert_allclose(model.intercept_, variance * dual.sum(), atol=1e-6)
    new = one_kind(n=10, seed=4)
    expected = (pair_gram(kernel, new, X) + variance) @ dual
    np.testing.assert_allclose(model.predict(new), expected, atol=1e-6)
    turned = Pairs(new.left, None, new.right_index, new.left_index)
    sign = -1 if odd else 1
    np.testing.assert_allclose(model.predict(turned), sign * model.predict(new), atol=1e-10)
    model = RIDGE(pairwise_kernel=kernel).fit(X, y, X_val=X, y_val=y)
    found = concordance_index(y, model.predict(X))
    assert model.validation_score_.max() == pytest.approx(found, abs=1e-12)


@cache
def minimum(loss, variance):
    """The smallest objective and its latent values by SciPy, through a square root of K."""
    K, y, strength = gram(KERNEL) + variance, 2.0 * LABELS - 1, 0.3
    values, vectors = np.linalg.eigh(K)
    L = vectors * np.sqrt(np.clip(values, 0, None))

    def function(w):
        value, slope = loss(L @ w, y)
        return value + strength / 2 * w @ w, L.T @ slope + strength * w

    options = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 60, "ftol": 0, "gtol": 1e-12}
    w = minimize(function, np.zeros(len(y)), jac=True, method="L-BFGS-B", options=options).x
    return function(w)[0], L @ w


def logistic(u, y):
    return np.sum(np.logaddexp(0, -y * u)), -y / (1 + np.exp(y * u))


def squared_hinge(u, y):
    slack = np.maximum(0, 1 - y * u)
    return 0.5 * np.sum(slack**2), -y * slack


@pytest.mark.parametrize("solver", ["newton", "kernel_cg"])
@pytest.mark.parametrize("variance", [0.0, 2.0])
@pytest.mark.parametrize("estimator, loss", [(KLR, logistic), (MARGIN, squared_hinge)])
def test_classifiers_find_the_minimum(estimator, loss, solver, variance):
    value, u = minimum(loss, variance)
    model = fitted(estimator, solver=solver, intercept_variance=variance)
    assert model.solution_.objective == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(model.decision_function(PAIRS), u, atol=1e-5)


@pytest.mark.parametrize("groups", [None, "left", "right"])
@pytest.mark.parametrize("solver", ["auto", "newton"])
def test_ranker_finds_the_minimum(groups, solver):
    of_pair = {
        None: np.zeros(N, dtype=int),
        "left": PAIRS.left_index,
        "right": PAIRS.right_index,
    }[groups]
    same = (of_pair[:, None] == of_pair[None, :]).astype(float)
    centring = np.diag(same.sum(axis=1)) - same  # the loss is ½ eᵀ C e with e = u − y
    K = gram(KERNEL)
    dual = np.linalg.solve(centring @ K + 0.3 * np.eye(N), centring @ VALUES)
    u, residual = K @ dual, K @ dual - VALUES
    differences = residual[:, None] - residual[None, :]
    value = 0.25 * np.sum(same * differences**2) + 0.15 * dual @ u
    model = fitted(RANK, groups=groups, solver=solver)
    assert model.solution_.objective == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(model.predict(PAIRS), u, atol=1e-4)


@pytest.mark.parametrize("groups", [None, "left"])
def test_an_intercept_is_of_no_use_to_the_ranker(groups):
    assert RANK().intercept_variance == 0
    plain = fitted(RANK, groups=groups)
    model = fitted(RANK, groups=groups, intercept_variance=2.0)
    np.testing.assert_allclose(model.intercept_, 0, atol=1e-6)
    np.testing.assert_allclose(model.predict(NEW), plain.predict(NEW), atol=1e-4)


@pytest.mark.parametrize("estimator", [RIDGE, KLR, MARGIN])
def test_there_is_an_intercept_by_default(estimator):
    assert estimator().intercept_variance >= 1.0
    assert fitted(estimator).intercept_[0] != 0


@pytest.mark.parametrize("setting", "ABCD")
def test_targets_far_from_zero_are_predicted(setting):
    """A constant that is added to all values costs no more than a little of the score."""
    pairs, y = make_interactions(n_left=40, n_right=30, density=0.5, noise=0.2, random_state=0)
    scores = [
        cross_validate(RIDGE(regularization=0.1), pairs, y + constant, cv=PairKFold(setting))
        for constant in (0.0, 6.0)
    ]
    means = [score["test_score"].mean() for score in scores]
    assert means[0] > 0.3
    assert means[1] > means[0] - 0.05


def test_ranker_scores_within_groups():
    model = fitted(RANK, groups="left")
    scores = model.predict(PAIRS)
    parts = [PAIRS.left_index == i for i in range(PAIRS.n_left)]
    expected = np.mean(
        [concordance_index(VALUES[p], scores[p]) for p in parts if np.ptp(VALUES[p]) > 0]
    )
    assert model.score(PAIRS, VALUES) == pytest.approx(expected)
    whole = fitted(RANK)
    expected = concordance_index(VALUES, whole.predict(PAIRS))
    assert whole.score(PAIRS, VALUES) == pytest.approx(expected)


def test_three_classes():
    y = np.array(["low", "mid", "top"])[np.digitize(VALUES, [-0.5, 0.5])]
    for estimator in CLASSIFIERS:
        model = fitted(estimator, y=y, regularization=0.05)
        assert model.classes_.tolist() == ["low", "mid", "top"]
        assert model.decision_function(NEW).shape == (35, 3)
        assert model.score(PAIRS, y) > 0.85
    np.testing.assert_allclose(fitted(KLR, y=y).predict_proba(NEW).sum(axis=1), 1, rtol=1e-12)


def test_several_outputs_of_ridge():
    Y = np.column_stack([VALUES, VALUES**2])
    model = fitted(RIDGE, y=Y)
    assert model.predict(NEW).shape == (35, 2)
    for k in (0, 1):
        alone = fitted(RIDGE, y=Y[:, k])
        np.testing.assert_allclose(model.predict(NEW)[:, k], alone.predict(NEW), atol=1e-6)


# --- wide tables ----------------------------------------------------------------------------


@every_estimator
def test_a_wide_table_is_pairs(estimator):
    model = fitted(estimator)
    wide = fitted(estimator, X=PAIRS.to_wide())
    np.testing.assert_allclose(latent(wide, NEW.to_wide()), latent(model, NEW), atol=1e-6)
    np.testing.assert_allclose(latent(wide, NEW), latent(model, NEW), atol=1e-6)
    np.testing.assert_allclose(latent(model, NEW.to_wide()), latent(model, NEW), atol=1e-10)
    assert len(wide.X_fit_.left) == 12


@pytest.mark.parametrize(
    "single, estimator",
    [(KernelRidge, RIDGE), (KernelLogisticRegression, KLR), (KernelSVC, MARGIN)],
)
def test_gaussian_is_rbf_on_the_wide_table(single, estimator):
    """Also with the length scale from the data."""
    X, y = PAIRS.to_wide(), target(estimator)
    options = {"tol": 1e-15, "regularization": 0.3, "intercept_variance": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        expected = single(RBF("scale"), **options).fit(X, y)
    model = fitted(estimator, X, y, pairwise_kernel="gaussian", intercept_variance=1.0)
    assert model.kernel_.length_scale == pytest.approx(expected.kernel_.length_scale, rel=1e-12)
    found, wanted = (
        latent(model, NEW.to_wide()),
        (expected.predict if estimator is RIDGE else expected.decision_function)(NEW.to_wide()),
    )
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_columns_in_any_order_and_form():
    X = PAIRS.to_wide()[:, [2, 0, 3, 1]]  # right, left, right, left
    expected = fitted(RIDGE).predict(NEW)
    new = NEW.to_wide()[:, [2, 0, 3, 1]]
    mask = np.array([False, True, False, True])
    for columns in (
        {"left_columns": [1, 3]},
        {"right_columns": [0, 2]},
        {"left_columns": mask, "right_columns": ~mask},
        {"left_columns": slice(1, None, 2)},
        {"left_columns": np.array([1, 3]), "right_columns": slice(0, None, 2)},
        {"left_columns": [-3, -1]},
    ):
        model = fitted(RIDGE, X, **columns)
        np.testing.assert_allclose(model.predict(new), expected, atol=1e-6, err_msg=str(columns))


def test_data_frames_with_names_as_selectors():
    pd = pytest.importorskip("pandas")
    names = ["weight", "charge", "length", "pocket"]
    frame = pd.DataFrame(PAIRS.to_wide(), columns=names)[["length", "charge", "pocket", "weight"]]
    model = fitted(RIDGE, frame, left_columns=["weight", "charge"])
    assert model.feature_names_in_.tolist() == ["length", "charge", "pocket", "weight"]
    new = pd.DataFrame(NEW.to_wide(), columns=names)[["length", "charge", "pocket", "weight"]]
    np.testing.assert_allclose(model.predict(new), fitted(RIDGE).predict(NEW), atol=1e-6)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(new[["weight", "charge", "length", "pocket"]])


def test_sparse_input():
    kept = np.array([True, False])  # no two objects are to look alike
    thin = sp.csr_array(np.where(kept | (PAIRS.left > -0.5), PAIRS.left, 0.0))
    right = np.where(kept | (PAIRS.right > -0.5), PAIRS.right, 0.0)
    dense = Pairs(thin.toarray(), right, PAIRS.left_index, PAIRS.right_index)
    expected = fitted(RIDGE, dense).predict(NEW)
    for left, other in ((thin, right), (thin, sp.csr_array(right))):
        sparse = Pairs(left, other, PAIRS.left_index, PAIRS.right_index)
        model = fitted(RIDGE, sparse)
        np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-6)
        mixed = Pairs(sp.csr_array(NEW.left), NEW.right, NEW.left_index, NEW.right_index)
        np.testing.assert_allclose(model.predict(mixed), expected, atol=1e-6)
        np.testing.assert_allclose(fitted(RIDGE, dense).predict(mixed), expected, atol=1e-6)
    wide = fitted(RIDGE, dense.to_wide()).predict(NEW.to_wide())
    model = fitted(RIDGE, sp.csr_matrix(dense.to_wide()))
    np.testing.assert_allclose(model.predict(sp.csr_matrix(NEW.to_wide())), wide, atol=1e-6)
    np.testing.assert_allclose(model.predict(NEW.to_wide()), wide, atol=1e-6)


@every_estimator
@pytest.mark.parametrize("form", ["pairs", "wide"])
def test_single_precision_stays_single(estimator, form):
    single = Pairs(
        PAIRS.left.astype(np.float32),
        PAIRS.right.astype(np.float32),
        PAIRS.left_index,
        PAIRS.right_index,
    )
    X = single if form == "pairs" else single.to_wide()
    model = fitted(estimator, X, tol=1e-8)
    assert model.dual_coef_.dtype == model.intercept_.dtype == np.float64  # as certified
    found = latent(model, X)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, latent(fitted(estimator), PAIRS), atol=2e-3)
    if estimator is KLR:
        assert model.predict_proba(X).dtype == np.float32


# --- closed form ----------------------------------------------------------------------------

COMPLETE = Pairs.complete(PAIRS.left[:7], PAIRS.right[:6])
COMPLETE_Y = np.random.default_rng(2).normal(size=42)


@pytest.mark.parametrize("variance", [0.0, 1.0, 30.0])
def test_complete_pairs_have_a_closed_form(variance):
    K = pair_gram(KERNEL, COMPLETE) + variance
    dual = np.linalg.solve(K + 0.3 * np.eye(42), COMPLETE_Y)
    expected, options = K @ dual, {"intercept_variance": variance}
    for solver in ("auto", "closed_form", "minres", "kernel_cg", "newton"):
        model = fitted(RIDGE, COMPLETE, COMPLETE_Y, solver=solver, **options)
        np.testing.assert_allclose(model.predict(COMPLETE), expected, atol=1e-6, err_msg=solver)
        np.testing.assert_allclose(model.intercept_, variance * dual.sum(), atol=1e-6)
    auto = RIDGE(pairwise_kernel=KERNEL, **options).fit(COMPLETE, COMPLETE_Y)
    assert auto.n_iter_ == 1
    assert auto.solution_.status == "converged"
    assert auto.solution_.relative_gap < 1e-10
    order = np.random.default_rng(0).permutation(42)
    shuffled = fitted(RIDGE, COMPLETE[order], COMPLETE_Y[order], solver="closed_form", **options)
    np.testing.assert_allclose(shuffled.predict(COMPLETE), expected, atol=1e-9)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("setting", ["A", "B", "C", "D"])
@pytest.mark.parametrize("solver", ["auto", "minres"])
@pytest.mark.parametrize("variance", [0.0, 1.0])
def test_held_out_predictions_are_those_of_separate_fits(setting, shuffled, solver, variance):
    X, y = COMPLETE, COMPLETE_Y
    if shuffled:
        order = np.random.default_rng(0).permutation(42)
        X, y = X[order], y[order]
    y = y + 6
    model = fitted(RIDGE, X, y, solver=solver, intercept_variance=variance)
    found = model.held_out_predictions(setting)
    K = pair_gram(KERNEL, X) + variance
    for h in range(len(X)):
        left, right = X.left_index == X.left_index[h], X.right_index == X.right_index[h]
        out = {"A": left & right, "B": left, "C": right, "D": left | right}[setting]
        kept = np.flatnonzero(~out)
        a = np.linalg.solve(K[np.ix_(kept, kept)] + 0.3 * np.eye(kept.size), y[kept])
        assert found[h] == pytest.approx(K[h, kept] @ a, abs=1e-6)


def test_held_out_predictions_of_folds():
    folds = np.array([0, 0, 1, 1, 2, 2, 2])
    found = fitted(RIDGE, COMPLETE, COMPLETE_Y).held_out_predictions("B", left_folds=folds)
    for fold in range(3):
        out = folds[COMPLETE.left_index] == fold
        model = fitted(RIDGE, COMPLETE[~out], COMPLETE_Y[~out])
        np.testing.assert_allclose(found[out], model.predict(COMPLETE[out]), atol=1e-6)


@pytest.mark.parametrize("name", ["incomplete", "weighted", "several", "linear"])
def test_held_out_predictions_say_when_they_cannot(name):
    weights = np.ones(42) if name == "weighted" else None
    rows = slice(1, None) if name == "incomplete" else slice(None)
    y = np.column_stack([COMPLETE_Y] * 2) if name == "several" else COMPLETE_Y
    kernel = pk.Linear(RBF(1.0), RBF(1.0)) if name == "linear" else KERNEL
    model = RIDGE(pairwise_kernel=kernel)
    model.fit(COMPLETE[rows], y[rows], weights)
    with pytest.raises(ValueError, match="held_out_predictions needs every pair"):
        model.held_out_predictions("A")


# --- weights, paths, forms ------------------------------------------------------------------


@every_estimator
def test_weights_are_repeated_pairs(estimator):
    weights = np.random.default_rng(0).integers(0, 3, size=N)
    again = np.repeat(np.arange(N), weights)
    y = target(estimator)
    for kernel in (KERNEL, "gaussian", "kronecker"):
        weighted = fitted(estimator, sample_weight=weights, pairwise_kernel=kernel)
        repeated = fitted(estimator, PAIRS[again], y[again], pairwise_kernel=kernel)
        np.testing.assert_allclose(
            latent(weighted, NEW), latent(repeated, NEW), atol=1e-5, err_msg=str(kernel)
        )


@classifiers
def test_class_weights_are_sample_weights(estimator):
    by_class = fitted(estimator, class_weight={0: 1.0, 1: 3.0})
    by_sample = fitted(estimator, sample_weight=np.where(LABELS == 1, 3.0, 1.0))
    np.testing.assert_allclose(latent(by_class, NEW), latent(by_sample, NEW), atol=1e-6)
    balanced = fitted(estimator, class_weight="balanced")
    share = N / (2 * np.bincount(LABELS))
    by_sample = fitted(estimator, sample_weight=share[LABELS])
    np.testing.assert_allclose(latent(balanced, NEW), latent(by_sample, NEW), atol=1e-6)


@every_estimator
@pytest.mark.parametrize("weighted", [False, True])
def test_a_path_is_separate_fits(estimator, weighted):
    weights = np.random.default_rng(0).uniform(0.5, 2, size=N) if weighted else None
    strengths = [0.1, 10.0, 1.0]
    model = estimator(pairwise_kernel=KERNEL, tol=1e-12, max_iter=2000, regularization=1.0)
    path = model.fit_path(PAIRS, target(estimator), strengths, weights)
    assert not hasattr(model, "dual_coef_")
    assert [one.regularization for one in path] == strengths
    for one, strength in zip(path, strengths, strict=True):
        alone = clone(model).set_params(regularization=strength)
        alone.fit(PAIRS, target(estimator), weights)
        np.testing.assert_allclose(latent(one, NEW), latent(alone, NEW), atol=1e-4)
        assert one.get_params() == alone.get_params()
        assert type(one) is estimator
        np.testing.assert_allclose(one.intercept_, alone.intercept_, atol=1e-4)
        assert one.dual_coef_.shape == (N, 1)
        np.testing.assert_array_equal(one.solution_.coefficients, one.dual_coef_)


def test_a_path_of_complete_pairs_and_of_wide_tables():
    strengths = [0.1, 10.0]
    for X in (COMPLETE, COMPLETE.to_wide()):
        path = RIDGE(pairwise_kernel=KERNEL).fit_path(X, COMPLETE_Y, strengths)
        for one, strength in zip(path, strengths, strict=True):
            alone = RIDGE(pairwise_kernel=KERNEL, regularization=strength).fit(X, COMPLETE_Y)
            np.testing.assert_allclose(one.predict(X), alone.predict(X), atol=1e-3)
            again = pickle.loads(pickle.dumps(one))
            np.testing.assert_array_equal(again.predict(X), one.predict(X))


@pytest.mark.parametrize("strengths", [[], 3.0, [1.0, -1.0], [[1.0]], [np.nan]])
@every_estimator
def test_bad_paths(estimator, strengths):
    with pytest.raises(ValueError, match="regularizations"):
        estimator(regularization=1.0).fit_path(PAIRS, target(estimator), strengths)


@every_estimator
def test_primal_is_dual(estimator):
    kernel = pk.Kronecker(Linear(), 2.0 * Linear())
    models = [
        fitted(estimator, pairwise_kernel=kernel, operator=form) for form in ("dual", "primal")
    ]
    assert [model.operator_.name for model in models] == ["dual", "primal"]
    np.testing.assert_allclose(latent(models[0], NEW), latent(models[1], NEW), atol=1e-6)


@every_estimator
def test_little_memory_is_streamed(estimator):
    plenty = fitted(estimator)
    with sklearn.config_context(working_memory=1e-4):
        little = fitted(estimator)
        found = latent(little, NEW)
    assert little.operator_.name == "streamed"
    np.testing.assert_allclose(found, latent(plenty, NEW), atol=1e-6)


@every_estimator
def test_precomputed_similarities(estimator):
    """Objects that are in no training pair keep their column."""
    kernels = KERNEL.left, KERNEL.right
    K, T = kernels[0](PAIRS.left), kernels[1](PAIRS.right)
    kept = (PAIRS.left_index != 3) & (PAIRS.right_index != 2)
    index = PAIRS.left_index[kept], PAIRS.right_index[kept]
    y = target(estimator)[kept]
    options = {"pairwise_kernel": "kronecker", "left_kernel": "precomputed"}
    model = fitted(estimator, Pairs(K, T, *index), y, right_kernel="precomputed", **options)
    plain = fitted(estimator, PAIRS[kept], y)
    new = Pairs(
        kernels[0](NEW.left, PAIRS.left),
        kernels[1](NEW.right, PAIRS.right),
        NEW.left_index,
        NEW.right_index,
    )
    np.testing.assert_allclose(latent(model, new), latent(plain, NEW), atol=1e-6)
    everything = Pairs(K, T, PAIRS.left_index, PAIRS.right_index)
    np.testing.assert_allclose(latent(model, everything), latent(plain, PAIRS), atol=1e-6)


@every_estimator
def test_order_of_pairs_does_not_matter(estimator):
    order = np.random.default_rng(0).permutation(N)
    shuffled = fitted(estimator, PAIRS[order], target(estimator)[order])
    np.testing.assert_allclose(latent(shuffled, NEW), latent(fitted(estimator), NEW), atol=1e-6)


@every_estimator
def test_a_batch_is_predicted_pair_by_pair(estimator):
    model = fitted(estimator)
    whole = latent(model, NEW)
    alone = [latent(model, NEW[k])[0] for k in range(len(NEW))]
    np.testing.assert_allclose(alone, whole, rtol=1e-9, atol=1e-12)
    assert latent(model, NEW[:0]).shape == (0,)


@every_estimator
def test_warm_start(estimator):
    solver = "kernel_cg"
    model = estimator(
        pairwise_kernel=KERNEL, solver=solver, warm_start=True, tol=1e-10, regularization=1.0
    )
    model.fit(PAIRS, target(estimator))
    first = latent(model, NEW)
    cold = model.solution_.n_products
    model.fit(PAIRS, target(estimator))
    assert model.solution_.n_products < cold
    np.testing.assert_allclose(latent(model, NEW), first, atol=1e-4)
    model.fit(PAIRS[:40], target(estimator)[:40])  # another number of pairs: from scratch
    assert model.dual_coef_.shape == (40, 1)


# --- early stopping -------------------------------------------------------------------------

HELD_OUT = np.arange(N) % 3 == 0


def validation_score(estimator, model, X, y):
    if estimator in CLASSIFIERS:
        return roc_auc_score(y, model.decision_function(X))
    return concordance_index(y, model.predict(X))


@every_estimator
@pytest.mark.parametrize("form", ["pairs", "wide", "sparse"])
def test_early_stopping_keeps_the_best(estimator, form):
    y = target(estimator)
    make = {
        "pairs": lambda X: X,
        "wide": Pairs.to_wide,
        "sparse": lambda X: sp.csr_array(X.to_wide()),
    }
    make = make[form]
    model = estimator(pairwise_kernel=KERNEL, regularization=1e-3, patience=3)
    X_val = make(PAIRS[HELD_OUT])
    model.fit(make(PAIRS[~HELD_OUT]), y[~HELD_OUT], X_val=X_val, y_val=y[HELD_OUT])
    scores = model.validation_score_
    assert model.best_iteration_ == np.argmax(scores) + 1
    found = validation_score(estimator, model, X_val, y[HELD_OUT])
    assert scores.max() == pytest.approx(found, abs=1e-12)
    assert len(scores) <= model.best_iteration_ + 3
    model.fit(make(PAIRS), y)
    assert not hasattr(model, "validation_score_")


@every_estimator
def test_early_stopping_with_an_intercept_and_single_precision(estimator):
    single = Pairs(
        PAIRS.left.astype(np.float32),
        PAIRS.right.astype(np.float32),
        PAIRS.left_index,
        PAIRS.right_index,
    )
    y = target(estimator)
    model = estimator(regularization=1e-2, intercept_variance=1.0, patience=2)
    X_val, y_val = single[HELD_OUT], y[HELD_OUT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        model.fit(single[~HELD_OUT], y[~HELD_OUT], X_val=X_val, y_val=y_val)
    found = validation_score(estimator, model, X_val, y_val)
    assert model.validation_score_.max() == pytest.approx(found, abs=1e-3)


@pytest.mark.parametrize("kernel", [KERNEL, "linear", "cartesian", "poly2d"], ids=str)
def test_validation_pairs_may_be_stored_otherwise(kernel):
    def sparse(X):
        tables = sp.csr_array(X.left), sp.csr_array(X.right)
        return Pairs(*tables, X.left_index, X.right_index)

    train, val = PAIRS[~HELD_OUT], PAIRS[HELD_OUT]
    scores = [
        RIDGE(pairwise_kernel=kernel, regularization=0.01)
        .fit(X, VALUES[~HELD_OUT], X_val=X_val, y_val=VALUES[HELD_OUT])
        .validation_score_[:5]
        for X, X_val in (
            (train, val),
            (train, sparse(val)),
            (sparse(train), val),
            (sparse(train), val.to_wide()),
            (sp.csr_array(train.to_wide()), val),
        )
    ]
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=1e-9)


@every_estimator
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_early_stopping_starts_from_zero(estimator):
    """Neither a previous fit nor learned parameters leave nothing to stop."""
    y = target(estimator)
    data = PAIRS[~HELD_OUT], y[~HELD_OUT]
    options = {"X_val": PAIRS[HELD_OUT], "y_val": y[HELD_OUT]}
    first = estimator(pairwise_kernel=KERNEL, regularization=1.0).fit(*data, **options)
    warm = (
        estimator(pairwise_kernel=KERNEL, warm_start=True, regularization=1.0)
        .fit(*data)
        .fit(*data, **options)
    )
    np.testing.assert_allclose(warm.validation_score_, first.validation_score_)
    search = CrossValidationSearch(tol=0.1, max_evaluations=3)
    learned = estimator(RBF(2.0), RBF(2.0), optimize=search, cv=3).fit(*data, **options)
    score = validation_score(estimator, learned, *options.values())
    assert learned.validation_score_.max() == pytest.approx(score, abs=1e-9)


def test_early_stopping_of_three_classes_is_by_accuracy():
    y = np.digitize(VALUES, [-0.5, 0.5])
    for estimator in CLASSIFIERS:
        model = estimator(regularization=1e-3)
        model.fit(PAIRS[~HELD_OUT], y[~HELD_OUT], X_val=PAIRS[HELD_OUT], y_val=y[HELD_OUT])
        score = model.score(PAIRS[HELD_OUT], y[HELD_OUT])
        assert model.validation_score_.max() == pytest.approx(score)


def test_early_stopping_with_precomputed_similarities():
    K, T = KERNEL.left(PAIRS.left), KERNEL.right(PAIRS.right)
    X = Pairs(K, T, PAIRS.left_index, PAIRS.right_index)
    model = RIDGE("precomputed", "precomputed", regularization=1e-3)
    model.fit(X[~HELD_OUT], VALUES[~HELD_OUT], X_val=X[HELD_OUT], y_val=VALUES[HELD_OUT])
    plain = RIDGE(pairwise_kernel=KERNEL, regularization=1e-3)
    plain.fit(PAIRS[~HELD_OUT], VALUES[~HELD_OUT], X_val=PAIRS[HELD_OUT], y_val=VALUES[HELD_OUT])
    np.testing.assert_allclose(model.validation_score_, plain.validation_score_, atol=1e-9)


# --- callbacks ------------------------------------------------------------------------------


class Watch:
    """A callback that keeps the models it sees; it may stop the fit or break it."""

    def __init__(self, stop_after=None, error=None):
        self.models = []
        self.stop_after = stop_after
        self.error = error

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if context.task_name != "iteration":
            return False
        self.models.append(fitted_estimator)
        if len(self.models) == self.stop_after and self.error is not None:
            raise self.error
        return len(self.models) == self.stop_after


@every_estimator
def test_progress_bar(estimator, capsys):
    model = estimator(pairwise_kernel=KERNEL, regularization=1.0).set_callbacks(ProgressBar())
    model.fit(PAIRS, target(estimator))
    assert estimator.__name__ in capsys.readouterr().out


@every_estimator
def test_a_callback_sees_models_and_stops(estimator):
    watch = Watch()
    model = estimator(pairwise_kernel=KERNEL, regularization=1e-3).set_callbacks(watch)
    model.fit(PAIRS, target(estimator))
    assert len(watch.models) == model.n_iter_ > 2
    np.testing.assert_array_equal(latent(watch.models[-1], NEW), latent(model, NEW))
    assert np.abs(latent(watch.models[0], NEW) - latent(model, NEW)).max() > 1e-3
    stopped = clone(model).set_callbacks(Watch(stop_after=2)).fit(PAIRS, target(estimator))
    assert (stopped.n_iter_, stopped.solution_.status) == (2, "stopped")
    np.testing.assert_allclose(latent(stopped, NEW), latent(watch.models[1], NEW), atol=1e-9)


@every_estimator
@pytest.mark.parametrize("before", [False, True], ids=["first fit", "second fit"])
def test_an_interruption_leaves_the_estimator_as_it_was(estimator, before):
    model = estimator(pairwise_kernel=KERNEL, regularization=1e-3)
    if before:
        model.fit(PAIRS[:50], target(estimator)[:50])
        predicted = latent(model, NEW)
    names = set(vars(model))
    model.set_callbacks(Watch(stop_after=2, error=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        model.fit(PAIRS.to_wide(), target(estimator))
    model.set_callbacks()
    assert set(vars(model)) - {"_skl_callbacks"} == names - {"_skl_callbacks"}
    if before:
        np.testing.assert_array_equal(latent(model, NEW), predicted)
    else:
        assert not hasattr(model, "dual_coef_")


# --- persistence, copies, scikit-learn -------------------------------------------------------

PERSISTED = [KERNEL, "gaussian", pk.Cartesian(RBF(1.0), RBF(1.0))]


@pytest.mark.parametrize("kernel", PERSISTED, ids=["kronecker", "gaussian", "cartesian"])
@every_estimator
def test_pickle_copy_and_skops(estimator, kernel):
    skops = pytest.importorskip("skops.io")
    ids = [f"d{k}" for k in range(PAIRS.n_left)]
    X = Pairs(PAIRS.left, PAIRS.right, PAIRS.left_index, PAIRS.right_index, left_ids=ids)
    model = fitted(estimator, X, pairwise_kernel=kernel)
    stored = skops.dumps(model)
    types = skops.get_untrusted_types(data=stored)
    assert all(name.startswith("gramian.") for name in types)
    for other in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        skops.loads(stored, trusted=types),
    ):
        np.testing.assert_array_equal(latent(other, X), latent(model, X))
        np.testing.assert_array_equal(other.predict(X[:9]), model.predict(X[:9]))
        assert other.kernel_ == model.kernel_
        assert other.operator_ == model.operator_
        assert dir(other) == dir(model)
        assert other.X_fit_.left_ids.tolist() == ids


@every_estimator
def test_parameters_reach_into_kernels(estimator):
    model = estimator(RBF(1.0), "linear", regularization=1.0)
    model.set_params(left_kernel__length_scale=3.0, regularization=2.0)
    assert model.left_kernel == RBF(3.0)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert copied.left_kernel is not model.left_kernel
    assert estimator.__name__ in repr(model)
    assert estimator.__name__ in model._repr_html_()
    model = estimator(pairwise_kernel=pk.Kronecker(RBF(1.0), RBF(2.0)), regularization=1.0)
    assert model.get_params()["pairwise_kernel__right__length_scale"] == 2.0


@pytest.mark.parametrize("setting", ["A", "B", "C", "D"])
def test_grid_search_in_every_setting(setting):
    pairs, y = make_interactions(30, 20, 2, 0.5, binary=True)
    grid = {"pairwise_kernel__left__length_scale": [1e-3, 1.5], "regularization": [0.1]}
    search = GridSearchCV(
        MARGIN(pairwise_kernel=pk.Kronecker(RBF(1.0), RBF(1.2))),
        grid,
        cv=PairKFold(setting=setting),
        scoring="roc_auc",
        error_score="raise",
    )
    search.fit(pairs, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["pairwise_kernel__left__length_scale"] == 1.5
    assert search.predict(NEW).shape == (35,)


@every_estimator
def test_cross_validate(estimator):
    model = estimator(pairwise_kernel=KERNEL, regularization=0.1)
    result = cross_validate(model, PAIRS, target(estimator), cv=PairKFold("A"), error_score="raise")
    assert result["test_score"].mean() > 0.3
    wide = cross_validate(
        model, PAIRS.to_wide(), target(estimator), cv=PairKFold("A"), error_score="raise"
    )
    assert np.isfinite(wide["test_score"]).all()
    folds = list(PairKFold("B").split(PAIRS))
    found = cross_val_predict(model, PAIRS, target(estimator), cv=folds)
    train, test = folds[0]
    alone = clone(model).fit(PAIRS[train], target(estimator)[train])
    np.testing.assert_array_equal(found[test], alone.predict(PAIRS[test]))


def test_fits_do_not_change_their_input():
    left, right = PAIRS.left.copy(), PAIRS.right.copy()
    X = Pairs(left, right, PAIRS.left_index, PAIRS.right_index)
    for array in (X.left, X.right, X.left_index, X.right_index):
        array.setflags(write=False)
    for estimator in ESTIMATORS:
        fitted(estimator, X).predict(X)
    np.testing.assert_array_equal(left, PAIRS.left)


# --- learned parameters ---------------------------------------------------------------------

QUICK = CrossValidationSearch(tol=0.01, max_evaluations=10)


def cv_loss(model):
    return model.cv_log_loss_ if isinstance(model, KLR) else model.cv_loss_


@pytest.mark.parametrize("setting", ["A", "D"])
@every_estimator
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learning_lowers_the_loss(estimator, setting):
    start = pk.Kronecker(RBF(8.0, (0.05, 50.0)), RBF(6.0, (0.05, 50.0)))
    folds = PairKFold(setting, random_state=1)
    model = estimator(pairwise_kernel=start, optimize=QUICK, cv=folds, regularization=1.0)
    model.fit(PAIRS, target(estimator))
    path = model.optimization_path_
    assert cv_loss(model) < 0.99 * path.loss[0]
    variance = float(model.variances_[0])
    again = estimator(
        pairwise_kernel=model._prior.kernels[0],
        regularization=1.0 / variance,
        intercept_variance=model.intercept_variance / variance,
        tol=1e-10,
    ).fit(PAIRS, target(estimator))
    np.testing.assert_allclose(latent(again, NEW), latent(model, NEW), atol=1e-2)


@pytest.mark.parametrize("setting", ["A", "D"])
@pytest.mark.parametrize(
    "name, form",
    [
        ("logistic", "dual"),
        ("hinge", "dual"),
        ("squared", "dual"),
        ("grouped", "dual"),
        ("logistic", "primal"),
        ("ranking", "primal"),
        ("squared", "streamed"),
    ],
)
def test_the_gradient_of_the_criterion(setting, name, form):
    kernel = pk.Kronecker(2.0 * Linear(), 1.5 * Linear()) if form == "primal" else KERNEL
    signs = 2.0 * LABELS - 1
    loss, y = {
        "logistic": (Logistic(), LABELS.astype(float)),
        "hinge": (SquaredHinge(), signs),
        "squared": (Squared(), VALUES),
        "ranking": (SquaredRanking(), VALUES),
        "grouped": (SquaredRanking(PAIRS.left_index), VALUES),
    }[name]
    masks = fold_masks(PairKFold(setting, random_state=1), PAIRS, LABELS)
    with sklearn.config_context(working_memory=1e-5 if form == "streamed" else 1000):
        operator = PairGram(kernel, PAIRS, form="primal" if form == "primal" else "auto")
        assert operator.form == form
        problem = Problem(operator, loss, y[:, None], 0.5)
        criterion = CrossValidationCriterion(problem, *masks)
        theta, step = operator.theta, 1e-4
        gradient = criterion(theta, tol=1e-15)[1]
        differences = [
            (criterion(theta + step * e, tol=1e-15)[0] - criterion(theta - step * e, tol=1e-15)[0])
            / (2 * step)
            for e in np.eye(theta.size)
        ]
    size = np.abs(gradient).max()
    assert size > 1e-6
    np.testing.assert_allclose(gradient, differences, atol=1e-4 * size)


@every_estimator
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learning_on_some_pairs_first(estimator):
    search = CrossValidationSearch(tol=0.1, max_evaluations=6, coarse=40)
    model = estimator(RBF(3.0), RBF(3.0), optimize=search, cv=3).fit(PAIRS, target(estimator))
    assert set(model.optimization_path_.n_samples) == {40, N}


def test_learning_with_groups_on_some_pairs_first():
    search = CrossValidationSearch(tol=0.1, max_evaluations=6, coarse=40)
    model = RANK(RBF(3.0), RBF(3.0), groups="left", optimize=search, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        model.fit(PAIRS, VALUES)
    assert set(model.optimization_path_.n_samples) == {40, N}


# --- from an SVC ----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [SVC, NuSVC])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_svc_on_concatenated_features(make, sparse):
    X, new = PAIRS.to_wide(), NEW.to_wide()
    X, new = (sp.csr_matrix(X), sp.csr_matrix(new)) if sparse else (X, new)
    names = np.array(["off", "on"])[LABELS]
    options = {"C": 10.0} if make is SVC else {"nu": 0.2}
    svc = make(gamma="scale", **options).fit(X, names)
    model = pairwise_from_svc(svc)
    expected = svc.decision_function(new)
    np.testing.assert_allclose(model.decision_function(new), expected, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(NEW), expected, atol=1e-9)
    np.testing.assert_array_equal(model.predict(new), svc.predict(new))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))


def test_an_svc_with_columns_in_another_order():
    order = [2, 0, 3, 1]
    X, new = PAIRS.to_wide()[:, order], NEW.to_wide()[:, order]
    svc = SVC(gamma=0.7).fit(X, LABELS)
    model = pairwise_from_svc(svc, left_columns=[1, 3])
    np.testing.assert_allclose(model.decision_function(new), svc.decision_function(new), atol=1e-9)


def test_svcs_that_are_refused():
    X = PAIRS.to_wide()
    with pytest.raises(sklearn.exceptions.NotFittedError):
        pairwise_from_svc(SVC())
    for svc in (
        SVC(kernel="linear").fit(X, LABELS),
        SVC().fit(X, np.digitize(VALUES, [-0.5, 0.5])),
    ):
        with pytest.raises(ValueError, match="svc must be a fitted SVC or NuSVC with kernel='rbf'"):
            pairwise_from_svc(svc)
    with pytest.raises(ValueError, match="svc must be"):
        pairwise_from_svc(KernelSVC(regularization=1.0).fit(X, LABELS))


# --- what is the same must predict the same --------------------------------------------------


def test_predictions_do_not_depend_on_what_else_is_predicted(rng):
    """Neither noise of the objects nor twins make a prediction depend on the table the pair is given in."""
    left, right = rng.normal(size=(6, 2)), rng.normal(size=(5, 2))
    left[1] = left[0]
    pairs = Pairs(left, right, rng.integers(5, size=20), rng.integers(5, size=20))
    y = rng.normal(size=20)
    noisy = pk.Kronecker(RBF(1.0) + White(0.5), RBF(1.0))
    for kernel in (noisy, pk.Cartesian(RBF(1.0), RBF(1.0))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # some pairs repeat
            model = PairwiseRidge(pairwise_kernel=kernel, tol=1e-12, regularization=1.0).fit(
                pairs, y
            )
        copied = Pairs(left.copy(), right.copy(), pairs.left_index, pairs.right_index)
        np.testing.assert_allclose(model.predict(copied), model.predict(pairs), atol=1e-10)
        np.testing.assert_allclose(model.predict(pairs[3:5]), model.predict(pairs)[3:5], atol=1e-10)


def test_a_learned_kernel_can_be_used_again():
    pairs, y = make_interactions(n_left=15, n_right=10, density=0.6, random_state=0)
    learned = PairwiseRidge(optimize="cv", cv=PairKFold("A"), tol=1e-12).fit(pairs, y)
    kernel = learned.kernel_
    assert kernel(pairs).shape == (len(pairs), len(pairs))
    again = PairwiseRidge(pairwise_kernel=kernel, tol=1e-12, regularization=1.0).fit(pairs, y)
    np.testing.assert_allclose(again.predict(pairs), learned.predict(pairs), atol=1e-6)


def test_models_of_a_path_have_certificates_of_their_own():
    pairs, y = make_interactions(n_left=15, n_right=10, density=0.6, random_state=0)
    strengths = [0.1, 1.0]
    path = PairwiseRidge(tol=1e-10, regularization=1.0).fit_path(pairs, y, strengths)
    for model, strength in zip(path, strengths, strict=True):
        alone = PairwiseRidge(solver="minres", regularization=strength, tol=1e-10).fit(pairs, y)
        assert model.solution_.objective == pytest.approx(alone.solution_.objective, rel=1e-8)
        assert model.solution_.relative_gap <= 1e-10


def test_a_ranking_is_validated_within_its_groups():
    pairs, y = make_interactions(n_left=15, n_right=10, density=0.6, random_state=0)
    train, held_out = np.arange(60), np.arange(60, len(pairs))
    model = PairwiseRanker(groups="left", regularization=1e-3)
    model.fit(pairs[train], y[train], X_val=pairs[held_out], y_val=y[held_out])
    best = model.validation_score_.max()
    assert model.score(pairs[held_out], y[held_out]) == pytest.approx(best, abs=1e-12)
