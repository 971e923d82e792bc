"""Updates of long vectors without temporary arrays.

An array of latent values may have tens of millions of entries (documents × classes). Memory traffic limits what is
done to it, and ``y + a * x`` of NumPy moves every number twice, on one core. The functions here return the result
and may overwrite their first argument to hold it: for NumPy arrays of some size they do so in one compiled pass, beyond
`LARGE` on all cores; for others they are the plain expressions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from gramian._core.arrays import Array, is_numpy, namespace
from gramian._core.threads import exclusive

__all__ = ["add_scaled", "centred", "inner", "scale_and_add"]

SMALL = 2**15  # entries; below that, the plain expressions take microseconds
LARGE = 2**20  # entries; below that, threads cost more than they gain
_CHUNKS = 64


def add_scaled(y: Array, a: Array, x: Array) -> Array:
    """``y + a x`` with one number of a for each trailing column; may overwrite y.

    Parameters
    ----------
    y, x : array of shape (n, C, q)
    a : array of shape (1, 1, q)
    """
    if _compiles(y, x):
        _run(_add_scaled, y.size, _flat(y), a.reshape(-1), _flat(x))
        return y
    return y + a * x


def scale_and_add(p: Array, b: Array, r: Array) -> Array:
    """``r + b p`` with one number of b for each trailing column; may overwrite p.

    Parameters
    ----------
    p, r : array of shape (n, C, q)
    b : array of shape (1, 1, q)
    """
    if _compiles(p, r):
        _run(_scale_and_add, p.size, _flat(p), b.reshape(-1), _flat(r))
        return p
    return r + b * p


def inner(x: Array, y: Array) -> Array:
    """Inner product over axes 0 and 1, accumulated in float64; one value per trailing column."""
    if x.ndim == 3 and _compiles(x, y):
        return _run(_inner, x.size, _flat(x), _flat(y)).sum(axis=0)
    xp = namespace(x, y)
    return xp.sum(x * y, axis=(0, 1), dtype=xp.float64)


def centred(D: Array, P: Array, V: Array) -> Array:
    """``D ∘ (V − Σ_c P_c V_c)``, the curvature of the softmax loss.

    Parameters
    ----------
    D, P, V : array of shape (n, C) or (n, C, q)
    """
    # the pages of a large new array are best touched by NumPy, on one core
    if V.ndim == 3 and _compiles(V, P) and _compiles(V, D) and V.size < LARGE:
        out = np.empty_like(V)
        _centred(D, P, V, out)
        return out
    mean = namespace(V).sum(P * V, axis=1, keepdims=True)
    return D * (V - mean)


def _compiles(x: Array, y: Array) -> bool:
    return (
        is_numpy(x)
        and is_numpy(y)
        and x.size >= SMALL
        and x.shape == y.shape
        and x.flags.c_contiguous
        and y.flags.c_contiguous
    )


def _run(loops: Any, size: int, *arguments: np.ndarray) -> Any:
    """Call the serial or the parallel version of a loop."""
    serial, parallel = loops
    if size < LARGE:
        return serial(*arguments)
    with exclusive():
        return parallel(*arguments)


def _both(**options: Any):
    """Compile a loop twice: for one core and for all."""

    def compiled(function):
        return njit(cache=True, **options)(function), njit(cache=True, parallel=True, **options)(
            function
        )

    return compiled


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, x.shape[-1])


@_both(fastmath={"contract"})
def _add_scaled(y, a, x):
    if a.size == 1:
        u, v, b = y.reshape(-1), x.reshape(-1), a[0]
        for i in prange(u.size):
            u[i] += b * v[i]
    else:
        for i in prange(y.shape[0]):
            for k in range(a.size):
                y[i, k] += a[k] * x[i, k]


@_both(fastmath={"contract"})
def _scale_and_add(p, b, r):
    if b.size == 1:
        u, v, c = p.reshape(-1), r.reshape(-1), b[0]
        for i in prange(u.size):
            u[i] = v[i] + c * u[i]
    else:
        for i in prange(p.shape[0]):
            for k in range(b.size):
                p[i, k] = r[i, k] + b[k] * p[i, k]


@njit(cache=True, fastmath={"contract", "reassoc"})
def _centred(D, P, V, out):
    for i in range(V.shape[0]):
        d, p, v, row = D[i], P[i], V[i], out[i]
        for k in range(v.shape[1]):
            mean = v.dtype.type(0)
            for c in range(v.shape[0]):
                mean += p[c, k] * v[c, k]
            for c in range(v.shape[0]):
                row[c, k] = d[c, k] * (v[c, k] - mean)


@_both(fastmath={"contract", "reassoc"})
def _inner(x, y):
    """Sums of chunks of a fixed number, so that the result does not depend on the threads."""
    sums = np.zeros((_CHUNKS, x.shape[1]))
    size = (x.shape[0] + _CHUNKS - 1) // _CHUNKS
    for chunk in prange(_CHUNKS):
        lo, hi = chunk * size, min(x.shape[0], (chunk + 1) * size)
        if x.shape[1] == 1:
            u, v = x[lo:hi].reshape(-1), y[lo:hi].reshape(-1)
            total = 0.0
            for i in range(u.size):
                total += np.float64(u[i]) * np.float64(v[i])
            sums[chunk, 0] = total
        else:
            for i in range(lo, hi):
                for k in range(x.shape[1]):
                    sums[chunk, k] += np.float64(x[i, k]) * np.float64(y[i, k])
    return sums
