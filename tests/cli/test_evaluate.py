"""gramian evaluate: the numbers are those of scikit-learn, in a table and as JSON."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

from gramian.cli.model_file import load

CLASSIFICATION = [
    "accuracy",
    "balanced_accuracy",
    "macro_f1",
    "log_loss",
    "expected_calibration_error",
]


@pytest.fixture
def fitted(done, iris):
    done("fit", "iris.csv", "--target", "species", "--out", "model.skops")
    return load(Path("model.skops")).pipeline


def test_classification(done, iris, fitted, tmp_path):
    output = done("evaluate", "model.skops", "iris_test.csv", "--json", "report.json").output
    for words in (
        "60 rows",
        "Accuracy",
        "Balanced accuracy",
        "Macro F1",
        "Log loss",
        "calibration",
    ):
        assert words in output
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["task"], report["rows"]) == ("classification", 60)
    values = report["metrics"]
    assert list(values) == CLASSIFICATION
    X, y = iris[90:].drop(columns="species"), iris["species"][90:].to_numpy(str)
    predicted, proba = fitted.predict(X), fitted.predict_proba(X)
    assert values["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted))
    assert values["balanced_accuracy"] == pytest.approx(
        metrics.balanced_accuracy_score(y, predicted)
    )
    assert values["macro_f1"] == pytest.approx(metrics.f1_score(y, predicted, average="macro"))
    assert values["log_loss"] == pytest.approx(metrics.log_loss(y, proba))
    assert 0 <= values["expected_calibration_error"] <= 1


def test_json_to_stdout_and_nothing_else(done, fitted):
    report = json.loads(done("evaluate", "model.skops", "iris_test.csv", "--json", "-").output)
    assert list(report["metrics"]) == CLASSIFICATION


def test_regression(done, diabetes):
    done("fit", "diabetes.csv", "--target", "target", "--out", "model.skops")
    output = done("evaluate", "model.skops", "diabetes_test.csv", "--json", "-").output
    values = json.loads(output)["metrics"]
    assert list(values) == ["rmse", "mae", "r2"]
    X, y = diabetes[200:].drop(columns="target"), diabetes["target"][200:]
    residual = y - load(Path("model.skops")).pipeline.predict(X)
    assert values["rmse"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert values["mae"] == pytest.approx(np.mean(np.abs(residual)))
    assert values["r2"] == pytest.approx(1 - np.var(residual) / np.var(y), abs=0.05)


def test_a_part_of_the_classes_is_enough(done, iris, fitted):
    iris[iris["species"] == "setosa"].to_csv("setosa.csv", index=False)
    report = json.loads(done("evaluate", "model.skops", "setosa.csv", "--json", "-").output)
    assert report["metrics"]["accuracy"] == report["metrics"]["balanced_accuracy"]


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda frame: frame.drop(columns="species"), "has no column 'species'"),
        (lambda frame: frame.assign(species="rose"), "no class of the model, the first is 'rose'"),
        (lambda frame: frame.drop(columns="site"), "lacks columns of the training data: 'site'"),
        (lambda frame: frame.assign(species=None), "is missing in 150 rows, first in row 1"),
        (lambda frame: frame[:0], "has no rows"),
    ],
)
def test_mistakes_are_one_line(refused, iris, fitted, change, words):
    change(iris).to_csv("new.csv", index=False)
    assert words in refused("evaluate", "model.skops", "new.csv")
