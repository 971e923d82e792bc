"""The orthogonal penalty: convexity, its limits, subgradients, and the maximum over signs.

Zhou, Xiao & Wu (2011), theorems 1 and 4, corollary 2.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from gramian.labels import (
    OrthogonalPenalty,
    QuadraticPenalty,
    Taxonomy,
    comparison_matrix,
    largest_alpha,
    orthogonality_weights,
    smallest_eigenvalue,
)
from gramian.labels.margins.orthogonality import sparse_orthogonality_weights, with_unit_diagonal

PAIRS = 200  # of points for each of the matrices that hypothesis draws

drawn = given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 7),
    d=st.integers(1, 8),
    share=st.sampled_from([0.3, 0.9, 1.0]),
)
thirty = settings(max_examples=30, deadline=None, derandomize=True)


def random_weights(rng, m, share):
    """K ≥ 0, some of it zero, with entries off the diagonal at a share of what convexity allows."""
    K = rng.exponential(size=(m, m)) * (rng.random((m, m)) < 0.7)
    K = np.triu(K, 1) + np.triu(K, 1).T + np.diag(rng.uniform(0.2, 3, size=m))
    limit = largest_alpha(K)
    return scaled(K, share * limit) if np.isfinite(limit) else K


def scaled(K, factor):
    """K with what is off the diagonal multiplied."""
    D = np.diag(np.diag(K))
    return D + factor * (K - D)


def omega(K, W):
    """½ Σ K_ij |w_iᵀ w_j| for many W, shape (..., m, d)."""
    return 0.5 * np.sum(K * np.abs(W @ np.swapaxes(W, -1, -2)), axis=(-1, -2))


def points(rng, m, d):
    """Points (PAIRS, m, d): half of them of small integers, which are often exactly orthogonal, or zero."""
    W = rng.normal(size=(PAIRS, m, d)) * 10.0 ** rng.uniform(-2, 2, size=(PAIRS, 1, 1))
    W[::2] = rng.integers(-1, 2, size=W[::2].shape)
    return W


def allowed(*values):
    """Rounding errors of sums of such sizes."""
    return 1e-12 * (1.0 + sum(np.abs(value) for value in values))


# --- theorem 1, corollary 2, theorem 4 ------------------------------------------------------------


@thirty
@drawn
def test_convex_with_the_smallest_eigenvalue_as_modulus(seed, m, d, share):
    rng = np.random.default_rng(seed)
    K = random_weights(rng, m, share)
    modulus = smallest_eigenvalue(K)
    assert modulus >= -1e-12
    u, v, t = points(rng, m, d), points(rng, m, d), rng.random(PAIRS)
    # near each other, too: there the curvature is what counts
    v[1::2] = u[1::2] + 1e-2 * v[1::2]
    s = t[:, None, None]
    middle = omega(K, s * u + (1 - s) * v)
    ends = t * omega(K, u) + (1 - t) * omega(K, v)
    bend = 0.5 * t * (1 - t) * np.sum((u - v) ** 2, axis=(1, 2))
    assert np.all(middle <= ends + allowed(ends))
    assert np.all(middle <= ends - modulus * bend + allowed(ends, modulus * bend))


def mutually_obtuse(m):
    """w_i = e_i − 1/m, whose inner products are all negative (appendix A.2)."""
    return np.eye(m) - 1.0 / m


@thirty
@drawn
def test_not_convex_beyond_the_condition(seed, m, d, share):
    """Around mutually obtuse normals Ω is the quadratic form of K̄: an eigenvector shows its negative curvature."""
    rng = np.random.default_rng(seed)
    K = random_weights(rng, m, 1.0)
    if not (K - np.diag(np.diag(K))).any():
        return  # a diagonal K is always convex
    K = scaled(K, 1.05 + share)
    values, vectors = np.linalg.eigh(comparison_matrix(K))
    assert values[0] < 0
    W = mutually_obtuse(m)
    direction = rng.normal(size=m)
    direction /= np.linalg.norm(direction)
    step = 0.05 / m * np.outer(vectors[:, 0], direction)
    for sign in (-1, 1):
        gram = (W + sign * step) @ (W + sign * step).T
        assert np.all(gram[~np.eye(m, dtype=bool)] < 0)  # Ω is still this form
    middle, ends = omega(K, W), 0.5 * (omega(K, W + step) + omega(K, W - step))
    np.testing.assert_allclose(ends - middle, 0.5 * values[0] * np.sum(step**2), rtol=1e-6)
    assert ends < middle


def test_the_modulus_is_exact():
    """Along the eigenvector of λ_min, from mutually obtuse normals, Ω bends no more than λ_min says."""
    K = scaled(orthogonality_weights(Taxonomy.from_dict({"a": ["b", "c"], "d": None})), 0.8)
    vectors = np.linalg.eigh(comparison_matrix(K))[1]
    W, step = mutually_obtuse(4), 0.01 * np.outer(vectors[:, 0], np.ones(4))
    bend = 0.5 * (omega(K, W + step) + omega(K, W - step)) - omega(K, W)
    np.testing.assert_allclose(bend, 0.5 * smallest_eigenvalue(K) * np.sum(step**2))


def test_negative_weights_are_not_convex():
    """|K| has a fine comparison matrix, yet a negative weight rewards what is not orthogonal."""
    K = np.array([[1.0, -0.5], [-0.5, 1.0]])
    assert smallest_eigenvalue(K) > 0
    u, v = np.array([[1.0], [1.0]]), np.array([[1.0], [-1.0]])
    middle = omega(K, 0.5 * (u + v))
    assert omega(K, u) == omega(K, v) == 0.5
    assert middle == 0.5  # on the segment Ω is ½ (1 + s²) − ½ |s|, s from −1 to 1
    quarter = omega(K, 0.75 * u + 0.25 * v)
    np.testing.assert_allclose(quarter, 0.5 * (1 + 0.25) - 0.25)
    assert middle > 0.5 * (quarter + omega(K, 0.25 * u + 0.75 * v)) + 0.1


@thirty
@drawn
def test_subgradients_are_subgradients(seed, m, d, share):
    rng = np.random.default_rng(seed)
    K = random_weights(rng, m, share)
    penalty = OrthogonalPenalty(K)
    modulus = max(smallest_eigenvalue(K), 0.0)
    W, V = points(rng, m, d), points(rng, m, d)
    V[1::3] = W[1::3] + 1e-2 * V[1::3]
    for w, v in zip(W, V, strict=True):
        B = penalty.subgradient_matrix(w @ w.T)
        linear = omega(K, w) + np.sum((B @ w) * (v - w))
        bend = 0.5 * modulus * np.sum((v - w) ** 2)
        assert omega(K, v) >= linear + bend - allowed(omega(K, v), linear, bend)


def test_orthogonal_normals_get_no_sign():
    K = np.array([[2.0, 0.5, 0.5], [0.5, 1.0, 0.0], [0.5, 0.0, 1.0]])
    W = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
    expected = [[2.0, 0.0, -0.5], [0.0, 1.0, 0.0], [-0.5, 0.0, 1.0]]
    np.testing.assert_array_equal(OrthogonalPenalty(K).subgradient_matrix(W @ W.T), expected)
    zero = OrthogonalPenalty(K).subgradient_matrix(np.zeros((3, 3)))
    np.testing.assert_array_equal(zero, np.diag([2.0, 1.0, 1.0]))


# --- K --------------------------------------------------------------------------------------------


@thirty
@drawn
def test_largest_alpha_is_the_boundary(seed, m, d, share):
    K = random_weights(np.random.default_rng(seed), m, share)
    limit = largest_alpha(K)
    if not np.isfinite(limit):
        np.testing.assert_array_equal(K, np.diag(np.diag(K)))
        return
    assert abs(smallest_eigenvalue(scaled(K, limit))) < 1e-12 * np.abs(K).max() * limit * m + 1e-13
    assert smallest_eigenvalue(scaled(K, 0.999 * limit)) > 0
    assert smallest_eigenvalue(scaled(K, 1.001 * limit)) < 0


def test_comparison_matrix():
    K = np.array([[2.0, 0.5, -3.0], [0.5, -1.0, 0.0], [-3.0, 0.0, 4.0]])
    expected = [[2.0, -0.5, -3.0], [-0.5, 1.0, 0.0], [-3.0, 0.0, 4.0]]
    np.testing.assert_array_equal(comparison_matrix(K), expected)


def test_weights_of_a_tree():
    """Eq. 6, nodes in the order a, b, c, a1, a2, c1, a21, a22."""
    tree = Taxonomy.from_parents(
        {"a": None, "b": None, "c": None, "a1": "a", "a2": "a", "c1": "c", "a21": "a2", "a22": "a2"}
    )
    assert tree.names[1:].tolist() == ["a", "b", "c", "a1", "a2", "c1", "a21", "a22"]
    o = 0.5
    expected = [
        [5, 0, 0, o, o, 0, o, o],
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0, 0, 2, 0, 0, o, 0, 0],
        [o, 0, 0, 1, 0, 0, 0, 0],
        [o, 0, 0, 0, 3, 0, o, o],
        [0, 0, o, 0, 0, 1, 0, 0],
        [o, 0, 0, 0, o, 0, 1, 0],
        [o, 0, 0, 0, o, 0, 0, 1],
    ]
    np.testing.assert_array_equal(orthogonality_weights(tree, o), expected)
    flat = Taxonomy.from_parents(dict.fromkeys("abc"))
    np.testing.assert_array_equal(orthogonality_weights(flat), np.eye(3))


# --- the maximum over signs -----------------------------------------------------------------------


def signed_form(penalty, signs):
    A = np.diag(np.diag(penalty.weights))
    for (i, j), sign in zip(penalty.pairs, signs, strict=True):
        A[i, j] = A[j, i] = sign * penalty.weights[i, j]
    return A


@thirty
@drawn
def test_omega_is_the_largest_form(seed, m, d, share):
    rng = np.random.default_rng(seed)
    penalty = OrthogonalPenalty(random_weights(rng, m, share))
    W = rng.normal(size=(m, d))
    value = omega(penalty.weights, W)
    np.testing.assert_allclose(penalty.of_normals(W @ W.T), value)
    for _ in range(20):
        form = signed_form(penalty, rng.uniform(-1, 1, size=len(penalty.pairs)))
        assert 0.5 * np.sum(form * (W @ W.T)) <= value + allowed(value)
        assert np.linalg.eigvalsh(form)[0] >= smallest_eigenvalue(penalty.weights) - 1e-10
    best = signed_form(penalty, [np.sign(W[i] @ W[j]) for i, j in penalty.pairs])
    np.testing.assert_allclose(0.5 * np.sum(best * (W @ W.T)), value)


@thirty
@drawn
def test_better_signs(seed, m, d, share):
    """Of any weights, whose elimination tree may be a chain: up to the optimum that L-BFGS-B finds."""
    rng = np.random.default_rng(seed)
    penalty = OrthogonalPenalty(random_weights(rng, m, min(share, 0.9)))
    P = rng.normal(size=(m, d))
    G, form = P @ P.T, penalty.start()
    i, j = np.repeat(np.arange(m), np.diff(form.factor.start)), form.factor.latent
    off = i != j
    assert not form.signs[off].any()
    np.testing.assert_array_equal(form.weights, penalty.weights[i, j])
    Y = np.ascontiguousarray(P.T @ form.matrix())
    before = np.sum(Y * Y)
    for _ in range(300):
        form.improve(Y, Y)
        now, S = np.sum(Y * Y), (form.matrix() @ form.matrix().T).toarray()
        assert now <= before * (1 + 1e-12)  # the dual is minus half of it
        np.testing.assert_allclose(now, np.sum(S * G), rtol=1e-9)
        assert np.all(np.abs(form.signs) <= 1)
        A = np.zeros((m, m))
        A[i, j] = A[j, i] = form.signs * form.weights
        np.testing.assert_allclose(S @ A, np.eye(m), atol=1e-9)
        # Fenchel and Young: the penalty of W = S P is never below that of the form at these signs
        assert form.value(Y, Y) >= 0.5 * now - allowed(now)
        if before - now <= 1e-15 * before:
            break
        before = now
    np.testing.assert_allclose(form.value(Y, Y), omega(penalty.weights, S @ P), atol=1e-12)

    def fun(x):
        A = np.linalg.inv(signed_form(penalty, x))
        T = A @ G @ A
        slopes = [-2 * penalty.weights[i, j] * T[i, j] for i, j in penalty.pairs]
        return float(np.sum(A * G)), np.array(slopes)

    if not len(penalty.pairs):
        return
    box = [(-1, 1)] * len(penalty.pairs)
    found = minimize(
        fun, np.zeros(len(box)), jac=True, bounds=box, method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000},
    )  # fmt: skip
    np.testing.assert_allclose(now, found.fun, rtol=1e-7)
    # at the optimum the two penalties are one
    np.testing.assert_allclose(form.value(Y, Y), 0.5 * now, rtol=1e-4)


def test_a_gram_matrix_has_the_signs_of_its_features(rng):
    tree = Taxonomy.from_paths([f"{a}/{b}/{c}" for a in "ab" for b in "xyz" for c in range(10)])
    K = 0.3 * sparse_orthogonality_weights(tree)
    K.setdiag(tree.sizes[1:])
    A, X = rng.normal(size=(20, K.shape[0])), rng.normal(size=(20, 7))
    one, other = OrthogonalPenalty(K).start(), OrthogonalPenalty(K.toarray()).start()
    B = A @ one.matrix()
    Y, V = X.T @ B, X @ (X.T @ B)
    for _ in range(3):
        one.improve(Y, Y)
        other.improve(B, V)
        np.testing.assert_allclose(one.signs, other.signs, atol=1e-9)
        np.testing.assert_allclose(Y, X.T @ B, atol=1e-9)
        np.testing.assert_allclose(one.value(Y, Y), other.value(B, V))
    assert np.abs(one.signs).min() < 1 == np.abs(one.signs[one.weights == 0.3]).max()
    carried = Y.copy()
    one.renew()  # from the signs alone
    np.testing.assert_allclose(X.T @ A @ one.matrix(), carried, atol=1e-9)


def test_the_factor_of_a_tree_has_no_fill_in():
    tree = Taxonomy.from_paths(
        [f"{a}/{b}/{c}" for a in range(3) for b in range(4) for c in range(5)]
    )
    K = 0.1 * sparse_orthogonality_weights(tree)
    K.setdiag(tree.sizes[1:])
    form = OrthogonalPenalty(K).start()
    np.testing.assert_array_equal(form.matrix().nnz, (K.nnz + K.shape[0]) / 2)
    np.testing.assert_array_equal(np.diff(form.factor.start), tree.depth[1:])


def test_parts_that_are_not_connected_do_not_meet(rng):
    K = np.kron(np.eye(2), np.array([[2.0, 0.8], [0.8, 1.0]]))[:, [0, 2, 1, 3]][[0, 2, 1, 3]]
    P = rng.normal(size=(4, 3))

    def improved(K, P):
        form = OrthogonalPenalty(K).start()
        Y = np.ascontiguousarray(P.T @ form.matrix())
        for _ in range(20):
            form.improve(Y, Y)
        return (form.matrix() @ form.matrix().T).toarray(), form.signs

    S, _ = improved(K, P)
    for part in ([0, 2], [1, 3]):
        block = np.ix_(part, part)
        T, few = improved(K[block], P[part])
        np.testing.assert_allclose(S[block], T)
        assert few[2] != 0
    assert not S[np.ix_([0, 2], [1, 3])].any()


def test_quadratic_penalty(rng):
    factor = rng.normal(size=(4, 2))  # S is singular
    for penalty in (
        QuadraticPenalty(factor @ factor.T),
        QuadraticPenalty(factor=sp.csr_array(factor)),
    ):
        P = rng.normal(size=(4, 3))
        W = penalty.gram @ P
        expected = 0.5 * np.trace(W.T @ np.linalg.pinv(penalty.gram) @ W)
        form = penalty.start()
        assert form.n_latent == 2
        np.testing.assert_allclose((form.matrix() @ form.matrix().T).toarray(), factor @ factor.T)
        Y = P.T @ form.matrix()
        np.testing.assert_allclose(form.value(Y, Y), expected)
        before = Y.copy()
        form.improve(Y, Y)
        np.testing.assert_array_equal(Y, before)


def test_the_root_of_a_matrix_is_sparse_where_outputs_are_not_coupled():
    gram = np.array([[2.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]])
    F = QuadraticPenalty(gram).start().matrix()
    assert F.nnz == 5
    np.testing.assert_allclose((F @ F.T).toarray(), gram, atol=1e-15)


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_eigenvalues_of_large_sparse_weights(share):
    tree = Taxonomy.from_parents({i: (i - 1) // 3 if i else None for i in range(1500)})
    K = with_unit_diagonal(sparse_orthogonality_weights(tree))
    K.data[K.data != 1] *= share
    np.testing.assert_allclose(smallest_eigenvalue(K), smallest_eigenvalue(K.toarray()), atol=1e-9)
    np.testing.assert_allclose(largest_alpha(K), largest_alpha(K.toarray()), rtol=1e-9)
