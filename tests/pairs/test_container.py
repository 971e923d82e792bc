"""Pairs: a container that keeps objects once and that scikit-learn can cut."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils import resample, shuffle

from gramian import Pairs

RNG = np.random.default_rng(0)
LEFT = RNG.normal(size=(7, 3))
RIGHT = RNG.normal(size=(5, 2))
LEFT_INDEX = np.array([6, 0, 3, 3, 1, 0, 6, 2])
RIGHT_INDEX = np.array([1, 4, 1, 1, 0, 2, 4, 4])


@pytest.fixture
def pairs():
    return Pairs(LEFT, RIGHT, LEFT_INDEX, RIGHT_INDEX)


@pytest.fixture
def relations():
    """Homogeneous pairs."""
    return Pairs(LEFT, None, [0, 2, 5], [2, 0, 5])


def _dense(table):
    return table.toarray() if sp.issparse(table) else table


class MeanOfObjects(RegressorMixin, BaseEstimator):
    """Predicts a shrunken mean of each left object; takes Pairs only."""

    def __init__(self, shrinkage=1.0):
        self.shrinkage = shrinkage

    def fit(self, X, y, sample_weight=None):
        assert isinstance(X, Pairs)
        sums = np.bincount(X.left_index, weights=y, minlength=X.n_left)
        counts = np.bincount(X.left_index, minlength=X.n_left)
        self.mean_ = sums / (counts + self.shrinkage)
        return self

    def predict(self, X):
        return self.mean_[X.left_index]


class TestContainer:
    def test_attributes(self, pairs):
        assert len(pairs) == 8
        assert pairs.shape == (8, 5)
        assert pairs.ndim == 2
        assert (pairs.n_left, pairs.n_right) == (7, 5)
        assert not pairs.homogeneous
        assert pairs.left_ids is None
        assert pairs.right_ids is None
        assert pairs.left_index.dtype == pairs.right_index.dtype == np.int64
        np.testing.assert_array_equal(pairs.right[pairs.right_index], RIGHT[RIGHT_INDEX])

    def test_sides(self, pairs, relations):
        left, right = pairs.sides
        assert left.table is pairs.left
        assert right.index is pairs.right_index
        assert (left.size, right.size) == (7, 5)
        assert relations.sides[1].table is relations.left
        assert relations.sides[1].index is relations.right_index

    def test_homogeneous(self, relations):
        assert relations.homogeneous
        assert relations.right is relations.left
        assert relations.n_right == 7
        assert relations.shape == (3, 6)

    def test_tables_are_not_copied_and_indices_are(self, pairs):
        assert pairs.left is LEFT
        index = np.array([0, 1])
        made = Pairs(LEFT, RIGHT, index, index)
        index[0] = 99
        assert made.left_index[0] == 0

    @pytest.mark.parametrize(
        "left, right, expected",
        [
            ("f4", "f4", "f4"),
            ("f4", "f8", "f8"),
            ("f4", "i4", "f8"),
            ("f2", "f2", "f8"),
            ("?", "u1", "f8"),
            (object, "f8", "f8"),
        ],
    )
    def test_one_precision_for_both_tables(self, left, right, expected):
        made = Pairs(np.ones((2, 2), left), np.ones((3, 1), right), [0], [0])
        assert made.left.dtype == made.right.dtype == made.dtype == np.dtype(expected)

    def test_repr(self, pairs, relations):
        assert repr(pairs) == "Pairs(n=8, left 7 x 3, right 5 x 2, 20.0 % of cells)"
        assert repr(relations) == "Pairs(n=3, both ends 7 x 3, 6.1 % of cells)"
        named = Pairs(np.eye(2), np.eye(2), [1], [0], left_ids="ab", right_ids=[10, 20])
        assert "b with 10" in repr(named)
        assert repr(pairs[[]]).startswith("Pairs(n=0,")

    def test_read_only_arrays(self):
        arrays = [LEFT.copy(), RIGHT.copy(), LEFT_INDEX.copy(), RIGHT_INDEX.copy()]
        for array in arrays:
            array.flags.writeable = False
        made = Pairs(*arrays)
        assert made[::2].compact()[0].to_wide().shape == (4, 5)

    def test_lists_strided_and_other_arrays(self):
        made = Pairs(
            np.asfortranarray(LEFT), RIGHT.tolist(), range(3), np.arange(6, dtype=np.uint8)[::2]
        )
        assert made.left.flags.c_contiguous
        np.testing.assert_array_equal(made.right_index, [0, 2, 4])

    def test_sparse_tables_are_csr_and_canonical(self):
        doubled = sp.csr_array(([1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
        for table in (doubled, sp.coo_matrix(doubled), sp.lil_array(doubled.toarray())):
            made = Pairs(table, RIGHT.astype("f4"), [1, 0], [0, 1])
            assert isinstance(made.left, sp.csr_array)
            assert made.left.has_canonical_format
            np.testing.assert_array_equal(made.left.toarray(), [[3, 0], [0, 3]])
        assert doubled.nnz == 3  # the caller's table stays as it was

    def test_frames(self):
        named = pd.DataFrame(LEFT, index=list("abcdefg"))
        made = Pairs(named, pd.DataFrame(RIGHT), LEFT_INDEX, pd.Series(RIGHT_INDEX))
        np.testing.assert_array_equal(made.left_ids, list("abcdefg"))
        assert made.right_ids is None
        np.testing.assert_array_equal(made.left, LEFT)
        renamed = Pairs(named, RIGHT, [0], [0], left_ids=range(7))
        assert renamed.left_ids.dtype == np.int64

    def test_polars(self):
        pl = pytest.importorskip("polars")
        made = Pairs(pl.DataFrame(LEFT), pl.DataFrame(RIGHT), pl.Series([1, 2]), pl.Series([0, 0]))
        np.testing.assert_array_equal(made.left, LEFT)
        wide = pl.DataFrame({"a": [2.0, 1.0], "b": [0.0, 0.0], "c": ["x", "y"]})
        made = Pairs.from_wide(wide, ["a"], ["b"])
        np.testing.assert_array_equal(made.left, [[1], [2]])

    def test_ids_of_any_kind(self):
        ids = [("a", 1), 3.5, "x"]
        made = Pairs(np.eye(3), None, [0], [1], left_ids=ids)
        assert made.left_ids.tolist() == ids
        assert made.right_ids is made.left_ids
        assert Pairs(np.eye(2), None, [0], [1], left_ids=[np.int64(4), 5]).left_ids.dtype == "i8"


class TestBadInput:
    @pytest.mark.parametrize(
        "index, error, message",
        [
            ([0, 7], ValueError, r"left_index .* 0 and 6.* got 7 at position 1.* 7 rows"),
            ([0, -1], ValueError, r"left_index .* got -1 at position 1"),
            ([0.0, 1.0], TypeError, r"left_index must hold integers.* 0.0 at position 0"),
            ([0, np.nan], TypeError, r"left_index must hold integers"),
            ([True, False], TypeError, r"left_index must hold integers.* True"),
            (["a", "b"], TypeError, r"left_index must hold integers.* 'a'.*from_frame"),
            (pd.array([1, None], dtype="Int64"), TypeError, r"left_index must hold integers"),
            ([[0, 1]], ValueError, r"left_index must have shape \(n,\).* \(1, 2\)"),
            ([0, 1, 2], ValueError, r"same length.* 3 and 2"),
        ],
    )
    def test_index(self, index, error, message):
        with pytest.raises(error, match=message):
            Pairs(LEFT, RIGHT, index, [0, 1])

    def test_right_index_names_its_table(self):
        with pytest.raises(
            ValueError, match=r"right_index .* got 5 .* numbers of right, which has 5 rows"
        ):
            Pairs(LEFT, RIGHT, [0], [5])
        with pytest.raises(
            ValueError, match=r"right_index .* got 7 .* numbers of left, which has 7 rows"
        ):
            Pairs(LEFT, None, [0], [7])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    @pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.coo_array, pd.DataFrame])
    def test_tables_must_be_finite(self, bad, convert):
        table = RIGHT.copy()
        table[3, 1] = bad
        with pytest.raises(ValueError, match=r"right must be finite, but row 3"):
            Pairs(LEFT, convert(table), [0], [0])

    @pytest.mark.parametrize(
        "table, error, message",
        [
            (LEFT[0], ValueError, r"left must have shape"),
            (LEFT[None], ValueError, r"left must have shape"),
            (LEFT + 1j, TypeError, r"left must hold real numbers"),
            (np.array([["a"]]), TypeError, r"left must hold real numbers"),
            (pd.DataFrame({"a": ["x"], "b": [1]}), TypeError, r"left must hold numbers"),
            (sp.csr_array(LEFT + 1j), TypeError, r"left must hold real numbers"),
        ],
    )
    def test_tables_must_be_numbers(self, table, error, message):
        with pytest.raises(error, match=message):
            Pairs(table, RIGHT, [0], [0])

    @pytest.mark.parametrize(
        "ids, message",
        [
            (["a"] * 7, r"left_ids must be unique, but 'a' is at rows 0 and 1"),
            (["a", "b"], r"left_ids must have one id for each of the 7 rows of left, got 2"),
            ([1, 2, 3, 4, 5, 6, None], r"left_ids must name every object, got None at row 6"),
            ([1, 2, 3, 4, 5, 6, np.nan], r"left_ids must name every object, got nan at row 6"),
        ],
    )
    def test_ids(self, ids, message):
        with pytest.raises(ValueError, match=message):
            Pairs(LEFT, RIGHT, [0], [0], left_ids=ids)

    def test_right_ids_without_right(self):
        with pytest.raises(ValueError, match="right_ids must be None when right is None"):
            Pairs(LEFT, None, [0], [0], right_ids=range(7))

    def test_not_an_array(self, pairs):
        with pytest.raises(TypeError, match=r"to_wide\(\)"):
            np.asarray(pairs)


class TestSelection:
    @pytest.mark.parametrize(
        "key",
        [
            np.array([5, 0, 0]),
            [1, -1],
            np.arange(8) % 3 == 0,
            [True] * 4 + [False] * 4,
            slice(1, 6, 2),
            slice(None),
            range(3),
            pd.Series([2, 4]),
            np.array([], dtype=int),
            [],
            np.zeros(8, dtype=bool),
        ],
        ids=repr,
    )
    def test_like_an_array(self, pairs, key):
        if isinstance(key, slice):
            rows = np.arange(8)[key]
        else:
            rows = np.arange(8)[np.asarray(key) if len(key) else np.array([], dtype=int)]
        for chosen in (pairs[key], pairs[key, ...], pairs[key, :]):
            assert isinstance(chosen, Pairs)
            assert chosen.left is pairs.left
            assert chosen.right is pairs.right
            np.testing.assert_array_equal(chosen.left_index, LEFT_INDEX[rows])
            np.testing.assert_array_equal(chosen.right_index, RIGHT_INDEX[rows])
            assert chosen.left_index.flags.c_contiguous

    def test_one_pair(self, pairs):
        for key in (2, np.int32(2), -6):
            assert pairs[key].left_index.tolist() == [3]
        assert [len(pair) for pair in pairs] == [1] * 8

    @pytest.mark.parametrize("key", [8, -9, [0, 8], 1.0, [0.5], "a", None, True, [True], [[0]]])
    def test_bad_keys(self, pairs, key):
        with pytest.raises(IndexError):
            pairs[key]

    def test_columns_cannot_be_selected(self, pairs):
        with pytest.raises(IndexError, match=r"pairs\.left"):
            pairs[:, 0]

    def test_homogeneous_stays(self, relations):
        assert relations[:1].homogeneous
        assert relations[:1].right is relations.left


class TestViews:
    def test_compact(self, pairs):
        small, left_used, right_used = pairs.compact()
        np.testing.assert_array_equal(left_used, [0, 1, 2, 3, 6])
        np.testing.assert_array_equal(right_used, [0, 1, 2, 4])
        np.testing.assert_array_equal(small.left, LEFT[left_used])
        np.testing.assert_array_equal(small.to_wide(), pairs.to_wide())
        again = small.compact()[0]
        assert again.left is small.left
        assert again.right is small.right

    def test_compact_keeps_ids(self):
        made = Pairs(LEFT, RIGHT, [5, 2], [1, 1], left_ids="abcdefg", right_ids=range(5))
        small = made.compact()[0]
        assert small.left_ids.tolist() == ["c", "f"]
        assert small.right_ids.tolist() == [1]

    def test_compact_homogeneous(self, relations):
        small, left_used, right_used = relations.compact()
        assert left_used is right_used
        np.testing.assert_array_equal(left_used, [0, 2, 5])
        assert small.homogeneous
        assert small.left_index.tolist() == [0, 1, 2]
        assert small.right_index.tolist() == [1, 0, 2]
        # an object at the right end only is kept as well
        assert Pairs(LEFT, None, [1], [4]).compact()[1].tolist() == [1, 4]

    def test_compact_of_nothing(self, pairs):
        small, left_used, _ = pairs[[]].compact()
        assert small.shape == (0, 5)
        assert len(left_used) == small.n_left == 0
        assert "0.0 %" in repr(small)
        assert small.to_wide().shape == (0, 5)
        assert small.distinct()[0].shape == (0,)

    def test_distinct(self, pairs):
        left, right, inverse = pairs.distinct()
        cells = sorted(set(zip(LEFT_INDEX.tolist(), RIGHT_INDEX.tolist())))
        assert list(zip(left.tolist(), right.tolist())) == cells
        np.testing.assert_array_equal(left[inverse], LEFT_INDEX)
        np.testing.assert_array_equal(right[inverse], RIGHT_INDEX)

    def test_complete(self):
        made = Pairs.complete(LEFT, RIGHT)
        assert made.is_complete
        assert made[RNG.permutation(35)].is_complete
        assert not made[1:].is_complete
        assert not made[[0, *range(34)]].is_complete
        values = made.left_index * 10 + made.right_index
        np.testing.assert_array_equal(
            values.reshape(7, 5), 10 * np.arange(7)[:, None] + np.arange(5)
        )
        assert Pairs.complete(LEFT, None).homogeneous
        assert Pairs.complete(LEFT, None).is_complete

    @pytest.mark.parametrize("left", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("right", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("dtype", ["f4", "f8"])
    def test_to_wide(self, left, right, dtype):
        made = Pairs(left(LEFT.astype(dtype)), right(RIGHT.astype(dtype)), LEFT_INDEX, RIGHT_INDEX)
        wide = made.to_wide()
        expected = np.hstack([LEFT[LEFT_INDEX], RIGHT[RIGHT_INDEX]]).astype(dtype)
        assert sp.issparse(wide) == (left is sp.csr_array or right is sp.csr_array)
        assert wide.dtype == dtype
        np.testing.assert_array_equal(_dense(wide), expected)


class TestKeeping:
    @pytest.mark.parametrize(
        "made",
        [
            Pairs(LEFT, RIGHT, LEFT_INDEX, RIGHT_INDEX, left_ids="abcdefg", right_ids=range(5)),
            Pairs(sp.csr_array(LEFT), RIGHT, LEFT_INDEX, RIGHT_INDEX),
            Pairs(LEFT.astype("f4"), None, [0, 1], [1, 2], left_ids=[1, "a", 2, "b", 3, "c", 4]),
            Pairs(LEFT, RIGHT, [], []),
        ],
        ids=["ids", "sparse", "homogeneous", "empty"],
    )
    def test_copies_are_equal(self, made):
        skops = pytest.importorskip("skops.io")
        stored = skops.dumps(made)
        copies = [
            copy.copy(made),
            copy.deepcopy(made),
            pickle.loads(pickle.dumps(made)),
            skops.loads(stored, trusted=skops.get_untrusted_types(data=stored)),
        ]
        for other in copies:
            assert repr(other) == repr(made)
            assert other.homogeneous == made.homogeneous
            assert (other.right is other.left) == made.homogeneous
            assert other.dtype == made.dtype
            assert type(other.left) is type(made.left)
            np.testing.assert_array_equal(_dense(other.to_wide()), _dense(made.to_wide()))
            np.testing.assert_array_equal(other.left_ids, made.left_ids)
            np.testing.assert_array_equal(other.right_ids, made.right_ids)


class TestScikitLearn:
    pairs = Pairs.complete(LEFT, RIGHT)
    y = 3.0 * pairs.left_index + np.random.default_rng(1).normal(size=35)

    def test_train_test_split(self):
        for stratify in (None, self.y > 9):
            train, test, y_train, y_test = train_test_split(
                self.pairs, self.y, test_size=10, random_state=0, stratify=stratify
            )
            assert (len(train), len(test)) == (25, 10)
            assert train.left is test.left is self.pairs.left
            np.testing.assert_array_equal(self.y[train.left_index * 5 + train.right_index], y_train)
            np.testing.assert_array_equal(self.y[test.left_index * 5 + test.right_index], y_test)

    def test_cross_validate(self):
        scores = cross_validate(
            MeanOfObjects(),
            self.pairs,
            self.y,
            cv=KFold(5, shuffle=True, random_state=0),
            return_train_score=True,
            error_score="raise",
        )
        assert scores["test_score"].mean() > 0.5
        stratified = StratifiedKFold(3).split(self.pairs, self.y > 9)
        assert cross_val_predict(
            MeanOfObjects(), self.pairs, self.y, cv=list(stratified)
        ).shape == (35,)

    def test_grid_search(self):
        search = GridSearchCV(
            make_pipeline("passthrough", MeanOfObjects()),
            {"meanofobjects__shrinkage": [0.0, 100.0]},
            cv=KFold(5, shuffle=True, random_state=0),
            error_score="raise",
        ).fit(self.pairs, self.y)
        assert search.best_params_ == {"meanofobjects__shrinkage": 0.0}
        assert search.predict(self.pairs[:4]).shape == (4,)
        assert search.score(self.pairs, self.y) > 0.5

    def test_shuffle_and_resample(self):
        mixed, y = shuffle(self.pairs, self.y, random_state=0)
        np.testing.assert_array_equal(self.y[mixed.left_index * 5 + mixed.right_index], y)
        assert len(resample(self.pairs, n_samples=50, random_state=0)) == 50


@pytest.mark.parametrize(
    ("table", "index", "message"),
    [
        ([[1, 2], [3]], [0], "left must be an array, or lists of one length"),
        (np.eye(2), [[0], [0, 1]], "left_index must be an array, or lists of one length"),
        (np.array([[10**400]], dtype=object), [0], "left must hold numbers"),
    ],
)
def test_ragged_lists_and_numbers_beyond_floats_are_named(table, index, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Pairs(table, None, index, [0])
