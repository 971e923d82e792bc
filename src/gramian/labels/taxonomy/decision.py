"""From probabilities to decisions: which answer costs least on average?

Formula
    A decision d costs ``costs[d, c]`` if the true class is the leaf c. Given probabilities P of the leaves its risk is
    Σ_c P[i, c] costs[d, c], and the best decision for row i has the least risk.

Cost
    One matrix product, n × n_leaves × decisions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._core.arrays import Array, in_float64, namespace, row_blocks
from gramian._core.validation import check_choice
from gramian.labels.taxonomy.taxonomy import Taxonomy

LOSSES = ("zero_one", "taxonomic", "parent")
_BLOCK_BYTES = 2**25


def cost_matrix(loss: str, taxonomy: Taxonomy, decisions: Any) -> np.ndarray:
    """Return what each decision costs for each true leaf.

    Parameters
    ----------
    loss : {"zero_one", "taxonomic", "parent"}
        - "zero_one": 1 unless the decision is the true leaf; an inner node is always wrong.
        - "taxonomic": half the number of edges between the decision and the true leaf.
        - "parent": 1 unless the decision has the parent of the true leaf, or is this parent.
    taxonomy : Taxonomy
    decisions : int array of shape (n_decisions,)
        Node numbers; leaves or inner nodes.

    Returns
    -------
    ndarray of shape (n_decisions, n_leaves)
        Columns in the order of ``taxonomy.leaves``.

    Examples
    --------
    >>> from gramian.labels import Taxonomy, cost_matrix
    >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None})
    >>> cost_matrix("taxonomic", pets, pets.index(["car", "cat", "animal"]))
    array([[0. , 1.5, 1.5],
           [1.5, 0. , 1. ],
           [1. , 0.5, 0.5]])
    """
    check_choice("loss", loss, LOSSES)
    if loss == "taxonomic":
        return taxonomy.delta(decisions)
    nodes, leaves = np.atleast_1d(taxonomy.checked_nodes(decisions)), taxonomy.leaves
    if loss == "zero_one":
        return (nodes[:, None] != leaves).astype(float)
    family = np.where(taxonomy.is_leaf, taxonomy.parent, np.arange(taxonomy.n_nodes))
    return (family[nodes][:, None] != family[leaves]).astype(float)


def climb_until_sure(
    taxonomy: Taxonomy, node_proba: np.ndarray, nodes: np.ndarray, threshold: float
) -> np.ndarray:
    """Return, for each row, the lowest node on the way from a node to the root that is probable enough.

    Parameters
    ----------
    taxonomy : Taxonomy
    node_proba : ndarray of shape (n, n_nodes)
        See `Taxonomy.node_proba`; the root has probability 1.
    nodes : int array of shape (n,)
        Where to start, one node number for each row.
    threshold : float
        Probability that the node must have, at most 1.

    Returns
    -------
    int array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Taxonomy, climb_until_sure
    >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None})
    >>> P = pets.node_proba(np.array([[0.05, 0.5, 0.45]]))  # car, cat, dog
    >>> pets.names[climb_until_sure(pets, P, pets.index(["cat"]), 0.9)]
    array(['animal'], dtype='<U6')
    """
    nodes = np.array(nodes, dtype=np.int64)
    rows = np.arange(len(nodes))
    while True:
        unsure = (node_proba[rows, nodes] < threshold) & (nodes > 0)
        if not unsure.any():
            return nodes
        nodes = np.where(unsure, taxonomy.parent[nodes], nodes)


def minimum_risk(P: Array, costs: Any) -> Array:
    """Return the decision of least expected cost for each row of probabilities.

    Parameters
    ----------
    P : array of shape (n, n_leaves)
    costs : array of shape (n_decisions, n_leaves)

    Returns
    -------
    int array of shape (n,)
        Rows of ``costs``; the first of equally good ones. In the library of P.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import minimum_risk
    >>> minimum_risk(np.array([[0.6, 0.4], [0.9, 0.1]]), [[0.0, 5.0], [1.0, 0.0]])
    array([1, 0])
    """
    xp = namespace(P)
    table = np.asarray(costs, dtype=float)
    if P.ndim != 2 or table.ndim != 2 or table.shape[1] != P.shape[1] or table.shape[0] == 0:
        raise ValueError(
            "costs must have shape (n_decisions, n_leaves) and P (n, n_leaves), "
            f"got {table.shape} and {tuple(P.shape)}."
        )
    by_leaf = in_float64(np.ascontiguousarray(table.T), P)
    blocks = row_blocks(P.shape[0], 8 * sum(table.shape), _BLOCK_BYTES) or [slice(0)]
    best = [xp.argmin(in_float64(P[rows, ...], P) @ by_leaf, axis=1) for rows in blocks]
    return xp.concat(best)
