"""Bad calls of M3LClassifier: each is refused with an error that says what to do, and leaves no trace."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from gramian import M3LClassifier
from gramian.kernels import RBF

pytestmark = pytest.mark.usefixtures("one_thread")

N = 20
X = np.random.default_rng(0).normal(size=(N, 3))
Y = (X @ [[1.0, 0.0, 1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0]] > 0).astype(int)
CLASSES = np.arange(N) % 3
R = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, -0.2], [0.0, -0.2, 1.0]])
NAMED = pd.DataFrame(Y, columns=list("abd"))
M3L = M3LClassifier


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
        return estimator.fit(
            X if self.X is None else self.X,
            Y if self.y is None else self.y,
            sample_weight=self.sample_weight,
        )


def parameter(name, value, error, *words):
    """A bad constructor argument: the error names it and shows the value."""
    return Bad(f"{name}={value!r}", M3L(**{name: value}), error, (name, repr(value), *words))


def correlation(name, matrix, *words, y=None):
    """A bad R."""
    words = ("label_correlation", *words)
    return Bad(f"R {name}", M3L(label_correlation=matrix), ValueError, words, y=y)


BAD_FITS = [
    # R
    correlation("not symmetric", R + np.triu(np.full((3, 3), 0.1), 1), "symmetric", "0.1"),
    correlation("not positive definite", R * 3 - 2 * np.eye(3), "positive definite"),
    correlation("singular", np.ones((3, 3)), "positive definite"),
    correlation("too small", R[:2, :2], "(2, 2)"),
    correlation("too large", np.eye(4), "(4, 4)"),
    correlation("with NaN", spoilt(R, np.nan)),
    correlation("with infinity", spoilt(R, np.inf)),
    correlation("a vector", np.ones(3)),
    correlation("with a zero on the diagonal", R - np.diag([0, 1.0, 0])),
    correlation("from a function of wrong size", lambda signs: np.eye(2), "(2, 2)"),
    correlation("of other names", pd.DataFrame(R, list("abc"), list("abc")), "'d'", y=NAMED),
    correlation("for a binary y", R, "two classes", "(3, 3)", "column", y=Y[:, 0]),
    correlation("for other classes", np.eye(4), y=CLASSES),
    # numbers and choices
    *(parameter("C", v, TypeError, "number > 0") for v in (None, "1", True)),
    *(parameter("C", v, ValueError, "number > 0") for v in (0, -1.0, np.inf, np.nan)),
    parameter("intercept_variance", -1.0, ValueError, ">= 0"),
    parameter("tol", -1.0, ValueError, ">= 0"),
    parameter("max_iter", 0, ValueError, ">= 1"),
    parameter("max_iter", 1.5, TypeError, "whole"),
    parameter("metric", "f1", ValueError, "'hamming'", "'ranking'"),
    parameter("shrinkage", 1.5, ValueError, "<= 1", "'auto'"),
    parameter("shrinkage", "some", TypeError, "'auto'"),
    parameter("solver", "newton", ValueError, "'smo'", "'blocked'", "'coordinate'"),
    parameter("solver", None, ValueError, "'auto'"),
    parameter("kernel", "gauss", ValueError, "'rbf'"),
    parameter("probability", "yes", TypeError, "True or False"),
    parameter("warm_start", 1, TypeError, "True or False"),
    Bad("coordinate, RBF", M3L(kernel=RBF(1.0), solver="coordinate"), ValueError,
        ("solver='coordinate'", "RBF(", "'smo'")),
    Bad("cv of one fold", M3L(probability=True, cv=1), ValueError, ("cv=1",)),
    Bad("cv of too many folds", M3L(probability=True, cv=30), ValueError, ("cv=30",)),
    Bad("random_state is text", M3L(random_state="a"), ValueError, ("'a'",)),
    # losses
    parameter("loss", "hinge", ValueError, "'hamming'", "'correlation'", "'squared_hinge'"),
    parameter("loss", None, ValueError),
    Bad("costs of wrong length", M3L(loss=np.ones(4)), ValueError, ("loss", "(3,)", "(2, 3)", "(4,)")),
    Bad("costs transposed", M3L(loss=np.ones((3, 2))), ValueError, ("loss", "(2, 3)", "(3, 2)")),
    Bad("costs of examples", M3L(loss=np.ones((N, 3))), ValueError, ("loss", "(20, 3)", "callable")),
    Bad("costs negative", M3L(loss=np.array([1, -2.0, 1])), ValueError, ("loss", "negative", "-2")),
    Bad("costs NaN", M3L(loss=np.array([1, np.nan, 1])), ValueError, ("loss", "finite", "nan")),
    Bad("costs are text", M3L(loss=["a", "b", "c"]), ValueError, ("loss", "'a'")),
    Bad("function of wrong shape", M3L(loss=lambda signs: np.ones(3)), ValueError,
        ("loss must return", "(20, 3)", "(3,)")),
    Bad("function returns negative", M3L(loss=lambda signs: signs), ValueError, ("loss", "negative", "-1")),
    Bad("strong R in the loss", M3L(label_correlation=np.full((3, 3), 0.9) + 0.1 * np.eye(3), loss="correlation"),
        ValueError, ("loss='correlation'", "diagonally dominant", "shrunk")),
    # class weights
    *(parameter("class_weight", v, ValueError, "'balanced'") for v in ("balance", 2.0)),
    Bad("class_weight too short", M3L(class_weight=[{1: 2.0}] * 2), ValueError, ("class_weight", "3 labels", "got 2")),
    Bad("class_weight of no class", M3L(class_weight={2: 1.0}), ValueError, ("class_weight", "{2: 1.0}")),
    Bad("class_weight of 0 and -1", M3L(class_weight={0: 1.0, -1: 2.0}), ValueError, ("class_weight",)),
    Bad("class_weight negative", M3L(class_weight={1: -2.0}), ValueError, ("class_weight", "negative", "-2")),
    Bad("class_weight text", M3L(class_weight={1: "x"}), ValueError, ("class_weight", "'x'")),
    Bad("class_weight list of numbers", M3L(class_weight=[1, 2, 3]), ValueError, ("class_weight", "got 1")),
    Bad("class_weight zero", M3L(class_weight={0: 0, 1: 0}), ValueError, ("class_weight", "zero")),
    Bad("class_weight list, classes", M3L(class_weight=[{}] * 3), ValueError,
        ("class_weight", "class: weight"), y=CLASSES),
    Bad("class_weight negative, classes", M3L(class_weight={0: -1.0}), ValueError, ("class_weight", "-1"), y=CLASSES),
    Bad("class_weight of no class in y", M3L(class_weight={7: 1.0}), ValueError,
        ("class_weight", "[0, 1, 2]"), y=CLASSES),
    # y
    Bad("y of three values", M3L(), ValueError, ("y has 3 columns", "0 and 1", "'2'", "one-dimensional"), y=Y + 1),
    Bad("y of -1, 0, 1", M3L(), ValueError, ("y has 3 columns", "'-1'"), y=spoilt(Y, -1).astype(int)),
    Bad("y of text", M3L(), ValueError, ("y has 3 columns", "'a'"), y=np.full((N, 3), "a")),
    Bad("y with NaN", M3L(), ValueError, ("y contains NaN",), y=spoilt(Y, np.nan)),
    Bad("y too short", M3L(), ValueError, ("inconsistent numbers of samples",), y=Y[:-1]),
    Bad("y of three dimensions", M3L(), ValueError, ("dim 3",), y=np.ones((N, 2, 2))),
    Bad("y without columns", M3L(), ValueError, ("0 feature",), y=Y[:, :0]),
    Bad("y continuous", M3L(), ValueError, ("continuous",), y=X[:, 0]),
    Bad("y of one class", M3L(), ValueError, ("at least two classes", "7"), y=np.full(N, 7)),
    Bad("sparse y of signs", M3L(), ValueError, ("sparse y", "0 and 1", "-1"), y=sp.csr_array(2 * Y - 1)),
    # X and weights
    Bad("X with NaN", M3L(), ValueError, ("X contains NaN",), X=spoilt(X, np.nan)),
    Bad("X too large", M3L(), ValueError, ("overflowed", "Scale X"), X=X * 1e200),
    Bad("Gram matrix indefinite", M3L(kernel="precomputed"), ValueError, ("positive semidefinite",), X=-np.eye(N)),
    Bad("weights negative", M3L(), ValueError, ("sample_weight", "-1"), sample_weight=spoilt(np.ones(N), -1)),
    Bad("weights all zero", M3L(), ValueError, ("sample_weight is zero",), sample_weight=np.zeros(N)),
    Bad("weights too short", M3L(), ValueError, ("sample_weight", "(19,)"), sample_weight=np.ones(N - 1)),
    Bad("weights for each label", M3L(), ValueError, ("sample_weight", "(20, 3)"), sample_weight=np.ones((N, 3))),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("case", BAD_FITS, ids=[case.name for case in BAD_FITS])
def test_fit_refuses(case):
    estimator = clone(case.estimator)
    before = dict(vars(estimator))
    with pytest.raises(case.error) as caught:
        case.call(estimator)
    for word in case.words:
        assert word in str(caught.value)
    assert vars(estimator).keys() == before.keys()
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


@pytest.fixture(scope="module")
def fitted():
    return M3LClassifier().fit(X, Y)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("case", BAD_FITS, ids=[case.name for case in BAD_FITS])
def test_a_fitted_model_survives_a_bad_fit(case, fitted):
    estimator = copy(fitted)
    predicted = estimator.decision_function(X)
    estimator.set_params(**case.estimator.get_params(deep=False))
    before = dict(vars(estimator))
    with pytest.raises(case.error):
        case.call(estimator)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is before[name] for name in before)
    np.testing.assert_array_equal(estimator.decision_function(X), predicted)


def test_y_has_to_be_given():
    with pytest.raises(ValueError, match="requires y to be passed"):
        M3LClassifier().fit(X, None)


def test_other_array_libraries_are_refused():
    strict = pytest.importorskip("array_api_strict")
    import sklearn

    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(TypeError, match="needs NumPy arrays"),
    ):
        M3LClassifier().fit(strict.asarray(X), strict.asarray(Y))


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_bad_new_data(method):
    model = M3LClassifier(kernel="rbf", probability=True, cv=2)
    with pytest.raises(NotFittedError):
        getattr(model, method)(X)
    model.fit(X, Y)
    with pytest.raises(ValueError, match="features"):
        getattr(model, method)(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        getattr(model, method)(spoilt(X, np.nan))
