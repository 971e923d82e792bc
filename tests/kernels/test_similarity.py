"""Similarities that are not positive semidefinite: clipped, flipped, shifted, or taken as features."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.kernels import Precomputed
from gramian.kernels.similarity import REPAIRS, Repaired, as_features, clip, flip, shift

FUNCTIONS = {"clip": clip, "flip": flip, "shift": shift}
every_repair = pytest.mark.parametrize("repair", REPAIRS)


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


def test_flip_and_shift_change_eigenvalues_as_they_say():
    S, Q, values = indefinite()
    np.testing.assert_allclose(flip(S), (Q * np.abs(values)) @ Q.T, atol=1e-12)
    np.testing.assert_allclose(shift(S), S + np.eye(6), atol=1e-12)  # the smallest is -1
    positive = clip(S) + 0.1 * np.eye(6)
    for function in FUNCTIONS.values():
        np.testing.assert_allclose(function(positive), positive, atol=1e-12)


@every_repair
def test_repaired_similarities_are_a_kernel(repair):
    S, _, _ = indefinite(n=30)
    matrix = FUNCTIONS[repair](S)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-13
    assert FUNCTIONS[repair](S.astype(np.float32)).dtype == np.float32


def test_flipped_rows_agree_with_training_and_shifted_ones_stay():
    S, _, _ = indefinite()
    matrix, rows = flip(S, new=S[:3])
    np.testing.assert_allclose(rows, matrix[:3], atol=1e-12)
    matrix, rows = shift(S, new=S[:3])
    np.testing.assert_array_equal(rows, S[:3])
    np.testing.assert_allclose(matrix[:3] - rows, np.eye(6)[:3], atol=1e-12)


@every_repair
def test_the_kernel_of_repaired_similarities(repair):
    S, _, _ = indefinite()
    kernel = Repaired.of(S, repair)
    matrix, rows = FUNCTIONS[repair](S, new=S[2:4])
    np.testing.assert_allclose(kernel(S), matrix, atol=1e-14)
    np.testing.assert_allclose(kernel(S[2:4], S), rows, atol=1e-14)
    np.testing.assert_allclose(kernel(S[2:4], S, offset=2), matrix[2:4], atol=1e-13)
    np.testing.assert_allclose(kernel(sp.csr_array(S)), matrix, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(S), np.diagonal(matrix), atol=1e-14)
    np.testing.assert_allclose(kernel.smooth_diag(S), np.diagonal(kernel(S, S)), atol=1e-14)
    assert kernel.is_precomputed
    assert isinstance(kernel, Precomputed)
    assert kernel.theta.size == 0
    assert repr(kernel) == f"Repaired({repair!r})"
    for other in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
        assert other == kernel
        np.testing.assert_array_equal(other(S), kernel(S))
    assert kernel != Repaired.of(2 * S, "shift")


def test_repairs_refused():
    S, _, _ = indefinite()
    with pytest.raises(
        ValueError, match=r"repair must be one of 'clip', 'flip', 'shift'; got 'cut'"
    ):
        Repaired.of(S, "cut")
    with pytest.raises(ValueError, match=r"to the 6 objects .* got 5 columns"):
        Repaired.of(S, "clip")(S[:2, :5], S)


def test_as_features_are_centred_and_scaled():
    S, _, _ = indefinite()
    found = as_features(S)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-14)
    assert np.mean(np.sum(found**2, axis=1)) == pytest.approx(1.0)
    centred = S - S.mean(axis=0)
    np.testing.assert_allclose(found * centred[0, 0], centred * found[0, 0], atol=1e-13)
    np.testing.assert_array_equal(as_features(np.ones((3, 3))), 0)


@pytest.mark.parametrize("function", [clip, flip, shift, as_features])
def test_similarities_refused(function):
    with pytest.raises(ValueError, match=r"S must be square.*\(2, 3\)"):
        function(np.ones((2, 3)))
    with pytest.raises(ValueError, match="S must be finite"):
        function(np.array([[1.0, np.nan], [np.nan, 1.0]]))
    with pytest.raises(TypeError, match="S must hold numbers"):
        function(np.array([["a", "b"], ["c", "d"]]))


@every_repair
def test_new_rows_of_another_length_are_refused(repair):
    with pytest.raises(ValueError, match=r"new must have shape \(n_new, 6\)"):
        FUNCTIONS[repair](indefinite()[0], new=np.ones((2, 5)))
