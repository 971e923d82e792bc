"""The preconditioner of many outputs: it is what the formula says, and saves products."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.kernels import Linear
from gramian.labels import Identity, Scalar, Taxonomy, TreeStructure
from gramian.losses import Logistic, Softmax
from gramian.operators import Intercept, LabelMixed, LinearFeatures
from gramian.solvers import Problem, kernel_cg, newton
from gramian.solvers.rkhs.preconditioning.leading_functions import (
    LeadingPreconditioner,
    is_many,
    leading_functions,
)

N, CLASSES, PARENTS = 150, 72, 6
TREE = Taxonomy.from_parents(
    {f"p{k}": None for k in range(PARENTS)}
    | {f"c{k:02d}": f"p{k % 2 if k < 20 else k % PARENTS}" for k in range(CLASSES)}
)  # two parents have more children than others
STRUCTURES = [Scalar(2.0), TreeStructure(TREE, [2.0])]


def _problem(structure, rng, *, intercept=0.0, sparse=True, dtype=np.float64, weights=None):
    """Documents that have much in common, of which each class has some words of its own."""
    leaf = rng.integers(0, CLASSES, N)
    X = rng.random((N, 120)) < 0.1 + 0.4 * (np.arange(120) % CLASSES == leaf[:, None])
    X = np.hstack([np.full((N, 4), 2.0), X]).astype(dtype)
    terms: list = [(LinearFeatures(Linear(), sp.csr_array(X) if sparse else X), structure)]
    if intercept:
        terms.append((Intercept(intercept, np.zeros((1, 1), dtype), N), Identity()))
    targets = np.eye(CLASSES, dtype=dtype)[leaf]
    return Problem(LabelMixed(terms), Softmax(), targets, 0.1, weights)


def _space(problem):
    space = leading_functions(problem)
    assert space is not None
    return space


@pytest.mark.parametrize("intercept", [0.0, 2.0])
@pytest.mark.parametrize("structure", STRUCTURES, ids=["flat", "tree"])
def test_self_adjoint_positive_and_consistent(structure, intercept, rng):
    problem = _problem(structure, rng, intercept=intercept)
    K = problem.operator
    U = rng.standard_normal(problem.shape)
    P = LeadingPreconditioner(_space(problem), problem.curvature(U), 0.1)
    x, y = rng.standard_normal((2, *problem.shape))
    (Px, KPx), (_, KPy) = P.apply(x, K @ x), P.apply(y, K @ y)
    np.testing.assert_allclose(KPx, K @ Px, rtol=1e-8, atol=1e-8 * np.abs(KPx).max())
    assert np.vdot(x, KPy) == pytest.approx(np.vdot(y, KPx), rel=1e-8)
    assert np.vdot(x, KPx) > 0
    assert np.vdot(y, KPy) > 0


@pytest.mark.parametrize("structure", STRUCTURES, ids=["flat", "tree"])
def test_exact_in_the_space_where_curvature_is_a_multiple_of_the_identity(structure, rng):
    """W = ¼ I for logistic losses at zero: within the space, P is λ times the inverse of the Newton system."""
    softmax = _problem(structure, rng)
    problem = Problem(softmax.operator, Logistic(), softmax.targets, 0.1)
    space = _space(problem)
    curvature = problem.curvature(np.zeros(problem.shape))
    P = LeadingPreconditioner(space, curvature, 0.1)
    s = (space.basis @ rng.standard_normal((space.basis.shape[1], CLASSES)))[:, :, None]
    Ks = problem.operator @ s
    r = 0.1 * s + curvature.apply(Ks)
    Pr, _ = P.apply(r, problem.operator @ r)
    # what is left is 𝒦-orthogonal to the space
    left = problem.operator @ (Pr - 0.1 * s)
    assert np.abs(space.basis.T @ left[:, :, 0]).max() < 1e-6 * np.abs(Ks).max()


@pytest.mark.parametrize("structure", STRUCTURES, ids=["flat", "tree"])
def test_functions_that_softmax_does_not_see_stay_as_they_are(structure, rng):
    """What is added to all outputs has no curvature: P is the identity there."""
    problem = _problem(structure, rng)
    space = _space(problem)
    S = structure.mix(np.eye(CLASSES))
    outputs = np.linalg.solve(S, np.ones(CLASSES))
    r = (space.basis[:, :1] * outputs)[:, :, None]
    U = rng.standard_normal(problem.shape)
    P = LeadingPreconditioner(space, problem.curvature(U), 0.1)
    Pr, _ = P.apply(r, problem.operator @ r)
    np.testing.assert_allclose(Pr, r, atol=1e-8 * np.abs(r).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("structure", STRUCTURES, ids=["flat", "tree"])
def test_saves_products_and_finds_the_optimum(structure, sparse, dtype, rng):
    problem = _problem(structure, rng, intercept=1.0, sparse=sparse, dtype=dtype)
    tol = 1e-8 if dtype == np.float64 else 1e-5
    found, plain, steps = (
        kernel_cg(problem, tol=tol),
        kernel_cg(problem, tol=tol, preconditioner=None),
        newton(problem, tol=tol),
    )
    assert found.status == plain.status == "converged"
    assert found.objective == pytest.approx(plain.objective, rel=3 * tol)
    assert found.n_products < 0.75 * plain.n_products
    assert found.n_products < 0.75 * steps.n_products


def test_weights_of_zero_take_examples_out(rng):
    weights = (np.arange(N) % 4 > 0).astype(float) * rng.uniform(0.5, 2.0, N)
    problem = _problem(STRUCTURES[1], rng, intercept=1.0, weights=weights)
    space = _space(problem)
    assert not np.any(space.basis[weights == 0])
    found = kernel_cg(problem)
    assert found.status == "converged"
    assert np.abs(found.coefficients[weights == 0]).max() == 0
    assert found.objective == pytest.approx(newton(problem).objective, rel=1e-7)


def test_what_is_many(rng):
    problem = _problem(STRUCTURES[0], rng)
    assert is_many(problem)
    few = Problem(problem.operator, Softmax(), problem.targets[:, :20], 0.1)
    assert not is_many(few)
    folds = Problem(problem.operator, Softmax(), problem.targets, 0.1, np.ones((N, 2)))
    assert not is_many(folds)
    features = Linear()(np.ones((N, 2)))
    assert (
        leading_functions(
            Problem(LinearFeatures(Linear(), 0 * features), Softmax(), problem.targets)
        )
        is None
    )
