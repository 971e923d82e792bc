"""The line of the user that a warning should point to."""

import sys

_INSIDE = ("gramian", "sklearn")  # packages whose own lines a warning does not point to


def level_of_caller() -> int:
    """Return the stack level of the nearest line outside gramian and scikit-learn, for `warnings.warn`."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    return level
