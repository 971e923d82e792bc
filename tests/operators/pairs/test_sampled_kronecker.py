"""The sampled Kronecker product against rows and columns of numpy.kron, on every route."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.operators import SampledKronecker

pytestmark = pytest.mark.usefixtures("one_thread")

ROUTES = [
    (first, one, two)
    for first in ("right", "left")
    for one in ("cells", "blocks")
    for two in ("cells", "blocks")
] + [("neither", "cells", "cells")]
every_route = pytest.mark.parametrize(
    "route", [None, *ROUTES], ids=lambda r: "auto" if r is None else "-".join(r)
)
cases = st.integers(0, 2**32 - 1)
KINDS = ("few", "many", "repeated", "grid", "shuffled grid", "one row", "one column", "none")


def few_examples(count):
    return settings(deadline=None, derandomize=True, max_examples=count, database=None)


def pairs_of(rng, n_rows, n_columns, kinds=KINDS):
    """Cells of an n_rows x n_columns matrix: sparse, dense, repeated, complete in any order, along a line, none."""
    kind = kinds[rng.integers(len(kinds))]
    n_cells = n_rows * n_columns
    if kind == "few":
        cells = rng.choice(n_cells, size=max(1, n_cells // 6), replace=False)
    elif kind == "many":
        cells = rng.choice(n_cells, size=max(1, 3 * n_cells // 4), replace=False)
    elif kind == "repeated":
        cells = rng.integers(n_cells, size=2 * n_cells + 1)
    elif kind == "grid":
        cells = np.arange(n_cells)
    elif kind == "shuffled grid":
        cells = rng.permutation(n_cells)
    elif kind == "one row":
        cells = rng.integers(n_rows) * n_columns + np.arange(n_columns)
    elif kind == "one column":
        cells = np.arange(n_rows) * n_columns + rng.integers(n_columns)
    else:
        cells = np.empty(0, dtype=np.int64)
    return cells // n_columns, cells % n_columns


def coefficients(rng, n, n_columns=None):
    """Random numbers, some of them zero: none, a few, most, all."""
    shape = (n,) if n_columns is None else (n, n_columns)
    values = rng.normal(size=shape)
    values[rng.random(shape) < rng.choice([0.0, 0.1, 0.6, 0.95, 1.0])] = 0.0
    return values


def sampled(left, right, targets, sources):
    """The same entries, read from the whole Kronecker product."""
    whole = np.kron(left, right)
    rows = targets[0] * right.shape[0] + targets[1]
    columns = sources[0] * right.shape[1] + sources[1]
    return whole[np.ix_(rows, columns)]


def assert_product(found, matrix, B, precision):
    scale = np.abs(matrix) @ np.abs(B)
    assert np.all(np.abs(found - matrix @ B) <= precision * (scale.max(initial=0.0) + 1e-300))


def random_case(seed, dtype=np.float64, symmetric=False, kinds=KINDS):
    """Factors of sizes 1 to 9, targets and sources."""
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.integers(1, 10, size=4)
    if symmetric:
        b, d = a, c
    left, right = rng.normal(size=(a, b)).astype(dtype), rng.normal(size=(c, d)).astype(dtype)
    targets = pairs_of(rng, a, c, kinds)
    sources = targets
    if symmetric:
        left, right = left + left.T, right + right.T
    else:
        sources = pairs_of(rng, b, d, kinds)
    return rng, left, right, targets, sources


# --- products -------------------------------------------------------------------------------


@every_route
@few_examples(150)
@given(seed=cases)
def test_rectangular(route, seed):
    rng, left, right, targets, sources = random_case(seed)
    op = SampledKronecker(left, right, *targets, *sources, route=route)
    B = coefficients(rng, sources[0].size, rng.integers(1, 10))
    found = op @ B
    assert found.dtype == np.float64
    assert found.shape == (targets[0].size, B.shape[1])
    matrix = sampled(left, right, targets, sources)
    assert_product(found, matrix, B, 1e-12)
    assert_product(op.accurate(B), matrix, B, 1e-12)


@every_route
@few_examples(60)
@given(seed=cases)
def test_symmetric(route, seed):
    """No source pairs and square factors: the operator of the training pairs."""
    rng, left, right, targets, _ = random_case(seed, symmetric=True)
    op = SampledKronecker(left, right, *targets, route=route)
    v = coefficients(rng, targets[0].size)
    assert_product(op @ v, sampled(left, right, targets, targets), v, 1e-12)


@every_route
@few_examples(40)
@given(seed=cases)
def test_single_precision(route, seed):
    rng, left, right, targets, sources = random_case(seed, np.float32)
    op = SampledKronecker(left, right, *targets, *sources, route=route)
    assert op.dtype == np.float32
    matrix = sampled(left.astype(float), right.astype(float), targets, sources)
    B = coefficients(rng, sources[0].size, 2)
    single = B.astype(np.float32)
    found = op @ single
    assert found.dtype == np.float32
    assert_product(found, matrix, single.astype(float), 1e-5)
    for wide in (B, np.round(3 * B).astype(np.int64)):  # numbers of another type are rounded first
        assert_product(op @ wide, matrix, wide, 1e-5)
        assert_product(op.accurate(wide), matrix, wide, 1e-12)


@pytest.mark.parametrize("side", ["left", "right"])
@few_examples(100)
@given(seed=cases)
def test_identity_factors(side, seed):
    rng, left, right, _, _ = random_case(seed)
    n = rng.integers(1, 8)
    factors = (None, right) if side == "left" else (left, None)
    left, right = (np.eye(n), right) if side == "left" else (left, np.eye(n))
    (a, b), (c, d) = left.shape, right.shape
    targets, sources = pairs_of(rng, a, c), pairs_of(rng, b, d)
    op = SampledKronecker(*factors, *targets, *sources)
    B = coefficients(rng, sources[0].size, 2)
    matrix = sampled(left, right, targets, sources)
    assert_product(op @ B, matrix, B, 1e-12)
    E = coefficients(rng, targets[0].size, 2)
    turned = (None if factor is None else factor.T for factor in factors)
    assert_product(SampledKronecker(*turned, *sources, *targets) @ E, matrix.T, E, 1e-12)


@few_examples(60)
@given(seed=cases)
def test_no_sources_and_rectangular_factors_mean_every_cell(seed):
    rng, left, right, targets, _ = random_case(seed)
    (_, b), (_, d) = left.shape, right.shape
    if left.shape[0] == b and right.shape[0] == d:
        return
    op = SampledKronecker(left, right, *targets)
    V = rng.normal(size=(b, d))
    grid = (np.repeat(np.arange(b), d), np.tile(np.arange(d), b))
    assert_product(op @ V.reshape(-1), sampled(left, right, targets, grid), V.reshape(-1), 1e-12)


@few_examples(150)
@given(seed=cases)
def test_gradients_in_the_factors(seed):
    """⟨E, op F⟩ is a sum over targets, sources and columns of left, right, E and F."""
    rng, left, right, targets, sources = random_case(seed, kinds=("few", "repeated", "one row"))
    op = SampledKronecker(left, right, *targets, *sources)
    k = rng.integers(1, 3)
    E, F = rng.normal(size=(targets[0].size, k)), coefficients(rng, sources[0].size, k)
    expected = np.zeros(left.shape), np.zeros(right.shape)
    inner = E @ F.T
    for h, (i, j) in enumerate(zip(*targets, strict=True)):
        np.add.at(expected[0], (i, sources[0]), inner[h] * right[j, sources[1]])
        np.add.at(expected[1], (j, sources[1]), inner[h] * left[i, sources[0]])
    for found, naive in zip(op.factor_gradients(E, F), expected, strict=True):
        np.testing.assert_allclose(found, naive, atol=1e-12 * (1 + np.abs(naive).max()))


def test_an_identity_has_no_gradient(rng):
    op = SampledKronecker(None, rng.normal(size=(3, 3)), [0, 1, 1], [0, 2, 1])
    left, right = op.factor_gradients(np.ones((3, 1)), np.ones((3, 1)))
    assert left is None
    expected = np.zeros((3, 3))
    expected[0, 0] = expected[2, 2] = expected[1, 1] = expected[2, 1] = expected[1, 2] = 1
    np.testing.assert_allclose(right, expected)


@every_route
def test_larger_than_a_part_and_a_line(route, rng):
    """Rows, parts and lines of the loops have ends that are no multiples of anything."""
    left, right = rng.normal(size=(133, 71)), rng.normal(size=(301, 97))
    targets, sources = pairs_of(rng, 133, 301, ["few"]), pairs_of(rng, 71, 97, ["few"])
    op = SampledKronecker(left, right, *targets, *sources, route=route)
    v = rng.normal(size=sources[0].size)
    V = np.zeros((71, 97))
    V[sources] = v
    expected = (left @ V @ right.T)[targets]
    np.testing.assert_allclose(op @ v, expected, atol=1e-12 * np.abs(expected).max())


def test_several_axes_of_right_hand_sides(rng):
    op = SampledKronecker(rng.normal(size=(4, 4)), rng.normal(size=(3, 3)), [0, 1, 3], [2, 2, 0])
    B = rng.normal(size=(3, 2, 5))
    found = op @ B
    assert found.shape == (3, 2, 5)
    np.testing.assert_allclose(found, np.einsum("hg,gkl->hkl", op.to_dense(), B), atol=1e-13)
    assert (op @ np.empty((3, 0))).shape == (3, 0)


@every_route
def test_products_do_not_remember_each_other(route, rng):
    """Room is kept between products: zeros of one must not show in the next."""
    left, right = rng.normal(size=(5, 5)), rng.normal(size=(6, 6))
    targets = pairs_of(rng, 5, 6, ["many"])
    op = SampledKronecker(left, right, *targets, route=route)
    matrix = sampled(left, right, targets, targets)
    full = rng.normal(size=targets[0].size)
    one = np.zeros_like(full)
    one[3] = 1.0
    for v in (full, one, full, np.zeros_like(full), one):
        before = v.copy()
        first = op @ v
        np.testing.assert_allclose(first, matrix @ v, atol=1e-12)
        kept = first.copy()
        op @ full
        np.testing.assert_array_equal(first, kept)  # the result is not the room
        np.testing.assert_array_equal(v, before)


def test_memory_layout_and_read_only_inputs(rng):
    left, right = rng.normal(size=(5, 4)), rng.normal(size=(3, 6))
    targets, sources = pairs_of(rng, 5, 3, ["many"]), pairs_of(rng, 4, 6, ["many"])
    B = rng.normal(size=(sources[0].size, 3))
    expected = SampledKronecker(left, right, *targets, *sources) @ B
    arrays = [np.asfortranarray(left), np.asfortranarray(right), *targets, *sources]
    for array in arrays:
        array.setflags(write=False)
    op = SampledKronecker(*arrays)
    layouts = [np.asfortranarray(B), np.repeat(B, 2, axis=0)[::2], B[:, ::-1].copy()[:, ::-1]]
    for layout in layouts:
        layout.setflags(write=False)
        np.testing.assert_allclose(op @ layout, expected, atol=1e-13)


def test_indices_may_be_lists_and_small_or_unsigned_integers(rng):
    factors = rng.normal(size=(3, 3)), rng.normal(size=(2, 2))
    plain = SampledKronecker(*factors, [0, 2, 1], [1, 1, 0]).to_dense()
    for kind in (np.int8, np.uint16, np.uint64, np.int32):
        indices = np.array([0, 2, 1], dtype=kind), np.array([1, 1, 0], dtype=kind)
        np.testing.assert_array_equal(SampledKronecker(*factors, *indices).to_dense(), plain)


def test_integer_factors_are_float64():
    op = SampledKronecker(np.array([[2, 1], [1, 2]]), np.eye(2, dtype=np.float32), [0, 1], [0, 0])
    assert op.dtype == np.float64
    np.testing.assert_array_equal(op.to_dense(), [[2.0, 1.0], [1.0, 2.0]])


@pytest.mark.parametrize("route", [None, ("left", "blocks", "cells")])
def test_pickle(route, rng):
    op = SampledKronecker(rng.normal(size=(4, 4)), None, [0, 1, 3], [2, 2, 0], route=None)
    op2 = SampledKronecker(rng.normal(size=(4, 4)), np.eye(3), [0, 1, 3], [2, 2, 0], route=route)
    for operator in (op, op2):
        v = rng.normal(size=3)
        product = operator @ v
        copy = pickle.loads(pickle.dumps(operator))
        np.testing.assert_array_equal(copy @ v, product)
        assert (copy.shape, copy.dtype) == (operator.shape, operator.dtype)
        assert repr(copy.route_) == repr(operator.route_)


def test_repr_and_size(rng):
    op = SampledKronecker(rng.normal(size=(4, 5)), rng.normal(size=(2, 3)), [0, 3], [1, 1])
    assert repr(op) == "SampledKronecker(2 of 4 x 2 cells from 15 of 5 x 3, float64)"
    assert op.nbytes >= (20 + 6) * 8


# --- routes ---------------------------------------------------------------------------------


def test_a_route_explains_itself(rng):
    factors = rng.normal(size=(30, 30)), rng.normal(size=(20, 20))
    pairs = pairs_of(rng, 30, 20, ["few"])
    route = SampledKronecker(*factors, *pairs).route_
    assert f"{route.first} first, {route.phase_one} then {route.phase_two}" in route.reason
    assert route.cost > 0
    asked = SampledKronecker(*factors, *pairs, route=("left", "blocks", "cells")).route_
    assert (asked.first, asked.phase_one, asked.phase_two) == ("left", "blocks", "cells")
    assert asked.reason == "asked for"


# --- errors ---------------------------------------------------------------------------------

SQUARE = np.eye(3)
BAD = {
    "row out of range": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0, 3], [0, 0]),
        ValueError,
        "rows must be between 0 and 2, got 3 at position 1",
    ),
    "negative column": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0, 1], [-1, 0]),
        ValueError,
        "columns must be between 0 and 2, got -1 at position 0",
    ),
    "source out of range": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0], [0], [0], [5]),
        ValueError,
        "source_columns must be between 0 and 2, got 5",
    ),
    "negative index of an identity": (
        lambda: SampledKronecker(None, SQUARE, [-2], [0]),
        ValueError,
        "rows must be",
    ),
    "float index": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0.0], [0]),
        TypeError,
        "rows must hold integers, got float64",
    ),
    "boolean index": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0], [True]),
        TypeError,
        "columns must hold integers, got bool",
    ),
    "index of two axes": (
        lambda: SampledKronecker(SQUARE, SQUARE, [[0]], [0]),
        ValueError,
        "rows must have one dimension",
    ),
    "lengths": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0, 1], [0]),
        ValueError,
        "rows and columns must have one length, got 2 and 1",
    ),
    "source lengths": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0], [0], [0, 1], [0]),
        ValueError,
        "source_rows and source_columns must have one length",
    ),
    "half of the sources": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0], [0], [0]),
        ValueError,
        "source_rows and source_columns must be given together",
    ),
    "two identities": (
        lambda: SampledKronecker(None, None, [0], [0]),
        ValueError,
        "must not both be None",
    ),
    "a vector as a factor": (
        lambda: SampledKronecker(np.ones(3), SQUARE, [0], [0]),
        ValueError,
        "left must be a matrix, got shape",
    ),
    "coefficients": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0, 1], [0, 0]) @ np.ones(3),
        ValueError,
        "cannot multiply an array of shape",
    ),
    "a number": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0], [0]) @ np.float64(1.0),
        ValueError,
        "cannot multiply an array of shape",
    ),
    "an unknown route": (
        lambda: SampledKronecker(SQUARE, SQUARE, [0], [0], route=("up", "cells", "cells")),
        ValueError,
        "route",
    ),
    "a route that ends with an identity": (
        lambda: SampledKronecker(None, SQUARE, [0], [0], route=("right", "cells", "cells")),
        ValueError,
        "route",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()
