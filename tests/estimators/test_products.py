"""How many products with the Gram matrix a fit needs. Time is in the benchmarks; this is what it is made of.

The numbers are pinned: a change that needs more products must say so here.
"""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import gramian.estimators.smooth
from gramian import KernelLogisticRegression, KernelRidge, KernelSVC
from gramian.kernels import RBF
from gramian.labels import Identity
from gramian.losses import Softmax
from gramian.operators import Dense, Intercept, LabelMixed
from gramian.selection import cross_val_latent, fold_masks
from gramian.solvers import Problem, newton
from gramian.testing import CountingOperator

# BLAS libraries round differently: a residual that ends just above or below its goal costs or saves a step or two.
ROUNDING = 2


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="module")
def six(digits):
    X, y = digits
    return X[y < 6], y[y < 6]


@pytest.fixture
def counted(monkeypatch):
    """The operators of all fits, each wrapped by one that counts."""
    operators = []

    def counting(operator, *args):
        operators.append(CountingOperator(operator))
        return Problem(operators[-1], *args)

    monkeypatch.setattr(gramian.estimators.smooth, "Problem", counting)
    return operators


@pytest.mark.parametrize("tol, products", [(1e-6, 49), (1e-10, 65)])
def test_softmax_over_six_classes(six, counted, tol, products):
    """1083 images of six digits: Newton, classes advance together."""
    model = KernelLogisticRegression(
        10.0 * RBF("scale"), solver="newton", tol=tol, regularization=1.0
    ).fit(*six)
    assert model.solution_.status == "converged"
    assert abs(model.solution_.n_products - products) <= ROUNDING
    assert model.solution_.n_products == counted[0].n_products
    assert counted[0].n_columns == 6 * counted[0].n_products
    assert model.solution_.history["products"][-1] == counted[0].n_products


def test_svc_over_ten_classes(digits, counted):
    """One against the rest ten times, in lockstep: not ten times the products."""
    X, y = digits
    X, y = X[::2], y[::2]
    together = (
        KernelSVC(10.0 * RBF("scale"), tol=1e-6, regularization=1.0).fit(X, y).solution_.n_products
    )
    kernel = 10.0 * RBF("scale").resolve(X)
    alone = [
        KernelSVC(kernel, tol=1e-6, regularization=1.0).fit(X, y == digit).solution_.n_products
        for digit in range(10)
    ]
    assert together == counted[0].n_products
    assert abs(together - 105) <= 2 * ROUNDING  # ten columns: more that can end early or late
    assert together <= 1.5 * max(alone)


def test_ridge_by_kernel_cg(six, counted):
    X, y = six
    options = {"solver": "kernel_cg", "tol": 1e-6, "intercept_variance": 1.0}
    model = KernelRidge(10.0 * RBF("scale"), regularization=1.0, **options).fit(X, y)
    assert model.solution_.n_products == counted[0].n_products
    assert abs(model.solution_.n_products - 70) <= ROUNDING
    # one product an iteration; the rest starts and verifies
    assert model.solution_.n_products <= model.n_iter_ + 4


def test_ridge_by_cholesky(six):
    """One step; the few products are there to certify it, not to find it."""
    solution = (
        KernelRidge(10.0 * RBF("scale"), solver="exact", regularization=1.0).fit(*six).solution_
    )
    assert (solution.status, solution.n_iter) == ("converged", 1)
    assert solution.n_products <= 6


def test_folds_in_lockstep(six):
    """Five folds need about as many products as the slowest of them alone."""
    X, y = six
    X, y = X[::2], y[::2]
    indicator = (y[:, None] == np.arange(6)).astype(float)
    kernel = 10.0 * RBF("scale").resolve(X)
    terms = [(Dense(kernel, X), Identity()), (Intercept(1.0, indicator, len(X)), Identity())]
    masks = fold_masks(5, X, y, classifier=True)[0]
    counting = CountingOperator(LabelMixed(terms))
    solution = cross_val_latent(Problem(counting, Softmax(), indicator), masks, tol=1e-6)[1]
    alone = [
        newton(
            Problem(LabelMixed(terms), Softmax(), indicator, weights=masks[:, fold]), tol=1e-6
        ).n_products
        for fold in range(5)
    ]
    assert counting.n_products == solution.n_products  # predictions are a by-product
    assert solution.n_products <= 1.5 * max(alone)
