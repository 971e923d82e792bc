"""Label correlations: sums written out, properties of every builder, and what is refused."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.kernels import RBF, Precomputed, White
from gramian.labels import (
    Taxonomy,
    TreeStructure,
    check_correlation,
    class_correlation,
    empirical_correlation,
    feature_correlation,
    laplacian_correlation,
    nearest_correlation,
    shrunk,
    taxonomy_correlation,
)

TREE = {"cat": "animal", "dog": "animal", "lion": "cat", "van": "car", "bus": "car", "oak": None}
SIGNATURES = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]])


def _random_labels(seed, n, n_labels):
    return np.random.default_rng(seed).integers(0, 2, size=(n, n_labels))


def _written_out(Y, weights, centered):
    """Moments of signs, one example after the other."""
    signs = np.where(np.asarray(Y) > 0, 1.0, -1.0)
    n, n_labels = signs.shape
    mean, R = np.zeros(n_labels), np.zeros((n_labels, n_labels))
    for i in range(n):
        mean += weights[i] * signs[i] / np.sum(weights)
    for i in range(n):
        y = signs[i] - mean if centered else signs[i]
        R += weights[i] * np.outer(y, y) / np.sum(weights)
    return R


# --- all builders -----------------------------------------------------------------------------------


def _by_classes(seed, n_labels):
    return class_correlation(_random_labels(seed, 3, n_labels), [3, 1, 2])


def _by_examples(seed, n_labels):
    return empirical_correlation(_random_labels(seed, 12, n_labels))


def _by_pearson(seed, n_labels):
    return empirical_correlation(_random_labels(seed, 12, n_labels), centered=True)


def _by_covariance(seed, n_labels):
    Y = np.vstack([_random_labels(seed, 12, n_labels), np.ones(n_labels), np.zeros(n_labels)])
    return empirical_correlation(Y, centered=True, normalize=False)


def _by_features(seed, n_labels):
    return feature_correlation(np.random.default_rng(seed).normal(size=(n_labels, 3)))


def _by_graph(seed, n_labels):
    W = np.random.default_rng(seed).integers(-1, 2, size=(n_labels, n_labels))
    return laplacian_correlation(W + W.T, strength=2.0)


def _by_tree(seed, n_labels):
    rng = np.random.default_rng(seed)
    parents = {node: int(rng.integers(0, node)) for node in range(1, n_labels + 1)}
    return taxonomy_correlation(parents, labels=list(range(1, n_labels + 1)), decay=0.8)


BUILDERS = [
    _by_classes, _by_examples, _by_pearson, _by_covariance, _by_features, _by_graph, _by_tree
]  # fmt: skip


@pytest.mark.parametrize("build", BUILDERS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), n_labels=st.integers(1, 9))
def test_is_symmetric_and_positive_definite(build, seed, n_labels):
    R = build(seed, n_labels)
    assert R.shape == (n_labels, n_labels)
    assert R.dtype == np.float64
    np.testing.assert_array_equal(R, R.T)
    assert np.linalg.eigvalsh(R)[0] > 1e-10
    if build is not _by_covariance:
        np.testing.assert_array_equal(np.diag(R), 1.0)
        assert np.abs(R).max() <= 1.0
    np.testing.assert_array_equal(check_correlation(R, n_labels), R)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), order=st.permutations(range(6)))
def test_permuted_labels_permute_the_correlation(seed, order):
    rng = np.random.default_rng(seed)
    Y, F = _random_labels(seed, 9, 6), rng.normal(size=(6, 2))
    W = np.abs(F @ F.T)
    square = np.ix_(order, order)
    for whole, permuted in [
        (class_correlation(Y), class_correlation(Y[:, order])),
        (
            empirical_correlation(Y, centered=True),
            empirical_correlation(Y[:, order], centered=True),
        ),
        (feature_correlation(F), feature_correlation(F[order])),
        (laplacian_correlation(W), laplacian_correlation(W[square])),
    ]:
        np.testing.assert_allclose(permuted, whole[square], atol=1e-12)
    names = np.array(list(TREE))
    np.testing.assert_array_equal(
        taxonomy_correlation(TREE, names[list(order)]), taxonomy_correlation(TREE, names)[square]
    )


# --- classes and examples ---------------------------------------------------------------------------


@pytest.mark.parametrize("centered", [False, True])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_moments_are_those_written_out_and_weights_are_repetitions(centered, seed):
    Y = _random_labels(seed, 10, 4)
    counts = np.random.default_rng(seed).integers(0, 4, size=10)
    counts[0] += 1
    # three rows that no weight takes away: no label is constant
    Y[:3], counts[:3] = [[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0]], 1
    keywords = {"shrinkage": 0.2, "centered": centered, "normalize": False}
    R = empirical_correlation(Y, counts, **keywords)
    expected = _written_out(Y, counts, centered)
    expected = 0.8 * expected + 0.2 * np.diag(np.diag(expected))
    np.testing.assert_allclose(R, expected, atol=1e-12)
    repeated = empirical_correlation(np.repeat(Y, counts, axis=0), **keywords)
    np.testing.assert_allclose(R, repeated, atol=1e-12)


def test_pearson_is_that_of_numpy():
    Y = _random_labels(1, 40, 5)
    R = empirical_correlation(Y, centered=True, shrinkage=0.0)
    np.testing.assert_allclose(R, np.corrcoef(Y.T), atol=1e-12)


def test_every_coding_and_container_gives_the_same():
    Y = _random_labels(3, 12, 4)
    weights = np.arange(12)
    expected = empirical_correlation(Y, weights)
    frame = pd.DataFrame(Y, columns=list("abcd"))
    mixed = frame.astype({"a": bool, "b": object})
    forms = [
        2 * Y - 1, Y.astype(bool), Y.astype(np.float32), Y.astype(np.uint8), Y.tolist(), frame, mixed,
        pl.DataFrame(Y), sp.csr_array(Y), sp.coo_matrix(Y.astype(bool)), sp.csc_array(2 * Y - 1),
    ]  # fmt: skip
    for form in forms:
        R = empirical_correlation(form, weights)
        assert type(R) is np.ndarray
        np.testing.assert_allclose(R, expected, atol=1e-14)


def test_classes_are_weighted_by_their_priors():
    priors = [3.0, 1.0, 4.0]
    R = class_correlation(SIGNATURES, priors, shrinkage=0.3)
    expected = _written_out(SIGNATURES, priors, centered=False)
    np.testing.assert_allclose(R, 0.7 * expected + 0.3 * np.eye(4), atol=1e-14)
    np.testing.assert_allclose(
        class_correlation(SIGNATURES, np.multiply(priors, 7), shrinkage=0.3), R
    )
    np.testing.assert_allclose(
        class_correlation(SIGNATURES), class_correlation(SIGNATURES, [2, 2, 2]), atol=1e-15
    )


def test_priors_are_matched_by_the_names_of_classes():
    names, priors = ["seal", "zebra", "pig"], {"pig": 4.0, "seal": 3.0, "zebra": 1.0}
    expected = class_correlation(SIGNATURES, [3.0, 1.0, 4.0])
    mapping = dict(zip(names, SIGNATURES))
    frame = pd.DataFrame(SIGNATURES, index=names)
    for signatures in (mapping, frame):
        for named in (priors, pd.Series(priors)):
            np.testing.assert_array_equal(class_correlation(signatures, named), expected)
        np.testing.assert_array_equal(class_correlation(signatures, [3.0, 1.0, 4.0]), expected)
    by_position = class_correlation(SIGNATURES, pd.Series([3.0, 1.0, 4.0]))
    np.testing.assert_array_equal(by_position, expected)


def test_a_constant_label_is_uncorrelated_when_centered():
    Y = np.column_stack([_random_labels(0, 20, 2), np.ones(20), np.zeros(20)])
    R = empirical_correlation(Y, centered=True, shrinkage=0.0)
    np.testing.assert_array_equal(R[2:], np.eye(4)[2:])
    assert R[0, 1] != 0
    weights = np.r_[np.zeros(10), np.ones(10)]
    half = np.column_stack([Y[:, :2], weights])  # constant among the rows that count
    np.testing.assert_array_equal(empirical_correlation(half, weights, centered=True)[2], [0, 0, 1])
    with pytest.raises(ValueError, match=r"columns 2, 3: .* normalize=True"):
        empirical_correlation(Y, centered=True, normalize=False)


def test_a_singular_matrix_needs_shrinkage():
    few = _random_labels(0, 10, 85)
    assert np.linalg.eigvalsh(class_correlation(few))[0] >= 0.1 - 1e-12
    with pytest.raises(
        ValueError, match=r"10 classes must be positive definite.*shrinkage than 0, for example 0.1"
    ):
        class_correlation(few, shrinkage=0.0)
    twice = _random_labels(0, 50, 3)[:, [0, 1, 2, 0]]
    for centered in (False, True):
        with pytest.raises(ValueError, match="must be positive definite"):
            empirical_correlation(twice, shrinkage=0.0, centered=centered)
    assert empirical_correlation(twice, shrinkage=0.01)[0, 3] == pytest.approx(0.99)


def test_one_class_or_one_example_is_enough():
    np.testing.assert_allclose(class_correlation([[1, 0]], shrinkage=0.5), [[1, -0.5], [-0.5, 1]])
    np.testing.assert_array_equal(empirical_correlation([[1, 0]], centered=True), np.eye(2))


@pytest.mark.parametrize(
    "arguments, words",
    [
        (([],), "signatures must have shape"),
        (({},), "signatures must have shape"),
        ((np.empty((0, 3)),), "at least one row"),
        (([1, 0, 1],), "signatures must have shape"),
        (([[0.2, 0.7]],), r"0/1 or ±1, got 0.2. Threshold"),
        (([[0, -1, 1]],), "got 0 and -1 together"),
        (([[np.nan, 1.0]],), "got nan"),
        (([[1, 0], [1]],), "signatures must be a matrix of numbers"),
        (([["yes", "no"]],), "signatures must be a matrix of numbers"),
        ((sp.csr_array([[0.0, 2.0]]),), r"got 2.0"),
        ((sp.csr_array([[0, -1]]),), "got 0 and -1 together"),
        (
            ({"a": [1, 0], "b": [1]},),
            "signatures must be a matrix of numbers with rows of equal length",
        ),
        ((SIGNATURES, [1, 2]), r"priors must have shape \(3,\), one for each class"),
        ((SIGNATURES, [1, 2, -1]), "priors must be finite and not negative, got -1"),
        ((SIGNATURES, [1, 2, np.nan]), "priors must be finite"),
        ((SIGNATURES, [0, 0, 0]), "priors is zero for every class"),
        ((SIGNATURES, ["a", "b", "c"]), "priors must be numbers"),
        ((SIGNATURES, {"a": 1.0}), "signatures are not"),
        (
            ({"a": [1, 0], "b": [0, 1]}, {"a": 1.0}),
            "priors must name every class; missing: 'b'",
        ),
        (
            ({"a": [1, 0]}, {"a": 1.0, "c": 1.0}),
            "classes with a signature; missing: 'c'",
        ),
    ],
)
def test_bad_signatures_and_priors_are_refused(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        class_correlation(*arguments)


@pytest.mark.parametrize(
    "keywords, error, words",
    [
        ({"sample_weight": [1.0]}, ValueError, r"sample_weight must have shape \(3,\)"),
        ({"sample_weight": [1.0, -1.0, 2.0]}, ValueError, "not negative"),
        (
            {"shrinkage": 1.5},
            ValueError,
            "shrinkage must be a finite number >= 0 and <= 1, got 1.5",
        ),
        ({"shrinkage": np.nan}, ValueError, "shrinkage must be a finite number >= 0 and <= 1"),
        ({"shrinkage": "ledoit"}, TypeError, "shrinkage must be a finite number"),
    ],
)
def test_bad_weights_and_shrinkages_are_refused(keywords, error, words):
    with pytest.raises(error, match=words):
        empirical_correlation(SIGNATURES, **keywords)


# --- taxonomies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [0.3, 0.9])
def test_leaves_of_a_taxonomy_are_correlated_as_in_its_tree_structure(decay):
    taxonomy = Taxonomy.from_parents(TREE)
    levels = np.arange(1, taxonomy.height + 1)
    variances = np.where(levels == 1, 1.0, (1 - decay**2) * decay ** (2.0 - 2.0 * levels))
    structure = TreeStructure(taxonomy, variances, groups=taxonomy.groups("level"))
    S = structure.mix(np.eye(taxonomy.n_leaves))
    scale = np.sqrt(np.diag(S))
    R = taxonomy_correlation(taxonomy, taxonomy.leaf_names, decay=decay)
    np.testing.assert_allclose(R, S / scale / scale[:, None], atol=1e-12)


def test_nodes_of_a_taxonomy_are_correlated_by_their_distance():
    taxonomy = Taxonomy.from_parents(TREE)
    R = taxonomy_correlation(TREE, decay=0.6)
    names = taxonomy.names[1:].tolist()
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            above, below = taxonomy.path(first).tolist(), taxonomy.path(second).tolist()
            shared = sum(a == b for a, b in zip(above, below)) - 1  # without the root
            distance = len(above) + len(below) - 2 * (shared + 1)
            assert R[i, j] == pytest.approx(0.6**distance if shared else 0.0)


def test_a_flat_taxonomy_and_no_decay_leave_labels_unrelated():
    np.testing.assert_array_equal(taxonomy_correlation({"root": ["a", "b", "c"]}), np.eye(3))
    np.testing.assert_array_equal(taxonomy_correlation(TREE, decay=0), np.eye(8))


@pytest.mark.parametrize(
    "keywords, words",
    [
        ({"decay": 1.0}, "decay must be below 1"),
        ({"decay": -0.5}, "decay must be a finite number >= 0 and <= 1"),
        ({"labels": []}, "labels is empty"),
        ({"labels": ["cat", "dog", "cat"]}, "'cat' is repeated"),
        ({"labels": ["cat", "root"]}, "must not hold the root, 'root'"),
        ({"labels": ["cta"]}, "no node 'cta'. Close to it: 'cat'"),
    ],
)
def test_bad_labels_of_a_taxonomy_are_refused(keywords, words):
    with pytest.raises(ValueError, match=words):
        taxonomy_correlation(TREE, **keywords)


# --- features and graphs ----------------------------------------------------------------------------


def test_features_are_correlated_by_the_scaled_kernel(rng):
    F = rng.normal(size=(5, 3))
    cosine = F @ F.T / np.linalg.norm(F, axis=1) / np.linalg.norm(F, axis=1)[:, None]
    R = feature_correlation(F, "linear", shrinkage=0.25)
    np.testing.assert_allclose(R, 0.75 * cosine + 0.25 * np.eye(5), atol=1e-12)
    kernel = 3.0 * RBF(2.0)
    distances = np.sum((F[:, None] - F) ** 2, axis=2)
    np.testing.assert_allclose(feature_correlation(F, kernel), np.exp(-distances / 8), atol=1e-12)
    for form in (F.tolist(), pd.DataFrame(F), sp.csr_array(F)):
        np.testing.assert_allclose(feature_correlation(form), feature_correlation(F), atol=1e-12)
    np.testing.assert_allclose(feature_correlation(4 * np.eye(3) + 1, Precomputed())[0, 1], 0.2)


def test_equal_features_need_shrinkage_or_noise(rng):
    F = rng.normal(size=(4, 3))[[0, 1, 2, 0]]
    with pytest.raises(
        ValueError, match=r"kernel of features must be positive definite.*shrinkage"
    ):
        feature_correlation(F)
    assert feature_correlation(F, shrinkage=0.1)[0, 3] == pytest.approx(0.9)
    assert feature_correlation(F, RBF(1.0) + White(0.25))[0, 3] == pytest.approx(0.8)


@pytest.mark.parametrize(
    "features, kernel, words",
    [
        ([], "rbf", "features must have shape"),
        ([1.0, 2.0], "rbf", "features must have shape"),
        ([[1.0], [np.inf]], "rbf", "features must be finite"),
        ([["a"], ["b"]], "rbf", "features must be a matrix of numbers"),
        ([[1.0, 0.0], [0.0, 0.0]], "linear", "features of label 1 have no length"),
        ([[1.0], [2.0]], "cosine", "kernel must be"),
    ],
)
def test_bad_features_are_refused(features, kernel, words):
    with pytest.raises(ValueError, match=words):
        feature_correlation(features, kernel)


def test_a_graph_correlates_neighbours():
    graph = nx.Graph([("a", "b"), ("c", "d"), ("b", "e")])
    graph.add_edge("c", "d", weight=-2.0)
    graph.add_node("alone")
    order = list(graph.nodes)
    R = pd.DataFrame(laplacian_correlation(graph), order, order)
    W = nx.to_numpy_array(graph)
    degree = np.abs(W).sum(axis=1)
    L = np.diag((degree > 0).astype(float))
    for i in range(6):
        for j in range(6):
            if W[i, j]:
                L[i, j] -= W[i, j] / np.sqrt(degree[i] * degree[j])
    inverse = np.linalg.inv(np.eye(6) + L)
    scale = np.sqrt(np.diag(inverse))
    np.testing.assert_allclose(R, inverse / scale / scale[:, None], atol=1e-12)
    assert R.loc["a", "b"] > R.loc["a", "e"] > 0
    assert R.loc["c", "d"] < 0
    np.testing.assert_array_equal(R.loc["alone"], np.eye(6)[order.index("alone")])
    np.testing.assert_allclose(laplacian_correlation(sp.csr_array(W)), R)
    np.testing.assert_allclose(laplacian_correlation(W + 5 * np.eye(6)), R)  # loops do not count
    np.testing.assert_allclose(laplacian_correlation(pd.DataFrame(W, order, order)), R)
    np.testing.assert_array_equal(laplacian_correlation(graph, strength=0.0), np.eye(6))


@pytest.mark.parametrize(
    "adjacency, keywords, error, words",
    [
        (nx.DiGraph([(0, 1)]), {}, ValueError, "adjacency must be symmetric"),
        (np.ones((2, 3)), {}, ValueError, r"adjacency must have shape \(n_labels, n_labels\), .* got \(2, 3\)"),
        (np.empty((0, 0)), {}, ValueError, "adjacency must have shape"),
        ([[0, np.nan], [np.nan, 0]], {}, ValueError, "adjacency must be finite, got nan for labels 0 and 1"),
        (np.eye(2), {"strength": -1}, ValueError, "strength must be a finite number >= 0"),
        (np.eye(2), {"strength": "much"}, TypeError, "strength must be a finite number >= 0"),
        (np.ones((2, 2)), {"strength": 1e15}, ValueError, "positive definite.*Lower strength"),
    ],
)  # fmt: skip
def test_bad_graphs_are_refused(adjacency, keywords, error, words):
    with pytest.raises(error, match=words):
        laplacian_correlation(adjacency, **keywords)


# --- shrinkage, nearest correlation, checks ---------------------------------------------------------


def test_shrinkage_goes_from_the_matrix_to_its_diagonal():
    R = np.array([[2.0, -1.2], [-1.2, 1.0]])
    np.testing.assert_array_equal(shrunk(R, 0.0), R)
    np.testing.assert_array_equal(shrunk(R, 1), np.diag([2.0, 1.0]))
    np.testing.assert_allclose(shrunk(R, 0.25), [[2.0, -0.9], [-0.9, 1.0]])
    np.testing.assert_array_equal(class_correlation(SIGNATURES, shrinkage=1.0), np.eye(4))
    with pytest.raises(ValueError, match="shrinkage must be a finite number >= 0 and <= 1"):
        shrunk(R, -0.1)


def test_nearest_correlations_of_higham():
    """The example of his article, and one of his tests, to the digits printed there."""
    three = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    four = np.diag(np.full(4, 2.0)) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)
    with pytest.warns(
        UserWarning, match="smallest eigenvalue is -0.414. The nearest .* 0.528 away"
    ):
        R = nearest_correlation(three, floor=1e-12)
    np.testing.assert_allclose(R[[0, 0], [1, 2]], [0.7607, 0.1573], atol=5e-5)
    with pytest.warns(UserWarning, match="not all entries of its diagonal are 1"):
        R = nearest_correlation(four, floor=1e-12)
    expected = [[1.0, -0.8084, 0.1916, 0.1068], [-0.8084, 1.0, -0.6562, 0.1916]]
    np.testing.assert_allclose(R[:2], expected, atol=5e-5)
    np.testing.assert_allclose(R, R[::-1, ::-1], atol=1e-8)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), floor=st.sampled_from([1e-8, 1e-3, 0.2]))
def test_nearest_correlation_is_a_correlation_and_no_other_is_nearer(seed, floor):
    rng = np.random.default_rng(seed)
    G = rng.uniform(-1, 1, size=(6, 6))
    G = (G + G.T) / 2
    np.fill_diagonal(G, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        R = nearest_correlation(G, floor=floor)
    np.testing.assert_array_equal(np.diag(R), 1.0)
    assert np.linalg.eigvalsh(R)[0] >= floor - 1e-12
    for _ in range(20):  # a convex set: the angle to all of its points is obtuse
        B = rng.normal(size=(6, 6))
        other = B @ B.T
        scale = np.sqrt(np.diag(other))
        other = shrunk(other / scale / scale[:, None], floor)
        np.fill_diagonal(other, 1.0)
        assert np.sum((G - R) * (other - R)) <= 1e-5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(nearest_correlation(R, floor=floor), R)


def test_nearest_correlation_refuses():
    with pytest.raises(ValueError, match="floor must be a finite number > 0 and < 1, got 0"):
        nearest_correlation(np.eye(2), floor=0)
    with pytest.raises(ValueError, match="matrix must be finite"):
        nearest_correlation([[1.0, np.nan], [np.nan, 1.0]])


@pytest.mark.parametrize(
    "R, words",
    [
        (np.eye(2), r"label_correlation must have shape \(3, 3\), .* got \(2, 2\)"),
        (np.ones(3), r"must have shape \(n_labels, n_labels\), .* got \(3,\)"),
        (np.ones((3, 2)), r"must have shape \(n_labels, n_labels\), .* got \(3, 2\)"),
        (np.diag([1.0, np.inf, 1.0]), "must be finite, got inf for labels 1 and 1"),
        (np.eye(3) + np.eye(3, k=1) * 0.2, "symmetric, .* labels 0 and 1 are 0.2 and 0, a difference of 0.2"),
        (np.diag([1.0, 0.0, 1.0]), "positive diagonal, got 0 for label 1"),
        (np.ones((3, 3)), r"positive definite, .*\.shrunk\(R, 0.1\)"),
        (3 * np.eye(3, k=1) + 3 * np.eye(3, k=-1) + np.eye(3), "smallest eigenvalue is -3.24"),
        ("identity", "must be a matrix of numbers .*got 'identity'"),
        (np.eye(3) * 1j, "must be a matrix of numbers"),
    ],
)  # fmt: skip
def test_bad_correlations_are_refused(R, words):
    with pytest.raises(ValueError, match=words):
        check_correlation(R, 3)


def test_errors_name_labels_and_argument():
    with pytest.raises(
        ValueError, match=r"^prior must have a positive diagonal, got -1 for label 'b'"
    ):
        check_correlation(np.diag([1.0, -1.0]), 2, ["a", "b"], argument="prior")


def test_a_checked_correlation_is_a_new_contiguous_array():
    given = np.asfortranarray([[1.0, 0.5], [0.5, 2.0]])
    R = check_correlation(given, 2)
    assert R.flags.c_contiguous
    assert not np.shares_memory(R, given)
    single = np.array([[1.0, 0.3], [0.3 + 1e-7, 1.0]], dtype=np.float32)
    R = check_correlation(single, 2)  # symmetric up to rounding in its own precision
    assert R.dtype == np.float64
    assert R[0, 1] == R[1, 0]
    np.testing.assert_array_equal(check_correlation(sp.csr_array(given), 2), given)


def test_frames_are_brought_into_the_order_of_the_labels():
    R = class_correlation(_random_labels(0, 9, 4))
    names = ["sea", "sun", "snow", "sand"]
    frame = pd.DataFrame(R, names, names)
    np.testing.assert_array_equal(check_correlation(frame, 4, names), R)
    shuffled = frame.loc[names[::-1], ["snow", "sea", "sand", "sun"]]
    np.testing.assert_array_equal(check_correlation(shuffled, 4, names), R)
    np.testing.assert_array_equal(check_correlation(shuffled, 4), R[::-1, ::-1])
    np.testing.assert_array_equal(
        check_correlation(frame, 2, ["sand", "sun"]), R[np.ix_([3, 1], [3, 1])]
    )
    np.testing.assert_array_equal(check_correlation(pd.DataFrame(R), 4, names), R)  # only numbered
    np.testing.assert_array_equal(
        check_correlation(pl.DataFrame(R, names), 4, names[::-1]), R[::-1, ::-1]
    )


@pytest.mark.parametrize(
    "index, columns, words",
    [
        (
            ["a", "x", "y"],
            ["a", "x", "y"],
            "in its index, or be an array in their order; missing: 'b', 'c'",
        ),
        (
            ["a", "b", "c"],
            ["a", "b", "d"],
            "in its columns, or be an array in their order; missing: 'c'",
        ),
        (["a", "b", "b"], ["a", "b", "b"], "twice in its index: 'b'"),
    ],
)
def test_frames_with_other_names_are_refused(index, columns, words):
    with pytest.raises(ValueError, match=words):
        check_correlation(pd.DataFrame(np.eye(3), index, columns), 3, ["a", "b", "c"])
