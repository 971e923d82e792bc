"""Every estimator passes every check of scikit-learn; there is no list of expected failures.

The tolerance is tight because some checks compare fits that ought to be equal (weight 2 against a row twice)
to seven digits. That holds for learned kernels, too: the checks give splits that agree with the repeated rows.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import (
    KernelLogisticRegression,
    KernelRidge,
    KernelSVC,
    PairwiseLogisticRegression,
    PairwiseRanker,
    PairwiseRidge,
    PairwiseSVC,
)
from gramian.selection import CrossValidationSearch

# A duality gap of 1e-18 is 1e-9 in the latent function, and out of reach in single precision: there `max_iter` ends it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("one_thread"),
]
AUTO = {"tol": 1e-18, "max_iter": 60}
TIGHT = {**AUTO, "regularization": 1.0}
EXACT = {**TIGHT, "max_iter": 15, "solver": "exact"}
LEARNED = {**TIGHT, "optimize": CrossValidationSearch(max_evaluations=3), "cv": 2}
MANY = {**TIGHT, "max_iter": 200}
FIRST = {"left_columns": slice(0, 1)}  # the checks have tables with an odd number of columns, too

# Every class with a fixed λ. What several classes share (kernels, operators, solvers) is checked in one or two of them;
# that it gives the same model in all is the matter of other tests.
ESTIMATORS = [
    KernelRidge(**TIGHT),
    KernelLogisticRegression(**TIGHT),
    KernelLogisticRegression(**EXACT),
    KernelSVC(**TIGHT),
    PairwiseRidge(**FIRST, **MANY),
    PairwiseLogisticRegression(**FIRST, **TIGHT),
    PairwiseSVC(pairwise_kernel="gaussian", **FIRST, **TIGHT),
    PairwiseRanker(**FIRST, **MANY),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)


OTHER_SETTINGS = [
    KernelRidge(solver="kernel_cg", **MANY),
    KernelRidge(operator="streamed", **TIGHT),
    KernelLogisticRegression(kernel="linear", **TIGHT),
    KernelLogisticRegression(operator="low_rank", **TIGHT),
    KernelLogisticRegression(share="class", **TIGHT),
    KernelSVC(kernel="matern32", intercept_variance=0, operator="streamed", **TIGHT),
]


@pytest.mark.slow
@parametrize_with_checks(OTHER_SETTINGS)
def test_scikit_learn_check_of_other_settings(estimator, check):
    check(estimator)


# As they are by default they learn λ and the scale of the kernel, in every one of some sixty checks.
LEARNING = [
    KernelRidge(**AUTO),
    KernelLogisticRegression(**AUTO),
    PairwiseRidge(**AUTO, **FIRST, cv=3),
    KernelRidge(**LEARNED),
    KernelLogisticRegression(**LEARNED),
]


@pytest.mark.slow
@parametrize_with_checks(LEARNING)
def test_scikit_learn_check_of_what_learns(estimator, check):
    check(estimator)
