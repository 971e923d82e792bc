"""The search ends at a minimum of the criterion, within bounds, and says what it did."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold

from gramian import KernelLogisticRegression, KernelRidge
from gramian.kernels import RBF, Constant, Linear, Matern, White
from gramian.losses import Softmax, Squared
from gramian.selection import (
    CrossValidationCriterion,
    CrossValidationSearch,
    LogNormalPrior,
    OptimizationPath,
    fold_masks,
)
from gramian.selection.criterion import NoRoles
from gramian.selection.prior import GramSettings, assemble_prior
from gramian.solvers import Problem

pytestmark = pytest.mark.usefixtures("one_thread")


def _data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    noisy = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=n)
    return X, np.digitize(noisy, [-0.6, 0.6])


X, CLASSES = _data(60)
FOLDS = KFold(3, shuffle=True, random_state=0)


# --- a criterion with a known minimum -------------------------------------------------------------


class Bowl:
    """1 + ½ Σ c (θ − m)², which remembers how it was asked."""

    n_products = 7

    def __init__(self, centre, curvature=1.0):
        self.centre, self.curvature = np.asarray(centre, dtype=float), np.asarray(curvature)
        self.asked = []

    def __call__(self, theta, tol, accuracy):
        self.asked.append((theta.copy(), tol))
        off = theta - self.centre
        return 1 + 0.5 * float(np.sum(self.curvature * off**2)), self.curvature * off


def run(bowl, search=None, start=None, bounds=None, total_weight=1.0, report=None):
    size = bowl.centre.size
    start = np.zeros(size) if start is None else np.asarray(start, dtype=float)
    bounds = np.tile([-20.0, 20.0], (size, 1)) if bounds is None else np.asarray(bounds)
    names = [f"p{k}" for k in range(size)]
    search = search or CrossValidationSearch(tol=1e-6)
    walk = search.walk([lambda: bowl], [10], start, bounds, names, total_weight, report=report)
    return walk.finish()


def found(path):
    return path.theta[path.best]


def test_a_bowl_is_descended_to_its_centre():
    bowl = Bowl([1.0, -2.0, 0.5], curvature=[1.0, 0.1, 10.0])
    path = run(bowl)
    assert path.converged
    assert path.message.startswith(("the relative gradient is", "no step promises"))
    np.testing.assert_allclose(found(path), bowl.centre, atol=1e-4)


def test_a_far_minimum_is_reached_in_strides():
    """No stride is longer than three units from where it began, so that extremes are not evaluated."""
    bowl = Bowl([11.0], curvature=0.1)
    path = run(bowl)
    assert path.converged
    np.testing.assert_allclose(found(path), 11.0, atol=1e-3)
    thetas = path.theta[:, 0]
    best_so_far = np.maximum.accumulate(thetas)
    assert (np.diff(thetas) <= 3 + 1e-9).all()
    assert (thetas[1:] - best_so_far[:-1] <= 3 + 1e-9).all()


def test_bounds_hold():
    """The minimum lies outside: the search ends at the bound, and calls that converged."""
    bounds = [[-1.0, 0.7], [-20.0, 20.0]]
    path = run(Bowl([5.0, 1.0]), bounds=bounds)
    assert path.converged
    np.testing.assert_allclose(found(path), [0.7, 1.0], atol=1e-4)
    assert (path.theta[:, 0] <= 0.7).all()


def test_a_start_outside_its_bounds_is_moved_inside():
    path = run(Bowl([0.0]), start=[8.0], bounds=[[1.0, 2.0]])
    assert path.theta[0] == 2.0
    np.testing.assert_allclose(found(path), 1.0)


def test_equal_bounds_fix_a_parameter():
    bounds = [[0.3, 0.3], [-20.0, 20.0]]
    path = run(Bowl([5.0, 1.0]), start=[0.3, 0.0], bounds=bounds)
    assert path.converged
    assert (path.theta[:, 0] == 0.3).all()
    np.testing.assert_allclose(found(path)[1], 1.0, atol=1e-4)


def test_tied_parameters_move_together_first():
    """A quick search with as many variables as there are numbers in `tied`, then all on their own."""
    bowl = Bowl([3.0, 1.0, -2.0])
    start, bounds = np.zeros(3), np.array([[-20.0, 20.0]] * 3)
    search = CrossValidationSearch(tol=1e-6)
    path = search.walk(
        [lambda: bowl], [10], start, bounds, list("abc"), 1e6, tied=np.array([0, 0, 1])
    ).finish()
    together = np.isclose(path.theta[:, 0], path.theta[:, 1])
    assert together[:3].all()
    assert not together[-1]
    last = path.theta[np.flatnonzero(together)[-1]]
    np.testing.assert_allclose(last, [2.0, 2.0, -2.0], atol=0.2)  # the best with a = b
    np.testing.assert_allclose(found(path), bowl.centre, atol=1e-3)


@pytest.mark.parametrize("limit", [1, 50])
def test_nothing_to_learn_is_one_evaluation(limit):
    search = CrossValidationSearch(max_evaluations=limit)
    path = run(Bowl([5.0]), search, start=[0.3], bounds=[[0.3, 0.3]])
    assert (path.converged, path.message) == (True, "nothing to learn: all parameters are fixed")
    np.testing.assert_array_equal(path.theta, [[0.3]])
    assert path.accepted.all()


def test_the_path_has_a_row_for_each_evaluation():
    bowl = Bowl([1.0, -2.0])
    path = run(bowl)
    assert isinstance(path, OptimizationPath)
    k = len(bowl.asked)
    assert path.names == ("p0", "p1")
    assert path.theta.shape == path.gradient.shape == (k, 2)
    for name in ("loss", "accepted", "products", "seconds", "n_samples"):
        assert getattr(path, name).shape == (k,)
    assert path.accepted.dtype == bool
    assert path.accepted[0]
    assert path.accepted[path.best]
    assert path.products.dtype.kind == path.n_samples.dtype.kind == "i"
    assert (path.products == 7).all()
    assert (path.n_samples == 10).all()
    assert (np.diff(path.seconds) >= 0).all()
    np.testing.assert_array_equal(path.theta, [theta for theta, _ in bowl.asked])
    np.testing.assert_allclose(path.loss, [bowl(t, 1, 1)[0] for t in path.theta])
    np.testing.assert_allclose(path.gradient, path.theta - bowl.centre)
    assert (
        np.diff(path.loss[path.accepted]) <= 0
    ).all()  # trial steps may go up, accepted ones not
    assert path.loss[path.best] == path.loss.min()


def test_the_tolerance_of_the_fits_follows_the_gradient():
    """Loose at first; at the end the square of a small gradient."""
    bowl = Bowl([1.0, -2.0, 0.5], curvature=[1.0, 0.1, 10.0])
    run(bowl, CrossValidationSearch(tol=1e-4))
    tolerances = [tol for _, tol in bowl.asked]
    assert tolerances[0] == 1e-3
    assert tolerances[-1] < 1e-6
    assert min(tolerances) >= 1e-9


def test_a_value_that_was_too_low_misleads_for_a_few_steps_only():
    """The first evaluation, a rough one, claims to be below the minimum: the search looks closer and goes on."""

    class Optimistic(Bowl):
        def __call__(self, theta, tol, accuracy):
            value, gradient = super().__call__(theta, tol, accuracy)
            return (value - 3 if len(self.asked) == 1 else value), gradient

    bowl = Optimistic([1.0, -2.0], curvature=[0.5, 1.0])
    path = run(bowl, CrossValidationSearch(tol=1e-5))
    assert path.converged
    assert len(path.loss) < 25
    np.testing.assert_allclose(found(path), bowl.centre, atol=1e-3)
    assert path.best != np.argmin(path.loss)


def test_slopes_of_loose_fits_that_contradict_the_values_are_no_end():
    """Near a point where loose fits claim a slope of the wrong sign, no step seems to lower the loss."""

    class Rough(Bowl):
        def __call__(self, theta, tol, accuracy):
            value, gradient = super().__call__(theta, tol, accuracy)
            wrong = tol > 1e-5 and 0.1 < theta[0] < 0.16
            return value, (-gradient if wrong else gradient)

    bowl = Rough([0.0], curvature=0.3)
    path = run(bowl, CrossValidationSearch(tol=1e-2), start=[0.15])
    assert path.converged
    np.testing.assert_allclose(found(path), 0.0, atol=0.05)


def test_a_start_at_the_minimum_is_one_evaluation():
    """And one more, by better fits, where the tolerance is below what the first ones could tell."""
    for tol, evaluations in ((1e-2, 1), (1e-6, 2)):
        bowl, search = Bowl([1.0, -2.0]), CrossValidationSearch(tol=tol)
        assert len(run(bowl, search, start=[1.0, -2.0]).loss) == evaluations
        assert bowl.asked[-1][1] == (1e-3 if evaluations == 1 else 1e-9)


def test_the_limit_on_evaluations():
    bowl = Bowl(np.linspace(-5, 5, 12), curvature=np.logspace(-2, 1, 12))
    path = run(bowl, CrossValidationSearch(tol=1e-9, max_evaluations=4))
    assert len(bowl.asked) == 4
    assert not path.converged
    assert path.message.startswith("max_evaluations=4 reached with a relative gradient of")


def test_a_report_stops_the_search():
    seen = []

    def report(theta, value):
        seen.append((theta.copy(), value))
        return len(seen) == 3

    bowl = Bowl([4.0, -5.0], curvature=[0.01, 1.0])
    path = run(bowl, CrossValidationSearch(tol=1e-9), report=report)
    assert len(bowl.asked) == len(seen) == 3
    assert (path.converged, path.message) == (False, "a callback stopped the search")
    np.testing.assert_array_equal(path.theta, [theta for theta, _ in seen])
    np.testing.assert_array_equal(path.loss, [value for _, value in seen])


def test_later_stages_start_where_the_first_ended():
    coarse, fine = Bowl([1.0, -2.0]), Bowl([1.1, -2.1])
    path = (
        CrossValidationSearch(tol=1e-3)
        .walk(
            [lambda: coarse, lambda: fine],
            [10, 90],
            np.zeros(2),
            np.tile([-9.0, 9.0], (2, 1)),
            "ab",
            1,
        )
        .finish()
    )
    np.testing.assert_array_equal(path.n_samples, [10] * len(coarse.asked) + [90] * len(fine.asked))
    np.testing.assert_allclose(fine.asked[0][0], coarse.centre, atol=0.02)
    np.testing.assert_allclose(found(path), fine.centre, atol=0.005)
    assert path.n_samples[path.best] == 90  # a lower loss on fewer rows is no rival


def test_a_search_whose_criterion_is_not_finite_says_where():
    class Broken(Bowl):
        def __call__(self, theta, tol, accuracy):
            return np.nan, np.zeros(1)

    with pytest.raises(ValueError, match=r"criterion is nan at parameters \[1\.\].* bounds"):
        run(Broken([0.0]))


# --- priors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("deviation", [0.3, 1.0, [0.5, 2.0]])
@pytest.mark.parametrize("median", [None, 2.0, [0.5, 3.0]])
def test_a_prior_is_a_parabola_in_the_log_parameters(deviation, median):
    """Its minimum with that of the bowl is a weighted mean, by hand."""
    bowl, start, total = Bowl([1.0, -2.0]), np.array([0.2, 0.4]), 3.0
    search = CrossValidationSearch(tol=1e-7, prior=LogNormalPrior(deviation, median))
    path = run(bowl, search, start=start, total_weight=total)
    centre = start if median is None else np.log(median)
    weight = 1 / (total * np.asarray(deviation) ** 2)
    expected = (bowl.centre + weight * centre) / (1 + weight)
    np.testing.assert_allclose(found(path), expected, atol=1e-4)
    penalty = 0.5 * np.sum(weight * (found(path) - centre) ** 2)
    np.testing.assert_allclose(path.loss[path.best], bowl(found(path), 1, 1)[0] + penalty)


def test_a_very_narrow_prior_keeps_the_start():
    search = CrossValidationSearch(prior=LogNormalPrior(1e-4))
    path = run(Bowl([1.0, -2.0]), search, start=[0.2, 0.4])
    np.testing.assert_allclose(found(path), [0.2, 0.4], atol=1e-4)


def test_the_gradient_of_the_prior():
    prior, theta, start = LogNormalPrior([0.5, 2.0], 3.0), np.array([0.1, 0.7]), np.zeros(2)
    value, gradient = prior(theta, start)
    for k, e in enumerate(np.eye(2)):
        ahead, behind = prior(theta + 1e-5 * e, start)[0], prior(theta - 1e-5 * e, start)[0]
        np.testing.assert_allclose((ahead - behind) / 2e-5, gradient[k], rtol=1e-6)
    off = (theta - np.log(3.0)) / [0.5, 2.0]
    np.testing.assert_allclose(value, 0.5 * off @ off)


# --- cross-validation ---------------------------------------------------------------------------


def criterion(kernel, *, loss=None, targets=None):
    Y = (CLASSES[:, None] == np.arange(3)).astype(float) if targets is None else targets
    prior = assemble_prior(kernel, "tied", list(range(Y.shape[1])))
    operator, _ = prior.operator(X, Y, GramSettings("dense", 1.0), learning=True)
    problem = Problem(operator, loss or Softmax(), Y, 1.0)
    return prior, CrossValidationCriterion(problem, *fold_masks(FOLDS, X, CLASSES))


def search_of(prior, function, **settings):
    search = CrossValidationSearch(**settings)
    theta, bounds = prior.theta, prior.bounds
    walk = search.walk([lambda: function], [len(X)], theta, bounds, prior.names, len(X))
    return walk.finish()


NOISE = np.random.default_rng(2).normal(size=(60, 2))
SMOOTH = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 1] * X[:, 2]]) + 0.3 * NOISE
CASES = {
    "classes": (RBF(5.0), None, None),
    "ard": (2.0 * RBF([1.0, 1.0, 1.0]), None, None),
    "sum": (RBF(0.5) + 0.5 * Linear() + White(0.1), None, None),
    "regression": (Matern(4.0, nu=2.5), Squared(), SMOOTH),
}


@pytest.mark.parametrize("case", CASES)
def test_the_search_finds_what_a_tight_minimiser_finds(case):
    """SciPy from the same start, on the criterion to all digits, many steps."""
    kernel, loss, targets = CASES[case]
    prior, function = criterion(kernel, loss=loss, targets=targets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # some trial steps are extreme
        tight = minimize(
            lambda theta: function(theta, tol=1e-12),
            prior.theta,
            jac=True,
            method="L-BFGS-B",
            bounds=np.clip(prior.bounds, -7, 7),
            options={"maxiter": 200, "ftol": 1e-12, "gtol": 1e-7},
        )
    prior, function = criterion(kernel, loss=loss, targets=targets)
    path = search_of(prior, function, tol=1e-3)
    assert path.converged
    assert path.loss[path.best] <= tight.fun * (1 + 1e-3)
    exact = criterion(kernel, loss=loss, targets=targets)[1](found(path), tol=1e-12)[0]
    np.testing.assert_allclose(path.loss[path.best], exact, rtol=1e-4)  # and it is no illusion


def test_the_search_finds_what_a_grid_finds():
    kernel = Constant(10.0, "fixed") * RBF(0.5)
    prior, function = criterion(kernel)
    grid = [function(np.log([scale, 10.0]), tol=1e-8)[0] for scale in np.geomspace(0.3, 30, 60)]
    path = search_of(*criterion(kernel))
    assert min(grid) < 0.95 * path.loss[0]
    assert path.loss[path.best] <= min(grid) * (1 + 1e-3)
    assert (path.theta[:, 1] == prior.theta[1]).all()  # the variance is fixed


@pytest.mark.parametrize("case", ["classes", "ard", "regression"])
def test_the_search_goes_on_to_a_tight_tolerance(case):
    """Fits get better as the gradient gets smaller, so that the line search is not led astray."""
    kernel, loss, targets = CASES[case]
    prior, function = criterion(kernel, loss=loss, targets=targets)
    path = search_of(prior, function, tol=1e-5, max_evaluations=100)
    assert path.converged
    exact, gradient = function(found(path), tol=1e-14)
    np.testing.assert_allclose(path.loss[path.best], exact, rtol=1e-6)
    low, high = prior.bounds.T
    inside = (found(path) > low) & (found(path) < high)  # noise of 0.3 asks for a large variance
    assert np.abs(gradient[inside]).max() <= 1e-4 * exact


def test_a_warm_start_pays():
    path = search_of(*criterion(RBF(5.0)), tol=1e-4)
    assert path.products[0] > 0
    assert path.products[-1] < 2 * path.products[0]  # at a tolerance a thousand times finer


def test_a_descent_on_more_rows_knows_the_curvature_of_the_one_before():
    """Its first step is that of a quasi-Newton method, also where slopes and distances have little in common."""
    curvature = [30.0, 1.0, 0.1]
    coarse, fine = Bowl([1.0, -2.0, 0.5], curvature), Bowl([1.2, -1.9, 0.4], curvature)
    bounds, names = np.tile([-20.0, 20.0], (3, 1)), ["a", "b", "c"]

    def steps(sizes, criteria):
        stages = [lambda one=one: one for one in criteria]
        path = (
            CrossValidationSearch(tol=1e-4)
            .walk(stages, sizes, np.zeros(3), bounds, names, 1.0)
            .finish()
        )
        np.testing.assert_allclose(found(path), fine.centre, atol=1e-2)
        return np.sum(path.n_samples == 100)

    assert steps([10, 100], [coarse, fine]) <= 0.7 * steps([100], [Bowl(fine.centre, curvature)])


def test_a_descent_with_known_curvature_stays_within_bounds():
    coarse, fine = Bowl([1.0, -2.0]), Bowl([9.0, -2.0])
    bounds = np.array([[-3.0, 3.0], [-3.0, 3.0]])
    search, stages = CrossValidationSearch(tol=1e-4), [lambda: coarse, lambda: fine]
    path = search.walk(stages, [10, 100], np.zeros(2), bounds, ["a", "b"], 1.0).finish()
    assert np.all(np.abs(path.theta) <= 3)
    np.testing.assert_allclose(found(path), [3.0, -2.0], atol=1e-2)


# --- estimators -----------------------------------------------------------------------------------

LARGE_X, LARGE_CLASSES = _data(300, seed=1)


def test_a_coarse_search_comes_first():
    """Fewer rows, then all of them: the same loss in the end."""
    whole = KernelLogisticRegression(optimize="cv").fit(LARGE_X, LARGE_CLASSES)
    search = CrossValidationSearch(coarse=100)
    model = KernelLogisticRegression(optimize=search).fit(LARGE_X, LARGE_CLASSES)
    path = model.optimization_path_
    first = int(np.argmax(path.n_samples == 300))
    assert first > 0
    np.testing.assert_array_equal(path.n_samples[:first], 100)
    np.testing.assert_array_equal(path.n_samples[first:], 300)
    assert path.loss[first] < whole.optimization_path_.loss[0]  # it starts nearer
    np.testing.assert_allclose(model.cv_log_loss_, whole.cv_log_loss_, rtol=0.01)
    assert model.X_fit_.shape == (300, 3)


@pytest.mark.parametrize(
    "coarse, n, rows",
    [
        ("auto", 499, []),
        ("auto", 500, [250]),
        ("auto", 2000, [250, 1000]),
        (None, 10**6, []),
        (200, 1000, [200]),
        (200, 200, []),
    ],
)
def test_when_a_search_is_coarse(coarse, n, rows):
    assert CrossValidationSearch(coarse=coarse).sizes(n) == [*rows, n]


def test_a_search_on_a_sample_has_some_examples_of_each_class():
    search = CrossValidationSearch(max_samples=1000)
    assert search.sizes(100_000) == [250, 1000]
    assert search.sizes(100_000, n_classes=100) == [500, 1000]
    assert search.sizes(100_000, n_classes=500) == [2500]
    assert search.sizes(300) == [300]
    assert search.sizes(100_000, coarse=False) == [1000]


def test_coarse_rows_are_the_same_each_time():
    search = CrossValidationSearch(coarse=100, max_evaluations=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, other, another = (
            KernelLogisticRegression(optimize=search, random_state=seed)
            .fit(LARGE_X, LARGE_CLASSES)
            .optimization_path_
            for seed in (None, None, 5)
        )
    np.testing.assert_array_equal(one.loss, other.loss)
    assert one.loss[0] != another.loss[0]  # random_state picks other rows


def test_ending_early_is_said_with_what_to_change():
    search = CrossValidationSearch(tol=1e-6, max_evaluations=2)
    model = KernelLogisticRegression(RBF(8.0), optimize=search)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, CLASSES)
    message = str(caught[0].message)
    for words in ("max_evaluations=2 reached", "tol=1.0e-06", "Raise max_evaluations or tol"):
        assert words in message
    assert caught[0].filename == __file__
    assert len(model.optimization_path_.loss) == 4  # two to look around, and two to descend
    assert not model.optimization_path_.converged
    assert model.predict(X).shape == (60,)


class AtEvaluation:
    """Does something after some evaluations of the criterion."""

    def __init__(self, after, error=None):
        self.left, self.error = after, error

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name != "evaluation":
            return False
        self.left -= 1
        if self.left == 0 and self.error is not None:
            raise self.error
        return self.left == 0


@pytest.mark.parametrize("coarse", [None, 100])
def test_a_callback_stops_the_search(coarse):
    """Stopping on request is no failure: no warning, and the model is fitted with the best so far."""
    model = KernelLogisticRegression(RBF(8.0), optimize=CrossValidationSearch(coarse=coarse))
    model.set_callbacks(AtEvaluation(after=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(LARGE_X, LARGE_CLASSES)
    path = model.optimization_path_
    assert (path.converged, path.message) == (False, "a callback stopped the search")
    assert (path.n_samples == (coarse or 300)).all()
    assert len(path.loss) == 2
    assert model.kernel_.theta[-1] == path.theta[path.best][0]
    assert model.solution_.status == "converged"
    assert model.score(LARGE_X, LARGE_CLASSES) > 0.6


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("estimator", [KernelLogisticRegression, KernelRidge])
def test_interruption_leaves_the_estimator_as_it_was(estimator, error):
    model = estimator(optimize="cv")
    model.set_callbacks(AtEvaluation(after=2, error=error))
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(X, CLASSES)
    assert vars(model).keys() == before.keys()
    fitted = estimator(regularization=1.0).fit(X, CLASSES)
    predicted, before = fitted.predict(X), dict(vars(fitted))
    fitted.set_params(optimize="cv").set_callbacks(AtEvaluation(after=2, error=error))
    with pytest.raises(error):
        fitted.fit(X[:50], CLASSES[:50])
    assert not hasattr(fitted, "optimization_path_")
    np.testing.assert_array_equal(fitted.predict(X), predicted)


def test_parameters_of_the_search_are_parameters_of_the_model():
    """Grid searches and clones reach into them."""
    search = CrossValidationSearch(prior=LogNormalPrior(1.0))
    model = KernelLogisticRegression(optimize=search)
    assert model.get_params()["optimize__prior__deviation"] == 1.0
    model.set_params(optimize__tol=0.1, optimize__prior__median=2.0)
    assert (model.optimize.tol, model.optimize.prior.median) == (0.1, 2.0)


BAD_SEARCHES = {
    "tol=0": ({"tol": 0.0}, ValueError, ("CrossValidationSearch(tol=...)", "> 0", "0.0")),
    "tol='tight'": ({"tol": "tight"}, TypeError, ("CrossValidationSearch(tol=...)", "'tight'")),
    "max_evaluations=0": ({"max_evaluations": 0}, ValueError, ("max_evaluations", ">= 1", "0")),
    "max_evaluations=2.5": ({"max_evaluations": 2.5}, TypeError, ("max_evaluations", "whole")),
    "coarse=0": ({"coarse": 0}, ValueError, ("coarse", ">= 1", "0")),
    "coarse='few'": ({"coarse": "few"}, TypeError, ("coarse", "'auto'", "'few'")),
    "prior=1": ({"prior": 1.0}, TypeError, ("prior", "LogNormalPrior", "1.0")),
    "deviation=-1": ({"prior": LogNormalPrior(-1.0)}, ValueError, ("deviation", "-1.0")),
    "deviations": ({"prior": LogNormalPrior([1.0, 1, 1])}, ValueError, ("deviation", "2 of them")),
    "median=0": ({"prior": LogNormalPrior(1.0, 0.0)}, ValueError, ("median", "positive", "0.0")),
}


@pytest.mark.parametrize("name", BAD_SEARCHES)
def test_bad_searches_are_refused(name):
    settings, error, words = BAD_SEARCHES[name]
    model = KernelLogisticRegression(RBF(1.0), optimize=CrossValidationSearch(**settings))
    with pytest.raises(error) as caught:
        model.fit(X, CLASSES)
    for word in words:
        assert word in str(caught.value)
    assert not hasattr(model, "dual_coef_")


# --- many parameters, few examples ------------------------------------------------------------------


def test_some_folds_drive_and_the_others_judge_apart():
    """Drivers do as if examples that judge did not exist; judges train on all but their own."""
    _, function = criterion(RBF(3.0))
    theta = np.log([3.0, 2.0])
    whole, _ = function(theta, tol=1e-12)
    training, held_out = fold_masks(FOLDS, X, CLASSES)
    drives = np.array([True, False, True])
    apart = held_out[:, ~drives].sum(axis=1, keepdims=True) == 0
    by_hand = CrossValidationCriterion(
        function.problem, (training * apart)[:, drives], (held_out * apart)[:, drives]
    )
    jury = CrossValidationCriterion(function.problem, training[:, ~drives], held_out[:, ~drives])
    function.drive(drives)
    value, slope = function(theta, tol=1e-12)
    expected, steep = by_hand(theta, tol=1e-12)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(slope, steep, rtol=1e-3)
    np.testing.assert_allclose(function.judged, jury(theta, tol=1e-12)[0], rtol=1e-5)
    losses, weights = function.judged_losses, function.judging_weights
    assert losses.shape == weights.shape == (20,)
    np.testing.assert_allclose(np.average(losses, weights=weights), function.judged, rtol=1e-12)
    function.drive(None)
    assert np.isnan(function.judged)
    np.testing.assert_allclose(function(theta, tol=1e-12)[0], whole, rtol=1e-6)


def test_folds_without_roles_are_named():
    """All examples would judge, and none would drive."""
    _, function = criterion(RBF(3.0))
    with pytest.raises(NoRoles, match=r"leaves no examples to judge.*cv=5"):
        function.drive(np.array([True, True, True]))
    with pytest.raises(NoRoles, match="leaves no examples to drive"):
        function.drive(np.array([False, False, False]))


def test_scales_stay_common_where_no_folds_can_judge():
    cv = [(np.arange(30), np.arange(30, 60))]
    model = KernelLogisticRegression(RBF([3.0, 3.0, 3.0]), optimize="cv", cv=cv).fit(X, CLASSES)
    assert "no folds to approve" in model.optimization_path_.message
    assert len(set(model.kernel_.right.length_scale)) == 1


def test_useless_features_do_not_spoil_a_kernel_with_a_scale_for_each():
    """Forty features of noise and 60 examples: free scales would fit the folds, and predict badly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(560, 42))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    one, each = (
        KernelLogisticRegression(RBF(scale), optimize="cv").fit(X[:60], y[:60])
        for scale in (6.0, np.full(42, 6.0))
    )
    assert "folds that did not drive" in each.optimization_path_.message
    losses = [log_loss(y[60:], model.predict_proba(X[60:])) for model in (one, each)]
    assert losses[1] < 1.05 * losses[0]
