"""The part of `defaults.py` about several labels: what `M3LClassifier()` gives, against one tuned LinearSVC a label.

The peer has the squared hinge losses that it comes with, and one C for all labels by `GridSearchCV` with shuffled folds
and the Hamming loss, or the ranking precision for its column. Seed 0 is the original split; others mix both parts anew.
A difference is noise if it is below twice the standard error of its mean over the test examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from data import load_hierarchy, load_multilabel, load_rcv1
from sklearn.metrics import label_ranking_average_precision_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC
from tables import Outcomes, header, number, report, row
from timing import once

from gramian import M3LClassifier

LABEL_SETS = ("yeast", "scene", "enron", "tmc2007-500", "rcv1")
MOST_ROWS = 4000  # for training
SOLVER_ROWS = (
    1500  # for the comparison of solvers: steps of two coefficients take minutes with more
)
GRID = {"estimator__C": np.logspace(-3, 3, 7)}

Split = tuple[Any, np.ndarray, Any, np.ndarray]


def labels_part(folder: str | None, seeds: int, sets: list[str], outcomes: Outcomes) -> None:
    header("set", "n", "labels", "Hamming", "peer", "ranking", "peer", "its own C", "s", "peer, s")
    held = 0
    for name in LABEL_SETS:
        found, differences = [], []
        for X, Y, X_test, Y_test in _splits(folder, name, seeds):
            M3LClassifier().fit(X[:200], Y[:200])  # compiles
            seconds, ours = once(lambda X=X, Y=Y: M3LClassifier().fit(X, Y))
            peer_seconds, peer = once(lambda X=X, Y=Y: _tuned("hamming").fit(X, Y))
            ranked = _tuned("ranking").fit(X, Y)
            scores = [_scores(model, X_test, Y_test) for model in (ours, peer, ranked)]
            found.append(
                [*(s.mean() for pair in zip(*scores) for s in pair), seconds, peer_seconds]
            )
            differences.append([scores[0][k] - scores[1][k] for k in range(2)])
        hamming, theirs, _, ranking, precision, own, *times = np.mean(found, axis=0)
        cells = (hamming, theirs, ranking, precision, own, *times)
        row(name, X.shape[0], Y.shape[1], *(number(cell, ".4g") for cell in cells))
        worse, lower = (np.concatenate(part) for part in zip(*differences))
        held += worse.mean() <= 2 * _error(worse) and -lower.mean() <= 2 * _error(lower)
    report(held >= 4, f"within noise of LinearSVC on {held} of {len(LABEL_SETS)} sets", outcomes)
    _solvers(folder, outcomes)


def _solvers(folder: str | None, outcomes: Outcomes) -> None:
    """Seconds of the solver that is chosen, and of each."""
    names = ("auto", "coordinate", "blocked", "smo")
    header("set", "kernel", *(f"{name}, s" for name in names), "ratio")
    worst = 0.0
    for name in LABEL_SETS:
        X, Y, _, _ = next(_splits(folder, name, 1))
        X, Y = X[:SOLVER_ROWS], Y[:SOLVER_ROWS]
        for kernel in ("linear", "rbf"):
            chosen = M3LClassifier(kernel=kernel).fit(X, Y)
            model = M3LClassifier(chosen.C_, kernel=kernel)
            possible = [s for s in names if kernel == "linear" or s != "coordinate"]
            times = {}
            for solver in possible:
                model.set_params(solver=solver)
                model.fit(X[:200], Y[:200])  # compiles
                times[solver] = min(
                    once(lambda m=model, X=X, Y=Y: m.fit(X, Y))[0] for _ in range(2)
                )
            ratio = times["auto"] / min(times[s] for s in possible[1:])
            worst = max(worst, ratio)
            row(name, kernel, *(number(times.get(s)) for s in names), number(ratio))
    report(worst <= 1.3, f"the chosen solver takes at most {worst:.2f} × the best", outcomes)


def _splits(folder: str | None, name: str, seeds: int) -> Iterator[Split]:
    """Training and test parts, features divided by their largest value."""
    if name == "rcv1":
        parts = load_rcv1(folder)
    elif name == "enron":
        parts = load_hierarchy(folder, name)[:4]
    else:
        parts = load_multilabel(folder, name)
    X = sp.csr_array(sp.vstack(parts[::2])) if sp.issparse(parts[0]) else np.concatenate(parts[::2])
    X, Y = MaxAbsScaler().fit_transform(X), np.concatenate(parts[1::2])
    n = parts[0].shape[0]
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(Y)) if seed else np.arange(len(Y))
        train, test = order[:n], order[n:]
        train = np.random.default_rng(seed).permutation(train)[:MOST_ROWS]
        some = (Y[train].min(axis=0) == 0) & (Y[train].max(axis=0) == 1)  # labels to learn from
        yield X[train], Y[np.ix_(train, some)], X[test], Y[np.ix_(test, some)]


def _tuned(metric: str) -> GridSearchCV:
    ranking = make_scorer(
        label_ranking_average_precision_score, response_method="decision_function"
    )
    scoring = ranking if metric == "ranking" else _fewest_errors
    folds = KFold(5, shuffle=True, random_state=0)
    machine = OneVsRestClassifier(LinearSVC(random_state=0))
    return GridSearchCV(machine, GRID, scoring=scoring, cv=folds, n_jobs=2)


def _fewest_errors(model: Any, X: Any, Y: np.ndarray) -> float:
    return -float(np.mean(model.predict(X) != Y))


def _scores(model: Any, X: Any, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hamming loss of each example, and ranking precision of each that has a label."""
    wrong = np.mean(model.predict(X) != Y, axis=1)
    decisions, some = model.decision_function(X), Y.any(axis=1)
    ranking = [
        label_ranking_average_precision_score(Y[[i]], decisions[[i]]) for i in np.flatnonzero(some)
    ]
    return wrong, np.array(ranking)


def _error(values: np.ndarray) -> float:
    """Standard error of a mean."""
    return float(values.std() / np.sqrt(values.size))
