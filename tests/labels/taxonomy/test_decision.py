"""Decisions of least expected cost."""

import numpy as np
import pytest

from gramian._core.arrays import to_numpy
from gramian.labels import Taxonomy, cost_matrix, minimum_risk

PETS = Taxonomy.from_dict({"animal": {"cat": ["lion", "lynx"], "dog": None}, "vehicle": ["van"]})
EVERY = np.arange(PETS.n_nodes)


def name_of(loss, P, decisions=EVERY):
    best = minimum_risk(np.array([P]), cost_matrix(loss, PETS, decisions))
    return PETS.names[decisions[best[0]]]


def test_the_order_of_leaves():
    assert PETS.leaf_names.tolist() == ["dog", "van", "lion", "lynx"]


def test_the_likeliest_leaf_under_zero_one_loss(rng):
    P = rng.dirichlet(np.ones(4), size=20)
    best = minimum_risk(P, cost_matrix("zero_one", PETS, EVERY))
    np.testing.assert_array_equal(EVERY[best], PETS.leaves[P.argmax(axis=1)])


def test_inner_nodes_are_never_right_under_zero_one_loss():
    assert cost_matrix("zero_one", PETS, PETS.index(["cat", "lion"])).tolist() == [
        [1, 1, 1, 1],
        [1, 1, 0, 1],
    ]


def test_taxonomic_costs_are_half_the_path():
    np.testing.assert_array_equal(cost_matrix("taxonomic", PETS, EVERY), PETS.delta(EVERY))


def test_in_doubt_the_taxonomic_decision_stays_above():
    assert name_of("taxonomic", [0.0, 0.0, 0.5, 0.5]) == "cat"
    assert name_of("taxonomic", [0.05, 0.0, 0.9, 0.05]) == "lion"
    assert (
        name_of("taxonomic", [0.35, 0.4, 0.125, 0.125], PETS.leaves) == "dog"
    )  # van is farther off


def test_parent_costs():
    """Only the parent must be right: that of a leaf, or an inner node itself."""
    costs = cost_matrix("parent", PETS, PETS.index(["lion", "cat", "animal", "root"]))
    assert costs.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]]
    assert name_of("parent", [0.4, 0.0, 0.3, 0.3], PETS.leaves) == "lion"


def test_own_costs_on_any_array_library(rng, xp):
    P = rng.dirichlet(np.ones(4), size=50)
    costs = rng.uniform(size=(3, 4))
    expected = np.argmin(P @ costs.T, axis=1)
    for dtype in (xp.float64, xp.float32):
        given = xp.asarray(P, dtype=dtype)
        best = minimum_risk(given, costs)
        assert type(best) is type(given)
        np.testing.assert_array_equal(to_numpy(best), expected)


def test_blocks_of_rows(rng, monkeypatch):
    P, costs = rng.dirichlet(np.ones(4), size=50), rng.uniform(size=(3, 4))
    whole = minimum_risk(P, costs)
    monkeypatch.setattr("gramian.labels.taxonomy.decision._BLOCK_BYTES", 500)
    np.testing.assert_array_equal(minimum_risk(P, costs), whole)
    assert minimum_risk(P[:0], costs).shape == (0,)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match=r"loss must be one of 'zero_one'.*got 'hinge'"):
        cost_matrix("hinge", PETS, EVERY)
    with pytest.raises(IndexError, match="0 to 7, got 8"):
        cost_matrix("parent", PETS, 8)
    with pytest.raises(ValueError, match=r"got \(3, 5\) and \(2, 4\)"):
        minimum_risk(np.ones((2, 4)), np.ones((3, 5)))
