"""gramian fit and predict, from a file to a file."""

import csv
import importlib.util
import io
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_wine

from gramian import KernelLogisticRegression
from gramian.cli import predictions as predictions_module
from gramian.cli.model_file import load

FIT = ("fit", "iris.csv", "--target", "species", "--out", "model.skops")
QUICK_FIT = (*FIT, "--regularization", "0.1")  # nothing is learned


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_fit_says_what_it_decided_and_writes_one_file(done, iris, tmp_path):
    before = set(tmp_path.iterdir())
    output = done(*FIT).output
    for words in (
        "classification, 3 classes",
        "sepal_length",
        "site: one-hot",
        "auto (default)",
        "proven",
    ):
        assert words in output
    assert set(tmp_path.iterdir()) - before == {tmp_path / "model.skops"}


def test_predict_to_stdout_is_csv(done, iris):
    done(*FIT)
    rows = rows_of(done("predict", "model.skops", "iris_test.csv").stdout)
    assert list(rows[0]) == ["prediction"]
    predicted = [row["prediction"] for row in rows]
    assert np.mean(predicted == iris["species"][90:]) > 0.9


@pytest.mark.parametrize("name", ["predictions.csv", "predictions.parquet"])
def test_predict_with_probabilities_to_a_file(done, iris, name):
    done(*QUICK_FIT)
    assert done("predict", "model.skops", "iris_test.csv", "--proba", "--out", name).output == ""
    frame = pd.read_csv(name) if name.endswith("csv") else pd.read_parquet(name)
    classes = ["setosa", "versicolor", "virginica"]
    assert list(frame) == ["prediction", *(f"proba_{name}" for name in classes)]
    proba = frame.iloc[:, 1:].to_numpy()
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (np.array(classes)[proba.argmax(axis=1)] == frame["prediction"]).all()


def test_the_model_is_a_plain_pipeline_with_the_same_predictions(done, iris):
    done(*QUICK_FIT)
    pipeline = load(Path("model.skops")).pipeline
    rows = rows_of(done("predict", "model.skops", "iris_test.csv").stdout)
    X = iris[90:].drop(columns="species")
    assert list(pipeline.predict(X)) == [row["prediction"] for row in rows]


def test_regression(done, diabetes):
    output = done("fit", "diabetes.csv", "--target", "target", "--out", "model.skops").output
    assert "regression" in output
    rows = rows_of(done("predict", "model.skops", "diabetes_test.csv").stdout)
    predicted = [float(row["prediction"]) for row in rows]
    assert np.corrcoef(predicted, diabetes["target"][200:])[0, 1] > 0.6


def test_options_reach_the_model(done, iris):
    done(*FIT, "--kernel", "matern32", "--regularization", "0.25")
    model = load(Path("model.skops")).pipeline[-1]
    assert model.kernel == "matern32"
    assert model.regularization == 0.25


@pytest.mark.parametrize("extension", ["csv.gz", "tsv", "parquet"])
def test_other_tables(done, iris, extension):
    def write(frame, name):
        if extension == "parquet":
            frame.to_parquet(name)
        else:
            frame.to_csv(name, index=False, sep="\t" if extension == "tsv" else ",")

    write(iris[:90], f"train.{extension}")
    write(iris[90:].drop(columns="species"), f"new.{extension}")
    options = ("--target", "species", "--regularization", "0.1", "--out", "other.skops")
    done("fit", f"train.{extension}", *options)
    done(*QUICK_FIT)
    expected = done("predict", "model.skops", "iris_test.csv", "--proba").stdout
    assert done("predict", "other.skops", f"new.{extension}", "--proba").stdout == expected


@pytest.fixture
def wine(run):
    """wine.svm, wine.npz and sparse.npz with the same numbers between 0 and 1."""
    X, y = load_wine(return_X_y=True)
    X = X / X.max(axis=0)
    dump_svmlight_file(X, y, "wine.svm", zero_based=False)
    np.savez("wine.npz", X=X, y=y, names=np.array(["a", "b", "c"])[y])
    S = sp.csr_array(X)
    parts = {"X_data": S.data, "X_indices": S.indices, "X_indptr": S.indptr, "X_shape": S.shape}
    np.savez("sparse.npz", **parts, y=y)
    return X, y


@pytest.mark.parametrize("name", ["wine.svm", "wine.npz", "sparse.npz"])
def test_arrays(done, wine, name):
    output = done("fit", name, "--out", "model.skops").output
    assert ("standardised" in output) == (name == "wine.npz")
    for other in ("wine.svm", "wine.npz", "sparse.npz"):
        rows = rows_of(done("predict", "model.skops", other).stdout)
        assert np.mean([int(row["prediction"]) for row in rows] == wine[1]) > 0.9


def test_target_names_the_array(done, wine):
    done("fit", "wine.npz", "--target", "names", "--out", "model.skops")
    rows = rows_of(done("predict", "model.skops", "wine.npz").stdout)
    assert {row["prediction"] for row in rows} == {"a", "b", "c"}


def test_svmlight_rows_may_end_early_and_know_more_features(done, run, tmp_path):
    (tmp_path / "train.svm").write_text("1 1:1 3:1\n-1 2:1\n1 1:2\n-1 2:2 3:1\n")
    (tmp_path / "new.svm").write_text("0 1:1\n0 2:1 9:5\n")
    options = ("--kernel", "linear", "--regularization", "1", "--out", "model.skops")
    done("fit", "train.svm", *options)
    rows = rows_of(done("predict", "model.skops", "new.svm").stdout)
    assert [row["prediction"] for row in rows] == ["1", "-1"]


def test_text_alone_is_linear_and_sparse(done, tmp_path):
    rng = np.random.default_rng(0)
    words = {"sport": ["ball", "goal", "team", "coach"], "food": ["soup", "bread", "salt", "oven"]}
    topics = rng.permutation(["sport", "food"] * 40)
    lines = [" ".join(rng.choice([*words[topic], "the", "a", "of"], 6)) for topic in topics]
    pd.DataFrame({"line": lines, "topic": topics}).to_csv("lines.csv", index=False)
    output = done("fit", "lines.csv", "--target", "topic", "--out", "model.skops").output
    assert "TF-IDF" in output
    assert "linear (text alone)" in output
    model = load(tmp_path / "model.skops").pipeline[-1]
    assert sp.issparse(model.X_fit_)
    (tmp_path / "new.csv").write_text('line\nthe goal of unknownword\nsoup\n""\n')
    rows = rows_of(done("predict", "model.skops", "new.csv").stdout)
    assert [row["prediction"] for row in rows][:2] == ["sport", "food"]


def test_columns_with_heavy_tails_become_normal_ranks(done, rng):
    table = pd.DataFrame({"calm": rng.normal(size=300), "wild": rng.standard_cauchy(300)})
    table["target"] = np.where(table.calm + np.sign(table.wild) > 0, "yes", "no")
    table.to_csv("wild.csv", index=False)
    output = done("fit", "wild.csv", "--target", "target", "--out", "model.skops").output
    assert "wild: median if missing, ranks made normal" in output
    rows = rows_of(done("predict", "model.skops", "wild.csv").stdout)
    assert np.mean([row["prediction"] for row in rows] == table["target"]) > 0.9


def test_new_data_may_hold_missing_values_and_unknown_categories(done, iris, tmp_path):
    done(*QUICK_FIT)
    (tmp_path / "new.csv").write_text(
        "petal_width,petal_length,sepal_width,sepal_length,site\n0.2,1.4,,5.1,east\n2.3,6.0,3.0,7.0,\n"
    )
    rows = rows_of(done("predict", "model.skops", "new.csv").stdout)
    assert [row["prediction"] for row in rows] == ["setosa", "virginica"]


def test_progress_is_for_those_who_watch(done, iris):
    assert "KernelLogisticRegression - fit" in done(*FIT, force_terminal=True).output
    assert "KernelLogisticRegression - fit" not in done(*QUICK_FIT, force_terminal=False).output
    done("predict", "model.skops", "iris_test.csv")


def test_warnings_are_sentences(done, iris, monkeypatch):
    fit = KernelLogisticRegression.fit

    def with_warning(self, *data):
        warnings.warn("Stopped short;\n  give it more.", UserWarning, stacklevel=1)
        return fit(self, *data)

    monkeypatch.setattr(KernelLogisticRegression, "fit", with_warning)
    assert done(*FIT).stderr.strip() == "Note: Stopped short; give it more."


def test_ctrl_c_is_one_line_and_leaves_the_old_model(run, iris, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    (tmp_path / "model.skops").write_text("old")
    monkeypatch.setattr(KernelLogisticRegression, "fit", interrupted)
    result = run(*FIT)
    assert result.exit_code == 130
    assert result.stderr.strip() == "Stopped by Ctrl-C; nothing was written."
    assert (tmp_path / "model.skops").read_text() == "old"


def test_when_writing_fails_at_the_end(run, done, iris, monkeypatch):
    def full(_, file):
        raise OSError(28, "No space left on device", file.name)

    done(*QUICK_FIT)
    monkeypatch.setattr(predictions_module, "write_csv", full)
    result = run("predict", "model.skops", "iris_test.csv", "--out", "predictions.csv")
    assert result.exit_code == 1
    assert result.stderr.strip() == "Cannot write predictions.csv: No space left on device."


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("fit", "none.csv", "-t", "y", "-o", "m.skops"), "There is no file none.csv"),
        (("fit", "iris.xls", "-t", "y", "-o", "m.skops"), "must end in one of .csv"),
        (("fit", "iris.csv", "-t", "kind", "-o", "m.skops"), "no column 'kind'; it has sepal"),
        (("fit", "iris.csv", "-o", "m.skops"), "--target COLUMN"),
        (("fit", "iris.csv", "-t", "species", "-o", "none/m.skops"), "There is no folder none"),
        ((*FIT, "--task", "regression"), "--task regression needs numbers"),
        ((*FIT, "--regularization", "-1"), "regularization"),
        ((*FIT, "--taxonomy", "tree.xml"), "must end in one of .json"),
        ((*FIT, "--taxonomy", "tree.json"), "There is no file tree.json"),
        (("predict", "none.skops", "iris.csv"), "There is no file none.skops"),
        (("predict", "model.skops", "short.csv"), "lacks columns of the training data: 'site'"),
        (("predict", "model.skops", "words.csv"), "'petal_width' held numbers in training"),
        (("predict", "model.skops", "x.npz"), "it reads .csv"),
        (
            ("predict", "model.skops", "iris.csv", "-o", "p.xls"),
            "must end in one of .csv, .parquet",
        ),
        (("predict", "model.skops", "iris.csv", "--nodes"), "--nodes needs a model"),
    ],
)
def test_mistakes_are_one_line(refused, done, iris, arguments, words):
    iris.drop(columns="site").to_csv("short.csv", index=False)
    iris.assign(petal_width="wide").to_csv("words.csv", index=False)
    np.savez("x.npz", X=np.eye(3))
    if arguments[0] == "predict":
        done(*QUICK_FIT)
    assert words in refused(*arguments)


def test_probabilities_of_a_regression(refused, done, diabetes):
    options = ("--target", "target", "--regularization", "1", "--out", "model.skops")
    done("fit", "diabetes.csv", *options)
    assert "--proba is for classification" in refused(
        "predict", "model.skops", "diabetes.csv", "--proba"
    )


@pytest.mark.parametrize("package", ["pandas", "skops"])
def test_a_missing_package_is_named_with_its_extra(refused, iris, monkeypatch, package):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == package else real(name)
    )
    message = refused(*FIT)
    assert package in message
    assert 'pip install "gramian[cli]"' in message
