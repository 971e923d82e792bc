"""The contract of an operator, and an operator that counts."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gramian._core.arrays import to_numpy
from gramian.operators import Operator
from gramian.testing import _clauses as check


class CountingOperator(Operator):
    """An operator that counts how often it is multiplied with; all else is passed on.

    Parameters
    ----------
    operator : Operator

    Attributes
    ----------
    n_products : int
        Number of products, ``operator @ B`` and ``operator.accurate(B)``.
    n_columns : int
        Number of vectors multiplied in them, ``C·q`` for B of shape (n, C, q).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.operators import Dense
    >>> from gramian.testing import CountingOperator
    >>> operator = CountingOperator(Dense(RBF(), np.zeros((4, 1))))
    >>> _ = operator @ np.ones((4, 3, 2))
    >>> operator.n_products, operator.n_columns
    (1, 6)
    """

    def __init__(self, operator: Operator):
        self.operator = operator
        self.shape = operator.shape
        self.dtype = operator.dtype
        self.n_products = 0
        self.n_columns = 0

    def __matmul__(self, B: Any) -> Any:
        self.n_products += 1
        self.n_columns += prod(B.shape[1:])
        return self.operator @ B

    def accurate(self, B: Any) -> Any:
        self.n_products += 1
        self.n_columns += prod(B.shape[1:])
        return self.operator.accurate(B)

    def diagonal(self, n_outputs: int = 1) -> Any:
        return self.operator.diagonal(n_outputs)

    def vjp(self, E: Any, F: Any) -> np.ndarray:
        return self.operator.vjp(E, F)

    @property
    def theta(self) -> np.ndarray:
        return self.operator.theta

    def clone_with_theta(self, theta: np.ndarray) -> CountingOperator:
        return CountingOperator(self.operator.clone_with_theta(theta))

    @property
    def columns_alike(self) -> bool:
        return self.operator.columns_alike

    @property
    def nbytes(self) -> int:
        return self.operator.nbytes

    def compress(self, A: Any) -> tuple[Any, Any]:
        return self.operator.compress(A)

    def blocks(self, n_outputs: int) -> list:
        return self.operator.blocks(n_outputs)


def check_operator(
    operator: Operator, dense: Any, *, n_outputs: int | None = None, seed: int = 0
) -> None:
    """Check that an operator keeps its contract.

    Parameters
    ----------
    operator : Operator
        On NumPy arrays. If its dtype is float32 comparisons are looser and gradients are left out.
    dense : array or callable
        What the operator should be, from elsewhere: its matrix M of shape (n, m) if it acts on each
        output alike; its matrix of shape (n·C, m·C) on column-stacked ``vec(A)``, for which
        ``vec(M A S)`` is ``kron(S, M) vec(A)``; or a function of arrays (m, C) and (m, C, q).
    n_outputs : int, default=None
        C; needed with a callable. By default what follows from the shape of ``dense``, or 3.
    seed : int, default=0

    Raises
    ------
    AssertionError
        The message names the clause that fails.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.operators import Streamed
    >>> from gramian.testing import check_operator
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> kernel = RBF(2.0)
    >>> check_operator(Streamed(kernel, X), kernel(X))
    >>> check_operator(Streamed(kernel, X[:4], X), kernel(X[:4], X))  # for prediction
    """
    n, m = operator.shape
    if callable(dense):
        if n_outputs is None:
            raise TypeError("check_operator needs n_outputs when dense is a function.")
        _OperatorContract(operator, seed, dense, n_outputs)._check()
        return
    matrix = np.asarray(dense, dtype=float)
    if matrix.shape == (n, m):
        n_outputs = n_outputs or 3
        matrix = np.kron(np.eye(n_outputs), matrix)
    C = matrix.shape[0] // n
    if matrix.shape != (n * C, m * C) or n_outputs not in (None, C):
        raise ValueError(f"dense has shape {matrix.shape}, the operator {operator.shape}.")

    def oracle(B: np.ndarray) -> np.ndarray:
        if B.ndim == 3:
            return np.stack([oracle(B[:, :, j]) for j in range(B.shape[2])], axis=2)
        return (matrix @ B.T.reshape(-1)).reshape(C, n).T

    _OperatorContract(operator, seed, oracle, C)._check()


@dataclass(frozen=True)
class _OperatorContract(check.Contract):
    subject: Operator
    oracle: Callable[..., Any]
    n_outputs: int

    @property
    def _precision(self) -> float:
        return 2e-5 if self.subject.dtype == np.float32 else 1e-9

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        """What may follow the first axis."""
        return [(self.n_outputs,), (self.n_outputs, 1), (self.n_outputs, 2)]

    @property
    def _is_square(self) -> bool:
        return self.subject.shape[0] == self.subject.shape[1]

    def _random(self, n_rows: int, shape: tuple[int, ...], count: int = 1) -> list[np.ndarray]:
        arrays = self._rng.normal(size=(count, n_rows, *shape)).astype(self.subject.dtype)
        return [check.read_only(array) for array in arrays]

    def _columns(self, count: int = 1) -> Iterator[list[np.ndarray]]:
        """Arrays to multiply with, of each shape."""
        for shape in self._shapes:
            yield self._random(self.subject.shape[1], shape, count)

    def has_shape_and_dtype(self) -> None:
        """shape holds two integers, nbytes is not negative, and a product has the shape and dtype of B."""
        operator = self.subject
        assert all(type(size) is int for size in operator.shape), f"shape is {operator.shape}."
        assert operator.nbytes >= 0, f"nbytes is {operator.nbytes}."
        for (columns,) in self._columns():
            expected = (operator.shape[0], *columns.shape[1:])
            for dtype in (np.float32, np.float64):
                B = columns.astype(dtype)
                for name, product in [("@", operator @ B), ("accurate", operator.accurate(B))]:
                    assert product.dtype == dtype, f"{name}: {B.dtype} became {product.dtype}."
                    assert product.shape == expected, f"{name}: {product.shape}, not {expected}."

    def multiplies(self) -> None:
        """operator @ B is the product with the dense form, for (n, C) and (n, C, q)."""
        for (B,) in self._columns():
            check.close(self.subject @ B, self.oracle(B), self._precision, f"B {B.shape}")

    def multiplies_accurately(self) -> None:
        """operator.accurate(B) is the same product, and as close to it for float64 arrays."""
        for (B,) in self._columns():
            for array in (B, B.astype(np.float64)):
                found, what = self.subject.accurate(array), f"{array.dtype} {B.shape}"
                check.close(found, self.oracle(array), self._precision, what)

    def is_linear(self) -> None:
        """operator @ (a B + C) is a (operator @ B) + operator @ C, and zeros give zeros."""
        for B, C in self._columns(2):
            a = B.dtype.type(-2.5)
            expected = a * (self.subject @ B) + self.subject @ C
            check.close(self.subject @ (a * B + C), expected, 10 * self._precision)
            assert not np.any(self.subject @ np.zeros_like(B)), "zeros give something else."

    def is_symmetric(self) -> None:
        """⟨E, 𝒦F⟩ is ⟨𝒦E, F⟩, if the operator is square."""
        for E, F in self._columns(2) if self._is_square else ():
            left, right = _inner(E, self.subject @ F), _inner(self.subject @ E, F)
            scale = np.linalg.norm(self.subject @ E) * np.linalg.norm(F)
            check.close(left, right, self._precision, scale=float(scale))

    def has_diagonal(self) -> None:
        """diagonal(C) is the diagonal of a square operator, shape (n, C)."""
        if not self._is_square:
            return
        found = to_numpy(self.subject.diagonal(self.n_outputs))
        expected = np.empty((self.subject.shape[0], *self._shapes[0]))
        for i, c in np.ndindex(expected.shape[:2]):
            E = np.zeros(expected.shape)
            E[i, c] = 1
            expected[i, c] = self.oracle(E)[i, c]
        check.close(found, expected, max(self._precision, 1e-7))

    def refuses_other_sizes(self) -> None:
        """An array with another number of rows is an error, not a wrong result."""
        for n_rows in {self.subject.shape[1] + 1, 1} - {self.subject.shape[1]}:
            (B,) = self._random(n_rows, self._shapes[0])
            for product in (self.subject.__matmul__, self.subject.accurate):
                what = f"{product.__name__} took an array of {n_rows} rows."
                with check.refusal(what, ValueError, TypeError, IndexError):
                    product(B)

    def leaves_inputs_alone(self) -> None:
        """A product does not change its input, and twice the same product is the same."""
        for (B,) in self._columns():
            first = np.array(self.subject @ B)
            check.unchanged(lambda copy: self.subject @ copy, B=B)
            check.close(self.subject @ B, first, self._precision, "second product")

    def ignores_memory_layout(self) -> None:
        """Column-major and strided arrays are multiplied alike."""
        for (B,) in self._columns():
            expected = np.array(self.subject @ B)
            for name, array in check.layouts(B).items():
                check.close(self.subject @ array, expected, self._precision, name)

    def takes_theta(self) -> None:
        """clone_with_theta(theta) has that theta and leaves the operator alone."""
        (B,) = next(self._columns())
        self._check_theta(lambda copy: copy @ B, np.array(self.subject @ B), self._precision)

    def has_gradient(self) -> None:
        """vjp(E, F) is the gradient of ⟨E, 𝒦F⟩ in theta, for (n, C) and (n, C, q), in float64."""
        operator = self.subject
        for (F,) in self._columns() if operator.dtype == np.float64 else ():
            (E,) = self._random(operator.shape[0], F.shape[1:])
            F = F + 0.1  # not E itself in a square operator

            def product(copy, E=E, F=F):
                return _inner(E, copy @ F)

            scale = 0.1 * float(np.linalg.norm(E) * np.linalg.norm(operator @ F))
            self._check_gradient(operator.vjp(E, F), product, 1e-7, f"E {E.shape}", scale)

    def pickles(self) -> None:
        """A pickled copy multiplies alike."""
        copy = pickle.loads(pickle.dumps(self.subject))
        (B,) = next(self._columns())
        check.close(copy @ B, self.subject @ B, self._precision)
        assert copy.shape == self.subject.shape, f"shape {copy.shape}."


def _inner(E: np.ndarray, F: np.ndarray) -> float:
    return float(np.sum(E * F, dtype=np.float64))
