"""Threads: long compiled loops side by side, short ones on Numba's threads, and BLAS with one thread.

Most loops release the GIL (``nogil=True``) and are called by threads of Python, for one part of the work each::

    share(loop, count, *arguments)  # loop(first, last, *arguments) for parts of range(count)

To wake such a thread takes 50 to 100 microseconds. Products that take less than a millisecond and follow each other
closely (with small stored matrices, sparse features and pairs) run on Numba's own threads, which spin
(`compilation.parallel_loops`). These are used sparingly: a loop over threads takes several times as long to compile as
its body, and two threads that use Numba's fallback layer ("workqueue") at once end the *process*. Estimators are called
from threads all the time (joblib's threading backend, Dask workers), so such loops are called under one lock::

    with exclusive():
        _some_parallel_loop(...)

Keep such a region short (a fraction of a second), and call no user code inside it. The lock is re-entrant, so that one
guarded function may call another. It is made anew in a forked child, as are the threads, which do not exist there.

How many threads work is what Numba says (``NUMBA_NUM_THREADS``, `numba.set_num_threads`).
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import Any, TypeVar

import numba
from threadpoolctl import ThreadpoolController

from gramian._core.interruptions import raise_if_noted, shielded

Result = TypeVar("Result")

_GATE = SimpleNamespace(lock=threading.RLock())


class _Helpers:
    """Threads that help the calling one; they are started when first needed and wait for work from then on."""

    def __init__(self) -> None:
        self.tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.number = 0
        self.growing = threading.Lock()

    def ask(self, task: Callable[[], None], number: int) -> None:
        """Let ``number`` threads call a task that does not raise."""
        with self.growing:
            while self.number < number:
                threading.Thread(target=self._serve, name="gramian", daemon=True).start()
                self.number += 1
        for _ in range(number):
            self.tasks.put(task)

    def _serve(self) -> None:
        while True:
            self.tasks.get()()


@cache
def _helpers() -> _Helpers:
    return _Helpers()


def _forget_threads() -> None:
    """Make lock and helpers anew: a forked child has no thread but the one that forked."""
    _GATE.lock = threading.RLock()
    _helpers.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def number_of_threads() -> int:
    """Return how many threads work; Numba asks under a lock of its own that an interruption would leave closed."""
    with shielded():
        return numba.get_num_threads()


def exclusive() -> AbstractContextManager[Any]:
    """Return the lock under which loops on Numba's threads are called, for a ``with`` statement."""
    return _GATE.lock


def share(
    loop: Callable[..., Any],
    count: int,
    *arguments: Any,
    alone: bool = False,
    most: int | None = None,
) -> None:
    """Call ``loop(first, last, *arguments)`` for parts of ``range(count)``, one for each thread.

    Parameters
    ----------
    loop : compiled function that releases the GIL
        It works for a tenth of a millisecond at least; what takes less is better called directly.
    count : int
    *arguments
        What else the loop needs; no two numbers of the range write to the same place.
    alone : bool, default=False
        Whether the calling thread does it all, because waking others would take longer.
    most : int, optional
        The largest part: smaller ones even out what takes differently long, and Ctrl-C gets through between them.
    """
    if alone:
        loop(0, count, *arguments)
    else:
        in_parts(lambda first, last: loop(first, last, *arguments), count, most)


def in_parts(
    task: Callable[[int, int], Result], count: int, most: int | None = None
) -> list[Result]:
    """Return ``task(first, last)`` for parts of ``range(count)``, as `share` makes them."""
    n_parts = max(1, min(count, number_of_threads()), -(-count // (most or max(1, count))))
    ends = [count * part // n_parts for part in range(n_parts + 1)]
    return side_by_side(lambda part: task(ends[part], ends[part + 1]), n_parts)


def side_by_side(task: Callable[[int], Result], count: int) -> list[Result]:
    """Return ``task(0)``, …, ``task(count - 1)``; a thread that is done with one takes the next.

    Tasks are compiled functions that release the GIL, and do not call this function themselves. After an error or an
    interruption no further task begins, and those that run are waited for: nothing is written to arrays of the caller
    any more. In a fit, interruptions come between tasks only.
    """
    number = min(count, number_of_threads()) - 1
    if number < 1:
        return [task(k) for k in range(count)]
    results: list[Any] = [None] * count
    errors: list[BaseException] = []
    # threads take turns with the interpreter, so that no two of them get the same number
    numbers = iter(range(count))
    left: list[None] = []
    bell: SimpleQueue[None] = SimpleQueue()

    def work() -> None:
        try:
            for number in numbers:
                raise_if_noted()
                results[number] = task(number)
        finally:
            for _ in numbers:  # there are some after an error only
                pass

    def help_out() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
        left.append(None)
        bell.put(None)

    with shielded():
        _helpers().ask(help_out, number)
        try:
            work()
        finally:
            _wait(bell, left, number)
    if errors:
        raise errors[0]
    return results


def _wait(bell: SimpleQueue[None], left: list[None], number: int) -> None:
    """Return when ``number`` helpers have left; Ctrl-C is raised then."""
    interruption = None
    while len(left) < number:
        try:
            bell.get(timeout=1.0)
        except Empty:  # an interruption may have swallowed a ring
            pass
        except KeyboardInterrupt as error:
            interruption = error
    if interruption is not None:
        raise interruption


@contextmanager
def one_thread() -> Iterator[None]:
    """Let the calling thread do everything itself."""
    with shielded():
        before = numba.get_num_threads()
        try:
            numba.set_num_threads(1)
            yield
        finally:
            numba.set_num_threads(before)


@cache
def _controller() -> ThreadpoolController:
    # Finding the loaded libraries takes milliseconds; setting their number of threads microseconds.
    return ThreadpoolController()


def blas_libraries() -> list[dict[str, Any]]:
    """Return what is known about the BLAS libraries that are loaded."""
    return [library for library in _controller().info() if library.get("user_api") == "blas"]


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread, for loops that call it from each of several threads.

    The limit is that of the whole process, so one thread at a time sets it and takes it back. In a fit, interruptions
    wait until it is taken back.
    """
    # threadpoolctl's own context manager does the same in 18 instead of 4 microseconds
    libraries = [lib for lib in _controller().lib_controllers if lib.user_api == "blas"]
    with shielded(), exclusive():
        threads = [library.get_num_threads() for library in libraries]
        try:
            for library in libraries:
                library.set_num_threads(1)
            yield
        finally:
            try:
                _set_threads(libraries, threads)
            except KeyboardInterrupt:  # it must not leave BLAS with one thread for good
                _set_threads(libraries, threads)
                raise


def _set_threads(libraries: list[Any], numbers: list[int]) -> None:
    for library, number in zip(libraries, numbers, strict=True):
        library.set_num_threads(number)


def quiet_blas(flops: float) -> AbstractContextManager[None]:
    """Limit BLAS to one thread for small tasks between compiled products.

    Its threads spin for a while after a task; a compiled product right after one took twice as long.
    """
    return nullcontext() if flops > 2e9 else single_threaded_blas()
