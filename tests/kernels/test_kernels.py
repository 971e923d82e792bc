"""Kernels: the contract, the naive double loop, scikit-learn, algebra, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import KERNELS, gram, is_noisy, kernel_id, precomputed_case
from sklearn.gaussian_process import kernels as sk
from sklearn.metrics import pairwise
from sklearn.model_selection import ParameterGrid

import gramian.kernels
from gramian._core.arrays import to_numpy
from gramian.kernels import (
    RBF,
    Constant,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Power,
    Precomputed,
    Product,
    RationalQuadratic,
    Sum,
    White,
    as_kernel,
)
from gramian.testing import check_kernel

every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)


# --- the contract and the double loop -----------------------------------------------------------


@every_kernel
def test_keeps_the_contract(kernel, X, X_new):
    check_kernel(kernel, X, X_new, noisy=is_noisy(kernel))


def test_precomputed_keeps_the_contract():
    kernel, K, K_new = precomputed_case()
    check_kernel(kernel, K, K_new)
    check_kernel(2.0 * kernel + White(0.1), K, K_new, noisy=True)


@every_kernel
def test_values_are_those_of_a_double_loop(kernel, X, X_new):
    kernel = kernel.resolve(X)
    tolerance = {"rtol": 1e-7, "atol": 1e-7}  # Matérn 1/2 takes the root of a rounded distance
    np.testing.assert_allclose(kernel(X), gram(kernel, X), **tolerance)
    np.testing.assert_allclose(kernel(X_new, X), gram(kernel, X_new, X), **tolerance)
    np.testing.assert_allclose(
        kernel(X[3:7], X, offset=3), gram(kernel, X[3:7], X, offset=3), **tolerance
    )


@every_kernel
def test_other_array_libraries_give_the_values_of_numpy(kernel, X, X_new, xp):
    kernel = kernel.resolve(X)
    X_xp, new_xp = xp.asarray(X.copy()), xp.asarray(X_new.copy())
    G = np.linspace(-1, 1, 6 * 14).reshape(6, 14)
    values = kernel(new_xp, X_xp)
    assert type(values) is type(X_xp)
    np.testing.assert_allclose(to_numpy(values), kernel(X_new, X), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(to_numpy(kernel(X_xp)), kernel(X), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(to_numpy(kernel.diag(X_xp)), kernel.diag(X), rtol=1e-12)
    np.testing.assert_allclose(
        kernel.vjp(new_xp, X_xp, xp.asarray(G)), kernel.vjp(X_new, X, G), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(
    "kernel", [RBF("scale"), Matern("scale"), Laplacian("scale"), Polynomial(gamma="scale")]
)
def test_scale_is_found_in_any_array_library(kernel, X, xp):
    resolved = kernel.resolve(xp.asarray(X.copy()))
    np.testing.assert_allclose(resolved.theta, kernel.resolve(X).theta, rtol=1e-12)


# --- independent references ---------------------------------------------------------------------

SKLEARN_TWINS = [
    (RBF(0.7), sk.RBF(0.7)),
    (RBF([0.5, 1.0, 3.0]), sk.RBF([0.5, 1.0, 3.0])),
    (Matern(1.5, nu=0.5), sk.Matern(1.5, nu=0.5)),
    (Matern([0.5, 1.0, 3.0], nu=1.5), sk.Matern([0.5, 1.0, 3.0], nu=1.5)),
    (Matern([0.5, 1.0, 3.0], nu=2.5), sk.Matern([0.5, 1.0, 3.0], nu=2.5)),
    (RationalQuadratic(1.5, alpha=0.7), sk.RationalQuadratic(length_scale=1.5, alpha=0.7)),
    (Constant(2.0) * RBF(0.7) + White(0.3), sk.ConstantKernel(2.0) * sk.RBF(0.7) + sk.WhiteKernel(0.3)),
    ((Linear() + Constant(1.5)) ** 2, sk.DotProduct(sigma_0=1.5**0.5) ** 2),
]  # fmt: skip


@pytest.mark.parametrize("ours, theirs", SKLEARN_TWINS, ids=lambda k: repr(k).replace(" ", ""))
def test_values_and_gradients_are_those_of_scikit_learn(ours, theirs, X, X_new, rng):
    values, jacobian = theirs(X, eval_gradient=True)
    np.testing.assert_allclose(ours(X), values, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours(X_new, X), theirs(X_new, X), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.diag(X), theirs.diag(X), rtol=1e-12)
    G = rng.normal(size=values.shape)
    expected = np.einsum("ij,ijp->p", G, jacobian)
    # scikit-learn sorts the hyperparameters of one kernel by name, and sigma_0² is our constant
    if isinstance(theirs, sk.RationalQuadratic):
        expected = expected[::-1]
    if isinstance(theirs, sk.Exponentiation):
        expected = expected / 2
    np.testing.assert_allclose(ours.vjp(X, None, G), expected, rtol=1e-6, atol=1e-7)


def test_values_are_those_of_pairwise_metrics(X, X_new):
    twins = [
        (Linear(), pairwise.linear_kernel(X_new, X)),
        (RBF(2.0), pairwise.rbf_kernel(X_new, X, gamma=1 / 8)),
        (Polynomial(3, 0.5, 2.0), pairwise.polynomial_kernel(X_new, X, 3, 0.5, 2.0)),
        (Laplacian(2.0), pairwise.laplacian_kernel(X_new, X, gamma=1 / 2)),
        (Matern(nu=0.5), np.exp(-pairwise.euclidean_distances(X_new, X))),
    ]
    for kernel, expected in twins:
        np.testing.assert_allclose(kernel(X_new, X), expected, rtol=1e-9, err_msg=repr(kernel))


def test_scale_is_the_gamma_of_scikit_learns_svc(X):
    gamma = 1 / (X.shape[1] * X.var())
    np.testing.assert_allclose(RBF("scale").resolve(X)(X), pairwise.rbf_kernel(X, gamma=gamma))
    polynomial = Polynomial(gamma="scale").resolve(X)
    np.testing.assert_allclose(polynomial(X), pairwise.polynomial_kernel(X, gamma=gamma))


def test_scale_of_sparse_rows_counts_the_zeros(X):
    thin = np.where(X > 0, X, 0.0)
    dense, sparse = RBF("scale").resolve(thin), RBF("scale").resolve(sp.csr_array(thin))
    assert dense.length_scale == pytest.approx(sparse.length_scale, rel=1e-12)


def test_scale_of_constant_data_is_one():
    assert RBF("scale").resolve(np.ones((4, 2))).length_scale == pytest.approx(0.5**0.5)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_scale_counts_an_example_of_weight_two_twice(X, kind):
    weights = np.ones(len(X))
    weights[:5] = 2.0
    weights[5] = 0.0
    rows = np.concatenate([np.arange(5), np.arange(5), np.arange(6, len(X))])
    for kernel in (RBF("scale") + Matern("scale"), Polynomial(gamma="scale") ** 2):
        weighted = kernel.resolve(kind(X), weights)
        np.testing.assert_allclose(weighted.theta, kernel.resolve(X[rows]).theta, rtol=1e-10)


# --- numerics -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [RBF(), Matern(nu=0.5), Matern(nu=2.5), RationalQuadratic(), Laplacian()]
)
def test_values_survive_a_shift_of_the_data(kernel, X):
    """Distances by one matrix product cancel far from the origin; centring saves the digits."""
    np.testing.assert_allclose(kernel(X + 1e4), kernel(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype, atol", [(np.float32, 1e-3), (np.float64, 1e-7)])
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_of_an_example_and_its_copy_is_one(nu, dtype, atol, rng):
    """The root magnifies rounding: a distance of 1e-8 instead of 0 would show."""
    X = rng.normal(size=(40, 30)).astype(dtype)
    values = np.diagonal(Matern(0.3, nu=nu)(X, X.copy()))
    np.testing.assert_allclose(values, 1, atol=atol)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("length_scale", [0.05, [0.05] * 30], ids=["isotropic", "ARD"])
def test_matern_gradient_of_an_example_and_its_copy_is_zero(nu, length_scale, rng):
    """At distance zero nothing depends on the length scale, whatever rounding says."""
    X = rng.normal(size=(40, 30)).astype(np.float32)
    G = np.eye(40, dtype=np.float32)
    gradient = Matern(length_scale, nu=nu).vjp(X, X.copy(), G)
    np.testing.assert_allclose(gradient, 0, atol=1e-4)


short_scales = pytest.mark.parametrize("length_scale", [1e-3, 1e-8, 1e-30, 1e-200, 1e-310])
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])


@both_dtypes
@short_scales
@pytest.mark.parametrize("make", [RBF, Matern, RationalQuadratic, Laplacian])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_at_short_length_scales_examples_equal_their_copies_only(
    make, kind, length_scale, dtype, X
):
    """Rounding errors of distances grow with 1/ℓ², and distances overflow: neither may show."""
    X = X.astype(dtype)
    tolerance = 1e-3 if length_scale == 1e-3 else 1e-7
    for scale in (length_scale, [length_scale] * 3):
        K = make(scale)(kind(X), kind(X.copy()))
        np.testing.assert_allclose(K, np.eye(len(X)), atol=tolerance)


@both_dtypes
@pytest.mark.parametrize("make", [RBF, Matern, RationalQuadratic, Laplacian])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_at_endless_length_scales_all_examples_are_equal(make, kind, dtype, X):
    for scale in (1e300, [1e300] * 3):
        np.testing.assert_array_equal(make(scale)(kind(X.astype(dtype))), np.ones((14, 14)))


def test_one_short_length_scale_among_others_separates(X):
    np.testing.assert_array_equal(RBF([1e300, 1.0, 1e-300])(X), np.eye(14))
    flat = X * [1.0, 1.0, 0.0]
    np.testing.assert_allclose(RBF([1e300, 1.0, 1e-300])(flat), RBF(1.0)(X[:, 1:2]), atol=1e-12)


@short_scales
@pytest.mark.parametrize("make", [RBF, Matern, RationalQuadratic, Laplacian])
def test_gradients_at_short_length_scales_are_finite(make, length_scale, X, rng):
    G = rng.normal(size=(14, 14))
    for scale in (length_scale, [length_scale] * 3):
        assert np.isfinite(make(scale).vjp(X, None, G)).all()


def test_white_noise_knows_rows_by_position_not_by_value():
    X = np.ones((3, 2))
    np.testing.assert_array_equal(White(0.5)(X), 0.5 * np.eye(3))
    np.testing.assert_array_equal(White(0.5)(X, X.copy()), np.zeros((3, 3)))
    np.testing.assert_array_equal(White(0.5)(X[1:2], X, offset=1), [[0.0, 0.5, 0.0]])


def test_gradients_cost_no_array_per_parameter(rng):
    """With 500 length scales an n × n × p array would take 720 MB; vjp stays with matrices."""
    import tracemalloc

    n, d = 400, 500
    X, G = rng.normal(size=(n, d)), rng.normal(size=(n, n))
    kernel = RBF(np.full(d, 20.0))
    tracemalloc.start()
    gradient = kernel.vjp(X, None, G)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert gradient.shape == (d,)
    assert peak < 12 * 8 * n * max(n, d)


# --- algebra and printing -----------------------------------------------------------------------


def test_kernels_and_numbers_combine():
    kernel = RBF(2.0)
    assert kernel + 1 == Sum(kernel, Constant(1.0))
    assert 1 + kernel == Sum(Constant(1.0), kernel)
    assert 3 * kernel == Product(Constant(3.0), kernel)
    assert kernel * np.float64(3) == Product(kernel, Constant(3.0))
    assert np.float64(3) * kernel == Product(Constant(3.0), kernel)
    assert kernel**2 == Power(kernel, 2)
    with pytest.raises(TypeError, match="kernels and numbers"):
        kernel + "white"


def test_theta_of_a_sum_is_left_then_right():
    kernel = Constant(2.0) * RBF([1.0, 3.0]) + White(0.5)
    np.testing.assert_allclose(np.exp(kernel.theta), [2.0, 1.0, 3.0, 0.5])
    assert kernel.bounds.shape == (4, 2)


def test_fixed_parameters_are_not_in_theta():
    kernel = Constant(2.0, value_bounds="fixed") * RBF(3.0) + White(0.5, noise_bounds="fixed")
    np.testing.assert_allclose(np.exp(kernel.theta), [3.0])
    moved = kernel.clone_with_theta(np.log([7.0]))
    assert (moved.left.left.value, moved.right.noise) == (2.0, 0.5)
    assert moved.left.right.length_scale == pytest.approx(7.0)
    assert moved.right.noise_bounds == "fixed"


def test_each_length_scale_may_have_bounds_of_its_own():
    bounds = [(0.1, 1.0), (0.2, 2.0), (0.3, 3.0)]
    np.testing.assert_allclose(np.exp(RBF([0.5] * 3, bounds).bounds), bounds)


def test_a_polynomial_offset_of_zero_stays_zero():
    kernel = Polynomial(2, gamma=0.5, coef0=0.0)
    assert kernel.theta.size == 1
    assert kernel.clone_with_theta(np.array([0.3])).coef0 == 0.0


@every_kernel
def test_what_is_printed_can_be_read_back(kernel, X):
    names = {name: getattr(gramian.kernels, name) for name in gramian.kernels.__all__}
    again = eval(repr(kernel), names)
    np.testing.assert_allclose(again.resolve(X)(X), kernel.resolve(X)(X), rtol=1e-10)


def test_a_power_of_a_power_is_printed_with_brackets(X):
    kernel = (RBF(2.0) ** 2) ** 3
    again = eval(repr(kernel), {"RBF": RBF})
    np.testing.assert_allclose(again(X), kernel(X))


def test_many_length_scales_are_printed_short():
    assert repr(RBF(np.arange(1.0, 100.0))) == "RBF(length_scale=[1, 2, 3, ..., 98, 99])"


@every_kernel
def test_kernels_differ_from_one_another(kernel):
    assert [other for other in KERNELS if other == kernel] == [kernel]


def test_nested_parameters_can_be_set_as_in_a_grid_search():
    kernel = 2.0 * RBF(1.0) + White(0.1)
    grid = ParameterGrid({"left__right__length_scale": [0.5, 5.0], "right__noise": [0.3]})
    found = [kernel.set_params(**point).left.right.length_scale for point in grid]
    assert found == [0.5, 5.0]
    assert kernel.right.noise == 0.3


@settings(deadline=None, derandomize=True, max_examples=30)
@given(
    st.recursive(
        st.sampled_from([k for k in KERNELS if not isinstance(k, (Sum, Product, Power))]),
        lambda inner: st.one_of(
            st.builds(Sum, inner, inner), st.builds(Product, inner, inner), st.builds(Power, inner, st.just(2))
        ),
        max_leaves=4,
    )
)  # fmt: skip
def test_any_combination_keeps_values_diagonal_and_theta(kernel):
    X = np.random.default_rng(3).normal(size=(5, 3))
    kernel = kernel.resolve(X)
    K = gram(kernel, X)
    scale = np.abs(K).max()
    np.testing.assert_allclose(kernel(X), K, atol=1e-7 * scale)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(K), atol=1e-7 * scale)
    same = kernel.clone_with_theta(kernel.theta)
    np.testing.assert_allclose(same(X), kernel(X), atol=1e-10 * scale)


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: RBF(-1.0), ValueError, r"RBF\(length_scale=...\) must be positive"),
        (lambda: RBF([1.0, 0.0]), ValueError, "positive and finite"),
        (lambda: RBF(np.nan), ValueError, "positive and finite"),
        (lambda: RBF("auto"), ValueError, '"scale"'),
        (lambda: RBF(None), ValueError, "positive and finite"),
        (lambda: RBF({}), TypeError, "positive number"),
        (lambda: RBF(1.0, (2.0, 1.0)), ValueError, "0 < low <= high"),
        (lambda: RBF(1.0, "free"), ValueError, '"fixed" or a pair'),
        (lambda: Matern(nu=2.0), ValueError, "0.5, 1.5 or 2.5"),
        (lambda: RationalQuadratic(alpha=0.0), ValueError, "alpha"),
        (lambda: Polynomial(degree=1.5), ValueError, "whole number"),
        (lambda: Polynomial(gamma="auto"), ValueError, '"scale"'),
        (lambda: Polynomial(coef0=-1.0), ValueError, "coef0"),
        (lambda: Constant(0.0), ValueError, r"Constant\(value=...\)"),
        (lambda: White(-0.1), ValueError, r"White\(noise=...\)"),
        (lambda: RBF() ** -1.0, ValueError, "exponent"),
        (lambda: Sum(RBF(), 1.0), TypeError, "right must be a kernel"),
        (lambda: Power(2.0, 2), TypeError, "kernel must be a kernel"),
        (lambda: RBF().set_params(length_scale=-1.0), ValueError, "positive"),
        (lambda: as_kernel("gaussian"), ValueError, "'rbf'"),
        (lambda: as_kernel(3), TypeError, "'rbf'"),
    ],
)
def test_bad_parameters_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_the_number_of_length_scales_must_fit_the_features(X):
    with pytest.raises(ValueError, match="2 entries, but X has 3 features"):
        RBF([1.0, 2.0])(X)
    with pytest.raises(ValueError, match="2 entries, but X has 3 features"):
        Matern([1.0, 2.0]).resolve(X)


def test_an_unresolved_scale_says_what_to_do(X):
    for ask in (lambda k: k(X), lambda k: k.theta):
        with pytest.raises(ValueError, match=r"kernel\.resolve\(X\)"):
            ask(RBF("scale"))


def test_a_precomputed_matrix_must_be_square_to_have_a_diagonal():
    with pytest.raises(ValueError, match="square"):
        Precomputed().diag(np.ones((2, 3)))


@pytest.mark.parametrize(
    "name", ["rbf", "matern12", "matern32", "matern52", "linear", "polynomial"]
)
def test_names_stand_for_kernels(name, X):
    kernel = as_kernel(name).resolve(X)
    assert kernel(X).shape == (14, 14)
    assert as_kernel(kernel) is kernel


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "kernel, words",
    [
        (Constant(1e300) * RBF(1.0), r"Constant\(value=1e\+300\)"),
        (RBF(1.0) + White(1e200), r"White\(noise=1e\+200\)"),
        (Polynomial(3, gamma=1e200), r"gamma=1e\+200"),
        (Polynomial(3, coef0=1e200), r"coef0=1e\+200"),
        (Constant(1e100) * (Constant(1e100) * RBF()), r"value=1e\+100\) \* \(Constant"),
        ((Constant(1e100) * RBF()) ** 4, r"\*\* 4 has values up to inf"),
    ],
)
def test_values_that_overflow_are_refused_before_a_fit(kernel, words, X, xp):
    with pytest.raises(ValueError, match=f"overflowed: .*{words}.* Give smaller parameters"):
        kernel.resolve(xp.asarray(X.copy()))


def test_single_precision_overflows_earlier(X):
    kernel = Constant(1e50) * RBF()
    assert kernel.resolve(X) == kernel
    with pytest.raises(ValueError, match="14 examples in float32"):
        kernel.resolve(X.astype(np.float32))
