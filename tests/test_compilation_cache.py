"""Where compiled loops are kept: nowhere, if nothing can be written to, and in one place for ten processes at once."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gramian

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="takes rights away as Linux does"),
]

FITS = """
import os, sys
import numpy as np
import gramian
from gramian import KernelLogisticRegression, M3LClassifier, HierarchicalSVC

assert gramian.__file__.startswith(sys.argv[1]), gramian.__file__
assert not os.access(sys.argv[1], os.W_OK) or sys.argv[2] == "writable"
X = np.random.default_rng(0).normal(size=(60, 3))
y = (X[:, 0] > 0).astype(int)
models = (
    KernelLogisticRegression(regularization=1.0, operator="streamed"),
    M3LClassifier(1.0, kernel="rbf"),
    HierarchicalSVC({"a": [0], "b": [1]}, C=1.0),
)
for model in models:
    print(repr(model.fit(X, y).decision_function(X).sum().round(6)))
"""


def without_rights():
    """Let root be as others are: without the right to write everywhere (CAP_DAC_OVERRIDE)."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.fixture
def package(tmp_path):
    """A copy of the package that nothing was compiled for."""
    root = tmp_path / "packages"
    shutil.copytree(
        Path(gramian.__file__).parent,
        root / "gramian",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    yield root
    for folder, _, _ in os.walk(root):
        os.chmod(folder, 0o755)


def started(package, kind, **environment):
    left_out = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "IPYTHONDIR")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return subprocess.Popen(
        [sys.executable, "-W", "error::UserWarning", "-c", FITS, str(package), kind],
        env=kept | {"PYTHONPATH": str(package)} | environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=without_rights if os.geteuid() == 0 else None,
    )


def test_a_package_and_a_home_that_cannot_be_written_to(package, tmp_path):
    """Loops are compiled anew in each process; everything works."""
    home = tmp_path / "home"
    home.mkdir()
    for folder, _, _ in (*os.walk(package), *os.walk(home)):
        os.chmod(folder, 0o555)
    process = started(package, "read-only", HOME=str(home))
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors[-2000:]
    assert len(output.splitlines()) == 3
    assert not list(package.rglob("__pycache__"))


def test_a_package_that_cannot_be_written_to(package, tmp_path):
    """Loops are kept below the home folder."""
    home = tmp_path / "home"
    home.mkdir()
    for folder, _, _ in os.walk(package):
        os.chmod(folder, 0o555)
    process = started(package, "read-only", HOME=str(home))
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors[-2000:]
    assert len(output.splitlines()) == 3
    assert list(home.rglob("*.nbi"))


def test_ten_processes_compile_into_one_cache(package, tmp_path):
    cache = tmp_path / "cache"
    processes = [started(package, "writable", NUMBA_CACHE_DIR=str(cache)) for _ in range(10)]
    ended = [process.communicate(timeout=900) for process in processes]
    assert [process.returncode for process in processes] == [0] * 10, ended
    assert len({output for output, _ in ended}) == 1
    assert list(cache.rglob("*.nbi"))
    again = started(package, "writable", NUMBA_CACHE_DIR=str(cache))
    assert again.communicate(timeout=300)[0] == ended[0][0]
