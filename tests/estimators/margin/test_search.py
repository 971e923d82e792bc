"""C and the shrinkage of R by folds: the path, what is chosen, samples, weights, and what bounds the work."""

import logging
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import label_ranking_average_precision_score
from sklearn.model_selection import KFold, StratifiedKFold

from gramian import HierarchicalSVC, M3LClassifier
from gramian.estimators.margin import search
from gramian.estimators.margin.judging import held_out_score
from gramian.estimators.margin.label_signs import label_signs
from gramian.labels import as_taxonomy, empirical_correlation, shrunk
from gramian.metrics import tree_zero_one_loss

pytestmark = pytest.mark.usefixtures("one_thread")

X, Y = make_multilabel_classification(90, 6, n_classes=4, n_labels=2, random_state=3)
X = (X - X.mean(axis=0)) / X.std(axis=0)
R = 0.5 * np.eye(4) + 0.5
NESTED = {"animal": {"cat": ["lynx", "lion"], "dog": None}, "car": None}
TREE = as_taxonomy(NESTED)


def animals(n=80, noise=0.8):
    rng = np.random.default_rng(1)
    codes = np.arange(n) % 4
    features = rng.normal(size=(4, 5))[codes] + noise * rng.normal(size=(n, 5))
    y = np.array(["lynx", "lion", "dog", "car"], dtype="<U6")[codes]
    y[:6] = np.where(np.isin(y[:6], ["lynx", "lion"]), "cat", y[:6])
    return features, y


def moderate(path):
    """Of the rows within a standard error of the best the most shrunk, and of these that with C nearest to the unit."""
    scores, shrinkage = path["score"], path.get("shrinkage", np.ones(len(path["C"])))
    top = max(range(len(scores)), key=lambda k: scores[k].mean())
    differences = [scores[top] - row for row in scores]
    good = [k for k, d in enumerate(differences) if d.mean() <= d.std(ddof=1) / d.size**0.5]
    most = max(shrinkage[k] for k in good)
    unit = path["C"][4]  # the fifth value of the grid
    return min(
        (k for k in good if shrinkage[k] == most), key=lambda k: abs(np.log(path["C"][k] / unit))
    )


# --- the path ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_best_c_of_the_path_is_used(kernel):
    model = M3LClassifier(kernel=kernel, cv=3).fit(X, Y)
    path = model.C_path_
    assert path["score"].shape == (path["C"].size, 3)
    assert (np.diff(path["C"]) > 0).all()
    assert model.C_ == path["C"][moderate(path)]
    same = M3LClassifier(model.C_, kernel=kernel).fit(X, Y)
    np.testing.assert_array_equal(same.decision_function(X), model.decision_function(X))
    assert same.C_ == model.C_
    assert not hasattr(same, "C_path_")


def test_a_score_is_that_of_a_fit_without_the_fold():
    """Each entry of the path, from estimators with that C on the training part of each fold."""
    folds = KFold(3, shuffle=True, random_state=1)
    path = M3LClassifier(loss="hamming", cv=folds, tol=1e-6).fit(X, Y).C_path_
    for k, (train, test) in enumerate(folds.split(X)):
        for place in (0, 3):
            one = M3LClassifier(path["C"][place], loss="hamming").fit(X[train], Y[train])
            right = np.mean(one.predict(X[test]) == Y[test])
            assert path["score"][place, k] == pytest.approx(right, abs=0.03)  # gaps of 1 %
    features, y = animals()
    folds = StratifiedKFold(3)
    path = HierarchicalSVC(NESTED, cv=folds).fit(features, y).C_path_
    for k, (train, test) in enumerate(folds.split(features, y)):
        one = HierarchicalSVC(NESTED, C=path["C"][2]).fit(features[train], y[train])
        wrong = tree_zero_one_loss(y[test], one.predict(features[test]), TREE)
        assert path["score"][2, k] == pytest.approx(1 - wrong, abs=0.08)


def test_scales_of_features_and_weights_change_nothing():
    """C is relative to k(x, x) and to the weights: the same model of scaled features."""
    model = M3LClassifier(intercept_variance=0.0, cv=3, tol=1e-8).fit(X, Y)
    scaled = M3LClassifier(intercept_variance=0.0, cv=3, tol=1e-8).fit(100 * X, Y)
    assert scaled.C_ == pytest.approx(1e-4 * model.C_)
    latent = model.decision_function(X)
    np.testing.assert_allclose(scaled.decision_function(100 * X), latent, atol=1e-3)
    weighted = M3LClassifier(intercept_variance=0.0, cv=3).fit(X, Y, np.full(90, 50.0))
    assert weighted.C_ == pytest.approx(model.C_ / 50)
    features, y = animals()
    one = HierarchicalSVC(NESTED, cv=3).fit(features, y)
    other = HierarchicalSVC(NESTED, cv=3).fit(features, y, np.full(80, 50.0))
    assert other.C_ == pytest.approx(one.C_ / 50)


@pytest.mark.parametrize("weights", [None, "some"])
def test_examples_of_weight_zero_are_not_looked_at(weights):
    known = np.arange(90) % 3 > 0
    poisoned = np.where(known[:, None], Y, 1 - Y)
    model = M3LClassifier(cv=3).fit(X, poisoned, known.astype(float))
    clean = M3LClassifier(cv=3).fit(X[known], Y[known])
    assert model.C_ == pytest.approx(clean.C_)
    np.testing.assert_allclose(model.C_path_["score"], clean.C_path_["score"])


def test_the_path_ends_where_it_falls(monkeypatch):
    """Two values in a row below the best are enough beyond C = 1; equal ones are not below."""
    scores = iter([0.5, 0.4, 0.4, 0.7, 0.8, 0.7, 0.7, 0.9])
    monkeypatch.setattr(search.PathSearch, "_path", _told(scores))
    found = search.PathSearch(_Unit(), [None], None, None).run(lambda: False)
    np.testing.assert_allclose(found.path["score"][:, 0], [0.5, 0.4, 0.4, 0.7, 0.8, 0.7, 0.7])
    assert found.C == search.GRID[4]
    scores = iter([0.9] * 8)
    monkeypatch.setattr(search.PathSearch, "_path", _told(scores))
    assert search.PathSearch(_Unit(), [None], None, None).run(lambda: False).C == 1.0


class _Inputs:
    def diagonal(self):
        return np.ones(2)


class _Unit:
    caps, inputs = np.ones((2, 1)), _Inputs()


def _told(scores):
    def path(self, shrinkage, grid):
        for C in grid:
            self.tried.append((float(C), shrinkage, [next(scores)]))
            yield C

    return path


@pytest.mark.parametrize(("table", "chosen"), [
    ([[0.5] * 5, [0.6] * 5, [0.7, 0.7, 0.8, 0.7, 0.7]], 2),
    ([[0.8] * 5, [0.6] * 5, [0.7] * 5], 0),
    ([[0.3] * 5, [0.6] * 5, [0.9, 0.3, 0.9, 0.4, 0.6]], 1),  # the last is better, but not clearly
])  # fmt: skip
def test_a_second_look_follows_the_same_rule(monkeypatch, table, chosen):
    def path(self, shrinkage, grid):
        for C, scores in zip(grid, table, strict=True):
            self.tried.append((C, shrinkage, scores))
            yield C

    monkeypatch.setattr(search.PathSearch, "_path", path)
    first = search.Choice(2.0)
    found = search.PathSearch(_Unit(), [None], None, None).second_look(first)
    assert found.C == pytest.approx(2.0 * 10 ** (0.5 * (chosen - 1)))


def test_few_examples():
    """Fewer folds than asked for where no class has so many examples; without any, C is the unit of the grid."""
    features, _ = animals(8)
    assert (
        HierarchicalSVC(NESTED)
        .fit(features, np.repeat(["lynx", "dog"], 4))
        .C_path_["score"]
        .shape[1]
        == 4
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = HierarchicalSVC(NESTED).fit(features[:4], ["lynx", "lion", "dog", "car"])
        assert M3LClassifier().fit(X[:3], Y[:3]).C_path_["score"].shape[1] == 3
    assert alone.C_path_["score"].shape == (1, 0)
    assert alone.C_ == pytest.approx(1 / (1 + np.mean(np.sum(features[:4] ** 2, axis=1))))


def test_many_examples_are_sampled(monkeypatch):
    monkeypatch.setattr(search, "MOST_EXAMPLES", 40)
    features, y = animals(400)
    rows = search.sampled_rows(np.arange(400) > 7, np.arange(400) % 4, np.random.RandomState(0), 40)
    assert rows.size == 40
    assert (np.diff(rows) > 0).all()
    assert rows[0] > 7
    np.testing.assert_array_equal(np.bincount(rows % 4), 10)
    for kernel in ("linear", "rbf"):
        model = HierarchicalSVC(NESTED, kernel=kernel).fit(features, y)
        assert model.score(features, y) > 0.6
        second = model.C_path_["second_C"]
        assert model.C_ in second
        assert model.C_path_["second_score"].shape == (3, 5)
        np.testing.assert_allclose(second[1:] / second[:-1], 10**0.5)
        assert "second_C" not in HierarchicalSVC(NESTED).fit(features[:70], y[:70]).C_path_
        assert M3LClassifier(kernel=kernel, cv=KFold(3)).fit(X, Y).C_ > 0
    kernel = features @ features.T
    model = HierarchicalSVC(NESTED, kernel="precomputed").fit(kernel, y)
    expected = HierarchicalSVC(NESTED).fit(features, y)
    both = min(len(fit.C_path_["C"]) for fit in (model, expected))
    np.testing.assert_allclose(
        *(fit.C_path_["score"][:both].mean(axis=1) for fit in (model, expected)), atol=0.06
    )


def test_the_choice_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="gramian"):
        model = M3LClassifier(label_correlation=R, cv=3).fit(X, Y)
    line = caplog.records[-1].getMessage()
    assert f"C={model.C_:.3g}" in line
    assert f"shrinkage={model.shrinkage_:g}" in line
    assert "3 folds of 90 examples" in line


def test_random_state():
    models = [M3LClassifier(cv=3, random_state=s).fit(X, Y).C_path_["score"] for s in (1, 1, 2)]
    np.testing.assert_array_equal(models[0], models[1])
    assert models[0].shape != models[2].shape or (models[0] != models[2]).any()


def test_probabilities_use_the_chosen_c():
    model = M3LClassifier(probability=True, cv=KFold(3)).fit(X, Y)
    same = M3LClassifier(model.C_, probability=True, cv=KFold(3)).fit(X, Y)
    np.testing.assert_array_equal(model.calibration_, same.calibration_)
    features, y = animals()
    model = HierarchicalSVC(NESTED, probability=True, cv=KFold(3)).fit(features, y)
    same = HierarchicalSVC(NESTED, C=model.C_, probability=True, cv=KFold(3)).fit(features, y)
    np.testing.assert_array_equal(model.temperatures_, same.temperatures_)


@pytest.mark.parametrize("model", [M3LClassifier(), HierarchicalSVC()])
def test_a_path_of_zeros(model):
    """Examples without features have no scale."""
    assert model.fit(np.zeros((12, 2)), np.arange(12) % 3).C_ > 0


# --- what is judged ---------------------------------------------------------------------------


def test_scores_of_held_out_examples():
    labels = label_signs(Y, Y)
    rows, values = np.array([4, 7, 9]), np.random.default_rng(0).normal(size=(3, 4))
    caps = np.random.default_rng(1).uniform(size=Y.shape)
    right = (values > 0) == (Y[rows] > 0)
    assert held_out_score("hamming", labels, caps, rows, values) == pytest.approx(
        np.sum(right * caps[rows]) / np.sum(caps[rows])
    )
    assert held_out_score("ranking", labels, np.ones(Y.shape), rows, values) == pytest.approx(
        label_ranking_average_precision_score(Y[rows], values)
    )
    classes = label_signs(np.arange(90) % 4, np.arange(90) % 4)
    score = held_out_score("hamming", classes, np.ones((90, 4)), rows, values)
    assert score == pytest.approx(np.mean(values.argmax(axis=1) == rows % 4))
    binary = label_signs(Y[:, 0], Y[:, 0])
    for metric in ("hamming", "ranking"):
        score = held_out_score(metric, binary, np.ones((90, 1)), rows, values[:, :1])
        assert score == pytest.approx(np.mean((values[:, 0] > 0) == Y[rows, 0]))


@pytest.mark.parametrize("metric", ["hamming", "ranking"])
@pytest.mark.parametrize("y", [Y, sp.csr_array(Y), Y[:, 0], np.arange(90) % 3, Y[:, :1] > 0])
def test_metrics_for_every_kind_of_y(y, metric):
    model = M3LClassifier(metric=metric, cv=3).fit(X, y)
    assert ((model.C_path_["score"] >= 0) & (model.C_path_["score"] <= 1)).all()


# --- R ----------------------------------------------------------------------------------------


def test_shrinkage_is_chosen_with_c():
    model = M3LClassifier(label_correlation=R, cv=3).fit(X, Y)
    path = model.C_path_
    best = moderate(path)
    assert (model.C_, model.shrinkage_) == (path["C"][best], path["shrinkage"][best])
    assert set(path["shrinkage"]) == {0.0, 0.5, 0.9, 1.0}
    np.testing.assert_allclose(model.label_correlation_, shrunk(R, model.shrinkage_))
    same = M3LClassifier(model.C_, R, shrinkage=model.shrinkage_).fit(X, Y)
    np.testing.assert_allclose(same.decision_function(X), model.decision_function(X), atol=5e-3)


@pytest.mark.filterwarnings("ignore:.*predicts no label:UserWarning")
def test_a_correlation_that_is_wrong_is_shrunk_away():
    """Labels that never occur together, said to be nearly the same."""
    y = np.stack([X[:, 0] > 0.4, X[:, 0] < -0.4], axis=1)
    wrong = np.array([[1.0, 0.98], [0.98, 1.0]])
    model = M3LClassifier(label_correlation=wrong, loss="hamming", cv=3).fit(X, y)
    assert model.shrinkage_ > 0.4
    given = M3LClassifier(model.C_, wrong, loss="hamming").fit(X, y)
    assert given.shrinkage_ == 0.0
    assert np.mean(model.predict(X) == y) >= np.mean(given.predict(X) == y)


def test_a_shrinkage_that_is_given():
    model = M3LClassifier(0.5, R, shrinkage=0.25).fit(X, Y)
    np.testing.assert_allclose(model.label_correlation_, shrunk(R, 0.25))
    expected = M3LClassifier(0.5, shrunk(R, 0.25)).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    searched = M3LClassifier(label_correlation=R, shrinkage=0.25, cv=3).fit(X, Y)
    assert searched.shrinkage_ == 0.25
    assert "shrinkage" not in searched.C_path_
    assert not hasattr(M3LClassifier(0.5).fit(X, Y), "shrinkage_")


def test_a_correlation_from_labels_does_not_see_the_held_out_ones():
    seen = []

    def made(signs):
        seen.append(len(signs))
        return empirical_correlation(signs)

    M3LClassifier(label_correlation=made, cv=3).fit(X, Y)
    assert set(seen) == {90, 60}
    mild = 0.7 * np.eye(4) + 0.3
    M3LClassifier(label_correlation=lambda _: mild, loss="correlation", cv=3).fit(X, Y)
    frame = pd.DataFrame(R, list("abcd"), list("abcd"))
    named = M3LClassifier(label_correlation=frame, cv=3).fit(X, pd.DataFrame(Y, columns=list("badc")))  # fmt: skip
    assert named.label_correlation_.shape == (4, 4)


# --- losses and warnings ----------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["smo", "blocked", "coordinate"])
def test_squared_hinge_with_a_correlation(solver):
    expected = M3LClassifier(0.2, R, loss="squared_hinge", solver="smo", tol=1e-12).fit(X, Y)
    model = M3LClassifier(0.2, R, loss="squared_hinge", solver=solver, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-3)
    found = M3LClassifier(loss="squared_hinge", solver=solver, cv=3).fit(X, Y)
    assert found.solution_.status == "converged"


def test_a_model_that_predicts_no_label_is_warned_of():
    rare = np.zeros((90, 3), dtype=int)
    rare[:3] = np.eye(3)
    noise = np.random.default_rng(0).normal(size=(90, 2))
    with pytest.warns(UserWarning, match="predicts no label.*have 3.*class_weight='balanced'"):
        M3LClassifier(1e-4).fit(noise, rare)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        M3LClassifier(0.5).fit(X, Y)
        M3LClassifier(1e-4).fit(noise, 0 * rare)  # there is nothing to predict
        M3LClassifier(1e-4).fit(noise, np.arange(90) % 3)  # some class is always predicted
