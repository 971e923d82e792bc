"""Multi-label classification with a prior label correlation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gramian import solvers
from gramian._core.arrays import Array
from gramian._core.docstrings import described
from gramian._core.validation import check_number
from gramian.estimators.examples import TrainingData
from gramian.estimators.margin.calibration import fit_sigmoids, sigmoids
from gramian.estimators.margin.judging import METRICS, held_out_score, warn_of_silence
from gramian.estimators.margin.label_costs import SQUARED, label_weights, margins
from gramian.estimators.margin.label_signs import Labels, LabelSigns, in_kind
from gramian.estimators.margin.training import (
    MarginMachine,
    MarginTraining,
    Purpose,
    has_probability,
    not_all_zero,
    refuse_other_libraries,
)
from gramian.estimators.rules import choice, flag, or_auto
from gramian.estimators.single import FeatureMachine
from gramian.kernels import Kernel
from gramian.labels import check_correlation, shrunk
from gramian.operators.inputs.feature_rows import FeatureRows
from gramian.operators.inputs.gram_rows import GramRows, gram_is_faster
from gramian.solvers import MarginProblem, Solution

# A step costs n by rows of the Gram matrix and the entries of an example by features; rows need fewer steps. They are
# at least as fast up to so many examples for each entry: measured in 62 cases of 150 to 3000 examples with 20 to 2000
# entries and 5 to 99 labels (`benchmarks/defaults_labels.py`). Losses that are not squared need more steps, but for
# sparse examples, which have less in common; with less than `FEW_HINGE` dense ones working sets settle them soonest.
PER_ENTRY, PER_ENTRY_HINGE, FEW_HINGE = 2, 5, 400
# With a correlation between labels rows win up to 5000 sparse documents, and up to 300 examples in any case.
TINY, FEW_CORRELATED = 300, 5000

SOLVERS: dict[str, Callable[..., Solution]] = {
    "smo": solvers.smo,
    "blocked": solvers.blocked_ascent,
    "coordinate": solvers.coordinate_ascent,
}


@described(FeatureMachine, MarginMachine)
@dataclass(eq=False, repr=False)
class M3LClassifier(ClassifierMixin, MarginMachine):
    """Max-margin multi-label classification (M3L): one SVM for each label, coupled by a prior label correlation R.

    Minimises ``2 C Σ_il w_i max(0, 1 − y_il u_l(x_i))² + ½ Σ_lk (R⁻¹)_lk ⟨f_l, f_k⟩`` over ``u_l = f_l + b_l``
    with signs y = ±1; losses are not squared, as in the paper, with ``loss="hamming"``. A positive entry of R draws
    the functions of two labels towards each other, a negative one apart; with R = I they are independent SVMs
    (one-vs-all, each with twice this C). The cost of a fit grows linearly in the number of labels, whatever R. The
    optimum u is unique, and `solution_` certifies how close the fit is.

    A label without any positive (or negative) example is no error: its examples pull its intercept to one
    sign, and by itself its function is constant; R may let related labels shape it.

    Parameters
    ----------
    |C|
    label_correlation : array of shape (L, L), DataFrame or callable, default=None
        R, symmetric and positive definite; see `gramian.labels` for ways to make one. None is the identity. A
        DataFrame with names of labels is put into the order of y; a callable gets the signs of y, an array of −1
        and +1 of shape (n_samples, L), and returns R. For a multi-class y the labels are its classes; a binary y
        is a single label.
    |kernel|
    shrinkage : float or "auto", default="auto"
        How far R is shrunk towards its diagonal, from 0, R as it is, to 1, no correlation; see `gramian.labels.shrunk`.
        With ``C="auto"`` the same folds choose among 0, 0.5, 0.9 and 1; an R that is a callable is then made anew in
        each fold. With a number as C there are no folds, and "auto" is 0. Pass 0 if R says what the training labels
        do not: folds can judge by these only.
    loss : {"squared_hinge", "hamming", "correlation"}, array or callable, default="squared_hinge"
        What a wrong label costs. "squared_hinge" squares the losses, ``2 C Σ_il w_i max(0, 1 − y_il u_l)²``: it ranks
        labels better, and is minimised faster. All others have losses that are not squared, as in the paper, and keep
        fewer examples. "hamming" is 2 for each wrong label. An array of shape (L,) has a cost for each label, one
        of shape (2, L) the costs of false alarms in its first and of missed labels in its second row. A callable
        gets the signs of y and returns costs of shape (n_samples, L). "correlation" derives the costs from R,
        ``2 y_il (R y_i)_l``, which R must not make negative: a diagonally dominant R does not. Each must be ≥ 0.
    metric : {"hamming", "ranking"}, default="hamming"
        What ``C="auto"`` is judged by: the share of right labels, or how well decision values rank the labels of each
        example (label ranking average precision). For a one-dimensional y "hamming" is the accuracy.
    intercept_variance : float, default=1.0
        Prior variance of the intercepts, which R correlates like all else: they are the coefficients of a
        constant feature. 0 means none.
    class_weight : None, "balanced", dict or list of dict, default=None
        Weights of the examples without and with a label, ``{0: ..., 1: ...}``, for all labels or a list with one
        dict for each; "balanced" makes both weigh the same for each label. For a one-dimensional y: weights of
        its classes. They multiply ``sample_weight``.
    probability : bool, default=False
        Whether to calibrate `predict_proba` by a sigmoid for each label (Platt), one for all classes if y is
        one-dimensional, on decision values of held-out folds. It takes ``cv`` more fits, which start from the
        solution. R is not estimated anew in each fold.
    |cv|
    solver : {"auto", "smo", "blocked", "coordinate"}, default="auto"
        "coordinate" is dual coordinate ascent on features, for linear kernels; "blocked" and "smo" work on rows
        of the Gram matrix. "auto" is "coordinate" for a linear kernel, and "blocked" for others; also for a linear one
        with few examples: up to 2 for each entry of an example. For dense ones with losses that are not squared these
        are 5, or 400 in all; with a label correlation 300, or 5000 if there are more features than examples.
    tol : float, default=1e-4
        Stop when the duality gap is at most ``tol`` × objective.
    |max_iter|
    warm_start : bool, default=False
        Keep all dual coefficients in `solution_`, and start from them when the number of examples and labels is
        the same.
    random_state : int or RandomState, default=None
        Order in which solvers visit coefficients. None is always the same order.
    |copy_X|

    Attributes
    ----------
    classes_ : list of L arrays of shape (2,), or array of shape (n_classes,)
        The values of each column of y; the classes if y is one-dimensional.
    label_names_ : ndarray of shape (L,)
        Columns of y, if it was a data frame.
    |C_|
    |C_path_|
        It has "shrinkage", too, where that was to be chosen.
    label_correlation_ : ndarray of shape (L, L) or None
        R in the order of the labels, shrunk; None if there is none.
    shrinkage_ : float
        By how much, if there is a label correlation.
    coef_ : ndarray of shape (L, n_features)
        Weights of the features, for linear kernels.
    |support_|
    dual_coef_ : ndarray of shape (n_support, L)
        Their coefficients A R, for other kernels.
    |X_fit_|
    intercept_ : ndarray of shape (L,)
    calibration_ : ndarray of shape (2, L)
        Slope and offset of each sigmoid, with ``probability=True``.
    kernel_ : Kernel
        The kernel with all its numbers.
    solver_ : str
        Name of the solver that was used.
    solution_ : Solution
        Certificate, status and history. Its coefficients are kept with ``warm_start=True`` only.
    |n_iter_|
    |n_features_in_|
    |feature_names_in_|

    References
    ----------
    Hariharan, Vishwanathan & Varma (2012), Efficient max-margin multi-label classification with applications to
    zero-shot learning, Machine Learning 88.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import M3LClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [-1.0, -1.0]])
    >>> y = np.array([[0, 1], [1, 0], [1, 1], [0, 0]])
    >>> R = np.array([[1.0, -0.5], [-0.5, 1.0]])
    >>> model = M3LClassifier(C=10.0, label_correlation=R).fit(X, y)
    >>> model.predict(X)
    array([[0, 1],
           [1, 0],
           [1, 1],
           [0, 0]])
    >>> model.solution_.status
    'converged'
    """

    C: Any = "auto"
    label_correlation: Any = None
    kernel: Any = "linear"
    _: KW_ONLY
    shrinkage: Any = "auto"
    loss: Any = "squared_hinge"
    metric: str = "hamming"
    solver: str = "auto"
    warm_start: bool = False

    _rules = MarginMachine._rules | {
        "shrinkage": or_auto(partial(check_number, high=1)),
        "metric": choice(*METRICS),
        "solver": choice("auto", *SOLVERS),
        "warm_start": flag,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    # --- fit --------------------------------------------------------------------------------

    def _targets(self) -> Labels:
        return Labels()

    def _training(self, data: TrainingData) -> MarginTraining:
        refuse_other_libraries(type(self).__name__, data.X)
        labels = self._targets().read(data)
        R = self._correlation(labels)
        name, inputs = self._inputs(data.kernel, data.X, correlated=R is not None)
        margin, caps = margins(self.loss, labels.signs, R), self._caps(labels, data.weights)
        squared = isinstance(self.loss, str) and self.loss == SQUARED
        problem = MarginProblem(inputs, labels.signs, R, margin, caps, squared)

        def part(rows: np.ndarray) -> MarginProblem:
            X = self._examples().take(data.X, rows)
            _, inputs = self._inputs(data.kernel, X, correlated=R is not None)
            values = (labels.signs[rows], R, problem.margins[rows], problem.caps[rows])
            return MarginProblem(inputs, *values, squared)

        fitted = {
            "classes_": labels.classes,
            "label_correlation_": R,
            "solver_": name,
            "_kind": labels.kind,
        }
        if labels.has_columns and labels.names is not None:
            fitted["label_names_"] = labels.names
        if R is not None:
            fitted["shrinkage_"] = 0.0 if isinstance(self.shrinkage, str) else self.shrinkage
        free = isinstance(self.shrinkage, str) and isinstance(self.C, str)
        return MarginTraining(
            self,
            data,
            problem,
            part,
            self._solve,
            fitted,
            codes=labels.signs if labels.has_columns else labels.codes,
            judge=partial(held_out_score, self.metric, labels, problem.caps),
            calibrate=partial(_calibrated, labels, data.weights),
            shrink=partial(self._shrunk, labels, R) if R is not None and free else None,
            review=partial(warn_of_silence, labels) if labels.has_columns else None,
            start=self._start(problem),
            keep=self.warm_start,
        )

    def _inputs(self, kernel: Kernel, X: Array, *, correlated: bool) -> tuple[str, Any]:
        """The name of the solver, and the examples as it takes them."""
        name = self._solver_name(kernel, X, correlated=correlated)
        rows_of = FeatureRows.from_kernel if name == "coordinate" else GramRows
        return name, rows_of(kernel, X, self.intercept_variance)

    def _correlation(self, labels: LabelSigns) -> np.ndarray | None:
        """R as it was given, or shrunk by a number that was."""
        R: Any = self.label_correlation
        if isinstance(R, type):
            raise TypeError(
                f"label_correlation must be a matrix or a function of labels, got {R!r}."
            )
        if callable(R):
            R = R(labels.signs.copy())
        if R is None:
            return None
        if labels.kind == "binary" and np.shape(R) != (1, 1):
            raise ValueError(
                f"label_correlation must be None when y is one-dimensional with two classes, which is a single label; "
                f"got shape {np.shape(R)}. To correlate labels pass y with a column for each."
            )
        R = check_correlation(R, labels.signs.shape[1], labels.names)
        return R if isinstance(self.shrinkage, str) else shrunk(R, self.shrinkage)

    def _shrunk(
        self,
        labels: LabelSigns,
        R: np.ndarray,
        problem: MarginProblem,
        shrinkage: float,
        known: np.ndarray | None = None,
    ) -> MarginProblem:
        """The problem with R shrunk; an R that is made from labels is made anew from those that are known."""
        if callable(self.label_correlation) and known is not None:
            made = self._correlation(replace(labels, signs=problem.signs[known]))
            assert made is not None
            R = made
        R = shrunk(R, shrinkage)
        if isinstance(self.loss, str) and self.loss == "correlation":
            return replace(problem, correlation=R, margins=margins(self.loss, problem.signs, R))
        return replace(problem, correlation=R)

    def _solve(
        self, problem: MarginProblem, start: Any, callback: Any, *, purpose: Purpose = "model"
    ) -> Solution:
        options = {"start": start, "callback": callback, **self._limits(purpose)}
        if isinstance(problem.inputs, FeatureRows):
            return solvers.coordinate_ascent(problem, random_state=self._seed(), **options)
        name = "smo" if self.solver == "smo" and purpose != "search" else "blocked"
        return SOLVERS[name](problem, **options)

    def _caps(self, labels: LabelSigns, weights: np.ndarray | None) -> Any:
        """Largest coefficients for C = 1: twice the weights."""
        caps: Any = 2.0
        rows = None if weights is None else weights[:, None]
        for factor in (rows, label_weights(self.class_weight, labels, weights)):
            caps = caps if factor is None else caps * factor
        return not_all_zero(caps)

    def _solver_name(self, kernel: Kernel, X: Array, *, correlated: bool) -> str:
        linear = kernel.linear_variance is not None
        if self.solver == "coordinate" and not linear:
            raise ValueError(
                f"solver='coordinate' needs the kernel Linear(), possibly times constants, got {kernel!r}; use "
                "'blocked' or 'smo'."
            )
        if self.solver != "auto":
            return self.solver
        few = self._few(X, correlated=correlated)
        return "blocked" if not linear or gram_is_faster(X, few) else "coordinate"

    def _few(self, X: Array, *, correlated: bool) -> int:
        """Up to how many examples rows of the Gram matrix are at least as fast as features."""
        n, d = X.shape
        if correlated:
            return TINY if d <= n else FEW_CORRELATED
        if sp.issparse(X):
            return PER_ENTRY * X.nnz // n
        squared = isinstance(self.loss, str) and self.loss == "squared_hinge"
        return PER_ENTRY * d if squared else max(PER_ENTRY_HINGE * d, FEW_HINGE)

    def _start(self, problem: MarginProblem) -> np.ndarray | None:
        if not self.warm_start or not self.__sklearn_is_fitted__():
            return None
        before = self.solution_.coefficients
        return before if before is not None and before.shape == problem.shape else None

    # --- predict ----------------------------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision values; a label is predicted where its value is positive.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or kernel values of shape (n_samples, n_training) for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples, L), or (n_samples,) for a one-dimensional y with two classes
        """
        check_is_fitted(self)
        U = self._latent(X, "decision_function")
        return U[:, 0] if self._kind == "binary" else U

    def predict(self, X: Any) -> Any:
        """Predict labels, in the format of the y of `fit`.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or kernel values of shape (n_samples, n_training) for a precomputed kernel.

        Returns
        -------
        ndarray or CSR array of shape (n_samples, L), or ndarray of shape (n_samples,)
            Labels whose decision value is positive; of several classes the one with the largest.
        """
        check_is_fitted(self)
        return in_kind(self._kind, self.classes_, self._latent(X, "predict"))

    @available_if(has_probability)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label, each by itself; of each class for a one-dimensional y.

        They need not agree with `predict`: a sigmoid may pass ½ elsewhere than at a decision value of zero.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or kernel values of shape (n_samples, n_training) for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples, L), or (n_samples, n_classes) with rows that sum to one
        """
        P = sigmoids(self._calibrated("calibration_"), self._latent(X, "predict_proba"))
        if self._kind == "binary":
            return np.hstack([1 - P, P])
        if self._kind == "multiclass":
            total = P.sum(axis=1, keepdims=True)
            return np.where(total > 0, P / np.where(total > 0, total, 1), 1 / P.shape[1])
        return P


def _calibrated(
    labels: LabelSigns, weights: np.ndarray | None, rows: np.ndarray, values: np.ndarray
) -> dict[str, Any]:
    """Sigmoids of the decision values of held-out rows."""
    of_rows, signs = None if weights is None else weights[rows], labels.signs[rows]
    if labels.kind == "multiclass":  # one sigmoid for all classes keeps their order
        of_rows = None if of_rows is None else np.repeat(of_rows, signs.shape[1])
        values, signs = values.reshape(-1, 1), signs.reshape(-1, 1)
    return {"calibration_": fit_sigmoids(values, signs, of_rows)}
