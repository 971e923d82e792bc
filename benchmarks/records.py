"""What a benchmark of hours measured, a file for each set and seed, so that it can be made in pieces.

With ``--records DIR`` a cell that is there already is read and not measured again, and ``--recorded`` prints the tables
of what is there without measuring anything. Pieces may run side by side: each file is written by one rename.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """The folder of data, the seeds, and where cells are kept."""

    data: str | None
    seeds: tuple[int, ...] = (0,)
    sets: tuple[str, ...] | None = None  # None: all of a part
    records: Path | None = None
    recorded_only: bool = False

    def chosen(self, sets: Iterable[str]) -> list[str]:
        """The sets of a part that were asked for."""
        return [name for name in sets if self.sets is None or name in self.sets]

    def cells(self, part: str, name: str, measure: Callable[[int], Cell]) -> list[Cell]:
        """What was measured for each seed, now or before."""
        found = (self._cell(f"{part}-{name}-{seed}.json", measure, seed) for seed in self.seeds)
        return [cell for cell in found if cell is not None]

    def _cell(self, file: str, measure: Callable[[int], Cell], seed: int) -> Cell | None:
        path = None if self.records is None else self.records / file
        if path is not None and path.exists():
            return json.loads(path.read_text())
        if self.recorded_only:
            return None
        cell = measure(seed)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            whole = path.with_suffix(f".{os.getpid()}")
            whole.write_text(json.dumps(cell))
            whole.rename(path)
        return cell


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--sets``, ``--seeds``, ``--records`` and ``--recorded`` to a parser."""
    parser.add_argument("--sets", help="comma-separated; all sets of each part if not given")
    parser.add_argument("--seeds", default="0,1,2", help="comma-separated")
    parser.add_argument("--records", type=Path, metavar="DIR", help="where cells are kept")
    parser.add_argument("--recorded", action="store_true", help="measure nothing")


def run_of(arguments: argparse.Namespace) -> Run:
    """The run that was asked for."""
    return Run(
        arguments.data,
        tuple(map(int, arguments.seeds.split(","))),
        None if arguments.sets is None else tuple(arguments.sets.split(",")),
        arguments.records,
        arguments.recorded,
    )
