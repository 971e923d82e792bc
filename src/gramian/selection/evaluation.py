"""What a search asks of a criterion, and what it keeps of each answer."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np


class Criterion(Protocol):
    """What is minimised."""

    n_products: int  # products with the Gram operator in the last evaluation
    judged: float  # what folds that do not drive say of the last evaluation

    def __call__(
        self, theta: np.ndarray, *, tol: float, accuracy: float
    ) -> tuple[float, np.ndarray]:
        """Return value and gradient."""
        ...


class Evaluation(NamedTuple):
    """What is known of one point."""

    theta: np.ndarray
    loss: float
    gradient: np.ndarray
    products: int
    seconds: float
    n_samples: int
    judged: float
    tol: float  # relative gap of its fits
    judged_losses: np.ndarray | None  # of the single examples behind it
