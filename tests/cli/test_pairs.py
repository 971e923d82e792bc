"""Pairs on the command line: a table of ids, and tables of the objects."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io

from gramian import Pairs, PairwiseLogisticRegression, PairwiseRidge
from gramian.cli.errors import UserError
from gramian.cli.model_file import Model, allowed_types, load, save
from gramian.cli.pair_tables import read_new_pairs
from gramian.datasets import make_interactions
from gramian.metrics import scores_by_setting

TABLES = ("--left", "drugs.csv", "--right", "proteins.csv")
FIT = ("fit", "pairs.csv", *TABLES, "--target", "affinity", "--out", "model.skops")


def predicted(text):
    return [row["prediction"] for row in csv.DictReader(io.StringIO(text))]


@pytest.fixture
def files(run):
    """pairs.csv of known objects and new.csv with new ones; ids 000, 001, ... of drugs, P0, P1, ... of proteins."""
    pairs, y = make_interactions(n_left=30, n_right=20, n_features=3, density=0.4)
    drugs = pd.DataFrame(pairs.left, columns=["mass", "charge", "size"])
    drugs.insert(0, "drug", [f"{i:03}" for i in range(30)])
    drugs["kind"] = np.where(np.arange(30) % 3, "acid", "base")
    proteins = pd.DataFrame(pairs.right, columns=["u", "v", "w"])
    proteins.insert(0, "protein", [f"P{j}" for j in range(20)])
    frame = pd.DataFrame(
        {
            "lab": "x",
            "drug": drugs["drug"].to_numpy()[pairs.left_index],
            "protein": proteins["protein"].to_numpy()[pairs.right_index],
            "affinity": y + 5,
            "active": np.where(y > 0.3, "yes", "no"),
        }
    )
    known = (pairs.left_index < 24) & (pairs.right_index < 16) & (np.arange(len(y)) % 6 > 0)
    drugs[:24].to_csv("drugs.csv", index=False)
    drugs[24:].to_csv("new_drugs.csv", index=False)
    proteins.to_csv("proteins.csv", index=False)
    frame[known].to_csv("pairs.csv", index=False)
    frame[~known].to_csv("new.csv", index=False)
    return drugs.set_index("drug"), proteins.set_index("protein"), frame[known], frame[~known]


def test_fit_says_what_it_decided(done, files):
    output = done(*FIT).output
    for words in (
        "affinity: regression",
        "Left: drug",
        "24 objects",
        "kind: one-hot",
        "Right: protein",
        "16 objects",
        "lab, active",
        "kronecker (default)",
        "PairwiseRidge",
        "proven",
    ):
        assert words in output


def test_predictions_are_those_of_the_estimator_on_prepared_tables(done, files):
    drugs, proteins, train, new = files
    done(*FIT, "--regularization", "1")
    rows = predicted(done("predict", "model.skops", "new.csv", "--left", "new_drugs.csv").stdout)
    known_drugs = drugs[drugs.index.isin(train["drug"])]
    known_proteins = proteins[proteins.index.isin(train["protein"])]
    numbers = drugs[["mass", "charge", "size"]]
    left = (numbers - numbers.loc[known_drugs.index].mean()) / numbers.loc[known_drugs.index].std(ddof=0)  # fmt: skip
    left = left.join(pd.get_dummies(drugs["kind"], dtype=float))
    right = (proteins - known_proteins.mean()) / known_proteins.std(ddof=0)
    X, X_new = (
        Pairs.from_frame(part, left, right, left="drug", right="protein") for part in (train, new)
    )
    model = PairwiseRidge(regularization=1.0).fit(X, train["affinity"])
    np.testing.assert_allclose(np.array(rows, float), model.predict(X_new), rtol=1e-5)


def test_a_model_file_holds_plain_parts_and_nothing_foreign(done, files):
    done(*FIT)
    types = skops.io.get_untrusted_types(file="model.skops")
    assert set(types) <= allowed_types()
    parts = skops.io.load("model.skops", trusted=types)
    assert sorted(parts) == ["left", "pipeline", "right", "tables"]
    assert parts["tables"].left_ids[7] == "007"
    assert parts["tables"].n_right == 20  # also the objects in no training pair


def test_a_file_of_pairs_without_its_tables_is_refused(done, files):
    done(*FIT)
    model = load(Path("model.skops"))
    save(Model(model.pipeline, model.task, model.layout, model.objects), Path("same.skops"))
    assert load(Path("same.skops")).layout == model.layout
    object.__setattr__(model.objects, "tables", "no pairs")
    save(model, Path("other.skops"))
    with pytest.raises(UserError, match="holds no model for regression"):
        load(Path("other.skops"))


def test_evaluate_by_setting(done, files):
    done("fit", "pairs.csv", *TABLES, "--target", "active", "--out", "model.skops")
    model = load(Path("model.skops"))
    assert isinstance(model.pipeline[-1], PairwiseLogisticRegression)
    arguments = ("evaluate", "model.skops", "new.csv", "--left", "new_drugs.csv")
    output = done(*arguments, "--json", "report.json").output
    for words in ("Log loss", "AUPR", "Concordance", "D: both objects new"):
        assert words in output
    report = json.loads(Path("report.json").read_text())
    assert list(report["settings"]) == ["A", "B", "C", "D"]
    assert sum(row["pairs"] for row in report["settings"].values()) == report["rows"]
    assert report["settings"]["A"]["auc"] > 0.7
    X, y = read_new_pairs(
        Path("new.csv"), Path("new_drugs.csv"), None, model.layout, model.objects, need_target=True
    )
    expected = scores_by_setting(
        model.pipeline[-1].X_fit_, X, y, model.pipeline.decision_function(X)
    )
    assert report["settings"] == expected


def test_three_classes_and_settings_with_one_class(done, files):
    frame = files[2].assign(level=np.tile(["low", "middle", "high"], len(files[2]))[: len(files[2])])  # fmt: skip
    frame.to_csv("levels.csv", index=False)
    done("fit", "levels.csv", *TABLES, "--target", "level", "--out", "levels.skops")
    report = json.loads(done("evaluate", "levels.skops", "levels.csv", "--json", "-").stdout)
    assert list(report["settings"]["A"]) == ["pairs", "accuracy"]
    done("fit", "pairs.csv", *TABLES, "--target", "active", "--out", "model.skops")
    files[2][files[2]["active"] == "no"].to_csv("no.csv", index=False)
    result = done("evaluate", "model.skops", "no.csv", "--json", "-")
    assert json.loads(result.stdout)["settings"]["A"]["concordance"] is None
    assert "Note:" in result.stderr


def test_learning_in_a_setting(done, files):
    output = done(*FIT, "--optimize", "cv", "--setting", "C").output
    assert "for setting C, new right objects" in output
    model = load(Path("model.skops")).pipeline[-1]
    assert model.cv.setting == "C"
    assert np.isfinite(model.cv_loss_)


def test_options_reach_the_model(done, files):
    options = ("--kernel", "linear", "--pairwise-kernel", "poly2d", "--regularization", "0.5")
    done(*FIT, *options)
    model = load(Path("model.skops")).pipeline[-1]
    chosen = (model.left_kernel, model.right_kernel, model.pairwise_kernel, model.regularization)
    assert chosen == ("linear", "linear", "poly2d", 0.5)


def test_new_tables_replace_known_objects_and_the_others_stay(done, files):
    done(*FIT)
    before = predicted(done("predict", "model.skops", "pairs.csv").stdout)
    drugs = pd.read_csv("drugs.csv", dtype={"drug": str})
    first = files[2]["drug"].iloc[0]
    changed = drugs[drugs["drug"] == first].assign(mass=9.0)
    changed.iloc[:, ::-1].to_csv("changed.csv", index=False)  # columns in any order
    after = predicted(done("predict", "model.skops", "pairs.csv", "--left", "changed.csv").stdout)
    same = np.isclose(np.array(before, float), np.array(after, float), atol=1e-8)
    np.testing.assert_array_equal(same, files[2]["drug"] != first)


def test_warnings_of_the_kernel_are_one_line(done, files):
    done(*FIT, "--pairwise-kernel", "cartesian")
    for command in ("predict", "evaluate"):
        result = done(command, "model.skops", "new.csv", "--left", "new_drugs.csv")
        assert result.stderr.startswith("Note: ")
        assert len(result.stderr.strip().splitlines()) == 1
        assert "setting D" in result.stderr


@pytest.mark.parametrize("kernel", [None, "antisymmetric", "kronecker"])
def test_pairs_of_one_kind(done, files, kernel):
    drugs = files[0].index[:24]
    rng = np.random.default_rng(0)
    ends = rng.integers(24, size=(2, 150))
    values = rng.normal(size=24)[ends].sum(axis=0)
    frame = pd.DataFrame({"drug": drugs[ends[0]], "other": drugs[ends[1]], "synergy": values})
    frame.to_csv("synergy.csv", index=False)
    frame.assign(drug=frame["other"], other=frame["drug"]).to_csv("turned.csv", index=False)
    options = () if kernel is None else ("--pairwise-kernel", kernel)
    arguments = ("--left", "drugs.csv", "--target", "synergy", "--out", "model.skops")
    output = done("fit", "synergy.csv", *arguments, *options).output
    assert "drug with other" in output
    assert ("symmetric (one table" in output) == (kernel is None)
    there, back = (
        np.array(predicted(done("predict", "model.skops", name).stdout), float)
        for name in ("synergy.csv", "turned.csv")
    )
    if kernel is None:
        np.testing.assert_allclose(there, back, atol=1e-8)
    elif kernel == "antisymmetric":
        np.testing.assert_allclose(there, -back, atol=1e-8)
    else:
        assert not np.allclose(there, back)
    done("fit", "synergy.csv", *arguments, "--optimize", "cv", "--setting", "B")


def test_ids_by_position_when_names_differ_and_an_index_in_parquet(done, files):
    drugs, proteins, train, _ = files
    drugs.iloc[:24].to_parquet("drugs.parquet")  # ids in the index
    proteins.reset_index().to_csv("proteins.tsv", sep="\t", index=False)
    columns = {"drug": "a", "protein": "b"}
    train.drop(columns="lab").rename(columns=columns).to_parquet("train.parquet")
    tables = ("--left", "drugs.parquet", "--right", "proteins.tsv")
    target = ("--target", "affinity", "--out", "other.skops")
    assert "Left: a" in done("fit", "train.parquet", *tables, *target).output
    done(*FIT)
    expected = done("predict", "model.skops", "pairs.csv").stdout
    assert done("predict", "other.skops", "train.parquet").stdout == expected


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("pairs.csv", "--right", "proteins.csv"), "--right proteins.csv needs --left FILE"),
        (("pairs.csv", "--left", "none.csv"), "There is no file none.csv"),
        (("pairs.csv", "--left", "drugs.npz"), "drugs.npz: tables of pairs and objects end in"),
        (("new.csv", *TABLES), "in column 'drug', "),
        (("new.csv", *TABLES), "that are not in drugs.csv, first '0"),
        (("pairs.csv", *TABLES, "--taxonomy", "t.json"), "--taxonomy t.json is for single"),
        (("pairs.csv", *TABLES, "--setting", "B"), "add --optimize cv"),
        (("pairs.csv", *TABLES, "--pairwise-kernel", "mlpk"), "is for pairs of one kind"),
        (("pairs.csv", *TABLES, "--pairwise-kernel", "gaussian", "--kernel", "linear"), "leave --kernel linear out"),
        (("pairs.csv", "--pairwise-kernel", "kronecker"), "--pairwise-kernel kronecker is for pairs"),
        (("pairs.csv", "--left", "twice.csv", *TABLES[2:]), "id '000' occurs more than once in column 'drug' (rows 1"),
        (("pairs.csv", "--left", "empty.csv", *TABLES[2:]), "the id in column 'drug' is missing in row 3"),
        (("pairs.csv", "--left", "ids.csv", *TABLES[2:]), "ids.csv has no column to learn from (only the ids)"),
        (("narrow.csv", *TABLES), "narrow.csv needs two columns with the ids"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(refused, files, arguments, words):
    drugs, _, train, _ = files
    table = drugs[:24].reset_index()
    pd.concat([table, table[:1]]).to_csv("twice.csv", index=False)
    table.assign(drug=table["drug"].where(table.index != 2)).to_csv("empty.csv", index=False)
    table[["drug"]].to_csv("ids.csv", index=False)
    train[["drug", "affinity"]].to_csv("narrow.csv", index=False)
    assert words in refused("fit", *arguments, "--target", "affinity", "--out", "model.skops")
    assert not Path("model.skops").exists()


def test_the_target_must_be_there(refused, files):
    assert "--target COLUMN" in refused("fit", "pairs.csv", *TABLES, "--out", "model.skops")
    arguments = ("fit", "pairs.csv", *TABLES, "--target", "price", "--out", "model.skops")
    assert "pairs.csv has no column 'price'; it has lab, drug" in refused(*arguments)


def test_mistakes_when_predicting(done, refused, files):
    done(*FIT)
    message = refused("predict", "model.skops", "new.csv")
    assert "not in the training tables" in message
    assert "Give them by --left FILE" in message
    files[3].drop(columns="protein").to_csv("short.csv", index=False)
    message = refused("predict", "model.skops", "short.csv", "--left", "new_drugs.csv")
    assert "short.csv has no column 'protein'" in message
    files[0].reset_index().drop(columns="mass").to_csv("less.csv", index=False)
    message = refused("predict", "model.skops", "new.csv", "--left", "less.csv")
    assert "less.csv lacks columns of the training data: 'mass'" in message
    done("fit", "pairs.csv", "--target", "affinity", "--out", "single.skops")
    message = refused("predict", "single.skops", "new.csv", "--left", "drugs.csv")
    assert "--left drugs.csv is for models of pairs" in message
