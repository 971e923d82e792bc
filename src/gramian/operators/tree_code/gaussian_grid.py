"""Gaussian sums through a grid: cells with many points are summarised by Chebyshev interpolation.

Formula
    In units of ℓ the Gaussian factors over features, ``k(x, z) = Π_f g(x_f − z_f)``, ``g(t) = exp(−t²/2)``. Space
    is cut into cells of half-width h with p Chebyshev nodes per feature, and g is interpolated in both arguments:

        K ≈ Φ_X (G_1 ⊗ ... ⊗ G_d) Φ_Zᵀ,

    G_f the one-dimensional kernel matrices of nodes, Φ the p^d interpolation weights of each point.

Error
    ``|g⁽ᵖ⁾(t)| ≤ 1.0865 √p! exp(−t²/4)`` (Cramér's inequality for Hermite functions), so the interpolation error of
    g between two cells is at most ``ε (1 + Λ) exp(−gap²/4)`` with ``ε = 1.0865 hᵖ / (2ᵖ⁻¹ √p!)`` and Λ the Lebesgue
    constant, and that of k at most ``((1 + ε (1 + Λ))ᵈ − 1) exp(−gap²/4)``. Summed over a row with the number of
    points in each cell, this is the bound; h follows from p and the error asked for, p from the cost.

Cost
    ``2 n pᵈ`` multiply-adds and d small matrix products for each column, whatever ℓ is; O(n) memory. Made for
    many points per ℓᵈ and d ≤ 3, where `near_cells` finds nothing to leave out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import convolve1d

from gramian._core.threads import in_parts, side_by_side, single_threaded_blas
from gramian.operators import costs
from gramian.operators.tree_code.grid_loops import Rule, Side, add_to_nodes, sum_over_nodes
from gramian.operators.tree_code.task import Task

ORDERS = range(4, 25)  # p
WIDEST_HALF = 3.0  # h in ℓ; more than 24 nodes can serve
MOST_NODES = 2**22  # of a grid: 32 MiB for each column
MOST_FEATURE_NODES = 2**11  # of one feature: its matrix takes 32 MiB
FARTHEST_GAP = 24  # ℓ between cells, beyond which all sources together count exp(−144) each
# Columns that go through the grid at a time, and the nodes up to which all of them do: a product holds three copies of
# up to 32 MiB.
COLUMNS_AT_A_TIME = 4
SMALL_NODES = 2**19
PART_POINTS = 2**12  # of the work of a thread: few enough for interruptions to get through


@dataclass(frozen=True, eq=False)
class GaussianGrid:
    """Interpolation weights and kernel matrices of nodes; see `find_gaussian_grid`.

    Attributes
    ----------
    column_work : float
        Estimated cost of a product with one column, in the unit of `costs`.
    error_bound : float
        Bound on the sum of magnitudes of errors in a row.
    """

    targets: Side
    sources: Side
    rule: Rule
    matrices: tuple[np.ndarray, ...]
    column_work: float
    error_bound: float
    name = "grid"

    def work(self, n_columns: int) -> float:
        """Cost of a product, in the unit of `costs`."""
        return self.column_work * n_columns

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        sides = {id(side): side for side in (self.targets, self.sources)}.values()
        arrays = [a for side in sides for a in (side.points, side.order, side.cells, side.starts)]
        return sum(a.nbytes for a in (*arrays, *self.matrices))

    def product(self, B: np.ndarray) -> np.ndarray:
        """Multiply B of shape (m, k); in float64, returned in the dtype of B."""
        out = np.empty((len(self.targets.points), B.shape[1]), dtype=B.dtype)
        n_nodes = max(math.prod(side.shape) for side in (self.targets, self.sources))
        n_nodes *= self.rule.unit.size ** self.targets.points.shape[1]
        step = max(1, min(COLUMNS_AT_A_TIME, COLUMNS_AT_A_TIME * SMALL_NODES // n_nodes))
        with single_threaded_blas():  # threads of the loops and of products of nodes call it
            for first in range(0, B.shape[1], step):
                columns = slice(first, first + step)
                grid = self._through(self._spread(B[:, columns]))
                ordered = np.empty((len(out), grid.shape[1]))
                share_cells(sum_over_nodes, self.targets, self.rule, grid, ordered)
                out[self.targets.order, columns] = ordered
        return out

    def _spread(self, B: np.ndarray) -> np.ndarray:
        """From points to the nodes of all features, shape (k, N_1, ..., N_d)."""
        side, p, k = self.sources, self.rule.unit.size, B.shape[1]
        d = len(side.shape)
        y = np.take(B, side.order, axis=0).astype(np.float64)
        grid = np.zeros((math.prod(side.shape), k, p ** (d - 1), p))
        share_cells(add_to_nodes, side, self.rule, y, grid)
        # (c_1, ..., c_d, k, p^(d - 1), p) -> (k, c_1, p, ..., c_d, p) -> (k, N_1, ..., N_d)
        split = grid.reshape(*side.shape, k, *(p,) * d)
        axes = [d, *(axis for f in range(d) for axis in (f, d + 1 + f))]
        return split.transpose(axes).reshape(k, *(c * p for c in side.shape))

    def _through(self, nodes: np.ndarray) -> np.ndarray:
        """Multiply with the matrices of nodes, one feature after the other; shape (cells, k, p^(d - 1), p)."""
        d, p, k = len(self.matrices), self.rule.unit.size, len(nodes)
        for f, matrix in enumerate(self.matrices):
            nodes = _multiplied(matrix, nodes, f + 1)
        split = nodes.reshape(k, *(size for c in self.targets.shape for size in (c, p)))
        axes = [*range(1, 2 * d, 2), 0, *range(2, 2 * d + 1, 2)]
        return np.ascontiguousarray(split.transpose(axes)).reshape(-1, k, p ** (d - 1), p)


def _multiplied(matrix: np.ndarray, nodes: np.ndarray, axis: int) -> np.ndarray:
    """Multiply a matrix with an axis of nodes, shared by threads; nothing is transposed on the way."""
    before, size, after = nodes.shape[:axis], nodes.shape[axis], nodes.shape[axis + 1 :]
    stack = nodes.reshape(math.prod(before), size, math.prod(after))
    out = np.empty((len(stack), len(matrix), stack.shape[2]))
    if not after:
        values, products = stack[:, :, 0], out[:, :, 0]
        in_parts(lambda i, j: np.matmul(values[i:j], matrix.T, out=products[i:j]), len(stack))
    elif axis > 1:
        in_parts(lambda i, j: np.matmul(matrix, stack[i:j], out=out[i:j]), len(stack))
    else:  # the first feature of a few columns: its fibres are shared instead
        in_parts(
            lambda i, j: np.matmul(matrix, stack[:, :, i:j], out=out[:, :, i:j]), stack.shape[2]
        )
    return out.reshape(*before, len(matrix), *after)


def share_cells(loop: Any, side: Side, rule: Rule, *arrays: np.ndarray) -> None:
    """Call a loop for ranges of cells that hold about as many points each, shared by threads."""
    shares = np.arange(0, len(side.points) + PART_POINTS, PART_POINTS)
    ends = np.unique(np.minimum(np.searchsorted(side.starts, shares), side.cells.size)).tolist()

    def task(part: int) -> None:
        loop(ends[part], ends[part + 1], side, rule, *arrays)

    side_by_side(task, len(ends) - 1)


def find_gaussian_grid(task: Task, most_work: float) -> GaussianGrid | None:
    """Find the grid of least cost; None if the products of the task would cost more than ``most_work``."""
    origin = np.min(task.sources, axis=0).astype(np.float64)
    sources = _in_units(task.sources, origin, task.length_scale)
    targets = sources if task.Z is None else _in_units(task.X, origin, task.length_scale)
    d, m = sources.shape[1], len(sources)
    density = _Density(sources, targets)
    if not density.size <= 4 * m + 2**16:  # fewer than one point in a cell: nothing to summarise
        return None
    work, p, h, widest = math.inf, 0, 0.0, WIDEST_HALF
    for _ in range(2):  # the first search says how wide cells are, which sharpens the second
        row_sum = density.row_sum(widest)
        work, p, h = min(_candidates(task.error, row_sum, widest, density, len(targets) + m))
        if work * task.n_columns > most_work or work == math.inf:
            return None
        widest = min(WIDEST_HALF, 1.25 * h)
    rule = _chebyshev(p)
    from_side = _side(sources, h)
    to_side = from_side if task.Z is None else _side(targets, h)
    nodes = [[side.nodes(f, rule.unit) for f in range(d)] for side in (to_side, from_side)]
    matrices = (np.exp(-0.5 * np.square(to[:, None] - at)) for to, at in zip(*nodes, strict=True))
    entry_bound = math.expm1(d * math.log1p(_one_feature_error(p, h)))
    bound = entry_bound * density.row_sum(h)
    return GaussianGrid(to_side, from_side, rule, tuple(matrices), work, bound)


def _in_units(X: np.ndarray, origin: np.ndarray, length_scale: np.ndarray) -> np.ndarray:
    """Coordinates in ℓ from an origin near the data: a large offset costs no digits."""
    return (np.asarray(X, dtype=np.float64) - origin) / length_scale


class _Density:
    """Number of points in boxes of side ℓ: what a row sums over."""

    def __init__(self, sources: np.ndarray, targets: np.ndarray):
        low = np.minimum(sources.min(axis=0), targets.min(axis=0))
        high = np.maximum(sources.max(axis=0), targets.max(axis=0))
        self.spans = [(s.max(axis=0) - s.min(axis=0)) for s in (sources, targets)]
        self.shape = np.maximum(1, np.ceil(high - low))  # floats: may be huge
        self.size = math.prod(self.shape.tolist())
        self._low, self._sources = low, sources

    def row_sum(self, h: float) -> float:
        """Bound on ``Σ_j exp(−gap²/4)`` over sources, gaps between cells of half-width h."""
        shape = self.shape.astype(np.int64)
        boxes = np.minimum((self._sources - self._low).astype(np.int64), shape - 1)
        numbers = np.ravel_multi_index(tuple(boxes.T), tuple(shape))
        total = np.bincount(numbers, minlength=int(np.prod(shape))).reshape(shape).astype(float)
        reach = math.ceil(1 + 4 * h) + FARTHEST_GAP
        for f, size in enumerate(shape):
            apart = np.abs(np.arange(-min(reach, size - 1), min(reach, size - 1) + 1))
            # boxes are one wide: points in them are at least apart − 1 from each other, cells of theirs 4h less
            gap = np.maximum(0.0, apart - 1 - 4 * h)
            total = convolve1d(total, np.exp(-gap * gap / 4), axis=f, mode="constant")
        return float(total.max()) + len(self._sources) * math.exp(-(FARTHEST_GAP**2) / 4)


def _one_feature_error(p: int, h: float) -> float:
    """ε (1 + Λ): error of interpolating g in both arguments, relative to exp(−gap²/4)."""
    log_epsilon = math.log(1.0865) + p * math.log(h) - (p - 1) * math.log(2)
    log_epsilon -= 0.5 * math.lgamma(p + 1)
    lebesgue = 2 / math.pi * math.log(p) + 1  # of Chebyshev nodes of the first kind
    return math.exp(log_epsilon) * (1 + lebesgue)


def _candidates(
    error: float, row_sum: float, widest: float, density: _Density, n_points: int
) -> Iterator[tuple[float, int, float]]:
    """Cost of a column, p and the largest half-width h at which p nodes suffice in every row."""
    d = density.shape.size
    each = math.expm1(math.log1p(error / row_sum) / d)
    for p in ORDERS:
        h = min(widest, (each / _one_feature_error(p, 1.0)) ** (1 / p) / (1 + 1e-12))
        yield _column_work(p, h, density, n_points), p, h


def _column_work(p: int, h: float, density: _Density, n_points: int) -> float:
    """Cost of a product with one column; infinite if the grid is too large."""
    source, target = (np.maximum(1, np.ceil(span / (2 * h))) * p for span in density.spans)
    if max(source.max(), target.max()) > MOST_FEATURE_NODES:
        return math.inf
    sizes, flops, n_nodes = source.copy(), 0.0, float(np.prod(source))
    for f in range(source.size):
        flops += 2 * float(np.prod(sizes)) * float(target[f])
        sizes[f] = target[f]
        n_nodes = max(n_nodes, float(np.prod(sizes)))
    if n_nodes > MOST_NODES:
        return math.inf
    weights, feature_nodes = n_points * p**source.size, n_points * p * source.size
    return costs.grid_product(weights, feature_nodes, flops, n_nodes + float(source @ target))


def _side(points: np.ndarray, h: float) -> Side:
    corner = points.min(axis=0)
    span = points.max(axis=0) - corner
    shape = np.maximum(1, np.ceil(span / (2 * h))).astype(np.int64)
    half = np.maximum(span / (2 * shape), 1e-300)
    cells = np.minimum(((points - corner) / (2 * half)).astype(np.int64), shape - 1)
    numbers = np.ravel_multi_index(tuple(cells.T), tuple(shape))
    order = np.argsort(numbers, kind="stable")
    occupied, starts = np.unique(np.take(numbers, order), return_index=True)
    starts = np.append(starts, len(points))
    points = np.take(points, order, axis=0)
    return Side(points, order, occupied, starts, shape, half, corner)


def _chebyshev(p: int) -> Rule:
    """Chebyshev nodes of the first kind in ascending order, with their barycentric weights."""
    angles = (np.arange(p) + 0.5) * np.pi / p
    signs = 1 - 2 * (np.arange(p) % 2)
    return Rule(np.cos(angles)[::-1].copy(), signs * np.sin(angles))
