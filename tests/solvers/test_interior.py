"""The interior-point method against what its objective and its bounds say."""

import numpy as np
import pytest

from gramian.solvers.interior import Coefficients, interior_point


def problem_of(seed, cap, equal=False):
    """Twelve examples of three features, with two or three contrasts of four outputs each."""
    rng = np.random.default_rng(seed)
    unit = np.sort(np.r_[np.arange(12), np.arange(12), rng.integers(0, 12, 5)])
    X = rng.normal(size=(12, 3))
    if equal:
        X[:] = X[0]
    outputs = np.eye(4)[rng.integers(0, 2, unit.size)] - np.eye(4)[rng.integers(2, 4, unit.size)]
    gains = rng.uniform(0.5, 2.0, unit.size)
    K = (X @ X.T)[np.ix_(unit, unit)]
    return Coefficients(K, outputs, gains, unit, cap * rng.uniform(0.5, 1.5, 12)), rng


def gap_of(problem, beta, S):
    """The largest that the dual may rise, from the concavity of it: caps times largest costs, minus what is paid."""
    H = problem.K * (problem.outputs @ S @ problem.outputs.T)
    cost, most = problem.gains - H @ beta, np.zeros(problem.caps.size)
    np.maximum.at(most, problem.unit, cost)
    return problem.caps @ most - beta @ cost


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("cap", [1e-3, 1.0, 1e3, 1e8])
def test_the_gap_is_what_was_asked_for(cap, equal):
    for seed in range(5):
        problem, rng = problem_of(seed, cap, equal)
        B = rng.normal(size=(4, 3))
        S = B @ B.T
        dual = cap * 1e-5
        beta = interior_point(problem, lambda _, S=S: S, dual)
        assert np.all(beta > 0)
        sums = np.bincount(problem.unit, beta)
        assert np.all(sums <= problem.caps * (1 + 1e-12))
        assert gap_of(problem, beta, S) <= 1.01 * dual


def test_outputs_may_change_before_each_step():
    problem, _ = problem_of(0, 1.0)
    seen = []

    def gram(beta):
        seen.append(beta)
        return np.eye(4) * (1.0 + 2.0 ** -len(seen))

    beta = interior_point(problem, gram, 1e-6)
    assert gap_of(problem, beta, np.eye(4)) <= 1e-5
    assert seen[-1] is beta


def test_values_that_leave_nothing_of_a_factor_end_it():
    """Nothing is raised, and coefficients are within their bounds."""
    problem, _ = problem_of(0, 1e200)
    beta = interior_point(problem, lambda _: 1e120 * np.eye(4), 0.0)
    assert np.all(
        (beta >= 0) & (np.bincount(problem.unit, beta)[problem.unit] <= problem.caps[problem.unit])
    )
