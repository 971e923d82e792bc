"""How the suites run: a contract is a class, its clauses are methods, and a failure names the clause.

Every public method of a contract is a clause: its docstring states what must hold, and it raises AssertionError where
that does not hold. Helpers of the clauses begin with an underscore. Clauses run in the order in which they are written.

The suites import this module as ``check``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Contract:
    """What ``subject`` promises; ``seed`` is that of all random numbers."""

    subject: Any
    seed: int

    def _check(self) -> None:
        """Try each clause; a failure says which clause of the contract the subject breaks."""
        for name, clause in vars(type(self)).items():
            if name.startswith("_") or not inspect.isfunction(clause):
                continue
            states = " ".join((clause.__doc__ or name).split())
            title = f"{self._title} breaks its contract. Clause: {states}"
            try:
                clause(self)
            except AssertionError as error:
                raise AssertionError(f"{title}\n{error}") from error
            except Exception as error:
                error.add_note(title)
                raise

    @property
    def _title(self) -> str:
        return repr(self.subject)

    @property
    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def _check_theta(self, values: Callable[[Any], Any], expected: Any, rtol: float) -> Any:
        """Clones have the theta they are given and the values that belong to it; return one with another theta."""
        subject, theta = self.subject, self.subject.theta
        assert isinstance(theta, np.ndarray), f"theta is {type(theta).__name__}."
        assert theta.ndim == 1, f"theta has shape {theta.shape}."
        same = subject.clone_with_theta(theta)
        assert type(same) is type(subject), f"clone_with_theta gives a {type(same).__name__}."
        close(same.theta, theta, 1e-12, "the same theta")
        close(values(same), expected, rtol, "values with the same theta")
        moved = theta + np.linspace(0.1, 0.4, theta.size)
        other = subject.clone_with_theta(moved)
        close(other.theta, moved, 1e-12, "theta of the copy")
        close(subject.theta, theta, 0.0, "theta of the original afterwards")
        close(values(subject), expected, rtol, "values of the original afterwards")
        return other

    def _check_gradient(
        self,
        gradient: Any,
        function: Callable[[Any], Any],
        rtol: float,
        what: str,
        scale: float | None = None,
    ) -> None:
        """``gradient`` is the derivative in theta of a function of clones of the subject."""
        subject, theta = self.subject, self.subject.theta
        assert isinstance(gradient, np.ndarray), f"vjp returned {type(gradient).__name__}."
        assert gradient.shape == theta.shape, f"vjp has shape {gradient.shape}."
        expected = numerical_gradient(lambda t: function(subject.clone_with_theta(t)), theta)
        close(gradient, expected.reshape(-1), rtol, what, scale)


def close(
    actual: Any, expected: Any, rtol: float = 1e-9, what: str = "", scale: float | None = None
) -> None:
    """Entries differ by at most ``rtol`` × ``scale``, by default the largest entry expected."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if scale is None:
        scale = float(np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(
        actual, expected, rtol=rtol, atol=rtol * scale, err_msg=what, strict=False
    )
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}."


def agree(
    rows: Iterable[tuple[str, Any, Any]], rtol: float, dtype: Any, scale: float | None = None
) -> None:
    """In each row of name, found and expected, the found one is a dense array of that dtype and close."""
    for name, found, expected in rows:
        assert type(found) is np.ndarray, f"{name} is {type(found)}."
        assert found.dtype == dtype, f"{name} has dtype {found.dtype}, not {np.dtype(dtype)}."
        close(found, expected, rtol, name, scale)


def positive_semidefinite(matrix: np.ndarray, rtol: float) -> None:
    """The matrix is symmetric and has no negative eigenvalue."""
    close(matrix, matrix.T, rtol, "symmetry")
    eigenvalues = np.linalg.eigvalsh(matrix)
    largest = np.max(np.abs(eigenvalues))
    assert eigenvalues[0] >= -rtol * largest, (
        f"the smallest eigenvalue is {eigenvalues[0]:.3g}, the largest {largest:.3g}."
    )


def unchanged(use: Callable[..., Any], **arrays: np.ndarray) -> None:
    """``use`` does not modify the arrays, which are passed in this order."""
    copies = [array.copy() for array in arrays.values()]
    use(*copies)
    for (name, before), now in zip(arrays.items(), copies, strict=True):
        np.testing.assert_array_equal(now, before, err_msg=f"{name} was modified.")


@contextmanager
def refusal(what: str, *errors: type[Exception]) -> Iterator[None]:
    """The block must raise one of the errors; ``what`` says what was accepted otherwise."""
    try:
        yield
    except errors:
        return
    raise AssertionError(what)


def layouts(array: np.ndarray) -> dict[str, np.ndarray]:
    """The same numbers, differently in memory."""
    strided = np.repeat(np.repeat(array, 2, axis=0), 2, axis=1)[::2, ::2]
    return {"column-major": np.asfortranarray(array), "strided": strided}


def numerical_gradient(
    function: Callable[[np.ndarray], Any], point: np.ndarray, step: float = 1e-3
) -> np.ndarray:
    """Fourth-order central differences in each coordinate of ``point``, along the first axis.

    The error is about ``step**4`` + ``1e-16 / step`` times the size of the function.
    """
    point = np.asarray(point, dtype=float)
    rows = []
    for direction in step * np.eye(point.size).reshape(point.size, *point.shape):
        near, far = (
            np.asarray(function(point + k * direction))
            - np.asarray(function(point - k * direction))
            for k in (1, 2)
        )
        rows.append((8 * near - far) / (12 * step))
    return np.array(rows)


def read_only(array: Any) -> np.ndarray:
    """Copy an array and forbid to write to the copy."""
    copy = np.array(array)
    copy.setflags(write=False)
    return copy
