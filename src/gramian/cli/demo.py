"""The demo: kernel logistic regression and its peers on the same split of the digits.

λ, C, the length scale and the calibration were compared by 5-fold cross-validated log loss within the training
half of seed 0, for each model by itself. The Gaussian process has the same length scale, so that the two
ways to turn one prior into probabilities can be compared; its variance is the best of 1, 10 and 100 for it.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.callback import ProgressBar
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import SVC
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from gramian import KernelLogisticRegression
from gramian._core.threads import one_thread
from gramian.datasets import load_digits_split
from gramian.kernels import RBF

LENGTH_SCALE = 1.5
QUICK_EXAMPLES = 300  # to train on with --quick
OURS = "gramian KernelLogisticRegression"
SIGMOID, TEMPERATURE = "SVC, sigmoid calibration", "SVC, temperature scaling"


@dataclass(frozen=True)
class Result:
    """One row of the table."""

    name: str
    model: Any
    proba: np.ndarray
    error: float
    log_loss: float
    seconds: float


def load(seed: int, quick: bool) -> Bunch:
    """Load the digits, with fewer to train on when it should be quick."""
    data = load_digits_split(random_state=seed)
    if quick:
        data.X_train, data.y_train = data.X_train[:QUICK_EXAMPLES], data.y_train[:QUICK_EXAMPLES]
    return data


def models() -> dict[str, Any]:
    """All models, ours first."""
    svc = SVC(C=10.0, gamma=1 / (2 * LENGTH_SCALE**2))
    prior = 10.0 * gp_kernels.RBF(LENGTH_SCALE)
    return {
        OURS: KernelLogisticRegression(RBF(LENGTH_SCALE), regularization=1e-4, max_iter=30),
        SIGMOID: CalibratedClassifierCV(svc, method="sigmoid"),
        "SVC, isotonic calibration": CalibratedClassifierCV(svc, method="isotonic"),
        TEMPERATURE: CalibratedClassifierCV(svc, method="temperature"),
        "Gaussian process, same kernel": GaussianProcessClassifier(prior, optimizer=None),
        "LogisticRegression": LogisticRegression(C=10.0, max_iter=1000),
    }


def compare(data: Bunch, console: Console) -> list[Result]:
    """Train and test all models with one thread each; show progress if someone is watching."""
    with threadpool_limits(1), one_thread():
        return [_result(name, model, data, console) for name, model in models().items()]


def _result(name: str, model: Any, data: Bunch, console: Console) -> Result:
    _warm_up(model, data, per_class=60 if name == OURS else 5)
    waiting = nullcontext()
    if console.is_terminal and name == OURS:
        model.set_callbacks(ProgressBar())
    elif console.is_terminal:
        waiting = console.status(f"{name} ...")
    with waiting:
        start = time.perf_counter()
        model.fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - start
        proba = model.predict_proba(data.X_test)
    error = float(np.mean(model.classes_[proba.argmax(axis=1)] != data.y_test))
    return Result(name, model, proba, error, float(log_loss(data.y_test, proba)), seconds)


def summary(results: list[Result]) -> Group:
    """Return the table and how to read it."""
    table = Table(title="On the test half; lower is better. One thread each.", title_justify="left")
    table.add_column("Model")  # gives way where the terminal is narrow
    for name in ("Error", "Log loss", "Fit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("Certificate", no_wrap=True)
    solution = results[0].model.solution_
    for result in results:
        numbers = f"{100 * result.error:.2f} %", f"{result.log_loss:.3f}", f"{result.seconds:.2f} s"
        ours = result.name == OURS
        certificate = f"gap {solution.gap:.1e}" if ours else "none"
        table.add_row(result.name, *numbers, certificate, style="bold" if ours else "")
    reading = (
        f"Certificate: the objective, {solution.objective:.4f}, is proven to be within "
        f"{solution.gap:.1e} of its minimum, after {solution.n_iter} Newton steps and "
        f"{solution.n_products} products with the Gram matrix. The others report none.\n"
        "Hyperparameters: by cross-validated log loss within the training half (seed 0), except "
        "the Gaussian process, which has our length scale."
    )
    return Group(table, Text(reading))


def draw(results: list[Result], data: Bunch, path: Path) -> None:
    """Write the figure: convergence on the left, reliability on the right."""
    from gramian.cli.figure import demo_figure

    demo_figure(results, data).savefig(path, dpi=110)


def _warm_up(model: Any, data: Bunch, per_class: int) -> None:
    """Fit some examples, so that nobody's time includes imports, compilation and thread pools.

    Our compiled products are for matrices of more than 512 rows; the Gaussian process is slow.
    """
    first = np.concatenate([np.flatnonzero(data.y_train == c)[:per_class] for c in range(10)])
    clone(model).fit(data.X_train[first], data.y_train[first])
