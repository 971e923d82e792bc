"""Learning how outputs are related: S = v (B Bᵀ + diag d) by the cross-validation gradient (Seeger §7.2), judged.

Starting from unrelated outputs, B = 0 and d = 1 with the kernel and the variance v that were found for them, once for
each role of the folds (`judged`):

1. The criterion at the start has the derivative ``G = v sym(Aᵀ M F)`` in S, from coefficients A and adjoint F that it
   has anyway. B = 0 is a saddle: along a unit vector u, B = ε u changes the criterion by ε² uᵀ G u to lowest order. So
   B departs along the eigenvectors of the most negative eigenvalues, with lengths as they promise.
2. A path follows the gradient in B and log d (`gradient_path`), with kernel and variance as they are: the scale of S
   is in d.
3. The best judged point of the path is kept, or the start.

The relation is the geometric mean of B Bᵀ + diag d over the roles if the judged loss falls by more than its standard
error says could be chance (all examples judge once, with and without a coupling), else the identity.

Rank "auto": the eigenvectors that promise at least `LEAST_PROMISE` of what the best one does. Factors that are of no
use stay small, so the number is not critical.

Cost: an evaluation costs what it costs without a coupling, plus products with B. Some ten of them for each role.

Deviates from the paper, which says that B is to be learned and not how, in everything but the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gramian._core.arrays import Array
from gramian.labels import Coupling, FactoredCoupling, LearnedCoupling
from gramian.operators import LabelMixed
from gramian.selection.criterion import CrossValidationCriterion
from gramian.selection.descent import Evaluation
from gramian.selection.gradient_path import GradientPath
from gramian.selection.judged import Verdict, gain_and_error, judged_descents
from gramian.solvers import Problem

LARGEST_RANK = 8
LEAST_PROMISE = 0.1  # of the eigenvalue of a factor, relative to the largest
DEPARTURE = 0.3  # variance of the first factor at the start, relative to that of unrelated outputs
SHARE = 0.6  # of the length of B by which each step of a path moves it, and so much log d
MAX_EVALUATIONS = 20  # for each role
N_ROLES = 5
# Standard errors of its mean by which the judged loss has to fall, and without which the other roles are spared.
CONFIDENCE, HOPE, ROLES_TO_DESPAIR = 2.5, 0.5, 2
FINAL_TOL = 1e-4  # relative gap of the fits that tell the cross-validated loss


@dataclass(frozen=True, eq=False)
class JudgedCoupling:
    """How outputs were found to be related.

    Attributes
    ----------
    relation : Coupling
        With the variance of the kernel.
    n_approved, n_roles : int
        How often judges approved of a coupling, and how often they were asked.
    judged_loss, judged_flat_loss : float
        What the judges see of what they approved of, and of unrelated outputs: mean losses over all of them.
    loss : float
        Cross-validated loss of the relation.
    n_evaluations : int
    start : array of shape (n, C)
        Coefficients to start a fit from.
    """

    relation: Coupling
    n_approved: int
    n_roles: int
    judged_loss: float
    judged_flat_loss: float
    loss: float
    n_evaluations: int
    start: Array

    def told(self) -> str:
        """What was decided, in words."""
        share = f"in {self.n_approved} of {self.n_roles} roles"
        if not self.n_approved:
            return f"outputs stay unrelated: folds that judge approved of a coupling {share}"
        return (
            f"outputs are coupled: folds that judge approved {share}, with a loss of {self.judged_loss:.4g} instead "
            f"of {self.judged_flat_loss:.4g}"
        )


def learn_coupling(
    variance: float,
    problem: Problem,
    folds: tuple[np.ndarray, np.ndarray],
    asked: LearnedCoupling,
    report: Callable[[np.ndarray, float], Any],
) -> JudgedCoupling:
    """Find out what outputs have in common.

    Parameters
    ----------
    variance : float
        Of the kernel of unrelated outputs.
    problem : Problem
        That of unrelated outputs, with targets of shape (n, C).
    folds : pair of ndarray of shape (n, n_folds)
        Who trains, and who is held out.
    asked : LearnedCoupling
    report : callable
        Gets the parameters and the value of each evaluation, and returns whether to stop.
    """
    (matrix, _), *others = cast(LabelMixed, problem.operator).terms
    n_samples, n_outputs, _ = problem.shape
    most = LARGEST_RANK if isinstance(asked.rank, str) else int(asked.rank)
    own = np.ones(n_outputs if asked.diagonal == "free" else 1)
    unrelated = FactoredCoupling(np.zeros((n_outputs, min(most, n_outputs))), own, variance)
    operator = LabelMixed([(matrix, unrelated), *others])
    criterion = CrossValidationCriterion(replace(problem, operator=operator), *folds)
    kept = matrix.theta

    def descend(theta: np.ndarray) -> tuple[np.ndarray, str, bool]:
        factors = _promising(
            criterion.label_gradient(matrix), unrelated.factors.shape[1], asked.rank
        )
        beside = np.concatenate([kept, factors.reshape(-1), theta[kept.size + factors.size :]])
        logs = np.arange(beside.size) >= kept.size + factors.size
        return descent.follow(criterion, n_samples, beside, logs, SHARE)

    bounds = np.concatenate([np.stack([kept, kept], axis=1), unrelated.bounds])
    descent = GradientPath(
        bounds, (MAX_EVALUATIONS, np.inf), lambda theta: (0.0, 0 * theta), report
    )
    verdicts: list[Verdict] = []
    for verdict in judged_descents(descent, criterion, n_samples, operator.theta, descend, N_ROLES):
        verdicts.append(verdict)
        gain, error = gain_and_error(verdicts)
        if len(verdicts) >= ROLES_TO_DESPAIR and gain <= HOPE * error:
            break
    approved = gain > CONFIDENCE * error
    ends = [v.end if approved else v.start for v in verdicts]
    matrices = [unrelated.clone_with_theta(end.theta[kept.size :]).matrix for end in ends]
    relation = Coupling(geometric_mean(matrices), variance)
    whole = replace(problem, operator=LabelMixed([(matrix, relation), *others]))
    of_all = CrossValidationCriterion(whole, *folds)
    loss, _ = of_all(whole.operator.theta, tol=FINAL_TOL)
    return JudgedCoupling(
        relation,
        sum(end is not v.start for end, v in zip(ends, verdicts, strict=True)),
        len(verdicts),
        _judged_loss(verdicts, ends),
        _judged_loss(verdicts, [v.start for v in verdicts]),
        loss,
        len(descent.rows) + 1,
        of_all.combined_coefficients(),
    )


def geometric_mean(matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Exponential of the mean logarithm of positive definite matrices.

    As for variances, which are searched for by their logarithms: one role that keeps large variances does not undo what
    the others found.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.selection.coupling import geometric_mean
    >>> geometric_mean([np.eye(2), 4 * np.eye(2)])
    array([[2., 0.],
           [0., 2.]])
    """
    logs = [_function_of(matrix, np.log) for matrix in matrices]
    return _function_of(np.mean(logs, axis=0), np.exp)


def _function_of(matrix: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function of the eigenvalues of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    result = (vectors * function(values)) @ vectors.T
    return (result + result.T) / 2


def _judged_loss(verdicts: list[Verdict], points: list[Evaluation]) -> float:
    """Mean loss of all judges, each at the point of its role."""
    weights = [verdict.weights.sum() for verdict in verdicts]
    return float(np.average([point.judged for point in points], weights=weights))


def _promising(gradient: np.ndarray, most: int, rank: Any) -> np.ndarray:
    """Factors of shape (n_outputs, most) beside zero, along which the criterion falls; zeros if it does not fall."""
    slopes, vectors = np.linalg.eigh(gradient)
    factors = np.zeros((len(slopes), most))
    if slopes[0] >= 0:
        return factors
    promise = np.clip(slopes[:most] / slopes[0], 0.0, 1.0)
    used = promise >= LEAST_PROMISE if isinstance(rank, str) else promise > 0
    promise = np.where(used, np.maximum(promise, LEAST_PROMISE), 0.0)
    factors[:, : promise.size] = vectors[:, :most] * np.sqrt(DEPARTURE * promise)
    return factors
