"""Updates of long vectors without temporary arrays.

An array of latent values may have tens of millions of entries (documents × classes). Memory traffic limits what is
done to it, and ``y + a * x`` of NumPy moves every number twice, on one core. The functions here return the result
and may overwrite their first argument to hold it: for NumPy arrays of some size they do so in one compiled pass, beyond
`PARALLEL_ENTRIES` on all cores; for others they are the plain expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from gramian._core.arrays import Array, is_numpy, namespace
from gramian._core.threads import side_by_side

# With fewer entries, plain expressions take a few microseconds. NumPy is slow in sums over all axes but a short last
# one: an inner product of 250 x 11 x 5 entries takes 36 microseconds, compiled 12.
COMPILED_ENTRIES = 2**12
PARALLEL_ENTRIES = 2**20  # with fewer entries, threads cost more than they gain
PARTS = 64  # that long arrays are cut into, for threads to share


def add_scaled(y: Array, a: Array, x: Array) -> Array:
    """``y + a x`` with one number of a for each trailing column; may overwrite y.

    Parameters
    ----------
    y, x : array of shape (n, C, q)
    a : array of shape (1, 1, q)
    """
    if not _compiles(y, x):
        return y + a * x
    return _updated(_add_multiple if a.size == 1 else _add_multiples, y, a, x)


def scale_and_add(p: Array, b: Array, r: Array) -> Array:
    """``r + b p`` with one number of b for each trailing column; may overwrite p.

    Parameters
    ----------
    p, r : array of shape (n, C, q)
    b : array of shape (1, 1, q)
    """
    if not _compiles(p, r):
        return r + b * p
    return _updated(_multiply_and_add if b.size == 1 else _multiply_columns_and_add, p, b, r)


def inner(x: Array, y: Array) -> Array:
    """Inner product over axes 0 and 1, accumulated in float64; one value per trailing column."""
    if x.ndim == 3 and _compiles(x, y):
        if x.shape[2] == 1:
            return np.array([sum(by_rows(_inner, (x.reshape(-1), y.reshape(-1))))])
        return np.sum(by_rows(_inner_of_columns, (_flat(x), _flat(y))), axis=0)
    xp = namespace(x, y)
    return xp.sum(x * y, axis=(0, 1), dtype=xp.float64)


def centred(D: Array, P: Array, V: Array) -> Array:
    """``D ∘ (V − Σ_c P_c V_c)``, the curvature of the softmax loss.

    Parameters
    ----------
    D, P, V : array of shape (n, C) or (n, C, q)
    """
    # the pages of a large new array are best touched by NumPy, on one core
    if V.ndim == 3 and _compiles(V, P) and _compiles(V, D) and V.size < PARALLEL_ENTRIES:
        out = np.empty_like(V)
        _centred(D, P, V, out)
        return out
    mean = namespace(V).sum(P * V, axis=1, keepdims=True)
    return D * (V - mean)


def exponentials(U: Array) -> tuple[Array, Array, Array]:
    """``exp(u_c − max_c u_c)`` along axis 1, the maximum, and the sum; the last two keep the axis.

    Parameters
    ----------
    U : array of shape (n, C) or (n, C, q)
    """
    xp = namespace(U)
    if U.ndim == 3 and _compiles(U, U) and U.size < PARALLEL_ENTRIES:
        E = np.empty_like(U)
        highest, sums = np.empty((2, U.shape[0], 1, U.shape[2]), U.dtype)
        _less_highest(U, E, highest)
        np.exp(E, out=E)  # vectorised, unlike that of a compiled loop
        _class_sums(E, sums)
        return E, highest, sums
    highest = xp.max(U, axis=1, keepdims=True)
    E = xp.exp(U - highest)
    return E, highest, xp.sum(E, axis=1, keepdims=True)


def divided(E: Array, sums: Array) -> Array:
    """``E / sums`` with one number of sums for all classes of axis 1; may overwrite E.

    Parameters
    ----------
    E : array of shape (n, C) or (n, C, q)
    sums : array of shape (n, 1) or (n, 1, q)
    """
    if E.ndim == 3 and _compiles(E, E) and E.size < PARALLEL_ENTRIES:
        _divide(E, sums)
        return E
    return E / sums


def _compiles(x: Array, y: Array) -> bool:
    if not (is_numpy(x) and is_numpy(y) and x.size >= COMPILED_ENTRIES and x.shape == y.shape):
        return False
    return x.flags.c_contiguous and y.flags.c_contiguous


def _updated(loop: Any, y: np.ndarray, a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Call a loop over entries, or over rows and columns if there are several; short loops compile in half the time."""
    shape = (-1,) if a.size == 1 else (-1, a.size)
    by_rows(loop, (y.reshape(shape), x.reshape(shape)), a.reshape(-1))
    return y


def _inner_of_columns(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    sums = np.zeros(x.shape[1])  # made here, because compiled loops that make arrays compile longer
    _add_inner_of_columns(x, y, sums)
    return sums


def by_rows(loop: Any, arrays: Sequence[np.ndarray], *others: np.ndarray) -> list[Any]:
    """Call a compiled loop with all rows of arrays, or with groups of them side by side if they are long.

    ``loop(*rows, *others)`` gets slices of the ``arrays`` and releases the GIL. The number of groups, and with it the
    rounding of what is summed within them, does not depend on the number of threads. Return what the calls return.
    """
    if arrays[0].size < PARALLEL_ENTRIES:
        return [loop(*arrays, *others)]
    ends = np.linspace(0, len(arrays[0]), PARTS + 1).astype(int).tolist()

    def task(part: int) -> Any:
        return loop(*(array[ends[part] : ends[part + 1]] for array in arrays), *others)

    return side_by_side(task, PARTS)


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, x.shape[-1])


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_multiple(y, x, a):
    for i in range(y.size):
        y[i] += a[0] * x[i]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_multiples(y, x, a):
    for i in range(y.shape[0]):
        for k in range(a.size):
            y[i, k] += a[k] * x[i, k]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _multiply_and_add(p, r, b):
    for i in range(p.size):
        p[i] = r[i] + b[0] * p[i]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _multiply_columns_and_add(p, r, b):
    for i in range(p.shape[0]):
        for k in range(b.size):
            p[i, k] = r[i, k] + b[k] * p[i, k]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _inner(x, y):
    total = 0.0
    for i in range(x.size):
        total += np.float64(x[i]) * np.float64(y[i])
    return total


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _add_inner_of_columns(x, y, sums):
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            sums[k] += np.float64(x[i, k]) * np.float64(y[i, k])


@njit(cache=True, fastmath={"contract", "reassoc"})
def _centred(D, P, V, out):
    for i in range(V.shape[0]):
        for k in range(V.shape[2]):
            mean = V.dtype.type(0)
            for c in range(V.shape[1]):
                mean += P[i, c, k] * V[i, c, k]
            for c in range(V.shape[1]):
                out[i, c, k] = D[i, c, k] * (V[i, c, k] - mean)


@njit(cache=True, fastmath={"contract"})
def _less_highest(U, E, highest):
    for i in range(U.shape[0]):
        for k in range(U.shape[2]):
            high = U[i, 0, k]
            for c in range(1, U.shape[1]):
                if not U[i, c, k] <= high:  # NaN is passed on
                    high = U[i, c, k]
            highest[i, 0, k] = high
            for c in range(U.shape[1]):
                E[i, c, k] = U[i, c, k] - high


@njit(cache=True, fastmath={"contract"})
def _class_sums(E, sums):
    for i in range(E.shape[0]):
        for k in range(E.shape[2]):
            total = E.dtype.type(0)
            for c in range(E.shape[1]):
                total += E[i, c, k]
            sums[i, 0, k] = total


@njit(cache=True, fastmath={"contract"})
def _divide(E, sums):
    for i in range(E.shape[0]):
        for c in range(E.shape[1]):
            for k in range(E.shape[2]):
                E[i, c, k] /= sums[i, 0, k]
