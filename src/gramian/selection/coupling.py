"""Learning how outputs are related, judged by folds (Seeger §7.2 asks for it).

Objective
    With D the variances of what outputs have for themselves, R the relation that is looked for and 𝒦_R the operator
    with ``S = S₀ + D^½ (R − I) D^½`` instead of S₀ (a multiple of the identity, or a tree):

        minimise over A and R    L(U) + (λ/2) ⟨A, 𝒦_R A⟩ + c tr(R^a),      tr R = C,   0 < a ≤ 1.

Optimality
    The functions that R relates have the second moments ``F = R D^½ Aᵀ M A D^½ R``, and ``⟨A, M A D^½ R D^½⟩`` is
    tr(R⁻¹ F). For given functions that and c tr(R^a) are least for

        R ∝ F^p,      p = 1 / (1 + a).

    a = 1, p = ½ is the trace norm of the functions (Argyriou, Evgeniou & Pontil, Convex multi-task feature learning,
    2008, eqs. 3.3 and 4.7), the only convex case; a → 0, p → 1 is the logarithm of a determinant, which leaves the
    smallest rank. p = 0 is R = I: outputs are unrelated.

Method
    From R = I, a fit for R and R from the fit take turns: iteratively reweighted penalties, each of which lowers the
    objective for a given c; here c is always the one that keeps the trace. Directions of outputs that functions do not
    use fade, one after the other. So the way is a path from unrelated outputs to few common factors, and how far to go
    is the one thing to be learned from so few examples:

    1. A path for each fold, which never sees the examples that are held out, and one for all examples. They are columns
       of one problem in lockstep, each with a relation of its own.
    2. At each point the folds judge: the mean loss of all held-out examples. The path ends when it does not fall.
    3. If it has fallen by more than `CONFIDENCE` of its standard errors over examples, the relation is that of the path
       of all examples at the point that was judged best, else I.
    4. With ``summands="apart"`` the kernel is a sum of terms M_l, each with a relation R_l of its own, and each keeps
       its trace. (With one trace for all of them wide kernels faded, because their functions have small norms.)
    5. Related outputs know more of their functions, and bear longer length scales with larger variances. Such a kernel
       has a path of its own, and is kept if it is judged to be better (then the next such kernel is tried).

Cost: a warm-started fit of all folds for each point, without gradients, some five to ten of them for each kernel; O(C³)
for R.

Deviates from the paper, which leaves open how, and from a descent by the gradient of the cross-validated loss, which
was here before: as that loss is fitted by so many parameters, it had to be driven by some folds and judged by others,
needed an adjoint at each point, and found less (see docs/architecture.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian._core.arrays import Array, asarray_like, to_numpy
from gramian.labels import Coupling, LearnedCoupling
from gramian.labels.coupling import Coregionalization, CouplingOfColumns
from gramian.labels.structure import contracted
from gramian.losses.base import of_single_examples, weighted
from gramian.operators import LabelMixed
from gramian.selection.prior import Prior
from gramian.solvers import Problem, newton

POWER = 0.8  # p
LEAST_EIGENVALUE = 1e-3  # of R: what has faded may come back
MAX_POINTS = 12  # of a path
PATIENCE = 2  # points without a better one, after which a path ends
FIT_TOL, FIT_STEPS = 1e-3, 30  # relative gap and Newton steps of the fits
# Standard errors by which the mean judged loss has to fall. That of sets without any relation mostly rises: see the
# table of approvals in benchmarks/RESULTS.md.
CONFIDENCE = 1.5


class Point(NamedTuple):
    """A point of all paths.

    Attributes
    ----------
    relations : ndarray of shape (n_folds + 1, n_terms, C, C)
        R of each fold, and of all examples, for each term of the kernel that has one.
    coefficients : array of shape (n, C, n_folds + 1)
    losses : ndarray of shape (n, n_folds)
        Of held-out examples; zero for others.
    judged : float
        Their mean.
    """

    relations: np.ndarray
    coefficients: Array
    losses: np.ndarray
    judged: float


class Paths:
    """Fits and relations of all folds in lockstep, and those of all examples as one more column.

    Parameters
    ----------
    problem : Problem
        That of unrelated outputs, with targets of shape (n, C).
    folds : pair of ndarray of shape (n, n_folds)
        Who trains, and who is held out.
    own : ndarray of shape (C,)
        D.
    """

    def __init__(self, problem: Problem, folds: tuple[np.ndarray, np.ndarray], own: np.ndarray):
        training, held_out = folds
        columns = np.column_stack([training, np.ones(len(training))])
        weights = weighted(asarray_like(columns, problem.targets), problem.weights)
        (matrix, structure), *self.others = cast(LabelMixed, problem.operator).terms
        by_terms = isinstance(matrix, LabelMixed)
        self.matrices = [part for part, _ in matrix.terms] if by_terms else [matrix]
        self.unrelated = np.asarray(structure.mix(np.eye(own.size)))
        self.folds = replace(problem, weights=weights)
        self.root = np.sqrt(own)
        judging = weighted(asarray_like(held_out, problem.targets), problem.weights)
        self.judging = np.asarray(to_numpy(judging), dtype=float)

    def fitted(self, relations: np.ndarray, start: Array | None) -> Point:
        """The point with these relations."""
        more = np.outer(self.root, self.root) * (relations - np.eye(self.root.size))
        structures = map(CouplingOfColumns, np.moveaxis(self.unrelated + more, 1, 0))
        operator = LabelMixed([*zip(self.matrices, structures, strict=True), *self.others])
        problem = replace(self.folds, operator=operator)
        with warnings.catch_warnings():  # the last fit says itself whether it converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = newton(problem, start=start, tol=FIT_TOL, max_iter=FIT_STEPS)
        losses = self._losses(solution.latent)
        judged = float(np.average(losses, weights=self.judging))
        return Point(relations, solution.coefficients, losses, judged)

    def _losses(self, U: Array) -> np.ndarray:
        """Losses of held-out examples one by one; zero for others."""
        loss, losses = self.folds.loss, np.zeros(self.judging.shape)
        for k, judges in enumerate(self.judging.T > 0):
            of_fold = of_single_examples(loss, U[:, :, k : k + 1], self.folds.targets)
            losses[judges, k] = of_fold[judges]
        return losses

    def next_relations(self, point: Point, asked: LearnedCoupling) -> np.ndarray:
        """R ∝ F^p of each column."""
        A, scale = point.coefficients, np.outer(self.root, self.root)
        products = [matrix @ A for matrix in self.matrices]
        relations = []
        for k, of_column in enumerate(point.relations):
            moments = [
                R @ (scale * contracted(A[:, :, k], MA[:, :, k])) @ R
                for R, MA in zip(of_column, products, strict=True)
            ]
            relations.append(relations_of(np.stack(moments), asked))
        return np.stack(relations)

    def walked(
        self, asked: LearnedCoupling, report: Callable[[float], bool]
    ) -> tuple[Point, Point]:
        """The point of unrelated outputs, and the one of the path from there that judges like best."""
        number = self.judging.shape[1] + 1, len(self.matrices)
        identities = np.tile(np.eye(self.root.size), (*number, 1, 1))
        points = [self.fitted(identities, None)]
        best = points[0]
        while not report(points[-1].judged) and len(points) < MAX_POINTS:
            relations = self.next_relations(points[-1], asked)
            points.append(self.fitted(relations, points[-1].coefficients))
            best = min(points, key=lambda point: point.judged)
            if all(point.judged > best.judged for point in points[-PATIENCE:]):
                break
        return points[0], best

    def gain_and_error(self, before: Point, after: Point) -> tuple[float, float]:
        """By how much the mean judged loss falls, and the standard error of that over examples."""
        gains, weights = before.losses - after.losses, self.judging
        mean = before.judged - after.judged
        return mean, float(np.sqrt(np.sum((weights * (gains - mean)) ** 2)) / np.sum(weights))


@dataclass(frozen=True, eq=False)
class JudgedCoupling:
    """How outputs were found to be related.

    Attributes
    ----------
    unrelated, end : Point
        Where the path began, and what judges approved of; the same if outputs stay unrelated.
    paths : Paths
        Who judged.
    """

    unrelated: Point
    end: Point
    paths: Paths

    @property
    def relation(self) -> Coupling | Coregionalization:
        """R, or that of each term of the kernel."""
        relations = self.end.relations[-1]
        return Coupling(relations[0]) if len(relations) == 1 else Coregionalization(relations)

    @property
    def judged_loss(self) -> float:
        """Mean loss of held-out examples, with relations that were learned without them."""
        return self.end.judged

    @property
    def n_approved(self) -> int:
        """In how many folds that loss fell."""
        gains = np.sum(self.paths.judging * (self.unrelated.losses - self.end.losses), axis=0)
        return int(np.sum(gains > 0))

    @property
    def start(self) -> Array:
        """Coefficients to start a fit from, shape (n, C)."""
        return self.end.coefficients[:, :, -1]

    def told(self) -> str:
        """What was decided, in words."""
        if self.end is self.unrelated:
            return "outputs stay unrelated: folds that judge did not approve of a coupling"
        return (
            f"outputs are coupled: the loss of folds that judge is {self.judged_loss:.4g} instead of "
            f"{self.unrelated.judged:.4g}, and lower in {self.n_approved} of {self.paths.judging.shape[1]} of them"
        )


def learn_coupling(
    prior: Prior,
    problem_of: Callable[[Prior], tuple[Problem, tuple[np.ndarray, np.ndarray]]],
    asked: LearnedCoupling,
    report: Callable[[float], bool],
) -> tuple[Prior, JudgedCoupling]:
    """Find out what outputs have in common.

    Parameters
    ----------
    prior : Prior
        That of unrelated outputs, or of a tree.
    problem_of : callable
        Gives the problem with a prior, targets of shape (n, C), and who trains and who is held out in each fold.
    asked : LearnedCoupling
    report : callable
        Gets the judged loss of each point, and returns whether to stop.

    Returns
    -------
    Prior
        With the coupling, and another kernel if that was judged to be better.
    JudgedCoupling
    """
    stopped = False
    if asked.summands == "apart":
        identities = np.eye(prior.own_variances.size)[None]
        n_terms = len(prior.kernels[0].addends())
        prior = replace(prior, coupling=Coregionalization(identities.repeat(n_terms, axis=0)))

    def reported(loss: float) -> bool:
        nonlocal stopped
        stopped = report(loss)
        return stopped

    paths = Paths(*problem_of(prior), prior.own_variances)
    unrelated, best = paths.walked(asked, reported)
    gain, error = paths.gain_and_error(unrelated, best)
    judged = JudgedCoupling(unrelated, best if gain > CONFIDENCE * error else unrelated, paths)
    smoother = prior.smoother()
    while judged.n_approved and smoother is not None and not stopped:
        paths = Paths(*problem_of(smoother), smoother.own_variances)
        _, best = paths.walked(asked, reported)
        if best.judged >= judged.judged_loss:
            break
        judged, prior, smoother = replace(judged, end=best), smoother, smoother.smoother()
    return replace(prior, coupling=judged.relation), judged


def relations_of(moments: np.ndarray, asked: LearnedCoupling) -> np.ndarray:
    """The relations R ∝ F^p of functions with second moments F, with the trace of unrelated outputs.

    Parameters
    ----------
    moments : ndarray of shape (n_terms, C, C)
        F of each term of the kernel.
    asked : LearnedCoupling
        With a number of factors, what is left beside the largest eigenvalues is a diagonal matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import LearnedCoupling
    >>> from gramian.selection.coupling import relations_of
    >>> relations_of(np.diag([4.0, 4.0, 0.1])[None], LearnedCoupling()).round(2)
    array([[[1.46, 0.  , 0.  ],
            [0.  , 1.46, 0.  ],
            [0.  , 0.  , 0.08]]])
    """
    values, vectors = np.linalg.eigh((moments + np.swapaxes(moments, 1, 2)) / 2)
    values = np.clip(values, 0.0, None) ** POWER
    total = values.sum(axis=1, keepdims=True)
    vectors = np.where(total[:, :, None] > 0, vectors, np.eye(values.shape[1]))
    values = np.where(total > 0, values, 1.0)  # no function of such a term has moved
    values *= values.shape[1] / values.sum(axis=1, keepdims=True)
    values = np.maximum(values, LEAST_EIGENVALUE)
    return np.stack([_of_rank(*term, asked) for term in zip(values, vectors, strict=True)])


def _of_rank(values: np.ndarray, vectors: np.ndarray, asked: LearnedCoupling) -> np.ndarray:
    """The matrix with these eigenvalues, of which some are averaged if so many factors are asked for."""
    if isinstance(asked.rank, str) or asked.rank >= len(values):
        return (vectors * values) @ vectors.T
    rest = len(values) - int(asked.rank)
    factors = vectors[:, rest:]
    if asked.diagonal == "tied":
        mean = values[:rest].mean()
        return (factors * (values[rest:] - mean)) @ factors.T + mean * np.eye(len(values))
    left = (vectors[:, :rest] ** 2) @ values[:rest]
    return (factors * values[rest:]) @ factors.T + np.diag(left)
