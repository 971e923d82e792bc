"""HierarchicalSVC: objectives, decisions, inner labels, K and alpha, weights, what is stored."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from gramian import HierarchicalSVC
from gramian.kernels import RBF, Linear
from gramian.labels import (
    Taxonomy,
    as_taxonomy,
    largest_alpha,
    orthogonality_weights,
    smallest_eigenvalue,
)

pytestmark = pytest.mark.usefixtures("one_thread")

METHODS = ["orthogonal", "similarity", "independent", "tree_loss", "flat"]
RECURSIVE = METHODS[:3]
# plant has an only child; the classes in sorted order are not in the order of the tree
NESTED = {
    "animal": {"cat": ["lynx", "lion"], "dog": None},
    "car": None,
    "plant": {"tree": ["oak", "elm"]},
}
TREE = as_taxonomy(NESTED)
TIGHT = {"tol": 1e-8}


def _data():
    rng = np.random.default_rng(2)
    labels = np.array(["lynx", "lion", "dog", "car", "oak", "elm"])
    y = labels[np.arange(72) % 6]
    centres = rng.normal(size=(6, 5))
    X = centres[np.arange(72) % 6] + 0.7 * rng.normal(size=(72, 5))
    y = y.astype("<U6")
    y[:3], y[3], y[4] = "animal", "tree", "cat"  # inner labels
    return X[:54], y[:54], X[54:], y[54:]


X, Y, NEW, Y_NEW = _data()
LEAVES_ONLY = np.isin(Y, TREE.leaf_names)


def svc(method="orthogonal", C=1.0, kernel="linear", **options):
    return plain(NESTED, method, C, "auto", kernel, **options)


def plain(hierarchy=None, method="orthogonal", C=1.0, alpha=1.0, kernel="linear", **options):
    """A model with numbers instead of choices, and without an intercept."""
    options = {"intercept_variance": 0.0} | options
    return HierarchicalSVC(hierarchy, method, C, alpha, kernel, **options)


def close(one, other, atol=1e-4):
    np.testing.assert_allclose(one, other, rtol=0, atol=atol)


def up(name):
    """A node and its ancestors without the root."""
    return list(TREE.path(name)[1:])


def siblings(name):
    parent = TREE.parent[TREE.index(name)]
    return [other for other in TREE.names[TREE.children(parent)] if other != name]


def children(name):
    return list(TREE.names[TREE.children(TREE.index(name))])


# --- the objective ----------------------------------------------------------------------------


def naive_loss(method, label, score):
    """The loss of an example, from a dictionary of scores."""
    if method in RECURSIVE:
        levels = [max([0.0] + [1 - score[i] + score[j] for j in siblings(i)]) for i in up(label)]
        return sum(levels) if method == "independent" else max(levels)
    rivals = [leaf for leaf in TREE.leaf_names if label not in up(leaf)]
    node = TREE.index(label)
    scale = {
        r: TREE.distance(node, TREE.index(r)) / 2 if method == "tree_loss" else 1 for r in rivals
    }
    return max([0.0] + [scale[r] * (1 - score[label] + score[r]) for r in rivals])


def naive_penalty(model, T):
    """Ω from the inner products of the normals."""
    names = list(model.nodes_)
    if model.method == "orthogonal":
        return 0.5 * np.sum(model.K_.toarray() * np.abs(T))
    if model.method == "tree_loss":
        shared = [[len(set(up(a)) & set(up(b))) for b in names] for a in names]
        return 0.5 * np.sum(np.linalg.pinv(shared) * T)
    value = 0.5 * sum(
        T[i, i] for i, a in enumerate(names) if model.method != "flat" or not children(a)
    )
    if model.method == "similarity":
        for j, child in enumerate(names):
            if len(up(child)) > 1:
                i = names.index(up(child)[-2])
                value += 0.5 * (T[i, i] + T[j, j] - 2 * T[i, j])
    return value


@pytest.mark.parametrize("kernel", ["linear", RBF(2.0)])
@pytest.mark.parametrize("method", METHODS)
def test_certificate(method, kernel):
    """The objective is what loops over the definition say, and the gap bounds the way to the optimum."""
    model = svc(method, 0.5, kernel, tol=1e-2).fit(X, Y)
    if kernel == "linear":
        T = model.coef_ @ model.coef_.T
    else:
        T = model.dual_coef_.T @ kernel(X[model.support_]) @ model.dual_coef_
    scores = [dict(zip(model.nodes_, row, strict=True)) for row in model.node_scores(X)]
    losses = sum(naive_loss(method, label, score) for label, score in zip(Y, scores, strict=True))
    solution = model.solution_
    assert solution.objective == pytest.approx(naive_penalty(model, T) + 0.5 * losses, rel=1e-6)
    assert 0 < solution.gap <= 1e-2 * solution.objective
    best = svc(method, 0.5, kernel, tol=1e-7).fit(X, Y).solution_
    assert best.status == solution.status == "converged"
    assert solution.objective - solution.gap <= best.objective <= solution.objective


def test_all_methods_agree_on_a_flat_tree():
    values = [plain(method=method, C=0.1, **TIGHT).fit(X, Y).coef_ for method in METHODS]
    for other in values[1:]:
        close(other, values[0])


def test_flat_is_linear_svc():
    model = plain(method="flat", C=0.1, intercept_variance=4.0, tol=1e-7).fit(X, Y)
    other = LinearSVC(
        C=0.1, multi_class="crammer_singer", intercept_scaling=2.0, tol=1e-10, max_iter=10**6
    ).fit(X, Y)
    close(model.coef_, other.coef_)
    close(model.intercept_, other.intercept_)
    # ... without intercept and with a tree that "flat" does not look at
    leaves = X[LEAVES_ONLY], Y[LEAVES_ONLY]
    other.set_params(fit_intercept=False).fit(*leaves)
    close(
        svc("flat", 0.1, **TIGHT).fit(*leaves).decision_function(NEW), other.decision_function(NEW)
    )


def test_independent_is_one_problem_for_each_inner_node():
    model = svc("independent", 0.1, **TIGHT).fit(X, Y)
    for parent in ("root", "animal", "cat", "tree"):
        below = children(parent)
        rows = np.array([bool(set(up(label)) & set(below)) for label in Y])
        y = [next(node for node in up(label) if node in below) for label in Y[rows]]
        other = plain(method="flat", C=0.1, **TIGHT).fit(X[rows], y)
        for node, coef in zip(other.classes_, other.coef_, strict=True):
            close(model.coef_[list(model.nodes_).index(node)], coef)


def test_without_coupling_orthogonal_has_a_diagonal_penalty():
    K = np.eye(TREE.n_nodes - 1)
    even = plain(NESTED, C=0.1, K=K, **TIGHT).fit(X, Y)
    none = plain(NESTED, C=0.1, alpha=0, **TIGHT).fit(X, Y)
    np.testing.assert_array_equal(none.K_.toarray(), K)
    np.testing.assert_array_equal(even.coef_, none.coef_)
    paper = plain(NESTED, C=0.1, alpha=0, K=orthogonality_weights(TREE), **TIGHT).fit(X, Y)
    np.testing.assert_array_equal(paper.K_.toarray(), np.diag(np.diag(orthogonality_weights(TREE))))
    assert np.abs(paper.coef_ - none.coef_).max() > 1e-3
    scaled = plain(NESTED, C=0.2, K=2 * K, **TIGHT).fit(X, Y)
    close(even.coef_, scaled.coef_)


def test_normals_are_orthogonal_to_ancestors():
    cosines = []
    for alpha in (0, "auto"):
        W = plain(NESTED, C=0.1, alpha=alpha, tol=1e-5).fit(X, Y).coef_
        norms = np.linalg.norm(W, axis=1)
        K = orthogonality_weights(TREE) * ~np.eye(10, dtype=bool)
        some = (K > 0) & (np.outer(norms, norms) > 1e-8)
        cosines.append(np.abs((W @ W.T)[some] / np.outer(norms, norms)[some]).mean())
    assert cosines[1] < 0.6 * cosines[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("variance", [0.0, 0.5])
def test_gram_matrix_and_features_agree(method, variance):
    options = {"intercept_variance": variance, **TIGHT}
    model = svc(method, 0.02, 2.25 * Linear(), **options).fit(X, Y)
    expected = model.node_scores(NEW)
    by_gram = svc(method, 0.02, "precomputed", **options).fit(2.25 * X @ X.T, Y)
    close(by_gram.node_scores(2.25 * NEW @ X.T), expected)
    sparse = svc(method, 0.02, **options).fit(sp.csr_array(1.5 * X), Y)
    close(sparse.node_scores(sp.csr_array(1.5 * NEW)), expected)
    assert bool(variance) == model.intercept_.any()


def test_more_dense_features_than_examples():
    """They are solved by their Gram matrix, and end as weights of features all the same."""
    wide = np.hstack([X, np.zeros((54, 60))])
    model = svc(C=0.1, intercept_variance=0.5, **TIGHT).fit(wide, Y)
    close(model.coef_[:, :5], svc(C=0.1, intercept_variance=0.5, **TIGHT).fit(X, Y).coef_)
    assert model.coef_.shape == (10, 65)


# --- decisions --------------------------------------------------------------------------------


def walk(score):
    """Eq. 1 by its words."""
    node = "root"
    while children(node):
        node = max(children(node), key=lambda child: score[child])
    return node


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", ["linear", RBF(2.0)])
@pytest.mark.parametrize("method", METHODS)
def test_decisions(method, kernel, container):
    model = svc(method, 0.5, kernel, intercept_variance=0.5, tol=1e-2).fit(container(X), Y)
    new = container(np.vstack([NEW, np.zeros((1, 5))]))
    U, D, answers = model.node_scores(new), model.decision_function(new), model.predict(new)
    assert U.shape == (19, len(model.nodes_))
    assert D.shape == (19, 6)
    np.testing.assert_array_equal(model.classes_[D.argmax(axis=1)], answers)
    for row, values, answer in zip(U, D, answers, strict=True):
        score = dict(zip(model.nodes_, row, strict=True))
        if method not in RECURSIVE:
            close(values, [score[leaf] for leaf in model.classes_], atol=0)
            continue
        assert answer == walk(score)
        for leaf, value in zip(model.classes_, values, strict=True):
            margins = [
                score[i] - max(score[j] for j in siblings(i)) for i in up(leaf) if siblings(i)
            ]
            assert value == pytest.approx(min(margins), abs=1e-12)
            assert (value > 0) == (leaf == answer)


def test_nodes():
    assert list(svc().fit(X, Y).nodes_) == list(TREE.names[1:])
    flat = svc("flat").fit(X, Y)
    assert list(flat.nodes_) == [*TREE.leaf_names, "animal", "cat", "tree"]
    assert list(svc("flat").fit(X[LEAVES_ONLY], Y[LEAVES_ONLY]).nodes_) == list(TREE.leaf_names)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "hierarchy", [None, {"b": None, "a": None}, {"x": {"y": ["b"]}, "a": None}]
)
def test_two_classes(method, hierarchy):
    y = np.where(X[:, 0] > 0, "b", "a")
    model = plain(hierarchy, method, alpha="auto").fit(X, y)
    new = np.vstack([NEW, np.zeros((2, 5))])  # a tie
    D = model.decision_function(new)
    assert D.shape == (20,)
    np.testing.assert_array_equal(model.predict(new), model.classes_[(D > 0).astype(int)])
    np.testing.assert_array_equal(model.predict(sp.csr_array(new)), model.predict(new))
    assert np.mean(model.predict(X) == y) > 0.9
    if hierarchy is None:
        U = model.node_scores(new)
        close(D, U[:, 1] - U[:, 0], atol=1e-15)


def test_branches_without_examples():
    """Nothing is known about them; scores are ties there, and answers agree with decision values."""
    some = np.isin(Y, ["animal", "car", "dog"])
    model = svc().fit(X[some], Y[some])
    assert list(model.classes_) == sorted(TREE.leaf_names)
    np.testing.assert_array_equal(
        model.predict(NEW), model.classes_[model.decision_function(NEW).argmax(axis=1)]
    )


@pytest.mark.parametrize("y", [
    np.arange(54) % 3, np.arange(54) % 3 * 1.0, np.arange(54) % 2 == 0,
    np.array(["root", "(root)", "b"])[np.arange(54) % 3],
    np.array(["b", "a", "c"], dtype=object)[np.arange(54) % 3],
    pd.Series(np.array(["b", "a"])[np.arange(54) % 2]),
])  # fmt: skip
def test_kinds_of_labels(y):
    model = plain(probability=True, cv=2).fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert model.predict(NEW).dtype == np.unique(y).dtype
    assert model.taxonomy_.height == 1
    assert set(model.decide(NEW)) <= set(model.classes_)
    assert model.predict_node_proba(NEW).shape == (18, len(model.classes_) + 1)


def test_integers_below_words():
    tree = {"low": [1, 2], "high": [30, 4]}
    y = np.array([1, 2, 30, 4])[np.arange(54) % 4]
    model = plain(tree).fit(X, y)
    np.testing.assert_array_equal(model.classes_, [1, 2, 4, 30])
    assert model.predict(NEW).dtype == model.classes_.dtype
    mixed = np.array(["low" if label == 1 else label for label in y.tolist()], dtype=object)
    assert plain(tree).fit(X, mixed).score(X, mixed) > 0.2


@pytest.mark.parametrize("hierarchy", [
    TREE, {child: parent for child, parent in zip(TREE.names[1:], TREE.names[TREE.parent[1:]], strict=True)},
    [(p, c) for c, p in zip(TREE.names[1:], TREE.names[TREE.parent[1:]], strict=True)],
])  # fmt: skip
def test_ways_to_give_a_hierarchy(hierarchy):
    model = plain(hierarchy, alpha="auto").fit(X, Y)
    assert model.taxonomy_ == TREE
    np.testing.assert_array_equal(model.predict(NEW), svc().fit(X, Y).predict(NEW))


# --- K and alpha ------------------------------------------------------------------------------

LONG = Taxonomy.from_parents({"z": None} | {f"n{i}": f"n{i - 1}" if i else None for i in range(12)})


def test_alpha():
    model = plain(NESTED, alpha=0.25, K=orthogonality_weights(TREE)).fit(X, Y)
    np.testing.assert_array_equal(model.K_.toarray(), orthogonality_weights(TREE, 0.25))
    assert model.alpha_ == 0.25
    K = orthogonality_weights(TREE, 3.0)
    scaled = plain(NESTED, alpha=0.25 / 3, K=K).fit(X, Y)
    close(scaled.K_.toarray(), model.K_.toarray(), atol=1e-15)


def test_weights_have_a_unit_diagonal():
    """Every node pays ½ |w|² and the condition on alpha is that of the paper's weights."""
    K = orthogonality_weights(TREE)
    model = plain(NESTED, alpha=0.25).fit(X, Y)
    sizes = np.diag(K)
    expected = 0.25 * (K - np.diag(sizes)) / np.sqrt(np.outer(sizes, sizes)) + np.eye(10)
    close(model.K_.toarray(), expected, atol=1e-15)
    automatic = plain(NESTED, alpha="auto").fit(X, Y)
    assert automatic.alpha_ == pytest.approx(0.9 * largest_alpha(K))
    assert smallest_eigenvalue(automatic.K_) == pytest.approx(0.1)


def test_defaults_fit_every_tree():
    """Without a number from the user: every choice is made by the data."""
    deep = np.where(X[:, 0] > 0, "z", "n11")
    methods = ("flat", "orthogonal")
    for (tree, labels), method in product(((NESTED, Y), (LONG, deep), (None, Y)), methods):
        model = HierarchicalSVC(tree, method).fit(X, labels)
        assert method == "orthogonal" or HierarchicalSVC(tree).method == method
        assert model.C_ in model.C_path_["C"]
        assert model.solution_.status == "converged"
        assert model.intercept_.any()
        assert model.score(X, labels) > 0.75


def test_automatic_alpha():
    """One, unless the penalty were not convex."""
    pets = {"animal": ["cat", "dog"], "car": None}
    y = np.array(["cat", "dog", "car"])[np.arange(54) % 3]
    assert plain(pets, alpha="auto").fit(X, y).alpha_ == 1
    for K in (orthogonality_weights(TREE), orthogonality_weights(TREE, 3.0)):
        model = plain(NESTED, alpha="auto", K=K).fit(X, Y)
        assert model.alpha_ == pytest.approx(0.9 * largest_alpha(K))
        assert model.solution_.status == "converged"
        np.testing.assert_array_equal(np.diag(model.K_.toarray()), np.diag(K))
        close(model.K_.toarray(), orthogonality_weights(TREE, model.K_[0, 3]), atol=1e-15)


def test_a_data_frame_is_put_into_order():
    K = orthogonality_weights(TREE, 0.25) + np.diag(np.arange(10.0))
    names = TREE.names[1:]
    order = np.random.default_rng(0).permutation(10)
    frame = pd.DataFrame(K, names, names).iloc[order, order[::-1]]
    np.testing.assert_array_equal(plain(NESTED, K=frame).fit(X, Y).K_.toarray(), K)


def proposals(alpha, K):
    """The alpha and the addition to the diagonal that an error proposes."""
    with pytest.raises(ValueError, match="convex") as caught:
        plain(NESTED, alpha=alpha, K=K).fit(X, Y)
    words = str(caught.value).split()
    fitting = words[words.index("Use") + 1].removeprefix("alpha=")
    return float(fitting), None if K is None else float(words[words.index("add") + 1])


@pytest.mark.parametrize("K", [None, orthogonality_weights(TREE, 4.0)])
def test_repairs_that_an_error_proposes_work(K):
    """Followed to the letter; and they are not far from what is needed."""
    alpha = 5.0 if K is None else 1.0
    fitting, more = proposals(alpha, K)
    plain(NESTED, alpha=fitting, K=K).fit(X, Y)
    plain(NESTED, alpha="auto", K=K).fit(X, Y)
    proposals(1.02 * fitting, K)
    if K is not None:
        plain(NESTED, K=K + more * np.eye(10)).fit(X, Y)
        proposals(1.0, K + 0.9 * more * np.eye(10))


def test_repairs_on_the_border():
    """There the smallest eigenvalue is zero, give or take rounding."""
    K = orthogonality_weights(TREE, largest_alpha(orthogonality_weights(TREE)))
    fitting, more = proposals(1.0, K)
    assert 0.98 <= fitting <= 0.99  # not 0.999, which is nearly singular
    assert 0 < more < 0.02
    plain(NESTED, alpha=fitting, K=K).fit(X, Y)
    plain(NESTED, K=K + more * np.eye(10)).fit(X, Y)


def test_a_chain_at_its_natural_alpha():
    """A deep chain is what makes alpha=1 too large, if anything does."""
    y = np.where(X[:, 0] > 0, "z", "n11")
    model = plain(LONG, alpha="auto").fit(X, y)
    assert 0 < model.alpha_ <= 1
    assert np.mean(model.predict(X) == y) > 0.9
