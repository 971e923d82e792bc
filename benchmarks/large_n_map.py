"""An elevation map fitted by kernel CG with tree-code products; what `large_n.py --part map` measures.

Each fit and each set of products runs in a process of its own, so that peaks of memory are its own.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from data import load_elevation
from streamed import peak_mib
from tables import Outcomes, header, number, report, row
from timing import once, prepared

from gramian import KernelRidge
from gramian.kernels import RBF
from gramian.operators import Streamed, TreeCode

STREAMED_UP_TO = 100_000  # points; beyond, products with all pairs take minutes
ROWS = 2000  # of the product that are checked where no streamed product is there to compare with
HELD_OUT = 20_000
COMPILING = 10_000  # points of a product before the first timed one
DRAWN = (10_000, 100_000)
ACCURACY = 1e-6  # relative error of a product that counts for the bar
SPEED_BAR, SPEED_AT = 30.0, 100_000
SECONDS_BAR, MEMORY_BAR = 600.0, 6.0
EXPONENT_BAR = 1.15  # "close to linear": n log n from 10 000 to 770 000 points has 1.09
EXPONENT_FROM = 10_000
OF_ESTIMATORS = ("tree code, 1e-8", "float64")


@dataclass(frozen=True)
class Setting:
    """Hyperparameters: neighbours k within σ, and λ; None is 1/n."""

    neighbours: float
    regularization: float | None = None

    def __str__(self) -> str:
        strength = "1/n" if self.regularization is None else f"{self.regularization:g}"
        return f"k = {self.neighbours:g}, λ = {strength}"


# Chosen by held-out errors of 1000 to 10 000 points: with k = 1 the map falls back to its mean between the points.
SMOOTH = Setting(8.0, 1e-2)


class MapTask:
    """A random subset of the map: n points for training, some of the others for testing."""

    def __init__(self, folder: str | None, n: int, setting: Setting):
        elevation = load_elevation(folder)
        self.n, self.setting = n, setting
        self.grid = np.argwhere(np.ones(elevation.shape, bool)).astype(float)
        self.metres = elevation.ravel()
        order = np.random.default_rng(0).permutation(len(self.grid))
        self.train, self.held_out = order[:n], order[n:][:HELD_OUT]

    @property
    def X(self) -> np.ndarray:
        """Row and column of the training points, in cells."""
        return self.grid[self.train]

    @property
    def length_scale(self) -> float:
        """A circle of this radius holds k training points on average."""
        return math.sqrt(self.setting.neighbours * len(self.grid) / (self.n * math.pi))

    @property
    def regularization(self) -> float:
        return 1 / self.n if self.setting.regularization is None else self.setting.regularization

    @property
    def kernel(self) -> RBF:
        return RBF(self.length_scale, "fixed")


@dataclass(frozen=True)
class Fit:
    """What a fit took and how good it is."""

    n: int
    setting: Setting
    length_scale: float
    seconds: float
    iterations: int
    products: int
    status: str
    gap: float
    peak: float | None  # GiB
    training_rmse: float  # metres
    rmse: float | None  # on held-out points
    picture: np.ndarray | None


@dataclass(frozen=True)
class Products:
    """One operator: seconds and relative error of a product with one column."""

    n: int
    name: str
    dtype: str
    preparation: float
    seconds: float
    error: float | None = None


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


# --- in the child ---------------------------------------------------------------------------


def fit_map(folder: str | None, n: int, setting: Setting, tol: float, whole_grid: bool) -> Fit:
    """Fit a subset; predict held-out points and, if asked for, the whole grid."""
    _fitted(MapTask(folder, 1000, setting), tol)  # compiles
    task = MapTask(folder, n, setting)
    seconds, (model, restore) = once(lambda: _fitted(task, tol))
    peak = peak_mib()
    solution = model.solution_

    def rmse(points: np.ndarray) -> float | None:
        if not points.size:
            return None
        predicted = restore(model.predict(task.grid[points]))
        return float(np.sqrt(np.mean((predicted - task.metres[points]) ** 2)))

    picture = restore(model.predict(task.grid)).astype(np.float32) if whole_grid else None
    return Fit(
        n,
        setting,
        task.length_scale,
        seconds,
        solution.n_iter,
        solution.n_products,
        solution.status,
        solution.relative_gap,
        None if peak is None else peak / 1024,
        rmse(task.train[:HELD_OUT]),
        rmse(task.held_out),
        picture,
    )


def _fitted(task: MapTask, tol: float) -> tuple[KernelRidge, Callable[[np.ndarray], np.ndarray]]:
    """The model, and the way from its predictions back to metres."""
    y = task.metres[task.train]
    mean, spread = y.mean(), y.std()
    model = KernelRidge(
        kernel=task.kernel,
        regularization=task.regularization,
        intercept_variance=0.0,
        operator="tree_code",
        solver="kernel_cg",
        tol=tol,
    )
    model.fit(task.X, (y - mean) / spread)
    return model, lambda values: mean + spread * values


def measure_products(folder: str | None, n: int, setting: Setting) -> list[Products]:
    """Time tree code and, where it is not too long, streamed products; compare with float64."""
    task, small = (MapTask(folder, size, setting) for size in (n, min(n, COMPILING)))
    b = np.random.default_rng(1).standard_normal((n, 1))
    cases: list[tuple[str, Any, Callable[..., Any]]] = [
        ("tree code, 1e-8", np.float64, lambda k, X: TreeCode(k, X)),
        ("tree code, 1e-6", np.float64, lambda k, X: TreeCode(k, X, error=1e-6)),
        ("tree code, 1e-6", np.float32, lambda k, X: TreeCode(k, X, error=1e-6)),
    ]
    if n <= STREAMED_UP_TO:
        cases += [("streamed", np.float64, Streamed), ("streamed", np.float32, Streamed)]
    found, results = [], []
    for name, dtype, build in cases:
        build(small.kernel, small.X.astype(dtype)) @ b[: small.n].astype(dtype)  # compiles
        X, column = task.X.astype(dtype), b.astype(dtype)
        *times, result = prepared(partial(build, task.kernel, X), lambda K, b=column: K @ b)
        found.append(Products(n, name, np.dtype(dtype).name, *times))
        results.append(result)
    rows = np.arange(n)
    if n <= STREAMED_UP_TO:
        exact = results[3]
    else:
        rows = np.random.default_rng(2).choice(n, ROWS, replace=False)
        exact = Streamed(task.kernel, task.X[rows], task.X) @ b
    errors = [
        None if result is exact else np.linalg.norm(result[rows] - exact) / np.linalg.norm(exact)
        for result in results
    ]
    return [Products(**(vars(p) | {"error": e})) for p, e in zip(found, errors, strict=True)]


# --- tables ---------------------------------------------------------------------------------


def map_part(
    folder: str | None, sizes: list[int], setting: Setting, tol: float, picture: str | None
) -> Outcomes:
    """Print the tables of the map and the verdicts; draw the picture."""
    elevation = load_elevation(folder)
    sizes = sorted({min(n, elevation.size) for n in sizes})
    print(
        f"\n### Products: {elevation.shape[0]} × {elevation.shape[1]} cells, "
        f"RBF with σ² = kN/(nπ), k = {setting.neighbours:g}, one column\n"
    )
    header("n", "operator", "dtype", "preparation s", "s / product", "relative error")
    products = []
    for n in sizes:
        for p in in_child(measure_products, folder, n, setting):
            products.append(p)
            cells = number(p.preparation), number(p.seconds), number(p.error, ".1e")
            row(n, p.name, p.dtype, *cells)
    drawn = [n for n in sizes if n in DRAWN] or sizes[-2:]
    fits, smooth = (
        _print_fits(folder, sizes, each, tol, drawn if picture is not None else [])
        for each in (setting, SMOOTH)
    )
    print()
    outcomes = _verdicts(products, fits + smooth, elevation.size)
    if picture is not None:
        from large_n_picture import draw

        draw(picture, elevation, [f for f in fits + smooth if f.picture is not None], products)
        print(f"\nSaved {picture}")
    return outcomes


def _print_fits(
    folder: str | None, sizes: list[int], setting: Setting, tol: float, drawn: list[int]
) -> list[Fit]:
    print(f"\n### RLS by kernel CG, tree code, {setting}, relative gap ≤ {tol:g}\n")
    header(
        "n", "σ, cells", "fit s", "iterations", "s / iteration", "status", "relative gap",
        "peak GiB", "RMSE training, m", "RMSE held out, m",
    )  # fmt: skip
    fits = []
    for n in sizes:
        f = in_child(fit_map, folder, n, setting, tol, n in drawn)
        fits.append(f)
        row(
            n, number(f.length_scale), number(f.seconds), f.iterations,
            number(f.seconds / max(1, f.iterations)), f.status, number(f.gap, ".1e"),
            number(f.peak, ".2f"), number(f.training_rmse), number(f.rmse),
        )  # fmt: skip
    return fits


def growth(products: list[Products], name: str, dtype: str) -> float | None:
    """Least-squares slope of log seconds a product on log n."""
    points = [
        (p.n, p.seconds) for p in products
        if p.name == name and p.dtype == dtype and p.n >= EXPONENT_FROM
    ]  # fmt: skip
    if len(points) < 2:
        return None
    log_n, log_seconds = np.log(points).T
    return float(np.polyfit(log_n, log_seconds, 1)[0])


def _verdicts(products: list[Products], fits: list[Fit], N: int) -> Outcomes:
    outcomes: Outcomes = []
    accurate = [p for p in products if p.n == SPEED_AT and (p.error is None or p.error <= ACCURACY)]
    trees = [p for p in accurate if p.name.startswith("tree")]
    streams = [p for p in accurate if p.name == "streamed"]
    if SPEED_AT in {p.n for p in products}:
        if trees and streams:
            tree, stream = (min(ps, key=lambda p: p.seconds) for ps in (trees, streams))
            ratio = stream.seconds / tree.seconds
            text = (
                f"{tree.name}, {tree.dtype} {ratio:.1f} times as fast as streamed, {stream.dtype}"
            )
        else:
            ratio, text = 0.0, "no tree-code product is as accurate"
        text = f"n = {SPEED_AT}, both within {ACCURACY:g}, fastest of each: {text}"
        report(ratio >= SPEED_BAR, f"{text} (bar {SPEED_BAR:g})", outcomes)
        for dtype in ("float64", "float32"):
            same = [[p.seconds for p in ps if p.dtype == dtype] for ps in (trees, streams)]
            if all(same):
                print(f"- no bar: both in {dtype}: {min(same[1]) / min(same[0]):.1f} times as fast")
    whole = [f for f in fits if f.n == N]
    for f in whole:
        held = f.status == "converged" and f.seconds < SECONDS_BAR
        text = f"whole map, {N} points, {f.setting}: {f.status} in {f.seconds:.0f} s (bar {SECONDS_BAR:g})"
        report(held, text, outcomes)
        if f.peak is None:
            print("- no verdict: this system does not tell the peak of memory")
        else:
            text = f"whole map, {f.setting}: {f.peak:.2f} GiB at its peak (bar {MEMORY_BAR:g})"
            report(f.peak < MEMORY_BAR, text, outcomes)
    for name in ("tree code, 1e-8", "tree code, 1e-6", "streamed"):
        for dtype in ("float64", "float32"):
            exponent = growth(products, name, dtype)
            if exponent is None:
                continue
            text = (
                f"seconds a product grow as n^{exponent:.2f}, {name}, {dtype}, n ≥ {EXPONENT_FROM}"
            )
            if (name, dtype) != OF_ESTIMATORS:
                print(f"- no bar: {text}")
            else:
                report(exponent <= EXPONENT_BAR, f"{text} (bar {EXPONENT_BAR:g})", outcomes)
    return outcomes
