"""Probabilities from decision values: Platt's sigmoid, for all labels at once.

For each label ``p(f) = 1 / (1 + exp(−a f − b))`` with a, b that minimise the cross entropy

    Σ_i w_i [log(1 + exp(z_i)) − t_i z_i],      z_i = a f_i + b,

to Platt's targets ``t = (N₊ + 1) / (N₊ + 2)`` for examples with the label and ``1 / (N₋ + 2)`` for those without:
what a uniform prior makes of N₊ and N₋ (sums of weights) such examples. They keep the minimum finite where the
classes do not overlap.

Method
    Newton's method in two parameters with backtracking (Lin, Lin & Weng 2007, algorithm 1), in lockstep over
    labels. Decision values are centred and scaled first, so that the 2 × 2 systems are solved without cancellation.

Cost
    About ten passes over the values.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from gramian._arrays import row_blocks

__all__ = ["fit_sigmoids", "sigmoids"]

_BLOCK_BYTES = 1 << 26  # of one array over examples and labels
_MAX_ITER = 100  # as in the paper; a dozen are usual
_RIDGE = 1e-12  # keeps the Hessian invertible where all values of a label are equal


def fit_sigmoids(
    values: np.ndarray, signs: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return slope and offset of the sigmoid of each label.

    Parameters
    ----------
    values : ndarray of shape (n, L)
        Decision values of examples that the model was not trained on.
    signs : ndarray of shape (n, L)
        +1 where an example has a label, −1 where it has not.
    weights : ndarray of shape (n,), default=None

    Returns
    -------
    ndarray of shape (2, L)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian._calibration import fit_sigmoids, sigmoids
    >>> f = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> sigmoids(fit_sigmoids(f, np.array([[-1], [1], [-1], [1]])), f).round(2)
    array([[0.4 ],
           [0.45],
           [0.55],
           [0.6 ]])
    """
    n, n_labels = values.shape
    w = (np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64))[:, None]
    out = np.empty((2, n_labels))
    for block in row_blocks(n_labels, 8 * n, _BLOCK_BYTES):
        out[:, block] = _fitted(np.asarray(values[:, block], np.float64), signs[:, block] > 0, w)
    return out


def sigmoids(calibration: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the probabilities of decision values of shape (n, L), in their dtype."""
    slope, offset = calibration
    return expit(values * slope + offset).astype(values.dtype, copy=False)


def _fitted(values: np.ndarray, positive: np.ndarray, w: np.ndarray) -> np.ndarray:
    centre = (w * values).sum(axis=0) / max(w.sum(), np.finfo(np.float64).tiny)
    f = values - centre
    scale = np.abs(f).max(axis=0)
    scale[scale == 0] = 1.0
    f /= scale
    n_positive, n_negative = (w * positive).sum(axis=0), (w * ~positive).sum(axis=0)
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))

    def cross_entropy(parameters: np.ndarray) -> np.ndarray:
        z = parameters[0] * f + parameters[1]
        return (w * (np.logaddexp(0, z) - targets * z)).sum(axis=0)

    parameters = np.zeros((2, f.shape[1]))
    parameters[1] = np.log((n_positive + 1) / (n_negative + 1))
    objective = cross_entropy(parameters)
    for _ in range(_MAX_ITER):
        p = expit(parameters[0] * f + parameters[1])
        residual, curvature = w * (p - targets), w * p * (1 - p)
        gradient = np.array([(residual * f).sum(axis=0), residual.sum(axis=0)])
        a, c = (curvature * f * f).sum(axis=0) + _RIDGE, curvature.sum(axis=0) + _RIDGE
        b = (curvature * f).sum(axis=0)
        step = np.array([c * gradient[0] - b * gradient[1], a * gradient[1] - b * gradient[0]])
        step /= a * c - b * b
        decrease = (gradient * step).sum(axis=0)
        # Below this the objective no longer tells steps apart, and Newton's method needs no safeguard.
        close = decrease <= 1e-10 * objective
        length = np.ones_like(decrease)
        for _ in range(30):
            new = parameters - length * step
            new_objective = cross_entropy(new)
            poor = ~close & (new_objective > objective - 1e-4 * length * decrease)
            if not poor.any():
                break
            length[poor] /= 2
        parameters, objective = new, new_objective
        if (decrease <= 1e-14 * objective).all():
            break
    slope = parameters[0] / scale
    return np.array([slope, parameters[1] - slope * centre])
