"""Learning the parameters of a prior by cross-validation: assemble the criteria, search, hand over.

The mathematics is in `criterion` (its value and gradient) and `search` (how it is minimised).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from gramian._core.arrays import Array, device_of, namespace, to_numpy
from gramian._core.caller import level_of_caller
from gramian.labels import LearnedCoupling
from gramian.losses import Loss
from gramian.operators import Operator
from gramian.selection.chain_prior import AnyPrior
from gramian.selection.coupling import JudgedCoupling, learn_coupling
from gramian.selection.criterion import CrossValidationCriterion
from gramian.selection.folds import fold_masks
from gramian.selection.prior import GramSettings, Prior
from gramian.selection.ridge_criterion import choose_criterion
from gramian.selection.rounded import rounded
from gramian.selection.search import CrossValidationSearch
from gramian.selection.walk import OptimizationPath
from gramian.solvers import Problem

# Of the loss: by less, another form of the kernel is not better; by more, on few rows, it will be worse on more rows.
NO_MATTER, FAR_BEHIND = 0.01, 0.05

Race = tuple[tuple[AnyPrior, OptimizationPath], ...]


@dataclass(frozen=True, eq=False)
class LearningData:
    """Examples to learn hyperparameters from.

    Attributes
    ----------
    X : array, sparse array or Pairs of n examples
    take : callable
        Returns the examples of some rows of X: those for a quick search on few of them.
    y : ndarray of shape (n,)
        What folds are made from.
    targets : array of shape (n, C) or (n, C, q)
    loss : Loss
    weights : array of shape (n,) or None
        Zero for examples that are to take no part.
    stratified : bool
        Whether y holds classes that folds and samples should have in proportion.
    sample : callable or None
        Returns the numbers of about so many rows that stand for all of them; None draws single rows.
    groups : array of shape (n,) or None
        Examples that are held out together.
    """

    X: Any
    take: Callable[[np.ndarray], Any]
    y: np.ndarray
    targets: Array
    loss: Loss
    weights: Array | None
    stratified: bool
    sample: Callable[[int], np.ndarray] | None = None
    groups: Any = None

    @property
    def size(self) -> int:
        """Number of examples; of sequences it is that of their positions."""
        return len(self.y)

    def spread(self, masks: np.ndarray, below: float) -> np.ndarray:
        """Return masks of examples as masks of the rows of a problem; ``below`` is for rows of no example."""
        return masks

    def folds(self, cv: Any, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return who trains and who is held out, a column for each fold."""
        return fold_masks(
            cv,
            self.X,
            self.y,
            classifier=self.stratified,
            groups=self.groups,
            random_state=random_state,
        )

    def rows(self, rows: np.ndarray) -> LearningData:
        """Return the data of some examples."""
        numbers = namespace(self.targets).asarray(rows, device=device_of(self.targets))

        def taken(values: Array | None) -> Array | None:
            return None if values is None else namespace(values).take(values, numbers, axis=0)

        return replace(
            self,
            X=self.take(rows),
            y=self.y[rows],
            targets=taken(self.targets),
            loss=self.loss.of_rows(rows),
            weights=taken(self.weights),
            groups=None if self.groups is None else np.asarray(self.groups)[rows],
        )


@dataclass(frozen=True, eq=False)
class Learned:
    """The prior with learned parameters, its loss, the path, coefficients to start from, the coupling, and the race.

    The race is the path that each prior had gone when one of them was chosen; it is empty where there was only one.
    """

    prior: AnyPrior
    loss: float
    path: OptimizationPath
    start: Array | None
    coupling: JudgedCoupling | None = None
    race: Race = ()


class _Stages:
    """The problems of a search, on all rows or some."""

    def __init__(self, data: LearningData, cv: Any, regularization: float, gram: GramSettings):
        self.data, self.regularization, self.gram = data, regularization, gram
        self.training, self.held_out = data.folds(cv, gram.random_state)
        kinds = data.y if data.stratified else np.zeros(len(data.y))
        self.strata, self.n_classes = _strata(kinds, self.held_out)
        weights = 1.0 if data.weights is None else to_numpy(data.weights)
        self.total_weight = float((data.spread(self.held_out, 0.0).T * weights).sum())

    def problem(
        self, prior: AnyPrior, size: int, *, exact: bool = False
    ) -> tuple[Problem, tuple[np.ndarray, np.ndarray]]:
        """The problem on so many rows, and its folds; an exact one has no matrix in single precision beside it."""
        data, gram = self.data, self.gram
        part, rows = data, np.arange(len(data.y))
        if size < data.size:
            rows = data.sample(size) if data.sample else _representative(self.strata, size, gram)
            part = data.rows(rows)
        problem = _problem(prior, part, gram, self.regularization, exact)
        folds = part.spread(self.training[rows], 1.0), part.spread(self.held_out[rows], 0.0)
        return problem, folds


def learn_prior(
    priors: Sequence[AnyPrior],
    data: LearningData,
    search: CrossValidationSearch,
    *,
    cv: Any,
    regularization: float,
    gram: GramSettings,
    report: Callable[[np.ndarray, float], bool],
    coupling: LearnedCoupling | None = None,
) -> Learned:
    """Search for the log-parameters of the prior, on some rows first if there are many.

    Parameters
    ----------
    priors : sequence of Prior
        With the parameters that the search starts from. Of several, which differ in the form of the kernel, the first
        that is about as low as any after two stages goes on.
    data : LearningData
    search : CrossValidationSearch
    cv : int, splitter or iterable of splits
    regularization : float
    gram : GramSettings
    report : callable
        Gets the parameters and the value of each evaluation, and returns whether to stop.
    coupling : LearnedCoupling, default=None
        How outputs are to find out what they have in common, once the parameters are known.

    Returns
    -------
    Learned
    """
    stages = _Stages(data, cv, regularization, gram)
    runners = [_Runner(prior.in_units_of(data.X), stages, search, report) for prior in priors]
    runner, race = _winner(runners)
    halted = any(one.stopped for one in runners)
    path = runner.walk.path if halted else runner.walk.finish()
    stopped = halted or runner.stopped
    if search.max_samples is None and not stopped:  # else limits are what was asked for
        _warn_of_early_end(path)
        _warn_of_bounds(path, runner.prior.bounds, search.tol)
    whole = path.n_samples[-1] == data.size  # else a callback stopped the coarse search
    found = runner.found
    if coupling is None or stopped:
        coefficients = runner.criterion.combined_coefficients() if whole else None
        return Learned(found, runner.value, path, coefficients, race=race)
    related, judged = learn_coupling(
        cast(Prior, found),  # label sequences have no couplings
        lambda other: stages.problem(other, runner.sizes[-1], exact=True),
        coupling,
        partial(runner.reported, found.theta),
    )
    start = judged.start if whole else None
    return Learned(related, judged.judged_loss, path, start, judged, race)


def _winner(runners: Sequence[_Runner]) -> tuple[_Runner, Race]:
    """The first of several that is about as low as any after two stages, and how far each had come by then.

    Who is far behind after the first stage, on few rows, takes no part in the second one, which costs more.
    """
    if len(runners) == 1:
        return runners[0], ()
    field = list(runners)
    for behind in (FAR_BEHIND, NO_MATTER):
        stopped = any(one.advanced() for one in field)
        field = _not_behind(field, behind)
        if stopped or len(field) == 1 or not field[0].walk.ahead:
            break
    seen = [one for one in runners if one.has_begun]
    return _not_behind(field, NO_MATTER)[0], tuple((one.found, one.walk.path) for one in seen)


def _not_behind(field: Sequence[_Runner], share: float) -> list[_Runner]:
    """Those whose loss is at most a share above the lowest one."""
    begun = [one for one in field if one.has_begun]
    lowest = min(one.lowest for one in begun)
    return [one for one in begun if one.lowest - lowest <= share * abs(lowest)]


class _Runner:
    """One prior, and the search for its parameters."""

    def __init__(
        self,
        prior: AnyPrior,
        stages: _Stages,
        search: CrossValidationSearch,
        report: Callable[[np.ndarray, float], bool],
    ):
        if search.prior is not None:
            search.prior.check(prior.theta.size)
        self.prior, self.stages, self.search, self.report = prior, stages, search, report
        self.stopped = False
        data = stages.data
        self.sizes = search.sizes(data.size, stages.n_classes, coarse=data.sample is None)
        self.walk = search.walk(
            [partial(self._stage, size) for size in self.sizes],
            self.sizes,
            prior.theta,
            prior.bounds,
            prior.names,
            stages.total_weight,
            tied=prior.tied,
            starts=prior.starts(),
            report=self.reported,
        )

    def _stage(self, size: int) -> CrossValidationCriterion:
        problem, folds = self.stages.problem(self.prior, size)
        self.criterion = choose_criterion(problem, *folds)
        return self.criterion

    def reported(self, theta: np.ndarray, value: float) -> bool:
        """Tell of an evaluation, and return whether to stop."""
        self.stopped = self.report(theta, value)
        return self.stopped

    def advanced(self) -> bool:
        """Go through the next stage, and return whether a callback stopped it."""
        self.walk.advance()
        return self.stopped

    @property
    def has_begun(self) -> bool:
        """Whether any parameters were tried."""
        return bool(self.walk.descent.rows)

    @property
    def lowest(self) -> float:
        """What the search has come to, with the prior on the parameters."""
        path = self.walk.path
        return float(path.loss[path.best])

    @property
    def found(self) -> AnyPrior:
        """The prior with the best parameters."""
        path = self.walk.path
        return self.prior.with_theta(path.theta[path.best])

    @property
    def value(self) -> float:
        """The cross-validated loss of the best parameters."""
        path, value = self.walk.path, self.lowest
        if self.search.prior is None:
            return value
        penalty = self.search.prior(path.theta[path.best], self.prior.theta)[0]
        return value - penalty / self.stages.total_weight


def _problem(
    prior: AnyPrior, data: LearningData, gram: GramSettings, regularization: float, exact: bool
) -> Problem:
    """The problem whose operator a search varies."""
    targets = outputs_first(data.targets)[:, :, 0]

    def build(dtype: Any) -> Operator:
        return prior.operator(data.X, targets, gram, learning=True, dtype=dtype)[0]

    # closed forms for quadratic losses need a matrix in double precision
    precision = None if exact or data.loss.quadratic else getattr(data.X, "dtype", None)
    operator = rounded(build, precision, regularization, targets.shape[1])
    return Problem(operator, data.loss, targets, regularization, data.weights)


def _warn_of_early_end(path: OptimizationPath) -> None:
    if not path.converged:
        warnings.warn(
            f"The search for hyperparameters ended early: {path.message}. Raise max_evaluations or tol of "
            "optimize=CrossValidationSearch(...), or start from another kernel.",
            ConvergenceWarning,
            stacklevel=level_of_caller(),
        )


def _warn_of_bounds(path: OptimizationPath, bounds: np.ndarray, tol: float) -> None:
    """Name the parameters that would go on beyond their bounds."""
    theta, slope = path.theta[path.best], path.gradient[path.best]
    low, high = bounds.T
    steep = np.abs(slope) > tol * abs(path.loss[path.best])
    beyond = steep & (low < high) & np.where(slope > 0, theta <= low, theta >= high)
    if beyond.any():
        ends = [f"{path.names[k]} = {np.exp(theta[k]):.3g}" for k in np.flatnonzero(beyond)]
        warnings.warn(
            f"The search for hyperparameters ended at bounds, and the loss still falls beyond them: {', '.join(ends)}. "
            "Give the kernel wider bounds, or scale X.",
            ConvergenceWarning,
            stacklevel=level_of_caller(),
        )


def outputs_first(targets: Array) -> Array:
    """Outputs that were independent columns (n, 1, m) as outputs (n, m, 1); others as they are."""
    if targets.ndim == 3 and targets.shape[1] == 1:
        return namespace(targets).reshape(targets, (targets.shape[0], -1, 1))
    return targets if targets.ndim == 3 else targets[:, :, None]


def _strata(y: np.ndarray, held_out: np.ndarray) -> tuple[np.ndarray, int]:
    """What samples have in proportion, classes and the folds that hold them out; and the number of classes."""
    classes, codes = np.unique(y, return_inverse=True)
    folds = np.argmax(held_out, axis=1)
    return codes.reshape(-1) * held_out.shape[1] + folds, classes.size


def _representative(codes: np.ndarray, size: int, gram: GramSettings) -> np.ndarray:
    """Sorted numbers of ``size`` rows, of each stratum in proportion; more rows include fewer."""
    rng = check_random_state(0 if gram.random_state is None else gram.random_state)
    n = codes.size
    order = rng.permutation(n)
    order = order[np.argsort(codes[order], kind="stable")]
    counts = np.bincount(codes)
    place = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    share = (place + rng.random_sample(n)) / np.repeat(counts, counts)
    return np.sort(order[np.argsort(share, kind="stable")[:size]])
