"""Positive parameters of kernels: their checks, their bounds, their data-driven values and how they print."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from gramian._core.arrays import BLOCK_BYTES, Array, is_numpy, namespace, row_blocks

DEFAULT_BOUNDS = (1e-5, 1e5)


def data_scale(X: Array, weights: Array | None = None) -> float:
    """Return ``n_features · Var(X)``, the scale behind ``gamma="scale"``; 1 for constant X.

    The variance is over all entries, with the weights of the rows.
    """
    if hasattr(X, "tocsr"):  # sparse: the zeros count
        sums = [
            np.asarray(X.sum(axis=1)).reshape(-1),
            np.asarray(X.multiply(X).sum(axis=1)).reshape(-1),
        ]
        w = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=float)
        mean, square = (float(w @ part) / (float(w.sum()) * X.shape[1]) for part in sums)
        variance = square - mean * mean
    else:
        xp = namespace(X)
        rows = xp.ones_like(X[:, 0]) if weights is None else weights
        w = xp.astype(rows, xp.float64)[:, None]
        count = float(xp.sum(w)) * X.shape[1]
        # some rows at a time, so that a memory-mapped file is not copied
        blocks = row_blocks(X.shape[0], 8 * X.shape[1], BLOCK_BYTES) if is_numpy(X) else [...]
        parts = [(w[rows], X[rows]) for rows in blocks]
        mean = sum(float(xp.sum(v * xp.astype(part, xp.float64))) for v, part in parts) / count
        squares = (v * (xp.astype(part, xp.float64) - mean) ** 2 for v, part in parts)
        variance = sum(float(xp.sum(square)) for square in squares) / count
    scale = X.shape[1] * variance
    return scale if scale > 0 and np.isfinite(scale) else 1.0


def bounds_around(value: float, bounds: Any) -> Any:
    """Return default bounds as multiples of a value that comes from the data, and other bounds as they are."""
    if not np.array_equal(bounds, DEFAULT_BOUNDS):
        return bounds
    return (value * DEFAULT_BOUNDS[0], value * DEFAULT_BOUNDS[1])


def is_fixed(bounds: Any) -> bool:
    return isinstance(bounds, str) and bounds == "fixed"


def check_positive(name: str, value: Any, *, vector: bool = False) -> None:
    """Refuse anything but a positive finite number or, with ``vector``, a vector of them."""
    words = "a positive number or a vector of them" if vector else "a positive number"
    try:
        number = np.asarray(value).dtype.kind not in "USbc"  # these would convert silently
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        number = False
    if not number:
        raise TypeError(f"{name} must be {words}, got {value!r}.")
    if array.ndim > vector or array.size == 0:
        raise ValueError(f"{name} must be {words}, got {value!r}.")
    if not np.all(np.isfinite(array)) or not np.all(array > 0):
        raise ValueError(f"{name} must be positive and finite, got {value!r}.")


def check_bounds(name: str, bounds: Any) -> None:
    """Refuse bounds that are neither "fixed" nor positive increasing pairs."""
    if is_fixed(bounds):
        return
    try:
        pairs = np.asarray(bounds, dtype=float).reshape(-1, 2)
    except (TypeError, ValueError):
        raise ValueError(f'{name} must be "fixed" or a pair (low, high), got {bounds!r}.') from None
    if not np.all(pairs > 0) or not np.all(pairs[:, 0] <= pairs[:, 1]):
        raise ValueError(f"{name} must satisfy 0 < low <= high, got {bounds!r}.")


def largest_number(X: Array) -> float:
    """The largest number of the precision of X."""
    single = str(X.dtype).endswith("float32")
    return float(np.finfo(np.float32 if single else np.float64).max)


def check_size(kernel: Any, value: float, X: Array) -> None:
    """Refuse kernels with a value on X with which no solver computes: sums and their squares overflow."""
    most = min(largest_number(X), np.finfo(np.float64).max ** 0.5) / max(1, X.shape[0])
    if not value <= most:
        raise ValueError(
            f"The kernel overflowed: {kernel!r} has values up to {value:.3g}; sums over {X.shape[0]} "
            f"examples in {X.dtype} need values below {most:.2g}. Give smaller parameters. Scale X if it is large."
        )


def clones_with_theta(parts: list[Any], theta: Any) -> list[Any]:
    """Copies of the parts of something, with its log-parameters, which are those of its parts one after the other."""
    sizes = [part.theta.size for part in parts]
    pieces = np.split(checked_theta(theta, sum(sizes)), np.cumsum(sizes)[:-1])
    return [part.clone_with_theta(piece) for part, piece in zip(parts, pieces, strict=True)]


def checked_theta(theta: Any, size: int) -> np.ndarray:
    theta = np.asarray(theta, dtype=float)
    if theta.shape != (size,):
        raise ValueError(f"theta must have shape ({size},), got {theta.shape}.")
    return theta


def shown(value: Any) -> str:
    if isinstance(value, Real):
        return f"{float(value):.4g}"
    if isinstance(value, str):
        return repr(value)
    entries = [f"{float(v):.4g}" for v in np.asarray(value)]
    if len(entries) > 6:
        entries = [*entries[:3], "...", *entries[-2:]]
    return f"[{', '.join(entries)}]"
