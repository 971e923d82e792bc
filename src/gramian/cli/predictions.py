"""Predictions as columns, written as CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from gramian.cli.errors import UserError, require
from gramian.cli.model_file import SEQUENCES, Model
from gramian.cli.writing import whole_file

# How a cell begins that spreadsheets compute.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def predictions(model: Model, X: Any, *, proba: bool, nodes: bool) -> dict[str, np.ndarray]:
    """Return the columns to write.

    Parameters
    ----------
    model : Model
    X : DataFrame, ndarray, CSR array, Pairs or list of lists of tokens
    proba : bool
        Add the probability of each class.
    nodes : bool
        Add the probability of each node of the taxonomy.

    Returns
    -------
    dict of str: ndarray of shape (n_samples,)
        "prediction", then "proba_<class>" and "node_<node>"; before them "sequence" and "position" where a row is a
        position of a sequence.
    """
    if proba and model.task == "regression":
        raise UserError("--proba is for classification; this model predicts numbers.")
    if nodes and model.taxonomy is None:
        raise UserError("--nodes needs a model that was fitted with --taxonomy.")
    if model.kind == SEQUENCES:
        return _of_positions(model, X, proba=proba, nodes=nodes)
    columns = {"prediction": model.pipeline.predict(X)}
    if proba:
        P = model.pipeline.predict_proba(X)
        columns |= {f"proba_{name}": P[:, c] for c, name in enumerate(model.pipeline.classes_)}
    if nodes:
        features = model.pipeline[:-1].transform(X) if len(model.pipeline) > 1 else X
        P = model.pipeline[-1].predict_node_proba(features)
        columns |= {f"node_{name}": P[:, p] for p, name in enumerate(model.taxonomy.names)}
    return columns


def _of_positions(model: Model, X: Any, *, proba: bool, nodes: bool) -> dict[str, np.ndarray]:
    """Return the columns to write for label sequences: one row for each position."""
    estimator, classes = model.pipeline[-1], model.pipeline.classes_
    sequences = model.pipeline[:-1].transform(X)
    number = np.repeat(np.arange(len(sequences)), sequences.lengths)
    name = model.layout.sequence
    columns = {
        "sequence": number if name is None else X[name].to_numpy(dtype=str),
        "position": np.arange(sequences.n_positions) - sequences.bounds[number],
        "prediction": np.concatenate(estimator.predict(sequences)),
    }
    if proba or nodes:
        P = np.concatenate(estimator.predict_marginals(sequences))
        if proba:
            columns |= {f"proba_{label}": P[:, c] for c, label in enumerate(classes)}
        if nodes:
            leaves = np.searchsorted(classes, model.taxonomy.leaf_names)
            P = model.taxonomy.node_proba(P[:, leaves])
            columns |= {f"node_{node}": P[:, p] for p, node in enumerate(model.taxonomy.names)}
    return columns


def write(columns: dict[str, np.ndarray], path: Path) -> None:
    """Write to a .csv or .parquet file."""
    if path.suffix.lower() == ".parquet":
        require("pyarrow", purpose=f"Writing {path}")
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({name: values.tolist() for name, values in columns.items()})
        with whole_file(path) as place:
            pyarrow.parquet.write_table(table, place)
    else:
        with whole_file(path) as place, place.open("w", encoding="utf-8", newline="") as file:
            write_csv(columns, file)


def harmless(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns with an apostrophe before text that a spreadsheet would take for a formula."""

    def quoted(text: str) -> str:
        return f"'{text}" if text.startswith(FORMULA) else text

    return {
        quoted(name): np.array([quoted(text) for text in values.tolist()])
        if values.dtype.kind == "U"
        else values
        for name, values in columns.items()
    }


def write_csv(
    columns: dict[str, np.ndarray], file: TextIO, shown: Callable[[str], str] = str
) -> None:
    """Write CSV to an open file; text as ``shown`` returns it."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(shown, columns))
    cells = (
        map(shown, values.tolist()) if values.dtype.kind == "U" else values.tolist()
        for values in columns.values()
    )
    writer.writerows(zip(*cells, strict=True))
