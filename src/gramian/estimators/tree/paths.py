"""Scores of nodes to answers: the way from the root to a leaf.

With the score s_i of each node i and the children of each inner node competing,

    answer      from the root on the child with the largest score, until a leaf is reached (Zhou, Xiao & Wu 2011, eq. 1)
    margin      of a leaf: the smallest s_i − (best score of a sibling of i) over the nodes i on its path
    probability of a leaf: the product over its path of exp(s_i / T) / Σ over the children of i's parent of exp(s_j / T)

The margin is what the loss of the hierarchical SVM bounds from below by one: only the answer's is not negative. Nodes
are visited in breadth-first order, so that each one's parent is done before it. Columns of scores are nodes without the
root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import log_softmax

from gramian.labels import Taxonomy


def families(taxonomy: Taxonomy) -> Iterator[tuple[int, slice]]:
    """Each inner node, and the columns of its children."""
    for node, first, end in zip(*taxonomy.families, strict=True):
        yield int(node), slice(int(first) - 1, int(end) - 1)


def descend(
    taxonomy: Taxonomy, n: int, scores: Callable[[np.ndarray, slice], np.ndarray]
) -> np.ndarray:
    """Return the leaf that each of n examples reaches.

    Parameters
    ----------
    taxonomy : Taxonomy
    n : int
    scores : callable
        Gets rows and the columns of a family, and returns these scores; it is asked for what is reached only.

    Returns
    -------
    int array of shape (n,)
        Numbers of nodes.
    """
    at = np.zeros(n, dtype=np.int64)
    for node, columns in families(taxonomy):
        rows = np.flatnonzero(at == node)
        if rows.size:
            only = columns.stop - columns.start == 1
            best = 0 if only else np.argmax(scores(rows, columns), axis=1)
            at[rows] = 1 + columns.start + best
    return at


def path_margins(taxonomy: Taxonomy, U: np.ndarray) -> np.ndarray:
    """Return the margin of every node, shape (n, n_nodes); the root's, and that of an only child of it, is infinite."""
    out = np.full((U.shape[0], taxonomy.n_nodes), np.inf, dtype=U.dtype)
    for node, columns in families(taxonomy):
        S = U[:, columns]
        nodes = slice(columns.start + 1, columns.stop + 1)
        if S.shape[1] == 1:
            out[:, nodes] = out[:, [node]]
            continue
        top = np.partition(S, -2, axis=1)[:, -2:]
        rival = np.repeat(top[:, 1:], S.shape[1], axis=1)
        rival[np.arange(len(S)), np.argmax(S, axis=1)] = top[:, 0]
        out[:, nodes] = np.minimum(S - rival, out[:, [node]])
    return out


def log_probabilities(taxonomy: Taxonomy, U: np.ndarray, temperatures: np.ndarray) -> np.ndarray:
    """Return the logarithm of the probability of every node, shape (n, n_nodes).

    Parameters
    ----------
    taxonomy : Taxonomy
    U : ndarray of shape (n, n_nodes - 1)
    temperatures : ndarray of shape (n_inner,)
        T of each inner node, ascending.
    """
    out = np.zeros((U.shape[0], taxonomy.n_nodes))
    for (node, columns), temperature in zip(families(taxonomy), temperatures, strict=True):
        S = U[:, columns].astype(np.float64, copy=False)
        nodes = slice(columns.start + 1, columns.stop + 1)
        out[:, nodes] = out[:, [node]] + log_softmax(S / temperature, axis=1)
    return out


def reaches(taxonomy: Taxonomy, nodes: np.ndarray, U: np.ndarray, *, recursive: bool) -> np.ndarray:
    """Return whether the answer of each example is its label or below it, boolean of shape (n,).

    Parameters
    ----------
    taxonomy : Taxonomy
    nodes : int array of shape (n,)
        The label of each example.
    U : ndarray of shape (n, m)
    recursive : bool
        Whether decisions go from the root to a leaf; else the first columns of U are the leaves, and the largest wins.
    """
    if recursive:
        answers = descend(taxonomy, len(U), lambda rows, columns: U[rows, columns])
    else:
        answers = taxonomy.leaves[np.argmax(U[:, : taxonomy.n_leaves], axis=1)]
    places, first = taxonomy.preorder[answers], taxonomy.preorder[nodes]
    return (first <= places) & (places < first + taxonomy.sizes[nodes])


def rivalries(
    taxonomy: Taxonomy,
    nodes: np.ndarray,
    U: np.ndarray,
    weights: np.ndarray,
    *,
    recursive: bool,
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the choices that examples say something about: scores of the rivals, the winner, weights.

    Parameters
    ----------
    taxonomy : Taxonomy
    nodes : int array of shape (n,)
        The label of each example. An inner node tells of the families above it.
    U : ndarray of shape (n, m)
    weights : ndarray of shape (n,)
    recursive : bool
        Whether to have one choice for each inner node, between its children; else one between all leaves, which are
        then the first columns of U, in which inner labels have no part.

    Returns
    -------
    list of (scores of shape (n_k, rivals), winners of shape (n_k,), weights of shape (n_k,))
    """
    if not recursive:
        rows = np.flatnonzero(taxonomy.is_leaf[nodes])
        winners = np.searchsorted(taxonomy.leaves, nodes[rows])
        return [(U[rows, : taxonomy.n_leaves], winners, weights[rows])]
    tree, out = taxonomy, []
    places = tree.preorder[nodes]
    for node, columns in families(taxonomy):
        first = tree.preorder[node]
        rows = np.flatnonzero((places > first) & (places < first + tree.sizes[node]))
        starts = tree.preorder[1:][columns]
        winners = np.searchsorted(starts, places[rows], side="right") - 1
        out.append((U[rows, columns], winners, weights[rows]))
    return out
