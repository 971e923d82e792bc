"""Learning from pairs: drug and target, user and item, example and task.

The losses of single examples with a kernel of pairs, see `kernels.pairwise` and `operators.pair_gram`; ranking has its
own, `losses.ranking`. Ridge regression, the support vector machine and ranking are those of Airola & Pahikkala.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.callback import with_callbacks
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from gramian import solvers
from gramian._core.validation import check_choice, check_sample_weight
from gramian.estimators.classifier import HingeClassifier, LogisticClassifier
from gramian.estimators.early_stopping import Validation
from gramian.estimators.pairs.machine import PairwiseMachine, checked_path
from gramian.estimators.regression import KernelRidge
from gramian.kernels.pairwise import Gaussian
from gramian.losses import Loss, Squared, SquaredRanking
from gramian.metrics import concordance_index
from gramian.operators import OperatorRecord
from gramian.pairs import Pairs
from gramian.selection.prior import assemble_prior
from gramian.solvers import KroneckerRidge, Problem

__all__ = [
    "PairwiseLogisticRegression",
    "PairwiseRanker",
    "PairwiseRidge",
    "PairwiseSVC",
    "pairwise_from_svc",
]


class _PairwiseRegressor(PairwiseMachine, KernelRidge):
    """Numbers for pairs; validated by the concordance index."""

    def _validation(self, examples: tuple[Any, Any]) -> Validation:
        X, y = self._validation_pairs(*examples)
        if np.all(y == y[:1]):
            raise ValueError(
                "y_val must hold at least two different values to be scored by the concordance index, got "
                f"{y[:3].tolist()!r}."
            )
        return self._watched(X, lambda latent: concordance_index(y, latent[:, 0]))


class PairwiseRidge(_PairwiseRegressor):
    """Ridge regression on pairs.

    Minimises ``Σ_h w_h ½ (u_h − y_h)² + (λ/2) ‖f‖²`` over functions f of pairs, ``u = f + b``. The linear system
    ``(𝒦 + λI) a = y`` is solved by minimal residuals with one sampled vec trick for each iteration, never with an
    n × n matrix; in closed form if every pair of the objects is observed once.

    Parameters
    ----------
    left_kernel, right_kernel : str or Kernel, default=None
        Kernels of the left and right objects: objects of `gramian.kernels` or their names, "precomputed" for tables
        that are matrices of similarities. None is "rbf".
    pairwise_kernel : str or PairwiseKernel, default="kronecker"
        How they make a kernel of pairs: "linear", "poly2d", "kronecker", "gaussian", "cartesian", and for pairs of one
        kind of object, whose kernel is ``left_kernel``, "symmetric", "antisymmetric", "ranking", "mlpk"; see
        `gramian.kernels.pairwise`.
    left_columns, right_columns : slice, list of int or str, or mask, default=None
        For a wide table X, with the features of both objects in each row: which columns belong to which object. One
        given: the other is the rest. None given: the first half is left. Not used for `Pairs`.
    optimize : None, "cv" or CrossValidationSearch, default=None
        "cv" learns all kernel parameters that are not fixed, and the variance (1/λ), by the gradient of the
        cross-validated loss.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``optimize``; ``PairKFold(setting)`` learns for new objects.
    regularization : float, default=1.0
        λ > 0.
    intercept_variance : float, default=0.0
        Prior variance σ² of the intercept; 0 means none.
    operator : {"auto", "dual", "primal"}, default="auto"
        "primal" multiplies through products of features (linear kernels only); "auto" takes the cheaper one.
    solver : {"auto", "minres", "kernel_cg", "newton", "closed_form"}, default="auto"
        "auto" is "closed_form" (two eigendecompositions) for complete pairs with the Kronecker kernel, without weights,
        intercept and validation pairs, else "minres", which also takes similarities that are no kernels.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    patience : int, default=10
        With validation pairs: iterations without a better score after which to stop.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of pairs is the same.
    random_state : int, default=None
        Not used by the deterministic solvers; accepted by all estimators.

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples, n_outputs)
        One coefficient for each training pair.
    intercept_ : array of shape (n_outputs,)
    kernel_ : Kernel
        The pairwise kernel with all its numbers.
    variances_ : ndarray of shape (1,)
        Its variance.
    validation_score_ : ndarray of shape (n_iterations,)
        Concordance index of the validation pairs after each iteration.
    best_iteration_ : int
        The iteration that the coefficients are from, counted from 1.
    cv_loss_ : float
        Cross-validated loss of the learned parameters.
    optimization_path_ : OptimizationPath
        How they were found.
    operator_ : OperatorRecord
        Which form of the operator was used, and why.
    solution_ : Solution
        Certificate, status and history.
    n_iter_ : int
    X_fit_ : Pairs
        The training pairs.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    See Also
    --------
    gramian.PairKFold : Folds for pairs, for four ways of being new.

    Examples
    --------
    >>> from gramian import PairwiseRidge
    >>> from gramian.datasets import make_interactions
    >>> from gramian.metrics import concordance_index
    >>> pairs, y = make_interactions(random_state=0)
    >>> model = PairwiseRidge(regularization=0.1).fit(pairs[:500], y[:500])
    >>> bool(concordance_index(y[500:], model.predict(pairs[500:])) > 0.8)
    True
    >>> model.solution_.status
    'converged'
    """

    _solvers = PairwiseMachine._solvers | {
        "minres": solvers.minres,
        "closed_form": solvers.kronecker_exact,
    }

    def __init__(
        self,
        left_kernel: Any = None,
        right_kernel: Any = None,
        *,
        pairwise_kernel: Any = "kronecker",
        left_columns: Any = None,
        right_columns: Any = None,
        optimize: Any = None,
        cv: Any = 5,
        regularization: float = 1.0,
        intercept_variance: float = 0.0,
        operator: str = "auto",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        patience: int = 10,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.left_kernel = left_kernel
        self.right_kernel = right_kernel
        self.pairwise_kernel = pairwise_kernel
        self.left_columns = left_columns
        self.right_columns = right_columns
        self.optimize = optimize
        self.cv = cv
        self.regularization = regularization
        self.intercept_variance = intercept_variance
        self.operator = operator
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> PairwiseRidge:
        """Fit the model.

        Parameters
        ----------
        X : Pairs, or array or sparse array of shape (n_samples, n_features)
            Pairs, or a wide table with the features of both objects in each row; equal ones are found.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,), default=None
        X_val, y_val : as X and y, default=None
            Pairs to validate on: every iteration is scored, the best one is kept, and ``patience`` iterations
            without a better one stop the fit.

        Returns
        -------
        self
        """
        return self._fit_pairs(X, y, sample_weight, X_val, y_val)

    def _solver_name(self, problem: Problem, record: OperatorRecord, watched: bool) -> str:
        if self.solver != "auto":
            return self.solver
        return "closed_form" if not watched and solvers.has_closed_form(problem) else "minres"

    def fit_path(
        self, X: Any, y: Any, regularizations: Sequence[float], sample_weight: Any = None
    ) -> list[PairwiseRidge]:
        """Fit a model for each λ, all of them from one Krylov space.

        The products of a single fit serve the whole path, see `solvers.minres`.

        Parameters
        ----------
        X : Pairs or array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        regularizations : sequence of float
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        list of PairwiseRidge
            Fitted copies of this one, in the order of ``regularizations``; this one stays as it is. The history in
            their `solution_` is that of the whole path, with objectives and gaps summed.

        Examples
        --------
        >>> from gramian import PairwiseRidge
        >>> from gramian.datasets import make_interactions
        >>> models = PairwiseRidge().fit_path(*make_interactions(), [0.01, 0.1, 1.0])
        >>> [model.regularization for model in models]
        [0.01, 0.1, 1.0]
        """
        values = checked_path(regularizations)
        if self.solver not in ("auto", "minres") or self.optimize is not None or np.ndim(y) != 1:
            return super().fit_path(X, y, regularizations, sample_weight)
        whole = _Path(**clone(self).get_params(deep=False)).set_params(solver="minres")
        whole.regularizations = values
        whole.fit(X, y, sample_weight)
        objectives = whole.objectives(y, sample_weight)
        models = []
        for k, value in enumerate(values.tolist()):
            model = clone(self).set_params(regularization=value)
            fitted = {name: v for name, v in vars(whole).items() if name not in vars(model)}
            fitted.pop("regularizations")
            vars(model).update(copy.copy(fitted))
            model.dual_coef_ = whole.dual_coef_[:, k : k + 1].copy()
            model.intercept_ = whole.intercept_[k : k + 1].copy()
            gap = whole.solution_.gaps[k : k + 1]
            model.solution_ = replace(
                whole.solution_,
                coefficients=model.dual_coef_,
                objective=float(objectives[k]),
                gap=float(gap[0]),
                gaps=gap,
            )
            models.append(model)
        return models

    def held_out_predictions(
        self, setting: str = "A", left_folds: Any = None, right_folds: Any = None
    ) -> np.ndarray:
        """Predict each training pair by the model that was trained without it, without fitting again.

        For complete pairs with the Kronecker kernel, see `solvers.KroneckerRidge.held_out`.

        Parameters
        ----------
        setting : {"A", "B", "C", "D"}, default="A"
            What the model has not seen: the pair, any pair of its left object, any of its right object, or any of both.
        left_folds, right_folds : array of int of shape (n_left,), (n_right,), default=None
            Objects, in the order of ``X_fit_``, that are left out together; None leaves them out one by one.

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import Pairs, PairwiseRidge
        >>> pairs = Pairs.complete(np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [1.0]]))
        >>> y = np.array([0.0, 0.0, 1.0, 2.0, 2.0, 4.0])
        >>> PairwiseRidge(regularization=0.1).fit(pairs, y).held_out_predictions("D").shape
        (6,)
        """
        check_is_fitted(self)
        operator, _ = self._prior.operator(
            self.X_fit_, self.dual_coef_, self.intercept_variance, "dual", learning=False
        )
        factors = operator.kronecker()
        if factors is None or self.dual_coef_.shape[1] != 1 or self._weighted:
            raise ValueError(
                "held_out_predictions needs every pair of the objects exactly once, pairwise_kernel='kronecker' or "
                "'gaussian', intercept_variance=0, no sample_weight and one output. Use PairKFold and fit again."
            )
        K, T, order = factors
        coefficients = self.dual_coef_[order, 0].reshape(len(K), len(T)).astype(np.float64)
        Y = (
            K @ coefficients @ T + self.regularization * coefficients
        )  # what the model was trained on
        ridge = KroneckerRidge(K, T)
        values = ridge.held_out(Y, self.regularization, setting, left_folds, right_folds)
        out = np.empty(order.size)
        out[order] = values.reshape(-1)
        return out


class _Path(PairwiseRidge):
    """Ridge regression for several λ at once, as independent columns."""

    regularizations: np.ndarray

    def _strengths(self) -> Any:
        return self.regularizations

    def objectives(self, y: Any, sample_weight: Any) -> np.ndarray:
        """The objective for each λ, by one product with all coefficients."""
        A = self.dual_coef_.astype(np.float64)[:, None, :]
        gram, _ = self._prior.operator(
            self.X_fit_, A, self.intercept_variance, self.operator, learning=False
        )
        targets = np.asarray(y, dtype=np.float64)[:, None]
        weights = check_sample_weight(sample_weight, targets)
        problem = Problem(gram, Squared(), targets, self.regularizations, weights)
        return problem.objective(A, gram.accurate(A))


class PairwiseRanker(_PairwiseRegressor):
    """Ranking of pairs: differences of scores are to be those of y.

    Minimises ``¼ Σ_h Σ_g w_h w_g (y_h − u_h − y_g + u_g)² + (λ/2) ‖f‖²`` over all pairs h, g, or over those of one
    group (Airola & Pahikkala, Table 1). Only differences within a group are learned: scores are free of an offset.

    Parameters
    ----------
    left_kernel, right_kernel : str or Kernel, default=None
        Kernels of the left and right objects: objects of `gramian.kernels` or their names, "precomputed" for tables
        that are matrices of similarities. None is "rbf".
    pairwise_kernel : str or PairwiseKernel, default="kronecker"
        How they make a kernel of pairs: "linear", "poly2d", "kronecker", "gaussian", "cartesian", and for pairs of one
        kind of object, whose kernel is ``left_kernel``, "symmetric", "antisymmetric", "ranking", "mlpk"; see
        `gramian.kernels.pairwise`.
    left_columns, right_columns : slice, list of int or str, or mask, default=None
        For a wide table X, with the features of both objects in each row: which columns belong to which object. One
        given: the other is the rest. None given: the first half is left. Not used for `Pairs`.
    groups : {None, "left", "right"}, default=None
        Which pairs are compared: all of them, those of one left object, or those of one right object.
    optimize : None, "cv" or CrossValidationSearch, default=None
        "cv" learns all kernel parameters that are not fixed, and the variance (1/λ), by the gradient of the
        cross-validated loss.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``optimize``; ``PairKFold(setting)`` learns for new objects.
    regularization : float, default=1.0
        λ > 0.
    intercept_variance : float, default=0.0
        Prior variance σ² of the intercept; 0 means none.
    operator : {"auto", "dual", "primal"}, default="auto"
        "primal" multiplies through products of features (linear kernels only); "auto" takes the cheaper one.
    solver : {"auto", "kernel_cg", "newton"}, default="auto"
        "auto" is "kernel_cg": conjugate gradients in the RKHS inner product.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    patience : int, default=10
        With validation pairs: iterations without a better score after which to stop.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of pairs is the same.
    random_state : int, default=None
        Not used by the deterministic solvers; accepted by all estimators.

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples, n_outputs)
        One coefficient for each training pair.
    intercept_ : array of shape (n_outputs,)
    kernel_ : Kernel
        The pairwise kernel with all its numbers.
    variances_ : ndarray of shape (1,)
        Its variance.
    validation_score_ : ndarray of shape (n_iterations,)
        Concordance index of the validation pairs after each iteration.
    best_iteration_ : int
        The iteration that the coefficients are from, counted from 1.
    cv_loss_ : float
        Cross-validated loss of the learned parameters.
    optimization_path_ : OptimizationPath
        How they were found.
    operator_ : OperatorRecord
        Which form of the operator was used, and why.
    solution_ : Solution
        Certificate, status and history.
    n_iter_ : int
    X_fit_ : Pairs
        The training pairs.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from gramian import PairwiseRanker
    >>> from gramian.datasets import make_interactions
    >>> pairs, y = make_interactions(random_state=0)
    >>> model = PairwiseRanker(groups="left", regularization=1.0).fit(pairs[:500], y[:500])
    >>> bool(model.score(pairs[500:], y[500:]) > 0.8)
    True
    """

    def __init__(
        self,
        left_kernel: Any = None,
        right_kernel: Any = None,
        *,
        pairwise_kernel: Any = "kronecker",
        left_columns: Any = None,
        right_columns: Any = None,
        groups: str | None = None,
        optimize: Any = None,
        cv: Any = 5,
        regularization: float = 1.0,
        intercept_variance: float = 0.0,
        operator: str = "auto",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        patience: int = 10,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.left_kernel = left_kernel
        self.right_kernel = right_kernel
        self.pairwise_kernel = pairwise_kernel
        self.left_columns = left_columns
        self.right_columns = right_columns
        self.groups = groups
        self.optimize = optimize
        self.cv = cv
        self.regularization = regularization
        self.intercept_variance = intercept_variance
        self.operator = operator
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> PairwiseRanker:
        """Fit the model.

        Parameters
        ----------
        X : Pairs, or array or sparse array of shape (n_samples, n_features)
            Pairs, or a wide table with the features of both objects in each row; equal ones are found.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None
        X_val, y_val : as X and y, default=None
            Pairs to validate on: every iteration is scored, the best one is kept, and ``patience`` iterations
            without a better one stop the fit.

        Returns
        -------
        self
        """
        return self._fit_pairs(X, y, sample_weight, X_val, y_val)

    _several_outputs = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.groups is not None:
            check_choice("groups", self.groups, ("left", "right"))

    def _loss(self, X: Any) -> Loss:
        if self.groups is None:
            return SquaredRanking()
        index = X.left_index if self.groups == "left" else X.right_index
        return SquaredRanking(np.unique(index, return_inverse=True)[1])

    def _solver_name(self, problem: Problem, record: OperatorRecord, watched: bool) -> str:
        return "kernel_cg" if self.solver == "auto" else self.solver

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the concordance index, within groups if there are any.

        Parameters
        ----------
        X : Pairs or array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        float
            Mean over the groups that have something to compare.
        """
        check_is_fitted(self)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        pairs = self._validated_new(X, "score")
        return self._concordance(pairs, np.asarray(y, dtype=float), self.predict(pairs), weights)

    def _validation(self, examples: tuple[Any, Any]) -> Validation:
        X, y = self._validation_pairs(*examples)
        if np.isnan(self._concordance(X, y, np.zeros(len(y)), None)):
            raise ValueError(
                "y_val must hold at least two different values"
                + (" within a group" if self.groups else "")
                + f" to be scored by the concordance index, got {y[:3].tolist()!r}."
            )
        return self._watched(X, lambda latent: self._concordance(X, y, latent[:, 0], None))

    def _concordance(
        self, X: Pairs, y: np.ndarray, scores: np.ndarray, weights: np.ndarray | None
    ) -> float:
        """Mean concordance index over the groups that have something to compare; nan if none has."""
        if self.groups is None:
            index = np.zeros(len(y), dtype=np.int64)
        else:
            index = X.left_index if self.groups == "left" else X.right_index
        values = []
        for group in np.unique(index):
            part = np.flatnonzero(index == group)
            if np.ptp(y[part]) > 0:
                own = None if weights is None else weights[part]
                values.append(concordance_index(y[part], scores[part], own))
        return float(np.mean(values)) if values else float("nan")


class _PairwiseClassifier(PairwiseMachine):
    """Classes for pairs; validated by the area under the ROC curve, or the accuracy if there are more than two."""

    share = "tied"

    def _validation(self, examples: tuple[Any, Any], classes: np.ndarray) -> Validation:
        X, y = self._validation_pairs(*examples)
        unknown = np.setdiff1d(y, classes)
        if unknown.size:
            raise ValueError(f"y_val holds classes that y does not have: {unknown[:5].tolist()!r}.")
        if classes.size > 2:
            return self._watched(X, lambda U: accuracy_score(y, classes[np.argmax(U, axis=1)]))
        positive = y == classes[1]
        if positive.all() or not positive.any():
            raise ValueError(
                f"y_val must hold both classes to be scored by the area under the ROC curve, got {y[0]!r} only."
            )
        return self._watched(X, lambda U: float(roc_auc_score(positive, U[:, 0])))


class PairwiseLogisticRegression(_PairwiseClassifier, LogisticClassifier):
    """Logistic regression on pairs, with probabilities.

    Minimises ``Σ_h w_h loss(u_h, y_h) + (λ/2) ‖f‖²`` over functions f of pairs, ``u = f + b``, with the logistic loss,
    or the softmax over more than two classes.

    Parameters
    ----------
    left_kernel, right_kernel : str or Kernel, default=None
        Kernels of the left and right objects: objects of `gramian.kernels` or their names, "precomputed" for tables
        that are matrices of similarities. None is "rbf".
    pairwise_kernel : str or PairwiseKernel, default="kronecker"
        How they make a kernel of pairs: "linear", "poly2d", "kronecker", "gaussian", "cartesian", and for pairs of one
        kind of object, whose kernel is ``left_kernel``, "symmetric", "antisymmetric", "ranking", "mlpk"; see
        `gramian.kernels.pairwise`.
    left_columns, right_columns : slice, list of int or str, or mask, default=None
        For a wide table X, with the features of both objects in each row: which columns belong to which object. One
        given: the other is the rest. None given: the first half is left. Not used for `Pairs`.
    optimize : None, "cv" or CrossValidationSearch, default=None
        "cv" learns all kernel parameters that are not fixed, and the variance (1/λ), by the gradient of the
        cross-validated loss.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``optimize``; ``PairKFold(setting)`` learns for new objects.
    regularization : float, default=1.0
        λ > 0.
    intercept_variance : float, default=0.0
        Prior variance σ² of the intercept; 0 means none.
    operator : {"auto", "dual", "primal"}, default="auto"
        "primal" multiplies through products of features (linear kernels only); "auto" takes the cheaper one.
    solver : {"auto", "newton", "kernel_cg"}, default="auto"
        "auto" is "newton": truncated Newton in the RKHS inner product, with a line search.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    max_inner : int, default=None
        Most conjugate gradient steps within a Newton step; None is the solver's own limit. Few of them, and few
        iterations, regularise as well (Airola & Pahikkala §5.2).
    patience : int, default=10
        With validation pairs: iterations without a better score after which to stop.
    class_weight : dict or "balanced", default=None
        Weights of the classes; they multiply ``sample_weight``.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of pairs is the same.
    random_state : int, default=None
        Not used by the deterministic solvers; accepted by all estimators.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n_samples, n_outputs)
        One coefficient for each training pair.
    intercept_ : array of shape (n_outputs,)
    kernel_ : Kernel
        The pairwise kernel with all its numbers.
    variances_ : ndarray of shape (1,)
        Its variance.
    validation_score_ : ndarray of shape (n_iterations,)
        Area under the ROC curve (accuracy for more than two classes) of the validation pairs after each iteration.
    best_iteration_ : int
        The iteration that the coefficients are from, counted from 1.
    cv_log_loss_ : float
        Cross-validated loss of the learned parameters.
    optimization_path_ : OptimizationPath
        How they were found.
    operator_ : OperatorRecord
        Which form of the operator was used, and why.
    solution_ : Solution
        Certificate, status and history.
    n_iter_ : int
    X_fit_ : Pairs
        The training pairs.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from gramian import PairwiseLogisticRegression
    >>> from gramian.datasets import make_interactions
    >>> pairs, y = make_interactions(binary=True, random_state=0)
    >>> model = PairwiseLogisticRegression(regularization=0.1).fit(pairs, y)
    >>> model.predict_proba(pairs[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        left_kernel: Any = None,
        right_kernel: Any = None,
        *,
        pairwise_kernel: Any = "kronecker",
        left_columns: Any = None,
        right_columns: Any = None,
        optimize: Any = None,
        cv: Any = 5,
        regularization: float = 1.0,
        intercept_variance: float = 0.0,
        operator: str = "auto",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        max_inner: int | None = None,
        patience: int = 10,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.left_kernel = left_kernel
        self.right_kernel = right_kernel
        self.pairwise_kernel = pairwise_kernel
        self.left_columns = left_columns
        self.right_columns = right_columns
        self.optimize = optimize
        self.cv = cv
        self.regularization = regularization
        self.intercept_variance = intercept_variance
        self.operator = operator
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_inner = max_inner
        self.patience = patience
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> PairwiseLogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : Pairs, or array or sparse array of shape (n_samples, n_features)
            Pairs, or a wide table with the features of both objects in each row; equal ones are found.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None
        X_val, y_val : as X and y, default=None
            Pairs to validate on: every iteration is scored, the best one is kept, and ``patience`` iterations
            without a better one stop the fit.

        Returns
        -------
        self
        """
        return self._fit_pairs(X, y, sample_weight, X_val, y_val)


class PairwiseSVC(_PairwiseClassifier, HingeClassifier):
    """Support vector classification of pairs with the squared hinge.

    Minimises ``Σ_h w_h ½ max(0, 1 − y_h u_h)² + (λ/2) ‖f‖²`` over functions f of pairs, ``u = f + b``, for two classes
    or for each class against the rest (Airola & Pahikkala §4.2).

    Parameters
    ----------
    left_kernel, right_kernel : str or Kernel, default=None
        Kernels of the left and right objects: objects of `gramian.kernels` or their names, "precomputed" for tables
        that are matrices of similarities. None is "rbf".
    pairwise_kernel : str or PairwiseKernel, default="kronecker"
        How they make a kernel of pairs: "linear", "poly2d", "kronecker", "gaussian", "cartesian", and for pairs of one
        kind of object, whose kernel is ``left_kernel``, "symmetric", "antisymmetric", "ranking", "mlpk"; see
        `gramian.kernels.pairwise`.
    left_columns, right_columns : slice, list of int or str, or mask, default=None
        For a wide table X, with the features of both objects in each row: which columns belong to which object. One
        given: the other is the rest. None given: the first half is left. Not used for `Pairs`.
    optimize : None, "cv" or CrossValidationSearch, default=None
        "cv" learns all kernel parameters that are not fixed, and the variance (1/λ), by the gradient of the
        cross-validated loss.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``optimize``; ``PairKFold(setting)`` learns for new objects.
    regularization : float, default=1.0
        λ > 0.
    intercept_variance : float, default=0.0
        Prior variance σ² of the intercept; 0 means none.
    operator : {"auto", "dual", "primal"}, default="auto"
        "primal" multiplies through products of features (linear kernels only); "auto" takes the cheaper one.
    solver : {"auto", "newton", "kernel_cg"}, default="auto"
        "auto" is "newton": truncated Newton in the RKHS inner product, with a line search.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    max_inner : int, default=None
        Most conjugate gradient steps within a Newton step; None is the solver's own limit. Few of them, and few
        iterations, regularise as well (Airola & Pahikkala §5.2).
    patience : int, default=10
        With validation pairs: iterations without a better score after which to stop.
    class_weight : dict or "balanced", default=None
        Weights of the classes; they multiply ``sample_weight``.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of pairs is the same.
    random_state : int, default=None
        Not used by the deterministic solvers; accepted by all estimators.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n_samples, n_outputs)
        One coefficient for each training pair.
    intercept_ : array of shape (n_outputs,)
    kernel_ : Kernel
        The pairwise kernel with all its numbers.
    variances_ : ndarray of shape (1,)
        Its variance.
    validation_score_ : ndarray of shape (n_iterations,)
        Area under the ROC curve (accuracy for more than two classes) of the validation pairs after each iteration.
    best_iteration_ : int
        The iteration that the coefficients are from, counted from 1.
    cv_loss_ : float
        Cross-validated loss of the learned parameters.
    optimization_path_ : OptimizationPath
        How they were found.
    operator_ : OperatorRecord
        Which form of the operator was used, and why.
    solution_ : Solution
        Certificate, status and history.
    n_iter_ : int
    X_fit_ : Pairs
        The training pairs.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from gramian import PairwiseSVC
    >>> from gramian.datasets import make_interactions
    >>> pairs, y = make_interactions(binary=True, random_state=0)
    >>> model = PairwiseSVC(regularization=0.1, max_iter=10, max_inner=10, tol=0.1)
    >>> model.fit(pairs, y).predict(pairs[:3])
    array([0, 1, 0])
    """

    def __init__(
        self,
        left_kernel: Any = None,
        right_kernel: Any = None,
        *,
        pairwise_kernel: Any = "kronecker",
        left_columns: Any = None,
        right_columns: Any = None,
        optimize: Any = None,
        cv: Any = 5,
        regularization: float = 1.0,
        intercept_variance: float = 0.0,
        operator: str = "auto",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        max_inner: int | None = None,
        patience: int = 10,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.left_kernel = left_kernel
        self.right_kernel = right_kernel
        self.pairwise_kernel = pairwise_kernel
        self.left_columns = left_columns
        self.right_columns = right_columns
        self.optimize = optimize
        self.cv = cv
        self.regularization = regularization
        self.intercept_variance = intercept_variance
        self.operator = operator
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_inner = max_inner
        self.patience = patience
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> PairwiseSVC:
        """Fit the model.

        Parameters
        ----------
        X : Pairs, or array or sparse array of shape (n_samples, n_features)
            Pairs, or a wide table with the features of both objects in each row; equal ones are found.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None
        X_val, y_val : as X and y, default=None
            Pairs to validate on: every iteration is scored, the best one is kept, and ``patience`` iterations
            without a better one stop the fit.

        Returns
        -------
        self
        """
        return self._fit_pairs(X, y, sample_weight, X_val, y_val)


def pairwise_from_svc(svc: Any, left_columns: Any = None, right_columns: Any = None) -> PairwiseSVC:
    """Turn a fitted `sklearn.svm.SVC` on concatenated features into a pairwise predictor with the same decisions.

    The RBF kernel of concatenated features is a Kronecker product, so predictions are one rectangular vec trick instead
    of one kernel value for each pair of a support vector and a new example (Airola & Pahikkala §5.4).

    Parameters
    ----------
    svc : SVC or NuSVC
        Fitted with ``kernel="rbf"`` on two classes.
    left_columns, right_columns : slice, list of int or mask, default=None
        Which columns describe which object, as in `PairwiseSVC`.

    Returns
    -------
    PairwiseSVC
        With `decision_function` and `predict`; its training pairs are the support vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators.pairs.pairwise import pairwise_from_svc
    >>> from sklearn.svm import SVC
    >>> X = np.random.default_rng(0).normal(size=(40, 4))
    >>> svc = SVC(gamma=0.5).fit(X, X[:, 0] * X[:, 2] > 0)
    >>> model = pairwise_from_svc(svc)
    >>> bool(np.allclose(model.decision_function(X), svc.decision_function(X)))
    True
    """
    check_is_fitted(svc)
    if not isinstance(svc, (SVC, NuSVC)) or svc.kernel != "rbf" or len(svc.classes_) != 2:
        raise ValueError(
            f"svc must be a fitted SVC or NuSVC with kernel='rbf' and two classes, got {svc!r}."
        )
    model = PairwiseSVC(
        pairwise_kernel=Gaussian(float(np.sqrt(0.5 / svc._gamma))),
        left_columns=left_columns,
        right_columns=right_columns,
    )
    vectors = svc.support_vectors_
    model.n_features_in_ = svc.n_features_in_
    left, right = model._columns(vectors.shape[1])
    model._left_columns, model._right_columns = left, right
    pairs = Pairs.from_wide(vectors, left, right)
    coefficients = svc.dual_coef_
    coefficients = coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients
    model.classes_ = svc.classes_
    model.X_fit_ = pairs
    model._prior = assemble_prior(model._kernel_asked_for(), "tied", [0])
    model.dual_coef_ = np.ascontiguousarray(coefficients.T, dtype=pairs.dtype)
    model.intercept_ = np.asarray(svc.intercept_, dtype=pairs.dtype)
    return model
