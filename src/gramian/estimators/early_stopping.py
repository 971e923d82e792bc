"""Early stopping on a validation set: score every iteration, keep the best.

Few iterations regularise as a larger λ does (Airola & Pahikkala §5.2), so the iterate with the best score is the model,
not the last one. A score costs one product with the rectangular operator from training to validation examples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramian._core.arrays import Array, namespace
from gramian.operators import Operator
from gramian.solvers import Progress


@dataclass(frozen=True)
class Validation:
    """Examples that are not trained on, and what makes a good prediction for them.

    Attributes
    ----------
    X : examples
    score : callable
        From latent values of shape (n_val, C) to a number, the larger the better.
    patience : int
        Iterations without a better score after which to stop.
    """

    X: Any
    score: Callable[[Array], float]
    patience: int


@dataclass
class Watch:
    """Scores the iterations of one fit and remembers the best."""

    validation: Validation
    cross: Operator
    intercept_variance: float
    scores: list[float] = field(default_factory=list)
    best: Array = None

    def __call__(self, progress: Progress) -> bool:
        """Score the coefficients; True if there was nothing better for too long."""
        A = progress.coefficients
        A = namespace(A).reshape(A, (A.shape[0], -1))
        latent = self.cross @ A + self.intercept_variance * namespace(A).sum(A, axis=0)[None, :]
        self.scores.append(float(self.validation.score(latent)))
        best = self.best_iteration
        if best == len(self.scores):
            self.best = namespace(A).asarray(progress.coefficients, copy=True)
        return len(self.scores) - best >= self.validation.patience

    @property
    def best_iteration(self) -> int:
        """Iteration with the best score, counted from one; the first of equal ones."""
        return int(np.argmax(self.scores)) + 1

    def result(self) -> dict[str, Any]:
        """What the estimator keeps."""
        return {
            "validation_score_": np.array(self.scores),
            "best_iteration_": self.best_iteration,
        }
