"""What went wrong, in one line on stderr: no traceback for a mistake in a file name."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["UserError", "one_line_errors", "readable_warnings", "require"]

WRONG_USAGE, INTERRUPTED = 2, 130


class UserError(Exception):
    """Something the user can put right; the message says how."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors into one line and an exit code: 2 for wrong usage, 130 for Ctrl-C, 1 otherwise."""
    try:
        yield
    except KeyboardInterrupt:
        _say("Stopped by Ctrl-C; nothing was written.")
        raise typer.Exit(INTERRUPTED) from None
    except (UserError, ValueError) as error:  # the library's ValueErrors name the argument, too
        _say(str(error))
        raise typer.Exit(WRONG_USAGE) from None
    except BrokenPipeError:  # `| head` has seen enough; typer ends quietly
        raise
    except OSError as error:
        _say(f"Cannot write {error.filename or 'the output'}: {error.strerror or error}.")
        raise typer.Exit(1) from None
    except MemoryError as error:
        _say(f"Not enough memory. {error}")
        raise typer.Exit(1) from None


@contextmanager
def readable_warnings() -> Iterator[None]:
    """Show each warning once, as a sentence without file and line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A ColumnTransformer has no progress to show; the model behind it has.
        warnings.filterwarnings("ignore", message=".*does not support callbacks")
        yield
    for message in dict.fromkeys(str(entry.message) for entry in caught):
        typer.secho(f"Note: {' '.join(message.split())}", fg="yellow", err=True)


def require(*packages: str, purpose: str) -> None:
    """Refuse early when an optional package is missing, and say which extra brings it."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f'{purpose} needs {" and ".join(missing)}: pip install "gramian[cli]"')


def _say(message: str) -> None:
    typer.secho(" ".join(message.split()), fg="red", err=True)
