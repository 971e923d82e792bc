"""Learning hyperparameters in estimators: ``optimize="cv"`` on every kind of data, and what it leaves behind."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian import KernelLogisticRegression, KernelRidge, KernelSVC
from gramian.kernels import RBF, Constant, Linear, Matern
from gramian.selection import CrossValidationSearch, LogNormalPrior, OptimizationPath

pytestmark = pytest.mark.usefixtures("one_thread")
KLR, SVC, RIDGE = KernelLogisticRegression, KernelSVC, KernelRidge
ESTIMATORS = [KLR, SVC, RIDGE]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


N = 60
QUICK = CrossValidationSearch(tol=0.02)  # enough to compare searches with each other
# A prior that is as good as none: parameters are free whatever folds say that do not drive.
FREE = CrossValidationSearch(tol=0.02, prior=LogNormalPrior(30.0))


def _data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    noisy = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=N)
    return X, np.digitize(noisy, [-0.6, 0.6])


X, CLASSES = _data()
WAVE = np.sin(2 * X[:, 0]) + 0.2 * np.random.default_rng(1).normal(size=N)
FOLDS = KFold(3, shuffle=True, random_state=0)
SPLITS = list(FOLDS.split(X))
VARIANCES, SCALES = (1e-2, 1e2), (0.1, 30.0)
START = Constant(1.0, VARIANCES) * RBF(8.0, SCALES)


def target(estimator):
    return WAVE if estimator is RIDGE else CLASSES


def cv_loss(model):
    return model.cv_log_loss_ if isinstance(model, KLR) else model.cv_loss_


def learned(estimator, y=None, X=X, kernel=START, sample_weight=None, **params):
    model = estimator(kernel, **({"optimize": QUICK, "cv": SPLITS} | params))
    return model.fit(X, target(estimator) if y is None else y, sample_weight=sample_weight)


def half_squares(model, X, y):
    """The loss of `cv_loss_`, from predictions of fits of one fold each."""
    predicted = cross_val_predict(model, X, y, cv=SPLITS)
    return 0.5 * np.mean(np.sum((predicted - y).reshape(len(X), -1) ** 2, axis=1))


def half_squared_hinges(model, X, y):
    latent = cross_val_predict(model, X, y, cv=SPLITS, method="decision_function")
    signs = 2.0 * (y[:, None] == np.unique(y)) - 1
    if latent.ndim == 1:
        latent, signs = latent[:, None], signs[:, 1:]
    return 0.5 * np.mean(np.sum(np.maximum(0, 1 - signs * latent) ** 2, axis=1))


def log_losses(model, X, y):
    return log_loss(y, cross_val_predict(model, X, y, cv=SPLITS, method="predict_proba"))


JUDGES = {KLR: log_losses, SVC: half_squared_hinges, RIDGE: half_squares}


# --- what is learned --------------------------------------------------------------------------


@every_estimator
def test_learning_lowers_the_cross_validated_loss(estimator):
    """Scikit-learn's own cross-validation of the learned kernel gives the loss that was reported."""
    model, judge, y = learned(estimator, optimize="cv"), JUDGES[estimator], target(estimator)
    before = judge(estimator(START, tol=1e-12, regularization=1.0), X, y)
    after = judge(estimator(model.kernel_, tol=1e-12, regularization=1.0), X, y)
    assert after < 0.9 * before
    np.testing.assert_allclose(cv_loss(model), after, rtol=1e-4)
    np.testing.assert_allclose(model.optimization_path_.loss[0], before, rtol=1e-2)
    np.testing.assert_allclose(cv_loss(model), model.optimization_path_.loss.min(), rtol=1e-4)


@every_estimator
def test_the_model_is_the_fit_with_the_learned_kernel(estimator):
    model = learned(estimator, tol=1e-14)
    plain = estimator(model.kernel_, tol=1e-14, regularization=1.0).fit(X, target(estimator))
    np.testing.assert_allclose(model.dual_coef_, plain.dual_coef_, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X).shape, plain.predict(X).shape)
    assert model.kernel is START  # the parameter stays as given
    assert START == Constant(1.0, VARIANCES) * RBF(8.0, SCALES)


@pytest.mark.parametrize("estimator", [KLR, SVC])
def test_two_classes(estimator):
    y = np.where(CLASSES == 1, "yes", "no")
    model = learned(estimator, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.dual_coef_.shape == (N, 1)
    assert model.groups_.tolist() == [0]
    np.testing.assert_allclose(
        cv_loss(model),
        JUDGES[estimator](estimator(model.kernel_, tol=1e-12, regularization=1.0), X, y),
        rtol=5e-4,  # fits of a search are as accurate as its tolerance asks
    )


def test_separate_kernels_are_no_worse_than_the_tied_ones_they_contain():
    tied, separate = (learned(KernelLogisticRegression, share=share) for share in ("tied", "class"))
    assert separate.cv_log_loss_ <= tied.cv_log_loss_ * (1 + 1e-3)


def test_several_outputs_of_ridge_share_a_kernel():
    Y = np.column_stack([WAVE, np.cos(X[:, 1])])
    model = learned(RIDGE, Y)
    assert model.dual_coef_.shape == (N, 2)
    assert model.predict(X).shape == (N, 2)
    np.testing.assert_allclose(
        model.cv_loss_,
        half_squares(RIDGE(model.kernel_, tol=1e-12, regularization=1.0), X, Y),
        rtol=1e-4,
    )


@every_estimator
def test_fixed_parameters_stay_and_bounds_hold(estimator):
    kernel = Constant(3.0, "fixed") * RBF(8.0, length_scale_bounds=(3.5, 20.0))
    model = learned(estimator, kernel=kernel, optimize=CrossValidationSearch(tol=1e-3))
    np.testing.assert_allclose(model.variances_, [3.0], rtol=1e-14)
    np.testing.assert_allclose(model.kernel_.right.length_scale, 3.5)  # the minimum is lower
    np.testing.assert_allclose(model.optimization_path_.theta[:, 1], np.log(3.0))


@every_estimator
def test_nothing_to_learn_is_a_plain_fit(estimator):
    kernel = Constant(3.0, "fixed") * RBF(2.0, length_scale_bounds="fixed")
    model = learned(estimator, kernel=kernel, tol=1e-14)
    plain = estimator(kernel, tol=1e-14, regularization=1.0).fit(X, target(estimator))
    np.testing.assert_allclose(model.dual_coef_, plain.dual_coef_, atol=1e-5)
    assert model.optimization_path_.message.startswith("nothing to learn")
    assert cv_loss(model) > 0


@every_estimator
def test_a_narrow_prior_keeps_the_kernel(estimator):
    search = CrossValidationSearch(prior=LogNormalPrior(1e-4))
    model = learned(estimator, optimize=search)
    np.testing.assert_allclose(model.kernel_.theta, START.theta, atol=1e-3)
    # the loss is reported without the prior
    judged = JUDGES[estimator](
        estimator(model.kernel_, tol=1e-12, regularization=1.0), X, target(estimator)
    )
    np.testing.assert_allclose(cv_loss(model), judged, rtol=1e-2)


def test_every_number_of_a_composed_kernel_is_learned():
    kernel = 1.0 * RBF([1.0, 1.0, 1.0], (0.1, 30.0)) + 0.5 * Linear()
    model = learned(KLR, kernel=kernel, optimize=FREE)
    names = model.optimization_path_.names
    assert len(names) == 6
    assert [name.split(".")[-1] for name in names[1:4]] == [f"length_scale[{k}]" for k in range(3)]
    scales = np.exp(model.kernel_.theta[1:4])
    assert np.argmax(scales) == 2  # the feature that says nothing about the class
    assert len(set(scales.round(3))) == 3


# --- sharing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [KLR, SVC])
def test_a_kernel_for_each_class(estimator):
    tied, model = learned(estimator), learned(estimator, share="class", optimize=FREE)
    assert len(model.kernels_) == 3
    assert model.variances_.shape == (3,)
    assert model.groups_.tolist() == [0, 1, 2]
    assert model.optimization_path_.names == (
        *(f"RBF.length_scale [{c}]" for c in range(3)),
        *(f"variance [{c}]" for c in range(3)),
    )
    scales = [kernel.right.length_scale for kernel in model.kernels_]
    assert len(set(scales)) == 3
    with pytest.raises(AttributeError, match="3 kernels; see kernels_"):
        _ = model.kernel_
    assert not hasattr(model, "kernel_")
    assert cv_loss(model) < 1.02 * cv_loss(tied) < 0.98 * model.optimization_path_.loss[0]
    assert model.score(X, CLASSES) > 0.6


@pytest.mark.parametrize("estimator", [KLR, SVC])
def test_groups_of_a_mapping(estimator):
    share = {0: "easy", 1: "hard", 2: "hard"}
    model = learned(estimator, share=share, optimize=FREE)
    assert len(model.kernels_) == 2
    assert model.groups_.tolist() == [0, 1, 1]
    assert model.optimization_path_.names[:2] == (
        "RBF.length_scale [easy]",
        "RBF.length_scale [hard]",
    )
    assert model.kernels_[0] != model.kernels_[1]


@pytest.mark.parametrize("estimator", [KLR, SVC])
@pytest.mark.parametrize("share", ["class", {0: "a", 1: "b", 2: "a"}])
def test_sharing_does_not_matter_unless_it_is_learned(estimator, share):
    tied = estimator(2.0 * RBF(1.5), tol=1e-14, regularization=1.0).fit(X, CLASSES)
    model = estimator(2.0 * RBF(1.5), share=share, tol=1e-14, regularization=1.0).fit(X, CLASSES)
    np.testing.assert_allclose(model.decision_function(X), tied.decision_function(X), atol=1e-5)


# --- folds ------------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("cv", [3, SPLITS, ShuffleSplit(2, test_size=0.3, random_state=0)])
def test_folds_of_every_kind(estimator, cv):
    model = learned(estimator, cv=cv)
    assert cv_loss(model) < 0.95 * model.optimization_path_.loss[0]


def test_an_integer_means_the_splitter_of_scikit_learn():
    """Stratified for classes, plain for numbers, and shuffled."""
    shuffled = {"shuffle": True, "random_state": 0}
    splitters = (KLR, StratifiedKFold(4, **shuffled)), (RIDGE, KFold(4, **shuffled))
    for estimator, splitter in splitters:
        one, other = learned(estimator, cv=4), learned(estimator, cv=splitter)
        np.testing.assert_array_equal(one.optimization_path_.loss, other.optimization_path_.loss)


# --- data of every kind -----------------------------------------------------------------------


def same_search(one, other, first=1e-5, last=2e-3):
    """The same start, and about the same end: rounding may lead through other points."""
    start, same_start = one.optimization_path_.loss[0], other.optimization_path_.loss[0]
    np.testing.assert_allclose(start, same_start, rtol=first)
    np.testing.assert_allclose(cv_loss(one), cv_loss(other), rtol=last)


@every_estimator
def test_sparse_rows(estimator):
    thin = np.where(X > 0, X, 0.0)
    dense, sparse = (learned(estimator, X=rows) for rows in (thin, sp.csr_array(thin)))
    same_search(sparse, dense)
    np.testing.assert_allclose(sparse.kernel_.theta, dense.kernel_.theta, atol=0.05)


@every_estimator
def test_sparse_rows_of_a_linear_kernel(estimator):
    thin = sp.csr_array(np.where(X > 0, X, 0.0))
    model = learned(estimator, X=thin, kernel=0.02 * Linear(), optimize="cv")
    assert model.operator_.name == "linear"
    assert model.optimization_path_.names == ("variance",)
    assert cv_loss(model) < model.optimization_path_.loss[0]


@every_estimator
def test_single_precision(estimator):
    double, single = learned(estimator), learned(estimator, X=X.astype(np.float32))
    assert single.X_fit_.dtype == np.float32
    same_search(single, double, first=1e-3, last=5e-3)


@every_estimator
def test_data_frames(estimator):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    y = pandas.Series(target(estimator))
    model = learned(estimator, y, X=frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    same_search(model, learned(estimator))


@every_estimator
def test_a_precomputed_kernel_learns_its_variance(estimator):
    K = RBF(2.0)(X)
    model = learned(estimator, X=K, kernel="precomputed")
    features = learned(estimator, kernel=RBF(2.0, length_scale_bounds="fixed"))
    assert model.optimization_path_.names == ("variance",)
    same_search(model, features)
    np.testing.assert_allclose(model.variances_, features.variances_, rtol=0.05)
    coarse = learned(
        estimator, X=K, kernel="precomputed", optimize=CrossValidationSearch(coarse=40)
    )
    assert coarse.optimization_path_.n_samples[0] == 40
    np.testing.assert_allclose(cv_loss(coarse), cv_loss(model), rtol=1e-2)


@every_estimator
@pytest.mark.parametrize("operator", ["dense", "streamed"])
def test_operators_asked_for(estimator, operator):
    model = learned(estimator, operator=operator)
    assert model.operator_.name == operator
    same_search(model, learned(estimator), first=5e-3)  # and a stored matrix only


@every_estimator
def test_other_array_libraries(estimator):
    strict = pytest.importorskip("array_api_strict")
    expected = learned(estimator)
    with sklearn.config_context(array_api_dispatch=True):
        y = strict.asarray(target(estimator))
        model = learned(estimator, y, X=strict.asarray(X))
        assert isinstance(model.dual_coef_, type(y))
    same_search(model, expected, first=5e-3)  # ridge regression has a closed form with NumPy


# --- weights ----------------------------------------------------------------------------------


@every_estimator
def test_weight_two_is_a_row_twice(estimator):
    """The folds must hold out both copies; then every number of the search agrees."""
    weights = np.where(np.arange(N) < 20, 2.0, 1.0)
    rows = np.concatenate([np.arange(N), np.arange(20)])
    splits = [tuple(np.flatnonzero(np.isin(rows, part)) for part in split) for split in SPLITS]
    y = target(estimator)
    search = CrossValidationSearch(tol=3e-3)
    weighted = learned(estimator, sample_weight=weights, optimize=search)
    twice = learned(estimator, y[rows], X=X[rows], cv=splits, optimize=search)
    same_search(weighted, twice)
    np.testing.assert_allclose(weighted.kernel_.theta, twice.kernel_.theta, atol=0.02)
    assert abs(cv_loss(weighted) / cv_loss(learned(estimator)) - 1) > 1e-3


@every_estimator
def test_weight_zero_is_no_row(estimator):
    weights = np.where(np.arange(N) < 45, 1.0, 0.0)
    splits = [tuple(part[part < 45] for part in split) for split in SPLITS]
    search = CrossValidationSearch(tol=3e-3)
    weighted = learned(estimator, sample_weight=weights, optimize=search)
    fewer = learned(estimator, target(estimator)[:45], X=X[:45], cv=splits, optimize=search)
    same_search(weighted, fewer)


@pytest.mark.parametrize("estimator", [KLR, SVC])
def test_class_weight_is_sample_weight(estimator):
    by_class = learned(estimator, class_weight={0: 1.0, 1: 3.0, 2: 0.5})
    by_row = learned(estimator, sample_weight=np.array([1.0, 3.0, 0.5])[CLASSES])
    np.testing.assert_array_equal(by_class.optimization_path_.loss, by_row.optimization_path_.loss)
    balanced = learned(estimator, class_weight="balanced")
    assert cv_loss(balanced) != cv_loss(by_row)


# --- what a fit leaves behind -----------------------------------------------------------------


@every_estimator
def test_fitted_attributes(estimator):
    model = learned(estimator)
    name, other = ("cv_log_loss_", "cv_loss_")[:: 1 if estimator is KLR else -1]
    assert isinstance(getattr(model, name), float)
    assert not hasattr(model, other)
    assert model.kernels_ == (model.kernel_,)
    assert model.variances_.shape == (1,)
    path = model.optimization_path_
    assert isinstance(path, OptimizationPath)
    assert path.converged
    assert path.names == ("RBF.length_scale", "variance")
    np.testing.assert_allclose(
        path.theta[path.best],
        np.log([model.kernel_.right.length_scale, model.variances_[0]]),
    )
    np.testing.assert_allclose(model.kernel_.left.value, model.variances_[0])


@every_estimator
def test_a_later_fit_without_learning_forgets(estimator):
    model = learned(estimator)
    model.set_params(optimize=None).fit(X, target(estimator))
    for name in ("cv_loss_", "cv_log_loss_", "optimization_path_"):
        assert not hasattr(model, name)
    assert model.kernel_ == RBF(8.0, SCALES)


@every_estimator
def test_clone_and_parameters(estimator):
    model = learned(estimator, optimize=CrossValidationSearch(tol=0.1, prior=LogNormalPrior(2.0)))
    copied = clone(model)
    assert not hasattr(copied, "optimization_path_")
    assert copied.get_params()["optimize__tol"] == 0.1
    assert copied.get_params()["optimize__prior__deviation"] == 2.0
    again = copied.fit(X, target(estimator))
    np.testing.assert_array_equal(again.optimization_path_.loss, model.optimization_path_.loss)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)


def same_model(one, other):
    np.testing.assert_array_equal(other.predict(X), one.predict(X))
    assert other.kernels_ == one.kernels_
    assert cv_loss(other) == cv_loss(one)
    assert vars(other).keys() == vars(one).keys()
    path, stored = one.optimization_path_, other.optimization_path_
    assert isinstance(stored, OptimizationPath)
    assert (stored.names, stored.message) == (path.names, path.message)
    np.testing.assert_array_equal(stored.theta, path.theta)


SHARED = [(KLR, "tied"), (KLR, "class"), (SVC, "class")]


@pytest.mark.parametrize("estimator, share", SHARED)
def test_pickle_and_skops(estimator, share):
    """A learned model is stored like any other; all there is to trust are plain classes of gramian."""
    search = CrossValidationSearch(tol=0.1, prior=LogNormalPrior(2.0))
    model = learned(estimator, share=share, optimize=search, cv=3)
    same_model(model, pickle.loads(pickle.dumps(model)))
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(model)
    types = skops.get_untrusted_types(data=stored)
    assert all(name.startswith("gramian.") for name in types)
    same_model(model, skops.loads(stored, trusted=types))


def test_pipelines_and_grid_searches():
    search = CrossValidationSearch(tol=0.1)
    pipeline = make_pipeline(StandardScaler(), KLR(optimize=search, cv=3))
    grid = {"kernellogisticregression__kernel": [Linear(), Matern(1.0, nu=2.5)]}
    found = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, CLASSES)
    assert found.best_score_ > 0.6


def test_a_warm_start_survives_learning():
    model = learned(KLR, warm_start=True)
    first = model.predict_proba(X)
    np.testing.assert_allclose(model.fit(X, CLASSES).predict_proba(X), first, atol=1e-3)


# --- what is refused --------------------------------------------------------------------------

BAD = {
    "optimize='bayes'": ({"optimize": "bayes"}, ("optimize", "'cv'", "'bayes'")),
    "optimize=True": ({"optimize": True}, ("optimize", "True")),
    "cv=1": ({"cv": 1}, ("cv=1", "n_splits=2 or more")),
    "cv=61": ({"cv": 61}, ("cv=61", "n_splits=61")),
    "cv='five'": ({"cv": "five"}, ("cv='five'", "integer")),
    "cv=[]": ({"cv": []}, ("cv must give at least one split", "[]")),
    "cv overlaps": (
        {"cv": [(np.arange(40), np.arange(30, N))]},
        ("must not both train and be held out",),
    ),
}
BAD_SHARES = {
    "share='all'": ({"share": "all"}, ("share", "'tied'", "mapping", "'all'")),
    "share='level'": ({"share": "level"}, ("share='level'", "hierarchy", "'class'")),
    "share='subtree'": ({"share": "subtree"}, ("share='subtree'", "hierarchy")),
    "share of some": ({"share": {0: "a", 2: "b"}}, ("share", "every class", "missing: 1")),
    "share=None": ({"share": None}, ("share", "None")),
}


@every_estimator
@pytest.mark.parametrize("name", BAD)
def test_bad_settings_are_refused(estimator, name):
    settings, words = BAD[name]
    model = estimator(**({"optimize": "cv"} | settings))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the words are below)
        model.fit(X, target(estimator))
    for word in words:
        assert word in str(caught.value)
    assert not hasattr(model, "dual_coef_")


@pytest.mark.parametrize("estimator", [KLR, SVC])
@pytest.mark.parametrize("name", BAD_SHARES)
def test_bad_sharing_is_refused(estimator, name):
    settings, words = BAD_SHARES[name]
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the words are below)
        estimator(**settings).fit(X, CLASSES)
    for word in words:
        assert word in str(caught.value)


def test_ridge_has_no_sharing():
    with pytest.raises(TypeError, match="share"):
        RIDGE(share="class")


def test_learning_is_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("error", ConvergenceWarning)
        for estimator in ESTIMATORS:
            model = learned(estimator, optimize="cv")
            assert model.optimization_path_.converged
