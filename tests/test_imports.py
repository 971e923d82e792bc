"""Imports point downwards only, and what is public says so. Read from the source, without importing it."""

import ast
import importlib
from pathlib import Path

import pytest

import gramian

ROOT = Path(gramian.__file__).parent

# From the foundation up. A module may import from its own layer and from those before it.
LAYERS = [
    {"_core"},
    {"pairs"},
    {"kernels"},
    {"labels"},
    {"losses", "operators"},
    {"solvers"},
    {"selection"},
    {"metrics"},
    {"estimators"},
    {"gramian", "pairwise"},
    {"datasets", "plot", "testing"},
    {"cli"},
]
LAYER_OF = {part: height for height, parts in enumerate(LAYERS) for part in parts}


def _files() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def _part(path: Path) -> str:
    """The room a file belongs to: a folder, a module of the top, or the package itself."""
    relative = path.relative_to(ROOT)
    if len(relative.parts) > 1:
        return relative.parts[0]
    return "gramian" if relative.stem == "__init__" else relative.stem


def _imported_parts(path: Path) -> set[str]:
    """Other rooms of gramian that a file imports."""
    return _imports_in(path.read_text(encoding="utf-8")) - {_part(path)}


def _imports_in(source: str) -> set[str]:
    """Rooms of gramian imported anywhere in the source, inside functions too."""
    parts = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import; write the whole name."
            names = [node.module or ""]
            if node.module == "gramian":
                names = [f"gramian.{alias.name}" for alias in node.names]
        for name in names:
            pieces = name.split(".")
            if pieces[0] == "gramian":
                parts.add(pieces[1] if len(pieces) > 1 and pieces[1] in LAYER_OF else "gramian")
    return parts


def _id(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", _files(), ids=_id)
def test_imports_point_downwards(path):
    part = _part(path)
    assert part in LAYER_OF, f"{part} has no place in LAYERS: give it one."
    for other in _imported_parts(path):
        assert LAYER_OF[other] <= LAYER_OF[part], f"{_id(path)} imports {other} from above."


def test_rooms_of_one_layer_do_not_import_each_other_in_circles():
    edges = {}
    for path in _files():
        edges.setdefault(_part(path), set()).update(_imported_parts(path))
    done, active = set(), []

    def visit(part):
        assert part not in active, f"circle: {' → '.join([*active, part])}"
        if part not in done:
            active.append(part)
            for other in sorted(edges.get(part, ())):
                visit(other)
            active.pop()
            done.add(part)

    for part in sorted(edges):
        visit(part)


def _public_modules() -> list[str]:
    """What users import from: the package, its rooms, and the modules of the top."""
    names = []
    for path in _files():
        relative = path.relative_to(ROOT)
        room = len(relative.parts) == 2 and relative.stem == "__init__"
        if room or len(relative.parts) == 1:
            name = relative.parts[0] if room else relative.stem
            if name == "__init__":
                names.append("gramian")
            elif not name.startswith("_") and name != "estimators":
                names.append(f"gramian.{name}")
    return names


@pytest.mark.parametrize("name", _public_modules())
def test_public_modules_list_their_names(name):
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None)
    assert listed, f"{name} has no __all__."
    assert len(set(listed)) == len(listed), f"{name}.__all__ repeats a name."
    missing = [entry for entry in listed if not hasattr(module, entry)]
    assert not missing, f"{name}.__all__ names {missing}, which are not there."
    undocumented = [
        entry for entry in listed if callable(getattr(module, entry)) and not getattr(module, entry).__doc__
    ]  # fmt: skip
    assert not undocumented, f"{name}: {undocumented} have no docstring."


def test_an_upward_import_would_be_seen():
    """Functions and whole names are looked into; otherwise the tests above could not fail."""
    source = """
import numpy
from gramian.solvers.rkhs.newton import newton
def f():
    import gramian.operators.inputs.dense
    from gramian import labels, KernelRidge
"""
    assert _imports_in(source) == {"solvers", "operators", "labels", "gramian"}
    assert LAYER_OF["solvers"] > LAYER_OF["kernels"]
