"""Ways to multiply with one term of a pairwise kernel, besides `SampledKronecker`.

Each has ``@`` and ``accurate``; gradients of ``⟨E, op F⟩`` are in the entries of the factors or in the parameters.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.operators.base import InputOperator
from gramian.operators.cells import Cells
from gramian.operators.sampled_kronecker import SampledKronecker

__all__ = ["OneSided", "ThroughFeatures", "ThroughOperators"]


class OneSided:
    """``R A S`` where one factor of the Kronecker product is ones: no vec trick.

    S adds the coefficients of all pairs of an object, R reads the value of the object for its pairs.

    Parameters
    ----------
    matrix : ndarray of shape (a, b)
    reads : csr_array of shape (f, a)
    sources : csr_array of shape (b, e)

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from gramian.operators.pair_terms import OneSided
    >>> op = OneSided(np.array([[2.0]]), sp.csr_array([[1.0], [1.0]]), sp.csr_array([[1.0, 1.0]]))
    >>> op @ np.array([[1.0], [3.0]])
    array([[8.],
           [8.]])
    """

    def __init__(self, matrix: np.ndarray, reads: Any, sources: Any):
        self.matrix = matrix
        self.reads = reads
        self.sources = sources

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        inner = (self.sources @ B).astype(self.matrix.dtype, copy=False)
        return (self.reads @ (self.matrix @ inner)).astype(B.dtype, copy=False)

    def accurate(self, B: np.ndarray) -> np.ndarray:
        """Multiply with everything in float64."""
        return self.reads @ (self.matrix.astype(np.float64) @ (self.sources @ B))

    def factor_gradients(self, E: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, None]:
        """Gradient of ``⟨E, op F⟩`` in the matrix."""
        return (self.reads.T @ E) @ (self.sources @ F).T, None

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix."""
        return self.matrix.nbytes


class ThroughFeatures:
    """A Kronecker product of linear kernels through the weights of products of features.

        W = Dᵀ V T,      out = (D W Tᵀ) at the pairs

    with tables D (m × d) and T (q × r) of features. It is what the primal algorithm of Airola & Pahikkala
    (Algorithm 3) multiplies with; conjugate gradients in the RKHS inner product take the same steps in both forms.

    Parameters
    ----------
    new_left, new_right : ndarray of shape (a, d) and (c, r)
    left, right : ndarray of shape (b, d) and (m, r)
    targets, sources : Cells
    """

    def __init__(
        self,
        new_left: np.ndarray,
        new_right: np.ndarray,
        left: np.ndarray,
        right: np.ndarray,
        targets: Cells,
        sources: Cells,
    ):
        weights = Cells.grid(left.shape[1], right.shape[1])
        turned = (np.ascontiguousarray(left.T), np.ascontiguousarray(right.T))
        self.collect = SampledKronecker.from_cells(*turned, weights, sources)
        self.read = SampledKronecker.from_cells(new_left, new_right, targets, weights)

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        return self.read @ (self.collect @ B)

    def accurate(self, B: np.ndarray) -> np.ndarray:
        """Multiply with everything in float64."""
        return self.read.accurate(self.collect.accurate(B))

    @property
    def cost(self) -> float:
        """Estimated nanoseconds of a product on one core."""
        return self.read.route_.cost + self.collect.route_.cost

    @property
    def nbytes(self) -> int:
        """Bytes of the tables and of the room for intermediate results."""
        return self.read.nbytes + self.collect.nbytes


class ThroughOperators:
    """A Kronecker product whose matrices are not stored: the right one first, then the left one.

    For sets of objects too large for their matrices; memory: two dense b × c and a × c arrays.

    Parameters
    ----------
    left, right : InputOperator of shape (a, b) and (c, d)
    targets, sources : Cells
    """

    def __init__(self, left: InputOperator, right: InputOperator, targets: Cells, sources: Cells):
        self.left = left
        self.right = right
        self.targets = targets
        self.sources = sources

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        return self._multiplied(B, lambda operator, values: operator @ values)

    def accurate(self, B: np.ndarray) -> np.ndarray:
        """Multiply with sums in float64."""
        return self._multiplied(B, lambda operator, values: operator.accurate(values))

    def _multiplied(self, B: np.ndarray, times: Any) -> np.ndarray:
        cells = self.sources.gathered(B)
        out = np.empty((self.targets.n_cells, B.shape[1]), B.dtype)
        for k in range(B.shape[1]):
            inner = times(self.right, self.sources.matrix(cells[:, k]).toarray().T).T
            whole = times(self.left, np.ascontiguousarray(inner))
            out[:, k] = whole[self.targets.rows, self.targets.columns]
        return self.targets.handed_out(out)

    def kernel_gradients(self, E: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradients of ``⟨E, op F⟩`` in the log-parameters of the left and the right kernel."""
        E, F = self.targets.gathered(E), self.sources.gathered(F)
        left, right = np.zeros(self.left.theta.size), np.zeros(self.right.theta.size)
        for k in range(E.shape[1]):
            W, V = self.targets.matrix(E[:, k]).toarray(), self.sources.matrix(F[:, k]).toarray()
            if left.size:  # ⟨W, left (V rightᵀ)⟩
                left += self.left.vjp(W, np.ascontiguousarray((self.right @ V.T).T))
            if right.size:  # ⟨Wᵀ, right (left V)ᵀ⟩
                right += self.right.vjp(W.T, np.ascontiguousarray((self.left @ V).T))
        return left, right

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the operators."""
        return self.left.nbytes + self.right.nbytes


def selection(index: list[tuple[np.ndarray, float]], size: int) -> Any:
    """CSR matrix (n, size) with the given weights at the given columns of each row."""
    n = index[0][0].size
    rows = np.tile(np.arange(n), len(index))
    columns = np.concatenate([part for part, _ in index])
    weights = np.repeat([weight for _, weight in index], n)
    return sp.csr_array((weights, (rows, columns)), shape=(n, size))
