"""Folds of pairs: what is new in the test part must not occur in the training part."""

import copy
import logging
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, check_cv, cross_validate

from gramian import PairKFold, Pairs
from gramian.selection import pair_setting

RNG = np.random.default_rng(0)
SETTINGS = ["A", "B", "C", "D"]

# 60 % of the cells, in random order, some of them twice
TWO_SETS = Pairs.complete(np.eye(12), np.eye(9))[RNG.permutation(np.arange(130) % 65)]
ONE_SET = Pairs.complete(np.eye(11), None)[RNG.permutation(np.arange(150) % 75)]


def _splits(folds, X, y=None):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return list(folds.split(X, y))


def _ends(pairs):
    return set(pairs.left_index.tolist()), set(pairs.right_index.tolist())


def _unordered(pairs):
    return {frozenset(cell) for cell in zip(pairs.left_index.tolist(), pairs.right_index.tolist())}


class TestTwoSets:
    @pytest.mark.parametrize("setting", SETTINGS)
    @pytest.mark.parametrize("shuffle", [True, False])
    @pytest.mark.parametrize("n_splits", [2, 3])
    def test_each_pair_is_tested_once(self, setting, shuffle, n_splits):
        folds = PairKFold(setting, n_splits, shuffle=shuffle)
        splits = _splits(folds, TWO_SETS)
        assert len(splits) == folds.get_n_splits() == folds.get_n_splits(TWO_SETS)
        assert len(splits) == (n_splits**2 if setting == "D" else n_splits)
        tested = np.concatenate([test for _, test in splits])
        np.testing.assert_array_equal(np.sort(tested), np.arange(len(TWO_SETS)))
        for train, test in splits:
            assert len(np.intersect1d(train, test)) == 0
            assert np.all(np.diff(train) > 0)
            assert np.all(np.diff(test) > 0)

    @pytest.mark.parametrize("setting", SETTINGS)
    def test_what_is_new_is_new(self, setting):
        for train, test in _splits(PairKFold(setting), TWO_SETS):
            (left, right), (new_left, new_right) = _ends(TWO_SETS[train]), _ends(TWO_SETS[test])
            if setting == "A":
                cells = TWO_SETS.distinct()[2]
                assert not set(cells[train]) & set(cells[test])
            if setting in "BD":
                assert not left & new_left
            if setting in "CD":
                assert not right & new_right
            if setting != "D":
                assert len(train) + len(test) == len(TWO_SETS)

    def test_nothing_is_discarded_without_need(self):
        """In D every pair without an object of the block's folds trains: the paper's ninefold scheme."""
        pairs = Pairs.complete(np.eye(6), np.eye(3))
        counts = PairKFold("D", 3).summary(pairs)
        assert len(counts) == 9
        for count in counts:
            assert (count["train"], count["test"], count["discarded"]) == (8, 2, 8)

    @pytest.mark.parametrize("setting", SETTINGS)
    def test_the_settings_agree_with_pair_setting(self, setting):
        pairs = Pairs.complete(np.eye(6), np.eye(6))
        for train, test in _splits(PairKFold(setting), pairs):
            assert set(pair_setting(pairs[train], pairs[test])) == {setting}

    def test_folds_have_about_the_same_number_of_objects(self):
        pairs = Pairs.complete(np.eye(8), np.eye(2))
        sizes = [len(np.unique(pairs[test].left_index)) for _, test in PairKFold("B").split(pairs)]
        assert sorted(sizes) == [2, 3, 3]

    def test_objects_without_pairs_do_not_count(self):
        pairs = Pairs(np.eye(100), np.eye(2), [7, 50, 99], [0, 1, 0])
        assert len(_splits(PairKFold("B", 3), pairs)) == 3

    def test_random_state(self):
        def tests(**options):
            return [test.tolist() for _, test in PairKFold("B", **options).split(TWO_SETS)]

        assert tests() == tests(random_state=0)
        assert tests() != tests(random_state=1)
        assert tests(shuffle=False) == tests(shuffle=False, random_state=1)
        assert tests(random_state=np.random.RandomState(0)) == tests()


class TestOneSet:
    @pytest.mark.parametrize("symmetric", [False, True])
    @pytest.mark.parametrize("setting", ["B", "C", "D"])
    def test_a_new_object_is_new_at_both_ends(self, setting, symmetric):
        folds = PairKFold(setting, symmetric=symmetric)
        splits = _splits(folds, ONE_SET)
        assert len(splits) == folds.get_n_splits() == folds.get_n_splits(ONE_SET)
        for train, test in splits:
            known = set.union(*_ends(ONE_SET[train]))
            left = np.isin(ONE_SET[test].left_index, list(known))
            right = np.isin(ONE_SET[test].right_index, list(known))
            if setting == "D":
                assert not left.any()
                assert not right.any()
            elif symmetric:
                assert not (left & right).any()
            else:
                assert not (left if setting == "B" else right).any()

    def test_d_tests_each_pair_once(self):
        for symmetric, number in ((False, 9), (True, 6)):
            splits = _splits(PairKFold("D", symmetric=symmetric), ONE_SET)
            assert len(splits) == number
            tested = np.concatenate([test for _, test in splits])
            np.testing.assert_array_equal(np.sort(tested), np.arange(len(ONE_SET)))

    @pytest.mark.parametrize("setting", SETTINGS)
    def test_symmetric_keeps_both_orders_together(self, setting):
        splits = _splits(PairKFold(setting, symmetric=True), ONE_SET)
        for train, test in splits:
            train_pairs, test_pairs = _unordered(ONE_SET[train]), _unordered(ONE_SET[test])
            assert not train_pairs & test_pairs
            # all copies of a pair, in both orders, are in the same part
            inside = [
                frozenset(c) in test_pairs
                for c in zip(ONE_SET.left_index.tolist(), ONE_SET.right_index.tolist())
            ]
            np.testing.assert_array_equal(np.flatnonzero(inside), test)

    def test_b_of_one_set(self):
        """Exactly one end in the fold; with both it is neither training nor test."""
        pairs = Pairs.complete(np.eye(6), None)
        both = PairKFold("B", 3, symmetric=True).summary(pairs)[0]
        assert both == {"fold": 0, "train": 16, "test": 16, "discarded": 4}
        ordered = PairKFold("B", 3).summary(pairs)[0]
        assert ordered == {"fold": 0, "train": 16, "test": 8, "discarded": 12}
        same = [PairKFold(s, symmetric=True).summary(ONE_SET) for s in "BC"]
        assert same[0] == same[1]

    def test_c_mirrors_b(self):
        mirrored = Pairs(ONE_SET.left, None, ONE_SET.right_index, ONE_SET.left_index)
        for (train, test), (train_c, test_c) in zip(
            PairKFold("B").split(ONE_SET), PairKFold("C").split(mirrored)
        ):
            np.testing.assert_array_equal(train, train_c)
            np.testing.assert_array_equal(test, test_c)

    def test_a_without_symmetry_divides_ordered_pairs(self):
        splits = _splits(PairKFold("A"), ONE_SET)
        tested = np.concatenate([test for _, test in splits])
        np.testing.assert_array_equal(np.sort(tested), np.arange(len(ONE_SET)))
        assert any(_unordered(ONE_SET[train]) & _unordered(ONE_SET[test]) for train, test in splits)


class TestCounts:
    @pytest.mark.parametrize("symmetric", [False, True])
    @pytest.mark.parametrize("setting", SETTINGS)
    def test_summary(self, setting, symmetric, caplog):
        folds = PairKFold(setting, symmetric=symmetric)
        with caplog.at_level(logging.INFO, logger="gramian"):
            splits = _splits(folds, ONE_SET)
        counts = folds.summary(ONE_SET)
        assert len(caplog.records) == len(counts) == len(splits)
        assert f"setting {setting}, fold 0" in caplog.messages[0]
        for number, (count, (train, test)) in enumerate(zip(counts, splits)):
            assert count["fold"] == number
            assert (count["train"], count["test"]) == (len(train), len(test))
            assert count["train"] + count["test"] + count["discarded"] == len(ONE_SET)

    def test_empty_blocks_are_left_out(self):
        diagonal = Pairs(np.eye(6), np.eye(6), range(6), range(6))
        folds = PairKFold("D", 3, shuffle=False)
        with pytest.warns(UserWarning, match="leaves out") as caught:
            splits = list(folds.split(diagonal))
        assert len(caught) == 6
        text = str(caught[0].message)
        assert "fold 1 of setting D (left objects 0, right objects 1)" in text
        assert "0 test and 2 training" in text
        assert len(splits) == folds.get_n_splits(diagonal) == 3
        assert [count["fold"] for count in folds.summary(diagonal)] == [0, 4, 8]

    def test_no_fold_left(self):
        # two folds: what has no end in one of them lies within the other, and there are no such pairs
        pairs = Pairs(np.eye(4), None, [0, 1], [2, 3])
        with (
            pytest.warns(UserWarning, match="leaves out"),
            pytest.raises(ValueError, match=r"'B', n_splits=2\) finds no fold .* among 2 pairs"),
        ):
            list(PairKFold("B", 2, shuffle=False).split(pairs))

    def test_one_class(self):
        pairs = Pairs.complete(np.eye(3), np.eye(4))
        y = np.where(pairs.left_index == 0, "yes", "no")
        with pytest.warns(UserWarning, match="one class only") as caught:
            splits = list(PairKFold("B", 3, shuffle=False).split(pairs, y))
        assert len(splits) == 3
        text = [str(warning.message) for warning in caught]
        assert len(text) == 4  # all tests, and the training part of the first
        assert "training part of fold 0 of setting B (left objects 0)" in text[0]
        assert "n_splits=3" in text[0]
        assert "random_state" in text[0]

    @pytest.mark.parametrize(
        "y", [np.arange(12), np.zeros(12), np.arange(12) % 2, np.ones((12, 2))]
    )
    def test_no_warning_without_need(self, y):
        _splits(PairKFold("B", 3), Pairs.complete(np.eye(3), np.eye(4)), y)


class TestWide:
    @pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, pd.DataFrame])
    @pytest.mark.parametrize("setting", SETTINGS)
    def test_objects_are_found(self, setting, convert):
        pairs = Pairs.from_wide(TWO_SETS.to_wide(), slice(12))
        folds = PairKFold(setting, left_columns=slice(12))
        for (train, test), (train_wide, test_wide) in zip(
            folds.split(pairs), folds.split(convert(TWO_SETS.to_wide())), strict=True
        ):
            np.testing.assert_array_equal(train, train_wide)
            np.testing.assert_array_equal(test, test_wide)

    def test_names(self):
        frame = pd.DataFrame({"a": [0.0, 1.0, 0.0], "b": [5.0, 5.0, 6.0], "c": ["x", "y", "z"]})
        folds = PairKFold("B", 2, left_columns=["b"], right_columns=["a"], shuffle=False)
        assert [test.tolist() for _, test in folds.split(frame)] == [[0, 1], [2]]


class TestScikitLearn:
    def test_grid_search_and_cross_validate(self):
        wide, y = TWO_SETS.to_wide(), RNG.normal(size=len(TWO_SETS))
        folds = PairKFold("D", left_columns=slice(12))
        search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=folds, error_score="raise")
        assert search.fit(wide, y).n_splits_ == 9
        assert len(cross_validate(Ridge(), wide, y, cv=folds)["test_score"]) == 9

    def test_left_out_blocks_in_a_search(self):
        """The number of splits that a search expects is the number it gets."""
        diagonal = Pairs(np.eye(6), np.eye(6), range(6), range(6))

        class Zero(BaseEstimator):
            def fit(self, X, y):
                return self

            def score(self, X, y):
                return float(len(X))

        search = GridSearchCV(Zero(), {}, cv=PairKFold("D"), error_score="raise")
        with pytest.warns(UserWarning, match="leaves out"):
            search.fit(diagonal, np.arange(6.0))
        assert search.cv_results_["mean_test_score"][0] > 0

    def test_copies(self):
        folds = PairKFold("C", 4, random_state=3)
        expected = [test.tolist() for _, test in folds.split(TWO_SETS)]
        for other in (
            copy.copy(folds),
            pickle.loads(pickle.dumps(folds)),
            clone(folds, safe=False),
            check_cv(folds),
        ):
            assert [test.tolist() for _, test in other.split(TWO_SETS)] == expected
        assert repr(folds).startswith("PairKFold(")
        assert "setting='C'" in repr(folds)


class TestBadInput:
    @pytest.mark.parametrize(
        "options, error, message",
        [
            ({"setting": "E"}, ValueError, r"setting must be one of 'A', 'B', 'C', 'D'; got 'E'"),
            ({"setting": None}, ValueError, r"setting must be one of"),
            ({"n_splits": 1}, ValueError, r"n_splits must be a whole number >= 2, got 1"),
            ({"n_splits": 2.0}, TypeError, r"n_splits must be a whole number >= 2, got 2.0"),
            ({"n_splits": True}, TypeError, r"n_splits must be"),
            ({"symmetric": "yes"}, TypeError, r"symmetric must be True or False, got 'yes'"),
            ({"shuffle": 1}, TypeError, r"shuffle must be True or False, got 1"),
        ],
    )
    def test_options(self, options, error, message):
        with pytest.raises(error, match=message):
            PairKFold(**options)

    def test_symmetric_needs_one_set(self):
        for X in (TWO_SETS, TWO_SETS.to_wide()):
            with pytest.raises(ValueError, match="symmetric=True needs homogeneous pairs"):
                next(PairKFold("D", symmetric=True, left_columns=slice(12)).split(X))

    def test_an_odd_number_of_columns_needs_a_side(self):
        with pytest.raises(ValueError, match=r"X has 21 columns, an odd number.*left_columns"):
            next(PairKFold("D").split(TWO_SETS.to_wide()))

    @pytest.mark.parametrize(
        "setting, what",
        [("A", "cells"), ("B", "left objects"), ("C", "right objects"), ("D", "left objects")],
    )
    def test_too_few(self, setting, what):
        pairs = Pairs.complete(np.eye(2), np.eye(2))
        with pytest.raises(
            ValueError, match=f"n_splits=5 in setting {setting} needs at least 5 {what}"
        ):
            next(PairKFold(setting, 5).split(pairs))

    def test_no_pairs(self):
        with pytest.raises(ValueError, match="at least one pair"):
            next(PairKFold().split(TWO_SETS[[]]))

    def test_y_of_another_length(self):
        with pytest.raises(ValueError, match=r"y must have 130 entries.* \(3,\)"):
            next(PairKFold().split(TWO_SETS, [0, 1, 1]))


class TestPairSetting:
    pairs = Pairs.complete(np.eye(3), np.arange(6.0).reshape(3, 2))
    train = pairs[(pairs.left_index < 2) & (pairs.right_index < 2)]
    expected = ["A", "A", "C", "A", "A", "C", "B", "B", "D"]

    def test_one_table(self):
        assert pair_setting(self.train, self.pairs).tolist() == self.expected

    def test_equal_features(self):
        for copied in (
            copy.deepcopy(self.pairs),
            Pairs.from_wide(self.pairs.to_wide(), slice(3)),
            Pairs.complete(sp.csr_array(self.pairs.left), self.pairs.right.astype("f4")),
        ):
            assert pair_setting(self.train, copied).tolist() == self.expected
        small = self.train.compact()[0]
        assert pair_setting(small, self.pairs).tolist() == self.expected

    def test_ids(self):
        train = Pairs(
            np.zeros((2, 1)), np.ones((2, 1)), [0, 1], [0, 1], left_ids="ab", right_ids="xy"
        )
        new = Pairs(np.eye(2), np.eye(2), [0, 0, 1, 1], [0, 1, 0, 1], left_ids="bc", right_ids="zy")
        assert pair_setting(train, new).tolist() == ["C", "A", "D", "B"]

    def test_equal_rows_of_one_table_are_different_objects(self):
        pairs = Pairs.complete(np.zeros((2, 1)), np.zeros((2, 1)))
        assert pair_setting(pairs[:1], pairs).tolist() == ["A", "C", "B", "D"]

    def test_homogeneous(self):
        """Known at one end is known."""
        pairs = Pairs.complete(np.eye(3), None)
        assert pair_setting(pairs[[1]], pairs).tolist() == list("AACAACBBD")

    def test_nothing(self):
        assert pair_setting(self.train, self.pairs[[]]).shape == (0,)
        assert set(pair_setting(self.pairs[[]], self.pairs)) == {"D"}

    def test_bad_input(self):
        with pytest.raises(TypeError, match="new must be a Pairs, got ndarray"):
            pair_setting(self.train, np.eye(2))
