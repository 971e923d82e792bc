"""Losses: the contract, scalar arithmetic example by example, and scikit-learn's metrics."""

import numpy as np
import pytest
from oracles import example_loss, total_loss
from sklearn.metrics import log_loss

from gramian._core.arrays import to_numpy
from gramian.losses import Logistic, Softmax, Squared, SquaredHinge, log_sum_exp, sigmoid, softmax
from gramian.testing import check_loss

LOSSES = [Softmax(), Logistic(), Squared(), SquaredHinge()]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def _data(loss, n=6, C=3, seed=0, soft=False):
    rng = np.random.default_rng(seed)
    U = 1.5 * rng.normal(size=(n, C))
    if isinstance(loss, Softmax):
        Y = rng.dirichlet(np.ones(C), size=n) if soft else np.eye(C)[rng.integers(C, size=n)]
    elif isinstance(loss, Logistic):
        Y = rng.random((n, C)) if soft else rng.integers(2, size=(n, C)).astype(float)
    elif isinstance(loss, Squared):
        Y = rng.normal(size=(n, C))
    else:
        Y = np.where(rng.random((n, C)) < 0.5, -1.0, 1.0)
    return U, Y


@every_loss
@pytest.mark.parametrize("n_outputs", [1, 2, 5])
def test_keeps_the_contract(loss, n_outputs):
    check_loss(loss, *_data(loss, C=n_outputs))


@pytest.mark.parametrize("loss", [Softmax(), Logistic()], ids=repr)
def test_keeps_the_contract_with_soft_targets(loss):
    check_loss(loss, *_data(loss, soft=True))


@every_loss
def test_value_is_the_sum_of_scalar_losses(loss, rng):
    U, Y = _data(loss, n=20, seed=5)
    weights = rng.random(20)
    name = type(loss).__name__
    assert loss.value(U, Y) == pytest.approx(total_loss(name, U, Y), rel=1e-13)
    assert loss.value(U, Y, weights) == pytest.approx(total_loss(name, U, Y, weights), rel=1e-13)


@every_loss
def test_value_is_accurate_far_out(loss):
    """At ±1000 losses are linear, quadratic or zero; nothing overflows or cancels."""
    U = np.array([[1e3, -1e3, 0.0], [-1e3, -1e3, 1e3], [700.0, 710.0, -20.0]])
    _, Y = _data(loss, n=3, seed=1)
    expected = sum(example_loss(type(loss).__name__, u, y) for u, y in zip(U, Y))
    assert loss.value(U, Y) == pytest.approx(expected, rel=1e-13)


@every_loss
def test_any_array_library_gives_the_results_of_numpy(loss, xp, rng):
    U, Y = _data(loss)
    U, Y = np.stack([U, -U], axis=2), Y[:, :, None]
    weights, V = rng.random((6, 2)), rng.normal(size=U.shape)
    arrays = [xp.asarray(a) for a in (U, Y, weights)]
    pairs = [
        (loss.value(*arrays), loss.value(U, Y, weights)),
        (loss.gradient(*arrays), loss.gradient(U, Y, weights)),
        (loss.curvature(*arrays).apply(xp.asarray(V)), loss.curvature(U, Y, weights).apply(V)),
    ]
    for found, expected in pairs:
        assert type(found) is type(arrays[0])
        np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-12, atol=1e-14)


def test_softmax_is_scikit_learns_log_loss():
    U, Y = _data(Softmax(), n=12)
    labels = Y.argmax(axis=1)
    expected = log_loss(labels, softmax(U), labels=range(3), normalize=False)
    assert Softmax().value(U, Y) == pytest.approx(expected)


def test_softmax_of_two_classes_is_logistic_in_their_difference(rng):
    u, y = rng.normal(size=(8, 1)), rng.integers(2, size=(8, 1)).astype(float)
    two = Softmax().value(np.hstack([np.zeros_like(u), u]), np.hstack([1 - y, y]))
    assert Logistic().value(u, y) == pytest.approx(two)


def test_softmax_ignores_a_shift_of_all_outputs():
    U, Y = _data(Softmax())
    assert Softmax().value(U + 7.0, Y) == pytest.approx(Softmax().value(U, Y))
    np.testing.assert_allclose(Softmax().curvature(U, Y).apply(np.ones_like(U)), 0, atol=1e-15)


def test_logistic_curvature_does_not_cancel_where_the_probability_is_nearly_one():
    curvature = Logistic().curvature(np.array([[50.0], [-50.0]]), np.zeros((2, 1))).diagonal
    np.testing.assert_allclose(curvature, np.exp(-50.0), rtol=1e-12)


def test_squared_hinge_is_zero_beyond_the_margin():
    U, Y = np.array([[1.5, -2.0]]), np.array([[1.0, -1.0]])
    assert SquaredHinge().value(U, Y) == 0.0
    assert not SquaredHinge().gradient(U, Y).any()
    assert not SquaredHinge().curvature(U, Y).diagonal.any()


def test_helpers_are_those_of_scipy():
    from scipy import special

    U, _ = _data(Softmax(), n=10)
    np.testing.assert_allclose(softmax(U), special.softmax(U, axis=1), rtol=1e-13)
    np.testing.assert_allclose(sigmoid(U), special.expit(U), rtol=1e-13)
    expected = special.logsumexp(U, axis=1, keepdims=True)
    np.testing.assert_allclose(log_sum_exp(U), expected, rtol=1e-13)


def test_values_are_summed_in_double_precision():
    """A float32 sum of a million losses of 0.5 and one of 1e-3 would lose the small one."""
    U = np.ones((1_000_001, 1), dtype=np.float32)
    U[-1] = np.sqrt(np.float32(2e-3))
    value = Squared().value(U, np.zeros_like(U))
    assert value - 500_000 == pytest.approx(1e-3, rel=1e-4)
