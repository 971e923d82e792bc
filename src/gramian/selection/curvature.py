"""Coordinates in which a function bends alike in all directions, from steps of an earlier descent.

Formula
    The BFGS matrix B of steps s and changes of the gradient y,

        B ← B − B s sᵀ B / sᵀ B s + y yᵀ / yᵀ s,        B₀ = (yᵀ y / yᵀ s) I,

    and variables x with ``v = v₀ + T x``, ``T = B^(−1/2)``. The quasi-Newton step −B⁻¹ g is −Tᵀ g there.

Method
    A criterion on more rows has nearly the curvature of one on fewer rows. SciPy's L-BFGS-B cannot be given a matrix to
    start from, but other coordinates: T is scaled so that its first step, which has length one, is the quasi-Newton
    step.

Cost
    p³ for p variables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEAST_CURVATURE = 1e-3  # relative to the largest: steps along flat directions stay within reason
SMALLEST_COSINE = 1e-3  # between a step and the change of the gradient, for a pair to be used


def quasi_newton_basis(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], gradient: np.ndarray, longest: float
) -> np.ndarray:
    """Return T, so that a step of length one against the gradient is the quasi-Newton step.

    Parameters
    ----------
    pairs : sequence of (step, change of the gradient)
        Of an earlier descent, in its order.
    gradient : ndarray of shape (p,)
        Where the new descent begins.
    longest : float
        Longest first step.

    Returns
    -------
    ndarray of shape (p, p)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.selection.curvature import quasi_newton_basis
    >>> H = np.array([[4.0, 1.0], [1.0, 2.0]])
    >>> steps = np.eye(2)
    >>> gradient = H @ np.array([0.3, -0.2])
    >>> T = quasi_newton_basis([(s, H @ s) for s in steps] * 20, gradient, longest=10.0)
    >>> step = -T @ (T.T @ gradient) / np.linalg.norm(T.T @ gradient)
    >>> step.round(3)
    array([-0.3,  0.2])
    """
    p = gradient.size
    useful = [(s, y) for s, y in pairs if s @ y > SMALLEST_COSINE * _norm(s) * _norm(y)]
    if not useful:
        return longest * np.eye(p)
    s, y = useful[-1]
    B = (y @ y) / (y @ s) * np.eye(p)
    for s, y in useful:
        Bs = B @ s
        B = B - np.outer(Bs, Bs) / (s @ Bs) + np.outer(y, y) / (y @ s)
    values, vectors = np.linalg.eigh(B)
    T = vectors / np.sqrt(np.maximum(values, LEAST_CURVATURE * values[-1]))
    length = _norm(T.T @ gradient)  # of the quasi-Newton step in the new coordinates
    step = _norm(T @ (T.T @ gradient))
    return T * length * min(1.0, longest / max(step, np.finfo(float).tiny))


def _norm(vector: np.ndarray) -> float:
    return float(np.sqrt(vector @ vector))
