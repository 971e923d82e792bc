"""The part of `defaults.py` about trees: what `HierarchicalSVC(tree)` gives, against its five methods and peers.

Every method chooses its own C by its own folds, as the default does; peers choose theirs by `GridSearchCV` with
shuffled folds. Scores are 0/1 losses in percent, where an answer below a true inner node is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from data import load_hierarchy
from hierarchical_svm import GRID, PerParentNode, losses, significance
from hierarchical_svm_data import METHODS, TASKS, Task
from records import Cell, Run
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.extmath import row_norms
from tables import Outcomes, header, number, report, row
from timing import once

from gramian import HierarchicalSVC
from gramian.labels import Taxonomy

TREE_SETS = ("ccat", "mcat", "ecat", "ccat-h", "20news", "imclef07a")
LEVEL = 0.05  # below which the test for resampled splits calls a difference more than noise
FOLDS = 3


def trees_part(run: Run, outcomes: Outcomes) -> None:
    if not run.recorded_only and run.sets is None:
        for name, tree, X, y in _other_trees(run.data):
            model = HierarchicalSVC(tree).fit(X, y)
            answers = np.isin(model.predict(X[:50]), tree.names).all()
            report(bool(answers), f"{name}: {tree.n_nodes} nodes, default fit works", outcomes)
    columns = ("default", "s", *METHODS, "hiclass", "LinearSVC")
    header("task", "seeds", *columns, "best", "p to the best")
    near = total = 0
    for name in run.chosen(TREE_SETS):
        task = TASKS[name](run.data, False)
        cells = run.cells("trees", name, lambda seed, task=task: _errors(task, seed))
        if not cells:
            continue
        found = {key: np.array([cell[key] for cell in cells]) for key in cells[0]}
        best = min(METHODS, key=lambda method: found[method].mean())
        p = significance(found["default"], found[best], cells[0]["ratio"])
        total += 1
        near += found["default"].mean() <= found[best].mean() or p >= LEVEL
        means = (number(found[key].mean(), ".4g") for key in columns)
        row(name, len(cells), *means, best, number(p, ".2g"))
    report(
        near >= total * 4 / 6,
        f"default within noise of the best method on {near} of {total}",
        outcomes,
    )


def _errors(task: Task, seed: int) -> Cell:
    """0/1 losses in percent of the default, of each method and of the peers."""
    X, y, X_test, y_test = task.split(seed)
    default = HierarchicalSVC(task.tree, random_state=seed)
    default.set_params(C=1.0).fit(X[:200], y[:200])  # compiles
    seconds, _ = once(lambda: default.set_params(C="auto").fit(X, y))
    models = {name: HierarchicalSVC(task.tree, name, random_state=seed) for name in METHODS}
    models |= _peers(task.tree, X, seed)
    fitted = {"default": default} | {name: model.fit(X, y) for name, model in models.items()}
    errors = {
        name: losses(y_test, model.predict(X_test), task.tree)[0] for name, model in fitted.items()
    }
    return {"s": seconds, "ratio": len(y_test) / len(y)} | errors


def _peers(tree: Taxonomy, X: Any, seed: int) -> dict[str, GridSearchCV]:
    """hiclass and LinearSVC, with C for each example from the grid of `hierarchical_svm.py`."""
    grid = [C / float(row_norms(X, squared=True).mean()) for C in GRID]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    machine = LinearSVC(random_state=0)
    local = PerParentNode(tree, machine)
    return {
        "hiclass": GridSearchCV(local, {"local_classifier__C": grid}, cv=folds),
        "LinearSVC": GridSearchCV(machine, {"C": grid}, cv=folds),
    }


def _other_trees(folder: str | None) -> Iterator[tuple[str, Taxonomy, Any, np.ndarray]]:
    """Trees of examples with several labels, of which one at random is taken."""
    rng = np.random.default_rng(0)
    for name in ("enron", "cellcycle_FUN"):
        X, Y, _, _, parents = load_hierarchy(folder, name, leafmost=True)
        known = Y.any(axis=1)
        X, Y, tree = np.nan_to_num(X[known]), Y[known], Taxonomy.from_parents(parents)
        chosen = [rng.choice(np.flatnonzero(labels)) for labels in Y]
        yield name, tree, StandardScaler().fit_transform(X), np.array(list(parents))[chosen]
