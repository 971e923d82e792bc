"""Tiles of a Gram matrix: a few rows at a time, within a memory budget.

The rows a tile may hold follow from its bytes, so no size of problem runs out of memory; it only
takes longer. Kernels make scaled copies of their examples: wide arrays are passed to them by panels of
rows, so that a memory-mapped file is never copied as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import BLOCK_BYTES, Array, itemsize, namespace, row_blocks
from gramian.kernels import Kernel

# A tile and the temporaries of a kernel evaluation (about four of its size) stay near the cache and below
# the 64 MiB that one product may take on top of its input and output.
TILE_BYTES = BLOCK_BYTES


def tile_slices(X: Array, Z: Array) -> list[slice]:
    """Row blocks of X so that neither they nor a tile X_block × Z have more than `TILE_BYTES`."""
    longest = max(Z.shape[0], X.shape[1]) if isinstance(X, np.ndarray) else Z.shape[0]
    return row_blocks(X.shape[0], longest * itemsize(X), TILE_BYTES)


def _panels(Z: Array, offset: int | None) -> Iterator[tuple[slice, Array, int | None]]:
    """Yield row blocks of Z that kernels may copy, with their places and the offset of the same examples."""
    blocks = [slice(0, Z.shape[0])]
    if isinstance(Z, np.ndarray):
        blocks = row_blocks(Z.shape[0], Z.shape[1] * itemsize(Z), TILE_BYTES)
    if len(blocks) <= 1:
        yield slice(0, Z.shape[0]), Z, offset
        return
    for rows in blocks:
        yield rows, Z[rows], None if offset is None else offset - rows.start


def kernel_rows(kernel: Kernel, X: Array, Z: Array, offset: int | None = None) -> Array:
    """Return ``k(X, Z)`` for few rows X; a NumPy Z is not copied as a whole."""
    pieces = [kernel(X, panel, offset=shifted) for _, panel, shifted in _panels(Z, offset)]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)


def tiles(kernel: Kernel, X: Array, Z: Array | None):
    """Yield ``(rows, kernel values)``; Z=None is the symmetric matrix of X."""
    other = X if Z is None else Z
    for rows in tile_slices(X, other):
        yield rows, kernel_rows(kernel, X[rows, :], other, rows.start if Z is None else None)


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
        for columns, panel, shifted in _panels(other, offset):
            gradient += kernel.vjp(X[rows, :], panel, weights[:, columns], offset=shifted)
    return gradient


def stored(kernel: Kernel, X: Array) -> Array:
    """Return the symmetric matrix ``k(X, X)``; NumPy computes its lower half by tiles and mirrors it."""
    if not isinstance(X, np.ndarray) and not sp.issparse(X):
        return kernel(X)
    K = np.empty((X.shape[0], X.shape[0]), dtype=X.dtype)
    for rows in tile_slices(X, X):
        K[rows, : rows.stop] = kernel_rows(kernel, X[rows, :], X[: rows.stop, :], rows.start)
        K[: rows.start, rows] = K[rows, : rows.start].T
    return K
