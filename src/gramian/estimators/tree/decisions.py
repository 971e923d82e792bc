"""What a classifier with a taxonomy answers: probabilities of nodes, and decisions of least expected loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian._core.arrays import Array, asarray_like, namespace, to_numpy
from gramian._core.validation import check_flag, check_number
from gramian.labels import Taxonomy, climb_until_sure, cost_matrix, minimum_risk


class TreeDecisions:
    """Methods of a classifier with `classes_`, `taxonomy_` (or None) and `predict_proba`."""

    classes_: Array
    taxonomy_: Any  # a Taxonomy, or None for a flat model

    predict_proba: Callable[[Any], Array]

    def predict_node_proba(self, X: Any) -> Array:
        """Return the probability of every node of the hierarchy; a node's is the sum of its children's.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_nodes)
            Column p is node ``taxonomy_.names[p]``; column 0 is the root.
        """
        check_is_fitted(self)
        taxonomy = self._taxonomy("predict_node_proba")
        return taxonomy.node_proba(self._in_tree_order(self.predict_proba(X)))

    def decide(
        self,
        X: Any,
        loss: Any = "zero_one",
        allow_inner: bool = False,
        threshold: float | None = None,
    ) -> np.ndarray:
        """Return the decisions of least expected loss.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        loss : {"zero_one", "taxonomic", "parent"} or array of costs, default="zero_one"
            "taxonomic" is half the length of the path between decision and truth, "parent" counts wrong
            parents. Costs have one row for each decision and one column for each class in the order of `classes_`;
            decisions are the classes or, with ``allow_inner``, all nodes in the order of ``taxonomy_.names``.
        allow_inner : bool, default=False
            Whether a decision may stop at an inner node because that has the least expected loss.
        threshold : float, default=None
            Climb from the decision towards the root until a node has at least this probability.

        Returns
        -------
        ndarray of shape (n_samples,)
            Names of classes or nodes.
        """
        check_is_fitted(self)
        check_flag("allow_inner", allow_inner)
        P = self.predict_proba(X)
        taxonomy = self.taxonomy_
        if taxonomy is None and (allow_inner or (isinstance(loss, str) and loss != "zero_one")):
            raise ValueError(
                f"decide(loss={loss!r}, allow_inner={allow_inner!r}) needs a model with hierarchy=...; "
                "without one pass loss='zero_one' or a cost matrix."
            )
        classes = to_numpy(self.classes_)
        names = taxonomy.names if taxonomy is not None and allow_inner else classes
        if isinstance(loss, str):
            if taxonomy is None:
                costs = 1.0 - np.eye(classes.size)
            else:
                order = np.searchsorted(taxonomy.leaves, taxonomy.index(classes))
                costs = cost_matrix(loss, taxonomy, taxonomy.index(names))[:, order]
        else:
            costs = np.asarray(loss, dtype=float)
            if costs.shape != (len(names), classes.size) or not np.all(np.isfinite(costs)):
                raise ValueError(
                    f"loss must be a name or finite costs of shape ({len(names)}, {classes.size}), one row for each "
                    f"decision and one column for each class; got shape {costs.shape}."
                )
        decisions = names[to_numpy(minimum_risk(P, costs))]
        if threshold is None:
            return decisions
        check_number("threshold", threshold)
        if threshold > 1:
            raise ValueError(f"threshold must be a probability, at most 1; got {threshold!r}.")
        tree = self._taxonomy("decide(threshold=...)")
        at_nodes = to_numpy(tree.node_proba(self._in_tree_order(P)))
        return tree.names[climb_until_sure(tree, at_nodes, tree.index(decisions), threshold)]

    def _taxonomy(self, method: str) -> Taxonomy:
        if self.taxonomy_ is None:
            raise ValueError(f"{method} needs a model with hierarchy=...; this one is flat.")
        return self.taxonomy_

    def _in_tree_order(self, P: Array) -> Array:
        """Probabilities of the classes in the order of ``taxonomy_.leaves``."""
        leaves = np.asarray(self._taxonomy("this").leaf_names)
        place = np.searchsorted(to_numpy(self.classes_), leaves)
        return namespace(P).take(P, asarray_like(place, P, dtype=namespace(P).int64), axis=1)
