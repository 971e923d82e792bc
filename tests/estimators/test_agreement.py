"""Estimators against other people's software, against each other, and against identities they must satisfy.

All fits here are tight, so that two ways to the same optimum agree to many digits.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import lbfgs
from sklearn.datasets import load_iris, make_regression
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_sample_weight

from gramian import KernelLogisticRegression, KernelRidge, KernelSVC
from gramian.kernels import RBF, Linear, Matern, Polynomial
from gramian.labels import Identity
from gramian.losses import Softmax
from gramian.operators import Dense, Intercept, LabelMixed
from gramian.solvers import Problem, newton

TIGHT = 1e-17
CLASSIFIERS = [KernelLogisticRegression, KernelSVC]
ESTIMATORS = [*CLASSIFIERS, KernelRidge]


def _iris(n_classes=3):
    """Every second flower, standardised; two neighbouring classes overlap."""
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kept = y >= 3 - n_classes
    return X[kept][::2], y[kept][::2]


X3, Y3 = _iris(3)
X2, Y2 = _iris(2)
NEW = _iris(3)[0][:20] + 0.1


def data(estimator):
    """Inputs and targets that suit an estimator class: three classes, or a smooth function of the inputs."""
    return (X3, np.sin(X3[:, 0]) + X3[:, 1]) if estimator is KernelRidge else (X3, Y3)


def latent(model, X):
    """Real-valued outputs of a model."""
    return model.predict(X) if isinstance(model, KernelRidge) else model.decision_function(X)


def fitted(estimator, X=None, y=None, sample_weight=None, **params):
    """A tightly fitted model, by default on the data of `data`."""
    if X is None:
        X, y = data(estimator)
    params = {"tol": TIGHT, "regularization": 1.0, **params}
    return estimator(**params).fit(X, y, sample_weight=sample_weight)


# --- other people's software ------------------------------------------------------------------


@pytest.mark.parametrize("regularization", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_kernel_is_logistic_regression(n_classes, regularization):
    X, y = _iris(n_classes)
    ours = fitted(
        KernelLogisticRegression,
        X,
        y,
        kernel="linear",
        regularization=regularization,
        intercept_variance=0,
    )
    theirs = LogisticRegression(
        C=1 / regularization, fit_intercept=False, solver="newton-cg", tol=1e-12, max_iter=10_000
    ).fit(X, y)
    np.testing.assert_allclose(X.T @ ours.dual_coef_, theirs.coef_.T, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=1e-6)
    np.testing.assert_array_equal(ours.intercept_, 0)


@pytest.mark.parametrize("variance", [0.5, 4.0])
def test_intercept_is_a_constant_feature(variance):
    """An intercept of prior variance σ² is one more feature that is σ everywhere."""
    ours = fitted(
        KernelLogisticRegression, X3 + 1, Y3, kernel="linear", intercept_variance=variance
    )
    wider = np.column_stack([X3 + 1, np.full(len(X3), np.sqrt(variance))])
    theirs = LogisticRegression(
        C=1.0, fit_intercept=False, solver="newton-cg", tol=1e-12, max_iter=10_000
    ).fit(wider, Y3)
    weights, last = theirs.coef_[:, :-1].T, theirs.coef_[:, -1]
    np.testing.assert_allclose((X3 + 1).T @ ours.dual_coef_, weights, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, np.sqrt(variance) * last, atol=1e-6)
    assert np.abs(ours.intercept_).max() > 0.1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_intercept_is_a_sum_of_coefficients(estimator):
    model = fitted(estimator, intercept_variance=2.5)
    np.testing.assert_allclose(model.intercept_, 2.5 * model.dual_coef_.sum(axis=0), rtol=1e-12)


RIDGE_KERNELS = {
    "rbf": (RBF(1.7), gp.RBF(1.7)),
    "ard": (RBF([0.5, 1.0, 2.0, 4.0]), gp.RBF([0.5, 1.0, 2.0, 4.0])),
    "matern12": (Matern(1.3, nu=0.5), gp.Matern(1.3, nu=0.5)),
    "matern32": (Matern(1.3, nu=1.5), gp.Matern(1.3, nu=1.5)),
    "matern52": (3.0 * Matern(1.3, nu=2.5), 3.0 * gp.Matern(1.3, nu=2.5)),
    "linear": (Linear(), gp.DotProduct(0.0)),
    "polynomial": (
        Polynomial(degree=2, gamma=1.0, coef0=0.25),
        gp.Exponentiation(gp.DotProduct(0.5), 2),
    ),
}


@pytest.mark.parametrize("solver", ["exact", "kernel_cg", "newton"])
@pytest.mark.parametrize("name", RIDGE_KERNELS)
def test_kernel_ridge_is_scikit_learns(name, solver):
    """Two outputs, unequal weights, a matrix of Gaussian process kernels."""
    kernel, same = RIDGE_KERNELS[name]
    X, Y = make_regression(80, 4, n_targets=2, noise=5.0, random_state=0)
    Y = Y / Y.std()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    ours = fitted(
        KernelRidge,
        X,
        Y,
        weights,
        kernel=kernel,
        regularization=0.3,
        intercept_variance=0,
        solver=solver,
    )
    theirs = SklearnKernelRidge(alpha=0.3, kernel="precomputed").fit(same(X), Y, weights)
    new = X[:10] + 0.1
    np.testing.assert_allclose(ours.predict(new), theirs.predict(same(new, X)), atol=1e-8)
    np.testing.assert_allclose(
        kernel(X) @ ours.dual_coef_, kernel(X) @ theirs.dual_coef_, atol=1e-8
    )


def test_kernel_ridge_with_one_output_is_scikit_learns():
    X, y = make_regression(60, 3, random_state=1)
    y = y / y.std()
    ours = fitted(KernelRidge, X, y, kernel=RBF(2.0), regularization=0.1, intercept_variance=0)
    theirs = SklearnKernelRidge(alpha=0.1, kernel="rbf", gamma=1 / 8).fit(X, y)
    assert ours.predict(X).shape == (60,)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_kernel_svc_is_linear_svc(n_classes):
    X, y = _iris(n_classes)
    ours = fitted(KernelSVC, X, y, kernel="linear", regularization=0.5, intercept_variance=0)
    theirs = LinearSVC(
        C=1 / (2 * 0.5),
        loss="squared_hinge",
        dual=False,
        fit_intercept=False,
        tol=1e-12,
        max_iter=100_000,
    ).fit(X, y)
    np.testing.assert_allclose(X.T @ ours.dual_coef_, theirs.coef_.T, atol=1e-5)
    np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))


@pytest.mark.parametrize("regularization", [0.05, 2.0])
def test_svc_is_the_minimum_that_lbfgs_finds(regularization):
    kernel = RBF(1.5)
    model = fitted(KernelSVC, kernel=kernel, regularization=regularization, intercept_variance=0.7)
    K = kernel(X3) + 0.7
    total = 0.0
    for c in range(3):
        signs = np.where(Y3 == c, 1.0, -1.0)[:, None]
        minimum, U = lbfgs("SquaredHinge", K, signs, regularization)
        np.testing.assert_allclose(model.decision_function(X3)[:, c], U[:, 0], atol=1e-5)
        total += minimum
    np.testing.assert_allclose(model.solution_.objective, total, rtol=1e-9)


@pytest.mark.parametrize("length_scale", [0.5, 2.0])
def test_logistic_regression_is_the_posterior_mode_of_a_gaussian_process(length_scale):
    ours = fitted(
        KernelLogisticRegression, X2, Y2, kernel=4.0 * RBF(length_scale), intercept_variance=0
    )
    theirs = GaussianProcessClassifier(4.0 * gp.RBF(length_scale), optimizer=None).fit(X2, Y2)
    mode = theirs.base_estimator_.f_cached
    assert np.abs(mode).max() > 0.5
    np.testing.assert_allclose(ours.decision_function(X2), mode, atol=1e-5)


# --- one optimum, many ways -------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["kernel_cg", "exact"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_solver_finds_the_same_optimum(estimator, solver):
    one, other = fitted(estimator, solver="newton"), fitted(estimator, solver=solver)
    assert one.solution_.status == other.solution_.status == "converged"
    np.testing.assert_allclose(latent(other, NEW), latent(one, NEW), atol=1e-7)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameter_cg_finds_it_too(estimator):
    """The baseline: it works on 𝒦(𝒦 + λI), so few examples and fewer digits."""
    X, y = data(estimator)
    one = fitted(estimator, X[::4], y[::4], solver="newton")
    other = fitted(estimator, X[::4], y[::4], solver="parameter_cg", tol=1e-8)
    assert other.solution_.status == "converged"
    np.testing.assert_allclose(latent(other, NEW), latent(one, NEW), atol=3e-4)


@pytest.mark.parametrize("solver", ["newton", "exact"])
@pytest.mark.parametrize("operator", ["streamed", "linear"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_operator_gives_the_same_model(estimator, operator, solver):
    kernel = "linear" if operator == "linear" else "rbf"
    dense = fitted(estimator, kernel=kernel, operator="dense", solver="newton")
    other = fitted(estimator, kernel=kernel, operator=operator, solver=solver)
    assert (dense.operator_.name, other.operator_.name) == ("dense", operator)
    np.testing.assert_allclose(latent(other, NEW), latent(dense, NEW), atol=1e-7)


@pytest.mark.parametrize("operator", ["dense", "streamed"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_single_precision_gives_single_precision_and_comes_close(estimator, operator):
    X, y = data(estimator)
    double = fitted(estimator, X, y)
    single = fitted(estimator, X.astype(np.float32), y, tol=1e-9, operator=operator)
    new = NEW.astype(np.float32)
    assert single.dual_coef_.dtype == single.intercept_.dtype == np.float64  # as certified
    assert latent(single, new).dtype == np.float32
    np.testing.assert_allclose(latent(single, new), latent(double, NEW), atol=1e-3)


@pytest.mark.parametrize(
    "kernel", ["rbf", "matern12", "rational_quadratic", "linear", "polynomial"]
)
@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, sp.coo_array, sp.csc_array])
def test_sparse_input_gives_the_same_model(container, kernel):
    X = np.where(np.abs(X3) > 0.7, X3, 0)
    new = np.where(np.abs(NEW) > 0.7, NEW, 0)
    dense = fitted(KernelLogisticRegression, X, Y3, kernel=kernel)
    sparse = fitted(KernelLogisticRegression, container(X), Y3, kernel=kernel)
    for examples in (new, container(new)):
        np.testing.assert_allclose(
            sparse.decision_function(examples), dense.decision_function(new), atol=1e-7
        )
    np.testing.assert_allclose(
        dense.decision_function(container(new)), dense.decision_function(new), atol=1e-12
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_precomputed_is_the_kernel_itself(estimator):
    X, y = data(estimator)
    kernel = 2.0 * Matern(1.5, nu=1.5)
    itself = fitted(estimator, X, y, kernel=kernel)
    for K, K_new in [
        (kernel(X), kernel(NEW, X)),
        (sp.csr_array(kernel(X)), sp.csr_array(kernel(NEW, X))),
    ]:
        values = fitted(estimator, K, y, kernel="precomputed")
        np.testing.assert_allclose(latent(values, K_new), latent(itself, NEW), atol=1e-7)


# --- what comes in ----------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_data_frames(estimator, library):
    frames = pytest.importorskip(library)
    X, y = data(estimator)
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    frame = frames.DataFrame(dict(zip(names, X.T)))
    model = fitted(
        estimator, frame, frames.Series("target", y) if library == "polars" else frames.Series(y)
    )
    assert list(model.feature_names_in_) == names
    new = frames.DataFrame(dict(zip(names, NEW.T)))
    np.testing.assert_allclose(latent(model, new), latent(fitted(estimator), NEW), atol=1e-12)
    weights = np.linspace(1, 2, len(X))
    series = frames.Series("weight", weights) if library == "polars" else frames.Series(weights)
    np.testing.assert_allclose(
        latent(fitted(estimator, frame, y, series), new),
        latent(fitted(estimator, X, y, weights), NEW),
        atol=1e-12,
    )


@pytest.mark.parametrize("kind", [object, str])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_labels_may_be_strings(estimator, kind):
    names = np.array(["setosa", "versicolor", "virginica"], dtype=kind)
    model = fitted(estimator, X3, names[Y3])
    numbers = fitted(estimator, X3, Y3)
    assert list(model.classes_) == list(names)
    np.testing.assert_array_equal(model.predict(NEW), names[numbers.predict(NEW)])


@pytest.mark.parametrize("values", [[False, True], [-1.0, 1.0], [10, 7]])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_labels_may_be_anything_that_can_be_sorted(estimator, values):
    y = np.asarray(values)[(Y2 == Y2.max()).astype(int)]
    model = fitted(estimator, X2, y)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert model.predict(X2).dtype == y.dtype
    assert model.score(X2, y) > 0.9
    # the second class in sorting order is the positive one
    np.testing.assert_array_equal(
        model.predict(X2), model.classes_[(model.decision_function(X2) > 0).astype(int)]
    )


# --- weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_whole_weights_are_repeated_rows(estimator):
    """Weight 2 is the row twice, weight 0 is the row removed; also for the scale that comes from the data."""
    X, y = data(estimator)
    weights = np.arange(len(X)) % 3
    weighted = fitted(estimator, X, y, weights)
    repeated = fitted(estimator, np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(latent(weighted, NEW), latent(repeated, NEW), atol=1e-7)
    np.testing.assert_array_equal(weighted.dual_coef_[weights == 0], 0)
    assert np.abs(latent(weighted, NEW) - latent(fitted(estimator), NEW)).max() > 1e-3


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_number_as_weight_divides_the_regularization(estimator):
    X, y = data(estimator)
    heavy = fitted(estimator, X, y, 4.0)
    free = fitted(estimator, X, y, regularization=0.25)
    np.testing.assert_allclose(latent(heavy, NEW), latent(free, NEW), atol=1e-7)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 3.0, 2: 0.5}, {1: 3.0}])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_class_weights_are_sample_weights(estimator, class_weight):
    """The kernel's scale comes from the data alone, so it has to be a number for the two to agree."""
    kept = np.flatnonzero((Y3 != 2) | (np.arange(len(Y3)) % 3 == 0))
    X, y = X3[kept], Y3[kept]
    by_class = fitted(estimator, X, y, kernel=RBF(1.0), class_weight=class_weight)
    weights = compute_sample_weight(class_weight, y)
    by_example = fitted(estimator, X, y, weights, kernel=RBF(1.0))
    np.testing.assert_allclose(latent(by_class, NEW), latent(by_example, NEW), atol=1e-7)
    both = fitted(estimator, X, y, np.full(len(y), 2.0), kernel=RBF(1.0), class_weight=class_weight)
    product = fitted(estimator, X, y, 2 * weights, kernel=RBF(1.0))
    np.testing.assert_allclose(latent(both, NEW), latent(product, NEW), atol=1e-7)


# --- identities -------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_order_of_rows_does_not_matter(estimator):
    X, y = data(estimator)
    order = np.random.default_rng(0).permutation(len(X))
    one, other = fitted(estimator, X, y), fitted(estimator, X[order], y[order])
    np.testing.assert_allclose(latent(one, NEW), latent(other, NEW), atol=1e-7)
    np.testing.assert_allclose(one.dual_coef_[order], other.dual_coef_, atol=1e-6)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_order_of_classes_does_not_matter(estimator):
    new_name = np.array([2, 0, 1])  # of the old classes 0, 1, 2
    one, other = fitted(estimator, X3, Y3), fitted(estimator, X3, new_name[Y3])
    np.testing.assert_allclose(latent(one, NEW), latent(other, NEW)[:, new_name], atol=1e-7)
    np.testing.assert_array_equal(new_name[one.predict(NEW)], other.predict(NEW))


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_swapping_two_classes_changes_the_sign(estimator):
    one, other = fitted(estimator, X2, Y2), fitted(estimator, X2, -Y2)
    np.testing.assert_allclose(latent(one, NEW), -latent(other, NEW), atol=1e-7)


def test_logistic_regression_is_softmax_over_two_classes():
    """Two penalised functions f and −f cost twice as much as one of double height costs half: λ / 2."""
    kernel = RBF(1.5)
    binary = fitted(
        KernelLogisticRegression, X2, Y2, kernel=kernel, regularization=0.25, intercept_variance=2.0
    )
    indicator = (Y2[:, None] == np.unique(Y2)).astype(float)
    terms = [
        (Dense(kernel, X2), Identity()),
        (Intercept(2.0, indicator, len(X2)), Identity()),
    ]
    operator = LabelMixed(terms)
    U = operator @ newton(Problem(operator, Softmax(), indicator, 0.5), tol=TIGHT).coefficients
    np.testing.assert_allclose(U.sum(axis=1), 0, atol=1e-7)
    np.testing.assert_allclose(U[:, 1] - U[:, 0], binary.decision_function(X2), atol=1e-7)


def test_svc_is_one_against_the_rest():
    together = fitted(KernelSVC)
    for c in range(3):
        alone = fitted(KernelSVC, X3, np.where(Y3 == c, 1, 0))
        np.testing.assert_allclose(
            together.decision_function(NEW)[:, c], alone.decision_function(NEW), atol=1e-7
        )


def test_ridge_outputs_do_not_influence_each_other():
    Y = np.column_stack([np.sin(X3[:, 0]), X3[:, 1] ** 2, X3[:, 2] * X3[:, 3]])
    together = fitted(KernelRidge, X3, Y, solver="kernel_cg").predict(NEW)
    for j in range(3):
        alone = fitted(KernelRidge, X3, Y[:, j], solver="kernel_cg").predict(NEW)
        np.testing.assert_allclose(together[:, j], alone, atol=1e-7)


def test_probabilities_are_probabilities():
    for X, y in [(X2, Y2), (X3, Y3)]:
        model = fitted(KernelLogisticRegression, X, y, regularization=1e-3, tol=1e-12)
        P = model.predict_proba(NEW)
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
        assert P.min() > 0
        np.testing.assert_allclose(np.log(P), model.predict_log_proba(NEW), atol=1e-9)
        np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(NEW))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_kernel_variance_trades_off_with_regularization(estimator):
    """k with λ = 1 is v·k with λ = v: the same function, coefficients divided by v."""
    one = fitted(estimator, kernel=RBF(1.5), regularization=1.0, intercept_variance=0.5)
    other = fitted(
        estimator, kernel=7.0 * RBF(1.5), regularization=7.0, intercept_variance=7.0 * 0.5
    )
    np.testing.assert_allclose(latent(one, NEW), latent(other, NEW), atol=1e-7)
    np.testing.assert_allclose(one.dual_coef_, 7 * other.dual_coef_, atol=1e-6)
    np.testing.assert_allclose(one.solution_.objective, other.solution_.objective, rtol=1e-12)


# --- warm start -------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "kernel_cg"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_warm_start_needs_fewer_products_for_the_same_optimum(estimator, solver):
    X, y = data(estimator)
    model = estimator(regularization=0.10, tol=1e-12, solver=solver, warm_start=True).fit(X, y)
    model.set_params(regularization=0.11).fit(X, y)
    cold = estimator(regularization=0.11, tol=1e-12, solver=solver).fit(X, y)
    assert model.solution_.n_products < cold.solution_.n_products
    np.testing.assert_allclose(latent(model, NEW), latent(cold, NEW), atol=1e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_warm_start_at_the_optimum_ends_at_once(estimator):
    X, y = data(estimator)
    model = estimator(tol=1e-10, warm_start=True, regularization=1.0).fit(X, y)
    coefficients = model.dual_coef_
    model.fit(X, y)
    assert model.solution_.n_iter == 0
    assert model.n_iter_ == 1  # scikit-learn asks for at least one
    np.testing.assert_array_equal(model.dual_coef_, coefficients)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_warm_start_ignores_coefficients_of_another_shape(estimator):
    X, y = data(estimator)
    model = estimator(tol=TIGHT, warm_start=True, regularization=1.0).fit(X, y)
    model.fit(X[::2], y[::2])
    np.testing.assert_allclose(
        latent(model, NEW), latent(fitted(estimator, X[::2], y[::2]), NEW), atol=1e-7
    )


# --- the certificate --------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "kernel_cg"])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_gap_bounds_the_distance_to_the_optimum(estimator, tol, solver):
    """Objective: P(A) − P* ≤ gap. Latent values: |u(x) − u*(x)| ≤ √(k(x, x) · 2 gap / λ), for any x."""
    settings = {"kernel": 3.0 * RBF(0.8), "regularization": 0.2, "intercept_variance": 0.5}
    rough = fitted(estimator, tol=tol, solver=solver, **settings)
    best = fitted(estimator, tol=1e-16, solver="newton", **settings)
    excess = rough.solution_.objective - best.solution_.objective
    assert 0 < excess <= rough.solution_.gap <= tol * rough.solution_.objective
    lower = rough.solution_.history["objective"] - rough.solution_.history["gap"]
    assert (lower <= best.solution_.objective * (1 + 1e-12)).all()

    distance = np.abs(latent(rough, NEW) - latent(best, NEW)).reshape(len(NEW), -1)
    gaps = rough.solution_.gaps  # of each independent column: classes of the SVC, outputs of ridge
    bound = np.sqrt((3.0 + 0.5) * 2 * gaps / 0.2)
    assert 0 < distance.max()
    assert (distance <= bound[None, :]).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("solver", ["newton", "kernel_cg"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_gap_is_true_also_when_the_solver_stops_short(estimator, solver):
    settings = {"kernel": 3.0 * RBF(0.8), "regularization": 0.2}
    best = fitted(estimator, **settings)
    for max_iter in (1, 2, 3):
        rough = fitted(estimator, solver=solver, max_iter=max_iter, tol=1e-30, **settings)
        excess = rough.solution_.objective - best.solution_.objective
        assert excess <= rough.solution_.gap * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("solver", ["newton", "kernel_cg"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_gap_is_true_beyond_single_precision(solver):
    """Asked for more than float32 can hold, the gap is that of the coefficients, up to their rounding."""
    X, y = X3.astype(np.float32), Y3
    kernel = 3.0 * RBF(0.8)
    model = fitted(
        KernelLogisticRegression, X, y, kernel=kernel, solver=solver, tol=1e-20, max_iter=60
    )
    A = model.solution_.coefficients.astype(float)
    K = kernel(X).astype(float) + 1.0
    U = K @ A
    P = np.exp(U - U.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    rho = P - (y[:, None] == np.arange(3)) + A
    recomputed = float(np.sum(rho * (K @ rho))) / 2
    rounding = np.finfo(np.float32).eps ** 2 * model.solution_.objective
    assert recomputed <= 2 * model.solution_.gap + rounding
