"""M3LClassifier and the checks of scikit-learn, those for several labels included.

Without probabilities every check passes. With them one does not: it asks that the most probable of several classes be
the predicted one, but each class has a sigmoid of its own, and those need not keep the order of the decision values.
(SVC says the same of its probabilities.) That check is named here as one that fails; all others must pass.

With C by folds, a row of weight two and a row twice are not the same: the latter may be in two folds. No estimator that
chooses by folds passes these checks, which are named here, too.

Checks that compare fits which ought to be equal to seven digits get a tight tolerance; the labels of the others have
little to do with X, which takes many sweeps.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import M3LClassifier

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("one_thread"),
]


class Alike:
    """All labels correlated by the same number, however many there are. Prints alike in every process."""

    def __call__(self, signs):
        n_labels = signs.shape[1]
        return 0.6 * np.eye(n_labels) + 0.4 * np.ones((n_labels, n_labels))

    def __repr__(self):
        return "alike"


alike = Alike()

# The coordinate solver is compiled anew, for half a minute, for each kind of X and of weights that the checks try.
# That it finds what the others find is checked in test_margin_solvers.py and test_multilabel.py.
ESTIMATORS = [
    M3LClassifier(1.0, loss="hamming"),
    M3LClassifier(1.0, alike, kernel="rbf", loss="hamming", probability=True, cv=3),
]
OTHER_SETTINGS = [
    M3LClassifier(1.0, alike, solver="smo"),
    M3LClassifier(1.0, alike, kernel="rbf", intercept_variance=0.0),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    if "equivalence" in check.func.__name__:
        estimator = clone(estimator).set_params(tol=1e-14)
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHER_SETTINGS)
def test_scikit_learn_check_of_other_settings(estimator, check):
    test_scikit_learn_check(estimator, check)


def expected_failures(estimator):
    name = "check_sample_weight_equivalence_on_{}_data"
    return {name.format(kind): "a row twice is in two folds" for kind in ("dense", "sparse")}


@pytest.mark.slow  # every one of the checks chooses C
@parametrize_with_checks(
    [M3LClassifier(label_correlation=alike)], expected_failed_checks=expected_failures
)
def test_scikit_learn_check_with_C_by_folds(estimator, check):
    if "equivalence" in check.func.__name__:
        estimator = clone(estimator).set_params(tol=1e-14)
    check(estimator)
