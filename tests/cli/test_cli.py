"""The command line as a person uses it: output, files, exit codes, no tracebacks."""

import importlib.util

import pytest

import gramian
from gramian.cli import demo as demo_module
from gramian.cli import main
from gramian.datasets import load_digits_split

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def tiny(monkeypatch):
    """Less data than even --quick has, for tests about something else."""

    def load(seed, quick):
        data = load_digits_split(random_state=seed)
        data.X_train, data.y_train = data.X_train[:120], data.y_train[:120]
        return data

    monkeypatch.setattr(demo_module, "load", load)


def test_help_says_what_it_is_and_gives_examples(run):
    result = run("--help")
    assert result.exit_code == 0
    assert "kernel learning" in result.output
    assert "demo" in result.output
    assert "Examples" in result.output
    assert "[bold]" not in result.output


def test_help_of_demo(run):
    result = run("demo", "--help")
    assert result.exit_code == 0
    for option in ("--output", "--seed", "--quick", "gramian-demo.png"):
        assert option in result.output


@pytest.mark.parametrize("argument", ["version", "--version"])
def test_version(run, argument):
    result = run(argument)
    assert result.exit_code == 0
    assert result.output.strip() == gramian.__version__


def test_without_arguments_shows_help(run):
    assert "Usage" in run().output


def test_main_is_the_entry_point(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gramian", "version"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    assert capsys.readouterr().out.strip() == gramian.__version__


def test_demo_prints_a_table_and_draws(run, tmp_path):
    result = run("demo", "--quick", "--output", "look.png")
    assert result.exit_code == 0, result.output
    for name in demo_module.models():
        assert name in result.output
    assert "300 examples to train on" in result.output
    assert "proven" in result.output
    assert "look.png" in result.output
    figure = (tmp_path / "look.png").read_bytes()
    assert figure.startswith(PNG)
    assert len(figure) > 10_000
    assert [path.name for path in tmp_path.iterdir()] == ["look.png"]


@pytest.mark.usefixtures("tiny")
def test_demo_draws_into_the_current_folder_by_default(run, tmp_path):
    result = run("demo")
    assert result.exit_code == 0, result.output
    assert "Figure: gramian-demo.png" in result.output
    assert (tmp_path / "gramian-demo.png").read_bytes().startswith(PNG)


@pytest.mark.usefixtures("tiny")
def test_demo_keeps_its_numbers_on_a_narrow_terminal(run):
    result = run("demo", width=60)
    assert result.exit_code == 0, result.output
    assert result.output.count(" % │") == len(demo_module.models())
    assert max(map(len, result.output.splitlines())) <= 60


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("watched", [True, False])
def test_demo_shows_progress_to_those_who_watch(run, watched):
    result = run("demo", force_terminal=watched)
    assert result.exit_code == 0, result.output
    assert ("KernelLogisticRegression - fit" in result.output) == watched


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("asked, code", [((), 0), (("--output", "look.png"), 1)])
def test_demo_without_matplotlib(run, monkeypatch, tmp_path, asked, code):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "matplotlib" else real(name, *rest),
    )
    result = run("demo", *asked)
    assert result.exit_code == code
    assert "LogisticRegression" in result.output
    assert 'pip install "gramian[plot]"' in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("tiny")
def test_demo_when_writing_fails_at_the_end(run, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo_module, "draw", full)
    result = run("demo")
    assert result.exit_code == 1
    assert "Cannot write gramian-demo.png: No space left on device." in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "output, words",
    [
        ("nowhere/look.png", "There is no folder nowhere"),
        ("file.txt/look.png", "There is no folder file.txt"),
        ("look.doc", "must end in one of .png"),
        ("folder.png", "is a folder"),
    ],
)
def test_demo_refuses_a_bad_output_before_it_works(run, monkeypatch, tmp_path, output, words):
    (tmp_path / "file.txt").touch()
    (tmp_path / "folder.png").mkdir()
    monkeypatch.setattr(demo_module, "load", lambda *_: pytest.fail("worked before it checked"))
    result = run("demo", "--output", output)
    assert result.exit_code == 2
    assert "--output" in result.output
    assert words in result.output
    assert "Traceback" not in result.output


def test_demo_refuses_a_folder_without_permission(run, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    result = run("demo")
    assert result.exit_code == 2
    assert "No permission to write gramian-demo.png" in result.output


@pytest.mark.parametrize(
    "arguments", [("demo", "--seed", "many"), ("demo", "--seed", "-1"), ("dmo",)]
)
def test_wrong_usage(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_seed_decides_the_split_and_quick_its_size():
    first, again, other = (demo_module.load(seed, quick=True) for seed in (0, 0, 1))
    assert (first.y_train == again.y_train).all()
    assert (first.y_train != other.y_train).any()
    assert len(first.y_train) == 300
    assert len(demo_module.load(0, quick=False).y_train) == 898
