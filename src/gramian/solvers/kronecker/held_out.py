"""What ridge regression on a complete table predicts for cells it was not shown, without fitting again.

The notation is that of `ridge`: G is the inverse of the system without an intercept, ``A = G Y``. Leaving out cells I
gives the residuals ``y_I − u_I = G_II⁻¹ a_I`` (inverse of a partitioned matrix):

A, one cell: ``a_ij / G_ij,ij`` with the diagonal ``(Q∘Q) [1 / (l sᵀ + λ)] (P∘P)ᵀ``. Sets of cells: conjugate gradients
   on G_II, whose products are as cheap.
B, one row: G_II is diagonal in P, ``((A P) / g) Pᵀ`` with ``g_is = Σ_k Q_ik² / (l_k s_s + λ)``. C likewise.
B, C and D with folds, trained on the rows R and columns S: with Q, P of the submatrices K_RR and T_SS, the cells of the
   rows F and columns H left out are ``K_FR Q [(Qᵀ Y_RS P) / (l sᵀ + λ)] Pᵀ T_SH``: one eigendecomposition for each
   fold of either side and one product for each pair of folds.
D, one row and one column: as before for the rows; columns by the formula of a cell in the eigenbasis of the rows. With
   ``Ã = (Qᵀ Y_R P) / (l sᵀ + λ)`` and column j left out,
   ``f_ij = Σ_k (K_iR Q)_k [ Σ_s s_s P_js Ã_ks − (Σ_s P_js Ã_ks) e_kj / d_kj ]``,
   ``d_kj = Σ_s P_js² / (l_k s_s + λ)``, ``e_kj = Σ_s s_s P_js² / (l_k s_s + λ)``.

*The intercept* needs one more number for each model: the sum of its coefficients. A model without the cells I has the
coefficients ``A − G_·I r_I``, hence the sum ``1ᵀA − (G1)_Iᵀ r_I`` of numbers that are known anyway; with submatrices it
is ``(Qᵀ1)ᵀ Ã (Pᵀ1)``. All functions here take several tables Y at once, so that predictions and sums for Y and for a
table of ones come from the same decompositions; `ridge` makes the intercept of them.

Paper: Stock, Pahikkala, Airola, De Baets & Waegeman, Neural Computation 30 (2018), for shortcuts of this kind. D one by
one, all that has folds and the intercept are derived from the inverse of a partitioned matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from gramian._core.caller import level_of_caller
from gramian.solvers.kronecker.sides import Sides, divisor, parts, safe

RESIDUAL_TOLERANCE = 1e-12  # relative, of the conjugate gradients for sets of cells


class HeldOut(NamedTuple):
    """What models without an intercept say about cells they were not shown, for r strengths and t tables.

    Attributes
    ----------
    predictions : ndarray of shape (r, t, m, q)
    sums : ndarray of shape (r, t, m, q)
        The sum of the coefficients of the model that predicts the cell.
    """

    predictions: np.ndarray
    sums: np.ndarray

    @classmethod
    def empty(cls, tables: np.ndarray, strengths: np.ndarray) -> HeldOut:
        """Return room for the answers."""
        shape = (len(strengths), *tables.shape)
        return cls(np.empty(shape), np.empty(shape))

    def turned(self) -> HeldOut:
        """Return the same with rows as columns."""
        return HeldOut(*(array.swapaxes(-1, -2) for array in self))


def without_cells(sides: Sides, tables: np.ndarray, strengths: np.ndarray, folds: Any) -> HeldOut:
    """Return setting A for tables of shape (t, m, q), with folds of shape (m, q) or one by one."""
    Q, P = (side.vectors for side in sides)
    found = HeldOut.empty(tables, strengths)
    for k, strength in enumerate(strengths):
        eigenvalues = divisor(*sides, strength)

        def inverse(V: np.ndarray, eigenvalues: np.ndarray = eigenvalues) -> np.ndarray:
            return Q @ ((Q.T @ V @ P) / eigenvalues) @ P.T

        A, of_ones = inverse(tables), inverse(np.ones(tables.shape[1:]))
        if folds is None:
            residuals = A / safe(Q**2 @ (1 / eigenvalues) @ (P**2).T, strength)
            lost = of_ones * residuals
        else:
            _refuse_indefinite(eigenvalues, strength)
            residuals, lost = np.empty_like(A), np.empty_like(A)
            for fold in np.unique(folds):
                cells = folds == fold
                residuals[:, cells] = [_solved(inverse, one, cells) for one in A]
                lost[:, cells] = (residuals[:, cells] @ of_ones[cells])[:, None]
        found.predictions[k] = tables - residuals
        found.sums[k] = A.sum(axis=(1, 2), keepdims=True) - lost
    return found


def without_rows(sides: Sides, tables: np.ndarray, strengths: np.ndarray, folds: Any) -> HeldOut:
    """Return setting B for tables of shape (t, m, q), with folds of shape (m,) or one by one."""
    left, right = sides
    P, s = right.vectors, right.values
    found = HeldOut.empty(tables, strengths)
    if folds is None:
        Q = left.vectors
        projected = Q.T @ tables @ P
        ones = np.multiply.outer(left.ones, right.ones)
        for k, strength in enumerate(strengths):
            eigenvalues = divisor(left, right, strength)
            A = Q @ (projected / eigenvalues)  # in the basis of the columns
            residuals = A / safe(Q**2 @ (1 / eigenvalues), strength)
            found.predictions[k] = tables - residuals @ P.T
            lost = np.sum(residuals * (Q @ (ones / eigenvalues)), axis=2, keepdims=True)
            found.sums[k] = np.sum(A @ right.ones, axis=1)[:, None, None] - lost
        return found
    for part in parts(left, folds):
        projected = part.side.vectors.T @ tables[:, part.inside] @ P
        for k, strength in enumerate(strengths):
            A = projected / divisor(part.side, right, strength)
            found.predictions[k][:, part.outside] = part.cross @ A @ (P * s).T
            found.sums[k][:, part.outside] = (part.side.ones @ A @ right.ones)[:, None, None]
    return found


def without_both(sides: Sides, tables: np.ndarray, strengths: np.ndarray, folds: Any) -> HeldOut:
    """Return setting D for tables of shape (t, m, q), with folds of rows and of columns; without them one by one."""
    left, right = sides
    found = HeldOut.empty(tables, strengths)
    rows = np.arange(len(left.gram)) if folds[0] is None else folds[0]
    columns = None if folds[1] is None else list(parts(right, folds[1]))
    for part in parts(left, rows):
        projected = part.side.vectors.T @ tables[:, part.inside]
        for k, strength in enumerate(strengths):
            if columns is None:
                kept, sums = _without_columns((part.side, right), projected, strength)
                found.predictions[k][:, part.outside] = part.cross @ kept
                found.sums[k][:, part.outside] = sums[:, None, :]
                continue
            for other in columns:
                A = projected[..., other.inside] @ other.side.vectors
                A = A / divisor(part.side, other.side, strength)
                block = (slice(None), *np.ix_(part.outside, other.outside))
                found.predictions[k][block] = part.cross @ A @ other.cross.T
                found.sums[k][block] = (part.side.ones @ A @ other.side.ones)[:, None, None]
    return found


def _without_columns(
    sides: Sides, projected: np.ndarray, strength: float
) -> tuple[np.ndarray, np.ndarray]:
    """Leave out columns one by one, with tables (t, m, q) that are in the eigenbasis of the rows.

    Returns what multiplies the cross matrix of new rows, of shape (t, m, q), and the sums of coefficients, (t, q).
    """
    left, right = sides
    P, s = right.vectors, right.values
    squares = (P**2).T
    eigenvalues = divisor(left, right, strength)
    coefficients = (projected @ P) / eigenvalues
    A = coefficients @ P.T
    residuals = A / safe((1 / eigenvalues) @ squares, strength)
    kept = (coefficients * s) @ P.T - residuals * ((s / eigenvalues) @ squares)
    of_ones = (np.multiply.outer(left.ones, right.ones) / eigenvalues) @ P.T
    lost = np.sum(residuals * of_ones, axis=1)
    return kept, np.sum(left.ones @ A, axis=1)[:, None] - lost


def _solved(inverse: Callable, A: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """G_II⁻¹ a_I for the cells I."""
    size = int(cells.sum())

    def product(v: np.ndarray) -> np.ndarray:
        V = np.zeros_like(A)
        V[cells] = np.reshape(v, -1)
        return inverse(V)[cells]

    operator = LinearOperator((size, size), matvec=product, dtype=A.dtype)
    z, failed = cg(operator, A[cells], rtol=RESIDUAL_TOLERANCE, atol=0.0, maxiter=10 * size + 100)
    if failed:
        warnings.warn(
            f"Conjugate gradients for a fold of {size} cells stopped after {failed} iterations above the "
            f"tolerance {RESIDUAL_TOLERANCE:g}. Raise regularization for accurate held-out predictions.",
            ConvergenceWarning,
            stacklevel=level_of_caller(),
        )
    return z


def _refuse_indefinite(eigenvalues: np.ndarray, strength: float) -> None:
    if eigenvalues.min() < 0:
        raise ValueError(
            f"K ⊗ T + λI is indefinite for λ = {strength:g}, and folds of cells need it positive. "
            "Raise regularization, leave cells out one by one, or use solver='minres'."
        )
