"""What a wrong label costs: margins from a loss that decomposes over labels, and weights of their classes.

With ``Δ_il`` the loss of example i when label l is wrong less that when it is right, the margin of
`MarginProblem` is ``Δ_il / 2``. Hariharan, Vishwanathan & Varma (2012): the Hamming loss of eq. 6 has Δ = 2; the
loss from the kernel of §3.2, ``Δ(y_i, y) = y_iᵀ R (y_i − y)``, has ``Δ_il = 2 y_il (R y_i)_l``, which has to be
at least 0.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from gramian.estimators.classes import of_examples
from gramian.estimators.margin.label_signs import LabelSigns

SQUARED = "squared_hinge"  # the loss whose hinges are squared, with the margins of the Hamming loss


def margins(loss: Any, signs: np.ndarray, correlation: np.ndarray | None) -> Any:
    """Return the margins: a number, or an array of shape (n, L)."""
    if isinstance(loss, str):
        if loss in ("hamming", SQUARED):
            return 1.0
        if loss == "correlation":
            return 1.0 if correlation is None else _margins_from(correlation, signs)
        raise ValueError(
            f"loss must be 'hamming', 'correlation', {SQUARED!r}, costs or a callable, got {loss!r}."
        )
    n, n_labels = signs.shape
    made = callable(loss) and not isinstance(loss, type)
    shapes = {
        (n_labels,): "a cost for each label",
        (2, n_labels): "costs of false alarms and of missed labels",
    }
    if made:
        shapes = {(n, n_labels): "a cost for each example and label"}
        loss = loss(signs.copy())
    try:
        costs = np.asarray(loss, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        costs = np.empty(())
    if costs.shape not in shapes:
        verb = "return" if made else "be 'hamming', 'correlation', a callable, or"
        wanted = " or ".join(f"{what} of shape {shape}" for shape, what in shapes.items())
        shape = f" of shape {costs.shape}" if costs.ndim else ""
        raise ValueError(f"loss must {verb} {wanted}; got {reprlib.repr(loss)}{shape}.")
    bad = ~(np.isfinite(costs) & (costs >= 0))
    if bad.any():
        raise ValueError(
            f"loss must hold costs that are finite and not negative, got {costs[bad][0]:g}."
        )
    if not made and costs.ndim == 2:
        costs = np.where(signs > 0, costs[1], costs[0])
    return costs / 2


def _margins_from(correlation: np.ndarray, signs: np.ndarray) -> np.ndarray:
    values = signs * (signs @ correlation)
    worst = values.min()
    if worst < -1e-12 * np.abs(correlation).max():
        i, label = np.unravel_index(values.argmin(), values.shape)
        raise ValueError(
            f"loss='correlation' needs a label_correlation R that makes no cost negative, but y (R y) is {worst:.3g} "
            f"for label {label} of example {i}. A diagonally dominant R will do: see gramian.labels.shrunk."
        )
    return np.maximum(values, 0.0)


def label_weights(
    class_weight: Any, labels: LabelSigns, weights: np.ndarray | None
) -> np.ndarray | None:
    """Return weights that broadcast to (n, L), or None; "balanced" counts the weights of the examples."""
    if not labels.has_columns:
        of_classes = of_examples(class_weight, labels.classes, labels.codes, weights)
        return None if of_classes is None else of_classes[:, None]
    if class_weight is None:
        return None
    positive = labels.signs > 0
    n, n_labels = positive.shape
    if isinstance(class_weight, str) and class_weight == "balanced":
        each = np.ones(n) if weights is None else weights
        counts = np.array([each @ ~positive, each @ positive])
        pairs = np.divide(each.sum(), 2 * counts, out=np.ones(counts.shape), where=counts > 0)
    elif isinstance(class_weight, Mapping):
        pairs = np.tile(_pair(class_weight)[:, None], (1, n_labels))
    elif isinstance(class_weight, (list, tuple)):
        if len(class_weight) != n_labels:
            raise ValueError(
                f"class_weight must have one dict for each of the {n_labels} labels, got {len(class_weight)}."
            )
        pairs = np.array([_pair(weights) for weights in class_weight]).T
    else:
        raise ValueError(
            "class_weight must be None, 'balanced', a dict {0: weight, 1: weight}, or a list of them, one for each "
            f"label; got {class_weight!r}."
        )
    return np.where(positive, pairs[1], pairs[0])


def _pair(weights: Any) -> np.ndarray:
    """Weights of examples without and with a label."""
    if (
        not isinstance(weights, Mapping)
        or not set(weights) <= {-1, 0, 1}
        or {-1, 0} <= set(weights)
    ):
        raise ValueError(
            f"class_weight must give weights to 0 (-1 if y has signs) and 1, got {weights!r}."
        )
    values = [weights.get(0, weights.get(-1, 1.0)), weights.get(1, 1.0)]
    for value in values:
        if not isinstance(value, Real) or not np.isfinite(float(value)) or value < 0:
            raise ValueError(f"class_weight must be finite and not negative, got {value!r}.")
    return np.array(values, dtype=np.float64)
