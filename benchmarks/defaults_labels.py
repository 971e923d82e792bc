"""The part of `defaults.py` about several labels: what `M3LClassifier()` gives, against one tuned LinearSVC a label.

The peer has the squared hinge losses that it comes with, and one C for all labels by `GridSearchCV` with shuffled folds
and the Hamming loss, or the ranking precision for its column. Seed 0 is the original split; others mix both parts anew.
A difference is noise if it is below twice the standard error of its mean over the test examples.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from data import load_hierarchy, load_multilabel, load_rcv1
from records import Cell, Run
from sklearn.base import clone
from sklearn.metrics import label_ranking_average_precision_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC
from tables import Outcomes, header, number, report, row
from timing import once

from gramian import M3LClassifier
from gramian.kernels import Linear

LABEL_SETS = ("yeast", "scene", "enron", "tmc2007-500", "rcv1")
MOST_ROWS = {"tmc2007-500": 4000, "rcv1": 2000}  # for training; a grid takes minutes with more
SOLVERS = ("blocked", "coordinate", "smo")
SOLVER_ROWS = (500, 1500)  # steps of two coefficients ("smo") take minutes with the latter
GRID = {"estimator__C": np.logspace(-3, 3, 7)}

Split = tuple[Any, np.ndarray, Any, np.ndarray]


def labels_part(run: Run, outcomes: Outcomes) -> None:
    columns = ("Hamming", "peer's", "ranking", "peer's ranking", "its own C", "s", "peer's s")
    header("set", "n", "labels", "seeds", *columns)
    held = total = 0
    for name in run.chosen(LABEL_SETS):
        cells = run.cells("labels", name, lambda seed, name=name: _compared(run.data, name, seed))
        if not cells:
            continue
        means = (number(np.mean([cell[key] for cell in cells]), ".4g") for key in columns)
        row(name, cells[0]["n"], cells[0]["labels"], len(cells), *means)
        worse, lower = (np.sum([cell[key] for cell in cells], axis=0) for key in ("worse", "lower"))
        held += all(mean <= 2 * error for mean, error in map(_mean_and_error, (worse, lower)))
        total += 1
    report(held >= 0.8 * total, f"within noise of LinearSVC on {held} of {total} sets", outcomes)


def _compared(folder: str | None, name: str, seed: int) -> Cell:
    """Scores of the default and of the peer, and moments of how much worse the default is on single examples."""
    X, Y, X_test, Y_test = _split(folder, name, seed)
    M3LClassifier().fit(X[:200], Y[:200])  # compiles
    seconds, ours = once(lambda: M3LClassifier().fit(X, Y))
    peer_seconds, (peer, ranked) = once(lambda: _peers(X, Y))
    (wrong, ranking), (theirs, precision), (_, own) = (
        _scores(model, X_test, Y_test) for model in (ours, peer, ranked)
    )
    return {
        "n": X.shape[0],
        "labels": Y.shape[1],
        "Hamming": wrong.mean(),
        "peer's": theirs.mean(),
        "ranking": ranking.mean(),
        "peer's ranking": precision.mean(),
        "its own C": own.mean(),
        "s": seconds,
        "peer's s": peer_seconds,
        "worse": _moments(wrong - theirs),
        "lower": _moments(precision - ranking),
    }


def solvers_part(run: Run, outcomes: Outcomes) -> None:
    """Seconds of the solver that is chosen for a linear kernel, and of each, with the C of the first rows."""
    header("set", "n", "loss", *(f"{name}, s" for name in SOLVERS), "chosen", "ratio")
    ratios = []
    for name in run.chosen(LABEL_SETS):
        X, Y, _, _ = _split(run.data, name, 0)
        for n, loss in product(SOLVER_ROWS, ("squared_hinge", "hamming")):
            times, chosen = _seconds_of_solvers(X[:n], Y[:n], loss)
            ratios.append(times[chosen] / min(times.values()))
            cells = (number(times.get(solver)) for solver in SOLVERS)
            row(name, X[:n].shape[0], loss, *cells, chosen, number(ratios[-1]))
    text = f"the chosen solver takes at most {max(ratios):.2f} × the best in {len(ratios)} cases"
    report(max(ratios) <= 1.3, text, outcomes)


def _seconds_of_solvers(X: Any, Y: np.ndarray, loss: str) -> tuple[dict[str, float], str]:
    some = (Y.min(axis=0) == 0) & (Y.max(axis=0) == 1)
    Y = Y[:, some]
    C = M3LClassifier(loss=loss).fit(X[: SOLVER_ROWS[0]], Y[: SOLVER_ROWS[0]]).C_
    model = M3LClassifier(C, loss=loss)
    chosen = model._solver_name(Linear(), X, correlated=False)
    times = {}
    for solver in SOLVERS if X.shape[0] <= SOLVER_ROWS[0] else SOLVERS[:2]:
        model.set_params(solver=solver)
        model.fit(X[:200], Y[:200])  # compiles
        times[solver] = min(once(lambda: model.fit(X, Y))[0] for _ in range(2))
    return times, chosen


def _split(folder: str | None, name: str, seed: int) -> Split:
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
    order = np.random.default_rng(seed).permutation(len(Y)) if seed else np.arange(len(Y))
    train, test = order[:n], order[n:]
    train = np.random.default_rng(seed).permutation(train)[: MOST_ROWS.get(name, n)]
    some = (Y[train].min(axis=0) == 0) & (Y[train].max(axis=0) == 1)  # labels to learn from
    return X[train], Y[np.ix_(train, some)], X[test], Y[np.ix_(test, some)]


def _peers(X: Any, Y: np.ndarray) -> tuple[Any, Any]:
    """One LinearSVC for each label, with the C of fewest errors and with that of the best ranking."""
    ranking = make_scorer(
        label_ranking_average_precision_score, response_method="decision_function"
    )
    model = OneVsRestClassifier(LinearSVC(random_state=0))
    search = GridSearchCV(
        model,
        GRID,
        scoring={"Hamming": _fewest_errors, "ranking": ranking},
        cv=KFold(5, shuffle=True, random_state=0),
        refit=False,
    ).fit(X, Y)
    found = search.cv_results_
    best = (found["params"][np.argmax(found[f"mean_test_{key}"])] for key in ("Hamming", "ranking"))
    few, ranked = (clone(model).set_params(**parameters).fit(X, Y) for parameters in best)
    return few, ranked


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


def _moments(values: np.ndarray) -> list[float]:
    """Number, sum and sum of squares."""
    return [float(values.size), float(values.sum()), float(values @ values)]


def _mean_and_error(moments: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error."""
    size, total, squares = moments
    mean = total / size
    return mean, float(np.sqrt(max(squares / size - mean**2, 0.0) / size))
