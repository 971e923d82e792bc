"""From a data file to a scikit-learn pipeline, and a table that says what was decided.

Numbers: the median for what is missing, then mean 0 and variance 1. Categories: one-hot. Free text: TF-IDF with
1 + log(count), rows of length one. Everything is a class of scikit-learn or gramian, so that skops can store it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sklearn.callback import ProgressBar
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler

from gramian import KernelLogisticRegression, KernelRidge
from gramian.cli.errors import UserError, readable_warnings, refuse_options, visible
from gramian.cli.options import Settings
from gramian.cli.tables import CATEGORY, NUMBER, TEXT, Layout, read_training
from gramian.cli.taxonomy_file import read_taxonomy
from gramian.estimators.learning import heavy_tails

CLASSIFICATION, REGRESSION = "classification", "regression"

# Whole numbers with more values than this are quantities, not classes, unless --task says so.
MOST_NUMBERED_CLASSES = 20
# Sparse rows with more features than this are counts of words and the like: linear is enough.
MANY_FEATURES = 1000


@dataclass(frozen=True)
class Plan:
    """What is going to be fitted.

    Attributes
    ----------
    pipeline : Pipeline
        Not fitted yet.
    task : {"classification", "regression"}
    X : DataFrame, ndarray, CSR array, Pairs or list of lists of tokens
    y : ndarray of shape (n_samples,)
        The target as the model wants it; for sequences an array of labels each.
    layout : Layout or PairLayout
    decisions : list of (str, str)
        What was decided, for `table`; empty decisions are not shown.
    objects : Objects, default=None
        What pairs are made of.
    """

    pipeline: Pipeline
    task: str
    X: Any
    y: np.ndarray
    layout: Any
    decisions: list[tuple[str, str]]
    objects: Any = None

    def table(self) -> Table:
        """Return the decisions as a table."""
        table = Table(title="What is fitted", title_justify="left", show_header=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        for name, decision in self.decisions:
            if decision:
                table.add_row(name, Text(visible(decision)))  # names of columns are no markup
        return table

    def fit(self, console: Console) -> str:
        """Fit, with progress for those who watch; return a sentence about the result."""
        if console.is_terminal:
            self.pipeline.set_callbacks(ProgressBar())
        start = time.perf_counter()
        with readable_warnings():
            self.pipeline.fit(self.X, self.y)
        seconds = time.perf_counter() - start
        self.pipeline.set_callbacks()  # the bar is not part of the model
        bound = "relatively, of its minimum; that is proven"
        labels = np.concatenate(self.y) if self.y.dtype == object else self.y
        if self.task == CLASSIFICATION and not set(self.pipeline.classes_).issuperset(labels):
            # labels at inner nodes, or not known: the objective is not convex
            bound = "relatively, of what the next step could reach"
        solution = self.pipeline[-1].solution_
        return (
            f"{solution.status.capitalize()} in {seconds:.1f} s: the objective is within "
            f"{solution.relative_gap:.1e}, {bound}."
        )


def plan_examples(data: Path, settings: Settings) -> Plan:
    """Read single examples, and decide task, preprocessing and kernel where the user did not.

    Parameters
    ----------
    data : Path
    settings : Settings

    Returns
    -------
    Plan
    """
    why = "is for pairs: give a table of the objects by --left."
    refuse_options(why, pairwise_kernel=settings.pairwise_kernel, setting=settings.setting)
    taxonomy = None if settings.taxonomy is None else read_taxonomy(settings.taxonomy)
    X, y, layout = read_training(data, settings.target, labels_are_text=taxonomy is not None)
    task, task_reason, y = decided(settings.task, y, taxonomy)
    if taxonomy is not None:
        taxonomy.index(np.unique(y))  # a label that is not in it: now, not after the preprocessing
    kernel, kernel_reason = chosen_kernel(settings, X, layout)
    estimator = _estimator(settings, task, kernel, taxonomy)
    columns, features = preprocessing(layout, X)
    steps = [("columns", columns), ("model", estimator)]
    decisions = [
        ("Rows", f"{len(y)}"),
        ("Target", f"{layout.target or 'in the file'}: {target_summary(task, y)} ({task_reason})"),
        *features,
        ("Left out", "; ".join(f"{name} ({why})" for name, why in layout.left_out.items())),
        ("Taxonomy", "" if taxonomy is None else f"{taxonomy.n_nodes} nodes, {taxonomy.n_leaves} leaves"),
        ("Kernel", f"{kernel} ({kernel_reason})"),
        ("Model", type(estimator).__name__),
        ("Learned", "kernel parameters, by cross-validation" if settings.optimize else ""),
    ]  # fmt: skip
    pipeline = Pipeline([step for step in steps if step[1] is not None])
    return Plan(pipeline, task, X, y, layout.with_labels(y), decisions)


def decided(task: str, y: np.ndarray, taxonomy: Any = None) -> tuple[str, str, np.ndarray]:
    """Return the task, why, and the target as the model wants it."""
    task, reason = _task(task, y, taxonomy)
    if task == REGRESSION:
        if y.dtype.kind not in "iuf":
            raise UserError(f"--task regression needs numbers as target, got {str(y[0])!r}.")
        y = y.astype(np.float64)
    return task, reason, y


def _task(task: str, y: np.ndarray, taxonomy: Any) -> tuple[str, str]:
    if taxonomy is not None:
        if task == REGRESSION:
            raise UserError("--taxonomy is for classification: leave --task regression out.")
        return CLASSIFICATION, "--taxonomy"
    if task != "auto":
        return task, "--task"
    if y.dtype.kind not in "iuf":
        return CLASSIFICATION, "labels are text"
    if y.dtype.kind == "f":
        return REGRESSION, "not all numbers are whole"
    distinct = len(np.unique(y))
    if distinct <= MOST_NUMBERED_CLASSES:
        return CLASSIFICATION, f"{distinct} different whole numbers; else --task regression"
    return REGRESSION, f"{distinct} different whole numbers; else --task classification"


def target_summary(task: str, y: np.ndarray) -> str:
    """Say what the target is."""
    if task == REGRESSION:
        return f"regression, {y.min():.4g} to {y.max():.4g}"
    return f"classification, {len(np.unique(y))} classes"


def chosen_kernel(
    settings: Settings, X: Any, layout: Layout, *, otherwise: str = "auto"
) -> tuple[str, str]:
    """Return the kernel, and why; ``otherwise`` is the one for tables of numbers."""
    if settings.kernel is not None:
        return settings.kernel, "--kernel"
    if list(layout.columns.values()) == [TEXT]:
        return "linear", "text alone"
    if sp.issparse(X) and layout.n_features > MANY_FEATURES:
        return "linear", f"sparse, more than {MANY_FEATURES} features"
    return otherwise, "default"


def parameters(settings: Settings, taxonomy: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that were asked for; the others stay at their defaults."""
    asked = {
        "hierarchy": taxonomy,
        "regularization": settings.regularization,
        "share": settings.share,
        "optimize": settings.optimize,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _estimator(settings: Settings, task: str, kernel: str, taxonomy: Any) -> Any:
    """Return the estimator of the task."""
    given = parameters(settings, taxonomy)
    if task == CLASSIFICATION:
        return KernelLogisticRegression(kernel, **given)
    if settings.share is not None:
        raise UserError("KernelRidge does not know --share.")
    return KernelRidge(kernel, **given)


def _standardised() -> Pipeline:
    return make_pipeline(SimpleImputer(strategy="median"), StandardScaler())


def _ranked() -> Pipeline:
    ranks = QuantileTransformer(output_distribution="normal", random_state=0)
    return make_pipeline(SimpleImputer(strategy="median"), ranks)


# For each kind of column: its name, what is done with it, and by which transformer.
HEAVY = "number with heavy tails"
PREPARED = {
    NUMBER: ("Numbers", "median if missing, standardised", _standardised),
    HEAVY: ("Heavy tails", "median if missing, ranks made normal", _ranked),
    CATEGORY: ("Categories", "one-hot", lambda: OneHotEncoder(handle_unknown="ignore")),
    TEXT: ("Text", "TF-IDF of words", lambda: TfidfVectorizer(sublinear_tf=True, norm="l2")),
}


def preprocessing(layout: Layout, table: Any = None) -> tuple[Any, list[tuple[str, str]]]:
    """Return the transformer, None if there is nothing to do, and what it does.

    Numbers with heavy tails are told from others by the table of the training examples, if it is given.
    """
    if layout.source == "sparse":
        return None, [("Features", f"{layout.n_features}, sparse, as they are")]
    if layout.source == "array":
        return _standardised(), [("Features", f"{layout.n_features}, standardised")]
    kinds = dict(layout.columns)
    numbers = [name for name, kind in kinds.items() if kind == NUMBER]
    if table is not None and numbers:
        heavy = heavy_tails(table[numbers].to_numpy(dtype=np.float64, na_value=np.nan))
        kinds |= {name: HEAVY for name, is_heavy in zip(numbers, heavy, strict=True) if is_heavy}
    transformers, done = [], []
    for kind, (title, what, make) in PREPARED.items():
        names = [name for name, its in kinds.items() if its == kind]
        if kind == TEXT:  # each column has words of its own
            transformers += [(f"text {place}", make(), name) for place, name in enumerate(names)]
        elif names:
            transformers.append((title.lower(), make(), names))
        if names:
            done.append((title, f"{_listed(names)}: {what}"))
    text_alone = set(layout.columns.values()) == {TEXT}
    return ColumnTransformer(transformers, sparse_threshold=1.0 if text_alone else 0.3), done


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:6])}, ... ({len(names)})" if len(names) > 6 else ", ".join(names)
