"""Partial Cholesky factor of a Gram matrix from a few of its columns.

Formula
    M ≈ L Lᵀ, L of shape (n, r), from the columns of M at an active set I of r pivots. ``L[I]`` is lower triangular, the
    Cholesky factor of ``M[I, I]`` in the order of the pivots, and ``M[:, I] = L L[I]ᵀ``: the Nyström approximation
    ``M[:, I] M[I, I]⁻¹ M[I, :]`` (Seeger §7.4). The diagonal of M − L Lᵀ, never negative, is the *residual*: what the
    next pivot could take away.

Pivots
    greedy: the largest residual. random: probability proportional to the residual, RPCholesky (Chen, Epperly, Tropp and
    Webber, "Randomly pivoted Cholesky", 2022), whose trace error is close to the best of its rank in expectation.
    uniform: any example alike, plain Nyström.

Method
    Blocks of candidates, so that the work is matrix products. The candidates' own small matrix decides which of them
    become pivots; only then is the large factor touched. "random" draws candidates by the residuals at the start of
    the block and accepts one with the ratio of its residual now to that then: the law is that of one at a time
    (Epperly, Tropp and Webber, "Embrace rejection", 2024). "greedy" takes the examples with the largest residuals and
    goes on while the best of them beats every example left out; residuals only fall, so that these are the
    pivots of the textbook loop.

Cost
    n r² flops in matrix products and r columns of M, a few more for candidates that are rejected.

Deviation
    A pivot is never taken at the level of rounding, where duplicates of a pivot are: there may be fewer than ``rank``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs
from sklearn.utils import check_random_state

PIVOTS = ("greedy", "random", "uniform")

# What accepts candidates: from what is left of their matrix and the level of rounding to places of pivots and their
# Cholesky factor. A rule proposes: from weights, the size of a block and the missing pivots to candidates and that.
Accept = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]
Rule = Callable[[np.ndarray, int, int], tuple[np.ndarray, Accept]]

# Candidates at a time: enough for matrix products to run at full speed, few enough that most are accepted, and as
# many columns as fit the bytes.
BLOCK = 64
BLOCK_BYTES = 32 * 2**20


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    """A partial Cholesky factor.

    Attributes
    ----------
    indices : ndarray of int of shape (r,)
        The pivots, in order.
    factor : ndarray of shape (n, r)
        L, in column order and in the dtype of the columns; ``L[indices]`` is lower triangular.
    residual : ndarray of shape (n,)
        Diagonal of M − L Lᵀ, not negative, float64.
    """

    indices: np.ndarray
    factor: np.ndarray
    residual: np.ndarray


def pivoted_cholesky(
    columns: Callable[[np.ndarray], np.ndarray],
    diagonal: np.ndarray,
    rank: int,
    *,
    pivots: Any = "random",
    tol: float = 0.0,
    random_state: Any = None,
) -> PivotedCholesky:
    """Factor a positive semi-definite matrix from some of its columns.

    Parameters
    ----------
    columns : callable
        From numbers of examples of shape (b,) to ``M[:, numbers]`` of shape (n, b), float32 or float64.
    diagonal : array of shape (n,)
        Diagonal of M.
    rank : int
        Most pivots.
    pivots : {"greedy", "random", "uniform"} or array of int, default="random"
        How pivots are chosen: largest residual, at random in proportion to the residual, or any. An array gives
        them, in order.
    tol : float, default=0.0
        Stop when the trace of M − L Lᵀ is at most ``tol`` × the trace of M.
    random_state : int, RandomState or None, default=None
        For "random" and "uniform"; an int gives the same pivots each time.

    Returns
    -------
    PivotedCholesky

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators.compiled.pivoted_cholesky import pivoted_cholesky
    >>> M = np.array([[4.0, 2.0, 2.0], [2.0, 3.0, 1.0], [2.0, 1.0, 1.0]])
    >>> result = pivoted_cholesky(lambda i: M[:, i], np.diag(M), 2, pivots="greedy")
    >>> result.indices
    array([0, 1])
    >>> np.abs(M - result.factor @ result.factor.T).max().round(12)
    np.float64(0.0)
    """
    diagonal = _checked(diagonal, rank, tol)
    n = diagonal.size
    propose = _rule(pivots, n, check_random_state(random_state))
    most = max(1, min(BLOCK, BLOCK_BYTES // (8 * n)))
    found = _Partial(diagonal, min(int(rank), n), tol)
    while found.missing and (weights := found.weights()).any():
        candidates, accept = propose(weights, most, found.missing)
        if not candidates.size:
            break
        values = _checked_columns(columns(candidates), n, candidates.size)
        small = found.small(candidates, values)
        accepted, triangle = accept(small, found.rounding)
        kept = found.extend(candidates, values, accepted, triangle)
        if kept == accepted.size:  # else what is left is small enough
            found.residual[candidates[np.diagonal(small) <= found.rounding]] = 0.0
    return PivotedCholesky(found.indices, found.factor[:, : found.indices.size], found.residual)


class _Partial:
    """The factor while it grows."""

    def __init__(self, diagonal: np.ndarray, rank: int, tol: float):
        self.rank = rank
        self.residual = diagonal.copy()
        self.enough = tol * float(diagonal.sum())
        self.indices = np.empty(0, dtype=np.int64)
        # until the first columns tell their dtype
        self.factor = np.empty((diagonal.size, 0))
        self.rounding = 0.0

    @property
    def missing(self) -> int:
        """Pivots still wanted at most; none once the residual is small enough."""
        return self.rank - self.indices.size if self.residual.sum() > self.enough else 0

    def weights(self) -> np.ndarray:
        """The residual where it is more than rounding, else zero."""
        return np.where(self.residual > self.rounding, self.residual, 0.0)

    def small(self, candidates: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What the factor leaves of the candidates' own matrix, float64, from their columns of M."""
        if not self.factor.size:
            self._allocate(values.dtype)
        old = self.factor[candidates, : self.indices.size].astype(np.float64)
        return values[candidates].astype(np.float64) - old @ old.T

    def _allocate(self, dtype: np.dtype) -> None:
        self.factor = np.empty((self.residual.size, self.rank), dtype=dtype, order="F")
        # subtractions of up to ``rank`` squares, and a little for the kernel values themselves
        eps = float(np.finfo(dtype).eps)
        self.rounding = (32 + self.rank) * eps * float(self.residual.max())

    def extend(
        self, candidates: np.ndarray, values: np.ndarray, accepted: np.ndarray, triangle: np.ndarray
    ) -> int:
        """Take in the accepted candidates; return how many, as the last ones may not be needed for ``tol``.

        ``values`` are the candidates' columns of M, ``triangle`` is the factor of what is left of the accepted
        ones' own matrix.
        """
        if not accepted.size:
            return 0
        chosen, k = candidates[accepted], self.indices.size
        block = self.factor[:, k : k + chosen.size]  # a view: columns are contiguous
        block[...] = values[:, accepted]
        self._orthogonalise(block, chosen, triangle)
        taken = np.einsum("ij,ij->j", block, block, dtype=np.float64)
        left = self.residual.sum() - np.cumsum(taken)
        kept = min(chosen.size, int(np.count_nonzero(left > self.enough)) + 1)
        block = block[:, :kept]
        self.indices = np.concatenate([self.indices, chosen[:kept]])
        self.residual -= np.einsum("ij,ij->i", block, block, dtype=np.float64)
        np.maximum(self.residual, 0.0, out=self.residual)
        self.residual[self.indices] = 0.0
        return kept

    def _orthogonalise(self, block: np.ndarray, chosen: np.ndarray, triangle: np.ndarray) -> None:
        """From columns of M to columns of L, in place: ``(block − L L[chosen]ᵀ) triangle⁻ᵀ``."""
        k = self.indices.size
        block -= self.factor[:, :k] @ self.factor[chosen, :k].T
        divide = get_blas_funcs("trsm", (block,))
        block[...] = divide(1.0, triangle, block, side=1, lower=1, trans_a=1, overwrite_b=1)
        block[self.indices] = 0.0  # zero but for rounding
        block[chosen] = triangle


# --- which candidates, and which of them become pivots ------------------------------------------


def _rule(pivots: Any, n: int, rng: np.random.RandomState) -> Rule:
    """The rule named by ``pivots``: candidates from weights, and what accepts some of them."""
    if isinstance(pivots, str) and pivots in PIVOTS:
        if pivots == "greedy":
            return _greedy
        return partial(_random, rng) if pivots == "random" else _InOrder(rng.permutation(n))
    given = np.asarray(pivots)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"pivots must be one of {', '.join(map(repr, PIVOTS))}, or an array of whole numbers; got {pivots!r}."
        )
    if given.size and (given.min() < 0 or given.max() >= n or np.unique(given).size < given.size):
        raise ValueError(f"pivots must be different numbers from 0 to {n - 1}, got {pivots!r}.")
    return _InOrder(given.astype(np.int64))


def _greedy(weights: np.ndarray, most: int, missing: int) -> tuple[np.ndarray, Accept]:
    """The largest weights; pivots while they exceed all others."""
    candidates, floor = _largest(weights, min(most, missing))
    return candidates, partial(_by_size, floor=floor)


def _random(
    rng: np.random.RandomState, weights: np.ndarray, most: int, missing: int
) -> tuple[np.ndarray, Accept]:
    """Draws in proportion to the weights; pivots by the ratio of what is left of a weight to it."""
    size = min(most, 2 * missing)
    candidates = rng.choice(weights.size, size=size, p=weights / weights.sum())
    needed = rng.uniform(size=size) * weights[candidates]
    return candidates, partial(_in_turn, needed=needed, most=missing)


class _InOrder:
    """The next ones in an order that have a weight, each proposed once; pivots are all above rounding."""

    def __init__(self, order: np.ndarray):
        self.order = order

    def __call__(self, weights: np.ndarray, most: int, missing: int) -> tuple[np.ndarray, Accept]:
        useful = self.order[weights[self.order] > 0]
        candidates, self.order = np.split(useful, [min(most, missing)])
        return candidates, partial(_in_turn, needed=np.zeros(candidates.size), most=missing)


def _largest(residual: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """The examples with the largest residuals, the first ones of equals, and the largest residual of the others."""
    place = residual.size - size - 1
    bound = 0.0 if place < 0 else float(np.partition(residual, place)[place])
    above = np.flatnonzero(residual > bound)
    if bound == 0:
        return above, bound
    equal = np.flatnonzero(residual == bound)[: size - above.size]
    return np.sort(np.concatenate([above, equal])), bound


def _by_size(small: np.ndarray, rounding: float, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Pivots among the candidates, largest residual first, down to ``floor``, and their Cholesky factor.

    ``small`` becomes what is left of the candidates' matrix.
    """
    accepted: list[int] = []
    rows = np.zeros_like(small)
    for _ in range(len(small)):
        i = int(np.argmax(np.diagonal(small)))
        # the first one needs no comparison, which rounding might decide against all candidates
        if small[i, i] <= rounding or (accepted and small[i, i] < floor):
            break
        _eliminate(small, rows, i, len(accepted))
        accepted.append(i)
    return _triangle(rows, accepted)


def _in_turn(
    small: np.ndarray, rounding: float, needed: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Candidates in turn, each a pivot if what is left of it exceeds ``needed``; see `_by_size`."""
    accepted: list[int] = []
    rows = np.zeros_like(small)
    needed = np.maximum(needed, rounding)
    for i in range(len(small)):
        if len(accepted) < most and small[i, i] > needed[i]:
            _eliminate(small, rows, i, len(accepted))
            accepted.append(i)
    return _triangle(rows, accepted)


def _eliminate(small: np.ndarray, rows: np.ndarray, i: int, k: int) -> None:
    """Take pivot i out of the small matrix; column k of its factor goes to ``rows``."""
    rows[:, k] = small[:, i] / np.sqrt(small[i, i])
    small -= np.outer(rows[:, k], rows[:, k])
    small[i] = small[:, i] = 0.0


def _triangle(rows: np.ndarray, accepted: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(accepted, dtype=np.int64), np.tril(rows[accepted, : len(accepted)])


# --- what is refused ----------------------------------------------------------------------------


def _checked(diagonal: Any, rank: Any, tol: Any) -> np.ndarray:
    """The diagonal in float64; errors name the argument."""
    if not isinstance(rank, Integral) or isinstance(rank, bool):
        raise TypeError(f"rank must be a whole number >= 1, got {rank!r}.")
    if rank < 1:
        raise ValueError(f"rank must be a whole number >= 1, got {rank!r}.")
    if not isinstance(tol, Real) or isinstance(tol, bool) or not 0 <= float(tol) <= 1:
        raise ValueError(f"tol must be a number from 0 to 1, got {tol!r}.")
    values = np.asarray(diagonal, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"diagonal must have shape (n,) with n >= 1, got {values.shape}.")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(
            "diagonal must be finite and not negative: the matrix is positive semi-definite."
        )
    return values


def _checked_columns(values: Any, n: int, size: int) -> np.ndarray:
    values = np.asarray(values)
    if values.shape != (n, size):
        raise ValueError(
            f"columns must return an array of shape {(n, size)} for {size} indices, got {values.shape}."
        )
    if values.dtype not in (np.float32, np.float64):
        raise TypeError(f"columns must return float32 or float64, got {values.dtype}.")
    if not np.isfinite(values).all():
        raise ValueError("columns returned values that are not finite; check X and the kernel.")
    return values
