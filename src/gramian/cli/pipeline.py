"""From data to a scikit-learn pipeline, and a table that says what was decided.

Numbers: the median for what is missing, then mean 0 and variance 1. Categories: one-hot. Free text: TF-IDF with
1 + log(count), rows of length one. Everything is a class of scikit-learn or gramian, so that skops can store it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.table import Table
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gramian import KernelLogisticRegression, KernelRidge
from gramian.cli.errors import UserError
from gramian.cli.tables import CATEGORY, NUMBER, TEXT, Layout

__all__ = ["Plan", "plan"]

CLASSIFICATION, REGRESSION = "classification", "regression"

# Whole numbers with more values than this are quantities, not classes, unless --task says so.
MOST_NUMBERED_CLASSES = 20
# Sparse rows with more features than this are counts of words and the like: linear is enough.
MANY_FEATURES = 1000

OPTION_OF = {"hierarchy": "--taxonomy", "share": "--share", "optimize": "--optimize"}


@dataclass(frozen=True)
class Plan:
    """What is going to be fitted.

    Attributes
    ----------
    pipeline : Pipeline
        Not fitted yet.
    task : {"classification", "regression"}
    y : ndarray of shape (n_samples,)
        The target as the model wants it.
    decisions : list of (str, str)
        What was decided, for `table`.
    """

    pipeline: Pipeline
    task: str
    y: np.ndarray
    decisions: list[tuple[str, str]]

    def table(self) -> Table:
        """Return the decisions as a table."""
        table = Table(title="What is fitted", title_justify="left", show_header=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        for row in self.decisions:
            table.add_row(*row)
        return table


def plan(
    X: Any,
    y: np.ndarray,
    layout: Layout,
    *,
    task: str = "auto",
    taxonomy: Any = None,
    kernel: str | None = None,
    regularization: float | None = None,
    share: str | None = None,
    optimize: str | None = None,
) -> Plan:
    """Decide task, preprocessing and kernel where the user did not.

    Parameters
    ----------
    X : DataFrame, ndarray or CSR array
    y : ndarray of shape (n_samples,)
    layout : Layout
    task : {"auto", "classification", "regression"}, default="auto"
    taxonomy : Taxonomy, default=None
    kernel, regularization, share, optimize : default=None
        Parameters of the estimator; None leaves them at their defaults.

    Returns
    -------
    Plan
    """
    task, task_reason, y = decided(task, y, taxonomy)
    if taxonomy is not None:
        taxonomy.index(np.unique(y))  # a label that is not in it: now, not after the preprocessing
    kernel_name, kernel_reason = _kernel(X, layout)
    parameters = {
        "hierarchy": taxonomy,
        "regularization": regularization,
        "share": share,
        "optimize": optimize,
    }
    estimator = _estimator(
        task,
        kernel=kernel or kernel_name,
        **{name: value for name, value in parameters.items() if value is not None},
    )
    steps: list[tuple[str, BaseEstimator]] = [("model", estimator)]
    columns, features = preprocessing(layout)
    if columns is not None:
        steps.insert(0, ("columns", columns))
    decisions = [
        ("Rows", f"{len(y)}"),
        ("Target", f"{layout.target or 'in the file'}: {target_summary(task, y)} ({task_reason})"),
        *features,
        ("Left out", "; ".join(f"{name} ({why})" for name, why in layout.left_out.items())),
        ("Taxonomy", "" if taxonomy is None else f"{taxonomy.n_nodes} nodes, {taxonomy.n_leaves} leaves"),
        ("Kernel", f"{kernel or kernel_name} ({'--kernel' if kernel else kernel_reason})"),
        ("Model", type(estimator).__name__),
        ("Learned", "kernel parameters, by cross-validation" if optimize else ""),
    ]  # fmt: skip
    return Plan(Pipeline(steps), task, y, [row for row in decisions if row[1]])


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


def _kernel(X: Any, layout: Layout) -> tuple[str, str]:
    if list(layout.columns.values()) == [TEXT]:
        return "linear", "text alone"
    if sp.issparse(X) and layout.n_features > MANY_FEATURES:
        return "linear", f"sparse, more than {MANY_FEATURES} features"
    return "rbf", "default"


def _estimator(task: str, **parameters: Any) -> Any:
    kind = KernelLogisticRegression if task == CLASSIFICATION else KernelRidge
    for name in parameters:
        if name not in kind().get_params(deep=False):
            raise UserError(f"{kind.__name__} does not know {OPTION_OF.get(name, name)}.")
    return kind(**parameters)


def preprocessing(layout: Layout) -> tuple[Any, list[tuple[str, str]]]:
    """Return the transformer, None if there is nothing to do, and what it does."""
    if layout.source == "sparse":
        return None, [("Features", f"{layout.n_features}, sparse, as they are")]
    if layout.source == "array":
        return _standardised(), [("Features", f"{layout.n_features}, standardised")]
    names = {
        kind: [name for name, its in layout.columns.items() if its == kind]
        for kind in (NUMBER, CATEGORY, TEXT)
    }
    transformers: list[tuple[str, Any, Any]] = []
    done = []
    if names[NUMBER]:
        transformers.append(("numbers", _standardised(), names[NUMBER]))
        done.append(("Numbers", f"{_listed(names[NUMBER])}: median if missing, standardised"))
    if names[CATEGORY]:
        one_hot = OneHotEncoder(handle_unknown="ignore")
        transformers.append(("categories", one_hot, names[CATEGORY]))
        done.append(("Categories", f"{_listed(names[CATEGORY])}: one-hot"))
    for place, name in enumerate(names[TEXT]):
        transformers.append((f"text {place}", TfidfVectorizer(sublinear_tf=True, norm="l2"), name))
    if names[TEXT]:
        done.append(("Text", f"{_listed(names[TEXT])}: TF-IDF of words"))
    text_alone = not names[NUMBER] and not names[CATEGORY]
    return ColumnTransformer(transformers, sparse_threshold=1.0 if text_alone else 0.3), done


def _standardised() -> Pipeline:
    return make_pipeline(SimpleImputer(strategy="median"), StandardScaler())


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:6])}, ... ({len(names)})" if len(names) > 6 else ", ".join(names)
