"""Taxonomies: every way to build one, what is asked of it, and what is refused."""

import copy
import pickle

import networkx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage

from gramian._core.arrays import to_numpy
from gramian.labels import Taxonomy, as_taxonomy

PARENTS = {
    "animal": None,
    "vehicle": None,
    "cat": "animal",
    "dog": "animal",
    "van": "vehicle",
    "lion": "cat",
    "lynx": "cat",
}
NAMES = ["root", "animal", "vehicle", "cat", "dog", "van", "lion", "lynx"]
PARENT = [-1, 0, 0, 1, 1, 2, 3, 3]
LEAVES = [4, 5, 6, 7]  # dog, van, lion, lynx


@pytest.fixture
def pets() -> Taxonomy:
    return Taxonomy.from_parents(PARENTS)


def trees(max_nodes: int = 30) -> st.SearchStrategy[Taxonomy]:
    """Trees of every shape: the parent of node i is any of the nodes before it."""
    ancestors = st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=max_nodes - 1)
    return ancestors.map(
        lambda shares: Taxonomy.from_parents(
            {i + 1: int(u * (i + 1)) for i, u in enumerate(shares)}
        )
    )


any_tree = settings(max_examples=25, deadline=None, derandomize=True)


def dense_phi(taxonomy: Taxonomy) -> np.ndarray:
    """Φ[p, r] = 1 if r is p or an ancestor of p."""
    Phi = np.eye(taxonomy.n_nodes)
    for node in range(taxonomy.n_nodes):
        Phi[node, taxonomy.ancestors(node)] = 1
    return Phi


class TestBuilding:
    NESTED = {"animal": {"cat": ["lion", "lynx"], "dog": None}, "vehicle": {"van": {}}}
    EDGES = [
        ("root", "animal"),
        ("root", "vehicle"),
        ("animal", "cat"),
        ("animal", "dog"),
        ("vehicle", "van"),
        ("cat", "lion"),
        ("cat", "lynx"),
    ]
    CHILDREN = {"animal": ["cat", "dog"], "vehicle": ["van"], "cat": ["lion", "lynx"]}

    @pytest.mark.parametrize(
        "build",
        [
            lambda: Taxonomy(NAMES, PARENT),
            lambda: Taxonomy(np.array(NAMES), np.array(PARENT, dtype=np.int32)),
            lambda: Taxonomy.from_parents(PARENTS),
            lambda: Taxonomy.from_parents({name: PARENTS[name] for name in list(PARENTS)[2:]}),
            lambda: Taxonomy.from_edges(TestBuilding.EDGES),
            lambda: Taxonomy.from_edges(np.array(TestBuilding.EDGES)),
            lambda: Taxonomy.from_dict(TestBuilding.NESTED),
            lambda: Taxonomy.from_dict(TestBuilding.CHILDREN),
            lambda: Taxonomy.from_networkx(networkx.DiGraph(TestBuilding.EDGES)),
            lambda: as_taxonomy(Taxonomy(NAMES, PARENT)),
            lambda: as_taxonomy(PARENTS),
            lambda: as_taxonomy(TestBuilding.NESTED),
            lambda: as_taxonomy(TestBuilding.EDGES),
            lambda: as_taxonomy(networkx.DiGraph(TestBuilding.EDGES)),
        ],
    )
    def test_every_source_gives_the_same_tree(self, build):
        taxonomy = build()
        assert taxonomy.names.tolist() == NAMES
        assert taxonomy.parent.tolist() == PARENT
        assert taxonomy == Taxonomy(NAMES, PARENT)
        assert hash(taxonomy) == hash(Taxonomy(NAMES, PARENT))

    ROWS = [("animal", "cat", "lion"), ("animal", "cat", "lynx"), ("animal", "dog", None), ("van",)]

    @pytest.mark.parametrize(
        "paths",
        [
            ["animal/cat/lion", "animal/cat/lynx", "animal/dog", "van"],
            ["van", "animal/dog/", "animal/cat/lion", "animal/cat/lynx"],
            ROWS,
            pd.DataFrame([(*row, None, None)[:3] for row in ROWS]),
            pl.DataFrame([(*row, None, None)[:3] for row in ROWS], orient="row"),
            pd.Series(["animal/cat/lion", "animal/cat/lynx", "animal/dog", "van"]),
            np.array([(*row, "", "")[:3] if row[-1] else (*row[:2], "") for row in ROWS]),
            [
                ("animal", "cat", "lion"),
                ("animal", "cat", "lynx"),
                ["animal", "dog"],
                ("van", np.nan),
            ],
        ],
    )
    def test_paths_in_every_form(self, paths):
        taxonomy = as_taxonomy(paths)
        leaves = {"van", "animal/dog", "animal/cat/lion", "animal/cat/lynx"}
        assert set(taxonomy.leaf_names.tolist()) == leaves
        assert taxonomy.path("animal/cat/lion").tolist() == [
            "root",
            "animal",
            "animal/cat",
            "animal/cat/lion",
        ]

    def test_equal_words_at_different_places_stay_apart(self):
        taxonomy = Taxonomy.from_paths([("arts", "news"), ("science", "news")], separator=" > ")
        assert taxonomy.leaf_names.tolist() == ["arts > news", "science > news"]

    def test_a_dendrogram(self):
        Z = linkage([[0.0], [1.0], [5.0], [7.0]])
        by_number = Taxonomy.from_linkage(Z)
        assert by_number.names.tolist() == [6, 4, 5, 0, 1, 2, 3]
        assert by_number.parent.tolist() == [-1, 0, 0, 1, 1, 2, 2]
        named = Taxonomy.from_linkage(Z, names=["a", "b", "c", "d"])
        assert named.names.tolist()[:3] == ["cluster 6", "cluster 4", "cluster 5"]
        assert named.leaf_names.tolist() == ["a", "b", "c", "d"]

    def test_one_top_node_is_the_root_and_several_hang_under_a_new_one(self):
        assert Taxonomy.from_parents({"b": "a", "c": "a"}).names.tolist() == ["a", "b", "c"]
        assert Taxonomy.from_parents({"b": "a", "c": None}).names.tolist() == [
            "root",
            "a",
            "c",
            "b",
        ]
        assert Taxonomy.from_parents({"a": None}).names.tolist() == ["root", "a"]

    def test_names_need_not_be_comparable(self):
        taxonomy = Taxonomy.from_dict({"a": [1, ("x", "y")], 2.5: ["b"]})
        assert taxonomy.names.tolist() == ["root", "a", 2.5, 1, ("x", "y"), "b"]
        assert taxonomy.index([("x", "y"), 2.5]).tolist() == [4, 2]

    @any_tree
    @given(trees())
    def test_round_trip_through_parents(self, taxonomy):
        names = taxonomy.names.tolist()
        parents = {names[i]: names[p] if p >= 0 else None for i, p in enumerate(taxonomy.parent)}
        assert Taxonomy.from_parents(parents) == taxonomy
        edges = [(parent, child) for child, parent in parents.items() if parent is not None]
        assert Taxonomy.from_edges(edges) == taxonomy
        assert Taxonomy.from_networkx(networkx.DiGraph(edges)) == taxonomy


class TestRefusals:
    @pytest.mark.parametrize(
        "build, words",
        [
            (lambda: as_taxonomy({"a": "b", "b": "c", "c": "a"}), r"'b' → 'c' → 'a' → 'b'"),
            (lambda: as_taxonomy({"x": None, "a": "b", "b": "a"}), r"cycle of 2 nodes.*'a' → 'b'"),
            (lambda: as_taxonomy({i: (i + 1) % 99 for i in range(99)}), r"1 → 2 → 3 → 4 → … → 0 → 1"),
            (lambda: as_taxonomy([("a", "a")]), "'a' is its own parent"),
            (lambda: as_taxonomy([("a", "c"), ("b", "c")]), "'c' has two parents, 'a' and 'b'"),
            (lambda: as_taxonomy({"a": ["c"], "b": ["c"]}), "'c' has two parents, 'a' and 'b'"),
            (lambda: as_taxonomy({}), "empty"),
            (lambda: as_taxonomy([]), "empty"),
            (lambda: Taxonomy(["a"], [-1]), "empty"),
            (lambda: as_taxonomy({None: "a"}), "None cannot be the name of a node"),
            (lambda: as_taxonomy({np.nan: "a"}), "nan cannot be the name of a node"),
            (lambda: as_taxonomy([("a", None)]), "None cannot be the name"),
            (lambda: as_taxonomy([(None, "a")]), "None cannot be the name"),
            (lambda: as_taxonomy({"a": None, "root": "a", "b": None}), "'root'.*is there already"),
            (lambda: Taxonomy(["a", "b", "b"], [-1, 0, 0]), "unique.*'b'"),
            (lambda: Taxonomy(["a", "b"], [-1]), "2 names but 1 parents"),
            (lambda: Taxonomy(["a", "b", "c"], [-1, 2, 0]), "breadth first.*from_parents"),
            (lambda: Taxonomy(["a", "b", "c"], [-1, -1, 0]), "breadth first"),
            (lambda: Taxonomy.from_paths(["a//b"]), "empty part"),
            (lambda: Taxonomy.from_paths(["", "a"]), "A path is empty"),
            (lambda: Taxonomy.from_paths([("a/b", "c")]), "contains the separator '/'"),
            (lambda: Taxonomy.from_paths(["a"], separator=""), "separator must be"),
            (lambda: Taxonomy.from_edges([("a", "b", "c")]), r"pair \(parent, child\)"),
            (lambda: Taxonomy.from_networkx(networkx.Graph([("a", "b")])), "undirected"),
            (lambda: Taxonomy.from_linkage(np.ones((2, 3))), "'Z' must have 4 columns"),
            (lambda: Taxonomy.from_linkage(linkage(np.eye(3)), names=["a"]), "3 leaves, but 1 names"),
            (lambda: Taxonomy.from_linkage(linkage(np.eye(3)), names=[1, 2, 3]), "unique.*3"),
        ],
    )  # fmt: skip
    def test_what_is_not_a_tree(self, build, words):
        with pytest.raises(ValueError, match=words):
            build()

    @pytest.mark.parametrize(
        "build, words",
        [
            (lambda: as_taxonomy(3), "hierarchy must be a Taxonomy"),
            (lambda: as_taxonomy([3, 4]), "A path must be a string or a sequence"),
            (lambda: as_taxonomy("a/b"), "hierarchy must be a Taxonomy"),
            (lambda: Taxonomy.from_paths("a/b"), "paths must be a list"),
            (lambda: Taxonomy.from_paths([3]), "A path must be a string or a sequence"),
            (lambda: Taxonomy.from_parents({"a": ["b"]}), "from_dict"),
            (lambda: Taxonomy.from_parents([("a", "b")]), "needs a mapping"),
            (lambda: Taxonomy.from_dict({"a": "b"}), "from_parents"),
            (lambda: Taxonomy.from_dict(["a"]), "nested dictionary"),
            (lambda: Taxonomy.from_dict({"a": [["b"]]}), "hashable"),
            (lambda: Taxonomy.from_networkx([("a", "b")]), "networkx.DiGraph"),
            (lambda: Taxonomy(["a", "b"], [-1.0, 0.0]), "vector of integers"),
        ],
    )
    def test_what_does_not_describe_a_tree(self, build, words):
        with pytest.raises(TypeError, match=words):
            build()

    def test_unknown_labels_are_named_with_close_matches(self, pets):
        with pytest.raises(
            ValueError, match=r"no node 'lyon' and 1 more\. Close to it: 'lynx', 'lion'"
        ):
            pets.index(["cat", "lyon", "zebra", "zebra"])
        with pytest.raises(ValueError, match=r"no node 7\. It has \['root', 'animal'"):
            pets.index([7])
        with pytest.raises(TypeError, match="labels must be names"):
            pets.index([["cat"]])

    def test_nodes_are_numbers_in_range(self, pets):
        with pytest.raises(TypeError, match=r"Use index\(labels\)"):
            pets.children("cat")
        with pytest.raises(IndexError, match="0 to 7, got 8"):
            pets.ancestors(8)

    @pytest.mark.parametrize("method", ["path_sums", "subtree_sums", "node_proba"])
    def test_the_number_of_columns_must_fit(self, pets, method):
        with pytest.raises(ValueError, match=r"one column for each .*got shape \(2, 5\)"):
            getattr(pets, method)(np.ones((2, 5)))


class TestAsking:
    def test_shape(self, pets):
        assert (pets.n_nodes, pets.n_leaves, pets.height) == (8, 4, 3)
        assert pets.leaves.tolist() == LEAVES
        assert pets.leaf_names.tolist() == ["dog", "van", "lion", "lynx"]
        assert pets.depth.tolist() == [0, 1, 1, 2, 2, 2, 3, 3]
        assert pets.is_leaf.tolist() == [i in LEAVES for i in range(8)]

    def test_relatives(self, pets):
        assert pets.children(1).tolist() == [3, 4]
        assert pets.children(4).tolist() == []
        assert pets.ancestors(6).tolist() == [3, 1, 0]
        assert pets.ancestors(0).tolist() == []
        assert pets.path("lion").tolist() == ["root", "animal", "cat", "lion"]

    def test_index_keeps_the_shape(self, pets):
        assert pets.index("cat") == 3
        assert pets.index(["cat", "root"]).tolist() == [3, 0]
        assert pets.index(np.array([["cat", "dog"], ["van", "lion"]])).tolist() == [[3, 4], [5, 6]]
        assert pets.index(pd.Series(["cat"])).tolist() == [3]
        assert pets.index([]).shape == (0,)
        assert Taxonomy.from_edges([(9, 5), (9, 7)]).index(np.array([7.0, 9.0])).tolist() == [2, 0]

    def test_distances_by_name(self, pets):
        lion, lynx, dog, van = pets.index(["lion", "lynx", "dog", "van"])
        assert pets.distance(lion, lynx) == 2
        assert pets.distance(lion, dog) == 3
        assert pets.distance(lion, van) == 5
        assert pets.delta([lion], [lynx, dog, van]).tolist() == [[1.0, 1.5, 2.5]]
        assert pets.names[pets.lowest_common_ancestor(lion, dog)] == "animal"

    @any_tree
    @given(trees())
    def test_everything_agrees_with_phi(self, taxonomy):
        Phi = dense_phi(taxonomy)
        every = np.arange(taxonomy.n_nodes)
        shared = Phi @ Phi.T  # nodes that two paths have in common
        np.testing.assert_array_equal(taxonomy.depth, Phi.sum(axis=1) - 1)
        top = taxonomy.lowest_common_ancestor(every[:, None], every)
        np.testing.assert_array_equal(taxonomy.depth[top], shared - 1)
        assert np.all(Phi[every[:, None], top] == 1)
        distance = np.abs(Phi[:, None] - Phi).sum(axis=2)
        np.testing.assert_array_equal(taxonomy.distance(every[:, None], every), distance)
        np.testing.assert_array_equal(taxonomy.delta(every, every), distance / 2)
        leaves = taxonomy.leaves
        np.testing.assert_array_equal(taxonomy.delta(), distance[np.ix_(leaves, leaves)] / 2)
        np.testing.assert_array_equal(taxonomy.descends(every), Phi[leaves].T == 1)
        np.testing.assert_array_equal(taxonomy.leaf_counts, Phi[leaves].sum(axis=0))

    def test_groups(self, pets):
        assert pets.groups("tied").tolist() == [-1, 0, 0, 0, 0, 0, 0, 0]
        assert pets.groups("class").tolist() == [-1, 0, 1, 2, 3, 4, 5, 6]
        assert pets.groups("level").tolist() == [-1, 0, 0, 1, 1, 1, 2, 2]
        assert pets.groups("subtree").tolist() == [-1, 0, 1, 0, 0, 1, 0, 0]
        with pytest.raises(ValueError, match=r"share must be one of 'tied'.*got 'depth'"):
            pets.groups("depth")


class TestSums:
    @any_tree
    @given(trees(), st.sampled_from([(), (1,), (3,), (17,)]), st.integers(0, 40))
    def test_against_phi(self, taxonomy, trailing, n):
        Phi = dense_phi(taxonomy)
        B = np.random.default_rng(0).normal(size=(n, taxonomy.n_nodes, *trailing))
        B.setflags(write=False)
        paths = np.einsum("ir...,pr->ip...", B, Phi)
        subtrees = np.einsum("ip...,pr->ir...", B, Phi)
        np.testing.assert_allclose(taxonomy.path_sums(B), paths, atol=1e-12)
        np.testing.assert_allclose(taxonomy.subtree_sums(B), subtrees, atol=1e-12)

    def test_on_any_array_library(self, rng, xp):
        taxonomy = Taxonomy.from_parents({i: int(rng.integers(i)) for i in range(1, 40)})
        Phi = dense_phi(taxonomy)
        for dtype, accuracy in [(xp.float64, 1e-13), (xp.float32, 1e-5)]:
            for shape in [(5, 40), (5, 40, 2)]:
                B = rng.uniform(size=shape)
                given = xp.asarray(B, dtype=dtype)
                paths, subtrees = taxonomy.path_sums(given), taxonomy.subtree_sums(given)
                assert type(paths) is type(subtrees) is type(given)
                assert paths.dtype == subtrees.dtype == dtype
                expected = np.einsum("ir...,pr->ip...", B, Phi)
                np.testing.assert_allclose(to_numpy(paths), expected, rtol=accuracy)
                expected = np.einsum("ip...,pr->ir...", B, Phi)
                np.testing.assert_allclose(to_numpy(subtrees), expected, rtol=accuracy)

    def test_probabilities_of_nodes(self, pets, xp):
        P = xp.asarray([[0.5, 0.25, 0.125, 0.125]], dtype=xp.float64)  # dog, van, lion, lynx
        nodes = to_numpy(pets.node_proba(P))
        np.testing.assert_array_equal(nodes, [[1, 0.75, 0.25, 0.25, 0.5, 0.25, 0.125, 0.125]])

    def test_tiny_sums_keep_their_digits_beside_large_ones(self, pets, xp):
        P = xp.asarray([[1.0, 1e-30, 3e-30, 4e-30]], dtype=xp.float64)
        nodes = to_numpy(pets.node_proba(P))
        np.testing.assert_allclose(nodes[0, [2, 3]], [1e-30, 7e-30], rtol=1e-15)

    @pytest.mark.usefixtures("all_threads")
    def test_parallel_sweeps_agree_with_single_rows(self, rng, pets):
        B = rng.normal(size=(20_001, 8))  # above the size from which threads are used
        sums = pets.subtree_sums(B)
        for i in (0, 9_999, 20_000):
            np.testing.assert_array_equal(sums[i : i + 1], pets.subtree_sums(B[i : i + 1]))

    def test_layouts_and_integers(self, rng, pets):
        B = rng.normal(size=(8, 6))
        np.testing.assert_array_equal(pets.path_sums(B.T), pets.path_sums(B.T.copy()))
        counts = np.ones((1, 8), dtype=int)
        np.testing.assert_array_equal(pets.subtree_sums(counts), [[8, 5, 2, 3, 1, 1, 1, 1]])


class TestOddTrees:
    def test_a_long_chain(self, xp):
        n = 5000 if xp is np else 200
        chain = Taxonomy.from_parents({i: i - 1 for i in range(1, n)})
        assert (chain.height, chain.n_leaves) == (n - 1, 1)
        assert chain.distance(0, n - 1) == n - 1
        assert chain.ancestors(n - 1).size == n - 1
        ones = xp.ones((2, n), dtype=xp.float64)
        np.testing.assert_array_equal(to_numpy(chain.path_sums(ones))[0], np.arange(1, n + 1))
        np.testing.assert_array_equal(to_numpy(chain.subtree_sums(ones))[0], np.arange(n, 0, -1))
        assert len(repr(chain).splitlines()) < 25
        assert chain._repr_html_().count("<details") < 250

    def test_a_long_comb(self):
        """A leaf at each level: the dendrogram of single linkage."""
        comb = Taxonomy.from_linkage(linkage(np.cumsum(np.arange(600.0))[:, None]))
        assert comb.height == 599
        assert comb.delta().max() == 600 / 2

    def test_one_leaf(self):
        single = Taxonomy.from_parents({"only": None})
        assert single.leaf_names.tolist() == ["only"]
        np.testing.assert_array_equal(single.node_proba(np.ones((3, 1))), np.ones((3, 2)))

    def test_a_flat_tree(self):
        flat = as_taxonomy(["a", "b", "c"])
        assert flat.height == 1
        np.testing.assert_array_equal(flat.delta(), 1 - np.eye(3))


class TestKeeping:
    @pytest.mark.parametrize(
        "taxonomy",
        [
            Taxonomy.from_parents(PARENTS),
            Taxonomy.from_edges([(0, 1), (0, 2)]),
            Taxonomy.from_dict({"a": [1, 2], "b": [3]}),
        ],
        ids=["strings", "integers", "mixed"],
    )
    def test_copies_are_equal(self, taxonomy):
        taxonomy.delta()  # fills what is computed once
        skops = pytest.importorskip("skops.io")
        stored = skops.dumps(taxonomy)
        copies = [
            pickle.loads(pickle.dumps(taxonomy)),
            copy.deepcopy(taxonomy),
            skops.loads(stored, trusted=skops.get_untrusted_types(data=stored)),
        ]
        for other in copies:
            assert other == taxonomy
            assert other.names.dtype == taxonomy.names.dtype
            np.testing.assert_array_equal(other.delta(), taxonomy.delta())

    def test_others_are_not_equal(self, pets):
        assert pets != Taxonomy(NAMES, [-1, 0, 0, 1, 1, 2, 2, 3])
        assert pets != Taxonomy(["top", *NAMES[1:]], PARENT)
        assert pets != PARENTS

    def test_arrays_cannot_be_changed(self, pets):
        for array in (pets.names, pets.parent, pets.leaves, pets.depth):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[1]


class TestDrawing:
    def test_text(self, pets):
        expected = """
Taxonomy: 8 nodes, 4 leaves, height 3
root (4 leaves)
├─ animal (3 leaves)
│  ├─ cat (2 leaves)
│  │  ├─ lion
│  │  └─ lynx
│  └─ dog
└─ vehicle (1 leaf)
   └─ van"""
        assert repr(pets) == expected.strip()

    def test_large_trees_are_cut(self):
        text = repr(as_taxonomy([f"{i // 10}/{i}" for i in range(500)]))
        assert len(text.splitlines()) == 22
        assert text.endswith("└─ … 31 more")

    def test_html_is_nested_and_escaped(self):
        html = Taxonomy.from_dict({"<a>": ["b & c"], "d": None})._repr_html_()
        assert "<details open><summary>root (2 leaves)</summary>" in html
        assert "&lt;a&gt;" in html
        assert "<li>b &amp; c</li>" in html
        assert html.count("<ul") == html.count("</ul>")


def test_a_chain_of_many_levels():
    """Work grows with the nodes, however many levels they make."""
    n = 50_000
    chain = Taxonomy.from_parents({k: k - 1 for k in range(1, n)})
    np.testing.assert_array_equal(chain.sizes, np.arange(n, 0, -1))
    np.testing.assert_array_equal(chain.preorder, np.arange(n))
