"""Training with a smooth loss: learn the kernel if asked to, solve in the RKHS, keep the function.

    minimise over A    Σ_i w_i loss(u_i, y_i) + (λ/2) ⟨A, 𝒦A⟩,      U = 𝒦A

The steps are those of `SmoothTraining.run`; their mathematics is in `selection` (learning), `operators` (𝒦) and
`solvers.rkhs`. `KernelMachine` is the base of the estimators that are trained in this way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.callback import CallbackSupportMixin, with_callbacks

from gramian._core.arrays import Array, namespace
from gramian.estimators.early_stopping import Validation, Watch
from gramian.estimators.examples import TrainingData
from gramian.estimators.fitting import Targets, fit_machine
from gramian.estimators.learning import Plan, plan_of, tell, warn_of_tails
from gramian.estimators.progress import Task
from gramian.estimators.record import Fitted, Model, refuse_overflow
from gramian.estimators.rules import (
    flag,
    not_negative,
    optional_count,
    positive_or_auto,
    search,
    seed,
    variance,
)
from gramian.estimators.targets import SmoothTargets
from gramian.kernels import Kernel
from gramian.operators import Operator, OperatorRecord
from gramian.selection.chain_prior import AnyPrior
from gramian.selection.learn import Learned, learn_prior, outputs_first
from gramian.selection.prior import GramSettings
from gramian.solvers import Problem, Progress, Solution


@dataclass(frozen=True)
class SolverChoice:
    """The solvers of an estimator by name, and which one "auto" is.

    Attributes
    ----------
    named : mapping of str to solver
    auto : callable
        Gets the problem, the record of its operator and whether iterations are to be scored; returns a name.
    """

    named: Mapping[str, Callable[..., Solution]]
    auto: Callable[[Problem, OperatorRecord, bool], str]


def always(name: str) -> Callable[[Problem, OperatorRecord, bool], str]:
    """Return the rule that "auto" is one solver, whatever the problem."""
    return lambda problem, record, watched: name


@dataclass(eq=False, repr=False)
class KernelMachine(CallbackSupportMixin, Model):
    """Base of the estimators with a smooth loss.

    Parameters
    ----------
    optimize : {"auto", "cv"}, None or CrossValidationSearch, default="auto"
        "auto" finds what was left open: if ``regularization`` is "auto", the variance, the scale of a kernel that was
        asked for by its name, and its form if that is "auto", on at most 1000 examples (1500 for ridge regression) and
        with bounded work. "cv" learns all kernel parameters that are not fixed, and the variances, on all examples and
        to the end. Both go by the gradient of the cross-validated loss. None takes everything as it is.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``optimize``. A number means shuffled folds.
    regularization : float or "auto", default="auto"
        λ > 0. A number is taken as it is, and "auto" for ``optimize`` then learns nothing. "auto" is 1, with a variance
        of the kernel that is learned, which has the same effect.
    intercept_variance : float, default=1.0
        Prior variance σ² of the intercepts; 0 means none.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of examples and outputs is the same. Not after a
        low-rank fit, which keeps no coefficients of examples.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all its numbers, if there is one for all.
    variances_ : ndarray of shape (n_groups,)
    cv_loss_ : float
        Cross-validated loss of the learned parameters.
    optimization_path_ : OptimizationPath
        How they were found.
    operator_ : OperatorRecord
        Which operator was used, and why.
    solution_ : Solution
        Certificate, status and history.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
    """

    _: KW_ONLY
    optimize: Any = "auto"
    cv: Any = 5
    regularization: Any = "auto"
    intercept_variance: float = 1.0
    operator: str = "auto"
    solver: str = "auto"
    tol: float = 1e-8
    max_iter: int | None = None
    warm_start: bool = False
    random_state: Any = None

    _rules = {
        "optimize": search,
        "regularization": positive_or_auto,
        "intercept_variance": variance,
        "tol": not_negative,
        "max_iter": optional_count,
        "warm_start": flag,
        "random_state": seed,
    }
    _cv_attribute = "cv_loss_"

    # --- the prior, as users see it -----------------------------------------------------------

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

    # --- fit and evaluate ---------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or the Gram matrix of shape (n_samples, n_samples) for a precomputed kernel.
        y : array of shape (n_samples,), or (n_samples, n_outputs) for regression
            Class labels, which are numbers or strings and at least two; for regression numbers.
        sample_weight : array of shape (n_samples,), default=None
        groups : array of shape (n_samples,), default=None
            Examples of one group are held out together when hyperparameters are learned.

        Returns
        -------
        self
        """
        return fit_machine(self, X, y, sample_weight, self._training, groups)

    _solvers: ClassVar[SolverChoice]

    def _examples(self) -> Any:
        """What X is: `Features`, or what has the same methods."""
        raise NotImplementedError

    def _targets(self) -> Targets:
        """What y is."""
        raise NotImplementedError

    def _gram(self) -> GramSettings:
        """How the Gram operator is to be made."""
        return GramSettings(self.operator, self.intercept_variance, None, self.random_state)

    def _strength(self) -> float:
        """λ; where it is left open, the variance of the kernel is learned instead."""
        return 1.0 if isinstance(self.regularization, str) else self.regularization

    def _kept(self, X: Any, operator: Operator, coefficients: Array) -> dict[str, Any]:
        """The fitted function as attributes."""
        return kept_function(self, X, operator, coefficients)

    def _coefficients(self) -> Array:
        """The coefficients of an earlier fit, to start from."""
        return self.dual_coef_

    def _limits(self) -> dict[str, int]:
        """Limits of the solver other than its own."""
        return {} if self.max_iter is None else {"max_iter": self.max_iter}

    def _training(self, data: TrainingData) -> SmoothTraining:
        """What is to be solved."""
        return SmoothTraining(self, data, self._targets().read(data))

    def _latent(self, X: Any, method: str) -> Array:
        """Latent values of new examples, a column for each function."""
        X = self._examples().read_new(self, X, method)
        cross = self._prior.cross(X, self.X_fit_, self.operator_.name)
        # what was certified is kept in float64; answers have the precision of the examples
        kept, as_asked = (self.dual_coef_, self.intercept_), namespace(self.dual_coef_).astype
        dual, intercept = (as_asked(values, X.dtype, copy=False) for values in kept)
        return cross @ dual + intercept[None, :]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._examples().is_gram
        tags.target_tags.multi_output = self._targets().checks.get("multi_output", False)
        return tags


@dataclass(frozen=True, eq=False)
class SmoothTraining:
    """A machine, what it is trained on, and examples to stop early by."""

    machine: KernelMachine
    data: TrainingData
    targets: SmoothTargets
    validation: Validation | None = None

    @property
    def n_stages(self) -> int | None:
        return None if self._plan is None else 2

    @cached_property
    def _plan(self) -> Plan | None:
        return plan_of(self.machine, self.data, self.targets, watched=self.validation is not None)

    def run(self, task: Task) -> Fitted:
        if self._plan is None:
            return self._solved(task, self.targets.prior, None, {})
        with task.stage("hyperparameters") as stage:
            learned = self._learned(stage, self._plan)
        warn_of_tails(self.machine, self.data, learned)
        found = {
            self.machine._cv_attribute: learned.loss,
            "optimization_path_": learned.path,
        }
        if learned.coupling is not None:
            found |= {
                "coupling_": learned.coupling.relation.matrix,
                "n_couplings_": learned.coupling.n_approved,
                "judged_loss_": learned.coupling.judged_loss,
            }
        choices = tell(self.machine, learned, self._plan.data.size)
        with task.stage("fit") as stage:
            return self._solved(stage, learned.prior, learned.start, found, choices)

    def _learned(self, task: Task, plan: Plan) -> Learned:
        """The prior with parameters that cross-validation chose."""
        machine = self.machine
        return learn_prior(
            plan.priors,
            plan.data,
            plan.search,
            cv=plan.cv,
            regularization=machine._strength(),
            gram=machine._gram(),
            report=lambda theta, value: task.step("evaluation"),
            coupling=self.targets.coupling,
        )

    def problem(self, prior: AnyPrior) -> tuple[Problem, OperatorRecord]:
        """What is solved with a prior, and how its operator was chosen."""
        targets, machine = self.targets, self.machine
        operator, record = prior.operator(self.data.X, targets.values, machine._gram())
        values = targets.values if prior.is_independent else outputs_first(targets.values)
        return Problem(operator, targets.loss, values, machine._strength(), targets.weights), record

    def _solved(
        self,
        task: Task,
        prior: AnyPrior,
        start: Array | None,
        found: dict[str, Any],
        choices: tuple[str, ...] = (),
    ) -> Fitted:
        """The record of the model with this prior, solved from a start; ``found`` is what else to keep."""
        machine, data, targets = self.machine, self.data, self.targets
        problem, record = self.problem(prior)
        operator = problem.operator
        fitted = Fitted(
            data.described | targets.fitted | {"_prior": prior, "operator_": record} | found
        )
        watch = self._watch(prior)

        def partial(coefficients: Array) -> Fitted:
            return fitted.with_values(**machine._kept(data.X, operator, coefficients))

        def report(progress: Progress) -> bool:
            stop = task.step("iteration", lambda: partial(progress.coefficients))
            return bool(watch is not None and watch(progress)) or stop

        solution = self._solver(problem, record)(
            problem,
            start=self._start(problem, start),
            tol=machine.tol,
            callback=report,
            **machine._limits(),
        )
        refuse_overflow(solution, data.X.dtype, f"regularization={machine.regularization!r}")
        coefficients, scores = solution.coefficients, {}
        if watch is not None and watch.scores:
            coefficients, scores = watch.best, watch.result()
        whole = partial(coefficients)
        kept = replace(
            solution, coefficients=whole.values["dual_coef_"], latent=None, choices=choices
        )
        return whole.with_values(solution_=kept, n_iter_=max(1, solution.n_iter), **scores)

    def _solver(self, problem: Problem, record: OperatorRecord) -> Callable[..., Solution]:
        choice, name = self.machine._solvers, self.machine.solver
        if name == "auto":
            name = choice.auto(problem, record, self.validation is not None)
        return self.targets.solve or choice.named[name]

    def _watch(self, prior: AnyPrior) -> Watch | None:
        if self.validation is None:
            return None
        cross = prior.cross(self.validation.X, self.data.X)
        return Watch(self.validation, cross, self.machine._gram().intercept_variance)

    def _start(self, problem: Problem, learned: Array | None) -> Array | None:
        """Coefficients to start from: those of the search, or of an earlier fit, if they fit the problem."""
        machine = self.machine
        if self.validation is not None:
            return None  # few iterations regularise if they start from zero
        if learned is not None and math.prod(learned.shape) == math.prod(problem.shape):
            return namespace(learned).reshape(learned, problem.shape)
        if not machine.warm_start or not machine.__sklearn_is_fitted__():
            return None
        if machine.operator_.name == "low_rank":  # coefficients of the active set only
            return None
        before = machine._coefficients()
        n, outputs, columns = problem.shape
        same = tuple(before.shape) == (n, outputs * columns)
        if not same or namespace(before) is not namespace(problem.targets):
            return None
        return namespace(before).reshape(before, problem.shape)


def kept_function(
    machine: KernelMachine, X: Any, operator: Operator, coefficients: Array
) -> dict[str, Array]:
    """The fitted function, in float64 as solvers find and certify it: rounded to float32 it would have another gap."""
    xp = namespace(coefficients)
    rows, dual = operator.compress(coefficients)
    total = xp.reshape(xp.sum(coefficients, axis=0), (-1,))
    return {
        "X_fit_": X if rows is None else rows,
        "dual_coef_": xp.reshape(dual, (dual.shape[0], -1)),
        "intercept_": machine._gram().intercept_variance * total,
    }
