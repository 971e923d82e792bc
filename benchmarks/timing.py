"""Seconds of a call, and whether a bar is met. Standard library only: peers in other interpreters use it, too.

Threads of BLAS spin for up to a tenth of a second after a product and disturb whatever runs next. Each
competitor is therefore timed in a block of its own, after a pause and a warm-up.
"""

from __future__ import annotations

import statistics
import time

PAUSE = 0.3  # seconds, for threads to fall asleep
WARM_UP = 0.05


def median_seconds(function, budget: float = 1.0, least: int = 3, most: int = 200) -> float:
    """Median of as many calls as fit the budget in seconds; after a pause and a warm-up.

    A call that takes longer than the budget is repeated ``least`` times, once if it takes longer than 5 s.
    """
    time.sleep(PAUSE)
    start = time.perf_counter()
    while True:
        function()
        warm = time.perf_counter() - start
        if warm > WARM_UP:
            break
    times: list[float] = []
    least = 1 if warm > 5 else least
    while len(times) < least or (sum(times) < budget and len(times) < most):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def once(function) -> tuple[float, object]:
    """Seconds and result of a single call, after a pause."""
    time.sleep(PAUSE)
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def prepared(build, use) -> tuple[float, float, object]:
    """Seconds of preparation and of a use, and what the first use returned.

    ``build()`` returns what ``use`` takes. What the first use does that later ones need not is preparation. A use of
    more than 5 s is not repeated.
    """
    building, thing = once(build)
    first, result = once(lambda: use(thing))
    seconds = first if first > 5 else median_seconds(lambda: use(thing))
    return building + max(0.0, first - seconds), seconds, result


def verdict(held: bool) -> str:
    """PASS or MISS."""
    return "PASS" if held else "MISS"
