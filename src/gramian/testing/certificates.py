"""The certificate of a fitted estimator: what it says is compared with an optimum that is found in another way.

Smooth losses are minimised by L-BFGS of SciPy in the coordinates ``w = Lᵀ vec(A)``, where ``𝒦 = L Lᵀ``. Hinge losses
are smoothed, more and more sharply; the optimum of each is the start of the next. Those of trees are in
`contrast_optimum`. Nothing of the solvers is used, nor of their bounds. Costs O((nC)³), so that it is for tests and for
doubts, with some hundred examples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from gramian.estimators.fitting import read_data
from gramian.estimators.margin.multilabel import M3LClassifier
from gramian.estimators.smooth import KernelMachine
from gramian.estimators.tree.hierarchical import HierarchicalSVC
from gramian.solvers import MarginProblem
from gramian.testing.contrast_optimum import contrast_objective, least_contrast_objective
from gramian.testing.solvers import optimum, root

SHARPNESS = (
    1e-1,
    1e-2,
    1e-3,
    1e-4,
    1e-5,
)  # widths of the smoothed corners of hinges, one after the other
ROUNDING = 1e-9  # of the objective, which sums of large terms of both signs leave


def check_certificate(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Check that the gap that a fit reports bounds its distance from the optimum.

    Parameters
    ----------
    estimator : KernelMachine, M3LClassifier or HierarchicalSVC
        Kernel machines are KernelLogisticRegression, KernelSVC, KernelRidge, KernelCRF and those for pairs. A clone is
        fitted. Low ranks, early stopping and labels of smooth estimators that are not certain have no certificate.
    X : array, sparse array, Pairs or Sequences
    y : array
    sample_weight : array of shape (n_samples,), default=None

    Returns
    -------
    float
        The true distance of the objective from its minimum, as far as it can be found.

    Raises
    ------
    AssertionError
        If the distance is more than the gap.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.testing import check_certificate
    >>> X = np.linspace(0, 1, 10)[:, None]
    >>> check_certificate(KernelRidge(regularization=0.1), X, np.sin(X[:, 0])) < 1e-8
    True
    """
    model = clone(estimator)
    if isinstance(model, M3LClassifier):
        model.set_params(warm_start=True)  # keeps all coefficients
    measure = _way_of(model)
    with warnings.catch_warnings():
        # a gap is to be honest also where it is large
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=sample_weight)
        data = read_data(model, X, y, sample_weight)
    training: Any = model._training(data)
    reached, best, allowance = measure(model, training)
    distance, gap = reached - best, model.solution_.gap
    assert distance <= gap + allowance, (
        f"{model!r} reports a gap of {gap:.3e}, but its objective {reached:.12g} is {distance:.3e} above {best:.12g}, "
        "which L-BFGS has reached."
    )
    return max(0.0, distance)


def _way_of(model: Any) -> Callable[[Any, Any], tuple[float, float, float]]:
    """How the distance of a kind of model is measured."""
    ways = {
        M3LClassifier: _margin_distance,
        HierarchicalSVC: _contrast_distance,
        KernelMachine: _smooth_distance,
    }
    for kind, way in ways.items():
        if isinstance(model, kind):
            return way
    raise TypeError(f"check_certificate knows no optimum of {type(model).__name__}.")


def _smooth_distance(model: Any, training: Any) -> tuple[float, float, float]:
    """The objective of what is stored, the least one, and what rounding of the matrix makes of them."""
    if model.operator_.name == "low_rank":
        raise ValueError("operator='low_rank' keeps too little of the model to know its objective.")
    problem, _ = training.problem(model._prior)
    n, C, q = problem.shape
    A = np.asarray(model._coefficients(), dtype=np.float64).reshape(n, C, q)
    every = np.eye(n * C).reshape(n, C, n * C)
    L = root(problem.operator.accurate(every).reshape(n * C, n * C))
    # with the matrix of `optimum`, which has no negative eigenvalues that come from rounding
    U = (L @ (L.T @ A.reshape(n * C, q))).reshape(n, C, q)
    reached, rounded = (
        float(
            np.sum(problem.loss.value(V, problem.targets, problem.weights))
            + 0.5 * np.sum(problem.strength * np.sum(A * V, axis=(0, 1)))
        )
        for V in (U, np.asarray(problem.operator.accurate(A)))
    )
    return reached, float(np.sum(optimum(problem)[0])), ROUNDING * reached + abs(reached - rounded)


def _margin_distance(model: Any, training: Any) -> tuple[float, float, float]:
    problem = replace(training.problem.weighted(model.C_), correlation=model.label_correlation_)
    A = model.solution_.coefficients
    L = root(problem.inputs @ np.eye(len(A)))
    reached, rounded = (
        _losses(problem, U) + 0.5 * float(np.sum(A * U))
        for U in (problem.mixed(L @ (L.T @ A)), problem.latent(A))
    )
    return reached, _least(problem), ROUNDING * reached + abs(reached - rounded)


def _contrast_distance(model: Any, training: Any) -> tuple[float, float, float]:
    problem = training.problem.weighted(model.C_)
    K = problem.inputs @ np.eye(problem.shape[0])
    L = root(K)
    variance = model.kernel_.linear_variance
    if variance is None:
        c = np.zeros(problem.shape)
        c[model.support_] = model.dual_coef_
        normals = L.T @ c
        stored = (L @ normals, normals.T @ normals), (K @ c, c.T @ K @ c)
    else:
        rows = [model.coef_ / variance**0.5]
        if model.intercept_variance > 0:
            rows.append(model.intercept_[:, None] / model.intercept_variance**0.5)
        normals = np.hstack(rows)
        U = np.asarray(training.data.X @ model.coef_.T) + model.intercept_
        stored = ((U, normals @ normals.T),) * 2
    reached, rounded = (contrast_objective(problem, *parts) for parts in stored)
    allowance = ROUNDING * reached + abs(reached - rounded)
    return reached, least_contrast_objective(problem, L), allowance


def _losses(problem: MarginProblem, U: np.ndarray) -> float:
    lack = np.maximum(0.0, problem.margins - problem.signs * U)
    return float(np.sum(problem.caps * (lack**2 if problem.squared else lack)))


def _least(problem: MarginProblem) -> float:
    """The least objective that L-BFGS finds, with U = L V Bᵀ for K = L Lᵀ and R = B Bᵀ."""
    n, n_labels = problem.shape
    L = root(problem.inputs @ np.eye(n))
    B = np.eye(n_labels) if problem.correlation is None else root(problem.correlation)
    best, V = np.inf, np.zeros(L.shape[1] * B.shape[1])
    for width in (0.0,) if problem.squared else SHARPNESS:

        def objective(v: np.ndarray, width: float = width) -> tuple[float, np.ndarray]:
            W = v.reshape(L.shape[1], B.shape[1])
            lack = problem.margins - problem.signs * (L @ W @ B.T)
            if problem.squared:
                value, slope = np.maximum(0.0, lack) ** 2, 2.0 * np.maximum(0.0, lack)
            else:
                value, slope = width * np.logaddexp(0.0, lack / width), expit(lack / width)
            gradient = L.T @ (-problem.signs * problem.caps * slope) @ B + W
            return float(np.sum(problem.caps * value) + 0.5 * v @ v), gradient.reshape(-1)

        options = {"maxiter": 5000, "maxfun": 20_000, "maxcor": 30, "ftol": 0.0, "gtol": 1e-10}
        V = minimize(objective, V, jac=True, method="L-BFGS-B", options=options).x
        W = V.reshape(L.shape[1], B.shape[1])
        best = min(best, _losses(problem, L @ W @ B.T) + 0.5 * float(V @ V))
    return best
