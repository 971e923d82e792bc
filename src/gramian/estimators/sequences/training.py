"""Training of label sequences: in coefficients of positions, or in weights of features if the operator has some."""

from __future__ import annotations

import numpy as np

from gramian._core.arrays import Array
from gramian.estimators.smooth import SmoothTraining
from gramian.losses import FeatureLoss
from gramian.operators import (
    DirectSum,
    Intercept,
    LabelMixed,
    LinearFeatures,
    LowRank,
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
    """The same problem in weights of features, if its operator goes through some: a linear or a low-rank one."""
    operator = problem.operator
    assert isinstance(operator, DirectSum)
    on_positions, below, *functions = operator.operators
    if functions or not isinstance(on_positions, LabelMixed):
        return None
    (linear, structure), *others = on_positions.terms
    if isinstance(linear, LowRank):
        if linear.has_diagonal:
            return None
        variance = 1.0
    elif isinstance(linear, LinearFeatures):
        variance = linear.variance
    else:
        return None
    like, targets = problem.targets[:, :, 0], problem.targets
    parts: list[Operator] = [Weights(variance, structure, linear.n_weights, like, linear)]
    for term, own in others:
        assert isinstance(term, Intercept)
        parts.append(Weights(term.variance, own, 1, like))
    prior = DirectSum([*parts, below])
    loss = FeatureLoss(problem.loss, linear, targets, problem.weights, intercept=len(others) > 0)
    rows = np.zeros((prior.shape[0], *targets.shape[1:]), dtype=targets.dtype)
    return Problem(prior, loss, rows, problem.regularization)


def kept_weights(operator: DirectSum, coefficients: Array) -> dict[str, Array]:
    """The fitted function of weights: unit vectors, or an active set, in the place of positions."""
    weights, intercept = operator.operators[:2]
    d, flat = weights.shape[0], coefficients.reshape(coefficients.shape[0], -1)
    has_one = isinstance(intercept, Weights)
    rows, dual = weights.compress(flat[:d])
    rest = intercept.variance * flat[d] if has_one else np.zeros(flat.shape[1])
    return {"X_fit_": rows, "dual_coef_": dual, "intercept_": rest}
