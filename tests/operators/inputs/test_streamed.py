"""Streamed products of data in float64 in single precision, as a solver asks for them."""

import numpy as np
import pytest

from gramian.kernels import RBF, Constant, Linear, Matern, White
from gramian.labels import Identity, Scalar, Taxonomy
from gramian.operators import (
    Dense,
    Intercept,
    LabelMixed,
    Lifted,
    Separate,
    Streamed,
    TreeCode,
)

X = np.random.default_rng(0).normal(size=(60, 3)) + 100.0
B = np.random.default_rng(1).normal(size=(60, 2, 3))
SUM = 2.0 * RBF(1.5) + Matern(2.0, nu=2.5) + White(0.1)
TREE = Taxonomy.from_dict({"a": ["b", "c"], "d": None})


@pytest.mark.parametrize(
    "operator",
    [
        Streamed(RBF(np.array([1.0, 2.0, 3.0])), X),
        Streamed(SUM, X),
        LabelMixed([(Streamed(SUM, X), Scalar(2.0)), (Intercept(1.0, B, 60), Identity())]),
        Separate([Streamed(RBF(1.0), X), Dense(RBF(2.0), X)]),
    ],
    ids=["ard", "sum", "mixed", "separate"],
)
def test_single_precision_rounds_products_and_nothing_else(operator):
    single, exact = operator.in_single(), operator @ B
    rough = single @ B
    assert rough.dtype == exact.dtype == np.float64
    assert 1e-10 < np.abs(rough - exact).max() < 1e-6 * np.abs(exact).max()
    np.testing.assert_array_equal(single.accurate(B), exact)
    np.testing.assert_array_equal(operator @ B, exact)
    assert operator.dtype == np.float64


def test_single_precision_of_nodes_of_a_tree():
    nodes = Separate([Streamed(RBF(1.0), X)], groups=[0, 0, 0, 0])
    lifted, leaves = Lifted(nodes, TREE), np.concatenate([B, B[:, :1]], axis=1)
    single = lifted.in_single()
    assert 1e-10 < np.abs(single @ leaves - lifted @ leaves).max() < 1e-5
    np.testing.assert_array_equal(single.accurate(leaves), lifted @ leaves)


@pytest.mark.parametrize(
    "operator",
    [
        Streamed(RBF(1.0), X.astype(np.float32)),
        Streamed(RBF(1.0), X, X[:5]),
        Streamed(RBF(1.0) + Linear(), X),
        Streamed(White(1.0), X),
        Streamed(RBF(0.01), X),
        TreeCode(RBF(1.0), X),
        Dense(RBF(1.0), X),
        LabelMixed([(Dense(Constant(2.0) * RBF(1.0), X), Scalar(1.0))]),
    ],
    ids=["float32", "cross", "linear", "white", "spread", "tree code", "dense", "mixed"],
)
def test_there_is_none_where_it_is_not_faster_or_loses_digits(operator):
    assert operator.in_single() is None


def test_single_precision_costs_less():
    operator = Streamed(RBF(1.0), X)
    assert operator.in_single().work(3) < 0.5 * operator.work(3)
