"""Bad calls: each one is refused with an error that names the argument and its value, and leaves no trace."""

from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.callback import FitCallback
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from gramian import KernelLogisticRegression, KernelRidge, KernelSVC
from gramian.kernels import RBF, Constant, Linear, Matern, Polynomial, RationalQuadratic, White

N = 20
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.arange(N) % 3  # classes
T = X[:, 0] + X[:, 1] ** 2  # a function to regress on
K = X @ X.T

KLR, SVC, RIDGE = KernelLogisticRegression, KernelSVC, KernelRidge


@cache
def fitted(kind):
    """A fitted model of that class; those who change it take a copy."""
    return kind().fit(X, T if kind is KernelRidge else Y)


def spoilt(array, value):
    """A copy with one bad entry."""
    array = np.array(array, dtype=float)
    array.flat[4] = value
    return array


@dataclass
class Bad:
    """A call of fit that must fail: estimator, what differs from a good call, the error and its words."""

    name: str
    estimator: Any
    error: type[Exception]
    words: tuple[str, ...]
    X: Any = None
    y: Any = None
    sample_weight: Any = None

    def call(self, estimator):
        good = T if isinstance(estimator, KernelRidge) else Y
        features = K if estimator.kernel == "precomputed" else X
        return estimator.fit(
            features if self.X is None else self.X,
            good if self.y is None else self.y,
            sample_weight=self.sample_weight,
        )


def parameter(name, value, error, *words, estimator=KLR):
    """A bad constructor argument: the error names it and shows the value."""
    return Bad(f"{name}={value!r}", estimator(**{name: value}), error, (name, repr(value), *words))


NOT_A_NUMBER = [None, "1", True, [1.0], 1j]

BAD_FITS = [
    # X
    Bad("X holds NaN", KLR(), ValueError, ("X contains NaN",), X=spoilt(X, np.nan)),
    Bad("X holds infinity", KLR(), ValueError, ("X contains infinity",), X=spoilt(X, np.inf)),
    Bad("sparse X holds NaN", SVC(), ValueError, ("X contains NaN",), X=sp.csr_array(spoilt(X, np.nan))),
    Bad("X is one-dimensional", KLR(), ValueError, ("Expected 2D array, got 1D", "reshape"), X=X[:, 0]),
    Bad("X is three-dimensional", SVC(), ValueError, ("dim 3", "KernelSVC"), X=X[None]),
    Bad("X is a number", RIDGE(), ValueError, ("Expected 2D array, got scalar",), X=1.0),
    Bad("X has no rows", KLR(), ValueError, ("0 sample(s)", "minimum of 1"), X=X[:0], y=Y[:0]),
    Bad("X has no columns", KLR(), ValueError, ("0 feature(s)", "(20, 0)"), X=X[:, :0]),
    Bad("X is text", KLR(), ValueError, ("X must hold numbers", "'a'"), X=np.full((N, 3), "a")),
    Bad("X is text in objects", SVC(), ValueError, ("X must hold numbers",), X=np.full((N, 3), "a", dtype=object)),
    Bad("X holds objects", KLR(), TypeError, ("X must hold numbers", "dict"), X=np.full((N, 3), {}, dtype=object)),
    Bad("X is complex", RIDGE(), ValueError, ("Complex data not supported",), X=X + 1j),
    Bad("X is too large to multiply", RIDGE(kernel="linear"), ValueError, ("overflowed", "Scale X"), X=X * 1e300),
    # y
    Bad("y is shorter than X", KLR(), ValueError, ("inconsistent numbers of samples", "[20, 19]"), y=Y[:-1]),
    Bad("y holds NaN (classes)", KLR(), ValueError, ("y contains NaN",), y=spoilt(Y, np.nan)),
    Bad("y holds NaN (numbers)", RIDGE(), ValueError, ("y contains NaN",), y=spoilt(T, np.nan)),
    Bad("y holds infinity", RIDGE(), ValueError, ("y contains infinity",), y=spoilt(T, np.inf)),
    Bad("y is continuous", KLR(), ValueError, ("label type: continuous",), y=T),
    Bad("y is multilabel", SVC(), ValueError, ("y should be a 1d array", "(20, 3)"), y=np.eye(N, 3, dtype=int)),
    Bad("y mixes types", KLR(), ValueError, ("y must hold strings", "int, str"), y=np.array([1, "a"] * 10, object)),
    Bad("y has three dimensions", RIDGE(), ValueError, ("dim 3", "KernelRidge"), y=np.ones((N, 2, 2))),
    Bad("y is text", RIDGE(), ValueError, ("y must hold numbers", "'a'"), y=np.array(["a"] * N)),
    Bad("y is complex", RIDGE(), ValueError, ("Complex data not supported",), y=T + 1j),
    Bad("y has one class", KLR(), ValueError, ("y must hold at least two classes", "one class: 7"), y=np.full(N, 7)),
    Bad("y has one named class", SVC(), ValueError, ("y must hold at least two classes", "'a'"), y=np.array(["a"] * N)),
    # constructor arguments
    parameter("kernel", "gauss", ValueError, "'rbf'", "'precomputed'"),
    parameter("kernel", None, TypeError, "'rbf'"),
    parameter("kernel", RBF, TypeError, "gramian.kernels"),
    parameter("kernel", 2.0, TypeError, "gramian.kernels", estimator=RIDGE),
    Bad("kernel is a function", SVC(kernel=np.dot), TypeError, ("kernel", "<function dot")),
    parameter("operator", "gpu", ValueError, "'dense'", "'streamed'"),
    parameter("operator", None, ValueError, "'auto'", estimator=RIDGE),
    parameter("operator", ["dense"], ValueError, "'auto'", estimator=SVC),
    parameter("solver", "sgd", ValueError, "'newton'", "'exact'"),
    parameter("solver", None, ValueError, "'auto'", estimator=RIDGE),
    *(parameter("regularization", v, TypeError, "number > 0") for v in NOT_A_NUMBER),
    *(parameter("regularization", v, ValueError, "number > 0") for v in (-1.0, 0, 0.0, np.inf, np.nan)),
    parameter("regularization", -1.0, ValueError, "number > 0", estimator=RIDGE),
    parameter("regularization", 0, ValueError, "number > 0", estimator=SVC),
    *(parameter("intercept_variance", v, TypeError, "number >= 0") for v in NOT_A_NUMBER),
    *(parameter("intercept_variance", v, ValueError, "number >= 0") for v in (-1e-9, np.inf, np.nan)),
    *(parameter("tol", v, TypeError, "number >= 0") for v in NOT_A_NUMBER),
    *(parameter("tol", v, ValueError, "number >= 0") for v in (-1e-9, np.inf, np.nan)),
    *(parameter("max_iter", v, TypeError, "whole number >= 1") for v in (1.5, 10.0, "10", True, [1])),
    *(parameter("max_iter", v, ValueError, "whole number >= 1") for v in (0, -3)),
    *(parameter("warm_start", v, TypeError, "True or False") for v in (1, None, "yes")),
    *(parameter("class_weight", v, ValueError, "'balanced'") for v in ("balance", 2.0, [1, 2, 3])),
    Bad("class_weight of no class", KLR(class_weight={7: 1.0}), ValueError, ("class_weight", "[0, 1, 2]")),
    Bad("class_weight is text", SVC(class_weight={0: "x"}), TypeError, ("class_weight", "'x'")),
    Bad("class_weight negative", KLR(class_weight={0: -2.0}), ValueError, ("class_weight", "negative", "-2")),
    Bad("class_weight NaN", SVC(class_weight={0: np.nan}), ValueError, ("class_weight", "finite", "nan")),
    Bad("class_weight all zero", KLR(class_weight=dict.fromkeys(range(3), 0)), ValueError, ("class_weight is zero",)),
    # sample weights
    Bad("weights all zero", RIDGE(), ValueError, ("sample_weight is zero",), sample_weight=np.zeros(N)),
    Bad("weight negative", KLR(), ValueError, ("sample_weight", "-1"), sample_weight=spoilt(np.ones(N), -1)),
    Bad("weight NaN", SVC(), ValueError, ("sample_weight", "finite", "nan"), sample_weight=spoilt(np.ones(N), np.nan)),
    Bad("weight infinite", RIDGE(), ValueError, ("sample_weight", "inf"), sample_weight=spoilt(np.ones(N), np.inf)),
    Bad("weights too short", KLR(), ValueError, ("sample_weight", "(20,)", "(19,)"), sample_weight=np.ones(N - 1)),
    Bad("weights two-dimensional", SVC(), ValueError, ("sample_weight", "(20, 1)"), sample_weight=np.ones((N, 1))),
    Bad("weights are text", KLR(), TypeError, ("sample_weight must be numbers", "'1'"), sample_weight=["1"] * N),
    Bad("weights complex", KLR(), TypeError, ("sample_weight must be numbers",), sample_weight=np.ones(N) * 1j),
    Bad("weights a name", RIDGE(), TypeError, ("sample_weight", "'balanced'"), sample_weight="balanced"),
    Bad("number negative", RIDGE(), ValueError, ("sample_weight", "-1"), sample_weight=-1.0),
    Bad("both weights cancel", KLR(class_weight={0: 0.0}), ValueError, ("class_weight × sample_weight is zero",),
        sample_weight=(Y == 0).astype(float)),
    # kernels and operators
    Bad("Gram matrix not square", KLR(kernel="precomputed"), ValueError, ("X must be the square Gram", "(20, 3)"), X=X),
    Bad("Gram matrix not symmetric", RIDGE(kernel="precomputed"), ValueError,
        ("X must be the symmetric", "reaches 1", "(K + K.T) / 2"), X=K + np.triu(np.ones((N, N)))),
    Bad("Gram matrix indefinite", SVC(kernel="precomputed"), ValueError,
        ("X must be a positive semidefinite", "eigenvalue is -2"), X=K - 2 * np.eye(N)),
    Bad("sparse Gram matrix indefinite", KLR(kernel="precomputed"), ValueError,
        ("X must be a positive semidefinite", "eigenvalue is -2"), X=sp.csr_array(K - 2 * np.eye(N))),
    Bad("streamed precomputed", KLR(kernel="precomputed", operator="streamed"), ValueError,
        ("operator", "precomputed", "'streamed'")),
    Bad("linear operator, RBF kernel", SVC(operator="linear"), ValueError, ("operator='linear'", "Linear()", "RBF(")),
    Bad("ARD of another length", KLR(kernel=RBF([1.0, 2.0])), ValueError, ("length_scale", "2 entries", "3 features")),
    Bad("ARD inside a sum", RIDGE(kernel=2.0 * Matern([1.0] * 4) + Linear()), ValueError,
        ("length_scale", "4 entries", "3 features")),
    Bad("polynomial overflow", RIDGE(kernel=Polynomial(degree=200)), ValueError, ("overflowed", "kernel"), X=X * 100),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    "case", BAD_FITS, ids=[f"{type(b.estimator).__name__}: {b.name}" for b in BAD_FITS]
)
def test_fit_refuses(case):
    estimator = clone(case.estimator)
    before = dict(vars(estimator))
    with pytest.raises(case.error) as caught:
        case.call(estimator)
    for word in case.words:
        assert word in str(caught.value)
    # nothing half-fitted
    assert vars(estimator) == before
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


DATA_CASES = [b for b in BAD_FITS if b.estimator.kernel != "precomputed"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    "case", DATA_CASES, ids=[f"{type(b.estimator).__name__}: {b.name}" for b in DATA_CASES]
)
def test_a_fitted_model_survives_a_bad_fit(case):
    """Settings go bad, or the data do: the old model still predicts what it did."""
    estimator = copy(fitted(type(case.estimator)))
    predicted = estimator.predict(X)
    estimator.set_params(**case.estimator.get_params(deep=False))
    before = dict(vars(estimator))
    with pytest.raises(case.error):
        case.call(estimator)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is before[name] for name in before)
    np.testing.assert_array_equal(estimator.predict(X), predicted)


def test_y_has_to_be_given():
    for estimator in (KLR(), SVC(), RIDGE()):
        with pytest.raises(ValueError, match="requires y to be passed"):
            estimator.fit(X, None)


# --- kernels refuse at once -------------------------------------------------------------------

BAD_KERNELS = {
    "RBF(-1)": (lambda: RBF(-1.0), ValueError, ("RBF(length_scale=...)", "-1.0")),
    "RBF(0)": (lambda: RBF(0), ValueError, ("RBF(length_scale=...)", "got 0")),
    "RBF(nan)": (lambda: RBF(np.nan), ValueError, ("length_scale", "nan")),
    "RBF(None)": (lambda: RBF(None), ValueError, ("length_scale", "None")),
    "RBF(True)": (lambda: RBF(True), TypeError, ("length_scale", "True")),
    "RBF('auto')": (lambda: RBF("auto"), ValueError, ("length_scale", '"scale"', "'auto'")),
    "RBF text": (lambda: RBF(["1", "2"]), TypeError, ("length_scale", "'2'")),
    "RBF ragged": (lambda: RBF([[1.0], [2.0, 3.0]]), TypeError, ("length_scale", "[2.0, 3.0]")),
    "RBF matrix": (lambda: RBF([[1.0]]), ValueError, ("length_scale", "[[1.0]]")),
    "RBF empty": (lambda: RBF([]), ValueError, ("length_scale", "[]")),
    "RBF([1, -1])": (lambda: RBF([1.0, -1.0]), ValueError, ("length_scale", "-1.0")),
    "bounds swapped": (lambda: RBF(length_scale_bounds=(2, 1)), ValueError, ("length_scale_bounds", "(2, 1)")),
    "bounds a word": (lambda: RBF(length_scale_bounds="free"), ValueError, ("length_scale_bounds", "'free'")),
    "Matern(nu=2)": (lambda: Matern(nu=2), ValueError, ("Matern(nu=...)", "1.5", "got 2")),
    "Matern(nu=None)": (lambda: Matern(nu=None), ValueError, ("Matern(nu=...)", "None")),
    "degree 0": (lambda: Polynomial(degree=0), ValueError, ("Polynomial(degree=...)", "got 0")),
    "degree 1.5": (lambda: Polynomial(degree=1.5), ValueError, ("degree", "whole number", "1.5")),
    "degree None": (lambda: Polynomial(degree=None), ValueError, ("degree", "None")),
    "degree text": (lambda: Polynomial(degree="3"), ValueError, ("degree", "'3'")),
    "coef0 -1": (lambda: Polynomial(coef0=-1.0), ValueError, ("coef0", "-1.0")),
    "gamma 0": (lambda: Polynomial(gamma=0.0), ValueError, ("gamma", "0.0")),
    "gamma 'auto'": (lambda: Polynomial(gamma="auto"), ValueError, ("gamma", '"scale"', "'auto'")),
    "alpha 0": (lambda: RationalQuadratic(alpha=0.0), ValueError, ("alpha", "0.0")),
    "alpha vector": (lambda: RationalQuadratic(alpha=[1.0, 2.0]), ValueError, ("alpha", "[1.0, 2.0]")),
    "White(-1)": (lambda: White(-1.0), ValueError, ("White(noise=...)", "-1.0")),
    "White vector": (lambda: White([1.0, 2.0]), ValueError, ("noise", "[1.0, 2.0]")),
    "Constant(0)": (lambda: Constant(0.0), ValueError, ("Constant(value=...)", "0.0")),
    "negative factor": (lambda: -2.0 * RBF(), ValueError, ("Constant(value=...)", "-2.0")),
    "kernel + text": (lambda: RBF() + "linear", TypeError, ("kernels and numbers", "'linear'")),
    "negative power": (lambda: RBF() ** -1, ValueError, ("exponent", "-1")),
    "power of text": (lambda: RBF() ** "2", TypeError, ("exponent", "'2'")),
    "set_params": (lambda: KLR(RBF()).set_params(kernel__length_scale=-2.0), ValueError, ("length_scale", "-2.0")),
    "unknown parameter": (lambda: KLR(RBF()).set_params(kernel__gamma=2.0), ValueError, ("'gamma'", "length_scale")),
    "unknown argument": (lambda: KLR(C=1.0), TypeError, ("'C'",)),
    "too many positions": (lambda: KLR("rbf", 1.0), TypeError, ("positional",)),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_KERNELS)
def test_constructors_refuse(name):
    make, error, words = BAD_KERNELS[name]
    with pytest.raises(error) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


# --- prediction -------------------------------------------------------------------------------

METHODS = [
    (KLR, "predict"),
    (KLR, "predict_proba"),
    (KLR, "predict_log_proba"),
    (KLR, "decision_function"),
    (KLR, "score"),
    (SVC, "predict"),
    (SVC, "decision_function"),
    (RIDGE, "predict"),
]
EXTRA = {"score": (Y,)}


@pytest.mark.parametrize("estimator, method", METHODS)
def test_prediction_before_fit(estimator, method):
    with pytest.raises(NotFittedError, match=f"{estimator.__name__} instance is not fitted"):
        getattr(estimator(), method)(X, *EXTRA.get(method, ()))


BAD_NEW = {
    "other number of features": (X[:, :2], ("X has 2 features", "expecting 3")),
    "one-dimensional": (X[0], ("Expected 2D array, got 1D",)),
    "NaN": (spoilt(X, np.nan), ("X contains NaN",)),
    "no rows": (X[:0], ("0 sample(s)",)),
    "text": (np.full((4, 3), "a"), ("X must hold numbers",)),
    "sparse, other number of features": (sp.csr_array(X[:, :2]), ("X has 2 features", "expecting 3")),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_NEW)
@pytest.mark.parametrize("estimator, method", [m for m in METHODS if m[1] != "score"])
def test_prediction_refuses(estimator, method, name):
    new, words = BAD_NEW[name]
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the words are below)
        getattr(fitted(estimator), method)(new)
    for word in words:
        assert word in str(caught.value)


def test_precomputed_values_of_new_examples_have_a_column_for_each_training_example():
    model = KLR(kernel="precomputed").fit(K, Y)
    with pytest.raises(ValueError, match=r"X has 5 features.* expecting 20"):
        model.predict(K[:, :5])


def test_feature_names_must_be_the_same():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = KLR().fit(frame, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"c": "d"}))


# --- interruption -----------------------------------------------------------------------------


class Interrupt(FitCallback):
    """Ctrl-C after some iterations."""

    def __init__(self, after=2, error=KeyboardInterrupt):
        self.left = after
        self.error = error

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **_):
        pass

    def on_fit_task_end(self, estimator, context, **_):
        if context.task_name == "iteration":
            self.left -= 1
            if self.left == 0:
                raise self.error
        return False


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("solver", ["newton", "kernel_cg"])
@pytest.mark.parametrize("estimator", [KLR, SVC, RIDGE])
def test_interruption_leaves_the_estimator_as_it_was(estimator, solver, error):
    y = np.column_stack([T, T**2]) if estimator is RIDGE else Y
    model = estimator(solver=solver, regularization=1e-3)
    once = solver == "newton" and estimator is RIDGE  # one Newton step solves a quadratic
    model.set_callbacks(Interrupt(after=1 if once else 2, error=error))
    before = set(vars(model))
    with pytest.raises(error):
        model.fit(X, y)
    assert set(vars(model)) == before
    with pytest.raises(NotFittedError):
        model.predict(X)

    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.set_callbacks().fit(X, y).predict(X), again.predict(X))


def test_interruption_keeps_the_previous_fit():
    model = KLR().fit(X, Y)
    predicted = model.predict_proba(X)
    model.set_params(regularization=1e-3).set_callbacks(Interrupt())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[::2], Y[::2])
    np.testing.assert_array_equal(model.predict_proba(X), predicted)
