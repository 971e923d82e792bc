"""Operators: each against its dense matrix, the choice among them, and what is refused."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from oracles import KERNELS, block_diagonal, gram, kernel_id, kronecker, precomputed_case

from gramian._core.arrays import to_numpy
from gramian.kernels import RBF, Constant, Linear, Matern, Polynomial, Precomputed, White
from gramian.labels import DenseStructure, Diagonal, Identity, Scalar
from gramian.operators import (
    Dense,
    Intercept,
    LabelMixed,
    LinearFeatures,
    Separate,
    Streamed,
    choose_operator,
    cross_operator,
)
from gramian.operators.inputs import tiles
from gramian.testing import CountingOperator, check_operator

pytestmark = pytest.mark.usefixtures("one_thread")
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
LINEAR_KERNELS = [Linear(), 3.0 * Linear(), Linear() * Constant(0.5) * Constant(4.0, "fixed")]
linear_kernels = pytest.mark.parametrize("kernel", LINEAR_KERNELS, ids=kernel_id)


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of a few rows, so that small data have many of them."""
    monkeypatch.setattr(tiles, "TILE_BYTES", 400)


# --- input operators ----------------------------------------------------------------------------


@every_kernel
@both_dtypes
@pytest.mark.parametrize("make", [Dense, Streamed])
def test_dense_and_streamed_are_the_gram_matrix(make, kernel, dtype, X, small_tiles):
    kernel = kernel.resolve(X)
    check_operator(make(kernel, X.astype(dtype)), gram(kernel, X))


@every_kernel
@both_dtypes
def test_streamed_is_rectangular_too(kernel, dtype, X, X_new, small_tiles):
    kernel = kernel.resolve(X)
    check_operator(Streamed(kernel, X_new.astype(dtype), X.astype(dtype)), gram(kernel, X_new, X))


@every_kernel
def test_sparse_rows_are_served(kernel, X, X_new, small_tiles):
    make = (Dense, Streamed)[KERNELS.index(kernel) % 2]  # both go through the same tiles
    thin, thin_new = np.where(X > 0, X, 0.0), np.where(X_new > 0, X_new, 0.0)
    kernel = kernel.resolve(thin)
    check_operator(make(kernel, sp.csr_array(thin)), gram(kernel, thin))
    cross = cross_operator(kernel, sp.csr_array(thin_new), sp.csr_array(thin))
    check_operator(cross, gram(kernel, thin_new, thin))


@linear_kernels
@both_dtypes
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_linear_features_are_the_gram_matrix(kernel, dtype, kind, X, X_new):
    thin, thin_new = np.where(X > 0, X, 0.0), np.where(X_new > 0, X_new, 0.0)
    old, new = kind(thin.astype(dtype)), kind(thin_new.astype(dtype))
    check_operator(LinearFeatures(kernel, old), gram(kernel, thin))
    check_operator(LinearFeatures(kernel, new, old), gram(kernel, thin_new, thin))


@linear_kernels
def test_linear_features_are_rectangular_too(kernel, X, X_new):
    check_operator(LinearFeatures(kernel, X_new, X), gram(kernel, X_new, X))


@pytest.mark.parametrize("n_features", [1, 2, 5, 17, 60])
@pytest.mark.parametrize("n_outputs", [1, 2, 40])
@both_dtypes
@pytest.mark.usefixtures("all_threads")
def test_streamed_rbf_of_all_widths(n_features, n_outputs, dtype, rng):
    """Few and many features and right-hand sides take different routes; all end at the same values."""
    X = rng.normal(size=(70, n_features)).astype(dtype)
    scale = float(np.sqrt(n_features))
    kernel, B = 2.0 * RBF(scale) + White(0.5), rng.normal(size=(70, n_outputs)).astype(dtype)
    expected = gram(kernel, X) @ B
    product = Streamed(kernel, X) @ B
    assert product.dtype == dtype
    atol = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(product, expected, atol=atol * np.abs(expected).max())
    cross = Streamed(kernel, X[:9], X) @ B
    np.testing.assert_allclose(
        cross, gram(kernel, X[:9], X) @ B, atol=atol * np.abs(expected).max()
    )


def test_precomputed_values_are_an_operator_too():
    kernel, K, K_new = precomputed_case()
    check_operator(Dense(kernel, K), K)
    check_operator(cross_operator(kernel, K_new, K), K_new)
    noisy = 2.0 * kernel + White(0.3)
    check_operator(Dense(noisy, K), 2 * K + 0.3 * np.eye(len(K)))
    check_operator(cross_operator(noisy, K_new, K), 2 * K_new)


@both_dtypes
def test_intercept_is_a_constant_matrix(dtype):
    like = np.zeros((14, 2), dtype=dtype)
    check_operator(Intercept(2.5, like, 14), np.full((14, 14), 2.5))
    check_operator(Intercept(2.5, like, 5, 14), np.full((5, 14), 2.5))


@pytest.mark.parametrize("make", [Dense, Streamed, LinearFeatures])
def test_one_vector_may_be_multiplied(make, X, rng):
    """The trailing axes are optional."""
    b = rng.normal(size=14)
    operator = make(2.0 * Linear(), X)
    np.testing.assert_allclose(operator @ b, 2 * X @ (X.T @ b), rtol=1e-10)


@every_kernel
@pytest.mark.parametrize("make", [Dense, Streamed])
def test_other_array_libraries_multiply_alike(make, kernel, xp, X, X_new, rng, small_tiles):
    kernel = kernel.resolve(X)
    B = rng.normal(size=(14, 3, 2))
    theirs = make(kernel, xp.asarray(X.copy()))
    ours = make(kernel, X)
    found = theirs @ xp.asarray(B)
    assert type(found) is type(xp.asarray(B))
    np.testing.assert_allclose(to_numpy(found), ours @ B, rtol=1e-7, atol=1e-7)
    cross = cross_operator(kernel, xp.asarray(X_new.copy()), xp.asarray(X.copy())) @ xp.asarray(B)
    expected = cross_operator(kernel, X_new, X) @ B
    np.testing.assert_allclose(to_numpy(cross), expected, rtol=1e-7, atol=1e-7)
    E, F = xp.asarray(B), xp.asarray(B[::-1].copy())
    np.testing.assert_allclose(theirs.vjp(E, F), ours.vjp(B, B[::-1]), rtol=1e-7, atol=1e-7)
    diagonal = to_numpy(theirs.diagonal(2))
    np.testing.assert_allclose(diagonal, ours.diagonal(2), rtol=1e-7)


@pytest.mark.parametrize("make", [Dense, Streamed])
def test_a_parameter_that_is_a_numpy_number_keeps_float32(make, X):
    kernel = Constant(np.float64(2.0)) * RBF(np.float64(1.5)) + White(np.float64(0.1))
    X32, B = X.astype(np.float32), np.ones((14, 2), dtype=np.float32)
    assert (make(kernel, X32) @ B).dtype == np.float32
    linear = LinearFeatures(Constant(np.float64(2.0)) * Linear(), X32)
    assert (linear @ B).dtype == np.float32


@pytest.mark.parametrize("make", [Dense, Streamed, LinearFeatures])
def test_accurate_products_of_single_precision_sum_in_double(make, rng, small_tiles):
    """Kernel values are float32, their sums are not: ±1e6 cancel and leave the small part."""
    X = np.round(4 * rng.normal(size=(200, 3))).astype(np.float32)  # products of them are exact
    b = np.where(np.arange(200) % 2, 1e6, -1e6) + rng.normal(size=200)
    operator = make(2.0 * Linear(), X)
    expected = 2 * (X.astype(float) @ (X.T.astype(float) @ b))
    atol = 1e-10 * np.abs(expected).max()  # rounding of float32 would be a thousand times that
    np.testing.assert_allclose(operator.accurate(b[:, None])[:, 0], expected, atol=atol)


def test_tiles_are_cut_by_bytes(small_tiles, X):
    rows = [block for block, _ in tiles.tiles(RBF(), X, None)]
    assert [(r.start, r.stop) for r in rows] == [(i, min(i + 3, 14)) for i in range(0, 14, 3)]


# --- outputs ------------------------------------------------------------------------------------

S = np.array([[1.0, 0.2, -0.4], [0.2, 0.5, 0.1], [-0.4, 0.1, 2.0]])
STRUCTURES = [
    (Identity(), np.eye(3)),
    (Scalar(2.5), 2.5 * np.eye(3)),
    (Diagonal([0.5, 1.0, 2.0]), np.diag([0.5, 1.0, 2.0])),
    (DenseStructure(S), S),
]
every_structure = pytest.mark.parametrize(
    "structure, matrix", STRUCTURES, ids=[type(s).__name__ for s, _ in STRUCTURES]
)


@every_structure
@both_dtypes
@pytest.mark.parametrize("make", [Dense, Streamed])
def test_label_mixed_is_a_kronecker_product(structure, matrix, dtype, make, X, X_new):
    kernel = 1.5 * RBF([0.5, 1.0, 3.0]) + White(0.1)
    old, new = X.astype(dtype), X_new.astype(dtype)
    mixed = LabelMixed([(make(kernel, old), structure)])
    check_operator(mixed, kronecker((gram(kernel, X), matrix)))
    cross = LabelMixed([(cross_operator(kernel, new, old), structure)])
    check_operator(cross, kronecker((gram(kernel, X_new, X), matrix)))


@every_structure
@both_dtypes
def test_label_mixed_terms_add_up(structure, matrix, dtype, X, X_new):
    """Two kernels with structures of their own, and an intercept for each output."""
    kernel, X32, new32 = RBF(1.5), X.astype(dtype), X_new.astype(dtype)
    structures = [structure, Diagonal([1.0, 2.0, 3.0]), Identity()]
    linear = 0.5 * Linear()
    matrices = [Dense(kernel, X32), LinearFeatures(linear, X32), Intercept(2.0, X32, 14)]
    cross = [cross_operator(k, new32, X32) for k in (kernel, linear)]
    cross.append(Intercept(2.0, X32, 6, 14))

    def dense(rows):
        ones = np.ones((len(rows), 14))
        return kronecker(
            (gram(kernel, rows, X), matrix),
            (0.5 * rows @ X.T, np.diag([1.0, 2.0, 3.0])),
            (2 * ones, np.eye(3)),
        )

    check_operator(LabelMixed(list(zip(matrices, structures))), dense(X))
    check_operator(LabelMixed(list(zip(cross, structures))), dense(X_new))


@both_dtypes
def test_separate_kernels_are_block_diagonal(dtype, X, X_new):
    kernels = [RBF(1.0), Matern(2.0) + White(0.2), 2.0 * Linear()]
    makers = [Dense, Streamed, LinearFeatures]
    operator = Separate([make(k, X.astype(dtype)) for make, k in zip(makers, kernels)])
    check_operator(operator, block_diagonal([gram(k, X) for k in kernels]))
    old, new = X.astype(dtype), X_new.astype(dtype)
    cross = Separate([cross_operator(k, new, old) for k in kernels])
    check_operator(cross, block_diagonal([gram(k, X_new, X) for k in kernels]))


def test_separate_kernels_with_an_intercept_are_one_operator(X, X_new):
    kernels = [RBF(1.0), RBF(2.0), Matern(1.0)]
    separate = Separate([Dense(k, X) for k in kernels])
    operator = LabelMixed([(separate, Scalar(2.0)), (Intercept(1.5, X, 14), Identity())])
    dense = 2 * block_diagonal([gram(k, X) for k in kernels])
    dense = dense + kronecker((np.full((14, 14), 1.5), np.eye(3)))
    check_operator(operator, dense)


BLOCK_CASES = ["input", "intercept", "diagonal", "separate", "both"]


@pytest.mark.parametrize("case", BLOCK_CASES)
def test_blocks_are_the_operator_output_by_output(case, X, rng):
    """What solver='exact' factors: dense matrices, each with the outputs it serves."""
    M, N, b = Dense(RBF(1.0), X), Streamed(Matern(1.0), X), Intercept(2.0, X, 14)
    operator = {
        "input": N,
        "intercept": LabelMixed([(M, Identity()), (b, Identity())]),
        "diagonal": LabelMixed([(M, Diagonal([1.0, 2.0, 1.0])), (N, Scalar(0.5))]),
        "separate": Separate([M, N, M]),
        "both": LabelMixed([(Separate([M, N, M]), Diagonal([1.0, 2.0, 3.0])), (b, Identity())]),
    }[case]
    blocks = operator.blocks(3)
    assert sorted(c for _, outputs in blocks for c in outputs) == [0, 1, 2]
    B = rng.normal(size=(14, 3))
    found = np.empty_like(B)
    for matrix, outputs in blocks:
        found[:, outputs] = matrix @ B[:, outputs]
    np.testing.assert_allclose(found, operator @ B, rtol=1e-9, atol=1e-9)


def test_outputs_that_share_a_matrix_share_a_block(X):
    M = Dense(RBF(1.0), X)
    mixed = LabelMixed([(M, Diagonal([1.0, 2.0, 1.0])), (Intercept(1.0, X, 14), Identity())])
    assert [outputs for _, outputs in mixed.blocks(3)] == [[0, 2], [1]]


def test_mixed_outputs_have_no_blocks(X):
    operator = LabelMixed([(Dense(RBF(), X), DenseStructure(S))])
    with pytest.raises(ValueError, match="solver='newton'"):
        operator.blocks(3)


# --- the choice ---------------------------------------------------------------------------------


def test_a_matrix_within_the_budget_is_stored(X):
    operator, record = choose_operator(RBF(), X)
    assert isinstance(operator, Dense)
    assert (record.name, record.n_samples, record.nbytes) == ("dense", 14, 14 * 14 * 8)
    assert "within working_memory" in record.reason


@pytest.mark.parametrize("dtype, expected", [(np.float64, "streamed"), (np.float32, "dense")])
def test_a_matrix_beyond_the_budget_is_streamed(dtype, expected, rng):
    """420 × 420 values are 1.35 MiB in float64 and half of it in float32."""
    X = rng.normal(size=(420, 2)).astype(dtype)
    with sklearn.config_context(working_memory=1):
        operator, record = choose_operator(RBF(), X)
    assert record.name == expected
    assert isinstance(operator, {"streamed": Streamed, "dense": Dense}[expected])
    assert record.nbytes == (0 if expected == "streamed" else 420 * 420 * 4)
    assert "working_memory = 1 MiB" in record.reason


def test_a_linear_kernel_works_through_few_features(rng):
    X = rng.normal(size=(30, 4))
    operator, record = choose_operator(2.0 * Linear(), X)
    assert isinstance(operator, LinearFeatures)
    assert record.name == "linear"
    assert "120 feature values" in record.reason
    wide = rng.normal(size=(30, 400))
    assert choose_operator(Linear(), wide)[1].name == "dense"
    with sklearn.config_context(working_memory=0.001):
        assert choose_operator(Linear(), wide)[1].name == "linear"


def test_sparse_features_are_counted_by_what_is_stored(rng):
    X = sp.random_array((50, 400), density=0.01, rng=rng, format="csr")
    operator, record = choose_operator(Linear(), X)
    assert record.name == "linear"
    assert record.nbytes == operator.nbytes > 0


def test_a_sum_with_a_linear_kernel_is_not_linear(X):
    assert choose_operator(Linear() + White(0.1), X)[1].name == "dense"
    with pytest.raises(ValueError, match=r"needs the kernel Linear\(\)"):
        choose_operator(Linear() + White(0.1), X, "linear")


@pytest.mark.parametrize("name", ["dense", "streamed", "linear"])
def test_an_operator_may_be_asked_for(name, X):
    _, record = choose_operator(Linear(), X, name)
    assert (record.name, record.reason) == (name, "asked for")


def test_precomputed_values_are_stored_whatever_the_budget():
    with sklearn.config_context(working_memory=1e-6):
        operator, record = choose_operator(Precomputed(), np.eye(20))
    assert record.name == "dense"
    assert operator.matrix.shape == (20, 20)
    with pytest.raises(ValueError, match="precomputed"):
        choose_operator(Precomputed(), np.eye(20), "streamed")


def test_an_unknown_operator_is_named(X):
    with pytest.raises(ValueError, match=r"must be one of 'auto', 'dense', .*; got 'sparse'"):
        choose_operator(RBF(), X, "sparse")


def test_the_choice_is_logged(X, caplog):
    with caplog.at_level(logging.INFO, logger="gramian"):
        choose_operator(RBF(), X)
    assert "operator dense: 14 x 14 values take 1.53 KiB" in caplog.text


@pytest.mark.parametrize("kernel", [RBF(), 2.0 * Linear(), Polynomial() + White(1.0)])
def test_the_cross_operator_has_the_values_of_new_examples(kernel, X, X_new):
    operator = cross_operator(kernel, X_new, X)
    check_operator(operator, gram(kernel, X_new, X))
    assert isinstance(operator, LinearFeatures) == (kernel == 2.0 * Linear())


# --- counting, bytes, errors --------------------------------------------------------------------


def test_the_counting_operator_is_what_it_counts(X):
    operator = CountingOperator(Dense(RBF(1.5), X))
    check_operator(operator, gram(RBF(1.5), X))
    assert operator.nbytes == 14 * 14 * 8
    assert operator.blocks(2)[0][1] == [0, 1]


def test_bytes_are_those_kept_beyond_the_data(X):
    assert Dense(RBF(), X).nbytes == 14 * 14 * 8
    assert Dense(RBF(), X.astype(np.float32)).nbytes == 14 * 14 * 4
    assert Streamed(RBF(), X).nbytes == 0
    assert LinearFeatures(Linear(), X).nbytes == 0
    sparse = LinearFeatures(Linear(), sp.csr_array(np.eye(5)))
    assert sparse.nbytes >= 5 * 8
    both = [(Dense(RBF(), X), Identity()), (Intercept(1.0, X, 14), Identity())]
    assert LabelMixed(both).nbytes == 14 * 14 * 8
    assert Separate([Dense(RBF(), X)] * 2).nbytes == 2 * 14 * 14 * 8


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda X: Dense(RBF(), X) @ np.ones((5, 2)), r"\(14, 14\) cannot multiply .* \(5, 2\)"),
        (lambda X: LabelMixed([]), "at least one"),
        (
            lambda X: LabelMixed([(Dense(RBF(), X), Identity()), (Dense(RBF(), X[1:]), Identity())]),
            "one shape",
        ),
        (lambda X: Separate([]), "one operator for each group"),
        (lambda X: Separate([Dense(RBF(), X)] * 2) @ np.ones((14, 3)), "serve 2 outputs, not 3"),
        (lambda X: LabelMixed([(Dense(RBF(), X), Identity())]).clone_with_theta([1, 2]), "theta"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(act, words, X):
    with pytest.raises(ValueError, match=words):
        act(X)
