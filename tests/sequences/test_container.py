"""Sequences: a container of positions in which scikit-learn counts and cuts whole sequences."""

import copy
import pickle
from itertools import pairwise

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.utils import resample, shuffle
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils.validation import _num_samples

from gramian.sequences import Sequences

LENGTHS = [3, 1, 0, 4, 2]
BOUNDS = [0, 3, 4, 4, 8, 10]
POSITIONS = np.random.default_rng(0).normal(size=(10, 2))
PARTS = [POSITIONS[a:b] for a, b in pairwise(BOUNDS)]


@pytest.fixture(params=[np.asarray, sp.csr_array], ids=["dense", "sparse"])
def X(request):
    return Sequences(request.param(POSITIONS), LENGTHS)


def _dense(table):
    return table.toarray() if sp.issparse(table) else table


def _assert_parts(sequences, parts):
    """The sequences hold exactly these arrays."""
    assert isinstance(sequences, Sequences)
    assert sequences.lengths.tolist() == [len(part) for part in parts]
    assert sequences.n_positions == sum(map(len, parts))
    for found, expected in zip(sequences, parts, strict=True):
        np.testing.assert_array_equal(_dense(found), expected)


class TestContainer:
    def test_attributes(self, X):
        assert len(X) == 5
        assert X.shape == (5, 2)
        assert X.ndim == 2
        assert X.n_positions == 10
        assert X.lengths.dtype == X.bounds.dtype == np.int64
        assert X.bounds.tolist() == BOUNDS
        assert X.dtype == np.float64
        assert X.feature_names is None
        _assert_parts(X, PARTS)

    def test_positions_are_not_copied_and_lengths_are(self):
        sparse = sp.csr_array(POSITIONS)
        lengths = np.array(LENGTHS)
        X = Sequences(POSITIONS, lengths)
        assert X.positions is POSITIONS
        assert np.shares_memory(Sequences(sparse, lengths).positions.data, sparse.data)
        lengths[0] = 99
        assert X.lengths[0] == 3
        assert not np.shares_memory(X.copy().positions, POSITIONS)
        _assert_parts(X.copy(), PARTS)

    @pytest.mark.parametrize("given, kept", [("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("?", "f8")])
    @pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
    def test_precision(self, given, kept, convert):
        X = Sequences(convert(np.ones((2, 2), given)), [2])
        assert X.dtype == X.with_neighbours(weight=np.float64(0.5)).dtype == np.dtype(kept)

    def test_numbers_that_are_objects(self):
        assert Sequences(np.ones((2, 2), object), [2]).dtype == np.float64

    def test_tables_of_any_kind(self):
        doubled = sp.csr_array(([1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
        for table in (doubled, sp.coo_matrix(doubled), sp.lil_array(doubled.toarray())):
            X = Sequences(table, [1, 1])
            assert isinstance(X.positions, sp.csr_array)
            assert X.positions.has_canonical_format
            np.testing.assert_array_equal(X.positions.toarray(), [[3, 0], [0, 3]])
        assert doubled.nnz == 3  # the caller's table stays as it was
        for table in (POSITIONS.tolist(), np.asfortranarray(POSITIONS)):
            assert Sequences(table, LENGTHS).positions.flags.c_contiguous
        strict = array_api_strict.asarray(POSITIONS)
        _assert_parts(Sequences(strict, pd.Series(LENGTHS)), PARTS)

    def test_names_of_features(self):
        X = Sequences(pd.DataFrame(POSITIONS, columns=["u", "v"]), LENGTHS)
        assert X.feature_names.tolist() == X[1:3].feature_names.tolist() == ["u", "v"]
        wide = X.with_neighbours(before=0, after=2)
        assert wide.feature_names.tolist() == ["u", "v", "u[+1]", "v[+1]", "u[+2]", "v[+2]"]
        assert Sequences(pd.DataFrame(POSITIONS), LENGTHS).feature_names is None

    def test_repr(self, X):
        assert repr(X) == "Sequences(n=5, 10 positions x 2, lengths 0 to 4)"
        assert repr(X[[]]) == "Sequences(n=0, 0 positions x 2)"

    def test_not_an_array(self, X):
        with pytest.raises(TypeError, match=r"X\.positions"):
            np.asarray(X)

    def test_copies_are_equal(self, X):
        skops = pytest.importorskip("skops.io")
        named = Sequences(pd.DataFrame(POSITIONS, columns=["u", "v"]), LENGTHS)
        for made in (X, named):
            stored = skops.dumps(made)
            copies = [
                copy.copy(made),
                copy.deepcopy(made),
                pickle.loads(pickle.dumps(made)),
                skops.loads(stored, trusted=skops.get_untrusted_types(data=stored)),
            ]
            for other in copies:
                assert type(other.positions) is type(made.positions)
                np.testing.assert_array_equal(other.feature_names, made.feature_names)
                _assert_parts(other, PARTS)


class TestBadInput:
    @pytest.mark.parametrize(
        "lengths, error, message",
        [
            ([3, 6], ValueError, r"lengths must add up to 10.* they add up to 9"),
            ([3, -1], ValueError, r"lengths must lie between 0 and 10.* got -1 at position 1"),
            ([2**70], ValueError, r"lengths must lie between 0 and 10"),
            ([5.0, 5.0], TypeError, r"lengths must hold integers.* got 5.0 at position 0"),
            ([True] * 10, TypeError, r"lengths must hold integers.* got True"),
            (["a"], TypeError, r"lengths must hold integers.* got 'a'"),
            ([[5, 5]], ValueError, r"lengths must have shape \(n_sequences,\).* \(1, 2\)"),
            (10, ValueError, r"lengths must have shape \(n_sequences,\)"),
        ],
    )
    def test_lengths(self, lengths, error, message):
        with pytest.raises(error, match=message):
            Sequences(POSITIONS, lengths)

    @pytest.mark.parametrize(
        "table, error, message",
        [
            (POSITIONS[0], ValueError, r"positions must have shape"),
            (POSITIONS + 1j, TypeError, r"positions must hold real numbers"),
            (np.array([["a"]]), TypeError, r"positions must hold real numbers.*Vectorizer"),
            (pd.DataFrame({"a": ["x"], "b": [1]}), TypeError, r"positions must hold numbers"),
        ],
    )
    def test_positions(self, table, error, message):
        with pytest.raises(error, match=message):
            Sequences(table, LENGTHS)

    @pytest.mark.parametrize("convert", [np.asarray, sp.coo_array, pd.DataFrame])
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_positions_must_be_finite(self, bad, convert):
        table = POSITIONS.copy()
        table[3, 1] = bad
        with pytest.raises(ValueError, match=r"positions must be finite, but row 3"):
            Sequences(convert(table), LENGTHS)


class TestSelection:
    @pytest.mark.parametrize(
        "key",
        [
            np.array([4, 0, 0]),
            [1, -1],
            np.arange(5) % 2 == 0,
            [True, False, False, True, True],
            slice(1, 4),
            slice(None, None, -2),
            slice(4, 1),
            slice(None),
            range(3),
            pd.Series([2, 4]),
            [],
        ],
        ids=repr,
    )
    def test_like_a_list(self, X, key):
        if isinstance(key, slice):
            rows = range(5)[key]
        else:
            rows = np.arange(5)[np.asarray(key, dtype=None if len(key) else int)]
        for chosen in (X[key], X[key, ...], X[key, :]):
            _assert_parts(chosen, [PARTS[i] for i in rows])

    def test_one_sequence(self, X):
        for key in (3, np.int32(3), -2):
            np.testing.assert_array_equal(_dense(X[key]), PARTS[3])
        assert X[2].shape == (0, 2)

    def test_a_slice_is_a_view(self):
        X = Sequences(POSITIONS, LENGTHS)
        assert np.shares_memory(X[1:4].positions, POSITIONS)
        assert not np.shares_memory(X[[1, 2]].positions, POSITIONS)

    @pytest.mark.parametrize("key", [5, -6, [0, 5], 1.0, "a", None, True, [True], [[0]]])
    def test_bad_keys(self, X, key):
        with pytest.raises(IndexError):
            X[key]

    def test_columns_cannot_be_selected(self, X):
        with pytest.raises(IndexError, match=r"X\.positions"):
            X[:, 0]


class TestMaking:
    def test_from_arrays(self):
        _assert_parts(Sequences.from_arrays(PARTS), PARTS)
        mixed = [sp.csr_array(PARTS[0]), *PARTS[1:]]
        assert sp.issparse(Sequences.from_arrays(mixed).positions)
        _assert_parts(Sequences.from_arrays(mixed), PARTS)
        single = [np.ones((2, 1), "f4"), np.ones((3, 1), "f4")]
        assert Sequences.from_arrays(single).dtype == np.float32
        named = [pd.DataFrame(part, columns=["u", "v"]) for part in PARTS]
        assert Sequences.from_arrays(named).feature_names.tolist() == ["u", "v"]

    @pytest.mark.parametrize(
        "arrays, message",
        [
            ([], r"arrays must not be empty.*numpy\.empty"),
            ([np.eye(2), np.eye(3)], r"arrays\[0\] has 2 columns, arrays\[1\] has 3"),
            ([np.eye(2), [1.0, 2.0]], r"arrays\[1\] must have shape"),
            ([np.eye(2), [[np.nan, 0.0]]], r"arrays\[1\] must be finite, but row 0"),
            (
                [pd.DataFrame({"u": [1]}), pd.DataFrame({"v": [1]})],
                r"those of arrays\[0\] are 'u', those of arrays\[1\] are 'v'",
            ),
        ],
    )
    def test_bad_arrays(self, arrays, message):
        with pytest.raises(ValueError, match=message):
            Sequences.from_arrays(arrays)

    def test_concatenate(self, X):
        _assert_parts(Sequences.concatenate([X[3:], X[:0], X[:3]]), PARTS[3:] + PARTS[:3])
        with pytest.raises(TypeError, match=r"parts\[1\] must be a Sequences, got ndarray"):
            Sequences.concatenate([X, POSITIONS])

    def test_from_frame(self):
        frame = {
            "text": list("abcabc"),
            "day": ["tue", "tue", "mon", "wed", "wed", "wed"],
            "u": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            "v": [True, False] * 3,
        }
        pl = pytest.importorskip("polars")
        for library in (pd, pl):
            X = Sequences.from_frame(library.DataFrame(frame), "day")
            assert X.lengths.tolist() == [2, 1, 3]
            assert X.feature_names.tolist() == ["u", "v"]
            np.testing.assert_array_equal(X[1], [[3.0, 1.0]])
            chosen = Sequences.from_frame(library.DataFrame(frame), "day", columns=["v"])
            assert chosen.shape == (3, 1)

    def test_from_frame_with_scattered_rows(self):
        pl = pytest.importorskip("polars")
        frame = {"day": [1, 2, 1], "u": [1.0, 2.0, 3.0]}
        with pytest.raises(
            ValueError, match=r"day = 1 begin at row 0 and again at row 2.*sort_values\('day', kind"
        ):
            Sequences.from_frame(pd.DataFrame(frame), "day")
        with pytest.raises(ValueError, match=r"frame\.sort\('day', maintain_order=True\)"):
            Sequences.from_frame(pl.DataFrame(frame), "day")

    @pytest.mark.parametrize(
        "frame, columns, message",
        [
            ({"u": [1.0]}, None, r"group must be a column of frame, which has 'u'; missing: 'day'"),
            ({"day": [1, None], "u": [1, 2]}, None, r"'day' .* missing in row 1 \(1 such rows\)"),
            ({"day": [1], "text": ["a"]}, None, r"must have a column of numbers besides 'day'"),
            ({"day": [1], "u": [1]}, ["w"], r"columns must be columns of frame.* missing: 'w'"),
        ],
    )
    def test_bad_frames(self, frame, columns, message):
        with pytest.raises(ValueError, match=message):
            Sequences.from_frame(pd.DataFrame(frame), "day", columns)

    def test_frame_must_be_one(self):
        with pytest.raises(TypeError, match=r"frame must be a DataFrame.* got dict"):
            Sequences.from_frame({"day": [1]}, "day")


class TestNeighbours:
    @pytest.mark.parametrize("before, after", [(1, 1), (0, 0), (2, 0), (1, 3), (0, 6)])
    def test_against_a_loop(self, X, before, after):
        wide = X.with_neighbours(before, after, weight=0.5)
        offsets = sorted(range(-before, after + 1), key=lambda offset: (abs(offset), offset))
        expected = []
        for part in PARTS:
            for t in range(len(part)):
                row = []
                for offset in offsets:
                    inside = 0 <= t + offset < len(part)
                    weight = 1.0 if offset == 0 else 0.5
                    row.extend(weight * part[t + offset] if inside else [0.0, 0.0])
                expected.append(row)
        np.testing.assert_array_equal(_dense(wide.positions), expected)
        assert sp.issparse(wide.positions) == sp.issparse(X.positions)
        assert wide.lengths.tolist() == LENGTHS
        if sp.issparse(wide.positions):
            assert wide.positions.has_canonical_format

    @pytest.mark.parametrize(
        "arguments", [{"before": -1}, {"after": -1}, {"weight": -0.1}, {"weight": np.inf}]
    )
    def test_bad_arguments(self, X, arguments):
        with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
            X.with_neighbours(**arguments)


class SignOfFeature(ClassifierMixin, BaseEstimator):
    """Labels each position by the sign of one feature plus a shift; takes Sequences only."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y):
        self.classes_ = np.unique(X.flat(y).astype(str))
        return self

    def predict(self, X):
        return X.split(self.classes_[(X.positions[:, 0] + self.shift > 0).astype(int)])

    def score(self, X, y):
        return np.mean(X.flat(self.predict(X)) == X.flat(y))


class TestScikitLearn:
    """Whatever scikit-learn does with samples it does with sequences."""

    positions = np.random.default_rng(1).normal(size=(40, 2))
    X = Sequences(positions, np.tile([1, 2, 0, 5], 5))
    y = X.split(np.where(positions[:, 0] > 0, "yes", "no"))

    def test_samples_are_sequences(self, X):
        assert _num_samples(X) == 5
        for key in ([3, 0], np.array([3, 0]), (3, 0)):
            _assert_parts(_safe_indexing(X, key), [PARTS[3], PARTS[0]])
        _assert_parts(_safe_indexing(X, [False, True, True, False, False]), PARTS[1:3])
        _assert_parts(_safe_indexing(X, slice(1, 3)), PARTS[1:3])
        np.testing.assert_array_equal(_dense(_safe_indexing(X, 3)), PARTS[3])

    def test_folds(self, X):
        tests = [test for _, test in KFold(5).split(X)]
        assert np.concatenate(tests).tolist() == [0, 1, 2, 3, 4]

    def test_train_test_split(self):
        train, test, y_train, y_test = train_test_split(self.X, self.y, test_size=6, random_state=0)
        assert (len(train), len(test)) == (14, 6)
        for X, y in ((train, y_train), (test, y_test)):
            np.testing.assert_array_equal(X.flat(y) == "yes", X.positions[:, 0] > 0)

    @pytest.mark.parametrize("cv", [4, KFold(3, shuffle=True, random_state=0)])
    def test_cross_validation(self, cv):
        scores = cross_val_score(SignOfFeature(), self.X, self.y, cv=cv, error_score="raise")
        assert scores.tolist() == [1.0] * len(scores)
        predicted = cross_val_predict(SignOfFeature(), self.X, self.y, cv=cv)
        assert self.X.flat(predicted).tolist() == self.X.flat(self.y).tolist()

    def test_grid_search(self):
        search = GridSearchCV(SignOfFeature(), {"shift": [9.0, 0.0]}, cv=3, error_score="raise")
        search.fit(self.X, self.y)
        assert search.best_params_ == {"shift": 0.0}
        assert [len(labels) for labels in search.predict(self.X[:4])] == [1, 2, 0, 5]

    def test_shuffle_and_resample(self):
        mixed, y = shuffle(self.X, self.y, random_state=0)
        np.testing.assert_array_equal(mixed.flat(y) == "yes", mixed.positions[:, 0] > 0)
        assert len(resample(self.X, n_samples=50, random_state=0)) == 50


@pytest.mark.parametrize(
    ("positions", "lengths", "message"),
    [
        ([[1, 2], [3]], [2], "positions must be an array, or lists of one length"),
        (np.eye(2), [[1], [1, 0]], "lengths must be an array, or lists of one length"),
        (np.array([[10**400]], dtype=object), [1], "positions must hold numbers"),
    ],
)
def test_ragged_lists_and_numbers_beyond_floats_are_named(positions, lengths, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Sequences(positions, lengths)
