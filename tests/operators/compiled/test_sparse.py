"""The parallel CSR product against SciPy and against dense NumPy."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.operators.compiled import sparse as sparse_product
from gramian.operators.compiled.sparse import sparse_dot


def random_csr(n, m, density=0.1, dtype=np.float64, seed=0):
    return sp.random_array((n, m), density=density, format="csr", dtype=dtype, rng=seed)


def right_hand_side(m, k, dtype=np.float64, seed=1):
    return np.random.default_rng(seed).standard_normal((m, k)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_agrees_with_dense(dtype, index, k):
    A, B = random_csr(83, 57, dtype=dtype), right_hand_side(57, k, dtype)
    A.indptr, A.indices = A.indptr.astype(index), A.indices.astype(index)
    product = sparse_dot(A, B)
    assert product.dtype == dtype
    assert product.flags.c_contiguous
    expected = A.toarray().astype(np.float64) @ B.astype(np.float64)
    np.testing.assert_allclose(product, expected, atol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("k", [1, 5])
def test_scipy_containers(container, k):
    A, B = container(random_csr(40, 30)), right_hand_side(30, k)
    np.testing.assert_allclose(sparse_dot(A, B), A.toarray() @ B, atol=1e-13)


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.usefixtures("all_threads")
def test_skewed_and_empty_rows(k):
    """One full row, many empty ones: the tasks are cut by entries and every row is written."""
    dense = np.zeros((3000, 2000))
    dense[1500] = right_hand_side(1, 2000)
    dense[[3, 2999], [7, 1999]] = 2.0
    B = right_hand_side(2000, k)
    np.testing.assert_allclose(sparse_dot(sp.csr_array(dense), B), dense @ B, atol=1e-11)


def test_tasks_have_equal_work():
    lengths = np.r_[np.full(1000, 90), np.zeros(9000, int), np.full(10, 900)]
    indptr = np.r_[0, np.cumsum(lengths)]
    bounds = sparse_product._cut(indptr, 0, lengths.size, 16)
    assert bounds[0] == 0
    assert bounds[-1] == lengths.size
    work = [lengths[a:b].sum() + b - a for a, b in pairwise(bounds)]
    assert max(work) <= (lengths.sum() + lengths.size) / 16 + 901


@pytest.mark.usefixtures("all_threads")
def test_several_regions(monkeypatch):
    monkeypatch.setattr(sparse_product, "_REGION_WORK", 1000)
    monkeypatch.setattr(sparse_product, "_TASK_WORK", 50)
    A, B = random_csr(200, 50), right_hand_side(50, 3)
    np.testing.assert_allclose(sparse_dot(A, B), A.toarray() @ B, atol=1e-13)


@pytest.mark.parametrize("k", [1, 4])
def test_read_only_and_fortran_order(k):
    A, B = random_csr(50, 20), np.asfortranarray(right_hand_side(20, k))
    expected = A.toarray() @ B
    for array in (A.indptr, A.indices, A.data, B):
        array.flags.writeable = False
    np.testing.assert_allclose(sparse_dot(A, B), expected, atol=1e-13)


def test_unsorted_and_duplicate_entries():
    A = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), (1, 3))
    np.testing.assert_array_equal(sparse_dot(A, np.eye(3)), [[2.0, 0.0, 4.0]])


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (4, 3)])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_nothing_stored(shape, k):
    product = sparse_dot(sp.csr_array(shape), np.ones((shape[1], k)))
    np.testing.assert_array_equal(product, np.zeros((shape[0], k)))


def test_mixed_precision_is_double():
    A, B = random_csr(9, 8, dtype=np.float32), right_hand_side(8, 2)
    assert sparse_dot(A, B).dtype == np.float64


@pytest.mark.usefixtures("all_threads")
def test_threads_at_once_and_deterministic():
    A, B = random_csr(400, 300), right_hand_side(300, 6)
    with ThreadPoolExecutor(4) as pool:
        products = list(pool.map(lambda _: sparse_dot(A, B), range(32)))
    for product in products[1:]:
        np.testing.assert_array_equal(product, products[0])


def test_errors_name_the_argument():
    A = random_csr(4, 3)
    with pytest.raises(TypeError, match="CSR"):
        sparse_dot(A.tocsc(), np.ones((3, 1)))
    with pytest.raises(ValueError, match="B has shape"):
        sparse_dot(A, np.ones((4, 1)))
    with pytest.raises(ValueError, match="B has shape"):
        sparse_dot(A, np.ones(3))
