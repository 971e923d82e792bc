"""What all kernel machines share: validate, assemble, solve, store.

No mathematics: a subclass says which loss and which targets, and how latent values become
predictions.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian import solvers
from gramian._arrays import Array, device_of, is_numpy, namespace
from gramian._validation import check_choice, check_flag, check_gram, check_number, naming_text
from gramian.kernels import Kernel, as_kernel
from gramian.labels import Identity
from gramian.losses import Loss
from gramian.operators import Intercept, LabelMixed, OperatorRecord, choose_operator, cross_operator
from gramian.operators.choose import OPERATORS
from gramian.solvers import Problem, Progress, Solution

SOLVERS = {
    "newton": solvers.newton,
    "kernel_cg": solvers.kernel_cg,
    "parameter_cg": solvers.parameter_cg,
    "exact": solvers.exact,
}


class KernelMachine(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators; see a subclass for the parameters."""

    kernel_: Kernel
    operator_: OperatorRecord
    solution_: Solution
    dual_coef_: Array
    intercept_: Array
    X_fit_: Array

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        regularization: float = 1.0,
        intercept_variance: float = 1.0,
        operator: str = "auto",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.regularization = regularization
        self.intercept_variance = intercept_variance
        self.operator = operator
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state

    # --- scikit-learn -----------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = _is_precomputed(self.kernel)
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = precomputed
        tags.array_api_support = not precomputed and self.solver != "exact"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    # --- validate ---------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        as_kernel(self.kernel)
        check_number("regularization", self.regularization, strict=True)
        check_number("intercept_variance", self.intercept_variance)
        check_choice("operator", self.operator, OPERATORS)
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        check_number("tol", self.tol)
        if self.max_iter is not None:
            check_number("max_iter", self.max_iter, low=1, whole=True)
        check_flag("warm_start", self.warm_start)

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
        if _is_precomputed(self.kernel):
            check_gram(X)
        return X, y

    def _validated_new(self, X: Any, method: str) -> Array:
        """X for prediction, in the format of the training data."""
        check_is_fitted(self)
        with naming_text(X):
            X = validate_data(self, X, accept_sparse="csr", dtype=_float_dtypes(X), reset=False)
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

    # --- assemble and solve -----------------------------------------------------------------

    def _solve(
        self,
        kernel: Kernel,
        X: Array,
        y: Any,
        targets: Array,
        loss: Loss,
        weights: Array | None,
        **state: Any,
    ) -> None:
        """Solve for the targets (n, C, q) and store the fitted model; ``state`` is what else to store."""
        operator, record = choose_operator(kernel, X, self.operator)
        terms = [(operator, Identity())]
        if self.intercept_variance > 0:
            terms.append((Intercept(self.intercept_variance, targets, X.shape[0]), Identity()))
        problem = Problem(LabelMixed(terms), loss, targets, self.regularization, weights)
        solve = SOLVERS[self._solver_name(record, targets)]
        limit = {} if self.max_iter is None else {"max_iter": self.max_iter}
        fitted = {"X_fit_": X, "kernel_": kernel, "operator_": record, **state}
        most = self.max_iter or inspect.signature(solve).parameters["max_iter"].default
        context = self._init_callback_context(max_subtasks=most)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)

        def report(progress: Progress) -> bool:
            task = context.subcontext(task_name="iteration")
            return task.call_on_fit_task_end(
                estimator=self,
                X=X,
                y=y,
                reconstruction_attributes=lambda: (
                    fitted | self._coefficients(progress.coefficients, X)
                ),
            )

        solution = solve(
            problem, start=self._start(problem), tol=self.tol, callback=report, **limit
        )
        if not np.isfinite(solution.gap):
            raise ValueError(
                f"Numbers overflowed: the duality gap is {solution.gap}. Scale X, y or the kernel so that "
                f"products fit {X.dtype}, or check regularization={self.regularization!r}."
            )
        fitted |= self._coefficients(solution.coefficients, X)
        for name, value in fitted.items():
            setattr(self, name, value)
        self.solution_ = replace(solution, coefficients=self.dual_coef_)
        self.n_iter_ = max(1, solution.n_iter)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)

    def _solver_name(self, record: OperatorRecord, targets: Array) -> str:
        return "newton" if self.solver == "auto" else self.solver

    def _start(self, problem: Problem) -> Array | None:
        if not self.warm_start or not self.__sklearn_is_fitted__():
            return None
        n, outputs, columns = problem.shape
        same = tuple(self.dual_coef_.shape) == (n, outputs * columns)
        if not same or namespace(self.dual_coef_) is not namespace(problem.targets):
            return None
        return namespace(self.dual_coef_).reshape(self.dual_coef_, problem.shape)

    def _coefficients(self, coefficients: Array, X: Array) -> dict[str, Array]:
        """Fitted coefficients in the dtype of X; solvers work in float64."""
        xp = namespace(coefficients)
        dual = xp.reshape(coefficients, (coefficients.shape[0], -1))
        intercept = self.intercept_variance * xp.sum(dual, axis=0)
        return {"dual_coef_": xp.astype(dual, X.dtype), "intercept_": xp.astype(intercept, X.dtype)}

    def _latent(self, X: Any, method: str) -> Array:
        """Latent values of new examples, shape (n_new, C)."""
        X = self._validated_new(X, method)
        return (
            cross_operator(self.kernel_, X, self.X_fit_) @ self.dual_coef_
            + self.intercept_[None, :]
        )


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
