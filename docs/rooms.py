"""The rooms of the package: read the rule from rooms.toml and the imports from the source, write pages and picture.

    python docs/rooms.py            write docs/architecture.md, CONTRIBUTING.md and docs/_static/rooms-*.svg

A test calls `outdated` and fails where a page or a picture does not agree with the rule and the source.
"""

from __future__ import annotations

import ast
import html
import textwrap
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "gramian"
PAGES = (DOCS / "architecture.md", DOCS.parent / "CONTRIBUTING.md")
BEGIN, END = "<!-- rooms: written by docs/rooms.py -->", "<!-- end of rooms -->"

RULE = tomllib.loads((DOCS / "rooms.toml").read_text(encoding="utf-8"))
LAYER_OF = {room["name"]: room["layer"] for room in RULE["room"]}


# --- the imports ------------------------------------------------------------------------------


def files() -> list[Path]:
    """Every file of the package."""
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room of a file: a folder, or the package itself for what stands beside it."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else "gramian"


def imported_modules(source: str) -> set[str]:
    """Names of modules of gramian that a text imports anywhere, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"line {node.lineno} has a relative import; write the whole name.")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "gramian"}


def imported_rooms(source: str) -> set[str]:
    """Rooms that a text imports from; a public name of the package belongs to the package."""
    seconds = {name.partition(".")[2].partition(".")[0] for name in imported_modules(source)}
    return {name if name in LAYER_OF else "gramian" for name in seconds}


def upward_imports() -> list[str]:
    """What breaks the rule: a sentence for each import from a room that does not stand below."""
    broken = []
    for path in files():
        room = room_of(path)
        for other in sorted(imported_rooms(path.read_text(encoding="utf-8")) - {room}):
            if LAYER_OF[other] >= LAYER_OF[room]:
                name = path.relative_to(SOURCE)
                broken.append(f"{name} imports {other}, which does not stand below {room}.")
    return broken


def edges() -> dict[str, set[str]]:
    """The rooms that each room imports from."""
    found: dict[str, set[str]] = {room: set() for room in LAYER_OF}
    for path in files():
        room = room_of(path)
        found[room] |= imported_rooms(path.read_text(encoding="utf-8")) - {room}
    return found


# --- the pages --------------------------------------------------------------------------------


def table() -> str:
    """The rooms as a block of text for the pages."""
    lines = ["```text", "src/gramian/"]
    for room in RULE["room"]:
        name = room["name"] if room["name"] == "gramian" else f"{room['name']}/"
        lines += _entry(name, room["what"], 2)
        for subroom, what in room.get("subrooms", {}).items():
            lines += _entry(f"{subroom}/", what, 4)
    layers = sorted(set(LAYER_OF.values()))
    order = " → ".join(
        ", ".join(name for name, layer in LAYER_OF.items() if layer == height)
        for height in reversed(layers)
    )
    lines += ["```", "", "Imports point downwards only:", *textwrap.wrap(order + ".", 116)]
    return "\n".join(lines)


def _entry(name: str, what: str, indent: int) -> list[str]:
    head = " " * indent + name.ljust(18 - indent)
    return textwrap.wrap(what, 88, initial_indent=head, subsequent_indent=" " * 18)


def with_rooms(page: str) -> str:
    """A page with the present table of rooms between its marks."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


# --- the picture ------------------------------------------------------------------------------

THEMES = {
    "light": {"text": "#1a1a1a", "soft": "#5b6470", "box": "#f4f6f8", "line": "#c3cad3", "path": "#b3541e"},
    "dark": {"text": "#e8e8e8", "soft": "#a4adb8", "box": "#232a32", "line": "#465260", "path": "#f0a060"},
}  # fmt: skip
WIDTH, BOX, GAP = 860, 52, 26


def picture(theme: str) -> str:
    """The rooms by layers, what they import, and the way of the data, as SVG."""
    colours = THEMES[theme]
    places = _places()
    height = max(y for _, y, _ in places.values()) + BOX + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif">',
        "<title>The rooms of gramian, what they import, and the way of the data in a fit</title>",
    ]
    for room, others in _reduced(edges()).items():
        parts += [_curve(places[room], places[other], colours["line"]) for other in sorted(others)]
    steps = RULE["path"]
    for room in RULE["room"]:
        numbers = [k for k, step in enumerate(steps, 1) if step["room"] == room["name"]]
        parts += _box(room, places[room["name"]], numbers, colours)
    legend = "   ".join(f"{k} {step['what']}" for k, step in enumerate(steps, 1))
    parts.append(
        f'<text x="{WIDTH / 2}" y="{height - 14}" font-size="12" text-anchor="middle" '
        f'fill="{colours["path"]}" xml:space="preserve">{html.escape(legend)}</text>'
    )
    return "\n".join([*parts, "</svg>\n"])


def _places() -> dict[str, tuple[float, float, float]]:
    """Left, top and width of each box; the foundation is at the bottom."""
    layers: dict[int, list[str]] = {}
    for name, layer in LAYER_OF.items():
        layers.setdefault(layer, []).append(name)
    # rooms of neighbouring layers stand side by side where neither imports the other
    rows: list[list[str]] = []
    needs = edges()
    for layer in sorted(layers, reverse=True):
        new = layers[layer]
        free = rows and not any(set(new) & needs[above] for above in rows[-1])
        if free and len(rows[-1]) + len(new) <= 4:
            rows[-1] += new
        else:
            rows.append(list(new))
    places = {}
    for row, names in enumerate(rows):
        width = min(400.0, (WIDTH - 40 - 20 * (len(names) - 1)) / len(names))
        left = (WIDTH - width * len(names) - 20 * (len(names) - 1)) / 2
        for k, name in enumerate(names):
            places[name] = (left + k * (width + 20), 10 + row * (BOX + GAP), width)
    return places


def _reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The edges that do not follow from others: a picture of all of them would be a knot."""

    def below(room: str) -> set[str]:
        return graph[room] | {lower for other in graph[room] for lower in below(other)}

    return {
        room: {o for o in others if not any(o in below(p) for p in others - {o})}
        for room, others in graph.items()
    }


def _curve(
    upper: tuple[float, float, float], lower: tuple[float, float, float], colour: str
) -> str:
    x1, y1 = upper[0] + upper[2] / 2, upper[1] + BOX
    x2, y2 = lower[0] + lower[2] / 2, lower[1]
    middle = (y1 + y2) / 2
    path = f"M{x1:.0f},{y1:.0f} C{x1:.0f},{middle:.0f} {x2:.0f},{middle:.0f} {x2:.0f},{y2:.0f}"
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _box(
    room: dict, place: tuple[float, float, float], numbers: list[int], colours: dict[str, str]
) -> list[str]:
    left, top, width = place
    edge = colours["path"] if numbers else colours["line"]
    lines = textwrap.wrap(room["what"], int(width / 5.9))[:2]
    parts = [
        f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{BOX}" rx="7" '
        f'fill="{colours["box"]}" stroke="{edge}"/>',
        f'<text x="{left + 10:.0f}" y="{top + 16}" font-size="13" font-weight="600" '
        f'fill="{colours["text"]}">{room["name"]}</text>',
    ]
    for k, line in enumerate(lines):
        parts.append(
            f'<text x="{left + 10:.0f}" y="{top + 31 + 13 * k}" font-size="11" '
            f'fill="{colours["soft"]}">{html.escape(line)}</text>'
        )
    for k, number in enumerate(reversed(numbers)):
        x = left + width - 14 - 22 * k
        parts.append(f'<circle cx="{x:.0f}" cy="{top + 13}" r="9" fill="{colours["path"]}"/>')
        parts.append(
            f'<text x="{x:.0f}" y="{top + 17}" font-size="11" font-weight="600" '
            f'text-anchor="middle" fill="{colours["box"]}">{number}</text>'
        )
    return parts


def written() -> dict[Path, str]:
    """Every file that this script writes, with what belongs into it; there is no picture of a rule that is broken."""
    if broken := upward_imports():
        raise ValueError("\n".join(broken))
    pages = {path: with_rooms(path.read_text(encoding="utf-8")) for path in PAGES}
    pictures = {DOCS / "_static" / f"rooms-{theme}.svg": picture(theme) for theme in THEMES}
    return pages | pictures


def outdated() -> list[str]:
    """Files that do not agree with the rule and the source."""
    return [
        path.name
        for path, text in written().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
