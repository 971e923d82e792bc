"""Commands, their options, and how errors become messages and exit codes.

Exit codes: 0 done, 1 something failed, 2 wrong usage.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Annotated

import typer
from rich import get_console
from rich.markup import escape

HELP = (
    "[bold]gramian[/bold]: kernel learning when the outputs have structure, compatible with scikit-learn."
    "\n\n"
    "Classifiers and regressors for many classes, taxonomies, correlated labels and tasks. "
    "Every fit comes with a [bold]certificate[/bold]: a proven bound on its distance from the optimum."
)

# An empty line between two lines: the help would join them otherwise.
EPILOG = """
[bold]Examples[/bold]

[cyan]gramian demo[/cyan]   compare with scikit-learn on digits, and draw gramian-demo.png

[cyan]gramian demo --quick --output look.svg[/cyan]   less data, another figure

[cyan]gramian demo --help[/cyan]   all options of a command

[bold]In Python[/bold]

[cyan]from gramian import KernelLogisticRegression[/cyan]

[cyan]model = KernelLogisticRegression(kernel="rbf", regularization=0.01).fit(X, y)[/cyan]
"""

DEMO_HELP = (
    "A first look: fit, certify and plot on handwritten digits.\n\n"
    "Trains kernel logistic regression and models of scikit-learn on the same half of 1797 digits, "
    "prints test error, log loss and time, and draws convergence and reliability. "
    "Takes less than a minute; nothing is downloaded."
)

DEFAULT_FIGURE = Path("gramian-demo.png")
FORMATS = (".png", ".svg", ".pdf")

app = typer.Typer(
    name="gramian",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback(help=HELP, epilog=EPILOG)
def common(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Same as version."),
    ] = False,
) -> None:
    """Hold the options of the program itself."""


@app.command()
def version() -> None:
    """Print the version."""
    from gramian import __version__

    typer.echo(__version__)


@app.command(help=DEMO_HELP)
def demo(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FIGURE",
            help=f"Where to write the figure: {', '.join(FORMATS)}.",
            show_default=str(DEFAULT_FIGURE),
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=2**32 - 1, help="Which split into training and test half."
        ),
    ] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Train on 300 examples only: a few seconds.")
    ] = False,
) -> None:
    """A first look: fit, certify and plot on handwritten digits."""
    path = _checked_figure(output or DEFAULT_FIGURE)
    from gramian.cli.demo import compare, draw, load, summary

    console = get_console()
    data = load(seed, quick)
    console.print(
        f"Digits: {len(data.y_train)} examples to train on, {len(data.y_test)} to test on, "
        f"10 classes, 64 pixels.",
        highlight=False,
    )
    results = compare(data, console)
    console.print(summary(results))
    if importlib.util.find_spec("matplotlib") is None:
        message = 'No figure: matplotlib is not installed. pip install "gramian[plot]"'
        console.print(f"[yellow]{escape(message)}[/yellow]", highlight=False)
        raise typer.Exit(0 if output is None else 1)
    try:
        draw(results, data, path)
    except OSError as error:
        reason = error.strerror or str(error)
        typer.secho(f"Cannot write {path}: {reason}.", fg="red", err=True)
        raise typer.Exit(1) from None
    console.print(f"Figure: [bold]{escape(str(path))}[/bold]", highlight=False, soft_wrap=True)


def _checked_figure(path: Path) -> Path:
    """Refuse a place that cannot be written before the work, not after it."""
    if path.suffix.lower() not in FORMATS:
        problem = f"{path} must end in one of {', '.join(FORMATS)}."
    elif path.is_dir():
        problem = f"{path} is a folder; name a file in it."
    elif not path.parent.is_dir():
        problem = f"There is no folder {path.parent}; make it first."
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = f"No permission to write {path}."
    else:
        return path
    raise typer.BadParameter(problem, param_hint="'--output'")


def main() -> None:
    """Run the command line."""
    app()
