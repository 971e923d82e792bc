"""Models that are sums over examples, w = Σ_k c_k x_k: what they are solved with, what is kept, how they score.

A linear kernel is solved by its features and keeps weights of the features; any other one is solved by rows of the
Gram matrix and keeps the examples whose coefficients are not zero. An intercept is the coefficient of one more,
constant feature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian._core.arrays import Array, row_blocks
from gramian.estimators.inputs import KernelInputs
from gramian.kernels import Kernel
from gramian.operators import cross_operator
from gramian.operators.inputs.linear import linear_variance
from gramian.operators.inputs.tiles import TILE_BYTES
from gramian.solvers import Progress, Solution

__all__ = ["PARTS", "RepresenterModel"]

# What a fit may or may not set, by its kernel; of an earlier fit it must not stay.
PARTS = ("coef_", "support_", "dual_coef_", "X_fit_")


class RepresenterModel(KernelInputs):
    """Base of the estimators that keep `coef_`, or `support_`, `dual_coef_` and `X_fit_`, and `intercept_`."""

    kernel_: Kernel
    coef_: np.ndarray
    dual_coef_: np.ndarray
    support_: np.ndarray
    intercept_: np.ndarray
    solution_: Solution

    _optional: tuple[str, ...] = ()  # more that a fit may or may not set

    intercept_variance: float
    random_state: Any

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "intercept_")

    def _refuse_other_libraries(self, X: Any) -> None:
        if not (isinstance(X, np.ndarray) or sp.issparse(X)):
            raise TypeError(
                f"{type(self).__name__} needs NumPy arrays or SciPy CSR arrays, got {type(X)}."
            )

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _solve(
        self,
        problem: Any,
        fitted: dict[str, Any],
        X: Array,
        y: Array,
        solve: Callable[..., Solution],
        *,
        start: np.ndarray | None = None,
        mix: np.ndarray | None = None,
        folds: tuple[np.ndarray, np.ndarray] | None = None,
        calibrate: Callable[[np.ndarray, np.ndarray], dict[str, Any]] | None = None,
        keep: bool = False,
    ) -> None:
        """Solve, calibrate on the folds if there are any, and store the fitted model.

        Parameters
        ----------
        problem : MarginProblem or ContrastProblem
        fitted : dict
            Attributes that are known already.
        X, y : arrays
            For callbacks, and for what is kept of X.
        solve : callable
            Gets a problem, coefficients to start from or None, and a callback or None.
        start : array, default=None
        mix : array, default=None
            See `_parts`.
        folds : tuple of two masks of shape (n, n_folds), default=None
            Rows for training, and rows held out.
        calibrate : callable, default=None
            Gets numbers of held-out rows and their scores, and returns further attributes.
        keep : bool, default=False
            Whether the solution keeps its coefficients.
        """
        root = self._init_callback_context(max_subtasks=None if folds is None else 2)
        root.call_on_fit_task_begin(estimator=self, X=X, y=y)
        context = root
        if folds is not None:
            context = root.subcontext(task_name="fit", max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        kernel = fitted["kernel_"]

        def report(progress: Progress) -> bool:
            task = context.subcontext(task_name="iteration")
            stop = task.call_on_fit_task_end(
                estimator=self,
                X=X,
                y=y,
                reconstruction_attributes=lambda: (
                    fitted | self._parts(progress.coefficients, X, kernel, mix)
                ),
            )
            return bool(stop)

        # some solvers make coefficients for callbacks only, at a cost
        watched = bool(getattr(self, "_skl_callbacks", ()))
        solution = solve(problem, start, report if watched else None)
        A = solution.coefficients
        fitted = fitted | self._parts(A, X, kernel, mix)
        if folds is not None:
            assert calibrate is not None
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
            context = root.subcontext(task_name="calibration", max_subtasks=folds[0].shape[1])
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
            values, rows = [], []
            for training, held_out in zip(*(masks.T for masks in folds), strict=True):
                fold = problem.restricted(training)
                scores = fold.latent(solve(fold, A * training[:, None], None).coefficients)
                rows.append(np.flatnonzero(held_out))
                values.append(scores[rows[-1]])
                task = context.subcontext(task_name="fold")
                task.call_on_fit_task_end(estimator=self, X=X, y=y)
            fitted |= calibrate(np.concatenate(rows), np.concatenate(values))
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
        for name in (*PARTS, *self._optional):
            self.__dict__.pop(name, None)
        for name, value in fitted.items():
            setattr(self, name, value)
        self.solution_ = replace(solution, coefficients=A if keep else None, latent=None)
        self.n_iter_ = max(1, solution.n_iter)
        root.call_on_fit_task_end(estimator=self, X=X, y=y)

    def _parts(
        self, A: np.ndarray, X: Array, kernel: Kernel, mix: np.ndarray | None = None
    ) -> dict[str, Array]:
        """What scores are made from, in the dtype of X: the coefficients are A, or A @ mix."""

        def mixed(V: np.ndarray) -> np.ndarray:
            return V if mix is None else V @ mix

        intercept = self.intercept_variance * mixed(A.sum(axis=0))
        fitted = {"intercept_": intercept.astype(X.dtype)}
        variance = linear_variance(kernel)
        if variance is not None:
            coef = variance * mixed(_transposed_product(X, A)).T
            return fitted | {"coef_": np.ascontiguousarray(coef, dtype=X.dtype)}
        support = np.flatnonzero(A.any(axis=1))
        fitted |= {"support_": support, "dual_coef_": mixed(A[support]).astype(X.dtype)}
        if kernel.is_precomputed:
            return fitted
        # a memory-mapped file is not copied if all of it is needed
        return fitted | {"X_fit_": X if support.size == X.shape[0] else X[support]}

    def _latent(self, X: Any, method: str) -> np.ndarray:
        """Scores of new examples, one column for each function."""
        check_is_fitted(self)
        if linear_variance(self.kernel_) is not None:
            return self._checked_new(X) @ self.coef_.T + self.intercept_
        if self.kernel_.is_precomputed:
            X = self._checked_new(X)[:, self.support_]
            train = np.empty((self.support_.size, 0), X.dtype)  # only its length is looked at
        else:
            X = self._validated_new(X, method)
            train = self.X_fit_
        if not self.support_.size:
            return np.tile(self.intercept_, (X.shape[0], 1))
        return cross_operator(self.kernel_, X, train) @ self.dual_coef_ + self.intercept_


def _transposed_product(X: Array, A: np.ndarray) -> np.ndarray:
    """Xᵀ A with sums in float64, without a copy of X in that precision."""
    if sp.issparse(X):
        return np.asarray(X.T @ A)
    out = np.zeros((X.shape[1], A.shape[1]))
    for block in row_blocks(X.shape[0], 8 * X.shape[1], TILE_BYTES):
        out += X[block].astype(np.float64, copy=False).T @ A[block]
    return out
