"""Reading a taxonomy from a file: JSON, CSV with the columns parent and child, or one path a line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from gramian.cli.errors import UserError

__all__ = ["read_taxonomy"]

FORMATS = (".json", ".csv", ".txt")


def read_taxonomy(path: Path) -> Any:
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
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    read = {".json": _from_json, ".csv": _from_csv, ".txt": _from_paths}[extension]
    try:
        return read(path)
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror or error}.") from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} is no taxonomy: {error}") from None


def _from_json(path: Path) -> Any:
    from gramian.labels import Taxonomy

    content = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_without_repeats)
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


def _from_csv(path: Path) -> Any:
    from gramian.labels import Taxonomy

    parents: dict[str, str | None] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
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


def _from_paths(path: Path) -> Any:
    from gramian.labels import Taxonomy

    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    return Taxonomy.from_paths([line for line in lines if line])
