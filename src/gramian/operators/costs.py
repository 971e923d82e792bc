"""What products cost: the one model by which operators are weighed against each other.

Unit
    Flops of a matrix product in float64. All numbers below were measured once and then written down: costs are never
    measured at run time, so that the same data give the same operator. Those of the tree code and of compiled loops are
    from one core of a Zen 4 processor with AVX-512, which does 5e10 such flops in a second. For reading stored numbers
    and for kernel values by NumPy the machine is not on record.

Who asks
    `InputOperator.work` of each operator, `choose_operator`, the tree code for the way it multiplies, and
    preconditioners for the price of a column. The routes of pairs have a model of their own, see `pairs.route`.
"""

from __future__ import annotations

import numpy as np

# A stored number is read from memory: products with few columns wait for it.
READ_FLOPS = 20.0
# A kernel value that NumPy evaluates by tiles, or that our compiled loops evaluate, beside its distance and products.
TILED_VALUE_FLOPS, COMPILED_VALUE_FLOPS = 250.0, 28.0
# What a feature adds to a distance: by differences, or by a matrix product where there are many features.
DIFFERENCE_FLOPS, EXPANDED_FLOPS, MOST_DIFFERENCES = 6, 2, 64
# What single precision takes of the time of double precision.
SINGLE_PRECISION_SHARE = 0.4
# Columns up to which compiled products evaluate only half of a symmetric matrix.
MIRRORED_COLUMNS = 16

# One kernel value with one column, and each further column. All pairs: two and four features, at their best, so that
# they are given up late. Near pairs: the loops of `near_cells`, which gather points and columns. 1 to 200 columns.
ALL_PAIRS_FLOPS = {np.float32: (16.0, 1.2), np.float64: (40.0, 2.5)}
NEAR_PAIRS_FLOPS = {np.float32: (22.5, 3.3), np.float64: (47.5, 5.5)}
# `gaussian_grid`, for one column: an interpolation weight of a point, a node of one feature for a point, a flop of the
# small matrix products of nodes, and moving a node. The first two are from one core of a Zen 5 processor.
GRID_WEIGHT_FLOPS, GRID_NODE_FLOPS, GRID_PRODUCT_FLOPS, GRID_MOVE_FLOPS = 6.5, 50.0, 2.5, 100.0

# A stored matrix of so few examples is exact, fast enough and serves the exact solver, too: a tree code does not
# compete with it. On more features than this all cells of a tree are near each other. And as a tree code is exact only
# up to a bound, it must be that many times cheaper than a stored matrix that fits.
MOST_EXAMPLES_WITHOUT_TREE, MOST_TREE_FEATURES, LEAST_TREE_GAIN = 5000, 8, 4.0


def stored_product(n_values: float, n_columns: int) -> float:
    """Cost of multiplying ``n_values`` stored numbers with columns; few columns wait for memory."""
    return float(n_values) * max(2 * n_columns, READ_FLOPS)


def tiled_product(shape: tuple[int, int], n_features: int, n_columns: int, itemsize: int) -> float:
    """Cost of a product whose kernel values NumPy evaluates, tile by tile."""
    each = TILED_VALUE_FLOPS + 2 * n_features + 2 * n_columns
    return _share(itemsize) * shape[0] * shape[1] * each


def compiled_product(
    shape: tuple[int, int], n_features: int, n_columns: int, itemsize: int, *, symmetric: bool
) -> float:
    """Cost of a product with an RBF or Matérn term by our compiled loops."""
    half = 0.5 if symmetric and n_columns <= MIRRORED_COLUMNS else 1.0
    feature = DIFFERENCE_FLOPS if n_features <= MOST_DIFFERENCES else EXPANDED_FLOPS
    value = half * (COMPILED_VALUE_FLOPS + n_features * feature)
    return _share(itemsize) * shape[0] * shape[1] * (value + 2 * n_columns)


def all_pairs(shape: tuple[int, int], n_columns: int, dtype: type, *, symmetric: bool) -> float:
    """What a plan of the tree code has to beat: evaluating all pairs of few features."""
    first, further = ALL_PAIRS_FLOPS[dtype]
    if symmetric and n_columns <= MIRRORED_COLUMNS:
        first /= 2  # each value serves its row and its column
    return shape[0] * shape[1] * (first + further * (n_columns - 1))


def near_pair(n_columns: int, dtype: type) -> float:
    """Cost of one pair of near points."""
    first, further = NEAR_PAIRS_FLOPS[dtype]
    return first + further * (n_columns - 1)


def grid_product(n_weights: float, n_feature_nodes: float, flops: float, n_moved: float) -> float:
    """Cost of a column through a grid of nodes, from the four counts that it consists of."""
    at_points = GRID_WEIGHT_FLOPS * n_weights + GRID_NODE_FLOPS * n_feature_nodes
    return at_points + GRID_PRODUCT_FLOPS * flops + GRID_MOVE_FLOPS * n_moved


def _share(itemsize: int) -> float:
    return SINGLE_PRECISION_SHARE if itemsize == 4 else 1.0
