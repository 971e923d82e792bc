"""Scores of linear chains and what follows from them: partition functions, marginals, products with the Hessian.

The latent values of chains are rows of scores with C columns: one row for each position, then C rows of transition
scores ``T[a, b]`` (from label a to label b), and, if the ends have scores, rows for first and last labels::

    rows 0 … n−1        u_t          positions, sequence after sequence
    rows n … n+C−1      T[a, ·]      transitions
    row  n+C, n+C+1     start, end
    then n·C rows       G_t[a, ·]    moving transitions, position after position, if there are any

The score of labels y of a sequence is ``start[y_1] + Σ_t u_t[y_t] + Σ_t (T + G_t)[y_{t-1}, y_t] + end[y_L]``. Without
moving transitions one table T serves all positions; with them each position has a table of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian._core.threads import in_parts
from gramian.losses.chain import log_recursions, recursions

ALONE = 20_000  # positions × classes² of a loop below which a second thread would cost more than it saves


@dataclass(frozen=True, eq=False)
class ChainLayout:
    """Which rows belong to which sequence, and which transitions are possible.

    Parameters
    ----------
    lengths : int array of shape (n_sequences,)
        Zero for an empty sequence.
    n_classes : int
    ends : bool, default=True
        Whether there are scores of first and last labels.
    allowed : bool array of shape (n_classes + 2, n_classes), default=None
        False for forbidden transitions, first and last labels, in the order of the rows; None forbids nothing.
    moving : bool, default=False
        Whether each position has scores of its own for the transition that leads to it.
    """

    lengths: np.ndarray
    n_classes: int
    ends: bool = True
    allowed: np.ndarray | None = None
    moving: bool = False

    def __post_init__(self) -> None:
        lengths = np.ascontiguousarray(self.lengths, dtype=np.int64)
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        filled = lengths > 0
        put = object.__setattr__  # the dataclass is frozen
        put(self, "lengths", lengths)
        put(self, "bounds", bounds)
        put(self, "filled", filled)
        put(self, "first", bounds[:-1][filled])
        put(self, "last", bounds[1:][filled] - 1)
        own = np.arange(bounds[-1]) if self.moving else np.zeros(bounds[-1], dtype=np.int64)
        put(self, "tables", own)

    bounds: Any = None
    filled: Any = None
    first: Any = None
    last: Any = None
    tables: Any = None  # the number of each position's table of transitions

    @property
    def n_positions(self) -> int:
        return int(self.bounds[-1])

    @property
    def n_extra(self) -> int:
        """Rows of scores that belong to no position."""
        own = self.n_positions * self.n_classes if self.moving else 0
        return self.n_classes + (2 if self.ends else 0) + own

    def split(self, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores of positions (q, n, C), those of the ends added, and tables of transitions (q, m, C, C)."""
        n, C = self.n_positions, self.n_classes
        if U.shape[:2] != (n + self.n_extra, C):  # compiled loops check no bounds
            raise ValueError(
                f"U must have {n} rows of positions, {self.n_extra} of transitions and ends, and {C} columns, "
                f"got shape {U.shape}."
            )
        cube = np.moveaxis(U if U.ndim == 3 else U[:, :, None], 2, 0)
        u, T = np.array(cube[:, :n], order="C"), np.ascontiguousarray(cube[:, None, n : n + C])
        if self.moving:
            own = cube[:, U.shape[0] - n * C :]
            T = T + own.reshape(len(own), n, C, C)
        if self.ends:
            u[:, self.first] += cube[:, None, n + C]
            u[:, self.last] += cube[:, None, n + C + 1]
        return u, T

    def forbid(self, u: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores with −∞ for what is not allowed; positions are changed in place."""
        if self.allowed is None:
            return u, T
        C = self.n_classes
        u[:, self.first] = np.where(self.allowed[C], u[:, self.first], -np.inf)
        u[:, self.last] = np.where(self.allowed[C + 1], u[:, self.last], -np.inf)
        return u, np.where(self.allowed[:C], T, -np.inf)

    def join(self, u: np.ndarray, T: np.ndarray) -> np.ndarray:
        """Return rows of scores (rows, C, q), the transpose of `split`: rows of ends are sums over the sequences."""
        parts = [u, T.sum(axis=1)]
        if self.ends:
            parts += [u[:, rows].sum(axis=1, keepdims=True) for rows in (self.first, self.last)]
        if self.moving:
            parts.append(T.reshape(T.shape[0], self.n_positions * self.n_classes, self.n_classes))
        return np.ascontiguousarray(np.moveaxis(np.concatenate(parts, axis=1), 0, 2))

    def weights(self, weights: Any, q: int) -> np.ndarray:
        """Return the weight of each sequence, that of its first row, as an array (q, n_sequences)."""
        out = np.zeros((q, self.lengths.size))
        if weights is None:
            out[:, self.filled] = 1.0
        else:
            given = np.asarray(weights, dtype=float)
            out[:, self.filled] = given.reshape(given.shape[0], -1)[self.first].T
        return out


class ChainMarginals:
    """Forward and backward messages at some scores.

    Parameters
    ----------
    layout : ChainLayout
    U : ndarray of shape (rows, C) or (rows, C, q)
    weights : ndarray of shape (q, n_sequences)
        Sequences without weight are left out.
    possible : bool ndarray of shape (n, C), default=None
        The labels that each position may have; all by default.

    Attributes
    ----------
    log_z : ndarray of shape (q, n_sequences)
        Logarithm of the sum of exp(score) over all possible labels; zero for empty and left-out sequences.
    """

    def __init__(
        self, layout: ChainLayout, U: np.ndarray, weights: np.ndarray, possible: Any = None
    ):
        self.layout, self.weights = layout, weights
        u, T = layout.forbid(*layout.split(U))
        if possible is not None:
            u = np.where(possible, u, -np.inf)
        self.T = T
        most = T.max(axis=(1, 2, 3), initial=-np.inf)
        self._most = np.where(np.isfinite(most), most, 0.0)
        self.E = np.exp(T - self._most[:, None, None, None])
        lost = np.zeros(weights.shape, dtype=bool)
        self.units = recursions.Units(layout.bounds, layout.tables, weights > 0, lost, weights)
        # zeros, so that units which are left out have marginals of zero
        alpha, beta, scaled = (np.zeros(u.shape) for _ in range(3))
        self.messages = recursions.Messages(alpha, beta, scaled, np.zeros(weights.shape))
        self._in_parts(recursions.sweep, self.units, u, self.E, self._most, self.messages)
        if lost.any():
            log_recursions.log_sweep(self.units, u, T, self.messages)

    @property
    def log_z(self) -> np.ndarray:
        return self.messages.log_z

    def _in_parts(self, loop: Any, *arguments: Any) -> list[Any]:
        """Call a loop for all units, by several threads if there is enough to do; return what the calls return."""
        count, (q, n, C) = self.weights.size, self.messages.alpha.shape

        def part(first: int, last: int) -> Any:
            return loop(first, last, *arguments)

        if n * C * C * q < ALONE:
            return [part(0, count)]
        return in_parts(part, count, most=-(-count // 8))

    def _summed(self, loop: Any, *arguments: Any) -> np.ndarray:
        """Call a loop for all units with tables (q, m, C, C) that it adds to; return the sum of these tables."""
        # tables of positions belong to one unit each, so threads may share them
        shared = np.zeros(self.E.shape) if self.layout.moving else None

        def part(first: int, last: int) -> np.ndarray:
            joint = np.zeros(self.E.shape) if shared is None else shared
            loop(first, last, self.units, self.messages, *arguments, joint)
            return joint

        parts = self._in_parts(part)
        return np.sum(parts, axis=0) if shared is None else shared

    def expectations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted marginals of labels, (q, n, C), and of pairs, summed for each table, (q, m, C, C)."""
        out = np.zeros(self.messages.alpha.shape)
        pairs = self.E * self._summed(recursions.expect, out)
        if self.units.lost.any():
            log_recursions.log_expect(self.units, self.T, self.messages, out, pairs)
        return out, pairs

    def squared_pairs(self) -> np.ndarray:
        """Return sums of weighted squared marginals of pairs, (q, m, C, C); sequences in logarithms are left out.

        With ``ξ_t = E ∘ (α_{t-1}ᵀ g_t)`` these are ``E∘E ∘ Σ_t w (α_{t-1}∘α_{t-1})ᵀ (g_t∘g_t)``: one matrix product.
        """
        layout, (alpha, beta, scaled, _) = self.layout, self.messages
        after = np.setdiff1d(np.arange(layout.n_positions), layout.first)
        w = np.repeat(np.where(self.units.lost, 0.0, self.weights), layout.lengths, axis=1)
        w = w[:, after, None]
        before, e, b = (
            np.where(w > 0, array, 0.0)
            for array in (alpha[:, after - 1], scaled[:, after], beta[:, after])
        )
        left, right = w * before**2, (e * b) ** 2
        if layout.moving:
            out = np.zeros(self.E.shape)
            out[:, after] = left[..., None] * right[:, :, None, :]
            return self.E**2 * out
        sums = [one.T @ other for one, other in zip(left, right, strict=True)]
        return self.E**2 * np.stack(sums)[:, None]

    def product(self, v: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the product of the weighted Hessian of ``log Z`` with (v, V), of the shapes of `expectations`."""
        out, EV = np.zeros(v.shape), self.E * V
        joint = self._summed(recursions.differentiate, (self.E, EV), v, out)
        pairs = self.E * joint + EV * self._joint
        if self.units.lost.any():
            log_recursions.log_differentiate(self.units, self.messages, self.T, V, v, out, pairs)
        return out, pairs

    def pair_marginals(self) -> np.ndarray:
        """Return the probability of each pair of labels at the position before and at a position, (n, C, C).

        It is that of the first of the q problems, with zeros at first positions, before which there is none.
        """
        layout = self.layout
        alpha, beta, scaled = (array[0] for array in self.messages[:3])
        out = np.zeros((layout.n_positions, layout.n_classes, layout.n_classes))
        after = np.setdiff1d(np.arange(layout.n_positions), layout.first)
        in_logs = np.repeat(self.units.lost[0], layout.lengths)[after]
        for rows, logarithms in ((after[~in_logs], False), (after[in_logs], True)):
            before = alpha[rows - 1][:, :, None]
            if logarithms:
                T = self.T[0, layout.tables[rows]]
                out[rows] = np.exp(before + T + (scaled[rows] + beta[rows])[:, None, :])
            else:
                E = self.E[0, layout.tables[rows]]
                out[rows] = before * E * (scaled[rows] * beta[rows])[:, None, :]
        return out

    @property
    def _joint(self) -> np.ndarray:
        """``Σ w α_{t-1}ᵀ g_t``, the same in every product."""
        if self._kept is None:
            self._kept = self._summed(recursions.expect, np.zeros(self.messages.alpha.shape))
        return self._kept

    _kept: np.ndarray | None = None
