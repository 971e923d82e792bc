"""Checks of arguments. Each error names the argument, the value and the fix."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj
from scipy.linalg import LinAlgError, cholesky

from gramian._core.arrays import Array, asarray_like, is_numpy, namespace, to_numpy

SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100


def check_number(
    name: str,
    value: Any,
    *,
    low: float = 0.0,
    high: float = np.inf,
    strict: bool = False,
    whole: bool = False,
) -> None:
    """Refuse what is not a finite (whole) number from ``low`` to ``high``, or between them when ``strict``."""
    kind, words = (Integral, "a whole number") if whole else (Real, "a finite number")
    bound = ">" if strict else ">="
    below = "" if high == np.inf else f" and {bound.replace('>', '<')} {high:g}"
    message = f"{name} must be {words} {bound} {low:g}{below}, got {reprlib.repr(value)}."
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(message)
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        number = np.inf  # or −∞: neither is finite
    inside = low < number < high if strict else low <= number <= high
    if not inside or not np.isfinite(number):
        raise ValueError(message)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is not True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}.")


def check_shape(name: str, array: Any, shape: tuple[int | str, ...], meaning: str) -> None:
    """Refuse an array of another shape. A word stands for any size above 0, the same word for equal sizes."""
    got = tuple(array.shape)
    sizes = dict(zip(shape, got, strict=False))
    numbers = tuple(sizes.get(size) if isinstance(size, str) else size for size in shape)
    if got != numbers or any(sizes[size] == 0 for size in shape if isinstance(size, str)):
        words = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        raise ValueError(f"{name} must have shape ({words}), {meaning}; got {got}.")


def listed(names: Iterable[Any], most: int = 5) -> str:
    """Return the names as text, the first few of them."""
    every = [repr(name) for name in names]
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def check_present(demand: str, names: Iterable[Any], known: Any) -> None:
    """Refuse names that are not known; the error begins with what is demanded."""
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(f"{demand}; missing: {listed(missing)}.")


def repeated(names: Iterable[Any]) -> list[Any]:
    """Return the names that occur more than once, each one time."""
    return [name for name, count in Counter(names).items() if count > 1]


def check_sample_weight(
    sample_weight: Any, like: Array, *, name: str = "sample_weight", unit: str = "row of X"
) -> Array | None:
    """Return weights of shape (n_samples,) in the array library and dtype of ``like``, or None.

    ``like`` is an array with one row for each example; errors call the argument ``name`` and an example ``unit``.
    """
    if sample_weight is None:
        return None
    n = int(like.shape[0])
    if not is_array_api_obj(sample_weight) or is_numpy(sample_weight):
        try:
            kind = np.asarray(sample_weight).dtype.kind
            values = np.asarray(sample_weight, dtype=float)
        except (TypeError, ValueError):
            kind, values = "U", np.empty(0)
        if kind in "USc":  # text and complex numbers convert silently
            raise TypeError(f"{name} must be numbers, got {reprlib.repr(sample_weight)}.")
        sample_weight = np.full(n, values) if values.ndim == 0 else values
    weights = asarray_like(sample_weight, like)
    check_shape(name, weights, (n,), f"one for each {unit}")
    xp = namespace(weights)
    bad = ~(xp.isfinite(weights) & (weights >= 0))
    if bool(xp.any(bad)):
        raise ValueError(f"{name} must be finite and not negative, got {float(weights[bad][0]):g}.")
    if not bool(xp.any(weights > 0)):
        raise ValueError(f"{name} is zero for every {unit}: at least one must be positive.")
    extreme = (weights > 0) & ((weights < SMALLEST_WEIGHT) | (weights > LARGEST_WEIGHT))
    if bool(xp.any(extreme)):
        raise ValueError(
            f"{name} must be zero or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}, so that sums and squares can "
            f"be represented; got {float(weights[extreme][0]):g}. Divide the weights by their mean."
        )
    return weights


@contextmanager
def naming_text(X: Any) -> Iterator[None]:
    """Say which of X and y holds text where numbers should be; NumPy's error does not."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not str(error).startswith(("could not convert", "float() argument")):
            raise
        name = "X" if np.asarray(X).dtype.kind in "OUS" else "y"
        raise type(error)(f"{name} must hold numbers: {error}. Encode text first.") from None


def check_gram(K: Array) -> None:
    """Refuse a precomputed training matrix that is not square, symmetric and positive semidefinite."""
    spectrum = _spectrum_if_indefinite("X", K, "Gram matrix of the training examples when kernel")
    if spectrum is not None:
        raise ValueError(
            "X must be a positive semidefinite Gram matrix when kernel is 'precomputed'; its smallest eigenvalue is "
            f"{spectrum[0]:.3g}. Clip the negative eigenvalues, or use its rows as features."
        )


def indefinite_spectrum(name: str, S: Any) -> np.ndarray | None:
    """Return the eigenvalues of precomputed similarities if some are negative by more than rounding, else None.

    Refuses what is not square and symmetric.
    """
    return _spectrum_if_indefinite(name, S, "matrix of similarities when the objects' kernel")


def _spectrum_if_indefinite(name: str, matrix: Array, meaning: str) -> np.ndarray | None:
    """Return the eigenvalues if some are negative by more than rounding; refuse what is not symmetric."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name} must be the square {meaning} is 'precomputed', got shape {tuple(matrix.shape)}."
        )
    K = matrix.toarray() if sp.issparse(matrix) else to_numpy(matrix)
    eps = float(np.finfo(K.dtype).eps)
    size = max(float(np.abs(K).max(initial=0.0)), 1e-300)
    asymmetry = float(np.abs(K - K.T).max(initial=0.0))
    if asymmetry > 1e3 * eps * size:
        raise ValueError(
            f"{name} must be the symmetric {meaning} is 'precomputed'; |K - K.T| reaches {asymmetry:.3g}. "
            "Pass (K + K.T) / 2 if the entries (i, j) and (j, i) mean the same."
        )
    # a little more than rounding: the matrix may have been computed in single precision or rounded when stored
    jitter = max(1e-8, 1e2 * eps) * len(K) * size
    try:
        cholesky(K + jitter * np.eye(len(K), dtype=K.dtype), overwrite_a=True)
    except LinAlgError:
        return np.linalg.eigvalsh(K)
    return None
