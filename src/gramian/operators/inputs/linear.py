"""A linear kernel through its features: ``v X (Zᵀ B)``, never an n × n matrix.

Product: ``4 nnz k`` flops. Sparse features are kept twice, by rows and by columns, so that both
halves of the product run in parallel without write conflicts (SciPy's product uses one thread).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array, float_sum, is_numpy, namespace, row_blocks
from gramian.kernels import Kernel
from gramian.operators import costs
from gramian.operators.base import KernelOperator
from gramian.operators.compiled.skinny import skinny_product
from gramian.operators.compiled.sparse import gram_dot, sparse_dot
from gramian.operators.inputs.tiles import TILE_BYTES


class LinearFeatures(KernelOperator):
    """The matrix ``v X Zᵀ`` of a linear kernel, through its features.

    Parameters
    ----------
    kernel : Kernel
        ``Linear()``, or constants times it.
    X : array or sparse array of shape (n_samples, n_features)
    Z : array or sparse array of shape (m_samples, n_features), default=None
        None means X itself.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> from gramian.operators import LinearFeatures
    >>> LinearFeatures(Linear(), np.array([[1.0], [2.0]])) @ np.ones((2, 1))
    array([[3.],
           [6.]])
    """

    def __init__(self, kernel: Kernel, X: Array, Z: Array | None = None):
        variance = kernel.linear_variance
        if variance is None:
            raise ValueError(
                f"operator='linear' needs the kernel Linear(), possibly times constants; got {kernel!r}."
            )
        super().__init__(kernel, X, Z)
        self.variance = variance
        other = X if Z is None else Z
        self._transposed = sp.csr_array(other.T) if sp.issparse(other) else other.T

    def __matmul__(self, B: Array) -> Array:
        # single-precision features multiply double-precision vectors without copies of those
        return self._flattened(self._matmul, B, B.dtype if sp.issparse(self.X) else self.dtype)

    def _matmul(self, B: Array) -> Array:
        return self._scaled(_gram_product(self.X, self._transposed, B))

    def _scaled(self, product: Array) -> Array:
        return product if self.variance == 1 else self.variance * product

    def _accurate(self, B: Array) -> Array:
        if is_numpy(self.X):
            return self._scaled(_product_by_rows(self.X, self.X if self.Z is None else self.Z, B))
        left, right = (_in_float64(part) for part in (self.X, self._transposed))
        return self._scaled(_gram_product(left, right, B))

    @property
    def n_weights(self) -> int:
        """Weights of a linear function: one for each feature."""
        return int(self.X.shape[1])

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray | None:
        """``Xᵀ diag(weights) X`` for weights ≥ 0; None for sparse features, of which there are many."""
        return None if sp.issparse(self.X) else weighted_gram(self._transposed, weights)

    def represented(self, W: np.ndarray) -> tuple[Array, np.ndarray]:
        """Examples and coefficients of the function with weights v W: unit vectors, and W."""
        X, d = self.X, self.n_weights
        sparse = sp.issparse(X) or d > X.shape[0]  # a dense one is no larger than X
        unit = sp.eye_array(d, format="csr", dtype=X.dtype) if sparse else np.eye(d, dtype=X.dtype)
        return unit, W

    def times(self, W: Array) -> Array:
        """X W, without the variance, for weights of shape (n_features, ...).

        In single precision the sums are those of float64: a line search compares losses that differ by less than the
        rounding of float32.
        """
        X = self.X
        if sp.issparse(X) or X.dtype == W.dtype or not X.flags.c_contiguous:
            return _flat_product(X, W)
        flat = np.ascontiguousarray(W.reshape(W.shape[0], -1))
        return skinny_product(X, flat).reshape(-1, *W.shape[1:])

    def transposed_times(self, G: Array) -> Array:
        """Xᵀ G for an array of shape (n_samples, ...)."""
        return _flat_product(self._transposed, G)

    def transposed_squares_times(self, D: Array) -> Array:
        """(X∘X)ᵀ D for an array of shape (n_samples, ...)."""
        return _flat_product(self._transposed * self._transposed, D)

    def work(self, n_columns: int) -> float:
        stored = n_stored(self.X) + n_stored(self._transposed)
        return costs.stored_product(stored, n_columns)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        # every parameter is the logarithm of a constant factor
        size = self.theta.size
        return np.full(size, float_sum(E * (self @ F))) if size else np.empty(0)

    @property
    def nbytes(self) -> int:
        if not sp.issparse(self._transposed):
            return 0
        parts = (self._transposed.data, self._transposed.indices, self._transposed.indptr)
        return sum(part.nbytes for part in parts)


def n_stored(X: Array) -> int:
    """Numbers that an array holds in memory: those that are not zero if it is sparse."""
    return int(X.nnz) if sp.issparse(X) else int(X.shape[0]) * int(X.shape[1])


def _flat_product(A: Array, B: Array) -> Array:
    """A B along the first axis of B, in the dtype of B."""
    flat = B.reshape(B.shape[0], -1)
    product = sparse_dot(A, flat) if sp.issparse(A) else A @ flat.astype(A.dtype, copy=False)
    return product.reshape(-1, *B.shape[1:]).astype(B.dtype, copy=False)


def weighted_gram(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``rows diag(weights) rowsᵀ`` in the dtype of the rows, by blocks of columns and without those of weight zero."""
    out, used = np.zeros((rows.shape[0],) * 2, dtype=rows.dtype), np.flatnonzero(weights)
    # a block is larger than the result, which is read and written for each of them
    for block in row_blocks(
        used.size, rows.itemsize * rows.shape[0], max(TILE_BYTES, 2 * out.nbytes)
    ):
        columns = used[block] if used.size < rows.shape[1] else block
        scaled = rows[:, columns] * np.sqrt(weights[columns]).astype(rows.dtype)
        out += scaled @ scaled.T
    return out


def _in_float64(A: Array) -> Array:
    return A.astype(np.float64) if sp.issparse(A) else namespace(A).astype(A, namespace(A).float64)


def _product_by_rows(X: np.ndarray, Z: np.ndarray, B: np.ndarray) -> np.ndarray:
    """X (Zᵀ B) in float64, without copies of X and Z in that precision."""
    inner = np.zeros((Z.shape[1], B.shape[1]))
    for rows in row_blocks(Z.shape[0], 8 * Z.shape[1], TILE_BYTES):
        inner += Z[rows].astype(np.float64).T @ B[rows]
    out = np.empty((X.shape[0], B.shape[1]))
    for rows in row_blocks(X.shape[0], 8 * X.shape[1], TILE_BYTES):
        out[rows] = X[rows].astype(np.float64) @ inner
    return out


def _gram_product(X: Array, Zt: Array, B: Array) -> Array:
    return gram_dot(X, Zt, B) if sp.issparse(X) else X @ (Zt @ B)
