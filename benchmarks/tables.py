"""Tables and verdicts as the benchmarks print them."""

from __future__ import annotations

from timing import verdict

Outcomes = list[bool]


def report(held: bool, text: str, outcomes: Outcomes) -> None:
    """Print a verdict and remember it."""
    outcomes.append(held)
    print(f"- {verdict(held)}: {text}", flush=True)


def row(*cells: object) -> None:
    """Print a line of a table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def header(*cells: str) -> None:
    """Print the head of a table whose first column is text."""
    row(*cells)
    print(f"|---|{'---:|' * (len(cells) - 1)}")


def number(value: float | None, form: str = ".3g") -> str:
    """A number in a cell; a dash where there is none."""
    return "–" if value is None else format(value, form)
