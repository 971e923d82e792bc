"""Distances kept between evaluations: learning length scales needs the same ones again and again.

Formula
    Gram matrix ``K_ij = φ(D_ij / ℓ^p)``, and for learning ``Σ_ij ⟨E_i, F_j⟩ dK_ij / dlog ℓ``, from stored
    D of shape (n, n): squared distances with p = 2, or Manhattan distances with p = 1.

Method
    Both are one pass of compiled code over D (and K), parallel over rows. For ``φ(t) = exp(−t / p)``, the RBF and the
    Laplacian kernel, the derivative is ``K D / ℓ^p``. For Matérn kernels, ``(1 + c₁a + c₂a²) exp(−a)`` with
    ``a = √(2ν D) / ℓ``, it is ``K a (1 − c₁ + (c₁ − 2c₂) a + c₂a²) / (1 + c₁a + c₂a²)``, which needs no exponential.
    Other isotropic kernels go through their own profiles, tile by tile.

Cost
    n² exponentials instead of n² d multiply-adds and n² exponentials; the derivative costs about as much as a product
    with as many columns as E has.

Floor
    Memory: D is read and K written, 2 n² values. Milliseconds for n = 4435 in float32 on two cores: 13 (the floor is 4
    at 42 GB/s), where evaluating the kernel of 36 features anew takes 63.
"""

from __future__ import annotations

import math
import weakref
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit

from gramian._core.arrays import Array, row_blocks
from gramian._core.threads import share
from gramian.kernels import Kernel
from gramian.kernels.manhattan import manhattan_distances
from gramian.kernels.stationary import scaled, squared_distances
from gramian.operators.compiled.radial import PROFILES
from gramian.operators.compiled.radial_loops import FLAGS, Profile, exp2
from gramian.operators.inputs.tiles import TILE_BYTES

_LN_2 = math.log(2)


class Distances:
    """Distances of all pairs of rows, computed when first asked for.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    dtype : dtype, default=None
        In which distances are stored, after they were computed in that of X; None is that of X.
    metric : {"squared", "manhattan"}, default="squared"
        Squared Euclidean distances, or Manhattan distances.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.operators.inputs.distances import Distances
    >>> distances = Distances(np.array([[0.0], [2.0]]))
    >>> distances.gram(RBF(2.0)).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    def __init__(self, X: np.ndarray, dtype: Any = None, metric: str = "squared"):
        self.X, self.metric = X, metric
        self.dtype = np.dtype(X.dtype if dtype is None else dtype)
        self._spare: list[np.ndarray] = []

    @cached_property
    def matrix(self) -> np.ndarray:
        """D, of shape (n_samples, n_samples)."""
        X, _ = scaled(self.X, self.X, 1.0)
        D = np.empty((X.shape[0], X.shape[0]), self.dtype)
        for rows in row_blocks(X.shape[0], X.shape[0] * X.itemsize, TILE_BYTES):
            D[rows, : rows.stop] = self._between(X[rows], X[: rows.stop])
            D[: rows.start, rows] = D[rows, : rows.start].T
        return D

    def _between(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        if self.metric == "manhattan":
            return manhattan_distances(X, Z)
        # what is below the rounding error is zero: the square root of a Matérn kernel would magnify it
        return squared_distances(X, Z, rooted=True)

    def serves(self, kernel: Kernel) -> bool:
        """Whether a kernel is a function of these distances."""
        return kernel.is_isotropic and kernel.metric == self.metric

    def gram(self, kernel: Kernel) -> np.ndarray:
        """The matrix of a kernel that these distances serve."""
        D, unit, K = self.matrix, self._unit(kernel), self._array()
        if kernel.rate is not None:
            # NumPy touches the new pages: by several threads at once that takes many times as long
            np.multiply(D, D.dtype.type(-kernel.rate / _LN_2 / unit), out=K)
            share(_exp2_in_place, len(K), K)
            return K
        if (matern := _matern(kernel)) is not None:
            np.multiply(D, D.dtype.type(matern.gain / unit), out=K)
            share(_matern_in_place, len(K), K, matern.linear, matern.square)
            return K
        for rows in self._rows():
            K[rows] = kernel.radial(D[rows] / D.dtype.type(unit))
        return K

    def _array(self) -> np.ndarray:
        """An array for a Gram matrix: that of one which nobody holds any more, or a new one.

        The pages of a new array are slow to touch, and an evaluation after the other would ask for new ones.
        """
        whole = self._spare.pop() if self._spare else np.empty_like(self.matrix)
        lent = np.asarray(whole.data)  # views of a plain view would not keep it alive
        weakref.finalize(lent, self._spare.append, whole)
        return lent

    def vjp(self, kernel: Kernel, K: np.ndarray, E: Array, F: Array) -> np.ndarray:
        """Gradient of ``⟨E, K F⟩`` in the kernel's log-parameters; K is its matrix."""
        E, F = (np.asarray(part.reshape(len(part), -1), K.dtype) for part in (E, F))
        D, unit = self.matrix, self._unit(kernel)
        matern = _matern(kernel)
        if kernel.rate is not None or matern is not None:
            if not kernel.theta.size:
                return np.empty(0)
            sums = np.empty(len(K))
            arrays = D, K, np.ascontiguousarray(E), np.ascontiguousarray(F.T), sums
            if matern is None:
                share(_exponential_slopes, len(K), *arrays)
                return np.array([sums.sum() / unit])
            gain, linear, square = (
                matern.gain * _LN_2**2,
                matern.linear / _LN_2,
                matern.square / _LN_2**2,
            )
            share(_matern_slopes, len(K), *arrays, (gain / unit, linear, square))
            return np.array([sums.sum()])
        gradient = np.zeros(kernel.theta.size)
        for rows in self._rows():
            gradient += kernel.radial_vjp(D[rows] / D.dtype.type(unit), E[rows] @ F.T)
        return gradient

    def _unit(self, kernel: Kernel) -> float:
        """ℓ^p, within what distances can be divided by: beyond, nothing changes any more."""
        limits = np.finfo(self.matrix.dtype)
        low, high = float(limits.tiny) ** 0.49, float(limits.max) ** 0.49
        scale = min(max(float(kernel.length_scale), low), high)
        return scale**2 if self.metric == "squared" else scale

    def _rows(self) -> list[slice]:
        return row_blocks(len(self.X), len(self.X) * self.X.itemsize, TILE_BYTES)


def _matern(kernel: Kernel) -> Profile | None:
    """The compiled profile of a Matérn kernel; None for others."""
    profile = None if kernel.profile is None else PROFILES[kernel.profile]
    return profile if profile is not None and profile.rooted else None


@njit(cache=True, nogil=True, fastmath=FLAGS)
def _exp2_in_place(first, last, K):
    for i in range(first, last):
        row = K[i]
        for j in range(row.size):
            row[j] = exp2(row[j])


@njit(cache=True, nogil=True, fastmath=FLAGS)
def _matern_in_place(first, last, K, linear, square):
    """From ``t²`` to ``(1 + t (linear + t square)) 2^(−t)``."""
    one, linear, square = K.dtype.type(1), K.dtype.type(linear), K.dtype.type(square)
    for i in range(first, last):
        row = K[i]
        for j in range(row.size):
            t = np.sqrt(row[j])
            row[j] = (one + t * (linear + t * square)) * exp2(-t)


@njit(cache=True, nogil=True, fastmath=FLAGS)
def _set_weights(E, F, i, weights):
    """weights[j] = ⟨E_i, F_j⟩; F is transposed."""
    for j in range(weights.size):
        weights[j] = 0
    for k in range(E.shape[1]):
        e, column = E[i, k], F[k]
        for j in range(weights.size):
            weights[j] += e * column[j]


@njit(cache=True, nogil=True, fastmath=FLAGS)
def _matern_slopes(first, last, D, K, E, F, sums, profile):
    """sums[i] = Σ_j ⟨E_i, F_j⟩ dK_ij / dlog ℓ, with a = √(gain D) and profile = gain, c₁, c₂; F is transposed."""
    kind = D.dtype.type
    gain, linear, square = profile
    gain, c, b = kind(gain), kind(linear), kind(square)
    one, rest, middle = kind(1), kind(1 - linear), kind(linear - 2 * square)
    weights = np.empty(D.shape[1], D.dtype)
    for i in range(first, last):
        _set_weights(E, F, i, weights)
        d, values = D[i], K[i]
        total = 0.0
        for start in range(0, weights.size, 512):
            stop = min(weights.size, start + 512)
            part = kind(0)
            for j in range(start, stop):
                a = np.sqrt(gain * d[j])
                slope = a * (rest + a * (middle + a * b)) / (one + a * (c + a * b))
                part += weights[j] * slope * values[j]
            total += part
        sums[i] = total


@njit(cache=True, nogil=True, fastmath=FLAGS)
def _exponential_slopes(first, last, D, K, E, F, sums):
    """sums[i] = Σ_j ⟨E_i, F_j⟩ K_ij D_ij; F is transposed."""
    weights = np.empty(D.shape[1], D.dtype)
    for i in range(first, last):
        _set_weights(E, F, i, weights)
        d, values = D[i], K[i]
        total = 0.0
        # single precision within a stretch, double across
        for start in range(0, weights.size, 512):
            stop = min(weights.size, start + 512)
            part = D.dtype.type(0)
            for j in range(start, stop):
                part += weights[j] * d[j] * values[j]
            total += part
        sums[i] = total
