"""Labels that are visited side by side: which ones, and how far their changes may go together."""

from __future__ import annotations

import numba
import numpy as np

BATCH_LABELS = 32  # side by side at most: an interruption need not wait for all labels
BATCH_CORRELATION = 0.5  # sum of |correlations| of a label with the others of its batch, at most


def label_batches(R: np.ndarray) -> list[np.ndarray]:
    """Return labels in batches to be visited side by side: each has little correlation with the others of its batch."""
    scale = np.sqrt(np.diag(R))
    strength = np.abs(R) / np.outer(scale, scale)
    np.fill_diagonal(strength, 0.0)
    left = list(range(len(R)))
    batches = []
    while left:
        batch: list[int] = []
        load = np.zeros(len(R))
        for label in left:
            joined = [*batch, label]
            loads = load[joined] + strength[label, joined]
            if len(batch) < BATCH_LABELS and np.all(loads <= BATCH_CORRELATION):
                batch, load = joined, load + strength[label]
        batches.append(np.array(batch))
        left = [label for label in left if label not in batch]
    return batches


@numba.njit(cache=True, nogil=True)
def common_step(R, batch, slope, change, product, more):
    """Return the best multiple, at most 1, of the changes of all labels of a batch together.

    ``product`` is K times ``change`` of each label, or both are what inner products of it are made of, so that it does
    not matter which of two labels has the product; ``slope`` is the sum of the dual's slopes along the changes,
    ``more`` the curvature that is not in the products.
    """
    curvature = more
    for b in range(batch.size):
        for c in range(b + 1):
            weight = R[batch[b], batch[c]]
            if weight != 0:
                curvature += (1.0 if b == c else 2.0) * weight * np.dot(change[b], product[c])
    return min(1.0, slope / curvature) if curvature > 0 else 1.0
