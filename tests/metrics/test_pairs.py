"""Concordance of pairs against loops over all comparisons."""

import itertools
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import average_precision_score, make_scorer, roc_auc_score

from gramian import Pairs
from gramian.metrics import concordance_index, interaction_concordance_index, scores_by_setting


def _naive_concordance(y, scores, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    right = total = 0.0
    for a, b in itertools.product(range(len(y)), repeat=2):
        if y[a] < y[b]:
            weight = weights[a] * weights[b]
            right += weight * (0.5 + 0.5 * np.sign(scores[b] - scores[a]))
            total += weight
    return right / total


def _naive_interactions(left, right, y, scores):
    y_of = dict(zip(zip(left, right), y))
    score_of = dict(zip(zip(left, right), scores))
    good = total = 0.0
    for i, k in itertools.combinations(sorted(set(left)), 2):
        for j, l in itertools.combinations(sorted(set(right)), 2):
            cells = [(i, j), (k, l), (i, l), (k, j)]
            if all(cell in y_of for cell in cells):
                true, found = ([t[c] for c in cells] for t in (y_of, score_of))
                true = true[0] + true[1] - true[2] - true[3]
                found = found[0] + found[1] - found[2] - found[3]
                if true != 0:
                    good += 0.5 + 0.5 * np.sign(true * found)
                    total += 1
    return good / total


def _cells(rng, n_left, n_right, n):
    chosen = rng.choice(n_left * n_right, n, replace=False)
    return np.divmod(chosen, n_right)


class TestConcordanceIndex:
    @pytest.mark.parametrize("levels", [2, 5, 1000])
    @pytest.mark.parametrize("score_levels", [1, 3, 1000])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_all_comparisons(self, levels, score_levels, weighted):
        rng = np.random.default_rng(levels + score_levels)
        y = rng.integers(0, levels, 40)
        scores = rng.integers(0, score_levels, 40) / 7
        weights = rng.integers(0, 4, 40) / 2 if weighted else None
        found = concordance_index(y, scores, sample_weight=weights)
        assert found == pytest.approx(_naive_concordance(y, scores, weights), abs=1e-12)

    def test_known_values(self):
        y = [1.0, 2.0, 3.0]
        assert concordance_index(y, [10, 20, 30]) == 1
        assert concordance_index(y, [3, 2, 1]) == 0
        assert concordance_index(y, [0, 0, 0]) == 0.5

    def test_two_classes_give_the_roc_area(self):
        rng = np.random.default_rng(0)
        y, scores = rng.integers(0, 2, 300), rng.integers(0, 20, 300)
        assert concordance_index(y, scores) == pytest.approx(roc_auc_score(y, scores))

    def test_weight_two_is_the_example_twice(self):
        rng = np.random.default_rng(1)
        y, scores, weights = rng.normal(size=20), rng.normal(size=20), rng.integers(1, 3, 20)
        twice = concordance_index(np.repeat(y, weights), np.repeat(scores, weights))
        assert concordance_index(y, scores, weights) == pytest.approx(twice)

    def test_order_of_examples_does_not_matter(self):
        rng = np.random.default_rng(2)
        y, scores, order = rng.integers(0, 9, 50), rng.normal(size=50), rng.permutation(50)
        assert concordance_index(y[order], scores[order]) == concordance_index(y, scores)

    @pytest.mark.parametrize("convert", [list, pd.Series, lambda v: np.asarray(v, dtype="f4")])
    def test_kinds_of_input(self, convert):
        found = concordance_index(convert([1.0, 2.0, 2.5]), convert([0.5, 0.25, 1.0]))
        assert isinstance(found, float)
        assert found == pytest.approx(2 / 3)

    def test_read_only(self):
        y, scores = np.arange(4.0), np.arange(4.0)
        y.flags.writeable = scores.flags.writeable = False
        assert concordance_index(y, scores, y + 1) == 1

    def test_nothing_to_compare(self):
        with pytest.warns(UserWarning, match="all targets in y_true are equal"):
            assert np.isnan(concordance_index([1, 1], [1, 2]))

    def test_scorer(self):
        class Identity(BaseEstimator):
            def predict(self, X):
                return X[:, 0]

        X = np.arange(5.0)[:, None]
        assert make_scorer(concordance_index)(Identity(), X, X[:, 0]) == 1

    @pytest.mark.parametrize(
        "y, scores, weights, error, message",
        [
            ([1, 2], [1, 2, 3], None, ValueError, r"y_score must have shape \(2,\)"),
            ([1, np.nan], [1, 2], None, ValueError, r"y_true must be finite, got nan at position 1"),
            ([1, 2], [np.inf, 2], None, ValueError, r"y_score must be finite, got inf at position 0"),
            ([[1, 2]], [1, 2], None, ValueError, r"y_true must have shape"),
            ([], [], None, ValueError, r"y_true must have shape"),
            (["a", "b"], [1, 2], None, TypeError, r"y_true must be numbers"),
            ([1, 2], [1, 2], [1], ValueError, r"sample_weight must have shape \(2,\)"),
            ([1, 2], [1, 2], [1, -1], ValueError, r"sample_weight must be finite and not negative"),
        ],
    )  # fmt: skip
    def test_bad_input(self, y, scores, weights, error, message):
        with pytest.raises(error, match=message):
            concordance_index(y, scores, weights)


class TestInteractions:
    @pytest.mark.parametrize("n_left, n_right, n", [(6, 6, 36), (8, 5, 25), (4, 12, 30)])
    @pytest.mark.parametrize("levels", [2, 4, 10**6])
    def test_all_quadruples(self, n_left, n_right, n, levels):
        rng = np.random.default_rng(n + levels)
        left, right = _cells(rng, n_left, n_right, n)
        y, scores = rng.integers(0, levels, n), rng.integers(0, levels, n)
        found = interaction_concordance_index(left, right, y, scores)
        assert found == pytest.approx(_naive_interactions(left, right, y, scores), abs=1e-12)

    @pytest.mark.usefixtures("all_threads")
    def test_numbers_of_objects_do_not_matter(self):
        rng = np.random.default_rng(0)
        left, right = _cells(rng, 6, 7, 30)
        y, scores = rng.normal(size=30), rng.normal(size=30)
        expected = interaction_concordance_index(left, right, y, scores)
        other = interaction_concordance_index(1000 * (9 - left), right - 50, y, scores)
        assert other == pytest.approx(expected)
        assert interaction_concordance_index(right, left, y, scores) == pytest.approx(expected)

    @pytest.mark.parametrize("dtype", ["f4", "f8"])
    def test_what_one_object_explains_is_chance(self, dtype):
        rng = np.random.default_rng(0)
        left, right = _cells(rng, 10, 8, 60)
        y = rng.normal(size=60)
        f, g = rng.normal(size=10).astype(dtype), 1000 * rng.normal(size=8).astype(dtype)
        additive = f[left] + g[right]
        assert interaction_concordance_index(left, right, y, additive) == 0.5
        assert interaction_concordance_index(left, right, y, y + 3.0 * left - right) == 1
        assert interaction_concordance_index(left, right, y, -y) == 0

    def test_rounding_makes_no_interaction(self):
        left, right = [0, 0, 1, 1], [0, 1, 0, 1]
        with pytest.warns(UserWarning, match="nothing to compare"):
            assert np.isnan(interaction_concordance_index(left, right, [0.3, 0.2, 0.2, 0.1], left))

    def test_no_quadruple(self):
        with pytest.warns(UserWarning, match="nothing to compare"):
            assert np.isnan(
                interaction_concordance_index([0, 0, 1], [0, 1, 0], [1, 2, 3], [1, 2, 3])
            )
        with pytest.warns(UserWarning, match="nothing to compare"):
            assert np.isnan(interaction_concordance_index([0], [0], [1.0], [1.0]))

    def test_from_several_threads(self):
        rng = np.random.default_rng(0)
        left, right = _cells(rng, 6, 7, 30)
        y, scores = rng.normal(size=30), rng.normal(size=30)
        with ThreadPoolExecutor(4) as pool:
            found = set(
                pool.map(lambda _: interaction_concordance_index(left, right, y, scores), range(8))
            )
        assert len(found) == 1

    @pytest.mark.parametrize(
        "left, right, y, error, message",
        [
            ([0, 1, 0], [2, 2, 2], [1, 2, 3], ValueError, r"entries 0 and 2 are the same pair"),
            ([0, 1], [2, 2, 2], [1, 2, 3], ValueError, r"left_index must have shape \(3,\)"),
            ([0.0, 1, 2], [2, 2, 2], [1, 2, 3], TypeError, r"left_index must hold integers"),
            ([0, 1, 2], ["a", "b", "c"], [1, 2, 3], TypeError, r"right_index must hold integers"),
            ([0, 1, 2], [0, 1, 2], [1, 2, np.nan], ValueError, r"y_true must be finite"),
        ],
    )
    def test_bad_input(self, left, right, y, error, message):
        with pytest.raises(error, match=message):
            interaction_concordance_index(left, right, y, [1.0, 2.0, 3.0])


class TestScoresBySetting:
    pairs = Pairs.complete(np.eye(8), np.eye(8))
    train = pairs[(pairs.left_index < 4) & (pairs.right_index < 4)]

    def test_each_setting_by_itself(self):
        rng = np.random.default_rng(0)
        y, scores = rng.integers(0, 2, 64), rng.normal(size=64)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = scores_by_setting(self.train, self.pairs, y, scores)
        assert list(found) == ["A", "B", "C", "D"]
        new = (self.pairs.left_index >= 4) & (self.pairs.right_index >= 4)
        assert found["D"] == {
            "pairs": 16,
            "auc": pytest.approx(roc_auc_score(y[new], scores[new])),
            "aupr": pytest.approx(average_precision_score(y[new], scores[new])),
            "concordance": pytest.approx(roc_auc_score(y[new], scores[new])),
        }
        names = np.where(y, "yes", "no")
        assert scores_by_setting(self.train, self.pairs, names, scores) == found

    def test_numbers(self):
        rng = np.random.default_rng(0)
        y = rng.normal(size=64)
        found = scores_by_setting(self.train, self.pairs, y, y)
        assert found["B"] == {"pairs": 16, "concordance": 1.0}
        assert list(scores_by_setting(self.train, self.train, y[:16], y[:16])) == ["A"]

    def test_one_class_in_a_setting(self):
        y = (self.pairs.left_index < 4).astype(int)
        with pytest.warns(UserWarning, match="All 16 pairs of setting . have the same") as caught:
            found = scores_by_setting(self.train, self.pairs, y, y)
        assert [str(warning.message).split(" have")[0][-1] for warning in caught] == list("ABCD")
        assert np.isnan([found["A"][key] for key in ("auc", "aupr", "concordance")]).all()

    def test_bad_input(self):
        y = np.zeros(64)
        with pytest.raises(ValueError, match=r"y_true must have shape \(64,\)"):
            scores_by_setting(self.train, self.pairs, y[:3], y)
        with pytest.raises(ValueError, match=r"y_score must have shape \(64,\)"):
            scores_by_setting(self.train, self.pairs, y, y[:3])
        with pytest.raises(TypeError, match="train must be a Pairs"):
            scores_by_setting(np.eye(3), self.pairs, y, y)
        with pytest.raises(TypeError, match="y_true must be numbers"):
            scores_by_setting(self.train, self.pairs, np.array(["a", "b", "c", "d"] * 16), y)
