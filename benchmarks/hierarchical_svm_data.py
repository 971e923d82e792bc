"""Tasks of `hierarchical_svm.py`: trees of RCV1, 20 Newsgroups and medical images; and the figures of the paper.

RCV1, the trees below CCAT, MCAT and ECAT: documents of the three subsets whose topics below the root are exactly one
path. Its end is the label, which may be an inner node. Topics of fewer than `RAREST` documents are left out, and an
only child becomes one with its parent: this gives the numbers of nodes and leaves of the paper's tables 1 and 5 but for
the topics left out (and one inner node of CCAT), and trees of two levels, for which alpha = 1 is always convex. The
subsets lack the topic M143: its documents have the label M14. ``-h`` is the hierarchical subset: first-level topics
without descendants are left out. The paper trains on 5810, 5438 and 2196 documents, about all that there are here.

20 Newsgroups: 2000 random documents of the training part by date, 3000 of the test part, the same for all splits; no
headers, quotes or signatures. Names are paths of three levels.

imclef07a: `IMAGES` random images for training and `TEST_IMAGES` for testing, of all in both parts, standardised. It and
the newsgroups have trees for which alpha = 1 is not convex.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import taxonomy
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from gramian.kernels import RBF
from gramian.labels import Taxonomy

RAREST = 10  # documents that a topic of RCV1 must have
SHARE_OF_TRAINING = 0.5
IMAGES = 800  # for training
TEST_IMAGES = 3000
QUICK = 4  # --quick divides the sizes by this

METHODS = ("orthogonal", "similarity", "independent", "tree_loss", "flat")
# Zhou, Xiao & Wu (2011), tables 2 to 4 and 6 to 8: 0/1 and tree loss in percent, their standard deviations.
PAPER: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {
    "ccat": {
        "flat": (26.93, 37.46, 0.28, 0.47),
        "independent": (26.19, 35.80, 0.28, 0.45),
        "similarity": (26.21, 35.60, 0.26, 0.42),
        "tree_loss": (37.57, 50.45, 0.35, 0.49),
        "orthogonal": (23.62, 33.12, 0.43, 0.58),
    },
    "mcat": {
        "flat": (7.03, 8.96, 0.20, 0.27),
        "independent": (7.36, 9.32, 0.21, 0.27),
        "similarity": (8.20, 10.72, 0.22, 0.31),
        "tree_loss": (26.16, 34.28, 0.34, 0.45),
        "orthogonal": (6.57, 8.74, 0.19, 0.27),
    },
    "ecat": {
        "flat": (16.36, 23.71, 0.30, 0.40),
        "independent": (15.99, 22.77, 0.31, 0.40),
        "similarity": (17.04, 24.33, 0.36, 0.48),
        "tree_loss": (26.71, 36.49, 0.51, 0.74),
        "orthogonal": (16.18, 24.21, 0.31, 0.45),
    },
    "ccat-h": {
        "flat": (21.39, 32.66, 0.29, 0.56),
        "independent": (21.41, 32.23, 0.29, 0.53),
        "similarity": (21.91, 33.45, 0.31, 0.56),
        "tree_loss": (26.32, 40.95, 0.39, 0.66),
        "orthogonal": (17.46, 28.97, 0.74, 0.95),
    },
    "mcat-h": {
        "flat": (5.23, 5.90, 0.21, 0.23),
        "independent": (4.84, 5.41, 0.20, 0.21),
        "similarity": (4.70, 5.27, 0.20, 0.22),
        "tree_loss": (13.34, 16.31, 0.71, 1.00),
        "orthogonal": (3.00, 3.56, 0.14, 0.15),
    },
    "ecat-h": {
        "flat": (13.57, 20.76, 0.26, 0.39),
        "independent": (13.57, 20.53, 0.27, 0.40),
        "similarity": (13.67, 20.88, 0.28, 0.41),
        "tree_loss": (17.13, 26.20, 0.37, 0.63),
        "orthogonal": (12.47, 20.89, 0.30, 0.57),
    },
}

Split = tuple[Any, np.ndarray, Any, np.ndarray]


@dataclass(frozen=True)
class Task:
    """A tree and random splits: training inputs and labels, test inputs and labels."""

    name: str
    tree: Taxonomy
    split: Callable[[int], Split]
    note: str
    methods: tuple[str, ...] = METHODS
    kernel: Any = "linear"
    intercept: float = 0.0  # its variance


def single_path_documents(
    folder: str | None, root: str, hierarchical: bool = False
) -> tuple[Any, np.ndarray, Taxonomy]:
    """Documents with one path of topics below a root of RCV1, the end of each path, and the tree of the paths."""
    X, Y, names, parent = taxonomy.rcv1(folder)
    top = names.tolist().index(root)
    paths = {}
    for topic in range(len(names)):
        path = [topic]
        while parent[path[0]] >= 0 and path[0] != top:
            path.insert(0, parent[path[0]])
        if path[0] == top and topic != top:
            paths[topic] = tuple(map(str, names[path[1:]]))
    below = np.array(list(paths))
    ends = {frozenset(path): path for path in paths.values()}
    found = [ends.get(frozenset(map(str, names[below[row]])), ()) for row in Y[:, below]]
    found = without_only_children(found)
    counts = Counter(found)
    found = without_only_children([path if counts[path] >= RAREST else () for path in found])
    if hierarchical:
        deep = {path[0] for path in found if len(path) > 1}
        found = [path if path and path[0] in deep else () for path in found]
    rows = np.flatnonzero([bool(path) for path in found])
    kept = [found[row] for row in rows]
    parents = {name: up for path in kept for name, up in zip(path, (None, *path))}
    return X[rows], np.array([path[-1] for path in kept]), Taxonomy.from_parents(parents)


def without_only_children(paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Paths that end where all who go on go the same way."""
    prefixes = {path[:k] for path in paths for k in range(1, len(path) + 1)}
    children = Counter(prefix[:-1] for prefix in prefixes)

    def end(path: tuple[str, ...]) -> int:
        lonely = (k for k in range(1, len(path)) if children[path[:k]] == 1)
        return next(lonely, len(path))

    return [path[: end(path)] for path in paths]


def padded_paths(tree: Taxonomy, y: np.ndarray) -> np.ndarray:
    """Paths below the root, one a row, with "" where they have ended."""
    paths = {name: list(tree.path(name)[1:]) for name in np.unique(y)}
    filled = {name: path + [""] * (tree.height - len(path)) for name, path in paths.items()}
    return np.array([filled[name] for name in y])


def documents(root: str, hierarchical: bool) -> Callable[[str | None, bool], Task]:
    """The task of a tree of RCV1."""

    def load(folder: str | None, quick: bool) -> Task:
        X, y, tree = single_path_documents(folder, root, hierarchical)
        if quick:
            few = taxonomy.subsample(y, len(y) // QUICK, 0)
            X, y = X[few], y[few]

        def split(seed: int) -> Split:
            train, test = train_test_split(
                np.arange(len(y)), train_size=SHARE_OF_TRAINING, stratify=y, random_state=seed
            )
            words = np.unique(X[train].indices)  # others have no weight in any model
            return X[train][:, words], y[train], X[test][:, words], y[test]

        inner = np.mean(~tree.is_leaf[tree.index(y)])
        note = (
            f"{len(y)} documents, {100 * inner:.0f} % of them with an inner node as label, "
            "half for training, random stratified splits"
        )
        return Task(root.lower() + "-h" * hierarchical, tree, split, note)

    return load


def newsgroups(folder: str | None, quick: bool) -> Task:
    """20 Newsgroups by date, as `taxonomy.py` has it: splits share the test part."""
    task = taxonomy.newsgroups(folder, quick)
    return Task("20news", task.taxonomy, task.split, task.note + "; random training documents")


def images(kernel: Any, name: str) -> Callable[[str | None, bool], Task]:
    """The task of imclef07a."""

    def load(folder: str | None, quick: bool) -> Task:
        X, y, X_test, y_test, paths = taxonomy.images(folder)
        X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
        n, m = (size // (QUICK if quick else 1) for size in (IMAGES, TEST_IMAGES))

        def split(seed: int) -> Split:
            rows = np.random.default_rng(seed).permutation(len(y))[: n + m]
            train = rows[taxonomy.subsample(y[rows], n, seed)]
            test = np.setdiff1d(rows, train)
            scaler = StandardScaler().fit(X[train])
            return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]

        note = f"{n} training and {m} test images at random of {len(y)}, standardised by the former"
        chosen = METHODS if kernel == "linear" else ("orthogonal", "flat")
        return Task(name, taxonomy.tree_of(paths), split, note, chosen, kernel, 1.0)

    return load


TASKS: Mapping[str, Callable[[str | None, bool], Task]] = {
    "ccat": documents("CCAT", False),
    "mcat": documents("MCAT", False),
    "ecat": documents("ECAT", False),
    "ccat-h": documents("CCAT", True),
    "mcat-h": documents("MCAT", True),
    "ecat-h": documents("ECAT", True),
    "20news": newsgroups,
    "imclef07a": images("linear", "imclef07a"),
    "imclef07a-rbf": images(RBF(float(np.sqrt(80 / 2))), "imclef07a-rbf"),
}
