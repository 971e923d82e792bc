"""Learning the parameters of a prior by cross-validation: assemble the criteria, search, hand over.

No mathematics: `selection` has it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from gramian._core.arrays import Array, device_of, namespace, to_numpy
from gramian._core.caller import level_of_caller
from gramian._core.validation import check_number
from gramian.losses import Loss
from gramian.pairs import Pairs
from gramian.selection import (
    CrossValidationCriterion,
    CrossValidationSearch,
    LogNormalPrior,
    OptimizationPath,
    choose_criterion,
    fold_masks,
)
from gramian.selection.prior import Prior
from gramian.solvers import Problem


@dataclass(frozen=True)
class Data:
    """What is learned from; ``judged`` is zero for examples that are to take no part."""

    X: Array
    y: np.ndarray
    targets: Array
    loss: Loss
    weights: Array | None
    judged: Array | None


@dataclass(frozen=True)
class Learned:
    """The prior with learned parameters, its cross-validated loss, the path, and coefficients to start from."""

    prior: Prior
    loss: float
    path: OptimizationPath
    start: Array | None


def learn_prior(
    prior: Prior,
    data: Data,
    search: CrossValidationSearch,
    *,
    cv: Any,
    classifier: bool,
    regularization: float,
    intercept_variance: float,
    operator: str,
    rank: int | None,
    random_state: Any,
    report: Callable[[np.ndarray, float], bool],
) -> Learned:
    """Search for the log-parameters of the prior, on some rows first if there are many."""
    if search.prior is not None:
        search.prior.check(prior.theta.size)
    X, weights = data.X, data.weights
    training, held_out = fold_masks(cv, X, data.y, classifier=classifier)
    if data.judged is not None:
        weights = data.judged if weights is None else weights * data.judged
    outputs = outputs_first(data.targets)[:, :, 0]
    criteria: list[CrossValidationCriterion] = []

    def stage(rows: np.ndarray | None) -> CrossValidationCriterion:
        part, Y, w, trains, held = _rows_of(rows, X, outputs, weights, training, held_out, prior)
        gram, _ = prior.operator(
            part,
            Y,
            intercept_variance,
            operator,
            learning=True,
            rank=rank,
            random_state=random_state,
        )
        loss = data.loss if rows is None else data.loss.of_rows(rows)
        problem = Problem(gram, loss, Y, regularization, w)
        criteria.append(choose_criterion(problem, trains, held))
        return criteria[-1]

    n = int(X.shape[0])
    stages, sizes = [lambda: stage(None)], [n]
    size = search.coarse_samples(n)
    if isinstance(X, Pairs) and search.coarse == "auto":
        size = None  # a few pairs of many objects say little about any of them
    if size is not None:
        rows = _representative(data.y if classifier else None, n, size, random_state)
        stages.insert(0, lambda: stage(rows))
        sizes.insert(0, size)
    judged = held_out if weights is None else held_out * to_numpy(weights)[:, None]
    total = float(judged.sum())
    stopped = False

    def reported(theta: np.ndarray, value: float) -> bool:
        nonlocal stopped
        stopped = report(theta, value)
        return stopped

    start, bounds = prior.theta, prior.bounds
    path = search.run(
        stages, sizes, start, bounds, prior.names, total, tied=prior.tied, report=reported
    )
    if not path.converged and not stopped:
        warnings.warn(
            f"The search for hyperparameters ended early: {path.message}. Raise max_evaluations or tol of "
            "optimize=CrossValidationSearch(...), or start from another kernel.",
            ConvergenceWarning,
            stacklevel=level_of_caller(),
        )
    value, theta = float(path.loss[path.best]), path.theta[path.best]
    if search.prior is not None:
        value -= search.prior(theta, start)[0] / total
    whole = path.n_samples[-1] == n  # else a callback stopped the coarse search
    coefficients = criteria[-1].combined_coefficients() if whole else None
    return Learned(prior.with_theta(theta), value, path, coefficients)


def check_search(search: CrossValidationSearch) -> None:
    """Refuse settings that make no sense, by name."""
    check_number("CrossValidationSearch(tol=...)", search.tol, strict=True)
    check_number(
        "CrossValidationSearch(max_evaluations=...)", search.max_evaluations, low=1, whole=True
    )
    if search.coarse is not None and not (
        isinstance(search.coarse, str) and search.coarse == "auto"
    ):
        name = "CrossValidationSearch(coarse=...), unless it is None or 'auto',"
        check_number(name, search.coarse, low=1, whole=True)
    if search.prior is not None and not isinstance(search.prior, LogNormalPrior):
        raise TypeError(
            f"CrossValidationSearch(prior=...) must be a LogNormalPrior or None, got {search.prior!r}."
        )


def outputs_first(targets: Array) -> Array:
    """Outputs that were independent columns (n, 1, m) as outputs (n, m, 1); others as they are."""
    if targets.ndim == 3 and targets.shape[1] == 1:
        return namespace(targets).reshape(targets, (targets.shape[0], -1, 1))
    return targets if targets.ndim == 3 else targets[:, :, None]


def _rows_of(
    rows: np.ndarray | None,
    X: Array,
    Y: Array,
    weights: Array | None,
    training: np.ndarray,
    held_out: np.ndarray,
    prior: Prior,
) -> tuple:
    """The data of some rows; a precomputed matrix loses its other columns, too."""
    if rows is None:
        return X, Y, weights, training, held_out
    xp = namespace(Y)
    numbers = xp.asarray(rows, device=device_of(Y))
    if isinstance(X, Pairs):
        part = X[rows]
    else:
        part = X[rows] if sp.issparse(X) else namespace(X).take(X, numbers, axis=0)
    if any(kernel.is_precomputed for kernel in prior.kernels) and not isinstance(X, Pairs):
        part = part[:, rows] if sp.issparse(X) else namespace(X).take(part, numbers, axis=1)
    w = None if weights is None else xp.take(weights, numbers, axis=0)
    return part, xp.take(Y, numbers, axis=0), w, training[rows], held_out[rows]


def _representative(y: np.ndarray | None, n: int, size: int, random_state: Any) -> np.ndarray:
    """Sorted numbers of ``size`` rows, of each class in proportion."""
    rng = np.random.default_rng(0 if random_state is None else random_state)
    codes = (
        np.zeros(n, dtype=np.int64)
        if y is None
        else np.unique(y, return_inverse=True)[1].reshape(-1)
    )
    order = rng.permutation(n)
    order = order[np.argsort(codes[order], kind="stable")]
    counts = np.bincount(codes)
    place = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    share = (place + rng.random(n)) / np.repeat(counts, counts)
    return np.sort(order[np.argsort(share, kind="stable")[:size]])
