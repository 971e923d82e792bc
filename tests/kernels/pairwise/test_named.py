"""Kernels of pairs: values by their scalar formulas, symmetries, gradients, and the rules of every kernel."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
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
from sklearn.base import clone

from gramian import Pairs
from gramian.kernels import RBF, Linear, Matern, Precomputed, White
from gramian.kernels import pairwise as pk
from gramian.kernels.pairwise import as_pairwise_kernel
from gramian.operators import PairGram
from gramian.testing._clauses import numerical_gradient

KERNELS = [*TWO_KINDS, *ONE_KIND]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)
one_kind_kernels = pytest.mark.parametrize("kernel", ONE_KIND, ids=kernel_id)
NAMES = {
    "linear": pk.Linear,
    "poly2d": pk.Poly2D,
    "kronecker": pk.Kronecker,
    "gaussian": pk.Gaussian,
    "cartesian": pk.Cartesian,
    "symmetric": pk.Symmetric,
    "antisymmetric": pk.Antisymmetric,
    "ranking": pk.Ranking,
    "mlpk": pk.MLPK,
}


def turned(pairs):
    """The same pairs with their ends exchanged."""
    right = None if pairs.homogeneous else pairs.left
    return Pairs(pairs.right, right, pairs.right_index, pairs.left_index)


# --- values ---------------------------------------------------------------------------------


@every_kernel
def test_values_are_the_formula(kernel):
    X = pairs_for(kernel)
    Z = new_pairs_for(kernel, X)
    np.testing.assert_allclose(kernel(X), pair_gram(kernel, X), atol=1e-12)
    np.testing.assert_allclose(kernel(Z, X), pair_gram(kernel, Z, X), atol=1e-12)
    np.testing.assert_allclose(kernel(X, Z), kernel(Z, X).T, atol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diag(pair_gram(kernel, X)), atol=1e-12)
    np.testing.assert_allclose(kernel.diag(Z), np.diag(pair_gram(kernel, Z)), atol=1e-12)


@every_kernel
def test_one_kind_of_object_suits_every_kernel(kernel):
    """Pairs within one table may also have a kernel for two kinds."""
    if isinstance(kernel, pk.Kronecker) and "0.7" in repr(kernel):
        return  # has a length scale for each of other features
    X = one_kind()
    np.testing.assert_allclose(kernel(X), pair_gram(kernel, X), atol=1e-12)


@one_kind_kernels
def test_two_tables_of_one_kind_are_joined(kernel):
    """An object that is in both tables is one object."""
    table = np.random.default_rng(3).normal(size=(7, 2))
    two = Pairs(table[:5], table[3:], [0, 3, 4, 2], [0, 0, 1, 3])
    one = Pairs(table, None, [0, 3, 4, 2], [3, 3, 4, 6])
    np.testing.assert_allclose(kernel(two), kernel(one), atol=1e-13)
    np.testing.assert_allclose(kernel(two), pair_gram(kernel, one), atol=1e-12)


@every_kernel
def test_sparse_and_single_precision_tables(kernel):
    X = pairs_for(kernel)
    sides = [np.where(table > 0, table, 0.0) for table in (X.left, X.right)]
    right = None if X.homogeneous else sides[1]
    dense = Pairs(sides[0], right, X.left_index, X.right_index)
    thin = Pairs(
        sp.csr_array(sides[0]),
        None if right is None else sp.csr_array(right),
        X.left_index,
        X.right_index,
    )
    np.testing.assert_allclose(kernel(thin), kernel(dense), atol=1e-12)
    single = pairs_for(kernel, dtype=np.float32)
    values = kernel(single)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, pair_gram(kernel, single), rtol=1e-4, atol=1e-4)


@every_kernel
def test_positive_semi_definite(kernel):
    X = pairs_for(kernel, n=30)
    values = np.linalg.eigvalsh(kernel(X))
    assert values[0] > -1e-10 * values[-1]


def test_gaussian_is_the_rbf_kernel_of_the_wide_table():
    X, Z = two_kinds(), two_kinds(seed=5)
    expected = RBF(1.7)(X.to_wide(), Z.to_wide())
    np.testing.assert_allclose(pk.Gaussian(1.7)(X, Z), expected, atol=1e-13)


def test_cartesian_knows_objects_by_ids_or_features():
    kernel = pk.Cartesian(Linear(), Linear())
    twins = np.array([[1.0], [1.0], [2.0]])  # without ids, the first two are one object
    X = Pairs(twins, [[1.0], [3.0]], [0, 1, 2], [0, 0, 1])
    np.testing.assert_array_equal(kernel(X), [[2, 2, 0], [2, 2, 0], [0, 0, 13]])
    np.testing.assert_array_equal(kernel(X[:2], X), [[2, 2, 0], [2, 2, 0]])
    ids = ["a", "b", "c"]
    apart = Pairs(twins, [[1.0], [3.0]], [0, 1, 2], [0, 0, 1], left_ids=ids)
    np.testing.assert_array_equal(kernel(apart), [[2, 1, 0], [1, 2, 0], [0, 0, 13]])
    named = Pairs(twins, [[1.0], [3.0]], [0, 1], [0, 0], left_ids=["a", "b", "c"])
    other = Pairs(twins[1:2] + 5, [[1.0]], [0], [0], left_ids=["b"])
    np.testing.assert_array_equal(kernel(other, named), [[6.0, 7.0]])  # b has new features


def test_precomputed_similarities_are_read_by_object(rng):
    features = rng.normal(size=(6, 2)), rng.normal(size=(5, 3))
    similarities = [F @ F.T for F in features]
    index = rng.integers(6, size=9), rng.integers(5, size=9)
    kernel = pk.Kronecker("precomputed", "precomputed")
    plain = pk.Kronecker(Linear(), Linear())
    np.testing.assert_allclose(
        kernel(Pairs(*similarities, *index)), plain(Pairs(*features, *index)), atol=1e-12
    )
    mixed = pk.Kronecker("precomputed", Linear())
    np.testing.assert_allclose(
        mixed(Pairs(similarities[0], features[1], *index)),
        plain(Pairs(*features, *index)),
        atol=1e-12,
    )


def test_kernels_say_what_they_are():
    """Whether pairs of two new objects can be predicted, and whether one product is all."""
    unknown = {kernel for kernel in NAMES.values() if not kernel().knows_new_pairs}
    assert unknown == {pk.Cartesian}
    new, kernel = Pairs([[5.0, 1.0]], [[7.0, 1.0, 0.0]], [0], [0]), pk.Cartesian("linear", "linear")
    assert not np.any(kernel(new, two_kinds()))
    single = {kernel for kernel in NAMES.values() if kernel().is_one_product}
    assert single == {pk.Kronecker, pk.Gaussian, pk.Symmetric, pk.Antisymmetric, pk.MLPK}


def test_a_new_kernel_is_a_tuple_of_terms(rng):
    """Value, diagonal, gradient and operator follow, with a coefficient, too."""

    class Doubled(pk.Kronecker):
        terms = (pk.Term("kernel", "kernel", 2.0),)

    for base in (RBF(1.3), Linear()):
        kernel, plain, X = Doubled(base, base), pk.Kronecker(base, base), two_kinds()
        np.testing.assert_allclose(kernel(X), 2 * plain(X), rtol=1e-14)
        np.testing.assert_allclose(kernel.diag(X), 2 * plain.diag(X), rtol=1e-14)
        G = rng.normal(size=(13, 13))
        np.testing.assert_allclose(kernel.vjp(X, None, G), 2 * plain.vjp(X, None, G), rtol=1e-12)
        for form in ("auto", "dual"):
            found = PairGram(kernel, X, form=form) @ G
            np.testing.assert_allclose(found, 2 * plain(X) @ G, atol=1e-12)


# --- exchanged ends -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, sign", [(pk.Symmetric, 1), (pk.Antisymmetric, -1), (pk.Ranking, -1), (pk.MLPK, 1)]
)
@pytest.mark.parametrize("base", [RBF(1.1), Linear()], ids=kernel_id)
def test_exchanging_the_ends(make, sign, base):
    X, kernel = one_kind(), make(base)
    K = kernel(X)
    np.testing.assert_allclose(kernel(turned(X), X), sign * K, atol=1e-12)
    np.testing.assert_allclose(kernel(turned(X)), K, atol=1e-12)


def test_symmetric_and_antisymmetric_are_parts_of_kronecker():
    X, base = one_kind(), RBF(1.1)
    whole = pk.Symmetric(base)(X) + pk.Antisymmetric(base)(X)
    np.testing.assert_allclose(whole, 2 * pk.Kronecker(base, base)(X), atol=1e-12)


def test_an_object_with_itself_has_no_rank_and_no_distance():
    X = Pairs([[1.0], [4.0]], None, [0, 0, 1], [0, 1, 1])
    for make in (pk.Antisymmetric, pk.Ranking, pk.MLPK):
        K = make("linear")(X)
        np.testing.assert_array_equal(K[[0, 2]], 0)


# --- gradients and parameters ---------------------------------------------------------------


@every_kernel
def test_gradients_are_numerical_derivatives(kernel, rng):
    X = pairs_for(kernel)
    for A, B in ((X, None), (new_pairs_for(kernel, X), X)):
        G = rng.normal(size=(len(A), len(X)))

        def inner(theta, A=A, B=B, G=G):
            return float(np.sum(G * kernel.clone_with_theta(theta)(A, B)))

        gradient = kernel.vjp(A, B, G)
        assert gradient.shape == kernel.theta.shape
        expected = numerical_gradient(inner, kernel.theta).reshape(-1)
        scale = 1 + np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(gradient, expected, atol=1e-6 * scale)


@every_kernel
def test_parameters_are_those_of_the_bases(kernel):
    assert len(kernel.parameter_names) == kernel.theta.size == len(kernel.bounds)
    moved = kernel.clone_with_theta(kernel.theta + 0.1)
    np.testing.assert_allclose(moved.theta, kernel.theta + 0.1)
    assert type(moved) is type(kernel)
    with pytest.raises(ValueError, match="theta"):
        kernel.clone_with_theta(np.zeros(kernel.theta.size + 1))


def test_names_say_the_side():
    kernel = pk.Kronecker(2.0 * RBF(1.3), Matern(0.9, nu=1.5))
    assert kernel.parameter_names == [
        "left Constant.value",
        "left RBF.length_scale",
        "right Matern.length_scale",
    ]
    np.testing.assert_allclose(np.exp(kernel.theta), [2.0, 1.3, 0.9])
    assert pk.Gaussian(2.0).parameter_names == ["Gaussian.length_scale"]
    assert pk.MLPK(RBF(2.0)).parameter_names == ["RBF.length_scale"]


def test_fixed_parameters_are_not_learned():
    kernel = pk.Kronecker(RBF(1.3, length_scale_bounds="fixed"), RBF(2.0))
    assert kernel.parameter_names == ["right RBF.length_scale"]
    X = two_kinds()
    assert kernel.vjp(X, None, np.ones((13, 13))).shape == (1,)
    assert pk.Gaussian(1.0, "fixed").theta.size == 0


@every_kernel
def test_clone_get_and_set_params_pickle_equality(kernel):
    copied = clone(kernel)
    assert copied == kernel
    assert copied is not kernel
    assert hash(copied) == hash(kernel)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert type(kernel)(**kernel.get_params(deep=False)) == kernel


def test_nested_parameters():
    kernel = pk.Kronecker(RBF(1.0), 2.0 * RBF(3.0))
    assert kernel.get_params()["right__right__length_scale"] == 3.0
    kernel.set_params(left__length_scale=5.0)
    assert kernel == pk.Kronecker(RBF(5.0), 2.0 * RBF(3.0))
    assert pk.Symmetric(RBF(1.0)).set_params(kernel__length_scale=2.0) == pk.Symmetric(RBF(2.0))


def test_repr():
    assert repr(pk.Kronecker("linear", RBF(2.0))) == "Kronecker(Linear(), RBF(length_scale=2))"
    assert repr(pk.MLPK(RBF(2.0))) == "MLPK(RBF(length_scale=2))"
    assert repr(pk.Gaussian(2.0)) == "Gaussian(length_scale=2)"


# --- scales from the data -------------------------------------------------------------------


def test_gaussian_scale_is_that_of_the_wide_table():
    X = two_kinds(n=40)
    wide = RBF("scale").resolve(X.to_wide())
    assert pk.Gaussian("scale").resolve(X).length_scale == pytest.approx(
        wide.length_scale, rel=1e-12
    )
    thin = Pairs(sp.csr_array(X.left), X.right, X.left_index, X.right_index)
    assert pk.Gaussian().resolve(thin).length_scale == pytest.approx(wide.length_scale, rel=1e-12)
    weights = np.random.default_rng(0).integers(0, 4, size=40)
    repeated = RBF("scale").resolve(np.repeat(X.to_wide(), weights, axis=0))
    found = pk.Gaussian("scale").resolve(X, weights)
    assert found.length_scale == pytest.approx(repeated.length_scale, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_repeated_pairs_for_scales(name):
    kernel = as_pairwise_kernel(name)
    X = pairs_for(kernel, n=20)
    weights = np.random.default_rng(1).integers(0, 3, size=20)
    weighted = kernel.resolve(X, weights)
    repeated = kernel.resolve(X[np.repeat(np.arange(20), weights)])
    np.testing.assert_allclose(weighted.theta, repeated.theta, rtol=1e-12)
    assert not np.allclose(weighted.theta, kernel.resolve(X).theta, rtol=1e-6)


def test_each_side_has_its_scale():
    X = two_kinds(n=30)
    kernel = pk.Kronecker().resolve(X)
    for side, base in ((X.left[X.left_index], kernel.left), (X.right[X.right_index], kernel.right)):
        assert base.length_scale == pytest.approx(RBF("scale").resolve(side).length_scale)


def test_one_kind_has_the_scale_of_both_ends():
    X = one_kind(n=30)
    ends = np.concatenate([X.left[X.left_index], X.left[X.right_index]])
    found = pk.Symmetric().resolve(X).kernel.length_scale
    assert found == pytest.approx(RBF("scale").resolve(ends).length_scale)


def test_constant_features_have_scale_one():
    X = Pairs([[1.0]], [[1.0]], [0], [0])
    assert pk.Gaussian().resolve(X).length_scale == pytest.approx(np.sqrt(0.5))


def test_numbers_stay():
    kernel = pk.Gaussian(3.0)
    assert kernel.resolve(two_kinds()) == kernel


# --- names and errors -----------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_kernels_by_name(name):
    kernel = as_pairwise_kernel(name)
    assert type(kernel) is NAMES[name]
    if name == "gaussian":
        return
    named = as_pairwise_kernel(name, "linear")
    assert named.bases()[0] == Linear()
    assert named.homogeneous == (name in ("symmetric", "antisymmetric", "ranking", "mlpk"))
    if not named.homogeneous:
        assert as_pairwise_kernel(name, None, "linear").right == Linear()


def test_an_object_is_itself():
    kernel = pk.Kronecker(RBF(1.0), "linear")
    assert as_pairwise_kernel(kernel) is kernel


def test_the_same_kernel_twice_is_one():
    assert as_pairwise_kernel("mlpk", RBF(2.0), RBF(2.0)) == pk.MLPK(RBF(2.0))


BAD = {
    "unknown name": (("kroneker",), ValueError, "pairwise_kernel must be .* got 'kroneker'"),
    "a number": ((3,), TypeError, "pairwise_kernel must be .* got 3"),
    "a kernel of objects": ((RBF(1.0),), TypeError, "pairwise_kernel must be"),
    "kernels besides an object": (
        (pk.MLPK(), "rbf"),
        ValueError,
        "left_kernel must be None when pairwise_kernel is an object",
    ),
    "kernels besides gaussian": (
        ("gaussian", None, "rbf"),
        ValueError,
        "right_kernel must be None for pairwise_kernel='gaussian'",
    ),
    "two kernels of one kind": (
        ("mlpk", "rbf", "linear"),
        ValueError,
        "right_kernel must be None for pairwise_kernel='mlpk'",
    ),
    "only the right kernel of one kind": (
        ("ranking", None, "linear"),
        ValueError,
        "right_kernel must be None",
    ),
    "unknown left kernel": (("kronecker", "rfb"), ValueError, "left_kernel: .*'rfb'"),
    "right kernel of a wrong type": (("kronecker", None, 3.5), TypeError, "right_kernel: "),
    "a pairwise kernel of pairs": (("kronecker", pk.MLPK()), TypeError, "left must be a kernel of"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name):
    arguments, error, message = BAD[name]
    with pytest.raises(error, match=message):
        as_pairwise_kernel(*arguments)


def test_other_things_refused():
    with pytest.raises(TypeError, match=r"Gaussian\(length_scale=...\) must be one number"):
        pk.Gaussian([1.0, 2.0])
    with pytest.raises(ValueError, match="length_scale"):
        pk.Gaussian(-1.0)
    with pytest.raises(TypeError, match="kernel must be a kernel of objects"):
        pk.MLPK(pk.MLPK())
    with pytest.raises(ValueError, match="left has 2 columns, right has 3"):
        pk.MLPK()(two_kinds())


def test_white_noise_belongs_to_the_object(rng):
    """A base kernel may tell an object from one that looks alike: the noise is that of the same row."""
    base = RBF(1.0) + White(0.5)
    X = two_kinds()
    K = pk.Kronecker(base, Linear())(X)
    same = X.left_index[:, None] == X.left_index[None, :]
    right = X.right[X.right_index]
    values = np.array([[kernel_value(RBF(1.0), x, z, False) for z in X.left] for x in X.left])[
        np.ix_(X.left_index, X.left_index)
    ]
    np.testing.assert_allclose(K, (values + 0.5 * same) * (right @ right.T), atol=1e-12)
    assert isinstance(pk.Kronecker(Precomputed(), base).bases()[0], Precomputed)


@pytest.mark.parametrize("make", [pk.Kronecker, pk.Linear, pk.Symmetric])
def test_a_precomputed_kernel_of_objects_stands_alone(make):
    """The tables are the matrices: factors and terms beside them would not be looked at."""
    for kernel in (2.0 * Precomputed(), Precomputed() + White(0.5), Precomputed() ** 2):
        with pytest.raises(
            ValueError, match=r"must be Precomputed\(\) alone.*Combine the matrices"
        ):
            make(kernel)


@every_kernel
def test_odd_kernels_change_sign_with_the_order_of_the_ends(kernel):
    X = pairs_for(kernel)
    if not X.homogeneous:
        assert not kernel.is_odd
        return
    values, exchanged = kernel(X), kernel(turned(X), X)
    np.testing.assert_allclose(exchanged, -values if kernel.is_odd else values, atol=1e-12)
