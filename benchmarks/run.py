"""Run the benchmarks, show what they print, and keep the numbers in a file that `compare.py` reads.

    python benchmarks/run.py --out now.json                        every script
    python benchmarks/run.py --only defaults --out now.json -- --parts ridge,ard --seeds 0

Scripts print tables and verdicts in Markdown; this is where both become data. A file that is there already is added to:
several runs of one state of the code tell how far numbers vary by themselves. What follows ``--`` goes to every script.
Scripts that read data run where ``--data`` or ``$GRAMIAN_DATA`` names the folder. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
VERDICT = re.compile(r"^(?:- )?(PASS|MISS): (.+)$")
RULE = re.compile(r"^\|[-: |]+\|$")


def scripts() -> dict[str, bool]:
    """Scripts that measure something, by name, and whether they read data."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        # those without a __main__ section are imported by the others
        if "__main__" in text and path.stem not in ("run", "compare", "page"):
            found[path.stem] = "--data" in text or "add_data_argument" in text
    return found


def parsed(text: str) -> dict[str, Any]:
    """Tables and verdicts of a Markdown text.

    A table has a title (the heading above it), names of columns and rows of cells; a verdict has ``held`` and ``text``.
    """
    title, previous, table = "", "", None
    tables: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("#"):
            title, table = line.lstrip("# "), None
        elif RULE.match(line):
            table = {"title": title, "columns": _cells(previous), "rows": []}
            tables.append(table)
        elif line.startswith("|") and table is not None:
            table["rows"].append(_cells(line))
        elif (match := VERDICT.match(line)) is not None:
            verdicts.append({"held": match[1] == "PASS", "text": match[2]})
        previous = line
    return {"tables": tables, "verdicts": verdicts}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def measured(name: str, arguments: list[str]) -> dict[str, Any]:
    """Run a script, show what it prints, and return it as data."""
    command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
    began, lines = time.perf_counter(), []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    seconds = time.perf_counter() - began
    return {
        "script": name,
        "date": date.today().isoformat(),
        "machine": _machine(),
        "command": f"python benchmarks/{name}.py",
        "arguments": [a for a in arguments if not Path(a).is_dir()],  # not where the data lie
        "seconds": round(seconds, 1),
        "exit": process.returncode,
    } | parsed("".join(lines))


def _machine() -> str:
    """Processor and number of cores."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        name = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    except OSError:
        name = None
    return f"{name[1] if name else platform.processor()}, {os.cpu_count()} cores"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", help="names of scripts, comma-separated")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file to write or add to")
    parser.add_argument("--data", metavar="DIR", default=os.environ.get("GRAMIAN_DATA"))
    parser.add_argument("rest", nargs="*", help="arguments of the scripts, after --")
    arguments = parser.parse_args()
    known = scripts()
    chosen = list(known) if arguments.only is None else arguments.only.split(",")
    if unknown := sorted(set(chosen) - set(known)):
        parser.error(f"--only names {', '.join(unknown)}; there are {', '.join(known)}.")
    runs = []
    if arguments.out is not None and arguments.out.exists():
        runs = json.loads(arguments.out.read_text(encoding="utf-8"))
    failed = False
    for name in chosen:
        if known[name] and not arguments.data:
            print(f"== {name} skipped: set GRAMIAN_DATA to the folder with its data")
            continue
        print(f"== {name}", flush=True)
        data = ["--data", arguments.data] if known[name] else []
        runs.append(measured(name, [*data, *arguments.rest]))
        failed = failed or runs[-1]["exit"] != 0
        if arguments.out is not None:  # after each script: a run of hours may be ended
            arguments.out.write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
