"""Pairs of objects whose response is more than the sum of what each of the two does.

With features x of the left and z of the right object,

    f(x, z) = Σ_t s_t(x) s'_t(z) sqrt(0.82 / 3) + 0.3 (m(x) + m'(z)),    t = 1, 2, 3,

where s, s', m and m' are sines sin(a·x + p) with random unit vectors a and phases |p| < π/4, shifted and scaled
to mean 0 and variance 1. (Nearer to its crest a sine has one long tail.) With Gaussian features a·x is standard
normal, so that both are known:

    E sin(a·x + p) = sin(p) e^(−1/2),    E sin²(a·x + p) = (1 − cos(2p) e^(−2)) / 2.

The products are then free of main effects, and f has variance 0.82 + 0.3² + 0.3² = 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from gramian._core.validation import check_flag, check_number
from gramian.pairs import Pairs

_PRODUCTS = 3
_MAIN_EFFECT = 0.3
_INTERACTION = np.sqrt((1 - 2 * _MAIN_EFFECT**2) / _PRODUCTS)
_POSITIVE = 0.25  # share of the ones


def make_interactions(
    n_left: int = 60,
    n_right: int = 40,
    n_features: int = 5,
    density: float = 0.3,
    *,
    noise: float = 0.1,
    binary: bool = False,
    random_state: Any = 0,
) -> tuple[Pairs, np.ndarray]:
    """Make pairs of objects with a smooth interaction, observed at random cells.

    Features are independent and Gaussian. The response of a pair is a sum of products of waves in the
    features of its two objects, with weaker main effects of each; its standard deviation is about 1
    before the noise.

    Parameters
    ----------
    n_left : int, default=60
        Number of left objects.
    n_right : int, default=40
        Number of right objects.
    n_features : int, default=5
        Of each object, left and right.
    density : float, default=0.3
        Fraction of the cells (left, right) that are observed, each once; at most 1. There are
        always enough for every object to occur.
    noise : float, default=0.1
        Standard deviation of the noise in the response.
    binary : bool, default=False
        Return 1 for the quarter of the pairs with the largest response, 0 for the others.
    random_state : int, RandomState or None, default=0
        The same number gives the same pairs; None gives new ones with each call.

    Returns
    -------
    pairs : Pairs
        In random order.
    y : ndarray of shape (n_pairs,)
        Real numbers, or integers 0 and 1 if `binary`.

    Examples
    --------
    >>> from gramian.datasets import make_interactions
    >>> pairs, y = make_interactions(n_left=20, n_right=10, density=0.5)
    >>> pairs.n_left, pairs.n_right, len(pairs), y.shape
    (20, 10, 100, (100,))
    >>> pairs, y = make_interactions(n_left=20, n_right=10, density=0.5, binary=True)
    >>> int(y.sum())
    25
    """
    for name, count in {"n_left": n_left, "n_right": n_right, "n_features": n_features}.items():
        check_number(name, count, low=1, whole=True)
    check_number("density", density, strict=True)
    check_number("noise", noise)
    check_flag("binary", binary)
    if density > 1:
        raise ValueError(f"density must be at most 1, the fraction of all cells, got {density!r}.")
    rng = check_random_state(random_state)
    left = rng.normal(size=(n_left, n_features))
    right = rng.normal(size=(n_right, n_features))
    left_waves, right_waves = _waves(left, rng), _waves(right, rng)
    left_index, right_index = _cells(n_left, n_right, density, rng)
    f, g = left_waves[left_index], right_waves[right_index]
    y = _INTERACTION * np.sum(f[:, 1:] * g[:, 1:], axis=1)
    y += _MAIN_EFFECT * (f[:, 0] + g[:, 0]) + noise * rng.normal(size=len(y))
    pairs = Pairs(left, right, left_index, right_index)
    return pairs, _largest(y) if binary else y


def _waves(X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return standardised sines along random directions: for the main effect, then the products."""
    directions = rng.normal(size=(X.shape[1], 1 + _PRODUCTS))
    directions /= np.linalg.norm(directions, axis=0)
    phase = rng.uniform(-np.pi / 4, np.pi / 4, size=1 + _PRODUCTS)
    mean = np.sin(phase) * np.exp(-0.5)
    variance = (1 - np.cos(2 * phase) * np.exp(-2)) / 2 - mean**2
    return (np.sin(X @ directions + phase) - mean) / np.sqrt(variance)


def _cells(
    n_left: int, n_right: int, density: float, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Draw distinct cells in which every object occurs."""
    longest = max(n_left, n_right)
    n = max(longest, round(density * n_left * n_right))
    turn = np.arange(longest)  # the shorter side is gone through several times
    left, right = (rng.permutation(count)[turn % count] for count in (n_left, n_right))
    cover = left * n_right + right
    drawn = sample_without_replacement(n_left * n_right, n, random_state=rng)
    others = rng.permutation(np.setdiff1d(drawn, cover))  # n − longest at least
    cells = rng.permutation(np.concatenate([cover, others[: n - longest]]))
    return cells // n_right, cells % n_right


def _largest(y: np.ndarray) -> np.ndarray:
    """Mark the largest quarter, one value at least."""
    n_ones = max(1, round(_POSITIVE * len(y)))
    marks = np.zeros(len(y), dtype=np.int64)
    marks[np.argsort(-y, kind="stable")[:n_ones]] = 1
    return marks
