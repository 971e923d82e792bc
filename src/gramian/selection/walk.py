"""A search in progress: quasi-Newton steps on one cross-validation criterion after the other, on more and more rows.

A search can be halted after each of its stages, so that several can race: those of kernels of different forms begin
side by side on few rows, and the one that got lowest goes on (`learn`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.selection.criterion import NoRoles
from gramian.selection.descent import Criterion, Descent, Evaluation
from gramian.selection.judged import gain_and_error, judged_descents

if TYPE_CHECKING:
    from gramian.selection.search import CrossValidationSearch

UNTOLD = ("judged", "judged_losses", "tol")  # of evaluations, which a path does not tell
COARSE_TOL_FACTOR = 3  # on the tolerance of the coarse search: its optimum is only a start
# With fewer examples for each parameter beyond the tied ones, a search fits the folds: each parameter costs about half
# an example's log loss, and more where it can go to infinity.
EXAMPLES_PER_PARAMETER = 200
# Standard errors by which freed parameters must be better, as folds that do not drive see it: what they choose is the
# best of several points, and looks better than it is by about as much.
CONFIDENCE = 1.0
ROWS_PER_PARAMETER = (
    50  # with fewer rows, coarse searches keep parameters tied: what they would find is noise
)


@dataclass(frozen=True, eq=False)
class OptimizationPath:
    """All evaluations of a search.

    Attributes
    ----------
    names : tuple of str
        One for each log-parameter.
    theta : ndarray of shape (n_evaluations, n_parameters)
    loss : ndarray of shape (n_evaluations,)
        Mean held-out loss, with the prior if there is one.
    gradient : ndarray of shape (n_evaluations, n_parameters)
    accepted : ndarray of bool of shape (n_evaluations,)
        Whether the search went on from there; the others are trial steps.
    products : ndarray of int of shape (n_evaluations,)
        Products with the Gram operator, each for all folds.
    seconds : ndarray of shape (n_evaluations,)
        Since the start of the search.
    n_samples : ndarray of int of shape (n_evaluations,)
        Rows used: the coarse search uses fewer.
    message : str
        Why the search ended.
    converged : bool

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelLogisticRegression
    >>> path = (
    ...     KernelLogisticRegression(optimize="cv")
    ...     .fit(*load_iris(return_X_y=True))
    ...     .optimization_path_
    ... )
    >>> path.names
    ('RBF.length_scale', 'variance')
    >>> bool(path.loss[-1] < path.loss[0])
    True
    """

    names: tuple[str, ...]
    theta: np.ndarray
    loss: np.ndarray
    gradient: np.ndarray
    accepted: np.ndarray
    products: np.ndarray
    seconds: np.ndarray
    n_samples: np.ndarray
    message: str
    converged: bool

    @property
    def best(self) -> int:
        """Number of the best evaluation: the last accepted one, or a lower trial step from there."""
        last = int(np.flatnonzero(self.accepted)[-1])  # earlier losses were less accurate
        return last + int(np.argmin(self.loss[last:]))


class Walk:
    """A search through its stages; see `CrossValidationSearch.walk` for what it is made of."""

    def __init__(
        self,
        search: CrossValidationSearch,
        stages: Sequence[tuple[Callable[[], Criterion], int]],
        start: np.ndarray,
        bounds: np.ndarray,
        names: Sequence[str],
        total_weight: float,
        *,
        tied: np.ndarray | None = None,
        starts: np.ndarray | None = None,
        report: Callable[[np.ndarray, float], Any] | None = None,
    ):
        self.search, self.names, self.tied, self.starts = search, tuple(names), tied, starts
        self.ahead, self.first, self.last = list(stages), stages[0][1], stages[-1][1]

        prior = search.prior

        def penalty(theta: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = (0.0, 0 * theta) if prior is None else prior(theta, start)
            return value / total_weight, slope / total_weight

        most = np.inf if search.max_products is None else search.max_products
        self.descent = Descent(bounds, (search.max_evaluations, most), penalty, report)
        free = self.descent.free
        self.more = 0 if tied is None else int(free.sum()) - np.unique(tied[free]).size
        self.guarded = search.prior is None and total_weight < EXAMPLES_PER_PARAMETER * self.more
        self.theta = np.clip(start, bounds[:, 0], bounds[:, 1])
        self.message, self.converged = "a callback stopped the search", False

    def advance(self) -> None:
        """Go through the next stage."""
        (make, size), *self.ahead = self.ahead
        descent, tied, last = self.descent, self.tied, size == self.last
        criterion, coarse_tol = make(), COARSE_TOL_FACTOR * self.search.tol
        if self.starts is not None and not descent.rows and descent.free.any():
            self.theta = descent.lowest(criterion, size, self.starts)
        tol = self.search.tol if last else coarse_tol
        if tied is not None and size == self.first and not descent.stopped:
            self.theta, _, _ = descent.minimise(criterion, size, self.theta, coarse_tol, tied)
        sampled = self.search.max_samples is not None
        if not descent.stopped:  # a sample, and few rows, decide only what all have in common
            few = sampled or (not last and size < ROWS_PER_PARAMETER * self.more)
            together = tied if few or self.guarded else None
            found = descent.minimise(criterion, size, self.theta, tol, together)
            self.theta, self.message, self.converged = found
        if self.guarded and last and not sampled and not descent.stopped:
            self.theta, self.message, self.converged = self._guarded(criterion, size)
        if descent.stopped:
            self.ahead = []

    def finish(self) -> OptimizationPath:
        """Go through all stages that are left, and return what was seen."""
        while self.ahead:
            self.advance()
        return self.path

    @property
    def path(self) -> OptimizationPath:
        """What was seen so far."""
        rows = self.descent.rows
        columns = zip(Evaluation._fields, zip(*rows, strict=True), strict=True)
        return OptimizationPath(
            self.names,
            accepted=np.isin(np.arange(len(rows)), list(self.descent.accepted)),
            message=self.message,
            converged=self.converged,
            **{name: np.array(v) for name, v in columns if name not in UNTOLD},
        )

    def _guarded(self, criterion: Any, size: int) -> tuple[np.ndarray, str, bool]:
        """Free tied parameters as far as folds that do not drive the descent approve of it."""
        descent, theta = self.descent, self.theta

        def descend(theta: np.ndarray) -> tuple[np.ndarray, str, bool]:
            return descent.minimise(criterion, size, theta, self.search.tol)

        try:
            verdicts = list(judged_descents(descent, criterion, size, theta, descend))
        except NoRoles:
            return theta, "there are no folds to approve of more than common values", True
        ends, last = [verdict.end.theta for verdict in verdicts], verdicts[-1]
        if last.start.judged_losses is not None:  # of a loss that is a sum over examples
            gain, error = gain_and_error(verdicts)
            ends = ends if gain > CONFIDENCE * error else [theta]
        theta = descent.lowest(criterion, size, np.mean(ends, axis=0)[None])
        message = f"folds that did not drive the search chose; in the last one {last.message}"
        return theta, message, last.converged
