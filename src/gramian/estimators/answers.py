"""How latent values become answers: numbers, classes, probabilities.

Each class adds the methods of one kind of answer to a machine, which gives it `_latent`.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from gramian._core.arrays import Array, device_of, is_numpy, namespace, to_numpy
from gramian.losses import log_sum_exp, softmax


class NumberAnswers(RegressorMixin):
    """The latent values themselves."""

    def predict(self, X: Any) -> Array:
        """Predict.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or kernel values of shape (n_samples, n_training) for a precomputed kernel.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
        """
        check_is_fitted(self)
        U = self._latent(X, "predict")
        return U[:, 0] if self._single_output else U


class ClassAnswers(ClassifierMixin):
    """The class with the largest latent value; the sign of the only one if there are two classes."""

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


class ProbabilityAnswers(ClassAnswers):
    """The softmax of the latent values, or the logistic function of the only one."""

    _cv_attribute = "cv_log_loss_"

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
        U = _for_each_class(self._latent(X, "predict_log_proba"))
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
        return softmax(_for_each_class(self._latent(X, "predict_proba")))


def _for_each_class(U: Array) -> Array:
    """Latent values with a column for each class: that of the first of two classes is zero."""
    xp = namespace(U)
    return xp.concat([xp.zeros_like(U), U], axis=1) if U.shape[1] == 1 else U
