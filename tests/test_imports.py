"""The rooms of the package: imports point downwards only, pages agree with the rule, and what is public says so.

The rule is data, docs/rooms.toml; docs/rooms.py reads it and the source, without importing the package.
"""

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
_spec = importlib.util.spec_from_file_location("rooms", DOCS / "rooms.py")
rooms = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rooms)

# the definition list of the reference: a module, and on the next line its names
NAMES = {
    module: re.findall(r"`(\w+)`", names)
    for module, names in re.findall(
        r"^`(gramian[\w.]*)`\n: (.*)$", (DOCS / "api" / "index.md").read_text("utf-8"), re.MULTILINE
    )
}


def test_every_room_has_its_place():
    found = {rooms.room_of(path) for path in rooms.files()}
    assert found == set(rooms.LAYER_OF)


def test_imports_point_downwards():
    assert rooms.upward_imports() == []


@pytest.mark.parametrize(
    "line",
    [
        "from gramian.estimators import KernelRidge",
        "from gramian import estimators",
        "import gramian.estimators.smooth",
        "def f():\n    from gramian.estimators.smooth import KernelMachine",
        "from gramian import KernelRidge",
    ],
)
def test_an_upward_import_would_be_seen(line, tmp_path, monkeypatch):
    """A solver that imports an estimator breaks the rule, wherever the line stands."""
    solver = tmp_path / "solvers" / "newton.py"
    solver.parent.mkdir()
    solver.write_text(f"import numpy\nfrom gramian.losses import Loss\n{line}\n")
    monkeypatch.setattr(rooms, "SOURCE", tmp_path)
    (broken,) = rooms.upward_imports()
    assert broken.startswith("solvers/newton.py imports ")
    with pytest.raises(ValueError, match=r"solvers/newton.py imports "):
        rooms.outdated()


def _imports_at_the_top(path: Path) -> set[Path]:
    """Files of the package that are imported when this one is."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = ast.Module([n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)], [])
    found = set()
    for name in rooms.imported_modules(ast.unparse(top)):
        place = rooms.SOURCE.parent.joinpath(*name.split("."))
        candidates = [  # the name may be that of a module, or of something in one
            file
            for module in (place, place.parent)
            for file in (module.with_suffix(".py"), module / "__init__.py")
        ]
        found.add(next(file for file in candidates if file.exists()))
    return found - {path}


def test_no_file_imports_itself_in_a_circle():
    graph = {path: _imports_at_the_top(path) for path in rooms.files()}
    done, active = set(), []

    def visit(path):
        assert path not in active, f"circle: {[p.stem for p in [*active, path]]}"
        if path not in done:
            active.append(path)
            for other in sorted(graph[path]):
                visit(other)
            active.pop()
            done.add(path)

    for path in graph:
        visit(path)


def test_pages_and_pictures_agree_with_the_rule():
    assert rooms.outdated() == [], "run `python docs/rooms.py`"


# --- public names -------------------------------------------------------------------------------


def test_the_reference_lists_every_public_module():
    """Rooms without an underscore are public, but for those whose names the package itself exports."""
    inside = {"cli", "estimators", "gramian"}
    public = {f"gramian.{name}" for name in rooms.LAYER_OF if name[0] != "_" and name not in inside}
    assert public | {"gramian"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_public_modules_have_the_names_of_the_reference(name):
    module = importlib.import_module(name)
    shown = {
        entry
        for entry in dir(module)
        if entry[0] != "_"
        and getattr(getattr(module, entry), "__module__", "").startswith("gramian")
    }
    assert sorted(shown) == sorted(NAMES[name])
    listed = set(module.__all__) - {"__version__"}
    assert listed == shown
    undocumented = [
        entry
        for entry in shown
        if callable(getattr(module, entry)) and not getattr(module, entry).__doc__
    ]
    assert not undocumented
