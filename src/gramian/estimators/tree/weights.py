"""The weights K of an orthogonal penalty: as given, or by eq. 6 with a unit diagonal; checked, repaired if asked for.

By eq. 6 of the paper K_ii is the number of nodes below and including i. A node with many descendants then pays that
many times more for the length of its normal: with the same C it is regularised more than a leaf, and the more so the
larger the tree. Our default divides K_ij by √(K_ii K_jj), so that every node pays ½ |w_i|², as in the other methods,
and C means the same for all. The condition on alpha is the same for both (`with_unit_diagonal`).

Zhou, Xiao & Wu (2011), theorem 1 and corollary 2: ½ Σ K_ij |w_iᵀ w_j| is strongly convex if the comparison matrix of K
(its diagonal, minus all else) is positive definite. What is off the diagonal may grow by the factor `largest_alpha`
until it is not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.validation import check_number, check_shape
from gramian.labels import Taxonomy, largest_alpha, smallest_eigenvalue
from gramian.labels.correlation.inputs import symmetric_array
from gramian.labels.margins.orthogonality import (
    sparse_orthogonality_weights,
    with_unit_diagonal,
)

# Smallest eigenvalue of the comparison matrix over the smallest diagonal entry of K:
DEFINITE_RATIO = 1e-8  # above this, K is positive definite beyond rounding errors
PROPOSED_RATIO = 1e-2  # the repairs that an error proposes reach this
COMFORTABLE_RATIO = 1e-3  # from here on alpha="auto" leaves K as it is
ALPHA_SHARE = 0.9  # of the largest admissible alpha, taken by alpha="auto" otherwise


def checked_weights(taxonomy: Taxonomy, K: Any, alpha: Any) -> tuple[sp.csr_array, float]:
    """Return K with its off-diagonal times alpha, and alpha.

    Parameters
    ----------
    taxonomy : Taxonomy
    K : array of shape (n_nodes - 1, n_nodes - 1), DataFrame or None
        In the order of ``taxonomy.names[1:]``, or with names; None is eq. 6, scaled to a unit diagonal.
    alpha : float or "auto"

    Returns
    -------
    K : CSR array of shape (n_nodes - 1, n_nodes - 1)
    alpha : float
    """
    if K is None:
        given = with_unit_diagonal(sparse_orthogonality_weights(taxonomy))
    else:
        given = sp.csr_array(_checked(taxonomy, K))
    diagonal = sp.diags_array(given.diagonal())

    def times(alpha: float) -> sp.csr_array:
        return sp.csr_array(diagonal + alpha * (given - diagonal))

    if isinstance(alpha, str):
        if alpha != "auto":
            raise ValueError(f"alpha must be a number >= 0 or 'auto', got {alpha!r}.")
        enough = smallest_eigenvalue(given) > COMFORTABLE_RATIO * diagonal.diagonal().min()
        chosen = 1.0 if enough else ALPHA_SHARE * largest_alpha(given)
        return times(chosen), chosen
    check_number("alpha", alpha)
    weights = times(alpha)
    lowest, smallest = smallest_eigenvalue(weights), float(diagonal.diagonal().min())
    if lowest <= DEFINITE_RATIO * smallest:
        fitting = _rounded((1 - PROPOSED_RATIO) * largest_alpha(given), up=False)
        more = _rounded(max(-lowest, 0.0) + PROPOSED_RATIO * smallest, up=True)
        fault = "alpha is too large for this hierarchy" if K is None else "K is not admissible"
        repair = "" if K is None else f", or add {more:g} to the diagonal of K"
        raise ValueError(
            f"{fault}: the smallest eigenvalue of the comparison matrix is {lowest:.3g} at alpha={alpha:g}, and the "
            f"penalty is convex only if it is positive. Use alpha={fitting:g} or less{repair}; alpha='auto' "
            "chooses."
        )
    return weights, float(alpha)


def _checked(taxonomy: Taxonomy, K: Any) -> np.ndarray:
    """K as an array in the order of the taxonomy, or what is wrong with it."""
    names = taxonomy.names[1:].tolist()
    array = symmetric_array("K", K, names, "node")
    order = "a row for each node of the hierarchy but the root, in the order of taxonomy.names[1:]"
    check_shape("K", array, (len(names), len(names)), order)
    if array.min() < 0:
        i, j = np.unravel_index(np.argmin(array), array.shape)
        raise ValueError(
            f"K must not be negative, got {array[i, j]:g} between {names[i]!r} and {names[j]!r}."
        )
    if np.diag(array).min() == 0:
        worst = names[int(np.argmin(np.diag(array)))]
        raise ValueError(f"K must have a positive diagonal, got 0 for {worst!r}.")
    strange = (array > 0) & (sparse_orthogonality_weights(taxonomy).toarray() == 0)
    if strange.any():
        i, j = np.argwhere(strange)[0]
        raise ValueError(
            "K must be zero between two nodes unless one is an ancestor of the other, because a normal is asked to "
            f"be orthogonal only to those of its ancestors. Got {array[i, j]:g} between {names[i]!r} and {names[j]!r}."
        )
    return array


def _rounded(value: float, *, up: bool) -> float:
    """Three digits, never on the wrong side."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return (math.ceil if up else math.floor)(value / unit) * unit
