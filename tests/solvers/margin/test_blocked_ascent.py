"""What is special to blocked ascent: rows that are not stored, labels side by side or the worst first, float32."""

import sys

import numpy as np
import pytest
from spied_rows import spied

from gramian.kernels import RBF
from gramian.operators import GramRows
from gramian.solvers import MarginProblem, blocked_ascent, coordinate_ascent, smo
from gramian.solvers.margin.batches import label_batches

pytestmark = pytest.mark.usefixtures("one_thread")


def noisy_labels(n=60, n_labels=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(dtype)
    scores = np.sin(2 * X @ rng.normal(size=(3, n_labels))) + 0.3 * rng.normal(size=(n, n_labels))
    return X, np.where(scores > 0, 1, -1).astype(np.int8)


def correlated(n_labels, r):
    return (1 - r) * np.eye(n_labels) + r


def strongly(n_labels=5):
    """Nearly the same function for all labels: visited one at a time."""
    return correlated(n_labels, 0.9)


@pytest.mark.parametrize("r", [None, 0.05, 0.9])
@pytest.mark.parametrize("kept", [2, 20])
def test_rows_that_are_not_stored(r, kept):
    X, signs = noisy_labels()
    R = None if r is None else correlated(5, r)
    stored = MarginProblem(GramRows(RBF(1.0), X, 1.0), signs, R)
    rows = GramRows(RBF(1.0), X, 1.0, nbytes=8 * len(X) * kept)
    solution = blocked_ascent(MarginProblem(rows, signs, R), tol=1e-8)
    assert rows.matrix is None
    assert rows.n_computed > 0
    assert solution.status == "converged"
    expected = blocked_ascent(stored, tol=1e-8)
    np.testing.assert_allclose(solution.objective, expected.objective, rtol=1e-7)
    np.testing.assert_allclose(
        stored.latent(solution.coefficients), stored.latent(expected.coefficients), atol=1e-3
    )


def test_working_sets_take_little_memory(monkeypatch):
    """Where their rows are long, they are fewer; those of one round are gone before the next ones are made."""
    X, signs = noisy_labels()
    most = 6
    # as an attribute of the package it would be the function
    module = sys.modules["gramian.solvers.margin.blocked_ascent"]
    monkeypatch.setattr(module, "ROWS_BYTES", most * 8 * len(X))
    # an interior-point method, for small problems only, takes all rows at once
    monkeypatch.setattr("gramian.solvers.margin.ascent.MOST", 0)
    rows = GramRows(RBF(1.0), X, 1.0, nbytes=8 * len(X) * 20)
    taken = spied(rows)
    problem = MarginProblem(rows, signs, strongly())
    solution = blocked_ascent(problem, tol=1e-8)
    assert solution.status == "converged"
    assert max(taken) == most
    expected = blocked_ascent(
        MarginProblem(GramRows(RBF(1.0), X, 1.0), signs, strongly()), tol=1e-8
    )
    np.testing.assert_allclose(solution.objective, expected.objective, rtol=1e-7)


def test_batches_hold_labels_with_little_correlation():
    rng = np.random.default_rng(1)
    R = np.corrcoef(rng.normal(size=(40, 200)))
    batches = label_batches(R)
    assert sorted(np.concatenate(batches)) == list(range(40))
    assert len(batches) < 20
    for batch in batches:
        others = np.abs(R[np.ix_(batch, batch)]).sum(axis=1) - 1
        assert others.max() <= 0.5
    assert [len(batch) for batch in label_batches(np.eye(40))] == [32, 8]
    assert [len(batch) for batch in label_batches(strongly())] == [1] * 5


def test_side_by_side_the_dual_never_falls():
    """Labels are visited as if the others stood still; the line search makes up for it."""
    X, signs = noisy_labels(n=80, n_labels=12)
    R = correlated(12, 0.04)
    assert len(label_batches(R)) == 1
    history = blocked_ascent(MarginProblem(GramRows(RBF(1.0), X), signs, R), tol=1e-8).history
    dual = history["objective"] - history["gap"]
    assert np.all(np.diff(dual) >= -1e-10 * dual[-1])


def test_strong_correlations_and_large_caps_converge():
    X, signs = noisy_labels(n=80, n_labels=12)
    problem = MarginProblem(GramRows(RBF(1.0), X, 1.0), signs, correlated(12, 0.95), caps=100.0)
    solution = blocked_ascent(problem, tol=1e-5)
    assert solution.status == "converged"
    np.testing.assert_allclose(solution.objective, smo(problem, tol=1e-5).objective, rtol=2e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("tol", "status"), [(1e-3, "converged"), (1e-7, "stalled")])
def test_float32(tol, status):
    """The gap counts what the rounding of the matrix may hide, and so says that it cannot be as small as asked for."""
    X, signs = noisy_labels(dtype=np.float32)
    single = MarginProblem(GramRows(RBF(1.0), X, 1.0), signs, strongly())
    double = MarginProblem(GramRows(RBF(1.0), X.astype(float), 1.0), signs, strongly())
    solution = blocked_ascent(single, tol=tol)
    assert solution.status == status
    expected = blocked_ascent(double, tol=1e-9).objective
    np.testing.assert_allclose(solution.objective, expected, rtol=2 * tol)


def test_solvers_name_the_inputs_they_need():
    X, signs = noisy_labels(n=10)
    with pytest.raises(TypeError, match="GramRows"):
        blocked_ascent(MarginProblem(X, signs))
    with pytest.raises(TypeError, match="features"):
        coordinate_ascent(MarginProblem(GramRows(RBF(1.0), X), signs))


def test_equal_examples_with_large_costs():
    """K is singular: single moves would need millions of sweeps, a step of all free coefficients needs none."""
    signs = np.where(np.arange(13)[:, None] % 3 > 0, 1, -1).astype(np.int8)
    rows = GramRows(RBF(1.0), np.zeros((13, 2)), 1.0)
    solution = blocked_ascent(MarginProblem(rows, signs, caps=1e8, squared=True), tol=1e-3)
    assert solution.status == "converged"
    assert solution.n_iter < 50


@pytest.mark.parametrize("worse", [False, True])
def test_visits_are_short_where_coefficients_are_worse_than_none(worse):
    """Rounding errors rule there, and gaps fall by chance."""
    X, signs = noisy_labels()
    module = sys.modules["gramian.solvers.margin.blocked_ascent"]
    state = module._BlockedAscent(MarginProblem(GramRows(RBF(1.0), X, 1.0), signs), None, 1e-3)
    objective, gaps, _ = state.values()
    assert objective == state.objective_of_none == signs.size
    state.n_sweeps = module.SWEEPS_TO_START + 1
    state.sweep(objective + worse, gaps)
    assert (state.vain_rounds == module.FEWEST_ROUNDS) == worse
