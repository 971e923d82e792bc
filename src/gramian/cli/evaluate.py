"""How good the predictions are: numbers for a table and for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table
from sklearn import metrics as sk_metrics

from gramian import Pairs, metrics
from gramian.cli.errors import UserError
from gramian.cli.model_file import SEQUENCES, Model
from gramian.cli.pair_plan import SETTINGS
from gramian.cli.sequence_tables import known_labels
from gramian.selection import pair_setting

# What the JSON calls it: what the table calls it, and whether more is better.
NAMES = {
    "accuracy": ("Accuracy", True),
    "position_accuracy": ("Accuracy of positions", True),
    "sequence_accuracy": ("Accuracy of sequences", True),
    "chunk_f1": ("F1 of chunks", True),
    "log_probability": ("Log probability for each position", True),
    "balanced_accuracy": ("Balanced accuracy", True),
    "macro_f1": ("Macro F1", True),
    "log_loss": ("Log loss", False),
    "expected_calibration_error": ("Expected calibration error", False),
    "taxo_loss": ("Taxonomic loss", False),
    "parent_accuracy": ("Parent accuracy", True),
    "hierarchical_f1": ("Hierarchical F1", True),
    "reciprocal_rank": ("Reciprocal rank", True),
    "rmse": ("Root mean squared error", False),
    "mae": ("Mean absolute error", False),
    "r2": ("R²", True),
}


def measured(model: Model, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Compare predictions with the truth.

    Parameters
    ----------
    model : Model
    X : DataFrame, ndarray, CSR array, Pairs or list of lists of tokens
    y : ndarray of shape (n_samples,)
        For sequences an array of labels each.

    Returns
    -------
    dict
        "task", "rows", and "metrics": a value for names of `NAMES`. For pairs also "settings". The rows of sequences
        are the positions that have a label.
    """
    if model.kind == SEQUENCES:
        known = known_labels(y)
        scores = _sequences(model, X, y, known)
        return {"task": model.task, "rows": len(known), "metrics": scores}
    values = _regression(model, X, y) if model.task == "regression" else _classes(model, X, y)
    numbers = {name: float(value) for name, value in values.items()}
    report = {"task": model.task, "rows": len(y), "metrics": numbers}
    return report if model.objects is None else report | {"settings": _by_setting(model, X, y)}


def tables(report: dict[str, Any]) -> list[Table]:
    """Return the numbers of `measured` as tables."""
    title = f"{report['task'].capitalize()}, {report['rows']} rows"
    result = Table(title=title, title_justify="left")
    result.add_column("Measure")
    result.add_column("Value", justify="right", no_wrap=True)
    result.add_column("Better", no_wrap=True)
    for name, value in report["metrics"].items():
        label, more = NAMES[name]
        result.add_row(label, f"{value:.4f}", "higher" if more else "lower")
    return [result, _setting_table(report["settings"])] if "settings" in report else [result]


def _by_setting(model: Model, X: Pairs, y: np.ndarray) -> dict[str, dict[str, float | None]]:
    """Compare predictions of pairs with the truth, for each way in which a pair can be new.

    The result is that of `gramian.metrics.scores_by_setting`, with None for NaN; of more than two classes it holds
    "pairs" and "accuracy".
    """
    train = model.pipeline[-1].X_fit_
    if model.task == "regression":
        scores = metrics.scores_by_setting(train, X, y, model.pipeline.predict(X))
    elif len(model.pipeline.classes_) == 2:
        positive = (y == model.pipeline.classes_[1]).astype(int)
        scores = metrics.scores_by_setting(train, X, positive, model.pipeline.decision_function(X))
    else:
        right, settings = model.pipeline.predict(X) == y, pair_setting(train, X)
        chosen = {name: right[settings == name] for name in np.unique(settings).tolist()}
        scores = {k: {"pairs": len(v), "accuracy": float(v.mean())} for k, v in chosen.items()}
    return {
        setting: {name: None if np.isnan(value) else value for name, value in row.items()}
        for setting, row in scores.items()
    }


def _setting_table(values: dict[str, dict[str, float | None]]) -> Table:
    """Return the numbers of `_by_setting` as a table."""
    result = Table(title="By setting", title_justify="left")
    result.add_column("Setting", no_wrap=True)
    for name in next(iter(values.values())):
        label = name.upper() if name in ("auc", "aupr") else name.capitalize()
        result.add_column(label, justify="right", no_wrap=True)
    for setting, row in values.items():
        numbers = [
            "" if value is None else str(value) if name == "pairs" else f"{value:.4f}"
            for name, value in row.items()
        ]
        result.add_row(f"{setting}: {SETTINGS[setting]}", *numbers)
    return result


def _regression(model: Model, X: Any, y: np.ndarray) -> dict[str, Any]:
    predicted = model.pipeline.predict(X)
    return {
        "rmse": sk_metrics.root_mean_squared_error(y, predicted),
        "mae": sk_metrics.mean_absolute_error(y, predicted),
        "r2": sk_metrics.r2_score(y, predicted),
    }


def _classes(model: Model, X: Any, y: np.ndarray) -> dict[str, Any]:
    classes = _checked_classes(model, y)
    proba = model.pipeline.predict_proba(X)
    predicted = model.pipeline.predict(X)
    values = {
        "accuracy": sk_metrics.accuracy_score(y, predicted),
        # balanced_accuracy_score is the same, but warns of predicted classes which are not in y
        "balanced_accuracy": sk_metrics.recall_score(
            y, predicted, labels=np.unique(y), average="macro", zero_division=0
        ),
        "macro_f1": sk_metrics.f1_score(y, predicted, average="macro", zero_division=0),
        "log_loss": sk_metrics.log_loss(y, proba, labels=classes),
        "expected_calibration_error": metrics.expected_calibration_error(y, proba, classes=classes),
    }
    if model.taxonomy is not None:
        values |= _in_the_tree(model, y, predicted, proba)
    return values


def _sequences(model: Model, X: Any, y: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """Compare predicted with true label sequences; ``known`` are the true labels of positions that have one."""
    classes = _checked_classes(model, known)
    estimator, sequences = model.pipeline[-1], model.pipeline[:-1].transform(X)
    predicted = estimator.predict(sequences)
    values = {
        "position_accuracy": metrics.position_accuracy(y, predicted),
        "sequence_accuracy": metrics.sequence_accuracy(y, predicted),
    }
    complete = [i for i, labels in enumerate(y) if all(label is not None for label in labels)]
    if _are_tags(classes) and complete:  # chunks need all labels of a sequence
        values["chunk_f1"] = metrics.chunk_f1_score(y[complete], predicted[complete])
    log_proba = estimator.predict_log_proba(sequences, y)
    values["log_probability"] = log_proba.sum() / len(known)
    if model.taxonomy is not None:
        labelled = np.array([label is not None for labels in y for label in labels])
        proba = np.concatenate(estimator.predict_marginals(sequences))[labelled]
        values |= _in_the_tree(model, known, np.concatenate(predicted)[labelled], proba)
    return {name: float(value) for name, value in values.items()}


def _are_tags(classes: np.ndarray) -> bool:
    """Whether the classes say where chunks begin and go on: B-PER, I-PER and O, for example."""
    if classes.dtype.kind != "U":
        return False
    prefixes = {label[:2] for label in classes.tolist() if label != "O"}
    return bool(prefixes) and prefixes <= {"B-", "I-", "E-", "S-"}


def _checked_classes(model: Model, y: np.ndarray) -> np.ndarray:
    """Return the classes of the model; refuse labels that are not among them."""
    classes = np.asarray(model.pipeline.classes_)
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise UserError(
            f"The data have {len(unknown)} labels that are no class of the model, "
            f"the first is {unknown[0].item()!r}."
        )
    return classes


def _in_the_tree(model: Model, y: Any, predicted: Any, proba: np.ndarray) -> dict[str, Any]:
    """Compare labels by their places in the taxonomy."""
    scores = (metrics.taxo_loss, metrics.parent_accuracy, metrics.hierarchical_f1)
    values = {score.__name__: score(y, predicted, model.taxonomy) for score in scores}
    classes = model.pipeline.classes_
    return values | {"reciprocal_rank": metrics.reciprocal_rank(y, proba, labels=classes)}
