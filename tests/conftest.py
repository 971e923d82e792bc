"""Shared fixtures. Array API support in SciPy is asked for before anything imports SciPy."""

import importlib
import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numba
import numpy as np
import pytest

# Parallel regions on a dozen rows cost more than they give, and fifty times as much where workers share the cores.
numba.set_num_threads(1)


# Few tests that take long: these files begin first, so that no worker is left with one of them at the end.
LONGEST = (
    "margin/test_margin_solvers.py",
    "compiled/test_radial.py",
    "contrast/test_ascent.py",
    "margin/test_multilabel.py",
    "margin/test_multilabel_checks.py",
    "zero_shot/test_zero_shot_attributes.py",
    "estimators/test_sklearn_checks.py",
    "operators/test_operators.py",
    "tree/test_hierarchical_svc_checks.py",
    "pairs/test_pairwise.py",
    "tree_code/test_near_cells.py",
    "margin/test_coordinate_ascent.py",
    "test_walks.py",
)


def pytest_collection_modifyitems(items):
    """Put the files of `LONGEST` first, in their order; the others keep theirs."""

    def place(item):
        name = item.path.as_posix()
        return next((k for k, end in enumerate(LONGEST) if name.endswith(end)), len(LONGEST))

    items.sort(key=place)


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that starts alike in every test."""
    return np.random.default_rng(20_240_601)


def _read_only(*shape: int, seed: int) -> np.ndarray:
    array = np.random.default_rng(seed).normal(size=shape)
    array.setflags(write=False)
    return array


@pytest.fixture(scope="session")
def X() -> np.ndarray:
    """Fourteen examples of three features; read-only, so that no test can disturb another."""
    return _read_only(14, 3, seed=0)


@pytest.fixture(scope="session")
def X_new() -> np.ndarray:
    """Six other examples; read-only."""
    return _read_only(6, 3, seed=1)


@pytest.fixture
def all_threads():
    """As many threads as a user has, for tests of what parallel loops compute."""
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    yield
    numba.set_num_threads(1)


@pytest.fixture
def one_thread():
    """One thread is the default of all tests; this gives the others back after a test that took them by itself."""
    yield
    numba.set_num_threads(1)


@pytest.fixture(params=["numpy", "array_api_strict", "torch"])
def xp(request):
    """An array namespace: NumPy, the strictest reading of the standard, and PyTorch where installed."""
    if request.param == "numpy":
        return np
    pytest.importorskip(request.param)
    if request.param == "torch":
        return importlib.import_module("array_api_compat.torch")
    return importlib.import_module(request.param)
