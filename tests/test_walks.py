"""The walks of docs/architecture.md: each model is fitted, and the functions are entered in the order of the page."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from gramian import (
    HierarchicalSVC,
    KernelCRF,
    KernelLogisticRegression,
    M3LClassifier,
    PairwiseRidge,
    Sequences,
)
from gramian.cli.app import app
from gramian.datasets import make_interactions

PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
WALKS = {
    title: re.findall(r"^\d+\. `([\w.]+)`", body, re.MULTILINE)
    for title, body in re.findall(r"^### Walk: (.*?)\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE)
}
X, y = load_iris(return_X_y=True)
X, y = X[::5], y[::5]


def features():
    KernelLogisticRegression().fit(X, y)


def pairs():
    PairwiseRidge().fit(*make_interactions())


def many_labels():
    M3LClassifier(kernel="rbf").fit(X, np.stack([y == 1, X[:, 0] > 6], axis=1))


def tree():
    HierarchicalSVC({"a": [0], "b": [1, 2]}, "orthogonal").fit(X, y)


def sequences():
    words = Sequences(X, [3] * 10)
    KernelCRF().fit(words, words.split(y))


def command_line(folder):
    table = np.column_stack([X, y])
    np.savetxt(folder / "iris.csv", table, "%g", ",", header="a,b,c,d,species", comments="")
    arguments = ["fit", str(folder / "iris.csv"), "--target", "species", "--task", "classification"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(folder / "iris.skops")])
    assert result.exit_code == 0, result.output


FITS = {
    "features": features,
    "pairs": pairs,
    "many labels": many_labels,
    "classes in a tree": tree,
    "label sequences": sequences,
    "command line": command_line,
}


def code_of(name):
    """The code of a function of gramian by its dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module("gramian." + ".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = inspect.unwrap(getattr(found, part))
        return found.__code__
    raise AssertionError(f"{name} is not in the package.")


def test_the_page_has_a_walk_for_each_family():
    assert list(WALKS) == list(FITS)
    assert all(3 < len(walk) <= 12 for walk in WALKS.values())


@pytest.mark.parametrize("title", FITS)
def test_functions_are_entered_in_the_order_of_the_page(title, tmp_path):
    order: dict = {}

    def note(frame, event, _):
        if event == "call":
            order.setdefault(frame.f_code, len(order))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        FITS[title](*([tmp_path] if title == "command line" else []))
    finally:
        sys.setprofile(before)
    steps = [(order.get(code_of(name)), name) for name in WALKS[title]]
    missing = [name for place, name in steps if place is None]
    assert not missing
    assert steps == sorted(steps)
