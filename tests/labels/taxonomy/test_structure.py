"""The label Gram matrix of a taxonomy against Φ_L diag(v) Φ_Lᵀ, formed as a matrix."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian._core.arrays import to_numpy
from gramian.labels import Taxonomy, TreeStructure
from gramian.testing import check_structure

PETS = Taxonomy.from_dict({"animal": {"cat": ["lion", "lynx"], "dog": None}, "vehicle": ["van"]})
CHAIN_WITH_LEAVES = Taxonomy.from_parents({1: 0, 2: 1, 3: 2, 4: 2, 5: 1})
RANDOM = Taxonomy.from_parents({i: (i * i + 3) % i for i in range(1, 25)})
FLAT = Taxonomy.from_parents({i: "top" for i in range(4)})


def dense(structure: TreeStructure) -> np.ndarray:
    taxonomy = structure.taxonomy
    Phi = np.eye(taxonomy.n_nodes)
    for node in range(taxonomy.n_nodes):
        Phi[node, taxonomy.ancestors(node)] = 1
    variances = np.append(0.0, structure.variances[structure.groups[1:]])
    return Phi[structure.order] @ np.diag(variances) @ Phi[structure.order].T


@pytest.mark.parametrize("share", ["tied", "class", "level", "subtree"])
@pytest.mark.parametrize(
    "taxonomy", [PETS, CHAIN_WITH_LEAVES, RANDOM, FLAT], ids=lambda t: t.n_nodes
)
def test_keeps_the_contract(taxonomy, share, rng):
    groups = taxonomy.groups(share)
    variances = rng.uniform(0.5, 2.0, size=groups.max() + 1)
    structure = TreeStructure(taxonomy, variances, groups, order=rng.permutation(taxonomy.leaves))
    check_structure(structure, taxonomy.n_leaves, dense(structure))


def test_what_classes_share():
    """Lion and lynx have animal and cat in common, lion and dog only animal, lion and van nothing."""
    structure = TreeStructure(PETS, [1.0, 0.5, 0.25], groups=PETS.groups("level"))
    assert PETS.leaf_names.tolist() == ["dog", "van", "lion", "lynx"]
    np.testing.assert_allclose(
        structure.mix(np.eye(4)),
        [[1.5, 0, 1, 1], [0, 1.5, 0, 0], [1, 0, 1.75, 1.5], [1, 0, 1.5, 1.75]],
    )


def test_a_flat_tree_is_the_scalar_structure(rng):
    B = rng.normal(size=(5, 4))
    np.testing.assert_allclose(TreeStructure(FLAT, [2.0]).mix(B), 2.0 * B)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=25),
    st.sampled_from([(), (1,), (6,), (33,)]),
)
def test_mix_of_any_tree(shares, trailing):
    rng = np.random.default_rng(len(shares))
    taxonomy = Taxonomy.from_parents({i + 1: int(u * (i + 1)) for i, u in enumerate(shares)})
    order = rng.permutation(taxonomy.leaves)
    variances = rng.uniform(0.5, 2.0, size=taxonomy.n_nodes - 1)
    structure = TreeStructure(taxonomy, variances, taxonomy.groups("class"), order)
    B = rng.normal(size=(19, taxonomy.n_leaves, *trailing))
    expected = np.einsum("ic...,cd->id...", B, dense(structure))
    np.testing.assert_allclose(structure.mix(B), expected, atol=1e-11)


def test_any_array_library(rng, xp):
    groups = RANDOM.groups("level")
    structure = TreeStructure(RANDOM, rng.uniform(0.5, 2.0, size=groups.max() + 1), groups)
    S = dense(structure)
    for shape in [(6, RANDOM.n_leaves), (6, RANDOM.n_leaves, 3)]:
        B, E = rng.normal(size=(2, *shape))
        mixed = structure.mix(xp.asarray(B))
        assert type(mixed) is type(xp.asarray(B))
        np.testing.assert_allclose(
            to_numpy(mixed), np.einsum("ic...,cd->id...", B, S), rtol=1e-12, atol=1e-12
        )
        gradient = structure.vjp(xp.asarray(E), xp.asarray(B))
        assert isinstance(gradient, np.ndarray)
        np.testing.assert_allclose(gradient, structure.vjp(E, B), rtol=1e-12)
        single = structure.mix(xp.asarray(B, dtype=xp.float32))
        assert single.dtype == xp.float32


def test_large_products_in_parallel(rng):
    structure = TreeStructure(PETS, [1.0, 0.5, 0.25], groups=PETS.groups("level"))
    B = rng.normal(size=(30_000, 4))
    np.testing.assert_allclose(structure.mix(B), B @ dense(structure), rtol=1e-12, atol=1e-12)


def test_gradients_in_blocks_of_rows(rng, monkeypatch):
    structure = TreeStructure(PETS, np.ones(7), groups=PETS.groups("class"))
    E, G = rng.normal(size=(2, 50, 4))
    whole = structure.vjp(E, G)
    monkeypatch.setattr("gramian.labels.taxonomy.structure._BLOCK_BYTES", 2000)
    np.testing.assert_allclose(structure.vjp(E, G), whole, rtol=1e-12)


def test_subtree_sums_of_outputs(rng):
    order = PETS.index(["lynx", "dog", "lion", "van"])
    B = rng.normal(size=(3, 4))
    nodes = TreeStructure(PETS, [1.0], order=order).subtree_sums(B)
    np.testing.assert_allclose(nodes[:, PETS.index("cat")], B[:, 0] + B[:, 2])
    np.testing.assert_allclose(nodes[:, 0], B.sum(axis=1))


def test_store_and_load(rng):
    skops = pytest.importorskip("skops.io")
    structure = TreeStructure(PETS, [1.0, 0.5, 0.25], groups=PETS.groups("level"))
    B = rng.normal(size=(3, 4))
    mixed = structure.mix(B)
    stored = skops.dumps(structure)
    loaded = skops.loads(stored, trusted=skops.get_untrusted_types(data=stored))
    for other in (loaded, pickle.loads(pickle.dumps(structure))):
        np.testing.assert_array_equal(other.mix(B), mixed)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"variances": [0.0]}, "variances must be a vector of positive numbers"),
        ({"groups": [0] * 8}, r"-1 for the root and 0 to 0 elsewhere"),
        ({"groups": [-1, 0, 0, 0, 0, 0, 0, 1]}, "as there are 1 variances.*0 to 1 elsewhere"),
        ({"groups": [-1, 0]}, r"groups must have shape \(8,\), one for each node"),
        ({"order": [4, 5, 6, 6]}, "each leaf once"),
        ({"order": [0, 1, 2, 3]}, "permutation of taxonomy.leaves"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        TreeStructure(**{"taxonomy": PETS, "variances": [1.0], **arguments})


def test_a_mapping_is_not_yet_a_taxonomy():
    with pytest.raises(TypeError, match="as_taxonomy makes one"):
        TreeStructure({"a": None}, [1.0])


def test_the_number_of_outputs_must_fit():
    with pytest.raises(ValueError, match=r"one column for each leaf, 4; got shape \(5, 3\)"):
        TreeStructure(PETS, [1.0]).mix(np.ones((5, 3)))
