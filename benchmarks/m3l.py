"""Seconds of M3L against one-vs-all LIBLINEAR and LIBSVM, and at the size of RCV1.

    python benchmarks/m3l.py --data DIR [--parts linear,rbf,tmc,scale] [--svc-labels K] [--repeats 1] [--quick]
                             [--scale-correlation none|pearson] [--scale-tol 1e-3] [--plot FILE]

Claims and bars, each against peers of the same run. C = 1 and Hamming loss for us, so C = 2 for them. R = I is
one-vs-all; the dense R is Pearson's correlation of the training labels. An extra row without a bar has the second
moments of their signs, as in the paper's experiments: of rare labels these are close to singular, and at most 100
sweeps are spent on them. Both have shrinkage 0.1.

linear  20 000 documents with 47 236 words and 103 labels, generated at the statistics of RCV1; and the real subsets.
        Not slower than LIBLINEAR (one process) at the same accuracy with R = I, and less than 1.5 times its time with
        a dense R. Peers: OneVsRestClassifier(LinearSVC) with one and two jobs, and LinearSVC label by label, with
        tol = 1e-4 (scikit-learn's default) and 0.1 (that of LIBLINEAR). Both have the intercept as a feature: the
        problem is the same. LIBLINEAR keeps no dual solution, so its accuracy is the excess of its primal objective
        over our best dual value, a lower bound of the optimum. Ours is our own relative gap, which is larger than our
        excess. Of our tolerances the largest counts that is as accurate as the peer.
rbf     5000 and 10 000 examples, 120 features, 100 labels, rare or balanced and noisy. At least 10 times as fast as
        SVC label by label, at least twice as fast as SVC on a kernel matrix computed once, with R = I; with dense R
        at most twice the time of R = I. Times include the kernel matrix. SVC has an intercept without penalty, we
        have none here: objectives differ, and what is compared is the relative duality gap. SVC takes many minutes:
        it is timed on some labels, evenly spaced by frequency, and its time is scaled to all.
tmc     tmc2007-500, 21 519 reports, 22 labels: the same, with linear and RBF kernels and Hamming losses on the test
        part. No bars.
scale   781 265 documents, see `m3l_scale.py`.

``--plot`` draws the dual against time and work for SMO and the blocked solver, as the paper's Figures 2 and 3.
``--quick`` has tiny sizes, to see that everything runs; its verdicts mean nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import sklearn
from data import add_data_argument, load_multilabel, load_rcv1, machine
from m3l_data import latent_factors, rcv1_like
from m3l_scale import print_scale
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC
from timing import once, verdict

from gramian import M3LClassifier
from gramian.kernels import RBF
from gramian.labels import empirical_correlation
from gramian.operators import GramRows
from gramian.plot import ConvergenceDisplay
from gramian.solvers import MarginProblem, blocked_ascent, smo

C = 1.0
TOLERANCES = (1e-2, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 5e-6)
ALWAYS = (
    1e-4  # larger tolerances are measured in any case, smaller ones where a peer is more accurate
)
DENSE_BAR, SVC_BAR, PRECOMPUTED_BAR, DENSE_RBF_BAR = 1.5, 10.0, 2.0, 2.0
SVC_LABELS = {"rare": 20, "noisy": 5, "tmc": 3}
MEMORY = 4096  # MiB of working memory: the float32 kernel matrix of tmc2007-500 takes 1767

MOST_SWEEPS = 100  # for second moments

Outcomes = list[bool]


@dataclass(frozen=True)
class Run:
    """One fit of ours."""

    tol: float
    seconds: float
    gap: float
    model: M3LClassifier


@dataclass(frozen=True)
class Task:
    """Training data, and test data if losses are of interest. Labels are ±1 and vary."""

    name: str
    X: Any
    signs: np.ndarray
    test: tuple[Any, np.ndarray] | None = None

    def correlations(self) -> dict[str, np.ndarray | None]:
        return {"R = I": None, "R = Pearson": empirical_correlation(self.signs, centered=True)}

    def loss(self, predict: Callable[[Any], np.ndarray], labels: Any = slice(None)) -> str:
        """Hamming loss on the test part in percent, of some labels."""
        if self.test is None:
            return "–"
        X, signs = self.test
        return f"{100 * np.mean(predict(X) != signs[:, labels]):.3f}"


def report(held: bool, text: str, outcomes: Outcomes) -> None:
    outcomes.append(held)
    print(f"- {verdict(held)}: {text}", flush=True)


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def header(*cells: str) -> None:
    row(*cells)
    print(f"|---|{'---:|' * (len(cells) - 1)}")


def median_of(repeats: int, function: Callable[[], Any]) -> tuple[float, Any]:
    """Median seconds, and the last result."""
    times, result = [], None
    for _ in range(repeats):
        seconds, result = once(function)
        times.append(seconds)
    return statistics.median(times), result


def fitted(task: Task, tol: float, repeats: int, **options: Any) -> Run:
    def fit() -> M3LClassifier:
        return M3LClassifier(C, loss="hamming", tol=tol, **options).fit(task.X, task.signs)

    seconds, model = median_of(repeats, fit)
    return Run(tol, seconds, model.solution_.relative_gap, model)


def runs_until(gap: float, task: Task, repeats: int, **options: Any) -> list[Run]:
    """Fits at falling tolerances, to `ALWAYS` and on until one is as accurate as the gap."""
    runs: list[Run] = []
    for tol in TOLERANCES:
        if tol >= ALWAYS or runs[-1].gap > gap:
            runs.append(fitted(task, tol, repeats, **options))
    return runs


def of_second_moments(task: Task, tol: float, **options: Any) -> Run:
    R = empirical_correlation(task.signs)
    return fitted(task, tol, 1, label_correlation=R, max_iter=MOST_SWEEPS, **options)


def as_accurate(runs: list[Run], gap: float) -> Run | None:
    """The fit with the largest tolerance whose relative gap is no larger."""
    return next((run for run in runs if run.gap <= gap), None)


def warm_up(task: Task, **options: Any) -> None:
    """Compile: a fit with and one without R on a few examples that have all labels, or almost."""
    few = np.unique(np.r_[np.argmax(task.signs, axis=0), np.arange(60)])
    for R in (None, 0.9 * np.eye(task.signs.shape[1]) + 0.1):
        small = Task("", task.X[few], task.signs[few])
        fitted(small, 1e-5, 1, label_correlation=R, **options)


def varying(signs: np.ndarray) -> np.ndarray:
    """Labels that some examples have and some have not: SVMs of scikit-learn refuse others."""
    return np.flatnonzero((signs.min(axis=0) < 0) & (signs.max(axis=0) > 0))


# --- linear ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearPeer:
    name: str
    seconds: float
    excess: float
    loss: str
    one_process: bool


def linear_peers(task: Task, repeats: int, best_dual: float) -> list[LinearPeer]:
    def svm(tol: float) -> LinearSVC:
        return LinearSVC(loss="hinge", C=2 * C, intercept_scaling=1.0, tol=tol, random_state=0)

    def one_vs_rest(n_jobs: int) -> list[LinearSVC]:
        peer = OneVsRestClassifier(svm(1e-4), n_jobs=n_jobs)
        return peer.fit(task.X, (task.signs + 1) // 2).estimators_

    def loop(tol: float) -> list[LinearSVC]:
        return [svm(tol).fit(task.X, y) for y in task.signs.T]

    cases = [
        ("OneVsRest(LinearSVC), tol 1e-4, 1 job", lambda: one_vs_rest(1), True),
        ("OneVsRest(LinearSVC), tol 1e-4, 2 jobs", lambda: one_vs_rest(2), False),
        ("LinearSVC in a loop, tol 1e-4", lambda: loop(1e-4), True),
        ("LinearSVC in a loop, tol 0.1", lambda: loop(0.1), True),
    ]
    found = []
    for name, function, one_process in cases:
        seconds, machines = median_of(repeats, function)
        coef = np.vstack([machine.coef_ for machine in machines])
        intercept = np.concatenate([machine.intercept_ for machine in machines])

        def decide(X: Any, coef=coef, intercept=intercept) -> np.ndarray:
            return X @ coef.T + intercept

        hinge = np.maximum(0, 1 - task.signs * decide(task.X)).sum()
        objective = 0.5 * float(np.sum(coef**2) + intercept @ intercept) + 2 * C * hinge
        excess = float(objective - best_dual) / best_dual
        loss = task.loss(lambda X, decide=decide: np.where(decide(X) > 0, 1, -1))
        found.append(LinearPeer(name, seconds, excess, loss, one_process))
    return found


def linear(task: Task, repeats: int, *, bars: bool = True) -> Outcomes:
    """Compare with LIBLINEAR; print a table and, with bars, verdicts."""
    n, d = task.X.shape
    print(
        f"\n### {task.name}: {n} × {d}, {task.X.nnz / n:.1f} non-zeros a row, {task.signs.shape[1]} labels, "
        f"{np.sum(task.signs > 0) / n:.2f} of an example\n"
    )
    single = Task(task.name, task.X.astype(np.float32), task.signs, task.test)
    for inputs in (task, single):
        warm_up(inputs, solver="coordinate")
    reference = fitted(task, TOLERANCES[-1], 1).model.solution_
    best_dual = reference.objective - reference.gap
    header("", "seconds", "relative gap", "sweeps", "Hamming loss, test, %")
    peers = linear_peers(task, repeats, best_dual)
    for peer in peers:
        row(peer.name, f"{peer.seconds:.2f}", f"{peer.excess:.1e}", "", peer.loss)
    target = min(peer.excess for peer in peers)

    def ours(name: str, run: Run) -> None:
        cells = f"{run.seconds:.2f}", f"{run.gap:.1e}", f"{run.model.n_iter_}"
        row(f"ours, {name}, tol {run.tol:g}", *cells, task.loss(run.model.predict))

    found = {}
    for name, R in task.correlations().items():
        found[name] = runs_until(target, task, repeats, label_correlation=R)
        for run in found[name]:
            ours(name, run)
        chosen = as_accurate(found[name], target) or found[name][-1]
        ours(f"{name}, float32", fitted(single, chosen.tol, repeats, label_correlation=R))
    ours("R = second moment", of_second_moments(task, 1e-3))
    print(
        f"\nRelative gap of peers: excess over the dual value {best_dual:.6g}, which is at most "
        f"{reference.relative_gap:.0e} below the optimum.\n"
    )
    return linear_verdicts(peers, found) if bars else []


def linear_verdicts(peers: list[LinearPeer], found: dict[str, list[Run]]) -> Outcomes:
    outcomes: Outcomes = []
    one_process = sorted((p for p in peers if p.one_process), key=lambda peer: peer.seconds)
    print(f"Fastest in one process: {one_process[0].name}.\n")
    for peer in [*one_process, *(p for p in peers if not p.one_process)]:
        for name, bar in (("R = I", 1.0), ("R = Pearson", DENSE_BAR)):
            run = as_accurate(found[name], peer.excess)
            text = f"{name} against {peer.name} at its gap of {peer.excess:.1e}: "
            if run is None:
                text += "not reached"
            else:
                text += f"{run.seconds:.2f} s, {run.seconds / peer.seconds:.2f} times its {peer.seconds:.2f} s"
            if not peer.one_process:
                print(f"- no bar: {text}")
                continue
            held = run is not None and run.seconds <= bar * peer.seconds
            report(held, f"{text} (bar {bar:g})", outcomes)
    return outcomes


def linear_part(folder: str | None, repeats: int, quick: bool) -> Outcomes:
    X, signs = rcv1_like(1000 if quick else 20_000)
    signs = signs[:, varying(signs)]
    outcomes = linear(Task("generated", X.astype(np.float64), signs), repeats)
    X, Y, more, Y_more = load_rcv1(folder)
    X, Y = sparse.csr_array(sparse.vstack([X, more])), np.concatenate([Y, Y_more])
    if quick:
        X, Y = X[:1000], Y[:1000]
    signs = np.where(Y > 0, 1, -1).astype(np.int8)
    return outcomes + linear(Task("RCV1 subsets", X, signs[:, varying(signs)]), repeats)


# --- RBF ------------------------------------------------------------------------------------


def svc_gap(svc: SVC, K: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Duality gap and primal objective of a fitted SVC."""
    A = svc.dual_coef_[0] if isinstance(svc.dual_coef_, np.ndarray) else svc.dual_coef_.toarray()[0]
    function = K[:, svc.support_] @ A
    quadratic = float(A @ function[svc.support_])
    hinge = np.maximum(0, 1 - y * (function + svc.intercept_[0])).sum()
    primal = 0.5 * quadratic + svc.C * hinge
    return primal - (np.abs(A).sum() - 0.5 * quadratic), primal


@dataclass(frozen=True)
class KernelPeer:
    seconds: float
    gaps: np.ndarray
    gap: float
    loss: str


def kernel_peers(task: Task, gamma: float, labels: np.ndarray) -> dict[str, KernelPeer]:
    """SVC on some labels, seconds scaled to all."""
    X = task.X.astype(np.float64)
    kernel_seconds, K = once(lambda: rbf_kernel(X, gamma=gamma))
    peers = {}
    for name, inputs, options in (
        ("SVC, rbf", X, {"kernel": "rbf", "gamma": gamma}),
        ("SVC, precomputed", K, {"kernel": "precomputed"}),
    ):
        seconds, machines = once(
            lambda inputs=inputs, options=options: [
                SVC(C=2 * C, **options).fit(inputs, task.signs[:, label]) for label in labels
            ]
        )
        gaps, primals = np.array(
            [
                svc_gap(svc, K, task.signs[:, label])
                for svc, label in zip(machines, labels, strict=True)
            ]
        ).T
        seconds *= task.signs.shape[1] / labels.size
        loss = "–"
        if name == "SVC, rbf":
            loss = task.loss(
                lambda X, machines=machines: np.stack([svc.predict(X) for svc in machines], axis=1),
                labels,
            )
        else:
            seconds += kernel_seconds
        peers[name] = KernelPeer(seconds, gaps / primals, gaps.sum() / primals.sum(), loss)
    return peers


def kernelised(
    task: Task, n_svc: int, repeats: int, *, bars: bool = True, with_smo: bool = False
) -> Outcomes:
    """Compare with LIBSVM; print a table and, with bars, verdicts."""
    n, d = task.X.shape
    L = task.signs.shape[1]
    by_frequency = np.argsort((task.signs > 0).mean(axis=0), kind="stable")
    n_svc = min(n_svc, L)
    labels = by_frequency[((np.arange(n_svc) + 0.5) * L / n_svc).astype(int)]
    values = task.X.toarray() if sparse.issparse(task.X) else task.X
    gamma = 1 / (d * float(values.var(dtype=np.float64)))
    print(
        f"\n### {task.name}, RBF: {n} × {d}, {L} labels, on average {np.mean(task.signs > 0):.1%} positive; "
        f"seconds of SVC: {n_svc} labels × {L / n_svc:g}\n"
    )
    options: dict[str, Any] = {
        "kernel": RBF(float(np.sqrt(0.5 / gamma))),
        "intercept_variance": 0.0,
        "solver": "blocked",
    }
    double = Task(task.name, task.X.astype(np.float64), task.signs, task.test)
    for inputs in (task, double):
        warm_up(inputs, **options)
    header("", "seconds", "relative gap", "sweeps", "Hamming loss, test, %", "of the labels of SVC")
    peers = kernel_peers(task, gamma, labels)
    for name, peer in peers.items():
        gaps = f"{peer.gap:.1e} ({peer.gaps.min():.0e} to {peer.gaps.max():.0e} by label)"
        row(name, f"{peer.seconds:.1f}", gaps, "", "", peer.loss)
    target = min(peer.gap for peer in peers.values())

    def ours(name: str, run: Run) -> None:
        loss = task.loss(run.model.predict)
        same = task.loss(lambda X: run.model.predict(X)[:, labels], labels)
        name = f"{name}, tol {run.tol:g}"
        row(name, f"{run.seconds:.2f}", f"{run.gap:.1e}", f"{run.model.n_iter_}", loss, same)

    found: dict[str, list[Run]] = {}
    correlations = task.correlations()
    for name, R in correlations.items():
        found[name] = runs_until(target, task, repeats, label_correlation=R, **options)
        for run in found[name]:
            ours(f"ours, {name}", run)
    chosen = {name: as_accurate(runs, target) for name, runs in found.items()}
    tol = chosen["R = I"].tol if chosen["R = I"] else TOLERANCES[-1]
    ours("ours, R = second moment", of_second_moments(task, tol, **options))
    for name in ("R = I", "R = Pearson"):
        run = fitted(double, tol, repeats, label_correlation=correlations[name], **options)
        ours(f"ours, {name}, float64", run)
    if with_smo:
        for name in ("R = I", "R = Pearson"):
            reference = options | {"solver": "smo", "label_correlation": correlations[name]}
            warm_up(task, **(options | {"solver": "smo"}))
            ours(f"ours, {name}, SMO", fitted(task, tol, 1, **reference))
    print()
    return kernel_verdicts(peers, found, chosen) if bars else []


def kernel_verdicts(
    peers: dict[str, KernelPeer], found: dict[str, list[Run]], chosen: dict[str, Run | None]
) -> Outcomes:
    outcomes: Outcomes = []
    for (name, peer), bar in zip(peers.items(), (SVC_BAR, PRECOMPUTED_BAR), strict=True):
        run = as_accurate(found["R = I"], peer.gap)
        text = f"R = I at the gap of {name}, {peer.gap:.1e}: "
        ratio = peer.seconds / run.seconds if run else 0.0
        text += f"tol {run.tol:g}, {ratio:.1f} times as fast" if run else "not reached"
        report(ratio >= bar, f"{text} (bar {bar:g})", outcomes)
    plain, dense = chosen["R = I"], chosen["R = Pearson"]
    ratio = dense.seconds / plain.seconds if dense and plain else np.inf
    text = f"R = Pearson: {ratio:.2f} times the seconds of R = I (bar {DENSE_RBF_BAR:g})"
    report(ratio <= DENSE_RBF_BAR, text, outcomes)
    return outcomes


def rbf_part(svc_labels: int | None, repeats: int, quick: bool) -> Outcomes:
    outcomes: Outcomes = []
    for n in (300, 500) if quick else (5000, 10_000):
        for kind in ("rare", "noisy"):
            task = Task(f"{kind} labels", *latent_factors(n, kind))
            n_svc = svc_labels or SVC_LABELS[kind]
            first = kind == "rare" and n <= 5000
            outcomes += kernelised(task, n_svc, repeats, with_smo=first)
    return outcomes


def tmc_part(folder: str | None, svc_labels: int | None, repeats: int, quick: bool) -> Outcomes:
    X, Y, X_test, Y_test = load_multilabel(folder, "tmc2007-500")
    if quick:
        X, Y, X_test, Y_test = X[:800], Y[:800], X_test[:300], Y_test[:300]
    signs, test_signs = (np.where(y > 0, 1, -1).astype(np.int8) for y in (Y, Y_test))
    linear(Task("tmc2007-500", X, signs, (X_test, test_signs)), repeats, bars=False)
    single = Task("tmc2007-500", X.astype(np.float32), signs, (X_test, test_signs))
    with sklearn.config_context(working_memory=MEMORY):
        return kernelised(single, svc_labels or SVC_LABELS["tmc"], repeats, bars=False)


# --- figure ---------------------------------------------------------------------------------


def draw(file: str, quick: bool) -> None:
    """Dual against seconds and work, for SMO and the blocked solver, without and with R."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    X, signs = latent_factors(200 if quick else 2000, "rare")
    X = X.astype(np.float64)  # rounding of float32 shows at distances of 1e-8
    rows = GramRows(RBF(float(np.sqrt(0.5 * X.shape[1] * X.var()))), X)
    for (name, R), panels in zip(Task("", X, signs).correlations().items(), axes, strict=True):
        problem = MarginProblem(rows, signs, R, 1.0, 2 * C)
        solutions = {}
        for title, solver in (("SMO", smo), ("blocked", blocked_ascent)):
            solver(problem, tol=1e-2, max_iter=2)  # compiles
            solutions[title] = solver(problem, tol=1e-5)
        for axis, x in zip(panels, ("seconds", "operations"), strict=True):
            ConvergenceDisplay.from_solutions(
                solutions, ax=axis, x=x, y="dual_distance", curve_kwargs={"markersize": 3}
            )
            axis.set_title(f"{len(X)} examples, {signs.shape[1]} rare labels, {name}")
    figure.savefig(file, dpi=150)
    print(f"\nSaved {file}")


PARTS = ("linear", "rbf", "tmc", "scale")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_argument(parser)
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated; none: ''")
    parser.add_argument("--svc-labels", type=int, metavar="K", help=f"default {SVC_LABELS}")
    parser.add_argument("--repeats", type=int, default=1, help="median of so many, but for SVC")
    parser.add_argument("--scale-correlation", choices=("none", "pearson"), default="none")
    parser.add_argument("--scale-tol", type=float, default=1e-3, help="of the final dual")
    parser.add_argument("--plot", metavar="FILE", help="where to draw the dual against time")
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    arguments = parser.parse_args()
    chosen = [part for part in arguments.parts.split(",") if part]
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"unknown parts {sorted(unknown)}; choose from {', '.join(PARTS)}")
    folder, repeats, quick = arguments.data, arguments.repeats, arguments.quick
    parts = {
        "linear": lambda: linear_part(folder, repeats, quick),
        "rbf": lambda: rbf_part(arguments.svc_labels, repeats, quick),
        "tmc": lambda: tmc_part(folder, arguments.svc_labels, repeats, quick),
        "scale": lambda: [
            print_scale(arguments.scale_correlation, tol=arguments.scale_tol, quick=quick)
        ],
    }
    warnings.simplefilter("ignore", ConvergenceWarning)  # gaps are printed
    print(f"{machine()}; scikit-learn {sklearn.__version__}; {numba.get_num_threads()} threads")
    outcomes: Outcomes = []
    for name in chosen:
        print(f"\n## {name}", flush=True)
        start = time.perf_counter()
        outcomes += parts[name]()
        print(f"\n({time.perf_counter() - start:.0f} s in all)", flush=True)
    if arguments.plot:
        draw(arguments.plot, quick)
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
