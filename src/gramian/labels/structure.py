"""Label Gram matrices S: what is known beforehand about how the C outputs are related.

A structure multiplies from the right, ``B S`` along axis 1 of ``(n, C)`` and ``(n, C, q)`` arrays,
and never has to exist as a matrix. S is symmetric and positive semi-definite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from gramian._core.arrays import Array, as_vector, asarray_like, float_sum, namespace


class LabelStructure(ABC):
    """Base class of label Gram matrices."""

    @abstractmethod
    def mix(self, B: Array) -> Array:
        """Return ``B S`` along axis 1."""

    @abstractmethod
    def diagonal(self, n_outputs: int) -> np.ndarray:
        """Return the diagonal of S as an array of shape (n_outputs,)."""

    @property
    def theta(self) -> np.ndarray:
        """Log-parameters of the structure."""
        return np.empty(0)

    def clone_with_theta(self, theta: np.ndarray) -> LabelStructure:
        """Return a copy with other log-parameters."""
        return self

    def vjp(self, E: Array, G: Array) -> np.ndarray:
        """Return the gradient of ``⟨E, G S⟩`` in ``theta``."""
        return np.empty(0)


class Identity(LabelStructure):
    """Unrelated outputs: S = I.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Identity
    >>> Identity().mix(np.ones((1, 2)))
    array([[1., 1.]])
    """

    def mix(self, B: Array) -> Array:
        return B

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return np.ones(n_outputs)


class Scalar(LabelStructure):
    """One variance for all outputs: S = v I.

    Parameters
    ----------
    variance : float

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Scalar
    >>> Scalar(3.0).mix(np.ones((1, 2)))
    array([[3., 3.]])
    """

    def __init__(self, variance: float):
        self.variance = float(_checked_variances("variance", variance, ndim=0))

    def mix(self, B: Array) -> Array:
        return B * self.variance

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return np.full(n_outputs, self.variance)

    @property
    def theta(self) -> np.ndarray:
        return np.log([self.variance])

    def clone_with_theta(self, theta: np.ndarray) -> Scalar:
        return Scalar(float(np.exp(theta[0])))

    def vjp(self, E: Array, G: Array) -> np.ndarray:
        return np.array([self.variance * float_sum(E * G)])


class Diagonal(LabelStructure):
    """One variance for each output, or for each group of outputs: S = diag(v).

    Parameters
    ----------
    variances : array of shape (n_groups,)
    groups : array of int of shape (n_outputs,), default=None
        Which variance an output has; None gives each output its own.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Diagonal
    >>> Diagonal([1.0, 3.0]).mix(np.ones((1, 2)))
    array([[1., 3.]])
    """

    def __init__(self, variances: Any, groups: Any = None):
        self.variances = _checked_variances("variances", variances, ndim=1)
        size = self.variances.size
        self.groups = np.arange(size) if groups is None else np.asarray(groups, dtype=np.int64)
        if self.groups.ndim != 1 or np.any((self.groups < 0) | (self.groups >= size)):
            raise ValueError(
                f"groups must be a vector of numbers from 0 to {size - 1}, one for each output; got {groups!r}."
            )

    def mix(self, B: Array) -> Array:
        _check_outputs(B, self.groups.size)
        return B * _across(asarray_like(self.variances[self.groups], B), B)

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return self.variances[self.groups]

    @property
    def theta(self) -> np.ndarray:
        return np.log(self.variances)

    def clone_with_theta(self, theta: np.ndarray) -> Diagonal:
        return Diagonal(np.exp(theta), self.groups)

    def vjp(self, E: Array, G: Array) -> np.ndarray:
        xp = namespace(E, G)
        axes = (0, *range(2, E.ndim))
        each = as_vector(xp.sum(E * G, axis=axes, dtype=xp.float64))
        return self.variances * np.bincount(self.groups, each, self.variances.size)


class DenseStructure(LabelStructure):
    """Any symmetric positive semi-definite S, stored.

    Parameters
    ----------
    matrix : array of shape (n_outputs, n_outputs)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import DenseStructure
    >>> DenseStructure([[1.0, -0.5], [-0.5, 1.0]]).mix(np.array([[1.0, 0.0]]))
    array([[ 1. , -0.5]])
    """

    def __init__(self, matrix: Any):
        matrix = np.asarray(matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"matrix must be square, got shape {matrix.shape}.")
        if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10 * np.abs(matrix).max(initial=0)):
            raise ValueError(
                "matrix must be symmetric; pass (S + S.T) / 2 if it is so up to rounding."
            )
        smallest = np.linalg.eigvalsh(matrix)[0]
        if smallest < -1e-8 * np.abs(matrix).max(initial=1e-300):
            raise ValueError(
                f"matrix must be positive semi-definite; its smallest eigenvalue is {smallest:.3g}. "
                "Clip the negative eigenvalues or add a multiple of the identity."
            )
        self.matrix = matrix

    def mix(self, B: Array) -> Array:
        _check_outputs(B, self.matrix.shape[0])
        xp = namespace(B)
        S = asarray_like(self.matrix, B)
        return B @ S if B.ndim == 2 else xp.matmul(S, B)  # S is symmetric

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return np.diagonal(self.matrix)


def _across(values: Array, like: Array) -> Array:
    """Shape (C,) values so that they broadcast along axis 1."""
    return namespace(values).reshape(values, (1, -1) + (1,) * (like.ndim - 2))


def _check_outputs(B: Array, n_outputs: int) -> None:
    if B.shape[1] != n_outputs:
        raise ValueError(
            f"The label structure has {n_outputs} outputs, but the array has {B.shape[1]}."
        )


def _checked_variances(name: str, values: Any, ndim: int) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if (
        array.ndim != ndim
        or array.size == 0
        or not np.all(np.isfinite(array))
        or np.any(array <= 0)
    ):
        kind = "a positive number" if ndim == 0 else "a vector of positive numbers"
        raise ValueError(f"{name} must be {kind}, got {values!r}.")
    return array
