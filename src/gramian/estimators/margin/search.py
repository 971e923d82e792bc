"""The weight C of hinge losses by folds: a path from small to large C, judged by held-out decisions.

    for each C of the grid, from small to large
        for each fold: solve without the held-out examples, starting from the solution of the C before
        score the decisions on the held-out examples

The grid has no scale of its own: C times the mean of weight × k(x, x) runs from 0.01 to 100 by half powers of ten. At
0.01 almost every coefficient is at its cap, and the functions are sums over examples; at 100 almost none is. Large C
take the longest: the path ends where the last three scores are below the best. Of equal scores the smallest C counts.

If labels have a prior correlation R, the same folds choose how far it is shrunk towards no correlation, s = 1. The path
is that of s = 1; less shrinkage is tried at the best C and its neighbours, and counts if its score is better.

The work is bounded: beyond `MOST_EXAMPLES` a sample of the examples is taken, in which classes have their proportions,
and gaps are relative 1 %, which decides nearly all signs as the optimum does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.solvers import Solution

GRID = 10.0 ** np.arange(-2.0, 2.1, 0.5)  # of C × mean of weight × k(x, x)
PATIENCE = 3  # values of C in a row whose scores are below the best, after which the path ends
SHRINKAGES = (0.9, 0.5, 0.0)  # that are tried after 1, no correlation
MOST_EXAMPLES = 2000  # in the folds altogether
PATH_TOL = 1e-2  # relative gap of the fits on the path
PATH_SWEEPS = 100  # of them, at most

Folds = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Choice:
    """What a search chose, and all that it tried.

    Attributes
    ----------
    C : float
    shrinkage : float or None
        Of the label correlation; None if there is none to be chosen.
    path : dict of ndarray
        "C" of shape (k,), "score" of shape (k, n_folds), and "shrinkage" of shape (k,) if it was to be chosen.
    """

    C: float
    shrinkage: float | None
    path: dict[str, np.ndarray]


@dataclass(eq=False)
class PathSearch:
    """Folds of one problem, and what is asked of its solutions.

    Attributes
    ----------
    problem : MarginProblem or ContrastProblem
        With C = 1.
    folds : list of (training, held out)
        Masks over the examples of the problem.
    solve : callable
        Gets a problem and coefficients to start from, or None.
    judge : callable
        Gets the numbers of held-out examples and their scores; returns a number, the larger the better.
    shrink : callable or None
        Gets a problem, a shrinkage and the examples whose labels are known; returns the problem with that R.
    """

    problem: Any
    folds: Folds
    solve: Callable[[Any, np.ndarray | None], Solution]
    judge: Callable[[np.ndarray, np.ndarray], float]
    shrink: Callable[[Any, float, np.ndarray], Any] | None = None
    tried: list[tuple[float, float | None, list[float]]] = field(default_factory=list)

    def run(self, step: Callable[[], bool]) -> Choice:
        """Follow the path; ``step`` is called after each C, and ends the search if it returns True."""
        plain = None if self.shrink is None else 1.0
        steps = self._path(plain, unit_of(self.problem) * GRID)
        while self.folds and next(steps, None) is not None and not step():
            means = self._means()
            if len(means) - 1 - np.flatnonzero(means == means.max())[-1] >= PATIENCE:
                break
        if not self.tried:
            return self._chosen([(float(unit_of(self.problem)), plain, [])])
        if self.shrink is not None:
            best = int(np.argmax(self._means()))
            near = np.array([C for C, _, _ in self.tried[max(best - 1, 0) : best + 2]])
            for shrinkage in SHRINKAGES:
                for _ in self._path(shrinkage, near):
                    if step():
                        return self._chosen(self.tried)
        return self._chosen(self.tried)

    def _means(self) -> np.ndarray:
        return np.array([np.mean(scores) for _, _, scores in self.tried])

    def _path(self, shrinkage: float | None, grid: np.ndarray) -> Iterator[float]:
        """Score rising values of C; each fold starts from its last solution."""
        starts: list[np.ndarray | None] = [None] * len(self.folds)
        for C in grid:
            scores = []
            for k, (training, held_out) in enumerate(self.folds):
                fold = self.problem.restricted(training).weighted(C)
                if self.shrink is not None:
                    fold = self.shrink(fold, shrinkage, training > 0)
                with (
                    warnings.catch_warnings()
                ):  # what a path leaves undone is not the user's concern
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    starts[k] = self.solve(fold, starts[k]).coefficients
                rows = np.flatnonzero(held_out)
                scores.append(self.judge(rows, fold.latent(starts[k])[rows]))
            self.tried.append((float(C), shrinkage, scores))
            yield C

    def _chosen(self, tried: list[tuple[float, float | None, list[float]]]) -> Choice:
        values, shrinkages, scores = zip(*tried, strict=True)
        table = np.array(scores, dtype=np.float64)
        best = int(np.argmax(table.mean(axis=1))) if table.size else 0
        path = {"C": np.array(values), "score": table}
        if self.shrink is not None:
            path["shrinkage"] = np.array(shrinkages, dtype=np.float64)
        return Choice(values[best], shrinkages[best], path)


def unit_of(problem: Any) -> float:
    """Return the C for which C × weight × k(x, x) is one on average, over the losses that count."""
    caps = np.asarray(problem.caps)
    norms = problem.inputs.diagonal()
    examples = getattr(problem, "examples", None)
    norms = norms[:, None] if examples is None else norms[examples]
    products = (caps * norms)[caps > 0]
    mean = float(products.mean()) if products.size else 1.0
    return 1.0 / mean if mean > 0 else 1.0


def sampled_rows(known: np.ndarray, codes: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Return ascending row numbers of at most `MOST_EXAMPLES` examples, classes in proportion.

    Parameters
    ----------
    known : boolean array of shape (n,)
        Examples that count.
    codes : int array of shape (n,), or of another shape (n, ...) if there are no classes
    random : RandomState
    """
    rows = np.flatnonzero(known)
    if rows.size <= MOST_EXAMPLES:
        return rows
    shuffled = random.permutation(rows)
    if codes.ndim == 1:
        shuffled = shuffled[np.argsort(codes[shuffled], kind="stable")]
    places = np.linspace(0, rows.size, MOST_EXAMPLES, endpoint=False).astype(np.int64)
    return np.sort(shuffled[places])
