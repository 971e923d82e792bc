"""No product takes more than 64 MiB on top of its input, its output and the bytes its operator says it keeps."""

import pytest
from peak_memory import MiB, measured

pytestmark = pytest.mark.slow  # and best alone: threads beside those of other tests mostly wait

SCRIPT = """
import scipy.sparse as sp
from gramian import Pairs
from gramian.kernels import RBF, Linear, Matern, RationalQuadratic, White
from gramian.kernels.pairwise import Kronecker
from gramian.operators import (
    Dense, GramRows, LinearFeatures, LowRank, PairGram, Streamed, TreeCode,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 10)).astype(np.float32)
b = rng.normal(size=(20_000, 1)).astype(np.float32)

def product(name, kernel, n_rows, accurate=False):
    small = Streamed(kernel, X[:2500])
    operator = Streamed(kernel, X) if n_rows == len(X) else Streamed(kernel, X[:n_rows], X)
    if accurate:
        small.accurate(b[:2500])
        found[name] = growth(lambda: operator.accurate(b))
    else:
        small @ b[:2500]
        found[name] = growth(lambda: operator @ b)

def gradient(name, kernel):
    Streamed(kernel, X[:500]).vjp(b[:500], b[:500])
    operator = Streamed(kernel, X[:1500], X)
    found[name] = growth(lambda: operator.vjp(b[:1500], b))

product("rbf", RBF(3.0), 20_000)
product("matern12", Matern(3.0, nu=0.5), 1500)
product("matern52", Matern([3.0] * 10, nu=2.5), 1500)
product("rational_quadratic", RationalQuadratic(3.0), 1500)
product("composed", RBF(3.0) * Linear() + White(1.0), 1500)
product("accurate", RBF(3.0), 1500, accurate=True)
gradient("rbf gradient", RBF([3.0] * 10))
gradient("matern gradient", Matern([3.0] * 10, nu=2.5))
Dense(Matern(2.0), X[:500])
found["dense"] = growth(lambda: Dense(Matern(2.0), X[:6000]).matrix)
found["128 MiB"] = growth(lambda: np.ones(128 * 2**20 // 8))

# beyond what the operator says it keeps, once it has made its first product
def build(name, make, n_rows=len(X), right=b):
    make(600) @ right[:600]
    kept = []
    def action():
        operator = make(n_rows)
        product = operator @ right[:n_rows]
        kept.append(operator.nbytes)
        return product
    grown = growth(action)
    found[name] = grown - kept[0]
    found[name + " keeps"] = kept[0]

def pairs(n):
    rows = np.arange(n) % 200
    return Pairs(X[:200], X[200:500], rows, np.arange(n) // 200)

S = sp.random_array((20_000, 3000), density=0.01, rng=rng, dtype=np.float32, format="csr")
build("Dense", lambda n: Dense(RBF(3.0), X[:n]), 6000)
build("Streamed", lambda n: Streamed(RBF(3.0), X[:n]))
build("LinearFeatures", lambda n: LinearFeatures(Linear(), X[:n]))
build("LinearFeatures, sparse", lambda n: LinearFeatures(Linear(), S[:n]))
build("PairGram", lambda n: PairGram(Kronecker(RBF(3.0), RBF(3.0)), pairs(n)))
build("GramRows", lambda n: GramRows(RBF(3.0), X[:n], nbytes=n * 1024), 6000)
build("TreeCode, near cells", lambda n: TreeCode(Matern(0.02), X[:n, :2].copy()))
build("TreeCode, grid", lambda n: TreeCode(RBF(2.0), X[:n, :2].copy()))
build("LowRank", lambda n: LowRank(RBF(3.0), X[:n], 100, random_state=0))

# some rows of a cache that is as large as all of them together
cached = GramRows(RBF(3.0), X[:6000], nbytes=6000 * 5999 * 4)
GramRows(RBF(3.0), X[:600], nbytes=600 * 599 * 4).rows(np.arange(300))
cached._cache[:] = 0  # resident before
found["rows"] = growth(lambda: cached.rows(np.arange(5000)))
del cached

# 137 MiB in a file
path = sys.argv[1]
np.memmap(path, np.float32, "w+", shape=(1200, 30_000))[:] = rng.standard_normal((1200, 30_000), np.float32)
mapped = np.memmap(path, np.float32, "r", shape=(1200, 30_000))
mapped.sum()  # its pages are resident from here on
few, right = np.array(mapped[:200]), np.ones((1200, 1), np.float32)

def on_file(name, action):
    action(few)
    found[name] = growth(lambda: action(mapped))

on_file("file, rbf", lambda A: Streamed(RBF(200.0), A) @ right[: len(A)])
on_file("file, matern12", lambda A: Streamed(Matern(200.0, nu=0.5), A[:, :5000]) @ right[: len(A)])
on_file("file, rational quadratic", lambda A: Streamed(RationalQuadratic(200.0), A) @ right[: len(A)])
on_file("file, new examples", lambda A: Streamed(RBF(200.0), A, few) @ right[:200])
on_file("file, accurate", lambda A: Streamed(RBF(200.0), A).accurate(right[: len(A)].astype(float)))
on_file("file, gradient", lambda A: Streamed(RBF(200.0), A).vjp(right[: len(A)], right[: len(A)]))
on_file("file, dense", lambda A: Dense(RBF(200.0), A) @ right[: len(A)])
on_file("file, rows", lambda A: GramRows(RBF(200.0), A, nbytes=2**20).rows(np.arange(50)))
on_file("file, linear", lambda A: LinearFeatures(Linear(), A) @ right[: len(A)])
on_file("file, linear, accurate", lambda A: LinearFeatures(Linear(), A).accurate(right[: len(A)].astype(float)))
on_file("file, diagonal", lambda A: Linear().diag(A))
on_file("file, scale", lambda A: RBF("scale").resolve(A).length_scale)
"""


@pytest.fixture(scope="module")
def growth(tmp_path_factory) -> dict[str, int]:
    """Bytes by which each product raised the resident memory."""
    return measured(SCRIPT, str(tmp_path_factory.mktemp("memory") / "X.bin"))


def test_the_measure_sees_an_allocation(growth):
    """Otherwise the tests below could not fail."""
    assert 127 * MiB < growth["128 MiB"] < 132 * MiB


def test_a_streamed_rbf_product_takes_little_memory(growth):
    """20 000 × 10 float32, one right-hand side; the matrix would take 1.5 GiB."""
    assert growth["rbf"] < 64 * MiB


@pytest.mark.parametrize("name", ["matern12", "matern52", "rational_quadratic", "composed"])
def test_a_tiled_product_takes_little_memory(name, growth):
    """Any kernel, 1 500 rows against 20 000: many tiles of 8 MiB, one at a time."""
    assert growth[name] < 64 * MiB


def test_a_product_summed_in_double_takes_little_memory(growth):
    assert growth["accurate"] < 64 * MiB


@pytest.mark.parametrize("name", ["rbf gradient", "matern gradient"])
def test_a_gradient_takes_little_memory(name, growth):
    """Ten length scales at once, tile by tile."""
    assert growth[name] < 64 * MiB


def test_building_a_dense_matrix_needs_no_second_one(growth):
    """6 000 × 6 000 float32 are 137 MiB; some tiles come on top, a second matrix does not."""
    matrix = 6000 * 6000 * 4
    assert matrix < growth["dense"] < matrix + 64 * MiB


@pytest.mark.parametrize(
    "name",
    [
        "Dense",
        "Streamed",
        "LinearFeatures",
        "LinearFeatures, sparse",
        "PairGram",
        "GramRows",
        "TreeCode, near cells",
        "TreeCode, grid",
        "LowRank",
    ],
)
def test_building_and_multiplying_take_what_the_operator_says_and_little_more(name, growth):
    """20 000 examples (6 000 for Dense and GramRows); all kernel values would take 1.5 GiB (137 MiB)."""
    assert growth[name] < 64 * MiB
    assert growth[name + " keeps"] < 140 * MiB


def test_missing_rows_are_evaluated_by_tiles(growth):
    """5 000 rows of 6 000 values, 114 MiB: the copy that is returned, and little more."""
    rows = 5000 * 6000 * 4
    assert rows < growth["rows"] < rows + 64 * MiB


@pytest.mark.parametrize(
    "name",
    [
        "rbf",
        "matern12",
        "rational quadratic",
        "new examples",
        "accurate",
        "gradient",
        "dense",
        "rows",
        "linear",
        "linear, accurate",
        "diagonal",
        "scale",
    ],
)
def test_a_memory_mapped_file_is_not_copied(name, growth):
    """1 200 × 30 000 float32 in a read-only file, 137 MiB."""
    assert growth["file, " + name] < 64 * MiB
