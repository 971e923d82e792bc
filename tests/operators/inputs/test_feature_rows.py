"""Features of examples: the same products whatever their form, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.kernels import RBF, Linear
from gramian.operators import GramRows
from gramian.operators.inputs import feature_rows
from gramian.operators.inputs.feature_rows import FeatureRows, as_rows
from gramian.operators.inputs.gram_rows import gram_is_faster

rng = np.random.default_rng(0)
X = rng.normal(size=(9, 6)) * (rng.uniform(size=(9, 6)) < 0.6)
X[:, 2] = 0.0  # an empty column
A = rng.normal(size=(9, 2))


def twice(X):
    """Each entry in two parts, in no order."""
    row, column = np.nonzero(X)
    entries = (np.tile(0.5 * X[row, column], 2), np.tile(column, 2), np.tile(row, 2))
    order = np.argsort(entries[2], kind="stable")
    indptr = np.searchsorted(entries[2][order], np.arange(len(X) + 1))
    return sp.csr_array((entries[0][order], entries[1][order], indptr), shape=X.shape)


FORMS = {
    "dense": lambda X: X,
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "old csr": sp.csr_matrix,
    "in parts": twice,
}
every_form = pytest.mark.parametrize("form", FORMS)


@every_form
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_are_those_of_the_gram_matrix(form, dtype):
    rows = FeatureRows(FORMS[form](X).astype(dtype))
    K = X @ X.T
    tolerance = {"rtol": 1e-12, "atol": 1e-12} if dtype == np.float64 else {"atol": 1e-5}
    assert rows.shape == K.shape
    assert rows.dtype == dtype
    np.testing.assert_allclose(rows @ A, K @ A, **tolerance)
    np.testing.assert_allclose(rows.diagonal(), np.diag(K), **tolerance)
    np.testing.assert_allclose(rows.rows(np.array([3, 0, 3])), K[[3, 0, 3]], **tolerance)
    assert (rows @ A).dtype == rows.diagonal().dtype == rows.rows(np.arange(2)).dtype == np.float64


@every_form
def test_compiled_products_with_one_example(form):
    rows = FeatureRows(FORMS[form](X))
    kept = X if rows.n_features == X.shape[1] else X[:, X.any(axis=0)]
    assert rows.n_features == kept.shape[1]
    np.testing.assert_allclose(rows.sums(A), kept.T @ A)
    z, Z = rng.normal(size=rows.n_features), rng.normal(size=(rows.n_features, 4))
    for i in range(len(X)):
        np.testing.assert_allclose(feature_rows.row_dot(rows.compiled, i, z), kept[i] @ z)
        out = np.full(4, 7.0)
        feature_rows.panel_dot(rows.compiled, i, Z, 1, 3, out)
        np.testing.assert_allclose(out, [7.0, *(kept[i] @ Z[:, 1:3]), 7.0])
        column, panel, factors = z.copy(), Z.copy(), np.arange(4.0)
        feature_rows.row_add(rows.compiled, i, 2.0, column)
        np.testing.assert_allclose(column, z + 2.0 * kept[i])
        feature_rows.panel_add(rows.compiled, i, factors, panel)
        np.testing.assert_allclose(panel, Z + np.outer(kept[i], factors))


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("variance", [0.0, 0.7])
def test_features_of_a_linear_kernel(form, variance):
    kernel = 2.0 * Linear()
    rows = FeatureRows.from_kernel(kernel, FORMS[form](X), variance)
    np.testing.assert_allclose(rows @ A, (kernel(X) + variance) @ A)
    with pytest.raises(ValueError, match=r"Linear\(\).*RBF.*GramRows\(kernel, X\)"):
        FeatureRows.from_kernel(RBF(1.0), X)


def test_arrays_become_features_and_rows_stay():
    gram = GramRows(Linear(), X)
    features = as_rows(X)
    assert as_rows(gram) is gram
    assert as_rows(features) is features
    np.testing.assert_allclose(features @ A, gram @ A)


def test_no_entry_at_all():
    rows = FeatureRows(sp.csr_array((3, 4)))
    assert rows.n_features == 0
    np.testing.assert_array_equal(rows @ np.ones((3, 2)), np.zeros((3, 2)))


@pytest.mark.parametrize("make", [FeatureRows, lambda X: GramRows(Linear(), X, nbytes=0)])
def test_kernel_values_that_overflow_are_refused(make):
    with pytest.raises(ValueError, match="overflowed"), np.errstate(over="ignore"):
        make(np.full((3, 2), 1e200))


def test_when_the_gram_matrix_is_faster():
    wide, tall = np.empty((10, 20)), np.empty((20, 10))
    assert gram_is_faster(wide)
    assert not gram_is_faster(tall)
    assert not gram_is_faster(sp.csr_array((10, 20)))
    assert gram_is_faster(tall, few_examples=20)
    assert gram_is_faster(sp.csr_array((20, 10)), few_examples=20)
    assert not gram_is_faster(tall, few_examples=19)
