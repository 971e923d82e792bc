"""Generated classification data that a Gaussian process with an RBF kernel describes."""

from __future__ import annotations

import numpy as np

FEATURES = 1000  # random Fourier features of the functions that labels are drawn from


def gaussian_process_labels(
    n: int, d: int, n_classes: int, *, length_scale: float, gain: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw normal inputs, smooth functions of them, and labels from the softmax of the functions.

    Returns
    -------
    X : ndarray of shape (n, d)
    y : ndarray of int of shape (n,)
    P : ndarray of shape (n, n_classes)
        The true probabilities.
    """
    rng = np.random.default_rng(seed)
    frequencies = rng.standard_normal((d, FEATURES)) / length_scale
    phases = rng.uniform(0, 2 * np.pi, FEATURES)
    weights = gain * np.sqrt(2 / FEATURES) * rng.standard_normal((FEATURES, n_classes))
    X = rng.standard_normal((n, d))
    U = np.concatenate(
        [np.cos(rows @ frequencies + phases) @ weights for rows in np.array_split(X, n // 5000 + 1)]
    )
    P = np.exp(U - U.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
    return X, np.minimum(y, n_classes - 1), P
