"""Label sequences as targets: the chain likelihood, its prior, and what hyperparameters are learned from.

Where labels are missing or known up to a set, the loss is not convex and expectation maximisation minimises it. The
search for hyperparameters needs convex problems; it takes the stretches of positions whose labels are certain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramian._core.arrays import Array
from gramian._core.memory import working_memory
from gramian.estimators.examples import TrainingData
from gramian.estimators.fitting import Targets
from gramian.estimators.sequences.labels import ReadLabels, allowed_rows, read_labels
from gramian.estimators.targets import SmoothTargets
from gramian.kernels.parameters import DEFAULT_BOUNDS
from gramian.losses.chain.decoding import best_paths
from gramian.losses.chain.likelihood import ChainLikelihood
from gramian.losses.chain.marginals import ChainLayout
from gramian.selection.chain_prior import ChainPrior
from gramian.selection.folds import fold_masks
from gramian.selection.learn import LearningData
from gramian.selection.prior import assemble_prior
from gramian.sequences import Sequences
from gramian.solvers import expectation_maximization

START_VARIANCE = 1.0  # of transitions, where it is learned
# Arrays of C² numbers a position that a fit holds at a time: coefficients, latent values, residual and direction with
# their products, and tables of the recursions.
TABLES_OF_A_FIT = 16


@dataclass(frozen=True)
class SequenceLabels(Targets):
    """Labels of the positions of sequences.

    Attributes
    ----------
    hierarchy, share, transition_variance, ends, allowed_transitions, input_transitions : parameters of the estimator
    """

    hierarchy: Any
    share: Any
    transition_variance: Any
    ends: bool
    allowed_transitions: Any
    input_transitions: float

    def read(self, data: TrainingData) -> SmoothTargets:
        X: Sequences = data.X
        labels = read_labels(X.flat(data.y), self.hierarchy)
        C = labels.classes.size
        moving = self.input_transitions > 0
        rules = allowed_rows(self.allowed_transitions, labels.classes)
        chain = ChainShape(C, self.ends, rules, moving)
        chain.check(X.lengths, labels)
        if moving:
            self._check_functions(X.n_positions, C)
        functions = labels.classes.tolist()
        if labels.taxonomy is not None:
            functions = labels.taxonomy.names[1:].tolist()
        prior = assemble_prior(data.kernel, self.share, functions, labels.taxonomy, labels.order)
        learned = isinstance(self.transition_variance, str)
        variance = START_VARIANCE if learned else float(self.transition_variance)
        bounds = DEFAULT_BOUNDS if learned else "fixed"
        doubtful = labels.possible is not None
        values = labels.possible if doubtful else np.eye(C)[labels.codes]
        return SmoothTargets(
            chain.loss(X.lengths),
            chain.rows(np.asarray(values, dtype=np.float64), 0.0),
            ChainPrior(prior, C, self.ends, variance, bounds, float(self.input_transitions)),
            None if data.weights is None else chain.rows(np.repeat(data.weights, X.lengths), 1.0),
            {"classes_": labels.classes, "taxonomy_": labels.taxonomy, "_chain": chain},
            solve=expectation_maximization if doubtful else None,
            known=ChainLearningData.of(replace(chain, moving=False), data, labels.codes),
        )

    def _check_functions(self, n_positions: int, n_classes: int) -> None:
        """Refuse transitions that depend on positions where they have no common kernel, or take too much memory."""
        if self.share != "tied" or self.hierarchy is not None:
            raise ValueError(
                f"input_transitions={self.input_transitions!r} needs one kernel for all labels, so share='tied' and no "
                f"hierarchy; got share={self.share!r} and hierarchy={self.hierarchy!r}. Use input_transitions=0 with "
                "those."
            )
        nbytes = TABLES_OF_A_FIT * 8 * n_positions * n_classes**2
        if nbytes > working_memory():
            raise ValueError(
                f"input_transitions={self.input_transitions!r} keeps {n_classes}² scores for each of {n_positions} "
                f"positions, about {nbytes / 2**20:.0f} MiB for a fit, more than working_memory allows. Use "
                "input_transitions=0, fewer labels or sequences, or sklearn.set_config(working_memory=...)."
            )


@dataclass(frozen=True, eq=False)
class ChainShape:
    """Which scores chains have besides those of positions.

    Attributes
    ----------
    n_classes : int
    ends : bool
        Whether first and last labels have scores.
    allowed : bool ndarray of shape (n_classes + 2, n_classes) or None
        False for transitions, first and last labels that are impossible.
    moving : bool
        Whether each position has scores of its own for the transition that leads to it.
    """

    n_classes: int
    ends: bool
    allowed: np.ndarray | None
    moving: bool = False

    def layout(self, lengths: np.ndarray) -> ChainLayout:
        """The rows of scores of some sequences."""
        return ChainLayout(lengths, self.n_classes, self.ends, self.allowed, self.moving)

    def loss(self, lengths: np.ndarray) -> ChainLikelihood:
        """The loss of some sequences."""
        options = {"ends": self.ends, "allowed": self.allowed, "moving": self.moving}
        return ChainLikelihood(lengths, self.n_classes, **options)

    def rows(self, values: np.ndarray, below: float) -> np.ndarray:
        """Values of positions with a constant below them, for rows of transitions and ends."""
        extra = self.layout(np.array([values.shape[0]])).n_extra
        return np.concatenate([values, np.full((extra, *values.shape[1:]), below)])

    def check(self, lengths: np.ndarray, labels: ReadLabels) -> None:
        """Refuse labels that no path has which the rules allow."""
        if self.allowed is None:
            return
        layout, C = self.layout(lengths), self.n_classes
        possible = (
            np.eye(C, dtype=bool)[labels.codes] if labels.possible is None else labels.possible
        )
        flat = np.zeros((layout.n_positions + layout.n_extra, C))
        _, scores = best_paths(layout, flat, possible=possible)
        if np.any(scores[0] == -np.inf):
            s = int(np.flatnonzero(scores[0] == -np.inf)[0])
            raise ValueError(
                f"The labels y[{s}] break the rules of allowed_transitions. Allow what occurs in y, or mend the labels."
            )


@dataclass(frozen=True, eq=False)
class ChainLearningData(LearningData):
    """Stretches of certain labels to learn hyperparameters from; folds are of whole sequences.

    Attributes
    ----------
    chain : ChainShape
    whole : Sequences
        All positions, of which X has those with certain labels.
    codes : int ndarray of shape (n_positions,)
        Labels of all positions; -1 where they are not certain.
    origin : int ndarray
        The sequence of each row of X.
    of_sequences : ndarray of shape (n_sequences,) or None
        Weights.
    """

    chain: ChainShape | None = None
    whole: Any = None
    codes: Any = None
    origin: Any = None
    of_sequences: Any = None

    @classmethod
    def of(cls, chain: ChainShape, data: TrainingData, codes: np.ndarray) -> ChainLearningData:
        """What is known about the sequences of a fit."""
        return cls._made(chain, data.X, data.y, codes, data.weights, data.groups)

    @classmethod
    def _made(
        cls,
        chain: ChainShape,
        X: Sequences,
        y: np.ndarray,
        codes: np.ndarray,
        weights: Any,
        groups: Any,
    ) -> ChainLearningData:
        number = np.repeat(np.arange(len(X)), X.lengths)
        kept = np.flatnonzero(codes >= 0)
        some, origin = X, number
        if kept.size < codes.size:
            origin = number[kept]
            cut = np.flatnonzero((np.diff(kept) > 1) | (np.diff(origin) > 0)) + 1
            lengths = np.diff(np.concatenate([[0], cut, [kept.size]])) if kept.size else []
            some = Sequences(X.positions[kept], lengths)
        values = np.eye(chain.n_classes)[codes[kept]]
        return cls(
            X=some,
            take=lambda rows: X[rows],
            y=y,
            targets=chain.rows(values, 0.0),
            loss=chain.loss(some.lengths),
            weights=None if weights is None else chain.rows(np.asarray(weights)[origin], 1.0),
            stratified=False,
            groups=groups,
            chain=chain,
            whole=X,
            codes=codes,
            origin=origin,
            of_sequences=weights,
        )

    @property
    def size(self) -> int:
        return self.origin.size

    def folds(self, cv: Any, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        return fold_masks(cv, self.whole, self.y, groups=self.groups, random_state=random_state)

    def spread(self, masks: np.ndarray, below: float) -> np.ndarray:
        assert self.chain is not None
        return self.chain.rows(masks[self.origin], below)

    def rows(self, rows: np.ndarray) -> ChainLearningData:
        """Return the data of some sequences."""
        assert self.chain is not None
        codes = self.whole.split(self.codes)[rows]
        flat = np.concatenate([*codes, np.empty(0, dtype=np.int64)]).astype(np.int64)

        def taken(values: Array | None) -> Any:
            return None if values is None else np.asarray(values)[rows]

        parts = (self.whole[rows], self.y[rows], flat, taken(self.of_sequences), taken(self.groups))
        return self._made(self.chain, *parts)
