"""Estimators with operator="low_rank": the dense formula, small models, hierarchies, learning, and what is refused."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris

from gramian import KernelLogisticRegression, KernelRidge, KernelSVC
from gramian.kernels import RBF, Linear, White
from gramian.operators import LowRank
from gramian.selection import CrossValidationSearch

pytestmark = pytest.mark.usefixtures("one_thread")
every_estimator = pytest.mark.parametrize(
    "estimator", [KernelLogisticRegression, KernelSVC, KernelRidge], ids=lambda e: e.__name__
)
KERNEL = RBF(1.5) + White(0.05)


@pytest.fixture(scope="module")
def data():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def low_rank(estimator, **options):
    options = {"regularization": 0.1, "rank": 12, "random_state": 0, "tol": 1e-10} | options
    return estimator(options.pop("kernel", KERNEL), operator="low_rank", **options)


def latent(model, X):
    if isinstance(model, KernelRidge):
        return model.predict(X)[:, None]
    values = model.decision_function(X)
    return values if values.ndim == 2 else values[:, None]


# --- the dense formula --------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@every_estimator
def test_it_minimises_the_objective_of_the_dense_formula(estimator, n_classes, data):
    """M̃ as a precomputed matrix gives the coefficients; predictions are k(x, X_I) W + b."""
    X, y = data
    X, y = X[y < n_classes][:60], y[y < n_classes][:60]
    weights = np.linspace(0.5, 2.0, 60)
    operator = LowRank(KERNEL, X, 12, random_state=0)
    matrix = operator.to_dense()
    dense = estimator("precomputed", regularization=0.1, tol=1e-12).fit(matrix, y, weights)
    model = low_rank(estimator).fit(X, y, weights)
    rows, W = operator.compress(dense.dual_coef_)
    np.testing.assert_array_equal(model.X_fit_, rows)
    np.testing.assert_allclose(model.dual_coef_, W, atol=1e-3 * np.abs(W).max())
    np.testing.assert_allclose(model.intercept_, dense.intercept_, atol=1e-4)
    expected = KERNEL(X[:20], rows) @ W + dense.intercept_
    np.testing.assert_allclose(latent(model, X[:20]), expected, atol=1e-4)


@every_estimator
def test_all_examples_give_the_exact_model(estimator, data):
    X, y = data
    kernel = RBF(0.5)
    exact = estimator(kernel, regularization=0.1, tol=1e-12).fit(X, y)
    model = low_rank(estimator, kernel=kernel, rank=10_000, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(latent(model, X), latent(exact, X), atol=1e-5)


def test_a_linear_kernel_is_exact_with_as_many_examples_as_features(data):
    X, y = data
    exact = KernelLogisticRegression(Linear(), tol=1e-12, regularization=1.0).fit(X, y)
    model = low_rank(KernelLogisticRegression, kernel=Linear(), regularization=1.0, rank=50)
    model.fit(X, y)
    assert model.X_fit_.shape == (4, 4)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-4)


# --- the model ----------------------------------------------------------------------------------


@every_estimator
def test_the_model_keeps_the_active_set_only(estimator, data):
    X, y = data
    model = low_rank(estimator).fit(X, y)
    outputs = model.dual_coef_.shape[1]
    assert model.X_fit_.shape == (12, 4)
    assert model.dual_coef_.shape == (12, outputs)
    assert model.solution_.coefficients.shape == (12, outputs)
    assert model.operator_.name == "low_rank"
    assert model.operator_.n_samples == 150
    assert all(any((row == x).all() for x in X) for row in model.X_fit_)
    assert len(pickle.dumps(model)) < len(
        pickle.dumps(estimator(KERNEL, regularization=1.0).fit(X, y))
    )


@every_estimator
def test_a_seed_makes_fits_alike(estimator, data):
    X, y = data
    first, again = (low_rank(estimator).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.dual_coef_, again.dual_coef_)
    other = low_rank(estimator, random_state=1).fit(X, y)
    assert (first.X_fit_ != other.X_fit_).any()
    np.testing.assert_array_equal(clone(first).fit(X, y).X_fit_, first.X_fit_)


@every_estimator
def test_persistence(estimator, data):
    X, y = data
    model = low_rank(estimator).fit(X, y)
    copies = [pickle.loads(pickle.dumps(model))]
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(model)
    copies.append(skops.loads(stored, trusted=skops.get_untrusted_types(data=stored)))
    for copy in copies:
        np.testing.assert_array_equal(latent(copy, X), latent(model, X))


@every_estimator
def test_sparse_and_float32(estimator, data):
    X, y = data
    model = low_rank(estimator).fit(X, y)
    sparse = low_rank(estimator).fit(sp.csr_array(X), y)
    assert sp.issparse(sparse.X_fit_)
    np.testing.assert_allclose(latent(sparse, X), latent(model, X), atol=1e-5)
    X32 = X.astype(np.float32)
    single = low_rank(estimator, tol=1e-7).fit(X32, y)
    assert single.X_fit_.dtype == latent(single, X32).dtype == np.float32
    np.testing.assert_allclose(latent(single, X32), latent(model, X), atol=2e-3)


def test_a_weight_of_two_is_a_row_twice(data):
    X, y = data
    doubled = np.concatenate([X, X[:40]]), np.concatenate([y, y[:40]])
    weights = np.where(np.arange(150) < 40, 2.0, 1.0)
    kernel = Linear()  # of rank 4, so that the active set does not matter
    weighted = low_rank(KernelLogisticRegression, kernel=kernel, tol=1e-12).fit(X, y, weights)
    twice = low_rank(KernelLogisticRegression, kernel=kernel, tol=1e-12).fit(*doubled)
    np.testing.assert_allclose(weighted.predict_proba(X), twice.predict_proba(X), atol=1e-4)


def test_a_warm_start_begins_afresh(data):
    X, unique = np.unique(data[0], axis=0, return_index=True)
    y = data[1][unique]
    options = {"rank": len(X), "warm_start": True, "kernel": RBF(0.3)}
    model = low_rank(KernelLogisticRegression, **options).fit(X, y)
    assert model.dual_coef_.shape[0] == len(
        X
    )  # coefficients fit, but they are those of another problem
    first, steps = model.dual_coef_, model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ == steps
    np.testing.assert_array_equal(model.dual_coef_, first)


@pytest.mark.parametrize("share", ["tied", "level"])
def test_hierarchies(share, data):
    X, y = data
    tree = {"0": "root", "two": "root", "1": "two", "2": "two"}
    labels = y.astype(str)
    kernel = RBF(0.8, "fixed")  # one matrix for all nodes
    options = {"hierarchy": tree, "share": share, "kernel": kernel}
    exact = KernelLogisticRegression(tol=1e-12, regularization=0.1, **options).fit(X, labels)
    model = low_rank(KernelLogisticRegression, tol=1e-12, rank=150, **options).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-5)
    short = low_rank(KernelLogisticRegression, rank=20, **options).fit(X, labels)
    assert short.dual_coef_.shape == (20, 3)
    assert short.score(X, labels) > 0.9


# --- learning -----------------------------------------------------------------------------------


@every_estimator
def test_parameters_are_learned(estimator, data):
    X, y = data
    search = CrossValidationSearch(max_evaluations=40)
    options = {"optimize": search, "kernel": RBF(0.1), "rank": 20, "tol": 1e-8}
    model = low_rank(estimator, **options).fit(X, y)
    values = model.optimization_path_.loss
    assert values[model.optimization_path_.best] < 0.8 * values[0]
    assert model.X_fit_.shape == (20, 4)
    assert np.isfinite(latent(model, X)).all()


def test_with_all_examples_the_same_parameters_are_learned(data):
    X, y = data
    options = {"optimize": "cv", "regularization": 0.1}
    exact = KernelRidge(RBF(1.0), **options).fit(X, y)
    model = low_rank(KernelRidge, kernel=RBF(1.0), rank=150, **options).fit(X, y)
    np.testing.assert_allclose(model.cv_loss_, exact.cv_loss_, rtol=1e-2)


# --- the choice, and what is refused ------------------------------------------------------------


def test_a_rank_is_consent_where_the_matrix_does_not_fit(data):
    X, y = data
    assert KernelRidge(KERNEL, rank=5, regularization=1.0).fit(X, y).operator_.name == "dense"
    with sklearn.config_context(working_memory=0.1):
        model = KernelRidge(KERNEL, rank=5, random_state=0, regularization=1.0).fit(X, y)
    assert model.operator_.name == "low_rank"
    assert "more than working_memory" in model.operator_.reason
    assert model.X_fit_.shape == (5, 4)


def test_no_rank_means_the_default(data):
    X, y = data
    model = low_rank(KernelSVC, rank=None, kernel=RBF(0.3)).fit(X, y)
    assert model.X_fit_.shape[0] == np.unique(X, axis=0).shape[0]  # fewer than 1000


@every_estimator
@pytest.mark.parametrize(("rank", "error"), [(0, ValueError), (-3, ValueError), (2.5, TypeError)])
def test_a_bad_rank_is_named(estimator, rank, error, data):
    with pytest.raises(error, match="rank must be a whole number >= 1"):
        low_rank(estimator, rank=rank).fit(*data)


def test_separate_kernels_are_refused(data):
    model = low_rank(KernelLogisticRegression, share="class")
    with pytest.raises(ValueError, match=r"operator='low_rank' needs one kernel .*share='tied'"):
        model.fit(*data)
    assert not hasattr(model, "dual_coef_")


def test_precomputed_kernels_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="'auto' or 'dense' for a precomputed kernel"):
        low_rank(KernelRidge, kernel="precomputed").fit(X @ X.T, y)


def test_other_array_libraries_are_refused(data):
    xp = pytest.importorskip("array_api_strict")
    X, y = data
    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(TypeError, match="operator='low_rank' needs a NumPy or a sparse array"),
    ):
        low_rank(KernelLogisticRegression).fit(xp.asarray(X), xp.asarray(y))
