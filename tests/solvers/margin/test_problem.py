"""The margin problem: objective, gap and violation against loops over the formulas."""

import numpy as np
import pytest
import scipy.sparse as sp
from margin_oracles import dual, latent, primal, random_margins, violation

from gramian.kernels import Linear
from gramian.operators import GramRows
from gramian.solvers import MarginProblem

pytestmark = pytest.mark.usefixtures("one_thread")
CASES = [(0, 7, 3, 4), (1, 1, 1, 1), (2, 9, 2, 2)]


def arguments(seed, n, d, n_labels):
    """Data, and coefficients in the box, some of them at its ends."""
    data = random_margins(seed, n, d, n_labels)
    share = np.random.default_rng(seed).uniform(-0.5, 1.5, size=(n, n_labels)).clip(0, 1)
    return data, data.signs * share * data.caps


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_loops(case):
    data, A = arguments(*case)
    K = data.X @ data.X.T
    formula = (K, data.signs, data.R, data.margins, data.caps, A)
    problem = MarginProblem(data.X, data.signs, data.R, data.margins, data.caps)
    U = problem.latent(A)
    objective, gaps, largest = problem.values(A, U)
    np.testing.assert_allclose(objective, primal(*formula), rtol=1e-12)
    np.testing.assert_allclose(gaps.sum(), primal(*formula) - dual(*formula), rtol=1e-10)
    np.testing.assert_allclose(largest, violation(*formula), rtol=1e-12)
    assert gaps.shape == (data.signs.shape[1],)
    assert (gaps >= 0).all()


@pytest.mark.parametrize("case", CASES)
def test_gaps_of_unrelated_labels_are_those_of_each_alone(case):
    data, A = arguments(*case)
    problem = MarginProblem(data.X, data.signs, None, data.margins, data.caps)
    _, gaps, _ = problem.values(A, problem.latent(A))
    for l in range(A.shape[1]):
        one = np.s_[:, [l]]
        formula = (data.X @ data.X.T, data.signs[one], np.eye(1), data.margins[one], data.caps[one])
        expected = primal(*formula, A[one]) - dual(*formula, A[one])
        np.testing.assert_allclose(gaps[l], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("inputs", ["features", "csr", "rows", "cached rows", "float32"])
def test_latent_is_a_kronecker_product(inputs):
    data, A = arguments(*CASES[0])
    made = {
        "features": lambda X: X,
        "csr": sp.csr_array,
        "rows": lambda X: GramRows(Linear(), X),
        "cached rows": lambda X: GramRows(Linear(), X, nbytes=0),
        "float32": lambda X: GramRows(Linear(), X.astype(np.float32)),
    }[inputs](data.X)
    U = MarginProblem(made, data.signs, data.R).latent(A)
    K = data.X @ data.X.T
    assert U.dtype == np.float64
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if inputs == "float32" else {"rtol": 1e-10}
    np.testing.assert_allclose(U.ravel(), np.kron(K, data.R) @ A.ravel(), **tolerance)
    np.testing.assert_allclose(U, latent(K, A, data.R), **tolerance)


def test_margins_and_caps_are_broadcast():
    data, A = arguments(*CASES[0])
    small = MarginProblem(data.X, data.signs, data.R, 0.5, data.caps[:, :1])
    full = MarginProblem(
        data.X,
        data.signs,
        data.R,
        np.full(A.shape, 0.5),
        np.repeat(data.caps[:, :1], A.shape[1], axis=1),
    )
    U = full.latent(A)
    for one, other in zip(small.values(A, U), full.values(A, U)):
        np.testing.assert_allclose(one, other)
