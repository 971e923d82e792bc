"""What a fit says of itself is true: certificates of what is stored, weights, and numbers that cannot be held."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from gramian import (
    HierarchicalSVC,
    KernelCRF,
    KernelLogisticRegression,
    KernelRidge,
    KernelSVC,
    M3LClassifier,
    Pairs,
    PairwiseRidge,
    Sequences,
)
from gramian.kernels import RBF, Linear, Matern, Precomputed
from gramian.losses import Logistic, Squared, SquaredHinge
from gramian.operators import Dense
from gramian.solvers import Problem, kernel_cg, newton
from gramian.testing import check_certificate

# --- certificates of what is stored ---------------------------------------------------------------


def objective_of(K, A, loss, targets, regularization):
    U = np.einsum("ij,jcq->icq", K, A)
    return float(loss.value(U, targets, None)[0] + 0.5 * regularization * np.sum(A * U))


def single_precision(rng, n=120, d=3):
    return rng.normal(size=(n, d)).astype(np.float32)


CASES = {
    "ridge": (KernelRidge, RBF(2.0), Squared(), {"regularization": 1e-3}),
    "linear": (KernelSVC, Linear(), SquaredHinge(), {"regularization": 6e-4, "solver": "exact"}),
    "svc": (KernelSVC, RBF(1.0), SquaredHinge(), {"regularization": 1e-2}),
    "logistic": (KernelLogisticRegression, RBF(1.0), Logistic(), {"regularization": 1e-2}),
}


@pytest.mark.parametrize("case", CASES)
def test_single_precision_certificates_hold_for_the_stored_coefficients(case, rng):
    """The reported gap bounds the distance of the stored coefficients from the optimum, which is computed apart."""
    estimator, kernel, loss, options = CASES[case]
    X = single_precision(rng)
    signs = np.where(X[:, 0] + 0.3 * rng.normal(size=len(X)) > 0, 1.0, -1.0)
    y = X[:, 1] * signs if case == "ridge" else signs
    model = estimator(kernel, intercept_variance=0.0, optimize=None, **options).fit(X, y)
    assert model.dual_coef_.dtype == np.float64
    np.testing.assert_array_equal(model.solution_.coefficients, model.dual_coef_)
    wide = X.astype(np.float64)
    K = wide @ wide.T if case == "linear" else Dense(kernel, X).matrix.astype(np.float64)
    targets = ((y + 1) / 2 if case == "logistic" else y)[:, None, None]
    A = model.dual_coef_[:, :, None]
    stored = objective_of(K, A, loss, targets, options["regularization"])
    problem = Problem(Dense(Precomputed(), K), loss, targets, options["regularization"])
    best = newton(problem, tol=1e-13, max_iter=300)
    # sums of large terms of both signs leave 1e-10 of the objective
    assert stored - best.objective <= model.solution_.gap + 1e-10 * stored


def test_predictions_have_the_precision_of_the_examples(rng):
    X = single_precision(rng)
    y = np.sign(X[:, 0])
    ridge = KernelRidge(RBF(1.0), regularization=1.0)
    for model in (ridge, M3LClassifier(1.0), M3LClassifier(1.0, kernel="rbf")):
        values = model.fit(X, y)._latent(X, "predict")
        assert values.dtype == np.float32


# --- operators that are not positive semidefinite --------------------------------------------------


@pytest.mark.parametrize("solver", [newton, kernel_cg])
def test_a_negative_squared_norm_is_no_gap_of_zero(solver, rng):
    S = rng.normal(size=(30, 30))
    operator = Dense(Precomputed(), S + S.T)
    problem = Problem(operator, Logistic(), (rng.random((30, 1)) > 0.5).astype(float), 1e-3)
    with pytest.raises(ValueError, match=r"not positive semidefinite.*clip"):
        solver(problem)


# --- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [
    KernelLogisticRegression(RBF(1.0), regularization=0.1, class_weight="balanced", tol=1e-14),
    KernelSVC(RBF(1.0), regularization=0.1, class_weight="balanced", tol=1e-14),
    M3LClassifier(0.5, kernel=RBF(1.0), class_weight="balanced", tol=1e-13),
    HierarchicalSVC(None, C=0.5, kernel=RBF(1.0), class_weight="balanced", tol=1e-9),
], ids=lambda e: type(e).__name__)  # fmt: skip
def test_balanced_classes_count_weights_as_rows(estimator, rng):
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0.5, "a", "b")
    weights = rng.integers(1, 4, size=60)
    weighted = estimator.fit(X, y, sample_weight=weights.astype(float)).decision_function(X)
    repeated = estimator.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted, repeated.decision_function(X), atol=1e-4)


def test_balanced_labels_count_weights_as_rows(rng):
    X, weights = rng.normal(size=(60, 2)), rng.integers(1, 4, size=60)
    Y = (X + 0.5 > 0).astype(int)
    model = M3LClassifier(0.5, kernel=RBF(1.0), class_weight="balanced", tol=1e-13)
    weighted = model.fit(X, Y, sample_weight=weights.astype(float)).decision_function(X)
    repeated = model.fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    np.testing.assert_allclose(weighted, repeated.decision_function(X), atol=1e-4)


# --- numbers that cannot be held -------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e40, 1e-50])
@pytest.mark.parametrize("optimize", [None, "auto"])
def test_targets_beyond_single_precision_are_refused(size, optimize, rng):
    X = single_precision(rng, n=30)
    y = size * X[:, 0].astype(np.float64)
    model = KernelRidge(optimize=optimize)
    with pytest.raises(ValueError, match=r"y has values of size.*float32.*float64"):
        model.fit(X, y)
    fitted = KernelRidge(RBF(1.0), regularization=1e-6).fit(X.astype(np.float64), y)
    assert fitted.score(X.astype(np.float64), y) > 0.9
    pairs = Pairs(X, X, np.arange(30), np.arange(30)[::-1])
    with pytest.raises(ValueError, match="y has values of size"):
        PairwiseRidge(regularization=1.0).fit(pairs, y)


# --- convergence -----------------------------------------------------------------------------------


def test_a_gap_of_rounding_is_convergence():
    """Labels that have nothing to do with X: the best function is zero, and J cannot fall."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.array(list("abcd"))[np.arange(40) % 4]
    tree = {"P": ["a", "b"], "Q": ["c", "d"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for C in (1e-6, 1e-3, 1.0):
            model = HierarchicalSVC(tree, C=C).fit(X, y)
            assert model.solution_.status == "converged"


# --- what is kept is the model's own ----------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(RBF(1.0), regularization=1.0),
        KernelSVC(RBF(1.0), regularization=1.0),
        KernelLogisticRegression(RBF(1.0), regularization=1.0),
        M3LClassifier(1.0, kernel=RBF(1.0)),
        HierarchicalSVC({"P": [0, 1]}, C=1.0, kernel=RBF(1.0)),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_changing_x_after_a_fit_changes_nothing(model, dtype, rng):
    X, new = (rng.normal(size=(20, 3)).astype(dtype) for _ in range(2))
    y = (np.arange(20) // 2) % 2
    answer = "predict" if isinstance(model, KernelRidge) else "decision_function"
    before = getattr(model.fit(X, y), answer)(new)
    X[:] = 0.0
    np.testing.assert_array_equal(getattr(model, answer)(new), before)


def test_without_a_copy_the_model_keeps_x_itself(rng):
    X = rng.normal(size=(20, 3))
    model = KernelRidge(RBF(1.0), regularization=1.0, copy_X=False).fit(X, X[:, 0])
    assert np.shares_memory(model.X_fit_, X)


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_tables_of_pairs_are_copied(kernel, rng):
    root = rng.normal(size=(4, 4))
    table = root @ root.T
    left, right = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
    pairs = Pairs(table, None, left, right)
    model = PairwiseRidge(kernel, regularization=1.0).fit(pairs, rng.normal(size=16))
    new = Pairs(table.copy(), None, left, right)
    before = model.predict(new)
    table[:] = 1.0
    np.testing.assert_array_equal(model.predict(new), before)


# --- estimators whose optimum only L-BFGS knows -----------------------------------------------------------


def test_the_gap_of_a_hierarchy_in_single_precision():
    """Rows in float32 of a matrix with a large intercept: bounds were those of rounded sums."""
    points = [
        -0.87293947,
        -1.1317614,
        0.6272973,
        0.27182275,
        -1.4555264,
        0.7060599,
        0.11019177,
        -0.47885096,
        -0.7879131,
    ]
    X, y = np.array(points, dtype=np.float32)[:, None], np.array([0, 1, 2, 3, 2, 0, 1, 3, 2])
    model = HierarchicalSVC(
        {"P": [0, 1], "Q": {"R": [2, 3]}},
        "similarity",
        C=29.13,
        kernel=Matern(1.1011),
        intercept_variance=100.0,
        tol=1e-6,
        random_state=55,
    )
    check_certificate(model, X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["flat", "orthogonal"])
@pytest.mark.parametrize("kernel", [Linear(), RBF(1.0)])
def test_the_gaps_of_hierarchies(method, kernel, dtype, rng):
    X, y = rng.normal(size=(12, 2)).astype(dtype), np.arange(12) % 4
    tree = {"P": [0, 1], "Q": {"R": [2, 3]}}
    distance = check_certificate(
        HierarchicalSVC(tree, method, C=1.0, kernel=kernel, tol=1e-2), X, y
    )
    assert distance > 0  # L-BFGS is better than a tolerance of 1 %


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_gap_of_label_sequences(dtype, rng):
    X = Sequences(rng.normal(size=(12, 2)).astype(dtype), [5, 0, 1, 6])
    y = X.split(np.arange(12) % 3)
    model = KernelCRF(RBF(1.0), regularization=0.1, transition_variance=2.0, tol=1e-2)
    assert check_certificate(model, X, y, rng.random(4)) > 0


def test_a_gap_that_is_too_small_is_noticed(monkeypatch, rng):
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 4
    model = HierarchicalSVC({"P": [0, 1], "Q": [2, 3]}, C=1.0, tol=0.1)
    solved = HierarchicalSVC._solve
    monkeypatch.setattr(
        HierarchicalSVC, "_solve", lambda *a, **k: replace(solved(*a, **k), gap=0.0)
    )
    with pytest.raises(AssertionError, match=r"reports a gap of 0\.000e"):
        check_certificate(model, X, y)
