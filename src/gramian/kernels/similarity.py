"""What to do with similarities whose matrix is not positive semidefinite: it has negative eigenvalues.

Scores of how similar two sequences or two graphs are need not be kernels. With ``S = Σ σ v vᵀ`` the remedies are

- `clip`: ``Σ max(σ, 0) v vᵀ``, the nearest positive semidefinite matrix. New rows k become ``k Σ_{σ>0} v vᵀ``;
- `flip`: ``Σ |σ| v vᵀ``. New rows k become ``k Σ sign(σ) v vᵀ``;
- `shift`: ``S + |σ_min| I``, white noise of each object. New rows stay as they are, because noise is not predicted;
- `as_features` describes each object by its similarities to all objects, for any kernel of features.

The first three are for a precomputed kernel. Clipped and flipped rows of the old objects are those of the repaired
matrix exactly. Estimators for pairs do this by themselves if asked to, ``indefinite="clip"``, and have the kernel
`Repaired` then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian._core import validation
from gramian._core.arrays import Array
from gramian.kernels import simple

__all__ = ["Repaired", "as_features", "clip", "flip", "shift"]

REPAIRS = ("clip", "flip", "shift")


@dataclass(eq=False, repr=False)
class Repaired(simple.Precomputed):
    """Precomputed similarities that are no kernel, made one: train × train in ``fit``, new × train in ``predict``.

    Parameters
    ----------
    repair : {"clip", "flip", "shift"}
        What was done.
    projection : array of shape (n, n) or None, default=None
        What rows of similarities to the n training objects are multiplied by.
    noise : float, default=0.0
        What is added to the similarity of a training object to itself.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels.similarity import Repaired
    >>> S = np.array([[1.0, 2.0], [2.0, 1.0]])
    >>> kernel = Repaired.of(S, "flip")
    >>> kernel(S).round(3)
    array([[2., 1.],
           [1., 2.]])
    >>> kernel(S[:1], S).round(3)  # the row of a known object
    array([[2., 1.]])
    """

    repair: str
    projection: Any = None
    noise: float = 0.0

    @classmethod
    def of(cls, S: Any, repair: str) -> Repaired:
        """Return the kernel for training similarities.

        Parameters
        ----------
        S : array or sparse array of shape (n, n)
            Similarities; the mean of S and its transpose is used.
        repair : {"clip", "flip", "shift"}

        Returns
        -------
        Repaired
        """
        validation.check_choice("repair", repair, REPAIRS)
        matrix = _square(S).astype(np.float64)
        if repair == "shift":
            return cls(repair, noise=max(0.0, -float(np.linalg.eigvalsh(matrix)[0])))
        values, vectors = np.linalg.eigh(matrix)
        signs = (values > 0).astype(float) if repair == "clip" else np.sign(values)
        projection = (vectors * signs) @ vectors.T
        return cls(repair, (projection + projection.T) / 2)

    def rows(self, X: Array) -> np.ndarray:
        """Return repaired similarities of objects to all training objects, without noise.

        Parameters
        ----------
        X : array or sparse array of shape (n_new, n)

        Returns
        -------
        ndarray of shape (n_new, n)
        """
        values = super()._evaluate(X, X, None)
        if self.projection is None:
            return values
        if values.shape[1] != len(self.projection):
            raise ValueError(
                f"Similarities must be to the {len(self.projection)} objects that they were repaired for, got "
                f"{values.shape[1]} columns."
            )
        return (values.astype(np.float64) @ self.projection).astype(values.dtype)

    def of_training(self, values: np.ndarray) -> np.ndarray:
        """Return the matrix of some training objects from their repaired rows: symmetric, and with noise.

        Parameters
        ----------
        values : ndarray of shape (m, m)

        Returns
        -------
        ndarray of shape (m, m)
        """
        matrix = (values + values.T) / 2
        matrix[np.diag_indices_from(matrix)] += values.dtype.type(self.noise)
        return matrix

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        values = self.rows(X)
        if offset == 0 and values.shape[0] == values.shape[1]:
            return self.of_training(values)
        if offset is None or not self.noise:
            return values
        return values + self.noise * np.eye(*values.shape, k=offset, dtype=values.dtype)

    def diag(self, X: Array) -> Array:
        return np.diagonal(self(X)).copy()

    def smooth_diag(self, X: Array) -> Array:
        return np.diagonal(self.rows(X)).copy()

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"Repaired({self.repair!r})"


def clip(S: Any, new: Any = None) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Return the nearest positive semidefinite matrix, in the Frobenius norm: negative eigenvalues become zero.

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
    >>> clip(np.array([[1.0, 2.0], [2.0, 1.0]])).round(3)
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """
    return _repaired("clip", S, new)


def flip(S: Any, new: Any = None) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Return the matrix with the sizes of the eigenvalues in their place: negative ones become positive.

    Parameters
    ----------
    S : array of shape (n, n)
        Similarities; the mean of S and its transpose is used.
    new : array of shape (n_new, n), default=None
        Similarities of new objects to those of S, to be changed in the same way: their parts along eigenvectors of
        negative eigenvalues change sign.

    Returns
    -------
    ndarray of shape (n, n), and with ``new`` also one of shape (n_new, n)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels.similarity import flip
    >>> flip(np.array([[1.0, 2.0], [2.0, 1.0]])).round(3)
    array([[2., 1.],
           [1., 2.]])
    """
    return _repaired("flip", S, new)


def shift(S: Any, new: Any = None) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Return the matrix with the size of its smallest eigenvalue, if that is negative, added to the diagonal.

    Similarities of different objects stay as they are.

    Parameters
    ----------
    S : array of shape (n, n)
        Similarities; the mean of S and its transpose is used.
    new : array of shape (n_new, n), default=None
        Similarities of new objects to those of S. They stay as they are: what is added is noise of each object of S.

    Returns
    -------
    ndarray of shape (n, n), and with ``new`` also one of shape (n_new, n)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels.similarity import shift
    >>> shift(np.array([[1.0, 2.0], [2.0, 1.0]])).round(3)
    array([[2., 2.],
           [2., 2.]])
    """
    return _repaired("shift", S, new)


def _repaired(repair: str, S: Any, new: Any) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    S = _square(S)
    kernel = Repaired.of(S, repair)
    matrix = kernel(S)
    if new is None:
        return matrix
    rows = np.array(new, dtype=S.dtype)
    if rows.ndim != 2 or rows.shape[1] != S.shape[0]:
        raise ValueError(f"new must have shape (n_new, {S.shape[0]}), got {rows.shape}.")
    return matrix, kernel.rows(rows)


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
