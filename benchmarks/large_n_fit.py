"""The part of `large_n.py` that fits a classifier to streamed kernel values, next to fewer functions and fewer rows."""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np
from generated import gaussian_process_labels
from sklearn.svm import SVC
from streamed import exp_rate, floor
from tables import Outcomes, header, number, report, row

from gramian import KernelLogisticRegression
from gramian.kernels import RBF

FEATURES, CLASSES, LENGTH_SCALE, GAIN = 20, 5, 4.5, 3.0
HELD_OUT = 5000
RANK = 1000  # of the low-rank model
SVC_ROWS = 10_000  # SVC takes some n² seconds: more rows would take minutes
MOST_SECONDS, MOST_SECONDS_OF_FIRST, MOST_SECONDS_OF_PREDICTION = 90.0, 10.0, 3.0
BAR_ROWS, BAR_THREADS = 50_000, 2


class FirstModel:
    """A callback that keeps the first model it is told of, and when that was."""

    def __init__(self) -> None:
        self.started, self.seconds, self.model = time.perf_counter(), float("nan"), None

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """End."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """A task has begun."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None):
        """Keep the first model."""
        if self.model is None and context.task_name == "iteration":
            self.seconds = time.perf_counter() - self.started
            self.model = fitted_estimator


def _judged(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Errors in per cent and log loss."""
    P = model.predict_proba(X)
    return 100 * float(np.mean(P.argmax(axis=1) != y)), float(
        -np.log(P[np.arange(len(y)), y]).mean()
    )


def fit_part(sizes: list[int], tol: float) -> Outcomes:
    """Print a table for each size; return which bars held."""
    outcomes: Outcomes = []
    for n in sizes:
        X, y, _ = gaussian_process_labels(
            n + HELD_OUT, FEATURES, CLASSES, length_scale=LENGTH_SCALE, gain=GAIN
        )
        outcomes += _one_size(X[:n], y[:n], X[n:], y[n:], tol)
    return outcomes


def _one_size(X: Any, y: Any, X_new: Any, y_new: Any, tol: float) -> Outcomes:
    outcomes: Outcomes = []
    n = len(X)
    print(f"\nn = {n}, {FEATURES} features, {CLASSES} classes, RBF({LENGTH_SCALE}), tol {tol:g}\n")
    header("model", "seconds", "errors, %", "log loss", "relative gap", "products")
    first = FirstModel()
    model = KernelLogisticRegression(RBF(LENGTH_SCALE), tol=tol, random_state=0)
    model.set_callbacks(first)
    seconds = _seconds(lambda: model.fit(X, y))
    history, solution = model.solution_.history, model.solution_
    if first.model is not None:
        gap = history["gap"][0] / history["objective"][0]
        judged = map(number, _judged(first.model, X_new, y_new))
        row("first model of the callback", number(first.seconds), *judged, number(gap), "–")
    judged = map(number, _judged(model, X_new, y_new))
    gap = number(solution.relative_gap)
    row(model.operator_.name, number(seconds), *judged, gap, solution.n_products)
    few = KernelLogisticRegression(
        RBF(LENGTH_SCALE), operator="low_rank", rank=RANK, tol=tol, random_state=0
    )
    few_seconds = _seconds(lambda: few.fit(X, y))
    judged = map(number, _judged(few, X_new, y_new))
    row(f"low rank, {RANK}", number(few_seconds), *judged, number(few.solution_.relative_gap), "–")
    svc = SVC(C=10.0, gamma=0.5 / LENGTH_SCALE**2)
    svc_seconds = _seconds(lambda: svc.fit(X[:SVC_ROWS], y[:SVC_ROWS]))
    errors = 100 * float(np.mean(svc.predict(X_new) != y_new))
    row(f"SVC, {SVC_ROWS} rows", number(svc_seconds), number(errors), "–", "–", "–")
    exponentials = solution.n_products * n * (n + 1) / 2 / exp_rate(np.float32)
    least = solution.n_products * floor(n, FEATURES, CLASSES, np.float32, True)
    print(
        f"\nFloor of the fit, {solution.n_products} products in single precision: {least:.3g} s, of which exponentials "
        f"{exponentials:.3g} s; the fit takes {seconds / least:.2f} times as long."
    )
    predicting = _seconds(lambda: model.predict(X))
    least = floor(n, FEATURES, CLASSES, np.float64, False)
    print(f"Prediction of {n} rows in double precision: {predicting:.3g} s, floor {least:.3g} s.")
    if n == BAR_ROWS and numba.get_num_threads() == BAR_THREADS:
        for name, found, bar in (
            (f"fit to {tol:g}", seconds, MOST_SECONDS),
            ("first model", first.seconds, MOST_SECONDS_OF_FIRST),
            ("prediction", predicting, MOST_SECONDS_OF_PREDICTION),
        ):
            report(found <= bar, f"{name}, n = {n}: {found:.3g} s (bar {bar:g})", outcomes)
    return outcomes


def _seconds(function: Any) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
