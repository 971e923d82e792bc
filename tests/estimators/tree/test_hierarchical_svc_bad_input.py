"""Bad calls of HierarchicalSVC: each is refused with an error that says what to do, and leaves no trace."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from gramian import HierarchicalSVC
from gramian.labels import as_taxonomy, orthogonality_weights

pytestmark = pytest.mark.usefixtures("one_thread")

N = 20
X = np.random.default_rng(0).normal(size=(N, 3))
PETS = {"animal": ["cat", "dog"], "car": None}
TREE = as_taxonomy(PETS)
Y = np.array(["cat", "dog", "car", "animal"])[np.arange(N) % 4]
K = orthogonality_weights(TREE)  # animal, car, cat, dog
NAMES = list(TREE.names[1:])


def spoilt(array, value):
    """A copy with one bad entry."""
    array = np.array(array, dtype=float)
    array.flat[4] = value
    return array


def changed(i, j, value):
    """K with another entry, and its mirror image."""
    matrix = K.copy()
    matrix[i, j] = matrix[j, i] = value
    return matrix


@dataclass
class Bad:
    """A call of fit that must fail: estimator, what differs from a good call, the error and its words."""

    name: str
    parameters: dict[str, Any]
    error: type[Exception]
    words: tuple[str, ...]
    X: Any = None
    y: Any = None
    sample_weight: Any = None

    def estimator(self):
        return HierarchicalSVC(**{"hierarchy": PETS, "method": "orthogonal"} | self.parameters)

    def call(self, estimator):
        return estimator.fit(
            X if self.X is None else self.X,
            Y if self.y is None else self.y,
            sample_weight=self.sample_weight,
        )


def parameter(name, value, error, *words):
    """A bad constructor argument: the error names it and shows the value."""
    return Bad(f"{name}={value!r}", {name: value}, error, (name, repr(value), *words))


def weights(name, matrix, *words, **more):
    """A bad K."""
    return Bad(f"K {name}", {"K": matrix, **more}, ValueError, ("K", *words))


BAD_FITS = [
    # K and alpha
    weights("not symmetric", K + np.triu(np.full((4, 4), 0.1), 1), "symmetric", "(A + A.T) / 2"),
    weights("negative", changed(0, 2, -0.5), "negative", "-0.5", "'animal'", "'cat'"),
    weights("with a zero on the diagonal", changed(1, 1, 0.0), "positive diagonal", "'car'"),
    weights("too small", np.eye(3), "(4, 4)", "(3, 3)", "but the root"),
    weights("with the root", np.eye(5), "(5, 5)"),
    weights("a vector", np.ones(4), "(4,)"),
    weights("of text", [["a"] * 4] * 4, "numbers"),
    weights("with NaN", changed(0, 2, np.nan), "finite", "nan", "'cat'"),
    weights("with infinity", changed(0, 0, np.inf), "finite", "inf"),
    weights("couples siblings", changed(2, 3, 0.1), "ancestor", "0.1", "'cat'", "'dog'"),
    weights("couples cousins", changed(1, 2, 0.1), "ancestor", "'car'", "'cat'"),
    weights("not positive definite", changed(0, 2, 2.0), "admissible", "smallest eigenvalue", "alpha='auto'",
            alpha=1.0),
    weights("on the border", np.array([[1.0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]]), "eigenvalue",
            alpha=1.0),
    weights("of other names", pd.DataFrame(K, ["bus", *NAMES[1:]], NAMES), "index", "'animal'"),
    weights("of other columns", pd.DataFrame(K, NAMES, ["bus", *NAMES[1:]]), "columns", "'animal'"),
    weights("that repeats a name", pd.DataFrame(K, NAMES, ["car", *NAMES[1:]]), "columns", "twice"),
    weights("for another method", K, "method='flat'", method="flat"),
    parameter("alpha", -1.0, ValueError, ">= 0"),
    parameter("alpha", np.inf, ValueError),
    parameter("alpha", "automatic", ValueError, "'auto'"),
    parameter("alpha", None, TypeError),
    Bad("alpha too large", {"alpha": 5.0}, ValueError,
        ("alpha is too large", "-3.08", "alpha=5", "alpha=1.21", "'auto'")),
    # numbers and choices
    *(parameter("C", v, TypeError, "number > 0") for v in (None, "1", True)),
    *(parameter("C", v, ValueError, "number > 0") for v in (0, -1.0, np.inf, np.nan)),
    parameter("intercept_variance", -1.0, ValueError, ">= 0"),
    parameter("tol", -1.0, ValueError, ">= 0"),
    parameter("max_iter", 0, ValueError, ">= 1"),
    parameter("max_iter", 1.5, TypeError, "whole"),
    parameter("method", "transfer", ValueError, "'orthogonal'", "'tree_loss'"),
    parameter("method", None, ValueError, "'flat'"),
    parameter("kernel", "gauss", ValueError, "'rbf'"),
    parameter("probability", "yes", TypeError, "True or False"),
    Bad("cv of one fold", {"probability": True, "cv": 1}, ValueError, ("cv=1",)),
    Bad("cv of too many folds", {"probability": True, "cv": 30}, ValueError, ("cv=30",)),
    Bad("random_state is text", {"random_state": "a"}, ValueError, ("'a'",)),
    # trees
    parameter("hierarchy", 7, TypeError, "nested dictionaries"),
    parameter("hierarchy", "a/b", TypeError),
    Bad("a circle", {"hierarchy": {"a": "b", "b": "a"}}, ValueError, ("cycle",)),
    Bad("two parents", {"hierarchy": [("a", "c"), ("b", "c"), ("a", "d")]}, ValueError, ("'c'",)),
    Bad("empty tree", {"hierarchy": {}}, ValueError, ("empty",)),
    Bad("one leaf", {"hierarchy": {"a": {"b": ["c"]}}}, ValueError, ("at least two leaves", "one class", "'c'")),
    Bad("numbers and words", {"hierarchy": {"a": [1, "b"]}}, ValueError, ("strings or by integers",)),
    # class weights
    *(parameter("class_weight", v, ValueError, "'balanced'") for v in ("balance", 2.0)),
    Bad("class_weight of no node", {"class_weight": {"bus": 1.0}}, ValueError, ("class_weight", "'bus'")),
    Bad("class_weight negative", {"class_weight": {"car": -2.0}}, ValueError, ("class_weight", "-2")),
    Bad("class_weight text", {"class_weight": {"car": "x"}}, TypeError, ("class_weight", "'x'")),
    Bad("class_weight zero", {"class_weight": dict.fromkeys(Y, 0)}, ValueError, ("class_weight", "zero")),
    Bad("weights cancel", {"class_weight": {"car": 0, "cat": 1}}, ValueError, ("class_weight × sample_weight", "zero"),
        sample_weight=(Y == "car").astype(float)),
    # y
    Bad("y of no node", {}, ValueError, ("y must hold", "'bus'"), y=np.where(Y == "car", "bus", Y)),
    Bad("y misspelt", {}, ValueError, ("'kat'", "Close to it: 'cat'"), y=np.where(Y == "cat", "kat", Y)),
    Bad("y of numbers", {}, ValueError, ("y must hold", "no node 0"), y=np.arange(N) % 4),
    Bad("y holds the root", {}, ValueError, ("root", "says nothing", "5 examples"), y=np.where(Y == "car", "root", Y)),
    Bad("y with NaN", {}, ValueError, ("NaN",), y=spoilt(np.arange(N), np.nan)),
    Bad("y too short", {}, ValueError, ("inconsistent numbers of samples",), y=Y[:-1]),
    Bad("y of two dimensions", {}, ValueError, ("1d array",), y=np.column_stack([Y, Y])),
    Bad("y of one class", {"hierarchy": None}, ValueError, ("at least two classes", "'a'"), y=np.full(N, "a")),
    Bad("y continuous", {"hierarchy": None}, ValueError, ("continuous",), y=X[:, 0]),
    # X and weights
    Bad("X with NaN", {}, ValueError, ("X contains NaN",), X=spoilt(X, np.nan)),
    Bad("X of text", {}, ValueError, ("X must hold numbers",), X=np.full((N, 2), "a")),
    Bad("X of one dimension", {}, ValueError, ("Expected 2D array",), X=X[:, 0]),
    Bad("X too large", {}, ValueError, ("overflowed", "Scale X"), X=X * 1e200),
    Bad("X too large, polynomial", {"kernel": "polynomial"}, ValueError, ("overflowed", "Scale X"), X=X * 1e200),
    Bad("Gram matrix indefinite", {"kernel": "precomputed"}, ValueError, ("positive semidefinite",), X=-np.eye(N)),
    Bad("Gram matrix not square", {"kernel": "precomputed"}, ValueError, ("square",)),
    Bad("weights negative", {}, ValueError, ("sample_weight", "-1"), sample_weight=spoilt(np.ones(N), -1)),
    Bad("weights all zero", {}, ValueError, ("sample_weight is zero",), sample_weight=np.zeros(N)),
    Bad("weights too short", {}, ValueError, ("sample_weight", "(19,)"), sample_weight=np.ones(N - 1)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("case", BAD_FITS, ids=[case.name for case in BAD_FITS])
def test_fit_refuses(case):
    estimator = clone(case.estimator())
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
    return HierarchicalSVC(PETS, max_iter=3, tol=0.5).fit(X, Y)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("case", BAD_FITS, ids=[case.name for case in BAD_FITS])
def test_a_fitted_model_survives_a_bad_fit(case, fitted):
    estimator = copy(fitted)
    predicted = estimator.decision_function(X)
    estimator.set_params(**case.estimator().get_params(deep=False))
    before = dict(vars(estimator))
    with pytest.raises(case.error):
        case.call(estimator)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is before[name] for name in before)
    np.testing.assert_array_equal(estimator.decision_function(X), predicted)


def test_the_good_call_that_the_bad_ones_are_made_from():
    HierarchicalSVC(PETS, "orthogonal", K=K).fit(X, Y)


def test_y_has_to_be_given():
    with pytest.raises(ValueError, match="requires y to be passed"):
        HierarchicalSVC().fit(X, None)


def test_other_array_libraries_are_refused():
    strict = pytest.importorskip("array_api_strict")
    import sklearn

    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(TypeError, match="needs NumPy arrays"),
    ):
        HierarchicalSVC().fit(strict.asarray(X), strict.asarray(np.arange(N) % 2))


METHODS = ["predict", "decision_function", "node_scores", "predict_proba", "predict_node_proba", "decide"]  # fmt: skip


@pytest.fixture(scope="module", params=["linear", "rbf"])
def with_probabilities(request):
    return HierarchicalSVC(PETS, kernel=request.param, probability=True, cv=2).fit(X, Y)


@pytest.mark.parametrize("method", METHODS)
def test_bad_new_data(method, with_probabilities):
    model = with_probabilities
    with pytest.raises(NotFittedError):
        getattr(clone(model), method)(X)
    with pytest.raises(ValueError, match="features"):
        getattr(model, method)(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        getattr(model, method)(spoilt(X, np.nan))
