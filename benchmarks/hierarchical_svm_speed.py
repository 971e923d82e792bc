"""Seconds of hierarchical SVMs on the CCAT tree of RCV1: a part of `hierarchical_svm.py`.

Claims, on all documents and on a random half:

(a) orthogonal transfer proves a relative gap of 1 % in no more than 10 times the time of hiclass's
    LocalClassifierPerParentNode(LinearSVC()) as it comes, which proves nothing;
(b) the flat method does in no more than 3 times the time of LinearSVC(multi_class="crammer_singer") without intercept.
    Inner labels are classes of their own here, so that both solve the same problem. LIBLINEAR stops by a violation of
    the optimality conditions, not by a gap: its excess over the optimum is measured with our best lower bound. It is
    far more accurate than 1 % as it comes; a second row has the largest of its tolerances that gives 1 %, without a
    bar.

(c) has no bar: dual averaging, the paper's method, against dual ascent on the same problem: seconds to given gaps, for
    the half.

Gaps are relative to the smaller of J and J(0) − J, and ("/ J") to J alone. Medians, each competitor in a block of its
own; compiling is not counted.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import hiclass
import numpy as np
from hierarchical_svm_data import padded_paths, single_path_documents
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from taxonomy import subsample
from timing import median_seconds, once, verdict

from gramian import HierarchicalSVC
from gramian.labels import Taxonomy, orthogonality_weights
from gramian.labels.margins.tree_margins import Flat, Orthogonal, TreeMargins
from gramian.solvers import (
    ContrastProblem,
    ContrastSplit,
    Solution,
    contrast_ascent,
    dual_averaging,
)

HICLASS_BAR, LIBLINEAR_BAR = 10.0, 3.0
TOL = 1e-2
BEST = 1e-6  # tolerance of the lower bounds that judge LIBLINEAR
GAPS = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
MOST_STEPS = 600  # of dual averaging
LIBLINEAR_TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
QUICK = 4  # --quick divides the number of documents by this


def relative_gaps(solution: Solution) -> tuple[float, float]:
    """Gap by the smaller of J and J(0) − J, and by J."""
    at_zero = solution.history["objective"][0]
    return solution.gap / min(
        solution.objective, at_zero - solution.objective
    ), solution.relative_gap


def costs(n: int) -> dict[str, float]:
    return {"1/n": 1 / n, "0.1": 0.1, "1": 1.0}


def print_against_hiclass(X: Any, y: np.ndarray, tree: Taxonomy) -> None:
    """(a)."""
    paths = padded_paths(tree, y)
    peer = median_seconds(lambda: hiclass.LocalClassifierPerParentNode(LinearSVC()).fit(X, paths))
    print(f"hiclass, LinearSVC(): {peer:.3f} s\n")
    for text, C in costs(len(y)).items():
        K = orthogonality_weights(tree)
        model = HierarchicalSVC(tree, "orthogonal", C, K=K, intercept_variance=0.0, tol=TOL)
        mine = median_seconds(partial(model.fit, X, y))
        gap, plain = relative_gaps(model.solution_)
        held = mine <= HICLASS_BAR * peer and gap <= TOL
        print(
            f"- {verdict(held)}: orthogonal, C = {text}: {mine:.3f} s, {mine / peer:.2f} times hiclass's "
            f"(bar {HICLASS_BAR:g}); gap {gap:.1e}, / J {plain:.1e}, {model.n_iter_} sweeps"
        )
    print(flush=True)


@dataclass(frozen=True)
class Peer:
    """LIBLINEAR at one tolerance."""

    tol: float
    seconds: float
    gap: float
    plain: float

    def __str__(self) -> str:
        gaps = f"gap {self.gap:.1e}, / J {self.plain:.1e}"
        return f"LIBLINEAR's {self.seconds:.3f} s at tol {self.tol:g} with {gaps}"


def problem_of(X: Any, codes: np.ndarray, margins: TreeMargins, C: float) -> ContrastProblem:
    units = margins.units(codes, np.full(codes.size, C))
    return ContrastProblem(X, contrasts=margins.contrasts, penalty=margins.penalty, **units)


def flat_objective(problem: ContrastProblem, X: Any, W: np.ndarray) -> float:
    """J at normals W of shape (m, d), in the order of the problem's outputs; X are its features."""
    loss, _ = problem.losses(np.asarray(X @ W.T))
    return 0.5 * float(np.sum(W * W)) + loss


def print_against_liblinear(X: Any, y: np.ndarray) -> None:
    """(b)."""
    classes, codes = np.unique(y, return_inverse=True)
    tree = Taxonomy.from_parents(dict.fromkeys(classes.tolist()))
    margins = Flat(tree, tree.index(classes))
    order = np.searchsorted(classes, tree.names[margins.outputs])
    for text, C in costs(len(y)).items():
        model = HierarchicalSVC(method="flat", C=C, intercept_variance=0.0, tol=TOL)
        mine = median_seconds(partial(model.fit, X, y))
        gap, plain = relative_gaps(model.solution_)
        problem = problem_of(X, codes, margins, C)
        best = contrast_ascent(problem, tol=BEST)

        def peer(tol: float, C: float = C, problem: Any = problem, best: Any = best) -> Peer:
            svm = LinearSVC(
                C=C, multi_class="crammer_singer", fit_intercept=False, tol=tol, random_state=0
            )
            seconds = median_seconds(partial(svm.fit, X, y))
            theirs = flat_objective(problem, X, svm.coef_[order])
            excess = theirs - (best.objective - best.gap)
            fallen = max(problem.value_at_zero - theirs, 1e-300)
            return Peer(tol, seconds, excess / min(theirs, fallen), excess / theirs)

        loose = next(found for found in map(peer, LIBLINEAR_TOLERANCES) if found.gap <= TOL)
        usual = peer(LinearSVC().tol)
        held = mine <= LIBLINEAR_BAR * usual.seconds and gap <= TOL
        print(
            f"- {verdict(held)}: flat, C = {text}: {mine:.3f} s, {mine / usual.seconds:.2f} times {usual} "
            f"(bar {LIBLINEAR_BAR:g}); gap {gap:.1e}, / J {plain:.1e}, {model.n_iter_} sweeps"
        )
        print(f"  {mine / loose.seconds:.2f} times {loose}", flush=True)
    print()


def reached(solution: Solution, gap: float) -> str:
    """Iterations and seconds to a relative gap."""
    history = solution.history
    scale = np.minimum(history["objective"], history["objective"][0] - history["objective"])
    steps = np.flatnonzero(history["gap"] <= gap * scale)
    return f"{steps[0]} / {history['seconds'][steps[0]]:.3f} s" if steps.size else "–"


def print_against_dual_averaging(X: Any, y: np.ndarray, tree: Taxonomy) -> None:
    """(c)."""
    classes, codes = np.unique(y, return_inverse=True)
    labels = tree.index(classes)
    kinds = {
        "orthogonal": Orthogonal(tree, labels, orthogonality_weights(tree)),
        "flat": Flat(tree, labels),
    }
    heads = [f"gap {gap:g}" for gap in GAPS]
    print(f"| method | C | solver | {' | '.join(heads)} | last gap | / J |")
    print("|---|---:|---" + "|---:" * (len(GAPS) + 2) + "|")
    for kind, margins in kinds.items():
        for text, C in (("1/n", 1 / len(y)), ("1", 1.0)):
            problem = problem_of(X, codes, margins, C)
            split, allowed = ContrastSplit(problem), problem.allowed_gap
            solvers = {
                "dual ascent": lambda problem=problem: contrast_ascent(problem, tol=GAPS[-1]),
                "dual averaging": lambda split=split, allowed=allowed: dual_averaging(
                    split, epsilon=lambda upper: allowed(upper, GAPS[-1]), max_iter=MOST_STEPS
                ),
            }
            contrast_ascent(problem, tol=1.0)  # compile
            for solver, solve in solvers.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # the cap
                    _, solution = once(solve)
                cells = [kind, text, solver, *(reached(solution, gap) for gap in GAPS)]
                cells += [f"{gap:.1e}" for gap in relative_gaps(solution)]
                print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nIterations / seconds. Dual averaging ends after {MOST_STEPS} steps.\n", flush=True)


def print_speed(folder: str | None, quick: bool) -> None:
    """Measure and print all parts."""
    X, y, tree = single_path_documents(folder, "CCAT")
    X = X.astype(np.float64)
    if quick:
        rows = subsample(y, len(y) // QUICK, 0)
        X, y = X[rows], y[rows]
    half = subsample(y, len(y) // 2, 0)
    parts = {f"all {len(y)} documents": (X, y), f"{len(half)} documents": (X[half], y[half])}
    for title, (inputs, labels) in parts.items():
        print(f"## Speed: ccat, {title}\n\n(a) against hiclass\n")
        print_against_hiclass(inputs, labels, tree)
        print("(b) against LIBLINEAR's Crammer-Singer\n")
        print_against_liblinear(inputs, labels)
    print("(c) against dual averaging, the half\n")
    print_against_dual_averaging(X[half], y[half], tree)
