"""Estimators for pairs with tables of similarities that are no kernels, repaired: models of tables that were before."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import sklearn
from pair_oracles import one_kind
from sklearn.base import clone

from gramian import (
    Pairs,
    PairwiseLogisticRegression,
    PairwiseRanker,
    PairwiseRidge,
    PairwiseSVC,
)
from gramian.datasets import make_interactions
from gramian.kernels import RBF
from gramian.kernels import pairwise as pk
from gramian.kernels.similarity import clip, flip, shift
from gramian.metrics import concordance_index
from gramian.selection import CrossValidationSearch

pytestmark = pytest.mark.usefixtures("one_thread")

RIDGE, KLR, MARGIN, RANK = PairwiseRidge, PairwiseLogisticRegression, PairwiseSVC, PairwiseRanker
every_estimator = pytest.mark.parametrize("estimator", [RIDGE, KLR, MARGIN, RANK])
OPTIONS = {"n_left": 12, "n_right": 9, "n_features": 2, "density": 0.6}
PAIRS, VALUES = make_interactions(**OPTIONS)
LABELS = make_interactions(**OPTIONS, binary=True)[1]
N = len(PAIRS)
HELD_OUT = np.arange(N) % 3 == 0
QUICK = CrossValidationSearch(tol=0.01, max_evaluations=10)
BOTH = {"left_kernel": "precomputed", "right_kernel": "precomputed"}


def target(estimator):
    return LABELS if estimator in (KLR, MARGIN) else VALUES


def latent(model, X):
    return model.decision_function(X) if isinstance(model, (KLR, MARGIN)) else model.predict(X)


def fitted(estimator, X, y, **params):
    """A model that is solved as well as it can be."""
    model = estimator(**({"tol": 1e-15, "regularization": 0.3, "max_iter": 2000} | params))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*pairs occur more than once")
        return model.fit(X, y)


def _indefinite(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A + A.T


REPAIRS = {"clip": clip, "flip": flip, "shift": shift}
every_repair = pytest.mark.parametrize("repair", REPAIRS)


@every_repair
@every_estimator
def test_repaired_similarities(estimator, repair):
    """The model is that of tables which were repaired before, on pairs with all objects and with some of them."""
    K, T = _indefinite(PAIRS.n_left), _indefinite(PAIRS.n_right, 1)
    rng = np.random.default_rng(2)
    new = rng.normal(size=(4, PAIRS.n_left)), rng.normal(size=(3, PAIRS.n_right))
    (K_good, left), (T_good, right) = (
        REPAIRS[repair](S, rows) for S, rows in zip((K, T), new, strict=True)
    )
    kept = (PAIRS.left_index != 3) & (PAIRS.right_index != 2)
    for rows in (np.ones(N, dtype=bool), kept):
        index, y = (PAIRS.left_index[rows], PAIRS.right_index[rows]), target(estimator)[rows]
        model = fitted(estimator, Pairs(K, T, *index), y, indefinite=repair, **BOTH)
        before = fitted(estimator, Pairs(K_good, T_good, *index), y, **BOTH)
        objective = before.solution_.objective
        assert model.solution_.objective == pytest.approx(objective, rel=1e-8)
        cells = np.arange(12) % 4, np.arange(12) % 3
        found, expected = (
            latent(model, Pairs(*new, *cells)),
            latent(before, Pairs(left, right, *cells)),
        )
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("repair", ["clip", "flip"])
@pytest.mark.parametrize("name", ["kronecker", "linear", "poly2d", "cartesian"])
def test_training_objects_are_predicted_as_in_training(repair, name):
    """Clipped and flipped rows of the old objects are those of the repaired matrix; objects are still recognised."""
    K, T = _indefinite(PAIRS.n_left), _indefinite(PAIRS.n_right, 1)
    X = Pairs(K, T, PAIRS.left_index, PAIRS.right_index)
    options = {"pairwise_kernel": name, "intercept_variance": 1.0}
    model = fitted(RIDGE, X, VALUES, indefinite=repair, **options, **BOTH)
    good = Pairs(REPAIRS[repair](K), REPAIRS[repair](T), PAIRS.left_index, PAIRS.right_index)
    gram = pk.as_pairwise_kernel(name, "precomputed", "precomputed")(good) + 1.0
    expected = gram @ np.linalg.solve(gram + 0.3 * np.eye(N), VALUES)
    copied = Pairs(K.copy(), T.copy(), PAIRS.left_index, PAIRS.right_index)
    for same in (X, copied):
        np.testing.assert_allclose(model.predict(same), expected, atol=1e-6)
    np.testing.assert_allclose(model.kernel_(X) + 1.0, gram, atol=1e-10)


@every_repair
@pytest.mark.parametrize("name", ["symmetric", "mlpk", "ranking"])
def test_repaired_similarities_of_one_kind(repair, name):
    S, X = _indefinite(9), one_kind(n=25, n_objects=9)
    pairs = Pairs(S, None, X.left_index, X.right_index)
    y = LABELS[:25]
    options = {"left_kernel": "precomputed", "pairwise_kernel": name}
    model = fitted(MARGIN, pairs, y, indefinite=repair, **options)
    good = Pairs(REPAIRS[repair](S), None, X.left_index, X.right_index)
    before = fitted(MARGIN, good, y, **options)
    assert model.solution_.objective == pytest.approx(before.solution_.objective, rel=1e-8)
    assert model.solution_.status == "converged" or model.solution_.relative_gap < 1e-10


@every_repair
def test_repaired_similarities_have_a_closed_form_and_held_out_predictions(repair):
    K, T = _indefinite(6), _indefinite(5, 1)
    X, good = Pairs.complete(K, T), Pairs.complete(REPAIRS[repair](K), REPAIRS[repair](T))
    y = np.random.default_rng(2).normal(size=30)
    model, before = fitted(RIDGE, X, y, indefinite=repair, **BOTH), fitted(RIDGE, good, y, **BOTH)
    assert model.n_iter_ == 1
    for setting in "ABCD":
        found = model.held_out_predictions(setting)
        np.testing.assert_allclose(found, before.held_out_predictions(setting), atol=1e-8)


@every_repair
def test_repaired_similarities_with_validation_folds_and_paths(repair):
    K = _indefinite(PAIRS.n_left)
    X = Pairs(K, PAIRS.right, PAIRS.left_index, PAIRS.right_index)
    model = RIDGE("precomputed", RBF(1.2), indefinite=repair, regularization=1e-2)
    data = X[~HELD_OUT], VALUES[~HELD_OUT]
    model.fit(*data, X_val=X[HELD_OUT], y_val=VALUES[HELD_OUT])
    found = concordance_index(VALUES[HELD_OUT], model.predict(X[HELD_OUT]))
    assert model.validation_score_.max() == pytest.approx(found, abs=1e-12)
    learned = clone(model).set_params(optimize=QUICK, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        learned.fit(X, VALUES)
    assert learned.optimization_path_.names == ("right RBF.length_scale", "variance")
    path = clone(model).set_params(tol=1e-12).fit_path(X, VALUES, [0.1, 1.0])
    kernels = {"left_kernel": "precomputed", "right_kernel": RBF(1.2)}
    alone = fitted(RIDGE, X, VALUES, indefinite=repair, regularization=1.0, **kernels)
    np.testing.assert_allclose(path[1].predict(X), alone.predict(X), atol=1e-5)


@every_repair
@every_estimator
def test_pickle_copy_and_skops_of_repaired_similarities(estimator, repair):
    skops = pytest.importorskip("skops.io")
    X = Pairs(_indefinite(PAIRS.n_left), PAIRS.right, PAIRS.left_index, PAIRS.right_index)
    options = {"max_iter": 5, "tol": 1e-2, "regularization": 1.0}
    model = estimator("precomputed", RBF(1.2), indefinite=repair, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        model.fit(X, target(estimator))
    stored = skops.dumps(model)
    types = skops.get_untrusted_types(data=stored)
    assert all(name.startswith("gramian.") for name in types)
    for other in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        skops.loads(stored, trusted=types),
    ):
        np.testing.assert_array_equal(latent(other, X), latent(model, X))
        assert other.kernel_ == model.kernel_
    again = estimator(pairwise_kernel=model.kernel_, **options)  # it knows its repair
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        again.fit(X, target(estimator))
    np.testing.assert_allclose(latent(again, X), latent(model, X), atol=1e-10)
