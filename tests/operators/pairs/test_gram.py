"""The Gram operator of pairs against double loops over pairs, in every form."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from oracles import kernel_value
from pair_oracles import (
    ONE_KIND,
    TWO_KINDS,
    kernel_id,
    new_pairs_for,
    one_kind,
    pair_gram,
    pairs_for,
    two_kinds,
)

from gramian import Pairs
from gramian.kernels import RBF, Constant, Linear, White
from gramian.kernels import pairwise as pk
from gramian.operators import PairGram
from gramian.testing import check_operator
from gramian.testing._clauses import numerical_gradient

pytestmark = pytest.mark.usefixtures("one_thread")

KERNELS = [*TWO_KINDS, *ONE_KIND]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
LINEAR = [
    pk.Kronecker(Linear(), Linear()),
    pk.Kronecker(2.0 * Linear(), Constant(0.5) * Linear()),
    pk.Symmetric(1.5 * Linear()),
    pk.Antisymmetric(1.5 * Linear()),
    pk.MLPK(0.5 * Linear()),
]
linear_kernels = pytest.mark.parametrize("kernel", LINEAR, ids=kernel_id)
TINY = {"working_memory": 1e-6}


def loose(dtype):
    return 3e-5 if dtype == np.float32 else 1e-12


def assert_is(operator, matrix, precision=1e-12, seed=0):
    """The products of an operator are those of a matrix."""
    B = np.random.default_rng(seed).normal(size=(matrix.shape[1], 3)).astype(operator.dtype)
    scale = np.abs(matrix).sum(axis=1).max(initial=1.0)
    assert operator.shape == matrix.shape
    np.testing.assert_allclose(operator @ B, matrix @ B, atol=precision * scale)
    np.testing.assert_allclose(operator.accurate(B), matrix @ B, atol=precision * scale)


# --- the contract ---------------------------------------------------------------------------


@every_kernel
@both_dtypes
@pytest.mark.parametrize("form", ["auto", "dual"])
def test_is_the_gram_matrix(kernel, dtype, form):
    """With pairs that repeat, objects in no pair, new objects, and known ones in other tables."""
    X = pairs_for(kernel, dtype=dtype)
    Z = new_pairs_for(kernel, X)
    check_operator(PairGram(kernel, X, form=form), pair_gram(kernel, X))
    check_operator(PairGram(kernel, Z, X, form), pair_gram(kernel, Z, X))


@every_kernel
@both_dtypes
def test_is_rectangular_too(kernel, dtype):
    X = pairs_for(kernel, dtype=dtype)
    Z = new_pairs_for(kernel, X)
    operator = PairGram(kernel, Z, X)
    check_operator(operator, pair_gram(kernel, Z, X))
    np.testing.assert_allclose(operator.to_dense(), pair_gram(kernel, Z, X), atol=loose(dtype) * 10)


@every_kernel
def test_complete_pairs(kernel):
    rng = np.random.default_rng(0)
    right = None if kernel.homogeneous else rng.normal(size=(5, 3))
    X = Pairs.complete(rng.normal(size=(4, 2)), right)
    X = X[rng.permutation(len(X))]
    assert_is(PairGram(kernel, X), pair_gram(kernel, X))
    assert_is(PairGram(kernel, X[:7], X), pair_gram(kernel, X[:7], X))


@every_kernel
def test_sparse_tables(kernel):
    X = pairs_for(kernel)

    def thinned(pairs, kind):
        tables = [
            kind(np.where((t > 0) | (np.arange(t.shape[1]) == 0), t, 0.0))
            for t in (pairs.left, pairs.right)
        ]
        right = None if pairs.homogeneous else tables[1]
        return Pairs(tables[0], right, pairs.left_index, pairs.right_index)

    Z = new_pairs_for(kernel, X)
    dense, thin = thinned(X, np.asarray), thinned(X, sp.csr_array)
    check_operator(PairGram(kernel, thin), pair_gram(kernel, dense))
    new, thin_new = thinned(Z, np.asarray), thinned(Z, sp.csr_array)
    check_operator(PairGram(kernel, thin_new, thin), pair_gram(kernel, new, dense))


@every_kernel
def test_selections_and_one_pair_and_none(kernel):
    X = pairs_for(kernel)
    assert_is(PairGram(kernel, X, X), pair_gram(kernel, X))
    assert_is(PairGram(kernel, X[3:4], X), pair_gram(kernel, X[3:4], X))
    assert_is(PairGram(kernel, X[3:4]), pair_gram(kernel, X[3:4]))
    assert (PairGram(kernel, X[:0], X) @ np.ones((len(X), 2))).shape == (0, 2)


@every_kernel
def test_tables_of_two_kinds_joined(kernel):
    """Both ends of one kind in two tables; a kernel of two kinds does not care."""
    if not kernel.homogeneous:
        return
    table = np.random.default_rng(3).normal(size=(7, 2))
    two = Pairs(table[:5], table[3:], [0, 3, 4, 2], [0, 0, 1, 3])
    one = Pairs(table, None, [0, 3, 4, 2], [3, 3, 4, 6])
    check_operator(PairGram(kernel, two), pair_gram(kernel, one))
    assert_is(PairGram(kernel, one, two), pair_gram(kernel, one))


# --- precomputed ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "poly2d", "kronecker", "cartesian"])
@pytest.mark.parametrize("sides", ["both", "left", "right"])
def test_precomputed_similarities_of_two_kinds(name, sides, rng):
    """The tables are similarities to all objects, of which the pairs use a few."""
    bases = RBF(1.3), Linear()
    features = rng.normal(size=(9, 2)), rng.normal(size=(8, 3))
    new = np.concatenate([features[0][:1], rng.normal(size=(2, 2))]), rng.normal(size=(3, 3))
    tables, new_tables, kernels = [], [], []
    for side in (0, 1):
        stored = sides in ("both", ("left", "right")[side])
        kernels.append("precomputed" if stored else bases[side])
        tables.append(bases[side](features[side]) if stored else features[side])
        new_tables.append(bases[side](new[side], features[side]) if stored else new[side])
    index = rng.choice([1, 2, 5, 7], size=10), rng.choice([0, 3, 4], size=10)
    kernel, plain = pk.as_pairwise_kernel(name, *kernels), pk.as_pairwise_kernel(name, *bases)
    X, F = Pairs(*tables, *index), Pairs(*features, *index)
    operator = PairGram(kernel, X)
    assert_is(operator, pair_gram(plain, F))
    np.testing.assert_allclose(operator.diagonal()[:, 0], np.diag(pair_gram(plain, F)), atol=1e-12)
    cells = [0, 1, 2, 2], [2, 0, 0, 1]
    expected = pair_gram(plain, Pairs(*new, *cells), F)
    if name != "cartesian":
        assert_is(PairGram(kernel, Pairs(*new_tables, *cells), X), expected)
    elsewhere = [0, 3, 8], [7, 3, 1]  # known objects, in pairs of their own
    expected = pair_gram(plain, Pairs(*features, *elsewhere), F)
    assert_is(PairGram(kernel, Pairs(*tables, *elsewhere), X), expected)


@pytest.mark.parametrize("make", [pk.Symmetric, pk.Antisymmetric, pk.Ranking, pk.MLPK])
def test_precomputed_similarities_of_one_kind(make, rng):
    base, features = RBF(1.3), rng.normal(size=(9, 2))
    new = np.concatenate([features[4:6], rng.normal(size=(2, 2))])
    index = rng.choice([1, 2, 5, 7], size=10), rng.choice([1, 3, 4], size=10)
    X, F = Pairs(base(features), None, *index), Pairs(features, None, *index)
    operator = PairGram(make("precomputed"), X)
    assert_is(operator, pair_gram(make(base), F))
    cells = [0, 1, 2, 2], [2, 3, 0, 1]
    expected = pair_gram(make(base), Pairs(new, None, *cells), F)
    Z = Pairs(base(new, features), None, *cells)
    assert_is(PairGram(make("precomputed"), Z, X), expected)


def test_sparse_precomputed_similarities(rng):
    features = rng.normal(size=(6, 2)), rng.normal(size=(5, 2))
    similarities = [sp.csr_array(F @ F.T) for F in features]
    index = rng.integers(5, size=9), rng.integers(4, size=9)
    kernel = pk.Kronecker("precomputed", "precomputed")
    expected = pair_gram(pk.Kronecker(Linear(), Linear()), Pairs(*features, *index))
    assert_is(PairGram(kernel, Pairs(*similarities, *index)), expected)


# --- forms ----------------------------------------------------------------------------------


@linear_kernels
@both_dtypes
def test_dual_primal_and_streamed_are_the_same(kernel, dtype):
    X = pairs_for(kernel, dtype=dtype)
    Z = new_pairs_for(kernel, X)
    gram, cross = pair_gram(kernel, X), pair_gram(kernel, Z, X)
    for form in ("dual", "primal"):
        operator = PairGram(kernel, X, form=form)
        assert operator.form == form
        check_operator(operator, gram)
        check_operator(PairGram(kernel, Z, X, form), cross)
    with sklearn.config_context(**TINY):
        operator = PairGram(kernel, X)
        assert operator.form == "streamed"
        assert "working_memory" in operator.reason
        check_operator(operator, gram)
        check_operator(PairGram(kernel, Z, X), cross)


@every_kernel
@both_dtypes
def test_little_memory(kernel, dtype):
    """A product of two matrices is streamed, other kernels are stored anyway."""
    X = pairs_for(kernel, dtype=dtype)
    Z = new_pairs_for(kernel, X)
    with sklearn.config_context(**TINY):
        operator = PairGram(kernel, X)
        single = len(kernel.terms) == 1 and not isinstance(kernel, pk.Ranking)
        assert operator.form == ("streamed" if single else "dual")
        check_operator(operator, pair_gram(kernel, X))
        check_operator(PairGram(kernel, Z, X), pair_gram(kernel, Z, X))


@pytest.mark.parametrize("n_left, n_right, observed", [(40, 7, 30), (7, 40, 270)])
def test_either_side_is_streamed(n_left, n_right, observed, rng):
    """Few and nearly all cells, many left and many right objects, two columns at once."""
    kernel = pk.Kronecker(RBF(2.0) + White(0.3), RBF(1.5))
    cells = rng.permutation(n_left * n_right)[:observed]
    tables = rng.normal(size=(n_left, 3)), rng.normal(size=(n_right, 2))
    X = Pairs(*tables, cells // n_right, cells % n_right)
    Z = Pairs(tables[0][::-1] + 0.1, tables[1] - 0.1, X.left_index[:9], X.right_index[:9])
    for megabytes in (1e-6, 1e-3, 2e-3):  # from one object in a panel to all
        with sklearn.config_context(working_memory=megabytes):
            operator = PairGram(kernel, X)
            assert operator.form == "streamed"
            check_operator(operator, kernel(X))
            check_operator(PairGram(kernel, Z, X), kernel(Z, X))


@every_kernel
def test_the_diagonal_needs_no_matrix_of_objects(kernel, rng):
    """2 500 objects, whose matrix would take 48 MiB."""
    homogeneous = kernel.homogeneous
    tables = [rng.normal(size=(2500, 2)) for _ in range(1 if homogeneous else 2)]
    index = rng.integers(2500, size=(2, 600))
    index[1, :9] = index[0, :9]  # also pairs of an object with itself
    X = Pairs(tables[0], None if homogeneous else tables[1], *index)
    tracemalloc.start()
    diagonal = kernel.diag(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20
    np.testing.assert_allclose(diagonal[:30], np.diagonal(pair_gram(kernel, X[:30])), rtol=1e-9)


def test_streaming_many_objects_of_both_kinds_takes_little_memory(rng):
    """2 500 × 2 500 objects: their matrices, or one of all their pairs, would take 24 MiB each, 48 in float64."""
    tables = rng.standard_normal((2, 2500, 3), np.float32)
    X = Pairs(*tables, *rng.integers(2500, size=(2, 5000)))
    kernel, b = pk.Kronecker(RBF(2.0), RBF(1.5)), rng.normal(size=(5000, 1))
    with sklearn.config_context(working_memory=4):
        PairGram(kernel, X[:500]) @ b[:500]  # compiles
        operator = PairGram(kernel, X)
        tracemalloc.start()
        operator @ b
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert operator.form == "streamed"
    assert peak < 40 * 2**20


@linear_kernels
def test_gradients_are_alike_in_all_forms(kernel, rng):
    X = pairs_for(kernel)
    E, F = rng.normal(size=(2, len(X), 2))
    expected = numerical_gradient(
        lambda theta: float(np.sum(E * (pair_gram(kernel.clone_with_theta(theta), X) @ F))),
        kernel.theta,
    ).reshape(-1)
    scale = 1e-7 * (1 + np.abs(expected).max(initial=0.0))
    for form in ("dual", "primal"):
        gradient = PairGram(kernel, X, form=form).vjp(E, F)
        np.testing.assert_allclose(gradient, expected, atol=scale, err_msg=form)
    with sklearn.config_context(**TINY):
        gradient = PairGram(kernel, X).vjp(E, F)
    np.testing.assert_allclose(gradient, expected, atol=scale, err_msg="streamed")


@every_kernel
def test_gradients_of_the_rectangular_form(kernel, rng):
    X = pairs_for(kernel)
    Z = new_pairs_for(kernel, X)
    E, F = rng.normal(size=(len(Z), 2)), rng.normal(size=(len(X), 2))
    expected = numerical_gradient(
        lambda theta: float(np.sum(E * (pair_gram(kernel.clone_with_theta(theta), Z, X) @ F))),
        kernel.theta,
    ).reshape(-1)
    scale = 1e-7 * (1 + np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(PairGram(kernel, Z, X).vjp(E, F), expected, atol=scale)


def test_the_cheaper_form_is_taken(rng):
    kernel = pk.Kronecker(Linear(), Linear())
    few = Pairs(*rng.normal(size=(2, 200, 2)), *rng.integers(200, size=(2, 5000)))
    assert PairGram(kernel, few).form == "primal"
    many = Pairs(*rng.normal(size=(2, 10, 300)), *rng.integers(10, size=(2, 50)))
    assert PairGram(kernel, many).form == "dual"
    assert PairGram(pk.Kronecker(RBF(1.0), Linear()), few).form == "dual"


def test_many_sparse_features_are_not_written_out():
    """Linear kernels of a million features: the weights of their products would be a million squared."""
    table = sp.random_array((20, 10**6), density=1e-5, rng=np.random.default_rng(0), format="csr")
    X = Pairs(table, table, [0, 1, 5], [3, 3, 2])
    operator = PairGram(pk.Kronecker(Linear(), Linear()), X)
    assert operator.form == "dual"
    K = (table @ table.T).toarray()
    expected = K[np.ix_([0, 1, 5], [0, 1, 5])] * K[np.ix_([3, 3, 2], [3, 3, 2])]
    assert_is(operator, expected)


def test_memory_may_grow_between_products(rng):
    """The form is chosen when the operator is made; gradients and copies keep working."""
    kernel = pk.Kronecker(RBF(1.3), RBF(0.7))
    X = two_kinds()
    with sklearn.config_context(**TINY):
        operator = PairGram(kernel, X)
    moved = operator.clone_with_theta(operator.theta + 0.2)
    assert_is(moved, pair_gram(kernel.clone_with_theta(kernel.theta + 0.2), X))


def test_form_and_route_say_why():
    X = two_kinds()
    operator = PairGram(pk.Kronecker(RBF(1.0), RBF(1.0)), X)
    assert operator.form == "dual"
    assert operator.route_.reason in operator.reason
    assert PairGram(pk.Linear(RBF(1.0), RBF(1.0)), X).route_ is None
    assert PairGram(LINEAR[0], X, form="primal").reason == "asked for"
    with pytest.raises(ValueError, match=r"form must be one of .*; got 'dense'"):
        PairGram(LINEAR[0], X, form="dense")
    for kernel in (pk.Kronecker(RBF(1.0), Linear()), pk.Linear(Linear(), Linear())):
        with pytest.raises(ValueError, match="primal form needs"):
            PairGram(kernel, X, form="primal")


# --- complete pairs -------------------------------------------------------------------------


@pytest.mark.parametrize("shuffled", [False, True])
def test_factors_of_complete_pairs(shuffled, rng):
    X = Pairs.complete(rng.normal(size=(4, 2)), rng.normal(size=(3, 2)))
    X = X[rng.permutation(12)] if shuffled else X
    for kernel in (pk.Kronecker(RBF(1.0), 2.0 * RBF(2.0)), pk.Gaussian(1.5)):
        K, T, order, constant = PairGram(kernel, X).kronecker()
        assert constant == 0
        whole = np.kron(K, T)  # rows are cells, left objects first
        found = pair_gram(kernel, X)[np.ix_(order, order)]
        np.testing.assert_allclose(found, whole, atol=1e-12)


def test_no_factors_without_a_complete_kronecker_product(rng):
    complete = Pairs.complete(rng.normal(size=(4, 2)), rng.normal(size=(3, 2)))
    kernel = pk.Kronecker(RBF(1.0), RBF(2.0))
    assert PairGram(kernel, complete).kronecker() is not None
    assert PairGram(kernel, complete[1:]).kronecker() is None
    twice = complete[np.r_[np.arange(12), 0]]
    assert PairGram(kernel, twice).kronecker() is None
    assert PairGram(kernel, complete, complete).kronecker() is None
    for other in (pk.Linear, pk.Poly2D, pk.Cartesian):
        assert PairGram(other(RBF(1.0), RBF(2.0)), complete).kronecker() is None
    square = Pairs.complete(rng.normal(size=(4, 2)), None)
    for other in (pk.Symmetric, pk.Antisymmetric, pk.Ranking, pk.MLPK):
        assert PairGram(other(RBF(1.0)), square).kronecker() is None
    assert PairGram(kernel, square).kronecker() is not None


def test_objects_in_no_pair_do_not_count(rng):
    """Complete is what is complete for the objects that occur."""
    X = Pairs(rng.normal(size=(5, 2)), rng.normal(size=(4, 2)), [1, 1, 3, 3], [0, 2, 0, 2])
    K, T, order, _ = PairGram(pk.Kronecker(RBF(1.0), RBF(2.0)), X).kronecker()
    assert (K.shape, T.shape, order.tolist()) == ((2, 2), (2, 2), [0, 1, 2, 3])


# --- identities of objects --------------------------------------------------------------------


def test_cartesian_with_twins():
    """Two objects that look alike are two, as long as their table or their ids tell."""
    kernel = pk.Cartesian(Linear(), Linear())
    tables = np.array([[1.0], [1.0], [2.0]]), np.array([[1.0], [3.0]])
    X = Pairs(*tables, [0, 1, 2], [0, 0, 1], left_ids=["a", "b", "c"])
    expected = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 13.0]])
    assert_is(PairGram(kernel, X), expected)
    assert_is(PairGram(kernel, X, X), expected)
    assert_is(PairGram(kernel, X[1:], X), expected[1:])


def test_white_noise_is_of_an_object(rng):
    """The noise of a base kernel is an effect of each object, known for all its pairs."""
    kernel = pk.Kronecker(RBF(1.0) + White(0.5), Linear())
    X = two_kinds()
    features = X.left
    plain = np.array([[kernel_value(RBF(1.0), x, z, False) for z in features] for x in features])
    left = (plain + 0.5 * np.eye(len(features)))[np.ix_(X.left_index, X.left_index)]
    right = X.right[X.right_index] @ X.right[X.right_index].T
    assert_is(PairGram(kernel, X), left * right)


def test_one_kind_as_two():
    """A kernel for two kinds on pairs of one kind is the same as with the table given twice."""
    X = one_kind()
    twice = Pairs(X.left, X.left.copy(), X.left_index, X.right_index)
    kernel = pk.Poly2D(RBF(1.0), Linear())
    assert_is(PairGram(kernel, X), PairGram(kernel, twice) @ np.eye(len(X)))
