"""Taxonomies and confusions in them as figures."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import confusion_matrix

from gramian.labels import Taxonomy
from gramian.plot import HierarchicalConfusionDisplay, TaxonomyDisplay

ANIMALS = Taxonomy.from_parents(
    {
        "ant": "insect",
        "cat": "mammal",
        "owl": "bird",
        "dog": "mammal",
        "emu": "bird",
        "mammal": "vertebrate",
        "bird": "vertebrate",
        "bee": "insect",
        "amoeba": None,
    }
)
Y_TRUE = ["cat", "cat", "dog", "dog", "owl", "emu", "ant", "amoeba"]
Y_PRED = ["cat", "dog", "dog", "owl", "owl", "bird", "bee", "cat"]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


def node(name, tree=ANIMALS):
    return int(tree.index([name])[0])


def below(name, top):
    """Whether the name is at or below the other one."""
    return top in ANIMALS.path(name)


# --- tree ---------------------------------------------------------------------------------------


def test_counts_and_accuracies_of_nodes(ax):
    display = TaxonomyDisplay.from_predictions(Y_TRUE, Y_PRED, ANIMALS, ax=ax)
    for name in ANIMALS.names:
        right = [below(p, name) for t, p in zip(Y_TRUE, Y_PRED) if below(t, name)]
        assert display.count[node(name)] == len(right)
        accuracy = display.accuracy[node(name)]
        assert accuracy == pytest.approx(np.mean(right)) if right else np.isnan(accuracy)
    np.testing.assert_array_equal(
        np.ma.getdata(display.points_.get_array())[display.count > 0],
        display.accuracy[display.count > 0],
    )
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.colorbar_ is not None


def test_weights_count_like_repeats(rng, ax):
    y_true, y_pred = rng.choice(ANIMALS.names, size=(2, 40))
    times = rng.integers(0, 4, size=40)
    weighted = TaxonomyDisplay.from_predictions(y_true, y_pred, ANIMALS, sample_weight=times, ax=ax)
    repeated = TaxonomyDisplay.from_predictions(
        np.repeat(y_true, times), np.repeat(y_pred, times), ANIMALS, ax=Figure().subplots()
    )
    np.testing.assert_allclose(weighted.count, repeated.count)
    np.testing.assert_allclose(weighted.accuracy, repeated.accuracy)


def test_the_layout_is_tidy(ax):
    display = TaxonomyDisplay.from_taxonomy(ANIMALS, ax=ax)
    x, y = display.points_.get_offsets().data.T
    np.testing.assert_array_equal(x, ANIMALS.depth)
    np.testing.assert_array_equal(np.sort(y[ANIMALS.leaves]), np.arange(ANIMALS.n_leaves))
    for parent in np.flatnonzero(~ANIMALS.is_leaf):
        children = ANIMALS.children(parent)
        assert y[parent] == (y[children].min() + y[children].max()) / 2
    # the leaves of a subtree are neighbours
    for top in np.flatnonzero(~ANIMALS.is_leaf):
        inside = np.sort(y[ANIMALS.leaves[ANIMALS.descends([top])[0]]])
        np.testing.assert_array_equal(np.diff(inside), 1)
    segments = display.edges_.get_segments()
    assert len(segments) == ANIMALS.n_nodes - 1
    for child, segment in enumerate(segments, start=1):
        np.testing.assert_allclose(segment[0], [x[ANIMALS.parent[child]], y[ANIMALS.parent[child]]])
        np.testing.assert_allclose(segment[-1], [x[child], y[child]])
    assert display.colorbar_ is None


def test_points_grow_with_the_examples(ax):
    display = TaxonomyDisplay.from_predictions(Y_TRUE, Y_PRED, ANIMALS, ax=ax)
    size = display.points_.get_sizes()
    assert size[0] > size[node("vertebrate")] > size[node("mammal")] > size[node("bee")]


def test_names_do_not_overlap():
    paths = [
        f"group {g}/part {g}{p}/a rather long name {c}"
        for g in range(4)
        for p in range(2)
        for c in range(5)
    ]
    display = TaxonomyDisplay.from_taxonomy(Taxonomy.from_paths(paths))
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.texts_]
    assert len(boxes) == 40 + 8 + 4 + 1
    for i, box in enumerate(boxes):
        assert display.figure_.bbox.padded(1).contains(box.x1, box.y1)
        assert display.figure_.bbox.padded(1).contains(box.x0, box.y0)
        # shrunk by the space around letters
        small = box.padded(-1)
        assert not any(small.overlaps(other.padded(-1)) for other in boxes[:i])


def test_names_are_short_and_many_are_left_out(ax):
    tree = Taxonomy.from_paths(["a/b", "a/c", "d/b"])
    shown = [t.get_text() for t in TaxonomyDisplay.from_taxonomy(tree, ax=ax).texts_]
    assert sorted(shown) == ["a", "b", "b", "c", "d", "root"]
    many = Taxonomy.from_parents({f"leaf {i}": f"group {i % 5}" for i in range(60)})
    assert TaxonomyDisplay.from_taxonomy(many).texts_ == []
    assert len(TaxonomyDisplay.from_taxonomy(many, labels=True).texts_) == 66
    none = TaxonomyDisplay.from_taxonomy(tree, ax=Figure().subplots(), labels=False)
    assert none.texts_ == []


def test_a_deep_chain_needs_no_recursion(ax):
    chain = Taxonomy.from_parents({i: i - 1 for i in range(1, 3000)})
    display = TaxonomyDisplay.from_taxonomy(chain, ax=ax)
    assert len(display.points_.get_offsets()) == 3000


# --- confusions ---------------------------------------------------------------------------------


def test_the_matrix_is_in_the_order_of_the_tree(rng, ax):
    y_true, y_pred = rng.choice(ANIMALS.leaf_names, size=(2, 60))
    display = HierarchicalConfusionDisplay.from_predictions(y_true, y_pred, ANIMALS, ax=ax)
    names = ANIMALS.names[display.nodes]
    assert sorted(names) == sorted(ANIMALS.leaf_names)
    np.testing.assert_array_equal(
        display.confusion_matrix, confusion_matrix(y_true, y_pred, labels=names)
    )
    for top in np.flatnonzero(~ANIMALS.is_leaf):
        inside = np.flatnonzero(np.isin(display.nodes, ANIMALS.leaves[ANIMALS.descends([top])[0]]))
        np.testing.assert_array_equal(np.diff(inside), 1)
    assert [t.get_text() for t in ax.get_xticklabels()] == names.tolist()
    assert [t.get_text() for t in ax.get_yticklabels()] == names.tolist()
    assert display.ax_ is ax
    assert display.figure_ is ax.figure


def test_inner_nodes_that_occur_come_before_what_is_below_them(ax):
    display = HierarchicalConfusionDisplay.from_predictions(Y_TRUE, Y_PRED, ANIMALS, ax=ax)
    names = ANIMALS.names[display.nodes].tolist()
    assert names.index("bird") == min(names.index("owl"), names.index("emu")) - 1
    assert display.confusion_matrix[names.index("emu"), names.index("bird")] == 1
    assert display.confusion_matrix.sum() == len(Y_TRUE)
    assert "mammal" not in names


def test_borders_and_names_of_the_groups(ax):
    display = HierarchicalConfusionDisplay.from_predictions(Y_TRUE, Y_PRED, ANIMALS, ax=ax)
    names = ANIMALS.names[display.nodes].tolist()

    def block(*members):
        places = sorted(names.index(name) for name in members)
        return places[0] - 0.5, places[-1] + 0.5

    # subtrees below the root: lines down and across, at their ends but not at those of the matrix
    groups = [block("cat", "dog", "bird", "owl", "emu"), block("ant", "bee"), block("amoeba")]
    cuts = {end for group in groups for end in group} - {-0.5, len(names) - 0.5}
    segments = display.borders_.get_segments()
    assert {s[0, 0] for s in segments if s[0, 0] == s[1, 0]} == cuts
    assert {s[0, 1] for s in segments if s[0, 1] == s[1, 1]} == cuts
    assert len(segments) == 2 * len(cuts) == 4
    squares = {(s.min(), s.max()) for s in display.blocks_.get_segments()}
    assert squares == {block("cat", "dog"), block("bird", "owl", "emu")}
    assert sorted(t.get_text() for t in display.groups_) == ["insect"] * 2 + ["vertebrate"] * 2


@pytest.mark.parametrize("normalize, axis", [("true", 1), ("pred", 0), (None, None)])
def test_colours_are_shares_and_numbers_are_counts(ax, normalize, axis):
    display = HierarchicalConfusionDisplay.from_predictions(
        Y_TRUE, Y_PRED, ANIMALS, ax=ax, normalize=normalize
    )
    counts = display.confusion_matrix
    shown = np.asarray(display.im_.get_array())
    if axis is None:
        np.testing.assert_array_equal(shown, counts)
    else:
        sums = shown.sum(axis=axis)
        np.testing.assert_allclose(sums, counts.sum(axis=axis) > 0)
    for (i, j), text in np.ndenumerate(display.text_):
        assert text.get_text() == (f"{counts[i, j]:g}" if counts[i, j] else "")


def test_many_classes_have_neither_counts_nor_ticks():
    tree = Taxonomy.from_parents({f"leaf {i}": f"group {i % 5}" for i in range(60)})
    names = tree.leaf_names
    display = HierarchicalConfusionDisplay.from_predictions(names, names, tree)
    display.figure_.canvas.draw()
    assert display.text_ is None
    assert len(display.ax_.get_xticks()) == 0
    assert {t.get_text() for t in display.groups_} == {f"group {g}" for g in range(5)}
    np.testing.assert_array_equal(display.confusion_matrix, np.eye(60))


def test_a_flat_tree_has_no_blocks(ax):
    flat = Taxonomy.from_parents(dict.fromkeys("abc"))
    display = HierarchicalConfusionDisplay.from_predictions(list("abc"), list("abb"), flat, ax=ax)
    assert display.groups_ == []
    assert len(display.borders_.get_segments()) == len(display.blocks_.get_segments()) == 0


# --- both ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TaxonomyDisplay, HierarchicalConfusionDisplay])
def test_from_estimator(kind, ax):
    X = np.zeros((len(Y_TRUE), 1))
    model = DummyClassifier(strategy="constant", constant="cat")
    with pytest.raises(NotFittedError):
        kind.from_estimator(model, X, Y_TRUE, taxonomy=ANIMALS, ax=ax)
    model.fit(X, Y_TRUE)
    with pytest.raises(ValueError, match="taxonomy must be given"):
        kind.from_estimator(model, X, Y_TRUE, ax=ax)
    given = kind.from_estimator(model, X, Y_TRUE, taxonomy=ANIMALS, ax=ax)
    model.taxonomy_ = ANIMALS
    own = kind.from_estimator(model, X, Y_TRUE, ax=Figure().subplots())
    assert given.taxonomy is own.taxonomy is ANIMALS
    expected = kind.from_predictions(Y_TRUE, ["cat"] * len(Y_TRUE), ANIMALS, ax=Figure().subplots())
    data = "count" if kind is TaxonomyDisplay else "confusion_matrix"
    np.testing.assert_array_equal(getattr(own, data), getattr(expected, data))


@pytest.mark.parametrize("kind", [TaxonomyDisplay, HierarchicalConfusionDisplay])
def test_bad_input_is_named(kind, ax):
    with pytest.raises(ValueError, match=r"y_true.*unicorn"):
        kind.from_predictions(["unicorn"], ["cat"], ANIMALS, ax=ax)
    with pytest.raises(ValueError, match="y_pred"):
        kind.from_predictions(["cat"], ["cat", "dog"], ANIMALS, ax=ax)
    with pytest.raises(ValueError, match="sample_weight"):
        kind.from_predictions(["cat"], ["cat"], ANIMALS, sample_weight=[0.0], ax=ax)


def test_normalize_is_checked(ax):
    with pytest.raises(ValueError, match="normalize must be one of"):
        HierarchicalConfusionDisplay.from_predictions(
            Y_TRUE, Y_PRED, ANIMALS, ax=ax, normalize="all"
        )
