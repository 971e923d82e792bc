"""Contrasts of hand-made trees, and the penalties that go with them."""

import numpy as np
import pytest

from gramian.labels import Contrasts, Taxonomy, family_contrasts, leaf_contrasts, sibling_contrasts
from gramian.labels.margins.tree_margins import Flat, Independent, Orthogonal, PathSum, Similarity

# c has one child, d one that has one child in turn
TREE = Taxonomy.from_parents(
    {
        "a": None, "b": None, "c": None, "d": None,
        "a1": "a", "a2": "a", "c1": "c", "d1": "d",
        "a21": "a2", "a22": "a2", "a23": "a2", "d11": "d1",
    }
)  # fmt: skip
LEAVES = ["b", "a1", "c1", "a21", "a22", "a23", "d11"]


def named(contrasts, label, outputs):
    """(own, rival, ρ) by names, as a sorted list: a contrast must not come twice."""
    contrasts = contrasts.triples()
    some = slice(*contrasts.start[label : label + 2])
    names = TREE.names[outputs]
    own, rival = names[contrasts.own[some]], names[contrasts.rival[some]]
    return sorted(zip(own.tolist(), rival.tolist(), contrasts.scale[some].tolist(), strict=True))


def against(own, rivals, scale=1.0):
    return [(own, rival, scale) for rival in rivals]


NODES = np.arange(1, TREE.n_nodes)


# --- contrasts ------------------------------------------------------------------------------------

PATHS = {
    "b": against("b", "acd"),
    "a1": against("a1", ["a2"]) + against("a", "bcd"),
    "a22": against("a22", ["a21", "a23"]) + against("a2", ["a1"]) + against("a", "bcd"),
    "a2": against("a2", ["a1"]) + against("a", "bcd"),
    "a": against("a", "bcd"),
    "c1": against("c", "abd"),
    "d11": against("d", "abc"),
}


def test_siblings_along_the_path():
    labels = list(PATHS)
    contrasts = sibling_contrasts(TREE, TREE.index(np.array(labels)))
    assert contrasts.n_labels == len(labels)
    assert contrasts.n_outputs == TREE.n_nodes - 1
    for c, label in enumerate(labels):
        assert named(contrasts, c, NODES) == sorted(PATHS[label]), label


def test_a_family_is_a_level():
    contrasts = family_contrasts(TREE)
    expected = {
        "a": "bcd", "b": "acd", "c": "abd", "d": "abc", "a1": ["a2"], "a2": ["a1"], "c1": [], "d1": [],
        "a21": ["a22", "a23"], "a22": ["a21", "a23"], "a23": ["a21", "a22"], "d11": [],
    }  # fmt: skip
    assert contrasts.n_labels == contrasts.n_outputs == len(expected)
    for p, node in enumerate(NODES):
        name = str(TREE.names[node])
        assert named(contrasts, p, NODES) == sorted(against(name, expected[name]))


@pytest.mark.parametrize("by_distance", [False, True])
def test_leaves_that_are_not_below(by_distance):
    labels = TREE.index(np.array(["b", "a22", "a2", "d"]))
    outputs = np.concatenate([TREE.leaves, labels[2:]])
    contrasts = leaf_contrasts(TREE, labels, outputs, by_distance=by_distance)
    halves = [  # half the number of edges between the two
        {"a1": 1.5, "c1": 1.5, "a21": 2.0, "a22": 2.0, "a23": 2.0, "d11": 2.0},
        {"b": 2.0, "a1": 1.5, "c1": 2.5, "a21": 1.0, "a23": 1.0, "d11": 3.0},
        {"b": 1.5, "a1": 1.0, "c1": 2.0, "d11": 2.5},
        {"b": 1.0, "a1": 1.5, "c1": 1.5, "a21": 2.0, "a22": 2.0, "a23": 2.0},
    ]
    for c, (label, half) in enumerate(zip(["b", "a22", "a2", "d"], halves, strict=True)):
        expected = [(label, leaf, apart if by_distance else 1.0) for leaf, apart in half.items()]
        assert named(contrasts, c, outputs) == sorted(expected)
    largest = [max(half.values()) for half in halves]
    np.testing.assert_array_equal(contrasts.most(), largest if by_distance else np.ones(4))


def test_triples_there_and_back():
    contrasts = leaf_contrasts(TREE, LABELS, PathSum(TREE, LABELS).outputs, by_distance=True)
    triples = contrasts.triples()
    again = Contrasts.from_triples(triples, contrasts.n_outputs)
    for one, other in zip(again.triples(), triples, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.counts(), contrasts.counts())
    np.testing.assert_array_equal(again.most(), contrasts.most())
    assert contrasts.own.size < triples.own.size


def test_labels_without_contrasts_cost_nothing():
    chain = Taxonomy.from_parents({"a": None, "b": None, "b1": "b"})
    families = family_contrasts(chain)
    np.testing.assert_array_equal(families.most(), [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(families.start, [0, 1, 2, 2])
    np.testing.assert_array_equal(families.counts(), [1, 1, 0])


# --- margins --------------------------------------------------------------------------------------

LABELS = TREE.index(np.array([*LEAVES, "a2", "d", "a"]))


def edges():
    return [(TREE.parent[v] - 1, v - 1) for v in NODES if TREE.parent[v] != 0]


def test_similarity_is_the_form_of_the_paper(rng):
    S = Similarity(TREE, LABELS).penalty.gram
    for _ in range(20):
        W = rng.normal(size=(len(NODES), 3))
        form = sum(w @ w for w in W) + sum(np.sum((W[i] - W[j]) ** 2) for i, j in edges())
        np.testing.assert_allclose(np.trace(W.T @ np.linalg.solve(S, W)), form)
    uncoupled = S[0, 1:4]
    assert not uncoupled.any()  # the root has no normal to share


def test_path_sums_have_common_ancestors_in_common():
    margins = PathSum(TREE, LABELS)
    above = np.zeros((TREE.n_nodes, TREE.n_nodes))
    for node in NODES:
        above[node, node] = 1
        above[node] += above[TREE.parent[node]]
    phi = above[margins.outputs, 1:]
    np.testing.assert_array_equal(margins.penalty.gram, phi @ phi.T)
    assert not margins.recursive


def test_flat_inner_labels_are_means_of_leaves():
    margins = Flat(TREE, LABELS)
    names = TREE.names[margins.outputs]
    assert names[: len(LEAVES)].tolist() == LEAVES
    assert sorted(names[len(LEAVES) :]) == ["a", "a2", "d"]
    assert not margins.recursive
    means = {leaf: {leaf: 1.0} for leaf in LEAVES}
    means["a"] = dict.fromkeys(["a1", "a21", "a22", "a23"], 1 / 4)
    means["a2"] = dict.fromkeys(["a21", "a22", "a23"], 1 / 3)
    means["d"] = {"d11": 1.0}
    phi = np.array([[means[name].get(leaf, 0.0) for leaf in LEAVES] for name in names])
    np.testing.assert_allclose(margins.penalty.gram, phi @ phi.T, atol=1e-15)


def test_flat_with_leaves_only_is_the_identity():
    margins = Flat(TREE, TREE.leaves)
    np.testing.assert_array_equal(margins.penalty.gram, np.eye(len(LEAVES)))


def test_independent_examples_have_a_loss_at_each_level():
    margins = Independent(TREE, LABELS)
    codes, caps = np.array([0, 3, 7, 3]), np.array([1.0, 2.0, 3.0, 4.0])  # b, a21, a2, a21
    units = margins.units(codes, caps)
    found = sorted(
        (int(k), str(TREE.names[1 + label]), float(cap))
        for k, label, cap in zip(units["examples"], units["labels"], units["caps"], strict=True)
    )
    assert found == [
        (0, "b", 1.0), (1, "a", 2.0), (1, "a2", 2.0), (1, "a21", 2.0), (2, "a", 3.0), (2, "a2", 3.0),
        (3, "a", 4.0), (3, "a2", 4.0), (3, "a21", 4.0),
    ]  # fmt: skip
    np.testing.assert_array_equal(margins.penalty.gram, np.eye(len(NODES)))
    assert margins.recursive


@pytest.mark.parametrize("kind", [Similarity, PathSum, Flat, Orthogonal])
def test_other_examples_have_one_loss(kind):
    more = (np.eye(len(NODES)),) if kind is Orthogonal else ()
    units = kind(TREE, LABELS, *more).units(np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(units["labels"], [2, 0, 2])
    np.testing.assert_array_equal(units["examples"], [0, 1, 2])
    np.testing.assert_array_equal(units["caps"], [1.0, 2.0, 3.0])


def test_orthogonal_and_similarity_share_contrasts():
    one = Orthogonal(TREE, LABELS, np.eye(len(NODES))).contrasts
    other = Similarity(TREE, LABELS).contrasts
    for name in ("start", "own", "first", "end", "scale"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
