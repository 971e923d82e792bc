"""A Gram matrix that is never stored: tiles are computed, multiplied and thrown away.

Product: ``n m`` kernel values and ``2 n m k`` flops, O(tile) memory. Sums of kernels are streamed
term by term, constants are taken out, and RBF and Matérn terms on NumPy arrays go to the fused
Numba kernels of `radial_product`.
"""

from __future__ import annotations

from copy import copy
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array, device_of, is_numpy, itemsize, namespace
from gramian.kernels import Kernel
from gramian.operators import costs
from gramian.operators.base import KernelOperator
from gramian.operators.compiled.radial import radial_product
from gramian.operators.inputs.tiles import kernel_rows, tiled_product

# Length scales that the data may span for products in single precision. The coordinates are rounded by 3e-8 of that,
# and kernel values by as much.
WIDEST_SPREAD = 100.0


class Streamed(KernelOperator):
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

    def _matmul(self, B: Array) -> Array:
        return reduce(add, (self._summand(*summand, B) for summand in self.kernel.summands()))

    def _summand(self, factor: float, term: Kernel, B: Array) -> Array:
        product = self._term_product(term, B)
        return product if factor == 1 else factor * product

    def _term_product(self, term: Kernel, B: Array) -> Array:
        """k(X, Z) B for one term of the kernel."""
        if term.is_diagonal and self.Z is None:
            return term.diag(self.X)[:, None] * B
        if term.is_diagonal:
            shape = (self.shape[0], B.shape[1])
            return namespace(B).zeros(shape, dtype=B.dtype, device=device_of(B))
        if term.profile is not None and is_numpy(self.X) and is_numpy(B):
            return self._radial(term, B)
        return tiled_product(term, self.X, self.Z, B)

    def _radial(self, term: Any, B: np.ndarray) -> np.ndarray:
        """The product with an RBF or Matérn term, on NumPy arrays."""
        other = self.X if self.Z is None else self.Z
        return radial_product(self.X, other, B, term.length_scale, profile=term.profile)

    def _accurate(self, B: Array) -> Array:
        # B is in float64, and compiled products then are, too
        return self._matmul(B) if is_numpy(self.X) and is_numpy(B) else super()._accurate(B)

    def in_single(self) -> Streamed | None:
        terms = [term for _, term in self.kernel.summands() if not term.is_diagonal]
        if not is_numpy(self.X) or self.dtype != np.float64 or self.Z is not None:
            return None
        if not terms or any(term.profile is None for term in terms):
            return None
        spread = np.max(self.X, axis=0) - np.min(self.X, axis=0)
        if max(float(np.linalg.norm(spread / term.length_scale)) for term in terms) > WIDEST_SPREAD:
            return None
        single = copy(self)
        single.dtype = np.dtype(np.float32)  # compiled products follow the right-hand side
        return single

    def columns(self, indices: np.ndarray) -> Array | None:
        if self.Z is not None or not (is_numpy(self.X) or sp.issparse(self.X)):
            return None
        values = kernel_rows(self.kernel, self.X[indices], self.X)
        # an example is one with itself: white noise is there
        values[np.arange(len(indices)), indices] = self.kernel.diag(self.X[indices])
        return values.T

    def work(self, n_columns: int) -> float:
        return sum(self._term_work(term, n_columns) for _, term in self.kernel.summands())

    def _term_work(self, term: Kernel, n_columns: int) -> float:
        if term.is_diagonal:
            return 2.0 * self.shape[0] * n_columns
        sizes = self.shape, int(self.X.shape[1]), n_columns, itemsize(self)
        if term.profile is None or not is_numpy(self.X):
            return costs.tiled_product(*sizes)
        return costs.compiled_product(*sizes, symmetric=self.Z is None)
