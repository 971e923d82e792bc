"""Estimators keep within a budget where an n × n matrix would not fit, and do not copy examples in a file.

n and the budget are small, so that the tests are; what is shown is that no estimator takes n × n values.
"""

import pickle

import numpy as np
import pytest
import sklearn
from peak_memory import MiB, measured

from gramian import KernelLogisticRegression, KernelRidge, KernelSVC, M3LClassifier

pytestmark = pytest.mark.slow  # and best alone: threads beside those of other tests mostly wait

SCRIPT = """
import warnings
import sklearn
from gramian import (
    HierarchicalSVC, KernelLogisticRegression, KernelRidge, KernelSVC, M3LClassifier,
)
from gramian.kernels import RBF

warnings.simplefilter("ignore")  # one iteration is not enough
rng = np.random.default_rng(0)
tree = {"left": ["a", "b"], "right": ["c", "d"]}

def labels(X):
    signs = (X[:, :2] > 0).astype(int)
    return signs, np.array(["a", "b", "c", "d"])[signs @ [2, 1]]

def inner(names):
    return np.where(np.arange(len(names)) % 50 == 0, np.where(names < "c", "left", "right"), names)

def measure(name, model, X, y, small):
    with sklearn.config_context(working_memory=0.25):
        model.fit(X[:small], y[:small]).predict(X[:small])
    with sklearn.config_context(working_memory=16):
        found[name] = growth(lambda: model.fit(X, y).n_iter_)
        found[name + ", predict"] = growth(lambda: model.predict(X) != y)

once = {"max_iter": 1, "C": 1.0}
literal = {"max_iter": 1, "regularization": 1.0}
few = {"max_iter": 1, "regularization": 1e3}  # products
X = rng.normal(size=(8000, 4))
signs, names = labels(X)
measure("KernelRidge", KernelRidge(RBF(1.0), **literal), X, X[:, 0], 600)
measure("KernelRidge, Newton", KernelRidge(RBF(1.0), solver="newton", **literal), X, X[:, 0], 600)
measure("KernelRidge, linear", KernelRidge("linear", **literal), X, X[:, 0], 600)
measure("KernelLogisticRegression", KernelLogisticRegression(RBF(1.0), **literal), X, names, 600)
model = KernelLogisticRegression(RBF(1.0), hierarchy=tree, **few)
measure("KernelLogisticRegression, tree", model, X, names, 600)
measure("KernelLogisticRegression, inner labels", model, X[:4000], inner(names[:4000]), 600)
model = KernelLogisticRegression(RBF(1.0), hierarchy=tree, share="level", **few)
measure("KernelLogisticRegression, levels", model, X, names, 600)
measure("KernelSVC", KernelSVC(RBF(1.0), **few), X, names, 600)
measure("M3LClassifier, linear", M3LClassifier(**once), X, signs, 600)
measure("HierarchicalSVC, linear", HierarchicalSVC(tree, kernel="linear", **once), X, names, 600)
X = X[:5000].astype(np.float32)
signs, names = labels(X)
R = np.array([[1.0, 0.3], [0.3, 1.0]])
measure("M3LClassifier", M3LClassifier(kernel=RBF(1.0), label_correlation=R, tol=0.1, **once), X, signs, 600)
measure("HierarchicalSVC", HierarchicalSVC(tree, kernel=RBF(1.0), **once), X, names, 600)

path = sys.argv[1]
np.memmap(path, np.float64, "w+", shape=(700, 24_000))[:] = rng.standard_normal((700, 24_000))
X = np.memmap(path, np.float64, "r", shape=(700, 24_000))
X.sum()  # its pages are resident from here on
signs, names = labels(X)
options = {"operator": "streamed", **few}
measure("file, KernelRidge", KernelRidge("rbf", **options), X, X[:, 0].copy(), 100)
measure("file, KernelRidge, linear", KernelRidge("linear", operator="linear", **literal), X, X[:, 0].copy(), 100)
measure("file, KernelLogisticRegression", KernelLogisticRegression("rbf", **options), X, names, 100)
measure("file, KernelSVC", KernelSVC("matern32", **options), X, names, 100)
"""


@pytest.fixture(scope="module")
def growth(tmp_path_factory) -> dict[str, int]:
    """Bytes by which each fit and each prediction raised the resident memory."""
    return measured(SCRIPT, str(tmp_path_factory.mktemp("memory") / "X.bin"))


@pytest.mark.parametrize("step", ["", ", predict"])
@pytest.mark.parametrize(
    "name",
    [
        "KernelRidge",
        "KernelRidge, Newton",
        "KernelRidge, linear",
        "KernelLogisticRegression",
        "KernelLogisticRegression, tree",
        "KernelLogisticRegression, inner labels",
        "KernelLogisticRegression, levels",
        "KernelSVC",
        "M3LClassifier, linear",
        "M3LClassifier",
        "HierarchicalSVC, linear",
        "HierarchicalSVC",
    ],
)
def test_estimators_keep_within_the_budget(name, step, growth):
    """A working memory of 16 MiB and 64 MiB for all else; kernel values would take 95 MiB and more."""
    assert growth[name + step] < (16 + 64) * MiB


@pytest.mark.parametrize("step", ["", ", predict"])
@pytest.mark.parametrize(
    "name", ["KernelRidge", "KernelRidge, linear", "KernelLogisticRegression", "KernelSVC"]
)
def test_estimators_do_not_copy_a_memory_mapped_file(name, step, growth):
    """700 × 24 000 float64 in a read-only file, 128 MiB."""
    assert growth["file, " + name + step] < 64 * MiB


@pytest.fixture(params=[np.float32, np.float64])
def mapped(request, tmp_path) -> np.memmap:
    """Examples in a file that cannot be written to."""
    values = np.random.default_rng(0).normal(size=(60, 3)).astype(request.param)
    values.tofile(tmp_path / "X.bin")
    return np.memmap(tmp_path / "X.bin", request.param, "r", shape=(60, 3))


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge("rbf", operator="streamed", regularization=1.0),
        KernelRidge("matern12", operator="dense", regularization=1.0),
        KernelRidge("linear", operator="linear", regularization=1.0),
        KernelLogisticRegression("rational_quadratic", operator="streamed", regularization=1.0),
        KernelSVC("polynomial", operator="streamed", regularization=1.0),
        M3LClassifier(kernel="rbf"),
        M3LClassifier(),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.kernel}",
)
def test_a_file_gives_the_model_of_an_array(model, mapped):
    """The model refers to the file; pickled, it has a copy and needs the file no longer."""
    X, y = np.array(mapped), (mapped[:, 0] > 0).astype(int)
    expected = sklearn.clone(model).fit(X, y).predict(X)
    model = sklearn.clone(model).fit(mapped, y)
    np.testing.assert_array_equal(model.predict(mapped), expected)
    if isinstance(model, KernelRidge | KernelLogisticRegression | KernelSVC):
        assert np.shares_memory(model.X_fit_, mapped)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), expected)
    if hasattr(again, "X_fit_"):
        assert not np.shares_memory(again.X_fit_, mapped)
