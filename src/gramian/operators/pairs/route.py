"""Which way through a sampled Kronecker product: a small cost model with measured rates.

``left V rightᵀ`` may be multiplied from either side, and each of its two phases may touch the observed cells only or
multiply whole blocks: eight routes. With sizes a × b (left), c × d (right), e cells that are not zero and f cells to
read, the right factor first, the cost is

    phase one    cells: e c s + b c w                       blocks: b d c g + b d w + e t
    phase two    cells: f b r                               blocks: a b c g + a c w + f t

and the left factor first is the same with the roles exchanged. s and r are the cost of one multiplication in `spread`
and `read` (more where the factor or the intermediate matrix crowds the cache), g that in a matrix product, w the cost
of writing an entry (more if it is transposed on the way, for cells in phase two), t that of moving a cell. The ninth
route has no intermediate matrix: e f products one by one, for a few cells of large matrices.

All costs are in flops of a matrix product in float64, so that they compare with those of other operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

# The unit of `operators.costs`, on the machine that it names. Times below are in nanoseconds and were measured on both
# cores of the machine of benchmarks/RESULTS.md; only their ratios matter for the choice of a route.
FLOPS_PER_NANOSECOND = 50.0


def flops(nanoseconds: float) -> float:
    """A measured time as the number of flops that take as long."""
    return nanoseconds * FLOPS_PER_NANOSECOND


class Rates(NamedTuple):
    """Cost in flops of one multiplication or one entry."""

    spread: float  # a multiplication in the loop `spread`
    read: float  # a multiplication in the loop `read`
    multiply: float  # a multiplication in a matrix product
    write: float  # an entry that is written
    turn: float  # an entry that is written transposed
    move: float  # a cell that is gathered or scattered


RATES = {  # by the bytes of an entry
    8: Rates(*map(flops, (0.105, 0.108, 0.042, 0.4, 1.6, 1.0))),
    4: Rates(*map(flops, (0.060, 0.055, 0.0215, 0.2, 1.3, 1.0))),
}
PHASES = ("cells", "blocks")
ROUTES = (*product(("right", "left"), PHASES, PHASES), ("neither", "cells", "cells"))
CACHE_BYTES = 2**25  # loops over a larger matrix wait for memory
# How much longer, at the most, a multiplication takes in `spread` and in `read` because of that: times its cost.
LONGEST_SPREAD_WAIT, LONGEST_READ_WAIT = 1.5, 2.2
DIRECT_PRODUCT_FLOPS = flops(1.2)  # one product of the ninth route
LOOP_START_FLOPS = flops(2e4)  # starting two parallel loops
BLAS_START_FLOPS = flops(4e4)  # limiting the threads of BLAS and starting it


@dataclass(frozen=True)
class Shape:
    """Sizes of one product, the right factor first."""

    a: int
    b: int
    c: int
    d: int
    e: int
    f: int
    left_identity: bool = False
    right_identity: bool = False

    def turned(self) -> Shape:
        """The same product with the left factor first."""
        identities = (self.right_identity, self.left_identity)
        return Shape(self.c, self.d, self.a, self.b, self.e, self.f, *identities)


@dataclass(frozen=True)
class Route:
    """How a sampled Kronecker product is computed, and why.

    Attributes
    ----------
    first : {"right", "left", "neither"}
        Which factor multiplies first; "neither": products of cells one by one.
    phase_one, phase_two : {"cells", "blocks"}
        Whether the phase touches observed cells only, or multiplies whole blocks by BLAS.
    reason : str
        The estimates behind the choice.
    cost : float
        Estimated flops of a matrix product in float64 that take as long on one core; nan if the route was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import SampledKronecker
    >>> route = SampledKronecker(np.eye(3), np.eye(2), [0, 2], [1, 0]).route_
    >>> route.phase_one, route.phase_two
    ('cells', 'cells')
    """

    first: str
    phase_one: str
    phase_two: str
    reason: str = "asked for"
    cost: float = float("nan")

    @property
    def needs_blas(self) -> bool:
        """Whether a phase multiplies whole blocks."""
        return "blocks" in (self.phase_one, self.phase_two)


def best_route(shape: Shape, itemsize: int) -> Route:
    """Return the route of least estimated cost.

    Parameters
    ----------
    shape : Shape
        Of the product, the right factor first.
    itemsize : {4, 8}
        Bytes of an entry.

    Returns
    -------
    Route
    """
    # cells are stored by rows of the left factor; the other order gathers and scatters them
    reorder = {"right": 0.0, "left": (shape.e + shape.f) * RATES[itemsize].move}
    orders = {"right": shape, "left": shape.turned()}
    cost = {
        (first, one, two): _cost(orders[first], one, two, itemsize) + reorder[first]
        for first, one, two in ROUTES[:-1]
        if not orders[first].left_identity
    }
    if not (shape.left_identity or shape.right_identity):
        cost[ROUTES[-1]] = DIRECT_PRODUCT_FLOPS * shape.e * shape.f
    ranked = sorted(cost, key=cost.__getitem__)
    estimates = ", ".join(
        f"{first} first, {one} then {two}: {1e-6 * cost[first, one, two] / FLOPS_PER_NANOSECOND:.3g} ms"
        for first, one, two in ranked[:3]
    )
    reason = f"estimated on one core: {estimates}"
    return Route(*ranked[0], reason=reason, cost=cost[ranked[0]])


def _cost(s: Shape, one: str, two: str, itemsize: int) -> float:
    """Estimated flops on one core."""
    rates = RATES[itemsize]
    cost = LOOP_START_FLOPS + (BLAS_START_FLOPS if "blocks" in (one, two) else 0.0)
    if s.right_identity:
        cost += s.b * s.c * (rates.turn if two == "cells" else rates.write) + s.e * rates.move
    elif one == "cells":
        cost += (
            s.e * s.c * rates.spread * (1 + min(LONGEST_SPREAD_WAIT, _wait(s.d * s.c * itemsize)))
        )
        cost += s.b * s.c * (rates.turn if two == "cells" else rates.write)
    else:
        cost += s.b * s.d * (s.c * rates.multiply + rates.write) + s.e * rates.move
    if two == "cells":
        wait = min(LONGEST_READ_WAIT, _wait(s.b * s.c * itemsize))
        return cost + s.f * s.b * rates.read * (1 + wait)
    return cost + s.a * s.c * (s.b * rates.multiply + rates.write) + s.f * rates.move


def _wait(nbytes: int) -> float:
    """How much longer a loop over a matrix takes because it does not stay in the cache."""
    return (nbytes / CACHE_BYTES) ** 1.5
