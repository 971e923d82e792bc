"""Models are fitted in pools of processes of every kind, after the parent has fitted models with threads of its own."""

import multiprocessing
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gramian import (
    HierarchicalSVC,
    KernelLogisticRegression,
    KernelRidge,
    KernelSVC,
    M3LClassifier,
)

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.arange(60) % 4
MANY = (X[:, :3] > 0).astype(int)
TREE = {"P": [0, 1], "Q": {"R": [2, 3]}}
MODELS = (
    (KernelRidge(regularization=0.1), Y),
    (KernelLogisticRegression(regularization=0.1), Y),
    (KernelSVC(regularization=0.1), Y),
    (M3LClassifier(30.0, loss="hamming", kernel="rbf"), MANY),
    (HierarchicalSVC(TREE, "orthogonal", C=30.0), Y),
)


def predictions(number):
    """What a model predicts of its training data; at the top level, so that other processes find it."""
    model, y = MODELS[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(model.fit(X, y).predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("kind", multiprocessing.get_all_start_methods())
def test_four_processes_predict_what_the_parent_does(kind):
    here = [predictions(number) for number in range(len(MODELS))]
    numbers = 2 * list(range(len(MODELS)))
    with multiprocessing.get_context(kind).Pool(4) as pool:
        there = pool.map_async(predictions, numbers).get(timeout=300)
    for number, found in zip(numbers, there, strict=True):
        np.testing.assert_array_equal(found, here[number])
