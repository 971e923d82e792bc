"""A Gram matrix that is never stored: tiles are computed, multiplied and thrown away.

Product: ``n m`` kernel values and ``2 n m k`` flops, O(tile) memory. Sums of kernels are streamed
term by term, constants are taken out, and RBF and Matérn terms on NumPy arrays go to the fused
Numba kernels of `radial_product`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array, device_of, is_numpy, itemsize, namespace
from gramian.kernels import RBF, Constant, Kernel, Matern, Product, Sum, White
from gramian.operators.base import InputOperator
from gramian.operators.compiled.radial import radial_product
from gramian.operators.inputs.tiles import kernel_rows, tiled_product, tiled_vjp, tiles

# What a kernel value costs beside its distance and products, in flops of a matrix product: by our loops, by NumPy.
VALUE, TILED = 28, 250
# What a feature adds: differences by our loops or, for many features, a matrix product.
FEATURE, MULTIPLIED, MANY = 6, 2, 64
SINGLE = 0.4  # what single precision takes of all that
MIRRORED = 16  # columns up to which half of a symmetric matrix is evaluated


class Streamed(InputOperator):
    """The matrix ``k(X, Z)``, recomputed in each product.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse array of shape (n_samples, n_features)
    Z : array or sparse array of shape (m_samples, n_features), default=None
        None means X itself: the symmetric training matrix, with white noise on its diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.operators import Streamed
    >>> X = np.array([[0.0], [2.0]])
    >>> (Streamed(RBF(2.0), X) @ np.ones((2, 1))).round(4)
    array([[1.6065],
           [1.6065]])
    """

    def __init__(self, kernel: Kernel, X: Array, Z: Array | None = None):
        self.kernel = kernel
        self.X = X
        self.Z = Z
        self.shape = (int(X.shape[0]), int(X.shape[0] if Z is None else Z.shape[0]))
        self.dtype = X.dtype

    def _matmul(self, B: Array) -> Array:
        return self._streamed(self.kernel, B)

    def _streamed(self, kernel: Kernel, B: Array) -> Array:
        """k(X, Z) B for one term of the kernel."""
        if isinstance(kernel, Sum):
            return self._streamed(kernel.left, B) + self._streamed(kernel.right, B)
        if isinstance(kernel, Product) and isinstance(kernel.left, Constant):
            return float(kernel.left.value) * self._streamed(kernel.right, B)
        if isinstance(kernel, Product) and isinstance(kernel.right, Constant):
            return float(kernel.right.value) * self._streamed(kernel.left, B)
        if isinstance(kernel, White):
            return float(kernel.noise) * B if self.Z is None else self._zeros(B)
        profile = profile_of(kernel)
        if profile is not None and is_numpy(self.X) and is_numpy(B):
            return self._radial(kernel, profile, B)
        return tiled_product(kernel, self.X, self.Z, B)

    def _radial(self, kernel: Any, profile: str, B: np.ndarray) -> np.ndarray:
        """The product with an RBF or Matérn term, on NumPy arrays."""
        other = self.X if self.Z is None else self.Z
        return radial_product(self.X, other, B, kernel.length_scale, profile=profile)

    def _accurate(self, B: Array) -> Array:
        # B is in float64, and compiled products then are, too
        return self._matmul(B) if is_numpy(self.X) and is_numpy(B) else super()._accurate(B)

    def _tiles(self) -> Iterator[Array]:
        for _, values in tiles(self.kernel, self.X, self.Z):
            yield values

    def _zeros(self, B: Array) -> Array:
        shape = (self.shape[0], B.shape[1])
        if sp.issparse(self.X):
            return np.zeros(shape, dtype=B.dtype)
        return namespace(B).zeros(shape, dtype=B.dtype, device=device_of(B))

    def to_dense(self) -> Array:
        return self.kernel(self.X, self.Z)

    def _diagonal(self) -> Array:
        return self.kernel.diag(self.X)

    def columns(self, indices: np.ndarray) -> Array | None:
        if self.Z is not None or not (is_numpy(self.X) or sp.issparse(self.X)):
            return None
        values = kernel_rows(self.kernel, self.X[indices], self.X)
        # an example is one with itself: white noise is there
        values[np.arange(len(indices)), indices] = self.kernel.diag(self.X[indices])
        return values.T

    def work(self, n_columns: int) -> float:
        return sum(self._term_work(term, n_columns) for term in _terms(self.kernel))

    def _term_work(self, kernel: Kernel, n_columns: int) -> float:
        n, m = self.shape
        single = SINGLE if itemsize(self.X) == 4 else 1.0
        if isinstance(kernel, White):
            return 2.0 * n * n_columns
        features = int(self.X.shape[1])
        if profile_of(kernel) is None or not is_numpy(self.X):
            return single * n * m * (TILED + 2 * features + 2 * n_columns)
        half = 0.5 if self.Z is None and n_columns <= MIRRORED else 1.0
        distance = features * (FEATURE if features <= MANY else MULTIPLIED)
        return single * n * m * (half * (VALUE + distance) + 2 * n_columns)

    def cross(self, X_new: Array) -> Streamed:
        return Streamed(self.kernel, X_new, self.X)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        return tiled_vjp(self.kernel, self.X, self.Z, E, F)

    @property
    def theta(self) -> np.ndarray:
        return self.kernel.theta

    def clone_with_theta(self, theta: np.ndarray) -> Streamed:
        return Streamed(self.kernel.clone_with_theta(theta), self.X, self.Z)


def has_radial_term(kernel: Kernel) -> bool:
    """Whether a term of the kernel has compiled products."""
    return any(profile_of(term) is not None for term in _terms(kernel))


def _terms(kernel: Kernel) -> list[Kernel]:
    """Terms of a sum, without constant factors."""
    if isinstance(kernel, Sum):
        return _terms(kernel.left) + _terms(kernel.right)
    if isinstance(kernel, Product) and isinstance(kernel.left, Constant):
        return _terms(kernel.right)
    if isinstance(kernel, Product) and isinstance(kernel.right, Constant):
        return _terms(kernel.left)
    return [kernel]


def profile_of(kernel: Kernel) -> str | None:
    """Name of the compiled profile of a kernel, if it has one."""
    if isinstance(kernel, RBF):
        return "rbf"
    return f"matern{round(2 * kernel.nu)}2" if isinstance(kernel, Matern) else None
