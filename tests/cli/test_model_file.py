"""Model files: what goes in comes out, and nothing in a file is executed."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import gramian
from gramian import KernelLogisticRegression, KernelRidge
from gramian.cli.errors import UserError
from gramian.cli.model_file import Model, load, save
from gramian.cli.tables import Layout

X = np.random.default_rng(0).normal(size=(20, 2))
LAYOUT = Layout("array", "y", 2)


class Trap:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("trapped"),)


class Foreign:
    """A class that no model needs."""


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def fitted(**attributes):
    model = KernelLogisticRegression(regularization=1.0).fit(X, X[:, 0] > 0)
    vars(model).update(attributes)
    return Pipeline([("model", model)])


def write_archive(pipeline, metadata=None):
    buffer = io.BytesIO(skops.io.dumps(pipeline))
    default = {
        "task": "classification",
        "layout": {"source": "array", "target": "y", "n_features": 2},
    }
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("gramian.json", json.dumps(default if metadata is None else metadata))
    Path("model.skops").write_bytes(buffer.getvalue())


@pytest.mark.parametrize(
    "kernel", ["rbf", "matern32", "rational_quadratic", "linear", "polynomial"]
)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_round_trip(task, kernel):
    models = {
        "classification": KernelLogisticRegression(kernel, regularization=1.0).fit(X, X[:, 0] > 0),
        "regression": KernelRidge(kernel, regularization=1.0).fit(X, X[:, 0]),
    }
    pipeline = Pipeline([("model", models[task])])
    layout = Layout("columns", "y", 2, {"a": "number", "ä b": "text"}, {"id": "row numbers"}, 1, "integer")  # fmt: skip
    save(Model(pipeline, task, layout), Path("model.skops"))
    again = load(Path("model.skops"))
    assert (again.task, again.layout, again.taxonomy) == (task, layout, None)
    expected = pipeline.predict(X).astype(float)
    np.testing.assert_allclose(again.pipeline.predict(X), expected, rtol=1e-12)


def test_the_archive_says_what_it_is():
    save(Model(fitted(), "classification", LAYOUT), Path("model.skops"))
    with zipfile.ZipFile("model.skops") as archive:
        metadata = json.loads(archive.read("gramian.json"))
    assert metadata["gramian"] == gramian.__version__
    assert metadata["layout"]["target"] == "y"
    types = skops.io.get_untrusted_types(file="model.skops")
    assert isinstance(skops.io.load("model.skops", trusted=types), Pipeline)  # a plain skops file


def test_a_pickle_is_refused_and_not_opened():
    Path("model.skops").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(UserError, match="is not a model of `gramian fit`"):
        load(Path("model.skops"))
    assert not Path("trapped").exists()


def test_a_pickled_array_inside_is_refused_and_not_opened():
    write_archive(fitted())
    with zipfile.ZipFile("model.skops") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    trap = io.BytesIO()
    np.save(trap, np.array([Trap()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile("model.skops", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, trap.getvalue() if name.endswith(".npy") else content)
    with pytest.raises(UserError, match="damaged"):
        load(Path("model.skops"))
    assert not Path("trapped").exists()


def test_foreign_types_are_named_and_refused():
    write_archive(fitted(extra=Foreign()))
    with pytest.raises(UserError, match=r"types that no model needs: .*Foreign"):
        load(Path("model.skops"))


@pytest.mark.parametrize("function", [eval, print, np.load, json.loads])
def test_functions_are_refused(function):
    steps = [("columns", FunctionTransformer(function)), *fitted().steps]
    write_archive(Pipeline(steps))
    with pytest.raises(UserError, match=rf"refused.*{function.__name__}"):
        load(Path("model.skops"))


@pytest.mark.parametrize(
    "metadata",
    [[], {}, {"task": "cooking"}, {"task": "regression", "layout": {"colour": "red"}}, {"task": "regression"}],
)  # fmt: skip
def test_wrong_metadata(metadata):
    write_archive(fitted(), metadata)
    with pytest.raises(UserError, match="is not a model of `gramian fit`"):
        load(Path("model.skops"))


def test_a_skops_file_of_something_else():
    Path("model.skops").write_bytes(skops.io.dumps([1, 2]))
    with pytest.raises(UserError, match="is not a model of `gramian fit`"):
        load(Path("model.skops"))
    write_archive([1, 2])
    with pytest.raises(UserError, match="holds no model for classification"):
        load(Path("model.skops"))


def test_when_writing_fails_the_old_model_stays(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    Path("model.skops").write_text("old")
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"No space left on device: 'model.skops'"):
        save(Model(fitted(), "classification", LAYOUT), Path("model.skops"))
    assert [path.name for path in Path().iterdir()] == ["model.skops"]
    assert Path("model.skops").read_text() == "old"


def test_the_command_refuses_in_one_line(refused):
    Path("model.skops").write_bytes(pickle.dumps(Trap()))
    Path("new.npz").touch()
    assert "is not a model" in refused("predict", "model.skops", "new.npz")
