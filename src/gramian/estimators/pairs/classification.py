"""Classes for pairs: logistic regression, and support vectors with the squared hinge (Airola & Pahikkala §4.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from gramian._core.arrays import Array
from gramian._core.docstrings import described
from gramian.estimators.answers import ClassAnswers, ProbabilityAnswers
from gramian.estimators.pairs.machine import SOLVERS, PairwiseMachine
from gramian.estimators.record import Fitted
from gramian.estimators.rules import optional_count
from gramian.estimators.smooth import SolverChoice, always
from gramian.estimators.targets import Classes, SmoothTargets, hinge, softmax
from gramian.kernels.pairwise import Gaussian
from gramian.operators import OperatorRecord
from gramian.pairs import Pairs
from gramian.selection.prior import assemble_prior


@dataclass(eq=False, repr=False)
class PairwiseClassifier(PairwiseMachine):
    """Base of the classifiers of pairs.

    Parameters
    ----------
    solver : {"auto", "newton", "kernel_cg"}, default="auto"
        "auto" is "newton": truncated Newton in the RKHS inner product, with a line search.
    max_inner : int, default=None
        Most conjugate gradient steps within a Newton step; None is the solver's own limit. Few of them, and few
        iterations, regularise as well (Airola & Pahikkala §5.2).
    class_weight : dict or "balanced", default=None
        Weights of the classes; they multiply ``sample_weight``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    validation_score_ : ndarray of shape (n_iterations,)
        Area under the ROC curve (accuracy for more than two classes) of the validation pairs after each iteration.
    """

    _: KW_ONLY
    max_inner: int | None = None
    class_weight: Any = None

    _solvers = SolverChoice(SOLVERS, always("newton"))
    _rules = PairwiseMachine._rules | {"max_inner": optional_count}

    def _limits(self) -> dict[str, int]:
        limits = super()._limits()
        if self.solver in ("auto", "newton") and self.max_inner is not None:
            limits["max_inner"] = self.max_inner
        return limits

    def _score(
        self, targets: SmoothTargets, pairs: Pairs, y: np.ndarray
    ) -> Callable[[Array], float]:
        classes = targets.fitted["classes_"]
        unknown = np.setdiff1d(y, classes)
        if unknown.size:
            raise ValueError(f"y_val holds classes that y does not have: {unknown[:5].tolist()!r}.")
        if classes.size > 2:
            return lambda U: accuracy_score(y, classes[np.argmax(U, axis=1)])
        positive = y == classes[1]
        if positive.all() or not positive.any():
            raise ValueError(
                f"y_val must hold both classes to be scored by the area under the ROC curve, got {y[0]!r} only."
            )
        return lambda U: float(roc_auc_score(positive, U[:, 0]))


@described(PairwiseMachine, PairwiseClassifier)
@dataclass(eq=False, repr=False)
class PairwiseLogisticRegression(ProbabilityAnswers, PairwiseClassifier):
    """Logistic regression on pairs, with probabilities.

    Minimises ``Σ_h w_h loss(u_h, y_h) + (λ/2) ‖f‖²`` over functions f of pairs, ``u = f + b``, with the logistic loss,
    or the softmax over more than two classes.

    Parameters
    ----------
    |left_kernel, right_kernel|
    |pairwise_kernel|
    |left_columns, right_columns|
    |indefinite|
    |optimize|
    |cv|
    |regularization|
    |intercept_variance|
    |operator|
    |solver|
    |tol|
    |max_iter|
    |max_inner|
    |patience|
    |class_weight|
    |warm_start|
    |random_state|

    Attributes
    ----------
    |classes_|
    |dual_coef_|
    |intercept_|
    |kernel_|
    |variances_|
    |validation_score_|
    |best_iteration_|
    cv_log_loss_ : float
        Cross-validated loss of the learned parameters.
    |optimization_path_|
    |operator_|
    |solution_|
    |n_iter_|
    |X_fit_|
    |n_features_in_|
    |feature_names_in_|

    Examples
    --------
    >>> from gramian import PairwiseLogisticRegression
    >>> from gramian.datasets import make_interactions
    >>> pairs, y = make_interactions(binary=True, random_state=0)
    >>> model = PairwiseLogisticRegression(regularization=0.1).fit(pairs, y)
    >>> model.predict_proba(pairs[:2]).shape
    (2, 2)
    """

    def _targets(self) -> Classes:
        return Classes(softmax, class_weight=self.class_weight)


@described(PairwiseMachine, PairwiseClassifier)
@dataclass(eq=False, repr=False)
class PairwiseSVC(ClassAnswers, PairwiseClassifier):
    """Support vector classification of pairs with the squared hinge.

    Minimises ``Σ_h w_h ½ max(0, 1 − y_h u_h)² + (λ/2) ‖f‖²`` over functions f of pairs, ``u = f + b``, for two classes
    or for each class against the rest (Airola & Pahikkala §4.2).

    Parameters
    ----------
    |left_kernel, right_kernel|
    |pairwise_kernel|
    |left_columns, right_columns|
    |indefinite|
    |optimize|
    |cv|
    |regularization|
    |intercept_variance|
    |operator|
    |solver|
    |tol|
    |max_iter|
    |max_inner|
    |patience|
    |class_weight|
    |warm_start|
    |random_state|

    Attributes
    ----------
    |classes_|
    |dual_coef_|
    |intercept_|
    |kernel_|
    |variances_|
    |validation_score_|
    |best_iteration_|
    |cv_loss_|
    |optimization_path_|
    |operator_|
    |solution_|
    |n_iter_|
    |X_fit_|
    |n_features_in_|
    |feature_names_in_|

    Examples
    --------
    >>> from gramian import PairwiseSVC
    >>> from gramian.datasets import make_interactions
    >>> pairs, y = make_interactions(binary=True, random_state=0)
    >>> model = PairwiseSVC(regularization=0.1, max_iter=10, max_inner=10, tol=0.1)
    >>> model.fit(pairs, y).predict(pairs[:3])
    array([0, 1, 0])
    """

    def _targets(self) -> Classes:
        return Classes(hinge, class_weight=self.class_weight)


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
    >>> from gramian.pairwise import pairwise_from_svc
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
    # scikit-learn has no public name for the number that gamma="scale" became
    width = float(np.sqrt(0.5 / svc._gamma))
    model = PairwiseSVC(
        pairwise_kernel=Gaussian(width), left_columns=left_columns, right_columns=right_columns
    )
    left, right = model._examples().columns(svc.n_features_in_)
    pairs = Pairs.from_wide(svc.support_vectors_, left, right)
    coefficients = svc.dual_coef_
    coefficients = coefficients.toarray() if sp.issparse(coefficients) else coefficients
    model._fitted = Fitted(
        {
            "n_features_in_": svc.n_features_in_,
            "_left_columns": left,
            "_right_columns": right,
            "classes_": svc.classes_,
            "X_fit_": pairs,
            "_prior": assemble_prior(model._examples().asked_for(), "tied", [0]),
            "operator_": OperatorRecord("dual", "taken from a fitted SVC", len(pairs), 0),
            "dual_coef_": np.ascontiguousarray(coefficients.T, dtype=pairs.dtype),
            "intercept_": np.asarray(svc.intercept_, dtype=pairs.dtype),
        }
    )
    return model
