"""Pairs as examples: read from a container or a wide table, with the kernels of their objects.

The kernels are in `kernels.pairwise`, their products in `operators.pairs`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from gramian._core.arrays import Array
from gramian._core.caller import level_of_caller
from gramian._core.validation import indefinite_spectrum, naming_text
from gramian.estimators.record import FLOATS, Model, validated
from gramian.kernels import Kernel
from gramian.kernels.pairwise import PairwiseKernel, as_pairwise_kernel
from gramian.kernels.similarity import Repaired
from gramian.pairs import Pairs, split_columns
from gramian.selection import pair_setting


@dataclass(frozen=True)
class PairExamples:
    """Examples as `Pairs`, or as rows of a wide table with the features of both objects.

    Attributes
    ----------
    left_kernel, right_kernel, pairwise_kernel : kernels or their names
    left_columns, right_columns : slice, list of int or str, mask or None
        Which columns of a wide table belong to which object.
    indefinite : {"error", "clip", "flip", "shift"}
        What is done with similarities that are no kernels.
    """

    left_kernel: Any
    right_kernel: Any
    pairwise_kernel: Any
    left_columns: Any
    right_columns: Any
    indefinite: str
    is_gram = False  # similarities of objects are in the tables of the pairs

    def asked_for(self) -> Kernel:
        return as_pairwise_kernel(self.pairwise_kernel, self.left_kernel, self.right_kernel)

    def rivals(self) -> tuple[Kernel, ...]:
        """Return nothing: the form of the kernel is always given."""
        return ()

    def kernel(self) -> PairwiseKernel:
        """The kernel without a constant factor."""
        kernel = self.asked_for().amplitude()[1]
        assert isinstance(kernel, PairwiseKernel)
        return kernel

    @property
    def named(self) -> bool:
        kernels = (self.left_kernel, self.right_kernel, self.pairwise_kernel)
        return all(kernel is None or isinstance(kernel, str) for kernel in kernels)

    def sample(self, X: Pairs, random_state: Any) -> Callable[[int], np.ndarray]:
        """Return how to draw rows: all pairs of some objects, since single pairs of many say little about any."""

        def rows(size: int) -> np.ndarray:
            rng = check_random_state(0 if random_state is None else random_state)
            share = np.sqrt(size / len(X))
            left = rng.random_sample(X.n_left) < share
            right = left if X.homogeneous else rng.random_sample(X.n_right) < share
            return np.flatnonzero(left[X.left_index] & right[X.right_index])

        return rows

    def numbered(self, kernel: Kernel, X: Pairs, weights: Array | None) -> Kernel:
        if self.indefinite != "error":
            constant, pairwise = kernel.amplitude()
            assert isinstance(pairwise, PairwiseKernel)
            pairwise = pairwise.repaired(X, self.indefinite)
            kernel = pairwise if constant is None else constant * pairwise
        return kernel.resolve(X, weights)

    def values(self, X: Pairs) -> Array:
        return X.left

    def take(self, X: Pairs, rows: np.ndarray) -> Pairs:
        return X[rows]

    # --- training -----------------------------------------------------------------------------

    def read(self, model: Model, X: Any, y: Any, **checks: Any) -> tuple[Pairs, Array, dict]:
        kernel = self.kernel()
        if isinstance(X, Pairs):
            pairs, y = _checked_pairs(X, y, **checks)
            cut = X.left.shape[1]
            left, right = np.arange(cut), np.arange(cut, X.shape[1])
            described: dict[str, Any] = {"n_features_in_": X.shape[1]}
            pairs = pairs.copy() if kernel.is_precomputed else pairs.compact()[0].copy()
        else:
            X, y, described = validated(model, X, y, dtype=FLOATS, **checks)
            left, right = self.columns(X.shape[1], described.get("feature_names_in_"))
            pairs = Pairs.from_wide(X, left, right)
        if kernel.homogeneous:
            pairs.as_homogeneous()  # or an error that says why not
        self._check_similarities(kernel, pairs)
        _warn_of_conflicts(pairs, y)
        return pairs, y, described | {"_left_columns": left, "_right_columns": right}

    def _check_similarities(self, kernel: PairwiseKernel, pairs: Pairs) -> None:
        """Refuse tables that are not square and symmetric, or no kernels where those are not to be repaired."""
        checked = None
        sides = kernel.arranged(pairs).sides
        for name, base, side in zip(("X.left", "X.right"), kernel.bases(), sides, strict=True):
            if not base.is_precomputed or side.table is checked:
                continue
            checked = side.table
            spectrum = indefinite_spectrum(name, checked)
            known = self.indefinite != "error" or isinstance(base, Repaired)
            if spectrum is not None and not known:
                raise ValueError(
                    f"{name} is not positive semidefinite: its smallest eigenvalue is {spectrum[0]:.3g}, its largest "
                    f"{spectrum[-1]:.3g}. Such similarities are no kernel, and the objective has no minimum. Pass "
                    "indefinite='clip', 'flip' or 'shift' to have them repaired, or use "
                    "gramian.kernels.similarity.as_features(S) with another kernel."
                )

    def columns(self, n_features: int, names: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the columns of left and right objects in a wide table."""
        known = None if names is None else names.tolist()
        return split_columns(self.left_columns, self.right_columns, n_features, known)

    # --- prediction and validation --------------------------------------------------------------

    def read_new(self, model: Any, X: Any, method: str) -> Pairs:
        train = model.X_fit_
        if not isinstance(X, Pairs):
            with naming_text(X):
                X = validate_data(model, X, accept_sparse="csr", dtype=FLOATS, reset=False)
            X = Pairs.from_wide(X, model._left_columns, model._right_columns)
        for side in ("left", "right"):
            have, need = getattr(X, side).shape[1], getattr(train, side).shape[1]
            if have != need:
                raise ValueError(
                    f"X.{side} has {have} columns, but {type(model).__name__} was fitted with {need}. Objects are "
                    "described by the same features as in fit, or by similarities to the same objects."
                )
        X = X.in_format_of(train)
        if not model._prior.kernels[0].knows_new_pairs:
            _warn_of_new_pairs(train, X)
        return X

    def read_validation(
        self, described: dict[str, Any], X: Any, y: Any
    ) -> tuple[Pairs, np.ndarray]:
        """Return pairs and values for early stopping, which have the columns of the training pairs."""
        columns = {side: described[f"_{side}_columns"] for side in ("left", "right")}
        if not isinstance(X, Pairs):
            X = check_array(X, accept_sparse="csr", dtype=FLOATS, input_name="X_val")
            if X.shape[1] != described["n_features_in_"]:
                raise ValueError(
                    f"X_val has {X.shape[1]} features, but X has {described['n_features_in_']}."
                )
            X = Pairs.from_wide(X, columns["left"], columns["right"])
        for side in columns:
            have, need = getattr(X, side).shape[1], max(1, len(columns[side]))
            if have != need:
                raise ValueError(f"X_val.{side} has {have} columns, but that of X has {need}.")
        y = column_or_1d(y)
        check_consistent_length(X, y)
        return X, y


def _checked_pairs(
    X: Pairs, y: Any, *, multi_output: bool = False, y_numeric: bool = False
) -> tuple[Pairs, np.ndarray]:
    """Check y as scikit-learn does for arrays."""
    if len(X) == 0:
        raise ValueError("X holds no pairs: at least one is needed.")
    if multi_output and np.ndim(y) == 2:
        y = check_array(y, input_name="y", dtype="numeric")
    else:
        y = column_or_1d(y, warn=True)
        if y_numeric and y.dtype.kind == "O":
            with naming_text(X.left_index):
                y = y.astype(np.float64)
        if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
            raise ValueError("Input y contains NaN or infinity.")
    check_consistent_length(X, y)
    return X, y


def _warn_of_new_pairs(train: Pairs, X: Pairs) -> None:
    new = int(np.sum(pair_setting(train, X) == "D"))
    if new:
        warnings.warn(
            f"{new} of {len(X)} pairs have two objects that were not in training (setting D); the cartesian kernel "
            "knows nothing about them and predicts the intercept. Use pairwise_kernel='kronecker'.",
            UserWarning,
            stacklevel=level_of_caller(),
        )


def _warn_of_conflicts(X: Pairs, y: np.ndarray) -> None:
    """The same pair with different values: repeated measurements, or a mistake."""
    if y.ndim != 1:
        return
    left, right, cell = X.distinct()
    if left.size == len(X):
        return
    # objects need not be comparable with each other
    values = np.array([repr(value) for value in y]) if y.dtype.kind == "O" else y
    _, code = np.unique(values, return_inverse=True)
    first = np.zeros(left.size, dtype=np.int64)
    first[cell[::-1]] = code[::-1]
    bad = np.unique(cell[code != first[cell]])
    if bad.size:
        rows = np.flatnonzero(cell == bad[0])
        other = rows[code[rows] != code[rows[0]]][0]
        one, two = y[[rows[0], other]].tolist()
        warnings.warn(
            f"{bad.size} pairs occur more than once with different y, first: left object {left[bad[0]]} with right "
            f"object {right[bad[0]]} has y = {one!r} (row {rows[0]}) and {two!r} (row {other}). All of "
            "them count, as repeated measurements do; drop or average them if they are mistakes.",
            UserWarning,
            stacklevel=level_of_caller(),
        )
