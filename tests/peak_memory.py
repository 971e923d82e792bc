"""By how much an action raises the resident memory of a process of its own, as the operating system sees it.

One process makes all measurements of a script. Before each, a small action of the same kind compiles and warms up; then
the peak of the resident memory is reset (Linux) and read again after the action in question. Examples that were there
before, in memory or as pages of a mapped file, do not count.
"""

import json
import os
import subprocess
import sys

MiB = 2**20

PRELUDE = """
import json, resource, sys
import numpy as np

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))

def growth(action):
    # of the resident memory at its highest point
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # resets the peak to what is resident now
        now, peak = status("VmRSS"), lambda: status("VmHWM")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        now = peak()
    result = action()
    grown = peak() - now
    assert np.all(np.isfinite(result))
    return grown

found = {}
"""


def measured(script: str, *arguments: str) -> dict[str, int]:
    """Run a script that fills ``found``, and return that."""
    # a fixed threshold gives freed arrays back at once, so that one measurement cannot hide in another's memory
    # and threads beside those of another worker take many times as long, most of it waiting
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "131072", "NUMBA_NUM_THREADS": "1"}
    text = PRELUDE + script + "\nprint(json.dumps(found))"
    command = [sys.executable, "-c", text, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
