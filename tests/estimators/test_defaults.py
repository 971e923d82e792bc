"""What `fit` decides by itself: what is left open is found, what is given is used as it is."""

import logging
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.preprocessing import QuantileTransformer

from gramian import (
    HierarchicalSVC,
    KernelLogisticRegression,
    KernelRidge,
    KernelSVC,
    M3LClassifier,
    PairKFold,
    PairwiseLogisticRegression,
    PairwiseRidge,
)
from gramian.datasets import make_interactions
from gramian.estimators.learning import AUTOMATIC_RIDGE
from gramian.kernels import RBF, Laplacian

X, CLASSES = load_iris(return_X_y=True)
X, CLASSES = X[::2], CLASSES[::2]
WAVE = np.sin(3 * X[:, 0]) + X[:, 1]
SINGLE = {
    KernelLogisticRegression: CLASSES,
    KernelSVC: CLASSES,
    KernelRidge: WAVE,
}
every = pytest.mark.parametrize("estimator", SINGLE)


@every
def test_with_nothing_set_scale_and_variance_are_learned(estimator):
    y = SINGLE[estimator]
    model, plain = estimator().fit(X, y), estimator(regularization=1.0).fit(X, y)
    path = model.optimization_path_
    assert path.loss[path.best] < path.loss[0]  # the first one looked at is the plain model
    assert model.kernel_ != plain.kernel_
    assert not hasattr(plain, "optimization_path_")
    assert plain.solution_.choices == ()


def test_it_is_better_than_no_learning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (np.sin(4 * X[:, 0]) + X[:, 1] > 0).astype(int)
    train, test = slice(0, 250), slice(250, None)
    losses = [
        log_loss(y[test], model.fit(X[train], y[train]).predict_proba(X[test]))
        for model in (KernelLogisticRegression(), KernelLogisticRegression(regularization=1.0))
    ]
    assert losses[0] < 0.9 * losses[1]


@every
def test_a_kernel_object_with_a_number_is_used_as_it_is(estimator):
    model = estimator(2.0 * RBF(1.3), regularization=0.5).fit(X, SINGLE[estimator])
    assert model.kernel_ == 2.0 * RBF(1.3)
    assert not hasattr(model, "optimization_path_")


@every
def test_a_kernel_object_alone_keeps_its_parameters(estimator):
    """λ was left open: the variance is learned in its place, and nothing else."""
    model = estimator(RBF(1.3)).fit(X, SINGLE[estimator])
    assert model.kernel_.amplitude()[1] == RBF(1.3)
    assert model.variances_[0] != 1.0


@every
def test_none_takes_everything_as_it_is(estimator):
    model = estimator(optimize=None).fit(X, SINGLE[estimator])
    same = estimator(regularization=1.0).fit(X, SINGLE[estimator])
    np.testing.assert_array_equal(model.dual_coef_, same.dual_coef_)


@pytest.mark.parametrize(
    "estimator, binary", [(PairwiseRidge, False), (PairwiseLogisticRegression, True)]
)
def test_pairs_learn_too(estimator, binary):
    pairs, y = make_interactions(n_left=20, n_right=15, binary=binary, random_state=0)
    model = estimator().fit(pairs, y)
    path = model.optimization_path_
    assert path.loss[path.best] < path.loss[0]
    assert len(path.names) == 3  # two length scales and the variance


def test_validation_pairs_take_the_place_of_the_search():
    pairs, y = make_interactions(n_left=20, n_right=15, random_state=0)
    model = PairwiseRidge().fit(pairs[30:], y[30:], X_val=pairs[:30], y_val=y[:30])
    assert not hasattr(model, "optimization_path_")


def test_the_decision_is_said_and_logged(caplog):
    with caplog.at_level(logging.INFO, logger="gramian"):
        model = KernelLogisticRegression().fit(X, CLASSES)
    learned, form = model.solution_.choices
    assert repr(model.kernel_) in learned
    assert "75 of 75 examples" in learned
    assert all(name in form for name in ("RBF 0.", "Matern 0.", "Laplacian 0."))
    assert form.count("75 examples") == 3
    messages = [record.message for record in caplog.records]
    assert {f"KernelLogisticRegression: {choice}" for choice in (learned, form)} <= set(messages)


def _steps_and_waves(rng):
    """Classes by the cell of a grid, along the features, and by waves across them."""
    X = rng.uniform(-1, 1, size=(600, 3))
    steps = np.floor(2 * X[:, 0]) + 2 * (X[:, 1] > 0.3)
    return X, steps, np.sin(4 * X.sum(axis=1)) > 0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_form_of_the_kernel_is_found(kind, rng):
    X, steps, waves = _steps_and_waves(rng)
    rough = KernelLogisticRegression().fit(kind(X), steps)
    smooth = KernelLogisticRegression().fit(kind(X), waves)
    assert isinstance(rough._prior.kernels[0], Laplacian)
    assert isinstance(smooth._prior.kernels[0], RBF)
    named = KernelLogisticRegression("rbf").fit(kind(X), steps)
    assert rough.cv_log_loss_ < 0.9 * named.cv_log_loss_
    assert len(named.solution_.choices) == 1


def test_losses_of_the_race_are_told_with_their_examples(rng):
    """Who drops out after the first heat has a loss on fewer examples than those who go on."""
    X, steps, _ = _steps_and_waves(rng)
    form = KernelLogisticRegression().fit(X, steps).solution_.choices[1]
    sizes = [int(words.split()[-2]) for words in form.split(": ")[1].split(", ")]
    assert len(sizes) == 3
    assert set(sizes) <= {250, 600}
    assert 250 in sizes


def test_separate_kernels_have_one_form(rng):
    X, steps, _ = _steps_and_waves(rng)
    model = KernelLogisticRegression(share="class").fit(X[:200], steps[:200])
    assert {type(kernel) for kernel in model._prior.kernels} == {Laplacian}


@pytest.mark.parametrize("parameters", [{"regularization": 0.5}, {"optimize": None}])
def test_where_nothing_is_learned_the_kernel_is_smooth(parameters):
    model = KernelLogisticRegression(**parameters).fit(X, CLASSES)
    assert repr(model.kernel_) == repr(RBF("scale").resolve(X))


@pytest.mark.parametrize("stops_after", [1, 9, 20, 30])
def test_a_race_can_be_stopped(stops_after, monkeypatch):
    """By a callback, in any of its heats; the best of what was seen until then is kept."""
    seen = []

    def step(self, name, *arguments):
        seen.append(name)
        return name == "evaluation" and len(seen) == stops_after

    monkeypatch.setattr("gramian.estimators.progress.Task.step", step)
    model = KernelLogisticRegression().fit(X, CLASSES)
    assert seen.count("evaluation") == stops_after
    assert model.score(X, CLASSES) > 0.5


def test_many_examples_are_learned_from_a_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2300, 2))
    model = KernelRidge(random_state=0).fit(X, np.sin(X[:, 0]))
    assert model.optimization_path_.n_samples[-1] == AUTOMATIC_RIDGE.max_samples
    assert model.X_fit_.shape == (2300, 2)
    assert "1500 of 2300 examples" in model.solution_.choices[0]


def test_ridge_does_not_stop_in_a_flat_valley():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=300) / 5
    found, learned = (KernelRidge(optimize=how, random_state=0).fit(X, y) for how in ("auto", "cv"))
    assert found.cv_loss_ <= 1.003 * learned.cv_loss_  # 1.009 with the tolerance for log losses


@every
def test_the_same_each_time(estimator):
    one, other = (estimator().fit(X, SINGLE[estimator]) for _ in range(2))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


@every
def test_an_example_of_weight_zero_takes_no_part(estimator):
    y = SINGLE[estimator]
    weights = np.ones(len(X))
    weights[::5] = 0.0
    kept = weights > 0
    model = estimator(tol=1e-14).fit(X, y, sample_weight=weights)
    fewer = estimator(tol=1e-14).fit(X[kept], y[kept], sample_weight=weights[kept])
    np.testing.assert_allclose(model.kernel_.theta, fewer.kernel_.theta, atol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_too_few_examples_for_folds_are_no_error(n):
    X = np.arange(2.0 * n).reshape(n, 2)
    assert KernelRidge().fit(X, X[:, 0]).predict(X).shape == (n,)
    y = np.arange(n) % 2
    assert KernelLogisticRegression().fit(X, y).predict_proba(X).shape == (n, 2)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_do_not_matter(unit):
    """Features, targets and similarities in other units give the same model."""
    plain = KernelRidge().fit(X, WAVE).predict(X)
    np.testing.assert_allclose(
        KernelRidge().fit(unit * X, WAVE).predict(unit * X), plain, atol=1e-4
    )
    np.testing.assert_allclose(
        KernelRidge().fit(X, unit * WAVE).predict(X) / unit, plain, atol=1e-4
    )
    K = RBF(1.0)(X)
    similar = KernelRidge("precomputed").fit(K, WAVE).predict(K)
    scaled = KernelRidge("precomputed").fit(unit * K, WAVE).predict(unit * K)
    np.testing.assert_allclose(scaled, similar, atol=1e-4)


def test_groups_are_held_out_together():
    """Ten copies of each example: only with groups do folds see that noise does not repeat."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(40, 2)), rng.normal(size=40)
    groups = np.repeat(np.arange(40), 10)
    X, y = X[groups], noise[groups]
    careless, careful = KernelRidge().fit(X, y), KernelRidge().fit(X, y, groups=groups)
    assert careful.variances_[0] < 0.1 * careless.variances_[0]
    given = KernelRidge(cv=GroupKFold(5)).fit(X, y, groups=groups)
    assert given.variances_[0] < 0.1 * careless.variances_[0]
    with pytest.raises(ValueError, match=r"groups must have shape \(400,\)"):
        KernelRidge().fit(X, y, groups=groups[:3])


def test_groups_are_routed():
    groups = np.arange(len(X)) % 10
    with sklearn.config_context(enable_metadata_routing=True):
        model = KernelRidge(cv=GroupKFold(3)).set_fit_request(groups=True)
        found = cross_validate(
            model, X, WAVE, cv=GroupKFold(2), params={"groups": groups}, error_score="raise"
        )
    assert np.isfinite(found["test_score"]).all()


@pytest.mark.parametrize("model", [M3LClassifier(), HierarchicalSVC()], ids=["labels", "tree"])
def test_margin_machines_choose_their_weight_of_losses(model, caplog):
    """C by folds, which keep groups together; a number is taken as it is."""
    with caplog.at_level(logging.INFO, logger="gramian"):
        fitted = clone(model).fit(X, CLASSES, groups=np.arange(len(X)) % 10)
    (choice,) = fitted.solution_.choices
    assert f"C={fitted.C_:.3g}" in choice
    assert choice in caplog.text
    given = clone(model).set_params(C=2.0).fit(X, CLASSES)
    assert (given.C_, given.solution_.choices) == (2.0, ())


def test_heavy_tails_are_warned_of(rng):
    X = np.column_stack([rng.normal(size=400), rng.standard_cauchy(400), rng.random(400) < 0.01])
    y = np.sin(X[:, 0])
    words = r"1 of 3 features have heavy tails .*: 1\. A few .*QuantileTransformer"
    with pytest.warns(UserWarning, match=words) as caught:
        KernelRidge("rbf").fit(X, y)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        KernelRidge("laplacian").fit(X, y)  # a single feature does not decide
        KernelRidge("rbf").fit(X * [100.0, 1e-3, 1.0], y)  # tails that distances do not feel
        KernelRidge("linear").fit(X, y)  # has no length scale
        KernelRidge(RBF(1.0), regularization=1.0).fit(X, y)  # taken literally
        KernelRidge("rbf").fit(
            QuantileTransformer(n_quantiles=100, output_distribution="normal").fit_transform(X), y
        )


def test_a_slope_of_a_few_per_cent_is_followed_to_its_end(rng):
    """Few examples in many dimensions: each tenfold variance lowers the loss by a little, over many orders."""
    y = np.repeat(np.arange(8), 6)
    X = rng.normal(size=(8, 300))[y] + 1.5 * rng.normal(size=(48, 300))
    model = KernelLogisticRegression("linear").fit(X, y)
    expected = KernelLogisticRegression("linear", optimize="cv").fit(X, y)
    assert model.cv_log_loss_ < 1.1 * expected.cv_log_loss_
    assert model._prior.variances[0] * 300 > 1e3  # times the values of the kernel


@pytest.mark.parametrize("setting", "AD")
def test_a_number_that_is_added_to_targets_does_not_matter(setting):
    pairs, y = make_interactions()
    training, test = next(iter(PairKFold(setting).split(pairs, y)))
    plain, shifted = (
        PairwiseRidge().fit(pairs[training], values[training]).score(pairs[test], values[test])
        for values in (y, y + 6.0)
    )
    assert plain > 0.3
    assert shifted == pytest.approx(plain, abs=5e-3)
