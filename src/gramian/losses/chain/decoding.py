"""The best label sequences of linear chains: Viterbi's recursion, and the k best.

    m_t(b) = u_t(b) + max_a (m_{t-1}(a) + T_ab)

and the way back along the maxima. For the k best, each state keeps its k best scores with the label and the rank that
they came from. Ties go to the label with the smaller number.

Cost: n C² comparisons for the best, n C² k log-free insertions for the k best.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gramian._core.threads import share
from gramian.losses.chain.marginals import ALONE, ChainLayout


def best_paths(
    layout: ChainLayout, U: np.ndarray, n_best: int = 1, possible: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best labels of each sequence, and their scores.

    Parameters
    ----------
    layout : ChainLayout
    U : ndarray of shape (rows, C)
    n_best : int, default=1
    possible : bool ndarray of shape (n, C), default=None
        The labels that each position may have; all by default.

    Returns
    -------
    labels : int ndarray of shape (n_best, n)
        -1 where a sequence has fewer paths.
    scores : ndarray of shape (n_best, n_sequences)
        −∞ where a sequence has fewer paths.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses.chain.decoding import best_paths
    >>> from gramian.losses.chain.marginals import ChainLayout
    >>> scores = np.array([[2.0, 0.0], [0.0, 1.0], [0, -3.0], [0, 0], [0, 0], [0, 0]])
    >>> labels, values = best_paths(ChainLayout([2], 2), scores, n_best=2)
    >>> labels
    array([[0, 0],
           [1, 1]])
    >>> values.ravel()
    array([2., 1.])
    """
    (u,), (T,) = layout.forbid(*layout.split(U))
    if possible is not None:
        u = np.where(possible, u, -np.inf)
    n, C = u.shape
    labels = np.full((n_best, n), -1, dtype=np.int64)
    scores = np.full((n_best, layout.lengths.size), -np.inf)
    scores[0, ~layout.filled] = 0.0  # the empty sequence has one path
    best, origin = np.empty((n, C, n_best)), np.empty((n, C, n_best), dtype=np.int32)
    share(
        _paths,
        layout.lengths.size,
        *(
            (layout.bounds, layout.tables),
            u,
            np.ascontiguousarray(T),
            (best, origin),
            labels,
            scores,
        ),
        alone=n * C * C * n_best < ALONE,
    )
    return labels, scores


@njit(cache=True, nogil=True)
def _insert(scores, origins, score, origin):
    """Put a score into a sorted list of the best, after those that are as good."""
    place = scores.size - 1
    if not score > scores[place]:
        return
    while place > 0 and score > scores[place - 1]:
        scores[place], origins[place] = scores[place - 1], origins[place - 1]
        place -= 1
    scores[place], origins[place] = score, origin


@njit(cache=True, nogil=True)
def _paths(first, last, where, u, T, lists, labels, scores):
    bounds, tables = (
        where  # first positions of the sequences, and the table of transitions of each position
    )
    best, origin = lists  # of each position and label: its best scores, and where they came from
    C, k = T.shape[1], best.shape[2]
    top, ends = np.empty(k), np.empty(k, dtype=np.int32)
    for s in range(first, last):
        lo, hi = bounds[s], bounds[s + 1]
        if lo == hi:
            continue
        for t in range(lo, hi):
            for b in range(C):
                for r in range(k):
                    top[r], ends[r] = -math.inf, 0
                if t == lo:
                    top[0] = 0.0
                else:
                    for a in range(C):
                        for r in range(k):
                            if best[t - 1, a, r] == -math.inf:
                                break
                            _insert(top, ends, best[t - 1, a, r] + T[tables[t], a, b], a * k + r)
                for r in range(k):
                    best[t, b, r], origin[t, b, r] = top[r] + u[t, b], ends[r]
        for r in range(k):
            top[r], ends[r] = -math.inf, 0
        for b in range(C):
            for r in range(k):
                _insert(top, ends, best[hi - 1, b, r], b * k + r)
        for r in range(k):
            if top[r] == -math.inf:
                continue
            scores[r, s], state = top[r], ends[r]
            for t in range(hi - 1, lo - 1, -1):
                b, rank = state // k, state % k
                labels[r, t] = b
                state = origin[t, b, rank]
