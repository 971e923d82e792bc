"""What a solver needs of a problem: declared beside the solver, checked in one place, named in one kind of error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gramian._core.arrays import is_numpy
from gramian.losses import Squared
from gramian.solvers.rkhs.problem import Problem


class Requirement(NamedTuple):
    """Something that a solver needs.

    Attributes
    ----------
    words : str
        What is needed, as the error message says it.
    part : str
        The part of a `Problem` that has it or lacks it.
    check : callable
        Whether that part has it.
    error : type
    """

    words: str
    part: str
    check: Callable[[Any], bool]
    error: type[Exception] = ValueError

    def met(self, problem: Problem) -> bool:
        """Whether a problem has what is needed."""
        return self.check(getattr(problem, self.part))


NUMPY_ARRAYS = Requirement("NumPy arrays", "targets", is_numpy, TypeError)
SUM_OVER_EXAMPLES = Requirement(
    "a loss that is a sum over examples", "loss", lambda loss: loss.separable
)
SQUARED_LOSS = Requirement("the loss Squared()", "loss", lambda loss: loss == Squared())
NO_WEIGHTS = Requirement("a problem without sample_weight", "weights", lambda w: w is None)
COMPLETE_KRONECKER = Requirement(
    "the Kronecker kernel in its dual form and every pair of the objects exactly once",
    "operator",
    lambda operator: operator.kronecker() is not None,
)


def require(
    problem: Problem, solver: str, requirements: Sequence[Requirement], *, instead: str
) -> None:
    """Raise an error that names the solver, what it needs, what lacks it, and which solver to use instead."""
    for requirement in requirements:
        if not requirement.met(problem):
            words, part, _, error = requirement
            found = f"{part} of type {type(getattr(problem, part)).__name__}"
            raise error(f"solver={solver!r} needs {words}, got {found}. Use solver={instead!r}.")
