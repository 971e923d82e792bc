"""Does the preconditioner pay? Newton and CG counts and seconds with and without it.

    python benchmarks/preconditioner.py [--sizes 2000,5000,20000] [--limit 40] [--tol 1e-6]
                                        [--losses "squared;logistic;softmax, 6;softmax, 100"] [--features 3] [--quick]

Generated data, 3 normal features (where wide kernels are truly ill-conditioned; ``--features 10`` has spectra that
fall slowly, of which no small space takes much), labels drawn from smooth functions; RBF with length scale r√d,
float64, ``operator="auto"``, intercept variance 1, from a zero start to a relative duality gap of 1e-6.

    logistic       C = 1,   `newton`       softmax, 6    C = 6, `newton`
    squared        C = 1,   `kernel_cg`    softmax, 100  C = 100, leaves of a taxonomy of height 2, `newton`

Ill-conditioned set: r = 1, 3, 10 with λ = 1e-2, 1e-4. Elsewhere: λ = 1 with the same r, and r = 0.3 with all λ. Where
products are dear, cases are left out (see `LARGE`, `MANY`, `MANY_AND_LARGE`); n = 20 000 has none with C = 100.

Each case is run with ``preconditioner=None`` and "auto". Seconds are those of the solver, with all preparation of the
preconditioner; cases of less than a second, and those that seem to miss the bar, are run three times, in turns, and
the least counts. A run is cut off after
``--limit`` seconds: it counts as these seconds, which is less than it needs; if both are cut off, the case counts for
nothing, and this is said.

Bars: seconds of the ill-conditioned set fall to a half or less in sum (cut off or not); elsewhere no case takes more
than 10 % and 50 ms longer. "auto" is cut off nowhere where None is not.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numba
import numpy as np
from data import machine
from generated import gaussian_process_labels
from sklearn.exceptions import ConvergenceWarning
from tables import Outcomes, header, number, report, row

from gramian.kernels import RBF
from gramian.labels import Identity, Scalar, Taxonomy, TreeStructure
from gramian.losses import Logistic, Softmax, Squared
from gramian.operators import Intercept, LabelMixed, choose_operator
from gramian.solvers import Problem, kernel_cg, newton
from gramian.solvers.rkhs.recorder import Recorder

RATIOS, STRENGTHS = (0.3, 1.0, 3.0, 10.0), (1.0, 1e-2, 1e-4)
# Length scales and λ where a product is dear; all others have the whole grid.
LARGE = ((1.0, 1.0), (1.0, 1e-2), (10.0, 1e-4))
LARGE_FROM = 20_000
MANY = ((0.3, 1.0), (0.3, 1e-2), (1.0, 1.0), (1.0, 1e-2), (3.0, 1e-2), (10.0, 1e-2), (10.0, 1e-4))
MANY_AND_LARGE = ((0.3, 1.0), (1.0, 1.0), (1.0, 1e-2), (10.0, 1e-2))
MANY_AND_LARGE_FROM = 5000
CLASSES = {"squared": 1, "logistic": 1, "softmax, 6": 6, "softmax, 100": 100}
GAIN_BAR = 2.0
SLOWER_BAR, SLOWER_SECONDS = 1.1, 0.05
REPEATED_BELOW, REPEATS = 1.0, 3  # seconds
COMPILING = 2.0  # seconds of an untimed run before the first of a loss and size
PAUSE = 0.1  # seconds, for threads of the run before to fall asleep


@dataclass(frozen=True)
class Case:
    """A problem to solve."""

    loss: str
    n: int
    ratio: float  # length scale / √d
    strength: float
    features: int

    @property
    def ill(self) -> bool:
        return self.ratio >= 1 and self.strength < 1

    def __str__(self) -> str:
        return f"{self.loss}, n = {self.n}, ℓ = {self.ratio:g}√d, λ = {self.strength:g}"


@dataclass(frozen=True)
class Run:
    """What a solver did; seconds are a lower bound if it was cut off."""

    seconds: float
    iterations: int
    products: int
    status: str
    gap: float

    @property
    def cut(self) -> bool:
        return self.status == "cut off"


# --- problems -------------------------------------------------------------------------------


def cases(sizes: list[int], features: int) -> Iterator[Case]:
    """All cases, by loss and size."""
    for loss in CLASSES:
        for n in sizes:
            for ratio, strength in _grid(n, many=CLASSES[loss] == 100):
                yield Case(loss, n, ratio, strength, features)


def _grid(n: int, *, many: bool) -> Iterable[tuple[float, float]]:
    if many:
        return () if n >= LARGE_FROM else MANY_AND_LARGE if n >= MANY_AND_LARGE_FROM else MANY
    return LARGE if n >= LARGE_FROM else product(RATIOS, STRENGTHS)


def build(case: Case) -> Problem:
    """The problem as an estimator assembles it."""
    n, n_outputs, d = case.n, CLASSES[case.loss], case.features
    X, y, _ = gaussian_process_labels(n, d, max(2, n_outputs), length_scale=math.sqrt(d), gain=4.0)
    targets = np.eye(n_outputs)[y] if n_outputs > 1 else y[:, None].astype(float)
    if case.loss == "squared":
        rng = np.random.default_rng(1)
        targets = np.sin(X[:, :1]) * np.cos(X[:, 1:2]) + 0.1 * rng.standard_normal((n, 1))
    kernel = RBF(case.ratio * math.sqrt(d), "fixed")
    structure = _tree() if n_outputs == 100 else Scalar(1.0)
    terms: list[Any] = [
        (choose_operator(kernel, X, "auto")[0], structure),
        (Intercept(1.0, targets, n), Identity()),
    ]
    loss = Squared() if case.loss == "squared" else Logistic() if n_outputs == 1 else Softmax()
    return Problem(LabelMixed(terms), loss, targets, case.strength)


def _tree() -> TreeStructure:
    """Ten families of ten classes; a variance for each level."""
    tree = Taxonomy.from_parents({f"class {c}": f"family {c // 10}" for c in range(100)})
    names = list(tree.names)
    order = [names.index(f"class {c}") for c in range(100)]
    return TreeStructure(tree, [1.0, 0.5], tree.groups("level"), order)


# --- runs -----------------------------------------------------------------------------------


class CutOff(Exception):
    """Time is up."""

    def __init__(self, recorder: Recorder):
        self.recorder = recorder


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `CutOff` at the first product after so many seconds.

    Callbacks come once in a Newton step, which may have hundreds of products: too seldom to keep a limit.
    """
    plain, end = Recorder.product, time.perf_counter() + seconds

    def checked(self: Recorder, B: Any) -> Any:
        if time.perf_counter() > end:
            raise CutOff(self)
        return plain(self, B)

    Recorder.product = checked  # type: ignore[method-assign]
    try:
        yield
    finally:
        Recorder.product = plain  # type: ignore[method-assign]


def solve(
    case: Case, problem: Problem, preconditioner: str | None, tol: float, limit: float
) -> Run:
    """Run the solver of a case."""
    solver = kernel_cg if case.loss == "squared" else newton
    limits = {"max_iter": 100_000} if case.loss == "squared" else {}
    time.sleep(PAUSE)
    start = time.perf_counter()
    try:
        with limited(limit):
            solution = solver(problem, tol=tol, preconditioner=preconditioner, **limits)
    except CutOff as cut:
        recorder = cut.recorder
        last = recorder.rows[-1] if recorder.rows else {"objective": 1.0, "gap": np.inf}
        seconds = time.perf_counter() - start
        return Run(
            seconds,
            max(0, recorder.n_iter),
            recorder.n_products,
            "cut off",
            last["gap"] / last["objective"],
        )
    seconds = time.perf_counter() - start
    return Run(
        seconds, solution.n_iter, solution.n_products, solution.status, solution.relative_gap
    )


def compile_for(loss: str, n: int, features: int, tol: float) -> None:
    """Start both ways once, so that no timed run compiles."""
    case = Case(loss, n, 1.0, 1e-2, features)
    problem = build(case)
    for preconditioner in (None, "auto"):
        solve(case, problem, preconditioner, tol, COMPILING)


def compare(case: Case, tol: float, limit: float) -> tuple[Run, Run]:
    """Runs without and with the preconditioner; the fastest of several, in turns, if they are short or in doubt."""
    problem = build(case)
    found: dict[str | None, Run] = {}
    for repeat in range(REPEATS):
        for preconditioner in (None, "auto"):
            run = solve(case, problem, preconditioner, tol, limit)
            best = found.get(preconditioner)
            if best is None or run.seconds < best.seconds:
                found[preconditioner] = run
        long = max(run.seconds for run in found.values()) > REPEATED_BELOW
        if repeat == 0 and long and found["auto"].seconds <= SLOWER_BAR * found[None].seconds:
            break
    return found[None], found["auto"]


# --- tables ---------------------------------------------------------------------------------


def print_case(case: Case, without: Run, with_it: Run) -> None:
    """Print a line of the table."""
    ratio = without.seconds / with_it.seconds
    unsure = without.cut != with_it.cut
    mark = "" if not unsure else "> " if without.cut else "< "
    row(
        case.loss, case.n, f"{case.ratio:g}", f"{case.strength:g}",
        "ill" if case.ill else "",
        *(
            f"{a} → {b}"
            for a, b in (
                (without.iterations, with_it.iterations),
                (without.products, with_it.products),
                (number(without.seconds), number(with_it.seconds)),
            )
        ),
        "–" if without.cut and with_it.cut else f"{mark}{ratio:.2f}",
        f"{without.status} → {with_it.status}",
        f"{without.gap:.0e} → {with_it.gap:.0e}",
    )  # fmt: skip


def verdicts(found: list[tuple[Case, Run, Run]]) -> Outcomes:
    """Compare with the bars."""
    outcomes: Outcomes = []
    both_cut = [case for case, a, b in found if a.cut and b.cut]
    compared = [(case, a, b) for case, a, b in found if not (a.cut and b.cut)]
    cut = [str(case) for case, a, b in compared if a.cut]
    print(f"- cut off without preconditioner only: {'; '.join(cut) or 'none'}")
    print(f"- cut off both, not counted: {'; '.join(map(str, both_cut)) or 'none'}")
    for loss in CLASSES:
        totals = _totals([f for f in compared if f[0].ill and f[0].loss == loss])
        if totals is not None:
            print(f"- no bar: ill-conditioned, {loss}: {_text(*totals)}")
    totals = _totals([f for f in compared if f[0].ill])
    if totals is not None:
        held = totals[0] >= GAIN_BAR * totals[1]
        report(held, f"ill-conditioned set in all: {_text(*totals)} (bar {GAIN_BAR:g})", outcomes)
    slower = [
        (case, a, b)
        for case, a, b in compared
        if not case.ill
        and b.seconds > SLOWER_BAR * a.seconds
        and b.seconds > a.seconds + SLOWER_SECONDS
    ]
    elsewhere = [f for f in compared if not f[0].ill]
    text = "; ".join(f"{case}: {b.seconds / a.seconds:.2f}" for case, a, b in slower) or "none"
    report(
        not slower,
        f"elsewhere, of {len(elsewhere)} cases more than 10 % and 50 ms slower: {text}",
        outcomes,
    )
    worse = [str(case) for case, a, b in compared if b.cut]
    report(not worse, f"cut off with preconditioner only: {'; '.join(worse) or 'none'}", outcomes)
    unlike = [
        str(case) for case, a, b in compared if b.status != "converged" == a.status and not b.cut
    ]
    report(not unlike, f"converged only without: {'; '.join(unlike) or 'none'}", outcomes)
    return outcomes


def _totals(found: list[tuple[Case, Run, Run]]) -> tuple[float, float] | None:
    if not found:
        return None
    return sum(a.seconds for _, a, _ in found), sum(b.seconds for _, _, b in found)


def _text(without: float, with_it: float) -> str:
    return f"{without:.1f} s → {with_it:.1f} s, {without / with_it:.2f} times as fast"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="2000,5000,20000", help="comma-separated")
    parser.add_argument("--limit", type=float, default=40.0, help="seconds of a run")
    parser.add_argument("--tol", type=float, default=1e-6, help="relative duality gap")
    parser.add_argument("--losses", default=";".join(CLASSES), help="semicolon-separated")
    parser.add_argument("--features", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="n = 500: does everything run?")
    arguments = parser.parse_args()
    sizes = [500] if arguments.quick else [int(n) for n in arguments.sizes.split(",")]
    warnings.simplefilter("ignore", ConvergenceWarning)  # statuses are printed
    print(f"{machine()}; {numba.get_num_threads()} threads; load {os.getloadavg()[0]:.1f}")
    print(
        f"\n{arguments.features} features, relative gap {arguments.tol:g}, at most {arguments.limit:g} s a run.\n"
    )
    header(
        "loss", "n", "ℓ/√d", "λ", "set", "iterations", "products", "seconds", "times as fast",
        "status", "relative gap",
    )  # fmt: skip
    start, found = time.perf_counter(), []
    compiled = set()
    for case in cases(sizes, arguments.features):
        if case.loss not in arguments.losses.split(";"):
            continue
        if (case.loss, case.n) not in compiled:
            compiled.add((case.loss, case.n))
            compile_for(case.loss, case.n, arguments.features, arguments.tol)
        runs = compare(case, arguments.tol, arguments.limit)
        print_case(case, *runs)
        found.append((case, *runs))
    print()
    outcomes = verdicts(found)
    print(f"\n({time.perf_counter() - start:.0f} s in all)")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
