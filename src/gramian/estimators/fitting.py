"""The one way to fit: read the examples, read the targets, train, keep the record.

    parameters → examples → targets → training → record

Every estimator with a kernel goes through `fit_machine`. It says by small objects what its examples are
(`examples.Features`, `pairs.examples.PairExamples`), what its targets mean (`targets`, `margin.label_signs`,
`tree.labels`) and how it is trained (`smooth.SmoothTraining` or `margin.training.MarginTraining`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gramian._core.arrays import in_float64
from gramian._core.interruptions import interruptible
from gramian._core.validation import check_sample_weight
from gramian.estimators.examples import TrainingData
from gramian.estimators.progress import fitting
from gramian.estimators.rules import check_parameters


class Targets:
    """What the y of an estimator is, and what it asks of a model."""

    checks: ClassVar[dict[str, bool]] = {}  # keyword arguments of scikit-learn's validate_data

    def flattened(self, y: Any) -> Any:
        """Return y as scikit-learn validates it: one label for each example where paths are given, say."""
        return y

    def read(self, data: TrainingData) -> Any:
        """Return what y means."""
        raise NotImplementedError


@interruptible
def fit_machine(
    machine: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    assemble: Callable[[TrainingData], Any],
    groups: Any = None,
) -> Any:
    """Fit an estimator; if this fails anywhere, the estimator is as it was before.

    Parameters
    ----------
    machine : estimator
        It has ``_rules`` for its parameters, ``_examples()`` and ``_targets()`` that say what X and y are, and gets a
        ``_fitted`` record.
    X, y, sample_weight : what `fit` was called with
    assemble : callable
        Makes the training from the checked data: what has ``n_stages``, and a method ``run`` that solves the problem,
        tells callbacks of it and returns the record.
    groups : what `fit` was called with
    """
    check_parameters(machine, machine._rules)
    data = read_data(machine, X, y, sample_weight, groups)
    training = assemble(data)
    with fitting(machine, data.X, data.y, training.n_stages) as task:
        machine._fitted = training.run(task)
    return machine


def read_data(machine: Any, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> TrainingData:
    """Check examples, targets and weights, and give the kernel its numbers."""
    examples, targets = machine._examples(), machine._targets()
    kernel = examples.asked_for()
    checked, labels, described = examples.read(machine, X, targets.flattened(y), **targets.checks)
    like = in_float64(np.empty((checked.shape[0], 0)), examples.values(checked))
    weights = check_sample_weight(sample_weight, like)
    if groups is not None and np.shape(groups) != (checked.shape[0],):
        raise ValueError(
            f"groups must have shape ({checked.shape[0]},), one for each example, got {np.shape(groups)}."
        )
    numbered = examples.numbered(kernel, checked, weights)
    return TrainingData(checked, labels, y, weights, numbered, like, described, groups)
