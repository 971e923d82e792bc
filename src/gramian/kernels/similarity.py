"""What to do with similarities whose matrix is not positive semidefinite: it has negative eigenvalues.

Scores of how similar two sequences or two graphs are need not be kernels. There are two remedies:

- `clip` takes the nearest positive semidefinite matrix, ``S₊ = Σ max(σ, 0) v vᵀ``, for a precomputed kernel;
- `as_features` describes each object by its similarities to all objects, for any kernel of features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_features", "clip"]


def clip(S: Any, new: Any = None) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Return the nearest positive semidefinite matrix, in the Frobenius norm.

    Parameters
    ----------
    S : array of shape (n, n)
        Similarities; the mean of S and its transpose is used.
    new : array of shape (n_new, n), default=None
        Similarities of new objects to those of S, to be changed in the same way: projected on the eigenvectors that
        are kept.

    Returns
    -------
    ndarray of shape (n, n), and with ``new`` also one of shape (n_new, n)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels.similarity import clip
    >>> clip(np.array([[1.0, 2.0], [2.0, 1.0]]))
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """
    S = _square(S)
    values, vectors = np.linalg.eigh(S)
    kept = vectors[:, values > 0]
    clipped = (kept * values[values > 0]) @ kept.T
    clipped = (clipped + clipped.T) / 2
    if new is None:
        return clipped
    rows = np.asarray(new, dtype=S.dtype)
    if rows.ndim != 2 or rows.shape[1] != S.shape[0]:
        raise ValueError(f"new must have shape (n_new, {S.shape[0]}), got {rows.shape}.")
    return clipped, rows @ kept @ kept.T


def as_features(S: Any) -> np.ndarray:
    """Return the rows of a similarity matrix as features, each column centred and the whole scaled.

    The mean squared norm of the rows becomes 1, so that kernels with a default scale suit them.

    Parameters
    ----------
    S : array of shape (n, n)
        Similarities; the mean of S and its transpose is used.

    Returns
    -------
    ndarray of shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels.similarity import as_features
    >>> as_features(np.array([[1.0, 0.2], [0.2, 1.0]])).round(3)
    array([[ 0.707, -0.707],
           [-0.707,  0.707]])
    """
    S = _square(S)
    centred = S - S.mean(axis=0)
    size = np.sqrt(np.mean(np.sum(centred**2, axis=1)))
    return centred / size if size > 0 else centred


def _square(S: Any) -> np.ndarray:
    matrix = S.toarray() if hasattr(S, "toarray") else np.asarray(S)
    if matrix.dtype.kind not in "fiub":
        raise TypeError(f"S must hold numbers, got {matrix.dtype}.")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"S must be square, one row for each object, got shape {matrix.shape}.")
    matrix = matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)
    if not np.all(np.isfinite(matrix)):
        raise ValueError("S must be finite; it holds NaN or infinity.")
    return (matrix + matrix.T) / 2
