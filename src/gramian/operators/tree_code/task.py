"""What a plan of the tree code is wanted for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Task(NamedTuple):
    """Products with one term of a kernel, within an error.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    Z : ndarray of shape (m, d) or None
        None means X.
    length_scale : ndarray of shape () or (d,)
    profile : {"rbf", "matern12", "matern32", "matern52"}
    error : float
        Bound on the sum of magnitudes of errors in a row of the matrix.
    dtype : type
        float32 or float64, of the products.
    n_columns : int
        Columns that will be multiplied at once.
    """

    X: np.ndarray
    Z: np.ndarray | None
    length_scale: np.ndarray
    profile: str
    error: float
    dtype: Any = np.float64
    n_columns: int = 1

    @property
    def sources(self) -> np.ndarray:
        """The points of the columns."""
        return self.X if self.Z is None else self.Z
