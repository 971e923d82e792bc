"""Predictions as columns, written as CSV or Parquet."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from gramian.cli.errors import UserError, require
from gramian.cli.model_file import Model


def predictions(model: Model, X: Any, *, proba: bool, nodes: bool) -> dict[str, np.ndarray]:
    """Return the columns to write.

    Parameters
    ----------
    model : Model
    X : DataFrame, ndarray or CSR array
    proba : bool
        Add the probability of each class.
    nodes : bool
        Add the probability of each node of the taxonomy.

    Returns
    -------
    dict of str: ndarray of shape (n_samples,)
        "prediction", then "proba_<class>" and "node_<node>".
    """
    if proba and model.task == "regression":
        raise UserError("--proba is for classification; this model predicts numbers.")
    if nodes and model.taxonomy is None:
        raise UserError("--nodes needs a model that was fitted with --taxonomy.")
    columns = {"prediction": model.pipeline.predict(X)}
    if proba:
        P = model.pipeline.predict_proba(X)
        columns |= {f"proba_{name}": P[:, c] for c, name in enumerate(model.pipeline.classes_)}
    if nodes:
        features = model.pipeline[:-1].transform(X) if len(model.pipeline) > 1 else X
        P = model.pipeline[-1].predict_node_proba(features)
        columns |= {f"node_{name}": P[:, p] for p, name in enumerate(model.taxonomy.names)}
    return columns


def write(columns: dict[str, np.ndarray], path: Path) -> None:
    """Write to a .csv or .parquet file."""
    if path.suffix.lower() == ".parquet":
        require("pyarrow", purpose=f"Writing {path}")
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({name: values.tolist() for name, values in columns.items()})
        pyarrow.parquet.write_table(table, path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            write_csv(columns, file)


def write_csv(columns: dict[str, np.ndarray], file: TextIO) -> None:
    """Write CSV to an open file."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values())))
