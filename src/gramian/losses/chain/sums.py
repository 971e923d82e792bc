"""Directions of chain scores in which transitions and a function of positions about cancel, and the curvature there.

To add v to column b of T, to v for the start b, and −v to the latent function of label b at every position changes no
score of a sequence; the same holds for row a and the end a. Such sums have next to no curvature although each of their
parts has much, so a preconditioner that takes the parts one by one makes long steps of Newton's method slow. In these
directions scores depend on the label of each position alone,

    score = Σ_t Σ_b x_b · k(t) 1[y_t = b],      k(t) = f(t), [t not first], [t not last], [t first], [t last]

for the function f, columns and rows of T, starts and ends. As if positions were independent, the curvature is

    ⟨k, b | k', b'⟩ = Σ_t w k(t) k'(t) (δ_bb' p_tb − p_tb p_tb'),

which is exact for first and last labels, the ones that matter. Cost: 13 n C² multiplications.
"""

from __future__ import annotations

import numpy as np

from gramian.losses.chain.marginals import ChainLayout


def sum_directions(layout: ChainLayout) -> np.ndarray:
    """Return the directions, (1 + n_extra, C, k): a row for the function, then those of transitions and ends.

    The sum of all rows of T is that of all columns, so the last row is left out.
    """
    C = layout.n_classes
    unit, zeros = np.eye(C), np.zeros((1 + layout.n_extra, C, C))
    kinds = [zeros.copy() for _ in range(5 if layout.ends else 3)]
    kinds[0][0] = unit
    kinds[1][1 : C + 1] = unit
    kinds[2][1 : C + 1] = unit[:, None, :]
    for kind, end in zip(kinds[3:], (C + 1, C + 2), strict=False):
        kind[end] = unit
    kinds[2] = kinds[2][:, :, :-1]
    return np.concatenate(kinds, axis=2)


def sum_curvature(
    layout: ChainLayout, expected: np.ndarray, spread: np.ndarray, function: np.ndarray
) -> np.ndarray:
    """Return the curvature in `sum_directions`, (k, k).

    Parameters
    ----------
    layout : ChainLayout
    expected : ndarray of shape (n, C)
        Weighted marginals of labels.
    spread : ndarray of shape (n,)
        The weight of each position.
    function : ndarray of shape (n,)
        f.
    """
    n, C = expected.shape
    first, last = np.zeros(n), np.zeros(n)
    first[layout.first], last[layout.last] = 1.0, 1.0
    kinds = [function, 1 - first, 1 - last, *([first, last] if layout.ends else [])]
    share = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)[:, None]
    H = np.zeros((len(kinds), C, len(kinds), C))
    for i, one in enumerate(kinds):
        for j, other in enumerate(kinds[: i + 1]):
            both = (one * other)[:, None] * expected
            H[i, :, j] = np.diag(both.sum(axis=0)) - both.T @ (share * expected)
            H[j, :, i] = H[i, :, j].T
    kept = np.delete(np.arange(len(kinds) * C), 3 * C - 1)
    return H.reshape(len(kinds) * C, -1)[np.ix_(kept, kept)]
