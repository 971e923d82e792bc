"""The weights K of an orthogonal penalty: as given or by eq. 6, checked, and repaired if asked for.

Zhou, Xiao & Wu (2011), theorem 1 and corollary 2: ½ Σ K_ij |w_iᵀ w_j| is strongly convex if the comparison matrix of K
(its diagonal, minus all else) is positive definite. What is off the diagonal may grow by the factor `largest_alpha`
until it is not.
"""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np

from gramian._core.validation import check_number
from gramian.labels import Taxonomy, largest_alpha, orthogonality_weights, smallest_eigenvalue

__all__ = ["checked_weights"]

SMALLEST = 1e-8  # λ_min over the smallest diagonal entry, above which K is positive definite beyond rounding
ROOM = 1e-2  # the same for repairs that an error proposes
COMFORT = 1e-3  # the same for alpha="auto" to leave K as it is
SHARE = 0.9  # of the largest alpha, taken by alpha="auto"


def checked_weights(taxonomy: Taxonomy, K: Any, alpha: Any) -> tuple[np.ndarray, float]:
    """Return K with its off-diagonal times alpha, and alpha.

    Parameters
    ----------
    taxonomy : Taxonomy
    K : array of shape (n_nodes - 1, n_nodes - 1), DataFrame or None
        In the order of ``taxonomy.names[1:]``, or with names; None is eq. 6.
    alpha : float or "auto"

    Returns
    -------
    K : ndarray of shape (n_nodes - 1, n_nodes - 1)
    alpha : float
    """
    given = orthogonality_weights(taxonomy) if K is None else _checked(taxonomy, K)
    diagonal = np.diag(np.diag(given))
    if isinstance(alpha, str):
        if alpha != "auto":
            raise ValueError(f"alpha must be a number >= 0 or 'auto', got {alpha!r}.")
        enough = smallest_eigenvalue(given) > COMFORT * diagonal.diagonal().min()
        chosen = 1.0 if enough else SHARE * largest_alpha(given)
        return diagonal + chosen * (given - diagonal), chosen
    check_number("alpha", alpha)
    weights = diagonal + alpha * (given - diagonal)
    lowest, smallest = smallest_eigenvalue(weights), float(diagonal.diagonal().min())
    if lowest <= SMALLEST * smallest:
        fitting = _rounded((1 - ROOM) * largest_alpha(given), up=False)
        more = _rounded(max(-lowest, 0.0) + ROOM * smallest, up=True)
        fault = "alpha is too large for this hierarchy" if K is None else "K is not admissible"
        what = f"K = orthogonality_weights(taxonomy, {alpha:g})" if K is None else "K"
        raise ValueError(
            f"{fault}: the smallest eigenvalue of the comparison matrix is {lowest:.3g} at alpha={alpha:g}, and the "
            f"penalty is convex only if it is positive. Use alpha={fitting:g} or less, or add {more:g} to the diagonal "
            f"of {what}; alpha='auto' chooses."
        )
    return weights, float(alpha)


def _checked(taxonomy: Taxonomy, K: Any) -> np.ndarray:
    """K as an array in the order of the taxonomy, or what is wrong with it."""
    names = taxonomy.names[1:].tolist()
    if hasattr(K, "columns"):
        K = _in_order(K, names)
    try:
        array = np.array(K, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"K must be a matrix of numbers, got {reprlib.repr(K)}.") from None
    m = len(names)
    if array.shape != (m, m):
        raise ValueError(
            f"K must have shape ({m}, {m}), a row for each node of the hierarchy but the root, in the order of "
            f"taxonomy.names[1:]; got {array.shape}."
        )
    if not np.all(np.isfinite(array)):
        i, j = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(
            f"K must be finite, got {array[i, j]} between {names[i]!r} and {names[j]!r}."
        )
    asymmetry = np.abs(array - array.T)
    if asymmetry.max() > 1e-9 * np.abs(array).max():
        i, j = np.unravel_index(np.argmax(asymmetry), array.shape)
        raise ValueError(
            f"K must be symmetric; between {names[i]!r} and {names[j]!r} it has {array[i, j]:g} and {array[j, i]:g}. "
            "Pass (K + K.T) / 2 if both mean the same."
        )
    array = (array + array.T) / 2
    if array.min() < 0:
        i, j = np.unravel_index(np.argmin(array), array.shape)
        raise ValueError(
            f"K must not be negative, got {array[i, j]:g} between {names[i]!r} and {names[j]!r}."
        )
    if np.diag(array).min() == 0:
        worst = names[int(np.argmin(np.diag(array)))]
        raise ValueError(f"K must have a positive diagonal, got 0 for {worst!r}.")
    strange = (array > 0) & (orthogonality_weights(taxonomy) == 0)
    if strange.any():
        i, j = np.argwhere(strange)[0]
        raise ValueError(
            "K must be zero between nodes of which neither is an ancestor of the other: only more special normals are "
            f"asked to be orthogonal to more general ones. Got {array[i, j]:g} between {names[i]!r} and {names[j]!r}."
        )
    return array


def _in_order(frame: Any, names: list[Any]) -> np.ndarray:
    """The entries of a data frame in the order of the names."""
    for axis, found in (("rows", list(frame.index)), ("columns", list(frame.columns))):
        if len(set(found)) < len(found):
            raise ValueError(f"K names some of its {axis} twice.")
        missing = [name for name in names if name not in set(found)]
        other = [name for name in found if name not in set(names)]
        if missing or other:
            wrong = f"lack {missing[0]!r}" if missing else f"have {other[0]!r}"
            raise ValueError(
                f"K must name the nodes of the hierarchy, without the root; its {axis} {wrong}."
            )
    rows, columns = (
        [labels.get_loc(name) for name in names] for labels in (frame.index, frame.columns)
    )
    return np.asarray(frame)[np.ix_(rows, columns)]


def _rounded(value: float, *, up: bool) -> float:
    """Three digits, never on the wrong side."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return (math.ceil if up else math.floor)(value / unit) * unit
