"""The compiled loops of `radial_product`: distances, exp and inner products on blocks that fit the cache.

Objective
    For rows x_i and columns z_j of one block: φ(D_ij) as a tile, or at once its products with right-hand sides, for the
    profiles of `radial_product`. D is the squared or the Manhattan distance.

Method
    exp is our own: the exponent is in base 2, its whole part goes straight into the exponent bits
    of the result, a minimax polynomial does the rest. It vectorises, which the exp of the C library does not
    where Intel's SVML is missing. exp(0) is exactly 1 and underflow exactly 0.

Cost and floor
    Per pair in float32: 2d flops in d instructions of each kind (subtract, multiply-add), 14 instructions of exp, k
    multiply-adds (2k mirrored). Everything is in the first-level cache, nothing is stored.

Differs from the textbook in
    summing (x − z)² instead of expanding the square: no cancellation.

Compiled lazily, because an eager signature would refuse read-only arrays. `fused_block` and `add_up` are called
under `gramian._core.threads.exclusive`, `tile_block` by `share`.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic, overload

from gramian._core.compilation import parallel_loops

# Neither nnan nor ninf: distances may overflow, and NaN must show.
FLAGS = {"contract", "reassoc", "nsz"}
GROUP = 4  # rows that share a strip: one load of B, one store of a column sum, serves all four
CHUNK = 32  # rows per parallel task
PANEL = 256  # rows per parallel task that goes through a tile: BLAS needs that many
CACHE_LINE = 64  # bytes; a vector of 512 bits that lies in two lines takes twice as long to load
STRIP = 512  # columns per strip: four rows of it are 8 KiB (float32) in a 32 KiB cache

# Minimax polynomials of 2^f on (−1, 0] in relative error, constrained to be exactly 1 at f = 0.
# Errors 2.0e−9 and 2.2e−16, below the rounding of the arithmetic.
_SINGLE = (
    np.float32(0.6931470643281188),
    np.float32(0.24022436783168868),
    np.float32(0.05549075713176534),
    np.float32(0.009579179786490718),
    np.float32(0.001274748402227831),
    np.float32(0.00010902326575893976),
)
_DOUBLE = (
    0.6931471805599128,
    0.24022650695758693,
    0.05550410864024838,
    0.009618128908764059,
    0.0013333548843675596,
    0.0001540325966118846,
    1.5247664356577914e-05,
    1.3154154932880064e-06,
    9.711490782512494e-08,
    4.985337029895823e-09,
)


class Profile(NamedTuple):
    """φ in base 2: ``2^(−t)`` with ``t = gain r²``, or ``(1 + t (linear + t square)) 2^(−t)`` with
    ``t = √(gain r²)`` if `rooted`."""

    gain: float
    rooted: bool
    linear: float
    square: float


class ManhattanProfile(NamedTuple):
    """The same with the Manhattan distance in the place of r². It is a type of its own, so that loops for it are
    compiled when a Laplacian kernel is first streamed."""

    gain: float
    rooted: bool
    linear: float
    square: float


AnyProfile = Profile | ManhattanProfile


class Points(NamedTuple):
    """Rows or columns of a block: read only, as Numba loses what parallel loops write to arrays in tuples."""

    points: np.ndarray  # (rows, d) or (d, columns), d is even
    B: np.ndarray  # right-hand sides (rows, k); of columns (k, columns) in `fused_block`, (columns, k) in `tile_block`
    norms: np.ndarray  # their squared norms, which only `tile_block` needs


@intrinsic
def _as_float(typingctx, bits):
    """Reinterpret the bits of an int32 as a float32, or those of an int64 as a float64."""
    double = bits == types.int64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType() if double else ir.FloatType())

    return (types.float64 if double else types.float32)(bits), codegen


def exp2(v):
    """2^v for v ≤ 0, compiled code only. The overload below picks the precision."""
    raise NotImplementedError


@overload(exp2, jit_options={"fastmath": FLAGS})
def _exp2_of_type(v):
    single = v == types.float32
    real, integer = (np.float32, np.int32) if single else (np.float64, np.int64)
    coefficients = _SINGLE if single else _DOUBLE
    bias, shift = (127, 23) if single else (1023, 52)
    lowest, one, last = real(-bias), real(1), len(coefficients) - 1

    def exp2_of_type(v):
        # At the lowest exponent its bits are all zero, so the factor is exactly 0. The comparison is
        # written so that NaN survives it.
        v = lowest if v < lowest else v
        whole = np.int32(
            v
        )  # towards zero, hence f in (−1, 0]; int32, because AVX2 cannot convert to int64
        f = v - real(whole)
        p = coefficients[last]
        for k in range(last - 1, -1, -1):  # unrolled by the compiler
            p = p * f + coefficients[k]
        bits = integer(whole + np.int32(bias)) << integer(shift)
        return (p * f + one) * _as_float(integer(bits))  # pyright: ignore[reportCallIssue]

    return exp2_of_type


def part(difference, profile):
    """What the difference of a feature adds to the distance, compiled code only."""
    raise NotImplementedError


@overload(part, jit_options={"fastmath": FLAGS})
def _part_of_type(difference, profile):
    if profile.instance_class is ManhattanProfile:
        return lambda difference, profile: abs(difference)
    return lambda difference, profile: difference * difference


@njit(cache=True, fastmath=FLAGS)
def apply_profile(s, profile):
    """Distances become kernel values, in place."""
    gain, rooted, linear, square = profile
    if not rooted:
        for j in range(s.size):
            s[j] = exp2(-gain * s[j])
    else:
        for j in range(s.size):
            t = np.sqrt(gain * s[j])
            t = s.dtype.type(2048) if t > 2048 else t  # 2^−t is 0 there; ∞ · 0 would not be
            value = exp2(-t)
            s[j] = value + t * (linear + t * square) * value


@njit(cache=True, fastmath=FLAGS)
def distances(X, i, Z, j0, profile, s, t):
    """Distances of rows i and i + 1 to the columns from j0 on, into s and t.

    Two rows and four features at a time: sixteen flops for every six loads and two stores. The number of
    features is even (the caller adds a zero).
    """
    stop = j0 + s.size
    za, zb = Z[0, j0:stop], Z[1, j0:stop]
    xa, xb, ya, yb = X[i, 0], X[i, 1], X[i + 1, 0], X[i + 1, 1]
    for j in range(s.size):
        a, b = za[j], zb[j]
        s[j] = part(xa - a, profile) + part(xb - b, profile)
        t[j] = part(ya - a, profile) + part(yb - b, profile)
    f = 2
    while f + 4 <= Z.shape[0]:
        za, zb, zc, zd = Z[f, j0:stop], Z[f + 1, j0:stop], Z[f + 2, j0:stop], Z[f + 3, j0:stop]
        xa, xb, xc, xd = X[i, f], X[i, f + 1], X[i, f + 2], X[i, f + 3]
        ya, yb, yc, yd = X[i + 1, f], X[i + 1, f + 1], X[i + 1, f + 2], X[i + 1, f + 3]
        for j in range(s.size):
            a, b, c, d = za[j], zb[j], zc[j], zd[j]
            s[j] += (part(xa - a, profile) + part(xb - b, profile)) + (
                part(xc - c, profile) + part(xd - d, profile)
            )
            t[j] += (part(ya - a, profile) + part(yb - b, profile)) + (
                part(yc - c, profile) + part(yd - d, profile)
            )
        f += 4
    if f < Z.shape[0]:
        za, zb = Z[f, j0:stop], Z[f + 1, j0:stop]
        xa, xb, ya, yb = X[i, f], X[i, f + 1], X[i + 1, f], X[i + 1, f + 1]
        for j in range(s.size):
            a, b = za[j], zb[j]
            s[j] += part(xa - a, profile) + part(xb - b, profile)
            t[j] += part(ya - a, profile) + part(yb - b, profile)


@njit(cache=True, fastmath=FLAGS)
def add_row_sums(S, width, B, j0, totals):
    """totals[r] += S[r] · B over a strip, in the working precision; the strips add up in float64."""
    a, b, c, d = S[0, :width], S[1, :width], S[2, :width], S[3, :width]
    for k in range(B.shape[0]):
        y = B[k, j0 : j0 + width]
        ta = tb = tc = td = S.dtype.type(0)
        for j in range(width):
            ta += a[j] * y[j]
            tb += b[j] * y[j]
            tc += c[j] * y[j]
            td += d[j] * y[j]
        totals[0, k] += ta
        totals[1, k] += tb
        totals[2, k] += tc
        totals[3, k] += td


@njit(cache=True, fastmath=FLAGS)
def _add_column_sums(S, width, B, j0, sums):
    """The transposed use of the same strip: sums += Bᵀ S, B the four rows' right-hand sides."""
    a, b, c, d = S[0, :width], S[1, :width], S[2, :width], S[3, :width]
    for k in range(B.shape[1]):
        ba, bb, bc, bd = B[0, k], B[1, k], B[2, k], B[3, k]
        total = sums[k, j0 : j0 + width]
        for j in range(width):
            total[j] += (a[j] * ba + b[j] * bb) + (c[j] * bc + d[j] * bd)


@njit(cache=True)
def _aligned_strips(dtype):
    """Room for GROUP strips that begin with a line of the cache: Numba's own arrays do so in every second process."""
    more = np.empty(GROUP * STRIP + CACHE_LINE, dtype)
    first = (-more.ctypes.data % CACHE_LINE) // more.itemsize
    return more[first : first + GROUP * STRIP].reshape(GROUP, STRIP)


@parallel_loops(fastmath=FLAGS)
def fused_block(rows, columns, first, last, profile, totals, sums):
    """Add the products of the rows with the columns from first to last to the `totals` of the rows.

    With a non-empty `sums` of shape (tasks, k, columns) the block is used a second time, transposed:
    each task adds its rows' share to the columns in its own slice, so that no two tasks write to one place
    and the result does not depend on their number or order.
    """
    X, B_rows, _ = rows
    Z, B, _ = columns
    for task in prange((X.shape[0] + CHUNK - 1) // CHUNK):
        S = _aligned_strips(X.dtype)
        mirrored = sums.shape[0] > 0
        for k in range(sums.shape[1]):
            for j in range(sums.shape[2]):
                sums[task, k, j] = 0
        for j0 in range(first, last, STRIP):
            width = min(last - j0, STRIP)
            for i in range(task * CHUNK, min(X.shape[0], (task + 1) * CHUNK), GROUP):
                for r in range(0, GROUP, 2):
                    distances(X, i + r, Z, j0, profile, S[r, :width], S[r + 1, :width])
                for r in range(GROUP):
                    apply_profile(S[r, :width], profile)
                add_row_sums(S, width, B, j0, totals[i : i + GROUP])
                if mirrored:
                    _add_column_sums(S, width, B_rows[i : i + GROUP], j0 - first, sums[task])


@njit(cache=True, fastmath=FLAGS)
def _tile_by_differences(X, Z, profile, tile):
    """Kernel values of all rows of X (an even number) and all columns of Z."""
    for j0 in range(0, Z.shape[1], STRIP):
        stop = min(Z.shape[1], j0 + STRIP)
        for i in range(0, X.shape[0], 2):
            distances(X, i, Z, j0, profile, tile[i, j0:stop], tile[i + 1, j0:stop])
            apply_profile(tile[i, j0:stop], profile)
            apply_profile(tile[i + 1, j0:stop], profile)


@njit(cache=True, fastmath=FLAGS)
def _tile_by_expansion(X, xx, Z, zz, profile, tile):
    """The same by ‖x‖² + ‖z‖² − 2⟨x, z⟩."""
    np.dot(X, Z, tile)
    for i in range(tile.shape[0]):
        row, norm = tile[i], xx[i]
        for j in range(row.size):
            s = (norm + zz[j]) - (row[j] + row[j])
            row[j] = s if s > 0 else row.dtype.type(0)
        apply_profile(row, profile)


@njit(cache=True, nogil=True, fastmath=FLAGS)
def tile_block(first_task, last_task, rows, columns, values, tile, totals, sums):
    """What `fused_block` does, through a tile that BLAS multiplies; `sums` is (tasks, columns, k).

    ``values`` says how kernel values are computed: their profile, and whether distances come from the squared norms of
    rows and columns and their inner products.

    Each task calls BLAS for its own rows, so BLAS is to be limited to one thread. Letting its threads alternate
    with other threads on the same cores is up to thirty times slower: they spin while they wait.
    """
    X, B_rows, xx = rows
    Z, B, zz = columns
    profile, expand = values
    for task in range(first_task, last_task):
        lo, hi = task * PANEL, min(X.shape[0], (task + 1) * PANEL)
        own = tile[lo:hi]
        if expand:
            _tile_by_expansion(X[lo:hi], xx[lo:hi], Z, zz, profile, own)
        else:
            _tile_by_differences(X[lo:hi], Z, profile, own)
        product = np.empty((hi - lo, B.shape[1]), X.dtype)
        np.dot(own, B, product)
        for i in range(lo, hi):
            for k in range(B.shape[1]):
                totals[i, k] += product[i - lo, k]
        if sums.shape[0] > 0:
            np.dot(own.T, B_rows[lo:hi], sums[task])


@njit(cache=True, fastmath=FLAGS)
def _add_up_strip(strip, sums, totals):
    """The share of one strip of columns in `add_up`. Loops compile in a tenth of the time of array expressions."""
    j0 = strip * STRIP
    width = min(totals.shape[0] - j0, STRIP)
    total = np.empty(width)
    for k in range(totals.shape[1]):
        for j in range(width):
            total[j] = 0
        for task in range(sums.shape[0]):
            part = sums[task, k, j0 : j0 + width]
            for j in range(width):
                total[j] += part[j]
        for j in range(width):
            totals[j0 + j, k] += total[j]


@parallel_loops(fastmath=FLAGS)
def add_up(sums, totals):
    """totals[j, k] += Σ_task sums[task, k, j], in the precision of `totals`."""
    for strip in prange((totals.shape[0] + STRIP - 1) // STRIP):
        _add_up_strip(np.intp(strip), sums, totals)
