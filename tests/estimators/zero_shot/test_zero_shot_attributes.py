"""AttributeClassifier, and what it shares with ZeroShotClassifier: signatures, candidates, persistence, bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import hamming_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import AttributeClassifier, M3LClassifier, PairwiseSVC, ZeroShotClassifier
from gramian.labels import class_correlation

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("one_thread"),
]
ANIMALS = {"horse": [0, 0], "zebra": [0, 1], "lion": [1, 0], "tiger": [1, 1]}
FRAME = pd.DataFrame(ANIMALS, index=["fangs", "stripes"]).T
TIGHT = M3LClassifier(1.0, tol=1e-12, solver="blocked")
BOTH = [AttributeClassifier, ZeroShotClassifier]


def animals(seed=0, n=60, names=("horse", "lion", "tiger"), scale=0.25):
    """Features are the attributes with noise."""
    rng = np.random.default_rng(seed)
    y = rng.permuted(np.resize(names, n))
    return np.array([ANIMALS[name] for name in y]) + rng.normal(scale=scale, size=(n, 2)), y


X, Y = animals()
NEW, TRUTH = animals(1, 40, tuple(ANIMALS))


class Told(ClassifierMixin, BaseEstimator):
    """Returns X as the scores or the probabilities of the attributes."""

    def fit(self, X, y):
        self.classes_ = [np.array([0, 1])] * y.shape[1]
        return self


class ToldScores(Told):
    def decision_function(self, X):
        return X


class ToldProbabilities(Told):
    def predict_proba(self, X):
        return X


# --- scikit-learn -----------------------------------------------------------------------------


def _folds(estimator):
    """Why some checks must fail: probabilities are calibrated on folds of the rows as they come."""
    name = "check_sample_weight_equivalence_on_{}_data"
    return {name.format(kind): "a row twice is in two folds" for kind in ("dense", "sparse")}


CHECKED = [
    AttributeClassifier(estimator=M3LClassifier(1.0, loss="hamming", solver="blocked")),
    AttributeClassifier(
        estimator=MultiOutputClassifier(LogisticRegression(tol=1e-12)), mapping="direct"
    ),
]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_check(estimator, check):
    if "equivalence" in check.func.__name__ and isinstance(estimator.estimator, M3LClassifier):
        estimator = clone(estimator).set_params(estimator__tol=1e-16)  # compared to 7 digits
    check(estimator)


@pytest.mark.slow  # every one of the checks calibrates by folds
@parametrize_with_checks([AttributeClassifier(mapping="direct")], expected_failed_checks=_folds)
def test_scikit_learn_check_of_calibrated_attributes(estimator, check):
    check(estimator)


@parametrize_with_checks([ZeroShotClassifier()])
def test_scikit_learn_check_of_zero_shot(estimator, check):
    check(estimator)


# --- from attributes to classes ---------------------------------------------------------------


def test_nearest_by_hand():
    """Signs of horse, lion, tiger, zebra: −−, +−, ++, −+."""
    scores = np.array([[1.0, 3.0], [-2.0, 0.5], [0.1, -4.0], [-0.5, -0.5]])
    model = AttributeClassifier(ANIMALS, ToldScores(), candidates="all").fit(X, Y)
    np.testing.assert_array_equal(model.classes_, ["horse", "lion", "tiger", "zebra"])
    expected = [
        [-2, -1, 2, 1],
        [0.75, -1.25, -0.75, 1.25],
        [1.95, 2.05, -1.95, -2.05],
        [0.5, 0, -0.5, 0],
    ]
    np.testing.assert_allclose(model.decision_function(scores), expected)
    np.testing.assert_array_equal(model.predict(scores), ["tiger", "zebra", "lion", "horse"])
    np.testing.assert_array_equal(
        model.predict_attributes(scores), [[1, 1], [0, 1], [1, 0], [0, 0]]
    )
    np.testing.assert_array_equal(model.attribute_scores(scores), scores)


def test_nearest_is_the_signature_at_the_least_distance():
    signs = 2.0 * np.array(list(ANIMALS.values())) - 1
    model = AttributeClassifier(ANIMALS, TIGHT, candidates="all").fit(X, Y)
    distance = np.linalg.norm(model.attribute_scores(NEW)[:, None] - signs, axis=2)
    np.testing.assert_array_equal(
        model.predict(NEW), np.array(list(ANIMALS))[distance.argmin(axis=1)]
    )


def test_direct_by_hand():
    """Of horse, lion and tiger, two have fangs and one has stripes."""
    P = np.array([[0.9, 0.5]])
    model = AttributeClassifier(ANIMALS, ToldProbabilities(), mapping="direct", candidates="all")
    model.fit(X, Y)
    np.testing.assert_allclose(model.attribute_prior_, [2 / 3, 1 / 3])
    fangs, none = 0.9 / (2 / 3), 0.1 / (1 / 3)
    stripes, plain = 0.5 / (1 / 3), 0.5 / (2 / 3)
    odds = np.array([none * plain, fangs * plain, fangs * stripes, none * stripes])
    np.testing.assert_allclose(model.decision_function(P)[0], np.log(odds / 4))
    np.testing.assert_allclose(model.predict_proba(P)[0], odds / odds.sum())


def random_case(seed):
    """Six classes of five attributes, four of them seen; no attribute is shared by all seen ones."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, size=(6, 5))
    table[0], table[1] = 1 - table[1], table[1]
    return dict(zip("abcdef", table.tolist(), strict=True)), rng


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore:Candidates:UserWarning")
def test_direct_is_the_formula(seed):
    signatures, rng = random_case(seed)
    priors = dict(zip("abcdef", rng.uniform(0.2, 1, 6), strict=True))
    P = rng.uniform(size=(8, 5))
    P[0] = [0, 1, 0, 1, 1]
    model = AttributeClassifier(
        signatures, ToldProbabilities(), mapping="direct", candidates=list("cdef"), priors=priors
    ).fit(rng.uniform(size=(12, 5)), np.resize(list("abcd"), 12))
    total = sum(priors[name] for name in "cdef")
    expected = np.zeros((8, 4))
    for i in range(8):
        for k, name in enumerate("cdef"):
            expected[i, k] = np.log(priors[name] / total)
            for a in range(5):
                share = np.mean([signatures[seen][a] for seen in "abcd"])
                p = min(max(P[i, a], 1e-6), 1 - 1e-6)
                has = signatures[name][a] == 1
                expected[i, k] += np.log(p / share) if has else np.log((1 - p) / (1 - share))
    np.testing.assert_allclose(model.decision_function(P), expected)
    odds = np.exp(expected)
    np.testing.assert_allclose(model.predict_proba(P), odds / odds.sum(axis=1, keepdims=True))


def test_direct_leaves_out_what_was_not_learned():
    """All seen classes have fur, so that its probability says nothing about others."""
    signatures = {"cat": [1, 0], "dog": [1, 1], "cow": [1, 0], "eel": [0, 0], "pig": [0, 1]}
    model = AttributeClassifier(signatures, ToldProbabilities(), mapping="direct", candidates="all")
    with pytest.warns(UserWarning, match="'cat', 'cow' have the same attributes"):
        model.fit(X, np.resize(["cat", "dog", "cow"], len(X)))
    with_fur, without = model.decision_function([[0.999, 0.3], [0.001, 0.3]])
    np.testing.assert_array_equal(with_fur, without)
    assert with_fur[model.classes_ == "cat"] == with_fur[model.classes_ == "eel"]


def test_scores_of_probabilities_are_expected_signs():
    P = np.array([[0.25, 1.0]])
    model = AttributeClassifier(ANIMALS, ToldProbabilities()).fit(X, Y)
    np.testing.assert_allclose(model.attribute_scores(P), [[-0.5, 1.0]])


# --- what is learned --------------------------------------------------------------------------


def test_unseen_class():
    model = AttributeClassifier(FRAME).fit(X, Y)
    np.testing.assert_array_equal(model.classes_, ["zebra"])
    np.testing.assert_array_equal(model.seen_classes_, ["horse", "lion", "tiger"])
    np.testing.assert_array_equal(model.attribute_names_, ["fangs", "stripes"])
    every = clone(model).set_params(candidates="all").fit(X, Y)
    assert every.score(NEW, TRUTH) > 0.8
    assert hamming_loss(FRAME.loc[TRUTH], every.predict_attributes(NEW)) < 0.12
    assert "attribute_names_" not in vars(every.set_params(signatures=ANIMALS).fit(X, Y))


@pytest.mark.parametrize("mapping", ["nearest", "direct"])
def test_seen_classes_described_by_themselves(mapping):
    model = AttributeClassifier(mapping=mapping).fit(X, Y)
    np.testing.assert_array_equal(model.signatures_, np.eye(3))
    known = np.isin(TRUTH, model.classes_)
    assert model.score(NEW[known], TRUTH[known]) > 0.75


def test_without_correlation_attributes_are_independent_svms():
    model = AttributeClassifier(ANIMALS, TIGHT, candidates="all", shrinkage=1.0).fit(X, Y)
    np.testing.assert_array_equal(model.label_correlation_, np.eye(2))
    given = M3LClassifier(1.0, label_correlation=np.eye(2), tol=1e-12)
    same = AttributeClassifier(ANIMALS, given, candidates="all").fit(X, Y)
    np.testing.assert_allclose(same.attribute_scores(NEW), model.attribute_scores(NEW), atol=1e-5)
    for attribute, scores in enumerate(model.attribute_scores(NEW).T):
        svm = LinearSVC(C=2.0, tol=1e-10, max_iter=100_000)
        svm.fit(X, [ANIMALS[name][attribute] for name in Y])
        np.testing.assert_allclose(scores, svm.decision_function(NEW), atol=1e-3)


def test_correlation_of_the_classes_to_come():
    """Figure 5 in small: attributes that go together in training exclude each other among the classes to come.

    There is a noisy feature for each attribute, and training says that both speak for both.
    """
    rng = np.random.default_rng(0)
    signatures = {"both": [1, 1], "none": [0, 0], "left": [1, 0], "right": [0, 1]}

    def examples(*counts):
        y = np.repeat(list(signatures), counts)
        attributes = np.array([signatures[name] for name in y])
        return 2.0 * attributes - 1 + rng.normal(scale=1.5, size=attributes.shape), y, attributes

    X, y, _ = examples(80, 80, 20, 20)
    new, truth, attributes = examples(0, 0, 100, 100)
    losses = []
    for r in (0.8, 0.0, -0.8):
        given = M3LClassifier(C=0.001, label_correlation=np.array([[1.0, r], [r, 1.0]]))
        model = AttributeClassifier(signatures, given, candidates=["left", "right"]).fit(X, y)
        losses.append(hamming_loss(attributes, model.predict_attributes(new)))
    assert losses[0] > losses[1] + 0.02 > losses[2] + 0.04
    model = AttributeClassifier(signatures, M3LClassifier(C=0.001), candidates=["left", "right"])
    model.fit(X, y)
    np.testing.assert_allclose(model.label_correlation_, [[1.0, -0.9], [-0.9, 1.0]])
    assert hamming_loss(attributes, model.predict_attributes(new)) < losses[1] - 0.02
    assert model.score(new, truth) > 0.75


def test_correlation_is_that_of_the_candidates():
    priors = {"horse": 3.0, "zebra": 1.0, "lion": 2.0, "tiger": 9.0}
    model = AttributeClassifier(
        FRAME, candidates=["zebra", "horse", "lion"], priors=pd.Series(priors), shrinkage=0.3
    ).fit(X, Y)
    np.testing.assert_allclose(model.class_prior_, [0.5, 1 / 3, 1 / 6])
    expected = class_correlation([[0, 0], [1, 0], [0, 1]], [3, 2, 1], shrinkage=0.3)
    np.testing.assert_allclose(model.label_correlation_, expected)
    in_order = clone(model).set_params(priors=[3, 2, 1]).fit(X, Y)
    np.testing.assert_array_equal(in_order.attribute_scores(NEW), model.attribute_scores(NEW))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model,
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: GridSearchCV(model, {"C": [1.0]}, cv=2),
        lambda model: GridSearchCV(make_pipeline(StandardScaler(), model), {"m3lclassifier__C": [1.0]}, cv=2),
    ],
    ids=["alone", "pipeline", "search", "pipeline in search"],
)  # fmt: skip
def test_m3l_gets_the_correlation_unless_it_has_one(wrap):
    weights = np.ones(len(X))
    model = AttributeClassifier(ANIMALS, wrap(M3LClassifier(1.0)), candidates=["lion", "zebra"])
    model.fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(model.label_correlation_, [[1.0, -0.9], [-0.9, 1.0]])
    R = np.array([[1.0, 0.3], [0.3, 1.0]])
    for given in (R, lambda signs: R):
        model.set_params(estimator=wrap(M3LClassifier(1.0, label_correlation=given))).fit(X, Y)
        np.testing.assert_allclose(model.label_correlation_, R)


def test_correlation_with_names():
    names = ["tail", "stripes", "fangs"]
    R = pd.DataFrame([[1.0, 0.1, 0.2], [0.1, 1.0, -0.3], [0.2, -0.3, 1.0]], names, names)
    signatures = FRAME.assign(tail=[1, 1, 0, 0])
    model = AttributeClassifier(signatures, M3LClassifier(1.0, label_correlation=R)).fit(X, Y)
    expected = R.loc[signatures.columns, signatures.columns]
    np.testing.assert_array_equal(model.label_correlation_, expected)
    np.testing.assert_array_equal(model.estimator_.label_names_, signatures.columns)


def test_priors_shift_the_answers():
    def zebras(**priors):
        model = AttributeClassifier(
            ANIMALS, mapping="direct", candidates=["zebra", "lion"], priors=priors or None
        ).fit(X, Y)
        return np.sum(model.predict(NEW) == "zebra")

    assert zebras(zebra=0, lion=1) == 0
    assert zebras(zebra=1, lion=50) < zebras() < zebras(zebra=50, lion=1)
    assert zebras(zebra=1, lion=1) == zebras()


@pytest.mark.parametrize("kind", BOTH)
def test_weight_two_is_the_example_twice(kind):
    weights = np.resize([0.0, 1.0, 2.0], len(X))
    rows = np.repeat(np.arange(len(X)), weights.astype(int))
    estimator = TIGHT if kind is AttributeClassifier else None
    model = kind(ANIMALS, estimator, candidates="all")
    weighted = model.fit(X, Y, sample_weight=weights).decision_function(NEW)
    np.testing.assert_allclose(
        model.fit(X[rows], Y[rows]).decision_function(NEW), weighted, atol=1e-4
    )


# --- other multi-label classifiers ------------------------------------------------------------

OTHERS = [
    OneVsRestClassifier(LogisticRegression()),
    MultiOutputClassifier(LogisticRegression()),
    RandomForestClassifier(20, random_state=0),
]


@pytest.mark.parametrize("mapping", ["nearest", "direct"])
@pytest.mark.parametrize("estimator", OTHERS, ids=lambda model: type(model).__name__)
def test_multi_label_classifiers_of_scikit_learn(estimator, mapping):
    model = AttributeClassifier(ANIMALS, estimator, mapping=mapping, candidates="all").fit(X, Y)
    assert model.label_correlation_ is None
    assert model.attribute_scores(NEW).shape == (40, 2)
    np.testing.assert_array_equal(model.predict_attributes(NEW), model.estimator_.predict(NEW))
    assert model.score(NEW, TRUTH) > 0.7


def test_an_attribute_without_examples_has_probability_zero():
    """A forest then has a single column of probabilities."""
    signatures = {"a": [0, 1], "b": [0, 0], "c": [1, 1]}
    model = AttributeClassifier(signatures, RandomForestClassifier(5), candidates="all")
    model.fit(X, np.where(X[:, 0] > 0.5, "a", "b"))
    np.testing.assert_array_equal(model.attribute_scores(NEW)[:, 0], -1.0)
    assert "c" not in model.predict(NEW)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("mapping", ["nearest", "direct"])
@pytest.mark.parametrize(
    "estimator", [None, OneVsRestClassifier(LogisticRegression()), RandomForestClassifier(9)]
)
def test_a_single_attribute(estimator, mapping):
    model = AttributeClassifier({"low": [0], "high": [1]}, estimator, mapping=mapping)
    y = np.where(X[:, 0] > 0.5, "high", "low")
    model.fit(X, y)
    assert model.decision_function(NEW).shape == (40,)
    assert model.score(X, y) > 0.9


def test_sample_weight_for_an_estimator_without():
    model = AttributeClassifier(ANIMALS, ToldScores())
    with pytest.raises(ValueError, match="sample_weight must be None, as estimator ToldScores"):
        model.fit(X, Y, sample_weight=np.ones(len(X)))


# --- kinds of input ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
def test_sparse_examples(kind):
    model = kind(FRAME, candidates="all")
    dense = model.fit(X, Y).decision_function(NEW)
    sparse = model.fit(sp.csr_array(X), Y).decision_function(sp.csr_array(NEW))
    np.testing.assert_allclose(sparse, dense, atol=1e-2)


def test_signatures_in_signs_and_booleans():
    expected = AttributeClassifier(FRAME, TIGHT, candidates="all").fit(X, Y)
    for signatures, absent in ((2 * FRAME - 1, -1), (FRAME.astype(bool), 0)):
        model = clone(expected).set_params(signatures=signatures).fit(X, Y)
        np.testing.assert_array_equal(model.predict(NEW), expected.predict(NEW))
        np.testing.assert_array_equal(model.label_correlation_, expected.label_correlation_)
        assert set(np.unique(model.predict_attributes(NEW))) == {absent, 1}


def test_precomputed_kernel():
    expected = AttributeClassifier(ANIMALS, TIGHT, candidates="all").fit(X, Y)
    given = M3LClassifier(1.0, kernel="precomputed", tol=1e-12)
    model = AttributeClassifier(ANIMALS, given, candidates="all").fit(X @ X.T, Y)
    np.testing.assert_allclose(
        model.decision_function(NEW @ X.T), expected.decision_function(NEW), atol=1e-4
    )
    assert cross_val_score(model, X @ X.T, Y, cv=3).mean() > 0.7


@pytest.mark.parametrize("kind", BOTH)
def test_other_classes_in_predict(kind):
    model = kind(FRAME, candidates="all").fit(X, Y)
    swapped = FRAME.loc[["zebra", "lion"], ["stripes", "fangs"]]  # columns go by name
    other = model.predict(NEW, signatures=swapped.rename({"zebra": "okapi", "lion": "puma"}))
    every = model.decision_function(NEW)
    okapi = every[:, model.classes_ == "zebra"] > every[:, model.classes_ == "lion"]
    np.testing.assert_array_equal(other, np.where(okapi[:, 0], "okapi", "puma"))
    with pytest.raises(ValueError, match="attributes of fit; missing: 'stripes'"):
        model.predict(NEW, signatures=FRAME[["fangs"]])
    with pytest.raises(ValueError, match="2 attributes as in fit, got 3"):
        model.predict(NEW, signatures={"a": [1, 0, 1]})


def test_other_classes_are_equally_frequent():
    model = AttributeClassifier(
        ANIMALS, mapping="direct", candidates=["lion", "zebra"], priors={"lion": 9, "zebra": 1}
    ).fit(X, Y)
    flat = clone(model).set_params(priors=None, estimator=M3LClassifier(
        1.0, label_correlation=model.label_correlation_, probability=True, cv=model.estimator_.cv
    )).fit(X, Y)  # fmt: skip
    same = {name: ANIMALS[name] for name in ("lion", "zebra")}
    np.testing.assert_allclose(model.predict_proba(NEW, signatures=same), flat.predict_proba(NEW))


def test_two_candidates_have_one_column():
    model = AttributeClassifier(ANIMALS, mapping="direct", candidates=["zebra", "lion"]).fit(X, Y)
    decisions = model.decision_function(NEW)
    assert decisions.shape == (40,)
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 1], 1 / (1 + np.exp(-decisions)))
    np.testing.assert_array_equal(model.predict(NEW), model.classes_[(decisions > 0).astype(int)])


def test_one_row_at_a_time():
    model = AttributeClassifier(FRAME, candidates="all").fit(X, Y)
    singly = np.vstack([model.decision_function(row[None]) for row in NEW])
    np.testing.assert_allclose(singly, model.decision_function(NEW))


# --- persistence ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        AttributeClassifier(FRAME, candidates="all"),
        AttributeClassifier(ANIMALS, mapping="direct", candidates="all"),
        ZeroShotClassifier(ANIMALS, candidates="all"),
    ],
    ids=["nearest", "direct", "pairs"],
)
def test_pickle_and_skops(model):
    skops = pytest.importorskip("skops.io")
    model = clone(model).fit(X, Y)
    again = [pickle.loads(pickle.dumps(model))]
    if isinstance(model.signatures, dict):  # skops cannot store data frames
        stored = skops.dumps(model)
        types = skops.get_untrusted_types(data=stored)
        assert all(name.startswith(("gramian.", "sklearn.")) for name in types), types
        again.append(skops.loads(stored, trusted=types))
    for other in again:
        np.testing.assert_array_equal(other.decision_function(NEW), model.decision_function(NEW))
        np.testing.assert_array_equal(other.classes_, model.classes_)


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "signatures, candidates, error, message",
    [
        ({"horse": [0, 0]}, "all", ValueError, "every class in y; missing: 'lion', 'tiger'"),
        ([[0, 0]], "all", TypeError, "got list"),
        ({**ANIMALS, "pig": [1]}, "all", ValueError, r"lengths \[1, 2\]"),
        ({**ANIMALS, "pig": [1, np.nan]}, "all", ValueError, "finite numbers, got .* for 'pig'"),
        (pd.concat([FRAME, FRAME]), "all", ValueError, "its index has repeats"),
        (ANIMALS, "every", ValueError, "candidates must be one of 'auto'"),
        (ANIMALS, ["pig"], ValueError, "candidates must have signatures; missing: 'pig'"),
        (None, "unseen", ValueError, "leaves no class to choose from"),
    ],
)
def test_bad_signatures_and_candidates(kind, signatures, candidates, error, message):
    with pytest.raises(error, match=message):
        kind(signatures, candidates=candidates).fit(X, Y)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"mapping": "far"}, ValueError, "mapping must be one of 'nearest', 'direct'; got 'far'"),
        ({"shrinkage": 1.5}, ValueError, "shrinkage must be a finite number >= 0 and <= 1, got 1.5"),
        ({"shrinkage": 0.0}, ValueError, "must be positive definite.*larger shrinkage"),
        ({"priors": [1, 2]}, ValueError, r"priors must have shape \(1,\), one for each candidate"),
        ({"priors": {"horse": 1}}, ValueError, "every class; missing: 'zebra'"),
        ({"priors": {"zebra": 1, "pig": 1}}, ValueError, "signature; missing: 'pig'"),
        ({"priors": [0.0]}, ValueError, "priors is zero for every candidate"),
        ({"estimator": M3LClassifier(1.0), "mapping": "direct"}, ValueError, "Set its probability=True"),
        ({"estimator": RidgeClassifier(), "mapping": "direct"}, ValueError, "or mapping='nearest'"),
        ({"estimator": Told()}, ValueError, "decision_function or predict_proba for mapping='nearest'"),
        ({"signatures": {name: [0, 1] for name in ANIMALS}}, ValueError, "there is nothing to learn"),
    ],
)  # fmt: skip
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        AttributeClassifier(**{"signatures": ANIMALS, **options}).fit(X, Y)


@pytest.mark.parametrize(
    "signatures, message",
    [
        (FRAME.assign(size=[1, 0.3, 0, 1]), "got 0.3 for class 'zebra', attribute 'size'"),
        ({**ANIMALS, "pig": [0, 2]}, "got 2 for class 'pig', attribute 1"),
        ({**ANIMALS, "pig": [-1, 1]}, "got 0 beside -1 for class 'horse', attribute 0"),
    ],
)
def test_signatures_that_are_not_binary(signatures, message):
    with pytest.raises(ValueError, match=message):
        AttributeClassifier(signatures).fit(X, Y)
    ZeroShotClassifier(signatures).fit(X, Y)


def test_twins_are_named():
    with pytest.warns(UserWarning, match="Candidates 'mule', 'zebra' have the same attributes"):
        AttributeClassifier({**ANIMALS, "mule": [0, 1]}).fit(X, Y)


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = AttributeClassifier(FRAME, candidates="all").fit(X, Y)
    before = model.decision_function(NEW)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), Y)
    np.testing.assert_array_equal(model.decision_function(NEW), before)


def test_not_fitted_and_no_probabilities():
    for method in ("predict", "decision_function", "attribute_scores", "predict_attributes"):
        with pytest.raises(NotFittedError):
            getattr(AttributeClassifier(), method)(X)
    assert not hasattr(AttributeClassifier(), "predict_proba")


def test_pairs_of_another_loss():
    model = ZeroShotClassifier(
        ANIMALS, PairwiseSVC(right_kernel="linear", regularization=1.0), "all"
    ).fit(X, Y)
    assert model.score(NEW, TRUTH) > 0.5
    with pytest.raises(TypeError, match="estimator must be an estimator for pairs"):
        ZeroShotClassifier(ANIMALS, LogisticRegression()).fit(X, Y)
