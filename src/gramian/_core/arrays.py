"""Small helpers that keep the code neutral between array libraries."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp
from array_api_compat import device as device_of

# An array of any library that follows the array API standard, or a SciPy sparse array where a
# docstring says so. Static types cannot express "same library in, same library out".
Array = Any

BLOCK_BYTES = 8 * 2**20  # of rows that are copied at a time: near the cache, and little memory


def namespace(*arrays: Array) -> Any:
    """Return the array namespace shared by the arrays; NumPy for sparse ones."""
    dense = [a for a in arrays if a is not None and not sp.issparse(a)]
    return array_api_compat.array_namespace(*(dense or [np.empty(0)]))


def is_numpy(array: Array) -> bool:
    """Whether Numba and BLAS may be used on the array directly."""
    return isinstance(array, np.ndarray)


def asarray_like(values: Any, like: Array, dtype: Any = None) -> Array:
    """Return ``values`` as an array of the library, device and (by default) dtype of ``like``."""
    xp = namespace(like)
    dtype = like.dtype if dtype is None else dtype
    if sp.issparse(like):
        return np.asarray(values, dtype=dtype)
    is_array = array_api_compat.is_array_api_obj(values) and not isinstance(values, np.generic)
    if is_array and namespace(values) is not xp:
        values = to_numpy(values)
    return xp.asarray(values, dtype=dtype, device=device_of(like))


def in_float64(values: Any, like: Array) -> Array:
    """Return ``values`` as a float64 array of the library and device of ``like``."""
    return asarray_like(values, like, dtype=namespace(like).float64)


def to_numpy(array: Array) -> np.ndarray:
    """Copy an array of any library to NumPy."""
    if isinstance(array, np.ndarray):
        return array
    if array_api_compat.is_torch_array(array):
        return array.detach().cpu().numpy()
    try:
        return np.from_dlpack(array)
    except (AttributeError, TypeError, BufferError, RuntimeError):
        return np.asarray(array)


def given_array(name: str, values: Any) -> np.ndarray:
    """Return what a user gave as a NumPy array; rows of different lengths are an error that names the argument."""
    try:
        return values.to_numpy() if hasattr(values, "to_numpy") else to_numpy(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must be an array, or lists of one length: {error} Give every row the same number of values."
        ) from None


def column(weights: Array, like: Array) -> Array:
    """Shape weights ``(n,)`` or ``(n, q)`` so that they broadcast against ``(n, C)`` or ``(n, C, q)``."""
    xp = namespace(weights)
    if weights.ndim == 1:
        return xp.reshape(weights, (-1,) + (1,) * (like.ndim - 1))
    return weights[:, None, :]


def ratio(numerator: Array, denominator: Array, where: Array) -> Array:
    """Return numerator / denominator where the condition holds, and zero elsewhere."""
    xp = namespace(numerator)
    zero, one = xp.zeros_like(numerator), xp.ones_like(denominator)
    return xp.where(where, numerator, zero) / xp.where(where, denominator, one)


def total(values: Array, weights: Array | None) -> Array:
    """Sum of weights × values over axes 0 and 1 in float64."""
    xp = namespace(values)
    if weights is not None:
        values = values * column(weights, values)
    return xp.sum(values, axis=(0, 1), dtype=xp.float64)


def row_blocks(n_rows: int, bytes_per_row: int, block_bytes: int) -> list[slice]:
    """Cut ``n_rows`` rows into blocks of at most ``block_bytes`` (and at least one row)."""
    size = max(1, min(n_rows, block_bytes // max(1, bytes_per_row)))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def transposed_product(X: Array, A: np.ndarray) -> np.ndarray:
    """Xᵀ A of a NumPy or sparse X with sums in float64, without a copy of X in that precision."""
    if sp.issparse(X):
        return np.asarray(X.T @ A)
    out = np.zeros((X.shape[1], A.shape[1]))
    for block in row_blocks(X.shape[0], 8 * X.shape[1], BLOCK_BYTES):
        out += X[block].astype(np.float64, copy=False).T @ A[block]
    return out


def itemsize(array: Array) -> int:
    """Bytes of one entry; array libraries do not agree on how to ask."""
    return 4 if "float32" in str(array.dtype) else 8


def float_sum(values: Array) -> float:
    """Sum of all entries, accumulated in float64."""
    xp = namespace(values)
    return float(xp.sum(values, dtype=xp.float64))


def as_vector(values: Array) -> np.ndarray:
    """One-dimensional float64 NumPy copy."""
    return np.asarray(to_numpy(values), dtype=np.float64).reshape(-1)
