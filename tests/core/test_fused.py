"""Compiled updates of long vectors are the plain expressions."""

import numba
import numpy as np
import pytest

from gramian._core import fused as _fused


@pytest.mark.parametrize(
    "limits", [(10**9, 10**9), (1, 10**9), (1, 1)], ids=["plain", "serial", "parallel"]
)
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.usefixtures("all_threads")
def test_updates(limits, columns, dtype, rng, monkeypatch):
    monkeypatch.setattr(_fused, "COMPILED_ENTRIES", limits[0])
    monkeypatch.setattr(_fused, "PARALLEL_ENTRIES", limits[1])
    x, y, z = (rng.normal(size=(40, 7, columns)).astype(dtype) for _ in range(3))
    a = rng.normal(size=(1, 1, columns)).astype(dtype)
    tight = {
        "rtol": 1e-4 if dtype == np.float32 else 1e-12,
        "atol": 1e-5 if dtype == np.float32 else 1e-13,
    }
    np.testing.assert_allclose(_fused.add_scaled(y.copy(), a, x), y + a * x, **tight)
    np.testing.assert_allclose(_fused.scale_and_add(y.copy(), a, x), x + a * y, **tight)
    expected = z * (x - (y * x).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(_fused.centred(z, y, x), expected, **tight)
    products = _fused.inner(x, y)
    assert products.dtype == np.float64
    np.testing.assert_allclose(products, (x * y).sum(axis=(0, 1)), **tight)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exponentials_of_classes(compiled, dtype, rng, monkeypatch):
    """Shifted by the largest class, so that nothing overflows; NaN and infinity are passed on."""
    monkeypatch.setattr(_fused, "COMPILED_ENTRIES", 1 if compiled else 10**9)
    U = (1e4 * rng.normal(size=(30, 5, 2))).astype(dtype)
    E, highest, sums = _fused.exponentials(U)
    np.testing.assert_array_equal(highest, U.max(axis=1, keepdims=True))
    np.testing.assert_allclose(E, np.exp(U - highest), rtol=1e-6)
    np.testing.assert_allclose(sums, E.sum(axis=1, keepdims=True), rtol=1e-6)
    shares = _fused.divided(E.copy(), sums)
    np.testing.assert_allclose(shares, E / sums, rtol=1e-6)
    U[3, 2, 1] = np.nan
    assert np.isnan(_fused.exponentials(U)[2][3, 0, 1])


def test_in_place_only_if_compiled(rng):
    """Small arrays are left alone, views that are not contiguous too."""
    y, x = rng.normal(size=(2, 40, 7, 1))
    before = y.copy()
    _fused.add_scaled(y, np.ones((1, 1, 1)), x)
    np.testing.assert_array_equal(y, before)


def test_the_number_of_threads_changes_nothing(rng, monkeypatch, one_thread):
    monkeypatch.setattr(_fused, "COMPILED_ENTRIES", 1)
    monkeypatch.setattr(_fused, "PARALLEL_ENTRIES", 1)
    x, y = rng.normal(size=(2, 5000, 7, 2))
    alone = _fused.inner(x, y)
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    np.testing.assert_array_equal(_fused.inner(x, y), alone)
