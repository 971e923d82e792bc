"""Ridge regression on a complete table of pairs in closed form, and what it predicts for cells it was not shown.

Left objects with the Gram matrix K (m × m), right objects with T (q × q), a label for every pair, Y (m × q):

    minimise    ½ ‖U − Y‖² + (λ/2) ⟨A, K A T⟩,    U = K A T,        optimal where    K A T + λA = Y.

With ``K = Q diag(l) Qᵀ`` and ``T = P diag(s) Pᵀ`` the solution is ``A = Q [(Qᵀ Y P) / (l sᵀ + λ)] Pᵀ`` for every λ.
Let G be the inverse of the system, ``G V = Q [(Qᵀ V P) / (l sᵀ + λ)] Pᵀ``. Leaving out cells I gives the residuals
``y_I − u_I = G_II⁻¹ a_I`` (inverse of a partitioned matrix), so that nothing is fitted again:

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

Cost: O(m³ + q³) once, O(mq (m + q)) for each λ in A, B and C one by one; in D one eigendecomposition for each row of
the smaller side.

Papers: Pahikkala, Airola, Stock, De Baets & Waegeman, Machine Learning 93 (2013), for the closed form; Stock,
Pahikkala, Airola, De Baets & Waegeman, Neural Computation 30 (2018), for shortcuts of this kind. D one by one and all
that has folds is derived from the inverse of a partitioned matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from gramian._core.validation import check_choice

SETTINGS = ("A", "B", "C", "D")
RESIDUAL_TOLERANCE = 1e-12  # relative, of the conjugate gradients for sets of cells
SINGULAR_RATIO = 1e-14  # a divisor so much smaller than the largest has no correct digits


class KroneckerRidge:
    """Ridge regression with the Kronecker product kernel on all pairs of left and right objects.

    Parameters
    ----------
    K : array of shape (m, m)
        Gram matrix of the left objects, symmetric.
    T : array of shape (q, q)
        Gram matrix of the right objects, symmetric.

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

    What models that have never seen a row would have said about it:

    >>> ridge.held_out(Y, 0.1, "B").shape
    (5, 4)
    """

    def __init__(self, K: Any, T: Any):
        self.K, self.left_values, self.left_vectors = self._left = _side(_gram_matrix(K, "K"))
        self.T, self.right_values, self.right_vectors = self._right = _side(_gram_matrix(T, "T"))

    def coefficients(self, Y: Any, regularization: Any) -> np.ndarray:
        """Dual coefficients A, the solution of ``K A T + λA = Y``.

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
        projected = Q.T @ Y @ P
        A = [Q @ (projected / _divisor(self._left, self._right, s)) @ P.T for s in strengths]
        return _stacked(A, regularization)

    def held_out(
        self,
        Y: Any,
        regularization: Any,
        setting: str,
        left_folds: Any = None,
        right_folds: Any = None,
    ) -> np.ndarray:
        """Predictions for each cell by the model that was trained without it.

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
        sides, turned = (self._left, self._right), (self._right, self._left)
        if setting == "A":
            predictions = [_without_cells(sides, Y, strength, rows) for strength in strengths]
        elif setting == "B":
            predictions = _without_rows(sides, Y, strengths, rows)
        elif setting == "C":
            predictions = _without_rows(turned, Y.T, strengths, columns).transpose(0, 2, 1)
        elif rows is None and (
            columns is not None or m > q
        ):  # folds, or the shorter side, are rows
            predictions = _without_both(turned, Y.T, strengths, (columns, rows)).transpose(0, 2, 1)
        else:
            predictions = _without_both(sides, Y, strengths, (rows, columns))
        return _stacked(predictions, regularization)

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


class _Side(NamedTuple):
    """The Gram matrix of one side and its eigendecomposition."""

    gram: np.ndarray
    values: np.ndarray
    vectors: np.ndarray


Sides = tuple[_Side, _Side]


class _Part(NamedTuple):
    """One side without one of its folds."""

    inside: np.ndarray  # the objects that train
    outside: np.ndarray  # those of the fold
    side: _Side  # of the former
    cross: np.ndarray  # Gram matrix of the fold with the former × eigenvectors


def _side(gram: np.ndarray) -> _Side:
    if not len(gram):  # a fold that leaves nothing to train on
        return _Side(gram, np.empty(0), np.empty((0, 0)))
    return _Side(gram, *eigh(gram))


def _parts(side: _Side, folds: np.ndarray) -> Iterator[_Part]:
    for fold in np.unique(folds):
        outside, inside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        rest = _side(side.gram[np.ix_(inside, inside)])
        yield _Part(inside, outside, rest, side.gram[np.ix_(outside, inside)] @ rest.vectors)


def _without_cells(sides: Sides, Y: np.ndarray, strength: float, folds: Any) -> np.ndarray:
    """Setting A."""
    Q, P = (side.vectors for side in sides)
    divisor = _divisor(*sides, strength)

    def inverse(V: np.ndarray) -> np.ndarray:
        return Q @ ((Q.T @ V @ P) / divisor) @ P.T

    A = inverse(Y)
    if folds is None:
        return Y - A / _safe(Q**2 @ (1 / divisor) @ (P**2).T, strength)
    if divisor.min() < 0:
        raise ValueError(
            f"K ⊗ T + λI is indefinite for λ = {strength:g}, and folds of cells need it positive. "
            "Raise regularization, leave cells out one by one, or use solver='minres'."
        )
    predictions = Y.copy()
    for fold in np.unique(folds):
        cells = folds == fold
        predictions[cells] -= _solved(inverse, A, cells)
    return predictions


def _without_rows(sides: Sides, Y: np.ndarray, strengths: np.ndarray, folds: Any) -> np.ndarray:
    """Setting B, shape (r, m, q)."""
    left, right = sides
    P, s = right.vectors, right.values
    predictions = np.empty((len(strengths), *Y.shape))
    if folds is None:
        Q = left.vectors
        projected = Q.T @ Y @ P
        for k, strength in enumerate(strengths):
            divisor = _divisor(left, right, strength)
            g = _safe(Q**2 @ (1 / divisor), strength)
            predictions[k] = Y - ((Q @ (projected / divisor)) / g) @ P.T
        return predictions
    for part in _parts(left, folds):
        projected = part.side.vectors.T @ Y[part.inside] @ P
        for k, strength in enumerate(strengths):
            coefficients = projected / _divisor(part.side, right, strength)
            predictions[k, part.outside] = part.cross @ coefficients @ (P * s).T
    return predictions


def _without_both(sides: Sides, Y: np.ndarray, strengths: np.ndarray, folds: Any) -> np.ndarray:
    """Setting D, shape (r, m, q), with folds of rows and of columns; without them one by one."""
    left, right = sides
    predictions = np.empty((len(strengths), *Y.shape))
    rows = np.arange(len(Y)) if folds[0] is None else folds[0]
    columns = None if folds[1] is None else list(_parts(right, folds[1]))
    P, s = right.vectors, right.values
    squares = (P**2).T
    for part in _parts(left, rows):
        projected = part.side.vectors.T @ Y[part.inside]
        for k, strength in enumerate(strengths):
            if columns is None:
                divisor = _divisor(part.side, right, strength)
                coefficients = (projected @ P) / divisor
                d = _safe((1 / divisor) @ squares, strength)
                z = (coefficients @ P.T) / d
                kept = (coefficients * s) @ P.T - z * ((s / divisor) @ squares)
                predictions[k, part.outside] = part.cross @ kept
                continue
            for other in columns:
                divisor = _divisor(part.side, other.side, strength)
                coefficients = (projected[:, other.inside] @ other.side.vectors) / divisor
                block = part.cross @ coefficients @ other.cross.T
                predictions[k][np.ix_(part.outside, other.outside)] = block
    return predictions


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
            stacklevel=4,
        )
    return z


def _divisor(left: _Side, right: _Side, strength: float) -> np.ndarray:
    return _safe(np.multiply.outer(left.values, right.values) + strength, strength)


def _safe(divisor: np.ndarray, strength: float) -> np.ndarray:
    """The divisor, unless some of it is rounding error."""
    sizes = np.abs(divisor)
    if divisor.size and sizes.min() <= SINGULAR_RATIO * sizes.max():
        raise ValueError(
            f"K A T + λA = Y is singular to working precision for λ = {strength:g}"
            f"{', as K ⊗ T is indefinite' if divisor.min() < 0 else ''}. Change regularization."
        )
    return divisor


def _stacked(results: Any, regularization: Any) -> np.ndarray:
    """One result for a number, an array of them for an array."""
    return np.stack(list(results)) if np.ndim(regularization) else results[0]


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
