"""A Gram matrix that is stored.

Product: one matrix product, ``2 n² k`` flops for k right-hand sides; memory-bound for few (``n²``
values are read once), which go to `skinny_product`. Built by tiles of its lower half, so that
building needs no second matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from gramian._core.arrays import Array, is_numpy, itemsize, namespace, row_blocks
from gramian._core.threads import single_threaded_blas
from gramian.kernels import Kernel
from gramian.operators import costs
from gramian.operators.base import KernelOperator
from gramian.operators.compiled.skinny import is_skinny, skinny_product
from gramian.operators.inputs.distances import Distances
from gramian.operators.inputs.tiles import TILE_BYTES, stored

# Multiply-adds below which threads gain less than a tenth of a millisecond. Where another process has one of the cores,
# waiting for it takes tens of times as long: 6.5 ms instead of 0.2 at n = 250 and 55 columns.
SMALL_PRODUCT = 5_000_000


class Dense(KernelOperator):
    """The symmetric matrix ``k(X, X)``, stored.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse array of shape (n_samples, n_features)
    distances : Distances, default=None
        Distances of the rows of X, which isotropic kernels then use; copies with other parameters
        share them.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> from gramian.operators import Dense
    >>> Dense(Linear(), np.array([[1.0], [2.0]])) @ np.ones((2, 1))
    array([[3.],
           [6.]])
    """

    def __init__(self, kernel: Kernel, X: Array, distances: Distances | None = None):
        super().__init__(kernel, X)
        self.distances = distances if distances and distances.serves(kernel) else None
        if self.distances is not None:
            self.dtype = self.distances.dtype

    @cached_property
    def matrix(self) -> Array:
        """The matrix, computed when it is first asked for: a search begins with operators that are never used."""
        if self.kernel.is_precomputed:
            return self.kernel(self.X)
        if self.distances is not None:
            return self.distances.gram(self.kernel)
        return stored(self.kernel, self.X)

    def _matmul(self, B: Array) -> Array:
        if self._is_skinny(B):
            return skinny_product(self.matrix, B)
        if is_numpy(self.matrix) and self.matrix.size * B.shape[1] < SMALL_PRODUCT:
            with single_threaded_blas():
                return self.matrix @ B
        return self.matrix @ B

    def _accurate(self, B: Array) -> Array:
        # without a copy in double precision, and without waking BLAS between compiled products
        return skinny_product(self.matrix, B) if self._is_skinny(B) else super()._accurate(B)

    def _is_skinny(self, B: Array) -> bool:
        return is_numpy(self.matrix) and is_numpy(B) and is_skinny(self.matrix, B)

    def _tiles(self) -> Iterator[Array]:
        for rows in row_blocks(self.shape[0], 8 * self.shape[1], TILE_BYTES):
            yield self.matrix[rows, :]

    def to_dense(self) -> Array:
        return self.matrix

    def _diagonal(self) -> Array:
        return namespace(self.matrix).linalg.diagonal(self.matrix)

    column_work = costs.READ_FLOPS

    def columns(self, indices: np.ndarray) -> Array | None:
        # rows of a symmetric matrix are contiguous
        return self.matrix[indices, :].T if is_numpy(self.matrix) else None

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        if self.distances is not None:
            return self.distances.vjp(self.kernel, self.matrix, E, F)
        return super().vjp(E, F)

    def _with_kernel(self, kernel: Kernel) -> Dense:
        return Dense(kernel, self.X, self.distances)

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.shape[1] * itemsize(self)
