"""A quadratic model of a function, made of all the gradients that were seen, and its minimum within a box.

Formula
    ``m(s) = gᵀs + ½ sᵀBs``. A step s that changed the gradient by y changes B by the damped BFGS formula (Powell;
    Nocedal & Wright, procedure 18.2),

        B ← B − B s sᵀ B / sᵀ B s + r rᵀ / sᵀ r,        r = t y + (1 − t) B s,

    with the largest t ≤ 1 for which ``sᵀ r ≥ 0.2 sᵀ B s``: B stays positive definite also where the function bends
    down.

Method
    Steps that a descent did not keep tell as much about curvature as others. A criterion on more rows has nearly the
    curvature of one on fewer rows, relative to its value, and the model of the one is handed to the other. Where tied
    parameters are freed, each gets its share: no other matrix that treats them alike agrees with the one of the tied
    parameters and lets groups be independent.

Cost
    p² for an update with p variables, and as much for each step of the minimiser.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from gramian._core.threads import single_threaded_blas

LEAST_SHARE = 0.2  # of the curvature along a step that an update leaves
GOAL = 1e-10  # slope of the model at its minimum, relative to its slope at the beginning


def updated(B: np.ndarray, step: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return B after a step that changed the gradient.

    Parameters
    ----------
    B : ndarray of shape (p, p)
    step, change : ndarray of shape (p,)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.selection.quasi_newton import updated
    >>> H, B = np.array([[4.0, 1.0], [1.0, 2.0]]), np.eye(2)
    >>> for s in [np.array([1.0, 0.0]), np.array([0.0, 1.0])] * 20:
    ...     B = updated(B, s, H @ s)
    >>> B.round(3)
    array([[4., 1.],
           [1., 2.]])
    """
    along = B @ step
    bend, found = float(step @ along), float(step @ change)
    if not bend > 0:
        return B
    if found < LEAST_SHARE * bend:
        t = (1 - LEAST_SHARE) * bend / (bend - found)
        change = t * change + (1 - t) * along
    return B - np.outer(along, along) / bend + np.outer(change, change) / float(step @ change)


@single_threaded_blas()  # threads would take longer to wake than the whole minimiser
def lowest_in_box(
    B: np.ndarray, gradient: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the step within a box that minimises the model, and by how much the model falls.

    Parameters
    ----------
    B : ndarray of shape (p, p)
    gradient : ndarray of shape (p,)
    low, high : ndarray of shape (p,)
        Bounds of the step, with zero between them.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.selection.quasi_newton import lowest_in_box
    >>> step, fall = lowest_in_box(
    ...     np.eye(2), np.array([-3.0, 1.0]), -2 * np.ones(2), 2 * np.ones(2)
    ... )
    >>> step.round(6), round(fall, 6)
    (array([ 2., -1.]), 4.5)
    """
    scale = np.sqrt(np.diag(B))  # variables in which the model bends alike along all axes
    slopes, bends = gradient / scale, B / np.outer(scale, scale)
    steepest = float(np.max(np.abs(slopes), initial=0.0)) or 1.0  # and slopes of one at most
    slopes = slopes / steepest

    def model(x: np.ndarray) -> tuple[float, np.ndarray]:
        along = bends @ x
        return float(slopes @ x + 0.5 * x @ along), slopes + along

    found = minimize(
        model,
        np.zeros_like(gradient),
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack([low * scale, high * scale], axis=1) / steepest,
        options={"maxiter": 1000, "ftol": 0.0, "gtol": GOAL},
    )
    return np.clip(found.x * steepest / scale, low, high), max(0.0, -float(found.fun) * steepest**2)


def freed(B: np.ndarray, tied: np.ndarray) -> np.ndarray:
    """Return the matrix of variables that were tied, from that of the common ones.

    The members of a variable share its curvature. Two variables with equally many members are coupled member by member,
    and one with a single member is coupled to all members of the others.

    Parameters
    ----------
    B : ndarray of shape (p, p)
    tied : int array of shape (P,)
        Which of the p common variables each of the others was.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.selection.quasi_newton import freed
    >>> freed(np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([0, 0, 1]))
    array([[2. , 0. , 0.5],
           [0. , 2. , 0.5],
           [0.5, 0.5, 2. ]])
    """
    members = np.bincount(tied, minlength=len(B))
    place = np.array([int(np.sum(tied[:k] == number)) for k, number in enumerate(tied)])
    size = members[tied]
    pair = (place[:, None] == place) | (size[:, None] == 1) | (size == 1)
    pair &= (size[:, None] == size) | (size[:, None] == 1) | (size == 1)
    return np.where(pair, B[np.ix_(tied, tied)] / np.maximum(size[:, None], size), 0.0)


def known_curvature(
    models: dict[tuple[int, ...], np.ndarray], drivers: np.ndarray
) -> np.ndarray | None:
    """Return the matrix that a descent with the same variables found, or the share of one with common variables.

    Parameters
    ----------
    models : dict
        Matrices by the variable that drove each parameter; the last one counts.
    drivers : int array of shape (n_parameters,)
        The variable that drives each parameter now.
    """
    if tuple(drivers) in models:
        return models[tuple(drivers)]
    for before, model in reversed(models.items()):
        tied = np.zeros(int(drivers.max(initial=0)) + 1, dtype=int)
        tied[drivers] = before
        if np.array_equal(tied[drivers], before):
            return freed(model, tied)
    return None
