"""Searches in single precision find what those in double precision find."""

import numpy as np
import pytest

from gramian import KernelLogisticRegression
from gramian.kernels import RBF, Linear
from gramian.operators import Dense
from gramian.selection import rounded
from gramian.selection.prior import GramSettings, assemble_prior

X = np.random.default_rng(0).normal(size=(120, 3))
y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]), [-0.6, 0.6])


def search_operator(variance, regularization=1.0):
    prior = assemble_prior(variance * RBF(1.0), "tied", [0, 1, 2])
    like = np.zeros((len(X), 3))
    gram = GramSettings("auto", 1.0)

    def build(dtype):
        return prior.operator(X, like, gram, learning=True, dtype=dtype)[0]

    operator = rounded.rounded(build, X.dtype, regularization, 3)
    return operator.clone_with_theta(prior.theta)


def test_single_precision_where_it_cannot_be_felt(monkeypatch):
    assert search_operator(1.0).dtype == np.float64  # it stays in the cache
    monkeypatch.setattr(rounded, "CACHE_BYTES", 0)
    assert search_operator(1.0).dtype == np.float32
    assert search_operator(1.0, regularization=1e-6).dtype == np.float64
    assert search_operator(1e6).dtype == np.float64


def test_operators_that_store_no_distances_are_made_once():
    """A low-rank factor takes as long to make as a fit."""
    made = []

    def build(dtype):
        made.append(dtype)
        return Dense(Linear(), X)

    assert rounded.rounded(build, X.dtype, 1.0, 3).dtype == np.float64
    assert len(made) == 1


def test_products_agree(monkeypatch, rng):
    double = search_operator(10.0)
    monkeypatch.setattr(rounded, "CACHE_BYTES", 0)
    B = rng.normal(size=(len(X), 3, 2))
    np.testing.assert_allclose(search_operator(10.0) @ B, double @ B, atol=1e-3)


# kernels of classes are the mean of two descents that judges stop, and no minimum of the loss
@pytest.mark.parametrize("share, alike", [("tied", 1e-2), ("class", 3e-2)])
def test_the_search_finds_the_same_kernel(share, alike, monkeypatch):
    model = KernelLogisticRegression("rbf", optimize="cv", share=share).fit(X, y)
    monkeypatch.setattr(rounded, "CACHE_BYTES", 0)
    single = KernelLogisticRegression("rbf", optimize="cv", share=share).fit(X, y)
    assert single.cv_log_loss_ == pytest.approx(model.cv_log_loss_, rel=alike)
    assert single.dual_coef_.dtype == np.float64
    assert single.solution_.status == "converged"
