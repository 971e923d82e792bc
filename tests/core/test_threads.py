"""Compiled tasks side by side: results in order, errors passed on, nothing running afterwards."""

import multiprocessing
import threading
import time
from types import SimpleNamespace

import numba
import pytest

from gramian._core import threads
from gramian._core.threads import in_parts, side_by_side

pytestmark = pytest.mark.usefixtures("all_threads")


@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_results_are_in_order(count):
    assert side_by_side(lambda number: number**2, count) == [k**2 for k in range(count)]


@pytest.mark.parametrize("count", [0, 1, 100])
def test_parts_cover_everything_once(count):
    parts = in_parts(lambda start, stop: list(range(start, stop)), count)
    assert [number for part in parts for number in part] == list(range(count))
    assert len(parts) == max(1, min(count, numba.get_num_threads()))


def test_parts_are_no_larger_than_said():
    parts = in_parts(lambda start, stop: stop - start, 100, most=7)
    assert sum(parts) == 100
    assert max(parts) <= 7


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS == 1, reason="there is one thread only")
def test_tasks_run_at_the_same_time():
    both = threading.Barrier(2, timeout=60)
    side_by_side(lambda number: both.wait(), 2)  # would wait in vain for a second thread
    assert not both.broken


def test_one_thread_runs_all_tasks_itself(one_thread):
    numba.set_num_threads(1)
    names = side_by_side(lambda number: threading.current_thread().name, 5)
    assert set(names) == {threading.current_thread().name}


def test_after_an_error_nothing_runs():
    running, begun = set(), []

    def task(number):
        begun.append(number)
        running.add(number)
        try:
            time.sleep(0.01)
            if number == 1:
                raise ZeroDivisionError("of task 1")
        finally:
            running.discard(number)

    with pytest.raises(ZeroDivisionError, match="of task 1"):
        side_by_side(task, 1000)
    assert not running
    assert len(begun) < 1000


def _squares(count):
    return side_by_side(lambda number: number**2, count)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    _squares(4)  # the parent's threads exist now, and the child's copy of them does not run
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_squares, (4,)).get(timeout=60) == [0, 1, 4, 9]


def test_an_interruption_while_limits_are_taken_back_leaves_blas_as_it_was(monkeypatch):
    class Library:
        user_api, number, interrupted = "blas", 2, False

        def get_num_threads(self):
            return self.number

        def set_num_threads(self, number):
            if number == 2 and not Library.interrupted:
                Library.interrupted = True
                raise KeyboardInterrupt
            self.number = number

    controller = SimpleNamespace(lib_controllers=[Library(), Library()])
    monkeypatch.setattr(threads, "_controller", lambda: controller)
    with pytest.raises(KeyboardInterrupt), threads.single_threaded_blas():
        pass
    assert [library.number for library in controller.lib_controllers] == [2, 2]
