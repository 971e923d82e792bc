"""How much a compressed file may become: a megabyte of a hostile file can unpack to gigabytes.

What a file unpacks to is bounded by its own size before anything is unpacked. Arrays of an archive must not say that
they are larger than the bytes that the archive has for them.
"""

from __future__ import annotations

import gzip
import io
import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from gramian.cli.errors import UserError

MOST_GROWTH = 200  # times its size that a file may unpack to; tables and models grow tenfold, sparse ones fiftyfold
ALWAYS_ALLOWED = 256 * 2**20  # bytes, whatever the growth


def most_bytes(size: int) -> int:
    """What a file of so many bytes may unpack to."""
    return max(ALWAYS_ALLOWED, MOST_GROWTH * size)


def check_archive(content: bytes | Path, path: Path) -> None:
    """Refuse a zip archive that unpacks to too much, or whose arrays say that they are larger than they are.

    What is no archive raises the errors of `zipfile`.
    """
    size = content.stat().st_size if isinstance(content, Path) else len(content)
    source: Any = content if isinstance(content, Path) else io.BytesIO(content)
    with zipfile.ZipFile(source) as archive:
        _check_total(path, sum(entry.file_size for entry in archive.infolist()), size)
        for entry in archive.infolist():
            if entry.filename.endswith(".npy"):
                with archive.open(entry) as file:
                    _check_array(path, entry, file)


def open_gzip(path: Path) -> gzip.GzipFile:
    """Open a .gz file, unless it unpacks to too much.

    It is unpacked once to know, and nothing is kept of it: parsers take several times the memory of what they read.
    """
    size, total = path.stat().st_size, 0
    with gzip.open(path, "rb") as stream:
        while part := stream.read(2**20):
            total += len(part)
            _check_total(path, total, size)
    return gzip.open(path, "rb")


def _check_total(path: Path, total: int, size: int) -> None:
    if total > most_bytes(size):
        raise UserError(
            f"{path} has {size / 2**20:.1f} MiB and unpacks to more than {most_bytes(size) / 2**20:.0f} MiB, more than "
            "data or models do. Unpack it yourself if you trust it."
        )


def _check_array(path: Path, entry: zipfile.ZipInfo, file: IO[bytes]) -> None:
    """Compare the shape in the header of an array with the bytes that are there."""
    try:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
    except ValueError as error:
        raise UserError(f"{path} is damaged: {entry.filename}: {error}") from None
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > entry.file_size:
        raise UserError(
            f"{path} is damaged: {entry.filename} says that it has shape {shape}, which {entry.file_size} bytes cannot "
            "hold."
        )
