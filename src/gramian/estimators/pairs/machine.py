"""Machines with a smooth loss on pairs: what the four estimators for pairs share."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.callback import with_callbacks

from gramian import solvers
from gramian._core.arrays import Array
from gramian._core.docstrings import described
from gramian._core.validation import check_number
from gramian.estimators.early_stopping import Validation
from gramian.estimators.examples import TrainingData
from gramian.estimators.fitting import fit_machine
from gramian.estimators.pairs.examples import PairExamples
from gramian.estimators.rules import choice, count
from gramian.estimators.smooth import KernelMachine, SmoothTraining
from gramian.estimators.targets import SmoothTargets
from gramian.kernels.similarity import REPAIRS
from gramian.operators.pairs.gram import FORMS
from gramian.pairs import Pairs
from gramian.selection.prior import GramSettings

SOLVERS = {"newton": solvers.newton, "kernel_cg": solvers.kernel_cg}


@described(KernelMachine)
@dataclass(eq=False, repr=False)
class PairwiseMachine(KernelMachine):
    """Base of the estimators for pairs.

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
        given: the other is the rest. None given: the first half is left, and an odd number of columns is an error. Not
        used for `Pairs`.
    optimize : {"auto", "cv"}, None or CrossValidationSearch, default="auto"
        "auto" finds what was left open: if ``regularization`` is "auto", the variance (1/λ), and the scales of kernels
        that were asked for by their names, on the pairs of a sample of the objects and with bounded work. Validation
        pairs take its place. "cv" learns all kernel parameters that are not fixed, and the variance, on all pairs and
        to the end. Both go by the gradient of the cross-validated loss. None takes everything as it is.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``optimize``: a number means shuffled pairs of known objects, ``PairKFold(setting)`` learns for new
        ones.
    indefinite : {"error", "clip", "flip", "shift"}, default="error"
        What to do with tables of "precomputed" similarities that are no kernels: their matrices have eigenvalues that
        are negative by more than rounding, and the objective has no minimum. "error" refuses them; "clip" sets negative
        eigenvalues to zero, "flip" changes their sign, and "shift" adds the size of the smallest one to the diagonal.
        Rows of new objects are clipped and flipped by the same linear map, so that those of training objects are as in
        training. A shift is noise of each training object, and rows in predictions stay as they are. See
        `gramian.kernels.similarity`.
    |regularization|
    intercept_variance : float, default=1.0
        Prior variance σ² of the intercept; 0 means none. Kernels that change their sign with the order of the two ends
        ("antisymmetric", "ranking") have none whatever it is: exchanging the ends is to change the sign of predictions.
    operator : {"auto", "dual", "primal"}, default="auto"
        "primal" multiplies through products of features (linear kernels only); "auto" takes the cheaper one.
    |tol|
    |max_iter|
    patience : int, default=10
        With validation pairs: iterations without a better score after which to stop.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of pairs is the same.
    random_state : int or RandomState, default=None
        Which objects an automatic search takes, and how folds are shuffled. None is always the same.

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples, n_outputs)
        One coefficient for each training pair.
    intercept_ : array of shape (n_outputs,)
    kernel_ : Kernel
        The pairwise kernel with all its numbers.
    variances_ : ndarray of shape (1,)
        Its variance.
    best_iteration_ : int
        The iteration that the coefficients are from, counted from 1.
    |optimization_path_|
    operator_ : OperatorRecord
        Which form of the operator was used, and why.
    |solution_|
    |n_iter_|
    X_fit_ : Pairs
        The training pairs.
    |n_features_in_|
    |feature_names_in_|
    cv_loss_ : float
        Cross-validated loss of the learned parameters.
    """

    left_kernel: Any = None
    right_kernel: Any = None
    _: KW_ONLY
    pairwise_kernel: Any = "kronecker"
    left_columns: Any = None
    right_columns: Any = None
    indefinite: str = "error"
    patience: int = 10

    _rules = KernelMachine._rules | {
        "operator": choice(*FORMS),
        "solver": choice("auto", *SOLVERS),
        "indefinite": choice("error", *REPAIRS),
        "patience": count,
    }

    def _examples(self) -> PairExamples:
        return PairExamples(
            self.left_kernel,
            self.right_kernel,
            self.pairwise_kernel,
            self.left_columns,
            self.right_columns,
            self.indefinite,
        )

    def _gram(self) -> GramSettings:
        settings = super()._gram()
        odd = self._examples().kernel().is_odd
        return replace(settings, intercept_variance=0.0) if odd else settings

    def _score(
        self, targets: SmoothTargets, pairs: Pairs, y: np.ndarray
    ) -> Callable[[Array], float]:
        """Return the score of latent values of validation pairs; the larger, the better."""
        raise NotImplementedError

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups: Any = None,
    ) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : Pairs, or array or sparse array of shape (n_samples, n_features)
            Pairs, or a wide table with the features of both objects in each row; equal ones are found.
        y : array of shape (n_samples,), or (n_samples, n_outputs) for ridge regression
        sample_weight : array of shape (n_samples,), default=None
        X_val, y_val : as X and y, default=None
            Pairs to validate on: every iteration is scored, the best one is kept, and ``patience`` iterations
            without a better one stop the fit.
        groups : array of shape (n_samples,), default=None
            Pairs of one group are held out together when hyperparameters are learned.

        Returns
        -------
        self
        """
        if (X_val is None) != (y_val is None):
            missing = "X_val" if X_val is None else "y_val"
            raise ValueError(f"X_val and y_val must be given together; {missing} is missing.")
        if X_val is not None and np.ndim(y) == 2 and np.shape(y)[1] > 1:
            raise ValueError(
                f"X_val and y_val are for one output, but y has shape {np.shape(y)}: fit one at a time."
            )

        def training(data: TrainingData) -> SmoothTraining:
            targets = self._targets().read(data)
            if X_val is None:
                return SmoothTraining(self, data, targets)
            pairs, values = self._examples().read_validation(data.described, X_val, y_val)
            score = self._score(targets, pairs, values)
            return SmoothTraining(self, data, targets, Validation(pairs, score, self.patience))

        return fit_machine(self, X, y, sample_weight, training, groups)

    def fit_path(
        self, X: Any, y: Any, regularizations: Sequence[float], sample_weight: Any = None
    ) -> list[Any]:
        """Fit a model for each λ, each from the coefficients of the last, the largest λ first.

        Parameters
        ----------
        X : Pairs or array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        regularizations : sequence of float
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        list of estimators
            Fitted copies of this one, in the order of ``regularizations``; this one stays as it is.
        """
        values = checked_path(regularizations)
        model = clone(self).set_params(warm_start=True)
        fitted: dict[int, Any] = {}
        for k in np.argsort(values)[::-1]:
            model.set_params(regularization=float(values[k])).fit(X, y, sample_weight)
            fitted[int(k)] = copy.copy(model).set_params(warm_start=self.warm_start)
        return [fitted[k] for k in range(len(values))]


def checked_path(regularizations: Any) -> np.ndarray:
    """A list of λ as an array of positive numbers."""
    values = np.asarray(regularizations, dtype=float)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"regularizations must be a list of numbers, got {regularizations!r}.")
    for value in values.tolist():
        check_number("regularizations", value, strict=True)
    return values
