"""Cross-validation as one problem: the folds are columns of weights.

A fold is a problem in which the held-out examples have weight zero. Their coefficients then stay
zero by themselves (ρ and W vanish there), so q folds are q columns of weights in one lockstep
solve: one pass over the Gram matrix serves all of them, and ``U = 𝒦A`` holds the predictions for
the held-out examples at no extra cost.
"""

from __future__ import annotations

import reprlib
import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from gramian._core.arrays import Array, asarray_like, namespace
from gramian.losses.base import weighted
from gramian.solvers import Problem, Solution, newton


def fold_masks(
    cv: Any,
    X: Any,
    y: Any,
    *,
    classifier: bool = False,
    groups: Any = None,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return one column for each fold: who trains, and who is held out.

    Parameters
    ----------
    cv : int, splitter or iterable of splits
        A number means shuffled folds, because the examples of many files are sorted. A splitter is taken as it is.
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    classifier : bool, default=False
        Whether a number of folds keeps the proportions of classes.
    groups : array of shape (n_samples,), default=None
        Examples of one group are held out together; a splitter gets the groups.
    random_state : int or RandomState, default=None
        How a number of folds is shuffled; None is always the same way.

    Returns
    -------
    training, held_out : ndarray of shape (n_samples, n_folds)
        Zeros and ones.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.selection import fold_masks
    >>> from sklearn.model_selection import KFold
    >>> fold_masks(KFold(2), np.zeros((4, 1)), np.arange(4))[0]
    array([[0., 1.],
           [0., 1.],
           [1., 0.],
           [1., 0.]])
    >>> fold_masks(2, np.zeros((4, 1)), np.arange(4))[0].sum(axis=0)
    array([2., 2.])
    """
    try:
        splitter = _splitter(cv, y, classifier, groups is not None, random_state)
        with warnings.catch_warnings():  # a fold without some class is no fault here
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            splits = list(splitter.split(X, y, groups))
        masks = np.zeros((2, X.shape[0], len(splits)))
        for k, split in enumerate(splits):
            for mask, rows in zip(masks, split, strict=True):
                mask[rows, k] = 1
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"cv={reprlib.repr(cv)} does not split the data: {error}") from None
    if not splits:
        raise ValueError(f"cv must give at least one split, got {reprlib.repr(cv)}.")
    return masks[0], masks[1]


def _splitter(cv: Any, y: Any, classifier: bool, grouped: bool, random_state: Any) -> Any:
    """The splitter for cv."""
    splitter = check_cv(cv, y, classifier=classifier)
    if not isinstance(cv, Integral):
        return splitter
    kind = type(splitter)  # stratified if y holds classes
    if grouped:
        kind = StratifiedGroupKFold if kind is StratifiedKFold else GroupKFold
    seed = 0 if random_state is None else random_state
    return kind(splitter.n_splits, shuffle=True, random_state=seed)


def cross_val_latent(problem: Problem, masks: Array, **options: Any) -> tuple[Array, Solution]:
    """Fit all folds in lockstep and return the latent values of the held-out examples.

    Parameters
    ----------
    problem : Problem
        The problem on all examples, with targets of shape (n, C).
    masks : array of shape (n, n_folds)
        Training masks as from `fold_masks`; every example is held out in exactly one fold.
    **options
        Passed on to `newton`.

    Returns
    -------
    latent : array of shape (n, C)
    solution : Solution
        With coefficients of shape (n, C, n_folds).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Squared
    >>> from gramian.operators import Dense
    >>> from gramian.selection import cross_val_latent, fold_masks
    >>> from gramian.solvers import Problem
    >>> from sklearn.model_selection import KFold
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> problem = Problem(Dense(RBF(0.3), X), Squared(), np.sin(3 * X), regularization=1e-3)
    >>> masks, _ = fold_masks(KFold(5, shuffle=True, random_state=0), X, X[:, 0])
    >>> latent, solution = cross_val_latent(problem, masks)
    >>> solution.status, bool(np.abs(latent - np.sin(3 * X)).max() < 0.1)
    ('converged', True)
    """
    masks = checked_mask("masks", masks, problem)
    xp = namespace(masks)
    held_out = 1 - masks
    if not bool(xp.all(xp.sum(held_out, axis=1) == 1)):
        raise ValueError("masks must hold out every example in exactly one fold.")
    folds = replace(problem, weights=weighted(masks, problem.weights))
    solution = newton(folds, **options)
    latent = xp.reshape(solution.latent, folds.shape)
    return xp.sum(latent * held_out[:, None, :], axis=2), solution


def checked_mask(name: str, mask: Array, problem: Problem) -> Array:
    """Return a mask of shape (n, n_folds) as an array like the targets; refuse other shapes and values."""
    mask, n = asarray_like(mask, problem.targets), problem.shape[0]
    if mask.ndim != 2 or mask.shape[0] != n:
        raise ValueError(f"{name} must have shape ({n}, n_folds), got {tuple(mask.shape)}.")
    if not bool(namespace(mask).all((mask == 0) | (mask == 1))):
        raise ValueError(f"{name} must hold zeros and ones, and nothing else.")
    return mask
