"""Kernel classification."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from gramian._arrays import (
    Array,
    device_of,
    in_float64,
    is_numpy,
    namespace,
    to_numpy,
)
from gramian._machine import KernelMachine, all_or_nothing
from gramian._validation import check_sample_weight
from gramian.kernels import as_kernel
from gramian.losses import Logistic, Loss, Softmax, SquaredHinge, log_sum_exp, softmax

__all__ = ["KernelLogisticRegression", "KernelSVC"]


class _KernelClassifier(ClassifierMixin, KernelMachine):
    """Classes, class weights and decisions; a subclass says which loss and targets."""

    classes_: Array

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
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        super().__init__(
            kernel,
            regularization=regularization,
            intercept_variance=intercept_variance,
            operator=operator,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            warm_start=warm_start,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def _loss_and_targets(self, indicator: Array) -> tuple[Loss, Array]:
        """Loss and targets (n, C, q) from the n × C indicator of classes; one column if binary."""
        raise NotImplementedError

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or the Gram matrix of shape (n_samples, n_samples) for a precomputed kernel.
        y : array of shape (n_samples,)
            Class labels: numbers or strings, at least two classes.
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            self._check_parameters()
            X, y = self._validated(X, y)
            check_classification_targets(y)
            classes, codes = _unique(y) if is_numpy(y) else namespace(y).unique_inverse(y)
            if classes.shape[0] < 2:
                raise ValueError(
                    f"y must hold at least two classes, got one class: {to_numpy(classes).item()!r}."
                )
            indicator = _indicator(in_float64(codes, X), int(classes.shape[0]))
            weights = check_sample_weight(sample_weight, indicator)
            kernel = as_kernel(self.kernel).resolve(X, weights)
            weights = self._with_class_weight(
                weights, to_numpy(classes), to_numpy(codes), indicator
            )
            loss, targets = self._loss_and_targets(indicator)
            self._solve(kernel, X, y, targets, loss, weights, classes_=classes)
        return self

    def _with_class_weight(
        self, weights: Array | None, classes: np.ndarray, codes: np.ndarray, like: Array
    ) -> Array | None:
        if self.class_weight is None:
            return weights
        if not isinstance(self.class_weight, dict) and self.class_weight != "balanced":
            raise ValueError(
                f"class_weight must be None, 'balanced' or a dict of class: weight, got {self.class_weight!r}."
            )
        try:
            values = compute_class_weight(self.class_weight, classes=classes, y=classes[codes])
        except ValueError as error:
            raise ValueError(f"class_weight does not fit the classes in y: {error}") from None
        per_example = check_sample_weight(values[codes], like, name="class_weight")
        if weights is None:
            return per_example
        return check_sample_weight(weights * per_example, like, name="class_weight × sample_weight")

    def decision_function(self, X: Any) -> Array:
        """Return the latent values.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or kernel values of shape (n_samples, n_training) for a precomputed kernel.

        Returns
        -------
        array of shape (n_samples,) if binary, else (n_samples, n_classes)
        """
        check_is_fitted(self)
        U = self._latent(X, "decision_function")
        return U[:, 0] if U.shape[1] == 1 else U

    def predict(self, X: Any) -> Array:
        """Predict class labels.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or kernel values of shape (n_samples, n_training) for a precomputed kernel.

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        U = self._latent(X, "predict")
        xp = namespace(U)
        codes = xp.astype(U[:, 0] > 0, xp.int64) if U.shape[1] == 1 else xp.argmax(U, axis=1)
        classes = to_numpy(self.classes_)
        if is_numpy(codes) or classes.dtype.kind in "OUST":  # text has no other library to live in
            return classes[to_numpy(codes)]
        return xp.take(xp.asarray(classes, device=device_of(codes)), codes)


class KernelLogisticRegression(_KernelClassifier):
    """Kernel logistic regression: joint softmax over all classes, with probabilities.

    Minimises ``Σ_i w_i loss(u(x_i), y_i) + (λ/2) Σ_c ‖f_c‖²`` over ``u_c = f_c + b_c`` with the
    softmax loss (binary: one latent function and the logistic loss); the intercepts b are penalised
    by ``(λ/2) b² / σ²``. It is the maximum a posteriori estimate of Gaussian process
    classification. The optimum is unique, and `solution_` certifies how close the fit is.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        A kernel of `gramian.kernels`, or its name: "rbf", "matern12", "matern32", "matern52",
        "rational_quadratic", "linear", "polynomial", "precomputed". Names take their scale from the
        training data.
    regularization : float, default=1.0
        λ > 0. A variance of the kernel does the same to f: ``10.0 * RBF(1.0)`` is λ divided by 10
        (exactly so if ``intercept_variance`` is divided by 10 too, or 0).
    intercept_variance : float, default=1.0
        Prior variance σ² of the intercepts; 0 means none.
    operator : {"auto", "dense", "linear", "streamed"}, default="auto"
        How to multiply with the Gram matrix; see `operator_` for the choice.
    solver : {"auto", "newton", "kernel_cg", "parameter_cg", "exact"}, default="auto"
        "auto" is "newton": truncated Newton in the RKHS inner product.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    class_weight : dict or "balanced", default=None
        Weights of the classes; they multiply ``sample_weight``.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of examples and classes is the same.
    random_state : int, default=None
        Not used by the deterministic solvers; accepted by all estimators.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n_samples, n_classes), one column if binary
    intercept_ : array of shape (n_classes,)
    kernel_ : Kernel
        The kernel with all its numbers.
    operator_ : OperatorRecord
        Which operator was used, and why.
    solution_ : Solution
        Certificate, status and history.
    n_iter_ : int
    X_fit_ : array or sparse array of shape (n_samples, n_features)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticRegression(kernel="rbf", regularization=0.1).fit(X, y)
    >>> model.predict_proba(X[:1]).round(2)
    array([[0.99, 0.01, 0.  ]])
    >>> model.solution_.status
    'converged'
    """

    def _loss_and_targets(self, indicator: Array) -> tuple[Loss, Array]:
        if indicator.shape[1] == 2:
            return Logistic(), indicator[:, 1:]
        return Softmax(), indicator

    def predict_log_proba(self, X: Any) -> Array:
        """Return logarithms of the class probabilities, shape (n_samples, n_classes).

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        U = self._both_classes(self._latent(X, "predict_log_proba"))
        return U - log_sum_exp(U)

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, shape (n_samples, n_classes).

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return softmax(self._both_classes(self._latent(X, "predict_proba")))

    def _both_classes(self, U: Array) -> Array:
        xp = namespace(U)
        return xp.concat([xp.zeros_like(U), U], axis=1) if U.shape[1] == 1 else U


class KernelSVC(_KernelClassifier):
    """Support vector classification with the squared hinge; one-vs-rest on one shared Gram operator.

    Minimises ``Σ_i w_i ½ max(0, 1 − y_i u(x_i))² + (λ/2) ‖f‖²`` over ``u = f + b`` for each class
    against the rest (binary: once); the intercept is penalised by ``(λ/2) b² / σ²``. All classes
    advance in lockstep, so one pass over the Gram matrix serves them all. With a linear kernel it
    is ``LinearSVC(C=1 / (2 λ))``.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        A kernel of `gramian.kernels`, or its name: "rbf", "matern12", "matern32", "matern52",
        "rational_quadratic", "linear", "polynomial", "precomputed". Names take their scale from the
        training data.
    regularization : float, default=1.0
        λ > 0.
    intercept_variance : float, default=1.0
        Prior variance σ² of the intercepts; 0 means none.
    operator : {"auto", "dense", "linear", "streamed"}, default="auto"
        How to multiply with the Gram matrix; see `operator_` for the choice.
    solver : {"auto", "newton", "kernel_cg", "parameter_cg", "exact"}, default="auto"
        "auto" is "newton": truncated Newton in the RKHS inner product.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective, for every class.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    class_weight : dict or "balanced", default=None
        Weights of the classes; they multiply ``sample_weight``.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of examples and classes is the same.
    random_state : int, default=None
        Not used by the deterministic solvers; accepted by all estimators.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n_samples, n_classes), one column if binary
    intercept_ : array of shape (n_classes,)
    kernel_ : Kernel
        The kernel with all its numbers.
    operator_ : OperatorRecord
        Which operator was used, and why.
    solution_ : Solution
        Certificate, status and history.
    n_iter_ : int
    X_fit_ : array or sparse array of shape (n_samples, n_features)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelSVC(kernel="rbf").fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    def _loss_and_targets(self, indicator: Array) -> tuple[Loss, Array]:
        signs = 2 * indicator - 1
        columns = signs[:, 1:] if indicator.shape[1] == 2 else signs
        return SquaredHinge(), columns[:, None, :]


def _unique(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.reshape(-1)


def _indicator(codes: Array, n_classes: int) -> Array:
    """Zeros and ones of shape (n, C), in the array library and dtype of the codes."""
    xp = namespace(codes)
    every = xp.arange(n_classes, dtype=codes.dtype, device=device_of(codes))
    return xp.astype(codes[:, None] == every[None, :], codes.dtype)
