"""Pairs by loops: every pairwise kernel by its scalar formula, and small data to try it on."""

from __future__ import annotations

import numpy as np
from oracles import kernel_value

from gramian import Pairs
from gramian.kernels import RBF, Linear, Matern, Polynomial
from gramian.kernels import pairwise as pk

# Every kernel of pairs, with base kernels that have parameters; the data have two left and three right features.
TWO_KINDS = [
    pk.Linear(1.5 * RBF(1.3), Linear()),
    pk.Poly2D(RBF(1.3), 0.5 * Linear()),
    pk.Kronecker(RBF(1.3), Matern(0.9, nu=1.5)),
    pk.Kronecker(Linear(), 2.0 * Linear()),
    pk.Kronecker(RBF([0.7, 2.0]), Polynomial(degree=2, gamma=0.3)),
    pk.Gaussian(1.7),
    pk.Cartesian(RBF(1.3), 2.0 * RBF(0.8)),
]
ONE_KIND = [
    make(kernel)
    for make in (pk.Symmetric, pk.Antisymmetric, pk.Ranking, pk.MLPK)
    for kernel in (2.0 * RBF(1.1), Linear())
]


def kernel_id(kernel):
    return repr(kernel).replace(" ", "")


def features(pairs, side):
    table = pairs.left if side == 0 else pairs.right
    table = table.toarray() if hasattr(table, "toarray") else table
    return np.asarray(table, dtype=float)


def pair_value(kernel, x, z) -> float:
    """Value of one pair with another, each given as the features of its two ends."""
    (i, j), (k, l) = x, z
    if isinstance(kernel, pk.Gaussian):
        return kernel_value(
            RBF(kernel.length_scale), np.concatenate([i, j]), np.concatenate([k, l]), False
        )
    if isinstance(kernel, (pk.Symmetric, pk.Antisymmetric, pk.Ranking, pk.MLPK)):

        def K(p, q):
            return kernel_value(kernel.kernel, p, q, False)

        if isinstance(kernel, pk.Symmetric):
            return K(i, k) * K(j, l) + K(i, l) * K(j, k)
        if isinstance(kernel, pk.Antisymmetric):
            return K(i, k) * K(j, l) - K(i, l) * K(j, k)
        value = K(i, k) - K(i, l) - K(j, k) + K(j, l)
        return value if isinstance(kernel, pk.Ranking) else value**2
    left, right = (
        kernel_value(kernel.left, i, k, False),
        kernel_value(kernel.right, j, l, False),
    )
    if isinstance(kernel, pk.Linear):
        return left + right
    if isinstance(kernel, pk.Poly2D):
        return (left + right) ** 2
    if isinstance(kernel, pk.Kronecker):
        return left * right
    assert isinstance(kernel, pk.Cartesian)
    return left * np.array_equal(j, l) + np.array_equal(i, k) * right


def pair_gram(kernel, X: Pairs, Z: Pairs | None = None) -> np.ndarray:
    """Kernel values by a double loop over pairs; objects with equal features are the same."""
    Z = X if Z is None else Z
    tables = [(features(pairs, 0), features(pairs, 1)) for pairs in (X, Z)]
    ends = [
        [(left[i], right[j]) for i, j in zip(pairs.left_index, pairs.right_index, strict=True)]
        for pairs, (left, right) in zip((X, Z), tables, strict=True)
    ]
    return np.array([[pair_value(kernel, x, z) for z in ends[1]] for x in ends[0]]).reshape(
        len(X), len(Z)
    )


def two_kinds(n=13, n_left=6, n_right=5, seed=0, dtype=np.float64, repeated=True) -> Pairs:
    """Pairs of objects of two kinds: some pairs repeat, the last object of each table is in none."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(n_left, 2)), rng.normal(size=(n_right, 3))
    index = rng.integers(n_left - 1, size=n), rng.integers(n_right - 1, size=n)
    if repeated:
        index[0][1], index[1][1] = index[0][0], index[1][0]
    return Pairs(left.astype(dtype), right.astype(dtype), *index)


def one_kind(n=13, n_objects=7, seed=0, dtype=np.float64) -> Pairs:
    """Pairs within one table: some are repeated, some turned, some join an object with itself."""
    rng = np.random.default_rng(seed)
    left_index, right_index = rng.integers(n_objects - 1, size=(2, n))
    left_index[1], right_index[1] = left_index[0], right_index[0]
    left_index[2], right_index[2] = right_index[0], left_index[0]
    left_index[3] = right_index[3]
    return Pairs(rng.normal(size=(n_objects, 2)).astype(dtype), None, left_index, right_index)


def pairs_for(kernel, **options) -> Pairs:
    """Data that fit a kernel."""
    return (one_kind if kernel.homogeneous else two_kinds)(**options)


def new_pairs_for(kernel, pairs: Pairs, n=8, seed=1) -> Pairs:
    """Pairs of known and of new objects, from tables of their own."""
    rng = np.random.default_rng(seed)

    def mixed(table):
        table = table.toarray() if hasattr(table, "toarray") else table
        fresh = rng.normal(size=(2, table.shape[1])).astype(table.dtype)
        return np.concatenate([fresh, table[::2]])

    left = mixed(pairs.left)
    right = None if pairs.homogeneous else mixed(pairs.right)
    n_right = len(left) if right is None else len(right)
    return Pairs(left, right, rng.integers(len(left), size=n), rng.integers(n_right, size=n))
