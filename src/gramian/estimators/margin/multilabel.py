"""Multi-label classification with a prior label correlation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gramian import solvers
from gramian._core.arrays import Array
from gramian._core.validation import check_choice, check_flag, check_number, check_sample_weight
from gramian.estimators.inputs import all_or_nothing
from gramian.estimators.margin.calibration import fit_sigmoids, sigmoids
from gramian.estimators.margin.label_costs import label_weights, margins
from gramian.estimators.margin.label_signs import LabelSigns, in_kind, label_signs
from gramian.estimators.margin.representer import RepresenterModel
from gramian.kernels import Kernel
from gramian.labels import check_correlation
from gramian.operators.inputs.feature_rows import FeatureRows
from gramian.operators.inputs.gram_rows import GramRows, gram_is_faster
from gramian.operators.inputs.linear import linear_variance
from gramian.selection import fold_masks
from gramian.solvers import MarginProblem, Solution

__all__ = ["M3LClassifier"]

SOLVERS: dict[str, Callable[..., Solution]] = {
    "smo": solvers.smo,
    "blocked": solvers.blocked_ascent,
    "coordinate": solvers.coordinate_ascent,
}


def _needs_probability(estimator: M3LClassifier) -> bool:
    if not estimator.probability:
        raise AttributeError(
            "predict_proba needs M3LClassifier(probability=True), which calibrates decision values on held-out folds."
        )
    return True


class M3LClassifier(ClassifierMixin, RepresenterModel):
    """Max-margin multi-label classification (M3L): one SVM for each label, coupled by a prior label correlation R.

    Minimises ``2 C Σ_il w_i max(0, 1 − y_il u_l(x_i)) + ½ Σ_lk (R⁻¹)_lk ⟨f_l, f_k⟩`` over ``u_l = f_l + b_l``
    with signs y = ±1. A positive entry of R draws the functions of two labels towards each other, a negative one
    apart; with R = I they are independent SVMs (one-vs-all, each with twice this C). The cost of a fit grows
    linearly in the number of labels, whatever R. The optimum u is unique, and `solution_` certifies how close the
    fit is.

    A label without any positive (or negative) example is no error: its examples pull its intercept to one
    sign, and by itself its function is constant; R may let related labels shape it.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, > 0.
    label_correlation : array of shape (L, L), DataFrame or callable, default=None
        R, symmetric and positive definite; see `gramian.labels` for ways to make one. None is the identity. A
        DataFrame with names of labels is put into the order of y; a callable gets the signs of y, an array of −1
        and +1 of shape (n_samples, L), and returns R. For a multi-class y the labels are its classes; a binary y
        is a single label.
    kernel : str or Kernel, default="linear"
        A kernel of `gramian.kernels`, or its name: "rbf", "matern12", "matern32", "matern52",
        "rational_quadratic", "linear", "polynomial", "precomputed". Names take their scale from the
        training data.
    loss : {"hamming", "correlation"}, array or callable, default="hamming"
        What a wrong label costs. "hamming" is 2 for each. An array of shape (L,) has a cost for each label, one
        of shape (2, L) the costs of false alarms in its first and of missed labels in its second row. A callable
        gets the signs of y and returns costs of shape (n_samples, L). "correlation" derives the costs from R,
        ``2 y_il (R y_i)_l``, which R must not make negative: a diagonally dominant R does not. Each must be ≥ 0.
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
    cv : int, splitter or iterable of splits, default=5
        Folds for ``probability``.
    solver : {"auto", "smo", "blocked", "coordinate"}, default="auto"
        "coordinate" is dual coordinate ascent on features, for linear kernels; "blocked" and "smo" work on rows
        of the Gram matrix. "auto" is "coordinate" for a linear kernel unless there are few examples (at most 1000, or
        5000 with a label correlation) or fewer than dense features, and "blocked" otherwise.
    tol : float, default=1e-4
        Stop when the duality gap is at most ``tol`` × objective.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    warm_start : bool, default=False
        Keep all dual coefficients in `solution_`, and start from them when the number of examples and labels is
        the same.
    random_state : int or RandomState, default=None
        Order in which solvers visit coefficients. None is always the same order.

    Attributes
    ----------
    classes_ : list of L arrays of shape (2,), or array of shape (n_classes,)
        The values of each column of y; the classes if y is one-dimensional.
    label_names_ : ndarray of shape (L,)
        Columns of y, if it was a data frame.
    label_correlation_ : ndarray of shape (L, L) or None
        R in the order of the labels; None if there is none.
    coef_ : ndarray of shape (L, n_features)
        Weights of the features, for linear kernels.
    support_ : ndarray of int of shape (n_support,)
        Examples with a coefficient that is not zero, for other kernels.
    dual_coef_ : ndarray of shape (n_support, L)
        Their coefficients A R, for other kernels.
    X_fit_ : array or sparse array of shape (n_support, n_features)
        Their features, for other kernels that are not precomputed.
    intercept_ : ndarray of shape (L,)
    calibration_ : ndarray of shape (2, L)
        Slope and offset of each sigmoid, with ``probability=True``.
    kernel_ : Kernel
        The kernel with all its numbers.
    solver_ : str
        Name of the solver that was used.
    solution_ : Solution
        Certificate, status and history. Its coefficients are kept with ``warm_start=True`` only.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

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

    classes_: Any
    label_correlation_: np.ndarray | None
    calibration_: np.ndarray
    solution_: Solution
    _kind: str

    _optional = ("label_names_", "calibration_")

    def __init__(
        self,
        C: float = 1.0,
        label_correlation: Any = None,
        kernel: Any = "linear",
        *,
        loss: Any = "hamming",
        intercept_variance: float = 1.0,
        class_weight: Any = None,
        probability: bool = False,
        cv: Any = 5,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.C = C
        self.label_correlation = label_correlation
        self.kernel = kernel
        self.loss = loss
        self.intercept_variance = intercept_variance
        self.class_weight = class_weight
        self.probability = probability
        self.cv = cv
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state

    # --- scikit-learn -----------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    # --- validate ---------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._kernel_asked_for()
        check_number("C", self.C, strict=True)
        check_number("intercept_variance", self.intercept_variance)
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        check_number("tol", self.tol)
        if self.max_iter is not None:
            check_number("max_iter", self.max_iter, low=1, whole=True)
        check_flag("probability", self.probability)
        check_flag("warm_start", self.warm_start)

    def _correlation(self, labels: LabelSigns) -> np.ndarray | None:
        R: Any = self.label_correlation
        if callable(R):
            R = R(labels.signs.copy())
        if R is None:
            return None
        if labels.kind == "binary" and np.shape(R) != (1, 1):
            raise ValueError(
                f"label_correlation must be None when y is one-dimensional with two classes, which is a single label; "
                f"got shape {np.shape(R)}. To correlate labels pass y with a column for each."
            )
        return check_correlation(R, labels.signs.shape[1], labels.names)

    def _caps(self, labels: LabelSigns, weights: np.ndarray | None) -> Any:
        """Largest coefficients: 2 C × weights."""
        caps = 2.0 * self.C
        if weights is not None:
            caps = caps * weights[:, None]
        of_classes = label_weights(self.class_weight, labels)
        if of_classes is not None:
            caps = caps * of_classes
        if not np.any(caps):
            raise ValueError(
                "class_weight × sample_weight is zero for every example: at least one must be positive."
            )
        return caps

    def _solver_name(self, kernel: Kernel, X: Array, *, correlated: bool) -> str:
        linear = linear_variance(kernel) is not None
        if self.solver == "coordinate" and not linear:
            raise ValueError(
                f"solver='coordinate' needs the kernel Linear(), possibly times constants, got {kernel!r}; use "
                "'blocked' or 'smo'."
            )
        if self.solver != "auto":
            return self.solver
        few_examples = 5000 if correlated else 1000
        return "blocked" if not linear or gram_is_faster(X, few_examples) else "coordinate"

    # --- fit --------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> M3LClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or the Gram matrix of shape (n_samples, n_samples) for a precomputed kernel.
        y : array, sparse array or DataFrame of shape (n_samples, L), or array of shape (n_samples,)
            Which labels each example has: 0 and 1, −1 and 1, or booleans; 0 and 1 if sparse. Or one-dimensional:
            the class of each example, two or more.
        sample_weight : array of shape (n_samples,), default=None
            Weight zero leaves an example out.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._check_parameters()
        X, checked = self._validated(X, y, multi_output=True)
        self._refuse_other_libraries(X)
        labels = label_signs(checked, y)
        weights = check_sample_weight(sample_weight, np.empty((X.shape[0], 1)))
        kernel = self._kernel_asked_for().resolve(X, weights)
        R = self._correlation(labels)
        name = self._solver_name(kernel, X, correlated=R is not None)
        margin, caps = margins(self.loss, labels.signs, R), self._caps(labels, weights)
        folds = None
        if self.probability:
            split_by = labels.signs if labels.has_columns else labels.codes
            folds = fold_masks(self.cv, X, split_by, classifier=True)
        rows_of = FeatureRows.from_kernel if name == "coordinate" else GramRows
        inputs = rows_of(kernel, X, self.intercept_variance)
        problem = MarginProblem(inputs, labels.signs, R, margin, caps)
        fitted = {
            "classes_": labels.classes,
            "kernel_": kernel,
            "label_correlation_": R,
            "solver_": name,
            "_kind": labels.kind,
        }
        if labels.has_columns and labels.names is not None:
            fitted["label_names_"] = labels.names
        chosen = self._solver(name)

        def solve(problem: MarginProblem, start: np.ndarray | None, callback: Any) -> Solution:
            return chosen(problem, start=start, callback=callback)

        def calibrate(rows: np.ndarray, values: np.ndarray) -> dict[str, Any]:
            of_rows, signs = None if weights is None else weights[rows], labels.signs[rows]
            if labels.kind == "multiclass":  # one sigmoid for all classes keeps their order
                of_rows = None if of_rows is None else np.repeat(of_rows, signs.shape[1])
                values, signs = values.reshape(-1, 1), signs.reshape(-1, 1)
            return {"calibration_": fit_sigmoids(values, signs, of_rows)}

        self._solve(
            problem,
            fitted,
            X,
            checked,
            solve,
            start=self._start(problem),
            mix=R,
            folds=folds,
            calibrate=calibrate,
            keep=self.warm_start,
        )

    def _solver(self, name: str) -> Callable[..., Solution]:
        """The solver with the settings of this estimator."""
        solver = partial(SOLVERS[name], tol=self.tol, max_iter=self.max_iter)
        seed = self._seed()
        # the other two are deterministic
        return partial(solver, random_state=seed) if name == "coordinate" else solver

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

    @available_if(_needs_probability)
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
        check_is_fitted(self)
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                "This M3LClassifier was fitted with probability=False; fit it again with True."
            )
        P = sigmoids(self.calibration_, self._latent(X, "predict_proba"))
        if self._kind == "binary":
            return np.hstack([1 - P, P])
        if self._kind == "multiclass":
            total = P.sum(axis=1, keepdims=True)
            return np.where(total > 0, P / np.where(total > 0, total, 1), 1 / P.shape[1])
        return P
