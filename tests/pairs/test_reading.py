"""Pairs from wide tables and from frames with ids."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from gramian import Pairs

RNG = np.random.default_rng(0)
LEFT = RNG.normal(size=(7, 3))


def _dense(table):
    return table.toarray() if sp.issparse(table) else table


WIDE = np.where(RNG.random((60, 5)) < 0.5, 0.0, RNG.integers(-2, 3, size=(60, 5)) / 4)


class TestFromWide:
    @pytest.mark.parametrize(
        "convert",
        [
            np.asarray,
            np.ndarray.tolist,
            sp.csr_array,
            sp.coo_array,
            sp.csc_matrix,
            pd.DataFrame,
            lambda X: X.astype("f4"),
            lambda X: sp.csr_array(X.astype("f4")),
        ],
    )
    def test_objects_in_the_order_of_unique(self, convert):
        wide = WIDE[:, :4]
        made = Pairs.from_wide(convert(wide))
        for table, index, columns in (
            (made.left, made.left_index, slice(0, 2)),
            (made.right, made.right_index, slice(2, 4)),
        ):
            rows, inverse = np.unique(WIDE[:, columns], axis=0, return_inverse=True)
            np.testing.assert_array_equal(_dense(table), rows)
            np.testing.assert_array_equal(index, inverse)
        np.testing.assert_array_equal(_dense(made.to_wide()), wide)

    @pytest.mark.parametrize("n_columns", [1, 5])
    @pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, pd.DataFrame])
    def test_an_odd_number_of_columns_has_no_half(self, n_columns, convert):
        message = rf"X has {n_columns} columns, an odd number.*left_columns or right_columns"
        with pytest.raises(ValueError, match=message):
            Pairs.from_wide(convert(WIDE[:, :n_columns]))
        assert Pairs.from_wide(convert(WIDE[:, :n_columns]), [0]).left.shape[1] == 1
        assert Pairs.from_wide(convert(WIDE[:, :n_columns]), None, [0]).right.shape[1] == 1

    def test_signed_zeros_and_stored_zeros_are_zero(self):
        assert Pairs.from_wide([[0.0, 1.0], [-0.0, 1.0]]).n_left == 1
        stored = sp.csr_array(([0.0, 1.0, -0.0], [0, 1, 0], [0, 2, 3]), shape=(2, 2))
        made = Pairs.from_wide(stored)
        assert (made.n_left, made.n_right) == (1, 2)

    @pytest.mark.parametrize(
        "left, right, left_expected, right_expected",
        [
            (slice(1, 3), None, [1, 2], [0, 3, 4]),
            (None, [0, -1], [1, 2, 3], [0, 4]),
            (np.array([True, False, False, True, False]), None, [0, 3], [1, 2, 4]),
            ([2, 0], [0, 1], [2, 0], [0, 1]),
            (np.array([1]), slice(None), [1], [0, 1, 2, 3, 4]),
        ],
    )
    def test_columns(self, left, right, left_expected, right_expected):
        for X in (WIDE, sp.csr_array(WIDE), pd.DataFrame(WIDE)):
            made = Pairs.from_wide(X, left, right)
            expected = WIDE[:, left_expected + right_expected]
            np.testing.assert_array_equal(_dense(made.to_wide()), expected)

    def test_names(self):
        frame = pd.DataFrame(WIDE, columns=list("abcde")).assign(note="text")
        made = Pairs.from_wide(frame, ["c", "a"], pd.Index(["e"]))
        np.testing.assert_array_equal(made.to_wide(), WIDE[:, [2, 0, 4]])
        assert made.left_ids is None

    def test_integer_names_come_before_positions(self):
        frame = pd.DataFrame(WIDE, columns=[4, 3, 2, 1, 0])
        np.testing.assert_array_equal(Pairs.from_wide(frame, [4]).to_wide()[:, 0], WIDE[:, 0])

    @pytest.mark.parametrize("X", [WIDE[:, :1], sp.csr_array(WIDE[:, :1])], ids=["dense", "sparse"])
    def test_an_empty_side_is_constant(self, X):
        made = Pairs.from_wide(X, [0])
        np.testing.assert_array_equal(_dense(made.right), [[1.0]])
        assert made.n_right == 1
        assert Pairs.from_wide(X, [], [0]).n_left == 1

    def test_no_rows(self):
        assert Pairs.from_wide(np.empty((0, 4))).shape == (0, 4)

    @pytest.mark.parametrize(
        "columns, message",
        [
            ([9], r"left_columns holds 9, but X has 5 columns"),
            (["a"], r"left_columns holds 'a', which is no column: X is not a DataFrame"),
            ([True, False], r"left_columns as a mask must have 5 entries.* got 2"),
            ([1.5], r"left_columns holds 1.5"),
        ],
    )
    def test_bad_columns(self, columns, message):
        with pytest.raises(ValueError, match=message):
            Pairs.from_wide(WIDE, columns)

    def test_bad_tables(self):
        with pytest.raises(ValueError, match=r"X must have shape \(n, d\)"):
            Pairs.from_wide([1.0, 2.0])
        with pytest.raises(ValueError, match=r"X must be finite, but row 0"):
            Pairs.from_wide([[np.nan, 2.0]])
        with pytest.raises(ValueError, match=r"which is no column: X has \['a'\]"):
            Pairs.from_wide(pd.DataFrame({"a": [1]}), ["b"])


class TestFromFrame:
    drugs = pd.DataFrame({"mass": [1.0, 2.0, 3.0]}, index=["D1", "D2", "D3"])
    targets = pd.DataFrame({"length": [5.0, 6.0]}, index=[10, 20])
    frame = pd.DataFrame({"drug": ["D3", "D1", "D3"], "target": [20, 20, 10], "y": [0, 1, 0]})

    def test_look_up(self):
        made = Pairs.from_frame(self.frame, self.drugs, self.targets, left="drug", right="target")
        assert made.left_index.tolist() == [2, 0, 2]
        assert made.right_index.tolist() == [1, 1, 0]
        assert made.left_ids.tolist() == ["D1", "D2", "D3"]
        assert made.right_ids.tolist() == [10, 20]

    def test_a_counting_index_is_one_of_ids_here(self):
        tables = self.drugs.reset_index(drop=True), self.targets
        frame = pd.DataFrame({"drug": [2, 0], "target": [10, 20]})
        made = Pairs.from_frame(frame, *tables, left="drug", right="target")
        assert made.left_ids.tolist() == [0, 1, 2]

    def test_homogeneous(self):
        frame = pd.DataFrame({"a": ["D1", "D2"], "b": ["D2", "D3"]})
        made = Pairs.from_frame(frame, self.drugs, left="a", right="b")
        assert made.homogeneous
        assert made.right_index.tolist() == [1, 2]

    def test_polars_names_the_pairs(self):
        pl = pytest.importorskip("polars")
        frame = pl.DataFrame({"drug": ["D2"], "target": [10]})
        made = Pairs.from_frame(frame, self.drugs, self.targets, left="drug", right="target")
        assert made.left_index.tolist() == [1]
        with pytest.raises(TypeError, match="left_table must be a pandas DataFrame"):
            Pairs.from_frame(frame, frame, left="drug", right="target")

    def test_missing_objects(self):
        frame = self.frame.assign(drug=["D1", "D7", "D8"])
        with pytest.raises(
            ValueError,
            match=r"2 pairs name a left object that left_table does not have, first: 'D7' \(row 1\)\. Add",
        ):
            Pairs.from_frame(frame, self.drugs, self.targets, left="drug", right="target")
        frame = self.frame.assign(target=["10", "20", "20"])
        with pytest.raises(
            ValueError, match=r"3 pairs name a right .*type is str, that of the index int"
        ):
            Pairs.from_frame(frame, self.drugs, self.targets, left="drug", right="target")
        with pytest.raises(
            ValueError, match=r"1 pair names a right object that left_table .* 'D9'"
        ):
            Pairs.from_frame(
                pd.DataFrame({"a": ["D1"], "b": ["D9"]}), self.drugs, left="a", right="b"
            )

    def test_bad_input(self):
        doubled = pd.concat([self.drugs, self.drugs])
        with pytest.raises(
            ValueError, match=r"index of left_table must be unique, but 'D1' .* 0 and 3"
        ):
            Pairs.from_frame(self.frame, doubled, self.targets, left="drug", right="target")
        with pytest.raises(ValueError, match=r"left='x' must be a column of frame"):
            Pairs.from_frame(self.frame, self.drugs, self.targets, left="x", right="target")
        with pytest.raises(TypeError, match="frame must be a DataFrame"):
            Pairs.from_frame([("D1", 10)], self.drugs, self.targets, left=0, right=1)
        with pytest.raises(TypeError, match="left_table must be a pandas DataFrame"):
            Pairs.from_frame(self.frame, LEFT, self.targets, left="drug", right="target")
