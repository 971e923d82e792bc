"""Slow and obvious answers to contrast problems: loops over the formulas of Zhou, Xiao & Wu (2011), and CVXPY.

Nothing here uses `gramian.labels.margins.contrasts` or its penalties; trees are given by the parent of each node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import cvxpy
import numpy as np

from gramian.labels import Taxonomy, largest_alpha, orthogonality_weights
from gramian.labels.margins.tree_margins import Flat, Independent, Orthogonal, PathSum, Similarity
from gramian.solvers import ContrastProblem

PARENTS = {
    "a": None,
    "b": None,
    "c": None,
    "a1": "a",
    "a2": "a",
    "b1": "b",
    "b2": "b",
    "b3": "b",
    "c1": "c",
    "a21": "a2",
    "a22": "a2",
}  # c has one child only
METHODS = ("orthogonal", "similarity", "independent", "tree_loss", "flat")


@dataclass(frozen=True, eq=False)
class Task:
    """Examples with the node of each, caps, a method and the weights K of the orthogonal one."""

    method: str
    tree: Taxonomy
    X: np.ndarray
    nodes: np.ndarray
    caps: np.ndarray
    K: np.ndarray

    @property
    def margins(self):
        """Contrasts and penalty as the library makes them."""
        labels = np.unique(self.nodes)
        if self.method == "orthogonal":
            return Orthogonal(self.tree, labels, self.K)
        classes = {
            "similarity": Similarity,
            "independent": Independent,
            "tree_loss": PathSum,
            "flat": Flat,
        }
        return classes[self.method](self.tree, labels)

    def problem(self, inputs=None) -> ContrastProblem:
        """The problem of the library, on X or on inputs that mean the same."""
        margins, codes = self.margins, np.unique(self.nodes, return_inverse=True)[1]
        return ContrastProblem(
            self.X if inputs is None else inputs,
            contrasts=margins.contrasts,
            penalty=margins.penalty,
            **margins.units(codes, self.caps),
        )

    def rows(self, rows) -> Task:
        """Some examples, in any order."""
        return replace(self, X=self.X[rows], nodes=self.nodes[rows], caps=self.caps[rows])


@lru_cache
def task(method: str, C: float = 0.5, seed: int = 0, n: int = 24, d: int = 4) -> Task:
    """Noisy clusters; about a sixth of the labels are inner nodes."""
    rng = np.random.default_rng(seed)
    tree = Taxonomy.from_parents(PARENTS)
    names = ["a1", "a21", "a22", "b1", "b2", "b3", "c1"] * 2 + ["a", "a2", "b"]
    nodes = tree.index(np.array(names))[np.arange(n) % len(names)]
    centres = rng.normal(size=(tree.n_nodes, d))
    X = np.array([sum(centres[p] for p in path(tree, node)) for node in nodes])
    X += rng.normal(size=X.shape)
    K = orthogonality_weights(tree)
    K += (0.9 * largest_alpha(K) - 1.0) * (K - np.diag(np.diag(K)))
    return Task(method, tree, X, nodes, C * rng.uniform(0.5, 1.5, size=n), K)


# --- loops ----------------------------------------------------------------------------------------


def path(tree: Taxonomy, node: int) -> list[int]:
    """Nodes from one up to the first level; the root is 0."""
    found = []
    while node != 0:
        found.append(int(node))
        node = tree.parent[node]
    return found


def below(tree: Taxonomy, node: int) -> list[int]:
    """Leaves below a node, or itself; all of them below the root."""
    parents = set(map(int, tree.parent))
    leaves = [v for v in range(1, tree.n_nodes) if v not in parents]
    return [v for v in leaves if node in (0, *path(tree, v))]


def asked(t: Task, node: int) -> list[list[tuple[int, int, float]]]:
    """Groups of (own node, rival node, ρ); each group has a slack of its own."""
    tree = t.tree
    if t.method in ("flat", "tree_loss"):
        group = []
        for leaf in (v for v in below(tree, 0) if v not in below(tree, node)):
            apart = len(set(path(tree, node)) ^ set(path(tree, leaf)))
            group.append((int(node), leaf, 0.5 * apart if t.method == "tree_loss" else 1.0))
        return [group]
    levels = [
        [(i, j, 1.0) for j in range(1, tree.n_nodes) if j != i and tree.parent[j] == tree.parent[i]]
        for i in path(tree, node)
    ]
    return levels if t.method == "independent" else [[c for level in levels for c in level]]


def losses(t: Task, W: np.ndarray) -> float:
    """Σ c ℓ with a normal for each node, shape (n_nodes, d)."""
    total = 0.0
    for x, node, cap in zip(t.X, t.nodes, t.caps, strict=True):
        for group in asked(t, node):
            total += cap * max([0.0] + [rho * (1 - (W[i] - W[j]) @ x) for i, j, rho in group])
    return total


def omega(K: np.ndarray, W: np.ndarray) -> float:
    """½ Σ K_ij |w_iᵀ w_j|."""
    m = len(K)
    return 0.5 * sum(K[i, j] * abs(W[i] @ W[j]) for i in range(m) for j in range(m))


def free(t: Task) -> np.ndarray:
    """Φ of shape (n_nodes, k): normals are W = Φ V, and the penalty is one of V."""
    tree, size = t.tree, t.tree.n_nodes
    if t.method == "tree_loss":
        return np.array(
            [[float(v in path(tree, node)) for v in range(1, size)] for node in range(size)]
        )
    if t.method == "flat":
        leaves = below(tree, 0)
        inside = np.array([[float(v in below(tree, node)) for v in leaves] for node in range(size)])
        return inside / inside.sum(axis=1, keepdims=True)
    return np.eye(size)[:, 1:]


def edges(t: Task) -> list[tuple[int, int]]:
    """Parent and child as rows of V, without the root."""
    return [
        (t.tree.parent[v] - 1, v - 1) for v in range(1, t.tree.n_nodes) if t.tree.parent[v] != 0
    ]


def penalty(t: Task, V: np.ndarray) -> float:
    """Ω as the paper writes it."""
    if t.method == "orthogonal":
        return omega(t.K, V)
    total = 0.5 * sum(v @ v for v in V)
    if t.method == "similarity":
        total += 0.5 * sum((V[i] - V[j]) @ (V[i] - V[j]) for i, j in edges(t))
    return total


def primal(t: Task, coefficients: np.ndarray) -> float:
    """J at coefficients (n, m) of the library's outputs."""
    normals, phi = coefficients.T @ t.X, free(t)
    V = np.linalg.pinv(phi[t.margins.outputs]) @ normals
    np.testing.assert_allclose(phi[t.margins.outputs] @ V, normals, atol=1e-9)
    return penalty(t, V) + losses(t, phi @ V)


def dual(t: Task, beta: dict[tuple[int, int], np.ndarray], S: np.ndarray) -> float:
    """D from β, by example and group in the order of `asked`, and the Gram matrix S (n_nodes, n_nodes) of normals."""
    total, P = 0.0, np.zeros((t.tree.n_nodes, t.X.shape[1]))
    for (k, g), weights in beta.items():
        for (i, j, rho), b in zip(asked(t, t.nodes[k])[g], weights, strict=True):
            total += b * rho
            P[i] += b * rho * t.X[k]
            P[j] -= b * rho * t.X[k]
    return total - 0.5 * float(np.trace(S @ P @ P.T))


# --- CVXPY ----------------------------------------------------------------------------------------

PRECISE = {"solver": "CLARABEL", "tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


@lru_cache
def optimum(t: Task) -> float:
    """min J. The orthogonal penalty has no cone for its primal, but its dual in (β, σ) has one."""
    return _largest_dual(t) if t.method == "orthogonal" else _smallest_primal(t)


def _smallest_primal(t: Task) -> float:
    phi = free(t)
    V = cvxpy.Variable((phi.shape[1], t.X.shape[1]))
    total = 0.5 * cvxpy.sum_squares(V)
    if t.method == "similarity":
        child, parent = np.array([j for _, j in edges(t)]), np.array([i for i, _ in edges(t)])
        total += 0.5 * cvxpy.sum_squares(V[parent] - V[child])
    U = phi @ V @ t.X.T
    for k, node in enumerate(t.nodes):
        for own, rival, rho in (zip(*group, strict=True) for group in asked(t, node) if group):
            costs = cvxpy.multiply(np.array(rho), 1 - U[list(own), k] + U[list(rival), k])
            total += t.caps[k] * cvxpy.pos(cvxpy.max(costs))
    return float(cvxpy.Problem(cvxpy.Minimize(total)).solve(**PRECISE))


def _largest_dual(t: Task) -> float:
    m = t.tree.n_nodes - 1
    pairs = np.argwhere(np.triu(t.K, 1) > 0)
    signs = cvxpy.Variable(len(pairs))
    form = np.diag(np.diag(t.K))
    for e, (i, j) in enumerate(pairs):
        unit = np.zeros((m, m))
        unit[i, j] = unit[j, i] = t.K[i, j]
        form = form + signs[e] * unit
    groups = [asked(t, node)[0] for node in t.nodes]
    beta = cvxpy.Variable(sum(map(len, groups)), nonneg=True)
    ends = np.cumsum([len(group) for group in groups])
    limits = [
        cvxpy.sum(beta[end - len(group) : end]) <= cap
        for group, end, cap in zip(groups, ends, t.caps, strict=True)
        if group
    ]
    spread = np.zeros((m * t.X.shape[1], beta.size))
    for a, (k, (i, j, _)) in enumerate((k, c) for k, group in enumerate(groups) for c in group):
        column = np.zeros((m, t.X.shape[1]))
        column[i - 1], column[j - 1] = t.X[k], -t.X[k]
        spread[:, a] = column.ravel()
    P = cvxpy.reshape(spread @ beta, (m, t.X.shape[1]), order="C")
    value = cvxpy.sum(beta) - 0.5 * cvxpy.matrix_frac(P, form)
    problem = cvxpy.Problem(cvxpy.Maximize(value), [*limits, cvxpy.abs(signs) <= 1])
    return float(problem.solve(**PRECISE))
