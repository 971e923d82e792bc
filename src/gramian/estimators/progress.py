"""The order in which a fit tells scikit-learn's callbacks what it does.

A fit is a tree of tasks: the fit itself, its stages (searching hyperparameters, solving, calibrating) and their steps.
Callbacks are told when a task begins and ends, and may stop a stage after any of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from gramian.estimators.record import Fitted


@dataclass(frozen=True)
class Task:
    """A fit or one of its stages, and the arguments that every callback gets."""

    context: Any
    arguments: dict[str, Any]

    @property
    def watched(self) -> bool:
        """Whether there are callbacks; scikit-learn has no public name for them."""
        return bool(getattr(self.arguments["estimator"], "_skl_callbacks", ()))

    @contextmanager
    def stage(self, name: str, n_steps: int | None = None) -> Iterator[Task]:
        """Begin a stage, and end it unless an error ends the fit."""
        context = self.context.subcontext(task_name=name, max_subtasks=n_steps)
        yield from _told(replace(self, context=context))

    def step(self, name: str, fitted: Callable[[], Fitted] | None = None) -> bool:
        """Tell that a step is done; return whether a callback asks to stop.

        ``fitted`` makes the record of the model as it would be now, for callbacks that score it.
        """
        more = {}
        if fitted is not None:
            more["reconstruction_attributes"] = lambda: {"_fitted": fitted()}
        task = self.context.subcontext(task_name=name)
        return bool(task.call_on_fit_task_end(**self.arguments, **more))


@contextmanager
def fitting(estimator: Any, X: Any, y: Any, n_stages: int | None = None) -> Iterator[Task]:
    """Begin the fit of an estimator, and end it unless an error does; X and y are what callbacks get to see."""
    context = estimator._init_callback_context(max_subtasks=n_stages)
    yield from _told(Task(context, {"estimator": estimator, "X": X, "y": y}))


def _told(task: Task) -> Iterator[Task]:
    task.context.call_on_fit_task_begin(**task.arguments)
    yield task
    task.context.call_on_fit_task_end(**task.arguments)
