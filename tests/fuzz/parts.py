"""What random scenarios are made of: tables, weights, targets, kernels and parameters."""

import numpy as np
import pandas as pd
import scipy.sparse as sp

from gramian import kernels
from gramian.labels import LearnedCoupling

BAD_VALUES = (
    None, -1, 0, 1.5, np.nan, np.inf, -np.inf, 1e300, 1e-300, 10**400, True, "x", "", (), [], {}, object, b"a",
    np.array([1.0]), 2**63, -0.0,
)  # fmt: skip
RARELY = 0.04  # how often a sensible argument is replaced by a hostile one


def pick(rng, choices):
    return choices[rng.integers(len(choices))]


def table(rng, n, d):
    """Numbers of some kind."""
    X = rng.normal(size=(n, d))
    kind = rng.integers(12)
    if kind == 0:
        X *= pick(rng, [1e-300, 1e-150, 1e-20, 1e20, 1e150, 1e300])
    elif kind == 1:
        X[:] = X[0]
    elif kind == 2:
        X = X[rng.integers(max(1, n // 3), size=n)]
    elif kind == 3:
        X = np.where(rng.random((n, d)) < 0.7, 0.0, X)
    elif kind == 4:
        X = rng.standard_cauchy((n, d)) ** 3
    elif kind == 5:
        X += pick(rng, [1e3, 1e8, 1e15])
    elif kind == 6 and rng.random() < 0.5:
        X[rng.integers(n), rng.integers(d)] = pick(rng, [np.nan, np.inf, -np.inf])
    return X


def wrapped(rng, X):
    """The table in some dtype, layout and container."""
    X = X.astype(
        pick(rng, [np.float64, np.float64, np.float32, np.float32, np.float16, np.int64, object])
    )
    kind = rng.integers(12)
    if X.dtype == object or X.dtype == np.float16:
        return X
    if kind == 0:
        return np.asfortranarray(X)
    if kind == 1:
        return np.repeat(X, 2, axis=1)[:, ::2]
    if kind == 2:
        X.setflags(write=False)
        return X
    if kind in (3, 4):
        return pick(rng, [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])(X)
    if kind == 5:
        return X.tolist()
    if kind == 6:
        return pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])])
    return X


def weights_of(rng, n):
    kind = rng.integers(14)
    if kind > 7:
        return None
    every = (
        rng.random(n), np.ones(n), rng.integers(0, 2, n).astype(float), np.zeros(n), np.full(n, 1e300),
        np.full(n, 1e-300), rng.random(n) * 10.0 ** rng.integers(-12, 12, n), rng.random(n),
    )  # fmt: skip
    weights = every[kind]
    if kind == 7:
        return pick(
            rng,
            [
                weights[:-1],
                -weights,
                weights * np.nan,
                "balanced",
                weights[:, None],
                weights.tolist(),
            ],
        )
    return weights


def labels_of(rng, n, kind):
    """Targets of a kind; sometimes of another one."""
    if rng.random() < RARELY:
        kind = pick(rng, ["classes", "numbers", "signs", "names", "many", "odd"])
    if kind == "classes":
        return rng.integers(0, pick(rng, [1, 2, 2, 3, 4]), n)
    if kind == "signs":
        return rng.integers(0, 2, n)
    if kind == "names":
        return np.array(["a", "b", "c", "ü"])[rng.integers(0, 4, n)]
    if kind == "many":
        Y = rng.integers(0, 2, (n, int(rng.integers(1, 5))))
        return sp.csr_array(Y) if rng.random() < 0.1 else Y
    if kind == "numbers":
        y = rng.normal(size=n) * pick(rng, [1, 1, 1, 0, 1e-50, 1e-300, 1e10, 1e40, 1e200])
        return y.astype(np.float32) if rng.random() < 0.2 else y
    every = (
        rng.normal(size=n) * np.nan, np.array([1, "a", None] * n, dtype=object)[:n], np.zeros((n, 2, 2)), "abc", None,
        rng.normal(size=(n, 3)), np.full(n, 7), rng.integers(0, 2, n + 1), np.array([b"x"] * n), 1j * np.ones(n),
    )  # fmt: skip
    return pick(rng, every)


def kernel_of(rng):
    scale = (
        float(10.0 ** rng.normal(0, 0.5))
        if rng.random() < 0.9
        else pick(rng, [1e-200, 1e200, 1e-5, 1e5])
    )
    every = (
        "rbf", "linear", "matern32", "matern52", kernels.RBF(scale), kernels.Matern(scale), kernels.Linear(),
        kernels.RationalQuadratic(scale, float(10.0 ** rng.normal())), 2.0 * kernels.RBF(scale) + kernels.Linear(),
        kernels.Polynomial() if hasattr(kernels, "Polynomial") else kernels.Linear(), "precomputed",
    )  # fmt: skip
    return pick(rng, every)


def coupling_of(rng, n_outputs):
    """How outputs are related: learned, given, or nonsense."""
    if rng.random() < RARELY:
        return pick(
            rng,
            [
                *BAD_VALUES,
                np.ones((n_outputs, 2)),
                np.full((n_outputs, n_outputs), np.nan),
                "learned",
            ],
        )
    size = n_outputs + (int(rng.integers(-1, 2)) if rng.random() < RARELY else 0)
    B = rng.normal(size=(size, int(rng.integers(1, 4))))
    S = B @ B.T + np.diag(rng.random(size))
    every = (
        "auto", 1, 2, 9, LearnedCoupling(diagonal="free"), LearnedCoupling(summands="apart"), [S, B @ B.T], [S], S,
        S * 10.0 ** rng.integers(-20, 20), B @ B.T,
        S - 2.0 * np.eye(size), np.zeros((size, size)), np.ones((size, size)), pd.DataFrame(S), S.astype(np.float32),
    )  # fmt: skip
    return pick(rng, every)


def options_of(rng, sensible):
    """Some parameters with sensible values, seldom with hostile ones."""
    chosen = {name: pick(rng, values) for name, values in sensible.items() if rng.random() < 0.5}
    for name in sensible:
        if rng.random() < RARELY / 2:
            chosen[name] = pick(rng, BAD_VALUES)
    return chosen


SMOOTH = {
    "optimize": [None, None, "auto", "cv"],
    "cv": [2, 3],
    "regularization": ["auto", 1.0, 1e-3, 1e3, 1e-8, 1e-14],
    "intercept_variance": [0.0, 1.0, 1e4, 1e15],
    "tol": [1e-8, 1e-3, 1e-12, 0.0],
    "max_iter": [None, 1, 20],
    "random_state": [None, 0, 1],
    "warm_start": [False, True],
}
