"""Coordinates of low-rank operators: each method against dense matrices; nothing is left out."""

import numpy as np
import pytest

from gramian.kernels import RBF, Constant, White
from gramian.labels import Identity
from gramian.operators import Dense, Intercept, LabelMixed, LowRank
from gramian.solvers.rkhs.preconditioning.feature_space import feature_space

from .test_coarse_space import STRUCTURES, check_space, intercepts, matrix_of

pytestmark = pytest.mark.usefixtures("one_thread")
RANK = 5


def _operator(structure, variance: float, X: np.ndarray, kernel=None, **options) -> LabelMixed:
    matrix = LowRank(kernel or RBF(1.5), X, RANK, random_state=0, **options)
    terms = [(matrix, structure or Identity())]
    return LabelMixed([*terms, (Intercept(variance, X, len(X)), Identity())] if variance else terms)


@pytest.mark.parametrize("name", [name for name in STRUCTURES if "singular" not in name])
@intercepts
def test_every_method_is_its_dense_formula(name, variance, X, rng):
    structure, n = STRUCTURES[name], len(X)
    C = 3 if structure else 1
    operator = _operator(structure, variance, X)
    space = feature_space(operator, C)
    assert space.rank == RANK + (variance > 0)
    check_space(space, operator, n, C, rng)


@pytest.mark.parametrize("name", [name for name in STRUCTURES if "singular" not in name])
@intercepts
def test_all_functions_are_there(name, variance, X):
    """𝒦 = Φ Φᵀ, and Z is orthonormal."""
    structure, n = STRUCTURES[name], len(X)
    C = 3 if structure else 1
    operator = _operator(structure, variance, X)
    space = feature_space(operator, C)
    K = matrix_of(operator.__matmul__, n, C)
    np.testing.assert_allclose(
        matrix_of(lambda B: space.values(space.adjoint(B)), n, C), K, atol=1e-12
    )
    v = np.eye(space.rank * C).reshape(space.rank, C, -1)
    A = space.lifted(v, np.zeros((n, C, space.rank * C)))
    np.testing.assert_allclose(space.coordinates(A, A), v, atol=1e-11)
    assert space.left == 0.0


def test_float32(X, rng):
    operator = _operator(STRUCTURES["dense"], 2.0, X.astype(np.float32))
    space = feature_space(operator, 3)
    v = rng.normal(size=(space.rank, 3, 1)).astype(np.float32)
    A = space.lifted(v, np.zeros((len(X), 3, 1), dtype=np.float32))
    assert A.dtype == np.float32
    np.testing.assert_allclose(operator @ A, space.values(v), atol=1e-4)


def test_where_there_is_none(X):
    """Other operators, a diagonal beyond L Lᵀ, a constant within the span, outputs without functions."""
    assert feature_space(Dense(RBF(), X), 1) is None
    assert feature_space(_operator(None, 0.0, X, diagonal=True), 1) is None
    assert feature_space(_operator(None, 0.0, X, RBF() + White(0.1)), 1) is None
    assert feature_space(_operator(None, 1.0, X, Constant(2.0)), 1) is None
    assert feature_space(_operator(None, 0.0, X, Constant(2.0)), 1).rank == 1
    singular = STRUCTURES["singular"]
    assert feature_space(_operator(singular, 1.0, X), 3) is None
    space = feature_space(_operator(singular, 0.0, X), 3)
    assert space.values(np.ones((space.rank, 1, 1))).shape == (len(X), 3, 1)
