"""Ctrl-C in a fit: raised wherever it may be, put off where it may not be, and never lost."""

import signal
import sys
import threading
from types import SimpleNamespace

import numba
import pytest

from gramian._core import threads
from gramian._core.interruptions import interruptible, raise_if_noted, shielded
from gramian._core.threads import one_thread, side_by_side, single_threaded_blas


def interrupt():
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def usual_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_an_interruption_is_raised_at_once():
    passed = []

    @interruptible
    def fit():
        interrupt()
        passed.append(True)

    with pytest.raises(KeyboardInterrupt):
        fit()
    assert not passed


def test_in_a_shielded_region_it_is_raised_at_the_end():
    passed = []

    @interruptible
    def fit():
        with shielded():
            with shielded():
                interrupt()
            passed.append("inner")
        passed.append("outer")

    with pytest.raises(KeyboardInterrupt):
        fit()
    assert passed == ["inner"]


def test_a_long_region_can_be_left():
    passed = []

    @interruptible
    def fit():
        with shielded():
            raise_if_noted()
            interrupt()
            raise_if_noted()
            passed.append(True)

    with pytest.raises(KeyboardInterrupt):
        fit()
    assert not passed


class Interrupting:
    """An object that is disposed of just when Ctrl-C is pressed."""

    def __del__(self):
        interrupt()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_python_loses_is_raised_after_the_next_region():
    passed = []

    @interruptible
    def fit():
        Interrupting()
        passed.append("lost")
        with shielded():
            passed.append("shielded")
        passed.append("after it")

    with pytest.raises(KeyboardInterrupt):
        fit()
    assert passed == ["lost", "shielded"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_python_loses_at_the_end_is_raised_at_the_end():
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: Interrupting() and None)()


def test_an_interruption_is_told_after_an_error():
    @interruptible
    def fit():
        with shielded():
            interrupt()
            raise ZeroDivisionError

    with pytest.raises(KeyboardInterrupt) as raised:
        fit()
    assert isinstance(raised.value.__context__, ZeroDivisionError)


def test_other_handlers_are_told_once():
    told = []
    signal.signal(signal.SIGINT, lambda number, frame: told.append(number))

    @interruptible
    def fit():
        interrupt()
        with shielded():
            interrupt()
        return interruptible(lambda: "fitted")()

    try:
        assert fit() == "fitted"
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert told == [signal.SIGINT] * 2


def test_other_threads_and_no_fit_change_nothing():
    results = []

    @interruptible
    def fit():
        with shielded():
            raise_if_noted()
        results.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    with shielded():
        raise_if_noted()
    assert results == [signal.default_int_handler]


class Library:
    """A BLAS that can be asked for its number of threads."""

    user_api = "blas"

    def __init__(self):
        self.number = 2

    def get_num_threads(self):
        return self.number

    def set_num_threads(self, number):
        self.number = number


def limited_blas():
    with single_threaded_blas():
        pass


def limited_loops():
    with one_thread():
        pass


def shared():
    side_by_side(lambda number: number, 4)


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("region", [limited_blas, limited_loops, shared])
def test_interruptions_at_every_line_leave_everything_as_it_was(region, monkeypatch):
    library = Library()
    controller = SimpleNamespace(lib_controllers=[library])
    monkeypatch.setattr(threads, "_controller", lambda: controller)
    n_threads = numba.get_num_threads()
    region()  # helpers exist from now on
    seen = line = 0
    reached = True

    def trace(frame, event, argument):
        nonlocal seen, reached
        if frame.f_code.co_filename.endswith("interruptions.py"):
            return None  # its lines are few, and stand where Python does not look for signals
        seen += event == "line"
        if event == "line" and seen == line:
            reached = True
            interrupt()
        return trace

    def fit():
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            region()
        finally:
            sys.settrace(before)

    while reached:
        line, seen, reached = line + 1, 0, False
        try:
            interruptible(fit)()
        except KeyboardInterrupt:
            assert reached
        else:
            assert not reached
        assert library.number == 2
        assert numba.get_num_threads() == n_threads
        assert threads.exclusive().acquire(blocking=False)
        threads.exclusive().release()
    assert line > 5
