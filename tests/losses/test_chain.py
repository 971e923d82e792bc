"""The likelihood of linear chains against enumeration of all label sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.losses import ChainLikelihood, PartialChainLikelihood, Softmax
from gramian.losses.chain import marginals as marginals_module
from gramian.losses.chain import recursions
from gramian.losses.chain.decoding import best_paths
from gramian.losses.chain.marginals import ChainLayout
from gramian.losses.chain.sums import sum_directions


class Case:
    """Random chains, and the same things by enumeration."""

    def __init__(self, seed, lengths, C, *, ends=True, forbid=False, moving=False, scale=2.0):
        rng = np.random.default_rng(seed)
        self.rng, self.lengths, self.C, self.n = rng, lengths, C, sum(lengths)
        self.allowed = None
        if forbid:
            self.allowed = rng.random((C + 2, C)) < 0.7
            self.allowed[:, 0] = True  # so that some path is left
        self.layout = ChainLayout(np.array(lengths, dtype=int), C, ends, self.allowed, moving)
        self.own = self.n + C + (2 if ends else 0)  # where rows of moving transitions begin
        self.rows = self.n + self.layout.n_extra
        self.U = scale * rng.normal(size=(self.rows, C))
        self.codes = np.zeros(self.n, dtype=int) if forbid else rng.integers(C, size=self.n)
        self.Y = np.zeros((self.rows, C))
        self.Y[np.arange(self.n), self.codes] = 1
        self.possible = np.zeros((self.rows, C))
        self.possible[: self.n] = (rng.random((self.n, C)) < 0.5) | (self.Y[: self.n] > 0)
        weight = rng.uniform(0.5, 2, size=len(lengths)) * (rng.random(len(lengths)) < 0.8)
        self.weights = np.append(np.repeat(weight, lengths), np.ones(self.layout.n_extra))
        self.sequence_weights = weight

    def loss(self, partial=False):
        kind = PartialChainLikelihood if partial else ChainLikelihood
        options = {"ends": self.layout.ends, "moving": self.layout.moving, "allowed": self.allowed}
        return kind(self.lengths, self.C, **options)

    def paths(self, s):
        """All labels of a sequence with their scores; what is not allowed is left out."""
        at, L, C = sum(self.lengths[:s]), self.lengths[s], self.C
        T, ends = self.U[self.n : self.n + C], self.U[self.n + C :]
        free = np.ones((C + 2, C), dtype=bool) if self.allowed is None else self.allowed
        out = []
        for path in itertools.product(range(C), repeat=L):
            if L == 0:
                return [((), 0.0)]
            steps = list(itertools.pairwise(path))
            if not (
                free[C, path[0]] and free[C + 1, path[-1]] and all(free[a, b] for a, b in steps)
            ):
                continue
            score = sum(self.U[at + t, b] for t, b in enumerate(path)) + sum(
                T[a, b] for a, b in steps
            )
            if self.layout.moving:
                score += sum(
                    self.U[self.own + (at + t) * C + a, b] for t, (a, b) in enumerate(steps, 1)
                )
            if self.layout.ends:
                score += ends[0, path[0]] + ends[1, path[-1]]
            out.append((path, score))
        return out

    def expected(self, within=None):
        """log Z of each sequence, and expected rows of U, each sequence with its weight."""
        log_z, out = [], np.zeros((self.rows, self.C))
        for s, w in enumerate(self.sequence_weights):
            at = sum(self.lengths[:s])
            paths = [
                (path, score)
                for path, score in self.paths(s)
                if within is None or all(within[at + t, b] for t, b in enumerate(path))
            ]
            total = np.logaddexp.reduce([score for _, score in paths])
            log_z.append(total)
            for path, score in paths:
                out += w * np.exp(score - total) * self.features(at, path)
        return np.array(log_z), out

    def features(self, at, path):
        """How often each entry of U is in the score of a path."""
        out = np.zeros((self.rows, self.C))
        for t, b in enumerate(path):
            out[at + t, b] += 1
        for t, (a, b) in enumerate(itertools.pairwise(path), 1):
            out[self.n + a, b] += 1
            if self.layout.moving:
                out[self.own + (at + t) * self.C + a, b] += 1
        if self.layout.ends and path:
            out[self.n + self.C, path[0]] += 1
            out[self.n + self.C + 1, path[-1]] += 1
        return out

    def covariance_product(self, V):
        """W V by enumeration."""
        out = np.zeros((self.rows, self.C))
        for s, w in enumerate(self.sequence_weights):
            at, paths = sum(self.lengths[:s]), self.paths(s)
            chance = np.exp(
                [score for _, score in paths] - np.logaddexp.reduce([x for _, x in paths])
            )
            features = [self.features(at, path) for path, _ in paths]
            along = np.array([np.sum(f * V) for f in features])
            mean = sum(c * f for c, f in zip(chance, features, strict=True))
            out += w * sum(c * x * f for c, x, f in zip(chance, along, features, strict=True))
            out -= w * float(chance @ along) * mean
        return out


cases = st.builds(
    Case,
    seed=st.integers(0, 10**6),
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=3).filter(sum),
    C=st.integers(1, 4),
    ends=st.booleans(),
    forbid=st.booleans(),
    moving=st.booleans(),
)
several = settings(max_examples=40, deadline=None)


@pytest.fixture(params=["scaled", "logarithms"])
def domain(request, monkeypatch):
    """The same results by the scaled recursions and by those in the logarithmic domain."""
    if request.param == "logarithms":
        real = recursions.sweep

        def all_lost(first, last, units, *rest):
            real(first, last, units, *rest)
            units.lost[:] = units.live & (np.diff(units.bounds) > 0)

        monkeypatch.setattr(marginals_module.recursions, "sweep", all_lost)
    return request.param


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("forbid", [False, True])
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("moving", [False, True])
def test_value_gradient_and_curvature_are_those_of_an_enumeration(
    domain, seed, forbid, ends, moving
):
    case = Case(seed, [3, 1, 0, 4, 2][seed % 3 :], 3, ends=ends, forbid=forbid, moving=moving)
    check(case)


@several
@given(cases)
def test_random_chains_agree_with_an_enumeration(case):
    check(case)


@several
@given(cases)
def test_labels_known_in_part_agree_with_an_enumeration(case):
    loss = case.loss(partial=True)
    log_z, expected = case.expected()
    some_z, inside = case.expected(case.possible > 0)
    value = loss.value(case.U, case.possible, case.weights)
    np.testing.assert_allclose(value, case.sequence_weights @ (log_z - some_z), atol=1e-10)
    gradient = loss.gradient(case.U, case.possible, case.weights)
    np.testing.assert_allclose(gradient, expected - inside, atol=1e-10)
    V, h = case.rng.normal(size=case.U.shape), 1e-5
    ahead, behind = (loss.gradient(case.U + s * V, case.possible, case.weights) for s in (h, -h))
    product = loss.curvature(case.U, case.possible, case.weights).apply(V)
    np.testing.assert_allclose(product, (ahead - behind) / (2 * h), atol=1e-6)
    above = loss.majorant(case.U, case.weights).apply(V)
    np.testing.assert_allclose(above, case.covariance_product(V), atol=1e-10)


def check(case):
    loss = case.loss()
    log_z, expected = case.expected()
    observed = sum(
        w * case.features(at, tuple(case.codes[at : at + L]))
        for w, at, L in zip(
            case.sequence_weights, np.cumsum([0, *case.lengths]), case.lengths, strict=False
        )
    )
    score = np.sum(observed * case.U)
    value = loss.value(case.U, case.Y, case.weights)
    np.testing.assert_allclose(value, case.sequence_weights @ log_z - score, atol=1e-10)
    gradient = loss.gradient(case.U, case.Y, case.weights)
    np.testing.assert_allclose(gradient, expected - observed, atol=1e-10)
    V = case.rng.normal(size=case.U.shape)
    product = loss.curvature(case.U, case.Y, case.weights).apply(V)
    np.testing.assert_allclose(product, case.covariance_product(V), atol=1e-10)


@pytest.mark.parametrize("forbid", [False, True])
@pytest.mark.parametrize("moving", [False, True])
def test_variances_of_pairs_are_those_of_their_marginals(domain, forbid, moving):
    case = Case(1, [3, 1, 0, 4, 2], 3, forbid=forbid, moving=moving)
    curvature = case.loss().curvature(case.U, case.Y, case.weights)
    pairs = curvature.marginals.pair_marginals()
    if domain == "logarithms":  # sequences without messages count as if all pairs were rare
        pairs_squared = 0 * pairs
    else:
        pairs_squared = pairs**2
    weights = case.weights[: case.n, None, None]
    found, variances = curvature.jacobi()[:, :, 0], weights * (pairs - pairs_squared)
    np.testing.assert_allclose(found[case.n : case.n + 3], variances.sum(axis=0))
    if moving:
        np.testing.assert_allclose(found[case.own :], variances.reshape(-1, 3))


def directions_in_rows(case):
    """The directions of `sum_directions` as rows of scores, (rows, C, k)."""
    Z = sum_directions(case.layout).toarray().reshape(1 + case.layout.n_extra, case.C, -1)
    return np.concatenate([np.broadcast_to(Z[0], (case.n, *Z[0].shape)), Z[1:]])


@pytest.mark.parametrize("ends", [False, True])
def test_curvature_in_sums_is_exact_where_labels_are_independent(ends):
    case = Case(2, [3, 1, 0, 4, 2], 3, ends=ends)
    case.U[case.n : case.n + 3] = 0.0  # no transitions
    curvature = case.loss().curvature(case.U, case.Y, case.weights)
    Z, H = curvature.sums()
    assert Z.shape == (3 * (1 + case.layout.n_extra), len(H))
    Z = directions_in_rows(case)
    products = np.stack([curvature.apply(z) for z in np.moveaxis(Z, 2, 0)], axis=2)
    np.testing.assert_allclose(H, np.einsum("rck,rcl->kl", Z, products), atol=1e-12)


def test_a_column_of_transitions_and_its_start_are_what_a_function_is():
    case = Case(3, [3, 1, 0, 4, 2], 3)
    curvature = case.loss().curvature(case.U, case.Y, case.weights)
    _, H = curvature.sums()
    Z, C = directions_in_rows(case), case.C
    # the order is: functions, columns, rows but the last, starts, ends
    for column, end in ((C, 3 * C - 1), (2 * C, 4 * C - 1)):
        nothing = np.zeros(len(H))
        nothing[[0, column, end]] = -1.0, 1.0, 1.0
        np.testing.assert_allclose(curvature.apply(Z @ nothing), 0, atol=1e-12)
        np.testing.assert_allclose(H @ nothing, 0, atol=1e-12)
    assert np.linalg.eigvalsh(H).min() > -1e-12


def test_sums_of_many_labels_are_sparse_and_left_out_where_they_do_not_fit():
    C = 200
    case = Case(0, [2, 1], C)
    curvature = case.loss().curvature(case.U, case.Y, case.weights)
    Z, H = curvature.sums()
    assert Z.nnz == 2 * C * C + 2 * C
    assert H.shape == (5 * C - 1, 5 * C - 1)
    with sklearn.config_context(working_memory=1):  # MiB
        assert curvature.sums() is None


@several
@given(cases, st.integers(1, 5))
def test_best_paths_are_those_of_an_enumeration(case, k):
    labels, scores = best_paths(case.layout, case.U, k)
    at = 0
    for s, L in enumerate(case.lengths):
        ranked = sorted(case.paths(s), key=lambda item: -item[1])[:k]
        np.testing.assert_allclose(scores[: len(ranked), s], [score for _, score in ranked])
        assert np.all(scores[len(ranked) :, s] == -np.inf)
        for r, (path, _) in enumerate(ranked):
            assert tuple(labels[r, at : at + L]) == path
        at += L


@pytest.mark.parametrize("moving", [False, True])
def test_problems_in_lockstep_are_those_one_by_one(moving):
    case = Case(5, [3, 2, 4, 1], 3, moving=moving)
    loss, rng = case.loss(), np.random.default_rng(0)
    U, V = (rng.normal(size=(*case.U.shape, 3)) for _ in range(2))
    weights = rng.uniform(0, 1, size=(case.rows, 3)) * (rng.random((case.rows, 3)) < 0.7)
    Y = case.Y[:, :, None]
    for j in range(3):
        w = weights[:, j]
        assert np.isclose(loss.value(U, Y, weights)[j], loss.value(U[..., j], case.Y, w))
        one = loss.gradient(U[..., j], case.Y, w)
        np.testing.assert_allclose(loss.gradient(U, Y, weights)[..., j], one, atol=1e-12)
        one = loss.curvature(U[..., j], case.Y, w).apply(V[..., j])
        np.testing.assert_allclose(loss.curvature(U, Y, weights).apply(V)[..., j], one, atol=1e-12)


def test_sequences_of_length_one_without_ends_are_the_softmax_loss():
    rng = np.random.default_rng(0)
    U, codes = rng.normal(size=(8 + 3, 3)), rng.integers(3, size=8)
    Y = np.concatenate([np.eye(3)[codes], np.zeros((3, 3))])
    chain, softmax = ChainLikelihood(np.ones(8, dtype=int), 3, ends=False), Softmax()
    assert np.isclose(chain.value(U, Y), softmax.value(U[:8], Y[:8]))
    np.testing.assert_allclose(chain.gradient(U, Y)[:8], softmax.gradient(U[:8], Y[:8]), atol=1e-14)
    assert np.all(chain.gradient(U, Y)[8:] == 0)


def test_scores_that_underflow_are_computed_by_their_logarithms():
    """Positions insist on labels between which a transition costs 2000."""
    lengths, C = [4, 3], 2
    U = np.zeros((7 + C + 2, C))
    U[[0, 2, 4, 6], 0] = U[[1, 3, 5], 1] = 900.0
    U[7] = [0.0, -2000.0]
    loss = ChainLikelihood(lengths, C)
    Y = np.zeros_like(U)
    Y[:7, 0] = 1
    gradient, V = loss.gradient(U, Y), np.random.default_rng(0).normal(size=U.shape)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient[:7].sum(axis=1), 0, atol=1e-12)
    product = loss.curvature(U, Y).apply(V)
    h = 1e-4
    numeric = (loss.gradient(U + h * V, Y) - loss.gradient(U - h * V, Y)) / (2 * h)
    np.testing.assert_allclose(product, numeric, atol=1e-5)


def test_log_probability_of_labels_sums_to_one():
    case = Case(3, [3], 3, forbid=True)
    loss, every = case.loss(), list(itertools.product(range(3), repeat=3))
    values = [loss.log_probability(case.U, np.array(path))[0] for path in every]
    assert np.isclose(np.logaddexp.reduce(values), 0)
    assert values[0] > -np.inf
