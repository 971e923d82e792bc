"""How far is the streamed RBF product from NumPy, and from what this machine can do?

Run ``python benchmarks/streamed.py``; no data are needed. Each line compares, in one run,

* ours: `gramian.operators.compiled.radial.radial_product`, for a rectangular matrix ("rect") and for the symmetric
  matrix of a training set ("sym", which needs only half of the kernel values);
* NumPy: the obvious code, ``‖x‖² + ‖z‖² − 2xz``, ``np.exp``, ``@`` in chunks of 500 rows;
* tuned: the same with in-place operations and the best of three chunk sizes;
* the floor: flops of distances and products at the GEMM rate of this machine plus the exponentials at the
  rate of our own loop on data in cache, both measured right before. A fused loop may beat it: with few
  features a GEMM is bound by writing its result, which is not needed here.

The bar: one right-hand side, 20 000 × 10, float32 is at least 4 times as fast as the obvious code, with a
relative error of at most 1e−6.

On a busy machine threads wait for each other and wall-clock times say little. With one thread,
``NUMBA_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/streamed.py``, CPU time is measured instead.
``REPEATS=3`` shortens the run.
"""

import ctypes
import os
import re
import statistics
import sys
import time
from functools import cache

import numpy as np
from numba import get_num_threads, njit, prange

from gramian.operators.compiled.radial import _choose_route, radial_product
from gramian.operators.compiled.radial_loops import apply_profile

CASES = [  # n, d, dtype, k
    (20000, 10, np.float32, 1),
    (20000, 10, np.float32, 6),
    (20000, 10, np.float32, 30),
    (20000, 10, np.float32, 100),
    (20000, 10, np.float64, 1),
    (20000, 10, np.float64, 30),
    (8000, 784, np.float32, 1),
    (8000, 784, np.float64, 1),
]
REPEATS = int(os.environ.get("REPEATS", "5"))
CLOCK = time.process_time if get_num_threads() == 1 else time.perf_counter


def seconds(function, repeats=REPEATS):
    """Median and minimum, after one call that compiles and warms up."""
    function()
    times = []
    for _ in range(repeats):
        start = CLOCK()
        function()
        times.append(CLOCK() - start)
    return statistics.median(times), min(times)


def numpy_obvious(X, Z, B, length_scale, rows=500):
    """What one writes first."""
    out = np.empty((len(X), B.shape[1]), X.dtype)
    factor = X.dtype.type(-0.5 / length_scale**2)
    xx, zz = (X**2).sum(axis=1), (Z**2).sum(axis=1)
    for start in range(0, len(X), rows):
        chunk = slice(start, start + rows)
        squares = xx[chunk, None] + zz - 2 * (X[chunk] @ Z.T)
        out[chunk] = np.exp(factor * squares) @ B
    return out


def numpy_tuned(X, Z, B, length_scale, rows):
    """What one writes after profiling."""
    out = np.empty((len(X), B.shape[1]), X.dtype)
    factor = X.dtype.type(-0.5 / length_scale**2)
    xx, zz = np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", Z, Z)
    for start in range(0, len(X), rows):
        block = X[start : start + rows]
        K = block @ Z.T
        K *= -2
        K += xx[start : start + rows, None]
        K += zz
        K *= factor
        np.exp(K, out=K)
        out[start : start + rows] = K @ B
    return out


def reference_error(product, X, Z, B, length_scale):
    """Maximal error relative to the largest value, on 200 rows in float64."""
    rows = np.random.default_rng(1).choice(len(X), 200, replace=False)
    squares = np.zeros((len(rows), len(Z)))
    for f in range(X.shape[1]):
        squares += (X[rows, f, None].astype(np.float64) - Z[:, f].astype(np.float64)) ** 2
    exact = np.exp(-squares / (2 * length_scale**2)) @ B.astype(np.float64)
    return np.abs(product[rows] - exact).max() / np.abs(exact).max()


@njit(parallel=True)
def _exponentials(S, gain, repeats):
    for task in prange(S.shape[0]):
        for _ in range(repeats):
            apply_profile(S[task], (gain, False, gain, gain))


@cache
def exp_rate(dtype):
    """Exponentials a second on arrays in the first-level cache, all threads."""
    S = np.ones((4 * get_num_threads(), 1024), dtype)
    return S.size * 2000 / seconds(lambda: _exponentials(S, dtype(0.1), 2000))[1]


@cache
def gemm_rate(n, inner, m, dtype):
    """Flops a second of a matrix product of this shape, all threads."""
    A, B = np.ones((n, inner), dtype), np.ones((inner, m), dtype)
    C = np.empty((n, m), dtype)
    repeats = 1 + int(2e9 / (2 * n * inner * m))

    def run():
        for _ in range(repeats):
            np.matmul(A, B, out=C)

    return repeats * 2 * n * inner * m / seconds(run)[1]


def floor(n, d, k, dtype, symmetric):
    """Seconds at the measured rates; the symmetric matrix has half as many different values."""
    values = n * (n + 1) / 2 if symmetric else n * n
    distances = 2 * values * d / gemm_rate(1024, d, 1024, dtype)
    # A product with one column is a reduction at the speed of a wide one, as the values need no loading.
    products = 2 * n * n * k / gemm_rate(1024, 1024, max(k, 64), dtype)
    return distances + products + values / exp_rate(dtype)


def peak_mib():
    """Peak resident memory since the last call of `reset_peak`, None where it is not known."""
    try:
        with open("/proc/self/status") as status:
            return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) / 1024
    except (OSError, TypeError):
        return None


def reset_peak():
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def extra_memory(function):
    """Mebibytes that a warm call needs on top of what is there before it, its copy of Z included."""
    libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)  # else the call would hide in memory that was freed but kept
    reset_peak()
    before = peak_mib()
    function()
    return float("nan") if before is None else peak_mib() - before


def measure(n, d, dtype, k) -> bool:
    """Print the two lines of a case; return whether it passes the bar."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(dtype)
    B = rng.standard_normal((n, k)).astype(dtype)
    scale = float(np.sqrt(d))

    theirs = seconds(lambda: numpy_obvious(X, X, B, scale))
    tuned = min(
        seconds(lambda: numpy_tuned(X, X, B, scale, 50)),
        seconds(lambda: numpy_tuned(X, X, B, scale, 200)),
        seconds(lambda: numpy_tuned(X, X, B, scale, 500)),
    )
    passed = True
    for kind, Z in (("rect", X.copy()), ("sym", X)):

        def run(Z=Z):
            return radial_product(X, Z, B, scale)

        ours = seconds(run)
        error = reference_error(run(), X, Z, B, scale)
        extra = extra_memory(run)
        limit = floor(n, d, k, dtype, Z is X)
        fine = theirs[0] >= 4 * ours[0] and error <= 1e-6
        passed = passed and fine
        bar = (n, d, dtype, k) == CASES[0] and get_num_threads() > 1
        verdict = ("PASS" if fine else "MISS") if bar else ""
        print(
            f"{_choose_route(d, k, 'rbf'):6} {kind:5} {n:<6} {d:<4} {dtype.__name__:8} {k:<4} "
            f"{ours[0]:<7.3f} {ours[1]:<7.3f} {theirs[0]:<7.3f} {theirs[0] / ours[0]:<6.1f} "
            f"{tuned[0]:<7.3f} {tuned[0] / ours[0]:<6.1f} {error:<8.1e} {limit:<7.3f} {ours[0] / limit:<11.2f} "
            f"{extra:<9.1f} {verdict}",
            flush=True,
        )
    return passed


def main() -> int:
    clock = "CPU" if CLOCK is time.process_time else "wall-clock"
    print(
        f"{get_num_threads()} threads, median and minimum of {REPEATS} in {clock} seconds; "
        f"load {os.getloadavg()[0]:.1f}"
    )
    print(
        "route  kind  n      d    dtype    k    ours    (min)   NumPy   ratio  tuned   ratio  error    "
        "floor   ours/floor  extra MiB"
    )
    passed = [measure(*case) for case in CASES]
    return 0 if passed[0] or get_num_threads() == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
