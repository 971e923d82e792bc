"""SMO: its box problem, its rows, and numbers that are hard on it. What all margin solvers share is elsewhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margin_oracles import mirrored_svc, primal, random_correlation, random_margins
from sklearn.exceptions import ConvergenceWarning

from gramian import M3LClassifier
from gramian.kernels import RBF, Linear, White
from gramian.operators import GramRows
from gramian.solvers import MarginProblem, smo
from gramian.solvers.margin.smo_loops import _box_maximum, active_points

pytestmark = pytest.mark.usefixtures("one_thread")


def noisy_labels(seed: int = 0, n: int = 60, n_labels: int = 4):
    """Points, signs and a correlation."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    scores = np.sin(X @ rng.normal(size=(5, n_labels))) + 0.3 * rng.normal(size=(n, n_labels))
    signs = np.where(scores > 0, 1, -1).astype(np.int8)
    return X, signs, random_correlation(rng, n_labels)


# --- two coefficients ---------------------------------------------------------------------------

ends = st.tuples(st.floats(0, 3), st.floats(0, 3))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    g=st.tuples(st.floats(-5, 5), st.floats(-5, 5)),
    scales=st.tuples(st.floats(0.1, 3), st.floats(0.1, 3)),
    cosine=st.floats(-0.999, 0.999),
    below=ends,
    above=ends,
)
def test_the_best_point_of_a_box(g, scales, cosine, below, above):
    k = (scales[0], scales[1], cosine * np.sqrt(scales[0] * scales[1]))
    lower = (-below[0], -below[1])
    x, z = _box_maximum(g, k, lower, above)
    assert lower[0] <= x <= above[0]
    assert lower[1] <= z <= above[1]
    # concave: optimal iff no coordinate can follow its gradient
    slopes = (g[0] - k[0] * x - k[2] * z, g[1] - k[1] * z - k[2] * x)
    for slope, point, low, high in zip(slopes, (x, z), lower, above):
        assert slope <= 1e-7 or point == high
        assert slope >= -1e-7 or point == low


def test_points_that_are_passed_over():
    g = np.array([-3.0, -1.0, 3.0, 1.0, 3.0, -3.0, 3.0])
    rise = np.array([1, 1, 0, 0, 1, 1, 0], dtype=np.int8)
    fall = np.array([0, 0, 1, 1, 1, 1, 0], dtype=np.int8)
    # at a bound and far outside: 0 and 2; without room: 6
    np.testing.assert_array_equal(active_points(g, rise, fall, 2.0), [1, 3, 4, 5])


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [2, 7, 59])
def test_cached_rows_lead_to_the_same_solution(kept):
    X, signs, R = noisy_labels()
    whole = MarginProblem(GramRows(RBF(2.0), X, 1.0), signs, R)
    pieces = MarginProblem(GramRows(RBF(2.0), X, 1.0, nbytes=8 * len(X) * kept), signs, R)
    stored, cached = smo(whole, tol=1e-8), smo(pieces, tol=1e-8)
    np.testing.assert_allclose(cached.objective, stored.objective, rtol=1e-7)
    latent = whole.latent(stored.coefficients)
    np.testing.assert_allclose(pieces.latent(cached.coefficients), latent, atol=1e-3)


def test_labels_share_rows():
    X, signs, R = noisy_labels()
    rows = GramRows(RBF(2.0), X, nbytes=8 * 60 * 59)
    smo(MarginProblem(rows, signs, R))
    assert rows.matrix is None
    assert rows.n_computed < 100
    assert rows.n_hits > 5 * rows.n_computed


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("nbytes", [None, 4 * 60 * 20])
def test_single_precision_rows_reach_a_small_gap(nbytes):
    X, signs, R = noisy_labels()
    single = GramRows(RBF(2.0), X.astype(np.float32), 1.0, nbytes=nbytes)
    solution = smo(MarginProblem(single, signs, R), tol=1e-6)
    double = smo(MarginProblem(GramRows(RBF(2.0), X, 1.0), signs, R), tol=1e-6)
    assert solution.relative_gap < 1e-5  # most of it is what the rounding of the matrix may hide
    assert solution.coefficients.dtype == np.float64
    np.testing.assert_allclose(solution.objective, double.objective, rtol=1e-5)


def test_white_noise_and_a_read_only_matrix():
    X, signs, R = noisy_labels(n=30)
    kernel = RBF(2.0) + White(0.5)
    K = kernel(X)
    rows = GramRows(kernel, X, nbytes=8 * 30 * 6)
    solution = smo(MarginProblem(rows, signs, R), tol=1e-9)
    expected = primal(
        K, signs, R, np.ones(signs.shape), np.ones(signs.shape), solution.coefficients
    )
    np.testing.assert_allclose(solution.objective, expected, rtol=1e-10)
    stored = GramRows(kernel, X)
    stored.matrix.setflags(write=False)
    again = smo(MarginProblem(stored, signs, R), tol=1e-9)
    np.testing.assert_allclose(again.objective, expected, rtol=1e-8)


def test_features_are_refused():
    X, signs, R = noisy_labels()
    with pytest.raises(TypeError, match=r"GramRows\(kernel, X\)"):
        smo(MarginProblem(X, signs, R))


# --- numbers --------------------------------------------------------------------------------------


def test_repeated_points():
    X, signs, R = noisy_labels(n=20)
    problem = MarginProblem(
        GramRows(RBF(2.0), np.repeat(X, 3, axis=0)), np.repeat(signs, 3, axis=0), R
    )
    heavy = MarginProblem(GramRows(RBF(2.0), X), signs, R, caps=3.0)
    one, other = (smo(some, tol=1e-9).objective for some in (problem, heavy))
    np.testing.assert_allclose(one, other, rtol=1e-8)


@pytest.mark.parametrize("noise", [1e-9, 1e-5])
def test_nearly_repeated_points_with_opposite_signs(noise):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(15, 3)), 2, axis=0)
    X += noise * rng.normal(size=X.shape)
    signs = np.tile([1, -1], 15)[:, None].astype(np.int8)
    solution = smo(MarginProblem(GramRows(RBF(1.0), X), signs, caps=10.0), tol=1e-6)
    assert solution.status == "converged"


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_kernels_of_any_scale(scale):
    X, signs, R = noisy_labels(n=40)
    expected = smo(MarginProblem(GramRows(RBF(2.0), X), signs, R), tol=1e-8).objective
    rows = GramRows(scale * RBF(2.0), X)
    scaled = smo(MarginProblem(rows, signs, R, caps=1 / scale), tol=1e-8)
    np.testing.assert_allclose(scaled.objective * scale, expected, rtol=1e-7)


def test_a_hard_kernel_machine_is_libsvms():
    X, signs, _ = noisy_labels(n=100)
    K = RBF(1.5)(X) + 1.0
    caps = np.full(signs.shape, 20.0)
    A = mirrored_svc(K, signs, caps)
    solution = smo(MarginProblem(GramRows(RBF(1.5), X, 1.0), signs, caps=caps), tol=1e-8)
    value = (signs * A).sum() - 0.5 * (A * (K @ A)).sum()
    np.testing.assert_allclose(solution.objective, value, rtol=1e-6)
    np.testing.assert_array_equal(np.sign(K @ solution.coefficients), np.sign(K @ A))


def test_a_callback_can_interrupt():
    def callback(progress):
        raise KeyboardInterrupt

    data = random_margins(0, n=12, d=4, n_labels=3)
    problem = MarginProblem(GramRows(Linear(), data.X), data.signs, data.R)
    with pytest.raises(KeyboardInterrupt):
        smo(problem, callback=callback, tol=1e-12)


def test_rounding_errors_end_sweeps_that_would_crawl_for_hours(rng):
    # entries of 5e6 in single precision are rounded by more than they differ: neither moves nor leaps get anywhere
    X = rng.normal(size=(60, 3))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    K = (5e6 * np.exp(-1e-4 * squares)).astype(np.float32)
    Y = (rng.random((60, 2)) < 0.5).astype(int)
    model = M3LClassifier(
        1e3, kernel="precomputed", loss="correlation", solver="smo", max_iter=2**62
    )
    with pytest.warns(ConvergenceWarning, match="rounding errors"):
        model.fit(K, Y)
    assert model.solution_.status == "stalled"
    assert model.n_iter_ < 2000
