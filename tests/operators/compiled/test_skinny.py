"""A stored matrix times a few columns."""

import numpy as np
import pytest

from gramian.kernels import RBF
from gramian.operators import Dense
from gramian.operators.compiled import skinny
from gramian.operators.compiled.skinny import is_skinny, most_columns, skinny_product


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 3, 6, 11, 37, 73])
@pytest.mark.parametrize(("n", "m"), [(0, 5), (3, 7), (4, 1), (9, 2049), (37, 5000)])
def test_equals_the_matrix_product(rng, n, m, k, dtype):
    M, B = rng.normal(size=(n, m)).astype(dtype), rng.normal(size=(m, k)).astype(dtype)
    M.setflags(write=False)
    product = skinny_product(M, np.asfortranarray(B))
    assert product.dtype == dtype
    scale = np.sqrt(m) * np.finfo(dtype).eps
    np.testing.assert_allclose(product, M.astype(float) @ B.astype(float), atol=50 * scale)


@pytest.mark.usefixtures("all_threads")
def test_dense_operators_use_it_where_it_pays(rng, monkeypatch):
    X = rng.normal(size=(600, 3))
    operator = Dense(RBF(1.0), X)
    B = rng.normal(size=(600, 3, 2))
    assert is_skinny(operator.matrix, B.reshape(600, 6))
    calls = []
    monkeypatch.setattr(
        "gramian.operators.inputs.dense.skinny_product",
        lambda M, columns: calls.append(columns.shape) or skinny_product(M, columns),
    )
    expected = np.einsum("ij,jcq->icq", RBF(1.0)(X), B)
    np.testing.assert_allclose(operator @ B, expected, rtol=1e-11, atol=1e-11)
    assert calls == [(600, 6)]


def test_sums_in_double_precision_need_no_copy(rng):
    M = rng.normal(size=(600, 600)).astype(np.float32)
    for k in (1, 6):
        B = rng.normal(size=(600, k))
        assert is_skinny(M, B)
        expected = M.astype(float) @ B
        product = skinny_product(M, B)
        assert product.dtype == np.float64
        np.testing.assert_allclose(product, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("k", [1, 80])
def test_one_column_and_many_go_to_blas(rng, k):
    M = rng.normal(size=(600, 600))
    assert not is_skinny(M, rng.normal(size=(600, k)))
    assert not is_skinny(np.asfortranarray(M), rng.normal(size=(600, 6)))
    assert not is_skinny(M[:20, :20], rng.normal(size=(20, 6)))


@pytest.mark.parametrize(
    "wide, architectures, most",
    [
        (True, ["Haswell"], 72),
        (True, ["SkylakeX"], 20),
        (True, ["Haswell", None], 20),  # a BLAS that does not say what it uses
        (True, [], 20),
        (False, ["Haswell"], 20),
    ],
)
def test_more_columns_are_worth_it_where_blas_uses_half_vectors(
    monkeypatch, wide, architectures, most
):
    libraries = [{"architecture": architecture} for architecture in architectures]
    monkeypatch.setattr(skinny, "get_host_cpu_features", lambda: {"avx512f": wide})
    monkeypatch.setattr(skinny, "blas_libraries", lambda: libraries)
    most_columns.cache_clear()
    try:
        assert most_columns() == most
    finally:
        most_columns.cache_clear()
