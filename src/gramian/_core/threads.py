"""Threads: one parallel Numba region at a time, and compiled tasks side by side.

Numba's fallback threading layer ("workqueue") is not thread-safe: two Python threads that enter parallel
regions at once end the *process* ("Concurrent access has been detected"). Estimators are called from
threads all the time (joblib's threading backend, Dask workers), so every call of a parallel kernel
in this package is made under one lock::

    with exclusive():
        _some_parallel_kernel(...)

Nothing is lost: a parallel region uses all cores anyway. Keep each region short (a fraction of a
second) and do not call user code inside it. The lock is re-entrant, so that one guarded function may call another,
and it is made anew in a forked child, whose copy might have been taken by a thread that does not exist there.

Tasks that take milliseconds are better run by `side_by_side`: compiling a loop over threads takes several times as long
as compiling its body, which Numba optimises once for itself and twice more for the loop.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeVar

import numba
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

_GATE = SimpleNamespace(lock=threading.RLock())


@cache
def _helpers() -> ThreadPoolExecutor:
    """The threads that help the calling one in `side_by_side`."""
    return ThreadPoolExecutor(thread_name_prefix="gramian")


def _forget_threads() -> None:
    """Make lock and helpers anew: a forked child has no thread but the one that forked."""
    _GATE.lock = threading.RLock()
    _helpers.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def exclusive() -> AbstractContextManager[Any]:
    """Return the lock under which parallel Numba kernels are called, for a ``with`` statement."""
    return _GATE.lock


def side_by_side(task: Callable[[int], Result], count: int) -> list[Result]:
    """Return ``task(0)``, …, ``task(count - 1)``, computed by as many threads as Numba would use.

    Tasks are compiled functions that release the GIL (``nogil=True``) and run for a fraction of a millisecond at least.
    After an error or an interruption no further task begins, and those that run are waited for: nothing is written to
    arrays of the caller any more.
    """
    results: list[Any] = [None] * count
    # threads take turns with the interpreter, so that no two of them get the same number
    numbers = iter(range(count))

    def work() -> None:
        try:
            for number in numbers:
                results[number] = task(number)
        finally:
            for _ in numbers:  # there are some after an error only
                pass

    helpers = [_helpers().submit(work) for _ in range(min(count, numba.get_num_threads()) - 1)]
    try:
        work()
    finally:
        wait(helpers)
    for helper in helpers:
        helper.result()
    return results


def in_parts(task: Callable[[int, int], Result], count: int) -> list[Result]:
    """Return ``task(start, stop)`` for parts of ``range(count)``, one for each thread, by `side_by_side`."""
    n_parts = numba.get_num_threads()
    ends = [count * part // n_parts for part in range(n_parts + 1)]
    return side_by_side(lambda part: task(ends[part], ends[part + 1]), n_parts)


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
