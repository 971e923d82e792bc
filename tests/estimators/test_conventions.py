"""What users of scikit-learn expect beyond its checks: callbacks, searches, persistence, array libraries, quiet."""

import copy
import logging
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from gramian import KernelLogisticRegression, KernelRidge, KernelSVC
from gramian.kernels import RBF, Kernel, Linear, Matern, White
from gramian.operators import OperatorRecord
from gramian.solvers import Solution

CLASSIFIERS = [KernelLogisticRegression, KernelSVC]
ESTIMATORS = [*CLASSIFIERS, KernelRidge]


def _iris():
    X, y = load_iris(return_X_y=True)
    return ((X - X.mean(axis=0)) / X.std(axis=0))[::2], y[::2]


X, CLASSES = _iris()
NEW = X[:15] + 0.1


def target(estimator):
    """Three classes, or a smooth function."""
    return np.sin(X[:, 0]) + X[:, 1] if estimator is KernelRidge else CLASSES


def latent(model, X):
    """Real-valued outputs of a model."""
    return model.predict(X) if isinstance(model, KernelRidge) else model.decision_function(X)


def iterative(estimator, **params):
    """A model whose solver takes several iterations."""
    return estimator(**({"solver": "kernel_cg", "regularization": 0.1} | params))


# --- callbacks --------------------------------------------------------------------------------


class Watch:
    """A callback that keeps what it sees, and may stop the fit."""

    def __init__(self, stop_after=None):
        self.models = []
        self.stop_after = stop_after

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
        return len(self.models) == self.stop_after


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_progress_bar(estimator, capsys):
    model = iterative(estimator).set_callbacks(ProgressBar())
    model.fit(X, target(estimator))
    shown = capsys.readouterr().out
    assert estimator.__name__ in shown
    np.testing.assert_array_equal(
        latent(model, NEW), latent(iterative(estimator).fit(X, target(estimator)), NEW)
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_callback_sees_a_model_after_every_iteration(estimator):
    """Each is ready to predict, they come closer to the result, and the last one is the result."""
    watch = Watch()
    model = iterative(estimator).set_callbacks(watch).fit(X, target(estimator))
    assert len(watch.models) == model.n_iter_ > 3
    final = latent(model, NEW)
    distances = []
    for partial in watch.models:
        check_is_fitted(partial)
        assert partial is not model
        distances.append(np.abs(latent(partial, NEW) - final).max())
        partial.predict(NEW)
    assert distances[0] > 0.01
    assert max(distances[-4:]) < 0.01 * distances[0]
    assert distances[-1] == 0


@pytest.mark.parametrize("solver", ["newton", "kernel_cg"])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_a_callback_stops_the_fit(estimator, solver):
    watch = Watch(stop_after=2)
    model = estimator(solver=solver, regularization=0.1).set_callbacks(watch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # stopping on request is not a failure
        model.fit(X, CLASSES)
    assert model.solution_.status == "stopped"
    assert model.n_iter_ == 2
    assert model.score(X, CLASSES) > 0.8
    best = clone(model).set_params(tol=1e-14).fit(X, CLASSES)
    excess = model.solution_.objective - best.solution_.objective
    assert 0 < excess <= model.solution_.gap


def test_scoring_monitor():
    monitor = ScoringMonitor(scoring="neg_log_loss")
    model = iterative(KernelLogisticRegression).set_callbacks(monitor).fit(X, CLASSES)
    logs = monitor.get_logs()
    data = logs[0].data if isinstance(logs, list) else logs.data
    scores = [row["neg_log_loss"] for row in _rows(data)]
    assert len(scores) == model.n_iter_
    assert scores[-1] > scores[0]


def _rows(data):
    return data.to_dict("records") if hasattr(data, "to_dict") else list(data)


def test_callbacks_are_not_part_of_the_model():
    model = iterative(KernelLogisticRegression).set_callbacks(Watch()).fit(X, CLASSES)
    again = clone(model).set_callbacks().fit(X, CLASSES)
    np.testing.assert_array_equal(model.dual_coef_, again.dual_coef_)


# --- searches, pipelines, copies --------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_grid_search(estimator):
    grid = {"kernel__length_scale": [1e-3, 1.0], "regularization": [0.1, 1e3]}
    search = GridSearchCV(
        estimator(RBF(5.0), regularization=1.0), grid, cv=KFold(3, shuffle=True, random_state=0)
    )
    search.fit(X, target(estimator))
    assert search.best_params_ == {"kernel__length_scale": 1.0, "regularization": 0.1}
    assert search.best_estimator_.kernel_ == RBF(1.0)
    assert search.estimator.kernel == RBF(5.0)  # the search works on copies


def test_grid_search_over_kernels():
    grid = {"kernel": ["linear", RBF(1.0), 2.0 * Matern("scale", nu=2.5)]}
    search = GridSearchCV(
        KernelLogisticRegression(regularization=1.0), grid, cv=3, error_score="raise"
    )
    search.fit(X, CLASSES)
    assert isinstance(search.best_estimator_.kernel_, Kernel)


def test_grid_search_reaches_into_composed_kernels():
    grid = {"kernel__left__right__length_scale": [0.5, 2.0], "kernel__right__noise": [0.1, 1.0]}
    kernel = 2.0 * RBF(1.0) + White(0.5)
    search = GridSearchCV(KernelRidge(kernel, regularization=1.0), grid, cv=3, error_score="raise")
    search.fit(X, target(KernelRidge))
    assert search.best_estimator_.kernel_.left.right.length_scale in (0.5, 2.0)
    assert kernel == 2.0 * RBF(1.0) + White(0.5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pipeline_and_cross_val_score(estimator):
    raw = load_iris().data[::2]
    y = target(estimator)
    pipeline = make_pipeline(StandardScaler(), estimator(regularization=0.1))
    folds = KFold(3, shuffle=True, random_state=0)
    assert cross_val_score(pipeline, raw, y, cv=folds).mean() > 0.85
    inner = pipeline.fit(raw, y)[-1]
    by_hand = estimator(regularization=0.1).fit(StandardScaler().fit_transform(raw), y)
    np.testing.assert_array_equal(latent(inner, X), latent(by_hand, X))


def test_precomputed_kernels_are_split_on_both_sides():
    kernel = RBF(1.5)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    features = cross_val_score(KernelSVC(kernel, regularization=1.0), X, CLASSES, cv=folds)
    values = cross_val_score(
        KernelSVC("precomputed", regularization=1.0), kernel(X), CLASSES, cv=folds
    )
    np.testing.assert_array_equal(features, values)


def test_meta_estimators():
    model = OneVsRestClassifier(KernelLogisticRegression(regularization=1.0)).fit(X, CLASSES)
    assert model.score(X, CLASSES) > 0.9


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clone_keeps_parameters_and_forgets_the_fit(estimator):
    model = estimator(2.0 * RBF(3.0), regularization=0.5).fit(X, target(estimator))
    copied = clone(model)
    assert copied.kernel == model.kernel
    assert copied.kernel is not model.kernel
    assert not hasattr(copied, "dual_coef_")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_get_and_set_params(estimator):
    model = estimator(2.0 * RBF(3.0), regularization=1.0)
    params = model.get_params()
    assert params["kernel__left__value"] == 2.0
    assert params["kernel__right__length_scale"] == 3.0
    model.set_params(kernel__right__length_scale=4.0, regularization=2.0)
    assert model.kernel == 2.0 * RBF(4.0)
    assert model.regularization == 2.0
    assert type(model)(**model.get_params(deep=False)).get_params() == model.get_params()


# --- persistence ------------------------------------------------------------------------------


def same_model(one, other):
    """Predictions to the last bit, and every fitted attribute."""
    np.testing.assert_array_equal(one.predict(NEW), other.predict(NEW))
    np.testing.assert_array_equal(latent(one, NEW), latent(other, NEW))
    assert other.kernel_ == one.kernel_
    assert isinstance(other.operator_, OperatorRecord)
    assert other.operator_ == one.operator_
    assert isinstance(other.solution_, Solution)
    for name in ("status", "objective", "gap", "n_iter", "n_products"):
        assert getattr(other.solution_, name) == getattr(one.solution_, name)
    np.testing.assert_array_equal(other.solution_.coefficients, one.solution_.coefficients)
    np.testing.assert_array_equal(other.solution_.gaps, one.solution_.gaps)
    assert other.solution_.history.keys() == one.solution_.history.keys()
    for name, values in one.solution_.history.items():
        np.testing.assert_array_equal(other.solution_.history[name], values)
    assert vars(other).keys() == vars(one).keys()


KERNELS = ["rbf", "linear", 2.0 * RBF([1.0, 2.0, 3.0, 4.0]) + 0.1 * Linear() + White(0.01)]


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "linear", "sum"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pickle_and_copy(estimator, kernel):
    model = estimator(kernel, regularization=1.0).fit(X, target(estimator))
    same_model(model, pickle.loads(pickle.dumps(model)))
    same_model(model, copy.deepcopy(model))


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "linear", "sum"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_skops_round_trip(estimator, kernel):
    """A model can be shared without pickle; all there is to trust are plain classes of gramian."""
    skops = pytest.importorskip("skops.io")
    model = estimator(kernel, regularization=1.0).fit(X, target(estimator))
    stored = skops.dumps(model)
    types = skops.get_untrusted_types(data=stored)
    assert types
    assert all(name.startswith("gramian.") for name in types)
    same_model(model, skops.loads(stored, trusted=types))


# --- what a fit leaves behind -----------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "kernel_cg", "exact"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitted_attributes(estimator, solver):
    model = estimator(solver=solver, regularization=0.1).fit(X, target(estimator))
    outputs = 1 if estimator is KernelRidge else 3
    assert model.dual_coef_.shape == (len(X), outputs)
    assert model.intercept_.shape == (outputs,)
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")
    assert isinstance(model.kernel_.length_scale, float)
    assert model.kernel == "auto"  # the parameter stays as given
    np.testing.assert_array_equal(model.X_fit_, X)

    solution = model.solution_
    assert solution.status == "converged"
    assert solution.n_iter == model.n_iter_ >= 1
    assert 0 <= solution.gap <= 1e-8 * solution.objective
    assert solution.relative_gap == solution.gap / solution.objective
    np.testing.assert_allclose(solution.gaps.sum(), solution.gap, rtol=1e-12)
    history = solution.history
    assert set(history) == {"objective", "gap", "products", "seconds"}
    assert {len(values) for values in history.values()} == {solution.n_iter + 1}
    assert (history["objective"][-1], history["gap"][-1]) == (solution.objective, solution.gap)
    assert (np.diff(history["objective"]) <= 1e-12 * history["objective"][0]).all()
    assert (np.diff(history["products"]) >= 0).all()
    assert (np.diff(history["seconds"]) >= 0).all()


@pytest.mark.parametrize("solver", ["newton", "kernel_cg"])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_stopping_short_is_said(estimator, solver):
    model = estimator(solver=solver, max_iter=1, tol=1e-10, regularization=1.0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, CLASSES)
    message = str(caught[0].message)
    for words in ("max_iter=1", f"{model.solution_.relative_gap:.2e}", "tol=1.00e-10", "Raise"):
        assert words in message
    assert model.solution_.status == "max_iter"
    assert model.n_iter_ == 1
    assert model.predict(NEW).shape == (15,)


def test_html_representation():
    model = KernelLogisticRegression(2.0 * RBF(3.0), regularization=1.0)
    assert "KernelLogisticRegression" in model._repr_html_()
    fitted = model.fit(X, CLASSES)._repr_html_()
    assert "KernelLogisticRegression" in fitted
    assert "length_scale" in fitted


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_quiet_but_for_the_log(estimator, capfd, caplog):
    with caplog.at_level(logging.DEBUG):
        model = estimator(regularization=1.0).fit(X, target(estimator))
        model.predict(NEW)
    assert capfd.readouterr() == ("", "")
    records = [record for record in caplog.records if record.name.startswith("gramian")]
    assert any(
        "dense" in record.getMessage() and model.operator_.reason in record.getMessage()
        for record in records
    )
    assert all(record.levelno < logging.WARNING for record in records)
    assert not any(
        isinstance(handler, logging.StreamHandler)
        for handler in logging.getLogger("gramian").handlers
    )


def test_little_memory_means_streaming():
    """The Gram matrix does not fit: it is computed as it is needed, the record says why, the model is the same."""
    plenty = KernelLogisticRegression(tol=1e-14, regularization=1.0).fit(X, CLASSES)
    with sklearn.config_context(working_memory=0.01):
        little = KernelLogisticRegression(tol=1e-14, regularization=1.0).fit(X, CLASSES)
    assert (plenty.operator_.name, little.operator_.name) == ("dense", "streamed")
    assert "75 x 75 values take 43.9 KiB" in little.operator_.reason
    assert "more than working_memory = 0.01 MiB" in little.operator_.reason
    assert little.operator_.nbytes < plenty.operator_.nbytes == 75 * 75 * 8
    np.testing.assert_allclose(
        little.decision_function(NEW), plenty.decision_function(NEW), atol=1e-6
    )


def test_read_only_memmap(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for estimator in ESTIMATORS:
        for operator in ("dense", "streamed"):
            model = estimator(operator=operator, regularization=1.0).fit(mapped, target(estimator))
            plain = estimator(operator=operator, regularization=1.0).fit(X, target(estimator))
            np.testing.assert_array_equal(latent(model, mapped), latent(plain, X))


@pytest.mark.parametrize("operator", ["dense", "streamed"])
def test_threads_do_not_disturb_each_other(operator):
    strengths = [0.01, 0.1, 1.0, 10.0]

    def fit(strength):
        model = KernelLogisticRegression(regularization=strength, operator=operator)
        return model.fit(X, CLASSES).decision_function(NEW)

    alone = [fit(strength) for strength in strengths]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, strengths))
    for one, other in zip(alone, together):
        np.testing.assert_allclose(other, one, atol=1e-12)


def test_fits_do_not_change_their_input():
    features, y, weights = X.copy(), CLASSES.copy(), np.ones(len(X))
    for estimator in ESTIMATORS:
        estimator(regularization=1.0).fit(features, y, sample_weight=weights)
    np.testing.assert_array_equal(features, X)
    np.testing.assert_array_equal(y, CLASSES)
    np.testing.assert_array_equal(weights, 1)


# --- other array libraries --------------------------------------------------------------------


@pytest.fixture(params=["array_api_strict", "torch"])
def library(request):
    return pytest.importorskip(request.param)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("operator", ["dense", "streamed"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_everything_follows_X(library, estimator, operator, weighted):
    """Arrays of another library in: fitted arrays and predictions of that library, equal to NumPy's."""
    y = target(estimator)
    weights = np.linspace(1, 2, len(X)) if weighted else None
    reference = estimator(operator=operator, tol=1e-14, regularization=1.0).fit(
        X, y, sample_weight=weights
    )
    with sklearn.config_context(array_api_dispatch=True):
        model = estimator(operator=operator, tol=1e-14, regularization=1.0).fit(
            library.asarray(X),
            library.asarray(y),
            sample_weight=None if weights is None else library.asarray(weights),
        )
        new = library.asarray(NEW)
        kind = type(new)
        methods = ["predict"]
        if estimator is not KernelRidge:
            methods.append("decision_function")
            assert isinstance(model.classes_, kind)
        if estimator is KernelLogisticRegression:
            methods += ["predict_proba", "predict_log_proba"]
        assert isinstance(model.dual_coef_, kind)
        assert isinstance(model.intercept_, kind)
        for method in methods:
            values = getattr(model, method)(new)
            assert isinstance(values, kind)
            np.testing.assert_allclose(
                np.asarray(values), getattr(reference, method)(NEW), atol=1e-6
            )


def test_single_precision_of_another_library(library):
    with sklearn.config_context(array_api_dispatch=True):
        features = library.asarray(X.astype(np.float32))
        model = KernelLogisticRegression(tol=1e-6, regularization=1.0).fit(
            features, library.asarray(CLASSES)
        )
        values = model.decision_function(features)
        assert values.dtype == features.dtype
    reference = (
        KernelLogisticRegression(tol=1e-10, regularization=1.0).fit(X, CLASSES).decision_function(X)
    )
    np.testing.assert_allclose(np.asarray(values), reference, atol=1e-2)


def test_prediction_needs_the_library_of_the_fit():
    strict = pytest.importorskip("array_api_strict")
    with sklearn.config_context(array_api_dispatch=True):
        model = KernelLogisticRegression(regularization=1.0).fit(
            strict.asarray(X), strict.asarray(CLASSES)
        )
        with pytest.raises(ValueError, match="must use the same namespace"):
            model.predict(NEW)


def test_exact_solver_says_that_it_is_for_numpy():
    strict = pytest.importorskip("array_api_strict")
    model = KernelLogisticRegression(solver="exact", regularization=1.0)
    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(
            TypeError, match=r"solver='exact' needs NumPy arrays, .* Use solver='newton'"
        ),
    ):
        model.fit(strict.asarray(X), strict.asarray(CLASSES))
    assert not hasattr(model, "dual_coef_")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_callbacks_are_torn_down_when_fit_fails(error):
    """A progress bar left running would keep the process from ending."""

    class Breaks:
        torn_down = False

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            raise error("stop here")

        def teardown(self, estimator, context):
            self.torn_down = True

    callback = Breaks()
    model = KernelLogisticRegression(regularization=1.0).set_callbacks(callback)
    with pytest.raises(error):
        model.fit(X, CLASSES)
    assert callback.torn_down
    assert not any(name.startswith("_callback_fit") for name in vars(model))
