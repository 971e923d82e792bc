"""Classification in a taxonomy: flat and hierarchical kernel logistic regression against scikit-learn and hiclass.

Claims, after Seeger (2006), section 8.2: functions for the nodes of the tree make a model better in taxo-loss and
parent accuracy than functions for the classes alone (H1 better than F1), and the best of our four models is at least
as accurate as the best of the others, tuned by the same folds.

    python benchmarks/taxonomy.py --data DIR [--tasks 20news ccat mcat ecat imclef07a] [--splits 3]
                                  [--per-class 10] [--quick]

The paper's tasks have 7 to 10 training documents for each class, these have 12 to 200; ``--per-class`` thins them.

Ours are `KernelLogisticRegression`, with all variances (and for images the length scales) learned by ``optimize="cv"``:

    F1  flat, one variance                      H1  hierarchy, one variance for each level
    F2  flat, one for each first-level subtree  H2  hierarchy, one for each first-level subtree

For each task it prints a table of mean ± standard deviation over the splits, and what was learned. acc: accuracy;
prec: mean reciprocal rank of the true class; taxo, pacc: taxo-loss and parent accuracy of the decision that minimises
its expectation; taxo[0-1], pacc[0-1]: of the plain prediction; hF1: hierarchical F1 of the plain prediction; tune s:
search for parameters; fit s: final fit. Ends with PASS or MISS for each claim on each task.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from data import add_data_argument, data_file, machine
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from gramian import KernelLogisticRegression
from gramian.kernels import RBF
from gramian.labels import Taxonomy, cost_matrix, minimum_risk
from gramian.metrics import hierarchical_f1, parent_accuracy, reciprocal_rank, taxo_loss
from gramian.selection import CrossValidationSearch

try:
    import hiclass
except ImportError:
    hiclass = None

FOLDS = 5
LEAST = 2  # training rows of each class, so that every class trains in every fold
RAREST = 10  # documents that a topic of RCV1 must have
TRAIN = {"20news": 2000, "imclef07a": 800}  # of the official training part
TEST = {"20news": 3000}
SHARE_OF_TRAINING = 0.6  # RCV1 has no official split
QUICK = 4  # --quick divides the sizes by this
# The best variances of our models on text are between 10 and 1e5; the grids must reach that far to be fair.
GRID = 4.0 ** np.arange(-2, 9)
MARGIN_GRID = 4.0 ** np.arange(-5, 4)  # the hinge needs less, and LinearSVC is slow for large C
# Every other value: hiclass fits one classifier for each inner node.
COARSE_GRID, COARSE_MARGIN_GRID = GRID[::2], MARGIN_GRID[::2]
SVC_GRID = {"C": 4.0 ** np.arange(0, 5), "gamma": 4.0 ** np.arange(-2, 2) / 80}

QUOTE = re.compile(r"(writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>)")

SCORES = ("acc", "prec", "taxo", "taxo[0-1]", "pacc", "pacc[0-1]", "hF1", "log loss")
PERCENT = ("acc", "prec", "pacc", "pacc[0-1]", "hF1")
SECONDS = ("tune s", "fit s")
OURS = ("F1", "F2", "H1", "H2")

Split = tuple[Any, np.ndarray, Any, np.ndarray]


@dataclass(frozen=True)
class Task:
    """A tree of classes and a way to split its examples."""

    name: str
    taxonomy: Taxonomy
    split: Callable[[int], Split]
    note: str
    kernel: Any = "linear"
    intercept_variances: tuple[float, ...] = (1.0, 0.0)


# --- data -------------------------------------------------------------------------------------


def tree_of(paths: Iterable[tuple[str, ...]]) -> Taxonomy:
    """The tree of paths from the first level to a class.

    Below the first level, inner nodes with one child are left out: they tell no classes apart, but would lengthen
    paths.
    """
    paths = list(paths)
    children: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        for parent, child in pairwise(path):
            children[parent].add(child)
    parents: dict[str, str | None] = {}
    for first, *rest in paths:
        kept = [first, *(name for name in rest if len(children[name]) != 1)]
        parents |= zip(kept, [None, *kept])
    return Taxonomy.from_parents(parents)


def subsample(y: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Numbers of n random rows, at least LEAST of each class."""
    order = np.random.default_rng(seed).permutation(len(y))
    place = pd.Series(y[order]).groupby(y[order]).cumcount().to_numpy()  # among rows of its class
    return order[np.argsort(place >= LEAST, kind="stable")[:n]]


def thinned(task: Task, per_class: int) -> Task:
    """The task with fewer training rows: the paper's have 7 to 10 for each class."""
    n = per_class * task.taxonomy.n_leaves

    def split(seed: int) -> Split:
        X, y, X_test, y_test = task.split(seed)
        rows = subsample(y, n, seed)
        return X[rows], y[rows], X_test, y_test

    return replace(task, split=split, note=f"{task.note}; {n} of the training rows are kept")


def stripped(text: str) -> str:
    """A message without header, quoted lines and signature, by the rules of scikit-learn.

    The training part of the file has tabs for line breaks, the test part has line breaks. Tabs count as line breaks
    in both, lest the two be treated differently.
    """
    body = text.replace("\r", "").replace("\t", "\n").partition("\n\n")[2]
    lines = [line for line in body.strip().split("\n") if not QUOTE.search(line)]
    blank = [k for k, line in enumerate(lines) if k and not line.strip().strip("-")]
    return "\n".join(lines[: blank[-1]] if blank else lines)


def newsgroups(folder: str | None, quick: bool) -> Task:
    table = pd.read_parquet(data_file(folder, "text/20news_bydate.parquet"))
    texts, groups = table["text"].map(stripped).to_numpy(), table["group"].to_numpy(dtype=str)
    train, test = (np.flatnonzero(table["split"] == part) for part in ("train", "test"))
    n, m = (sizes["20news"] // (QUICK if quick else 1) for sizes in (TRAIN, TEST))
    judged = np.random.default_rng(0).permutation(test)[:m]

    def split(seed: int) -> Split:
        rows = train[subsample(groups[train], n, seed)]
        words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english", dtype=np.float32)
        X = words.fit_transform(texts[rows])
        return X, groups[rows], words.transform(texts[judged]), groups[judged]

    paths = []
    for group in np.unique(groups):
        parts = group.split(".")
        paths.append(tuple(".".join(parts[: k + 1]) for k in range(len(parts))))
    note = f"{n} of 11314 training and {m} of 7532 test documents; no headers, quotes, signatures"
    return Task("20news", tree_of(paths), split, note)


def rcv1(folder: str | None) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Documents of the three subsets without repeats, their topics, names and parents of topics."""
    matrices, topics = [], []
    for k in (1, 2, 3):
        with np.load(data_file(folder, f"text/rcv1sub{k}.npz"), allow_pickle=False) as arrays:
            csr = tuple(arrays[f"X_{part}"] for part in ("data", "indices", "indptr"))
            matrices.append(sparse.csr_array(csr, shape=tuple(arrays["X_shape"])))
            names, parent = arrays["label_names"], arrays["parent"]
            topics.append(np.unpackbits(arrays["Y_bits"], axis=1)[:, : len(names)].astype(bool))
    X, Y = sparse.vstack(matrices, format="csr").astype(np.float32), np.concatenate(topics)
    first: dict[tuple[bytes, bytes], int] = {}
    for row, (a, b) in enumerate(pairwise(X.indptr)):
        first.setdefault((X.indices[a:b].tobytes(), X.data[a:b].tobytes()), row)
    rows = np.array(list(first.values()))
    return X[rows], Y[rows], names, parent


def topics_below(root: str) -> Callable[[str | None, bool], Task]:
    """The task of documents with exactly one leaf topic under a root of RCV1."""

    def load(folder: str | None, quick: bool) -> Task:
        X, Y, names, parent = rcv1(folder)
        paths = {}
        for topic in np.setdiff1d(np.arange(len(names)), parent):
            path = [topic]
            while parent[path[0]] >= 0:
                path.insert(0, parent[path[0]])
            if names[path[0]] == root:
                paths[topic] = tuple(map(str, names[path[1:]]))
        leaves = np.array(list(paths))
        rows = np.flatnonzero(Y[:, leaves].sum(axis=1) == 1)
        topic = leaves[Y[np.ix_(rows, leaves)].argmax(axis=1)]
        common = [leaf for leaf in leaves if np.sum(topic == leaf) >= RAREST]
        kept = np.isin(topic, common)
        rows, y = rows[kept], names[topic[kept]]
        n = int(SHARE_OF_TRAINING * len(y)) // (QUICK if quick else 1)

        def split(seed: int) -> Split:
            train, test = train_test_split(
                np.arange(len(y)), train_size=SHARE_OF_TRAINING, stratify=y, random_state=seed
            )
            train = train[subsample(y[train], n, seed)] if quick else train
            words = np.unique(X[rows[train]].indices)  # others have no weight in any model
            return X[rows[train]][:, words], y[train], X[rows[test]][:, words], y[test]

        tests = len(y) - int(SHARE_OF_TRAINING * len(y))
        note = f"{n} training and {tests} test documents, random stratified splits; no topics of fewer than {RAREST}"
        return Task(root.lower(), tree_of(paths[leaf] for leaf in common), split, note)

    return load


def images(
    folder: str | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[tuple[str, ...]]]:
    """Images of imclef07a: X_train, y_train, X_test, y_test, and the paths of the classes."""
    with np.load(data_file(folder, "hierarchy/imclef07a.npz"), allow_pickle=False) as arrays:
        nodes, n_labels = arrays["nodes"], int(arrays["n_labels"])
        parent = dict(arrays["edges_child_parent"].tolist())
        leaves = np.setdiff1d(np.arange(n_labels), list(parent.values()))
        X, X_test = arrays["X_train"], arrays["X_test"]
        y, y_test = (
            nodes[leaves[np.unpackbits(arrays[bits], axis=1)[:, leaves].argmax(axis=1)]]
            for bits in ("Y_train_bits", "Y_test_bits")
        )
    paths = []
    for leaf in leaves:
        path = [leaf]
        while path[0] in parent:
            path.insert(0, parent[path[0]])
        paths.append(tuple(map(str, nodes[path])))
    return X, y, X_test, y_test, paths


def imclef(folder: str | None, quick: bool) -> Task:
    X, y, X_test, y_test, paths = images(folder)
    n = TRAIN["imclef07a"] // (
        2 if quick else 1
    )  # fewer would be far from the frequencies of classes

    def split(seed: int) -> Split:
        rows = subsample(y, n, seed)
        scaler = StandardScaler().fit(X[rows])
        scaled = (scaler.transform(part).astype(np.float32) for part in (X[rows], X_test))
        train, test = scaled
        return train, y[rows], test, y_test

    note = f"{n} of {len(y)} training and all {len(y_test)} test images"
    kernel = 10.0 * RBF(float(np.sqrt(X.shape[1])))
    return Task("imclef07a", tree_of(paths), split, note, kernel, (1.0,))


TASKS: Mapping[str, Callable[[str | None, bool], Task]] = {
    "20news": newsgroups,
    "ccat": topics_below("CCAT"),
    "mcat": topics_below("MCAT"),
    "ecat": topics_below("ECAT"),
    "imclef07a": imclef,
}


# --- models -----------------------------------------------------------------------------------


class PerParentNode(ClassifierMixin, BaseEstimator):
    """hiclass's local classifier per parent node, with names of leaves in and out.

    Paths are filled up to one length by repeating the leaf. Probabilities of leaves are products of those of the local
    classifiers: hiclass's own ``predict_proba`` evaluates only nodes that some row is predicted into, and
    normalises each level, which is another model.
    """

    def __init__(self, taxonomy: Taxonomy, local_classifier: Any):
        self.taxonomy = taxonomy
        self.local_classifier = local_classifier

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: np.ndarray) -> PerParentNode:
        self.classes_ = np.unique(y)
        paths = {name: list(self.taxonomy.path(name)[1:]) for name in self.classes_}
        filled = {
            name: path + [name] * (self.taxonomy.height - len(path)) for name, path in paths.items()
        }
        self.model_ = hiclass.LocalClassifierPerParentNode(clone(self.local_classifier))
        self.model_.fit(X, np.array([filled[name] for name in y]))
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.model_.predict(X)[:, -1]

    def __getattr__(self, name: str) -> Any:
        # only there if the local classifiers have it, so that scikit-learn knows
        if name == "predict_proba" and hasattr(self.local_classifier, name):
            return self._products
        raise AttributeError(name)

    def _products(self, X: Any) -> np.ndarray:
        tree, separator = self.model_.hierarchy_, self.model_.separator_
        probability = {self.model_.root_: np.ones(X.shape[0])}
        ahead = [self.model_.root_]
        for node in ahead:
            children = list(tree.successors(node))
            if len(children) == 1:
                probability[children[0]] = probability[node]
            elif children:
                local = tree.nodes[node]["classifier"]
                columns = zip(local.classes_, local.predict_proba(X).T)
                probability |= {child: probability[node] * p for child, p in columns}
            ahead += children
        leaves = {
            node.split(separator)[-1]: node for node in tree if not list(tree.successors(node))
        }
        return np.stack([probability[leaves[name]] for name in self.classes_], axis=1)


def ours(task: Task, folds: StratifiedKFold, optimize: Any = "cv") -> dict[str, list[Any]]:
    """Our four models, each with the intercepts to choose from."""
    tree = task.taxonomy
    subtree = dict(zip(tree.names.tolist(), tree.groups("subtree").tolist()))
    flat = {name: subtree[name] for name in tree.leaf_names.tolist()}
    options = {
        "F1": {},
        "F2": {"share": flat},
        "H1": {"hierarchy": tree, "share": "level"},
        "H2": {"hierarchy": tree, "share": "subtree"},
    }
    return {
        name: [
            KernelLogisticRegression(
                task.kernel, optimize=optimize, cv=folds, intercept_variance=variance, **option
            )
            for variance in task.intercept_variances
        ]
        for name, option in options.items()
    }


def logistic_grid(values: np.ndarray, prefix: str = "") -> list[dict[str, Any]]:
    """Grid of LogisticRegression.

    Its intercept is not penalised, which harms sparse text with large C: a document of few known words is judged by the
    intercepts alone. At the default tolerance large C stop early, which may help or harm. Cross-validation decides.
    """
    choices = (
        {"C": values[::2], "fit_intercept": [True]},  # slow: ten times the steps of those without
        {"C": values, "fit_intercept": [False], "tol": [1e-4, 1e-6]},
    )
    return [{prefix + key: value for key, value in choice.items()} for choice in choices]


def negative_log_loss(model: Any, X: Any, y: np.ndarray) -> float:
    """Score of a grid search; scikit-learn's own fails where a fold holds out no example of a class."""
    return -log_loss(y, model.predict_proba(X), labels=model.classes_)


def peers(task: Task, folds: StratifiedKFold, jobs: int) -> dict[str, GridSearchCV]:
    """The others, with parameters by the same folds: log loss for models with probabilities, else accuracy."""

    def tuned(model: Any, grid: Any, scoring: Any) -> GridSearchCV:
        return GridSearchCV(model, grid, scoring=scoring, cv=folds, n_jobs=jobs)

    logistic, svc = LogisticRegression(max_iter=300), LinearSVC(dual=True, random_state=0)
    found = {
        "LogisticRegression": tuned(logistic, logistic_grid(GRID), negative_log_loss),
        "LinearSVC": tuned(svc, {"C": MARGIN_GRID}, "accuracy"),
    }
    if task.kernel != "linear":
        found["SVC, rbf"] = tuned(SVC(), SVC_GRID, "accuracy")
    if hiclass is not None:
        local = "local_classifier__"
        found["hiclass LR"] = tuned(
            PerParentNode(task.taxonomy, logistic),
            logistic_grid(COARSE_GRID, local),
            negative_log_loss,
        )
        found["hiclass LinearSVC"] = tuned(
            PerParentNode(task.taxonomy, svc), {local + "C": COARSE_MARGIN_GRID}, "accuracy"
        )
    return found


# --- measuring --------------------------------------------------------------------------------


@dataclass
class Result:
    """Scores of one model, one number for each split."""

    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    learned: list[str] = field(default_factory=list)

    def mean(self, name: str) -> float:
        return float(np.mean(self.values[name]))


def scores(model: Any, X: Any, y: np.ndarray, tree: Taxonomy) -> dict[str, float]:
    plain = model.predict(X)
    found = {
        "acc": float(np.mean(plain == y)),
        "taxo[0-1]": taxo_loss(y, plain, tree),
        "pacc[0-1]": parent_accuracy(y, plain, tree),
        "hF1": hierarchical_f1(y, plain, tree),
    }
    if hasattr(model, "predict_proba"):
        P = model.predict_proba(X).astype(float)
        P /= P.sum(axis=1, keepdims=True)  # float32 rows sum to 1 within 1e-7, not 1e-16
        nodes = tree.index(model.classes_)
        columns = np.searchsorted(tree.leaves, nodes)
        found["prec"] = reciprocal_rank(y, P, labels=model.classes_)
        found["log loss"] = log_loss(y, P, labels=model.classes_)
        for name, loss, score in (
            ("taxo", "taxonomic", taxo_loss),
            ("pacc", "parent", parent_accuracy),
        ):
            costs = cost_matrix(loss, tree, nodes)[:, columns]
            found[name] = score(y, model.classes_[minimum_risk(P, costs)], tree)
    return found


def fit_ours(models: list[Any], X: Any, y: np.ndarray) -> tuple[Any, float, float, str]:
    """The model of least cross-validated log loss, seconds of all searches and of its final fit, what was learned."""
    tune, fits = 0.0, []
    for model in models:
        start = time.perf_counter()
        model.fit(X, y)
        total, searched = time.perf_counter() - start, model.optimization_path_.seconds[-1]
        tune += searched
        fits.append(total - searched)
    best = int(np.argmin([model.cv_log_loss_ for model in models]))
    tune += sum(fits) - fits[best]
    model = models[best]
    path = model.optimization_path_
    values = np.exp(path.theta[path.best])
    learned = ", ".join(f"{name} {value:.3g}" for name, value in zip(path.names, values))
    end = "" if path.converged else f"; NOT CONVERGED: {path.message}"
    evaluations = int(np.sum(path.n_samples == path.n_samples.max()))
    text = (
        f"intercept variance {model.intercept_variance:g}, {learned}; "
        f"CV log loss {model.cv_log_loss_:.4f}, {evaluations} evaluations{end}"
    )
    return model, tune, fits[best], text


def fit_peer(search: GridSearchCV, X: Any, y: np.ndarray) -> tuple[Any, float, float, str]:
    """The search, seconds of it and of the final fit, and what was chosen."""
    start = time.perf_counter()
    search.fit(X, y)
    total = time.perf_counter() - start
    best = []
    for key, value in search.best_params_.items():
        name = key.split("__")[-1]
        tried = np.array(search.cv_results_[f"param_{key}"].compressed(), dtype=float)
        edge = name in ("C", "gamma") and value in (tried.min(), tried.max())
        best.append(f"{name} {value:.3g}{' (edge of the grid)' if edge else ''}")
    return search, total - search.refit_time_, search.refit_time_, ", ".join(best)


def measure(task: Task, n_splits: int, jobs: int) -> dict[str, Result]:
    """Fit and score all models on all splits; the peers get float64."""
    results: dict[str, Result] = defaultdict(Result)
    for seed in range(n_splits):
        X, y, X_test, y_test = task.split(seed)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        if seed == 0:
            print(f"{X.shape[1]} features, {task.note}.", flush=True)
            warm_up(task, folds, X, y)
        for name, model in (ours(task, folds) | peers(task, folds, jobs)).items():
            mine = name in OURS
            dtype = np.float32 if mine else np.float64
            fitted, tune, fit, learned = (fit_ours if mine else fit_peer)(model, X.astype(dtype), y)
            found = scores(fitted, X_test.astype(dtype), y_test, task.taxonomy)
            for key, value in (found | {"tune s": tune, "fit s": fit}).items():
                results[name].values[key].append(value)
            results[name].learned.append(learned)
            line = f"{task.name}, split {seed}: {name}, {tune + fit:.1f} s"
            print(line, file=sys.stderr, flush=True)
    return dict(results)


def warm_up(task: Task, folds: StratifiedKFold, X: Any, y: np.ndarray) -> None:
    """Compile the loops, so that the first fit is not charged for it."""
    rows = subsample(y, 300, 0)
    for models in ours(task, folds, CrossValidationSearch(max_evaluations=2)).values():
        for model in models:
            model.fit(X[rows], y[rows]).predict_proba(X[rows])


# --- printing ---------------------------------------------------------------------------------


def cell(values: list[float], name: str) -> str:
    if not values:
        return "–"
    if name in SECONDS:
        return f"{np.mean(values):.2f}"
    scale, digits = (100, 1) if name in PERCENT else (1, 3)
    spread = f" ± {scale * np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{scale * np.mean(values):.{digits}f}{spread}"


def print_table(results: dict[str, Result]) -> None:
    columns = SCORES + SECONDS
    heads = [f"{name} %" if name in PERCENT else name for name in columns]
    print(f"\n| model | {' | '.join(heads)} |")
    print("|---" + "|---:" * len(columns) + "|")
    for name, result in results.items():
        print(f"| {name} | {' | '.join(cell(result.values[key], key) for key in columns)} |")
    print("\nLearned on the first split:")
    for name, result in results.items():
        print(f"- {name}: {result.learned[0]}")
    early = [
        f"{name}, split {k}"
        for name, result in results.items()
        for k, text in enumerate(result.learned)
        if "NOT CONVERGED" in text
    ]
    if early:
        print(f"\nSearches that did not converge: {'; '.join(early)}.")
    print(flush=True)


def verdicts(found: dict[str, dict[str, Result]]) -> None:
    """PASS or MISS for each claim and task, then over all tasks."""
    held: dict[str, list[bool]] = defaultdict(list)

    def say(claim: str, text: str, passed: bool) -> None:
        held[claim].append(passed)
        print(f"{'PASS' if passed else 'MISS'}: {text}")

    for task, results in found.items():
        flat, tree = results["F1"], results["H1"]
        for score, sign in (("taxo", -1), ("pacc", 1)):
            change = np.array(tree.values[score]) - np.array(flat.values[score])
            wins = int(np.sum(sign * change > 0))
            text = f"{cell(tree.values[score], score)} against {cell(flat.values[score], score)}, better on {wins} of"
            claim = f"H1 better than F1 in {score}"
            say(claim, f"{task}: {claim}: {text} {change.size} splits", sign * change.mean() > 0)
        best = max(OURS, key=lambda name: results[name].mean("acc"))
        rival = max(set(results) - set(OURS), key=lambda name: results[name].mean("acc"))
        mine, other = (results[name].values["acc"] for name in (best, rival))
        claim = "best of ours at least as accurate as the best peer"
        text = f"{best} {cell(mine, 'acc')} %, {rival} {cell(other, 'acc')} %"
        say(claim, f"{task}: {claim}: {text}", np.mean(mine) >= np.mean(other))
    print()
    for claim, passed in held.items():
        line = f"{claim}: {sum(passed)} of {len(passed)} tasks (bar: most)"
        print(f"{'PASS' if 2 * sum(passed) > len(passed) else 'MISS'}: {line}")
    print(
        "\nMeans over the splits decide. The best of ours and the best peer are both picked by test accuracy. On 20news"
    )
    print(
        "and imclef07a the splits share one test part: ± is then the spread over training sets alone."
    )


def limits(grid: np.ndarray) -> str:
    return f"{grid[0]:g} to {grid[-1]:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_argument(parser)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--splits", type=int, default=3, help="training sets for each task")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="processes of grid searches"
    )
    parser.add_argument("--per-class", type=int, help="training rows, on average of the classes")
    parser.add_argument("--quick", action="store_true", help=f"1/{QUICK} of the training rows")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # large C of peers; ours are reported
    warnings.filterwarnings("ignore", "The least populated class in y")  # in fewer than all folds
    os.environ["PYTHONWARNINGS"] = "ignore"  # in the processes of grid searches
    peer = "no hiclass: not installed" if hiclass is None else f"hiclass {hiclass.__version__}"
    print(f"{machine()}; scikit-learn {sklearn.__version__}, {peer}.")
    print(
        f"{FOLDS} folds, the same for all. C in factors of 4: {limits(GRID)} for LogisticRegression,"
    )
    print(
        f"{limits(MARGIN_GRID)} for LinearSVC; hiclass has one C for all nodes, in factors of 16."
    )
    print(
        "Logistic models without intercept and, for every other C, with; ours on text with intercept"
    )
    print(
        "variance 1 and 0. Cross-validation decides. Ours have float32 data and all threads of BLAS,"
    )
    print(f"the peers float64 data and {arguments.jobs} processes.\n")
    found = {}
    for name in arguments.tasks:
        start = time.perf_counter()
        task = TASKS[name](arguments.data, arguments.quick)
        if arguments.per_class:
            task = thinned(task, arguments.per_class)
        tree = task.taxonomy
        print(f"## {name}: {tree.n_leaves} classes, {tree.n_nodes} nodes, height {tree.height}")
        found[name] = measure(task, arguments.splits, arguments.jobs)
        print_table(found[name])
        print(f"{time.perf_counter() - start:.0f} s for the task.\n", flush=True)
    verdicts(found)


if __name__ == "__main__":
    main()
