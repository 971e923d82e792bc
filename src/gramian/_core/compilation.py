"""How compiled loops are compiled: threads for explicit loops only, and no interruption in the midst of it.

LLVM reports to Python through C functions that cannot raise. A KeyboardInterrupt there is printed and forgotten, and
what was half compiled fails later with errors of its own. So Ctrl-C is noted while the main thread compiles, and raised
when the function is done; other threads receive no signals.
"""

import signal
import threading
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.cpu_options import ParallelOptions


def parallel_loops(*, cache: bool = True, **options: Any) -> Any:
    """Compile a function whose ``prange`` loops run on all threads, for use as a decorator.

    Numba would also give threads to every array expression, which adds up to half to the time of the compilation.
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
    return numba.njit(cache=cache, parallel=only_loops, **options)


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
        self.depth += 1
        if self.depth == 1:
            self.usual, self.noted = signal.getsignal(signal.SIGINT), False
            if callable(self.usual):
                signal.signal(signal.SIGINT, self.note)

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
