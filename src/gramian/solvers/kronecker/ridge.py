"""Ridge regression on a complete table of pairs in closed form, with or without an intercept.

Left objects with the Gram matrix K (m × m), right objects with T (q × q), a label for every pair, Y (m × q), and an
intercept b with the prior variance σ²:

    minimise    ½ ‖U − Y‖² + (λ/2) (⟨A, K A T⟩ + b²/σ²),    U = K A T + b,    optimal where    K A T + b + λA = Y,
                                                                                               b = σ² 1ᵀA.

With ``K = Q diag(l) Qᵀ`` and ``T = P diag(s) Pᵀ`` let G be the inverse of the system without an intercept,
``G V = Q [(Qᵀ V P) / (l sᵀ + λ)] Pᵀ``. A constant in all entries is an update of rank one (Sherman & Morrison), so that

    A = G (Y − b),        b = σ² 1ᵀG Y / (1 + σ² 1ᵀG 1)

for every λ: the model without an intercept for the table Y − b. The same holds for a model that was not shown some
cells, with its own G. If p(Y) is what such a model says about a cell without an intercept, with one it says
``p(Y) + b (1 − p(1))``. p, and the sums 1ᵀGY and 1ᵀG1 of each such model, are found in `held_out`.

Cost: O(m³ + q³) once, O(mq (m + q)) for each λ in the settings A, B and C one by one; in D one eigendecomposition for
each row of the smaller side. The intercept doubles what is multiplied, not what is decomposed.

Papers: Pahikkala, Airola, Stock, De Baets & Waegeman, Machine Learning 93 (2013), for the closed form without an
intercept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._core.validation import check_choice, check_number
from gramian.solvers.kronecker.held_out import HeldOut, without_both, without_cells, without_rows
from gramian.solvers.kronecker.sides import SINGULAR_RATIO, decomposed, divisor

SETTINGS = ("A", "B", "C", "D")


class KroneckerRidge:
    """Ridge regression with the Kronecker product kernel on all pairs of left and right objects.

    Parameters
    ----------
    K : array of shape (m, m)
        Gram matrix of the left objects, symmetric.
    T : array of shape (q, q)
        Gram matrix of the right objects, symmetric.
    intercept_variance : float, default=0.0
        Prior variance σ² of the intercept; 0 means none.

    Attributes
    ----------
    left_values, left_vectors : ndarray of shape (m,), (m, m)
        Eigendecomposition of K.
    right_values, right_vectors : ndarray of shape (q,), (q, q)
        Eigendecomposition of T.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.solvers import KroneckerRidge
    >>> rng = np.random.default_rng(0)
    >>> K, T = RBF()(rng.normal(size=(5, 2))), RBF()(rng.normal(size=(4, 2)))
    >>> Y = rng.normal(size=(5, 4))
    >>> ridge = KroneckerRidge(K, T)
    >>> A = ridge.coefficients(Y, 0.1)
    >>> bool(np.allclose(K @ A @ T + 0.1 * A, Y))
    True

    With an intercept:

    >>> A = KroneckerRidge(K, T, intercept_variance=2.0).coefficients(Y, 0.1)
    >>> bool(np.allclose(K @ A @ T + 2.0 * A.sum() + 0.1 * A, Y))
    True

    What models that have never seen a row would have said about it:

    >>> ridge.held_out(Y, 0.1, "B").shape
    (5, 4)
    """

    def __init__(self, K: Any, T: Any, intercept_variance: float = 0.0):
        check_number("intercept_variance", intercept_variance)
        self._left, self._right = decomposed(_gram_matrix(K, "K")), decomposed(_gram_matrix(T, "T"))
        self.K, self.left_values, self.left_vectors = self._left
        self.T, self.right_values, self.right_vectors = self._right
        self.intercept_variance = float(intercept_variance)

    def coefficients(self, Y: Any, regularization: Any) -> np.ndarray:
        """Dual coefficients A, the solution of ``K A T + σ² 1ᵀA + λA = Y``.

        Parameters
        ----------
        Y : array of shape (m, q)
        regularization : float or array of shape (r,)
            λ > 0.

        Returns
        -------
        ndarray of shape (m, q), or (r, m, q) for an array of λ

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.solvers import KroneckerRidge
        >>> KroneckerRidge(2 * np.eye(1), np.eye(2)).coefficients([[3.0, 6.0]], 1.0)
        array([[1., 2.]])
        """
        Y, strengths = self._checked(Y, regularization)
        Q, P = self.left_vectors, self.right_vectors
        projected = Q.T @ self._tables(Y) @ P
        eigenvalues = np.stack([divisor(self._left, self._right, s) for s in strengths])
        A = Q @ (projected / eigenvalues[:, None]) @ P.T
        if self.intercept_variance:
            sums = A.sum(axis=(2, 3), keepdims=True)
            return _stacked(A[:, 0] - self._intercepts(sums) * A[:, 1], regularization)
        return _stacked(A[:, 0], regularization)

    def held_out(
        self,
        Y: Any,
        regularization: Any,
        setting: str,
        left_folds: Any = None,
        right_folds: Any = None,
    ) -> np.ndarray:
        """Predictions for each cell by the model, with its own intercept, that was trained without it.

        Parameters
        ----------
        Y : array of shape (m, q)
        regularization : float or array of shape (r,)
            λ > 0.
        setting : {"A", "B", "C", "D"}
            What the model for a cell has not seen: "A" the cell, "B" its whole row (a new left object), "C" its whole
            column (a new right object), "D" both.
        left_folds : array of integers, default=None
            For "B" and "D", of shape (m,): rows of one fold are left out together. For "A", of shape (m, q): cells of
            one fold are left out together. None: one by one.
        right_folds : array of integers of shape (q,), default=None
            For "C" and "D": columns of one fold are left out together. None: one by one.

        Returns
        -------
        ndarray of shape (m, q), or (r, m, q) for an array of λ

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.solvers import KroneckerRidge
        >>> ridge = KroneckerRidge(np.ones((2, 2)), np.eye(1))
        >>> ridge.held_out([[3.0], [5.0]], 1.0, "A")  # each row is half of the other
        array([[2.5],
               [1.5]])
        """
        Y, strengths = self._checked(Y, regularization)
        check_choice("setting", setting, SETTINGS)
        if setting in "AB" and right_folds is not None:
            advice = (
                "cell folds are left_folds of shape (m, q)" if setting == "A" else "use 'C' or 'D'"
            )
            raise ValueError(f"right_folds has no meaning in setting {setting!r}; {advice}.")
        if setting == "C" and left_folds is not None:
            raise ValueError("left_folds has no meaning in setting 'C'; use 'B' or 'D'.")
        m, q = Y.shape
        rows = _folds(left_folds, (m, q) if setting == "A" else (m,), "left_folds")
        columns = _folds(right_folds, (q,), "right_folds")
        tables = self._tables(Y)
        sides, turned = (self._left, self._right), (self._right, self._left)
        swapped = tables.swapaxes(1, 2)
        if setting == "A":
            found = without_cells(sides, tables, strengths, rows)
        elif setting == "B":
            found = without_rows(sides, tables, strengths, rows)
        elif setting == "C":
            found = without_rows(turned, swapped, strengths, columns).turned()
        elif rows is None and (columns is not None or m > q):
            # folds, or the shorter side, are rows
            found = without_both(turned, swapped, strengths, (columns, rows)).turned()
        else:
            found = without_both(sides, tables, strengths, (rows, columns))
        return _stacked(self._with_intercepts(found), regularization)

    def _tables(self, Y: np.ndarray) -> np.ndarray:
        """What is solved for: Y, and a table of ones if there is an intercept; shape (1 or 2, m, q)."""
        return np.stack([Y, np.ones_like(Y)]) if self.intercept_variance else Y[None]

    def _intercepts(self, sums: np.ndarray) -> np.ndarray:
        """b from the sums of coefficients for Y and for ones, of shape (r, 2, ...)."""
        growth = self.intercept_variance * sums[:, 1]
        if np.any(np.abs(1 + growth) <= SINGULAR_RATIO * (1 + np.abs(growth))):
            raise ValueError(
                f"The system with intercept_variance={self.intercept_variance:g} is singular to working precision, as "
                "K ⊗ T is indefinite. Change intercept_variance or regularization."
            )
        return self.intercept_variance * sums[:, 0] / (1 + growth)

    def _with_intercepts(self, found: HeldOut) -> np.ndarray:
        """Held-out predictions of shape (r, m, q) from those without an intercept."""
        predictions = found.predictions
        if not self.intercept_variance:
            return predictions[:, 0]
        return predictions[:, 0] + self._intercepts(found.sums) * (1 - predictions[:, 1])

    def _checked(self, Y: Any, regularization: Any) -> tuple[np.ndarray, np.ndarray]:
        Y = np.asarray(Y, dtype=np.float64)
        shape = (len(self.K), len(self.T))
        if Y.shape != shape:
            raise ValueError(f"Y must have shape {shape}, a label for each pair; got {Y.shape}.")
        if not np.all(np.isfinite(Y)):
            i, j = np.argwhere(~np.isfinite(Y))[0]
            raise ValueError(
                f"Y must be complete and finite, got {Y[i, j]} in cell ({i}, {j}). "
                "Use solver='minres' for pairs without labels."
            )
        strengths = np.atleast_1d(np.asarray(regularization, dtype=np.float64))
        if strengths.ndim != 1 or not np.all(np.isfinite(strengths)) or np.any(strengths <= 0):
            raise ValueError(f"regularization must be positive and finite, got {regularization!r}.")
        return Y, strengths


def _stacked(results: np.ndarray, regularization: Any) -> np.ndarray:
    """One result for a number, an array of them for an array."""
    return results if np.ndim(regularization) else results[0]


def _gram_matrix(K: Any, name: str) -> np.ndarray:
    single = np.asarray(K).dtype == np.float32
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not len(K):
        raise ValueError(f"{name} must be a square Gram matrix, got shape {K.shape}.")
    if not np.all(np.isfinite(K)):
        raise ValueError(f"{name} must be finite.")
    difference = float(np.abs(K - K.T).max())
    if difference > (1e-4 if single else 1e-8) * float(np.abs(K).max()):
        raise ValueError(
            f"{name} must be symmetric, but {name} − {name}ᵀ has an entry of {difference:.3g}; "
            f"({name} + {name}ᵀ) / 2 is."
        )
    return (K + K.T) / 2


def _folds(folds: Any, shape: tuple[int, ...], name: str) -> np.ndarray | None:
    if folds is None:
        return None
    folds = np.asarray(folds)
    if folds.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {folds.shape}.")
    if folds.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {folds.dtype}.")
    return folds
