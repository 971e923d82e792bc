"""A Gram matrix of low rank plus a diagonal, from a few of its columns.

Formula (Seeger §7.4)
    With an active set I of r examples, ``M[I, I] = L̃ L̃ᵀ`` and ``L = M[:, I] L̃⁻ᵀ``,

        M̃ = L Lᵀ,    or    M̃ = L Lᵀ + diag(M − L Lᵀ) with the exact diagonal.

    The first is plain Nyström. White noise of the kernel is on the diagonal only: it is added there and never factored.

Which diagonal
    The exact one gives every training example a term of its own, which fits its label and says nothing about new
    examples. Test log loss on covtype (8000 rows, RBF(7), random pivots, the best of six λ): 0.638 against 0.691
    with the exact diagonal at rank 100; digits 0.0735 / 0.0965 at rank 50, 0.0311 / 0.0383 at rank 200. For ridge
    regression there is little in it: abalone 0.479 / 0.470 at rank 50, 0.469 / 0.469 at rank 200. Products are
    fewer without it. Hence the default is not the paper's.

Prediction
    M̃ A at new examples is ``k(·, X_I) W`` with ``W = L̃⁻ᵀ Lᵀ A``: a function on r examples instead of n.

Gradient (appendix C, where the active set is fixed)
    With ``R = M[:, I] M[I, I]⁻¹``, ``e_i = Σ_c E_ic F_ic``, ``Ẽ = Rᵀ E`` and ``F̃ = Rᵀ F``

        ⟨E, dM̃ F⟩ = ⟨E F̃ᵀ + F Ẽᵀ − 2 diag(e) R, dM[:, I]⟩ + ⟨Rᵀ diag(e) R − Ẽ F̃ᵀ, dM[I, I]⟩ + Σ_i e_i dM_ii.

    The paper marks its appendix as not up to date, but this formula of it holds.

Cost
    n r kernel values and n r² flops to build or to differentiate; 4 n r flops for a product with one column.

Deviation
    Kernel values and factors are computed in float64 and only then stored in the dtype of X: the condition number of
    ``M[I, I]`` is far beyond float32.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from gramian._core.arrays import Array, is_numpy, row_blocks
from gramian.kernels import Kernel
from gramian.operators import costs
from gramian.operators.base import KernelOperator
from gramian.operators.compiled.pivoted_cholesky import pivoted_cholesky
from gramian.operators.compiled.skinny import skinny_product
from gramian.operators.inputs.landmarks import central_examples, has_clusters
from gramian.operators.inputs.linear import weighted_gram
from gramian.operators.inputs.tiles import TILE_BYTES

# Rows of a block whose diagonal is differentiated: its square is computed for the sake of the diagonal.
DIAGONAL_BLOCK = 64


class LowRank(KernelOperator):
    """The matrix ``k(X, X)`` approximated from the columns of an active set.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or sparse array of shape (n_samples, n_features)
    rank : int
        Size of the active set; there may be fewer if nothing is left to approximate.
    pivots : {"auto", "clusters", "greedy", "random", "uniform"} or array of int, default="auto"
        How the active set is chosen: "clusters" takes examples next to the centres of clusters, see `landmarks`, for
        the others see `pivoted_cholesky`; or the set itself. "auto" is "clusters" if the kernel is a function of
        distances, else "random".
    diagonal : bool, default=False
        Whether the diagonal is exact, or that of the low-rank matrix plus white noise.
    random_state : int, RandomState or None, default=None
        Which random active set.

    Attributes
    ----------
    active : ndarray of int of shape (rank,)
        The active set. Copies with other log-parameters keep it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.operators import Dense, LowRank
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> exact, short = Dense(RBF(), X), LowRank(RBF(), X, rank=6, random_state=0)
    >>> B = np.ones((50, 1))
    >>> bool(np.abs(exact @ B - short @ B).max() < 1e-5)
    True
    >>> short.compress(B)[0].shape
    (6, 1)
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Array,
        rank: int,
        *,
        pivots: Any = "auto",
        diagonal: bool = False,
        random_state: Any = None,
    ):
        if not is_numpy(X) and not sp.issparse(X):
            raise TypeError(
                f"operator='low_rank' needs a NumPy or a sparse array, got {type(X).__name__}. "
                "Use operator='dense' or 'streamed'."
            )
        if kernel.is_precomputed:
            raise ValueError("operator='low_rank' needs features, not a precomputed kernel.")
        super().__init__(kernel, X)
        self.diagonal_correction = bool(diagonal)
        full, smooth = _diagonals(kernel, X)
        if isinstance(pivots, str) and pivots == "auto":
            few = isinstance(rank, Integral) and 0 < rank < X.shape[0]
            pivots = "clusters" if few and has_clusters(kernel) else "random"
        if isinstance(pivots, str) and pivots == "clusters":
            pivots = central_examples(kernel, X, int(rank), random_state)
        found = pivoted_cholesky(
            lambda indices: _columns(kernel, X, X[indices]),
            smooth,
            rank,
            pivots=pivots,
            random_state=random_state,
        )
        self.indices = found.indices  # those of the active set that are not numerically dependent
        self._triangle = np.array(found.factor[found.indices])
        self._rows = found.factor.T.astype(X.dtype, copy=False)  # Lᵀ, in C order
        if not self.indices.size:  # M is diagonal: a column of zeros spares others the case of none
            self.indices, self._triangle = np.zeros(1, dtype=np.int64), np.ones((1, 1))
            self._rows = np.zeros((1, self.shape[0]), dtype=X.dtype)
        self.active = self.indices if isinstance(pivots, str) else np.asarray(pivots)
        extra = full - smooth + (found.residual if diagonal else 0.0)
        self._extra = np.broadcast_to(extra, self.shape[:1]).astype(X.dtype)

    @property
    def rank(self) -> int:
        """Columns of L."""
        return int(self.indices.size)

    @property
    def factor(self) -> np.ndarray:
        """L of shape (n, rank), in column order."""
        return self._rows.T

    @property
    def has_diagonal(self) -> bool:
        """Whether the matrix is not L Lᵀ alone."""
        return bool(self._extra.any())

    # --- products -----------------------------------------------------------------------------

    def _matmul(self, B: Array) -> Array:
        out = self._projected(B).T @ self._rows
        out += (self._extra[:, None] * B).T
        return out.T

    def _projected(self, B: Array) -> Array:
        """Lᵀ B, summed in the dtype of B."""
        if B.dtype != self._rows.dtype:
            return skinny_product(self._rows, B)
        # by BLAS like the other half of a product: its threads and compiled ones in turns would wait for each other
        return (B.T @ self._rows.T).T

    def _accurate(self, B: Array) -> Array:
        W = self._projected(B).T
        out = self._extra[:, None] * B
        for rows in self._blocks():
            out[rows] += (W @ self._rows[:, rows].astype(np.float64)).T
        return out

    def _blocks(self) -> list[slice]:
        return row_blocks(self.shape[0], 8 * self.rank, TILE_BYTES)

    def to_dense(self) -> Array:
        out = self._rows.T @ self._rows
        out[np.diag_indices(self.shape[0])] += self._extra
        return out

    def _diagonal(self) -> Array:
        squares = np.einsum("ij,ij->j", self._rows, self._rows, dtype=np.float64)
        return (squares + self._extra).astype(self.dtype)

    def work(self, n_columns: int) -> float:
        return costs.stored_product(2 * self.shape[0] * self.rank, n_columns)

    def columns(self, indices: np.ndarray) -> np.ndarray:
        values = self._rows.T @ self._rows[:, indices]
        values[indices, np.arange(len(indices))] += self._extra[indices]
        return values

    # --- its functions, as linear ones of the columns of L --------------------------------------

    @property
    def n_weights(self) -> int:
        """Weights of a function: one for each column of L."""
        return self.rank

    def times(self, W: Array) -> Array:
        """L W for weights of shape (rank, ...)."""
        flat = W.reshape(W.shape[0], -1).astype(self._rows.dtype, copy=False)
        return (flat.T @ self._rows).T.reshape(-1, *W.shape[1:]).astype(W.dtype, copy=False)

    def transposed_times(self, G: Array) -> Array:
        """Lᵀ G for an array of shape (n_samples, ...)."""
        flat = G.reshape(G.shape[0], -1).astype(self._rows.dtype, copy=False)
        return self._projected(flat).reshape(-1, *G.shape[1:]).astype(G.dtype, copy=False)

    def transposed_squares_times(self, D: Array) -> Array:
        """(L∘L)ᵀ D, in blocks of rows of D."""
        flat, out = D.reshape(D.shape[0], -1), np.zeros((self.rank, D[0].size))
        for rows in self._blocks():
            out += self._rows[:, rows] ** 2 @ flat[rows]
        return out.reshape(-1, *D.shape[1:])

    def represented(self, W: np.ndarray) -> tuple[Array, np.ndarray]:
        """Examples and coefficients of the function L W: the active set, and ``L̃⁻ᵀ W``."""
        return self.X[self.indices], self.solved(W)

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        """``Lᵀ diag(weights) L`` for weights ≥ 0."""
        return weighted_gram(self._rows, weights)

    # --- prediction -----------------------------------------------------------------------------

    def compress(self, A: Array) -> tuple[Array, Array]:
        flat = np.asarray(A, dtype=np.float64).reshape(A.shape[0], -1)
        W = self.solved(self._projected(flat))
        return self.X[self.indices], W.reshape(self.rank, *A.shape[1:])

    def solved(self, B: Array) -> Array:
        """``L̃⁻ᵀ B``."""
        return solve_triangular(self._triangle, B, lower=True, trans=1, check_finite=False)

    # --- log-parameters -------------------------------------------------------------------------

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        kernel, X = self.kernel, self.X
        gradient = np.zeros(kernel.theta.size)
        if not gradient.size:
            return gradient
        E, F = (np.asarray(B, dtype=np.float64).reshape(B.shape[0], -1) for B in (E, F))
        e = np.einsum("ij,ij->i", E, F)
        E_active, F_active = (self.solved(self._projected(B)) for B in (E, F))
        inner = -E_active @ F_active.T  # weights of dM[I, I], which are rows of dM[:, I]
        if self.diagonal_correction:
            for rows in self._blocks():
                R = self._interpolation(rows)
                inner += (R * e[rows]) @ R.T
        X_active = _in_float64(X[self.indices])
        place = np.full(self.shape[0], -1)
        place[self.indices] = np.arange(self.rank)
        for rows in _row_blocks(X, self.rank):
            weights = E[rows] @ F_active.T + F[rows] @ E_active.T
            if self.diagonal_correction:
                weights -= 2 * (self._interpolation(rows) * e[rows]).T
            active = np.flatnonzero(place[rows] >= 0)
            weights[active] += inner[place[rows][active]]
            gradient += kernel.vjp(_in_float64(X[rows]), X_active, weights)
        return gradient + self._diagonal_vjp(e)

    def _interpolation(self, rows: slice) -> np.ndarray:
        """Columns of Rᵀ."""
        return self.solved(self._rows[:, rows].astype(np.float64))

    def _diagonal_vjp(self, e: np.ndarray) -> np.ndarray:
        """Gradient of ``Σ_i e_i M_ii``; of the noise in it alone if the diagonal is not exact."""
        gradient = np.zeros(self.theta.size)
        if not self.diagonal_correction and not self._extra.any():
            return gradient
        for rows in row_blocks(self.shape[0], 1, DIAGONAL_BLOCK):
            block, weights = _in_float64(self.X[rows]), np.diag(e[rows])
            gradient += self.kernel.vjp(block, block, weights, offset=0)
            if not self.diagonal_correction:
                gradient -= self.kernel.vjp(block, block, weights)
        return gradient

    def _with_kernel(self, kernel: Kernel) -> LowRank:
        return LowRank(
            kernel,
            self.X,
            self.active.size,
            pivots=self.active,
            diagonal=self.diagonal_correction,
        )

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._triangle.nbytes + self._extra.nbytes


def _columns(kernel: Kernel, X: Array, Z: Array) -> np.ndarray:
    """``k(X, Z)`` without white noise, in float64."""
    Z = _in_float64(Z)
    out = np.empty((X.shape[0], Z.shape[0]))
    for rows in _row_blocks(X, Z.shape[0]):
        out[rows] = kernel(_in_float64(X[rows]), Z)
    return out


def _diagonals(kernel: Kernel, X: Array) -> tuple[np.ndarray, np.ndarray]:
    """Diagonals of ``k(X, X)`` with and without white noise, in float64."""
    full, smooth = np.empty(X.shape[0]), np.empty(X.shape[0])
    for rows in _row_blocks(X, 1):
        part = _in_float64(X[rows])
        full[rows], smooth[rows] = kernel.diag(part), kernel.smooth_diag(part)
    return full, smooth


def _row_blocks(X: Array, n_columns: int) -> list[slice]:
    """Rows whose features in float64 and values of ``n_columns`` columns fit a tile."""
    n = int(X.shape[0])
    features = -(-int(X.nnz) // max(1, n)) if sp.issparse(X) else int(X.shape[1])
    return row_blocks(n, 8 * max(1, n_columns, features), TILE_BYTES)


def _in_float64(X: Array) -> Array:
    return X.astype(np.float64, copy=False)
