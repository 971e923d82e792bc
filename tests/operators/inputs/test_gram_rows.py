"""Rows of a Gram matrix: stored or cached, each against the matrix itself."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from oracles import KERNELS, gram, kernel_id

from gramian.kernels import RBF, Linear, Precomputed
from gramian.operators import GramRows

pytestmark = pytest.mark.usefixtures("one_thread")
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
ROWS = [3, 0, 3, 11, 7, 0]


def budget(n_rows: int, dtype=np.float64, n: int = 14) -> int:
    """Bytes of some rows."""
    return n_rows * n * np.dtype(dtype).itemsize


@both_dtypes
@pytest.mark.parametrize("kept", [1, 2, 5, 14])
@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)
def test_rows_diagonal_and_product_are_those_of_the_matrix(kernel, kept, dtype, X, rng):
    kernel = kernel.resolve(X)
    expected = gram(kernel, X) + 0.7
    tolerance = (
        {"rtol": 1e-4, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    )
    rows = GramRows(kernel, X.astype(dtype), 0.7, nbytes=budget(kept, dtype))
    assert (rows.matrix is not None) == (kept == 14)
    assert rows.shape == (14, 14)
    assert rows.dtype == dtype
    assert rows.nbytes == budget(max(kept, 2), dtype)
    for index in (ROWS, [5], np.arange(14), []):
        got = rows.rows(np.asarray(index, dtype=np.intp))
        assert got.dtype == dtype
        np.testing.assert_allclose(got, expected[np.asarray(index, dtype=int)], **tolerance)
    np.testing.assert_allclose(rows.diagonal(), np.diag(expected), **tolerance)
    assert rows.diagonal().dtype == np.float64
    A = rng.normal(size=(14, 3))
    for some in (A, A * (np.arange(14) < 4)[:, None], 0 * A):
        np.testing.assert_allclose(rows @ some, expected @ some, **tolerance)
        assert (rows @ some).dtype == np.float64


@both_dtypes
@pytest.mark.parametrize("kept", [3, 14])
@pytest.mark.parametrize("kernel", [Linear(), RBF(2.0)], ids=kernel_id)
def test_sparse_rows(kernel, kept, dtype, X, rng):
    S = sp.csr_array(np.where(X > 0, X, 0).astype(dtype))
    expected = gram(kernel, S.toarray()) + 0.3
    rows = GramRows(kernel, S, 0.3, nbytes=budget(kept, dtype))
    np.testing.assert_allclose(rows.rows(np.array(ROWS)), expected[ROWS], rtol=1e-5)
    A = rng.normal(size=(14, 2))
    np.testing.assert_allclose(rows @ A, expected @ A, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_precomputed_matrix_is_not_copied(order, X):
    K = gram(RBF(1.0), X)
    K = np.array((K + K.T) / 2, order=order)
    K.setflags(write=False)
    rows = GramRows(Precomputed(), K, nbytes=0)
    assert rows.matrix is not None
    assert np.shares_memory(rows.matrix, K)
    assert rows.matrix.flags.c_contiguous
    np.testing.assert_array_equal(GramRows(Precomputed(), K, 2.0).rows(np.array(ROWS)), K[ROWS] + 2)


def test_the_least_recently_used_rows_give_way(X):
    rows = GramRows(Linear(), X, nbytes=budget(3))
    for row in (0, 1, 2):
        rows.rows(np.array([row]))
    assert (rows.n_computed, rows.n_hits) == (3, 0)
    rows.rows(np.array([0, 2, 0]))  # 1 is now the oldest
    assert (rows.n_computed, rows.n_hits) == (3, 3)
    rows.rows(np.array([7]))
    rows.rows(np.array([0, 2]))
    assert (rows.n_computed, rows.n_hits) == (4, 5)
    rows.rows(np.array([1, 2, 1]))  # 2 stays, 7 goes
    assert (rows.n_computed, rows.n_hits) == (5, 7)


def test_rows_of_one_call_are_evaluated_together(X):
    class Counting(Linear):
        calls = 0

        def _evaluate(self, X, Z, offset):
            Counting.calls += 1
            return super()._evaluate(X, Z, offset)

    rows = GramRows(Counting(), X, nbytes=budget(5))
    rows.rows(np.array([1, 4]))
    rows.rows(np.array([1, 2, 3, 4, 5]))
    assert (Counting.calls, rows.n_computed) == (2, 5)


def test_a_random_walk_through_the_cache(X, rng):
    rows = GramRows(RBF(1.0), X, nbytes=budget(6))
    expected = gram(RBF(1.0), X)
    for _ in range(200):
        index = rng.integers(14, size=rng.integers(1, 9))
        np.testing.assert_allclose(rows.rows(index), expected[index], rtol=1e-10)


def test_the_budget_is_working_memory(X):
    assert GramRows(Linear(), X).matrix is not None
    with sklearn.config_context(working_memory=budget(2) / 2**20):
        assert GramRows(Linear(), X).matrix is None
