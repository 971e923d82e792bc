"""What all kernel classifiers share: classes, class weights and decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from gramian._core.arrays import (
    Array,
    device_of,
    in_float64,
    is_numpy,
    namespace,
    to_numpy,
)
from gramian._core.validation import check_sample_weight
from gramian.estimators.inputs import all_or_nothing
from gramian.estimators.machine import KernelMachine
from gramian.kernels import Kernel
from gramian.losses import Logistic, Loss, Softmax, SquaredHinge, log_sum_exp, softmax
from gramian.selection.prior import assemble_prior


class KernelClassifier(ClassifierMixin, KernelMachine):
    """Classes, class weights and decisions; a subclass says which loss and targets."""

    classes_: Array

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        share: Any = "tied",
        optimize: Any = None,
        cv: Any = 5,
        regularization: float = 1.0,
        intercept_variance: float = 1.0,
        operator: str = "auto",
        rank: int | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        super().__init__(
            kernel,
            optimize=optimize,
            cv=cv,
            regularization=regularization,
            intercept_variance=intercept_variance,
            operator=operator,
            rank=rank,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            warm_start=warm_start,
            random_state=random_state,
        )
        self.share = share
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
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, validation: Any = None) -> None:
        self._check_parameters()
        X, y = self._validated(X, self._flattened(y))
        check_classification_targets(y)
        labels, codes = _unique(y) if is_numpy(y) else namespace(y).unique_inverse(y)
        if labels.shape[0] < 2 and not self._knows_classes():
            raise ValueError(
                f"y must hold at least two classes, got one class: {to_numpy(labels).item()!r}."
            )
        indicator = _indicator(in_float64(codes, self._values_of(X)), int(labels.shape[0]))
        weights = check_sample_weight(sample_weight, indicator)
        kernel = self._kernel_asked_for().resolve(X, weights)
        weights = self._with_class_weight(weights, to_numpy(labels), to_numpy(codes), indicator)
        held_out = {}
        if validation is not None:
            held_out["validation"] = self._validation(validation, to_numpy(labels))
        self._fit_classes(kernel, X, y, labels, indicator, weights, **held_out)

    def _validation(self, examples: tuple[Any, Any], classes: np.ndarray) -> Any:
        """Examples for early stopping; only estimators for pairs take them."""
        raise NotImplementedError

    def _knows_classes(self) -> bool:
        """Whether the classes are known without y."""
        return False

    def _flattened(self, y: Any) -> Any:
        """y as one label for each example."""
        return y

    def _fit_classes(
        self,
        kernel: Kernel,
        X: Array,
        y: Array,
        labels: Array,
        indicator: Array,
        weights: Array | None,
        **options: Any,
    ) -> None:
        """Fit to the n × C indicator of the labels; ``options`` go to `_solve`."""
        loss, targets = self._loss_and_targets(indicator)
        n_outputs = targets.shape[1] if targets.ndim == 2 else targets.shape[1] * targets.shape[2]
        functions = to_numpy(labels).tolist()[-n_outputs:]  # the second class if there are two
        prior = assemble_prior(kernel, self.share, functions)
        self._solve(prior, X, y, targets, loss, weights, classes_=labels, **options)

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


class LogisticClassifier(KernelClassifier):
    """Softmax over all classes, or one logistic function for two: probabilities."""

    _cv_attribute = "cv_log_loss_"

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


class HingeClassifier(KernelClassifier):
    """Squared hinge, each class against the rest."""

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
