"""What a column is taken for, and how labels are read."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramian.cli.errors import UserError
from gramian.cli.tables import read_new, read_training

N = 60


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def written(y=None, **columns):
    columns["y"] = ["a", "b"] * (N // 2) if y is None else y
    pd.DataFrame(columns).to_csv("data.csv", index=False)
    return Path("data.csv")


def layout_of(**columns):
    return read_training(written(**columns), "y", labels_are_text=False)[2]


@pytest.mark.parametrize(
    "values, kind",
    [
        (np.arange(N), "number"),
        ([1.5, None, 3] * (N // 3), "number"),
        ([True, False] * (N // 2), "category"),
        (["True", None] * (N // 2), "category"),
        (["very red", "quite blue", None] * (N // 3), "category"),
        ([f"zip{i // 2}" for i in range(N)], "category"),
        ([f"the story number {i}" for i in range(N)], "text"),
        ([f"x{i}" for i in range(N)], None),
        (["same"] * N, None),
        ([None] * N, None),
    ],
)
def test_kind_of_a_column(values, kind):
    layout = layout_of(other=np.arange(N) % 7, column=values)
    assert layout.columns.get("column") == kind
    assert ("column" in layout.left_out) == (kind is None)


def test_row_numbers_without_a_name_are_left_out():
    written(value=np.arange(N) % 7)
    pd.read_csv("data.csv").sample(frac=1, random_state=0).to_csv("data.csv")
    layout = read_training(Path("data.csv"), "y", labels_are_text=False)[2]
    assert layout.left_out == {"Unnamed: 0": "row numbers"}


def test_dates_and_lists_of_parquet_are_left_out():
    frame = pd.DataFrame({"value": np.arange(N), "list": [[1]] * N, "y": np.arange(N) % 2})
    frame["date"] = pd.Timestamp("2020-01-01")
    frame["colour"] = pd.Categorical(["red", "blue"] * (N // 2))
    frame.to_parquet("data.parquet")
    _, y, layout = read_training(Path("data.parquet"), "y", labels_are_text=False)
    assert layout.columns == {"value": "number", "colour": "category"}
    assert set(layout.left_out) == {"list", "date"}
    assert y.dtype == np.int64


@pytest.mark.parametrize(
    "y, as_text, expected",
    [
        (["1", "2"], False, np.int64),
        (["1.0", "2.0"], False, np.int64),
        (["1.5", "2.0"], False, np.float64),
        (["true", "false"], False, ["true", "false"]),
        (["1", "b"], False, ["1", "b"]),
        (["007", "12"], True, ["007", "12"]),
    ],
)
def test_labels(y, as_text, expected):
    path = written(y=y * (N // 2), value=np.arange(N))
    X, labels, layout = read_training(path, "y", labels_are_text=as_text)
    if isinstance(expected, list):
        assert list(labels[:2]) == expected
    else:
        assert labels.dtype == expected
    X_again, again = read_new(path, layout.with_labels(labels), need_target=True)
    np.testing.assert_array_equal(again, labels)
    pd.testing.assert_frame_equal(X_again, X)


def test_new_columns_are_read_as_in_training():
    """Categories 1 and x: a new file with 1 alone must not turn them into numbers."""
    _, _, layout = read_training(
        written(code=["1", "x", "true"] * (N // 3)), "y", labels_are_text=False
    )
    Path("new.csv").write_text("code,z\n1,0\n,0\ntrue,0\n", encoding="utf-8")
    X, y = read_new(Path("new.csv"), layout, need_target=False)
    assert list(X["code"]) == ["1", "", "true"]
    assert y is None


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("x.parquet", b"no parquet", "Cannot read x.parquet"),
        ("x.csv", b"", "Cannot read x.csv"),
        ("x.csv", b"y,a\n1,2\n1,2,3,4\n", "Cannot read x.csv"),
        ("x.csv.gz", b"not zipped", "Cannot read x.csv.gz"),
        ("x.csv", b"y,a\n\xff\xfe\x00,1\n", "Cannot read x.csv"),
        ("x.csv", b"y\n1\n", "no column to learn from"),
        ("x.npz", b"no zip", "Cannot read x.npz"),
        ("x.svm", b"1 a:b\n", "Cannot read x.svm"),
        ("x.svm", b"", "has no rows"),
    ],
)
def test_damaged_files(name, content, words):
    Path(name).write_bytes(content)
    target = None if name.endswith("svm") else "y"
    with pytest.raises(UserError, match=words):
        read_training(Path(name), target, labels_are_text=False)


@pytest.mark.parametrize(
    "arrays, words",
    [
        ({"y": np.zeros(3)}, "no array X"),
        ({"X": np.eye(3)}, "no array 'y'"),
        ({"X": np.zeros(3), "y": np.zeros(3)}, "X must be numbers of shape"),
        ({"X": np.array([["a"]]), "y": np.zeros(1)}, "X must be numbers of shape"),
        ({"X": np.eye(3), "y": np.zeros(2)}, r"target must have shape \(3,\)"),
        ({"X": np.eye(3), "y": [np.nan, 1, 2]}, "not finite"),
        ({"X": np.array([[None]]), "y": [0]}, "Cannot read"),
        (
            {"X_data": [1.0], "X_indices": [9], "X_indptr": [0, 1], "X_shape": [1, 2], "y": [0]},
            "Cannot read",
        ),
    ],
)
def test_wrong_arrays(arrays, words):
    np.savez("x.npz", **arrays)
    with pytest.raises(UserError, match=words):
        read_training(Path("x.npz"), None, labels_are_text=False)


def test_svmlight_has_its_own_target():
    Path("x.svm").write_text("1 1:1\n")
    with pytest.raises(UserError, match="leave --target out"):
        read_training(Path("x.svm"), "y", labels_are_text=False)
