"""Matrices that are positive definite but for rounding errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.linalg import LinAlgError

Result = TypeVar("Result")

STEP = 10.0  # by which the addition to the diagonal grows


def raise_diagonal(
    attempt: Callable[[float], Result], largest: float, n: int, dtype: np.dtype
) -> Result:
    """Return ``attempt(more)`` for the least addition to a diagonal that makes a matrix positive definite.

    What rounding has made indefinite (long length scales, repeated rows, hardly any regularisation) has a Cholesky
    factor when its diagonal is raised by a multiple of the rounding error.

    Parameters
    ----------
    attempt : callable
        Takes the addition, 0.0 first; raises LinAlgError if that is too little.
    largest : float
        The largest entry of the diagonal.
    n : int
        The number of rows.
    dtype : dtype
        In which the matrix is factored.

    Examples
    --------
    >>> import numpy as np
    >>> singular = np.ones((2, 2))
    >>> factor = lambda more: np.linalg.cholesky(singular - 1e-14 * np.eye(2) + more * np.eye(2))
    >>> raise_diagonal(factor, 1.0, 2, singular.dtype).round(6)
    array([[1., 0.],
           [1., 0.]])
    """
    if not np.isfinite(largest):
        raise ValueError(
            "The kernel matrix and its diagonal are too large to be factored. Scale the features or the kernel, and "
            "use a smaller intercept_variance and regularization."
        )
    more, rounding = 0.0, n * float(np.finfo(dtype).eps) * largest
    while True:
        try:
            return attempt(more)
        except LinAlgError:
            more = max(STEP * more, rounding)
            if (
                more > STEP * n * largest
            ):  # the diagonal outweighs each row: something else is wrong
                raise ValueError(
                    "The kernel matrix has no Cholesky factor even with a large diagonal: it holds values that are not "
                    "finite. Scale the features or the kernel."
                ) from None
