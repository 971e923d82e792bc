"""One parallel Numba region at a time.

Numba's fallback threading layer ("workqueue") is not thread-safe: two Python threads that enter parallel
regions at once end the *process* ("Concurrent access has been detected"). Estimators are called from
threads all the time (joblib's threading backend, Dask workers), so every call of a parallel kernel
in this package is made under one lock::

    with exclusive():
        _some_parallel_kernel(...)

Nothing is lost: a parallel region uses all cores anyway. Keep each region short (a fraction of a
second) and do not call user code inside it. The lock is re-entrant, so that one guarded function may call another,
and it is made anew in a forked child, whose copy might have been taken by a thread that does not exist there.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from types import SimpleNamespace
from typing import Any

import numba
from threadpoolctl import ThreadpoolController

_GATE = SimpleNamespace(lock=threading.RLock())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: vars(_GATE).update(lock=threading.RLock()))


def exclusive() -> AbstractContextManager[Any]:
    """Return the lock under which parallel Numba kernels are called, for a ``with`` statement."""
    return _GATE.lock


@contextmanager
def one_thread() -> Iterator[None]:
    """Run compiled loops on the calling thread: waking others takes longer than a small loop."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


@cache
def _controller() -> ThreadpoolController:
    # Finding the loaded libraries takes milliseconds; setting their number of threads microseconds.
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread, for kernels that call it from each of Numba's threads."""
    # threadpoolctl's own context manager does the same in 18 instead of 4 microseconds
    libraries = [lib for lib in _controller().lib_controllers if lib.user_api == "blas"]
    threads = [library.get_num_threads() for library in libraries]
    try:
        for library in libraries:
            library.set_num_threads(1)
        yield
    finally:
        for library, number in zip(libraries, threads, strict=True):
            library.set_num_threads(number)


def quiet_blas(flops: float) -> AbstractContextManager[None]:
    """Limit BLAS to one thread for small tasks between compiled products.

    Its threads spin for a while after a task; a compiled product right after one took twice as long.
    """
    return nullcontext() if flops > 2e9 else single_threaded_blas()
