"""The compiled loops of `near_cells`: which cells are near, and products with the points in them.

A tree is that of scikit-learn's ``KDTree``: node p has the children 2p + 1 and 2p + 2 and holds the points from
``begin[p]`` to ``end[p] − 1`` of its own order, so that cells are contiguous. Functions of ``first, last`` are
called by `gramian._core.threads.share`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gramian.operators.compiled.radial_loops import (
    FLAGS,
    GROUP,
    STRIP,
    add_row_sums,
    apply_profile,
    distances,
)

_DEPTH = 128  # of the stack: a binary tree of 2⁶⁴ nodes needs 65


class Tree(NamedTuple):
    """The nodes of a k-d tree: their points, whether they are leaves, and the boxes around their points."""

    begin: np.ndarray
    end: np.ndarray
    leaf: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class NearLists(NamedTuple):
    """Points in the order of their trees, leaves of targets, and runs of near sources for each of them."""

    X: np.ndarray  # (n, d), d is even
    Z: np.ndarray  # (d, m)
    begin: np.ndarray  # the first target of each leaf
    end: np.ndarray  # the last one + 1
    starts: np.ndarray  # the first run of each leaf
    runs: np.ndarray  # first source and last + 1 of each run


@njit(cache=True)
def _squared_gap(lower, upper, p, low, high):
    """Squared distance of the box of node p from the box low to high."""
    total = 0.0
    for f in range(low.size):
        gap = max(lower[p, f] - high[f], low[f] - upper[p, f], 0.0)
        total += gap * gap
    return total


@njit(cache=True)
def _squared_reach(lower, upper, p, low, high):
    """Squared distance of the box low to high from the farthest place in the box of node p."""
    total = 0.0
    for f in range(low.size):
        reach = max(upper[p, f] - low[f], high[f] - lower[p, f])
        total += reach * reach
    return total


@njit(cache=True)
def _profile_at(squared, profile):
    gain, rooted, linear, square = profile
    if not rooted:
        return 2.0 ** (-gain * squared)
    t = min(np.sqrt(gain * squared), 2048.0)  # 2^−t is 0 there; ∞ · 0 would not be
    return (1.0 + t * (linear + t * square)) * 2.0 ** (-t)


@njit(cache=True)
def _descend(tree, low, high, radius, profile, error, runs):
    """Visit the tree for the box low to high: near runs, the points in them, and a bound on what is left out.

    Leaves within ``radius`` are near. Neighbours in the order of the tree are joined to one run, and runs are written
    to ``runs`` if it has rows. The bound is on the sum of kernel values of all other points with any point of the box:
    cells are split until what one can contribute is negligible. The visit ends where the bound exceeds ``error``.
    """
    begin, end, leaf, lower, upper = tree
    squared_radius, negligible = radius * radius, error / 64
    stack = np.empty(_DEPTH, dtype=np.int64)
    stack[0], height = 0, 1
    stop, n_runs, n_points, bound = -1, 0, 0, 0.0
    while height > 0 and bound <= error:
        height -= 1
        p = stack[height]
        squared = _squared_gap(lower, upper, p, low, high)
        size = end[p] - begin[p]
        if squared > squared_radius:
            most = size * _profile_at(squared, profile)
            if leaf[p] or most <= negligible:
                bound += most
                continue
        elif leaf[p] or _squared_reach(lower, upper, p, low, high) <= squared_radius:
            n_runs += begin[p] != stop
            if runs.size > 0:
                if begin[p] != stop:
                    runs[n_runs - 1, 0] = begin[p]
                runs[n_runs - 1, 1] = end[p]
            stop = end[p]
            n_points += size
            continue
        stack[height], stack[height + 1] = 2 * p + 2, 2 * p + 1
        height += 2
    return n_runs, n_points, bound


@njit(cache=True, nogil=True)
def count_near(first, last, tree, targets, radius, profile, error, counts):
    """Count the runs of near points of each target box, the points in them, and bound what is left out.

    A box for which the bound is more than ``error`` is given up, its counts are too low.
    """
    (low, high), (n_runs, n_points, left_out) = targets, counts
    none = np.empty((0, 2), np.int64)
    for box in range(first, last):
        found = _descend(tree, low[box], high[box], radius, profile, error, none)
        n_runs[box], n_points[box], left_out[box] = found


@njit(cache=True, nogil=True)
def list_near(first, last, tree, targets, radius, profile, starts, runs):
    """Write the runs counted by `count_near`: those of a box begin at ``starts[box]``."""
    low, high = targets
    for box in range(first, last):
        own = runs[starts[box] : starts[box + 1]]
        _descend(tree, low[box], high[box], radius, profile, np.inf, own)


@njit(cache=True, nogil=True, fastmath=FLAGS)
def near_product(first, last, lists, B, profile, out):
    """Products of the target cells first to last − 1 with their near points, into rows of out; B is (k, m).

    Near points are gathered to strips, because runs are short. Entries are copied one by one: slices take twice as
    long to compile.
    """
    X, Z, begin, end, starts, runs = lists
    for cell in range(first, last):
        start, n = begin[cell], end[cell] - begin[cell]
        rows = -(-n // GROUP) * GROUP
        points = np.zeros((rows, X.shape[1]), X.dtype)
        for i in range(n):
            for f in range(X.shape[1]):
                points[i, f] = X[start + i, f]
        totals = np.zeros((rows, B.shape[0]))
        S = np.empty((GROUP, STRIP), X.dtype)
        near = np.empty((Z.shape[0], STRIP), X.dtype)
        y = np.empty((B.shape[0], STRIP), X.dtype)
        run, done = starts[cell], 0
        while run < starts[cell + 1]:
            width = 0
            while width < STRIP and run < starts[cell + 1]:
                j = runs[run, 0] + done
                size = min(runs[run, 1] - j, STRIP - width)
                for f in range(Z.shape[0]):
                    for i in range(size):
                        near[f, width + i] = Z[f, j + i]
                for f in range(B.shape[0]):
                    for i in range(size):
                        y[f, width + i] = B[f, j + i]
                width += size
                done += size
                if j + size == runs[run, 1]:
                    run, done = run + 1, 0
            for i in range(0, rows, GROUP):
                for r in range(0, GROUP, 2):
                    distances(points, i + r, near, 0, profile, S[r, :width], S[r + 1, :width])
                for r in range(GROUP):
                    apply_profile(S[r, :width], profile)
                add_row_sums(S, width, y, 0, totals[i : i + GROUP])
        for i in range(n):
            for k in range(B.shape[0]):
                out[start + i, k] = totals[i, k]
