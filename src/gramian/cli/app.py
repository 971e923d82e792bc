"""Commands, their options, and how errors become messages and exit codes.

Exit codes: 0 done, 1 something failed, 2 wrong usage, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich import get_console
from rich.markup import escape

from gramian.cli.choices import Kernel, Optimize, PairwiseKernel, Setting, Share, Task
from gramian.cli.errors import UserError, one_line_errors, readable_warnings, require

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

[cyan]gramian fit train.csv --target species --out model.skops[/cyan]   learn from a table

[cyan]gramian predict model.skops new.csv --proba --out predictions.csv[/cyan]   apply it

[cyan]gramian evaluate model.skops test.csv[/cyan]   compare with the truth

[cyan]gramian fit --help[/cyan]   all options of a command

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

FIT_HELP = (
    "Learn from a data file and save the model.\n\n"
    "Tables: .csv, .csv.gz, .tsv, .parquet. Numbers are standardised, categories one-hot encoded, free text becomes "
    "TF-IDF. Arrays: .npz with X and y. Sparse: .svm, .svmlight, .libsvm, or .npz with X_data, X_indices, X_indptr, "
    "X_shape and y. Pairs: a table of ids and tables of the objects, --left and --right. "
    "A table of what was decided is printed."
)
FIT_EPILOG = """
[bold]Examples[/bold]

[cyan]gramian fit train.csv --target species --out model.skops[/cyan]

[cyan]gramian fit news.parquet --target topic --taxonomy topics.json --out news.skops[/cyan]

[cyan]gramian fit pairs.csv --left drugs.csv --right targets.csv --target affinity --out pairs.skops[/cyan]

[cyan]gramian fit rows.svm --kernel linear --regularization 0.1 --out rows.skops[/cyan]
"""

PREDICT_HELP = (
    "Predict for new data with a saved model.\n\n"
    "Writes a column [bold]prediction[/bold], as CSV to the terminal or to a .csv or .parquet file. The rows are in "
    "the order of the data. A model file is data: nothing in it is executed."
)
PREDICT_EPILOG = """
[bold]Examples[/bold]

[cyan]gramian predict model.skops new.csv | head[/cyan]

[cyan]gramian predict model.skops new.csv --proba --out predictions.parquet[/cyan]

[cyan]gramian predict pairs.skops new_pairs.csv --left new_drugs.csv[/cyan]
"""

EVALUATE_HELP = (
    "Compare the predictions of a saved model with the truth in the data.\n\n"
    "Classification: accuracy, balanced accuracy, macro F1, log loss, expected calibration error; with a taxonomy also "
    "taxonomic loss, parent accuracy, hierarchical F1 and reciprocal rank. Regression: RMSE, MAE, R². "
    "Pairs: also AUC, AUPR and concordance for known and for new objects."
)
EVALUATE_EPILOG = """
[bold]Examples[/bold]

[cyan]gramian evaluate model.skops test.csv[/cyan]

[cyan]gramian evaluate model.skops test.csv --json - | jq .metrics.log_loss[/cyan]
"""

PREDICTION_FORMATS = (".csv", ".parquet")
DEFAULT_FIGURE = Path("gramian-demo.png")
FORMATS = (".png", ".svg", ".pdf")


DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="Data file; see gramian fit --help.")
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Written by gramian fit.")]

LeftFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Pairs: table of the left objects, the id in its first column. Alone: of both."),
]  # fmt: skip
RightFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Pairs: table of the right objects.")
]

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


@app.command(help=FIT_HELP, epilog=FIT_EPILOG)
def fit(
    data: DataFile,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="MODEL", help="Where to write the model: .skops.")
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COL",
            help="Column to predict. In .npz the array, by default y; not for svmlight files.",
        ),
    ] = None,
    task: Annotated[
        Task, typer.Option(help="auto: text and few different whole numbers are classes.")
    ] = Task.auto,
    taxonomy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Taxonomy of the classes: .json (nested, or child: parent), .csv (columns parent and child) "
            "or .txt (a path like a/b/c in each line).",
        ),
    ] = None,
    share: Annotated[
        Share | None,
        typer.Option(help="Which nodes of the taxonomy have the same kernel.", show_default="tied"),
    ] = None,
    kernel: Annotated[
        Kernel | None,
        typer.Option(
            help="Kernel.", show_default="rbf; linear for text alone and wide sparse data"
        ),
    ] = None,
    regularization: Annotated[
        float | None,
        typer.Option(metavar="λ", help="Larger is smoother; more than 0.", show_default="1.0"),
    ] = None,
    optimize: Annotated[
        Optimize | None,
        typer.Option(help="Learn kernel parameters by the gradient of cross-validation."),
    ] = None,
    left: LeftFile = None,
    right: RightFile = None,
    pairwise_kernel: Annotated[
        PairwiseKernel | None,
        typer.Option(
            help="Pairs: how kernels of objects make one of pairs.",
            show_default="kronecker; symmetric for --left alone",
        ),
    ] = None,
    setting: Annotated[
        Setting | None,
        typer.Option(
            help="Pairs: what --optimize learns for. A known objects, B new left ones, C new right ones, D both new.",
            show_default="A",
        ),
    ] = None,
) -> None:
    """Learn from a data file and save the model."""
    with one_line_errors():
        _check_place(out)
        require("skops", purpose=f"Writing {out}")
        from sklearn.callback import ProgressBar

        from gramian.cli.model_file import Model, save
        from gramian.cli.pair_plan import plan_pairs, refuse_other_options
        from gramian.cli.pair_tables import read_training_pairs
        from gramian.cli.pipeline import plan
        from gramian.cli.tables import read_training
        from gramian.cli.taxonomy_file import read_taxonomy

        console = get_console()
        objects = None
        if left is not None or right is not None:
            others = {"--taxonomy": taxonomy, "--share": share and share.value}
            refuse_other_options(others, "is for single examples, not for pairs: leave it out.")
            X, y, layout, objects = read_training_pairs(data, left, right, target)
            todo = plan_pairs(
                X,
                y,
                layout,
                task=task.value,
                kernel=kernel and kernel.value,
                pairwise_kernel=pairwise_kernel and pairwise_kernel.value,
                regularization=regularization,
                optimize=optimize and optimize.value,
                setting=setting and setting.value,
            )
        else:
            others = {
                "--pairwise-kernel": pairwise_kernel and pairwise_kernel.value,
                "--setting": setting and setting.value,
            }
            refuse_other_options(others, "is for pairs: give a table of the objects by --left.")
            tree = None if taxonomy is None else read_taxonomy(taxonomy)
            X, y, layout = read_training(data, target, labels_are_text=tree is not None)
            todo = plan(
                X,
                y,
                layout,
                task=task.value,
                taxonomy=tree,
                kernel=kernel and kernel.value,
                regularization=regularization,
                share=share and share.value,
                optimize=optimize and optimize.value,
            )
        console.print(todo.table())
        pipeline = todo.pipeline
        if console.is_terminal:
            pipeline.set_callbacks(ProgressBar())
        start = time.perf_counter()
        with readable_warnings():
            pipeline.fit(X, todo.y)
        seconds = time.perf_counter() - start
        pipeline.set_callbacks()  # the bar is not part of the model
        save(Model(pipeline, todo.task, layout.with_labels(todo.y), objects), out)
        solution = pipeline[-1].solution_
        leaves = set(getattr(pipeline[-1], "classes_", []))
        if todo.task == "classification" and not leaves.issuperset(todo.y):
            # labels at inner nodes: the objective is not convex
            bound = "relatively, of what the next step could reach"
        else:
            bound = "relatively, of its minimum; that is proven"
        console.print(
            f"{solution.status.capitalize()} in {seconds:.1f} s: the objective is within "
            f"{solution.relative_gap:.1e}, {bound}.",
            highlight=False,
        )
        console.print(f"Model: [bold]{escape(str(out))}[/bold]", highlight=False, soft_wrap=True)


@app.command(help=PREDICT_HELP, epilog=PREDICT_EPILOG)
def predict(
    model: ModelFile,
    data: DataFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help=f"Where to write: {', '.join(PREDICTION_FORMATS)}.",
            show_default="CSV to the terminal",
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add a column for the probability of each class.")
    ] = False,
    nodes: Annotated[
        bool, typer.Option("--nodes", help="Add one for each node of the taxonomy.")
    ] = False,
    left: LeftFile = None,
    right: RightFile = None,
) -> None:
    """Predict for new data with a saved model."""
    with one_line_errors():
        if out is not None:
            _check_place(out, PREDICTION_FORMATS)
        from gramian.cli.model_file import load
        from gramian.cli.new_data import new_data
        from gramian.cli.predictions import predictions, write, write_csv

        with readable_warnings():  # other versions of scikit-learn, for example
            fitted = load(model)
        X, _ = new_data(fitted, data, left, right, need_target=False)
        with readable_warnings():  # of pairs about which a kernel knows nothing
            columns = predictions(fitted, X, proba=proba, nodes=nodes)
        if out is None:
            write_csv(columns, sys.stdout)
        else:
            write(columns, out)


@app.command(help=EVALUATE_HELP, epilog=EVALUATE_EPILOG)
def evaluate(
    model: ModelFile,
    data: DataFile,
    report: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="Write JSON; - prints it instead of the table."
        ),
    ] = None,
    left: LeftFile = None,
    right: RightFile = None,
) -> None:
    """Compare the predictions of a saved model with the truth in the data."""
    with one_line_errors():
        to_stdout = report == Path("-")
        if report is not None and not to_stdout:
            _check_place(report)
        from gramian.cli.evaluate import by_setting, setting_table, table
        from gramian.cli.evaluate import evaluate as measure
        from gramian.cli.model_file import load
        from gramian.cli.new_data import new_data

        with readable_warnings():  # other versions of scikit-learn, for example
            fitted = load(model)
        X, y = new_data(fitted, data, left, right, need_target=True)
        with readable_warnings():  # of settings that have one class only, for example
            values = measure(fitted, X, y)
            settings = None if fitted.objects is None else by_setting(fitted, X, y)
        content = {
            "model": str(model),
            "data": str(data),
            "task": fitted.task,
            "rows": len(y),
            "metrics": values,
        }
        tables = [table(values, f"{fitted.task.capitalize()}, {len(y)} rows")]
        if settings is not None:
            content["settings"] = settings
            tables.append(setting_table(settings))
        text = json.dumps(content, indent=2)
        if to_stdout:
            typer.echo(text)
            return
        get_console().print(*tables, sep="\n")
        if report is not None:
            report.write_text(text + "\n", encoding="utf-8")


def _check_place(path: Path, formats: tuple[str, ...] = ()) -> None:
    """Refuse a place that cannot be written before the work, not after it."""
    problem = _problem_of_place(path, formats)
    if problem:
        raise UserError(problem)


def _problem_of_place(path: Path, formats: tuple[str, ...]) -> str | None:
    if formats and path.suffix.lower() not in formats:
        return f"{path} must end in one of {', '.join(formats)}."
    if path.is_dir():
        return f"{path} is a folder; name a file in it."
    if not path.parent.is_dir():
        return f"There is no folder {path.parent}; make it first."
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return f"No permission to write {path}."
    return None


def _checked_figure(path: Path) -> Path:
    problem = _problem_of_place(path, FORMATS)
    if problem:
        raise typer.BadParameter(problem, param_hint="'--output'")
    return path


def main() -> None:
    """Run the command line."""
    app()
