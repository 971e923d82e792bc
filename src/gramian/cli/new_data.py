"""New data for a model of single examples or of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gramian.cli.model_file import Model
from gramian.cli.pair_plan import refuse_other_options
from gramian.cli.pair_tables import read_new_pairs
from gramian.cli.tables import read_new

__all__ = ["new_data"]


def new_data(
    model: Model, data: Path, left: Path | None, right: Path | None, *, need_target: bool
) -> tuple[Any, Any]:
    """Read features, or pairs, and the target if it is needed.

    Parameters
    ----------
    model : Model
    data : Path
    left, right : Path or None
        Tables of objects, for a model of pairs.
    need_target : bool

    Returns
    -------
    X : DataFrame, ndarray, CSR array or Pairs
    y : ndarray of shape (n_samples,) or None
    """
    if model.objects is None:
        others = {"--left": left, "--right": right}
        refuse_other_options(others, "is for models of pairs; this one is of single examples.")
        return read_new(data, model.layout, need_target=need_target)
    return read_new_pairs(data, left, right, model.layout, model.objects, need_target=need_target)
