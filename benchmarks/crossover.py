"""Exact or iterative: where Cholesky stops paying in learning hyperparameters.

1. Ridge regression: one evaluation of the cross-validation criterion with its gradient (five folds), in closed form
   (`RidgeCriterion`) and iterative (`CrossValidationCriterion` to a relative gap of 1e-6, cold and warm-started after
   a small step), by number of rows. `CLOSED_FORM_ROWS` in `selection/ridge_criterion.py` is set from it.
2. Softmax, six classes: one fit with exact Newton steps and one with truncated ones, to a relative gap of 1e-6. Five
   folds multiply the exact one by five, but share the products of the iterative one.

    python benchmarks/crossover.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from data import machine

from gramian.kernels import RBF
from gramian.labels import Identity, Scalar
from gramian.losses import Softmax, Squared
from gramian.operators import Dense, Intercept, LabelMixed
from gramian.operators.inputs.distances import Distances
from gramian.selection import CrossValidationCriterion, RidgeCriterion, fold_masks
from gramian.solvers import Problem, exact, newton


def problem(n: int, loss, classes: int = 0) -> Problem:
    """Ten features; a smooth function with noise, or the largest of some smooth functions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    values = np.sin(X @ rng.normal(size=(10, max(classes, 1))))
    Y = values + 0.3 * rng.normal(size=values.shape)
    if classes:
        Y = (Y.argmax(axis=1)[:, None] == np.arange(classes)).astype(float)
    matrix = Dense(RBF(3.0), X, Distances(X))
    terms = [(matrix, Scalar(10.0)), (Intercept(1.0, Y, n), Identity())]
    return Problem(LabelMixed(terms), loss, Y, 1.0 if classes else 0.1)


def seconds(act: Callable[[], object], repeats: int = 3) -> float:
    """Least of some repeats."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)


def ridge() -> None:
    print("| rows | closed form s | iterative s, cold | warm | products, cold | warm |")
    print("|---:|---:|---:|---:|---:|---:|")
    for n in (500, 1000, 2000, 3000, 4000, 5000):
        task = problem(n, Squared())
        training, held_out = fold_masks(5, np.zeros((n, 1)), np.zeros(n))
        theta = task.operator.theta
        closed = RidgeCriterion(task, training)
        closed(theta)
        closed_s = seconds(lambda closed=closed, theta=theta: closed(theta), 2)
        start = time.perf_counter()
        iterative = CrossValidationCriterion(task, training, held_out)
        iterative(theta, tol=1e-6)
        cold_s, cold = time.perf_counter() - start, iterative.n_products
        start = time.perf_counter()
        iterative(theta + 0.05, tol=1e-6)
        warm_s, warm = time.perf_counter() - start, iterative.n_products
        print(
            f"| {n} | {closed_s:.3f} | {cold_s:.3f} | {warm_s:.3f} | {cold} | {warm} |", flush=True
        )


def softmax() -> None:
    print("\n| rows | exact s | iterative s | exact / iterative |")
    print("|---:|---:|---:|---:|")
    for n in (100, 200, 400, 800, 1600):
        task = problem(n, Softmax(), classes=6)
        times = [
            seconds(lambda task=task, solve=solve: solve(task, tol=1e-6))
            for solve in (exact, newton)
        ]
        print(f"| {n} | {times[0]:.4f} | {times[1]:.4f} | {times[0] / times[1]:.1f} |", flush=True)


def main() -> None:
    print(f"{machine()}\n")
    newton(problem(600, Softmax(), classes=6), tol=1e-6)  # compiles
    ridge()
    softmax()


if __name__ == "__main__":
    main()
