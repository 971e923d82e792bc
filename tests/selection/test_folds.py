"""Cross-validation in lockstep gives what separate fits give."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_predict

from gramian import KernelLogisticRegression, KernelRidge, KernelSVC
from gramian.kernels import RBF, Linear
from gramian.labels import Identity
from gramian.losses import Logistic, Softmax, Squared, SquaredHinge
from gramian.operators import Dense, Intercept, LabelMixed, LinearFeatures, Streamed
from gramian.selection import cross_val_latent, fold_masks
from gramian.solvers import Problem, newton

TIGHT = 1e-17
KERNEL = 2.0 * RBF(1.5)
STRENGTH = 0.3
VARIANCE = 0.8


def _iris():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(0).permutation(len(X))[:70]
    return X[order], y[order]


X, CLASSES = _iris()
N = len(X)
INDICATOR = (CLASSES[:, None] == np.arange(3)).astype(float)
TARGETS = {
    Softmax(): INDICATOR,
    Logistic(): INDICATOR[:, 1:2],
    SquaredHinge(): 2 * INDICATOR[:, 1:2] - 1,
    Squared(): np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]),
}
SPLITTER = StratifiedKFold(4, shuffle=True, random_state=0)


def operator(X=X):
    """Kernel and intercept."""
    terms = [(Dense(KERNEL, X), Identity()), (Intercept(VARIANCE, X, len(X)), Identity())]
    return LabelMixed(terms)


@pytest.fixture
def masks():
    return fold_masks(SPLITTER, X, CLASSES)[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", TARGETS, ids=repr)
def test_lockstep_is_separate_fits(loss, weighted, masks):
    """Coefficients of each fold are those of a fit on its training examples, and zero elsewhere."""
    Y = TARGETS[loss]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else None
    problem = Problem(operator(), loss, Y, STRENGTH, weights)
    latent, solution = cross_val_latent(problem, masks, tol=TIGHT)
    assert latent.shape == Y.shape
    assert solution.coefficients.shape == (*Y.shape, 4)
    assert solution.status == "converged"
    for fold, (train, test) in enumerate(SPLITTER.split(X, CLASSES)):
        alone = Problem(
            operator(X[train]),
            loss,
            Y[train],
            STRENGTH,
            None if weights is None else weights[train],
        )
        A = newton(alone, tol=TIGHT).coefficients
        np.testing.assert_allclose(solution.coefficients[train, :, fold], A, atol=1e-7)
        np.testing.assert_array_equal(solution.coefficients[test, :, fold], 0)
        expected = (KERNEL(X[test], X[train]) + VARIANCE) @ A
        np.testing.assert_allclose(latent[test], expected, atol=1e-7)


def _estimator(loss):
    settings = {
        "kernel": KERNEL,
        "regularization": STRENGTH,
        "intercept_variance": VARIANCE,
        "tol": TIGHT,
    }
    if isinstance(loss, Squared):
        return KernelRidge(**settings)
    return (KernelSVC if isinstance(loss, SquaredHinge) else KernelLogisticRegression)(**settings)


@pytest.mark.parametrize("loss", TARGETS, ids=repr)
def test_held_out_values_are_cross_val_predict(loss, masks):
    """What scikit-learn gets by fitting an estimator once for each fold."""
    Y = TARGETS[loss]
    latent, _ = cross_val_latent(Problem(operator(), loss, Y, STRENGTH), masks, tol=TIGHT)
    method = "predict" if isinstance(loss, Squared) else "decision_function"
    y = {Softmax(): CLASSES, Squared(): Y}.get(loss, (CLASSES == 1).astype(int))
    folds = list(SPLITTER.split(X, CLASSES))
    expected = cross_val_predict(_estimator(loss), X, y, cv=folds, method=method)
    np.testing.assert_allclose(latent, expected.reshape(latent.shape), atol=1e-7)


@pytest.mark.parametrize("kind", [Streamed, LinearFeatures])
def test_any_operator_serves(kind, masks):
    kernel = 0.5 * RBF(1.0) if kind is Streamed else 0.5 * Linear()
    dense = cross_val_latent(Problem(Dense(kernel, X), Softmax(), INDICATOR), masks, tol=TIGHT)[0]
    other = cross_val_latent(Problem(kind(kernel, X), Softmax(), INDICATOR), masks, tol=TIGHT)[0]
    np.testing.assert_allclose(other, dense, atol=1e-7)


def test_one_product_serves_all_folds(masks):
    """Lockstep needs hardly more products than the slowest fold alone, each for all folds at once."""
    problem = Problem(operator(), Softmax(), INDICATOR, STRENGTH)
    together = cross_val_latent(problem, masks, tol=1e-8)[1].n_products
    alone = [
        newton(
            Problem(operator(), Softmax(), INDICATOR, STRENGTH, masks[:, fold]), tol=1e-8
        ).n_products
        for fold in range(4)
    ]
    assert together <= 1.5 * max(alone)
    assert together < sum(alone) / 2


# --- masks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cv", [3, KFold(5), StratifiedKFold(3), list(KFold(2).split(np.zeros((N, 1))))]
)
def test_masks_mark_the_training_examples(cv):
    masks = fold_masks(cv, X, CLASSES)[0]
    assert set(np.unique(masks)) == {0.0, 1.0}
    np.testing.assert_array_equal((1 - masks).sum(axis=1), 1)
    whole = KFold(3, shuffle=True, random_state=0) if cv == 3 else cv
    splits = cv if isinstance(cv, list) else whole.split(X, CLASSES)
    for column, (train, test) in zip(masks.T, splits, strict=True):
        assert column[train].all()
        assert not column[test].any()


def test_an_integer_keeps_proportions_of_classes_for_classifiers():
    y = np.sort(CLASSES)  # plain folds of sorted classes would leave a class out
    masks = fold_masks(3, X, y, classifier=True)[0]
    for column in masks.T:
        counts = np.bincount(y[column == 1], minlength=3)
        np.testing.assert_allclose(counts, np.bincount(y) * 2 / 3, atol=1)


def test_groups_come_with_the_splits():
    groups = np.arange(N) // 7
    splits = list(GroupKFold(5).split(X, CLASSES, groups))
    masks = fold_masks(splits, X, CLASSES)[0]
    for group in np.unique(groups):
        assert len(np.unique(masks[groups == group], axis=0)) == 1


@pytest.mark.parametrize(
    "name, spoil",
    [
        ("an example is never held out", lambda M: np.where(np.arange(N)[:, None] == 3, 1.0, M)),
        ("an example is always held out", lambda M: np.where(np.arange(N)[:, None] == 3, 0.0, M)),
        ("folds overlap", lambda M: np.column_stack([M, M[:, 0]])),
        ("a fold is missing", lambda M: M[:, 1:]),
    ],
)
def test_masks_must_hold_out_each_example_once(name, spoil, masks):
    problem = Problem(operator(), Softmax(), INDICATOR)
    with pytest.raises(ValueError, match="masks must hold out every example in exactly one fold"):
        cross_val_latent(problem, spoil(masks))


@pytest.mark.parametrize(
    "masks, words",
    [
        (np.full((N, 2), 0.5), "zeros and ones"),
        (np.ones((N - 1, 2)), rf"\({N}, n_folds\), got \({N - 1}, 2\)"),
        (np.ones(N), rf"\({N}, n_folds\), got \({N},\)"),
    ],
)
def test_masks_must_be_masks(masks, words):
    with pytest.raises(ValueError, match=words):
        cross_val_latent(Problem(operator(), Softmax(), INDICATOR), masks)


def test_bad_cv_is_refused():
    with pytest.raises(ValueError, match="n_splits"):
        fold_masks(1, X, CLASSES)[0]
    with pytest.raises(ValueError, match="five"):
        fold_masks("five", X, CLASSES)[0]


def test_sorted_examples_are_shuffled_by_a_number_of_folds():
    """Files are often sorted: consecutive folds would train on other examples than they judge."""
    y = np.sort(np.random.default_rng(0).normal(size=60))
    held_out = fold_masks(3, y[:, None], y)[1]
    middle = [y[column == 1].mean() for column in held_out.T]
    assert np.ptp(middle) < 0.8 < np.ptp([part.mean() for part in np.array_split(y, 3)])
    same, other = (fold_masks(3, y[:, None], y, random_state=seed)[1] for seed in (0, 1))
    np.testing.assert_array_equal(held_out, same)
    assert (held_out != other).any()


@pytest.mark.parametrize("classifier", [False, True])
def test_groups_are_held_out_together(classifier):
    groups = np.arange(N) % 7
    held_out = fold_masks(3, X, CLASSES, classifier=classifier, groups=groups)[1]
    np.testing.assert_array_equal(held_out.sum(axis=1), 1)
    for group in range(7):
        assert len(np.unique(held_out[groups == group], axis=0)) == 1
    given = fold_masks(GroupKFold(7), X, CLASSES, groups=groups)[1]
    assert given.shape == (N, 7)
