"""What the examples of an estimator are: rows of features, or a Gram matrix if the kernel is precomputed.

An estimator hands such an object to `fitting.fit_machine`. Pairs have their own, `pairs.examples`, with the same
attributes and methods: how X is read when fitting and when predicting, which kernel was asked for and what its numbers
are, how rows are taken, and which rows stand for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from array_api_compat import is_array_api_obj
from sklearn.utils.validation import validate_data

from gramian._core.arrays import Array, device_of, is_numpy, namespace
from gramian._core.validation import check_gram, naming_text
from gramian.estimators.record import FLOATS, Model, validated
from gramian.kernels import Kernel, as_kernel


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What is fitted, checked.

    Attributes
    ----------
    X : array, sparse array or Pairs
    y : array
        As validated.
    given : object
        y as it came from the user, which may know names.
    weights : array of float64 of shape (n,) or None
    kernel : Kernel
        With all its numbers.
    groups : array of shape (n,) or None
        Examples that folds hold out together.
    like : array of shape (n, 0)
        Of the array library and device of X, in float64: what solvers compute in.
    described : dict
        Fitted attributes that describe the features.
    """

    X: Any
    y: Array
    given: Any
    weights: Array | None
    kernel: Kernel
    like: Array
    described: dict[str, Any]
    groups: Any = None


# What a kernel may be whose form is left open: one with smooth functions, one with functions that have a slope but no
# curvature, and one whose functions bend at every example, along each feature by itself.
FORMS = ("rbf", "matern32", "laplacian")


@dataclass(frozen=True)
class Features:
    """Examples as rows of features, dense or in CSR format, or as their Gram matrix.

    Attributes
    ----------
    kernel : str or Kernel
        As the user gave it; "precomputed" means that X is a Gram matrix, "auto" that its form is to be found.
    copy : bool
        Whether X is copied, so that the user may change it after the fit.
    """

    kernel: Any
    copy: bool

    @property
    def named(self) -> bool:
        """Whether the kernel was asked for by its name: its parameters are then to be found."""
        return isinstance(self.kernel, str)

    def asked_for(self) -> Kernel:
        """Return the kernel as the parameters say, before it has seen data; of several the first."""
        return as_kernel(FORMS[0] if self._is_open else self.kernel)

    def rivals(self) -> tuple[Kernel, ...]:
        """Return what else the kernel may be, where its form is left open."""
        return tuple(map(as_kernel, FORMS[1:])) if self._is_open else ()

    @property
    def _is_open(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "auto"

    def numbered(self, kernel: Kernel, X: Any, weights: Array | None) -> Kernel:
        """Return the kernel with all its numbers, some of which come from the training examples."""
        return kernel.resolve(X, weights)

    @property
    def is_gram(self) -> bool:
        """Whether X is a Gram matrix rather than features."""
        if isinstance(self.kernel, Kernel):
            return self.kernel.is_precomputed
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def read(self, model: Model, X: Any, y: Any, **checks: Any) -> tuple[Any, Array, dict]:
        """Return X and y checked, and the fitted attributes that describe the features."""
        copy = self.copy and not self.is_gram and not isinstance(X, np.memmap)
        X, y, described = validated(model, X, y, dtype=_floats(X), copy=copy, **checks)
        if self.is_gram:
            check_gram(X)
        return X, y, described

    def checked_new(self, model: Model, X: Any) -> Array:
        """Return X for prediction, dense or in CSR format as it came."""
        with naming_text(X):
            return validate_data(model, X, accept_sparse="csr", dtype=_floats(X), reset=False)

    def read_new(self, model: Model, X: Any, method: str) -> Array:
        """Return X for prediction, in the format of the training examples."""
        X, train = self.checked_new(model, X), model.X_fit_
        if sp.issparse(train) or sp.issparse(X):
            if sp.issparse(train) and not sp.issparse(X):
                return sp.csr_array(X)
            return X if sp.issparse(train) else X.toarray()
        if namespace(X) is not namespace(train) or device_of(X) != device_of(train):
            raise ValueError(
                f"Inputs passed to {type(model).__name__}.{method}() must use the same namespace and the same "
                f"device as those passed to fit(). Got {namespace(X).__name__} on {device_of(X)}, expected "
                f"{namespace(train).__name__} on {device_of(train)}."
            )
        return X

    def values(self, X: Any) -> Array:
        """Return an array of the library, device and dtype of X."""
        return X

    def sample(self, X: Any, random_state: Any) -> None:
        """Return None: any rows stand for all of them. Where that is not so, return how to draw some."""
        return

    def take(self, X: Any, rows: np.ndarray) -> Any:
        """Return the examples of some rows."""
        part = _rows(X, rows)
        return _rows(part.T, rows).T if self.is_gram else part  # a Gram matrix loses columns, too


def _rows(X: Array, rows: np.ndarray) -> Array:
    if sp.issparse(X):
        return X.tocsr()[rows]
    return namespace(X).take(X, namespace(X).asarray(rows, device=device_of(X)), axis=0)


def _floats(X: Any) -> list[Any]:
    """The precisions that are kept as they come."""
    dispatch = sklearn.get_config()["array_api_dispatch"]
    if dispatch and is_array_api_obj(X) and not is_numpy(X):
        return [namespace(X).float64, namespace(X).float32]
    return FLOATS
