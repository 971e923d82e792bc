"""Labels of positions: all in one array, or one array for each sequence."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from gramian.sequences import Sequences

LENGTHS = [3, 1, 0, 4, 2]
POSITIONS = np.random.default_rng(0).normal(size=(10, 2))
LABELS = list("abcabcabca")


@pytest.fixture
def X():
    return Sequences(POSITIONS, LENGTHS)


class TestLabels:
    @pytest.mark.parametrize(
        "labels",
        [
            LABELS,
            list(range(10)),
            ["a", 1, None, 2.5, ("a", "b"), {"a"}, frozenset(), (), "b", ("a",)],
            [("a", "b")] * 10,
            [{1, 2}, set()] * 5,
        ],
        ids=["text", "numbers", "anything", "tuples", "sets"],
    )
    def test_split_and_flat_are_inverse(self, X, labels):
        y = X.split(labels)
        assert y.shape == (5,)
        assert [len(part) for part in y] == LENGTHS
        flat = X.flat(y)
        assert flat.shape == (10,)
        assert flat.dtype == object
        assert flat.tolist() == labels
        nested = [part.tolist() for part in y]
        for form in (nested, tuple(map(tuple, nested)), pd.Series(nested), X.split(flat)):
            assert X.flat(form).tolist() == labels

    def test_equal_lengths_make_no_table(self):
        X = Sequences(POSITIONS, [5, 5])
        assert X.split(LABELS).shape == (2,)
        assert X.flat(np.array([LABELS[:5], LABELS[5:]])).tolist() == LABELS

    def test_split_gives_views(self, X):
        scores = np.zeros((10, 3))
        parts = X.split(scores)
        assert [part.shape for part in parts] == [(length, 3) for length in LENGTHS]
        parts[3][0] = 7.0
        assert scores[4].tolist() == [7.0, 7.0, 7.0]

    def test_series(self, X):
        pl = pytest.importorskip("polars")
        for series in (pd.Series(LABELS, index=range(10, 20)), pl.Series(LABELS)):
            assert X.flat(X.split(series)).tolist() == LABELS
        assert X.flat(pl.Series([part.tolist() for part in X.split(LABELS)])).tolist() == LABELS

    def test_labels_alone_if_all_lengths_are_one(self):
        X = Sequences(np.eye(3), [1, 1, 1])
        for y in (["a", "b", "c"], [["a"], ["b"], ["c"]], np.array(["a", "b", "c"])):
            assert X.flat(y).tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match=r"y\[0\] must have 1 labels.* got 2"):
            X.flat([["a", "b"], ["b"], ["c"]])

    def test_no_sequences(self, X):
        none = X[[]]
        assert none.split([]).shape == none.flat([]).shape == (0,)

    @pytest.mark.parametrize(
        "y, error, message",
        [
            (
                LABELS,
                ValueError,
                r"target must have one .* 5 sequences of X, got 10.*X\.split\(tar",
            ),
            ([["a"]], ValueError, r"target must have one .* 5 sequences of X, got 1\.$"),
            (list("abcde"), TypeError, r"target\[0\] must be a list.* got 'a'.*X\.split"),
            ([list("abc"), ["a"], [], ["a"], []], ValueError, r"target\[3\] must have 4 .* got 1"),
            ("abc", TypeError, r"target must be a list or an array"),
            (None, TypeError, r"target must be a list or an array"),
        ],
    )
    def test_bad_labels(self, X, y, error, message):
        with pytest.raises(error, match=message):
            X.flat(y, name="target")

    def test_bad_values(self, X):
        with pytest.raises(ValueError, match=r"values must have 10 entries.* got shape \(3,\)"):
            X.split([1, 2, 3])
        with pytest.raises(TypeError, match=r"values\.toarray\(\)"):
            X.split(sp.csr_array(POSITIONS))
