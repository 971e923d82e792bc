"""Products with a radial kernel matrix that is never stored.

Formula
    ``out_i = Σ_j φ(‖(x_i − z_j)/ℓ‖) B_j`` for φ(r) = exp(−r²/2) and the Matérn profiles
    φ(r) = (1 + c₁a + c₂a²) exp(−a), a = √(2ν) r, with (c₁, c₂) = (0, 0), (1, 0), (1, 1/3) for
    ν = 1/2, 3/2, 5/2. The Laplacian kernel is exp(−D) with the Manhattan distance D of x_i/ℓ and z_j/ℓ.

Method
    The matrix is walked in blocks, and each block is used up while it is in cache. If Z *is* X,
    only the blocks on and above the diagonal are evaluated; each serves its rows and its columns.
    There are three routes (`_choose_route`):

    * ``"fused"``: few features, few right-hand sides. Squared distances, φ and the inner products with
      B in one go in the first-level cache, parallel over rows (`radial_loops`). What is read again and again begins
      with a line of the cache: with 30 columns that takes 12 to 30 % less time.
    * ``"tile"``: few features, many right-hand sides. The block is written out, BLAS multiplies.
    * ``"gemm"``: many features. ‖x‖² + ‖z‖² − 2⟨x, z⟩ of centred data, the last term by BLAS.

Cost
    n·m·d multiply-adds for the distances, n·m evaluations of φ (half of both if Z is X) and n·m·k
    multiply-adds. Memory: less than 64 MiB on top of inputs and output. A block of X in units of ℓ, a tile, partial
    sums and, in float32, an accumulator in float64 come first; a panel of Z in units of ℓ takes what they leave, 32 MiB
    at most. X and Z may be memory-mapped files: all of them is read once for each panel, and never copied.

Floor
    flops / GEMM rate + exps / exp rate; `benchmarks/streamed.py` measures both and the distance to them.

Differs from the textbook in
    summing (x − z)² wherever d is small, instead of expanding the square: it costs 8 % more at d = 10 and has
    no cancellation, so that neither shifted data nor a small ℓ cost digits. Where the square is expanded, blocks with
    norms so large that it would cost digits are computed by differences, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gramian._core.arrays import row_blocks
from gramian._core.compilation import read_only
from gramian._core.threads import exclusive, share, single_threaded_blas
from gramian.operators.compiled.radial_loops import (
    CACHE_LINE,
    CHUNK,
    GROUP,
    PANEL,
    AnyProfile,
    ManhattanProfile,
    Points,
    Profile,
    add_up,
    fused_block,
    tile_block,
)

# Rows and columns: a block takes some 10 ms, worth starting threads for, and short enough for Ctrl-C to be honoured.
_FUSED_BLOCK, _FUSED_WIDTH = 2048, 2**14
_TILE_WIDTH = 1024  # columns; with twice as many rows a tile of 8 MiB (float32) or 16 MiB
_PREPARED_BYTES = 8 * 2**20  # of that many rows in units of ℓ; many features make for fewer rows
_SUMMED_BYTES = 10 * 2**20  # of that many rows and of their sums, thrice if blocks are mirrored
_BUDGET = 60 * 2**20  # of all buffers; the rest of 64 MiB is for temporaries of a few rows
_PANEL_BYTES = 32 * 2**20  # of the columns in units of ℓ; beyond, one panel of them after the other
_PIECE = 2**14  # numbers in float64 at a time, in the cache, while they are brought into units of ℓ
_SUMS_BYTES = 8 * 2**20  # of the partial sums of a mirrored block
# A larger accumulator of a symmetric product is the output, in the dtype of X.
_EXACT_BYTES = 32 * 2**20
# A mirrored block needs a partial sum per task, and beyond these k the second use gains nothing.
_FUSED_MIRROR, _TILE_MIRROR = 16, 256
# Expanding the square loses about 4·eps·(‖x‖² + ‖z‖²) of a kernel value near 1: 3e−6 and 8e−13 at these limits.
_NORM_LIMIT = {np.float32: 8.0, np.float64: 1e3}


_LOG2_E, _LN_2 = math.log2(math.e), math.log(2.0)
PROFILES = {
    "rbf": Profile(0.5 * _LOG2_E, False, 0.0, 0.0),
    "matern12": Profile(_LOG2_E**2, True, 0.0, 0.0),
    "matern32": Profile(3.0 * _LOG2_E**2, True, _LN_2, 0.0),
    "matern52": Profile(5.0 * _LOG2_E**2, True, _LN_2, _LN_2**2 / 3.0),
    "laplacian": ManhattanProfile(_LOG2_E, False, 0.0, 0.0),
}


class Units(NamedTuple):
    """Coordinates ``(x − centre) · factor`` in which φ has the compiled parameters `profile`."""

    centre: np.ndarray | None
    factor: np.ndarray | float
    profile: AnyProfile


def radial_product(
    X: np.ndarray,
    Z: np.ndarray,
    B: np.ndarray,
    length_scale: float | np.ndarray,
    *,
    profile: str = "rbf",
) -> np.ndarray:
    """Multiply a radial kernel matrix with B without storing it.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        float32 or float64, in any memory order, possibly read-only.
    Z : ndarray of shape (m, d)
        Pass X itself (the same object) for the symmetric matrix: that is nearly twice as fast.
    B : ndarray of shape (m, k)
    length_scale : float or ndarray of shape (d,)
    profile : {"rbf", "matern12", "matern32", "matern52", "laplacian"}, default="rbf"

    Returns
    -------
    ndarray of shape (n, k)
        In the precision of B, also that of the kernel values; float64 data are centred before they are rounded.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [2.0]])
    >>> radial_product(X, X, np.ones((2, 1)), 2.0).round(4)
    array([[1.6065],
           [1.6065]])
    """
    dtype = np.float32 if B.dtype == np.float32 else np.float64
    _check_shapes(X, Z, B, length_scale)
    n, m, d, k = X.shape[0], Z.shape[0], X.shape[1], B.shape[1]
    if 0 in (n, m, k):
        return np.zeros((n, k), dtype)
    route = _choose_route(d, k, profile)
    units = choose_units(Z, np.asarray(length_scale, np.float64), PROFILES[profile], route, dtype)
    B = read_only(np.ascontiguousarray(B, dtype))
    return _ROUTES[route](X, Z, B, units).product()


def _choose_route(d: int, k: int, profile: str) -> str:
    # Milliseconds of one AVX-512 core (Zen 4) for fused / tile / gemm, n = m = 4096, X not Z:
    #          d, k:   10, 1        10, 30       10, 100         64, 1        128, 1       784, 1
    # float32          9/ 12/ 16   23/ 30/ 34   58/ 57/ 59   36/ 42/ 36   64/ 89/ 64   532/621/353
    # float64         20/ 30/ 31   48/ 60/ 59  123/112/111   69/ 98/ 68
    # Where it is a tie, differences win, because they lose no digits. The Matérn profile of ν = 1/2 is not
    # differentiable at 0: there the root makes 1e−3 of a cancellation error of 1e−6.
    if d > 64 and profile not in ("matern12", "laplacian"):
        return "gemm"
    return "fused" if k <= 64 else "tile"


def _check_shapes(X, Z, B, length_scale) -> None:
    """Refuse what the compiled loops would read beyond the ends of arrays."""
    if Z.shape[1] != X.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features and Z has {Z.shape[1]}; they must agree.")
    if B.shape[0] != Z.shape[0]:
        raise ValueError(f"B has {B.shape[0]} rows; the matrix has {Z.shape[0]} columns.")
    if np.shape(length_scale) not in ((), (1,), (X.shape[1],)):
        raise ValueError(
            f"length_scale has shape {np.shape(length_scale)}; pass a number or one per feature, "
            f"shape ({X.shape[1]},)."
        )


def choose_units(Z, length_scale, profile, route, dtype) -> Units:
    """Scale by powers of two where that suffices: it is exact, and differences of raw data lose nothing.

    Several length scales, or an expanded square, need data that are centred and truly in units of ℓ. So do data in
    float64 that are to be rounded to float32: far from zero they would lose their differences.
    """
    rounded = Z.dtype.itemsize > np.dtype(dtype).itemsize
    if length_scale.size == 1 and route != "gemm" and not rounded:
        # Bounded, so that neither the data nor the remaining gain leave the range of float32.
        exponent = min(60, max(-60, -round(math.log2(length_scale.item()))))
        factor = 2.0**exponent
        unit = length_scale.item() * factor
        powers = 1 if isinstance(profile, ManhattanProfile) else 2
        gain = profile.gain / unit / unit ** (powers - 1)  # an absurd unit overflows, or vanishes
        centre = None
    else:
        centre = Z.mean(axis=0, dtype=np.float64)
        factor = 1.0 / length_scale
        gain = profile.gain
    gain = min(gain, float(np.finfo(dtype).max))
    numbers = dtype(gain), profile.rooted, dtype(profile.linear), dtype(profile.square)
    compiled = type(profile)(*numbers)
    return Units(centre, factor, compiled)


def _even(d: int) -> int:
    return max(2, d + d % 2)


def prepare(A, rows, units, dtype) -> np.ndarray:
    """Rows of A in the given units, with zeros up to whole groups of rows and an even d."""
    block = A[rows]
    count, d = block.shape
    prepared = np.zeros((-(-count // GROUP) * GROUP, _even(d)), dtype)
    inner = prepared[:count, :d]
    if units.centre is None:
        np.multiply(block, dtype(units.factor), out=inner)
    else:
        # In float64, so that each coordinate is rounded once only.
        for piece in row_blocks(count, d, _PIECE):
            exact = block[piece] - units.centre
            exact *= units.factor
            inner[piece] = exact
    return prepared


def _aligned_rows(n_rows: int, width: int, dtype: Any) -> np.ndarray:
    """Room for rows that begin with a line of the cache each, so that they may be longer than ``width``."""
    itemsize = np.dtype(dtype).itemsize
    length = -(-width * itemsize // CACHE_LINE) * CACHE_LINE // itemsize
    more = np.empty(n_rows * length + CACHE_LINE // itemsize, dtype)
    first = -more.ctypes.data % CACHE_LINE // itemsize
    return more[first : first + n_rows * length].reshape(n_rows, length)


def _size(d: int, dtype: type, limit: int) -> int:
    """How many rows to prepare at a time, in whole parallel tasks."""
    affordable = _PREPARED_BYTES // (_even(d) * dtype(0).itemsize)
    return max(CHUNK, min(limit, affordable) // CHUNK * CHUNK)


def _panels(m: int, d: int, k: int, dtype: type, size: int, left: int) -> list[slice]:
    """Columns to keep in units of ℓ at a time, in blocks of `size`, so that no diagonal block is cut in two.

    With their right-hand sides, which a route may want in another order, they fit what is `left` of the budget.
    """
    itemsize = dtype(0).itemsize
    affordable = min(_PANEL_BYTES // (_even(d) * itemsize), left // ((_even(d) + k) * itemsize))
    return row_blocks(m, 1, max(1, affordable // size) * size)


def _ranges(
    rows: slice, panel: slice, width: int, mirrored: bool
) -> Iterator[tuple[int, int, bool]]:
    """Columns (first, last, also transposed?) of the blocks of these rows; from the diagonal on if `mirrored`."""
    if mirrored and panel.start <= rows.start < panel.stop:
        for first in range(rows.start, rows.stop, width):
            yield first, min(first + width, rows.stop), False
    start = max(rows.stop, panel.start) if mirrored else panel.start
    for first in range(start, panel.stop, width):
        yield first, min(first + width, panel.stop), mirrored


class _Route:
    """Visits the blocks of the matrix, or those of its upper half if `mirrored`, by panels of columns.

    A subclass says how large blocks are, how it prepares the columns of a panel, and how it multiplies a block.
    """

    most_mirrored: int  # columns of B up to which half of a symmetric matrix is evaluated
    size: int  # rows of a block
    width: int  # its columns
    scratch: int  # bytes that `multiply` keeps or makes

    def __init__(self, X, Z, B, units):
        self.X, self.Z, self.B, self.units = X, Z, B, units
        self.k, self.dtype = B.shape[1], B.dtype.type
        self.mirrored = Z is X and self.k <= self.most_mirrored

    def prepared(self, panel):
        """The columns of a panel, as `multiply` wants them."""
        raise NotImplementedError

    def multiply(self, rows, columns, first, last, totals, column_totals):
        """Add the product of a block to the totals of its rows, and that of its transpose to those of its columns.

        The second is left out if `column_totals` is None.
        """
        raise NotImplementedError

    def product(self) -> np.ndarray:
        """The matrix times B."""
        B, (n, d), k, size = self.B, self.X.shape, self.k, self.size
        row = _even(d) * B.itemsize
        left = _BUDGET - self.scratch - size * (row + k * B.itemsize + 8 * k)
        totals = out = np.zeros((n, k), self.dtype)
        if self.mirrored:
            # in float64 if that leaves room for a panel of one block
            exact = out.size * 8 <= min(_EXACT_BYTES, left - size * (row + k * B.itemsize))
            if exact and self.dtype != np.float64:
                totals = np.zeros(out.shape)
                left -= totals.nbytes
        for panel in _panels(B.shape[0], d, k, self.dtype, size, left):
            columns = self.prepared(panel)
            for I in row_blocks(panel.stop if self.mirrored else n, 1, size):
                rows = self._rows(I)
                # rows that were added to fill a group have no place in the totals
                apart = not self.mirrored or len(rows.points) > I.stop - I.start
                totals_I = np.zeros((len(rows.points), k)) if apart else totals[I]
                for first, last, twice in _ranges(I, panel, self.width, self.mirrored):
                    totals_J = totals[first:last] if twice else None
                    self.multiply(rows, columns, first, last, totals_I, totals_J)
                if apart:
                    totals[I] += totals_I[: I.stop - I.start]
                del rows, totals_I  # before the next ones are made
            del columns
        if totals is not out:
            out[...] = totals
        return out

    def _rows(self, I: slice) -> Points:
        """Rows of the matrix; right-hand sides only if they are columns as well."""
        points = prepare(self.X, I, self.units, self.dtype)
        B = np.zeros((len(points) if self.mirrored else 0, self.k), self.dtype)
        if self.mirrored:
            B[: I.stop - I.start] = self.B[I]
        return Points(points, B, points[:0, 0])


class _Fused(_Route):
    """Route "fused": distances, φ and inner products in one compiled call per block."""

    most_mirrored = _FUSED_MIRROR

    def __init__(self, X, Z, B, units):
        super().__init__(X, Z, B, units)
        (self.sums,) = _aligned_rows(1, _SUMS_BYTES // B.itemsize * self.mirrored, self.dtype)
        self.size = _size(X.shape[1], self.dtype, _FUSED_BLOCK)
        fitting = self.sums.size // (self.size // CHUNK * self.k)
        self.width = min(_FUSED_WIDTH, fitting or _FUSED_WIDTH)
        self.scratch = self.sums.nbytes

    def prepared(self, panel):
        width = panel.stop - panel.start
        z = _aligned_rows(_even(self.Z.shape[1]), width, self.dtype)
        for J in row_blocks(width, 1, self.size):
            rows = slice(panel.start + J.start, panel.start + J.stop)
            z[:, J] = prepare(self.Z, rows, self.units, self.dtype)[: J.stop - J.start].T
        # read-only even where it is a copy: the loops are compiled once
        B = _aligned_rows(self.k, width, self.dtype)
        B[:, :width] = self.B[panel].T
        return panel.start, Points(z, read_only(B), z[0, :0])

    def multiply(self, rows, columns, first, last, totals, column_totals):
        start, columns = columns
        tasks = -(-len(rows.points) // CHUNK)
        shape = (0, self.k, 0) if column_totals is None else (tasks, self.k, last - first)
        partial = self.sums[: math.prod(shape)].reshape(shape)
        with exclusive():
            first, last = first - start, last - start
            fused_block(rows, columns, first, last, self.units.profile, totals, partial)
            if column_totals is not None:
                add_up(partial, column_totals)


class _Tiled(_Route):
    """Route "tile": write the block out, multiply it by BLAS."""

    most_mirrored = _TILE_MIRROR
    norm_limit: dict = {np.float32: -1.0, np.float64: -1.0}  # never expand the square

    def __init__(self, X, Z, B, units):
        super().__init__(X, Z, B, units)
        k, each = self.k, 24 if self.mirrored else 8
        summed = _SUMMED_BYTES // (_even(Z.shape[1]) * B.itemsize + each * k)
        width = _size(Z.shape[1], self.dtype, min(_TILE_WIDTH, summed))
        self.buffer = np.empty(2 * width**2, self.dtype)
        tasks = -(-2 * width // PANEL)
        self.sums = np.empty(tasks * width * k if self.mirrored else 0, self.dtype)
        # A multiple of the width, so that columns from the diagonal on are whole blocks, too.
        self.size, self.width = 2 * width, width
        # products of a tile before they are added to totals, at worst for all its rows at once; sums over its tasks
        products = 2 * width * k * B.itemsize + (8 * width * k if self.mirrored else 0)
        self.scratch = self.buffer.nbytes + self.sums.nbytes + products

    def prepared(self, panel):
        columns = {}
        for first in range(panel.start, panel.stop, self.width):
            rows = slice(first, min(first + self.width, panel.stop))
            points = prepare(self.Z, rows, self.units, self.dtype)[: rows.stop - first]
            z = np.ascontiguousarray(points.T)
            columns[first] = Points(z, self.B[rows], np.einsum("ij,ij->j", z, z))
        return columns

    def multiply(self, rows, columns, first, last, totals, column_totals):
        columns, width = columns[first], last - first
        x = rows.points
        rows = rows._replace(norms=np.einsum("ij,ij->i", x, x))
        tasks = -(-len(x) // PANEL)
        shape = (0, 0, self.k) if column_totals is None else (tasks, width, self.k)
        partial = self.sums[: math.prod(shape)].reshape(shape)
        tile = self.buffer[: len(x) * width].reshape(len(x), width)
        limit = self.norm_limit[self.dtype]
        expand = bool(rows.norms.max() + columns.norms.max() <= limit)
        with single_threaded_blas():
            values = self.units.profile, expand
            share(tile_block, tasks, rows, columns, values, tile, totals, partial)
        if column_totals is not None:
            column_totals += partial.sum(axis=0, dtype=np.float64)


class _Gemm(_Tiled):
    """Route "gemm": the same with distances by BLAS, where that does not cost digits."""

    norm_limit = _NORM_LIMIT


_ROUTES = {"fused": _Fused, "tile": _Tiled, "gemm": _Gemm}
