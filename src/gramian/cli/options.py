"""Options of the commands, each written once, and the settings that `gramian fit` makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

PREDICTION_FORMATS = (".csv", ".parquet")
FIGURE_FORMATS = (".png", ".svg", ".pdf")
DEFAULT_FIGURE = Path("gramian-demo.png")

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Data file; see gramian fit --help.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Written by gramian fit.")]
Left = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Pairs: table of the left objects, the id in its first column. Alone: of both.",
    ),
]
Right = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Pairs: table of the right objects.")
]

ModelOut = Annotated[
    Path, typer.Option("--out", "-o", metavar="MODEL", help="Where to write the model: .skops.")
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COL",
        help="Column to predict. In .npz the array, by default y; in .conll, .bio and .iob the number of the field, "
        "counted from 0, by default the last; not for svmlight files.",
    ),
]
Sequence = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Label sequences: column that has the same value in all rows of a sequence.",
    ),
]
Task = Annotated[
    Literal["auto", "classification", "regression"],
    typer.Option(help="auto: text and few different whole numbers are classes."),
]
TaxonomyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Taxonomy of the classes: .json (nested, or child: parent), .csv (columns parent and child) "
        "or .txt (a path like a/b/c in each line).",
    ),
]
Share = Annotated[
    Literal["tied", "class", "level", "subtree"] | None,
    typer.Option(help="Which nodes of the taxonomy have the same kernel.", show_default="tied"),
]
KernelName = Annotated[
    Literal[
        "rbf",
        "matern12",
        "matern32",
        "matern52",
        "rational_quadratic",
        "laplacian",
        "linear",
        "polynomial",
    ]
    | None,
    typer.Option(
        help="Kernel.",
        show_default="the best of rbf, matern32 and laplacian; rbf for sequences and pairs; linear for text alone, "
        "tokens and wide sparse data",
    ),
]
Regularization = Annotated[
    float | None,
    typer.Option(metavar="λ", help="Larger is smoother; more than 0.", show_default="1.0"),
]
Optimize = Annotated[
    Literal["cv"] | None,
    typer.Option(help="Learn kernel parameters by the gradient of cross-validation."),
]
PairwiseKernelName = Annotated[
    Literal[
        "linear",
        "poly2d",
        "kronecker",
        "gaussian",
        "cartesian",
        "symmetric",
        "antisymmetric",
        "ranking",
        "mlpk",
    ]
    | None,
    typer.Option(
        help="Pairs: how kernels of objects make one of pairs.",
        show_default="kronecker; symmetric for --left alone",
    ),
]
Setting = Annotated[
    Literal["A", "B", "C", "D"] | None,
    typer.Option(
        help="Pairs: what --optimize learns for. A known objects, B new left ones, C new right ones, D both new.",
        show_default="A",
    ),
]

PredictionsOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help=f"Where to write: {', '.join(PREDICTION_FORMATS)}.",
        show_default="CSV to the terminal",
    ),
]
Proba = Annotated[
    bool, typer.Option("--proba", help="Add a column for the probability of each class.")
]
Nodes = Annotated[bool, typer.Option("--nodes", help="Add one for each node of the taxonomy.")]
SafeCsv = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        help="Put an apostrophe before text that a spreadsheet would compute (= + - @).",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write JSON; - prints it instead of the table."),
]

FigureOut = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FIGURE",
        help=f"Where to write the figure: {', '.join(FIGURE_FORMATS)}.",
        show_default=str(DEFAULT_FIGURE),
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, max=2**32 - 1, help="Which split into training and test half."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Train on 300 examples only: a few seconds.")]


@dataclass(frozen=True)
class Settings:
    """What `gramian fit` was asked for; None leaves a decision to the plan."""

    target: str | None
    task: str
    taxonomy: Path | None
    share: str | None
    kernel: str | None
    regularization: float | None
    optimize: str | None
    left: Path | None
    right: Path | None
    pairwise_kernel: str | None
    setting: str | None
    sequence: str | None

    @property
    def of_pairs(self) -> bool:
        """Whether the examples are pairs of objects, which have tables of their own."""
        return self.left is not None or self.right is not None
