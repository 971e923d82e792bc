"""The line of the user that a warning should point to."""

import sys

__all__ = ["level_of_caller"]


def level_of_caller() -> int:
    """Return the stack level of the nearest line outside gramian and scikit-learn, for `warnings.warn`."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] in (
        "gramian",
        "sklearn",
    ):
        level, frame = level + 1, frame.f_back
    return level
