"""The code of README.md and of the documentation runs, and prints what the pages say.

``python`` fences are executed, ``pycon`` fences are doctests; those of a page share a namespace, in reading order.
Anything else (``bash``, ``text``, directives in braces) is left alone.
"""

import contextlib
import doctest
import io
import re
import runpy
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
if not DOCS.exists():
    pytest.skip("the documentation is not here", allow_module_level=True)

pytestmark = pytest.mark.pages

FENCE = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_RUN = {"architecture.md"}  # its fences are signatures
CANDIDATES = ["README.md", "docs/*.md", "docs/estimators/*.md", "docs/extending/*.md"]
PAGES = [
    page
    for pattern in CANDIDATES
    for page in sorted(ROOT.glob(pattern))
    if page.name not in NOT_RUN and FENCE.search(page.read_text("utf-8"))
]
SCRIPTS = sorted(DOCS.glob("extending/examples/*.py"))


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_page(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    namespace = {"__name__": "page"}
    for fence in FENCE.finditer(text):
        kind, code = fence.groups()
        line = text[: fence.start()].count("\n") + 1
        if kind == "python":
            source = "\n" * line + code  # so that a traceback has the line of the page
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(source, str(page), "exec"), namespace)
        else:
            _run_doctest(code, namespace, page, line)


def _run_doctest(code, namespace, page, line):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest(code, namespace, page.name, str(page), line)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    runner.run(test, out=report.write, clear_globs=False)
    assert runner.failures == 0, report.getvalue()
    namespace.update(test.globs)  # get_doctest works on a copy


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_script(script):
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(script), run_name="__main__")
    assert printed.getvalue()


def test_every_page_is_found():
    names = {page.name for page in PAGES}
    assert {"README.md", "getting_started.md", "kernel_svc.md", "operator.md"} <= names
    assert len(SCRIPTS) == 4
