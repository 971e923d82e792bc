"""KernelCRF: its optimum, its identities with other models, its answers, and what it does with odd input."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.utils import estimator_checks

from gramian import KernelCRF, KernelLogisticRegression, Sequences
from gramian.kernels import RBF, Linear, White
from gramian.losses import ChainLikelihood
from gramian.selection import CrossValidationSearch, fold_masks
from gramian.testing import check_certificate

LABELS = np.array(["a", "b", "c"])
FOLLOWS = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])


def words(n=40, seed=0, noise=1.0, longest=7):
    """Sequences in which b follows a, c follows b and a follows c, and features that tell the labels apart a bit."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, size=n)
    codes = []
    for length in lengths:
        codes.append(rng.integers(3))
        for _ in range(length - 1):
            codes.append(rng.choice(3, p=FOLLOWS[codes[-1]]))
    centres = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    X = Sequences(centres[codes] + noise * rng.normal(size=(len(codes), 2)), lengths)
    return X, X.split(LABELS[codes])


X, y = words()
NEW, TRUTH = words(seed=1)


def fixed(**parameters):
    """A model that learns no hyperparameters."""
    given = {"kernel": 2.0 * RBF(1.5), "regularization": 0.5, "transition_variance": 2.0}
    return KernelCRF(**(given | parameters))


@pytest.fixture(scope="module")
def model():
    return fixed().fit(X, y)


def same(first, second, **tolerance):
    for one, two in zip(first, second, strict=True):
        if np.asarray(one).dtype.kind in "UO":
            assert list(one) == list(two)
        else:
            np.testing.assert_allclose(one, two, **({"atol": 1e-6} | tolerance))


# --- the optimum ------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("solver", ["newton", "kernel_cg"])
def test_linear_kernel_finds_the_optimum_of_the_weights(solver, ends):
    """With a linear kernel the scores are w_c · x + b_c: L-BFGS on these weights finds the same function."""
    strength, tau2, sigma2 = 0.7, 2.0, 1.5
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2, size=len(X))
    model = KernelCRF(
        Linear(),
        regularization=strength,
        transition_variance=tau2,
        intercept_variance=sigma2,
        ends=ends,
        solver=solver,
        tol=1e-12,
        max_iter=2000,
    ).fit(X, y, sample_weight=weights)
    n, d, C = X.n_positions, 2, 3
    loss = ChainLikelihood(X.lengths, C, ends=ends)
    codes = np.searchsorted(LABELS, X.flat(y).astype(str))
    rows = C + 2 * ends
    Y = np.concatenate([np.eye(C)[codes], np.zeros((rows, C))])
    w = np.concatenate([np.repeat(weights, X.lengths), np.ones(rows)])

    def objective(flat):
        W, b, T = np.split(flat.reshape(-1, C), [d, d + 1])
        U = np.concatenate([X.positions @ W + b, T])
        G = loss.gradient(U, Y, w)
        penalty = np.sum(W**2) + np.sum(b**2) / sigma2 + np.sum(T**2) / tau2
        slope = [
            X.positions.T @ G[:n] + strength * W,
            G[:n].sum(0, keepdims=True) + strength * b / sigma2,
        ]
        slope = np.concatenate([*slope, G[n:] + strength * T / tau2])
        return loss.value(U, Y, w) + strength / 2 * penalty, slope.ravel()

    best = minimize(
        objective, np.zeros((d + 1 + rows) * C), jac=True, tol=1e-14, options={"maxiter": 5000}
    )
    assert 0 <= model.solution_.objective - best.fun <= model.solution_.gap + 1e-9 * best.fun
    _, b, T = np.split(best.x.reshape(-1, C), [d, d + 1])
    np.testing.assert_allclose(model.transitions_, T[:C], atol=1e-4)
    np.testing.assert_allclose(model.intercept_, b[0], atol=1e-4)
    np.testing.assert_allclose(model.start_, T[C] if ends else 0, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_loose_fits_are_as_close_to_the_optimum_as_they_say(dtype):
    some = Sequences(X.positions.astype(dtype), X.lengths)
    best = fixed(tol=1e-12).fit(Sequences(some.positions.astype(float), X.lengths), y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for tol in (1e-1, 1e-3, 1e-5):
            loose = fixed(tol=tol).fit(some, y).solution_
            assert loose.gap <= tol * loose.objective
            assert loose.objective - best.solution_.objective <= loose.gap * (1 + 1e-6) + 1e-8


def test_sequences_of_length_one_are_kernel_logistic_regression():
    codes = X.flat(y).astype(str)
    flat = Sequences(X.positions, np.ones(X.n_positions, dtype=int))
    chain = KernelCRF(RBF(1.5), regularization=0.5, ends=False).fit(flat, flat.split(codes))
    single = KernelLogisticRegression(RBF(1.5), regularization=0.5).fit(X.positions, codes)
    marginals = np.concatenate(chain.predict_marginals(flat))
    np.testing.assert_allclose(marginals, single.predict_proba(X.positions), atol=1e-4)
    assert np.all(chain.transitions_ == 0)


def test_chain_beats_single_positions():
    single = KernelLogisticRegression().fit(X.positions, X.flat(y).astype(str))
    chain = KernelCRF().fit(X, y)
    alone = np.mean(single.predict(NEW.positions) == NEW.flat(TRUTH).astype(str))
    assert chain.score(NEW, TRUTH) > alone + 0.05


# --- the same model in other clothes ----------------------------------------------------------


def test_weight_two_is_the_sequence_twice():
    weights = np.ones(len(X))
    weights[:5] = 2
    again = np.concatenate([np.arange(len(X)), np.arange(5)])
    one, two = fixed().fit(X, y, sample_weight=weights), fixed().fit(X[again], y[again])
    same(one.predict_marginals(NEW), two.predict_marginals(NEW), atol=1e-4)
    none = np.arange(5, len(X))
    zero = fixed().fit(X, y, sample_weight=(np.arange(len(X)) >= 5).astype(float))
    same(
        zero.predict_marginals(NEW), fixed().fit(X[none], y[none]).predict_marginals(NEW), atol=1e-4
    )


def test_order_of_sequences_and_empty_ones_do_not_matter(model):
    order = np.random.default_rng(0).permutation(len(X))
    same(
        fixed().fit(X[order], y[order]).predict_marginals(NEW),
        model.predict_marginals(NEW),
        atol=1e-4,
    )
    empty = Sequences(np.empty((0, 2)), [0])
    padded = Sequences.concatenate([X[:3], empty, X[3:]])
    labels = [*y[:3], [], *y[3:]]
    same(
        fixed().fit(padded, labels).predict_marginals(NEW), model.predict_marginals(NEW), atol=1e-4
    )
    assert [len(part) for part in model.predict(padded[2:5])] == padded.lengths[2:5].tolist()


@pytest.mark.parametrize("operator", ["streamed", "low_rank"])
def test_operators_agree(model, operator):
    other = fixed(operator=operator, rank=X.n_positions).fit(X, y)
    same(other.predict_marginals(NEW), model.predict_marginals(NEW), atol=1e-3)


@pytest.mark.parametrize("intercept", [0.0, 1.5])
@pytest.mark.parametrize("case", ["plain", "weighted", "missing", "tree", "sparse", "float32"])
def test_weights_of_features_are_the_same_model_as_coefficients_of_positions(case, intercept):
    given = {"kernel": 2.0 * Linear(), "intercept_variance": intercept, "tol": 1e-10}
    more, labels, sequences = {}, y, X
    if case == "weighted":
        more["sample_weight"] = np.linspace(0.0, 2.0, len(X))
    elif case == "missing":
        labels = hidden(0.3)
    elif case == "tree":
        given["hierarchy"] = {"left": ["a", "b"], "right": ["c"]}
    elif case == "sparse":
        sequences = Sequences(sp.csr_array(X.positions), X.lengths)
    elif case == "float32":
        sequences = Sequences(X.positions.astype(np.float32), X.lengths)
    weights = fixed(operator="linear", **given).fit(sequences, labels, **more)
    rows = fixed(operator="dense", **given).fit(X, labels, **more)
    assert weights.X_fit_.shape == (2, 2)
    assert rows.X_fit_.shape[0] == X.n_positions
    assert weights.solution_.relative_gap <= 1e-10
    same(weights.predict_marginals(NEW), rows.predict_marginals(NEW), atol=1e-4)
    np.testing.assert_allclose(weights.transitions_, rows.transitions_, atol=1e-4)
    np.testing.assert_allclose(weights.intercept_, rows.intercept_, atol=1e-4)
    np.testing.assert_allclose(weights.solution_.objective, rows.solution_.objective, rtol=1e-7)


def test_low_rank_fits_in_weights_are_those_in_coefficients():
    given = {"operator": "low_rank", "rank": 25, "random_state": 0, "tol": 1e-9}
    low = fixed(**given).fit(X, y)
    noise = fixed(kernel=2.0 * RBF(1.5) + White(1e-9), **given).fit(X, y)  # a diagonal is left
    assert low.X_fit_.shape == (25, 2)
    same(low.predict_marginals(NEW), noise.predict_marginals(NEW), atol=1e-4)
    assert low.solution_.relative_gap <= 1e-9


def test_large_variances_of_transitions_take_few_steps():
    rng = np.random.default_rng(0)
    follows, centres = rng.dirichlet(np.full(10, 0.3), size=10), 1.2 * rng.normal(size=(10, 4))
    lengths, codes = rng.integers(4, 12, size=120), []
    for length in lengths:
        codes.append(rng.integers(10))
        for _ in range(length - 1):
            codes.append(rng.choice(10, p=follows[codes[-1]]))
    many = Sequences(centres[codes] + rng.normal(size=(len(codes), 4)), lengths)
    given = {"kernel": RBF(2.0), "regularization": 1.0, "tol": 1e-6}
    given |= {"operator": "low_rank", "rank": 100, "random_state": 0}
    for variance, most in ((1.0, 60), (100.0, 100)):  # 36 and 67; without sums 86 and 192
        model = fixed(transition_variance=variance, **given).fit(many, many.split(np.array(codes)))
        assert model.solution_.status == "converged"
        assert model.solution_.n_products < most


def test_rare_and_frequent_features_take_few_steps():
    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(1, 301)
    words_ = rng.choice(300, size=3000, p=frequency / frequency.sum())
    tags = np.where(rng.random(3000) < 0.8, words_ % 3, rng.integers(3, size=3000))
    one = sp.csr_array((np.ones(3000), (np.arange(3000), words_)), shape=(3000, 300))
    sentences = Sequences(one, np.full(300, 10))
    given = {"kernel": Linear(), "operator": "linear", "tol": 1e-6, "regularization": 0.1}
    tagger = fixed(**given).fit(sentences, sentences.split(tags))
    # without a preconditioner there are several times as many
    assert tagger.solution_.n_products < 120
    assert tagger.solution_.status == "converged"


def test_sparse_float32_lists_and_frames_agree(model):
    pd = pytest.importorskip("pandas")
    expected = model.predict_marginals(NEW)
    sparse = fixed().fit(Sequences(sp.csr_array(X.positions), X.lengths), y)
    same(sparse.predict_marginals(NEW), expected, atol=1e-4)
    single = fixed().fit(Sequences(X.positions.astype(np.float32), X.lengths), y)
    same(single.predict_marginals(NEW), expected, atol=1e-3)
    lists = fixed().fit(list(X), [list(labels) for labels in y])
    same(lists.predict_marginals(list(NEW)), expected, atol=1e-4)
    frame = pd.DataFrame(X.positions, columns=["p", "q"])
    named = fixed().fit(Sequences(frame, X.lengths), y)
    assert named.feature_names_in_.tolist() == ["p", "q"]


def test_numbers_as_labels(model):
    codes = X.split(np.searchsorted(LABELS, X.flat(y).astype(str)))
    numbers = fixed().fit(X, codes)
    assert numbers.classes_.dtype.kind == "i"
    same([LABELS[c] for c in numbers.predict(NEW)], model.predict(NEW))


# --- answers ----------------------------------------------------------------------------------


def paths_of(model, s):
    """All label sequences of a short sequence with their probabilities, by enumeration."""
    C, part = len(model.classes_), NEW[[s]]
    every = list(itertools.product(range(C), repeat=int(part.lengths[0])))
    logs = [model.predict_log_proba(part, [model.classes_[list(path)]])[0] for path in every]
    return every, np.exp(logs)


def test_answers_are_those_of_all_label_sequences(model):
    s = int(np.flatnonzero(NEW.lengths == 4)[0])
    part = NEW[[s]]
    every, chances = paths_of(model, s)
    assert np.isclose(chances.sum(), 1)
    ranked = np.argsort(-chances)
    best = clone(model).set_params(decode="viterbi").fit(X, y)
    assert list(best.predict(part)[0]) == [LABELS[c] for c in every[ranked[0]]]
    for (labels, log), r in zip(model.predict_top(part, 4)[0], ranked, strict=False):
        assert list(labels) == [LABELS[c] for c in every[r]]
        assert np.isclose(log, np.log(chances[r]))
    indicator = np.array([np.eye(3)[list(path)] for path in every])
    expected = np.einsum("p,ptc->tc", chances, indicator)
    np.testing.assert_allclose(model.predict_marginals(part)[0], expected, atol=1e-10)
    pairs = np.einsum("p,pta,ptb->tab", chances, indicator[:, :-1], indicator[:, 1:])
    np.testing.assert_allclose(model.predict_pair_marginals(part)[0], pairs, atol=1e-10)
    likeliest = [LABELS[c] for c in expected.argmax(axis=1)]
    assert list(model.predict(part)[0]) == likeliest
    assert list(best.set_params(decode="posterior").predict(part)[0]) == likeliest


def test_given_labels_are_kept_and_tell_about_the_others(model):
    s = int(np.flatnonzero(NEW.lengths == 4)[0])
    part, given = NEW[[s]], [["c", None, None, "b"]]
    every, chances = paths_of(model, s)
    fits = [path[0] == 2 and path[3] == 1 for path in every]
    best = every[int(np.argmax(np.where(fits, chances, 0)))]
    path = clone(model).set_params(decode="viterbi").fit(X, y)
    assert list(path.predict(part, given=given)[0]) == [LABELS[c] for c in best]
    marginals = model.predict_marginals(part, given=given)[0]
    np.testing.assert_allclose(marginals[[0, 3]], np.eye(3)[[2, 1]], atol=1e-12)
    known = model.predict_log_proba(part, given)[0]
    assert np.isclose(np.exp(known), chances[fits].sum())


def test_forbidden_transitions_never_happen():
    pairs = [
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
        ("a", "a"),
        ("b", "b"),
        ("c", "c"),
        (None, "a"),
        (None, "b"),
    ]
    allowed = set(pairs)
    keep = [
        s for s, part in enumerate(y) if part[0] != "c" and set(itertools.pairwise(part)) <= allowed
    ]
    model = fixed(allowed_transitions=pairs).fit(X[keep], y[keep])
    for part in model.predict(NEW):
        assert part[0] != "c"
        assert set(itertools.pairwise(part)) <= allowed
    assert model.transitions_[0, 2] == -np.inf
    assert model.start_[2] == -np.inf
    assert model.predict_log_proba(NEW[[0]], [["c"] * int(NEW.lengths[0])])[0] == -np.inf
    with pytest.raises(ValueError, match=r"given\[0\] break the rules of allowed_transitions"):
        model.predict(NEW[[0]], given=[["c"] + [None] * (int(NEW.lengths[0]) - 1)])


@pytest.mark.parametrize("rules", [False, True])
def test_labels_are_decoded_by_position_unless_there_are_rules(rules):
    every = [*itertools.product("abc", "abc"), *((None, label) for label in "abc")]
    model = fixed(allowed_transitions=every if rules else None).fit(X, y)
    many, _ = words(200, seed=2, noise=2.0)
    found = {
        decode: model.set_params(decode=decode).predict(many)
        for decode in ("auto", "viterbi", "posterior")
    }
    same(found["auto"], found["viterbi" if rules else "posterior"])
    assert any(
        list(a) != list(b) for a, b in zip(found["viterbi"], found["posterior"], strict=True)
    )


# --- transitions that depend on the position ---------------------------------------------------


def turning(n=40, seed=0):
    """The second feature alone says whether the next label is the same or the other; labels begin at random."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 7, size=n)
    turn = rng.integers(2, size=lengths.sum())
    X = Sequences(np.stack([rng.normal(size=turn.size), 2.0 * turn - 1], axis=1), lengths)
    codes = [np.cumsum(np.append(rng.integers(2), part[1:])) % 2 for part in X.split(turn)]
    # the first label is shown, so that the others follow from the turns
    for rows, labels in zip(X.bounds[:-1], codes, strict=True):
        X.positions[rows, 0] = 3.0 * labels[0]
    return X, [LABELS[labels] for labels in codes]


def test_transitions_may_depend_on_the_position():
    (words, labels), (new, truth) = turning(), turning(seed=1)
    plain = fixed(decode="viterbi").fit(words, labels)
    turned = fixed(decode="viterbi", input_transitions=1.0).fit(words, labels)
    assert plain.score(new, truth) < 0.8
    assert turned.score(new, truth) > 0.97
    assert turned.solution_.status == "converged"


def test_transition_functions_of_one_place_are_transitions():
    """Where all positions are alike, a function is a number: both priors add up."""
    alike = Sequences(np.ones((X.n_positions, 2)), X.lengths)
    moving = fixed(input_transitions=0.5, transition_variance=2.0, ends=False).fit(alike, y)
    # 2 is the variance of the kernel
    constant = fixed(transition_variance=2.0 + 0.5 * 2.0, ends=False).fit(alike, y)
    same(moving.predict_marginals(alike), constant.predict_marginals(alike), atol=1e-5)
    same(moving.predict_pair_marginals(alike), constant.predict_pair_marginals(alike), atol=1e-5)
    np.testing.assert_allclose(moving.solution_.objective, constant.solution_.objective, rtol=1e-7)


@pytest.mark.parametrize("operator", ["dense", "streamed", "linear", "low_rank"])
def test_operators_agree_on_transition_functions(operator):
    """Low rank keeps all that a linear kernel of two features has."""
    kernel = {"kernel": Linear(), "input_transitions": 0.5, "tol": 1e-10}
    one = fixed(**kernel, operator="dense").fit(X, y)
    rank = {"rank": 2} if operator == "low_rank" else {}
    other = fixed(**kernel, **rank, operator=operator).fit(X, y)
    same(one.predict_marginals(NEW), other.predict_marginals(NEW), atol=1e-5)
    assert np.isclose(one.solution_.objective, other.solution_.objective, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transition_functions_are_certified_and_kept(dtype):
    few = X[:12]
    short = Sequences(few.positions.astype(dtype), few.lengths)
    model = fixed(input_transitions=0.5)
    check_certificate(model, short, y[:12])
    weights = np.random.default_rng(0).uniform(0.5, 2, size=12)
    check_certificate(model, short, y[:12], sample_weight=weights)
    model.fit(short, y[:12])
    again = pickle.loads(pickle.dumps(model))
    same(again.predict_marginals(NEW), model.predict_marginals(NEW), atol=0)
    warm = clone(model).set_params(warm_start=True).fit(short, y[:12]).fit(short, y[:12])
    assert warm.solution_.n_iter <= 1


def test_transition_functions_of_no_position():
    model = fixed(input_transitions=0.5).fit(X, y)
    for nothing in (NEW[:0], Sequences(np.empty((0, 2)), [0, 0])):
        assert all(part.size == 0 for part in model.predict(nothing))
        assert len(model.predict_pair_marginals(nothing)) == len(nothing)
        assert model.predict_log_proba(nothing, [[]] * len(nothing)).tolist() == [0.0] * len(
            nothing
        )


def test_transition_functions_with_missing_labels_and_rules():
    every = [*itertools.product("abc", "abc"), *((None, label) for label in "ab")]
    some = [part if k % 2 else [None, *part[1:]] for k, part in enumerate(y)]
    allowed = [part if part[0] != "c" else ["a", *part[1:]] for part in map(list, some)]
    model = fixed(input_transitions=0.5, allowed_transitions=every).fit(X, allowed)
    assert all(part[0] != "c" for part in model.predict(NEW))
    best = model.predict_top(NEW[[0]], 3)[0]
    logs = model.predict_log_proba(NEW[[0] * len(best)], [labels for labels, _ in best])
    np.testing.assert_allclose([log for _, log in best], logs, atol=1e-10)


def test_other_parameters_are_learned_without_transition_functions():
    search = {"optimize": CrossValidationSearch(max_evaluations=3, tol=0.5), "cv": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (
            KernelCRF(input_transitions=value, **search).fit(X, y) for value in (0.5, 0.0)
        )
    assert repr(one.kernel_) == repr(other.kernel_)
    assert one.transition_variance_ == other.transition_variance_


def test_transition_functions_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match=r"input_transitions=1.0 needs .* share='class'"):
        fixed(input_transitions=1.0, share="class").fit(X, y)
    with pytest.raises(ValueError, match=r"input_transitions=1.0 needs .* no\s+hierarchy"):
        fixed(input_transitions=1.0, hierarchy={"d": ["a", "b"], "c": None}).fit(X, y)
    with pytest.raises(ValueError, match="input_transitions must be"):
        fixed(input_transitions=-1.0).fit(X, y)
    long = Sequences(np.zeros((60_000, 1)), [60_000])
    with (
        sklearn.config_context(working_memory=64),
        pytest.raises(ValueError, match=r"input_transitions=1.0 keeps 3² scores .* working_memory"),
    ):
        fixed(input_transitions=1.0).fit(long, [["a", "b", "c"] * 20_000])


def test_bio_rules():
    rng = np.random.default_rng(0)
    tags = [["O", "B-x", "I-x", "O"], ["B-y", "I-y", "I-y"], ["O", "O", "B-x"]]
    sentences = [rng.normal(size=(len(part), 2)) for part in tags]
    model = fixed(allowed_transitions="BIO").fit(sentences, tags)
    classes = model.classes_.tolist()
    T = model.transitions_
    assert T[classes.index("B-x"), classes.index("I-y")] == -np.inf
    assert T[classes.index("B-x"), classes.index("I-x")] > -np.inf
    assert model.start_[classes.index("I-x")] == -np.inf
    with pytest.raises(ValueError, match="break the rules"):
        fixed(allowed_transitions="BIO").fit(sentences[1:], [["O", "I-x", "O"], ["O", "B-x", "O"]])


# --- labels that are not certain --------------------------------------------------------------


def hidden(share, seed=0):
    rng = np.random.default_rng(seed)
    return [[label if rng.random() > share else None for label in part] for part in y]


def test_missing_labels_are_summed_over():
    some = hidden(0.5)
    model = fixed().fit(X, some)
    assert model.solution_.status == "converged"
    # its objective is the probability of what is known, by the model's own answers
    loss = -model.predict_log_proba(X, some).sum()
    everything = {"a", "b", "c"}
    sets = [[label or everything for label in part] for part in some]
    again = fixed().fit(X, sets)
    same(again.predict_marginals(NEW), model.predict_marginals(NEW), atol=1e-5)
    assert loss < model.solution_.objective < loss + 40


def test_labels_of_a_tree_may_be_inner_nodes():
    tree = {"early": ["a", "b"], "late": ["c"]}
    coarse = [
        ["early" if label != "c" and k % 2 else label for k, label in enumerate(part)] for part in y
    ]
    model = fixed(hierarchy=tree).fit(X, coarse)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(NEW, TRUTH) > 0.5
    leaf = fixed(hierarchy=tree).fit(X, y)
    assert leaf.solution_.status == "converged"


def test_hyperparameters_are_learned_where_labels_are_missing():
    model = KernelCRF(optimize=CrossValidationSearch(max_evaluations=3, tol=0.5), cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, hidden(0.4))
    assert np.isfinite(model.cv_log_loss_)


# --- learning ---------------------------------------------------------------------------------


def test_kernel_and_transitions_are_learned_together():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelCRF(optimize="cv", cv=3).fit(X, y)
    assert model.optimization_path_.names[-1] == "transition variance"
    assert model.transition_variance_ != 1.0
    assert np.isclose(
        np.exp(model.optimization_path_.theta[model.optimization_path_.best][-1]),
        model.transition_variance_,
    )
    kept = KernelCRF(optimize="cv", cv=3, transition_variance=3.0).fit(X, y)
    assert np.isclose(kept.transition_variance_, 3.0)


def test_numbers_and_kernels_are_taken_as_they_are(model):
    assert not hasattr(model, "cv_log_loss_")
    assert model.transition_variance_ == 2.0
    assert repr(model.kernel_) == repr(2.0 * RBF(1.5))


def test_groups_and_splits_are_of_sequences():
    groups = np.arange(len(X)) % 4
    search = CrossValidationSearch(max_evaluations=2, tol=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grouped = KernelCRF(optimize=search, cv=2).fit(X, y, groups=groups)
        split = KernelCRF(optimize=search, cv=KFold(2)).fit(X, y)
    assert grouped.cv_log_loss_ != split.cv_log_loss_


def test_samples_for_a_search_have_sequences_of_all_folds():
    """Both are drawn with the same seed: the sample must not be one of the folds."""
    many, _ = words(n=200)
    rows = KernelCRF()._examples().sample(many, None)(200)
    _, held_out = fold_masks(5, many, np.zeros(len(many)))
    assert held_out[rows].sum(axis=0).min() >= len(rows) / 15


def test_searches_of_scikit_learn_split_by_sequence():
    search = GridSearchCV(fixed(), {"regularization": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_["regularization"] in (0.1, 1.0)
    assert cross_val_score(fixed(), X, y, cv=3).shape == (3,)
    predicted = cross_val_predict(fixed(), X, y, cv=3)
    assert [len(part) for part in predicted] == X.lengths.tolist()


# --- conventions ------------------------------------------------------------------------------


def test_persistence_and_clones(model):
    again = pickle.loads(pickle.dumps(model))
    same(again.predict_marginals(NEW), model.predict_marginals(NEW), atol=0)
    sio = pytest.importorskip("skops.io")
    data = sio.dumps(model)
    loaded = sio.loads(data, trusted=sio.get_untrusted_types(data=data))
    same(loaded.predict(NEW), model.predict(NEW))
    with pytest.raises(NotFittedError):
        clone(model).predict(NEW)


@pytest.mark.parametrize(
    "name",
    [
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_get_params_invariance",
        "check_mixin_order",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ],
)
def test_checks_of_scikit_learn_that_need_no_table(name):
    getattr(estimator_checks, name)("KernelCRF", KernelCRF())


class Listener:
    """A callback that scores the partial fits it is shown."""

    def __init__(self):
        self.scores = []

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context, **told): ...

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, **told):
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))
        return False


@pytest.mark.parametrize("kernel", [2.0 * RBF(1.5), Linear()])
def test_callbacks_get_models_that_predict(kernel):
    listener = Listener()
    model = fixed(kernel=kernel).set_callbacks(listener).fit(X, y)
    assert len(listener.scores) >= 2
    assert listener.scores[-1] == pytest.approx(model.score(X, y), abs=0.02)


def test_warm_start_begins_where_the_last_fit_ended():
    model = fixed(warm_start=True).fit(X, y)
    before = model.solution_.n_products
    assert model.fit(X, y).solution_.n_products < before / 3


def test_warm_start_of_weights_begins_where_the_last_fit_ended():
    warm = fixed(kernel=Linear(), operator="linear", warm_start=True).fit(X, y)
    assert warm.fit(X, y).n_iter_ == 1


def test_x_is_copied():
    positions = X.positions.copy()
    model = fixed().fit(Sequences(positions, X.lengths), y)
    before = model.predict_marginals(NEW)
    positions[:] = 0
    same(model.predict_marginals(NEW), before, atol=0)


def test_long_and_many_sequences():
    rng = np.random.default_rng(0)
    one = Sequences(rng.normal(size=(20_000, 2)), [20_000])
    labels = [LABELS[(one.positions[:, 0] > 0).astype(int)]]
    model = KernelCRF("linear", regularization=1.0, tol=1e-3).fit(one, labels)
    assert model.score(one, labels) > 0.97
    assert np.isfinite(model.predict_log_proba(one, labels)[0])


def test_many_labels():
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(200), rng.integers(200, size=40)])
    many = Sequences(rng.normal(size=(200, 5))[codes], [60] * 4)
    model = KernelCRF("linear", regularization=0.1, tol=1e-2).fit(many, many.split(codes))
    assert model.transitions_.shape == (200, 200)
    assert model.score(many, many.split(codes)) > 0.8


# --- odd input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": y[:-1]}, "one sequence of labels for each of the 40 sequences"),
        ({"y": [[None] * len(part) for part in y]}, "at least one label that is not None"),
        ({"y": [["a"] * len(part) for part in y]}, "at least two classes"),
        (
            {"y": [["a", 1][:1] * len(part) for part in y[:-1]] + [[1] * len(y[-1])]},
            "labels of one type",
        ),
        ({"y": [[set()] * len(part) for part in y]}, "at least one label|empty sets"),
        ({"y": X.split(X.positions[:, 0])}, "numbers with fractions"),
        ({"y": [[{}] * len(part) for part in y]}, r"got {} of type dict"),
        ({"y": [[[["a"]]] * len(part) for part in y]}, r"got \['a'\] of type list"),
        ({"y": [[object()] * len(part) for part in y]}, "of type object"),
        ({"X": X.positions}, "must be a gramian.Sequences"),
        ({"X": Sequences(np.empty((0, 2)), []), "y": []}, "at least one position"),
        ({"X": Sequences(X.positions[:, :0], X.lengths)}, "at least one feature"),
        ({"kernel": "precomputed"}, "kernel of features"),
        ({"transition_variance": -1.0}, "transition_variance"),
        ({"allowed_transitions": "IOB"}, "'BIO' or pairs"),
        ({"allowed_transitions": [("a", "z")]}, "label 'z', which is not in y"),
        ({"allowed_transitions": "BIO"}, "needs labels 'O'"),
        ({"decode": "beam"}, "decode"),
        ({"solver": "exact"}, "solver"),
        ({"hierarchy": {"p": ["a", "b"]}}, "'c'"),
        ({"sample_weight": np.ones(X.n_positions)}, "sample_weight"),
        (
            {
                "X": Sequences(np.eye(2), [2, 0]),
                "y": [["a", "b"], []],
                "sample_weight": [0, 1],
                "kernel": "rbf",
            },
            "zero for every sequence that has positions",
        ),
    ],
)
def test_bad_input_is_named_and_leaves_nothing_behind(change, message):
    arguments = {"X": X, "y": y, "sample_weight": None}
    arguments |= {name: change.pop(name) for name in list(change) if name in arguments}
    model = fixed(**change)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(**arguments)
    assert not hasattr(model, "classes_")


def test_labels_and_features_that_training_did_not_have(model):
    with pytest.raises(ValueError, match="label 'z', which was not in training"):
        model.predict_log_proba(NEW[[0]], [["z"] * int(NEW.lengths[0])])
    for strange in ({}, ("a",), [["a"]]):
        with pytest.raises(ValueError, match="which was not in training"):
            model.predict(NEW[[0]], given=[[strange] * int(NEW.lengths[0])])
    with pytest.raises(ValueError, match="X has 3 features, but KernelCRF is expecting 2"):
        model.predict([np.zeros((2, 3))])
    assert 0 <= model.score(NEW, [["z"] * len(part) for part in TRUTH]) == 0
    with pytest.raises(ValueError, match="k must be"):
        model.predict_top(NEW, 0)
