"""Training with a hinge loss: choose C by folds, solve by support vectors, calibrate if asked to, keep the function.

The model is a sum over examples, w = Σ_k c_k x_k. A linear kernel is solved by its features and keeps weights of the
features; any other one is solved by rows of the Gram matrix and keeps the examples whose coefficients are not zero. An
intercept is the coefficient of one more, constant feature.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian._core.arrays import BLOCK_BYTES, Array, row_blocks, transposed_product
from gramian.estimators import rules
from gramian.estimators.examples import Features, TrainingData
from gramian.estimators.fitting import fit_machine
from gramian.estimators.margin import search
from gramian.estimators.margin.search import Choice, Folds, PathSearch, sampled_rows
from gramian.estimators.progress import Task
from gramian.estimators.record import Fitted, Model, refuse_overflow
from gramian.operators import cross_operator
from gramian.selection import fold_masks
from gramian.solvers import ContrastProblem, MarginProblem, Progress, Solution

logger = logging.getLogger("gramian")

Solve = Callable[..., Solution]
Purpose = Literal["model", "search", "calibration"]  # of a solve: how accurate it need be
CALIBRATION_SWEEPS = 1000  # of the folds that scores are calibrated on, at most


def has_probability(machine: MarginMachine) -> bool:
    """Say whether a machine calibrates probabilities; for `available_if`."""
    if not machine.probability:
        raise AttributeError(
            f"Probabilities need {type(machine).__name__}(probability=True), which calibrates scores on held-out folds."
        )
    return True


@dataclass(eq=False, repr=False)
class MarginMachine(CallbackSupportMixin, Model):
    """Base of the estimators with a hinge loss.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Weight of the losses, > 0. "auto" chooses it by the folds of ``cv``, on at most 1500 of the examples: a path
        from small to large C, relative to the mean of k(x, x), scored on what is held out. With 3000
        examples and more, one fold of up to 6000 of them decides between that C and its neighbours. See `C_path_`.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``C="auto"`` and for ``probability``. For C a number of folds is lowered to what the data allow.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    copy_X : bool, default=True
        Whether a model that keeps examples keeps copies. With False it may keep X itself, and later changes of X change
        its predictions. A linear kernel keeps none; a file (`numpy.memmap`) and a Gram matrix are never copied.

    Attributes
    ----------
    C_ : float
        The C that was used: the chosen one, or the parameter.
    C_path_ : dict of ndarray
        The values of "C" that were tried, shape (k,), and the held-out "score" of each in each fold, shape
        (k, n_folds); "second_C" and "second_score" of a second look with more examples. With ``C="auto"`` only.
    support_ : ndarray of int of shape (n_support,)
        Examples with a coefficient that is not zero, for other kernels.
    X_fit_ : array or sparse array of shape (n_support, n_features)
        Their features, for other kernels that are not precomputed.
    """

    _: KW_ONLY
    intercept_variance: float = 1.0
    class_weight: Any = None
    probability: bool = False
    cv: Any = 5
    tol: float = 1e-4
    max_iter: int | None = None
    random_state: Any = None
    copy_X: bool = True

    _rules = {
        "C": rules.or_auto(rules.positive),
        "intercept_variance": rules.variance,
        "tol": rules.not_negative,
        "max_iter": rules.optional_count,
        "probability": rules.flag,
        "copy_X": rules.flag,
        "random_state": rules.seed,
    }

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or the Gram matrix of shape (n_samples, n_samples) for a precomputed kernel.
        y : array of shape (n_samples,), or for many labels (n_samples, n_labels)
            What it may hold is said in the description of the class.
        sample_weight : array of shape (n_samples,), default=None
            Weight zero leaves an example out.
        groups : array of shape (n_samples,), default=None
            Examples of one group are held out together when C is chosen or probabilities are calibrated.

        Returns
        -------
        self
        """
        return fit_machine(self, X, y, sample_weight, self._training, groups)

    def _training(self, data: TrainingData) -> MarginTraining:
        """What is to be solved."""
        raise NotImplementedError

    def _examples(self) -> Features:
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        return Features(self.kernel, self.copy_X and not linear)

    def _limits(self, purpose: Purpose) -> dict[str, Any]:
        """Accuracy and most iterations of a solve."""
        if purpose != "search":
            own = self.max_iter is None and purpose == "calibration"
            return {"tol": self.tol, "max_iter": CALIBRATION_SWEEPS if own else self.max_iter}
        most = search.PATH_SWEEPS if self.max_iter is None else self.max_iter
        return {
            "tol": max(search.PATH_TOL, self.tol),
            "max_iter": min(most, search.PATH_SWEEPS),
        }

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _latent(self, X: Any, method: str) -> np.ndarray:
        """Scores of new examples, one column for each function."""
        check_is_fitted(self)
        examples = self._examples()
        if self.kernel_.linear_variance is not None:
            X = examples.checked_new(self, X)
            return X @ self.coef_.T.astype(X.dtype) + self.intercept_.astype(X.dtype)
        if self.kernel_.is_precomputed:
            X = examples.checked_new(self, X)[:, self.support_]
            train = np.empty((self.support_.size, 0), X.dtype)  # only its length is looked at
        else:
            X, train = examples.read_new(self, X, method), self.X_fit_
        # what was certified is kept in float64; answers have the precision of the examples
        dual, intercept = self.dual_coef_.astype(X.dtype), self.intercept_.astype(X.dtype)
        if not self.support_.size:
            return np.tile(intercept, (X.shape[0], 1))
        return cross_operator(self.kernel_, X, train) @ dual + intercept

    def _calibrated(self, attribute: str) -> np.ndarray:
        """What calibration found, or an error that says why there is nothing."""
        check_is_fitted(self)
        if not hasattr(self, attribute):
            raise NotFittedError(
                f"This {type(self).__name__} was fitted with probability=False; fit it again with True."
            )
        return getattr(self, attribute)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._examples().is_gram
        return tags


@dataclass(frozen=True, eq=False)
class MarginTraining:
    """A problem with a hinge loss, and what is done with its solution.

    Attributes
    ----------
    machine : MarginMachine
    data : TrainingData
    problem : MarginProblem or ContrastProblem
        With C = 1.
    part : callable
        Gets numbers of rows and returns the problem of these examples.
    solve : callable
        Gets a problem, coefficients to start from or None, a callback or None, and ``purpose``, a `Purpose`.
    fitted : dict
        Attributes that are known already.
    codes : ndarray of shape (n,) or (n, L)
        Classes or labels that folds have in proportion.
    judge : callable
        Gets numbers of held-out rows and their scores, and returns a number, the larger the better.
    calibrate : callable
        Gets the same, and returns further attributes.
    shrink : callable, default=None
        Gets a problem, a shrinkage and, if not all examples are known, those that are; returns the problem with a
        label correlation of that shrinkage. None if there is none to be chosen.
    review : callable, default=None
        Gets C and the scores of the training examples, some rows at a time, and warns of what is wrong with them.
    start : array, default=None
    keep : bool, default=False
        Whether the solution keeps its coefficients.
    choices : tuple of str, default=()
        What was decided before, in words.
    """

    machine: Any
    data: TrainingData
    problem: MarginProblem | ContrastProblem
    part: Callable[[np.ndarray], Any]
    solve: Solve
    fitted: dict[str, Any]
    codes: np.ndarray
    judge: Callable[[np.ndarray, np.ndarray], float]
    calibrate: Callable[[np.ndarray, np.ndarray], dict[str, Any]]
    shrink: Callable[..., Any] | None = None
    review: Callable[[float, Iterable[np.ndarray]], None] | None = None
    start: np.ndarray | None = None
    keep: bool = False
    choices: tuple[str, ...] = ()

    @property
    def n_stages(self) -> int | None:
        n_stages = 1 + bool(self.machine.probability) + self.searches
        return None if n_stages == 1 else n_stages

    @property
    def searches(self) -> bool:
        """Whether folds are to choose C."""
        return isinstance(self.machine.C, str)

    def run(self, task: Task) -> Fitted:
        probability = self.machine.probability
        groups = self.data.groups
        calibration = self._folds(self.data.X, self.codes, groups) if probability else []
        if self.searches:
            with task.stage("search") as stage:
                tuned = self._with(self._search(stage))
        else:
            tuned = self._with(Choice(float(self.machine.C)))
        if self.n_stages is None:
            return tuned._solved(task)[0]
        with task.stage("fit") as stage:
            fitted, A = tuned._solved(stage)
        if not probability:
            return fitted
        with task.stage("calibration", len(calibration)) as stage:
            return fitted.with_values(**self.calibrate(*tuned._held_out(stage, calibration, A)))

    def _with(self, choice: Choice) -> MarginTraining:
        """This training with what was chosen."""
        problem, fitted = self.problem.weighted(choice.C), self.fitted | {"C_": choice.C}
        if choice.path:
            fitted["C_path_"] = choice.path
        if choice.shrinkage is not None and self.shrink is not None:
            problem = self.shrink(problem, choice.shrinkage)
            fitted |= {"shrinkage_": choice.shrinkage, "label_correlation_": problem.correlation}
        return replace(self, problem=problem, fitted=fitted, choices=choice.words)

    def _search(self, task: Task) -> Choice:
        """C, and the shrinkage of a label correlation, by folds of some of the examples."""
        random = np.random.RandomState(self.machine._seed())
        known = self.problem.known()
        few = search.MOST_EXAMPLES
        path = self._path_search(sampled_rows(known, self.codes, random, few))
        choice, n_examples = path.run(lambda: task.step("C")), path.problem.shape[0]
        if known.sum() >= search.MANY_EXAMPLES * few and path.folds:
            n_examples = min(int(known.sum()), search.MORE_EXAMPLES * few)
            rows = sampled_rows(known, self.codes, random, n_examples)
            choice = self._path_search(rows, one=True).second_look(choice)
            task.step("C")
        also = "" if choice.shrinkage is None else f" and shrinkage={choice.shrinkage:g}"
        words = (
            f"C={choice.C:.3g}{also} by {len(path.folds)} folds of {n_examples} examples, "
            f"held-out score {choice.score:.4f}"
        )
        logger.info("%s: %s.", type(self.machine).__name__, words)
        return replace(choice, words=(words,))

    def _path_search(self, rows: np.ndarray, *, one: bool = False) -> PathSearch:
        """A search on some rows, with all folds or the first one only."""
        folds = self._search_folds(rows)
        return PathSearch(
            self.problem if rows.size == self.data.X.shape[0] else self.part(rows),
            folds[:1] if one else folds,
            lambda problem, start: self.solve(problem, start, None, purpose="search"),
            lambda held_out, scores: self.judge(rows[held_out], scores),
            self.shrink,
            search.PARTS if one else 1,
        )

    def _search_folds(self, rows: np.ndarray) -> Folds:
        """Folds of some rows; fewer than asked for, or none, where no class has so many examples."""
        cv, codes = self.machine.cv, self.codes[rows]
        if not isinstance(cv, Integral) or cv < 2:
            every = self._folds(self.data.X, self.codes, self.data.groups)
            some = [(training[rows], held_out[rows]) for training, held_out in every]
            return [fold for fold in some if all(mask.any() for mask in fold)]
        most = rows.size if codes.ndim == 2 else int(np.bincount(codes).max(initial=0))
        if min(cv, most) < 2:
            return []
        groups = None if self.data.groups is None else np.asarray(self.data.groups)[rows]
        return self._folds(np.empty((rows.size, 0)), codes, groups, min(cv, most))

    def _folds(self, X: Any, codes: np.ndarray, groups: Any, cv: Any = None) -> Folds:
        """Masks of who trains and who is held out, one pair for each fold."""
        masks = fold_masks(
            self.machine.cv if cv is None else cv,
            X,
            codes,
            classifier=True,
            groups=groups,
            random_state=self.machine.random_state,
        )
        return list(zip(*(mask.T for mask in masks), strict=True))

    def _solved(self, task: Task) -> tuple[Fitted, np.ndarray]:
        """The record of the model, and all its coefficients."""
        fitted = Fitted(self.data.described | {"kernel_": self.data.kernel} | self.fitted)

        def partial(coefficients: np.ndarray) -> Fitted:
            return fitted.with_values(**self._function(coefficients))

        def report(progress: Progress) -> bool:
            return task.step("iteration", lambda: partial(progress.coefficients))

        # some solvers make coefficients for callbacks only, at a cost
        solution = self.solve(self.problem, self.start, report if task.watched else None)
        refuse_overflow(solution, self.data.X.dtype, f"C={self.machine.C!r}")
        A = solution.coefficients
        whole = partial(A)
        if self.review is not None:
            self.review(self.fitted["C_"], self._scores(whole, A))
        kept = replace(
            solution, coefficients=A if self.keep else None, latent=None, choices=self.choices
        )
        return whole.with_values(solution_=kept, n_iter_=max(1, solution.n_iter)), A

    def _scores(self, fitted: Fitted, A: np.ndarray) -> Iterator[np.ndarray]:
        """Scores of the training examples, some rows at a time where that is cheap."""
        coef, X = fitted.values.get("coef_"), self.data.X
        if coef is None:
            yield self.problem.latent(A)
            return
        for rows in row_blocks(X.shape[0], 8 * len(coef), BLOCK_BYTES):
            yield np.asarray(X[rows] @ coef.T) + fitted.values["intercept_"]

    def _held_out(self, task: Task, folds: list, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the held-out rows of all folds, and their scores."""
        rows, scores = [], []
        for training, held_out in folds:
            fold = self.problem.restricted(training)
            start = A * training[:, None]
            solution = self.solve(fold, start, None, purpose="calibration")
            latent = fold.latent(solution.coefficients)
            rows.append(np.flatnonzero(held_out))
            scores.append(latent[rows[-1]])
            task.step("fold")
        return np.concatenate(rows), np.concatenate(scores)

    def _function(self, A: np.ndarray) -> dict[str, Array]:
        """What scores are made from, in float64 as it was certified."""
        X, kernel = self.data.X, self.data.kernel
        mixed = self.problem.mixed
        intercept = self.machine.intercept_variance * mixed(A.sum(axis=0))
        function = {"intercept_": intercept}
        variance = kernel.linear_variance
        if variance is not None:
            # SciPy multiplies sparse rows by coef_.T, and copies it first unless its own rows are contiguous
            normals = mixed(transposed_product(X, A))
            return function | {"coef_": np.multiply(normals, variance, out=normals).T}
        support = np.flatnonzero(A.any(axis=1))
        function |= {"support_": support, "dual_coef_": mixed(A[support])}
        if kernel.is_precomputed:
            return function
        # a memory-mapped file is not copied if all of it is needed
        return function | {"X_fit_": X if support.size == X.shape[0] else X[support]}


def not_all_zero(caps: Any) -> Any:
    """Return the weights of the losses, unless they leave nothing to fit."""
    if not np.any(caps):
        raise ValueError(
            "class_weight × sample_weight is zero for every example: at least one must be positive."
        )
    return caps


def refuse_other_libraries(name: str, X: Any) -> None:
    """Refuse arrays that compiled loops cannot read."""
    if not (isinstance(X, np.ndarray) or sp.issparse(X)):
        raise TypeError(f"{name} needs NumPy arrays or SciPy CSR arrays, got {type(X)}.")
