"""Hostile parameters and data end in a result that can be trusted or in an error that names them."""

import importlib
import multiprocessing
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gramian import (
    AttributeClassifier,
    HierarchicalSVC,
    KernelLogisticRegression,
    KernelRidge,
    KernelSVC,
    M3LClassifier,
    Pairs,
    PairwiseRanker,
    PairwiseRidge,
    PairwiseSVC,
)
from gramian.estimators.margin.calibration import fit_sigmoids, sigmoids
from gramian.kernels import RBF, Matern, RationalQuadratic
from gramian.solvers import newton

# --- matrices that rounding has made singular -------------------------------------------------------


def twice(rng):
    X = np.repeat(rng.normal(size=(50, 2)), 2, axis=0)
    return X, rng.normal(size=100)


def close_points(rng):
    X = np.linspace(0, 1, 200, dtype=np.float32)[:, None]
    return X, np.sin(5 * X[:, 0])


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (close_points, {"regularization": 1e-8}),
        (twice, {"kernel": RBF(1.0), "regularization": 1e-16}),
        (twice, {"kernel": RBF(1.0), "regularization": 1e-3, "intercept_variance": 1e20}),
    ],
)
def test_a_singular_matrix_is_said_by_the_certificate(data, options, rng):
    """There is no Cholesky factor. Steps are damped, and the fit says that it is not at the optimum."""
    with pytest.warns(ConvergenceWarning, match="at the limit of rounding errors"):
        model = KernelRidge(**options, solver="exact").fit(*data(rng))
    assert np.isfinite(model.dual_coef_).all()
    assert model.solution_.status == "stalled"


def test_damped_steps_reach_the_optimum_where_rounding_allows(rng):
    """The exact solver starts without a factor, and still solves a problem that is hardly singular."""
    X, y = twice(rng)
    model = KernelRidge(RBF(1.0), regularization=1e-14, intercept_variance=0, tol=1e-3)
    with pytest.warns(ConvergenceWarning):
        stalled = model.fit(X, y).solution_
    pairs = y.reshape(-1, 2)
    # the mean of what two equal examples have is the best that any function can do
    best = 0.5 * np.sum((pairs - pairs.mean(axis=1, keepdims=True)) ** 2)
    assert best <= stalled.objective < 1.2 * best


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("data", [twice, close_points])
def test_the_closed_form_criterion_of_a_singular_matrix(data, rng):
    X, y = data(rng)
    model = KernelRidge(optimize="cv", intercept_variance=1e15).fit(X, y)
    assert np.isfinite(model.cv_loss_)
    assert np.isfinite(model.predict(X)).all()


# --- parameters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e200, 1e-200])
@pytest.mark.parametrize("kernel", [RBF, Matern])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_length_scales_beyond_all_distances(kernel, scale, dtype, rng):
    """Everything is equally near, or equally far: their squares are not representable, the limits are."""
    X = rng.normal(size=(30, 2)).astype(dtype)
    model = KernelLogisticRegression(kernel(scale), optimize="cv", cv=2).fit(X, np.arange(30) % 2)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("value", [1e300, 1e-300])
@pytest.mark.parametrize("kernel", [lambda v: RBF([v, 1.0]), lambda v: RationalQuadratic(1.0, v)])
@pytest.mark.parametrize("optimize", [None, "cv"])
def test_extreme_parameters_of_kernels(kernel, value, optimize, rng):
    X = rng.normal(size=(20, 2))
    model = KernelRidge(kernel(value), optimize=optimize, regularization=1.0, cv=2)
    assert np.isfinite(model.fit(X, X[:, 0]).predict(X)).all()


@pytest.mark.parametrize("value", [10**400, -(10**400), np.inf, np.nan])
def test_numbers_beyond_floats(value, X):
    with pytest.raises(
        ValueError, match="regularization must be a finite number > 0, got"
    ) as caught:
        KernelRidge(regularization=value).fit(X, X[:, 0])
    assert len(str(caught.value)) < 150  # not four hundred digits


@pytest.mark.parametrize("model", [KernelRidge(), PairwiseRidge(), M3LClassifier(), KernelSVC()])
def test_variances_whose_squares_cannot_be_represented(model, X):
    model.set_params(intercept_variance=1e101)
    with pytest.raises(ValueError, match=r"intercept_variance must be .* <= 1e\+100, got 1e\+101"):
        model.fit(X, X[:, 0] > 0)


def test_an_attribute_classifier_of_a_number(X):
    model = AttributeClassifier({0: [0, 1], 1: [1, 0]}, estimator=3)
    with pytest.raises(TypeError, match="estimator must be a classifier or None, got 3"):
        model.fit(X, np.arange(len(X)) % 2)


def test_columns_that_are_a_fraction(X):
    with pytest.raises(TypeError, match=r"left_columns must be a list of columns .* got 2\.5"):
        PairwiseRidge(left_columns=2.5).fit(X[:, :2], X[:, 2])


# --- targets -----------------------------------------------------------------------------------------

MIXED = np.array([1, "a", None, 2.5, 1, "a", None, 2.5, 1, "a", None, 2.5, 1, "a"], dtype=object)


@pytest.mark.parametrize("model", [KernelLogisticRegression(), KernelSVC(), M3LClassifier()])
def test_classes_of_several_kinds(model, X):
    with pytest.raises(ValueError, match=r"y must hold strings, or .*NoneType, float, int, str"):
        model.fit(X, MIXED)


@pytest.mark.parametrize("dtype", [object, str])
@pytest.mark.parametrize("model", [PairwiseRanker(), PairwiseRidge()])
def test_text_for_numbers_of_pairs(model, dtype, rng):
    pairs = Pairs.complete(rng.normal(size=(3, 2)), rng.normal(size=(4, 2)))
    with pytest.raises(ValueError, match="y must hold numbers: could not convert"):
        model.fit(pairs, np.array(["a", "b"] * 6, dtype=dtype))


def test_pairs_that_occur_twice_with_targets_of_several_kinds():
    """Looking for contradictions must not compare what cannot be compared."""
    pairs = Pairs(np.eye(2), None, [0, 0, 1], [1, 1, 0])
    with pytest.raises(ValueError, match="objects of type NoneType, int, str"):
        PairwiseSVC().fit(pairs, np.array([1, "a", None], dtype=object))


def test_one_label_for_all():
    with pytest.raises(ValueError, match="y must hold at least two classes, got one class: 'a'"):
        M3LClassifier().fit(np.eye(2), np.array(["a", "a"], dtype=object))


@pytest.mark.parametrize("mapping", ["direct", "nearest"])
@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_weights_whose_squares_cannot_be_represented(mapping, weight, X):
    model = AttributeClassifier({0: [0, 1], 1: [1, 0]}, mapping=mapping)
    y, weights = np.arange(len(X)) % 2, np.full(len(X), weight)
    with pytest.raises(ValueError, match=r"sample_weight must be zero or between .* by their mean"):
        model.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("weight", [1e99, 1e-99])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_largest_and_smallest_weights(weight, X):
    """What is allowed gives numbers, or an error that says what overflowed."""
    model = M3LClassifier(1.0, probability=True, cv=2)
    y = np.arange(len(X)) % 2
    model.fit(X, y, sample_weight=np.full(len(X), weight))
    assert np.isfinite(model.predict_proba(X)).all()


# --- hierarchies in single precision -----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["flat", "orthogonal"])
def test_hierarchies_in_single_precision_beyond_its_accuracy(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)).astype(np.float32)
    y = np.array(list("abc"))[rng.integers(0, 3, 30)]
    model = HierarchicalSVC(
        {"A": ["a", "b"], "c": None}, C=10.0, kernel="rbf", tol=1e-8, max_iter=3000, method=method
    ).fit(X, y)
    # 7e-6 is what the rounding of the matrix to float32 may hide
    assert model.solution_.gap <= 8e-6 * model.solution_.objective


# --- processes ---------------------------------------------------------------------------------------


def _fitted_again(X):
    model = KernelLogisticRegression(RBF(1.0), regularization=1.0, operator="dense")
    return model.fit(X, X[:, 0] > 0).decision_function(X[:5])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_fork_after_a_fit(all_threads, rng):
    """Threads of GNU OpenMP that have worked would end a forked process at its first parallel loop."""
    X = rng.normal(size=(800, 3))  # its products run on Numba's threads
    expected = _fitted_again(X)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found = pool.apply_async(_fitted_again, (X,)).get(timeout=120)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# --- fits that rounding would let go on for ever ---------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_kernel_values_beyond_all_precision_end_soon(rng):
    """Gaps go up and down by chance: what happens to fall is no progress."""
    X = rng.standard_cauchy((60, 20)) ** 3
    X[0, 0] = 3e10
    Y = rng.integers(0, 2, (60, 3))
    model = M3LClassifier(
        1000.0, kernel="linear", intercept_variance=0.0, tol=1e-6, solver="blocked"
    )
    model.fit(X, Y)
    assert model.solution_.status == "stalled"
    assert model.solution_.n_iter < 150


@pytest.mark.parametrize("seed", [19, 33, 245, 254, 283])
def test_probabilities_of_equal_decision_values_with_weights_of_all_sizes(seed):
    """The Hessian of a sigmoid is singular up to rounding, which is as large as its entries are."""
    rng = np.random.default_rng(seed)
    values = 0.1 * rng.normal(size=3)[np.arange(30) % 3][:, None]
    weights = rng.random(30) * 10.0 ** rng.integers(-12, 12, 30)
    signs = np.where(rng.random((30, 1)) < 0.5, 1, -1)
    P = sigmoids(fit_sigmoids(values, signs, weights), values)
    assert (P >= 0).all()
    assert (P <= 1).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_search_does_not_refine_what_rounding_stopped(monkeypatch, rng):
    """Folds that stalled at one tolerance stall at the next: no value takes more than one fit."""
    criterion = importlib.import_module("gramian.selection.criterion")
    fits = []

    def stalled(problem, **options):
        fits.append(options["max_iter"])
        return replace(newton(problem, **options | {"max_iter": 2}), status="stalled")

    monkeypatch.setattr(criterion, "newton", stalled)
    evaluations = []
    measured = criterion.CrossValidationCriterion.__call__
    monkeypatch.setattr(
        criterion.CrossValidationCriterion,
        "__call__",
        lambda *given, **named: evaluations.append(1) or measured(*given, **named),
    )
    X = rng.normal(size=(60, 1)).astype(np.float32)
    KernelSVC(RBF(1.0), regularization=1e-8, optimize="cv").fit(X, rng.integers(0, 2, 60))
    assert len(fits) == len(evaluations) > 0
    assert set(fits) == {criterion.MAX_STEPS}
