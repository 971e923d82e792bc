"""How scores of sequences become answers: the best labels, marginal probabilities, probabilities of given labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian._core.arrays import to_numpy
from gramian._core.validation import check_number
from gramian.estimators.record import Model
from gramian.estimators.sequences.labels import codes_of
from gramian.losses.chain.decoding import best_paths
from gramian.losses.chain.marginals import ChainLayout, ChainMarginals
from gramian.metrics.sequences import position_accuracy
from gramian.sequences import Sequences
from gramian.sequences.values import object_vector


class SequenceAnswers(Model):
    """Labels and probabilities of sequences; a machine gives it `_scores`."""

    def predict(self, X: Any, *, given: Any = None) -> np.ndarray:
        """Predict the labels of sequences.

        Parameters
        ----------
        X : Sequences, or list of arrays of shape (length, n_features)
        given : list of label sequences, default=None
            Labels that are known, with None elsewhere: the others are predicted to go with them.

        Returns
        -------
        object ndarray of shape (n_sequences,)
            An array of labels for each sequence: the most probable sequence of labels for ``decode="viterbi"``, the
            most probable label of each position for ``decode="posterior"``. ``decode="auto"`` is the former if
            ``allowed_transitions`` has rules, and the latter otherwise.
        """
        X, layout, U = self._scores(X, "predict")
        possible = self._possible(X, given, layout, U)
        # a label of its own at each position may make a sequence that the rules forbid
        free = self.decode == "auto" and self._chain.allowed is None
        if free or self.decode == "posterior":
            codes = self._marginals(layout, U, possible).argmax(axis=1)
        else:
            codes = best_paths(layout, U, possible=possible)[0][0]
        return X.split(self.classes_[codes])

    def predict_marginals(self, X: Any, *, given: Any = None) -> np.ndarray:
        """Return the probability of each label at each position.

        Parameters
        ----------
        X : Sequences, or list of arrays of shape (length, n_features)
        given : list of label sequences, default=None
            Labels that are known, with None elsewhere.

        Returns
        -------
        object ndarray of shape (n_sequences,)
            An array of shape (length, n_classes) for each sequence.
        """
        X, layout, U = self._scores(X, "predict_marginals")
        return X.split(self._marginals(layout, U, self._possible(X, given, layout, U)))

    def predict_pair_marginals(self, X: Any) -> np.ndarray:
        """Return the probability of each pair of labels at neighbouring positions.

        Parameters
        ----------
        X : Sequences, or list of arrays of shape (length, n_features)

        Returns
        -------
        object ndarray of shape (n_sequences,)
            An array of shape (length − 1, n_classes, n_classes) for each sequence: the label before, and the one after.
        """
        X, layout, U = self._scores(X, "predict_pair_marginals")
        pairs = ChainMarginals(layout, U, layout.weights(None, 1)).pair_marginals()
        return object_vector(part[1:] for part in X.split(pairs))

    def predict_top(self, X: Any, k: int = 5) -> np.ndarray:
        """Return the k most probable label sequences.

        Parameters
        ----------
        X : Sequences, or list of arrays of shape (length, n_features)
        k : int, default=5

        Returns
        -------
        object ndarray of shape (n_sequences,)
            A list of pairs for each sequence, the best first: an array of labels and their log probability. There are
            fewer than k where there are no more label sequences.
        """
        check_number("k", k, low=1, whole=True)
        X, layout, U = self._scores(X, "predict_top")
        labels, scores = best_paths(layout, U, int(k))
        log_z = ChainMarginals(layout, U, layout.weights(None, 1)).log_z[0]
        out: list[list[tuple[np.ndarray, float]]] = []
        for s in range(len(X)):
            rows = slice(X.bounds[s], X.bounds[s + 1])
            good = np.flatnonzero(scores[:, s] > -np.inf)
            out.append(
                [(self.classes_[labels[r, rows]], float(scores[r, s] - log_z[s])) for r in good]
            )
        return object_vector(out)

    def predict_log_proba(self, X: Any, y: Any) -> np.ndarray:
        """Return the log probability of given label sequences.

        Parameters
        ----------
        X : Sequences, or list of arrays of shape (length, n_features)
        y : list of label sequences
            None stands for any label: the probability is that of the labels that are given.

        Returns
        -------
        ndarray of shape (n_sequences,)
        """
        X, layout, U = self._scores(X, "predict_log_proba")
        codes = codes_of(X.flat(y), self.classes_, "y")
        weights, possible = layout.weights(None, 1), _rows_of(codes, layout)
        every = ChainMarginals(layout, U, weights).log_z[0]
        reached = best_paths(layout, np.zeros_like(U), possible=possible)[1][0] > -np.inf
        inside = ChainMarginals(layout, U, weights * reached, possible).log_z[0]
        return np.where(reached, inside, -np.inf) - every

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of positions whose label is predicted.

        Parameters
        ----------
        X : Sequences, or list of arrays of shape (length, n_features)
        y : list of label sequences
            Positions with None do not count.
        sample_weight : array of shape (n_sequences,), default=None

        Returns
        -------
        float
        """
        return position_accuracy(y, self.predict(X), sample_weight=sample_weight)

    def _scores(self, X: Any, method: str) -> tuple[Sequences, ChainLayout, np.ndarray]:
        """Sequences to answer for, and the rows of their scores."""
        check_is_fitted(self)
        X = self._examples().read_new(self, X, method)
        cross = self._prior.cross(X.positions, self.X_fit_, self.operator_.name)
        dual = self.dual_coef_.astype(X.dtype, copy=False)
        U = to_numpy(cross @ dual).astype(np.float64) + self.intercept_
        rows = [U, self._score_rows]
        if self._chain.moving:
            pairs = self._pair_coef.astype(X.dtype, copy=False)
            functions = self._prior.transition_functions(cross)
            scores = functions.variance * to_numpy(functions.matrix @ pairs)
            rows.append(scores.astype(np.float64).reshape(-1, self._chain.n_classes))
        return X, self._chain.layout(X.lengths), np.concatenate(rows)

    def _possible(
        self, X: Sequences, given: Any, layout: ChainLayout, U: np.ndarray
    ) -> np.ndarray | None:
        """The labels that positions may have, if some are given."""
        if given is None:
            return None
        possible = _rows_of(codes_of(X.flat(given, "given"), self.classes_, "given"), layout)
        impossible = best_paths(layout, np.zeros_like(U), possible=possible)[1][0] == -np.inf
        if impossible.any():
            s = int(np.flatnonzero(impossible)[0])
            raise ValueError(
                f"The labels given[{s}] break the rules of allowed_transitions; use None where labels may change."
            )
        return possible

    def _marginals(self, layout: ChainLayout, U: np.ndarray, possible: Any) -> np.ndarray:
        """Marginal probabilities of all positions, shape (n, C)."""
        return ChainMarginals(layout, U, layout.weights(None, 1), possible).expectations()[0][0]


def _rows_of(codes: np.ndarray, layout: ChainLayout) -> np.ndarray:
    """Which labels codes allow: one, or all of them for -1."""
    C = layout.n_classes
    return np.concatenate([np.eye(C, dtype=bool), np.ones((1, C), dtype=bool)])[codes]
