"""Directions of chain scores in which transitions and a function of positions about cancel, and the curvature there.

To add v to column b of T and to the start b, and −v to the intercept of label b, changes no score of a sequence; the
same holds for row a and the end a. Such sums have next to no curvature although each of their parts has much, so that a
preconditioner of the parts alone takes long. In these directions scores depend on the label of each position alone,

    score = Σ_t Σ_b x_b k(t) 1[y_t = b],      k(t) = 1, [t not first], [t not last], [t first], [t last]

for intercepts, columns and rows of T, starts and ends. As if positions were independent, the curvature is

    ⟨k, b | k', b'⟩ = Σ_t w k(t) k'(t) (δ_bb' p_tb − p_tb p_tb'),

which is exact for first and last labels, the ones that matter. Cost: n C² multiplications; directions have some 2 C²
numbers, and the curvature up to 25 C².
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.losses.chain.marginals import ChainLayout

# Kinds of sums as sums over all positions, first ones and last ones.
KINDS = np.array([[1, 0, 0], [1, -1, 0], [1, 0, -1], [0, 1, 0], [0, 0, 1]])


def sum_directions(layout: ChainLayout) -> sp.csr_array:
    """Return the directions, sparse of shape ((1 + n_extra) C, k): C intercepts, then T row by row, starts and ends.

    The sum of all rows of T is that of all columns, so the last row is left out.
    """
    unit, ones = sp.eye_array(layout.n_classes), np.ones((layout.n_classes, 1))
    columns, rows = sp.kron(ones, unit), sp.kron(unit, ones, format="csc")[:, :-1]
    ends = [unit, unit] if layout.ends else []
    return sp.csr_array(sp.block_diag([unit, sp.hstack([columns, rows]), *ends]))


def sum_curvature(layout: ChainLayout, expected: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the curvature in `sum_directions`, (k, k).

    Parameters
    ----------
    layout : ChainLayout
    expected : ndarray of shape (n, C)
        Weighted marginals of labels.
    spread : ndarray of shape (n,)
        The weight of each position.
    """
    C = layout.n_classes
    share = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)[:, None]

    def covariance(rows: Any) -> np.ndarray:
        some = expected[rows]
        return np.diag(some.sum(axis=0)) - (share[rows] * some).T @ some

    every, first, last = (covariance(r) for r in (slice(None), layout.first, layout.last))
    alone = covariance(layout.first[layout.first == layout.last])
    together = np.block([[every, first, last], [first, first, alone], [last, alone, last]])
    kinds = KINDS[: 5 if layout.ends else 3]
    blocks = together.reshape(3, C, 3, C)
    H = np.einsum("ia,acbd,jb->icjd", kinds, blocks, kinds, optimize=True)
    kept = np.delete(np.arange(len(kinds) * C), 3 * C - 1)
    return H.reshape(len(kinds) * C, -1)[np.ix_(kept, kept)]
