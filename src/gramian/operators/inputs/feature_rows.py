"""Examples by their features, for solvers that change one coefficient, or a few, at a time.

Formula
    ``K = X Xᵀ``, whose matrix is never formed. An intercept with prior variance σ² is one more feature, constant σ.

Method
    Solvers keep sums ``Xᵀ A`` and bring them up to date when a coefficient changes. Compiled loops get the features as
    `FeatureRows.compiled`: a dense array, or the triple (indptr, indices, data) of a CSR array. The functions at the
    end of this file multiply with a row of either. The indices of the triple are unsigned, because Numba checks each
    time whether a signed index counts from the end, at a multiple of the cost of the product itself.

Cost
    The non-zeros of an example for each product with it. Columns of sparse features without any entry are left out:
    text has many of them, and sums over features are as long as there are columns.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gramian._core.arrays import Array
from gramian._core.compilation import read_only
from gramian.kernels import Kernel
from gramian.operators.inputs.gram_rows import GramRows, check_diagonal

_FETCH = ir.FunctionType(
    ir.VoidType(), [ir.IntType(8).as_pointer(), *[ir.IntType(32)] * 3]
)  # arguments of LLVM's prefetch
ONE, TWO = np.uint64(1), np.uint64(2)  # steps along entries, which are counted without a sign


class FeatureRows:
    """The matrix ``X Xᵀ`` by the features X of the examples; it has the interface of `GramRows`.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)

    Attributes
    ----------
    shape : tuple (n, n)
    dtype : dtype of X
    X : ndarray in C order, or CSR array
        The features, without empty columns if they are sparse.
    n_features : int
        Columns of ``X``.
    n_entries : float
        Mean number of entries of an example.
    compiled : ndarray, or tuple of three arrays
        ``X`` as compiled loops take it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators.inputs.feature_rows import FeatureRows
    >>> features = FeatureRows(np.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> features.diagonal()
    array([5., 1.])
    >>> features @ np.array([[1.0], [0.0]])
    array([[5.],
           [2.]])
    """

    compiled: Any

    def __init__(self, X: Array):
        n = int(X.shape[0])
        self.shape = (n, n)
        self.dtype = np.dtype(X.dtype)
        if sp.issparse(X):
            self.X = X = _without_empty_columns(sp.csr_array(X))
            squares = np.square(X.data, dtype=np.float64)
            squares = sp.csr_array((squares, X.indices, X.indptr), shape=X.shape)
            self._diagonal = np.asarray(squares.sum(axis=1))
            self.n_entries = X.nnz / max(1, n)
            indices = X.indices.astype(np.int32, copy=False).view(np.uint32)
            self.compiled = (X.indptr.astype(np.uint64), indices, read_only(X.data))
        else:
            self.X = np.ascontiguousarray(X)
            self.compiled = read_only(self.X)
            self._diagonal = np.einsum("ij,ij->i", X, X, dtype=np.float64)
            self.n_entries = float(X.shape[1])
        self.n_features = int(self.X.shape[1])
        check_diagonal(self._diagonal, self.dtype)

    @classmethod
    def from_kernel(cls, kernel: Kernel, X: Array, intercept_variance: float = 0.0) -> FeatureRows:
        """Return features whose inner products are ``k(X, X) + intercept_variance``, for a linear kernel."""
        variance = kernel.linear_variance
        if variance is None:
            raise ValueError(
                f"Features need the kernel Linear(), possibly times constants, got {kernel!r}. Use GramRows(kernel, X)."
            )
        if variance != 1:
            X = X * X.dtype.type(np.sqrt(variance))
        if intercept_variance:
            constant = np.full((X.shape[0], 1), np.sqrt(intercept_variance), dtype=X.dtype)
            if sp.issparse(X):
                X = sp.hstack([X, sp.csr_array(constant)], format="csr")
            else:
                X = np.hstack([X, constant])
        return cls(X)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of K in float64, shape (n,)."""
        return self._diagonal

    def sums(self, A: np.ndarray) -> np.ndarray:
        """Return ``Xᵀ A``, shape (`n_features`, k)."""
        return np.asarray(self.X.T @ A)

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Return the rows ``K[index]`` in float64, shape (m, n)."""
        products: Any = self.X[index].astype(np.float64) @ self.X.T
        return products.toarray() if sp.issparse(products) else products

    def __matmul__(self, A: np.ndarray) -> np.ndarray:
        """Return ``K A`` in float64; A has shape (n, k)."""
        return np.asarray(self.X @ self.sums(A), dtype=np.float64)


def as_rows(inputs: Any) -> Any:
    """Return `GramRows` and `FeatureRows` as they are, and an array of features as `FeatureRows`."""
    return inputs if isinstance(inputs, GramRows | FeatureRows) else FeatureRows(inputs)


def _without_empty_columns(X: Any) -> Any:
    """The CSR array X with each entry stored once, and without the columns that have no entry."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()  # an entry that is stored in two parts has one square
    used = np.zeros(X.shape[1], dtype=bool)
    used[X.indices] = True
    if used.all():
        return X
    indices = (np.cumsum(used) - 1).astype(X.indices.dtype)[X.indices]
    return sp.csr_array((X.data, indices, X.indptr), shape=(X.shape[0], int(used.sum())))


# --- products with one example, compiled ----------------------------------------------------------


def _span(X, i) -> Any:
    """Where the entries of example i begin and end."""
    raise NotImplementedError


@overload(_span)
def _span_of(X, i):
    if isinstance(X, types.Array):
        return lambda X, i: (np.uint64(0), np.uint64(X.shape[1]))
    return lambda X, i: (X[0][i], X[0][i + 1])


def _entry(X, i, e) -> Any:
    """Column and value of an entry of example i."""
    raise NotImplementedError


@overload(_entry)
def _entry_of(X, i, e):
    if isinstance(X, types.Array):
        return lambda X, i, e: (e, X[i, e])
    return lambda X, i, e: (X[1][e], X[2][e])


def _fetch_entry(typingctx, values, place):
    """Ask memory for an entry of an array with one axis, and do not wait for it."""

    def codegen(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        address = builder.bitcast(address, ir.IntType(8).as_pointer())
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], _FETCH)
        # to read, to be kept near, data
        builder.call(fetch, [address, *(ir.IntType(32)(number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(values, place), codegen


_fetch: Any = intrinsic(_fetch_entry)


def fetch_row(X, i) -> Any:
    """Ask memory for example i: rows in random order come too late otherwise, at twice the cost of a product."""
    raise NotImplementedError


@overload(fetch_row)
def _fetch_row_of(X, i):
    if isinstance(X, types.Array):
        return lambda X, i: None  # dense rows are long, and the processor sees where they go on

    line = 64  # bytes
    columns, values = (np.uint64(line // (array.dtype.bitwidth // 8)) for array in X[1:])

    def fetch_row_of(X, i):
        for e in range(X[0][i], X[0][i + 1], columns):
            _fetch(X[1], e)
        for e in range(X[0][i], X[0][i + 1], values):
            _fetch(X[2], e)

    return fetch_row_of


@numba.njit(cache=True, nogil=True, fastmath=True)
def row_dot(X, i, z):
    """Return the inner product of example i with z."""
    start, end = _span(X, i)
    total = 0.0
    for e in range(start, end):
        j, value = _entry(X, i, e)
        total += value * z[j]
    return total


@numba.njit(cache=True, nogil=True, fastmath=True)
def row_add(X, i, factor, z):
    """Add a multiple of example i to z."""
    start, end = _span(X, i)
    for e in range(start, end):
        j, value = _entry(X, i, e)
        z[j] += factor * value


@numba.njit(cache=True, nogil=True, fastmath=True)
def panel_dot(X, i, Z, first, last, out):
    """Write the inner products of example i with the columns first to last − 1 of Z into the same places of out."""
    for c in range(first, last):
        out[c] = 0.0
    start, end = _span(X, i)
    paired = start + (end - start) // TWO * TWO
    for e in range(
        start, paired, TWO
    ):  # two entries at a time: half as many loads and stores of out
        j, value = _entry(X, i, e)
        k, other = _entry(X, i, e + ONE)
        row, next_row = Z[j], Z[k]
        for c in range(first, last):
            out[c] += value * row[c] + other * next_row[c]
    for e in range(paired, end):
        j, value = _entry(X, i, e)
        row = Z[j]
        for c in range(first, last):
            out[c] += value * row[c]


@numba.njit(cache=True, nogil=True, fastmath=True)
def panel_add(X, i, factors, Z):
    """Add multiples of example i to the columns of Z, one factor for each."""
    start, end = _span(X, i)
    for e in range(start, end):
        j, value = _entry(X, i, e)
        row = Z[j]
        for c in range(factors.size):
            row[c] += value * factors[c]
