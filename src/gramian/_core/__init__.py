"""What every room stands on: arrays of any library, threads, checks of arguments, memory, warnings."""

from gramian._core.cache import ensure_cache

ensure_cache()  # before the first function is made
