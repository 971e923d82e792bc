"""Scores of label sequences against loops over positions and chunks read by hand, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, cross_validate

from gramian.metrics import (
    ChunkScores,
    chunk_f1_score,
    chunk_report,
    chunk_scores,
    chunks,
    position_accuracy,
    sequence_accuracy,
    sequence_scorers,
)

TAGS = ["O", *(f"{prefix}-{name}" for prefix in "BIES" for name in ("LOC", "PER"))]


def random_tags(rng, lengths=(5, 0, 1, 12, 40), tags=TAGS):
    return [rng.choice(tags, size=length) for length in lengths]


# --- accuracies -----------------------------------------------------------------------------------


def naive_accuracies(y_true, y_pred, weights):
    """Positions and whole sequences that are right, one by one."""
    right = positions = whole = sequences = 0.0
    for true, pred, weight in zip(y_true, y_pred, weights, strict=True):
        hits = [t == p for t, p in zip(true, pred, strict=True) if t is not None]
        right += weight * sum(hits)
        positions += weight * len(hits)
        if hits:
            whole += weight * all(hits)
            sequences += weight
    return right / positions, whole / sequences


@pytest.mark.parametrize("weighted", [False, True])
def test_accuracies_agree_with_a_loop(rng, weighted):
    lengths = rng.integers(0, 4, size=50)
    y_true = [rng.choice(np.array(["a", "b", None]), size=length) for length in lengths]
    y_pred = [rng.choice(["a", "b"], size=length) for length in lengths]
    weights = rng.uniform(size=50) if weighted else None
    expected = naive_accuracies(y_true, y_pred, np.ones(50) if weights is None else weights)
    assert position_accuracy(y_true, y_pred, sample_weight=weights) == pytest.approx(expected[0])
    assert sequence_accuracy(y_true, y_pred, sample_weight=weights) == pytest.approx(expected[1])


def test_unknown_labels_and_empty_sequences_do_not_count():
    y_true = [["a", None], [None, None], [], ["a", "b"]]
    y_pred = [["a", "z"], ["a", "b"], [], ["a", "a"]]
    assert position_accuracy(y_true, y_pred) == pytest.approx(2 / 3)
    assert sequence_accuracy(y_true, y_pred) == 1 / 2


def test_a_weight_is_that_of_each_position():
    y_true, y_pred = [["a"] * 3, ["a"]], [["a"] * 3, ["b"]]
    assert position_accuracy(y_true, y_pred, sample_weight=[1, 3]) == 3 / 6
    assert sequence_accuracy(y_true, y_pred, sample_weight=[1, 3]) == 1 / 4


def test_labels_may_be_numbers_in_any_container():
    lists = [[0, 1], [2, 2]]
    ragged = np.empty(2, dtype=object)
    ragged[:] = [np.array([0, 1]), np.array([2, 0])]
    assert position_accuracy(lists, ragged) == 3 / 4
    assert position_accuracy(np.array(lists), ragged) == 3 / 4
    assert position_accuracy(ragged, ragged) == 1.0


def test_labels_may_be_tuples():
    assert position_accuracy([[("V", "past"), "N"]], [[("V", "past"), ("N",)]]) == 1 / 2


def test_a_missing_prediction_is_wrong():
    assert position_accuracy([["a", "b"]], [[None, "b"]]) == 1 / 2


@pytest.mark.parametrize("score", [position_accuracy, sequence_accuracy])
def test_nothing_known_is_nan_with_a_warning(score):
    with pytest.warns(UserWarning, match=f"{score.__name__} has nothing to compare"):
        assert np.isnan(score([[None], []], [["a"], []]))
    with pytest.warns(UserWarning, match="no label in y_true is known and has a weight"):
        assert np.isnan(score([[None], ["a"]], [["a"], ["a"]], sample_weight=[1, 0]))


# --- chunks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tags, expected",
    [
        ("", []),
        ("O O", []),
        # well formed BIO
        ("B-X I-X O", [("X", 0, 2)]),
        ("B-X B-X", [("X", 0, 1), ("X", 1, 2)]),
        ("B-X I-X B-X", [("X", 0, 2), ("X", 2, 3)]),
        ("B-X O B-X", [("X", 0, 1), ("X", 2, 3)]),
        ("O B-X I-X", [("X", 1, 3)]),  # until the end of the sequence
        ("B-X B-Y", [("X", 0, 1), ("Y", 1, 2)]),
        # an I without a chunk of its type begins one
        ("I-X", [("X", 0, 1)]),
        ("I-X I-X", [("X", 0, 2)]),
        ("O I-X", [("X", 1, 2)]),
        ("B-X O I-X", [("X", 0, 1), ("X", 2, 3)]),
        ("B-X I-Y", [("X", 0, 1), ("Y", 1, 2)]),
        ("I-X I-Y I-Y", [("X", 0, 1), ("Y", 1, 3)]),
        ("I-X B-X", [("X", 0, 1), ("X", 1, 2)]),
        ("B-X I-Y I-X", [("X", 0, 1), ("Y", 1, 2), ("X", 2, 3)]),
        # well formed BIOES
        ("B-X I-X E-X", [("X", 0, 3)]),
        ("B-X E-X S-X", [("X", 0, 2), ("X", 2, 3)]),
        ("S-X S-X", [("X", 0, 1), ("X", 1, 2)]),
        ("S-X B-Y E-Y", [("X", 0, 1), ("Y", 1, 3)]),
        # what E and S do where they do not belong
        ("E-X", [("X", 0, 1)]),
        ("E-X E-X", [("X", 0, 1), ("X", 1, 2)]),
        ("O E-X", [("X", 1, 2)]),
        ("I-X E-X", [("X", 0, 2)]),
        ("B-X E-Y", [("X", 0, 1), ("Y", 1, 2)]),
        ("B-X E-X I-X", [("X", 0, 2), ("X", 2, 3)]),
        ("B-X E-X E-X", [("X", 0, 2), ("X", 2, 3)]),
        ("S-X I-X", [("X", 0, 1), ("X", 1, 2)]),
        ("S-X E-X", [("X", 0, 1), ("X", 1, 2)]),
        ("B-X S-X I-X", [("X", 0, 1), ("X", 1, 2), ("X", 2, 3)]),
        ("I-X S-X", [("X", 0, 1), ("X", 1, 2)]),
        # types with a hyphen, and none
        ("B-X-1 I-X-1 I-X-2", [("X-1", 0, 2), ("X-2", 2, 3)]),
        ("B I O I", [("_", 0, 2), ("_", 3, 4)]),
        ("B- I-", [("_", 0, 2)]),
    ],
)
def test_chunks_are_read_leniently(tags, expected):
    assert chunks(tags.split()) == expected
    assert chunks(np.array(tags.split(), dtype=str)) == expected


def naive_chunks(tags):
    """The rule, one tag after the other: (type, start, stop)."""
    found, previous = [], "O"
    for i, tag in enumerate(tags):
        if tag != "O":
            goes_on = tag[0] in "IE" and previous[0] in "BI" and tag[2:] == previous[2:]
            if goes_on:
                found[-1][2] = i + 1
            else:
                found.append([tag[2:], i, i + 1])
        previous = tag
    return [tuple(chunk) for chunk in found]


def test_chunks_agree_with_a_loop(rng):
    for tags in random_tags(rng, lengths=[30] * 20):
        assert chunks(tags) == naive_chunks(tags)


# --- scores of chunks -----------------------------------------------------------------------------


def naive_scores(y_true, y_pred):
    """{type: (precision, recall, f1, support)} from sets of chunks, with None for all types together."""
    true, pred = (
        {(i, *chunk) for i, tags in enumerate(y) for chunk in naive_chunks(tags)}
        for y in (y_true, y_pred)
    )
    scores = {}
    for kind in [None, *sorted({chunk[1] for chunk in true | pred})]:
        t, p = ({c for c in found if kind in (None, c[1])} for found in (true, pred))
        both = len(t & p)
        precision, recall = both / max(len(p), 1), both / max(len(t), 1)
        f1 = 2 * precision * recall / (precision + recall) if both else 0.0
        scores[kind] = (precision, recall, f1, len(t))
    return scores


@pytest.mark.parametrize("n_repeats", [1, 3])
def test_scores_agree_with_sets_of_chunks(rng, n_repeats):
    y_true = random_tags(rng, (5, 0, 1, 12, 40) * n_repeats)
    y_pred = [np.where(rng.uniform(size=len(t)) < 0.7, t, rng.choice(TAGS, len(t))) for t in y_true]
    expected = naive_scores(y_true, y_pred)
    assert chunk_scores(y_true, y_pred)[:4] == pytest.approx(expected.pop(None))
    each = chunk_scores(y_true, y_pred, average=None)
    assert each.types == tuple(expected)
    np.testing.assert_allclose(np.transpose(each[:4]), list(expected.values()))
    macro = chunk_scores(y_true, y_pred, average="macro")
    assert macro[:3] == pytest.approx(np.mean(list(expected.values()), axis=0)[:3])
    for average in ("micro", "macro", None):
        scores = chunk_scores(y_true, y_pred, average=average)
        np.testing.assert_array_equal(chunk_f1_score(y_true, y_pred, average=average), scores.f1)


def test_scores_agree_with_seqeval(rng):
    seqeval = pytest.importorskip("seqeval.metrics")
    y_true, y_pred = ([tags.tolist() for tags in random_tags(rng)] for _ in range(2))
    for average in ("micro", "macro", None):
        ours = chunk_scores(y_true, y_pred, average=average)
        for name, score in zip(("precision", "recall", "f1"), ours, strict=False):
            theirs = getattr(seqeval, f"{name}_score")(y_true, y_pred, average=average)
            np.testing.assert_allclose(score, theirs)


def test_a_chunk_is_right_only_as_a_whole():
    truth = [["B-X", "I-X", "I-X", "O"]]
    assert chunk_f1_score(truth, [["I-X", "I-X", "I-X", "O"]]) == 1.0  # another tag, the same chunk
    assert chunk_f1_score(truth, [["B-X", "I-X", "E-X", "O"]]) == 1.0
    for wrong in ("B-X I-X O O", "B-X I-X I-X I-X", "O B-X I-X O", "B-Y I-Y I-Y O"):
        assert chunk_f1_score(truth, [wrong.split()]) == 0.0


def test_chunks_end_with_their_sequence():
    """Two sequences are not one: neither chunks nor matches reach across."""
    parted = [["B-X"], ["I-X"]]
    assert chunk_scores(parted, parted).support == 2
    assert chunk_f1_score(parted, [["B-X"], ["O"]]) == pytest.approx(2 / 3)


def test_types_that_are_only_predicted_count_in_the_macro_average():
    scores = chunk_scores([["B-X", "O"]], [["B-X", "B-Y"]], average="macro")
    assert scores == ChunkScores(0.5, 0.5, 0.5, 1, ("X", "Y"))


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_without_chunks_scores_are_zero(average):
    assert chunk_scores([["O"], []], [["O"], []], average=average) == (0.0, 0.0, 0.0, 0, ())
    assert chunk_scores([["B-X"]], [["O"]], average=average)[:3] == (0.0, 0.0, 0.0)
    assert len(chunk_f1_score([["O"]], [["O"]], average=None)) == 0


def test_the_report_has_a_line_for_each_type_and_average():
    report = chunk_report([["B-PER", "O", "B-location"]], [["B-PER", "O", "O"]])
    lines = [line.split() for line in report.splitlines()]
    assert lines == [
        ["precision", "recall", "f1", "support"],
        ["PER", "1.00", "1.00", "1.00", "1"],
        ["location", "0.00", "0.00", "0.00", "1"],
        ["micro", "avg", "1.00", "0.50", "0.67", "2"],
        ["macro", "avg", "0.50", "0.50", "0.50", "2"],
    ]
    assert len({len(line) for line in report.splitlines()}) == 1  # columns stand below each other


# --- scorers --------------------------------------------------------------------------------------


class MostFrequent(BaseEstimator):
    """Answers every position with the label that is most frequent in training."""

    def fit(self, X, y):
        labels, counts = np.unique(np.concatenate(y), return_counts=True)
        self.label_ = labels[counts.argmax()]
        return self

    def predict(self, X):
        answers = np.empty(len(X), dtype=object)
        answers[:] = [np.full(len(x), self.label_) for x in X]
        return answers


def test_scorers_go_into_cross_validation(rng):
    y = random_tags(rng, lengths=rng.integers(1, 6, size=20), tags=["O", "O", "B-X"])
    X = [np.ones((len(labels), 2)) for labels in y]
    scorers = pickle.loads(pickle.dumps(sequence_scorers()))
    assert list(scorers) == ["position_accuracy", "sequence_accuracy", "chunk_f1"]
    model = MostFrequent().fit(X, y)
    predicted = model.predict(X)
    for scorer, score in zip(
        scorers.values(), (position_accuracy, sequence_accuracy, chunk_f1_score), strict=True
    ):
        assert scorer(model, X, y) == score(y, predicted)
    found = cross_validate(model, X, y, scoring=scorers, cv=KFold(4), error_score="raise")
    assert found["test_position_accuracy"].shape == (4,)
    weights = np.arange(20.0)
    weighted = scorers["position_accuracy"](model, X, y, sample_weight=weights)
    assert weighted == position_accuracy(y, predicted, sample_weight=weights)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [position_accuracy, sequence_accuracy, chunk_scores])
@pytest.mark.parametrize(
    "y_true, y_pred, error, words",
    [
        ([], [], ValueError, "y_true must hold the labels of at least one sequence"),
        (None, [["O"]], TypeError, "y_true must be a list with one array of labels .*, got None"),
        ([["O"]], [["O"], ["O"]], ValueError, "y_pred must hold 1 sequences, as many as .*; got 2"),
        ([["O"], ["O", "O"]], [["O"]] * 2, ValueError, r"y_pred\[1\] must hold 2 labels.*; got 1"),
        (["O", "O"], [["O"]] * 2, ValueError, r"y_true\[0\] must be a one-dimensional.*got 'O'"),
        ([["O"]], [[["O"]]], ValueError, r"y_pred\[0\] must be a one-dimensional"),
    ],
)
def test_sequences_that_do_not_match_are_named(score, y_true, y_pred, error, words):
    with pytest.raises(error, match=words):
        score(y_true, y_pred)


def test_bad_weights_are_named():
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(1,\).*each sequence"):
        position_accuracy([["O", "O"]], [["O", "O"]], sample_weight=[1, 1])


@pytest.mark.parametrize(
    "y_pred, error, words",
    [
        ([["O"], ["O", 3]], TypeError, r"y_pred\[1\]\[1\] must be a string such as .*, got 3"),
        ([["O"], [None, "O"]], ValueError, r"y_pred\[1\]\[0\] is None, a label that is not known"),
        ([["O"], ["O", "noun"]], ValueError, r"y_pred\[1\]\[1\] must be 'O' or begin .* 'noun'"),
        ([["BX"], ["O", "O"]], ValueError, r"y_pred\[0\]\[0\] .* got 'BX'"),
        ([[""], ["O", "O"]], ValueError, r"y_pred\[0\]\[0\] .* got ''"),
        ([["L-X"], ["O", "O"]], ValueError, "L- and U- of BILOU are E- and S- here"),
    ],
)
def test_labels_that_are_no_tags_are_named(y_pred, error, words):
    with pytest.raises(error, match=words):
        chunk_scores([["O"], ["O", "O"]], y_pred)


def test_places_are_named_behind_empty_sequences():
    y_true = [[], ["O"], [], [], ["O", "noun"]]
    with pytest.raises(ValueError, match=r"y_true\[4\]\[1\]"):
        chunk_scores(y_true, y_true)


def test_chunks_refuse_what_is_not_one_sequence_of_tags():
    with pytest.raises(TypeError, match=r"labels\[1\] must be a string.*got 2"):
        chunks(["O", 2])
    with pytest.raises(ValueError, match="labels must be a one-dimensional array"):
        chunks([["O"]])


def test_averages_are_named():
    with pytest.raises(ValueError, match="average must be one of 'micro', 'macro'; got 'weighted'"):
        chunk_f1_score([["O"]], [["O"]], average="weighted")
