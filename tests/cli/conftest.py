"""Run commands as a person does, in an empty folder, on small data files."""

from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from rich.text import Text
from sklearn.datasets import load_diabetes, load_iris
from typer.testing import CliRunner

from gramian.cli import app as cli


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command in an empty folder, with a wide console unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERMINAL_WIDTH", "200")  # of help and errors

    def invoke(*arguments, **console):
        monkeypatch.setattr(cli, "get_console", lambda: Console(**({"width": 200} | console)))
        result = CliRunner().invoke(cli.app, list(arguments))
        # some CI services are taken for terminals
        return SimpleNamespace(
            exit_code=result.exit_code,
            output=Text.from_ansi(result.output).plain,
            stdout=Text.from_ansi(result.stdout).plain,
            stderr=Text.from_ansi(result.stderr).plain,
        )

    return invoke


@pytest.fixture
def done(run):
    """Run a command that must succeed."""

    def invoke(*arguments, **console):
        result = run(*arguments, **console)
        assert result.exit_code == 0, result.output
        return result

    return invoke


@pytest.fixture
def refused(run):
    """Run a command that must be refused in one line on stderr, with exit code 2."""

    def invoke(*arguments):
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert len(result.stderr.strip().splitlines()) == 1
        assert "Traceback" not in result.output
        return result.stderr

    return invoke


@pytest.fixture
def iris(run, tmp_path):
    """iris.csv and iris_test.csv in the current folder: numbers, a category, text as target."""
    data = load_iris(as_frame=True)
    frame = data.data.rename(columns=lambda name: name.replace(" (cm)", "").replace(" ", "_"))
    frame["site"] = np.where(np.arange(150) % 2, "north", "south")
    frame["species"] = data.target_names[data.target]
    frame = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    frame[:90].to_csv(tmp_path / "iris.csv", index=False)
    frame[90:].to_csv(tmp_path / "iris_test.csv", index=False)
    return frame


@pytest.fixture
def diabetes(run, tmp_path):
    """diabetes.csv and diabetes_test.csv: numbers only, a number as target."""
    frame = load_diabetes(as_frame=True).frame
    frame[:200].to_csv(tmp_path / "diabetes.csv", index=False)
    frame[200:].to_csv(tmp_path / "diabetes_test.csv", index=False)
    return frame
