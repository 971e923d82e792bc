"""Tree codes: products within the error asked for, by whichever method; their cost; solvers; odd inputs."""

import pickle
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tree_oracles import PLACES, errors, make_points, repeatable, rounding, seeds

from gramian import KernelLogisticRegression, KernelRidge, KernelSVC
from gramian.kernels import RBF, Laplacian, Matern, RationalQuadratic, White
from gramian.operators import Streamed, TreeCode, choose_operator, costs
from gramian.operators.tree_code.gaussian_grid import GaussianGrid
from gramian.operators.tree_code.near_cells import NearCells
from gramian.testing import check_operator

pytestmark = pytest.mark.usefixtures("one_thread")

DEAR = {np.float32: (5e7, 5e7), np.float64: (5e7, 5e7)}


@contextmanager
def forced():
    """Streaming looks so expensive that a plan is used wherever there is one, for few points, too."""
    with mock.patch.multiple(costs, ALL_PAIRS_FLOPS=DEAR):
        yield


def kernels(s):
    """Kernels at a length scale, with their variances."""
    return {
        "rbf": (RBF(s), 1.0),
        "matern12": (Matern(s, nu=0.5), 1.0),
        "matern32": (Matern(s, nu=1.5), 1.0),
        "matern52": (Matern(s, nu=2.5), 1.0),
        "rational": (RationalQuadratic(s), 1.0),
        "scaled": (7.0 * RBF(s), 7.0),
        "sum": (RBF(s) + 3.0 * Matern(2 * s), 4.0),
        "nested": (2.0 * (RBF(s) + Matern(s, nu=0.5) * 0.5) + White(0.3), 3.3),
        "partly rational": (RBF(s) + RationalQuadratic(s), 2.0),
        "Manhattan": (Laplacian(s), 1.0),
    }


def reference(kernel, X, Z=None):
    """Differences in float64; kernels themselves expand the square and lose digits."""
    exact = [None if A is None else np.asarray(A, dtype=np.float64) for A in (X, Z)]
    return Streamed(kernel, *exact) @ np.eye(len(X if Z is None else Z))


@repeatable
@given(
    st.sampled_from(list(kernels(1.0))), st.sampled_from(PLACES), st.integers(1, 200), st.integers(1, 6),
    st.floats(-5, 3), errors, st.sampled_from([1, 2, 19]), st.sampled_from([np.float32, np.float64]),
    st.booleans(), seeds,
)  # fmt: skip
def test_products_are_within_the_error(
    name, place, n, d, log_scale, error, k, dtype, symmetric, seed
):
    rng = np.random.default_rng(seed)
    kernel, variance = kernels(10.0**log_scale)[name]
    if "rational" in name:
        dtype = (
            np.float64
        )  # is streamed, by expanded squares: in float32 these lose digits at short length scales
    X = make_points(place, n, d, rng).astype(dtype)
    Z = None if symmetric else make_points("random", 77, d, rng).astype(dtype)
    B = rng.normal(size=(n if symmetric else 77, k)).astype(dtype)
    with forced():
        operator = TreeCode(kernel, X, Z, error=error)
        found = operator @ B
    K = reference(kernel, X, Z)
    largest = float(np.abs(B).max())
    slack = 8.0**d * rounding(np.abs(K), dtype) * largest
    assert found.dtype == dtype
    assert operator.error_bound <= error
    assert np.abs(found - K @ B).max() <= error * variance * largest + slack


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [RBF([0.5, 1.0, 40.0]), RBF(0.3), Matern(0.1) + White(0.1)])
@pytest.mark.parametrize("force", [True, False], ids=["plans", "all-pairs"])
def test_contract(kernel, dtype, force, rng):
    X = rng.normal(size=(60, 3)).astype(dtype)
    X_new = X[:7] + dtype(0.1)
    X.setflags(write=False)
    with forced() if force else nullcontext():
        operator = TreeCode(kernel, X, error=1e-11)
        cross = kernel(X_new.astype(float), X.astype(float))
        check_operator(operator, kernel(X.astype(float)))
        check_operator(TreeCode(kernel, X_new, X, error=1e-11), cross)
        assert ("all pairs" not in operator.methods) == force


# --- which method -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "n", "d", "method"),
    [
        (RBF(0.01), 20_000, 2, "near cells"),
        (Matern(0.01, nu=0.5), 20_000, 2, "near cells"),
        (Matern(0.01), 20_000, 3, "near cells"),
        (RBF(1.0), 20_000, 2, "grid"),
        (RBF(0.3), 20_000, 1, "grid"),
        (RBF(3.0), 20_000, 3, "grid"),
        (RBF(3.0), 2_000, 6, "all pairs"),
        (Matern(1.0), 2_000, 2, "all pairs"),
        (RBF(0.5), 30, 2, "all pairs"),
    ],
)
def test_the_method_is_what_suits(kernel, n, d, method, rng):
    X, b = rng.random((n, d)), rng.normal(size=(n, 1))
    operator = TreeCode(kernel, X, error=1e-6)
    found = operator @ b
    assert operator.methods == (method,)
    few = slice(0, 50)
    expected = Streamed(kernel, X[few], X) @ b
    assert np.abs(found[few] - expected).max() <= 1e-6 * np.abs(b).max() + 1e-10
    assert 0 <= operator.error_bound <= 1e-6
    assert (operator.nbytes > 0) == (method != "all pairs")


@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize("kernel", [RBF, Matern])
@pytest.mark.parametrize("k", [1, 40])
def test_never_many_more_kernel_values_than_streaming(d, kernel, k, rng):
    """At every length scale from nothing near to everything near; k columns, then other numbers of them."""
    X = rng.random((1500, d))
    for scale in np.geomspace(1e-3, 10, 9):
        operator = TreeCode(kernel(scale), X, error=1e-6)
        operator @ np.ones((1500, k))
        (plan,) = operator._plans.values()
        for columns in (1, k, 40):
            streamed = 1500**2 * (0.5 if columns <= costs.MIRRORED_COLUMNS else 1.0)
            with mock.patch.object(NearCells, "product", autospec=True) as near:
                operator @ np.ones((1500, columns))
            if near.called:
                assert plan.n_pairs <= 1.2 * streamed


def test_a_grid_for_one_column_is_not_used_for_many(rng):
    """It costs as much for each column, while streamed kernel values serve all of them."""
    X = rng.random((3000, 3))
    operator = TreeCode(RBF(0.8), X, error=1e-9)
    operator @ np.ones((3000, 1))
    (plan,) = operator._plans.values()
    assert isinstance(plan, GaussianGrid)
    with mock.patch.object(GaussianGrid, "product", autospec=True) as product:
        operator @ np.ones((3000, 1))
        assert product.called
        product.reset_mock()
        operator @ np.ones((3000, 200))
        assert not product.called


def test_terms_have_plans_of_their_own(rng):
    X = rng.random((3000, 2))
    operator = TreeCode(2.0 * RBF(0.005) + RBF(2.0) + Matern(3.0) + White(0.1), X)
    assert operator.methods == ()
    assert operator.error_bound == 0.0
    operator @ np.ones((3000, 1))
    assert operator.methods == ("near cells", "grid", "all pairs")
    assert 0 < operator.error_bound <= 1e-8


# --- odd inputs -------------------------------------------------------------------------------


def test_layout_of_the_examples_does_not_matter(rng):
    X, b = rng.random((501, 3)), rng.normal(size=(501, 2))
    frozen = X.copy()
    frozen.setflags(write=False)
    with forced():
        expected = TreeCode(RBF(0.05), X) @ b
        for other in (frozen, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
            np.testing.assert_array_equal(TreeCode(RBF(0.05), other) @ b, expected)


@pytest.mark.parametrize("kernel", [RBF(0.1), Matern(0.1), RBF([0.1, 5.0])])
def test_nothing_to_multiply(kernel, rng):
    X = rng.random((50, 2))
    with forced():
        operator = TreeCode(kernel, X)
        assert (operator @ np.empty((50, 0))).shape == (50, 0)
        nowhere = TreeCode(kernel, np.empty((0, 2)), X) @ np.ones((50, 3))
        assert nowhere.shape == (0, 3)
        nobody = TreeCode(kernel, X, np.empty((0, 2))) @ np.empty((0, 3))
    np.testing.assert_array_equal(nobody, np.zeros((50, 3)))
    assert operator.methods == ()


@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.3), RBF([0.3, 0.5])])
def test_a_feature_without_spread(kernel, rng):
    X = np.column_stack([rng.random(400), np.full(400, 1e8)])
    b = rng.normal(size=(400, 1))
    with forced():
        np.testing.assert_allclose(TreeCode(kernel, X) @ b, reference(kernel, X) @ b, atol=1e-7)


def test_plans_are_not_pickled(rng):
    X, b = rng.random((2000, 2)), rng.normal(size=(2000, 1))
    operator = TreeCode(RBF(0.01), X)
    before = operator @ b
    copy = pickle.loads(pickle.dumps(operator))
    assert copy.methods == ()
    assert len(pickle.dumps(operator)) < X.nbytes + 4000
    np.testing.assert_array_equal(copy @ b, before)


def test_what_is_refused(rng):
    X = rng.random((20, 2))
    for other in (sp.csr_array(X), SimpleNamespace(shape=(20, 2), dtype=np.float64)):
        with pytest.raises(TypeError, match=r"tree_code.*needs NumPy arrays.*streamed"):
            TreeCode(RBF(), other)
    with pytest.raises(TypeError, match="needs NumPy arrays"):
        KernelRidge(operator="tree_code", regularization=1.0).fit(sp.csr_array(X), X[:, 0])
    for error in (0.0, 1.0, -1e-3, np.nan):
        with pytest.raises(ValueError, match="error must lie between 0 and 1"):
            TreeCode(RBF(), X, error=error)


# --- in solvers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [RBF(0.1), RBF(1.0), Matern(0.05), 2.0 * Matern(0.1, nu=0.5)])
@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(regularization=0.1),
        KernelRidge(regularization=0.1, solver="kernel_cg"),
        KernelRidge(regularization=0.1, solver="newton"),
        KernelLogisticRegression(regularization=0.1, solver="newton"),
        KernelSVC(regularization=0.1),
    ],
    ids=["ridge", "ridge-cg", "ridge-newton", "logistic", "svc"],
)
def test_estimators_agree_with_a_stored_matrix(model, kernel, rng):
    X, X_new = rng.random((250, 2)), rng.random((60, 2))
    y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1])
    if not isinstance(model, KernelRidge):
        y = np.digitize(y, [-0.3, 0.3])
    answers = []
    with forced():
        for name in ("dense", "tree_code"):
            fitted = model.set_params(kernel=kernel, operator=name, tol=1e-15).fit(X, y)
            assert fitted.operator_.name == name
            predict = getattr(fitted, "decision_function", fitted.predict)
            answers.append(predict(X_new))
    np.testing.assert_allclose(answers[1], answers[0], atol=1e-6)


def test_chosen_by_name(rng):
    operator, record = choose_operator(RBF(), rng.random((30, 2)), "tree_code")
    assert isinstance(operator, TreeCode)
    assert record.name == "tree_code"
