"""HierarchicalSVC in use: inner labels, weights, probabilities, what is stored, searches, callbacks, persistence."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from gramian import HierarchicalSVC
from gramian.cli.model_file import allowed_types
from gramian.estimators.margin.calibration import fit_temperatures
from gramian.kernels import RBF
from gramian.labels import as_taxonomy
from gramian.metrics import credited, taxonomy_scorers

pytestmark = pytest.mark.usefixtures("one_thread")

METHODS = ["orthogonal", "similarity", "independent", "tree_loss", "flat"]
NESTED = {"animal": {"cat": ["lynx", "lion"], "dog": None}, "car": None, "plant": {"tree": ["oak", "elm"]}}  # fmt: skip
TREE = as_taxonomy(NESTED)


def _data(n, noise, seed=2):
    rng = np.random.default_rng(seed)
    labels = np.array(["lynx", "lion", "dog", "car", "oak", "elm"])
    centres = np.random.default_rng(0).normal(size=(6, 5))
    codes = rng.permutation(np.arange(n) % 6)
    return centres[codes] + noise * rng.normal(size=(n, 5)), labels[codes]


X, LEAVES = _data(60, 0.7)
NEW, LEAVES_NEW = _data(24, 0.7, seed=3)
Y = LEAVES.astype("<U6")
Y[:24] = [TREE.names[TREE.parent[TREE.index(name)]] for name in Y[:24]]
Y[Y == "root"] = "car"
TIGHT = {"tol": 1e-9}


def svc(method="orthogonal", C=0.05, kernel="linear", **options):
    options = {"intercept_variance": 0.0} | options
    return HierarchicalSVC(NESTED, method, C, "auto", kernel, **options)


def close(one, other, atol=1e-4):
    np.testing.assert_allclose(one, other, rtol=0, atol=atol)


# --- inner labels and weights -----------------------------------------------------------------


def test_labels_of_the_data():
    assert {"animal", "cat", "tree"} <= set(Y), "the tests below need inner labels"


@pytest.mark.parametrize("method", METHODS)
def test_inner_labels_help(method):
    """Examples of which only the top is known teach the top."""
    (features, leaves), (new, leaves_new) = _data(120, 0.7), _data(300, 0.7, seed=3)
    known = np.arange(120) < 12
    top, top_new = (
        np.array([TREE.path(name)[1] for name in names]) for names in (leaves, leaves_new)
    )
    alone = svc(method, 0.5).fit(features[known], leaves[known])
    helped = svc(method, 0.5).fit(features, np.where(known, leaves, top))
    assert helped.score(new, top_new) > alone.score(new, top_new)


def test_scores_follow_the_rule_for_inner_labels():
    model = svc(C=1.0).fit(X, Y)
    answers, weights = model.predict(X), np.arange(60.0)
    right = [truth in TREE.path(answer) for truth, answer in zip(Y, answers, strict=True)]
    assert model.score(X, Y) == pytest.approx(np.mean(right))
    assert model.score(X, Y, weights) == pytest.approx(np.average(right, weights=weights))
    assert model.score(X, Y) == pytest.approx(accuracy_score(Y, credited(Y, answers, TREE)))
    assert model.score(X, Y) > accuracy_score(Y, answers)
    with pytest.raises(ValueError, match="'bus'"):
        model.score(X, np.where(Y == "car", "bus", Y))
    flat = HierarchicalSVC(C=1.0).fit(X, LEAVES)
    assert flat.score(X[:2], ["bus", flat.predict(X[1:2])[0]]) == 0.5


@pytest.mark.parametrize("kernel", ["linear", RBF(2.0)])
@pytest.mark.parametrize("method", METHODS)
def test_sample_weights(method, kernel):
    """Weight two is a row twice, weight zero none."""
    weights = np.arange(60) % 3
    model = svc(method, 0.05, kernel, **TIGHT)
    weighted = clone(model).fit(X, Y, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    close(weighted.decision_function(NEW), repeated.decision_function(NEW))
    if kernel != "linear":
        assert not np.isin(weighted.support_, np.flatnonzero(weights == 0)).any()


def test_class_weights_are_sample_weights():
    rows = np.arange(60) % 2
    counts = pd.Series(Y[rows > 0]).value_counts()  # "balanced" counts weights, as rows are counted
    weights = {"balanced": 30 / (len(counts) * counts), "given": pd.Series(1.0, counts.index)}
    weights["given"][["cat", "car", "oak"]] = [3.0, 0.5, 0.0]
    chosen = {"balanced": "balanced", "given": {"cat": 3.0, "car": 0.5, "oak": 0, "plant": 7.0}}
    for kind, by_label in weights.items():
        model = svc(class_weight=chosen[kind], **TIGHT).fit(X, Y, sample_weight=rows)
        expected = svc(**TIGHT).fit(X, Y, sample_weight=by_label[Y] * rows)
        close(model.node_scores(NEW), expected.node_scores(NEW))


def test_a_label_can_be_left_out():
    without = svc(**TIGHT).fit(X[Y != "oak"], Y[Y != "oak"])
    close(svc(class_weight={"oak": 0}, **TIGHT).fit(X, Y).coef_, without.coef_)
    close(svc(class_weight={}, **TIGHT).fit(X, Y).coef_, svc(**TIGHT).fit(X, Y).coef_)


def test_the_same_with_c():
    close(svc(C=0.2, **TIGHT).fit(X, Y).coef_, svc(C=0.1, **TIGHT).fit(X, Y, np.full(60, 2.0)).coef_)  # fmt: skip


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_empty_examples_do_not_stop_the_certificate(kernel):
    with_zeros = np.vstack([X, np.zeros((6, 5))])
    y = np.append(Y, Y[:6])
    features = with_zeros if kernel == "linear" else with_zeros @ with_zeros.T
    model = svc(kernel=kernel).fit(features, y)
    assert model.solution_.status == "converged"
    close(model.decision_function(features)[:60], svc().fit(X, Y).decision_function(X), atol=0.02)


# --- probabilities ----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", RBF(2.0)])
@pytest.mark.parametrize("method", METHODS)
def test_probabilities_are_coherent(method, kernel):
    model = svc(method, 0.5, kernel, probability=True, cv=3, tol=1e-2).fit(X, Y)
    P, at_nodes = model.predict_proba(NEW), model.predict_node_proba(NEW)
    assert P.shape == (24, 6)
    assert (P > 0).all()
    close(P.sum(axis=1), 1, atol=1e-12)
    close(at_nodes[:, 0], 1, atol=1e-12)
    close(at_nodes[:, TREE.index(model.classes_)], P, atol=1e-15)
    for node in range(TREE.n_nodes):
        below = TREE.children(node)
        if below.size:
            close(at_nodes[:, below].sum(axis=1), at_nodes[:, node], atol=1e-12)
    U = model.node_scores(NEW)
    if model.temperatures_.size == 1:
        expected = log_softmax(U[:, :6] / model.temperatures_, axis=1)
        close(np.log(at_nodes[:, TREE.leaves]), expected, atol=1e-10)
        return
    inner = np.flatnonzero(~TREE.is_leaf)
    for node, temperature in zip(inner, model.temperatures_, strict=True):
        below = TREE.children(node)
        relative = np.log(at_nodes[:, below] / at_nodes[:, [node]])
        close(relative, log_softmax(U[:, below - 1] / temperature, axis=1), atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_are_calibrated(method):
    """Better than scores as they are, and about as sure as they are right."""
    features, y = _data(300, 1.0)
    new, y_new = _data(600, 1.0, seed=9)
    model = svc(method, 0.02, probability=True, cv=4).fit(features, y)
    P = model.predict_proba(new)
    plain = copy.deepcopy(model)
    plain.temperatures_ = np.ones_like(model.temperatures_)
    cold, hot = copy.deepcopy(model), copy.deepcopy(model)
    cold.temperatures_, hot.temperatures_ = model.temperatures_ / 2, model.temperatures_ * 2
    loss = log_loss(y_new, P)
    assert loss < log_loss(y_new, plain.predict_proba(new))
    assert loss < log_loss(y_new, cold.predict_proba(new))
    assert loss < log_loss(y_new, hot.predict_proba(new))
    assert abs(P.max(axis=1).mean() - np.mean(model.classes_[P.argmax(axis=1)] == y_new)) < 0.08


def test_folds_do_not_see_what_they_hold_out():
    splits = list(KFold(3).split(X))
    weights = 1.0 + np.arange(60) % 2
    model = svc("flat", probability=True, cv=splits, **TIGHT).fit(X, Y, weights)
    choices = []
    for training, held_out in splits:
        fold = svc("flat", **TIGHT).fit(X[training], Y[training], weights[training])
        rows = held_out[np.isin(Y[held_out], fold.classes_)]  # inner labels have no part here
        winners = np.searchsorted(fold.classes_, Y[rows])
        choices.append((fold.decision_function(X[rows]), winners, weights[rows]))
    together = tuple(np.concatenate(part) for part in zip(*choices, strict=True))
    close(model.temperatures_, fit_temperatures([together]), atol=1e-3)


def test_temperatures_minimise_the_cross_entropy():
    rng = np.random.default_rng(0)
    scores = 3 * rng.normal(size=(200, 4))
    noisy = scores + 2 * rng.gumbel(size=scores.shape)
    winners, weights = noisy.argmax(axis=1), rng.integers(0, 3, 200).astype(float)
    temperature = fit_temperatures([(scores, winners, weights)])[0]
    assert 1.5 < temperature < 2.6  # that of the noise is 2
    totals = np.bincount(winners, weights)
    targets = np.ones((200, 4)) / (totals[winners] + 4)[:, None]
    targets[np.arange(200), winners] *= totals[winners] + 1

    def loss(t):
        return -weights @ (targets * log_softmax(scores / t, axis=1)).sum(axis=1)

    assert loss(temperature) < min(loss(temperature * 1.001), loss(temperature / 1.001))
    times = weights.astype(int)
    repeated = np.repeat(scores, times, axis=0), np.repeat(winners, times), np.ones(times.sum())
    np.testing.assert_allclose(fit_temperatures([repeated]), temperature, rtol=1e-7)


def test_temperatures_of_hard_cases():
    """Right everywhere, wrong everywhere, no difference, one rival, too few examples, none."""
    ones = np.ones(40)
    scores = np.tile([[1.0, 0.0], [0.0, 3.0]], (20, 1))
    winners = np.tile([0, 1], 20)
    right, wrong = (scores, winners, ones), (scores, 1 - winners, ones)
    alike, alone = (np.zeros((40, 2)), winners, ones), (np.ones((40, 1)), 0 * winners, ones)
    few = (scores[:4], winners[:4], ones[:4])
    none = (scores[:0], winners[:0], ones[:0])
    found = fit_temperatures([right, wrong, alike, alone, few, none])
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert found[0] < 0.7
    assert found[1] > 100
    assert found[4] == found[5]  # both take the pooled one
    assert fit_temperatures([few, few])[0] == pytest.approx(fit_temperatures([few])[0])
    assert found[0] < fit_temperatures([right, few, wrong])[1] < found[1]
    np.testing.assert_array_equal(fit_temperatures([none]), [1.0])
    huge = fit_temperatures([(1e9 * scores, winners, ones)])
    assert huge[0] == pytest.approx(1e9 * found[0])


def test_no_probabilities_unless_asked_for():
    model = svc().fit(X, Y)
    for method in ("predict_proba", "predict_node_proba", "decide"):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError) as caught:
            getattr(model, method)(NEW)
        assert "probability=True" in str(caught.value.__cause__)
    with pytest.raises(NotFittedError, match="fit it again"):
        model.set_params(probability=True).predict_proba(NEW)


def test_decide():
    model = svc(C=0.5, probability=True, cv=3).fit(X, Y)
    assert set(model.decide(NEW)) <= set(model.classes_)
    inner = model.decide(NEW, loss="taxonomic", allow_inner=True)
    assert set(inner) <= set(TREE.names)
    sure = model.decide(NEW, threshold=0.95)
    probability = model.predict_node_proba(NEW)
    assert (probability[np.arange(24), TREE.index(sure)] >= 0.95).all()
    assert "root" not in model.decide(NEW, threshold=0.3)


# --- what a fit leaves behind -----------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_fitted_attributes(kernel, dtype, container):
    model = svc(kernel=kernel, probability=True, cv=2).fit(container(X.astype(dtype)), Y)
    if kernel == "linear":
        assert model.coef_.shape == (10, 5)
        assert model.coef_.dtype == np.float64
        assert not {"X_fit_", "dual_coef_", "support_"} & set(dir(model))
    else:
        n_support = model.support_.size
        assert model.dual_coef_.shape == (n_support, 10)
        assert model.X_fit_.shape == (n_support, 5)
        assert model.X_fit_.dtype == dtype
        assert model.dual_coef_.dtype == np.float64
        assert not hasattr(model, "coef_")
    assert model.intercept_.dtype == np.float64
    assert model.temperatures_.shape == (5,)
    new = container(NEW.astype(dtype))
    for method in ("node_scores", "decision_function", "predict_proba"):
        assert getattr(model, method)(new).dtype == dtype
    for other in (NEW.astype(dtype), sp.csr_array(NEW.astype(dtype))):
        close(model.decision_function(other), model.decision_function(new), atol=1e-5)
    assert model.solution_.coefficients is None
    assert model.solution_.latent is None
    assert model.solution_.status == "converged"
    assert model.n_iter_ == model.solution_.n_iter
    assert model.n_features_in_ == 5


def test_another_fit_leaves_nothing_behind():
    model = svc(probability=True, cv=2).fit(X, Y)
    model.set_params(kernel="rbf", method="flat", probability=False).fit(X, Y)
    assert not {"coef_", "K_", "alpha_", "temperatures_"} & set(dir(model))
    model.set_params(kernel="linear").fit(X, Y)
    assert not {"X_fit_", "support_", "dual_coef_"} & set(dir(model))


def test_parameters_that_change_later_do_not_change_a_fitted_model():
    model = svc("orthogonal").fit(X, Y)

    def answers():
        return model.decision_function(NEW), model.predict(NEW), model.score(X, Y)

    before = answers()
    model.set_params(method="flat", hierarchy=None, kernel="rbf")
    for one, other in zip(before, answers(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_data_frames():
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = svc().fit(frame, pd.Series(Y, index=np.arange(60) + 5))
    assert list(model.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(model.predict(frame), svc().fit(X, Y).predict(X))


def test_stopping_short_is_said():
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model = svc(C=100.0, max_iter=1, tol=1e-12).fit(X, Y)
    assert model.n_iter_ == 1
    assert model.predict(NEW).shape == (24,)


def test_random_state():
    one, other = (svc(random_state=s, **TIGHT).fit(X, Y).coef_ for s in (1, 2))
    close(one, other)
    np.testing.assert_array_equal(svc().fit(X, Y).coef_, svc().fit(X, Y).coef_)
    loose = [svc(random_state=s, tol=0.1).fit(X, Y).coef_ for s in (1, 1, 2)]
    np.testing.assert_array_equal(loose[0], loose[1])
    assert (loose[0] != loose[2]).any()


# --- scikit-learn -----------------------------------------------------------------------------


def test_searches_and_pipelines():
    scorers = taxonomy_scorers(TREE)
    grid = {"kernel__length_scale": [1e-3, 2.0], "method": ["orthogonal", "flat"]}
    search = GridSearchCV(svc(kernel=RBF(1.0)), grid, cv=3, scoring=scorers, refit="tree_accuracy")
    assert search.fit(X, Y).best_params_["kernel__length_scale"] == 2.0
    pipeline = make_pipeline(StandardScaler(), svc(probability=True, cv=2))
    scores = cross_val_score(pipeline, X, LEAVES, cv=3, scoring="neg_log_loss", error_score="raise")
    assert (scores > -np.log(6)).all()


@pytest.mark.parametrize("kernel", ["linear", 2.0 * RBF(3.0), "precomputed"])
@pytest.mark.parametrize("method", ["orthogonal", "flat"])
def test_persistence(kernel, method):
    skops = pytest.importorskip("skops.io")
    features, new = (X @ X.T, NEW @ X.T) if kernel == "precomputed" else (X, NEW)
    model = svc(method, 0.5, kernel, probability=True, cv=2).fit(features, Y)
    stored = skops.dumps(model)
    types = skops.get_untrusted_types(data=stored)
    assert set(types) <= allowed_types()
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), skops.loads(stored, trusted=types)]  # fmt: skip
    for other in copies:
        assert dir(other) == dir(model)
        for name in ("predict", "decision_function", "predict_proba", "predict_node_proba"):
            np.testing.assert_array_equal(getattr(other, name)(new), getattr(model, name)(new))


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


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("method", ["orthogonal", "flat"])
def test_a_callback_sees_a_model_after_every_iteration(method, kernel):
    watch = Watch()
    model = svc(method, 0.5, kernel, tol=1e-5).set_callbacks(watch).fit(X, Y)
    assert len(watch.models) == model.solution_.n_iter > 1
    check_is_fitted(watch.models[0])
    assert watch.models[0].predict(NEW).shape == (24,)
    final = model.node_scores(NEW)
    distances = [np.abs(partial.node_scores(NEW) - final).max() for partial in watch.models]
    assert distances[0] > 10 * distances[-1]
    close(model.node_scores(NEW), svc(method, 0.5, kernel, tol=1e-5).fit(X, Y).node_scores(NEW), 0)


def test_a_callback_stops_the_fit():
    model = svc(C=10.0, tol=1e-10).set_callbacks(Watch(stop_after=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # stopping on request is not a failure
        model.fit(X, Y)
    assert model.solution_.status == "stopped"
    assert model.n_iter_ == 2


def test_callbacks_see_folds(capsys):
    watch = Watch()
    svc(probability=True, cv=3).set_callbacks(watch, ProgressBar()).fit(X, Y)
    assert watch.tasks.count("fold") == 3
    assert {"iteration", "fit", "calibration"} <= set(watch.tasks)
    assert "HierarchicalSVC" in capsys.readouterr().out


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_fit_leaves_the_old_model(error):
    model = svc().set_callbacks(Watch(error=error("stop here")))
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(X, Y)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        model.predict(X)
    values = model.set_callbacks().fit(X, Y).decision_function(NEW)
    with pytest.raises(error):
        model.set_params(kernel="rbf").set_callbacks(Watch(error=error("stop here"))).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(NEW), values)
