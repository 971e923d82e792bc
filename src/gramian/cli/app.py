"""The commands. Exit codes: 0 done, 1 something failed, 2 wrong usage, 130 stopped by Ctrl-C.

The docstring of a command is its help text. What a command needs is imported when it runs, so that --help is quick.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import get_console
from rich.markup import escape

from gramian.cli import errors
from gramian.cli import options as o
from gramian.cli.writing import whole_file

app = typer.Typer(
    name="gramian",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _help(function: Callable[..., Any]) -> str:
    """The docstring with a line for each paragraph: the help would keep other line breaks."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _lines(title: str, *lines: str) -> str:
    """Part of an epilog. Between two lines is an empty one: the help would join them otherwise."""
    return "\n\n".join([f"[bold]{title}[/bold]", *lines])


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command, with its docstring as help and examples below."""
    epilog = _lines("Examples", *(f"[cyan]{line}[/cyan]" for line in examples)) if examples else ""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        return app.command(help=_help(function), epilog=epilog)(function)

    return register


def _print_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


def common(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Same as version."),
    ] = False,
) -> None:
    """[bold]gramian[/bold]: kernel learning when the outputs have structure, compatible with scikit-learn.

    Classifiers and regressors for many classes, taxonomies, correlated labels and tasks.
    Every fit comes with a [bold]certificate[/bold]: a proven bound on its distance from the optimum.
    """


EPILOG = (
    _lines(
        "Examples",
        "[cyan]gramian demo[/cyan]   compare with scikit-learn on digits, and draw gramian-demo.png",
        "[cyan]gramian fit train.csv --target species --out model.skops[/cyan]   learn from a table",
        "[cyan]gramian predict model.skops new.csv --proba --out predictions.csv[/cyan]   apply it",
        "[cyan]gramian evaluate model.skops test.csv[/cyan]   compare with the truth",
        "[cyan]gramian fit --help[/cyan]   all options of a command",
    ),
    _lines(
        "In Python",
        "[cyan]from gramian import KernelLogisticRegression[/cyan]",
        '[cyan]model = KernelLogisticRegression(kernel="rbf", regularization=0.01).fit(X, y)[/cyan]',
    ),
)
app.callback(help=_help(common), epilog="\n\n".join(EPILOG))(common)


@command()
def version() -> None:
    """Print the version."""
    from gramian import __version__

    typer.echo(__version__)


@command()
def demo(output: o.FigureOut = None, seed: o.Seed = 0, quick: o.Quick = False) -> None:
    """A first look: fit, certify and plot on handwritten digits.

    Trains kernel logistic regression and models of scikit-learn on the same half of 1797 digits,
    prints test error, log loss and time, and draws convergence and reliability.
    Takes less than a minute; nothing is downloaded.
    """
    path = output or o.DEFAULT_FIGURE
    try:
        errors.check_place(path, o.FIGURE_FORMATS)
    except errors.UserError as error:
        raise typer.BadParameter(str(error), param_hint="'--output'") from None
    from gramian.cli.demo import compare, draw, load, summary

    console = get_console()
    with errors.one_line_errors():
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
        with whole_file(path) as file:
            draw(results, data, file)
    console.print(
        f"Figure: [bold]{escape(errors.visible(str(path)))}[/bold]", highlight=False, soft_wrap=True
    )


@command(
    "gramian fit train.csv --target species --out model.skops",
    "gramian fit news.parquet --target topic --taxonomy topics.json --out news.skops",
    "gramian fit pairs.csv --left drugs.csv --right targets.csv --target affinity --out pairs.skops",
    "gramian fit tokens.csv --sequence sentence --target tag --out tagger.skops",
    "gramian fit rows.svm --kernel linear --regularization 0.1 --out rows.skops",
)
def fit(
    data: o.Data,
    out: o.ModelOut,
    *,
    target: o.Target = None,
    task: o.Task = "auto",
    taxonomy: o.TaxonomyFile = None,
    share: o.Share = None,
    kernel: o.KernelName = None,
    regularization: o.Regularization = None,
    optimize: o.Optimize = None,
    left: o.Left = None,
    right: o.Right = None,
    pairwise_kernel: o.PairwiseKernelName = None,
    setting: o.Setting = None,
    sequence: o.Sequence = None,
) -> None:
    """Learn from a data file and save the model.

    Tables: .csv, .csv.gz, .tsv, .parquet. Numbers are standardised, categories one-hot encoded, free text becomes
    TF-IDF. Arrays: .npz with X and y. Sparse: .svm, .svmlight, .libsvm, or .npz with X_data, X_indices, X_indptr,
    X_shape and y. Pairs: a table of ids and tables of the objects, --left and --right. Label sequences: a table with
    one row for each position and --sequence, or tokens with their labels, .conll, .bio and .iob.
    A table of what was decided is printed.
    """
    settings = o.Settings(
        target=target,
        task=task,
        taxonomy=taxonomy,
        share=share,
        kernel=kernel,
        regularization=regularization,
        optimize=optimize,
        left=left,
        right=right,
        pairwise_kernel=pairwise_kernel,
        setting=setting,
        sequence=sequence,
    )
    with errors.one_line_errors():
        errors.check_place(out)
        errors.require("skops", purpose=f"Writing {out}")
        from gramian.cli.model_file import Model, save

        console = get_console()
        plan = _planned(data, settings)
        console.print(plan.table())
        outcome = plan.fit(console)
        save(Model(plan.pipeline, plan.task, plan.layout, plan.objects), out)
        console.print(outcome, highlight=False)
        console.print(
            f"Model: [bold]{escape(errors.visible(str(out)))}[/bold]",
            highlight=False,
            soft_wrap=True,
        )


def _planned(data: Path, settings: o.Settings) -> Any:
    """Return the plan for pairs, for label sequences or for single examples."""
    from gramian.cli.pair_plan import plan_pairs
    from gramian.cli.plan import plan_examples
    from gramian.cli.sequence_plan import plan_sequences
    from gramian.cli.tables import TOKENS, extension_of

    if settings.of_pairs:
        return plan_pairs(data, settings)
    if settings.sequence is not None or extension_of(data) in TOKENS:
        return plan_sequences(data, settings)
    return plan_examples(data, settings)


@command(
    "gramian predict model.skops new.csv | head",
    "gramian predict model.skops new.csv --proba --out predictions.parquet",
    "gramian predict pairs.skops new_pairs.csv --left new_drugs.csv",
)
def predict(
    model: o.ModelFile,
    data: o.Data,
    out: o.PredictionsOut = None,
    proba: o.Proba = False,
    nodes: o.Nodes = False,
    left: o.Left = None,
    right: o.Right = None,
    safe_csv: o.SafeCsv = False,
) -> None:
    """Predict for new data with a saved model.

    Writes a column [bold]prediction[/bold], as CSV to the terminal or to a .csv or .parquet file. The rows are in
    the order of the data. For label sequences there is one row for each position, and the columns
    [bold]sequence[/bold] and [bold]position[/bold] come first. A model file is data: nothing in it is executed.
    """
    with errors.one_line_errors():
        if out is not None:
            errors.check_place(out, o.PREDICTION_FORMATS)
        from gramian.cli.model_file import load_with_data
        from gramian.cli.predictions import harmless, predictions, write, write_csv

        fitted, X, _ = load_with_data(model, data, left, right, need_target=False)
        with errors.readable_warnings():  # of pairs about which a kernel knows nothing
            columns = predictions(fitted, X, proba=proba, nodes=nodes)
        if safe_csv:
            columns = harmless(columns)
        if out is not None:
            write(columns, out)
        elif sys.stdout.isatty():
            write_csv(columns, sys.stdout, errors.visible)
        else:
            write_csv(columns, sys.stdout)


@command(
    "gramian evaluate model.skops test.csv",
    "gramian evaluate model.skops test.csv --json - | jq .metrics.log_loss",
)
def evaluate(
    model: o.ModelFile,
    data: o.Data,
    report: o.Report = None,
    left: o.Left = None,
    right: o.Right = None,
) -> None:
    """Compare the predictions of a saved model with the truth in the data.

    Classification: accuracy, balanced accuracy, macro F1, log loss, expected calibration error; with a taxonomy also
    taxonomic loss, parent accuracy, hierarchical F1 and reciprocal rank. Regression: RMSE, MAE, R².
    Pairs: also AUC, AUPR and concordance for known and for new objects. Label sequences: accuracy of positions and of
    whole sequences, F1 of chunks, log probability for each position.
    """
    with errors.one_line_errors():
        to_stdout = report == Path("-")
        if report is not None and not to_stdout:
            errors.check_place(report)
        from gramian.cli.evaluate import measured, tables
        from gramian.cli.model_file import load_with_data

        fitted, X, y = load_with_data(model, data, left, right, need_target=True)
        with errors.readable_warnings():  # of settings that have one class only, for example
            content = {"model": str(model), "data": str(data)} | measured(fitted, X, y)
        text = json.dumps(content, indent=2)
        if to_stdout:
            typer.echo(text)
            return
        get_console().print(*tables(content), sep="\n")
        if report is not None:
            with whole_file(report) as file:
                file.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Run the command line."""
    app()
