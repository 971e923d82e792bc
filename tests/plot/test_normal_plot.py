"""Cosines of the normals of nodes, in the order of the tree."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from gramian import HierarchicalSVC, KernelRidge
from gramian.kernels import RBF, Constant, Linear
from gramian.labels import Taxonomy, orthogonality_weights
from gramian.plot import NormalCosineDisplay

# numbered breadth first: a, b, c; a1, a2, c1; a1x, a1y
TREE = Taxonomy.from_parents(
    {"a1": "a", "a2": "a", "b": None, "c1": "c", "a1x": "a1", "a1y": "a1", "a": None, "c": None}
)
DEPTH_FIRST = ["a", "a1", "a1x", "a1y", "a2", "b", "c", "c1"]
LEAVES = ["a1x", "a1y", "a2", "b", "c1"]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(LEAVES, 6)
    return rng.normal(size=(30, 8)) + 2.0 * np.eye(8)[np.unique(y, return_inverse=True)[1]], y


def _model(method="orthogonal", **parameters):
    numbers = {"C": 1.0, "intercept_variance": 0.0}
    return HierarchicalSVC(TREE, method, **numbers | parameters)


def _cosines(W):
    W = W / np.linalg.norm(W, axis=1, keepdims=True)
    return W @ W.T


def test_rows_go_through_the_tree_depth_first(data):
    model = _model("similarity").fit(*data)
    ax = Figure().subplots()
    display = NormalCosineDisplay.from_estimator(model, ax=ax)
    names = model.taxonomy_.names[display.order_].tolist()
    assert sorted(names[:5]) == sorted(DEPTH_FIRST[:5])
    assert names.index("a1") < names.index("a1x") < names.index("a1") + 3
    rows = [model.nodes_.tolist().index(name) for name in names]
    np.testing.assert_allclose(
        display.image_.get_array(), _cosines(model.coef_)[np.ix_(rows, rows)], atol=1e-12
    )
    assert display.image_.get_clim() == (-1, 1)
    assert [text.get_text() for text in display.texts_] == names
    assert display.ax_ is ax
    related = [("a", v) for v in ("a1", "a2", "a1x", "a1y")] + [
        ("a1", "a1x"),
        ("a1", "a1y"),
        ("c", "c1"),
    ]
    at = {name: place for place, name in enumerate(names)}
    C = np.asarray(display.image_.get_array())
    mean = np.mean([abs(C[at[u], at[v]]) for u, v in related])
    np.testing.assert_allclose(display.related_, mean)
    assert ax.get_xlabel().endswith(f"{mean:.2f}")


def test_names_are_indented_and_joined_to_their_parents(data):
    display = NormalCosineDisplay.from_estimator(_model("similarity").fit(*data))
    indents = {text.get_text(): text.get_position() for text in display.texts_}
    assert indents["a"][0] == indents["b"][0] < indents["a1"][0] == indents["c1"][0]
    assert indents["a1"][0] < indents["a1x"][0]
    ends = sorted(path.vertices[-1][1] for path in display.tree_.get_paths())
    assert ends == sorted(indents[name][1] for name in ("a1", "a1x", "a1y", "a2", "c1"))


def test_lines_surround_branches_and_related_pairs(data):
    display = NormalCosineDisplay.from_estimator(_model("similarity").fit(*data))
    names = TREE.names[display.order_].tolist()
    boxes = {
        tuple(box.get_extents().extents + 0.5) for box in (p for p in display.blocks_.get_paths())
    }
    place = names.index("a")
    assert (place, place, place + 5, place + 5) in boxes
    assert len(boxes) == 3
    strips = {tuple(p.get_extents().extents + 0.5) for p in display.related_outlines_.get_paths()}
    place = names.index("c")
    assert {(place + 1, place, place + 2, place + 1), (place, place + 1, place + 1, place + 2)} <= (
        strips
    )
    assert len(strips) == 6  # a, a1 and c: a row and a column each


def test_orthogonal_transfer_is_white_where_similarity_is_red(data):
    paper = _model(K=orthogonality_weights(TREE), tol=1e-6)
    related = [
        NormalCosineDisplay.from_estimator(model.fit(*data)).related_
        for model in (paper, _model("similarity", tol=1e-6))
    ]
    assert related[0] < 0.05 < 0.2 < related[1]


def test_only_children_have_no_normal_and_are_grey(data):
    display = NormalCosineDisplay.from_estimator(_model().fit(*data))
    C = np.ma.getmaskarray(np.ma.masked_invalid(display.image_.get_array()))
    grey = TREE.names[display.order_] == "c1"
    np.testing.assert_array_equal(C, grey | grey[:, None])
    assert np.isfinite(display.related_)


@pytest.mark.parametrize("variance", [0.0, 4.0])
def test_kernels_and_intercepts_count_as_in_the_penalty(data, variance):
    X, y = data
    augmented = np.hstack([np.sqrt(3.0) * X, np.full((30, 1), np.sqrt(variance))])
    expected = NormalCosineDisplay.from_estimator(
        _model(C=0.05, tol=1e-6).fit(augmented, y)
    ).cosines
    linear = _model(kernel=Constant(3.0) * Linear(), intercept_variance=variance, C=0.05, tol=1e-6)
    found = NormalCosineDisplay.from_estimator(linear.fit(X, y)).cosines
    np.testing.assert_allclose(found, expected, atol=0.02)
    gram = 3.0 * X @ X.T
    machine = _model(kernel="precomputed", intercept_variance=variance, C=0.05, tol=1e-6).fit(
        gram, y
    )
    found = NormalCosineDisplay.from_estimator(machine, X=gram).cosines
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_a_kernel_has_the_cosines_of_its_gram_matrix(data):
    X, y = data
    kernel = RBF(3.0)
    model = _model(kernel=kernel).fit(X, y)
    again = _model(kernel="precomputed").fit(kernel(X), y)
    np.testing.assert_allclose(
        NormalCosineDisplay.from_estimator(model).cosines,
        NormalCosineDisplay.from_estimator(again, X=kernel(X)).cosines,
        atol=1e-8,
    )


def test_leaves_alone_can_be_shown(data):
    display = NormalCosineDisplay.from_estimator(_model("flat").fit(*data), colorbar=False)
    assert sorted(TREE.names[display.order_]) == LEAVES
    assert display.colorbar_ is None
    assert np.isnan(display.related_)
    assert display.ax_.get_xlabel() == ""


def test_large_trees_name_their_branches_only():
    tree = Taxonomy.from_paths([f"{a}/{a}{b}" for a in "ABCD" for b in range(60)])
    nodes = np.arange(1, tree.n_nodes)
    display = NormalCosineDisplay(np.eye(nodes.size), tree, nodes).plot()
    assert [text.get_text() for text in display.texts_] == list("ABCD")
    heights = [text.get_position()[1] for text in display.texts_]
    np.testing.assert_allclose(heights, 30 + 61 * np.arange(4))
    assert display.tree_.get_paths() == []


def test_refusals(data):
    with pytest.raises(NotFittedError):
        NormalCosineDisplay.from_estimator(_model())
    ridge = KernelRidge(regularization=1.0).fit(data[0], np.arange(30.0))
    with pytest.raises(TypeError, match=r"normals of nodes.*got KernelRidge"):
        NormalCosineDisplay.from_estimator(ridge)
    machine = _model(kernel="precomputed").fit(data[0] @ data[0].T, data[1])
    with pytest.raises(ValueError, match="X must be given for a precomputed kernel"):
        NormalCosineDisplay.from_estimator(machine)
