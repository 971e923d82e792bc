"""Files that are larger than they look, names that are commands, and disks that are full."""

import gzip
import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramian.cli import unpacking
from gramian.cli.errors import UserError, visible
from gramian.cli.model_file import load
from gramian.cli.writing import whole_file

FIT = ("--target", "y", "--regularization", "1", "--out", "model.skops")


@pytest.fixture
def small_limit(monkeypatch):
    """A megabyte is already much: the files of the tests stay small."""
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 2**20)


def npy_header(shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue()


# --- what files unpack to -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gramian.json", "schema.json", "1.npy"])
def test_a_model_that_unpacks_to_too_much(tmp_path, small_limit, name):
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(20 * 2**20))
    assert path.stat().st_size < 2**15
    with pytest.raises(UserError, match="unpacks to more than"):
        load(path)


def test_an_array_that_says_it_is_larger_than_it_is(refused, tmp_path, run):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X.npy", npy_header((2**20, 2**20)) + bytes(64))
        archive.writestr("y.npy", npy_header((8,)) + bytes(64))
    message = refused("fit", "x.npz", *FIT)
    assert "X.npy says that it has shape (1048576, 1048576), which 192 bytes cannot hold" in message


def test_an_array_with_a_negative_shape(refused, tmp_path, run):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X.npy", npy_header((-1, 8)) + bytes(64))
        archive.writestr("y.npy", npy_header((8,)) + bytes(64))
    assert "X.npy says that it has shape (-1, 8)" in refused("fit", "x.npz", *FIT)


def test_a_table_that_unpacks_to_too_much(refused, tmp_path, small_limit):
    with gzip.open(tmp_path / "x.csv.gz", "wb") as file:
        file.write(b"a,y\n" + b"0,1\n" * 2**21)
    assert "unpacks to more than" in refused("fit", "x.csv.gz", *FIT)


def test_deep_json(refused, tmp_path):
    with zipfile.ZipFile(tmp_path / "model.skops", "w") as archive:
        archive.writestr("gramian.json", "[" * 100_000)
    assert "is not a model" in refused("predict", "model.skops", "new.csv")
    (tmp_path / "x.csv").write_text("a,y\n1,u\n2,v\n")
    (tmp_path / "tree.json").write_text('{"a":' * 100_000)
    assert "nested too deeply" in refused("fit", "x.csv", *FIT, "--taxonomy", "tree.json")


def test_features_with_very_large_numbers(refused, tmp_path):
    (tmp_path / "x.svm").write_text("1 1:1\n0 2000000000:1\n")
    assert "a feature with the number 2000000000" in refused("fit", "x.svm", "--out", "model.skops")


# --- whole files or none --------------------------------------------------------------------------------


def test_an_old_file_stays_when_writing_fails(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text("old")
    with pytest.raises(FileExistsError), whole_file(path) as file:
        (file.write_text("half of"), file.mkdir())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["predictions.csv"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_disk_is_named(tmp_path):
    with (
        pytest.raises(OSError, match=r"p\.csv"),
        whole_file(tmp_path / "p.csv"),
        open("/dev/full", "w") as file,
    ):
        file.write("x")


@pytest.fixture
def table(run, tmp_path):
    """A table whose names are commands of a terminal, of Rich and of spreadsheets."""
    rng = np.random.default_rng(0)
    names = np.array(["=1+1", "[/bold]no", "\x1b[2Jgone"])
    frame = pd.DataFrame({"[/bold]t": rng.normal(size=30), "\x1b[31mred": rng.normal(size=30)})
    frame["constant [red]"] = 1
    frame["y"] = names[np.arange(30) % 3]
    frame.to_csv("x.csv", index=False)
    return frame


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_results_replace_old_files_at_once(done, table, tmp_path, monkeypatch, command):
    """What is written takes the name of the old file only when it is complete."""
    done("fit", "x.csv", *FIT)
    replaced = []
    replace = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda self, other: (replaced.append(other.name), replace(self, other))
    )
    option = ("--out", "p.csv") if command == "predict" else ("--json", "p.json")
    done(command, "model.skops", "x.csv", *option)
    assert replaced == [option[1]]


# --- names that are commands ----------------------------------------------------------------------------


def test_names_are_shown_and_not_obeyed(run, table):
    result = run("fit", "x.csv", *FIT)
    assert result.exit_code == 0, result.output
    assert "[/bold]t" in result.output
    assert r"\x1b[31mred" in result.output
    assert "constant [red]" in result.output


def test_errors_show_names_too(refused, table):
    message = refused("fit", "x.csv", "--target", "\x1b[2Jy", "--out", "model.skops")
    assert r"\x1b[31mred" in message
    assert "\x1b[31mred" not in message


def test_formulas_are_quoted_on_request(done, table):
    done("fit", "x.csv", *FIT)
    plain = done("predict", "model.skops", "x.csv", "--proba", "--out", "p.csv")
    safe = done("predict", "model.skops", "x.csv", "--proba", "--safe-csv", "--out", "safe.csv")
    assert plain.output == safe.output == ""
    written, quoted = pd.read_csv("p.csv"), pd.read_csv("safe.csv")
    assert "=1+1" in set(written["prediction"])
    assert "'=1+1" in set(quoted["prediction"])
    assert not quoted["prediction"].str.startswith("=").any()
    np.testing.assert_array_equal(quoted.iloc[:, 1:], written.iloc[:, 1:])


def test_visible():
    assert visible("naïve\x1b[0m\n") == "naïve\\x1b[0m\\n"


def test_json_has_no_control_characters(done, table):
    done("fit", "x.csv", *FIT)
    done("evaluate", "model.skops", "x.csv", "--json", "report.json")
    assert json.loads(Path("report.json").read_text())["rows"] == 30
