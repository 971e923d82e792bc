"""The ranking loss: the double sum over pairs, numerical derivatives, groups and weights."""

import pickle

import numpy as np
import pytest

from gramian._core.arrays import to_numpy
from gramian.kernels import RBF
from gramian.losses import SquaredRanking
from gramian.operators import Dense
from gramian.solvers import Problem, kernel_cg, newton
from gramian.testing import check_loss

GROUPS = np.array([0, 2, 0, 1, 2, 0, 2, 1])
every_grouping = pytest.mark.parametrize("groups", [None, GROUPS], ids=["global", "grouped"])


def _data(*shape, seed=0):
    rng = np.random.default_rng(seed)
    U, Y = rng.normal(size=(2, *shape))
    return U, Y, rng.uniform(0.0, 2.0, size=shape[0])


def _double_sum(U, Y, weights=None, groups=None):
    """¼ Σ_ij w_i w_j (y_i − p_i − y_j + p_j)² within groups, pair by pair."""
    n, C = U.shape
    w = np.ones(n) if weights is None else weights
    group = np.zeros(n) if groups is None else groups
    total = 0.0
    for c in range(C):
        for i in range(n):
            for j in range(n):
                if group[i] == group[j]:
                    difference = Y[i, c] - U[i, c] - Y[j, c] + U[j, c]
                    total += 0.25 * w[i] * w[j] * difference**2
    return total


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_keeps_the_contract(n_outputs):
    check_loss(SquaredRanking(), *_data(6, n_outputs)[:2])


@every_grouping
@pytest.mark.parametrize("weighted", [False, True])
def test_value_is_the_double_sum(groups, weighted):
    U, Y, w = _data(8, 2)
    w = w if weighted else None
    value = SquaredRanking(groups).value(U, Y, w)
    assert value == pytest.approx(_double_sum(U, Y, w, groups), rel=1e-13)


@every_grouping
@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_are_those_of_the_double_sum(groups, weighted):
    """Central differences of a quadratic are exact but for rounding."""
    U, Y, w = _data(8, 2)
    w = w if weighted else None
    loss = SquaredRanking(groups)
    V = _data(8, 2, seed=1)[0]
    ends = [_double_sum(U + t * V, Y, w, groups) for t in (-1.0, 0.0, 1.0)]
    slope = np.sum(loss.gradient(U, Y, w) * V)
    assert slope == pytest.approx((ends[2] - ends[0]) / 2, rel=1e-12)
    curvature = loss.curvature(U, Y, w)
    bend = np.sum(V * curvature.apply(V))
    assert bend == pytest.approx(ends[2] - 2 * ends[1] + ends[0], rel=1e-11)
    moved = loss.gradient(U + V, Y, w) - loss.gradient(U, Y, w)
    np.testing.assert_allclose(curvature.apply(V), moved, atol=1e-12)


def test_derivatives_as_in_table_1():
    """Gradient Σ_j (y_j − p_j) + n (p_i − y_i); Hessian n − 1 on the diagonal and −1 elsewhere."""
    U, Y, _ = _data(7, 1)
    loss = SquaredRanking()
    expected = np.sum(Y - U) + 7 * (U - Y)
    np.testing.assert_allclose(loss.gradient(U, Y), expected, atol=1e-13)
    curvature = loss.curvature(U, Y)
    H = np.hstack([curvature.apply(e[:, None]) for e in np.eye(7)])
    np.testing.assert_allclose(H, 7 * np.eye(7) - 1, atol=1e-14)
    np.testing.assert_allclose(curvature.diagonal[:, 0], np.diag(H))


def test_diagonal_with_groups_and_weights():
    U, Y, w = _data(8, 1)
    curvature = SquaredRanking(GROUPS).curvature(U, Y, w)
    H = np.hstack([curvature.apply(e[:, None]) for e in np.eye(8)])
    np.testing.assert_allclose(curvature.diagonal[:, 0], np.diag(H), atol=1e-14)
    np.testing.assert_allclose(H, H.T, atol=1e-14)


@every_grouping
def test_columns_are_separate(groups):
    U, Y, w = _data(8, 2, 3)
    rng = np.random.default_rng(3)
    loss = SquaredRanking(groups)
    V = rng.normal(size=U.shape)
    for weights in (None, w, rng.uniform(size=(8, 3))):
        for targets in (Y, Y[:, :, :1]):
            value = loss.value(U, targets, weights)
            gradient = loss.gradient(U, targets, weights)
            curvature = loss.curvature(U, targets, weights)
            assert curvature.diagonal.shape == U.shape
            for k in range(3):
                y = targets[:, :, min(k, targets.shape[2] - 1)]
                one = weights if weights is None or weights.ndim == 1 else weights[:, k]
                args = (U[:, :, k], y, one)
                assert value[k] == pytest.approx(loss.value(*args), rel=1e-13)
                np.testing.assert_allclose(gradient[..., k], loss.gradient(*args), atol=1e-13)
                alone = loss.curvature(*args)
                np.testing.assert_allclose(
                    curvature.apply(V)[..., k], alone.apply(V[..., k]), atol=1e-13
                )
                np.testing.assert_allclose(curvature.diagonal[..., k], alone.diagonal, atol=1e-13)


def test_weight_two_is_the_row_twice_and_zero_is_none():
    U, Y, _ = _data(8, 2)
    w = np.array([2.0, 1, 1, 0, 1, 1, 1, 1])
    rows = np.array([0, 0, 1, 2, 4, 5, 6, 7])
    loss, repeated = SquaredRanking(GROUPS), SquaredRanking(GROUPS[rows])
    assert loss.value(U, Y, w) == pytest.approx(repeated.value(U[rows], Y[rows]), rel=1e-13)
    gradient = loss.gradient(U, Y, w)
    np.testing.assert_allclose(gradient[rows[2:]], repeated.gradient(U[rows], Y[rows])[2:])
    assert not np.any(gradient[3])
    assert not np.any(loss.curvature(U, Y, w).apply(U)[3])


def test_groups_without_weight_and_of_one_example():
    U, Y, w = _data(8, 1)
    w = np.where(GROUPS == 0, 0.0, w)
    loss = SquaredRanking(GROUPS)
    expected = _double_sum(U, Y, w, GROUPS)
    assert loss.value(U, Y, w) == pytest.approx(expected, rel=1e-13)
    assert not np.any(loss.gradient(U, Y, w)[GROUPS == 0])
    alone = SquaredRanking(np.arange(8))
    assert alone.value(U, Y) == 0
    assert not np.any(alone.gradient(U, Y))


def test_a_constant_changes_nothing_however_large():
    U, Y, w = _data(8, 2)
    loss = SquaredRanking(GROUPS)
    shift = 1e6 * (1 + GROUPS)[:, None]
    value = loss.value(U, Y, w)
    assert loss.value(U + shift, Y, w) == pytest.approx(value, rel=1e-8)
    for group_shift in (shift, -shift):
        gradient = loss.gradient(U + group_shift, Y, w)
        np.testing.assert_allclose(gradient, loss.gradient(U, Y, w), atol=1e-7)


@every_grouping
def test_any_array_library_gives_the_results_of_numpy(groups, xp):
    U, Y, w = _data(8, 2, 3)
    loss = SquaredRanking(groups)
    arrays = [xp.asarray(a) for a in (U, Y, w)]
    np.testing.assert_allclose(to_numpy(loss.value(*arrays)), loss.value(U, Y, w))
    np.testing.assert_allclose(to_numpy(loss.gradient(*arrays)), loss.gradient(U, Y, w))
    applied = loss.curvature(*arrays).apply(arrays[0])
    np.testing.assert_allclose(to_numpy(applied), loss.curvature(U, Y, w).apply(U))


@every_grouping
def test_solvers_find_the_minimum(groups):
    """Against the normal equations (λI + W K) a = W y."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 2)), rng.normal(size=(8, 1))
    loss = SquaredRanking(groups)
    operator = Dense(RBF(), X)
    problem = Problem(operator, loss, y, regularization=0.3)
    curvature = loss.curvature(y, y)
    W = np.hstack([curvature.apply(e[:, None]) for e in np.eye(8)])
    expected = np.linalg.solve(0.3 * np.eye(8) + W @ operator.to_dense(), W @ y)
    for solve in (newton, kernel_cg):
        found = solve(problem, tol=1e-14).coefficients
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_is_a_value():
    assert SquaredRanking() == SquaredRanking()
    assert SquaredRanking(GROUPS) == SquaredRanking(GROUPS.tolist())
    assert SquaredRanking(GROUPS) != SquaredRanking()
    assert SquaredRanking(GROUPS) != SquaredRanking(GROUPS[::-1])
    copy = pickle.loads(pickle.dumps(SquaredRanking(GROUPS)))
    assert copy == SquaredRanking(GROUPS)
    assert hash(copy) == hash(SquaredRanking(GROUPS))
    assert repr(copy) == "SquaredRanking(groups=<3 groups of 8 examples>)"


def test_codes_may_have_gaps():
    U, Y, w = _data(8, 1)
    far = SquaredRanking(GROUPS * 10**12 - 5)
    assert far.value(U, Y, w) == SquaredRanking(GROUPS).value(U, Y, w)


def test_bad_groups():
    with pytest.raises(ValueError, match=r"groups must have shape \(n,\), .* got \(2, 1\)"):
        SquaredRanking(np.zeros((2, 1), dtype=int))
    with pytest.raises(TypeError, match=r"groups must be integers, got float64"):
        SquaredRanking([0.0, 1.0])
    with pytest.raises(ValueError, match=r"groups has 8 entries; give one for each of 5 examples"):
        SquaredRanking(GROUPS).value(np.zeros((5, 1)), np.zeros((5, 1)))
