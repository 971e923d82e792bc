"""Machines with a smooth loss on single examples: what KernelRidge, KernelLogisticRegression and KernelSVC share."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from gramian import solvers
from gramian._core.docstrings import described
from gramian.estimators.examples import Features
from gramian.estimators.rules import choice, flag, optional_count
from gramian.estimators.smooth import KernelMachine
from gramian.operators.choose import OPERATORS
from gramian.selection.prior import GramSettings

SOLVERS = {
    "newton": solvers.newton,
    "kernel_cg": solvers.kernel_cg,
    "parameter_cg": solvers.parameter_cg,
    "exact": solvers.exact,
}


@described(KernelMachine)
@dataclass(eq=False, repr=False)
class FeatureMachine(KernelMachine):
    """Base of the estimators with a smooth loss whose examples are rows of features or a Gram matrix.

    Parameters
    ----------
    kernel : str or Kernel, default="auto"
        A kernel of `gramian.kernels`, or its name: "rbf", "matern12", "matern32", "matern52", "rational_quadratic",
        "laplacian", "linear", "polynomial", "precomputed". Names take their scale from the training data, and with
        ``regularization="auto"`` their parameters are learned. "auto" is that one of "rbf", "matern32" and "laplacian"
        whose cross-validated loss is lowest on a few hundred examples, and "rbf" where nothing is learned.
    |optimize|
    |cv|
    |regularization|
    |intercept_variance|
    operator : {"auto", "dense", "linear", "streamed", "tree_code", "low_rank"}, default="auto"
        How to multiply with the Gram matrix; see `operator_` for the choice. "low_rank" approximates it, "tree_code" is
        exact up to a proven bound, the others are exact.
    rank : int, default=None
        Number of examples that "low_rank" represents the function by; None is 1000, or fewer if they take more than
        half of scikit-learn's ``working_memory``. With "auto" a number allows "low_rank" where the matrix does not fit.
    solver : {"auto", "newton", "kernel_cg", "parameter_cg", "exact"}, default="auto"
        "auto" is "newton": truncated Newton in the RKHS inner product. In `KernelLogisticRegression` with 64 classes
        or more and one Gram matrix it is "kernel_cg", whose iterations are shorter, unless there is validation data.
    |tol|
    |max_iter|
    |warm_start|
    random_state : int, RandomState or None, default=None
        Which examples a low-rank fit is represented by, which ones a search for parameters takes, and how folds are
        shuffled. None is always the same.
    copy_X : bool, default=True
        Whether the model keeps a copy of X, from which it predicts. With False it keeps X itself, and later changes of
        X change its predictions. A file (`numpy.memmap`) and a Gram matrix are never copied.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    |kernel_|
    kernels_ : tuple of Kernel
        One for each group of latent functions, with its variance as a factor.
    |variances_|
    |cv_loss_|
    |optimization_path_|
    |operator_|
    |solution_|
    |n_iter_|
    X_fit_ : array or sparse array of shape (n_samples, n_features)
        The training examples; of a low-rank fit the ``rank`` examples that represent it, and so for `dual_coef_`.
    |n_features_in_|
    |feature_names_in_|
    """

    kernel: Any = "auto"
    _: KW_ONLY
    rank: int | None = None
    copy_X: bool = True

    _rules = KernelMachine._rules | {
        "operator": choice(*OPERATORS),
        "rank": optional_count,
        "solver": choice("auto", *SOLVERS),
        "copy_X": flag,
    }

    def _examples(self) -> Features:
        return Features(self.kernel, self.copy_X)

    def _gram(self) -> GramSettings:
        return GramSettings(self.operator, self.intercept_variance, self.rank, self.random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        only_numpy = self.solver == "exact" or self.operator == "low_rank"
        tags.array_api_support = not tags.input_tags.pairwise and not only_numpy
        return tags
