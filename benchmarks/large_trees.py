"""`HierarchicalSVC` with many nodes and many classes: seconds, duality gap and peak memory, on generated data.

Cases and bars, each in a process of its own, to a relative gap of 1 % (of the smaller of J and J(0) − J):

(a) 584 nodes without the root, 2048 examples of 50 features, C = 0.1: trees in which each node has two or seven
    children, filled level by level. Each node has a normal centre; an example is the sum of the centres along a random
    path plus normal noise. Bar: orthogonal in at most 5 s. Peer: LinearSVC(multi_class="crammer_singer"), flat, at the
    largest of its tolerances that gives 1 %: its excess over the optimum is measured with our best lower bound.
(b) 5000 nodes, eight children each, and 20 000 sparse documents: C = 1, rows of unit length, 75 draws from 10 000
    words, half of them from a common Zipf law, half from the 30 words of a node on the path. Bars: every method that
    decides from the root in 180 s and 4 GiB. Peer: the flat method.
(c) 20 000 classes without a tree: 40 000 documents of 30 draws, two for each class, from 5000 words, C = 1. It
    must fit into 4 GiB. Peers: LinearSVC one-vs-rest, of which 20 of 20 000 problems are timed. Its
    multi_class="crammer_singer" allocates n × classes numbers, 6.4 GB here, and is not run.

No bar was used to choose anything. Compiling is not counted: a small problem is fitted first.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from timing import verdict

from gramian import HierarchicalSVC
from gramian.labels import Taxonomy

TOL = 1e-2
SMALL_BAR, LARGE_BAR, MEMORY_BAR = 5.0, 180.0, 4.0
METHODS = ("orthogonal", "similarity", "independent", "tree_loss", "flat")
RECURSIVE = METHODS[:3]
LIBLINEAR_TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3)
ONE_VS_REST = 20  # problems of the peer that are timed


def filled_tree(n_nodes: int, children: int) -> Taxonomy:
    """So many nodes without the root, each with so many children, level by level."""
    numbers = np.arange(n_nodes + 1)
    return Taxonomy(numbers.tolist(), np.where(numbers > 0, (numbers - 1) // children, -1))


def clusters(tree: Taxonomy, n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sums of normal centres along random paths, with noise."""
    rng = np.random.default_rng(seed)
    centres = tree.path_sums(rng.normal(size=(d, tree.n_nodes))).T
    nodes = tree.leaves[rng.integers(tree.n_leaves, size=n)]
    return centres[nodes] + rng.normal(size=(n, d)), nodes


def documents(
    tree: Taxonomy, nodes: np.ndarray, n_words: int, draws: int = 75, own: int = 30, seed: int = 0
) -> sp.csr_array:
    """Word counts with logarithms, rows of unit length."""
    rng = np.random.default_rng(seed)
    zipf = 1.0 / np.arange(1, n_words + 1)
    common = rng.choice(n_words, size=(nodes.size, draws), p=zipf / zipf.sum())
    of_node = np.random.default_rng(tree.n_nodes).integers(n_words, size=(tree.n_nodes, own))
    at, words = np.repeat(nodes[:, None], draws, axis=1), common
    above = rng.integers(tree.depth[nodes][:, None], size=(nodes.size, draws))
    for step in range(tree.height):
        at = np.where(above > step, tree.parent[at], at)
    special = of_node[at, rng.integers(own, size=at.shape)]
    words = np.where(rng.random(at.shape) < 0.5, common, special)
    rows = np.repeat(np.arange(nodes.size), draws)
    X = sp.csr_array((np.ones(rows.size), (rows, words.ravel())), (nodes.size, n_words))
    X.sum_duplicates()
    X.data = 1.0 + np.log(X.data)
    return sp.csr_array(sp.diags_array(1.0 / np.sqrt((X * X).sum(axis=1))) @ X)


def fitted(X, y, tree, method: str, C: float, tol: float = TOL) -> tuple[float, HierarchicalSVC]:
    """Seconds of a fit, and the model."""
    model = HierarchicalSVC(tree, method, C, tol=tol)
    some = np.flatnonzero(np.isin(y, np.unique(y)[:20]))[:100]
    HierarchicalSVC(tree, method, C, tol=0.5).fit(X[some], y[some])  # compile
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start, model


def peak() -> float:
    """GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def line(method: str, seconds: float, model: HierarchicalSVC) -> str:
    solution = model.solution_
    fallen = solution.history["objective"][0] - solution.objective
    gap = solution.gap / min(solution.objective, fallen)
    work = solution.history["operations"][-1]
    return (
        f"{method}: {seconds:.2f} s, gap {gap:.1e}, {solution.status}, {model.n_iter_} sweeps, "
        f"{work:.2g} multiply-adds with examples, peak {peak():.2f} GiB"
    )


def small(children: int) -> None:
    """(a)."""
    tree = filled_tree(584, children)
    X, y = clusters(tree, 2048, 50)
    print(
        f"## (a) 584 nodes, {children} children each, {tree.n_leaves} leaves, 2048 × 50, C = 0.1\n"
    )
    for method in METHODS:
        seconds, model = fitted(X, y, tree, method, 0.1)
        held = f"{verdict(seconds <= SMALL_BAR)}: " if method == "orthogonal" else ""
        print(f"- {held}{line(method, seconds, model)}", flush=True)
    best = HierarchicalSVC(None, "flat", 0.1, tol=1e-4).fit(X, y)
    lower = best.solution_.objective - best.solution_.gap
    Z = np.hstack([X, np.ones((len(X), 1))])  # the intercept is a feature, and regularised
    for tol in LIBLINEAR_TOLERANCES:
        svm = LinearSVC(
            C=0.1, multi_class="crammer_singer", fit_intercept=False, tol=tol, random_state=0
        )
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svm.fit(Z, y)
        seconds = time.perf_counter() - start
        scores, rows = Z @ svm.coef_.T, np.arange(len(y))
        own = np.searchsorted(svm.classes_, y)
        lacks = 1.0 + scores - scores[rows, own][:, None]
        lacks[rows, own] = 0.0
        value = 0.5 * np.sum(svm.coef_**2) + 0.1 * lacks.max(axis=1).sum()
        excess = (value - lower) / min(value, 0.1 * len(y) - value)
        if 0 < excess <= TOL:
            break
    print(
        f"- LinearSVC, Crammer-Singer, tol {tol:g}: {seconds:.2f} s, at most {excess:.1e} above\n"
    )


def large(method: str) -> None:
    """(b)."""
    tree = filled_tree(5000, 8)
    rng = np.random.default_rng(1)
    y = tree.leaves[rng.integers(tree.n_leaves, size=20_000)]
    X = documents(tree, y, 10_000)
    seconds, model = fitted(X, y, tree, method, 1.0)
    bar = seconds <= LARGE_BAR and peak() <= MEMORY_BAR and model.solution_.status == "converged"
    held = f"{verdict(bar)}: " if method in RECURSIVE else ""
    new = documents(tree, y[:2000], 10_000, seed=2)
    right = np.mean(model.predict(new[:2000]) == y[:2000])
    print(
        f"- {held}{line(method, seconds, model)}, {X.nnz / len(y):.0f} entries a document, accuracy {right:.3f}"
    )


def many() -> None:
    """(c)."""
    tree = filled_tree(20_000, 20_000)
    y = np.tile(tree.leaves, 2)
    X = documents(tree, y, 5000, draws=30)
    seconds, model = fitted(X, y, None, "flat", 1.0)
    start = time.perf_counter()
    right = np.mean(model.predict(X[:2000]) == y[:2000])
    asked = time.perf_counter() - start
    held = verdict(peak() <= MEMORY_BAR and model.solution_.status == "converged")
    print(
        f"## (c) 20 000 classes, 40 000 documents, C = 1\n\n- {held}: {line('flat', seconds, model)}"
    )
    print(f"- predicting 2000 documents: {asked:.2f} s, training accuracy {right:.3f}")
    start = time.perf_counter()
    for label in range(1, ONE_VS_REST + 1):
        LinearSVC(C=1.0).fit(X, y == label)
    each = (time.perf_counter() - start) / ONE_VS_REST
    print(
        f"- LinearSVC, one against the rest: {each:.3f} s a class, {20_000 * each:.0f} s for all\n"
    )


CASES = {
    "binary": lambda: small(2),
    "seven": lambda: small(7),
    **{method: (lambda method=method: large(method)) for method in METHODS},
    "classes": many,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=CASES, help="one case, in this process")
    case = parser.parse_args().case
    if case:
        CASES[case]()
        return
    for name in CASES:
        if name == METHODS[0]:
            print(
                "## (b) 5000 nodes, eight children each, 20 000 documents of 10 000 words, C = 1\n",
                flush=True,
            )
        subprocess.run([sys.executable, __file__, "--case", name], check=True)


if __name__ == "__main__":
    main()
