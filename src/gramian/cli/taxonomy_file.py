"""Reading a taxonomy from a file: JSON, CSV with the columns parent and child, or one path a line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from gramian.cli.errors import UserError, read_or_say
from gramian.labels import Taxonomy


def read_taxonomy(path: Path) -> Taxonomy:
    """Return the Taxonomy in a file.

    Parameters
    ----------
    path : Path
        .json: nested, ``{"animal": {"cat": {}, "dog": {}}}``, or ``{"cat": "animal", ...}`` from
        child to parent. .csv: a header with parent and child; an empty parent is a top node. .txt:
        a path in each line, animal/cat; the labels are then the whole paths.

    Returns
    -------
    Taxonomy
    """
    extension = path.suffix.lower()
    if extension not in FORMATS:
        raise UserError(f"{path}: a taxonomy must end in one of {', '.join(FORMATS)}.")
    text = read_or_say(path, lambda: path.read_text(encoding="utf-8-sig"))
    try:
        return FORMATS[extension](text, path)
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} is no taxonomy: {error}") from None
    except RecursionError:
        raise UserError(
            f"{path} is nested too deeply to be read. Write it as a .csv with the columns parent and child."
        ) from None


def _from_json(text: str, path: Path) -> Taxonomy:
    content = json.loads(text, object_pairs_hook=_without_repeats)
    if not isinstance(content, dict) or not content:
        raise UserError(f'{path} must hold {{"child": "parent", ...}} or nested {{...}}.')
    if any(isinstance(parent, str) for parent in content.values()):
        return Taxonomy.from_parents(content)
    return Taxonomy.from_dict(content)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """json itself would keep the last one and say nothing."""
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise ValueError(f"{name!r} occurs twice.")
        content[name] = value
    return content


def _from_csv(text: str, path: Path) -> Taxonomy:
    parents: dict[str, str | None] = {}
    rows = csv.DictReader(io.StringIO(text))
    if not {"parent", "child"} <= set(rows.fieldnames or ()):
        raise UserError(f"{path}: the first line must name the columns: parent,child.")
    for row in rows:
        child, parent = row["child"], row["parent"] or None
        if not child:
            raise UserError(f"{path}, line {rows.line_num}: there is no child.")
        if parents.setdefault(child, parent) != parent:
            raise UserError(
                f"{path}, line {rows.line_num}: {child!r} has a second parent, {parent!r} "
                f"besides {parents[child]!r}."
            )
    return Taxonomy.from_parents(parents)


def _from_paths(text: str, path: Path) -> Taxonomy:
    lines = [line.strip() for line in text.splitlines()]
    return Taxonomy.from_paths([line for line in lines if line])


FORMATS = {".json": _from_json, ".csv": _from_csv, ".txt": _from_paths}
