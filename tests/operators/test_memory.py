"""A streamed product takes less than 64 MiB on top of its input and output, measured by the operating system.

One process of its own makes all measurements. For each, a small product compiles and warms up; then the peak of the
resident memory is reset (Linux) and read again after the product in question.
"""

import json
import os
import subprocess
import sys

import pytest

MiB = 2**20

SCRIPT = """
import json, resource, sys
import numpy as np
from gramian.kernels import RBF, Linear, Matern, RationalQuadratic, White
from gramian.operators import Dense, Streamed

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))

def growth(action):
    # of the resident memory at its highest point
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # resets the peak to what is resident now
        now, peak = status("VmRSS"), lambda: status("VmHWM")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        now = peak()
    result = action()
    grown = peak() - now
    assert np.all(np.isfinite(result))
    return grown

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 10)).astype(np.float32)
b = rng.normal(size=(20_000, 1)).astype(np.float32)
found = {}

def product(name, kernel, n_rows, accurate=False):
    small = Streamed(kernel, X[:2500])
    operator = Streamed(kernel, X) if n_rows == len(X) else Streamed(kernel, X[:n_rows], X)
    if accurate:
        small.accurate(b[:2500])
        found[name] = growth(lambda: operator.accurate(b))
    else:
        small @ b[:2500]
        found[name] = growth(lambda: operator @ b)

def gradient(name, kernel):
    Streamed(kernel, X[:500]).vjp(b[:500], b[:500])
    operator = Streamed(kernel, X[:1500], X)
    found[name] = growth(lambda: operator.vjp(b[:1500], b))

product("rbf", RBF(3.0), 20_000)
product("matern12", Matern(3.0, nu=0.5), 1500)
product("matern52", Matern([3.0] * 10, nu=2.5), 1500)
product("rational_quadratic", RationalQuadratic(3.0), 1500)
product("composed", RBF(3.0) * Linear() + White(1.0), 1500)
product("accurate", RBF(3.0), 1500, accurate=True)
gradient("rbf gradient", RBF([3.0] * 10))
gradient("matern gradient", Matern([3.0] * 10, nu=2.5))
Dense(Matern(2.0), X[:500])
found["dense"] = growth(lambda: Dense(Matern(2.0), X[:6000]).matrix)
found["128 MiB"] = growth(lambda: np.ones(128 * 2**20 // 8))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def growth() -> dict[str, int]:
    """Bytes by which each product raised the resident memory."""
    # a fixed threshold gives freed arrays back at once, so that one measurement cannot hide in another's memory
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "131072"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_measure_sees_an_allocation(growth):
    """Otherwise the tests below could not fail."""
    assert 127 * MiB < growth["128 MiB"] < 132 * MiB


def test_a_streamed_rbf_product_takes_little_memory(growth):
    """20 000 × 10 float32, one right-hand side; the matrix would take 1.5 GiB."""
    assert growth["rbf"] < 64 * MiB


@pytest.mark.parametrize("name", ["matern12", "matern52", "rational_quadratic", "composed"])
def test_a_tiled_product_takes_little_memory(name, growth):
    """Any kernel, 1 500 rows against 20 000: many tiles of 8 MiB, one at a time."""
    assert growth[name] < 64 * MiB


def test_a_product_summed_in_double_takes_little_memory(growth):
    assert growth["accurate"] < 64 * MiB


@pytest.mark.parametrize("name", ["rbf gradient", "matern gradient"])
def test_a_gradient_takes_little_memory(name, growth):
    """Ten length scales at once, tile by tile."""
    assert growth[name] < 64 * MiB


def test_building_a_dense_matrix_needs_no_second_one(growth):
    """6 000 × 6 000 float32 are 137 MiB; some tiles come on top, a second matrix does not."""
    matrix = 6000 * 6000 * 4
    assert matrix < growth["dense"] < matrix + 64 * MiB
