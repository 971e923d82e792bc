"""What benchmarks print becomes data, and two files of data become ratios with a verdict."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the archive is without benchmarks")

PRINTED = """AMD EPYC, 2 cores

## search

| set | n | ours, s | CV loss |
|---|---:|---:|---:|
| vowel, tied | 693 | {seconds} | 0.142 |
| pima, tied | 537 | 0.2 | 0.48 |
- PASS: pima: 0.30 × the grid search
- MISS: vowel: 1.08 × the grid search

(3 s in all)
"""


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import compare
    import page
    import run

    return run, compare, page


def run_of(run, seconds):
    return {"script": "defaults", "date": "2026-11-19", "machine": "a machine"} | run.parsed(
        PRINTED.format(seconds=seconds)
    )


def test_tables_and_verdicts_are_read(tools):
    run, _, _ = tools
    read = run.parsed(PRINTED.format(seconds=1.39))
    (table,) = read["tables"]
    assert table["title"] == "search"
    assert table["columns"] == ["set", "n", "ours, s", "CV loss"]
    assert table["rows"][0] == ["vowel, tied", "693", "1.39", "0.142"]
    assert [verdict["held"] for verdict in read["verdicts"]] == [True, False]


def test_only_times_beyond_noise_are_flagged(tools):
    run, compare, _ = tools
    old = [run_of(run, 1.0)]
    (slower, same) = compare.changes(old, [run_of(run, 1.3)], noise=0.1)
    assert (slower.place.column, slower.place.row) == ("ours, s", ("vowel, tied",))
    assert slower.ratio == pytest.approx(1.3)
    assert (slower.verdict, same.verdict) == ("slower", "")
    assert compare.changes(old, [run_of(run, 0.5)], noise=0.1)[-1].verdict == "faster"
    # runs that differ by themselves by as much say nothing
    shaky = [run_of(run, seconds) for seconds in (1.0, 1.4, 1.3)]
    assert compare.changes(old, shaky, noise=0.1)[0].verdict == ""


def test_the_exit_code_tells_of_what_became_slower(tools, tmp_path):
    run, _, _ = tools
    for name, seconds in (("old", 1.0), ("new", 1.3)):
        (tmp_path / f"{name}.json").write_text(json.dumps([run_of(run, seconds)]))
    script = FOLDER / "compare.py"
    for before, after, code in (("old", "new", 1), ("new", "old", 0)):
        files = [tmp_path / f"{before}.json", tmp_path / f"{after}.json"]
        done = subprocess.run([sys.executable, script, *files], capture_output=True, text=True)
        assert done.returncode == code
        assert "2 times: " in done.stdout


def test_the_page_tells_what_was_missed(tools):
    run, _, page = tools
    runs = page.latest([run_of(run, 1.0) | {"command": "python x", "arguments": []}])
    assert "missed: vowel: 1.08 × the grid search." in page.words(runs)
    assert "1 of 2" in page.picture(runs, page.THEMES["dark"])


def test_every_script_that_measures_is_known(tools):
    found = tools[0].scripts()
    assert found["defaults"]
    assert found["streamed"] is False
    assert not {"run", "compare", "page", "data"} & set(found)
