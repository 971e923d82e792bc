"""Probabilities from decision values: Platt's sigmoid for labels, a softmax with a temperature for rivals.

Sigmoids
    For each label ``p(f) = 1 / (1 + exp(−a f − b))`` with a, b that minimise the cross entropy

        Σ_i w_i [log(1 + exp(z_i)) − t_i z_i],      z_i = a f_i + b,

    to Platt's targets ``t = (N₊ + 1) / (N₊ + 2)`` for examples with the label and ``1 / (N₋ + 2)`` for those without:
    what a uniform prior makes of N₊ and N₋ (sums of weights) such examples. They keep the minimum finite where the
    classes do not overlap.

    Newton's method in two parameters with backtracking (Lin, Lin & Weng 2007, algorithm 1), in lockstep over
    labels. Decision values are centred and scaled first, so that the 2 × 2 systems are solved without cancellation.
    About ten passes over the values.

Temperatures
    For k rivals ``p_j = exp(f_j / T) / Σ exp(f_l / T)``, with T that minimises the cross entropy to the same targets,
    for k instead of two: ``(N_c + 1) / (N_c + k)`` for the winner c, ``1 / (N_c + k)`` for each other. It is convex in
    1 / T, whose best value is a root of the monotone derivative: Brent's method, some twenty passes over the values.
    Scores that say nothing, or the wrong thing, get a high T that still keeps their order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax

from gramian._core.arrays import row_blocks

_BLOCK_BYTES = 1 << 26  # of one array over examples and labels
_MAX_ITER = 100  # as in the paper; a dozen are usual
_RIDGE = 1e-12  # keeps the Hessian invertible where all values of a label are equal, whatever the weights
_FEWEST = 20  # examples that a temperature of one's own needs
_FLATTEST = 1e-3  # smallest 1 / T, for scores that differ by one at most
_STEEPEST = 1e12  # largest 1 / T


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
    >>> from gramian.estimators.margin.calibration import fit_sigmoids, sigmoids
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


def fit_temperatures(
    choices: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> np.ndarray:
    """Return the temperature of each choice; those with too few examples share one that is fitted to all.

    Parameters
    ----------
    choices : sequence of (scores of shape (n, k), winners of shape (n,), weights of shape (n,))
        Scores of k rivals for examples that the model was not trained on, and the number of the right one.

    Returns
    -------
    ndarray of shape (n_choices,)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators.margin.calibration import fit_temperatures
    >>> scores = np.tile([[1.0, 0.0], [0.0, 1.0]], (40, 1))
    >>> winners = np.tile(
    ...     [0, 1, 0, 0], 20
    ... )  # three in four are right, so that exp(1 / T) is about 3
    >>> fit_temperatures([(scores, winners, np.ones(80))]).round(1)
    array([1.])
    """
    used = [_smoothed(*choice) for choice in choices]
    pooled = 1.0 / _inverse_temperature([choice for choice in used if choice[0].size])
    return np.array(
        [
            1.0 / _inverse_temperature([choice]) if len(choice[0]) >= _FEWEST else pooled
            for choice in used
        ]
    )


def _smoothed(
    scores: np.ndarray, winners: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores relative to the largest, their expectation under the targets, and weights, of examples that count."""
    some = (weights > 0) & (scores.shape[1] > 1)
    S, winners, w = scores[some].astype(np.float64), winners[some], weights[some]
    S -= S.max(axis=1, keepdims=True, initial=-np.inf)
    totals = np.bincount(winners, w, minlength=S.shape[1])[winners]
    own = S[np.arange(len(S)), winners]
    return S, (totals * own + S.sum(axis=1)) / (totals + S.shape[1]), w


def _inverse_temperature(choices: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> float:
    spread = max((-S.min(initial=0.0) for S, _, _ in choices), default=0.0)
    if spread == 0:
        return 1.0  # all scores are equal, or there are none

    def slope(a: float) -> float:  # a is 1 / T in units of the spread
        return sum(
            float(w @ ((softmax(a / spread * S, axis=1) * S).sum(axis=1) - wanted))
            for S, wanted, w in choices
        )

    low = high = _FLATTEST
    while slope(high) < 0 and high < _STEEPEST:
        low, high = high, 4 * high
    best = high if low == high or high >= _STEEPEST else brentq(slope, low, high, rtol=1e-10)
    return float(best) / spread


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
        ridge = _RIDGE * (1 + curvature.sum(axis=0))
        a, c = (curvature * f * f).sum(axis=0) + ridge, curvature.sum(axis=0) + ridge
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
