"""What a machine with a smooth loss learns before it solves: what was asked for, or what was left open.

A kernel that is named by a string means "find it for me", and so does ``regularization="auto"``; a kernel object with a
number for λ means "use this". What is left open is found on a sample of the examples with bounded work, by the same
criterion and gradient as ``optimize="cv"`` on all of them.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from gramian._core.arrays import to_numpy
from gramian._core.caller import level_of_caller
from gramian.estimators.examples import TrainingData
from gramian.estimators.targets import SmoothTargets
from gramian.selection import CrossValidationSearch
from gramian.selection.chain_prior import AnyPrior
from gramian.selection.learn import Learned, LearningData

LOG = logging.getLogger("gramian")

# 800 products with a matrix of 1000 rows take about as long as a fit of some thousands. Valleys are flat: searches that
# stopped at slopes of five per cent left up to six per cent of the loss (20 news groups, a Laplacian kernel on pima),
# and going on to two per cent takes little more work where there is nothing to be found.
AUTOMATIC = CrossValidationSearch(tol=0.02, max_evaluations=15, max_samples=1000, max_products=800)

# Squared losses lie in flat valleys, where slopes of three per cent are left two log-units before an optimum whose loss
# is three per cent lower (abalone, covtype). Their criterion has a closed form, so that looking closer is cheap: on
# 1500 examples ten evaluations take one to two seconds.
AUTOMATIC_RIDGE = replace(AUTOMATIC, tol=0.01, max_samples=1500)


HEAVY_TAIL = (
    100.0  # kurtosis; it is 3 for normal numbers, 9 for exponential ones, 114 for log-normal ones
)

TAIL_ENTRIES = 250_000  # of X that are looked at, in rows that are evenly spaced

SMALL_SPREAD = 0.1  # of the mean variance of all features: tails of features with less do no harm


@dataclass(frozen=True, eq=False)
class Plan:
    """How to learn, which parameters of which priors (one is chosen), from which examples and in which folds."""

    search: CrossValidationSearch
    priors: tuple[AnyPrior, ...]
    data: LearningData
    cv: Any


def plan_of(
    machine: Any, data: TrainingData, targets: SmoothTargets, *, watched: bool
) -> Plan | None:
    """Return what a machine is to learn, or None if it takes its parameters as they are.

    Parameters
    ----------
    machine : KernelMachine
    data : TrainingData
    targets : SmoothTargets
    watched : bool
        Whether there are examples to stop early by, which take the place of an automatic search.
    """
    coupled, prior = targets.coupling is not None, targets.prior
    if machine.optimize is None and not coupled:
        return None
    known = _learning_data(machine, data, targets)
    if machine.optimize is not None and machine.optimize != "auto":
        asked = CrossValidationSearch() if isinstance(machine.optimize, str) else machine.optimize
        return Plan(asked, _all_forms(machine, data, prior), known, machine.cv)
    if watched:
        return None
    if isinstance(machine.cv, Integral):  # splits that are given are of all rows
        known = _with_weight(known)
    if machine.optimize is None or not isinstance(machine.regularization, str):
        prior = prior.as_it_is()
    elif not machine._examples().named:
        prior = prior.with_variances_only()
    folds = _folds(machine.cv, known)
    low, high = prior.bounds.T
    if not folds or not (coupled or np.any(low < high)):
        return None
    closed_form = known.loss.quadratic and known.sample is None  # pairs multiply through objects
    priors = (prior,) if coupled and machine.optimize is None else _all_forms(machine, data, prior)
    return Plan(AUTOMATIC_RIDGE if closed_form else AUTOMATIC, priors, known, folds)


def _all_forms(machine: Any, data: TrainingData, prior: Any) -> tuple[AnyPrior, ...]:
    """The prior, and the same with every other form that its kernel may have."""
    examples, low_high = machine._examples(), prior.bounds.T
    if not np.any(np.less(*low_high)):  # nothing is to be found
        return (prior,)
    rivals = (examples.numbered(kernel, data.X, data.weights) for kernel in examples.rivals())
    return (prior, *(prior.with_kernel(kernel) for kernel in rivals))


def tell(machine: Any, learned: Learned, n_samples: int) -> tuple[str, ...]:
    """Say in words what was learned, and log it."""
    path, kernels = learned.path, learned.prior.kernels_with_variances()
    shown = ", ".join(map(repr, kernels[:3])) + (", …" if len(kernels) > 3 else "")
    words = (
        f"{shown} learned from {path.n_samples[-1]} of {n_samples} examples in {path.loss.size} evaluations, "
        f"cross-validated loss {learned.loss:.4g}"
    )
    choices = (words, *_told_race(learned))
    choices = choices if learned.coupling is None else (*choices, learned.coupling.told())
    for choice in choices:
        LOG.info("%s: %s", type(machine).__name__, choice)
    return choices


def _told_race(learned: Learned) -> tuple[str, ...]:
    """Say what the forms of a kernel were chosen by."""
    if not learned.race:
        return ()
    losses = [
        f"{type(prior.kernels[0]).__name__} {path.loss[path.best]:.4g} on {path.n_samples[-1]} examples"
        for prior, path in learned.race
    ]
    return (f"form of the kernel by cross-validated losses: {', '.join(losses)}",)


def heavy_tails(columns: np.ndarray) -> np.ndarray:
    """Return which columns of a table have a few values that are far from all others.

    Parameters
    ----------
    columns : ndarray of shape (n, d)
        Numbers; NaN is left out.

    Returns
    -------
    ndarray of bool of shape (d,)
        Columns of two values are never among them: the rarer of the two is no outlier.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns of nothing but NaN
        off = columns - np.nanmean(columns, axis=0)
        kurtosis = np.nanmean(off**4, axis=0) / np.nanmean(off**2, axis=0) ** 2
    return np.array([
        value > HEAVY_TAIL and np.unique(column[~np.isnan(column)]).size > 2
        for value, column in zip(kurtosis, columns.T, strict=True)
    ], dtype=bool)  # fmt: skip


def warn_of_tails(machine: Any, data: TrainingData, learned: Learned) -> None:
    """Say that one length scale cannot serve features with heavy tails, unless distances are sums of magnitudes."""
    X = data.X
    if all(kernel.metric == "manhattan" for kernel in learned.prior.kernels):
        return
    if not isinstance(X, np.ndarray):  # pairs, sparse rows, other array libraries
        return
    if not isinstance(machine.kernel, str) or machine.kernel in ("linear", "precomputed"):
        return
    some = X[:: -(-X.size // TAIL_ENTRIES)]  # a file need not be read as a whole
    some = np.asarray(some, dtype=np.float64)
    spread = some.var(axis=0)
    felt = spread > SMALL_SPREAD * spread.mean()  # others hardly change distances
    found = np.flatnonzero(heavy_tails(some) & felt)
    if found.size:
        names = data.described.get("feature_names_in_", np.arange(X.shape[1]))[found]
        shown = ", ".join(map(str, names[:5])) + (", …" if found.size > 5 else "")
        warnings.warn(
            f"{found.size} of {X.shape[1]} features have heavy tails (a kurtosis above {HEAVY_TAIL:g}): {shown}. A few "
            "examples are so far from all others that no length scale serves both. Take logarithms, or use "
            "sklearn.preprocessing.QuantileTransformer(output_distribution='normal') in a pipeline.",
            UserWarning,
            stacklevel=level_of_caller(),
        )


def _learning_data(machine: Any, data: TrainingData, targets: SmoothTargets) -> LearningData:
    examples, weights = machine._examples(), targets.weights
    if targets.known is not None:
        return replace(targets.known, sample=examples.sample(data.X, machine.random_state))
    if targets.judged is not None:
        weights = targets.judged if weights is None else weights * targets.judged
    return LearningData(
        data.X,
        lambda rows: examples.take(data.X, rows),
        to_numpy(data.y),
        targets.values,
        targets.loss,
        weights,
        stratified=targets.stratified,
        sample=examples.sample(data.X, machine.random_state),
        groups=data.groups,
    )


def _with_weight(data: LearningData) -> LearningData:
    """The examples that count: folds of those only, so that a weight of zero leaves an example out."""
    if data.weights is None or data.sample is not None:
        return data
    rows = np.flatnonzero(to_numpy(data.weights))
    return data if rows.size == len(data.y) else data.rows(rows)


def _folds(cv: Any, data: LearningData) -> Any:
    """The folds, fewer where there are not enough examples for them; None if there are none."""
    if not isinstance(cv, Integral):
        return cv
    counts = np.unique(data.y, return_counts=True)[1] if data.stratified else [len(data.y)]
    if data.groups is not None:
        counts = [np.unique(data.groups).size]
    folds = min(int(cv), int(max(counts, default=0)))
    return folds if folds > 1 else None
