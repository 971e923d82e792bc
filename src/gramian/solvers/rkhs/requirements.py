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
        What is needed, as it stands in the error message.
    met : callable
        Whether a problem has it.
    found : callable
        What the problem has instead.
    error : type
    """

    words: str
    met: Callable[[Problem], bool]
    found: Callable[[Problem], Any]
    error: type[Exception] = ValueError


NUMPY_ARRAYS = Requirement(
    "NumPy arrays",
    lambda problem: is_numpy(problem.targets),
    lambda problem: f"targets of type {type(problem.targets).__name__}",
    TypeError,
)
SUM_OVER_EXAMPLES = Requirement(
    "a loss that is a sum over examples",
    lambda problem: problem.loss.separable,
    lambda problem: f"the loss {problem.loss!r}",
)
SQUARED_LOSS = Requirement(
    "the loss Squared()",
    lambda problem: problem.loss == Squared(),
    lambda problem: f"the loss {problem.loss!r}",
)
NO_WEIGHTS = Requirement(
    "a problem without sample_weight",
    lambda problem: problem.weights is None,
    lambda problem: "weights",
)
COMPLETE_KRONECKER = Requirement(
    "the Kronecker kernel in its dual form, every pair of the objects exactly once, and intercept_variance=0",
    lambda problem: problem.operator.kronecker() is not None,
    lambda problem: f"the operator {type(problem.operator).__name__} without that structure",
)


def require(
    problem: Problem, solver: str, requirements: Sequence[Requirement], *, instead: str
) -> None:
    """Raise an error that names the solver, what it needs, what it got, and which solver to use instead."""
    for words, met, found, error in requirements:
        if not met(problem):
            raise error(
                f"solver={solver!r} needs {words}, got {found(problem)}. Use solver={instead!r}."
            )
