"""A model, and new data for it: single examples or pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gramian.cli.errors import readable_warnings, refuse_options
from gramian.cli.model_file import Model, load
from gramian.cli.pair_tables import read_new_pairs
from gramian.cli.tables import read_new


def load_with_data(
    path: Path, data: Path, left: Path | None, right: Path | None, *, need_target: bool
) -> tuple[Model, Any, Any]:
    """Read a model, then features or pairs in its layout, and the target if it is needed.

    Parameters
    ----------
    path : Path
        Of the model.
    data : Path
    left, right : Path or None
        Tables of objects, for a model of pairs.
    need_target : bool

    Returns
    -------
    model : Model
    X : DataFrame, ndarray, CSR array or Pairs
    y : ndarray of shape (n_samples,) or None
    """
    with readable_warnings():  # other versions of scikit-learn, for example
        model = load(path)
    if model.objects is not None:
        tables = (left, right, model.layout, model.objects)
        return model, *read_new_pairs(data, *tables, need_target=need_target)
    why = "is for models of pairs; this one is of single examples."
    refuse_options(why, left=left, right=right)
    return model, *read_new(data, model.layout, need_target=need_target)
