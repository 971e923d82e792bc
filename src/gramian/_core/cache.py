"""A place for compiled loops where Numba finds none: neither the package nor the home folder can be written to.

Numba refuses to make a function that it cannot keep, so that the package could not be imported. Loops are then kept for
as long as the process lives. Who sets NUMBA_CACHE_DIR compiles once for all processes.
"""

import atexit
import os
import shutil
import tempfile

import numba


def ensure_cache() -> None:
    """Let Numba keep compiled functions in a temporary folder if it has no other."""
    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:
        folder = tempfile.mkdtemp(prefix="gramian-")
        numba.config.CACHE_DIR = folder  # type: ignore[attr-defined]
        atexit.register(_remove, folder, os.getpid())


def _probe() -> None:
    """Is asked for its place, never compiled."""


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked process leaves it alone
        shutil.rmtree(folder, ignore_errors=True)
