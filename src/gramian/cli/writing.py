"""Writing files: a file of the same name is replaced only by one that is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gramian.cli import errors


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a place to write to, and move what is there to ``path`` when the block is done.

    What is written is on the disk before it takes the name. After an error, Ctrl-C or a full disk the old file is as it
    was; a process that is killed leaves a file whose name begins with a dot. An OSError names ``path``.
    """
    unfinished = path.with_name(
        f".{os.getpid()}.{path.name}"
    )  # the ending says what kind of file it is
    try:
        with errors.naming(path):
            yield unfinished
            with unfinished.open("rb+") as file:
                os.fsync(file.fileno())
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
