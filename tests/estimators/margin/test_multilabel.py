"""M3LClassifier: kinds of y, costs and weights, what is stored, probabilities, searches, callbacks, persistence."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from gramian import M3LClassifier
from gramian.estimators.margin.calibration import fit_sigmoids, sigmoids
from gramian.kernels import RBF, Linear, Precomputed
from gramian.labels import empirical_correlation

pytestmark = pytest.mark.usefixtures("one_thread")


def _data():
    X, Y = make_multilabel_classification(60, 5, n_classes=4, n_labels=2, random_state=3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[:45], Y[:45], X[45:]


X, Y, NEW = _data()
SIGNS = 2 * Y - 1
CLASSES = Y[:, :2] @ [1, 2]  # four classes that exclude each other
R = np.array(
    [[1.0, 0.4, -0.3, 0.0], [0.4, 1.0, 0.1, 0.2], [-0.3, 0.1, 1.0, -0.4], [0.0, 0.2, -0.4, 1.0]]
)
DOMINANT = 0.5 * R + 0.5 * np.eye(4)
NAMES = ["sky", "sea", "city", "night"]
TIGHT = {"tol": 1e-12}
SOLVERS = [
    ("linear", "smo"),
    ("linear", "blocked"),
    ("linear", "coordinate"),
    ("rbf", "smo"),
    ("rbf", "blocked"),
]


def decided(model, y=Y, sample_weight=None):
    """Decision values for new examples of a model fitted to y."""
    return model.fit(X, y, sample_weight=sample_weight).decision_function(NEW)


def close(one, other, atol=2e-5):
    np.testing.assert_allclose(one, other, rtol=0, atol=atol)


def by_sweeps(K, signs, caps, margins=1.0, correlation=None):
    """Coefficients A R by plain sweeps over single coefficients: slow and obvious."""
    n, n_labels = signs.shape
    mix = np.eye(n_labels) if correlation is None else correlation
    caps, margins = np.broadcast_to(caps, (n, n_labels)), np.broadcast_to(margins, (n, n_labels))
    A = np.zeros((n, n_labels))
    for _ in range(3000):
        before = A.copy()
        for i, label in np.ndindex(n, n_labels):
            slope = margins[i, label] - signs[i, label] * (K[i] @ A @ mix[:, label])
            alpha = signs[i, label] * A[i, label] + slope / (K[i, i] * mix[label, label])
            A[i, label] = signs[i, label] * np.clip(alpha, 0, caps[i, label])
        if np.abs(A - before).max() < 1e-9:
            break
    return A @ mix


# --- the model --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def optimum():
    """Decision values at the optimum for the first examples, by kernel."""
    values = {}
    for kernel in (Linear(), RBF(2.0)):
        K, K_new = kernel(X[:14]) + 0.7, kernel(NEW, X[:14]) + 0.7
        values[repr(kernel)] = K_new @ by_sweeps(K, SIGNS[:14], 0.4, correlation=R)
    return values


@pytest.mark.parametrize(("kernel", "solver"), SOLVERS)
def test_every_solver_finds_the_optimum(optimum, kernel, solver):
    kernel = Linear() if kernel == "linear" else RBF(2.0)
    tol = (
        1e-9 if solver == "coordinate" else 1e-12
    )  # single steps reach no more in a thousand sweeps
    model = M3LClassifier(
        0.2, R, kernel, loss="hamming", solver=solver, intercept_variance=0.7, tol=tol
    )
    model.fit(X[:14], Y[:14])
    close(model.decision_function(NEW), optimum[repr(kernel)])
    assert model.solver_ == solver
    assert model.solution_.status == "converged"


def test_without_correlation_labels_are_alone():
    together = decided(M3LClassifier(0.7, kernel=RBF(2.0), **TIGHT))
    identity = decided(M3LClassifier(0.7, np.eye(4), RBF(2.0), **TIGHT))
    alone = [decided(M3LClassifier(0.7, kernel=RBF(2.0), **TIGHT), Y[:, j]) for j in range(4)]
    close(together, np.array(alone).T)
    close(together, identity)


@pytest.mark.parametrize(("loss", "theirs"), [("hamming", "hinge"), ("squared_hinge",) * 2])
def test_linear_model_is_linear_svc(loss, theirs):
    """With twice the C; the extra feature is LinearSVC's own way to have an intercept."""
    model = M3LClassifier(0.05, loss=loss, intercept_variance=4.0, **TIGHT).fit(X, Y)
    for label in range(4):
        other = LinearSVC(C=0.1, loss=theirs, intercept_scaling=2.0, tol=1e-9, max_iter=10**6)
        other.fit(X, Y[:, label])
        close(model.coef_[label], other.coef_[0], atol=1e-4)
        close(model.intercept_[label], other.intercept_[0], atol=1e-4)


@pytest.mark.parametrize("solver", ["coordinate", "blocked"])
def test_variance_of_a_linear_kernel(solver):
    model = M3LClassifier(0.2, R, 2.25 * Linear(), intercept_variance=0, solver=solver, **TIGHT)
    scaled = M3LClassifier(0.2, R, intercept_variance=0, solver=solver, **TIGHT).fit(1.5 * X, Y)
    close(decided(model), scaled.decision_function(1.5 * NEW))
    close(model.coef_, 1.5 * scaled.coef_)


def test_correlation_shapes_a_label_without_positive_examples():
    """By itself it is a constant; with a correlation it follows the other label, here in the opposite direction."""
    y = Y[:, :2].copy()
    y[:, 1] = 0
    opposed = np.array([[1.0, -0.9], [-0.9, 1.0]])
    hinge = M3LClassifier(1.0, loss="hamming", solver="smo", **TIGHT)
    assert decided(hinge, y)[:, 1].std() < 1e-6
    own, shaped = decided(hinge.set_params(label_correlation=opposed), y).T
    assert shaped.std() > 0.05
    assert np.corrcoef(own, shaped)[0, 1] < -0.8
    assert (shaped < 0).all()


@pytest.mark.parametrize("value", [0, 1])
def test_a_constant_label_is_predicted(value):
    y = Y.copy()
    y[:, 2] = value
    for kernel in ("linear", "rbf"):
        assert (M3LClassifier(1.0, kernel=kernel).fit(X, y).predict(NEW)[:, 2] == value).all()


def test_intercept_is_a_constant_feature():
    with_one = np.hstack([X, np.full((45, 1), 1.5)])
    plain = M3LClassifier(0.2, R, intercept_variance=0, **TIGHT).fit(with_one, Y)
    model = M3LClassifier(0.2, R, intercept_variance=2.25, **TIGHT).fit(X, Y)
    close(model.coef_, plain.coef_[:, :5])
    close(model.intercept_, 1.5 * plain.coef_[:, 5])
    np.testing.assert_array_equal(plain.intercept_, 0)


def test_precomputed_kernel():
    kernel = RBF(2.0)
    expected = decided(M3LClassifier(0.5, R, kernel, **TIGHT))
    for precomputed in ("precomputed", 1.0 * Precomputed()):
        model = M3LClassifier(0.5, R, precomputed, **TIGHT).fit(kernel(X), Y)
        close(model.decision_function(kernel(NEW, X)), expected)
        close(model.decision_function(sp.csr_array(kernel(NEW, X))), expected)
        assert not hasattr(model, "X_fit_")
    folds = KFold(3)
    close(
        cross_val_score(M3LClassifier(1.0, kernel=kernel, **TIGHT), X, Y, cv=folds),
        cross_val_score(M3LClassifier(1.0, kernel="precomputed", **TIGHT), kernel(X), Y, cv=folds),
    )


def test_solver_is_chosen():
    """Features for a linear kernel; the Gram matrix for few examples, measured by the entries of one."""
    rng = np.random.default_rng(0)
    few, many, wide = (rng.normal(size=shape) for shape in [(50, 25), (1200, 2), (1010, 1020)])
    signs = np.where(rng.normal(size=(1200, 2)) > 0, 1, -1)
    loose = {"C": 1e-6, "tol": 0.5}

    def chosen(X, R=None, **options):
        return (
            M3LClassifier(label_correlation=R, **loose, **options)
            .fit(X, signs[: X.shape[0]])
            .solver_
        )

    assert chosen(few) == "blocked"
    assert chosen(many) == "coordinate"
    assert chosen(sp.csr_array(many), kernel=2.0 * Linear()) == "coordinate"
    assert chosen(many, np.eye(2)) == "coordinate"
    assert chosen(wide) == "blocked"
    assert chosen(sp.csr_array(wide)) == "blocked"
    assert chosen(many, kernel="rbf") == "blocked"
    with sklearn.config_context(working_memory=1e-6):
        assert chosen(few) == "coordinate"


# --- kinds of y -------------------------------------------------------------------------------


def test_kinds_of_y():
    """The same model whatever the coding, and predictions in the coding of y."""
    model = M3LClassifier(0.5, R).fit(X, Y)
    values, labels = model.decision_function(NEW), model.predict(NEW)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, (values > 0).astype(int))
    kinds = {
        "signs": (SIGNS, 2 * labels - 1, [-1, 1]),
        "bool": (Y.astype(bool), labels.astype(bool), [False, True]),
        "float": (Y.astype(np.float32), labels, [0, 1]),
        "list": (Y.tolist(), labels, [0, 1]),
        "frame": (pd.DataFrame(Y, columns=NAMES), labels, [0, 1]),
        "mixed frame": (pd.DataFrame(Y, columns=NAMES).astype({"sea": bool, "sky": object}), labels, [0, 1]),
    }  # fmt: skip
    for name, (y, expected, classes) in kinds.items():
        other = M3LClassifier(0.5, R).fit(X, y)
        predicted = other.predict(NEW)
        assert type(predicted) is np.ndarray, name
        np.testing.assert_array_equal(predicted, expected)
        assert predicted.dtype == expected.dtype
        np.testing.assert_array_equal(other.decision_function(NEW), values)
        assert [entry.tolist() for entry in other.classes_] == [classes] * 4
    assert model.score(X, Y) > 0.3


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix])
@pytest.mark.parametrize("dtype", [np.int64, np.float64, bool])
def test_sparse_y(container, dtype):
    model = M3LClassifier(0.5, R).fit(X, container(Y.astype(dtype)))
    predicted = model.predict(NEW)
    assert predicted.format == "csr"
    assert isinstance(predicted, sp.sparray) == issubclass(container, sp.sparray)
    np.testing.assert_array_equal(predicted.toarray(), M3LClassifier(0.5, R).fit(X, Y).predict(NEW))
    assert model.score(X, container(Y)) == model.score(X, Y)


def test_sparse_y_with_stored_zeros():
    y = sp.csr_array(Y + 5)
    y.data -= 5
    np.testing.assert_array_equal(decided(M3LClassifier(1.0), y), decided(M3LClassifier(1.0)))


def test_one_column():
    column = M3LClassifier(1.0).fit(X, Y[:, :1])
    flat = M3LClassifier(1.0).fit(X, Y[:, 0])
    assert column.predict(NEW).shape == column.decision_function(NEW).shape == (15, 1)
    assert flat.predict(NEW).shape == flat.decision_function(NEW).shape == (15,)
    np.testing.assert_array_equal(column.decision_function(NEW)[:, 0], flat.decision_function(NEW))
    with pytest.warns(DataConversionWarning):
        several = M3LClassifier(1.0).fit(X, CLASSES[:, None])
    assert several.predict(NEW).shape == (15,)


@pytest.mark.parametrize("names", [["no", "yes"], [-1, 1], [7, 3], [False, True]])
def test_binary_y(names):
    classes = np.array(names)
    model = M3LClassifier(0.5).fit(X, classes[Y[:, 0]])
    np.testing.assert_array_equal(model.classes_, np.unique(classes))
    assert set(model.predict(NEW)) <= set(classes)
    np.testing.assert_array_equal(
        model.predict(NEW), model.classes_[(model.decision_function(NEW) > 0).astype(int)]
    )
    assert model.score(X, classes[Y[:, 0]]) > 0.8


def test_multi_class_y_is_one_column_for_each_class():
    names = np.array(["d", "a", "c", "b"])
    order = np.argsort(names)
    indicator = (CLASSES[:, None] == np.arange(4))[:, order]
    expected = decided(M3LClassifier(0.5, R), indicator)
    model = M3LClassifier(0.5, R)
    np.testing.assert_array_equal(decided(model, names[CLASSES]), expected)
    np.testing.assert_array_equal(model.predict(NEW), names[order][expected.argmax(axis=1)])
    frame = pd.DataFrame(R, index=names[order], columns=names[order]).loc[names, names]
    np.testing.assert_array_equal(decided(M3LClassifier(0.5, frame), names[CLASSES]), expected)


def test_names_of_labels():
    """R comes in the order of y, whatever its own."""
    y = pd.DataFrame(Y, columns=NAMES)
    shuffled = pd.DataFrame(R, index=NAMES, columns=NAMES).iloc[[2, 0, 3, 1], [2, 0, 3, 1]]
    model = M3LClassifier(0.5, shuffled).fit(pd.DataFrame(X, columns=list("vwxyz")), y)
    assert model.label_names_.tolist() == NAMES
    assert model.feature_names_in_.tolist() == list("vwxyz")
    np.testing.assert_array_equal(model.label_correlation_, R)
    model.fit(X, Y, None)
    assert not hasattr(model, "label_names_")


def test_names_have_to_match():
    y = pd.DataFrame(Y, columns=NAMES)
    other = pd.DataFrame(R, index=[*NAMES[:3], "day"], columns=[*NAMES[:3], "day"])
    with pytest.raises(ValueError, match="night"):
        M3LClassifier(0.5, other).fit(X, y)


def test_correlation_from_y():
    expected = empirical_correlation(Y, shrinkage=0.2)
    model = M3LClassifier(0.5, lambda signs: empirical_correlation(signs, shrinkage=0.2)).fit(X, Y)
    close(model.label_correlation_, expected, atol=1e-12)
    close(model.decision_function(NEW), decided(M3LClassifier(0.5, expected)), atol=1e-12)
    assert M3LClassifier(1.0).fit(X, Y).label_correlation_ is None
    M3LClassifier(1.0, label_correlation=lambda signs: np.full((1, 1), 2.0)).fit(X, Y[:, 0])


# --- costs and weights ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_hamming_loss_in_other_words(kernel):
    expected = decided(M3LClassifier(0.5, R, kernel, loss="hamming"))
    same = [np.full(4, 2.0), np.full((2, 4), 2.0), [2, 2, 2, 2], lambda signs: 2.0 + 0 * signs]
    for loss in same:
        close(decided(M3LClassifier(0.5, R, kernel, loss=loss)), expected, atol=1e-12)


@pytest.mark.parametrize("kernel", [Linear(), RBF(2.0)])
def test_costs(kernel):
    """Costs of false alarms and of missed labels, or any others: margins are half of them."""
    table = np.array([[1.0, 2.0, 0.5, 3.0], [2.0, 0.0, 4.0, 1.0]])
    costs = np.where(Y[:14] == 1, table[1], table[0])
    K, K_new = kernel(X[:14]) + 1, kernel(NEW, X[:14]) + 1
    expected = K_new @ by_sweeps(K, SIGNS[:14], 0.4, costs / 2, R)
    for loss in (table, lambda signs: np.where(signs > 0, table[1], table[0])):
        model = M3LClassifier(0.2, R, kernel, loss=loss, **TIGHT).fit(X[:14], Y[:14])
        close(model.decision_function(NEW), expected)
    model = M3LClassifier(0.2, R, kernel, loss=table[0], **TIGHT).fit(X[:14], Y[:14])
    expected = K_new @ by_sweeps(K, SIGNS[:14], 0.4, table[0] / 2, R)
    close(model.decision_function(NEW), expected)


def test_costs_of_nothing():
    """No cost, no function: then there are no support vectors."""
    for kernel in ("linear", "rbf"):
        values = decided(M3LClassifier(0.5, R, kernel, loss=np.zeros(4)))
        np.testing.assert_array_equal(values, np.zeros((15, 4)))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_loss_from_the_kernel(kernel):
    model = M3LClassifier(0.5, DOMINANT, kernel, loss="correlation", **TIGHT)
    costs = 2 * SIGNS * (SIGNS @ DOMINANT)
    assert costs.min() > 0
    close(decided(model), decided(M3LClassifier(0.5, DOMINANT, kernel, loss=lambda _: costs, **TIGHT)))  # fmt: skip
    independent = M3LClassifier(0.5, None, kernel, loss="correlation", **TIGHT)
    hamming = M3LClassifier(0.5, kernel=kernel, loss="hamming", **TIGHT)
    close(decided(independent), decided(hamming))


def test_loss_from_the_kernel_needs_weak_correlations():
    strong = np.full((4, 4), 0.9) + 0.1 * np.eye(4)
    with pytest.raises(ValueError, match=r"loss='correlation'.*-1\.7.*shrunk"):
        M3LClassifier(0.5, strong, loss="correlation").fit(X, Y)


@pytest.mark.parametrize("kernel", ["linear", RBF(2.0)])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_weights_are_repetitions(kernel, container):
    weights = np.arange(45) % 3
    model = M3LClassifier(0.3, R, kernel, **TIGHT)
    weighted = clone(model).fit(container(X), Y, sample_weight=weights)
    repeated = clone(model).fit(container(np.repeat(X, weights, axis=0)), np.repeat(Y, weights, 0))
    close(weighted.decision_function(NEW), repeated.decision_function(NEW))
    if kernel != "linear":
        assert not np.isin(weighted.support_, np.flatnonzero(weights == 0)).any()


def test_class_weights_are_sample_weights():
    weights = np.where(Y[:, 0] == 1, 3.0, 0.5)
    expected = decided(M3LClassifier(0.3, **TIGHT), Y[:, 0], sample_weight=weights)
    flat = M3LClassifier(0.3, class_weight={0: 0.5, 1: 3.0}, **TIGHT)
    close(decided(flat, Y[:, 0]), expected)
    close(decided(flat, Y[:, :1])[:, 0], expected)
    for keys in ({-1: 0.5, 1: 3.0}, {False: 0.5, True: 3.0}):
        close(decided(M3LClassifier(0.3, class_weight=keys, **TIGHT), SIGNS[:, :1])[:, 0], expected)
    each = [{0: 0.5, 1: 3.0}, {}, {1: 2.0}, {0: 0.1}]
    several = M3LClassifier(0.3, class_weight=each, **TIGHT)
    close(decided(several)[:, 0], expected)
    close(decided(several)[:, 1], decided(M3LClassifier(0.3, **TIGHT))[:, 1])


def test_balanced_class_weights():
    """As scikit-learn has them, for each label by itself; labels of one class only do no harm."""
    balanced = M3LClassifier(0.3, class_weight="balanced", **TIGHT)
    counts = Y.sum(axis=0)
    each = [{0: 45 / (2 * (45 - count)), 1: 45 / (2 * count)} for count in counts]
    close(decided(balanced), decided(M3LClassifier(0.3, class_weight=each, **TIGHT)))
    close(decided(balanced)[:, 2], decided(balanced, Y[:, 2]))
    y = Y.copy()
    y[:, 1] = 1
    assert np.isfinite(decided(balanced, y)).all()
    several = M3LClassifier(0.3, class_weight={0: 2.0, 3: 0.5}, **TIGHT)
    weights = np.array([2.0, 1.0, 1.0, 0.5])[CLASSES]
    close(decided(several, CLASSES), decided(M3LClassifier(0.3, **TIGHT), CLASSES, weights))


# --- what a fit leaves behind -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "dtype"), [(np.asarray, np.float32), (sp.csr_array, np.float64)]
)
@pytest.mark.parametrize(("kernel", "solver"), SOLVERS)
def test_fitted_attributes(kernel, solver, dtype, container):
    model = M3LClassifier(0.02, R, kernel, loss="hamming", solver=solver)
    model.fit(container(X.astype(dtype)), Y)
    if kernel == "linear":
        assert model.coef_.shape == (4, 5)
        assert model.coef_.dtype == np.float64
        assert not {"X_fit_", "dual_coef_", "support_"} & set(dir(model))
    else:
        n_support = model.support_.size
        assert 0 < n_support <= 45
        assert model.dual_coef_.shape == (n_support, 4)
        assert model.X_fit_.shape == (n_support, 5)
        assert model.X_fit_.dtype == dtype
        assert model.dual_coef_.dtype == np.float64
        assert not hasattr(model, "coef_")
    assert model.intercept_.dtype == np.float64
    values = model.decision_function(container(NEW.astype(dtype)))
    assert values.dtype == dtype
    reference = clone(model).set_params(**TIGHT).fit(X, Y)
    close(values, reference.decision_function(NEW), atol=0.02)
    for other in (NEW.astype(dtype), sp.csr_array(NEW.astype(dtype))):
        close(model.decision_function(other), values, atol=1e-5)
    solution = model.solution_
    assert solution.status == "converged"
    assert solution.coefficients is None
    assert solution.latent is None
    assert model.n_iter_ == max(1, solution.n_iter)
    assert 0 <= solution.gap <= 1e-4 * solution.objective
    assert solution.gaps.shape == (4,)


def test_only_support_vectors_are_kept():
    """Far examples on the right side of the margin do not matter."""
    far = np.vstack([X, [[30.0] * 5]])
    y = np.vstack([Y, [[1, 0, 1, 0]]])
    model = M3LClassifier(10.0, kernel=RBF(0.8)).fit(far, y)
    assert model.support_.size <= 46
    np.testing.assert_array_equal(model.X_fit_, far[model.support_])


def test_another_kernel_leaves_nothing_behind():
    model = M3LClassifier(1.0, probability=True, cv=2).fit(X, Y)
    model.set_params(kernel="rbf", probability=False).fit(X, Y)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "calibration_")
    model.set_params(kernel="linear").fit(X, Y)
    assert not hasattr(model, "X_fit_")


def test_stopping_short_is_said():
    model = M3LClassifier(100.0, R, max_iter=1, tol=1e-14)
    with pytest.warns(ConvergenceWarning, match="tol=1.00e-14"):
        model.fit(X, Y)
    assert model.n_iter_ == 1
    assert model.predict(NEW).shape == (15, 4)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_warm_start(kernel):
    model = M3LClassifier(0.5, R, kernel, warm_start=True, tol=1e-6).fit(X, Y)
    first, values = model.n_iter_, model.decision_function(NEW)
    assert model.solution_.coefficients.shape == (45, 4)
    again = model.fit(X, Y)
    assert again.solution_.n_iter <= 1 < first
    close(again.decision_function(NEW), values, atol=1e-3)
    close(
        decided(model.set_params(C=0.1, tol=1e-12)), decided(M3LClassifier(0.1, R, kernel, **TIGHT))
    )
    model.fit(X[:20], Y[:20])  # other examples: from the beginning
    assert model.solution_.coefficients.shape == (20, 4)


def test_random_state():
    one, other = (M3LClassifier(R.shape[0], R, random_state=s, **TIGHT) for s in (1, 2))
    close(decided(one), decided(other))
    np.testing.assert_array_equal(decided(M3LClassifier(0.5, R)), decided(M3LClassifier(0.5, R)))
    M3LClassifier(1.0, random_state=np.random.RandomState(0)).fit(X, Y)


# --- probabilities ----------------------------------------------------------------------------


def _noisy():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    latent = X @ [[2, 0, 1], [0, 2, -1], [1, -1, 1]] + [0.0, 1.0, -1.0]
    return X, (latent + rng.normal(size=latent.shape) > 0).astype(int)


@pytest.mark.parametrize("kernel", ["linear", RBF(1.5)])
def test_probabilities_are_calibrated(kernel):
    """They rise with the decision values, and are better than those values cut to the unit interval."""
    X, Y = _noisy()
    model = M3LClassifier(0.5, np.eye(3) + 0.1, kernel, loss="hamming", probability=True, cv=4)
    model.fit(X[:200], Y[:200])
    P, values = model.predict_proba(X[200:]), model.decision_function(X[200:])
    assert P.shape == (200, 3)
    assert model.calibration_.shape == (2, 3)
    for label in range(3):
        assert (np.diff(P[np.argsort(values[:, label]), label]) >= 0).all()
    truth = Y[200:].ravel()
    cut = np.clip((values + 1) / 2, 0.01, 0.99)
    assert log_loss(truth, P.ravel()) < 0.95 * log_loss(truth, cut.ravel())
    assert log_loss(truth, P.ravel()) < 0.7 * log_loss(truth, np.full(600, truth.mean()))
    np.testing.assert_allclose(P.mean(axis=0), Y[200:].mean(axis=0), atol=0.12)


@pytest.mark.parametrize("kernel", ["linear", RBF(3.0)])
def test_folds_do_not_see_what_they_hold_out(kernel):
    """Sigmoids come from models without the fold."""
    splits = list(KFold(3).split(X))
    model = M3LClassifier(0.3, R, kernel, probability=True, cv=splits, **TIGHT).fit(X, Y)
    values = np.empty((45, 4))
    for training, held_out in splits:
        fold = M3LClassifier(0.3, R, kernel, **TIGHT).fit(X[training], Y[training])
        values[held_out] = fold.decision_function(X[held_out])
    close(model.calibration_, fit_sigmoids(values, SIGNS), atol=1e-3)


def test_probabilities_of_one_dimensional_y():
    binary = M3LClassifier(0.5, probability=True, cv=3).fit(X, Y[:, 0])
    P = binary.predict_proba(NEW)
    assert P.shape == (15, 2)
    close(P.sum(axis=1), 1, atol=1e-12)
    assert (np.diff(P[np.argsort(binary.decision_function(NEW)), 1]) >= 0).all()
    several = M3LClassifier(0.5, R, probability=True, cv=2).fit(X, CLASSES)
    P = several.predict_proba(NEW)
    assert P.shape == (15, 4)
    close(P.sum(axis=1), 1, atol=1e-12)


def test_probabilities_of_a_constant_label():
    y = Y.copy()
    y[:, 1] = 0
    P = M3LClassifier(0.5, R, probability=True, cv=3).fit(X, y).predict_proba(NEW)
    assert (P[:, 1] < 0.1).all()
    assert np.isfinite(P).all()


def test_no_probabilities_unless_asked_for():
    model = M3LClassifier(1.0).fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(NEW)
    assert "probability=True" in str(caught.value.__cause__)
    with pytest.raises(NotFittedError, match="fit it again"):
        model.set_params(probability=True).predict_proba(NEW)


def test_sigmoids_minimise_the_cross_entropy():
    rng = np.random.default_rng(0)
    values = 50 + 5 * rng.normal(size=(80, 3))
    signs = np.where(values - 50 + 4 * rng.normal(size=(80, 3)) > [0, 3, -8], 1, -1)
    weights = rng.integers(0, 3, 80)
    calibration = fit_sigmoids(values, signs, weights)
    positive = signs > 0
    n_positive, n_negative = weights @ positive, weights @ ~positive
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    residual = weights[:, None] * (sigmoids(calibration, values) - targets)
    close((residual * (values - 50)).sum(axis=0), 0, atol=1e-8)
    close(residual.sum(axis=0), 0, atol=1e-8)
    repeated = fit_sigmoids(np.repeat(values, weights, axis=0), np.repeat(signs, weights, axis=0))
    np.testing.assert_allclose(calibration, repeated, rtol=1e-9)


def test_sigmoids_of_hard_cases():
    """Classes that do not overlap, a value that is always the same, huge values, a single example."""
    values = np.array([[-1.0, 3.0, -1e8], [-2.0, 3.0, 1e8], [1.0, 3.0, 2e8], [2.0, 3.0, -3e8]])
    signs = np.array([[-1, -1, -1], [-1, 1, 1], [1, 1, 1], [1, -1, -1]])
    P = sigmoids(fit_sigmoids(values, signs), values)
    assert np.isfinite(P).all()
    assert (P[:2, 0] < 0.5).all()
    close(P[:, 1], 0.5, atol=1e-6)
    assert sigmoids(fit_sigmoids(values[:1], signs[:1]), values[:1]).shape == (1, 3)


# --- scikit-learn -----------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", ["f1_macro", "accuracy", "roc_auc", "average_precision"])
def test_grid_search(scoring):
    grid = {"C": [0.3, 3.0], "kernel__length_scale": [1e-3, 2.0]}
    search = GridSearchCV(M3LClassifier(1.0, R, RBF(1.0)), grid, cv=3, scoring=scoring)
    assert search.fit(X, Y).best_params_["kernel__length_scale"] == 2.0


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("scoring", ["f1_micro", "roc_auc", "average_precision", "neg_brier_score"])
def test_scorers_for_any_number_of_labels(columns, scoring):
    """Two labels are not two classes."""
    if scoring == "neg_brier_score" and columns > 1:
        pytest.skip("scikit-learn has no Brier score for several labels")
    model = M3LClassifier(1.0, probability=True, cv=2)
    y = Y[:, 0] if scoring == "neg_brier_score" else Y[:, :columns]
    assert np.isfinite(cross_val_score(model, X, y, scoring=scoring, cv=3, error_score="raise")).all()  # fmt: skip


def test_pipeline_clone_and_parameters():
    model = M3LClassifier(2.0, R, 2.0 * RBF(3.0), loss=np.full(4, 1.0))
    copied = clone(model)
    np.testing.assert_array_equal(copied.label_correlation, R)
    assert copied.get_params()["kernel__right__length_scale"] == 3.0
    pipeline = make_pipeline(StandardScaler(), model.set_params(kernel__right__length_scale=2.0))
    assert pipeline.fit(X, Y).score(X, Y) > 0.5


@pytest.mark.parametrize("probability", [False, True])
@pytest.mark.parametrize("kernel", ["linear", 2.0 * RBF(3.0), "precomputed"])
def test_persistence(kernel, probability):
    skops = pytest.importorskip("skops.io")
    features, new = (X @ X.T, NEW @ X.T) if kernel == "precomputed" else (X, NEW)
    model = M3LClassifier(0.5, R, kernel, probability=probability, cv=2)
    model.fit(features, pd.DataFrame(Y, columns=NAMES))
    stored = skops.dumps(model)
    types = skops.get_untrusted_types(data=stored)
    assert all(name.startswith("gramian.") for name in types)
    copies = [
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        skops.loads(stored, trusted=types),
    ]
    for other in copies:
        assert dir(other) == dir(model)
        for method in ["predict", "decision_function"] + ["predict_proba"] * probability:
            np.testing.assert_array_equal(getattr(other, method)(new), getattr(model, method)(new))


class Watch:
    """A callback that keeps what it sees, and may stop the fit or break it."""

    def __init__(self, stop_after=None, error=None):
        self.models, self.tasks = [], []
        self.stop_after, self.error = stop_after, error

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if self.error is not None:
            raise self.error
        self.tasks.append(context.task_name)
        if context.task_name != "iteration":
            return False
        self.models.append(fitted_estimator)
        return len(self.models) == self.stop_after


@pytest.mark.parametrize(("kernel", "solver"), SOLVERS)
def test_a_callback_sees_a_model_after_every_iteration(kernel, solver):
    watch = Watch()
    model = M3LClassifier(0.5, R, kernel, solver=solver, tol=1e-8).set_callbacks(watch)
    final = decided(model)
    assert len(watch.models) == model.solution_.n_iter > 1
    distances = [np.abs(partial.decision_function(NEW) - final).max() for partial in watch.models]
    check_is_fitted(watch.models[0])
    assert distances[-1] < 1e-3
    assert distances[0] > distances[-1]


def test_a_callback_stops_the_fit():
    model = M3LClassifier(10.0, R, "rbf", tol=1e-10).set_callbacks(Watch(stop_after=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # stopping on request is not a failure
        model.fit(X, Y)
    assert model.solution_.status == "stopped"
    assert model.n_iter_ == 1


def test_callbacks_see_folds(capsys):
    watch = Watch()
    model = M3LClassifier(0.5, R, probability=True, cv=3).set_callbacks(watch, ProgressBar())
    model.fit(X, Y)
    assert watch.tasks.count("fold") == 3
    assert {"iteration", "fit", "calibration"} <= set(watch.tasks)
    assert "M3LClassifier" in capsys.readouterr().out


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_fit_leaves_the_old_model(error):
    model = M3LClassifier(0.5, R).set_callbacks(Watch(error=error("stop here")))
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(X, Y)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        model.predict(X)
    values = decided(model.set_callbacks())
    with pytest.raises(error):
        model.set_params(kernel="rbf").set_callbacks(Watch(error=error("stop here"))).fit(X, Y)
    model.set_params(kernel="linear")
    np.testing.assert_array_equal(model.decision_function(NEW), values)


def test_the_solver_follows_the_entries_of_an_example():
    wide = sp.random_array((40, 5000), density=4 / 5000, format="csr", random_state=0)
    tall, square = np.ones((500, 10)), np.ones((15, 10))

    def chosen(X, loss="squared_hinge", correlated=False):
        return M3LClassifier(loss=loss)._solver_name(Linear(), X, correlated=correlated)

    assert chosen(wide) == "coordinate"  # 10 examples for each entry, though features are more
    assert chosen(wide[:8]) == chosen(square) == "blocked"
    assert chosen(wide, correlated=True) == "blocked"
    assert chosen(tall) == chosen(tall, "hamming") == chosen(tall[:25]) == "coordinate"
    assert chosen(tall[:300], "hamming") == chosen(tall[:15]) == "blocked"
