"""How far off predictions are in a taxonomy.

Labels are names of nodes, leaves or inner ones. For the nodes t (true) and p (predicted) let
depth(root) = 0 and let a be their lowest common ancestor. Then

    Δ(t, p)         = (depth(t) + depth(p)) / 2 − depth(a)       half the length of the path,
    |anc(p)|        = depth(p)                                   p and its ancestors without the root,
    |anc(t)∩anc(p)| = depth(a),

and with Σ over the examples, weighted,

    taxo-loss = Σ Δ / Σ 1              precision = Σ depth(a) / Σ depth(p)
                                       recall    = Σ depth(a) / Σ depth(t).

Where the truth is an inner node a model that always answers leaves cannot be blamed for answering below it: that is
right iff a = t. `tree_zero_one_loss` counts so, and `credited` makes all other scores do.

Everything comes from depths and lowest common ancestors: no loop over the examples.

References
----------
Seeger (2006), section 8.2: taxo-loss and parent accuracy.
Kiritchenko, Matwin, Nock and Famili (2006). Learning and evaluation in the presence of class
hierarchies. Canadian AI: precision, recall and F1.
Zhou, Xiao and Wu (2011), section 2: labels that are inner nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._core.docstrings import described
from gramian.metrics._checks import check_tree_labels


def taxo_loss(y_true: Any, y_pred: Any, taxonomy: Any, *, sample_weight: Any = None) -> float:
    """Mean of half the path between the true and the predicted node; 0 is best.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Names of nodes of the taxonomy, leaves or inner ones.
    y_pred : array of shape (n_samples,)
        Names of nodes.
    taxonomy : Taxonomy, or what `gramian.labels.as_taxonomy` takes
    sample_weight : array of shape (n_samples,), default=None

    Returns
    -------
    float
        If all leaves are children of the root, the error rate.

    See Also
    --------
    parent_accuracy : Whether at least the parent is right.

    Examples
    --------
    >>> from gramian.metrics import taxo_loss
    >>> animals = {"cat": "mammal", "dog": "mammal", "owl": "bird", "emu": "bird"}
    >>> taxo_loss(["cat", "cat", "cat", "cat"], ["cat", "dog", "owl", "mammal"], animals)
    0.875
    """
    tree, true, pred, weights = check_tree_labels(y_true, y_pred, taxonomy, sample_weight)
    return float(np.average(tree.distance(true, pred) / 2, weights=weights))


@described(taxo_loss)
def parent_accuracy(y_true: Any, y_pred: Any, taxonomy: Any, *, sample_weight: Any = None) -> float:
    """Fraction of the predictions whose parent is the parent of the truth; 1 is best.

    The parent of a leaf is the node above it. An inner node stands for itself: predicting the node
    above the true leaf is right.

    Parameters
    ----------
    |y_true|
    |y_pred|
    |taxonomy|
    |sample_weight|

    Returns
    -------
    float
        If all leaves are children of the root, 1.

    See Also
    --------
    taxo_loss : How far off a prediction is, not only whether.

    Examples
    --------
    >>> from gramian.metrics import parent_accuracy
    >>> animals = {"cat": "mammal", "dog": "mammal", "owl": "bird", "emu": "bird"}
    >>> parent_accuracy(["cat", "cat", "cat", "cat"], ["cat", "dog", "owl", "mammal"], animals)
    0.75
    """
    tree, true, pred, weights = check_tree_labels(y_true, y_pred, taxonomy, sample_weight)
    parent = np.where(tree.is_leaf, tree.parent, np.arange(tree.n_nodes))
    return float(np.average(parent[true] == parent[pred], weights=weights))


@described(taxo_loss)
def hierarchical_precision(
    y_true: Any, y_pred: Any, taxonomy: Any, *, sample_weight: Any = None
) -> float:
    """Fraction of the predicted nodes that are right, counting a node and all its ancestors.

    Numerator and denominator are added up over the examples before dividing (micro average). The
    root, which is always right, does not count.

    Parameters
    ----------
    |y_true|
    |y_pred|
    |taxonomy|
    |sample_weight|

    Returns
    -------
    float
        Between 0 and 1; 0 if only the root is predicted.

    See Also
    --------
    hierarchical_recall, hierarchical_f1

    Examples
    --------
    >>> from gramian.metrics import hierarchical_precision
    >>> animals = {"cat": "mammal", "dog": "mammal", "owl": "bird", "emu": "bird"}
    >>> hierarchical_precision(["cat", "cat", "cat"], ["cat", "dog", "mammal"], animals)
    0.8
    """
    shared, _, predicted = _shared_ancestors(y_true, y_pred, taxonomy, sample_weight)
    return shared / predicted if predicted > 0 else 0.0


@described(taxo_loss)
def hierarchical_recall(
    y_true: Any, y_pred: Any, taxonomy: Any, *, sample_weight: Any = None
) -> float:
    """Fraction of the true nodes that are found, counting a node and all its ancestors.

    Numerator and denominator are added up over the examples before dividing (micro average). The
    root, which is always found, does not count.

    Parameters
    ----------
    |y_true|
    |y_pred|
    |taxonomy|
    |sample_weight|

    Returns
    -------
    float
        Between 0 and 1; 0 if only the root is true.

    See Also
    --------
    hierarchical_precision, hierarchical_f1

    Examples
    --------
    >>> from gramian.metrics import hierarchical_recall
    >>> animals = {"cat": "mammal", "dog": "mammal", "owl": "bird", "emu": "bird"}
    >>> hierarchical_recall(["cat", "cat", "cat"], ["cat", "dog", "mammal"], animals)
    0.666...
    """
    shared, true, _ = _shared_ancestors(y_true, y_pred, taxonomy, sample_weight)
    return shared / true if true > 0 else 0.0


@described(taxo_loss)
def hierarchical_f1(y_true: Any, y_pred: Any, taxonomy: Any, *, sample_weight: Any = None) -> float:
    """Harmonic mean of hierarchical precision and recall; 1 is best.

    Parameters
    ----------
    |y_true|
    |y_pred|
    |taxonomy|
    |sample_weight|

    Returns
    -------
    float
        If all leaves are children of the root, and only leaves occur, the accuracy.

    See Also
    --------
    hierarchical_precision, hierarchical_recall

    Examples
    --------
    >>> from gramian.metrics import hierarchical_f1
    >>> animals = {"cat": "mammal", "dog": "mammal", "owl": "bird", "emu": "bird"}
    >>> hierarchical_f1(["cat", "cat", "cat"], ["cat", "dog", "mammal"], animals)
    0.727...
    """
    shared, true, predicted = _shared_ancestors(y_true, y_pred, taxonomy, sample_weight)
    return 2 * shared / (true + predicted) if true + predicted > 0 else 0.0


@described(taxo_loss)
def tree_zero_one_loss(
    y_true: Any, y_pred: Any, taxonomy: Any, *, sample_weight: Any = None
) -> float:
    """Fraction of the predictions that are neither the true node nor below it; 0 is best.

    Parameters
    ----------
    |y_true|
    |y_pred|
    |taxonomy|
    |sample_weight|

    Returns
    -------
    float
        If only leaves are true, the error rate.

    See Also
    --------
    credited : The same rule for other scores.

    Examples
    --------
    >>> from gramian.metrics import tree_zero_one_loss
    >>> animals = {"cat": "mammal", "dog": "mammal", "owl": "bird", "emu": "bird"}
    >>> tree_zero_one_loss(
    ...     ["mammal", "mammal", "cat", "cat"], ["cat", "owl", "cat", "dog"], animals
    ... )
    0.5
    """
    tree, true, pred, weights = check_tree_labels(y_true, y_pred, taxonomy, sample_weight)
    return float(np.average(tree.lowest_common_ancestor(true, pred) != true, weights=weights))


@described(taxo_loss)
def credited(y_true: Any, y_pred: Any, taxonomy: Any) -> np.ndarray:
    """Return the predictions, with the truth in place of those below it.

    A model that always answers leaves is then right wherever it answers below a true inner node, in every score:
    ``f1_score(y_true, credited(y_true, y_pred, tree), average="micro")``.

    Parameters
    ----------
    |y_true|
    |y_pred|
    |taxonomy|

    Returns
    -------
    ndarray of shape (n_samples,)
        Names of nodes.

    See Also
    --------
    tree_zero_one_loss : The error rate by this rule.

    Examples
    --------
    >>> from gramian.metrics import credited, taxo_loss
    >>> animals = {"cat": "mammal", "dog": "mammal", "owl": "bird", "emu": "bird"}
    >>> y_true, y_pred = ["mammal", "mammal", "cat"], ["cat", "owl", "mammal"]
    >>> credited(y_true, y_pred, animals)
    array(['mammal', 'owl', 'mammal'], dtype='<U6')
    >>> taxo_loss(y_true, credited(y_true, y_pred, animals), animals)
    0.666...
    """
    tree, true, pred, _ = check_tree_labels(y_true, y_pred, taxonomy, None)
    return tree.names[np.where(tree.lowest_common_ancestor(true, pred) == true, true, pred)]


def _shared_ancestors(
    y_true: Any, y_pred: Any, taxonomy: Any, sample_weight: Any
) -> tuple[float, ...]:
    """Sums of |anc(t) ∩ anc(p)|, |anc(t)| and |anc(p)| over the examples."""
    tree, true, pred, weights = check_tree_labels(y_true, y_pred, taxonomy, sample_weight)
    shared = tree.depth[tree.lowest_common_ancestor(true, pred)]
    return tuple(float(weights @ depth) for depth in (shared, tree.depth[true], tree.depth[pred]))
