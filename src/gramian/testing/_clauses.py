"""How the suites run: a contract is a list of clauses, and a failure names the clause.

A clause is a function whose docstring states what must hold. It raises AssertionError if it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

__all__ = ["assert_close", "numerical_gradient", "read_only", "run_clauses"]


def run_clauses(subject: Any, clauses: Iterable[Callable], *args: Any) -> None:
    """Call each clause; a failure says which clause of the contract the subject breaks."""
    for clause in clauses:
        states = " ".join((clause.__doc__ or clause.__name__).split())
        title = f"{subject!r} breaks its contract. Clause: {states}"
        try:
            clause(*args)
        except AssertionError as error:
            raise AssertionError(f"{title}\n{error}") from error
        except Exception as error:
            error.add_note(title)
            raise


def assert_close(
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


def numerical_gradient(
    function: Callable[[np.ndarray], Any], point: np.ndarray, step: float = 1e-3
) -> np.ndarray:
    """Fourth-order central differences in each coordinate of ``point``, along the first axis.

    The error is about ``step**4`` + ``1e-16 / step`` times the size of the function.
    """
    point = np.asarray(point, dtype=float)
    rows = []
    for i in range(point.size):
        direction = np.zeros(point.size)
        direction[i] = step
        direction = direction.reshape(point.shape)
        near = np.asarray(function(point + direction)) - np.asarray(function(point - direction))
        far = np.asarray(function(point + 2 * direction)) - np.asarray(
            function(point - 2 * direction)
        )
        rows.append((8 * near - far) / (12 * step))
    return np.array(rows)


def read_only(array: Any) -> np.ndarray:
    """Copy an array and forbid to write to the copy."""
    copy = np.array(array)
    copy.setflags(write=False)
    return copy
