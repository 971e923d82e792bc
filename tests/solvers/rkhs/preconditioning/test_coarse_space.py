"""Coarse spaces: each method against dense matrices; columns and work of every operator."""

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.kernels import RBF, Constant, Linear, Matern, RationalQuadratic, White
from gramian.labels import DenseStructure, Diagonal, Identity, Scalar, Taxonomy, TreeStructure
from gramian.operators import (
    Dense,
    Intercept,
    LabelMixed,
    LinearFeatures,
    LowRank,
    Separate,
    Streamed,
    TreeCode,
)
from gramian.solvers.rkhs.preconditioning.coarse_space import coarse_space
from gramian.solvers.rkhs.preconditioning.space import parts_of

pytestmark = pytest.mark.usefixtures("one_thread")
RANK, COLUMNS = 5, 2
TAXONOMY = Taxonomy.from_dict({"a": ["b", "c"], "d": None})
STRUCTURES = {
    "one output": None,
    "scalar": Scalar(0.7),
    "diagonal": Diagonal([0.5, 1.0, 2.0]),
    "dense": DenseStructure(np.array([[1.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 2.0]])),
    "tree": TreeStructure(TAXONOMY, [1.0, 0.5], groups=TAXONOMY.groups("level")),
    "singular": DenseStructure(np.outer([1.0, -2.0, 0.5], [1.0, -2.0, 0.5])),
    "nearly singular": DenseStructure(np.outer([1, -2, 0.5], [1, -2, 0.5]) + 1e-7 * np.eye(3)),
}
every_structure = pytest.mark.parametrize("name", STRUCTURES)
intercepts = pytest.mark.parametrize("variance", [0.0, 3.0], ids=["no intercept", "intercept"])


def _operator(name: str, variance: float, X: np.ndarray) -> tuple:
    """The operator and its number of outputs."""
    structure, C = STRUCTURES[name], 3
    if structure is None:
        structure, C = Identity(), 1
    terms = [(Dense(RBF(1.5), X), structure)]
    if variance:
        terms.append((Intercept(variance, X, len(X)), Identity()))
    return LabelMixed(terms), C


def matrix_of(function, n: int, C: int) -> np.ndarray:
    """The matrix of a linear map from (n, C, q) arrays, by products with the identity."""
    out = function(np.eye(n * C).reshape(n, C, n * C))
    return out.reshape(-1, n * C)


def basis_of(space, n: int, C: int) -> np.ndarray:
    """Z as a matrix of shape (n C, m c)."""
    zeros = np.zeros((n, C, space.rank * len(space.parts.variances)))
    return matrix_of(lambda v: space.lifted(v, zeros), space.rank, len(space.parts.variances))


# --- against dense matrices -----------------------------------------------------------------------


@every_structure
@intercepts
def test_the_basis_is_that_of_the_header(name, variance, X):
    """Z = E L̃⁻ᵀ ⊗ Q diag(s)^-½, up to the choice of Q: Z Zᵀ is (E M[I, I]⁻¹ Eᵀ) ⊗ S⁺."""
    operator, C = _operator(name, variance, X)
    space = coarse_space(operator, C, RANK)
    I = space.indices
    K = RBF(1.5)(X)
    S = np.eye(1) if C == 1 else STRUCTURES[name].mix(np.eye(3))
    expected = np.kron(np.linalg.inv(K[np.ix_(I, I)]), np.linalg.pinv(S, rcond=1e-10))
    Z = basis_of(space, len(X), C).reshape(len(X), C, -1)
    found = Z[I].reshape(len(expected), -1)
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-7 * np.abs(expected).max())
    assert not Z[np.setdiff1d(np.arange(len(X)), I)].any()
    np.testing.assert_allclose(space.factor @ np.linalg.inv(space.rows), K[:, I], atol=1e-12)


@every_structure
@intercepts
def test_every_method_is_its_dense_formula(name, variance, X, rng):
    operator, C = _operator(name, variance, X)
    space = coarse_space(operator, C, RANK)
    assert space.rank == RANK
    check_space(space, operator, len(X), C, rng)


def check_space(space, operator, n: int, C: int, rng) -> None:
    """All methods against matrices of 𝒦 and Z."""
    m, c = space.rank, len(space.parts.variances)
    K, Z = matrix_of(operator.__matmul__, n, C), basis_of(space, n, C)
    B, v = rng.normal(size=(n, C, COLUMNS)), rng.normal(size=(m, c, COLUMNS))
    flat_B, flat_v = B.reshape(n * C, -1), v.reshape(m * c, -1)
    size = np.abs(Z).max()

    def check(found, expected, scale=1.0):
        np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-10 * scale)

    KB = (K @ flat_B).reshape(B.shape)
    check(space.coordinates(B, KB), Z.T @ K @ flat_B, size)
    check(space.values(v), K @ Z @ flat_v, size)
    check(space.lifted(v, B), flat_B + Z @ flat_v, size)
    check(space.adjoint(B), (K @ Z).T @ flat_B, size)
    T = Z.T @ K @ Z
    check(space.gram(v), T @ flat_v, size**2)
    np.testing.assert_allclose(space.gram(space.inverse_gram(v)), v, atol=1e-10 * size**2)
    np.testing.assert_allclose(space.inverse_gram(space.gram(v)), v, atol=1e-10 * size**2)

    weights = rng.uniform(size=n)
    weights[::3] = 0.0
    KZ, W = K @ Z, np.repeat(weights, C)[:, None]
    G = (0.1 * T + KZ.T @ (W * KZ)).reshape(m, c, m, c)
    for output, block in enumerate(space.blocks(weights, 0.1, np.arange(c), np.ones(c))):
        np.testing.assert_allclose(block, G[:, output, :, output], atol=1e-9 * size**2)
    halves, shares = (
        space.blocks(w, 0.1, np.arange(c), f * np.ones(c))
        for w, f in ((weights / 2, 1), (weights, 0.5))
    )
    for half, share in zip(halves, shares, strict=True):
        np.testing.assert_allclose(half, share, atol=1e-12 * size**2)
    decoupled = G * (1 - np.eye(c))[None, :, None, :]
    assert np.abs(decoupled).max() <= 1e-9 * size**2


def test_what_is_left_is_the_trace(X):
    space = coarse_space(LabelMixed([(Dense(RBF(1.5), X), Diagonal([0.5, 2.0]))]), 2, RANK)
    rest = RBF(1.5)(X) - space.factor @ space.factor.T
    assert space.left == pytest.approx(2.0 * np.trace(rest), rel=1e-10)


def test_enough_is_enough(X):
    """Fewer functions if the trace allows."""
    operator = Dense(RBF(50.0), X)
    small = coarse_space(operator, 1, 14, enough=0.1)
    assert small.left <= 0.1
    assert len(small.indices) < 14


def test_examples_of_weight_zero_are_never_chosen(X):
    weights = (np.arange(len(X)) % 2).astype(float)
    space = coarse_space(Dense(RBF(), X), 1, len(X), weights=weights)
    assert set(space.indices) == set(np.flatnonzero(weights))
    assert space.left == pytest.approx(0.0, abs=1e-10)


def test_the_pivots_are_the_same_each_time(X):
    first, second = (coarse_space(Dense(RBF(), X), 1, RANK).indices for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_noise_of_float32_is_no_function(rng):
    """A smooth kernel has few directions above the rounding of float32."""
    X = rng.normal(size=(100, 2))
    single, double = (
        coarse_space(Dense(RBF(8.0), X.astype(dtype)), 1, 100) for dtype in (np.float32, np.float64)
    )
    assert len(single.indices) < len(double.indices) < 100
    assert np.abs(single.rows).max() < 1e4


# --- where there is none --------------------------------------------------------------------------


def test_other_operators_have_none(X):
    M, n = Dense(RBF(), X), len(X)
    intercept = Intercept(1.0, X, n)
    others = [
        Separate([M, M]),
        LinearFeatures(Linear(), X),
        LabelMixed([(M, Identity()), (M, Scalar(2.0))]),
        LabelMixed([(M, Identity()), (intercept, Scalar(2.0))]),
        LabelMixed([(intercept, Identity())]),
        Dense(Constant(1e-300) * Constant(1e-300), X),
    ]
    for operator in others:
        assert coarse_space(operator, 2, RANK) is None, operator
    xp = pytest.importorskip("array_api_strict")
    assert parts_of(Dense(RBF(), xp.asarray(X.copy())), 1) is None


@pytest.mark.parametrize("value", [-1.0, np.inf, np.nan])
def test_a_diagonal_that_no_kernel_has_gives_none(value, X):
    from gramian.kernels import Precomputed

    K = RBF()(X)
    K[0, 0] = value
    assert coarse_space(Dense(Precomputed(), K), 1, RANK) is None


# --- columns and work -----------------------------------------------------------------------------

NOISY = 2.0 * RBF(1.5) + White(0.3)


def _input_operators(X: np.ndarray) -> dict:
    thin = sp.csr_array(np.where(X > 0, X, 0))
    return {
        "dense": Dense(NOISY, X),
        "streamed": Streamed(NOISY, X),
        "tiled": Streamed(RationalQuadratic() + White(0.2), X),
        "matern": Streamed(Matern(1.0) * Matern(2.0), X),
        "sparse dense": Dense(NOISY, thin),
        "sparse streamed": Streamed(NOISY, thin),
        "low rank": LowRank(NOISY, X, 6, random_state=0),
        "low rank, exact diagonal": LowRank(NOISY, X, 6, diagonal=True, random_state=0),
        "tree code": TreeCode(RBF(1.5), X),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", list(_input_operators(np.ones((3, 2)))))
def test_columns_are_those_of_the_matrix(name, dtype, X):
    operator = _input_operators(X.astype(dtype))[name]
    indices = np.array([3, 0, 13])
    columns = operator.columns(indices)
    assert columns.shape == (14, 3)
    assert columns.dtype == dtype
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(columns, operator.to_dense()[:, indices], atol=tolerance)
    assert operator.column_work > 0


def test_columns_that_are_not_cheap_are_none(X):
    assert LinearFeatures(Linear(), X).columns(np.array([0])) is None
    assert Intercept(1.0, X, 14).columns(np.array([0])) is None
    assert Streamed(RBF(), X, X[:3]).columns(np.array([0])) is None


def test_work_grows_with_examples_and_columns(X):
    small, large = (
        _input_operators(part) | {"linear": LinearFeatures(Linear(), part)} for part in (X[:7], X)
    )
    for name in set(small) - {"tree code"}:
        work = [small[name].work(1), large[name].work(1), large[name].work(100)]
        assert 0 < work[0] < work[1] < work[2], name
