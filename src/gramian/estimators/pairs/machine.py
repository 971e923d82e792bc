"""What estimators for pairs share: input as pairs or as a wide table, kernels of objects, early stopping.

No mathematics: `kernels.pairwise` has the kernels, `operators.pair_gram` their products.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from gramian import solvers
from gramian._core.arrays import Array
from gramian._core.caller import level_of_caller
from gramian._core.validation import check_number, check_similarity, naming_text
from gramian.estimators.early_stopping import Validation
from gramian.estimators.inputs import all_or_nothing
from gramian.estimators.machine import KernelMachine
from gramian.kernels import Kernel
from gramian.kernels.pairwise import PairwiseKernel, as_pairwise_kernel
from gramian.operators.pairs.gram import FORMS
from gramian.pairs import Pairs, split_columns
from gramian.selection import pair_setting

__all__ = ["PairwiseMachine", "checked_path"]


class PairwiseMachine(KernelMachine):
    """Base of the estimators for pairs, besides a kernel machine; see a subclass for the parameters."""

    left_kernel: Any
    right_kernel: Any
    pairwise_kernel: Any
    left_columns: Any
    right_columns: Any
    patience: int
    max_inner: int | None

    _operators = FORMS
    _solvers = {"newton": solvers.newton, "kernel_cg": solvers.kernel_cg}

    # --- parameters -------------------------------------------------------------------------

    def _kernel_asked_for(self) -> Kernel:
        return as_pairwise_kernel(self.pairwise_kernel, self.left_kernel, self.right_kernel)

    def _pairwise_kernel(self) -> PairwiseKernel:
        """The kernel without a constant factor."""
        kernel = self._kernel_asked_for().amplitude()[1]
        assert isinstance(kernel, PairwiseKernel)
        return kernel

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("patience", self.patience, low=1, whole=True)
        if getattr(self, "max_inner", None) is not None:
            check_number("max_inner", self.max_inner, low=1, whole=True)

    def _limits(self) -> dict[str, int]:
        limits = super()._limits()
        inner = getattr(self, "max_inner", None)
        if self.solver in ("auto", "newton") and inner is not None:
            limits["max_inner"] = inner
        return limits

    def _takes_gram_matrix(self) -> bool:
        return False  # similarities of objects are in the tables

    def _values_of(self, X: Any) -> Array:
        return X.left

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags

    # --- input ------------------------------------------------------------------------------

    def _validated(self, X: Any, y: Any, **kwargs: Any) -> tuple[Any, Array]:
        """X as compact pairs and y, checked."""
        if isinstance(X, Pairs):
            X, y = self._checked_pairs(X, y, **kwargs)
        else:
            with naming_text(X):
                X, y = validate_data(
                    self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], **kwargs
                )
            left, right = self._columns(X.shape[1])
            self._left_columns, self._right_columns = left, right
            X = Pairs.from_wide(X, left, right)
        kernel = self._pairwise_kernel()
        self._check_tables(kernel, X)
        _warn_of_conflicts(X, y)
        return X, y

    def _checked_pairs(self, X: Pairs, y: Any, **kwargs: Any) -> tuple[Pairs, Array]:
        if len(X) == 0:
            raise ValueError("X holds no pairs: at least one is needed.")
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = X.shape[1]
        cut = X.left.shape[1]
        self._left_columns = np.arange(cut)
        self._right_columns = np.arange(cut, X.shape[1])
        if kwargs.get("multi_output") and np.ndim(y) == 2:
            y = check_array(y, input_name="y", dtype="numeric")
        else:
            y = column_or_1d(y, warn=True)
            if kwargs.get("y_numeric") and y.dtype.kind == "O":
                y = y.astype(np.float64)
            if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
                raise ValueError("Input y contains NaN or infinity.")
        check_consistent_length(X, y)
        if not self._pairwise_kernel().is_precomputed:
            X = X.compact()[0]
        return X, y

    def _columns(self, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the columns of left and right objects in a wide table."""
        names = getattr(self, "feature_names_in_", None)
        known = None if names is None else names.tolist()
        return split_columns(self.left_columns, self.right_columns, n_features, known)

    def _check_tables(self, kernel: PairwiseKernel, X: Pairs) -> None:
        """Precomputed similarities are square and symmetric; indefinite ones are warned of."""
        if kernel.homogeneous:
            X.as_homogeneous()  # or an error that says why not
        for side, base in zip(("left", "right"), kernel.bases(), strict=True):
            if base.is_precomputed and not (side == "right" and X.homogeneous):
                check_similarity(f"X.{side}", getattr(X, side))

    def _validated_new(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        train = self.X_fit_
        if not isinstance(X, Pairs):
            with naming_text(X):
                X = validate_data(
                    self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
                )
            X = Pairs.from_wide(X, self._left_columns, self._right_columns)
        for side in ("left", "right"):
            have, need = getattr(X, side).shape[1], getattr(train, side).shape[1]
            if have != need:
                raise ValueError(
                    f"X.{side} has {have} columns, but {type(self).__name__} was fitted with {need}. Objects are "
                    "described by the same features as in fit, or by similarities to the same objects."
                )
        X = X.in_format_of(train)
        kernel = self._prior.kernels[0]
        if any(term.left == "identity" for term in getattr(kernel, "terms", ())):
            self._warn_of_new_pairs(X)
        return X

    def _warn_of_new_pairs(self, X: Pairs) -> None:
        new = int(np.sum(pair_setting(self.X_fit_, X) == "D"))
        if new:
            warnings.warn(
                f"{new} of {len(X)} pairs have two objects that were not in training (setting D); the cartesian kernel "
                "knows nothing about them and predicts the intercept. Use pairwise_kernel='kronecker'.",
                UserWarning,
                stacklevel=level_of_caller(),
            )

    # --- fitting ----------------------------------------------------------------------------

    def _fit_pairs(self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> Any:
        """Fit, with early stopping if there are validation pairs."""
        if (X_val is None) != (y_val is None):
            missing = "X_val" if X_val is None else "y_val"
            raise ValueError(f"X_val and y_val must be given together; {missing} is missing.")
        if X_val is not None and np.ndim(y) == 2 and np.shape(y)[1] > 1:
            raise ValueError(
                f"X_val and y_val are for one output, but y has shape {np.shape(y)}: fit one at a time."
            )
        with all_or_nothing(self):
            self._fit(X, y, sample_weight, None if X_val is None else (X_val, y_val))
        return self

    def _validation_pairs(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Pairs and values for early stopping."""
        if not isinstance(X, Pairs):
            X = check_array(
                X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X_val"
            )
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X_val has {X.shape[1]} features, but X has {self.n_features_in_}."
                )
            X = Pairs.from_wide(X, self._left_columns, self._right_columns)
        for side, columns in (("left", self._left_columns), ("right", self._right_columns)):
            have, need = getattr(X, side).shape[1], max(1, len(columns))
            if have != need:
                raise ValueError(f"X_val.{side} has {have} columns, but that of X has {need}.")
        y = column_or_1d(y)
        check_consistent_length(X, y)
        return X, y

    def _watched(self, X: Any, score: Any) -> Validation:
        return Validation(X, score, self.patience)

    def fit_path(
        self, X: Any, y: Any, regularizations: Sequence[float], sample_weight: Any = None
    ) -> list[Any]:
        """Fit a model for each λ, each from the coefficients of the last, the largest λ first.

        Parameters
        ----------
        X : Pairs or array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        regularizations : sequence of float
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        list of estimators
            Fitted copies of this one, in the order of ``regularizations``; this one stays as it is.
        """
        values = checked_path(regularizations)
        model = clone(self).set_params(warm_start=True)
        fitted: dict[int, Any] = {}
        for k in np.argsort(values)[::-1]:
            model.set_params(regularization=float(values[k])).fit(X, y, sample_weight)
            fitted[int(k)] = copy.copy(model).set_params(warm_start=self.warm_start)
        return [fitted[k] for k in range(len(values))]


def checked_path(regularizations: Any) -> np.ndarray:
    """A list of λ as an array of positive numbers."""
    values = np.asarray(regularizations, dtype=float)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"regularizations must be a list of numbers, got {regularizations!r}.")
    for value in values.tolist():
        check_number("regularizations", value, strict=True)
    return values


def _warn_of_conflicts(X: Pairs, y: np.ndarray) -> None:
    """The same pair with different values: repeated measurements, or a mistake."""
    if y.ndim != 1:
        return
    left, right, cell = X.distinct()
    if left.size == len(X):
        return
    _, code = np.unique(y, return_inverse=True)
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
