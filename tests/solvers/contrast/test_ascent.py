"""Dual ascent for contrast problems: CVXPY's optimum, scikit-learn's, and what symmetry says.

The orthogonal penalty has no cone in its primal form; CVXPY solves the joint dual in coefficients and signs, and the
loops of `contrast_oracles` say that the solver's normals reach it from above.
"""

import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from contrast_oracles import METHODS, asked, dual, losses, omega, optimum, primal, task
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from spied_rows import spied

from gramian.kernels import RBF, Linear
from gramian.labels import Contrasts, QuadraticPenalty, Taxonomy, largest_alpha
from gramian.labels.margins.orthogonality import sparse_orthogonality_weights
from gramian.labels.margins.tree_margins import Flat, Orthogonal
from gramian.operators import GramRows
from gramian.solvers import ContrastProblem, ContrastSplit, contrast_ascent
from gramian.solvers.contrast.state import FIRST_SLOTS, FeatureState, GramState

pytestmark = pytest.mark.usefixtures("one_thread")
every_method = pytest.mark.parametrize("method", METHODS)


def solved(problem, tol=1e-8, **options):
    solution = contrast_ascent(problem, tol=tol, max_iter=5000, **options)
    assert solution.status == "converged"
    assert solution.gap <= problem.allowed_gap(solution.objective, tol)
    return solution


def normals(t, tol=1e-8, **options):
    return t.X.T @ solved(t.problem(), tol, **options).coefficients


# --- the optimum ----------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("C", [0.01, 0.5, 5.0])
def test_bounds_meet_at_the_optimum(method, C):
    t = task(method, C)
    best, solution = optimum(t), solved(t.problem())
    np.testing.assert_allclose(solution.objective, best, rtol=1e-6)
    np.testing.assert_allclose(primal(t, solution.coefficients), solution.objective, rtol=1e-9)
    slack = 1e-8 * best  # of CVXPY
    assert np.all(solution.history["value"] >= best - slack)
    assert np.all(solution.history["dual"] <= best + slack)
    assert np.all(np.diff(solution.history["objective"]) <= 0)
    lower = solution.history["objective"] - solution.history["gap"]
    assert np.all(np.diff(lower) >= -1e-12 * best)


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_no_normals_beat_the_orthogonal_optimum(C):
    """Whatever duality says: J of hundreds of others, near and far, is not below the lower bound."""
    t = task("orthogonal", C)
    solution = solved(t.problem(), tol=1e-7)
    W = solution.coefficients.T @ t.X
    rng = np.random.default_rng(0)
    for scale in 10.0 ** rng.uniform(-6, 1, size=300):
        other = W + scale * rng.normal(size=W.shape)
        value = omega(t.K, other) + losses(t, np.vstack([np.zeros((1, len(W[0]))), other]))
        assert value >= solution.objective - solution.gap


@every_method
@pytest.mark.parametrize("kind", ["features", "gram"])
def test_the_gap_is_that_of_the_formulas(method, kind):
    """J and D by loops over the formulas, from the coefficients and signs of a state that is not optimal."""
    t = task(method)
    made = {
        "features": (FeatureState, t.X),
        "gram": (GramState, GramRows(Linear(), t.X)),
    }
    of, inputs = made[kind]
    problem = t.problem(inputs)
    state = of(problem, np.random.RandomState(0))
    everything = np.arange(problem.labels.size)
    for _ in range(2):
        state.sweep(everything, 1)
    objective, lower, _ = state.values()

    table, used, beta = problem.contrasts, state.dual, {}
    seen = np.zeros(len(t.X), dtype=int)
    outputs = t.margins.outputs
    for k, (x, label) in enumerate(zip(problem.examples, problem.labels, strict=True)):
        slots = slice(used.begin[k], used.begin[k] + used.counts[k])
        row, weights = used.row[slots], used.beta[slots]
        assert np.all((row >= table.start[label]) & (row < table.start[label + 1]))
        own, rival = outputs[table.own[row]], outputs[used.rival[slots]]
        group = asked(t, t.nodes[x])[seen[x]]
        found = {(i, j): b for i, j, b in zip(own, rival, weights, strict=True)}
        assert len(found) == weights.size
        assert found.keys() <= {(i, j) for i, j, _ in group}
        beta[x, seen[x]] = np.array([found.get((i, j), 0.0) for i, j, _ in group])
        assert np.all(weights >= 0)
        assert weights.sum() <= t.caps[x] * (1 + 1e-12)
        seen[x] += 1
    S = np.zeros((t.tree.n_nodes, t.tree.n_nodes))
    F = state.form.matrix().toarray()
    S[np.ix_(outputs, outputs)] = F @ F.T
    np.testing.assert_allclose(lower, dual(t, beta, S), rtol=1e-9)
    np.testing.assert_allclose(objective, primal(t, state.current()), rtol=1e-9)
    assert objective - lower > 1e-3  # else nothing was tested


@pytest.mark.parametrize("C", [0.02, 1.0, 20.0])
def test_flat_is_crammer_singer(C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = np.argmax(X @ rng.normal(size=(5, 4)) + rng.normal(size=(60, 4)), axis=1)
    svc = LinearSVC(
        multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-10, max_iter=200_000
    ).fit(X, y)
    tree = Taxonomy.from_parents({f"{c}": None for c in range(4)})
    margins = Flat(tree, tree.leaves)
    problem = ContrastProblem(
        X, contrasts=margins.contrasts, penalty=margins.penalty, **margins.units(y, np.full(60, C))
    )
    W = X.T @ solved(problem, tol=1e-11).coefficients
    np.testing.assert_allclose(W.T, svc.coef_, atol=1e-5)


@pytest.mark.parametrize("kind", ["features", "gram"])
def test_as_many_slots_as_an_example_needs(kind):
    """With one feature all rivals are alike, and each example of the common class has weight on all of them."""
    n_classes = 4 * FIRST_SLOTS
    tree = Taxonomy.from_parents({f"{c:02}": None for c in range(n_classes)})
    y = np.concatenate([np.zeros(6, dtype=int), np.arange(n_classes)])
    X = np.ones((y.size, 1)) + 0.01 * np.arange(y.size)[:, None]
    margins = Flat(tree, tree.leaves)
    problem = ContrastProblem(
        X if kind == "features" else GramRows(Linear(), X),
        contrasts=margins.contrasts,
        penalty=margins.penalty,
        **margins.units(y, np.full(y.size, 0.02)),
    )
    state = (FeatureState if kind == "features" else GramState)(problem, np.random.RandomState(0))
    for _ in range(200):
        objective, lower, _ = state.values()
        state.sweep(np.arange(y.size), 2)
    assert state.dual.counts.max() > FIRST_SLOTS
    assert np.all(state.dual.counts <= np.diff(state.dual.begin))
    svc = LinearSVC(
        multi_class="crammer_singer", C=0.02, fit_intercept=False, tol=1e-10, max_iter=200_000
    ).fit(X, y)
    W = X.T @ state.current()
    costs = 1.0 + X @ svc.coef_.T - np.take_along_axis(X @ svc.coef_.T, y[:, None], axis=1)
    costs[np.arange(y.size), y] = 0.0
    theirs = 0.5 * np.sum(svc.coef_**2) + 0.02 * costs.max(axis=1).sum()
    assert objective - lower < 1e-6 * objective
    np.testing.assert_allclose(objective, theirs, rtol=1e-6)
    np.testing.assert_allclose(W.T, svc.coef_, atol=1e-4)


def test_what_many_classes_take_grows_with_their_number():
    """Neither contrasts nor the form nor coefficients are stored for pairs of classes."""
    n = 3000
    tree = Taxonomy(range(n + 1), np.where(np.arange(n + 1) > 0, 0, -1))
    margins = Flat(tree, tree.leaves)
    assert margins.contrasts.own.size <= 2 * n
    X, y = sp.eye_array(n, format="csr"), np.arange(n)
    problem = ContrastProblem(
        X, contrasts=margins.contrasts, penalty=margins.penalty, **margins.units(y, np.ones(n))
    )
    state = FeatureState(problem, np.random.RandomState(0))
    assert state.form.factor.value.size == n
    assert sum(part.size for part in (*state.dual.outputs, *state.dual.latents)) <= 7 * n
    assert state.dual.beta.size <= FIRST_SLOTS * n


def test_a_visit_reads_the_families_along_a_path():
    tree = Taxonomy.from_paths(
        [f"{a}/{b}/{c}" for a in range(4) for b in range(3) for c in range(5)]
    )
    labels = tree.leaves
    margins = Orthogonal(tree, labels, sparse_orthogonality_weights(tree) + 20 * np.eye(76))
    problem = ContrastProblem(
        np.eye(60),
        contrasts=margins.contrasts,
        penalty=margins.penalty,
        **margins.units(np.arange(60), np.ones(60)),
    )
    state = FeatureState(problem, np.random.RandomState(0))
    np.testing.assert_array_equal(state.dual.width, 4 + 3 + 5)
    state.values()
    assert state.operations == 60 * 60 * 12  # features × examples × outputs


# --- inputs ---------------------------------------------------------------------------------------


@every_method
def test_forms_of_inputs_agree(method):
    t = task(method)
    X = t.X.copy()
    X[np.abs(X) < 0.3] = 0.0
    t = replace(t, X=X)
    expected = normals(t, tol=1e-9)
    assert np.abs(expected).max() > 0.1
    forms = {
        "csr": sp.csr_array(X),
        "fortran": np.asfortranarray(X),
        "gram": GramRows(Linear(), X),
        "streamed": GramRows(Linear(), X, nbytes=10 * X.shape[0] * 8),
    }
    assert forms["streamed"].matrix is None
    for name, inputs in forms.items():
        c = solved(t.problem(inputs), tol=1e-9).coefficients
        np.testing.assert_allclose(X.T @ c, expected, atol=2e-4, err_msg=name)


@every_method
@pytest.mark.parametrize("kind", ["dense", "csr", "gram"])
def test_examples_without_features(method, kind):
    """Nothing can be done for them: each costs its cap times its largest ρ."""
    t = task(method)
    X = t.X.copy()
    X[3] = X[15] = 0.0
    t = replace(t, X=X)
    inputs = {"dense": X, "csr": sp.csr_array(X), "gram": GramRows(Linear(), X)}[kind]
    solution = contrast_ascent(t.problem(inputs), tol=1e-6)
    assert solution.status == "converged"
    np.testing.assert_allclose(solution.objective, optimum(t), rtol=1e-5)


@every_method
def test_float32(method):
    t = task(method)
    X = t.X.astype(np.float32)
    best = optimum(t)
    # what rounding of a Gram matrix may hide counts as a gap: up to 1.1e-5 of the objective here
    for inputs, tol in ((X, 1e-5), (sp.csr_array(X), 1e-5), (GramRows(Linear(), X), 2e-5)):
        c = solved(t.problem(inputs), tol=tol).coefficients
        assert c.dtype == np.float64
        np.testing.assert_allclose(primal(t, c), best, rtol=2e-5)


@every_method
def test_a_kernel_is_its_features(method):
    """With an RBF kernel the features are those of a factor of the Gram matrix."""
    t = task(method)
    rows = GramRows(RBF(2.0), t.X)
    values, vectors = np.linalg.eigh(rows.matrix)
    features = vectors * np.sqrt(np.maximum(values, 0))
    one = solved(t.problem(rows), tol=1e-7)
    other = solved(t.problem(features), tol=1e-7)
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-6)
    latent = [t.problem(rows).latent(s.coefficients) for s in (one, other)]
    np.testing.assert_allclose(*latent, atol=2e-2)


# --- symmetry -------------------------------------------------------------------------------------


def test_blocks_take_little_memory(monkeypatch):
    """Where their rows are long, blocks are smaller; rows of one block are gone before the next ones are made."""
    t = task("orthogonal")
    most = 3
    # as an attribute of the package it would be the function
    module = sys.modules["gramian.solvers.contrast.state"]
    monkeypatch.setattr(module, "ROWS_BYTES", most * 8 * len(t.X))
    rows = GramRows(Linear(), t.X, nbytes=5 * len(t.X) * 8)
    taken = spied(rows)
    found = solved(t.problem(rows), tol=1e-6)
    assert most <= max(taken) < 2 * most
    np.testing.assert_allclose(found.objective, solved(t.problem(), tol=1e-6).objective, rtol=1e-5)


@every_method
def test_a_weight_of_two_is_a_row_twice(method):
    t = task(method)
    twice = np.array([0, 5, 11])
    caps = t.caps.copy()
    caps[twice] *= 2
    one = normals(replace(t, caps=caps))
    other = normals(t.rows(np.concatenate([np.arange(len(t.X)), twice])))
    np.testing.assert_allclose(one, other, atol=1e-3)
    assert np.abs(one - normals(t)).max() > 1e-2


@every_method
def test_a_cap_of_zero_is_a_row_removed(method):
    t = task(method)
    keep = np.setdiff1d(np.arange(len(t.X)), [1, 8, 16])  # the last with an inner label
    caps = t.caps.copy()
    caps[[1, 8, 16]] = 0.0
    solution = solved(replace(t, caps=caps).problem(), tol=1e-9)
    np.testing.assert_allclose(
        solved(t.rows(keep).problem(), tol=1e-9).objective, solution.objective, rtol=1e-7
    )
    assert not solution.coefficients[[1, 8, 16]].any()


@every_method
def test_order_of_rows_and_outputs_does_not_matter(method):
    t = task(method)
    order = np.random.default_rng(1).permutation(len(t.X))
    expected = normals(t, tol=1e-9)
    np.testing.assert_allclose(normals(t.rows(order), tol=1e-9), expected, atol=2e-4)

    problem, m = t.problem(), t.problem().contrasts.n_outputs
    outputs = np.random.default_rng(2).permutation(m)  # the new number of each
    back = np.argsort(outputs)
    triples = problem.contrasts.triples()
    triples = triples._replace(own=outputs[triples.own], rival=outputs[triples.rival])
    contrasts = Contrasts.from_triples(triples, m)
    given = problem.penalty.weights if method == "orthogonal" else problem.penalty.gram
    penalty = type(problem.penalty)(given[np.ix_(back, back)])
    permuted = replace(problem, contrasts=contrasts, penalty=penalty)
    c = solved(permuted, tol=1e-9).coefficients.toarray()
    np.testing.assert_allclose(t.X.T @ c[:, outputs], expected, atol=2e-4)


# --- how it ends ----------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("C", [1e-6, 50.0])
def test_tiny_and_large_caps(method, C):
    t = task(method, C)
    solution = solved(t.problem(), tol=1e-2)
    best = optimum(t)
    assert solution.objective - solution.gap <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= solution.objective
    gained = t.problem().value_at_zero - solution.objective
    assert gained > 0
    assert solution.gap <= 1e-2 * gained


@pytest.mark.parametrize("kind", ["features", "gram"])
@pytest.mark.parametrize("method", ["flat", "orthogonal", "independent"])
def test_large_features_converge_as_small_ones_do(method, kind):
    """Visits alone need sweeps in proportion to the square of the scale: they stopped with a relative gap of 1."""
    t = task(method, 1.0)
    near = solved(replace(t, X=1e2 * t.X).problem(), tol=1e-4).objective
    for scale in (1e3, 1e4, 1e5):
        X = scale * t.X
        problem = t.problem(X if kind == "features" else GramRows(Linear(), X))
        solution = solved(problem, tol=1e-4)
        assert solution.n_iter < 300
        # the optimum falls towards that without a penalty
        assert solution.objective - solution.gap <= near
        direct = replace(t, X=X)
        np.testing.assert_allclose(
            primal(direct, solution.coefficients), solution.objective, rtol=1e-5
        )


def test_features_too_large_for_sums_end_soon_with_an_honest_gap():
    t = task("flat", 1.0)
    with pytest.warns(ConvergenceWarning, match="rounding errors"):
        solution = contrast_ascent(t.problem(1e8 * t.X))
    assert solution.status == "stalled"
    assert solution.n_iter < 300
    small = solved(t.problem(1e3 * t.X), tol=1e-4)
    assert solution.objective - solution.gap <= small.objective


@every_method
def test_all_caps_zero(method):
    t = task(method)
    solution = contrast_ascent(replace(t, caps=np.zeros(len(t.X))).problem())
    assert solution.status == "converged"
    assert solution.objective == solution.gap == 0
    assert not solution.coefficients.toarray().any()


@pytest.mark.parametrize("kind", ["features", "gram"])
def test_one_seed_one_answer(kind):
    t = task("orthogonal")
    inputs = t.X if kind == "features" else GramRows(Linear(), t.X)
    first, again, other = (
        contrast_ascent(t.problem(inputs), tol=1e-4, random_state=seed) for seed in (0, 0, 1)
    )
    first, again, other = (found.coefficients.toarray() for found in (first, again, other))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_callback_sees_each_sweep_and_stops():
    t, seen = task("orthogonal"), []

    def callback(progress):
        seen.append(progress)
        return progress.iteration == 3

    solution = contrast_ascent(t.problem(), tol=1e-10, callback=callback)
    assert solution.status == "stopped"
    assert [progress.iteration for progress in seen] == [1, 2, 3]
    assert solution.n_iter == 3
    assert solution.objective == seen[-1].objective
    assert min(primal(t, p.coefficients) for p in seen) >= solution.objective * (1 - 1e-12)


def test_a_cap_on_sweeps_warns_and_keeps_the_best():
    t = task("similarity", 5.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=4"):
        solution = contrast_ascent(t.problem(), tol=1e-10, max_iter=4)
    assert solution.status == "max_iter"
    np.testing.assert_allclose(primal(t, solution.coefficients), solution.objective)
    np.testing.assert_allclose(solution.objective, solution.history["value"].min())


def test_negative_tolerance():
    with pytest.raises(ValueError, match="tol must be >= 0"):
        contrast_ascent(task("flat").problem(), tol=-1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([0, 99]), "caps": 1.0, "examples": None}, "labels must be 2 numbers"),
        ({"labels": np.array([-1]), "caps": 1.0, "examples": None}, "labels must be 1 numbers"),
        ({"caps": np.ones(3)}, "caps must be a number, or"),
        ({"examples": np.array([0, 1])}, "examples must be"),
        ({"caps": -1.0}, "caps must be finite and not negative, got -1"),
        ({"caps": np.nan}, "caps must be finite"),
        ({"penalty": QuadraticPenalty(np.eye(2))}, "penalty must be for the 11 outputs"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(change, message):
    """Compiled loops would read whatever lies beyond the arrays."""
    with pytest.raises(ValueError, match=message):
        replace(task("orthogonal", 1.0).problem(), **change)


@pytest.mark.parametrize("solve", [contrast_ascent, lambda problem: ContrastSplit(problem)])
def test_weights_without_a_convex_penalty_are_refused(solve):
    t = task("orthogonal", 1.0)
    K = np.diag(np.diag(t.K)) + 1.01 * largest_alpha(t.K) * (t.K - np.diag(np.diag(t.K)))
    with pytest.raises(ValueError, match="comparison matrix must be positive definite"):
        solve(replace(t, K=K).problem())
