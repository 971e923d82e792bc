"""Sums over near points only: cells of a k-d tree that are too far apart to matter are left out.

Formula
    ``out_i = Σ_j φ(‖x_i − z_j‖ / ℓ) b_j`` with a profile φ that falls with the distance. Pairs of leaves at least r
    apart are left out. A descent through the tree bounds, for each leaf of targets, the sum of all kernel values
    left out by ``Σ_cells (points in the cell) φ(gap)``. r is raised until that is at most the error asked for, in
    every row.

    So ``‖K̃ − K‖ ≤ error`` in the maximum norm of rows, and for the symmetric matrix in the spectral norm, too (K̃ is
    symmetric: whether two leaves are near does not depend on which one asks).

Method
    scikit-learn's k-d tree orders points so that its cells are contiguous. One descent for each leaf of targets finds
    the near leaves; neighbours in the order are joined to runs. A product goes through the runs as `Streamed` goes
    through the whole matrix: distances, exp and inner products in the first-level cache, parallel over leaves.

Cost
    O(n log n) once. A product evaluates n × (points near a leaf) kernel values, instead of n × m.

Deviates from Ratliff & Bagnell (tree-augmented algorithms) in pruning by the kernel alone, not by coefficients ×
kernel: solvers multiply hundreds of times with other coefficients, so the lists are found once, and the bound holds
for all B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.neighbors import KDTree

from gramian._core.threads import share
from gramian.operators import costs
from gramian.operators.compiled.radial import PROFILES, Profile, Units, choose_units, prepare
from gramian.operators.compiled.radial_loops import AnyProfile
from gramian.operators.tree_code.near_loops import (
    NearLists,
    Tree,
    count_near,
    list_near,
    near_product,
)
from gramian.operators.tree_code.task import Task

LEAF_POINTS = (
    16  # leaves hold up to twice as many. 8 to 32 are alike, 64 evaluates too many far pairs
)
PART_CELLS = 64  # of the work of a thread: about a millisecond, so that all end together
SAMPLE_LEAVES = 256  # tell whether to go on
RADIUS_GROWTH = 1.02  # factor of the radius from one trial to the next


@dataclass(frozen=True, eq=False)
class NearCells:
    """Ordered points, leaves of targets, and runs of near sources for each of them.

    Attributes
    ----------
    n_pairs : float
        Kernel values that a product evaluates.
    error_bound : float
        Bound on the sum of magnitudes of what is left out of a row.
    """

    target_order: np.ndarray
    source_order: np.ndarray
    lists: NearLists
    profile: AnyProfile
    n_pairs: float
    error_bound: float
    name = "near cells"

    def work(self, n_columns: int) -> float:
        """Cost of a product, in the unit of `costs`."""
        return self.n_pairs * costs.near_pair(n_columns, self.lists.X.dtype.type)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        shared = self.source_order is self.target_order
        orders = (self.target_order,) if shared else (self.target_order, self.source_order)
        return sum(array.nbytes for array in (*orders, *self.lists))

    def product(self, B: np.ndarray) -> np.ndarray:
        """Multiply B of shape (m, k)."""
        dtype, n_cells = self.lists.X.dtype, self.lists.begin.size
        y = np.ascontiguousarray(np.take(B, self.source_order, axis=0).T, dtype=dtype)
        ordered = np.empty((len(self.lists.X), B.shape[1]), dtype=dtype)
        share(near_product, n_cells, self.lists, y, self.profile, ordered, most=PART_CELLS)
        out = np.empty_like(ordered)
        out[self.target_order] = ordered
        return out


def find_near_cells(task: Task, most_pairs: float) -> NearCells | None:
    """Find what is near; None if that is more than ``most_pairs`` pairs of points: lists are then no use."""
    X, error, dtype = task.X, task.error, task.dtype
    profile = PROFILES[task.profile]
    units = choose_units(task.sources, task.length_scale, profile, "fused", dtype)
    gain, rooted, linear, square = units.profile
    # in float64 whatever the dtype of the products, and so compiled once
    exact = Profile(float(gain), rooted, float(linear), float(square))
    source_order, sources = _tree(task.sources, units)
    target_order, targets = (source_order, sources) if task.Z is None else _tree(X, units)
    leaves = np.flatnonzero(targets.leaf)
    begin, end, low, high = (
        part[leaves] for part in (targets.begin, targets.end, targets.lower, targets.upper)
    )
    sizes = end - begin
    radius = _reach(exact, error)
    few = np.linspace(0, len(low) - 1, min(SAMPLE_LEAVES, len(low))).astype(np.int64)
    while True:
        _, points, left_out = _counted(sources, (low[few], high[few]), radius, exact, error)
        if float(points @ sizes[few]) / float(sizes[few].sum()) * len(X) > most_pairs:
            return None
        if left_out.max() <= error:
            break
        radius *= RADIUS_GROWTH
    # What is left out never grows with the radius: leaves for which it suffices need no second look.
    failing = np.arange(len(low))
    while True:
        counts = _counted(sources, (low[failing], high[failing]), radius, exact, error)
        failing = failing[counts[2] > error]
        if not failing.size:
            break
        radius *= RADIUS_GROWTH
    if len(counts[0]) < len(low):
        counts = _counted(sources, (low, high), radius, exact, error)
    n_runs, points, left_out = counts
    n_pairs, bound = float(points @ sizes), float(left_out.max())
    if n_pairs > most_pairs:
        return None
    starts = np.concatenate([[0], np.cumsum(n_runs)])
    runs = np.empty((int(starts[-1]), 2), dtype=np.int64)
    boxes = low, high
    share(list_near, len(low), sources, boxes, radius, exact, starts, runs, most=PART_CELLS)
    rows = _ordered(X, target_order, units, dtype)
    columns = rows if task.Z is None else _ordered(task.sources, source_order, units, dtype)
    lists = NearLists(rows, np.ascontiguousarray(columns.T), begin, end, starts, runs)
    return NearCells(target_order, source_order, lists, units.profile, n_pairs, bound)


def _tree(X: np.ndarray, units: Units) -> tuple[np.ndarray, Tree]:
    """The k-d tree of points in the units of the loops, and the order of the points in it."""
    exact = np.asarray(X, dtype=np.float64)
    exact = exact if units.centre is None else exact - units.centre
    _, order, nodes, bounds = KDTree(exact * units.factor, leaf_size=LEAF_POINTS).get_arrays()
    begin, end = (nodes[name].astype(np.int64) for name in ("idx_start", "idx_end"))
    lower, upper = (np.ascontiguousarray(bound) for bound in bounds)
    leaf = nodes["is_leaf"].astype(bool)
    return np.asarray(order, dtype=np.int64), Tree(begin, end, leaf, lower, upper)


def _ordered(X: np.ndarray, order: np.ndarray, units: Units, dtype: Any) -> np.ndarray:
    return prepare(np.take(X, order, axis=0), slice(None), units, dtype)[: len(X)]


def _counted(
    sources: Tree, targets: tuple, radius: float, profile: Profile, error: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Runs, near points and the bound on what is left out, for each target box."""
    size = len(targets[0])
    counts = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    share(count_near, size, sources, targets, radius, profile, error, counts, most=PART_CELLS)
    return counts


def _reach(profile: Profile, error: float) -> float:
    """Distance at which the profile is ``error``: anything nearer may not be left out."""
    gain, rooted, linear, square = profile
    if gain == 0.0:
        return math.inf  # of so long a length scale that it underflows
    bits = -math.log2(error)
    if not rooted:
        return math.sqrt(bits / gain)

    def excess(t: float) -> float:
        return math.log2(1.0 + t * (float(linear) + t * float(square))) - t + bits

    return float(brentq(excess, 0.0, 4.0 * bits + 64.0)) / math.sqrt(gain)
