"""Points of many kinds, kernel matrices by differences, and how far a sum of kernel values may be rounded."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

PLACES = ("random", "clustered", "gridded", "duplicated", "skewed")
PROFILES = ("rbf", "matern12", "matern32", "matern52")

# The same examples in every run; the first one compiles.
repeatable = settings(derandomize=True, deadline=None, database=None)
errors = st.sampled_from([1e-3, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12])
seeds = st.integers(0, 10_000)


def make_points(place, n, d, rng):
    """Points with coordinates of about one."""
    if place == "clustered":
        centres = rng.normal(size=(5, d))
        return centres[rng.integers(5, size=n)] + 1e-3 * rng.normal(size=(n, d))
    if place == "gridded":
        side = np.linspace(-1.0, 1.0, max(2, int(np.ceil(n ** (1 / d)))))
        return np.stack(np.meshgrid(*[side] * d), axis=-1).reshape(-1, d)[:n]
    if place == "duplicated":
        return rng.normal(size=(max(1, n // 10), d))[rng.integers(max(1, n // 10), size=n)]
    if place == "skewed":
        return np.exp(3 * rng.normal(size=(n, d)))
    return rng.normal(size=(n, d))


def exact_matrix(profile, X, Z, length_scale):
    """k(X, Z) in float64, by the formula."""
    X, Z = np.asarray(X, dtype=np.float64), np.asarray(Z, dtype=np.float64)
    r = np.sqrt(np.square((X[:, None] - Z) / length_scale).sum(axis=2))
    if profile == "rbf":
        return np.exp(-0.5 * r * r)
    if profile == "matern12":
        return np.exp(-r)
    if profile == "matern32":
        return (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)
    return (1 + np.sqrt(5) * r + 5 / 3 * r * r) * np.exp(-np.sqrt(5) * r)


def rounding(K, dtype=np.float64, spread=0.0):
    """Of a row, in the sum of magnitudes.

    A few units for each value; where coordinates are divided by ℓ, `spread` of them, the distances have an error, too,
    and no profile changes faster than its root.
    """
    return 16 * np.finfo(dtype).eps * (1 + spread) * float(np.sqrt(K).sum(axis=1).max(initial=0.0))


def row_error(found, K):
    return float(np.abs(found - K).sum(axis=1).max(initial=0.0))
