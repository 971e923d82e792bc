"""Scores in a taxonomy against oracles with sets and loops, the paper's definitions, identities."""

import pickle

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV

from gramian.labels import Taxonomy, cost_matrix
from gramian.metrics import (
    credited,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    parent_accuracy,
    taxo_loss,
    taxonomy_scorers,
    tree_zero_one_loss,
)

METRICS = [
    taxo_loss,
    parent_accuracy,
    hierarchical_precision,
    hierarchical_recall,
    hierarchical_f1,
    tree_zero_one_loss,
]

PARENTS = {
    "cat": "mammal",
    "dog": "mammal",
    "owl": "bird",
    "emu": "bird",
    "mammal": "vertebrate",
    "bird": "vertebrate",
    "ant": "insect",
    "bee": "insect",
    "amoeba": None,
}
ANIMALS = Taxonomy.from_parents(PARENTS)  # "root" above vertebrate, insect and amoeba
FLAT = Taxonomy.from_parents(dict.fromkeys("abcde"))


def ancestors(name):
    """The name and everything above it, without the root."""
    found = set()
    while name is not None and name != "root":
        found.add(name)
        name = PARENTS.get(name)
    return found


def naive(metric, y_true, y_pred, weights):
    """Each score from sets of ancestors, one example at a time."""
    total = shared = true = predicted = loss = parents = wrong = 0.0
    for t, p, w in zip(y_true, y_pred, weights):
        up_t, up_p = ancestors(t), ancestors(p)
        total += w
        shared += w * len(up_t & up_p)
        true += w * len(up_t)
        predicted += w * len(up_p)
        loss += w * len(up_t ^ up_p) / 2  # every node above only one of them is one edge
        parents += w * (_parent(t) == _parent(p))
        wrong += w * (t not in up_p | {"root"})  # neither p nor above it
    precision, recall = shared / predicted, shared / true
    return {
        taxo_loss: loss / total,
        parent_accuracy: parents / total,
        hierarchical_precision: precision,
        hierarchical_recall: recall,
        hierarchical_f1: 2 * precision * recall / (precision + recall),
        tree_zero_one_loss: wrong / total,
    }[metric]


def _parent(name):
    """That of a leaf; an inner node stands for itself."""
    leaf = name not in PARENTS.values() and name != "root"
    return (PARENTS[name] or "root") if leaf else name


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_the_oracle(rng, metric, inner, weighted):
    names = ANIMALS.names if inner else ANIMALS.leaf_names
    y_true, y_pred = rng.choice(names, size=(2, 200))
    weights = rng.uniform(0.1, 2.0, size=200) if weighted else None
    expected = naive(metric, y_true, y_pred, np.ones(200) if weights is None else weights)
    got = metric(y_true, y_pred, ANIMALS, sample_weight=weights)
    assert isinstance(got, float)
    assert got == pytest.approx(expected, rel=1e-12)


def test_the_definitions_by_hand():
    # cat -> dog: one edge up, one down; cat -> owl: two and two; cat -> ant: three and two
    assert taxo_loss(["cat"], ["cat"], ANIMALS) == 0
    assert taxo_loss(["cat"], ["dog"], ANIMALS) == 1
    assert taxo_loss(["cat"], ["owl"], ANIMALS) == 2
    assert taxo_loss(["cat"], ["ant"], ANIMALS) == 2.5
    assert taxo_loss(["cat"], ["bird"], ANIMALS) == 1.5
    assert parent_accuracy(["cat", "cat", "cat"], ["dog", "owl", "mammal"], ANIMALS) == 2 / 3
    assert parent_accuracy(["mammal"], ["vertebrate"], ANIMALS) == 0
    # {cat, mammal, vertebrate} and {bird, vertebrate} share one
    assert hierarchical_precision(["cat"], ["bird"], ANIMALS) == 1 / 2
    assert hierarchical_recall(["cat"], ["bird"], ANIMALS) == 1 / 3
    assert hierarchical_f1(["cat"], ["bird"], ANIMALS) == pytest.approx(2 / 5)


def test_a_flat_tree_gives_the_common_scores(rng):
    y_true, y_pred = rng.choice(list("abcde"), size=(2, 80))
    accuracy = accuracy_score(y_true, y_pred)
    assert taxo_loss(y_true, y_pred, FLAT) == pytest.approx(1 - accuracy)
    assert tree_zero_one_loss(y_true, y_pred, FLAT) == pytest.approx(1 - accuracy)
    assert parent_accuracy(y_true, y_pred, FLAT) == 1
    for metric in (hierarchical_precision, hierarchical_recall, hierarchical_f1):
        assert metric(y_true, y_pred, FLAT) == pytest.approx(accuracy)


def test_precision_and_recall_change_places(rng):
    y_true, y_pred = rng.choice(ANIMALS.names, size=(2, 50))
    assert hierarchical_precision(y_true, y_pred, ANIMALS) == hierarchical_recall(
        y_pred, y_true, ANIMALS
    )


@pytest.mark.parametrize("metric", METRICS)
def test_weights_count_like_repeats(rng, metric):
    y_true, y_pred = rng.choice(ANIMALS.names, size=(2, 40))
    times = rng.integers(0, 4, size=40)
    weighted = metric(y_true, y_pred, ANIMALS, sample_weight=times)
    repeated = metric(np.repeat(y_true, times), np.repeat(y_pred, times), ANIMALS)
    assert weighted == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_the_root_alone_is_no_division_by_zero(metric):
    perfect = {taxo_loss: 0.0, parent_accuracy: 1.0, tree_zero_one_loss: 0.0}
    assert metric(["root"], ["root"], ANIMALS) == perfect.get(metric, 0.0)


@pytest.mark.parametrize("metric", METRICS)
def test_takes_what_can_be_a_taxonomy(metric):
    y_true, y_pred = ["cat", "owl", "ant"], ["dog", "owl", "bee"]
    assert metric(y_true, y_pred, PARENTS) == metric(y_true, y_pred, ANIMALS)


@pytest.mark.parametrize("loss", ["taxonomic", "parent"])
def test_decisions_of_least_risk_minimise_these_scores(loss):
    decisions = np.arange(ANIMALS.n_nodes)
    costs = cost_matrix(loss, ANIMALS, decisions)
    for decision in decisions:
        for column, leaf in enumerate(ANIMALS.leaf_names):
            pair = [leaf], [ANIMALS.names[decision]], ANIMALS
            score = taxo_loss(*pair) if loss == "taxonomic" else 1 - parent_accuracy(*pair)
            assert costs[decision, column] == score


def test_names_can_be_numbers():
    tree = Taxonomy.from_edges([(10, 1), (10, 2), (20, 3), (20, 4), (0, 10), (0, 20)])
    assert taxo_loss(np.array([1, 1]), [2, 3], tree) == 1.5


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "arguments, names",
    [
        (dict(y_true=["cta"], y_pred=["cat"]), "y_true.*cta"),
        (dict(y_true=["cat"], y_pred=["unicorn"]), "y_pred.*unicorn"),
        (dict(y_true=[], y_pred=[]), "y_true"),
        (dict(y_true=["cat"], y_pred=["cat", "dog"]), "y_pred"),
        (dict(y_true=[["cat"]], y_pred=["cat"]), "y_true"),
        (dict(y_true=["cat"], y_pred=["cat"], sample_weight=[-1.0]), "sample_weight"),
        (dict(y_true=["cat"], y_pred=["cat"], sample_weight=[0.0]), "sample_weight"),
        (dict(y_true=["cat"], y_pred=["cat"], sample_weight=[1.0, 1.0]), "sample_weight"),
    ],
)
def test_bad_input_is_named(metric, arguments, names):
    with pytest.raises(ValueError, match=f"(?s){names}"):
        metric(taxonomy=ANIMALS, **arguments)


# --- inner nodes as the truth -----------------------------------------------------------------


def test_answers_below_the_truth_are_right():
    y_true = ["mammal", "mammal", "vertebrate", "cat", "bird", "cat"]
    y_pred = ["cat", "owl", "emu", "mammal", "bird", "dog"]
    expected = ["mammal", "owl", "vertebrate", "mammal", "bird", "dog"]
    assert credited(y_true, y_pred, PARENTS).tolist() == expected
    assert tree_zero_one_loss(y_true, y_pred, PARENTS) == 3 / 6


def test_credited_predictions_give_every_score_the_rule(rng):
    y_true, y_pred = rng.choice(ANIMALS.names, size=300), rng.choice(ANIMALS.leaf_names, size=300)
    answers = credited(y_true, y_pred, ANIMALS)
    accuracy = 1 - tree_zero_one_loss(y_true, y_pred, ANIMALS)
    assert accuracy_score(y_true, answers) == pytest.approx(accuracy)
    assert f1_score(y_true, answers, average="micro") == pytest.approx(accuracy)
    assert tree_zero_one_loss(y_true, answers, ANIMALS) == pytest.approx(1 - accuracy)
    assert taxo_loss(y_true, answers, ANIMALS) < taxo_loss(y_true, y_pred, ANIMALS)
    np.testing.assert_array_equal(credited(y_true, answers, ANIMALS), answers)
    leaves = rng.choice(ANIMALS.leaf_names, size=300)
    np.testing.assert_array_equal(credited(leaves, y_pred, ANIMALS), y_pred)


@pytest.mark.parametrize(("y_true", "y_pred"), [(["cta"], ["cat"]), (["cat"], ["cat", "dog"]), ([], [])])  # fmt: skip
def test_credited_names_bad_input(y_true, y_pred):
    with pytest.raises(ValueError, match=r"y_true|y_pred"):
        credited(y_true, y_pred, ANIMALS)


# --- scorers ------------------------------------------------------------------------------------


def test_scorers_have_the_right_signs(rng):
    y = rng.choice(ANIMALS.leaf_names, size=30)
    X = np.zeros((30, 1))
    model = DummyClassifier(strategy="constant", constant="cat").fit(X, [*y[:-1], "cat"])
    scorers = taxonomy_scorers(PARENTS)
    names = {tree_zero_one_loss: "tree_accuracy"}
    assert set(scorers) == {names.get(metric, metric.__name__) for metric in METRICS}
    for metric in METRICS:
        scorer = scorers[names.get(metric, metric.__name__)]
        sign = -1 if metric in (taxo_loss, tree_zero_one_loss) else 1
        offset = 1 if metric is tree_zero_one_loss else 0
        expected = offset + sign * metric(y, model.predict(X), ANIMALS)
        assert scorer(model, X, y) == pytest.approx(expected)
        weights = np.arange(30)
        loss = metric(y, model.predict(X), ANIMALS, sample_weight=weights)
        assert scorer(model, X, y, sample_weight=weights) == pytest.approx(offset + sign * loss)


def test_scorers_choose_in_a_grid_search():
    # the most frequent class is far from all others, a mammal is near to most of them
    y = np.array(["amoeba"] * 8 + ["cat", "dog"] * 6 + ["owl", "emu"] * 3)
    grid = {"constant": ["amoeba", "dog"]}
    model = DummyClassifier(strategy="constant")
    scorers = pickle.loads(pickle.dumps(taxonomy_scorers(ANIMALS)))
    search = GridSearchCV(model, grid, scoring=scorers, refit="taxo_loss", cv=3)
    search.fit(np.zeros((len(y), 1)), y)
    assert search.best_params_ == {"constant": "dog"}
    assert (search.cv_results_["mean_test_taxo_loss"] < 0).all()
    assert (search.cv_results_["mean_test_hierarchical_f1"] > 0).all()
