"""Checks of arguments. Each error names the argument, the value and the fix."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from scipy.linalg import LinAlgError, cholesky

from gramian._core.arrays import Array, asarray_like, is_numpy, namespace, to_numpy
from gramian._core.caller import level_of_caller


def check_number(
    name: str, value: Any, *, low: float = 0.0, strict: bool = False, whole: bool = False
) -> None:
    """Refuse what is not a finite (whole) number at or above ``low``, or above it when ``strict``."""
    kind = Integral if whole else Real
    words = "a whole number" if whole else "a finite number"
    bound = f"> {low:g}" if strict else f">= {low:g}"
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} must be {words} {bound}, got {value!r}.")
    if not np.isfinite(float(value)) or value < low or (strict and value == low):
        raise ValueError(f"{name} must be {words} {bound}, got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is not True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}.")


def check_sample_weight(
    sample_weight: Any, like: Array, *, name: str = "sample_weight"
) -> Array | None:
    """Return weights of shape (n_samples,) in the array library and dtype of ``like``, or None.

    ``like`` is an array with one row for each example; errors call the argument ``name``.
    """
    if sample_weight is None:
        return None
    n = int(like.shape[0])
    weights = sample_weight
    if not is_array_api_obj(weights) or is_numpy(weights):
        try:
            number = np.asarray(weights).dtype.kind not in "USc"  # these convert silently
            values = np.asarray(weights, dtype=float)
        except (TypeError, ValueError):
            number, values = False, np.empty(0)
        if not number:
            raise TypeError(f"{name} must be numbers, got {reprlib.repr(sample_weight)}.")
        weights = np.full(n, values) if values.ndim == 0 else values
    weights = asarray_like(weights, like)
    if tuple(weights.shape) != (n,):
        shape = tuple(weights.shape)
        raise ValueError(f"{name} must have shape ({n},), one for each row of X, got {shape}.")
    xp = namespace(weights)
    bad = ~(xp.isfinite(weights) & (weights >= 0))
    if bool(xp.any(bad)):
        worst = float(weights[bad][0])
        raise ValueError(f"{name} must be finite and not negative, got {worst:g}.")
    if not bool(xp.any(weights > 0)):
        raise ValueError(f"{name} is zero for every example: at least one must be positive.")
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
    """Refuse a precomputed training matrix that is not square, symmetric and positive semi-definite."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"X must be the square Gram matrix of the training examples when kernel is precomputed, "
            f"got shape {tuple(K.shape)}."
        )
    if hasattr(K, "toarray"):
        K = K.toarray()
    xp = namespace(K)
    eps = float(xp.finfo(K.dtype).eps)
    size = float(xp.max(xp.abs(K))) if K.shape[0] else 0.0
    asymmetry = float(xp.max(xp.abs(K - K.T))) if K.shape[0] else 0.0
    if asymmetry > 1e3 * eps * size:
        raise ValueError(
            f"X must be a symmetric Gram matrix when kernel is precomputed; |K - K.T| reaches {asymmetry:.3g}. "
            "Pass (K + K.T) / 2 if it is symmetric up to rounding."
        )
    matrix = to_numpy(K) if not is_numpy(K) else K
    # a little more than rounding: the matrix may have been computed in single precision or rounded when stored
    jitter = max(1e-8, 1e2 * eps) * len(matrix) * max(size, 1e-300)
    try:
        cholesky(matrix + jitter * np.eye(len(matrix), dtype=matrix.dtype), overwrite_a=True)
    except LinAlgError:
        lowest = float(np.linalg.eigvalsh(matrix)[0])
        raise ValueError(
            "X must be a positive semi-definite Gram matrix when kernel is precomputed; its smallest "
            f"eigenvalue is {lowest:.3g}. Clip the negative eigenvalues, or use its rows as features."
        ) from None


def check_similarity(name: str, S: Any) -> None:
    """Refuse precomputed similarities that are not square and symmetric; warn of indefinite ones."""
    if S.shape[0] != S.shape[1]:
        raise ValueError(
            f"{name} must be the square matrix of similarities of the objects when their kernel is 'precomputed', got "
            f"shape {tuple(S.shape)}."
        )
    matrix = S.toarray() if hasattr(S, "toarray") else np.asarray(S)
    size = float(np.abs(matrix).max(initial=0.0))
    asymmetry = float(np.abs(matrix - matrix.T).max(initial=0.0))
    if asymmetry > 1e3 * np.finfo(matrix.dtype).eps * size:
        raise ValueError(
            f"{name} must be symmetric when its kernel is 'precomputed'; |S - S.T| reaches {asymmetry:.3g}. Pass "
            "(S + S.T) / 2 if the two directions measure the same."
        )
    jitter = max(1e-8, 1e2 * np.finfo(matrix.dtype).eps) * len(matrix) * max(size, 1e-300)
    try:
        cholesky(matrix + jitter * np.eye(len(matrix), dtype=matrix.dtype), overwrite_a=True)
    except LinAlgError:
        spectrum = np.linalg.eigvalsh(matrix)
        share = -spectrum[spectrum < 0].sum() / np.abs(spectrum).sum()
        warnings.warn(
            f"{name} is no kernel: its smallest eigenvalue is {spectrum[0]:.3g}, and negative ones are {share:.1%} of "
            "the spectrum. The objective has no minimum then; PairwiseRidge(solver='minres') still solves its linear "
            "system. Use gramian.kernels.similarity.clip(S), or as_features(S) with another kernel.",
            UserWarning,
            stacklevel=level_of_caller(),
        )
