"""Draw the page of results from `results.json`, a file of `run.py`: which claims held, script by script.

    python benchmarks/page.py            write docs/_static/claims-light.svg, claims-dark.svg and benchmarks/CLAIMS.md

Each bar is one script; its parts are the verdicts that it printed in its last run. Standard library only.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
STATIC = FOLDER.parent / "docs" / "_static"
THEMES = {
    "light": {"text": "#1f2328", "held": "#2a7ab0", "missed": "#d1603d", "faint": "#d0d7de"},
    "dark": {"text": "#e6edf3", "held": "#4aa3df", "missed": "#ef8a62", "faint": "#444c56"},
}
LEFT, RIGHT, LINE, WIDTH = 170, 110, 30, 720


def latest(runs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The last run of each script that printed verdicts."""
    return {run["script"]: run for run in runs if run["verdicts"]}


def picture(runs: dict[str, dict[str, Any]], theme: dict[str, str]) -> str:
    """Bars of claims that held and that were missed, as SVG."""
    most = max(len(run["verdicts"]) for run in runs.values())
    height = LINE * (len(runs) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="sans-serif" font-size="14" fill="{theme["text"]}">'
        "<title>Claims that held and that were missed, by benchmark</title>"
    ]
    for k, (name, run) in enumerate(sorted(runs.items())):
        held = sum(verdict["held"] for verdict in run["verdicts"])
        missed, y = len(run["verdicts"]) - held, LINE * k + 6
        unit = (WIDTH - LEFT - RIGHT) / most
        parts.append(
            f'<text x="{LEFT - 10}" y="{y + 14}" text-anchor="end">{html.escape(name)}</text>'
        )
        for start, count, colour in ((0, held, theme["held"]), (held, missed, theme["missed"])):
            if count:
                x, width = LEFT + unit * start, unit * count - 1
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="18" rx="2" fill="{colour}"/>'
                )
        x = LEFT + unit * (held + missed) + 8
        parts.append(f'<text x="{x:.1f}" y="{y + 14}">{held} of {held + missed}</text>')
    y = LINE * len(runs) + 20
    for x, words, colour in ((LEFT, "held", theme["held"]), (LEFT + 90, "missed", theme["missed"])):
        parts.append(f'<rect x="{x}" y="{y - 12}" width="14" height="14" rx="2" fill="{colour}"/>')
        parts.append(f'<text x="{x + 20}" y="{y}">{words}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def words(runs: dict[str, dict[str, Any]]) -> str:
    """What was run, and each claim that was missed, in Markdown."""
    lines = []
    for name, run in sorted(runs.items()):
        missed = [verdict["text"] for verdict in run["verdicts"] if not verdict["held"]]
        command = " ".join([run["command"], *(a for a in run["arguments"] if a != "--data")])
        lines.append(
            f"- **{name}** ({run['date']}, {run['machine']}, `{command}`): "
            + ("every claim held." if not missed else "missed: " + "; ".join(missed) + ".")
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    runs = latest(json.loads((FOLDER / "results.json").read_text("utf-8")))
    for name, theme in THEMES.items():
        (STATIC / f"claims-{name}.svg").write_text(picture(runs, theme), "utf-8")
    (FOLDER / "CLAIMS.md").write_text(words(runs), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
