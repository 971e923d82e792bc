"""Cross-validation as one problem: the folds are columns of weights.

A fold is a problem in which the held-out examples have weight zero. Their coefficients then stay
zero by themselves (ρ and W vanish there), so q folds are q columns of weights in one lockstep
solve: one pass over the Gram matrix serves all of them, and ``U = 𝒦A`` holds the predictions for
the held-out examples at no extra cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from gramian._arrays import Array, asarray_like, namespace
from gramian.solvers import Problem, Solution, newton


def training_masks(cv: Any, X: Any, y: Any, *, classifier: bool = False) -> np.ndarray:
    """Return one column of training weights for each fold.

    Parameters
    ----------
    cv : int or scikit-learn splitter
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    classifier : bool, default=False
        Whether an integer ``cv`` keeps the proportions of classes.

    Returns
    -------
    ndarray of shape (n_samples, n_folds)
        1 where the example trains, 0 where it is held out.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.selection import training_masks
    >>> training_masks(2, np.zeros((4, 1)), np.arange(4))
    array([[0., 1.],
           [0., 1.],
           [1., 0.],
           [1., 0.]])
    """
    splitter = check_cv(cv, y, classifier=classifier)
    columns = []
    for train, _ in splitter.split(X, y):
        column = np.zeros(X.shape[0])
        column[train] = 1
        columns.append(column)
    return np.stack(columns, axis=1)


def cross_val_latent(problem: Problem, masks: Array, **options: Any) -> tuple[Array, Solution]:
    """Fit all folds in lockstep and return the latent values of the held-out examples.

    Parameters
    ----------
    problem : Problem
        The problem on all examples, with targets of shape (n, C).
    masks : array of shape (n, n_folds)
        As from `training_masks`; every example is held out in exactly one fold.
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
    >>> from gramian.selection import cross_val_latent, training_masks
    >>> from gramian.solvers import Problem
    >>> from sklearn.model_selection import KFold
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> problem = Problem(Dense(RBF(0.3), X), Squared(), np.sin(3 * X), regularization=1e-3)
    >>> masks = training_masks(KFold(5, shuffle=True, random_state=0), X, X[:, 0])
    >>> latent, solution = cross_val_latent(problem, masks)
    >>> solution.status, bool(np.abs(latent - np.sin(3 * X)).max() < 0.1)
    ('converged', True)
    """
    masks = asarray_like(masks, problem.targets)
    xp = namespace(masks)
    n = problem.shape[0]
    if masks.ndim != 2 or masks.shape[0] != n:
        raise ValueError(f"masks must have shape ({n}, n_folds), got {tuple(masks.shape)}.")
    held_out = 1 - masks
    if not bool(xp.all((masks == 0) | (masks == 1))):
        raise ValueError("masks must be zeros (held out) and ones (training).")
    if not bool(xp.all(xp.sum(held_out, axis=1) == 1)):
        raise ValueError("masks must hold out every example in exactly one fold.")
    weights = masks if problem.weights is None else masks * problem.weights[:, None]
    folds = Problem(
        problem.operator, problem.loss, problem.targets, problem.regularization, weights
    )
    solution = newton(folds, **options)
    latent = problem.operator @ solution.coefficients
    return xp.sum(latent * held_out[:, None, :], axis=2), solution
