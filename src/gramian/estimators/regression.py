"""Kernel regression."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from gramian._core.arrays import Array, in_float64, is_numpy, namespace
from gramian._core.validation import check_sample_weight, naming_text
from gramian.estimators.inputs import all_or_nothing
from gramian.estimators.machine import KernelMachine
from gramian.losses import Loss, Squared
from gramian.operators import OperatorRecord
from gramian.selection.prior import assemble_prior
from gramian.solvers import Problem

__all__ = ["KernelRidge"]

# Cholesky costs the same whatever the conditioning. Seconds at 5000 rows, 10 features, two cores: 0.9 to 2.3,
# against 0.4 (λ = 1) and 3.1 (λ = 0.01) of kernel CG. Beyond, its cube is too dear.
EXACT_UP_TO = 5000


class KernelRidge(RegressorMixin, KernelMachine):
    """Kernel ridge regression, the mean of a Gaussian process.

    Minimises ``Σ_i w_i ½ (u(x_i) − y_i)² + (λ/2) ‖f‖²`` over ``u = f + b`` for each output, with
    the intercept b penalised by ``(λ/2) b² / σ²``. With ``intercept_variance=0`` this is
    scikit-learn's ``KernelRidge(alpha=λ)``.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        A kernel of `gramian.kernels`, or its name: "rbf", "matern12", "matern32", "matern52",
        "rational_quadratic", "linear", "polynomial", "precomputed". Names take their scale from the
        training data.
    optimize : None, "cv" or CrossValidationSearch, default=None
        "cv" learns all kernel parameters that are not fixed, and the variance, by the gradient of the
        cross-validated loss, starting from the numbers in ``kernel``.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``optimize``.
    regularization : float, default=1.0
        λ > 0.
    intercept_variance : float, default=1.0
        Prior variance σ² of the intercept; 0 means no intercept.
    operator : {"auto", "dense", "linear", "streamed", "tree_code", "low_rank"}, default="auto"
        How to multiply with the Gram matrix; see `operator_` for the choice. "low_rank" approximates it, "tree_code" is
        exact up to a proven bound, the others are exact.
    rank : int, default=None
        Number of examples that "low_rank" represents the function by; None is 1000, or fewer if they take more than
        half of scikit-learn's ``working_memory``. With "auto" a number allows "low_rank" where the matrix does not fit.
    solver : {"auto", "exact", "kernel_cg", "newton", "parameter_cg"}, default="auto"
        "auto" is "exact" (Cholesky) for stored matrices up to 5000 examples, else "kernel_cg".
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of examples and outputs is the same. Not after a
        low-rank fit, which keeps no coefficients of examples.
    random_state : int, RandomState or None, default=None
        Which examples a low-rank fit is represented by, and which ones a coarse search for parameters takes.

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples, n_outputs)
    intercept_ : array of shape (n_outputs,)
    kernel_ : Kernel
        The kernel with all its numbers.
    variances_ : ndarray of shape (1,)
        Its variance.
    cv_loss_ : float
        Cross-validated mean of ½ (u − y)², summed over outputs, for the learned parameters.
    optimization_path_ : OptimizationPath
        How they were found.
    operator_ : OperatorRecord
        Which operator was used, and why.
    solution_ : Solution
        Certificate, status and history.
    n_iter_ : int
    X_fit_ : array or sparse array of shape (n_samples, n_features)
        The training examples; of a low-rank fit the ``rank`` examples that represent it, and so for `dual_coef_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> model = KernelRidge(kernel="rbf", regularization=1e-3).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.5]]).round(3)
    array([0.998])
    >>> model.operator_.name
    'dense'
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or the Gram matrix of shape (n_samples, n_samples) for a precomputed kernel.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
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
        X, y = self._validated(X, y, multi_output=self._several_outputs, y_numeric=True)
        like = self._values_of(X)
        with naming_text(like):
            targets = in_float64(y, like)
        flat = targets.ndim == 1
        targets = namespace(targets).reshape(targets, (targets.shape[0], 1, -1))
        weights = check_sample_weight(sample_weight, targets)
        kernel = self._kernel_asked_for().resolve(X, weights)
        prior = assemble_prior(kernel, "tied", range(int(targets.shape[2])))
        loss = self._loss(X)
        held_out = None if validation is None else self._validation(validation)
        state = {"_single_output": flat, "_weighted": weights is not None}
        self._solve(prior, X, y, targets, loss, weights, validation=held_out, **state)

    _several_outputs = True

    def _loss(self, X: Any) -> Loss:
        return Squared()

    def _validation(self, examples: tuple[Any, Any]) -> Any:
        """Examples for early stopping; only estimators for pairs take them."""
        raise NotImplementedError

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

    def _solver_name(self, problem: Problem, record: OperatorRecord, watched: bool) -> str:
        if self.solver != "auto":
            return self.solver
        small = record.name == "dense" and record.n_samples <= EXACT_UP_TO
        return "exact" if small and is_numpy(problem.targets) else "kernel_cg"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several_outputs
        return tags
