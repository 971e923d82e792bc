"""Interleaved spirals: no linear boundary, any number of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gramian._core.validation import check_number


def make_spirals(
    n_samples: int = 300, n_classes: int = 3, noise: float = 0.05, random_state: Any = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Make points on spirals in the plane, one arm for each class.

    Parameters
    ----------
    n_samples : int, default=300
        At least one for each class; class sizes differ by one at most.
    n_classes : int, default=3
    noise : float, default=0.05
        Standard deviation of the noise; the spirals end at radius 1.
    random_state : int, RandomState or None, default=0
        The same number gives the same points; None gives new ones with each call.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        Integers from 0 to n_classes − 1, in random order.

    Examples
    --------
    >>> from gramian import KernelLogisticRegression
    >>> from gramian.datasets import make_spirals
    >>> from gramian.kernels import RBF
    >>> X, y = make_spirals(n_samples=200, n_classes=2)
    >>> KernelLogisticRegression(RBF(0.2), regularization=0.01).fit(X, y).score(X, y) > 0.95
    True
    """
    check_number("n_classes", n_classes, low=1, whole=True)
    check_number("n_samples", n_samples, low=n_classes, whole=True)
    check_number("noise", noise)
    rng = check_random_state(random_state)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    radius = np.sqrt(rng.uniform(0.01, 1.0, n_samples))  # even along the area, not the radius
    angle = 2 * np.pi * (y / n_classes + radius)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + noise * rng.normal(size=X.shape), y
