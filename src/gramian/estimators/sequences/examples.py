"""Sequences as examples: rows of features for each position, and which of them belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from gramian._core.arrays import Array
from gramian.estimators.record import Model
from gramian.kernels import Kernel, as_kernel
from gramian.sequences import Sequences


@dataclass(frozen=True)
class SequenceExamples:
    """Examples as `Sequences`, or as a list of arrays of shape (length, n_features).

    Attributes
    ----------
    kernel : str or Kernel
        Of positions, as the user gave it.
    copy : bool
        Whether X is copied, so that the user may change it after the fit.
    """

    kernel: Any
    copy: bool
    is_gram = False  # a Gram matrix of positions would lose columns when sequences are selected

    @property
    def named(self) -> bool:
        """Whether the kernel was asked for by its name: its parameters are then to be found."""
        return isinstance(self.kernel, str)

    def asked_for(self) -> Kernel:
        """Return the kernel as the parameters say, before it has seen data."""
        kernel = as_kernel(self.kernel)
        if kernel.is_precomputed:
            raise ValueError(
                "kernel must be a kernel of features, got a precomputed one; sequences hold the features of their "
                "positions."
            )
        return kernel

    def rivals(self) -> tuple[Kernel, ...]:
        """Return nothing: the form of the kernel is always given."""
        return ()

    def numbered(self, kernel: Kernel, X: Sequences, weights: Array | None) -> Kernel:
        """Return the kernel with all its numbers, some of which come from the positions."""
        of_positions = None if weights is None else np.repeat(weights, X.lengths)
        if of_positions is not None and not np.any(of_positions > 0):
            raise ValueError(
                "sample_weight is zero for every sequence that has positions: at least one must be positive."
            )
        return kernel.resolve(X.positions, of_positions)

    def read(
        self, model: Model, X: Any, y: Any, **checks: Any
    ) -> tuple[Sequences, np.ndarray, dict]:
        """Return X, the labels of its sequences, and the fitted attributes that describe the features."""
        X = as_sequences(X)
        if X.n_positions == 0:
            raise ValueError(f"X must hold at least one position, got {X!r}.")
        if X.shape[1] == 0:
            raise ValueError(f"X must have at least one feature, got {X!r}.")
        labels = X.split(X.flat(y))
        described: dict[str, Any] = {"n_features_in_": X.shape[1]}
        if X.feature_names is not None:
            described["feature_names_in_"] = X.feature_names
        return X.copy() if self.copy else X, labels, described

    def read_new(self, model: Any, X: Any, method: str) -> Sequences:
        """Return X for prediction, in the format of the training positions."""
        X = as_sequences(X)
        if X.shape[1] != model.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(model).__name__} is expecting {model.n_features_in_} features "
                "as input."
            )
        if sp.issparse(model.X_fit_) and not sp.issparse(X.positions):
            return Sequences(sp.csr_array(X.positions), X.lengths)
        if sp.issparse(X.positions) and not sp.issparse(model.X_fit_):
            return Sequences(X.positions.toarray(), X.lengths)
        return X

    def values(self, X: Sequences) -> Array:
        """Return an array of the library, device and dtype of X."""
        return X.positions

    def sample(self, X: Sequences, random_state: Any) -> Callable[[int], np.ndarray]:
        """Return how to draw sequences of about so many positions."""

        def sequences(size: int) -> np.ndarray:
            rng = check_random_state(0 if random_state is None else random_state)
            # a permutation would be the one that shuffles folds, and the sample one of them
            order = np.argsort(rng.random_sample(len(X)))
            enough = int(np.searchsorted(np.cumsum(X.lengths[order]), size)) + 1
            return np.sort(order[:enough])

        return sequences

    def take(self, X: Sequences, rows: np.ndarray) -> Sequences:
        """Return some sequences."""
        return X[rows]


def as_sequences(X: Any) -> Sequences:
    """Return X if it holds sequences, or a list of arrays as such."""
    if isinstance(X, Sequences):
        return X
    if isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and X.dtype == object):
        return Sequences.from_arrays(X)
    raise TypeError(
        f"X must be a gramian.Sequences or a list of arrays of shape (length, n_features), got {type(X).__name__}. "
        "Sequences(X, lengths) makes one of a table of positions."
    )
