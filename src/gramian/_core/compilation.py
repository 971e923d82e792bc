"""How loops are compiled: threads for explicit loops only, none in a forked process, and no interruption in the midst.

LLVM reports to Python through C functions that cannot raise. A KeyboardInterrupt there is printed and forgotten, and
what was half compiled fails later with errors of its own. So Ctrl-C is noted while the main thread compiles, and raised
when the function is done; other threads receive no signals.

Threads of GNU OpenMP, which Numba uses on Linux, end a forked process if they had worked before the fork. So loops are
compiled a second time there, without threads.
"""

import os
import signal
import threading
from collections.abc import Callable
from functools import wraps
from types import FunctionType, SimpleNamespace
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.cpu_options import ParallelOptions

_PROCESS = SimpleNamespace(forked=False)


def _note_fork() -> None:
    _PROCESS.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def parallel_loops(*, cache: bool = True, **options: Any) -> Any:
    """Compile a function whose ``prange`` loops run on all threads, for use as a decorator.

    Numba would also give threads to every array expression, which adds up to half to the time of the compilation. In a
    forked process the loops run on the calling thread.
    """
    others = (
        "comprehension",
        "reduction",
        "inplace_binop",
        "setitem",
        "numpy",
        "stencil",
        "fusion",
    )
    # a dictionary, the public way to say this, is empty after the first signature
    only_loops: Any = ParallelOptions(dict.fromkeys(others, False))

    def compiled(function: FunctionType) -> Callable[..., Any]:
        threaded = numba.njit(cache=cache, parallel=only_loops, **options)(function)
        alone = numba.njit(cache=cache, **options)(_alone(function))

        @wraps(function)
        def loop(*arguments: Any) -> Any:
            return (alone if _PROCESS.forked else threaded)(*arguments)

        loop.threaded = threaded  # type: ignore[attr-defined]
        return loop

    return compiled


def _alone(function: FunctionType) -> FunctionType:
    """The same function under another name: Numba keeps what it compiled by name, whatever the options were."""
    name = f"{function.__qualname__}_alone"
    twin = FunctionType(function.__code__, function.__globals__, name, function.__defaults__)
    twin.__qualname__, twin.__module__ = name, function.__module__
    return twin


def read_only(values: np.ndarray) -> np.ndarray:
    """A view that cannot be written to: loops are compiled once and not anew for memory-mapped arrays."""
    view = values.view(np.ndarray)
    view.setflags(write=False)
    return view


class _Deferral(event.Listener):
    """Puts Ctrl-C off to the end of the outermost compilation."""

    def __init__(self) -> None:
        self.depth, self.noted, self.usual = 0, False, None

    def on_start(self, event: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if self.depth == 0:
            self.usual, self.noted = signal.getsignal(signal.SIGINT), False
            if callable(self.usual):
                signal.signal(signal.SIGINT, self.note)
        self.depth += 1  # after the handler is another one: nothing is raised between the two

    def note(self, number: int, frame: Any) -> None:
        self.noted = True

    def on_end(self, event: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self.depth -= 1
        if self.depth == 0 and callable(self.usual):
            signal.signal(signal.SIGINT, self.usual)
            if self.noted:
                self.usual(signal.SIGINT, None)


event.register("numba:compile", _Deferral())
