"""Label Gram matrices S: what is known beforehand about how the C outputs are related.

A structure multiplies from the right, ``B S`` along axis 1 of ``(n, C)`` and ``(n, C, q)`` arrays,
and never has to exist as a matrix. S is symmetric and positive semidefinite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from gramian._core.arrays import (
    Array,
    as_vector,
    asarray_like,
    float_sum,
    namespace,
    to_numpy,
)
from gramian._core.validation import check_number
from gramian.kernels.parameters import DEFAULT_BOUNDS
from gramian.labels.correlation.inputs import symmetric_array


class LabelStructure(ABC):
    """Base class of label Gram matrices."""

    is_diagonal = False
    columns_alike = True  # whether all columns of B, of shape (n, C, q), are mixed by one S

    @abstractmethod
    def mix(self, B: Array) -> Array:
        """Return ``B S`` along axis 1."""

    @abstractmethod
    def diagonal(self, n_outputs: int) -> np.ndarray:
        """Return the diagonal of S as an array of shape (n_outputs,)."""

    @property
    def theta(self) -> np.ndarray:
        """Parameters of the structure: logarithms of what is positive, others as they are."""
        return np.empty(0)

    @property
    def bounds(self) -> np.ndarray:
        """Bounds of ``theta``, shape (n_parameters, 2)."""
        return np.tile(np.log(DEFAULT_BOUNDS), (self.theta.size, 1))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of ``theta``."""
        return tuple(f"parameter {k}" for k in range(self.theta.size))

    def clone_with_theta(self, theta: np.ndarray) -> LabelStructure:
        """Return a copy with other parameters."""
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

    is_diagonal = True

    def mix(self, B: Array) -> Array:
        return B

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return np.ones(n_outputs)


class Variances(LabelStructure):
    """Structures that differ in some variances only, whose logarithms are ``theta``."""

    variances: np.ndarray

    @property
    def theta(self) -> np.ndarray:
        return np.log(self.variances)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        if self.variances.size == 1:
            return ("variance",)
        return tuple(f"variance [{g}]" for g in range(self.variances.size))

    def _group_sums(self, groups: np.ndarray, derivatives: np.ndarray) -> np.ndarray:
        """Return the gradient in the logarithms from the derivatives in the variance of each output."""
        return self.variances * np.bincount(groups, derivatives, self.variances.size)


class Scalar(Variances):
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

    is_diagonal = True

    def __init__(self, variance: float):
        check_number("variance", variance, strict=True)
        self.variance = float(variance)
        self.variances = np.array([self.variance])

    def mix(self, B: Array) -> Array:
        return B * self.variance

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return np.full(n_outputs, self.variance)

    def clone_with_theta(self, theta: np.ndarray) -> Scalar:
        return Scalar(float(np.exp(theta[0])))

    def vjp(self, E: Array, G: Array) -> np.ndarray:
        return np.array([self.variance * float_sum(E * G)])


class Diagonal(Variances):
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

    is_diagonal = True

    def __init__(self, variances: Any, groups: Any = None):
        self.variances = checked_variances("variances", variances)
        size = self.variances.size
        self.groups = np.arange(size) if groups is None else np.asarray(groups, dtype=np.int64)
        if self.groups.ndim != 1 or np.any((self.groups < 0) | (self.groups >= size)):
            raise ValueError(
                f"groups must be a vector of numbers from 0 to {size - 1}, one for each output; got {groups!r}."
            )

    def mix(self, B: Array) -> Array:
        check_outputs(B, self.groups.size)
        variances = self.variances[self.groups].reshape(-1, *[1] * (B.ndim - 2))
        return B * asarray_like(variances, B)

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return self.variances[self.groups]

    def clone_with_theta(self, theta: np.ndarray) -> Diagonal:
        return Diagonal(np.exp(theta), self.groups)

    def vjp(self, E: Array, G: Array) -> np.ndarray:
        return self._group_sums(self.groups, column_sums(E * G))


class DenseStructure(LabelStructure):
    """Any symmetric positive semidefinite S, stored.

    Parameters
    ----------
    matrix : array of shape (n_outputs, n_outputs)
    name : str, default="matrix"
        What errors call it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import DenseStructure
    >>> DenseStructure([[1.0, -0.5], [-0.5, 1.0]]).mix(np.array([[1.0, 0.0]]))
    array([[ 1. , -0.5]])
    """

    def __init__(self, matrix: Any, name: str = "matrix"):
        self.matrix = symmetric_array(name, matrix)
        smallest = np.linalg.eigvalsh(self.matrix)[0]
        if smallest < -1e-8 * np.abs(self.matrix).max(initial=1e-300):
            raise ValueError(
                f"{name} must be positive semidefinite; its smallest eigenvalue is {smallest:.3g}. "
                "Clip the negative eigenvalues or add a multiple of the identity."
            )

    def mix(self, B: Array) -> Array:
        check_outputs(B, self.matrix.shape[0])
        return multiplied(B, self.matrix)

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return np.diagonal(self.matrix)


def multiplied(B: Array, matrix: np.ndarray) -> Array:
    """Return ``B matrix`` along axis 1, for (n, C) and (n, C, q)."""
    factor = asarray_like(matrix, B)
    return B @ factor if B.ndim == 2 else namespace(B).matmul(factor.T, B)


def column_sums(values: Array) -> np.ndarray:
    """Sum over all axes but the second, in float64, as a NumPy vector."""
    xp = namespace(values)
    return as_vector(xp.sum(values, axis=(0, *range(2, values.ndim)), dtype=xp.float64))


def contracted(E: Array, G: Array) -> np.ndarray:
    """Σ E[i, c, q] G[i, d, q] over examples and trailing columns, shape (c, d), in float64."""
    xp = namespace(E)
    E, G = (xp.astype(values, xp.float64) for values in (E, G))
    axes = tuple(axis for axis in range(E.ndim) if axis != 1)
    return np.asarray(to_numpy(xp.tensordot(E, G, axes=(axes, axes))))


def check_outputs(B: Array, n_outputs: int) -> None:
    """Refuse arrays of another number of outputs."""
    if B.shape[1] != n_outputs:
        raise ValueError(f"There must be {n_outputs} outputs, but the array has {B.shape[1]}.")


def checked_variances(name: str, values: Any) -> np.ndarray:
    """Return variances as a vector, or say what is wrong with them."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size == 0 or not np.all((array > 0) & (array < np.inf)):
        raise ValueError(f"{name} must be a vector of positive numbers, got {values!r}.")
    return array
