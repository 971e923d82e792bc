"""Low rank: test error, log loss and seconds against rank, next to scikit-learn's Nystroem with linear classifiers.

    python benchmarks/low_rank.py --data DIR [--sets covtype,usps,generated] [--ranks 100,300,1000]
                                  [--peer-ranks 100,300,1000] [--quick]

ours        ``KernelLogisticRegression(operator="low_rank", rank=r, tol=t)``, relative gaps t of 10 to 0.01
logistic    Nystroem(n_components=r) and LogisticRegression with its default of 100 iterations and, if these did not
            converge, with 2000
SGD         Nystroem(n_components=r) and SGDClassifier(loss="log_loss"), defaults

Sets: covtype (balanced part, 12 000 + 3120, 54 features, 7 classes), USPS (7291 + 2007, 256 features, 10 classes), and
50 000 + 10 000 generated examples with 10 features and 7 classes, drawn from known probabilities, whose error and
log loss are the least possible. The real sets have fewer than 20 000 examples; there are no more of them. Features are
standardised, except for pixels. All use float64.

Every method is tuned in the same way, and tuning is not timed: least log loss on 2000 of the training examples after
fitting up to 6000 others with rank 300, over the same grid of length scales and regularizations λ. The penalty is
(λ/2) ‖f‖² against the sum of log losses for all: C = 1/λ and alpha = λ/n. For ours and for LogisticRegression the
objective is the same but for the intercept, on which ours has a penalty, and for the choice of the active set.

Seconds: `fit`, everything included, after a small fit that compiles; prediction apart. Bar for each run of a peer:
there is a run of ours on that set, of any rank, that takes no more seconds and has a log loss no larger. ``--quick``
has tiny sizes, to see that everything runs; its verdicts mean nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numba
import numpy as np
import sklearn
from data import add_data_argument, load_uci, load_usps, machine
from generated import gaussian_process_labels
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import Outcomes, header, number, report, row
from timing import once

from gramian import KernelLogisticRegression
from gramian.kernels import RBF

SCALES = (0.25, 0.5, 1.0, 2.0)  # of the length scale, in units of the root of the summed variances
STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
TUNING_RANK, TUNING_TRAIN, TUNING_VALID = 300, 6000, 2000
TOLERANCES = (10.0, 1.0, 0.1, 0.01)


@dataclass(frozen=True)
class Task:
    """A classification task, split."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    note: str = ""


@dataclass(frozen=True)
class Method:
    """A way to make a classifier from rank, length scale, λ, number of examples and a setting of its own."""

    name: str
    make: Callable[..., Any]
    settings: tuple[Any, ...]

    @property
    def family(self) -> str:
        """Whose it is."""
        return self.name.split(",")[0]


@dataclass(frozen=True)
class Run:
    """One fit."""

    method: str
    rank: int
    error: float
    loss: float
    seconds: float
    prediction: float


# --- methods --------------------------------------------------------------------------------


def _features(rank: int, scale: float) -> Nystroem:
    return Nystroem(gamma=0.5 / scale**2, n_components=rank, random_state=0)


def ours(rank: int, scale: float, strength: float, n: int, tol: float) -> Any:
    return KernelLogisticRegression(
        kernel=RBF(scale, "fixed"),
        regularization=strength,
        operator="low_rank",
        rank=rank,
        tol=tol,
        random_state=0,
    )


def logistic(rank: int, scale: float, strength: float, n: int, max_iter: int) -> Any:
    return make_pipeline(
        _features(rank, scale), LogisticRegression(C=1 / strength, max_iter=max_iter)
    )


def sgd(rank: int, scale: float, strength: float, n: int, _: Any) -> Any:
    linear = SGDClassifier(loss="log_loss", alpha=strength / n, random_state=0)
    return make_pipeline(_features(rank, scale), linear)


METHODS = (
    Method("ours, gap", ours, TOLERANCES),
    Method("logistic, iterations", logistic, (100, 2000)),
    Method("SGD", sgd, ("",)),
)


# --- sets -----------------------------------------------------------------------------------


def load(name: str, folder: str | None, quick: bool) -> Task:
    """Read or draw a set."""
    if name == "usps":
        X, y, X_test, y_test = load_usps(folder)
        task = Task(name, X, y, X_test, y_test)
    elif name == "covtype":
        X, y, _ = load_uci(folder, name)
        parts = train_test_split(X, y, test_size=3120, stratify=y, random_state=0)
        scaler = StandardScaler().fit(parts[0])
        task = Task(
            name, scaler.transform(parts[0]), parts[2], scaler.transform(parts[1]), parts[3]
        )
    else:
        X, y, P = gaussian_process_labels(60_000, 10, 7, length_scale=np.sqrt(10), gain=6.0)
        test = slice(50_000, None)
        right = P[test][np.arange(10_000), y[test]]
        least = (
            f"true probabilities: error {100 * np.mean(P[test].argmax(axis=1) != y[test]):.2f} %, "
        )
        least += f"log loss {-np.mean(np.log(right)):.4f}"
        task = Task(name, X[:50_000], y[:50_000], X[test], y[test], least)
    if not quick:
        return task
    return Task(name, task.X[:1500], task.y[:1500], task.X_test[:500], task.y_test[:500], task.note)


# --- measurements ---------------------------------------------------------------------------


def tuned(task: Task, method: Method, rank: int) -> tuple[float, float]:
    """Length scale and λ of the least log loss on a part of the training examples."""
    n_valid = min(TUNING_VALID, len(task.y) // 4)
    X, X_valid, y, y_valid = train_test_split(
        task.X, task.y, test_size=n_valid, stratify=task.y, random_state=0
    )
    X, y = X[:TUNING_TRAIN], y[:TUNING_TRAIN]
    size = float(np.sqrt(task.X.var(axis=0).sum()))
    losses = {}
    for scale, strength in product(SCALES, STRENGTHS):
        model = method.make(rank, scale * size, strength, len(X), method.settings[-1]).fit(X, y)
        losses[scale * size, strength] = log_loss(
            y_valid, model.predict_proba(X_valid), labels=model.classes_
        )
    return min(losses, key=lambda key: losses[key])


def measure(task: Task, name: str, model: Any, rank: int) -> Run:
    """Fit and test."""
    seconds, _ = once(lambda: model.fit(task.X, task.y))
    prediction, P = once(lambda: model.predict_proba(task.X_test))
    P = np.asarray(P)
    error = float(np.mean(model.classes_[P.argmax(axis=1)] != task.y_test))
    loss = float(log_loss(task.y_test, P, labels=model.classes_))
    return Run(name, rank, error, loss, seconds, prediction)


def converged(model: Any) -> bool:
    """Whether more iterations would change a peer; no other setting is tried then."""
    linear = model[-1]
    return not isinstance(linear, LogisticRegression) or int(linear.n_iter_.max()) < linear.max_iter


def print_task(task: Task, ranks: list[int], peer_ranks: list[int]) -> Outcomes:
    """Print the table of a set and the verdicts."""
    n, d = task.X.shape
    print(f"\n## {task.name}: {n} + {len(task.y_test)} × {d}, {len(np.unique(task.y))} classes\n")
    if task.note:
        print(f"{task.note}\n")
    settings: dict[str, tuple[float, float]] = {}
    for method in METHODS:
        settings[method.name] = tuned(task, method, min(TUNING_RANK, max(ranks)))
        scale, strength = settings[method.name]
        print(f"- {method.family}: length scale {scale:.3g}, λ {strength:g}", flush=True)
    print()
    header("method", "rank", "test error %", "log loss", "fit s", "predict s")
    small = slice(None, None, max(1, n // 500))
    runs = []
    for method in METHODS:
        scale, strength = settings[method.name]
        method.make(50, scale, strength, n, method.settings[0]).fit(task.X[small], task.y[small])
        for rank in ranks if method.family == "ours" else peer_ranks:
            for setting in method.settings:
                model = method.make(rank, scale, strength, n, setting)
                run = measure(
                    task, f"{method.name} {setting:g}" if setting else method.name, model, rank
                )
                runs.append(run)
                row(
                    run.method, rank, f"{100 * run.error:.2f}", f"{run.loss:.4f}",
                    number(run.seconds), number(run.prediction),
                )  # fmt: skip
                if method.family != "ours" and converged(model):
                    break
    print()
    return verdicts(task, runs)


def verdicts(task: Task, runs: list[Run]) -> Outcomes:
    """For each run of a peer, the best of ours that takes no more seconds."""
    outcomes: Outcomes = []
    mine = [run for run in runs if run.method.startswith("ours")]
    for peer in runs:
        if peer in mine:
            continue
        in_time = [run for run in mine if run.seconds <= peer.seconds]
        text = f"{task.name}, {peer.method}, rank {peer.rank}: {peer.loss:.4f} in {peer.seconds:.3g} s; "
        if not in_time:
            fastest = min(mine, key=lambda run: run.seconds)
            report(False, f"{text}ours takes at least {fastest.seconds:.3g} s", outcomes)
            continue
        best = min(in_time, key=lambda run: run.loss)
        text += f"ours {best.loss:.4f} in {best.seconds:.3g} s (rank {best.rank})"
        report(best.loss <= peer.loss, text, outcomes)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_argument(parser)
    parser.add_argument("--sets", default="covtype,usps,generated", help="comma-separated")
    parser.add_argument("--ranks", default="100,300,1000", help="ours, comma-separated")
    parser.add_argument("--peer-ranks", default="100,300,1000", help="theirs")
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    arguments = parser.parse_args()
    ranks, peer_ranks = (
        [50, 100] if arguments.quick else [int(rank) for rank in text.split(",")]
        for text in (arguments.ranks, arguments.peer_ranks)
    )
    warnings.simplefilter(
        "ignore", ConvergenceWarning
    )  # fewer iterations are part of the comparison
    print(
        f"{machine()}; scikit-learn {sklearn.__version__}; {numba.get_num_threads()} threads; "
        f"load {os.getloadavg()[0]:.1f}"
    )
    outcomes: Outcomes = []
    for name in arguments.sets.split(","):
        start = time.perf_counter()
        outcomes += print_task(load(name, arguments.data, arguments.quick), ranks, peer_ranks)
        print(f"\n({time.perf_counter() - start:.0f} s in all)", flush=True)
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
