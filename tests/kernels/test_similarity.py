"""Similarities that are not positive semidefinite: clipped, or taken as features."""

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.kernels.similarity import as_features, clip


def indefinite(n=6, seed=0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.linspace(-1.0, 3.0, n)
    return (Q * values) @ Q.T, Q, values


def test_clip_keeps_positive_eigenvalues():
    S, Q, values = indefinite()
    expected = (Q * np.clip(values, 0, None)) @ Q.T
    found = clip(S)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(clip(found), found, atol=1e-12)


def test_clip_is_the_nearest():
    S, _, _ = indefinite()
    distance = np.linalg.norm(clip(S) - S)
    rng = np.random.default_rng(1)
    for _ in range(50):
        F = rng.normal(size=(6, 6))
        other = clip(S) + 0.05 * F @ F.T
        assert np.linalg.norm(other - S) > distance


def test_clip_of_new_rows_agrees_with_the_old_ones():
    S, _, _ = indefinite()
    clipped, rows = clip(S, new=S[:3])
    np.testing.assert_allclose(rows, clipped[:3], atol=1e-12)


def test_clip_uses_the_symmetric_part_and_keeps_single_precision():
    S, _, _ = indefinite()
    lopsided = S + np.triu(np.ones((6, 6)), 1) - np.tril(np.ones((6, 6)), -1)
    np.testing.assert_allclose(clip(lopsided), clip(S), atol=1e-12)
    assert clip(S.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(clip(sp.csr_array(S)), clip(S), atol=1e-12)
    np.testing.assert_allclose(clip([[1, 2], [2, 1]]), 1.5, rtol=1e-14)


def test_as_features_are_centred_and_scaled():
    S, _, _ = indefinite()
    found = as_features(S)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-14)
    assert np.mean(np.sum(found**2, axis=1)) == pytest.approx(1.0)
    centred = S - S.mean(axis=0)
    np.testing.assert_allclose(found * centred[0, 0], centred * found[0, 0], atol=1e-13)
    np.testing.assert_array_equal(as_features(np.ones((3, 3))), 0)


@pytest.mark.parametrize("function", [clip, as_features])
def test_similarities_refused(function):
    with pytest.raises(ValueError, match=r"S must be square.*\(2, 3\)"):
        function(np.ones((2, 3)))
    with pytest.raises(ValueError, match="S must be finite"):
        function(np.array([[1.0, np.nan], [np.nan, 1.0]]))
    with pytest.raises(TypeError, match="S must hold numbers"):
        function(np.array([["a", "b"], ["c", "d"]]))


def test_clip_refuses_new_rows_of_another_length():
    with pytest.raises(ValueError, match=r"new must have shape \(n_new, 6\)"):
        clip(indefinite()[0], new=np.ones((2, 5)))
