"""Kernel CG against CG on the coefficients: iterations to the same duality gap.

Claim (Ratliff & Bagnell 2007, table of UCI sets): for regularised least squares (RLS) and kernel
logistic regression (KLR), conjugate gradient in the RKHS inner product (KCG) never needs more
iterations than conjugate gradient on the coefficients (PCG), and usually far fewer, because its
condition number is that of K + λI instead of K(K + λI).

    python benchmarks/kernel_cg.py --data DIR [--rows 1000] [--cap 5000] [--figure FILE]

Prints, for each λ and loss, a line for each set: examples, iterations, products with the Gram
matrix and seconds of both to the same relative duality gap, and the iterations to the same relative
distance of the objective from its minimum (this does not favour either inner product). Ends with
geometric means and PASS or MISS for "kernel CG never needs more iterations". ``--figure`` draws the
paper's plots for covtype: the PCG iterations that reach what KCG has reached, and the bounds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np
from data import UCI, add_data_argument, load_uci, machine, standardised
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from gramian.kernels import RBF
from gramian.losses import Logistic, Squared
from gramian.operators import Dense
from gramian.solvers import Problem, Solution, kernel_cg, newton, parameter_cg

TOLERANCES = (1e-4, 1e-6)  # of the gap, relative to the objective; the first is the paper's kind
STRENGTHS = (1.0, 0.01)
LOSSES = {"RLS": Squared(), "KLR": Logistic()}


@dataclass(frozen=True)
class Arrival:
    """When a solver first met a criterion; ``reached`` is False if it was stopped before."""

    iterations: int
    products: int
    seconds: float
    reached: bool

    def __str__(self) -> str:
        return f"{self.iterations}" if self.reached else f">{self.iterations}"


@dataclass(frozen=True)
class Line:
    """One row of the table: PCG, KCG, then both again for the objective."""

    name: str
    task: str
    n: int
    gap: tuple[Arrival, Arrival]
    objective: tuple[Arrival, Arrival]


# --- the problems -----------------------------------------------------------------------------


def targets_of(y: np.ndarray, kind: str, loss: str) -> tuple[np.ndarray, str]:
    """Targets of shape (n, 1), with the task in words."""
    if kind == "regression" and loss == "RLS":
        return ((y - y.mean()) / y.std())[:, None], "value"
    if kind == "regression":
        positive, task = y > np.median(y), "> median"
    else:
        largest = int(np.argmax(np.bincount(y)))
        positive, task = y == largest, f"class {largest}"
    return (positive if loss == "KLR" else 2.0 * positive - 1).astype(float)[:, None], task


def prepared(folder: str | None, name: str, rows: int) -> tuple[np.ndarray, np.ndarray, str]:
    """A random subset of at most ``rows`` examples, features standardised."""
    X, y, kind = load_uci(folder, name)
    keep = np.sort(np.random.default_rng(0).permutation(len(y))[:rows])
    return standardised(X[keep]), y[keep], kind


def gram(X: np.ndarray) -> Dense:
    """The stored Gram matrix of the RBF kernel with the library's default length scale."""
    return Dense(RBF("scale").resolve(X), X)


# --- measuring --------------------------------------------------------------------------------


def solved(problem: Problem, cap: int) -> tuple[Solution, Solution, float]:
    """PCG and KCG run to the tightest tolerance, and a lower bound within 1e-10 of the minimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        pcg = parameter_cg(problem, tol=min(TOLERANCES), max_iter=cap)
        kcg = kernel_cg(problem, tol=min(TOLERANCES), max_iter=cap)
        best = newton(problem, tol=1e-10)
    return pcg, kcg, best.objective - best.gap


def arrival(solution: Solution, met: np.ndarray) -> Arrival:
    """First entry of the history that meets the criterion, else the last one."""
    history = solution.history
    at = int(np.argmax(met)) if met.any() else len(met) - 1
    return Arrival(at, int(history["products"][at]), float(history["seconds"][at]), met.any())


def by_gap(solution: Solution, tol: float) -> Arrival:
    """When the duality gap was at most tol × objective."""
    history = solution.history
    return arrival(solution, history["gap"] <= tol * history["objective"])


def by_objective(solution: Solution, tol: float, lowest: float) -> Arrival:
    """When the objective was within tol × minimum of the minimum."""
    return arrival(solution, solution.history["objective"] - lowest <= tol * lowest)


def measured(folder: str | None, names: list[str], rows: int, cap: int) -> dict:
    """Lines of all tables, by (λ, loss, tolerance)."""
    tables: dict[tuple[float, str, float], list[Line]] = {}
    for name in names:
        X, y, kind = prepared(folder, name, rows)
        operator = gram(X)
        for strength in STRENGTHS:
            for label, loss in LOSSES.items():
                Y, task = targets_of(y, kind, label)
                pcg, kcg, lowest = solved(Problem(operator, loss, Y, strength), cap)
                for tol in TOLERANCES:
                    gap = (by_gap(pcg, tol), by_gap(kcg, tol))
                    objective = (by_objective(pcg, tol, lowest), by_objective(kcg, tol, lowest))
                    line = Line(name, task, len(y), gap, objective)
                    tables.setdefault((strength, label, tol), []).append(line)
    return tables


# --- printing ---------------------------------------------------------------------------------


def ratio(pair: tuple[Arrival, Arrival]) -> float:
    """PCG iterations for one of KCG; a lower bound when PCG was stopped before."""
    return max(pair[0].iterations, 1) / max(pair[1].iterations, 1)


def bounded(pair: tuple[Arrival, Arrival]) -> str:
    """The ratio, marked when it is a lower bound."""
    return f"{'' if pair[0].reached else '≥'}{ratio(pair):.1f}"


def geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def show(key: tuple[float, str, float], lines: list[Line]) -> None:
    """Print one table in Markdown."""
    strength, label, tol = key
    print(f"\n### {label}, λ = {strength:g}, relative gap {tol:.0e}\n")
    print(
        "| set | task | examples | PCG iter. | KCG iter. | speedup | PCG prod. | KCG prod. |",
        end="",
    )
    print(" PCG s | KCG s | objective: PCG iter. | KCG iter. | speedup |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for line in lines:
        (p, k), (po, ko) = line.gap, line.objective
        print(f"| {line.name} | {line.task} | {line.n} | {p} | {k} | {bounded(line.gap)} |", end="")
        print(f" {p.products} | {k.products} | {p.seconds:.3f} | {k.seconds:.3f} |", end="")
        print(f" {po} | {ko} | {bounded(line.objective)} |")


def summarise(tables: dict) -> bool:
    """Print geometric means and the verdict; True if the claim held everywhere."""
    print("\n### Geometric means of PCG / KCG over the sets\n")
    print(
        "| loss | λ | tolerance | iterations to the gap | products | to the objective | PCG stopped before |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for (strength, label, tol), lines in sorted(tables.items(), key=lambda item: item[0][1]):
        iterations = geometric_mean([ratio(line.gap) for line in lines])
        products = geometric_mean([line.gap[0].products / line.gap[1].products for line in lines])
        objective = geometric_mean([ratio(line.objective) for line in lines])
        capped = sum(not line.gap[0].reached for line in lines)
        print(f"| {label} | {strength:g} | {tol:.0e} | {iterations:.1f} | {products:.1f} |", end="")
        print(f" {objective:.1f} | {capped} of {len(lines)} |")
    every = [(key, line) for key, lines in tables.items() for line in lines]
    worse = [
        f"{line.name} ({key[1]}, λ = {key[0]:g}, {key[2]:.0e})"
        for key, line in every
        if not line.gap[1].reached or line.gap[1].iterations > line.gap[0].iterations
    ]
    verdict = "MISS: " + ", ".join(worse) if worse else "PASS"
    held = len(every) - len(worse)
    print(f"\nkernel CG never needs more iterations ({held} of {len(every)} cases): {verdict}")
    return not worse


# --- the figure -------------------------------------------------------------------------------


def equivalent(pcg: Solution, kcg: Solution) -> tuple[np.ndarray, np.ndarray]:
    """KCG iterations, and the PCG iterations that first reach the same objective."""
    best = np.minimum.accumulate(pcg.history["objective"])
    # objectives fall; the first entry at or below the level, where there is one
    first = np.searchsorted(-best, -kcg.history["objective"], side="left")
    known = first < len(best)
    return np.flatnonzero(known), first[known]


def draw(folder: str | None, rows: int, cap: int, file: str) -> None:
    """The paper's plots on covtype, λ = 1."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y, kind = prepared(folder, "covtype", rows)
    operator = gram(X)
    figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
    for (left, right), (label, loss) in zip(axes, LOSSES.items()):
        problem = Problem(operator, loss, targets_of(y, kind, label)[0], STRENGTHS[0])
        pcg, kcg, _ = solved(problem, cap)
        draw_equivalent(left, pcg, kcg, label)
        draw_bounds(right, pcg, kcg, label)
    figure.savefig(file, dpi=150)
    print(f"\nfigure: {file}")


def draw_equivalent(axis, pcg: Solution, kcg: Solution, label: str) -> None:
    """PCG iterations to reach KCG's objective at each iteration."""
    k, p = equivalent(pcg, kcg)
    axis.plot(k, p, "o-", ms=3, label="PCG iterations to KCG's objective")
    axis.plot(k, k, "--", color="grey", label="equal")
    axis.plot(k, k**2, ":", color="black", label="the square")
    axis.set(
        title=f"{label}, covtype", xlabel="KCG iterations", ylabel="PCG iterations", yscale="symlog"
    )
    axis.legend()


def draw_bounds(axis, pcg: Solution, kcg: Solution, label: str) -> None:
    """Objective and lower bound along the way."""
    for name, solution, colour in (("PCG", pcg, "C1"), ("KCG", kcg, "C0")):
        history = solution.history
        steps = np.arange(1, len(history["objective"]) + 1)
        lower = np.maximum.accumulate(history["objective"] - history["gap"])
        axis.plot(steps, history["objective"], color=colour, label=f"{name}, objective")
        axis.plot(steps, lower, "--", color=colour, label=f"{name}, lower bound")
    axis.set(title=f"{label}, covtype", xlabel="iteration + 1", ylabel="bounds", xscale="log")
    axis.set_ylim(0, 1.05 * kcg.history["objective"][0])
    axis.legend()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_argument(parser)
    parser.add_argument("--sets", nargs="+", choices=list(UCI), default=list(UCI))
    parser.add_argument("--rows", type=int, default=1000, help="most examples of a set")
    parser.add_argument("--cap", type=int, default=5000, help="most iterations")
    parser.add_argument("--figure", metavar="FILE", help="write the paper's plots for covtype")
    arguments = parser.parse_args()
    started = time.perf_counter()
    print(f"{machine()}\n")
    print("RBF of standardised features, length scale √(d/2) ('scale'); float64; start at zero.")
    print(f"At most {arguments.rows} examples of a set (random subset). Both solvers stop at")
    print(
        f"{arguments.cap} iterations, or when they find no smaller gap for a long time ('stalled');"
    )
    print("then '>' and '≥' mark lower bounds. Classification: the first of the largest classes")
    print("against the rest, ±1 for RLS; abalone: the standardised value for RLS, above the median")
    print("for KLR. Seconds with one BLAS thread.")
    with threadpool_limits(1):  # matrices of a few MB: threads wait more than they work
        tables = measured(arguments.data, arguments.sets, arguments.rows, arguments.cap)
    for key in sorted(tables, key=lambda key: (key[1] == "KLR", -key[0], -key[2])):
        show(key, tables[key])
    summarise(tables)
    if arguments.figure:
        draw(arguments.data, arguments.rows, arguments.cap, arguments.figure)
    print(f"\n{time.perf_counter() - started:.0f} s in all")


if __name__ == "__main__":
    main()
