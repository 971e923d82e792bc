"""Taxonomies from files, and models that use them."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io

from gramian.cli.errors import UserError
from gramian.cli.model_file import allowed_types, load
from gramian.cli.taxonomy_file import read_taxonomy
from gramian.labels import Taxonomy

PETS = Taxonomy.from_parents({"cat": "animal", "dog": "animal", "car": None})


@pytest.mark.parametrize(
    "name, content",
    [
        ("nested.json", '{"animal": {"cat": {}, "dog": null}, "car": {}}'),
        ("lists.json", '{"animal": ["cat", "dog"], "car": []}'),
        ("parents.json", '{"cat": "animal", "dog": "animal", "car": null}'),
        ("edges.csv", "parent,child\nanimal,cat\nanimal,dog\n,car\n"),
        ("edges.csv", "\ufeffchild,parent,note\ncat,animal,1\ndog,animal,2\ncar,,3\n"),
    ],
)
def test_files(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    taxonomy = read_taxonomy(path)
    assert sorted(taxonomy.leaf_names) == ["car", "cat", "dog"]
    assert list(taxonomy.path("cat")) == list(PETS.path("cat"))


def test_paths(tmp_path):
    path = tmp_path / "paths.txt"
    path.write_text("animal/cat\n\nanimal/dog\ncar\n")
    taxonomy = read_taxonomy(path)
    assert sorted(taxonomy.leaf_names) == ["animal/cat", "animal/dog", "car"]
    assert "animal" in taxonomy.path("animal/cat")


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("tree.json", "{", "is no taxonomy"),
        ("tree.json", "[1]", "must hold"),
        ("tree.json", "{}", "must hold"),
        ("tree.json", '{"cat": "animal", "cat": "pet"}', "'cat' occurs twice"),
        ("tree.json", '{"a": "b", "b": "a"}', "is no taxonomy"),
        ("tree.csv", "animal,cat\nanimal,dog\n", "first line must name the columns: parent,child"),
        ("tree.csv", "parent,child\na,b\nc,b\n", "line 3: 'b' has a second parent"),
        ("tree.csv", "parent,child\na,\n", "line 2: there is no child"),
        ("tree.txt", "", "is no taxonomy"),
        ("tree.xml", "", r"must end in one of \.json"),
    ],
)
def test_damaged_files(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=words):
        read_taxonomy(tmp_path / name)


@pytest.fixture
def codes(run):
    """Classes 01, 02 under the code 0, and 11, 12 under 1; they look like numbers, but are names."""
    rng = np.random.default_rng(0)
    names = np.array(["01", "02", "11", "12"])
    label = rng.integers(4, size=120)
    centre = np.array([[0, 0], [0, 2], [6, 0], [6, 2]])
    frame = pd.DataFrame(centre[label] + rng.normal(scale=0.5, size=(120, 2)), columns=["u", "v"])
    frame["code"] = names[label]
    frame[:80].to_csv("train.csv", index=False)
    frame[80:].to_csv("test.csv", index=False)
    Path("codes.csv").write_text("parent,child\n0,01\n0,02\n1,11\n1,12\n")
    return frame


FIT = ("fit", "train.csv", "--target", "code", "--taxonomy", "codes.csv", "--out", "model.skops")


def test_fit_predict_and_evaluate(done, codes):
    assert "7 nodes, 4 leaves" in done(*FIT).output
    rows = list(
        csv.DictReader(io.StringIO(done("predict", "model.skops", "test.csv", "--nodes").stdout))
    )
    assert np.mean([row["prediction"] for row in rows] == codes["code"][80:]) > 0.9
    nodes = {
        name: np.array([float(row[f"node_{name}"]) for row in rows])
        for name in ("0", "01", "02", "root")
    }
    np.testing.assert_allclose(nodes["01"] + nodes["02"], nodes["0"])
    np.testing.assert_allclose(nodes["root"], 1)
    report = json.loads(done("evaluate", "model.skops", "test.csv", "--json", "-").stdout)
    values = report["metrics"]
    assert {"taxo_loss", "parent_accuracy", "hierarchical_f1", "reciprocal_rank"} <= set(values)
    assert values["parent_accuracy"] >= values["accuracy"] > 0.9
    assert values["reciprocal_rank"] >= values["accuracy"]
    assert "Taxonomic loss" in done("evaluate", "model.skops", "test.csv").output


@pytest.mark.parametrize("share", ["tied", "class", "level", "subtree"])
def test_share(done, codes, share):
    done(*FIT, "--share", share)
    model = load(Path("model.skops"))
    assert model.pipeline[-1].share == share
    assert model.taxonomy.n_leaves == 4


@pytest.mark.parametrize("taxonomy", [True, False])
def test_optimize(done, codes, taxonomy):
    flat = ("fit", "train.csv", "--target", "code", "--task", "classification", "-o", "model.skops")
    output = done(*(FIT if taxonomy else flat), "--optimize", "cv").output
    assert "cross-validation" in output
    assert len(load(Path("model.skops")).pipeline[-1].optimization_path_.loss) > 1
    assert "0." in done("evaluate", "model.skops", "test.csv").output


def test_a_label_that_is_not_in_the_taxonomy(refused, codes):
    Path("codes.csv").write_text("parent,child\n0,01\n0,02\n1,11\n")
    assert "12" in refused(*FIT)


def test_a_taxonomy_is_for_classes(refused, codes):
    assert "--taxonomy is for classification" in refused(*FIT, "--task", "regression")


def test_an_option_the_estimator_does_not_have(refused, codes):
    arguments = ("fit", "train.csv", "--target", "u", "--out", "model.skops", "--share", "level")
    assert "KernelRidge does not know --share" in refused(*arguments)


def test_a_model_file_may_hold_a_taxonomy():
    stored = skops.io.dumps(PETS)
    needed = skops.io.get_untrusted_types(data=stored)
    assert set(needed) <= allowed_types()
    assert skops.io.loads(stored, trusted=needed) == PETS
