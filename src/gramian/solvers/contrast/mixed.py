"""Coefficients of normals by their factors, c = B Fᵀ.

Most rows of B, the coefficients of examples in latent sums, have few entries, and so have those of F; c has n × m
numbers. `MixedCoefficients` multiplies and shows rows without forming all of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


class MixedCoefficients:
    """The array c = B Fᵀ of shape (n, m), which is not stored.

    Parameters
    ----------
    latent : CSR array of shape (n, r)
        B.
    factor : CSR array of shape (m, r)
        F.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from gramian.solvers.contrast.mixed import MixedCoefficients
    >>> c = MixedCoefficients(sp.csr_array([[1.0, 0.0]]), sp.csr_array([[1.0, 1.0], [0.0, 2.0]]))
    >>> c.toarray(), np.array([[3.0]]) @ c, c.sum(axis=0)
    (array([[1., 0.]]), array([[3., 0.]]), array([1., 0.]))
    """

    __array_ufunc__ = None  # products X @ c with an array X are those of this class
    dtype = np.dtype(np.float64)

    def __init__(self, latent: Any, factor: Any):
        self.latent, self.factor = latent, factor
        self.shape = (latent.shape[0], factor.shape[0])

    def toarray(self) -> np.ndarray:
        """Return all of c."""
        return self.mixed(self.latent.toarray())

    def mixed(self, V: np.ndarray) -> np.ndarray:
        """Return V Fᵀ: what latent sums or scores are to outputs."""
        return np.asarray(V @ self.factor.T)

    def __getitem__(self, rows: Any) -> np.ndarray:
        return self.mixed(self.latent[rows].toarray())

    def __mul__(self, rows: np.ndarray) -> MixedCoefficients:
        """Multiply rows by numbers of shape (n, 1)."""
        return MixedCoefficients(sp.csr_array(self.latent.multiply(rows)), self.factor)

    def __rmatmul__(self, X: Any) -> np.ndarray:
        """Return X c for an array or a sparse array X."""
        products = X @ self.latent
        return self.mixed(products.toarray() if sp.issparse(products) else products)

    @property
    def T(self) -> np.ndarray:
        """All of cᵀ."""
        return self.toarray().T

    def sum(self, axis: int) -> np.ndarray:
        """Return sums over the examples; ``axis`` is 0."""
        if axis != 0:
            raise ValueError(f"axis must be 0, got {axis!r}.")
        return self.mixed(self.latent.sum(axis=0)[None])[0]

    def any(self, axis: int = 1) -> np.ndarray:
        """Return which examples have coefficients; ``axis`` is 1."""
        if axis != 1:
            raise ValueError(f"axis must be 1, got {axis!r}.")
        return np.diff(self.latent.indptr) > 0
