"""Tiles of a Gram matrix: a few rows at a time, within a memory budget.

The rows a tile may hold follow from its bytes, so no size of problem runs out of memory; it only
takes longer.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from gramian._arrays import Array, itemsize, namespace, row_blocks
from gramian.kernels import Kernel

# A tile and the temporaries of a kernel evaluation (about four of its size) stay near the cache and below
# the 64 MiB that one product may take on top of its input and output.
TILE_BYTES = 8 * 2**20


def tile_slices(X: Array, Z: Array) -> list[slice]:
    """Row blocks of X so that a tile X_block × Z has at most `TILE_BYTES`."""
    return row_blocks(X.shape[0], Z.shape[0] * itemsize(X), TILE_BYTES)


def tiles(kernel: Kernel, X: Array, Z: Array | None):
    """Yield ``(rows, kernel values)``; Z=None is the symmetric matrix of X."""
    other = X if Z is None else Z
    for rows in tile_slices(X, other):
        yield rows, kernel(X[rows, :], other, offset=rows.start if Z is None else None)


def tiled_product(kernel: Kernel, X: Array, Z: Array | None, B: Array) -> Array:
    """Return ``k(X, Z) B`` without ever holding more than a tile."""
    xp = namespace(B)
    pieces = [values @ B for _, values in tiles(kernel, X, Z)]
    return xp.concat(pieces, axis=0) if pieces else xp.zeros((0, B.shape[1]), dtype=B.dtype)


def tiled_vjp(kernel: Kernel, X: Array, Z: Array | None, E: Array, F: Array) -> np.ndarray:
    """Return the gradient of ``⟨E, k(X, Z) F⟩`` in the kernel's log-parameters, tile by tile."""
    gradient = np.zeros(kernel.theta.size)
    if not gradient.size:
        return gradient
    xp = namespace(E, F)
    E = xp.reshape(E, (E.shape[0], -1))
    F = xp.reshape(F, (F.shape[0], -1))
    other = X if Z is None else Z
    for rows in tile_slices(X, other):
        weights = E[rows, :] @ F.T
        offset = rows.start if Z is None else None
        gradient += kernel.vjp(X[rows, :], other, weights, offset=offset)
    return gradient


def stored(kernel: Kernel, X: Array) -> Array:
    """Return the symmetric matrix ``k(X, X)``; NumPy computes its lower half by tiles and mirrors it."""
    if not isinstance(X, np.ndarray) and not sp.issparse(X):
        return kernel(X)
    K = np.empty((X.shape[0], X.shape[0]), dtype=X.dtype)
    for rows in tile_slices(X, X):
        K[rows, : rows.stop] = kernel(X[rows, :], X[: rows.stop, :], offset=rows.start)
        K[: rows.start, rows] = K[rows, : rows.start].T
    return K
