"""The contract of an operator, and an operator that counts."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gramian._core.arrays import to_numpy
from gramian.operators import Operator
from gramian.testing._clauses import assert_close, numerical_gradient, read_only, run_clauses

__all__ = ["CountingOperator", "check_operator"]


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
    def nbytes(self) -> int:
        return self.operator.nbytes

    def compress(self, A: Any) -> tuple[Any, Any]:
        return self.operator.compress(A)

    def blocks(self, n_outputs: int) -> list:
        return self.operator.blocks(n_outputs)


Oracle = Callable[..., Any]


@dataclass(frozen=True)
class _Case:
    operator: Operator
    oracle: Oracle
    n_outputs: int
    seed: int

    @property
    def precision(self) -> float:
        return 2e-5 if self.operator.dtype == np.float32 else 1e-9

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """What may follow the first axis."""
        return [(self.n_outputs,), (self.n_outputs, 1), (self.n_outputs, 2)]

    def random(self, n_rows: int, shape: tuple[int, ...], count: int = 1) -> list[np.ndarray]:
        rng = np.random.default_rng(self.seed)
        arrays = rng.normal(size=(count, n_rows, *shape)).astype(self.operator.dtype)
        return [read_only(array) for array in arrays]

    def columns(self, shape: tuple[int, ...], count: int = 1) -> list[np.ndarray]:
        return self.random(self.operator.shape[1], shape, count)

    def rows(self, shape: tuple[int, ...], count: int = 1) -> list[np.ndarray]:
        return self.random(self.operator.shape[0], shape, count)


def check_operator(
    operator: Operator,
    dense: Any,
    *,
    n_outputs: int | None = None,
    seed: int = 0,
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
    case = _case(operator, dense, n_outputs, seed)
    clauses = [
        _has_shape_and_dtype,
        _multiplies,
        _multiplies_accurately,
        _is_linear,
        _refuses_other_sizes,
        _leaves_inputs_alone,
        _ignores_memory_layout,
        _takes_theta,
        _pickles,
    ]
    if operator.shape[0] == operator.shape[1]:
        clauses += [_is_symmetric, _has_diagonal]
    if operator.dtype == np.float64:
        clauses.append(_has_gradient)
    run_clauses(operator, clauses, case)


def _case(operator: Operator, dense: Any, n_outputs: int | None, seed: int) -> _Case:
    n, m = operator.shape
    if callable(dense):
        if n_outputs is None:
            raise TypeError("check_operator needs n_outputs when dense is a function.")
        return _Case(operator, dense, n_outputs, seed)
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

    return _Case(operator, oracle, C, seed)


def _has_shape_and_dtype(case: _Case) -> None:
    """shape holds two integers, nbytes is not negative, and a product has the shape and dtype of B."""
    operator = case.operator
    assert all(type(size) is int for size in operator.shape), f"shape is {operator.shape}."
    assert operator.nbytes >= 0, f"nbytes is {operator.nbytes}."
    for shape in case.shapes:
        expected = (operator.shape[0], *shape)
        for dtype in (np.float32, np.float64):
            B = case.columns(shape)[0].astype(dtype)
            for name, product in [("@", operator @ B), ("accurate", operator.accurate(B))]:
                assert product.dtype == dtype, f"{name}: {B.dtype} became {product.dtype}."
                assert product.shape == expected, f"{name}: shape {product.shape}, not {expected}."


def _multiplies(case: _Case) -> None:
    """operator @ B is the product with the dense form, for (n, C) and (n, C, q)."""
    for shape in case.shapes:
        (B,) = case.columns(shape)
        assert_close(case.operator @ B, case.oracle(B), case.precision, f"B {B.shape}")


def _multiplies_accurately(case: _Case) -> None:
    """operator.accurate(B) is the same product, and as close to it for float64 arrays."""
    for shape in case.shapes:
        (B,) = case.columns(shape)
        for array in (B, B.astype(np.float64)):
            found = case.operator.accurate(array)
            assert_close(found, case.oracle(array), case.precision, f"{array.dtype} {B.shape}")


def _is_linear(case: _Case) -> None:
    """operator @ (a B + C) is a (operator @ B) + operator @ C, and zeros give zeros."""
    for shape in case.shapes:
        B, C = case.columns(shape, 2)
        a = B.dtype.type(-2.5)
        expected = a * (case.operator @ B) + case.operator @ C
        assert_close(case.operator @ (a * B + C), expected, 10 * case.precision)
        assert not np.any(case.operator @ np.zeros_like(B)), "zeros give something else."


def _is_symmetric(case: _Case) -> None:
    """⟨E, 𝒦F⟩ is ⟨𝒦E, F⟩."""
    for shape in case.shapes:
        E, F = case.columns(shape, 2)
        left, right = _inner(E, case.operator @ F), _inner(case.operator @ E, F)
        scale = np.linalg.norm(case.operator @ E) * np.linalg.norm(F)
        assert_close(left, right, case.precision, scale=float(scale))


def _has_diagonal(case: _Case) -> None:
    """diagonal(C) is the diagonal of the operator, shape (n, C)."""
    (first, *_), n = case.shapes, case.operator.shape[0]
    found = to_numpy(case.operator.diagonal(case.n_outputs))
    shape = (n, *first)
    expected = np.empty(shape)
    for i in range(n):
        for c in range(case.n_outputs):
            E = np.zeros(shape)
            E[i, c] = 1
            expected[i, c] = case.oracle(E)[i, c]
    assert_close(found, expected, max(case.precision, 1e-7))


def _refuses_other_sizes(case: _Case) -> None:
    """An array with another number of rows is an error, not a wrong result."""
    shape = case.shapes[0]
    for n_rows in (case.operator.shape[1] + 1, 1):
        if n_rows == case.operator.shape[1]:
            continue
        (B,) = case.random(n_rows, shape)
        for product in (case.operator.__matmul__, case.operator.accurate):
            try:
                product(B)
            except (ValueError, TypeError, IndexError):
                continue
            raise AssertionError(f"{product.__name__} took an array of {n_rows} rows.")


def _leaves_inputs_alone(case: _Case) -> None:
    """A product does not change its input, and twice the same product is the same."""
    for shape in case.shapes:
        (B,) = case.columns(shape)
        copy = B.copy()
        first = np.array(case.operator @ copy)
        np.testing.assert_array_equal(copy, B, err_msg="B was modified.")
        assert_close(case.operator @ copy, first, case.precision, "second product")


def _ignores_memory_layout(case: _Case) -> None:
    """Column-major and strided arrays are multiplied alike."""
    for shape in case.shapes:
        (B,) = case.columns(shape)
        expected = np.array(case.operator @ B)
        strided = np.repeat(np.repeat(B, 2, axis=0), 2, axis=1)[::2, ::2]
        assert_close(case.operator @ np.asfortranarray(B), expected, case.precision, "F order")
        assert_close(case.operator @ strided, expected, case.precision, "strided")


def _takes_theta(case: _Case) -> None:
    """clone_with_theta(theta) has that theta and leaves the operator alone."""
    operator, theta = case.operator, case.operator.theta
    assert isinstance(theta, np.ndarray), f"theta is {type(theta).__name__}."
    assert theta.ndim == 1, f"theta has shape {theta.shape}."
    (B,) = case.columns(case.shapes[0])
    before = np.array(operator @ B)
    same = operator.clone_with_theta(theta)
    assert type(same) is type(operator), f"clone_with_theta gives a {type(same).__name__}."
    assert_close(same @ B, before, case.precision, "the same theta")
    moved = theta + np.linspace(0.1, 0.4, theta.size)
    assert_close(operator.clone_with_theta(moved).theta, moved, 1e-12, "theta of the copy")
    assert_close(operator @ B, before, case.precision, "the original afterwards")


def _has_gradient(case: _Case) -> None:
    """vjp(E, F) is the gradient of ⟨E, 𝒦F⟩ in theta, for (n, C) and (n, C, q)."""
    operator, theta = case.operator, case.operator.theta
    for shape in case.shapes:
        (E,), (F,) = case.rows(shape), case.columns(shape)
        F = F + 0.1  # not E itself in a square operator

        def product(theta, E=E, F=F):
            return _inner(E, operator.clone_with_theta(theta) @ F)

        gradient = operator.vjp(E, F)
        assert isinstance(gradient, np.ndarray), f"vjp returned {type(gradient).__name__}."
        assert gradient.shape == theta.shape, f"vjp has shape {gradient.shape}."
        expected = numerical_gradient(product, theta).reshape(-1)
        scale = 0.1 * np.linalg.norm(E) * np.linalg.norm(operator @ F)
        assert_close(gradient, expected, 1e-7, f"E {E.shape}", scale=float(scale))


def _pickles(case: _Case) -> None:
    """A pickled copy multiplies alike."""
    copy = pickle.loads(pickle.dumps(case.operator))
    (B,) = case.columns(case.shapes[0])
    assert_close(copy @ B, case.operator @ B, case.precision)
    assert copy.shape == case.operator.shape, f"shape {copy.shape}."


def _inner(E: np.ndarray, F: np.ndarray) -> float:
    return float(np.sum(E * F, dtype=np.float64))
