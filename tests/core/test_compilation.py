"""Ctrl-C while Numba compiles is neither lost nor leaves anything half compiled."""

import signal

import numba
import numpy as np
import pytest
from numba.extending import overload

from gramian._core import compilation


def half(x):
    raise NotImplementedError


@pytest.fixture
def interrupted_by():
    """Functions whose compilation is interrupted once, and how often the rest of it went on."""
    went_on = []
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # workers of the tests may ignore it

    @overload(half)
    def half_of(x):
        if not went_on:
            signal.raise_signal(signal.SIGINT)
        went_on.append(x)
        return lambda x: x / 2

    yield went_on
    signal.signal(signal.SIGINT, before)


def test_an_interruption_comes_at_the_end_of_a_compilation(interrupted_by):
    function = numba.njit(lambda x: half(x) + 1)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        function(3.0)
    assert interrupted_by, "the compilation was left in the midst"
    assert signal.getsignal(signal.SIGINT) is handler
    assert function(3.0) == 2.5


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS == 1, reason="there are no threads to give")
@pytest.mark.filterwarnings("ignore::numba.NumbaPerformanceWarning")  # of the body of the loop
def test_only_explicit_loops_get_threads():
    @compilation.parallel_loops(cache=False)  # what comes from a cache has no diagnostics
    def doubled(x):
        out = np.empty_like(x)
        for i in numba.prange(x.size):
            out[i] = 2 * x[i]
        return out + x

    for dtype in (np.float64, np.float32):  # the options hold for every signature
        np.testing.assert_array_equal(doubled(np.ones(3, dtype)), 3.0)
        threaded = doubled.threaded
        options = threaded.overloads[threaded.signatures[-1]].metadata["parfor_diagnostics"]
        assert options.count_parfors() == 1
