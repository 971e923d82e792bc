"""Scores of a taxonomy and of sequences as scikit-learn's scorers: larger is better, losses are negated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.metrics import make_scorer

from gramian.labels import as_taxonomy
from gramian.metrics.hierarchical import (
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    parent_accuracy,
    taxo_loss,
    tree_zero_one_loss,
)
from gramian.metrics.sequences import chunk_f1_score, position_accuracy, sequence_accuracy

_ACCURACIES = (parent_accuracy, hierarchical_precision, hierarchical_recall, hierarchical_f1)


def taxonomy_scorers(taxonomy: Any) -> dict[str, Callable[..., float]]:
    """Return scorers for ``cross_validate`` and ``GridSearchCV``.

    They score what ``predict`` returns and take ``sample_weight``. As always in scikit-learn a
    larger score is better: "taxo_loss" is the negative of `taxo_loss`.

    Parameters
    ----------
    taxonomy : Taxonomy, or what `gramian.labels.as_taxonomy` takes

    Returns
    -------
    dict of str: scorer
        "taxo_loss", "tree_accuracy" (one minus `tree_zero_one_loss`), "parent_accuracy", "hierarchical_precision",
        "hierarchical_recall" and "hierarchical_f1". They can be pickled, so that searches run in several processes.

    See Also
    --------
    taxo_loss, tree_zero_one_loss, parent_accuracy, hierarchical_precision, hierarchical_recall, hierarchical_f1

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> from gramian.metrics import taxonomy_scorers
    >>> iris = load_iris()
    >>> X, y = iris.data, iris.target_names[iris.target]
    >>> scorers = taxonomy_scorers({"setosa": "short", "versicolor": "long", "virginica": "long"})
    >>> search = GridSearchCV(SVC(), {"C": [1e-4, 1.0]}, scoring=scorers, refit="taxo_loss")
    >>> search.fit(X, y).best_params_
    {'C': 1.0}
    """
    tree = as_taxonomy(taxonomy)
    return {
        "taxo_loss": make_scorer(taxo_loss, greater_is_better=False, taxonomy=tree),
        "tree_accuracy": make_scorer(_tree_accuracy, taxonomy=tree),
        **{score.__name__: make_scorer(score, taxonomy=tree) for score in _ACCURACIES},
    }


def sequence_scorers() -> dict[str, Callable[..., float]]:
    """Return scorers for ``cross_validate`` and ``GridSearchCV`` of an estimator that labels sequences.

    They score what ``predict`` returns, one array of labels for each sequence.

    Returns
    -------
    dict of str: scorer
        "position_accuracy" and "sequence_accuracy", which take ``sample_weight``, and "chunk_f1", the micro average of
        `chunk_f1_score`, which is for BIO or BIOES tags only. They can be pickled, so that searches run in several
        processes.

    See Also
    --------
    position_accuracy, sequence_accuracy, chunk_f1_score

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from gramian.metrics import sequence_scorers
    >>> class Outside(BaseEstimator):
    ...     def predict(self, X):
    ...         return [["O"] * len(x) for x in X]
    >>> score = sequence_scorers()["position_accuracy"]
    >>> score(Outside(), [["in", "Bonn"], ["yes", "."]], [["O", "B-LOC"], ["O", "O"]])
    0.75
    """
    return {
        "position_accuracy": make_scorer(position_accuracy),
        "sequence_accuracy": make_scorer(sequence_accuracy),
        "chunk_f1": make_scorer(chunk_f1_score),
    }


def _tree_accuracy(y_true: Any, y_pred: Any, *, taxonomy: Any, sample_weight: Any = None) -> float:
    return 1.0 - tree_zero_one_loss(y_true, y_pred, taxonomy, sample_weight=sample_weight)
