"""Parameter grids that are not larger than they need to be."""

from itertools import combinations, product
from typing import Any


def covering(*axes: Any) -> list[tuple]:
    """Choose rows of the full grid such that every pair of values of two axes occurs in one of them.

    A mistake that needs three particular values at once may escape; one that needs one or two does not. The choice
    is the same in every process: each row is the one, in the order of the grid, that adds most new pairs.
    """
    values = [list(axis) for axis in axes]
    grid = list(product(*(range(len(axis)) for axis in values)))
    pairs = {
        row: {((a, row[a]), (b, row[b])) for a, b in combinations(range(len(row)), 2)}
        for row in grid
    }
    missing = set().union(*pairs.values())
    chosen = []
    while missing:
        best = max(grid, key=lambda row: len(pairs[row] & missing))
        chosen.append(best)
        missing -= pairs[best]
    return [tuple(axis[k] for axis, k in zip(values, row, strict=True)) for row in sorted(chosen)]
