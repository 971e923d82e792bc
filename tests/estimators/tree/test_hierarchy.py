"""Classes that are leaves of a taxonomy: probabilities, uncertain labels, decisions, sharing, odd trees."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone

from gramian import KernelLogisticRegression as KLR
from gramian import KernelSVC
from gramian.kernels import RBF, Linear
from gramian.labels import Taxonomy
from gramian.losses import Softmax
from gramian.selection import CrossValidationSearch
from gramian.selection.prior import GramSettings, assemble_prior
from gramian.solvers import Problem, expectation_maximization, newton

pytestmark = pytest.mark.usefixtures("one_thread")

N = 60
TREE = {"b": {"b1": None, "c": ["c2", "c1"]}, "a": ["a2", "a1"]}  # not in the order of the names
LEAVES = np.array(["a1", "a2", "b1", "c1", "c2"])
KERNEL = 2.0 * RBF(1.2)
TIGHT = 1e-18


def _data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    noisy = X[:, 0] + 0.3 * rng.normal(size=N)
    return X, LEAVES[np.digitize(noisy, [-1.0, -0.3, 0.3, 0.9])]


X, Y = _data()
NEW = np.random.default_rng(1).normal(size=(25, 3))


def fitted(y=Y, hierarchy=TREE, X=X, kernel=KERNEL, sample_weight=None, **params):
    params = {"regularization": 1.0, **params}
    return KLR(kernel, hierarchy=hierarchy, **params).fit(X, y, sample_weight=sample_weight)


@pytest.fixture(scope="module")
def model():
    return fitted()


def coarsened(y, rows, node):
    """y with another label in some rows."""
    out = np.array(y, dtype=object)
    out[rows] = node
    return out


# --- the model --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [3, 5])
def test_a_flat_tree_is_the_flat_model(n_classes):
    """Every class has a function of its own and none are shared."""
    names = [f"k{c}" for c in range(n_classes)]
    y = np.array(names)[np.arange(N) % n_classes]
    tree = fitted(y, {name: None for name in reversed(names)}, tol=TIGHT)
    flat = KLR(KERNEL, tol=TIGHT, regularization=1.0).fit(X, y)
    assert tree.classes_.tolist() == flat.classes_.tolist() == names
    np.testing.assert_allclose(tree.predict_proba(NEW), flat.predict_proba(NEW), atol=1e-8)
    np.testing.assert_allclose(tree.dual_coef_, flat.dual_coef_, atol=1e-8)


def test_two_leaves_are_a_softmax_of_two():
    """Two functions of variance v are one of variance 2v: the binary model with twice the variance."""
    y = np.where(X[:, 0] > 0, "yes", "no")
    tree = fitted(y, {"yes": None, "no": None}, kernel=RBF(1.2), tol=TIGHT)
    flat = KLR(2.0 * RBF(1.2), intercept_variance=2.0, tol=TIGHT, regularization=1.0).fit(X, y)
    np.testing.assert_allclose(tree.predict_proba(NEW), flat.predict_proba(NEW), atol=1e-8)


def test_the_model_is_the_one_equation():
    """The sum of functions on the path, by a matrix over classes that is written down here."""
    shared = {("a1", "a2"): 1, ("b1", "c1"): 1, ("b1", "c2"): 1, ("c1", "c2"): 2}
    depth = {"a1": 2, "a2": 2, "b1": 2, "c1": 3, "c2": 3}
    S = np.diag([float(depth[leaf]) for leaf in LEAVES])
    for (one, other), count in shared.items():
        i, j = np.searchsorted(LEAVES, [one, other])
        S[i, j] = S[j, i] = count
    model = fitted(tol=TIGHT)
    K, K_new = KERNEL(X), KERNEL(NEW, X)
    A = model.dual_coef_
    U = K @ A @ S + A.sum(axis=0)
    P = np.exp(U) / np.exp(U).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(A, (Y[:, None] == LEAVES) - P, atol=1e-7)  # optimality, λ = 1
    np.testing.assert_allclose(
        model.decision_function(NEW), K_new @ A @ S + A.sum(axis=0), atol=1e-8
    )


def test_classes_are_the_sorted_leaves():
    shuffled = {"z": ["m", "b"], "a": {"k": ["y", "c"]}, "x": None}
    y = np.array(["b", "c", "m", "x", "y"])[np.arange(N) % 5]
    model = fitted(y, shuffled)
    assert model.classes_.tolist() == ["b", "c", "m", "x", "y"]
    assert isinstance(model.taxonomy_, Taxonomy)
    assert model.dual_coef_.shape == (N, 5)
    order = np.argmax(model.predict_proba(X), axis=1)
    np.testing.assert_array_equal(model.classes_[order], model.predict(X))
    assert model.score(X, y) > 0.5


def test_names_in_another_order_are_the_same_model():
    """The order of a dictionary, and the way the tree is given, say nothing."""
    parents = {
        "c2": "c",
        "b": None,
        "c1": "c",
        "a2": "a",
        "c": "b",
        "a": None,
        "b1": "b",
        "a1": "a",
    }
    edges = [("root", "b"), ("root", "a"), ("b", "c"), ("c", "c2"), ("c", "c1")]
    edges += [("b", "b1"), ("a", "a2"), ("a", "a1")]
    expected = fitted(tol=TIGHT).predict_proba(NEW)
    for hierarchy in (parents, edges, Taxonomy.from_dict(TREE)):
        found = fitted(hierarchy=hierarchy, tol=TIGHT).predict_proba(NEW)
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_relatives_help_each_other():
    """Few examples of a leaf: the model of the tree puts more on its family than the flat one."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2)) + np.repeat([[2, 0], [-2, 0]], 30, axis=0)
    y = np.array(["a1"] * 29 + ["a2"] + ["b1"] * 29 + ["b2"])
    tree = fitted(y, {"a": ["a1", "a2"], "b": ["b1", "b2"]}, X=X, kernel=RBF(1.0))
    flat = KLR(RBF(1.0), regularization=1.0).fit(X, y)
    far = np.array([[2.0, 2.5]])  # on the side of the family a, away from all examples
    family = [m.predict_proba(far)[0, :2].sum() for m in (tree, flat)]
    assert family[0] > family[1] + 0.05


# --- probabilities ------------------------------------------------------------------------------


def test_probabilities_of_nodes_add_up(model):
    """A node has the sum of its children, and that is the sum over the leaves below it."""
    P, nodes = model.predict_proba(NEW), model.predict_node_proba(NEW)
    tree = model.taxonomy_
    assert nodes.shape == (25, tree.n_nodes) == (25, 9)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(nodes[:, 0], 1, atol=1e-12)
    for node in range(tree.n_nodes):
        children = tree.children(node)
        if len(children):
            np.testing.assert_allclose(nodes[:, node], nodes[:, children].sum(axis=1), atol=1e-12)
    below = {"a": ["a1", "a2"], "b": ["b1", "c1", "c2"], "c": ["c1", "c2"]}
    for name in tree.names[1:]:
        columns = np.isin(LEAVES, below.get(str(name), [str(name)]))
        column = nodes[:, tree.index([name])[0]]
        np.testing.assert_allclose(column, P[:, columns].sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("share", ["tied", "class", "level"])
def test_a_batch_is_predicted_row_by_row(share):
    model = fitted(share=share)
    rows = np.concatenate([model.predict_proba(NEW[i : i + 1]) for i in range(len(NEW))])
    np.testing.assert_allclose(model.predict_proba(NEW), rows, rtol=0, atol=1e-12)
    logs = model.predict_log_proba(NEW)
    np.testing.assert_allclose(np.exp(logs), rows, rtol=0, atol=1e-12)


def test_leaves_without_examples_have_small_probabilities():
    kept = Y != "c2"
    model = fitted(Y[kept], X=X[kept])
    assert model.classes_.tolist() == LEAVES.tolist()
    P = model.predict_proba(X)
    assert (P[:, 4] > 0).all()
    assert P[:, 4].mean() < 0.1
    # it inherits from its family: most likely where the family is
    family = model.predict_node_proba(X)[:, model.taxonomy_.index(["b"])[0]]
    assert np.corrcoef(P[:, 4], family)[0, 1] > 0.5


def test_one_label_is_enough_with_a_tree():
    model = fitted(np.full(N, "a1"))
    assert model.predict_proba(X)[:, 0].min() > 0.5


# --- y in other forms ---------------------------------------------------------------------------

PATHS = ["a/a1", "a/a2", "b/b1", "b/c/c1", "b/c/c2"]


def _table(y):
    rows = {path.split("/")[-1]: path.split("/") for path in PATHS}
    return [[*rows[leaf], None][:3] for leaf in y]


def test_y_may_be_rows_of_names():
    pandas = pytest.importorskip("pandas")
    full = np.array(PATHS)[np.searchsorted(LEAVES, Y)]
    expected = fitted(full, PATHS).predict_proba(NEW)
    table = np.array(_table(Y), dtype=object)
    frame = pandas.DataFrame(table, columns=["section", "class", "group"])
    for y in (table, frame, table.tolist()):
        model = fitted(y, PATHS)
        assert model.classes_.tolist() == PATHS
        np.testing.assert_array_equal(model.predict_proba(NEW), expected)
    by_frame = fitted(frame, hierarchy=frame)  # the table itself is the hierarchy
    assert by_frame.classes_.tolist() == PATHS


def test_rows_of_names_may_end_early():
    """A missing tail is an inner node."""
    table = np.array(_table(Y), dtype=object)
    inner = np.array(PATHS, dtype=object)[np.searchsorted(LEAVES, Y)]
    for row in range(0, N, 7):
        table[row, 1:] = None
        inner[row] = table[row, 0]
    np.testing.assert_array_equal(
        fitted(table, PATHS).predict_proba(NEW), fitted(inner, PATHS).predict_proba(NEW)
    )


def test_integers_and_other_names():
    numbers = {1: 10, 2: 10, 3: 20, 4: 20, 10: None, 20: None}
    y = 1 + np.arange(N) % 4
    model = fitted(y, numbers)
    assert model.classes_.tolist() == [1, 2, 3, 4]
    assert model.predict(X).dtype.kind == "i"
    text = fitted(y.astype(str), {str(k): v and str(v) for k, v in numbers.items()})
    np.testing.assert_array_equal(text.predict_proba(NEW), model.predict_proba(NEW))
    assert model.decide(NEW, "taxonomic", allow_inner=True).dtype.kind in "iO"  # "root" is text


# --- uncertain labels ----------------------------------------------------------------------------


def test_an_inner_node_with_one_leaf_below_is_this_leaf():
    chain = {"a": ["a1", "a2"], "b": {"b0": {"b00": ["b1"]}}}
    y = np.where(np.isin(Y, ["a1", "a2"]), Y, "b1")
    inner = np.where((y == "b1") & (np.arange(N) % 2 == 0), "b", y)
    certain, uncertain = (fitted(labels, chain, tol=TIGHT) for labels in (y, inner))
    np.testing.assert_allclose(uncertain.predict_proba(NEW), certain.predict_proba(NEW), atol=1e-8)
    assert fitted(inner, chain, solver="kernel_cg").solution_.status == "converged"  # no EM needed


def objective(U, A, allowed, weights):
    """J of `expectation_maximization`, by its definition."""
    loss = np.log(np.exp(U).sum(axis=1)) - np.log((np.exp(U) * allowed).sum(axis=1))
    return float(weights @ loss) + 0.5 * float(np.sum(A * U))


@pytest.mark.parametrize("share", ["tied", "class"])
def test_expectation_maximization_never_rises(share):
    taxonomy = Taxonomy.from_dict(TREE)
    order = taxonomy.index(LEAVES)
    y = coarsened(coarsened(Y, slice(0, 20), "b"), slice(20, 30), "a")
    allowed = taxonomy.descends(taxonomy.index(y))[:, np.searchsorted(taxonomy.leaves, order)]
    allowed = allowed.astype(float)
    prior = assemble_prior(10.0 * RBF(1.0), share, taxonomy.names[1:].tolist(), taxonomy, order)
    operator, _ = prior.operator(X, allowed, GramSettings("dense", 1.0))
    weights = np.linspace(0.5, 2.0, N)
    seen = []

    def record(progress):
        A = np.asarray(progress.coefficients)
        value = objective(operator @ A, A, allowed, weights)
        np.testing.assert_allclose(progress.objective, value, rtol=1e-8)
        seen.append(value)

    problem = Problem(operator, Softmax(), allowed, 1.0, weights)
    solution = expectation_maximization(problem, tol=1e-12, callback=record)
    assert solution.status == "converged"
    assert len(seen) > 3
    assert (np.diff(seen) <= 1e-12 * seen[0]).all()
    # stationary: for targets computed from U itself the residual vanishes
    A, U = solution.coefficients, operator @ solution.coefficients
    q = np.exp(U) * allowed
    q /= q.sum(axis=1, keepdims=True)
    P = np.exp(U) / np.exp(U).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weights[:, None] * (P - q) + A, 0, atol=1e-4)


def test_fewer_uncertain_labels_come_nearer_to_the_full_fit():
    full = fitted().predict_proba(X)
    order = np.random.default_rng(3).permutation(N)
    parents = {"a1": "a", "a2": "a", "b1": "b", "c1": "c", "c2": "c"}
    parent = np.array([parents[leaf] for leaf in Y])
    distances = []
    for k in (40, 10, 2, 0):
        y = np.where(np.isin(np.arange(N), order[:k]), parent, Y)
        distances.append(np.abs(fitted(y).predict_proba(X) - full).mean())
    assert distances[0] > distances[1] > distances[2] > distances[3] == 0
    assert distances[2] < 0.2 * distances[0]


def test_a_label_at_the_root_says_nothing():
    """As if the row were not there; so all of them give uniform probabilities."""
    unknown = np.arange(N) >= 40
    with_ = fitted(np.where(unknown, "root", Y), tol=1e-14)
    without = fitted(Y[~unknown], X=X[~unknown], tol=1e-14)
    np.testing.assert_allclose(with_.predict_proba(NEW), without.predict_proba(NEW), atol=1e-6)
    nothing = fitted(np.full(N, "root"))
    np.testing.assert_allclose(nothing.predict_proba(NEW), 0.2, atol=1e-12)


def test_inner_labels_teach_about_their_family():
    """Some of c are labelled c1 or c2, the rest only "c": better than without the rest."""
    inside = np.isin(Y, ["c1", "c2"]) & (np.arange(N) % 3 > 0)
    uncertain = fitted(np.where(inside, "c", Y))
    without = fitted(Y[~inside], X=X[~inside])
    c = uncertain.taxonomy_.index(["c"])[0]
    members = np.isin(Y, ["c1", "c2"])
    scores = [m.predict_node_proba(X)[members, c].mean() for m in (uncertain, without)]
    assert scores[0] > scores[1] + 0.05


@pytest.mark.parametrize("solver", ["exact", "kernel_cg", "parameter_cg"])
def test_uncertain_labels_need_newton(solver):
    with pytest.raises(ValueError, match=rf"solver must be 'auto' or 'newton'.*{solver}"):
        fitted(coarsened(Y, slice(0, 5), "b"), solver=solver)


def test_learning_judges_by_labels_that_are_certain():
    """The cross-validated loss is that of the rows with a leaf, trained on the rows with a leaf."""
    splits = [(np.arange(N)[np.arange(N) % 3 != k], np.arange(k, N, 3)) for k in range(3)]
    y = coarsened(Y, slice(0, 15), "b")
    search = CrossValidationSearch(tol=0.02)
    model = fitted(y, optimize=search, cv=splits)
    certain = np.arange(N) >= 15
    numbers = np.cumsum(certain) - 1
    fewer = [tuple(numbers[part[part >= 15]] for part in split) for split in splits]
    known = fitted(Y[certain], X=X[certain], optimize=search, cv=fewer)
    np.testing.assert_allclose(model.cv_log_loss_, known.cv_log_loss_, rtol=1e-3)
    with pytest.raises(ValueError, match="optimize='cv' needs examples whose class is known"):
        fitted(np.where(Y == "a1", "a", "b"), optimize="cv")


# --- sharing --------------------------------------------------------------------------------------

SUBTREES = {"a1": "a", "a2": "a", "b1": "b", "c1": "b", "c2": "b"}
# Seeger §8.2: flat or hierarchical; one variance, one for each level, one for each subtree of the root
PATTERNS = {
    "F1": (None, "tied", 1),
    "F2": (None, SUBTREES, 2),
    "H, one variance": (TREE, "tied", 1),
    "H1": (TREE, "level", 3),
    "H2": (TREE, "subtree", 2),
    "one for each node": (TREE, "class", 8),
    "groups of nodes": (TREE, {node: len(node) for node in ["a", "b", "c", *LEAVES]}, 2),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_sharing_patterns_have_the_parameters_of_the_paper(pattern):
    """One variance for each group with the linear kernel of the paper; with a length scale twice as many."""
    hierarchy, share, groups = PATTERNS[pattern]
    for kernel, each in ((Linear(), 1), (RBF(2.0), 2)):
        search = CrossValidationSearch(tol=0.3)
        model = KLR(kernel, hierarchy=hierarchy, share=share, optimize=search, cv=3).fit(X, Y)
        assert len(model.kernels_) == len(model.variances_) == groups
        assert len(model.optimization_path_.names) == each * groups
        assert len(model.groups_) == (5 if hierarchy is None else 8)
        assert model.cv_log_loss_ < np.log(5)


def test_groups_by_level_and_by_subtree():
    nodes = ["b", "a", "b1", "c", "a2", "a1", "c2", "c1"]
    model = fitted(share="level")
    assert model.taxonomy_.names[1:].tolist() == nodes
    assert model.groups_.tolist() == [0, 0, 1, 1, 1, 1, 2, 2]
    assert fitted(share="subtree").groups_.tolist() == [0, 1, 0, 0, 1, 1, 0, 0]
    assert fitted(share="class").groups_.tolist() == list(range(8))


@pytest.mark.parametrize("share", ["class", "level", "subtree"])
def test_sharing_does_not_matter_unless_it_is_learned(share):
    """A matrix for each group or one for all: the same numbers."""
    tied, model = fitted(tol=TIGHT), fitted(share=share, tol=TIGHT)
    np.testing.assert_allclose(model.predict_proba(NEW), tied.predict_proba(NEW), atol=1e-7)


def test_a_chain_above_a_leaf_only_adds_to_its_variance():
    """One more node above b1 is one more function for it: b1 with twice the variance in the shorter tree."""
    short, chain = {"a": ["a1", "a2"], "b1": None}, {"a": ["a1", "a2"], "b": ["b1"]}
    y = np.where(np.isin(Y, ["a1", "a2"]), Y, "b1")
    found = fitted(y, chain, kernel=RBF(1.2), tol=TIGHT).decision_function(NEW)
    tree = Taxonomy.from_dict(short)
    order = tree.index(["a1", "a2", "b1"])
    share = {"a": "one", "a1": "one", "a2": "one", "b1": "two"}
    prior = assemble_prior(RBF(1.2), share, tree.names[1:].tolist(), tree, order)
    variances = np.ones(2)
    variances[prior.group_names.index("two")] = 2.0
    prior = prior.with_theta(np.concatenate([np.log([1.2, 1.2]), np.log(variances)]))
    targets = (y[:, None] == np.array(["a1", "a2", "b1"])).astype(float)
    operator, _ = prior.operator(X, targets, GramSettings("dense", 1.0))
    A = newton(Problem(operator, Softmax(), targets), tol=TIGHT).coefficients
    np.testing.assert_allclose(found, prior.cross(NEW, X) @ A + A.sum(axis=0), atol=1e-7)


def test_learning_by_level_lowers_the_loss():
    search = CrossValidationSearch(tol=0.02)
    model = fitted(kernel=RBF(6.0), share="level", optimize=search, cv=3)
    path = model.optimization_path_
    assert path.names[3:] == tuple(f"variance [level {k}]" for k in (1, 2, 3))
    assert model.cv_log_loss_ < 0.95 * path.loss[0]
    with pytest.raises(AttributeError, match="3 kernels"):
        _ = model.kernel_


# --- decisions ------------------------------------------------------------------------------------

PARENT = {"a1": "a", "a2": "a", "b1": "b", "c1": "c", "c2": "c", "c": "b", "a": "root", "b": "root"}


def up(node):
    """The path to the root."""
    path = [node]
    while path[-1] != "root":
        path.append(PARENT[path[-1]])
    return path


def taxonomic(decision, leaf):
    """Half the edges between two nodes, by walking."""
    mine, other = up(decision), up(leaf)
    common = next(node for node in mine if node in other)
    return (mine.index(common) + other.index(common)) / 2


def parental(decision, leaf):
    family = PARENT[decision] if decision in LEAVES else decision
    return float(family != PARENT[leaf])


COSTS = {
    "zero_one": lambda decision, leaf: float(decision != leaf),
    "taxonomic": taxonomic,
    "parent": parental,
}


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.9, 1.0])
def test_a_threshold_climbs_to_a_node_that_is_sure(model, threshold):
    """The first node from the predicted leaf to the root that is probable enough; the root always is."""
    tree, P = model.taxonomy_, model.predict_node_proba(NEW)
    for row, (answer, leaf) in enumerate(
        zip(model.decide(NEW, threshold=threshold), model.predict(NEW), strict=True)
    ):
        way = [tree.index(leaf), *tree.ancestors(tree.index(leaf))]
        sure = [node for node in way if P[row, node] >= threshold or node == 0]
        assert answer == tree.names[sure[0]]


@pytest.mark.parametrize("allow_inner", [False, True])
@pytest.mark.parametrize("loss", COSTS)
def test_decisions_have_the_least_expected_loss(model, loss, allow_inner):
    """By walking the tree for each pair of decision and leaf."""
    decisions = ["root", *PARENT] if allow_inner else LEAVES.tolist()
    costs = np.array([[COSTS[loss](d, leaf) for leaf in LEAVES] for d in decisions])
    P = model.predict_proba(NEW)
    risks = P @ costs.T
    found = model.decide(NEW, loss, allow_inner=allow_inner)
    for row, name in enumerate(found):
        assert risks[row, decisions.index(name)] <= risks[row].min() + 1e-12
    if loss == "taxonomic" and allow_inner:
        assert set(found) - set(LEAVES)  # some rows are better left at an inner node


def test_zero_one_decisions_are_predictions(model):
    np.testing.assert_array_equal(model.decide(NEW), model.predict(NEW))
    np.testing.assert_array_equal(model.decide(NEW, allow_inner=True), model.predict(NEW))
    flat = KLR(KERNEL, regularization=1.0).fit(X, Y)
    np.testing.assert_array_equal(flat.decide(NEW), flat.predict(NEW))
    np.testing.assert_array_equal(flat.decide(NEW, 1 - np.eye(5)), flat.predict(NEW))


def test_costs_may_be_a_matrix(model):
    """Rows are decisions; with inner nodes they are in the order of the taxonomy's names."""
    never_a1 = 1 - np.eye(5)
    never_a1[0] = 9.0
    found = model.decide(NEW, never_a1)
    assert "a1" not in found
    assert "a1" in model.predict(NEW)
    names = model.taxonomy_.names.tolist()
    always = np.ones((9, 5))
    always[names.index("c")] = 0.5
    assert set(model.decide(NEW, always, allow_inner=True)) == {"c"}


def test_decisions_that_cannot_be_made(model):
    flat = KLR(KERNEL, regularization=1.0).fit(X, Y)
    for loss, inner in (("taxonomic", False), ("parent", False), ("zero_one", True)):
        with pytest.raises(ValueError, match=rf"decide\(loss='{loss}'.* needs a model with hierar"):
            flat.decide(NEW, loss, allow_inner=inner)
    with pytest.raises(ValueError, match="predict_node_proba needs a model with hierarchy"):
        flat.predict_node_proba(NEW)
    with pytest.raises(ValueError, match=r"loss must be one of .*'taxonomic'.*got 'edges'"):
        model.decide(NEW, "edges")
    with pytest.raises(ValueError, match=r"costs of shape \(5, 5\).* got shape \(4, 5\)"):
        model.decide(NEW, np.ones((4, 5)))
    with pytest.raises(ValueError, match=r"costs of shape \(9, 5\)"):
        model.decide(NEW, np.ones((5, 5)), allow_inner=True)
    with pytest.raises(ValueError, match="finite"):
        model.decide(NEW, np.full((5, 5), np.nan))
    with pytest.raises(ValueError, match="threshold must be a probability, at most 1"):
        model.decide(NEW, threshold=1.5)
    with pytest.raises(TypeError, match="threshold must be a finite number"):
        model.decide(NEW, threshold="high")
    with pytest.raises(TypeError, match="allow_inner must be True or False"):
        model.decide(NEW, allow_inner="yes")


# --- weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("uncertain", [False, True])
def test_weight_two_is_a_row_twice(uncertain):
    y = coarsened(Y, slice(10, 25), "b") if uncertain else Y.astype(object)
    rows = np.concatenate([np.arange(N), np.arange(20)])
    weighted = fitted(y, sample_weight=np.where(np.arange(N) < 20, 2.0, 1.0), tol=1e-14)
    twice = fitted(y[rows], X=X[rows], tol=1e-14)
    np.testing.assert_allclose(weighted.predict_proba(NEW), twice.predict_proba(NEW), atol=1e-6)


def test_class_weight_is_sample_weight():
    weights = {leaf: 1.0 + k for k, leaf in enumerate(LEAVES)}
    by_class = fitted(class_weight=weights)
    by_row = fitted(sample_weight=np.array([weights[leaf] for leaf in Y]))
    np.testing.assert_array_equal(by_class.dual_coef_, by_row.dual_coef_)
    assert np.abs(by_class.dual_coef_ - fitted().dual_coef_).max() > 1e-3
    assert fitted(class_weight="balanced").score(X, Y) > 0.6


# --- odd trees --------------------------------------------------------------------------------

BAD_TREES = {
    "cycle": ({"a1": "a2", "a2": "b1", "b1": "a1"}, ("cycle of 3 nodes", "'a1'")),
    "own parent": ([("a1", "a1"), ("a1", "a2")], ("'a1' is its own parent",)),
    "two parents": ([("a", "a1"), ("b", "a1"), ("b", "a2")], ("'a1' has two parents", "'a'")),
    "a name twice": ({"a": ["a1", "a2"], "b": ["a1", "b1"]}, ("'a1' has two parents",)),
    "a label is missing": ({"a": ["a1", "a2"], "b": ["b1", "c1"]}, ("no node 'c2'", "It has")),
    "one leaf": ({"a": {"b": ["a1"]}}, ("hierarchy", "at least two leaves", "'a1'")),
    "text and numbers": ({"a": [1, "a1"]}, ("hierarchy", "strings or by integers", "'a1'")),
    "nothing": ({}, ("taxonomy is empty",)),
    "root twice": ({"root": ["a1", "a2"], "b": ["b1", "c1", "c2"]}, ("'root'", "Rename")),
}


@pytest.mark.parametrize("name", BAD_TREES)
def test_bad_trees_are_refused(name):
    hierarchy, words = BAD_TREES[name]
    y = np.full(N, "a1") if name in ("one leaf", "text and numbers") else Y
    model = KLR(hierarchy=hierarchy, regularization=1.0)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the words are below)
        model.fit(X, y)
    for word in words:
        assert word in str(caught.value)
    assert not hasattr(model, "taxonomy_")


def test_what_is_no_tree_is_refused():
    with pytest.raises(TypeError, match=r"hierarchy must be a Taxonomy, .* got int 5"):
        fitted(hierarchy=5)
    with pytest.raises(ValueError, match="share must give a group for every node; missing"):
        fitted(share={"a": 0})


def test_several_top_nodes_hang_under_a_root():
    model = fitted()
    assert model.taxonomy_.names[0] == "root"
    single = fitted(hierarchy={"everything": TREE})
    assert single.taxonomy_.names[0] == "everything"
    np.testing.assert_array_equal(single.predict_proba(NEW), model.predict_proba(NEW))


def test_a_chain_of_5000_nodes():
    """Depth costs neither recursion nor time; a long path is a large variance."""
    chain = {f"n{k + 1}": f"n{k}" for k in range(5000)} | {"side": "n0"}
    y = np.where(X[:, 0] > 0, "side", "n5000")
    model = fitted(y, chain, kernel=RBF(1.0))
    assert model.taxonomy_.height == 5000
    assert model.score(X, y) == 1
    uncertain = fitted(np.where(np.arange(N) % 2, y, np.where(y == "side", y, "n2500")), chain)
    assert uncertain.predict_node_proba(NEW).shape == (25, 5002)
    assert set(model.decide(NEW, "taxonomic")) <= {"side", "n5000"}


def test_a_wide_tree():
    leaves = [f"{top}{k}" for top in "abc" for k in range(60)]
    hierarchy = {top: [leaf for leaf in leaves if leaf[0] == top] for top in "abc"}
    y = np.array(leaves)[(np.arange(N) * 7) % 21 * 8]
    model = fitted(y, hierarchy)
    assert model.predict_proba(NEW).shape == (25, 180)
    assert model.predict_node_proba(NEW).shape == (25, 184)


# --- other data, copies ---------------------------------------------------------------------------


@pytest.mark.parametrize("share", ["tied", "level"])
def test_sparse_rows_and_a_linear_kernel(share):
    thin = np.where(X > 0, X, 0.0)
    dense, sparse = (
        fitted(X=rows, kernel=Linear(), share=share, tol=1e-14)
        for rows in (thin, sp.csr_array(thin))
    )
    assert sparse.operator_.name == "linear"
    np.testing.assert_allclose(sparse.predict_proba(thin), dense.predict_proba(thin), atol=1e-6)
    np.testing.assert_allclose(
        sparse.predict_node_proba(sp.csr_array(thin)), dense.predict_node_proba(thin), atol=1e-6
    )


@pytest.mark.parametrize("uncertain", [False, True])
def test_single_precision(uncertain):
    y = coarsened(Y, slice(10, 25), "b") if uncertain else Y
    double, single = fitted(y), fitted(y, X=X.astype(np.float32), tol=1e-6)
    P = single.predict_proba(NEW.astype(np.float32))
    assert P.dtype == np.float32
    np.testing.assert_allclose(P, double.predict_proba(NEW), atol=5e-3)


@pytest.mark.parametrize("share", ["tied", "class"])
def test_other_array_libraries(share):
    strict = pytest.importorskip("array_api_strict")
    codes = np.searchsorted(LEAVES, Y)
    numbers = {0: 10, 1: 10, 2: 20, 12: 20, 3: 12, 4: 12, 10: None, 20: None}
    codes[:10] = np.where(codes[:10] > 1, 20, codes[:10])  # some are inner nodes
    expected = fitted(codes, numbers, share=share)
    with sklearn.config_context(array_api_dispatch=True):
        model = fitted(strict.asarray(codes), numbers, X=strict.asarray(X), share=share)
        new = strict.asarray(NEW)
        P, nodes = model.predict_proba(new), model.predict_node_proba(new)
        assert isinstance(P, type(new))
        assert isinstance(nodes, type(new))
        decided = model.decide(new, "taxonomic")
    np.testing.assert_allclose(np.asarray(P), expected.predict_proba(NEW), atol=1e-4)
    np.testing.assert_allclose(np.asarray(nodes), expected.predict_node_proba(NEW), atol=1e-4)
    np.testing.assert_array_equal(decided, expected.decide(NEW, "taxonomic"))


@pytest.mark.parametrize("share", ["tied", "level"])
def test_pickle_skops_and_clone(share):
    model = fitted(coarsened(Y, slice(0, 10), "b"), share=share)
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(model)
    types = skops.get_untrusted_types(data=stored)
    assert all(name.startswith("gramian.") for name in types)
    for other in (pickle.loads(pickle.dumps(model)), skops.loads(stored, trusted=types)):
        np.testing.assert_array_equal(other.predict_node_proba(NEW), model.predict_node_proba(NEW))
        np.testing.assert_array_equal(other.decide(NEW, "parent"), model.decide(NEW, "parent"))
        assert other.taxonomy_ == model.taxonomy_
        assert other.kernels_ == model.kernels_
    copied = clone(model)
    assert copied.hierarchy == TREE
    assert not hasattr(copied, "taxonomy_")
    np.testing.assert_array_equal(
        copied.fit(X, coarsened(Y, slice(0, 10), "b")).dual_coef_, model.dual_coef_
    )


def test_a_later_flat_fit_has_no_taxonomy():
    model = fitted()
    assert isinstance(model.taxonomy_, Taxonomy)
    model.set_params(hierarchy=None).fit(X, Y)
    assert model.taxonomy_ is None
    assert model.predict_proba(NEW).shape == (25, 5)


def test_support_vectors_have_no_hierarchy():
    with pytest.raises(TypeError, match="hierarchy"):
        KernelSVC(hierarchy=TREE, regularization=1.0)
