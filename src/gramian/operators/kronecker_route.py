"""Which way through a sampled Kronecker product: a small cost model with measured rates.

``left V rightᵀ`` may be multiplied from either side, and each of its two phases may touch the observed cells only or
multiply whole blocks: eight routes. With sizes a × b (left), c × d (right), e cells that are not zero and f cells to
read, the right factor first, the time is

    phase one    cells: e c s + b c w                       blocks: b d c g + b d w + e t
    phase two    cells: f b r                               blocks: a b c g + a c w + f t

and the left factor first is the same with the roles exchanged. s and r are the time of one multiplication in `spread`
and `read` (more where the factor or the intermediate matrix does not fit the cache), g that in a matrix product, w the
time to write an entry (more if it is transposed on the way, for cells in phase two), t the time to move a cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

__all__ = ["Route", "Shape", "best_route"]


@dataclass(frozen=True)
class Rates:
    """Nanoseconds on one core for one multiplication or one entry; ``far`` is out of the cache."""

    spread: float
    spread_far: float
    read: float
    read_far: float
    multiply: float
    write: float
    turn: float
    move: float = 1.0


# Measured with both cores of the machine of benchmarks/RESULTS.md; only their ratios matter for the choice.
RATES = {
    8: Rates(0.105, 0.20, 0.108, 0.35, 0.042, 0.4, 1.4),
    4: Rates(0.060, 0.13, 0.055, 0.14, 0.0215, 0.2, 1.0),
}
FAR = 2**24  # bytes beyond which a matrix is out of the cache
START_BLAS = 4e4  # nanoseconds to limit the threads of BLAS and to start it


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
        return Shape(
            self.c,
            self.d,
            self.a,
            self.b,
            self.e,
            self.f,
            self.right_identity,
            self.left_identity,
        )


@dataclass(frozen=True)
class Route:
    """How a sampled Kronecker product is computed, and why.

    Attributes
    ----------
    first : {"right", "left"}
        Which factor multiplies first.
    phase_one, phase_two : {"cells", "blocks"}
        Whether the phase touches observed cells only, or multiplies whole blocks by BLAS.
    reason : str
        The estimates behind the choice.
    cost : float
        Estimated nanoseconds on one core; nan if the route was asked for.

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
    costs = {
        (first, one, two): _cost(sizes, one, two, itemsize) + reorder[first]
        for first, sizes in (("right", shape), ("left", shape.turned()))
        for one, two in product(("cells", "blocks"), repeat=2)
        if not sizes.left_identity
    }
    ranked = sorted(costs, key=costs.__getitem__)
    estimates = ", ".join(
        f"{first} first, {one} then {two}: {costs[first, one, two] * 1e-6:.3g} ms"
        for first, one, two in ranked[:3]
    )
    reason = f"estimated on one core: {estimates}"
    return Route(*ranked[0], reason=reason, cost=costs[ranked[0]])


def _cost(s: Shape, one: str, two: str, itemsize: int) -> float:
    """Estimated nanoseconds on one core."""
    rates = RATES[itemsize]
    cost = START_BLAS if "blocks" in (one, two) else 0.0
    if s.right_identity:
        cost += s.b * s.c * (rates.turn if two == "cells" else rates.write) + s.e * rates.move
    elif one == "cells":
        far = s.d * s.c * itemsize > FAR
        cost += s.e * s.c * (rates.spread_far if far else rates.spread)
        cost += s.b * s.c * (rates.turn if two == "cells" else rates.write)
    else:
        cost += s.b * s.d * (s.c * rates.multiply + rates.write) + s.e * rates.move
    if two == "cells":
        far = s.b * s.c * itemsize > FAR
        return cost + s.f * s.b * (rates.read_far if far else rates.read)
    return cost + s.a * s.c * (s.b * rates.multiply + rates.write) + s.f * rates.move
