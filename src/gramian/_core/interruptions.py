"""Ctrl-C during a fit: it is never lost, and never comes between two halves of something that belongs together.

Python raises KeyboardInterrupt between any two steps of the main thread. This goes wrong in two ways. Where it is
raised while Python disposes of an object, it is printed and forgotten, and the fit goes on. And where it is raised
between a change of the whole process (threads of BLAS, say) and the line that takes the change back, the change stays.
So a fit is called by a function that notes Ctrl-C before it is raised (`interruptible`); a noted interruption is raised
again at the end of the next shielded region. Within such a region (`shielded`) Ctrl-C is noted only, and raised at its
end::

    with shielded():  # short: a product, or one part of a sweep
        change()
        ...
        change_back()

A region that takes longer calls `raise_if_noted` where it can be left. Only the main thread receives signals, so none
of this does anything in other threads, and regions outside of a fit are as they would be without it.
"""

import signal
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any


class _Watch:
    """What is known about Ctrl-C in the fit that runs in the main thread, if there is one."""

    def __init__(self) -> None:
        self.depth = 1  # of shielded regions; the beginning and the end of a fit are one
        self.noted = False
        self.usual: Any = None

    def note(self, number: int, frame: Any) -> None:
        self.noted = True
        if self.depth == 0:
            self.usual(number, frame)
            self.noted = False  # a handler that does not raise has been told

    def raise_noted(self) -> None:
        if self.noted:
            self.usual(signal.SIGINT, None)
            self.noted = False


class _Process:
    """The watch of this process, or None where no fit runs in the main thread."""

    watch: _Watch | None = None


def _watch_of_this_thread() -> _Watch | None:
    watch = _Process.watch
    if watch is None or threading.current_thread() is not threading.main_thread():
        return None
    return watch


def interruptible(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function heed every interruption while it runs in the main thread, for use as a decorator."""

    @wraps(function)
    def heeding(*arguments: Any, **named: Any) -> Any:
        in_main = threading.current_thread() is threading.main_thread()
        usual = signal.getsignal(signal.SIGINT) if in_main else None
        if _Process.watch is not None or not callable(usual):
            return function(*arguments, **named)
        watch = _Watch()
        watch.usual = usual
        try:
            signal.signal(signal.SIGINT, watch.note)
            _Process.watch = watch
            watch.depth = 0
            return function(*arguments, **named)
        except KeyboardInterrupt:
            watch.noted = False
            raise
        finally:
            # no call stands before this line, so that nothing is raised between the function and it
            watch.depth = 1
            _Process.watch = None
            signal.signal(signal.SIGINT, usual)
            watch.raise_noted()

    return heeding


class shielded:
    """Put Ctrl-C off to the end of a ``with`` statement, unless another error ends it."""

    def __enter__(self) -> None:
        self.watch = _watch_of_this_thread()
        if self.watch is not None:
            self.watch.depth += 1

    def __exit__(self, kind: Any, *details: Any) -> None:
        if self.watch is not None:
            self.watch.depth -= 1
            if kind is None and self.watch.depth == 0:
                self.watch.raise_noted()


def raise_if_noted() -> None:
    """Raise an interruption that was put off, from within a shielded region that can be left here."""
    watch = _watch_of_this_thread()
    if watch is not None:
        watch.raise_noted()
