"""Streamed radial products against dense float64 ones."""

import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from grids import covering

from gramian.operators.compiled import radial as module
from gramian.operators.compiled.radial import radial_product

PROFILES = {
    "rbf": lambda r: np.exp(-(r**2) / 2),
    "matern12": lambda r: np.exp(-r),
    "matern32": lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
    "matern52": lambda r: (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
    "laplacian": lambda r: np.exp(-r),
}
DTYPES = [np.float32, np.float64]
TOLERANCE = {np.float32: 1e-6, np.float64: 1e-13}


def dense(X, Z, length_scale, profile="rbf"):
    """The kernel matrix, obviously: float64 differences. The Laplacian kernel is of their magnitudes, not squares."""
    X, Z = np.asarray(X, np.float64), np.asarray(Z, np.float64)
    total, power = np.zeros((len(X), len(Z))), 1 if profile == "laplacian" else 2
    for x, z, scale in zip(X.T, Z.T, np.broadcast_to(length_scale, X.shape[1:])):
        total += np.abs((x[:, None] - z) / scale) ** power
    return PROFILES[profile](total ** (1 / power))


def make(n, m, d, k, dtype, seed=0):
    rng = np.random.default_rng(seed)
    shapes = ((n, d), (m, d), (m, k))
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


def error(product, K, B):
    """Largest error relative to what the sum would be without cancellation."""
    B = B.astype(np.float64)
    return np.abs(product - K @ B).max() / (K @ np.abs(B)).max()


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that all the ragged cases occur."""
    monkeypatch.setattr(module, "_FUSED_BLOCK", 64)
    monkeypatch.setattr(module, "_FUSED_WIDTH", 100)
    monkeypatch.setattr(module, "_TILE_WIDTH", 96)


@pytest.mark.parametrize("dtype, d, k", covering(DTYPES, [1, 3, 10, 40, 300], [1, 2, 7, 40, 70]))
def test_agrees_with_dense(dtype, d, k):
    X, Z, B = make(101, 613, d, k, dtype)
    scale = 0.8 * np.sqrt(d)
    product = radial_product(X, Z, B, scale)
    assert product.dtype == dtype
    assert product.shape == (101, k)
    assert error(product, dense(X, Z, scale), B) < TOLERANCE[dtype]
    symmetric = radial_product(Z, Z, B, scale)
    assert error(symmetric, dense(Z, Z, scale), B) < TOLERANCE[dtype]


@pytest.mark.parametrize(
    "n, k, d", covering([1, 2, 3, 5, 64, 65, 129, 161, 335], [1, 20, 70, 300], [2, 70])
)
def test_ragged_blocks(small_blocks, n, k, d):
    X, Z, B = make(n, 133, d, k, np.float64)
    assert error(radial_product(X, Z, B, np.sqrt(d)), dense(X, Z, np.sqrt(d)), B) < 1e-13
    B = make(1, n, d, k, np.float64)[2]
    assert error(radial_product(X, X, B, np.sqrt(d)), dense(X, X, np.sqrt(d)), B) < 1e-13


@pytest.mark.usefixtures("all_threads")
def test_default_blocks_mirrored():
    """More than one block of the sizes that are used outside tests, in all routes."""
    for d, k in ((3, 1), (3, 70), (70, 1)):
        X, _, B = make(2500, 2500, d, k, np.float32)
        K = dense(X[-50:], X, 1.5)
        assert error(radial_product(X, X, B, 1.5)[-50:], K, B) < 1e-6
        K = dense(X[:50], X, 1.5)
        assert error(radial_product(X, X, B, 1.5)[:50], K, B) < 1e-6


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d, k", [(3, 1), (3, 70), (100, 2)])
def test_profiles(profile, dtype, d, k):
    X, Z, B = make(60, 150, d, k, dtype)
    for other in (X, Z):
        product = radial_product(X, other, B[: len(other)], 2.0 * np.sqrt(d), profile=profile)
        K = dense(X, other, 2.0 * np.sqrt(d), profile)
        assert error(product, K, B[: len(other)]) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d, k", [(4, 1), (4, 70), (90, 3)])
def test_ard(dtype, d, k):
    X, Z, B = make(70, 90, d, k, dtype)
    scale = np.sqrt(d) * np.geomspace(0.5, 20.0, d)
    assert error(radial_product(X, Z, B, scale), dense(X, Z, scale), B) < TOLERANCE[dtype]


@pytest.mark.parametrize("d, k", [(5, 1), (5, 70), (120, 2)])
@pytest.mark.parametrize("ard", [False, True])
def test_shifted_data(d, k, ard):
    X, Z, B = make(80, 150, d, k, np.float32)
    X, Z = X + np.float32(100), Z + np.float32(100)
    scale = np.sqrt(d) * (np.linspace(0.5, 2.0, d) if ard else 1.0)
    assert error(radial_product(X, Z, B, scale), dense(X, Z, scale), B) < 1e-6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d, k", [(5, 1), (5, 70), (120, 2)])
def test_large_norms_do_not_cancel(dtype, d, k):
    """Two tight clusters far apart compared with ℓ: the expanded square would lose all digits."""
    X, Z, B = make(80, 150, d, k, dtype)
    X, Z = X * dtype(0.01), Z * dtype(0.01)
    X[::2] += dtype(10)
    Z[::2] += dtype(10)
    scale = 0.01 * np.sqrt(d)
    assert error(radial_product(X, Z, B, scale), dense(X, Z, scale), B) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d, k", [(1, 1), (5, 70), (120, 2)])
@pytest.mark.parametrize("profile", PROFILES)
def test_limits_are_exact(dtype, d, k, profile):
    """ℓ → 0 gives the identity and ℓ → ∞ the matrix of ones, without a rounding error."""
    X = make(60, 1, d, 1, dtype)[0]
    B = np.random.default_rng(0).integers(-8, 8, (60, k)).astype(dtype)
    for tiny in (1e-30, 1e-8):
        np.testing.assert_array_equal(radial_product(X, X, B, tiny, profile=profile), B)
        np.testing.assert_array_equal(radial_product(X, X.copy(), B, tiny, profile=profile), B)
    for huge in (1e30, 1e25):
        product = radial_product(X, X, B, huge, profile=profile)
        np.testing.assert_array_equal(product, np.tile(B.sum(axis=0), (60, 1)))


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 3e-7), (np.float64, 1e-14)])
def test_exp_is_accurate_over_its_whole_range(dtype, tolerance):
    """One feature, z = 0, B = 1: the product is exp(−x²/2) itself."""
    x = np.linspace(0, 12 if dtype == np.float32 else 37, 20001).astype(dtype)[:, None]
    one = np.ones((1, 1), dtype)
    expected = np.exp(-(x.astype(np.float64) ** 2) / 2)
    # Rounding the exponent v to its precision is an error of eps·v in the value.
    allowed = tolerance + np.finfo(dtype).eps * x.astype(np.float64) ** 2
    assert np.all(np.abs(radial_product(x, 0 * one, one, 1.0) / expected - 1) <= allowed)
    x = np.full((1, 1), 60, dtype)
    assert radial_product(x, 0 * one, one, 1.0) == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d, k", [(5, 1), (5, 70), (120, 2)])
def test_memory_layouts(dtype, d, k):
    """Fortran order, strides and read-only arrays change nothing."""
    X, Z, B = make(70, 90, d, k, dtype)
    expected = radial_product(X, Z, B, 2.0)
    X = np.asfortranarray(X)
    Z = np.repeat(Z, 2, axis=0)[::2]
    B = np.asfortranarray(B)
    for array in (X, Z, B):
        array.flags.writeable = False
    product = radial_product(X, Z, B, 2.0)
    atol = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(product, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d, k", [(5, 1), (5, 6), (5, 70), (120, 2)])
@pytest.mark.usefixtures("all_threads")
def test_rows_do_not_depend_on_their_batch(dtype, d, k):
    X, Z, B = make(150, 700, d, k, dtype)
    scale = np.sqrt(d)
    whole = radial_product(X, Z, B, scale)
    np.testing.assert_array_equal(whole, radial_product(X, Z, B, scale))
    single = np.concatenate([radial_product(X[i : i + 1], Z, B, scale) for i in (0, 1, 77, 149)])
    atol = (1e-6 if dtype == np.float32 else 1e-12) * np.abs(whole).max()
    np.testing.assert_allclose(single, whole[[0, 1, 77, 149]], rtol=0, atol=atol)


@pytest.mark.parametrize("n, m, k", [(0, 5, 2), (5, 0, 2), (5, 4, 0), (0, 0, 1)])
def test_empty(n, m, k):
    X, Z, B = make(n, m, 3, k, np.float32)
    np.testing.assert_array_equal(radial_product(X, Z, B, 1.0), np.zeros((n, k), np.float32))


def test_right_hand_sides_in_double_make_everything_double():
    X, Z, B = make(5, 6, 2, 1, np.float32)
    B = B.astype(np.float64)
    for dtype in (np.float32, int):
        left, right = (10 * X).astype(dtype), (10 * Z).astype(dtype)
        product = radial_product(left, right, B, 9.0)
        assert product.dtype == np.float64
        assert error(product, dense(left, right, 9.0), B) < 1e-13


@pytest.mark.parametrize("d, k, profile", covering([2, 5, 90], [1, 70], PROFILES))
def test_data_in_double_keep_their_differences_in_single(d, k, profile):
    """Far from zero, rounding the data first would cost all digits."""
    X, Z, B = make(80, 150, d, k, np.float64)
    X, Z, B, scale = X + 1e6, Z + 1e6, B.astype(np.float32), np.sqrt(d)
    for other in (X, Z):
        product = radial_product(X, other, B[: len(other)], scale, profile=profile)
        assert product.dtype == np.float32
        assert error(product, dense(X, other, scale, profile), B[: len(other)]) < 1e-6


def test_nan_is_not_swallowed():
    X, Z, B = make(5, 6, 2, 1, np.float64)
    X[3, 1] = np.nan
    assert np.isnan(radial_product(X, Z, B, 1.0)).ravel().tolist() == [False] * 3 + [True, False]


@pytest.mark.usefixtures("all_threads")
def test_threads_at_once():
    """Four Python threads, every route: no crash, and the same numbers."""
    cases = [(make(300, 300, d, k, np.float32), d) for d, k in ((5, 1), (5, 70), (120, 2))]
    jobs = [cases[i % 3] for i in range(24)]
    with ThreadPoolExecutor(4) as pool:
        products = list(pool.map(lambda job: radial_product(*job[0], np.sqrt(job[1])), jobs))
    for i, product in enumerate(products):
        np.testing.assert_array_equal(product, products[i % 3])


@pytest.mark.parametrize("d, k, n", [(10, 1, 20000), (10, 80, 3000), (784, 1, 3000)])
def test_scratch_memory(d, k, n):
    """NumPy's allocations, which include every large buffer the compiled loops work in."""
    X, _, B = make(n, n, d, k, np.float32)
    rows = X[:100] if n > 5000 else X
    radial_product(X[:50], X[:50], B[:50], 3.0)
    tracemalloc.start()
    radial_product(rows, X, B, 3.0)
    radial_product(X, X, B, 3.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - X.nbytes - 8 * n * k < 40 * 2**20


@pytest.mark.parametrize("symmetric, dtype, n, m, d, k", [
    pytest.param(True, np.float64, 4200, 4200, 784, 100, marks=pytest.mark.slow),
    (True, np.float64, 2100, 2100, 784, 256),
    pytest.param(True, np.float32, 9000, 9000, 784, 250, marks=pytest.mark.slow),
    (False, np.float64, 300, 3000, 10, 3000),
    pytest.param(False, np.float64, 2100, 2100, 1000, 1000, marks=pytest.mark.slow),
])  # fmt: skip
def test_scratch_memory_with_many_columns(symmetric, dtype, n, m, d, k):
    """Beside inputs and output: what blocks and sums take, the panel of columns leaves to them."""
    X, Z, B = make(n, m, d, k, dtype)
    Z = X if symmetric else Z
    few = X[:130]
    radial_product(few, few if symmetric else Z[:130], B[:130], 50.0)  # compiles
    tracemalloc.start()
    product = radial_product(X, Z, B, 50.0)
    peak = tracemalloc.get_traced_memory()[1] - product.nbytes
    tracemalloc.stop()
    assert peak < 64 * 2**20


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 1e-5), (np.float64, 1e-13)])
@pytest.mark.parametrize("d, k", [(5, 2), (5, 70), (100, 3)])
@pytest.mark.usefixtures("all_threads")
def test_sums_in_the_output_itself(d, k, dtype, tolerance, monkeypatch):
    """Where there is no room for an accumulator, and in several panels; no row lacks its last group."""
    small = {"_EXACT_BYTES": 0, "_BUDGET": 0, "_FUSED_BLOCK": 64, "_TILE_WIDTH": 32}
    for name, value in small.items():
        monkeypatch.setattr("gramian.operators.compiled.radial." + name, value)
    X, _, B = make(403, 403, d, k, dtype)
    scale = np.sqrt(d)
    product = radial_product(X, X, B, scale)
    assert error(product, dense(X, X, scale), B) < tolerance


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resets the peak through /proc")
def test_peak_resident_memory():
    """What the operating system sees, allocations inside compiled code included."""
    program = """
import re, numpy as np
from gramian.operators.compiled.radial import radial_product
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
X = np.random.default_rng(0).standard_normal((20000, 10)).astype(np.float32)
B = np.ones((20000, 1), np.float32)
radial_product(X[:50], X[:50], B[:50], 3.0)
open("/proc/self/clear_refs", "w").write("5")
before = peak()
radial_product(X, X, B, 3.0)
print(peak() - before)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if "clear_refs" in run.stderr:
        pytest.skip("the peak cannot be reset here")
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 64


def test_errors_name_the_argument():
    X, Z, B = make(5, 6, 2, 1, np.float64)
    with pytest.raises(ValueError, match="features"):
        radial_product(X[:, :1], Z, B, 1.0)
    with pytest.raises(ValueError, match="B has 5 rows"):
        radial_product(X, Z, B[:5], 1.0)
    with pytest.raises(ValueError, match="length_scale has shape"):
        radial_product(X, Z, B, np.ones(3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_length_scales_beyond_all_distances(dtype):
    """All ones and the identity; no square of the length scale overflows or vanishes on the way."""
    X, _, B = make(20, 20, 3, 2, dtype)
    ones = np.broadcast_to(B.sum(axis=0), B.shape)
    np.testing.assert_allclose(radial_product(X, X, B, 1e300), ones, atol=1e-4)
    np.testing.assert_array_equal(radial_product(X, X, B, 1e-300), B)
