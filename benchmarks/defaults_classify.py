"""The part of `defaults.py` about classes: log loss of `KernelLogisticRegression()` with nothing set, against peers.

Peers are tuned by `GridSearchCV` with five shuffled folds of the training part, those made of trees with three. Test
parts are the original ones, or 30 %. Ours and the peers are fitted to the same rows: at most `MOST_ROWS`, but all 4435
of satimage, because grids of trees take tens of minutes with more. Classes with fewer than `FOLDS` training examples
are left out. Documents are described by their tf-idf, reduced to `COMPONENTS` by `TruncatedSVD` and normalised;
everything else is standardised.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from data import data_file, load_attributes, load_satimage, load_uci, load_usps
from hierarchical_svm_data import TASKS
from records import Cell, Run
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC
from tables import Outcomes, header, number, report, row
from timing import once

from gramian import KernelLogisticRegression

TEXTS = ("20news", "ecat")
SETS = (
    "satimage",
    "usps",
    "covtype",
    "cmc",
    "glass",
    "ionosphere",
    "pima",
    "segment",
    "spambase",
    "vehicle",
    "vowel",
    "wine",
    "letters",
    "attributes",
    *TEXTS,
)
MOST_ROWS = 1500
MOST_TEST_ROWS = 5000
COMPONENTS = 100
GRID = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-3, 1, 5)}  # gamma relative to "scale"
FOLDS, TREE_FOLDS = 5, 3
TREES = 300  # of a forest; a third of them while it is tuned
EPS = 1e-15

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


# --- sets -----------------------------------------------------------------------------------------


def load(folder: str | None, name: str, seed: int) -> Split:
    """Return X_train, X_test, y_train, y_test of a set as a user would prepare it."""
    X, y, X_test, y_test = _parts(folder, name, seed)
    rng = np.random.default_rng(seed)
    if name != "satimage":
        few = rng.permutation(len(y))[:MOST_ROWS]
        X, y = X[few], y[few]
        judged = rng.permutation(len(y_test))[:MOST_TEST_ROWS]
        X_test, y_test = X_test[judged], y_test[judged]
    classes, counts = np.unique(y, return_counts=True)
    usual = classes[counts >= FOLDS]
    train, test = np.isin(y, usual), np.isin(y_test, usual)
    X, y, X_test, y_test = X[train], y[train], X_test[test], y_test[test]
    prepare = StandardScaler()
    if name in TEXTS:
        prepare = make_pipeline(TruncatedSVD(COMPONENTS, random_state=seed), Normalizer())
    return prepare.fit_transform(X), prepare.transform(X_test), y, y_test


def _parts(folder: str | None, name: str, seed: int) -> Any:
    """X_train, y_train, X_test, y_test."""
    if name == "satimage":
        return load_satimage(folder)
    if name == "usps":
        return load_usps(folder)
    if name in TEXTS:
        return TASKS[name](folder, False).split(seed)
    if name == "letters":
        return _letters(folder, seed)
    X, y = (
        load_attributes(folder, "apascal_train")
        if name == "attributes"
        else load_uci(folder, name)[:2]
    )
    stratify = y if np.unique(y, return_counts=True)[1].min() > 1 else None
    X, X_test, y, y_test = train_test_split(
        X.astype(float), y, test_size=0.3, random_state=seed, stratify=stratify
    )
    return X, y, X_test, y_test


def _letters(folder: str | None, seed: int) -> Any:
    """Letters of handwritten words; test letters are from other words."""
    stored = np.load(data_file(folder, "sequences/ocr_letters.npz"), allow_pickle=False)
    X, y = np.unpackbits(stored["X_bits"], axis=1).astype(float), stored["y"].astype(int)
    word = np.repeat(np.arange(len(stored["word_length"])), stored["word_length"])
    held_out = np.random.default_rng(seed).random(len(stored["word_length"])) < 0.3
    test = held_out[word]
    return X[~test], y[~test], X[test], y[test]


def folds(seed: int) -> StratifiedKFold:
    return StratifiedKFold(FOLDS, shuffle=True, random_state=seed)


# --- peers ----------------------------------------------------------------------------------------


def svc_grid(X: np.ndarray) -> dict[str, Any]:
    return GRID | {"gamma": GRID["gamma"] / (X.shape[1] * X.var())}


class Tempered:
    """An SVC whose decision values go through a softmax with the temperature of the best held-out loss."""

    def __init__(self, svc: SVC, X: np.ndarray, y: np.ndarray, seed: int):
        self.model = clone(svc).fit(X, y)
        held_out = cross_val_predict(svc, X, y, cv=folds(seed), method="decision_function")
        codes = np.searchsorted(self.model.classes_, y)

        def loss(log_scale: float) -> float:
            return log_loss(codes, _softmax(held_out, np.exp(log_scale)), labels=np.unique(codes))

        self.scale = np.exp(minimize_scalar(loss, bounds=(-5, 5), method="bounded").x)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return _softmax(self.model.decision_function(X), self.scale)


def _softmax(D: np.ndarray, scale: float) -> np.ndarray:
    D = np.stack([np.zeros_like(D), D], axis=1) if D.ndim == 1 else D
    return np.exp(scale * D - logsumexp(scale * D, axis=1, keepdims=True))


def _platt(svc: SVC, X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # probability=True is what users call
        return clone(svc).set_params(probability=True, random_state=seed).fit(X, y)


def _forest(X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    model = RandomForestClassifier(TREES // 3, random_state=0)
    found = _tuned(
        model, {"max_features": ["sqrt", 0.3], "min_samples_leaf": [1, 3]}, TREE_FOLDS, refit=False
    )
    best = found(X, y, seed).best_params_
    return clone(model).set_params(n_estimators=TREES, **best).fit(X, y)


def _tuned(
    model: Any, grid: dict[str, Any], n_splits: int, *, refit: bool = True
) -> Callable[[np.ndarray, np.ndarray, int], Any]:
    """Return a function that fits a model by grid search for the log loss."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> Any:
        splits = StratifiedKFold(n_splits, shuffle=True, random_state=seed)
        search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=splits, refit=refit)
        return search.fit(X, y)

    return fit


CALIBRATED = {"SVC, Platt": _platt, "SVC, temperature": Tempered}  # of the SVC of best accuracy
PEERS = {
    "boosting": _tuned(
        HistGradientBoostingClassifier(random_state=0),
        {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [7, 31]},
        TREE_FOLDS,
    ),
    "forest": _forest,
    "logistic": _tuned(LogisticRegression(max_iter=2000), {"C": np.logspace(-3, 3, 7)}, FOLDS),
}


# --- what is measured -----------------------------------------------------------------------------


def held_out_loss(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    P = np.clip(model.predict_proba(X), EPS, None)
    return log_loss(y, P / P.sum(axis=1, keepdims=True))


def peers_of(X: np.ndarray, X_test: np.ndarray, y: np.ndarray, y_test: np.ndarray, seed: int):
    """Test losses of all tuned peers."""
    svc = GridSearchCV(SVC(), svc_grid(X), cv=folds(seed), refit=False).fit(X, y)
    best = SVC(**svc.best_params_)
    models = {name: make(best, X, y, seed) for name, make in CALIBRATED.items()}
    models |= {name: fit(X, y, seed) for name, fit in PEERS.items()}
    return {name: held_out_loss(model, X_test, y_test) for name, model in models.items()}


def ours_of(X: np.ndarray, X_test: np.ndarray, y: np.ndarray, y_test: np.ndarray, seed: int):
    """Test losses and seconds of the default, of its kernel fixed, and of what learns to the end."""
    KernelLogisticRegression().fit(X[:300], y[:300])  # compiles
    seconds, model = once(lambda: KernelLogisticRegression(random_state=seed).fit(X, y))
    plain = KernelLogisticRegression(model.kernel_, regularization=1.0)
    fixed, _ = once(lambda: plain.fit(X, y))
    full = KernelLogisticRegression(optimize="cv", random_state=seed)
    learning, learned = once(lambda: full.fit(X, y))
    losses = [held_out_loss(one, X_test, y_test) for one in (model, learned)]
    return {
        "default": losses[0],
        "default, s": seconds,
        "fixed, s": fixed,
        "learned": losses[1],
        "learned, s": learning,
        "path": [_stages(one.optimization_path_) for one in (model, learned)],
    }


def _stages(path: Any) -> list[Any]:
    """Rows, log-parameters and cross-validated loss where each stage of a search ended."""
    best = [np.argmin(np.where(path.n_samples == n, path.loss, np.inf)) for n in path.n_samples]
    return [
        [int(path.n_samples[k]), *path.theta[k], float(path.loss[k])] for k in sorted(set(best))
    ]


def classify_part(run: Run, outcomes: Outcomes) -> None:
    columns = ("default", "default, s", "fixed, s", "learned", "learned, s")
    peers = (*CALIBRATED, *PEERS)
    header("set", "n", "seeds", *columns, *peers)
    near = ahead = total = 0
    for name in run.chosen(SETS):

        def measure(
            seed: int,
            name: str = name,
            of: Callable[..., Cell] = ours_of,
        ) -> Cell:
            split = load(run.data, name, seed)
            return {"n": len(split[2])} | of(*split, seed)

        theirs = run.cells("peers", name, partial(measure, of=peers_of))
        cells = run.cells("classify", name, measure)
        if not cells or len(cells) != len(theirs):
            continue
        cells = [ours | peers for ours, peers in zip(cells, theirs, strict=True)]
        mean = {
            key: float(np.mean([cell[key] for cell in cells])) for key in cells[0] if key != "path"
        }
        n = int(mean["n"])
        row(name, n, len(cells), *(number(mean[key]) for key in (*columns, *peers)))
        total += 1
        near += mean["default"] <= 1.1 * mean["learned"]
        ahead += mean["default"] < min(mean[peer] for peer in peers)
        if n >= 4000:
            ratio = mean["default, s"] / mean["fixed, s"]
            report(ratio <= 2, f"{name}: {ratio:.2f} × a fixed fit", outcomes)
        elif n <= 1000:
            report(mean["default, s"] <= 1.5, f"{name}: {mean['default, s']:.2f} s", outcomes)
    report(near == total, f"within 10 % of learned on {near} of {total} sets", outcomes)
    report(ahead >= 0.7 * total, f"ahead of all peers on {ahead} of {total}", outcomes)
