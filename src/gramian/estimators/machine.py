"""What all kernel machines share: validate, assemble, solve, store.

No mathematics: a subclass says which loss and which targets, and how latent values become
predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gramian import solvers
from gramian._core.arrays import Array, namespace, to_numpy
from gramian._core.validation import check_choice, check_flag, check_number
from gramian.estimators.early_stopping import Validation, Watch
from gramian.estimators.inputs import KernelInputs
from gramian.kernels import Kernel
from gramian.losses import Loss
from gramian.operators import Operator, OperatorRecord
from gramian.operators.choose import OPERATORS
from gramian.selection import CrossValidationSearch
from gramian.selection.learn import Data, check_search, learn_prior, outputs_first
from gramian.selection.prior import Prior
from gramian.solvers import Problem, Progress, Solution

SOLVERS = {
    "newton": solvers.newton,
    "kernel_cg": solvers.kernel_cg,
    "parameter_cg": solvers.parameter_cg,
    "exact": solvers.exact,
}


class KernelMachine(KernelInputs):
    """Base of the estimators; see a subclass for the parameters."""

    operator_: OperatorRecord
    solution_: Solution
    dual_coef_: Array
    intercept_: Array
    rank: int | None = None  # estimators for pairs have no such parameter

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        optimize: Any = None,
        cv: Any = 5,
        regularization: float = 1.0,
        intercept_variance: float = 1.0,
        operator: str = "auto",
        rank: int | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.optimize = optimize
        self.cv = cv
        self.regularization = regularization
        self.intercept_variance = intercept_variance
        self.operator = operator
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state

    # --- scikit-learn -----------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        only_numpy = self.solver == "exact" or self.operator == "low_rank"
        tags.array_api_support = not tags.input_tags.pairwise and not only_numpy
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    # --- the prior, as users see it -----------------------------------------------------------

    _prior: Prior

    @property
    def kernel_(self) -> Kernel:
        """The kernel with all its numbers, if there is one for all functions."""
        kernels = self.kernels_
        if len(kernels) != 1:
            raise AttributeError(f"There are {len(kernels)} kernels; see kernels_.")
        return kernels[0]

    @property
    def kernels_(self) -> tuple[Kernel, ...]:
        """One kernel for each group of functions, with its variance as a factor."""
        return self._prior.kernels_with_variances()

    @property
    def variances_(self) -> np.ndarray:
        """Variance of each group."""
        return self._prior.variances

    @property
    def groups_(self) -> np.ndarray:
        """Group of each function."""
        return self._prior.groups

    # --- validate ---------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._kernel_asked_for()
        if isinstance(self.optimize, CrossValidationSearch):
            check_search(self.optimize)
        elif self.optimize is not None and not _is_text(self.optimize, "cv"):
            raise ValueError(
                f"optimize must be None, 'cv' or a CrossValidationSearch, got {self.optimize!r}."
            )
        check_number("regularization", self.regularization, strict=True)
        check_number("intercept_variance", self.intercept_variance)
        check_choice("operator", self.operator, self._operators)
        if self.rank is not None:
            check_number("rank", self.rank, low=1, whole=True)
        check_choice("solver", self.solver, ("auto", *self._solvers))
        check_number("tol", self.tol)
        if self.max_iter is not None:
            check_number("max_iter", self.max_iter, low=1, whole=True)
        check_flag("warm_start", self.warm_start)

    _operators = OPERATORS
    _solvers: dict[str, Callable[..., Solution]] = SOLVERS

    def _values_of(self, X: Any) -> Array:
        """An array of the library, device and dtype of X."""
        return X

    # --- assemble and solve -----------------------------------------------------------------

    def _solve(
        self,
        prior: Prior,
        X: Array,
        y: Any,
        targets: Array,
        loss: Loss,
        weights: Array | None,
        *,
        solve: Callable[..., Solution] | None = None,
        judged: Array | None = None,
        validation: Validation | None = None,
        **state: Any,
    ) -> None:
        """Learn what is to be learned, solve for the targets (n, C, q) and store the fitted model.

        ``solve`` replaces the chosen solver, ``judged`` marks the examples that hyperparameters are learned from,
        ``validation`` stops early, and ``state`` is what else to store.
        """
        root = self._init_callback_context(max_subtasks=None if self.optimize is None else 2)
        root.call_on_fit_task_begin(estimator=self, X=X, y=y)
        context, start = root, None
        if self.optimize is not None:
            search = root.subcontext(task_name="hyperparameters", max_subtasks=None)
            search.call_on_fit_task_begin(estimator=self, X=X, y=y)

            def evaluated(theta: np.ndarray, value: float) -> bool:
                task = search.subcontext(task_name="evaluation")
                return bool(task.call_on_fit_task_end(estimator=self, X=X, y=y))

            learned = learn_prior(
                prior,
                Data(X, to_numpy(y), targets, loss, weights, judged),
                CrossValidationSearch() if isinstance(self.optimize, str) else self.optimize,
                cv=self.cv,
                classifier=is_classifier(self),
                regularization=self.regularization,
                intercept_variance=self.intercept_variance,
                operator=self.operator,
                rank=self.rank,
                random_state=self.random_state,
                report=evaluated,
            )
            prior, start = learned.prior, learned.start
            state |= {self._cv_attribute: learned.loss, "optimization_path_": learned.path}
            search.call_on_fit_task_end(estimator=self, X=X, y=y)
            context = root.subcontext(task_name="fit", max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        operator, record = prior.operator(
            X,
            targets,
            self.intercept_variance,
            self.operator,
            learning=False,
            rank=self.rank,
            random_state=self.random_state,
        )
        if not prior.is_shared:  # one kernel for each output: outputs are no longer alike
            targets = outputs_first(targets)
        problem = Problem(operator, loss, targets, self._strengths(), weights)
        solve = solve or self._solvers[self._solver_name(problem, record, validation is not None)]
        fitted = {"_prior": prior, "operator_": record, **state}

        watch = None
        if validation is not None:
            cross = prior.cross(validation.X, X)
            watch = Watch(validation, cross, self.intercept_variance)

        def report(progress: Progress) -> bool:
            task = context.subcontext(task_name="iteration")
            stop = task.call_on_fit_task_end(
                estimator=self,
                X=X,
                y=y,
                reconstruction_attributes=lambda: (
                    fitted | self._function(operator, progress.coefficients, X)
                ),
            )
            return bool(watch is not None and watch(progress)) or stop

        if validation is not None:
            start = None  # few iterations regularise if they start from zero
        elif start is None:
            start = self._start(problem)
        else:
            start = namespace(start).reshape(start, problem.shape)
        solution = solve(problem, start=start, tol=self.tol, callback=report, **self._limits())
        if not np.isfinite(solution.gap):
            raise ValueError(
                f"Numbers overflowed: the duality gap is {solution.gap}. Scale X, y or the kernel so that "
                f"products fit {X.dtype}, or check regularization={self.regularization!r}."
            )
        coefficients = solution.coefficients
        if watch is not None and watch.scores:
            coefficients, fitted = watch.best, fitted | watch.result()
        fitted |= self._function(operator, coefficients, X)
        for name in _OPTIONAL:
            self.__dict__.pop(name, None)
        for name, value in fitted.items():
            setattr(self, name, value)
        self.solution_ = replace(solution, coefficients=self.dual_coef_, latent=None)
        self.n_iter_ = max(1, solution.n_iter)
        if context is not root:
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
        root.call_on_fit_task_end(estimator=self, X=X, y=y)

    _cv_attribute = "cv_loss_"

    def _strengths(self) -> Any:
        """λ, or one for each of several independent columns."""
        return self.regularization

    def _limits(self) -> dict[str, int]:
        """Limits of the solver other than its own."""
        return {} if self.max_iter is None else {"max_iter": self.max_iter}

    def _solver_name(self, problem: Problem, record: OperatorRecord, watched: bool) -> str:
        """Which solver; ``watched`` says that iterations are to be scored."""
        return "newton" if self.solver == "auto" else self.solver

    def _start(self, problem: Problem) -> Array | None:
        if not self.warm_start or not self.__sklearn_is_fitted__():
            return None
        if self.operator_.name == "low_rank":  # coefficients of the active set only
            return None
        n, outputs, columns = problem.shape
        same = tuple(self.dual_coef_.shape) == (n, outputs * columns)
        if not same or namespace(self.dual_coef_) is not namespace(problem.targets):
            return None
        return namespace(self.dual_coef_).reshape(self.dual_coef_, problem.shape)

    def _function(self, operator: Operator, coefficients: Array, X: Array) -> dict[str, Array]:
        """The fitted function in the dtype of X; solvers work in float64."""
        xp = namespace(coefficients)
        rows, dual = operator.compress(coefficients)
        dual = xp.reshape(dual, (dual.shape[0], -1))
        total = xp.reshape(xp.sum(coefficients, axis=0), (-1,))
        return {
            "X_fit_": X if rows is None else rows,
            "dual_coef_": xp.astype(dual, X.dtype),
            "intercept_": xp.astype(self.intercept_variance * total, X.dtype),
        }

    def _latent(self, X: Any, method: str) -> Array:
        """Latent values of new examples, shape (n_new, C)."""
        X = self._validated_new(X, method)
        # models made from others were not trained by an operator
        name = self.operator_.name if hasattr(self, "operator_") else "auto"
        cross = self._prior.cross(X, self.X_fit_, name)
        return cross @ self.dual_coef_ + self.intercept_[None, :]


# Attributes that a fit may or may not set; those of an earlier fit must not stay.
_OPTIONAL = (
    "cv_loss_",
    "cv_log_loss_",
    "optimization_path_",
    "validation_score_",
    "best_iteration_",
)


def _is_text(value: Any, text: str) -> bool:
    return isinstance(value, str) and value == text
