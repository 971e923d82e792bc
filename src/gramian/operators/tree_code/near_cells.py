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

from gramian._core.threads import exclusive
from gramian.operators.compiled.radial import PROFILES, Units, choose_units, prepare
from gramian.operators.tree_code.near_loops import count_near, list_near, near_product

__all__ = ["NearCells", "find_near_cells"]

LEAF = 16  # points; leaves hold up to twice as many. 8 to 32 are alike, 64 evaluates too many far pairs
CELLS = 4096  # in one parallel region: interruptions get through
SAMPLE = 256  # leaves that tell whether to go on
WIDEN = 1.02  # factor of the radius from one trial to the next


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
    X: np.ndarray  # (n, d), ordered
    Z: np.ndarray  # (d, m), ordered
    cells: tuple[np.ndarray, np.ndarray]  # first and last + 1 target of each leaf
    starts: np.ndarray
    runs: np.ndarray
    profile: tuple
    n_pairs: float
    error_bound: float

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (self.target_order, self.X, self.Z, *self.cells, self.starts, self.runs)
        shared = self.source_order is self.target_order
        return sum(a.nbytes for a in arrays) + (0 if shared else self.source_order.nbytes)

    def product(self, B: np.ndarray) -> np.ndarray:
        """Multiply B of shape (m, k)."""
        y = np.ascontiguousarray(np.take(B, self.source_order, axis=0).T, dtype=self.X.dtype)
        ordered = np.empty((len(self.X), B.shape[1]), dtype=self.X.dtype)
        n_cells = self.cells[0].size
        for first in range(0, n_cells, CELLS):
            last = min(first + CELLS, n_cells)
            with exclusive():
                near_product(
                    self.X, self.cells, self.Z, self.starts, self.runs, y, self.profile, first, last, ordered
                )  # fmt: skip
        out = np.empty_like(ordered)
        out[self.target_order] = ordered
        return out


@dataclass(frozen=True, eq=False)
class _Tree:
    order: np.ndarray
    nodes: tuple[np.ndarray, np.ndarray, np.ndarray]  # first point, last + 1, is it a leaf?
    boxes: tuple[np.ndarray, np.ndarray]
    leaves: np.ndarray


def find_near_cells(
    X: np.ndarray,
    Z: np.ndarray | None,
    length_scale: np.ndarray,
    profile: str,
    error: float,
    dtype: Any,
    most_pairs: float,
) -> NearCells | None:
    """Find what is near; None if that is more than ``most_pairs``.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    Z : ndarray of shape (m, d) or None
        None means X.
    length_scale : ndarray of shape () or (d,)
    profile : {"rbf", "matern12", "matern32", "matern52"}
    error : float
        Bound on the sum of magnitudes of what may be left out of a row.
    dtype : type
        float32 or float64, of the products.
    most_pairs : float
        Pairs of points beyond which lists are no use.
    """
    units = choose_units(X if Z is None else Z, length_scale, PROFILES[profile], "fused", dtype)
    exact = (float(units.profile[0]), *units.profile[1:])
    sources = _tree(X if Z is None else Z, units)
    targets = sources if Z is None else _tree(X, units)
    low, high = (box[targets.leaves] for box in targets.boxes)
    sizes = (targets.nodes[1] - targets.nodes[0])[targets.leaves]
    radius = _reach(exact, error)
    few = np.linspace(0, len(low) - 1, min(SAMPLE, len(low))).astype(np.int64)
    while True:
        _, points, left_out = _counted(sources, (low[few], high[few]), radius, exact, error)
        if float(points @ sizes[few]) / float(sizes[few].sum()) * len(X) > most_pairs:
            return None
        if left_out.max() <= error:
            break
        radius *= WIDEN
    # What is left out never grows with the radius: leaves for which it suffices need no second look.
    failing = np.arange(len(low))
    while True:
        counts = _counted(sources, (low[failing], high[failing]), radius, exact, error)
        failing = failing[counts[2] > error]
        if not failing.size:
            break
        radius *= WIDEN
    if len(counts[0]) < len(low):
        counts = _counted(sources, (low, high), radius, exact, error)
    n_runs, points, left_out = counts
    n_pairs, bound = float(points @ sizes), float(left_out.max())
    if n_pairs > most_pairs:
        return None
    starts = np.concatenate([[0], np.cumsum(n_runs)])
    runs = np.empty((int(starts[-1]), 2), dtype=np.int64)
    with exclusive():
        list_near(sources.nodes, sources.boxes, (low, high), radius, starts, runs)
    ordered = _ordered(X, targets, units, dtype)
    columns = ordered if Z is None else _ordered(Z, sources, units, dtype)
    begin, end, _ = targets.nodes
    cells = begin[targets.leaves], end[targets.leaves]
    return NearCells(
        targets.order, sources.order, ordered, np.ascontiguousarray(columns.T), cells, starts, runs,
        units.profile, n_pairs, bound,
    )  # fmt: skip


def _tree(X: np.ndarray, units: Units) -> _Tree:
    """The k-d tree of points in the units of the loops."""
    exact = np.asarray(X, dtype=np.float64)
    exact = exact if units.centre is None else exact - units.centre
    _, order, nodes, bounds = KDTree(exact * units.factor, leaf_size=LEAF).get_arrays()
    leaf = nodes["is_leaf"].astype(bool)
    ends = nodes["idx_start"].astype(np.int64), nodes["idx_end"].astype(np.int64)
    boxes = np.ascontiguousarray(bounds[0]), np.ascontiguousarray(bounds[1])
    return _Tree(np.asarray(order, dtype=np.int64), (*ends, leaf), boxes, np.flatnonzero(leaf))


def _ordered(X: np.ndarray, tree: _Tree, units: Units, dtype: Any) -> np.ndarray:
    return prepare(np.take(X, tree.order, axis=0), slice(None), units, dtype)[: len(X)]


def _counted(
    sources: _Tree, targets: tuple, radius: float, profile: tuple, error: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Runs, near points and the bound on what is left out, for each target box."""
    size = len(targets[0])
    counts = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    for first in range(0, size, CELLS):
        part = slice(first, first + CELLS)
        boxes = targets[0][part], targets[1][part]
        found = tuple(count[part] for count in counts)
        with exclusive():
            count_near(sources.nodes, sources.boxes, boxes, radius, profile, error, *found)
    return counts


def _reach(profile: tuple, error: float) -> float:
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
