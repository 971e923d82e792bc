"""Compare two files of `run.py`: ratios of seconds and of other numbers, and what became slower beyond noise.

    python benchmarks/compare.py old.json new.json [--noise 0.1] [--all]

A row of a table is told by its script, its title and the cells that are no numbers. Numbers of columns that are times
are compared as ratios of medians. Noise is what runs of one file differ by, and at least ``--noise``: two runs on one
quiet machine differ by that much. The exit code is 1 if anything became slower by more. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

TIME = re.compile(r"(^|[\s,(])(s|ms|µs|us|seconds)\)?$")
NUMBER = re.compile(r"^[-+−]?\d+(\.\d+)?(e[-+]?\d+)?$")


class Place(NamedTuple):
    """Where a number stands."""

    script: str
    title: str
    row: tuple[str, ...]
    column: str


class Change(NamedTuple):
    """Medians before and after, and the share by which they differ on their own."""

    place: Place
    old: float
    new: float
    noise: float

    @property
    def ratio(self) -> float:
        return self.new / self.old

    @property
    def verdict(self) -> str:
        """ "slower" or "faster" beyond noise, else nothing."""
        if self.ratio > 1 + self.noise:
            return "slower"
        return "faster" if self.ratio < 1 / (1 + self.noise) else ""


def numbers(runs: list[dict[str, Any]]) -> dict[Place, list[float]]:
    """All numbers of a file by their place, one for each run."""
    found: dict[Place, list[float]] = defaultdict(list)
    for run in runs:
        for table in run["tables"]:
            columns = table["columns"]
            for cells in table["rows"]:
                words = tuple(cell for cell in cells if not NUMBER.match(cell))
                for column, cell in zip(columns, cells, strict=False):
                    if NUMBER.match(cell):
                        place = Place(run["script"], table["title"], words, column)
                        found[place].append(float(cell.replace("−", "-")))
    return found


def changes(old: list[dict[str, Any]], new: list[dict[str, Any]], noise: float) -> list[Change]:
    """Times that stand in both files, the largest ratio first."""
    before, after = numbers(old), numbers(new)
    found = [
        Change(
            place,
            statistics.median(before[place]),
            statistics.median(after[place]),
            max(noise, _spread(before[place]), _spread(after[place])),
        )
        for place in before.keys() & after.keys()
        if is_time(place) and min(before[place] + after[place]) > 0
    ]
    return sorted(found, key=lambda change: (-change.ratio, change.place))


def is_time(place: Place) -> bool:
    """Whether a column holds times, by its own name or by the heading of the table."""
    return bool(TIME.search(place.column)) or "seconds" in place.title.lower()


def _spread(values: list[float]) -> float:
    return (max(values) - min(values)) / statistics.median(values)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--noise", type=float, default=0.1, help="share that means nothing")
    parser.add_argument("--all", action="store_true", help="show also what did not change")
    arguments = parser.parse_args()
    old, new = (json.loads(path.read_text("utf-8")) for path in (arguments.old, arguments.new))
    found = changes(old, new, arguments.noise)
    print("| script | table | row | column | old | new | new / old | noise | |")
    print("|---|---|---|---|---:|---:|---:|---:|---|")
    for change in found:
        if change.verdict or arguments.all:
            place = change.place
            cells = (place.script, place.title, ", ".join(place.row), place.column)
            numbers_ = (f"{value:.3g}" for value in (change.old, change.new, change.ratio))
            print(f"| {' | '.join([*cells, *numbers_])} | {change.noise:.2f} | {change.verdict} |")
    slower = sum(change.verdict == "slower" for change in found)
    faster = sum(change.verdict == "faster" for change in found)
    print(f"\n{len(found)} times: {slower} slower, {faster} faster, the rest within noise.")
    return int(slower > 0)


if __name__ == "__main__":
    raise SystemExit(main())
