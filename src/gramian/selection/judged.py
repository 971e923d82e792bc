"""Judged descent: parameters that could fit their folds go only as far as other folds approve.

The loss that drove a descent in many parameters says little about them: it falls whether they are learned or fitted.
So folds have roles. Some drive; the others, whose examples the drivers never see (`CrossValidationCriterion.drive`),
judge every point on the way, and the best judged one is kept. That is the start if none is better. The roles then
change, so that each fold judges once. What the ends have in common is for the caller to say.

It serves length scales of features and kernels of classes (`search`). Couplings of outputs are judged in the same
spirit, but need no gradient (`coupling`).

Cost: that of one descent for each role, each of which ends when judges have not approved for a while.

Why judges must be apart: with examples that judge among those that train the drivers, the same pair of examples counts
in both directions. Measured with couplings learned in this way, twelve classes in four groups of 8 examples (4 seeds):
judges saw the loss fall by 0.08 while that of new examples rose by 0.06. With judges apart it did not rise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gramian.selection.descent import Descent, Evaluation

N_ROLES = 2


class Verdict(NamedTuple):
    """What one role came to.

    Attributes
    ----------
    start, end : Evaluation
        Where the descent began, and its best judged point; the same if judges approved of no other.
    weights : ndarray of shape (n_judged,)
        Of the examples that judged.
    message : str
        Why the descent ended.
    converged : bool
    """

    start: Evaluation
    end: Evaluation
    weights: np.ndarray
    message: str
    converged: bool


def gain_and_error(verdicts: Sequence[Verdict]) -> tuple[float, float]:
    """Mean gain over all examples that judged, and its standard error; those of a loss that is a sum over examples."""
    weights = np.concatenate([verdict.weights for verdict in verdicts])
    before = np.concatenate([np.asarray(verdict.start.judged_losses) for verdict in verdicts])
    gains = before - np.concatenate([np.asarray(v.end.judged_losses) for v in verdicts])
    mean = float(np.average(gains, weights=weights))
    return mean, float(np.sqrt(np.sum((weights * (gains - mean)) ** 2)) / np.sum(weights))


def judged_descents(
    descent: Descent,
    criterion: Any,
    n_samples: int,
    theta: np.ndarray,
    descend: Callable[[np.ndarray], tuple[np.ndarray, str, bool]],
) -> Iterator[Verdict]:
    """Descend from theta once for each role of the folds; raises `NoRoles` where there are none.

    Parameters
    ----------
    descent : Descent
    criterion : CrossValidationCriterion
    n_samples : int
        Rows of the criterion.
    theta : ndarray of shape (n_parameters,)
        What is kept unless judges approve of something else.
    descend : callable
        Descends by ``descent`` from theta, where the criterion has just been evaluated, and returns what
        `Descent.minimise` returns.

    Yields
    ------
    Verdict
        Fewer than roles if a callback stops the search.
    """
    folds = np.arange(criterion.n_folds)
    beginning = criterion.warm_start
    try:
        for role in range(min(N_ROLES, criterion.n_folds)):
            criterion.drive(folds % N_ROLES != role)
            criterion.warm_start = beginning  # not from the end of another path
            descent.forget()
            descent.models.clear()  # curvature along common values would leap over what judges look for
            first = len(descent.rows)
            descent.evaluate(criterion, n_samples, theta)
            beginning = criterion.warm_start
            message, converged = "a callback stopped the search", False
            if not descent.stopped:
                _, message, converged = descend(theta)
            start, *others = descent.rows[first:]
            end = min([start, *others], key=lambda row: row.judged)
            yield Verdict(start, end, criterion.judging_weights, message, converged)
            if descent.stopped:
                return
    finally:
        criterion.drive(None)
        descent.forget()
