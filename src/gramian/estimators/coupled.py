"""Machines whose outputs may share strength."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from gramian._core.docstrings import described
from gramian.estimators.relation import learned_coupling
from gramian.estimators.single import FeatureMachine


@described(FeatureMachine)
@dataclass(eq=False, repr=False)
class CoupledMachine(FeatureMachine):
    """Base of the estimators whose outputs may be related.

    Parameters
    ----------
    |kernel|
    coupling : "auto", int, LearnedCoupling, matrix, sequence of matrices or None, default=None
        How outputs are related. A symmetric matrix is taken as it is, a DataFrame by its names: the prior covariance
        of two outputs is the kernel times their entry. "auto" finds out what outputs have in common, a number does so
        with so many common factors, `gramian.labels.LearnedCoupling` with further choices; outputs stay unrelated
        unless folds that did not take part in learning approve. None leaves them unrelated. With a hierarchy the
        coupling relates what its leaves have for themselves, beside what they share by the tree. Where the kernel is a
        sum, each of its terms may have a coupling of its own: a matrix for each, or
        ``LearnedCoupling(summands="apart")``.
    |optimize|
    |cv|
    |regularization|
    |intercept_variance|
    |operator|
    |rank|
    |solver|
    |tol|
    |max_iter|
    |warm_start|
    |random_state|
    |copy_X|

    Attributes
    ----------
    |classes_|
    coupling_ : ndarray of shape (n_outputs, n_outputs) or (n_terms, n_outputs, n_outputs)
        How outputs are related, if ``coupling`` is not None: the prior covariance of two of them is `kernel_` times
        their entry, or with a hierarchy that of what they have for themselves. The identity if judges did not approve
        of a coupling. One for each term of the kernel if they have their own.
    n_couplings_ : int
        In how many folds the loss of held-out examples is lower with a coupling; 0 means that judges did not approve,
        and that outputs stay unrelated. For learned couplings.
    judged_loss_ : float
        Mean loss of held-out examples, with couplings that were learned without them. For learned couplings.
    |kernel_|
    |kernels_|
    |variances_|
    |cv_loss_|
    |optimization_path_|
    |operator_|
    |solution_|
    |n_iter_|
    |X_fit_|
    |n_features_in_|
    |feature_names_in_|
    """

    _: KW_ONLY
    coupling: Any = None

    _rules = FeatureMachine._rules | {"coupling": learned_coupling}
