"""Coefficients by their factors are the array that they stand for."""

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.solvers.contrast.mixed import MixedCoefficients


@pytest.fixture
def parts(rng):
    B = sp.random_array((6, 4), density=0.4, rng=rng, format="csr")
    F = sp.random_array((5, 4), density=0.6, rng=rng, format="csr")
    return MixedCoefficients(B, F), B.toarray() @ F.toarray().T


def test_it_is_the_array(parts, rng):
    c, dense = parts
    assert c.shape == dense.shape
    np.testing.assert_allclose(c.toarray(), dense)
    np.testing.assert_allclose(c.T, dense.T)
    np.testing.assert_allclose(c[[4, 1]], dense[[4, 1]])
    np.testing.assert_allclose(c[2:5], dense[2:5])
    np.testing.assert_allclose(c.sum(axis=0), dense.sum(axis=0))
    rows = np.array([True, False, True, True, False, True])[:, None]
    np.testing.assert_allclose((c * rows).toarray(), dense * rows)
    X = rng.normal(size=(3, 6))
    for left in (X, sp.csr_array(X), np.asfortranarray(X)):
        np.testing.assert_allclose(left @ c, X @ dense)


def test_examples_without_coefficients_are_known():
    B = sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]]))
    c = MixedCoefficients(B, sp.eye_array(2, format="csr"))
    np.testing.assert_array_equal(c.any(axis=1), [True, False, True])


def test_other_axes_are_refused(parts):
    with pytest.raises(ValueError, match="axis must be 0"):
        parts[0].sum(axis=1)
    with pytest.raises(ValueError, match="axis must be 1"):
        parts[0].any(axis=0)
