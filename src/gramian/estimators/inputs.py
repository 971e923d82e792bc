"""What all estimators with a kernel do with inputs: validate features or a Gram matrix, leave nothing half-fitted.

No mathematics.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian._core.arrays import Array, device_of, is_numpy, namespace
from gramian._core.validation import check_gram, naming_text
from gramian.kernels import Kernel, as_kernel


class KernelInputs(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators with a parameter ``kernel``: checked inputs, dense, CSR or a Gram matrix."""

    kernel: Any
    X_fit_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._takes_gram_matrix()
        return tags

    def _kernel_asked_for(self) -> Kernel:
        """The kernel as the parameters say, before it has seen data."""
        return as_kernel(self.kernel)

    def _takes_gram_matrix(self) -> bool:
        """Whether X is a Gram matrix rather than features."""
        return _is_precomputed(self.kernel)

    def _validated(self, X: Any, y: Any, **kwargs: Any) -> tuple[Array, Array]:
        """X as float features (dense or CSR) and y, checked by scikit-learn."""
        with naming_text(X):
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=_float_dtypes(X),
                accept_large_sparse=True,
                **kwargs,
            )
        if self._takes_gram_matrix():
            check_gram(X)
        return X, y

    def _checked_new(self, X: Any) -> Array:
        """X for prediction, as it came: dense or CSR."""
        check_is_fitted(self)
        with naming_text(X):
            return validate_data(self, X, accept_sparse="csr", dtype=_float_dtypes(X), reset=False)

    def _validated_new(self, X: Any, method: str) -> Array:
        """X for prediction, in the format of the training data."""
        X = self._checked_new(X)
        train = self.X_fit_
        if sp.issparse(train) or sp.issparse(X):
            if sp.issparse(train) and not sp.issparse(X):
                return sp.csr_array(X)
            return X if sp.issparse(train) else X.toarray()
        if namespace(X) is not namespace(train) or device_of(X) != device_of(train):
            raise ValueError(
                f"Inputs passed to {type(self).__name__}.{method}() must use the same namespace and the same "
                f"device as those passed to fit(). Got {namespace(X).__name__} on {device_of(X)}, expected "
                f"{namespace(train).__name__} on {device_of(train)}."
            )
        return X


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Put the estimator back as it was if fitting fails or is interrupted.

    scikit-learn's own callback bookkeeping stays: it is removed after this, when callbacks are torn down.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        bookkeeping = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")
        kept = {name: value for name, value in vars(estimator).items() if name in bookkeeping}
        vars(estimator).clear()
        vars(estimator).update(before | kept)
        raise


def _is_precomputed(kernel: Any) -> bool:
    if isinstance(kernel, Kernel):
        return kernel.is_precomputed
    return isinstance(kernel, str) and kernel == "precomputed"


def _float_dtypes(X: Any) -> list[Any]:
    dispatch = sklearn.get_config()["array_api_dispatch"]
    if dispatch and is_array_api_obj(X) and not is_numpy(X):
        xp = namespace(X)
        return [xp.float64, xp.float32]
    return [np.float64, np.float32]
