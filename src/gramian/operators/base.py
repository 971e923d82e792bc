"""What an operator is: something to multiply with.

`Operator` is the Gram operator 𝒦 on ``(n, C)`` and ``(n, C, q)`` arrays. `InputOperator` is one
Gram matrix M on the input side; it multiplies the first axis whatever follows, so all right-hand
sides go through in one pass.

An operator may be in float32 while the vectors are in float64. Products are then as fast as float32
allows, and `accurate` lets a solver refresh what it has accumulated: iterative refinement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gramian._core.arrays import Array, namespace
from gramian.kernels import Kernel
from gramian.kernels.parameters import clones_with_theta
from gramian.operators import costs
from gramian.operators.inputs.tiles import tiled_vjp, tiles


class KroneckerForm(NamedTuple):
    """The matrix ``left ⊗ right + constant``, with the constant added to every entry, in another order of rows.

    Attributes
    ----------
    left : ndarray of shape (m, m)
    right : ndarray of shape (q, q)
    order : ndarray of int of shape (m q,)
        The number of the example of each cell, those of the first left object first.
    constant : float
        Variance of an intercept, 0 if there is none.
    """

    left: np.ndarray
    right: np.ndarray
    order: np.ndarray
    constant: float = 0.0


class Operator(ABC):
    """A linear map on arrays whose first axis is the examples."""

    shape: tuple[int, int]
    dtype: Any

    @abstractmethod
    def __matmul__(self, B: Array) -> Array:
        """Multiply B of shape (n, ...), in the precision of the operator; the result has the dtype of B."""

    @abstractmethod
    def accurate(self, B: Array) -> Array:
        """Multiply with every sum accumulated in float64, whatever the precision of the operator."""

    def in_single(self) -> Operator | None:
        """Return the same operator with products in single precision where these are faster, else None.

        Its `accurate` products are those of this operator, so that a solver can refine what it found.
        """
        return None

    @abstractmethod
    def diagonal(self, n_outputs: int = 1) -> Array:
        """Return the diagonal of the operator as an array of shape (n, n_outputs)."""

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        """Return the gradient of ``⟨E, 𝒦 F⟩`` in ``theta``."""
        return np.empty(0)

    @property
    def theta(self) -> np.ndarray:
        """Log-parameters of everything inside; there are none unless an operator says so."""
        return np.empty(0)

    def clone_with_theta(self, theta: np.ndarray) -> Operator:
        """Return a copy with other log-parameters."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes kept by the operator beyond the training data."""
        return 0

    def compress(self, A: Array) -> tuple[Array | None, Array]:
        """Return the function with coefficients A on fewer examples: those, and its coefficients on them.

        None for the examples means all of them, with A as it is.
        """
        return None, A

    @property
    def is_diagonal(self) -> bool:
        """Whether 𝒦 is a diagonal matrix, and `diagonal` all of it."""
        return False

    @property
    def columns_alike(self) -> bool:
        """Whether problems in lockstep have one operator, so that some of them can be multiplied alone."""
        return True

    def kronecker(self) -> KroneckerForm | None:
        """Return the factors if this is K ⊗ T with reordered rows, plus a constant for an intercept; else None."""
        return None

    def blocks(self, n_outputs: int) -> list[tuple[Array, list[int]]]:
        """Return dense matrices with the outputs each one serves; only if outputs are not mixed."""
        raise ValueError(
            f"{type(self).__name__} has no block-diagonal dense form, which solver='exact' needs. "
            "Use solver='newton'."
        )


class InputOperator(Operator):
    """One Gram matrix on the input side. A subclass implements `_matmul` for two-dimensional B."""

    @abstractmethod
    def _matmul(self, B: Array) -> Array:
        """Multiply an array of shape (m, k)."""

    @abstractmethod
    def to_dense(self) -> Array:
        """Return the matrix itself; for small problems and tests."""

    def __matmul__(self, B: Array) -> Array:
        return self._flattened(self._matmul, B, self.dtype)

    def accurate(self, B: Array) -> Array:
        xp = namespace(B)
        if self.dtype == xp.float64:
            return self @ B
        return self._flattened(self._accurate, B, xp.float64)

    def _accurate(self, B: Array) -> Array:
        """Multiply an array of shape (m, k) by tiles of rows raised to float64."""
        xp = namespace(B)
        pieces = [xp.astype(tile, xp.float64) @ B for tile in self._tiles()]
        return xp.concat(pieces, axis=0) if pieces else B[:0, :]

    def _tiles(self) -> Iterator[Array]:
        """Yield the matrix by blocks of rows."""
        yield self.to_dense()

    def _flattened(self, product: Callable[[Array], Array], B: Array, dtype: Any) -> Array:
        """Apply a product of two-dimensional arrays of ``dtype`` to B, whatever its shape and dtype."""
        if B.shape[0] != self.shape[1]:
            raise ValueError(
                f"{type(self).__name__} of shape {self.shape} cannot multiply an array of shape {B.shape}."
            )
        xp = namespace(B)
        flat = xp.reshape(B, (B.shape[0], -1)) if B.ndim != 2 else B
        out = product(flat if B.dtype == dtype else xp.astype(flat, dtype))
        out = out if out.dtype == B.dtype else xp.astype(out, B.dtype)
        return xp.reshape(out, (self.shape[0], *B.shape[1:])) if B.ndim != 2 else out

    def diagonal(self, n_outputs: int = 1) -> Array:
        values = self._diagonal()
        xp = namespace(values)
        return xp.broadcast_to(values[:, None], (values.shape[0], n_outputs))

    @abstractmethod
    def _diagonal(self) -> Array:
        """Diagonal of the matrix, shape (n,)."""

    def columns(self, indices: np.ndarray) -> Array | None:
        """Return some columns of the symmetric matrix, shape (n, b), or None where that is not cheap."""
        return None

    column_work = costs.TILED_VALUE_FLOPS  # cost of each value of `columns`

    def work(self, n_columns: int) -> float:
        """Cost of a product, in the unit of `costs`; estimated, never measured."""
        return costs.stored_product(self.shape[0] * self.shape[1], n_columns)

    def blocks(self, n_outputs: int) -> list[tuple[Array, list[int]]]:
        return [(self.to_dense(), list(range(n_outputs)))]


class KernelOperator(InputOperator):
    """The Gram matrix ``k(X, Z)`` of a kernel; a subclass says how to multiply with it."""

    def __init__(self, kernel: Kernel, X: Array, Z: Array | None = None):
        self.kernel = kernel
        self.X = X
        self.Z = Z
        self.shape = (int(X.shape[0]), int(X.shape[0] if Z is None else Z.shape[0]))
        self.dtype = X.dtype

    def _with_kernel(self, kernel: Kernel) -> KernelOperator:
        """The same operator of another kernel."""
        return type(self)(kernel, self.X, self.Z)

    def _tiles(self) -> Iterator[Array]:
        for _, values in tiles(self.kernel, self.X, self.Z):
            yield values

    def to_dense(self) -> Array:
        return self.kernel(self.X, self.Z)

    def _diagonal(self) -> Array:
        return self.kernel.diag(self.X)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        return tiled_vjp(self.kernel, self.X, self.Z, E, F)

    @property
    def theta(self) -> np.ndarray:
        return self.kernel.theta

    def clone_with_theta(self, theta: np.ndarray) -> KernelOperator:
        return self._with_kernel(self.kernel.clone_with_theta(theta)) if self.theta.size else self


class CompositeOperator(Operator):
    """An operator of parts with log-parameters: operators and label structures."""

    _parts: list[Any]

    @abstractmethod
    def _with_parts(self, parts: list[Any]) -> Operator:
        """The same operator of other parts."""

    @property
    def theta(self) -> np.ndarray:
        return np.concatenate([part.theta for part in self._parts])

    def clone_with_theta(self, theta: np.ndarray) -> Operator:
        return self._with_parts(clones_with_theta(self._parts, theta))

    def in_single(self) -> Operator | None:
        singles = [part.in_single() if isinstance(part, Operator) else None for part in self._parts]
        if all(single is None for single in singles):
            return None
        parts = zip(singles, self._parts, strict=True)
        return self._with_parts([part if single is None else single for single, part in parts])

    @property
    def columns_alike(self) -> bool:
        return all(part.columns_alike for part in self._parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts if isinstance(part, Operator))
