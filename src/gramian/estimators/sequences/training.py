"""Training of label sequences: in coefficients of positions, or in weights of features for a linear kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array
from gramian.estimators.smooth import SmoothTraining
from gramian.losses import FeatureLoss
from gramian.operators import (
    DirectSum,
    Intercept,
    LabelMixed,
    LinearFeatures,
    Operator,
    OperatorRecord,
    Weights,
)
from gramian.selection.chain_prior import AnyPrior
from gramian.solvers import Problem


class ChainTraining(SmoothTraining):
    """Training of chains."""

    def problem(self, prior: AnyPrior) -> tuple[Problem, OperatorRecord]:
        problem, record = super().problem(prior)
        in_weights = _in_weights(problem)
        return (problem if in_weights is None else in_weights), record


def _in_weights(problem: Problem) -> Problem | None:
    """The same problem in weights of features, if its positions have a linear kernel that goes through them."""
    operator = problem.operator
    assert isinstance(operator, DirectSum)
    on_positions, below = operator.operators
    if not isinstance(on_positions, LabelMixed):
        return None
    (linear, structure), *others = on_positions.terms
    if not isinstance(linear, LinearFeatures):
        return None
    like, targets = problem.targets[:, :, 0], problem.targets
    parts: list[Operator] = [Weights(linear.variance, structure, linear.X.shape[1], like)]
    for term, own in others:
        assert isinstance(term, Intercept)
        parts.append(Weights(term.variance, own, 1, like))
    prior = DirectSum([*parts, below])
    loss = FeatureLoss(problem.loss, linear, targets, problem.weights, intercept=len(others) > 0)
    rows = np.zeros((prior.shape[0], *targets.shape[1:]), dtype=targets.dtype)
    return Problem(prior, loss, rows, problem.regularization)


def kept_weights(X: Array, parts: list[Any], coefficients: Array) -> dict[str, Array]:
    """The fitted function of weights: unit vectors in the place of positions, and their coefficients."""
    d, eye = parts[0].shape[0], sp.eye_array
    sparse = sp.issparse(X) or d > X.shape[0]  # a dense one is no larger than X
    unit = eye(d, format="csr", dtype=X.dtype) if sparse else np.eye(d, dtype=X.dtype)
    flat = coefficients.reshape(coefficients.shape[0], -1)
    rest = parts[1].variance * flat[d] if len(parts) > 1 else np.zeros(flat.shape[1])
    return {"X_fit_": unit, "dual_coef_": flat[:d], "intercept_": rest}
