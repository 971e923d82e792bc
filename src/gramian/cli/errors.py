"""What went wrong, in one line on stderr: no traceback for a mistake in a file name."""

from __future__ import annotations

import importlib.util
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130


class UserError(Exception):
    """Something the user can put right; the message says how."""


def visible(text: str) -> str:
    """Return the text with control characters written out, so that a terminal shows them and does not obey them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors into one line and an exit code: 2 for wrong usage, 130 for Ctrl-C, 1 otherwise."""
    try:
        yield
    except KeyboardInterrupt:
        message, code = "Stopped by Ctrl-C; nothing was written.", INTERRUPTED
    except (UserError, ValueError) as error:  # the library's ValueErrors name the argument, too
        message, code = str(error), WRONG_USAGE
    except BrokenPipeError:  # `| head` has seen enough; typer ends quietly
        raise
    except OSError as error:
        reason = error.strerror or error
        message, code = f"Cannot write {error.filename or 'the output'}: {reason}.", FAILED
    except MemoryError as error:
        message, code = f"Not enough memory. {error}", FAILED
    else:
        return
    typer.secho(visible(" ".join(message.split())), fg="red", err=True)
    raise typer.Exit(code)


@contextmanager
def readable_warnings() -> Iterator[None]:
    """Show each warning once, as a sentence without file and line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A ColumnTransformer has no progress to show; the model behind it has.
        warnings.filterwarnings("ignore", message=".*does not support callbacks")
        yield
    for message in dict.fromkeys(str(entry.message) for entry in caught):
        typer.secho(f"Note: {visible(' '.join(message.split()))}", fg="yellow", err=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError in the block name the file that was to be written."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def require(*packages: str, purpose: str) -> None:
    """Refuse early when an optional package is missing, and say which extra brings it."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f'{purpose} needs {" and ".join(missing)}: pip install "gramian[cli]"')


def refuse_options(why: str, **options: Any) -> None:
    """Name the first option that was given and does not apply."""
    for name, value in options.items():
        if value is not None:
            raise UserError(f"--{name.replace('_', '-')} {value} {why}")


def check_place(path: Path, formats: tuple[str, ...] = ()) -> None:
    """Refuse a place that cannot be written before the work, not after it."""
    if formats and path.suffix.lower() not in formats:
        raise UserError(f"{path} must end in one of {', '.join(formats)}.")
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise UserError(f"There is no folder {path.parent}; make it first.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"No permission to write {path}.")


def read_or_say(path: Path, read: Callable[[], Any]) -> Any:
    """Read, or say in one line why not."""
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    try:
        return read()
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror or error}.") from None
    except (ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"Cannot read {path}: {error}") from None
