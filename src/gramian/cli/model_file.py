"""Model files: a skops archive, with gramian.json inside that says what the model was trained on.

Loading runs no code from the file: skops rebuilds objects of known types, and a file that asks for any other type
is refused before anything is rebuilt. A pickle is not an archive of skops and is not even opened as one.

The object in the archive is a pipeline; for pairs a dictionary with the pipeline, the transformers of left and right
objects, and the tables of the objects.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from gramian import (
    KernelLogisticRegression,
    KernelRidge,
    Pairs,
    PairwiseLogisticRegression,
    PairwiseRidge,
    __version__,
)
from gramian.cli.errors import UserError, require
from gramian.cli.pair_tables import Objects, PairLayout
from gramian.cli.tables import Layout

__all__ = ["Model", "load", "save"]

METADATA = "gramian.json"

# Needed besides what skops trusts by itself (estimators of scikit-learn, arrays, numbers, text).
OTHER_TYPES = {
    "gramian.selection.prior.Prior",
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
}


@dataclass(frozen=True)
class Model:
    """A fitted pipeline and what it was trained on.

    Attributes
    ----------
    pipeline : Pipeline
    task : {"classification", "regression"}
    layout : Layout or PairLayout
    objects : Objects, default=None
        What pairs are made of; None for a model of single examples.
    """

    pipeline: Pipeline
    task: str
    layout: Any
    objects: Objects | None = None

    @property
    def taxonomy(self) -> Any:
        """The Taxonomy of the classes, or None."""
        return getattr(self.pipeline[-1], "taxonomy_", None)


def save(model: Model, path: Path) -> None:
    """Write the model; a file of this name is replaced only when the new one is complete.

    Parameters
    ----------
    model : Model
    path : Path
    """
    require("skops", purpose=f"Writing {path}")
    import skops.io

    kind = "layout" if model.objects is None else "pairs"
    metadata = {"gramian": __version__, "task": model.task, kind: asdict(model.layout)}
    content = model.pipeline
    if model.objects is not None:
        content = {"pipeline": model.pipeline, **vars(model.objects)}
    buffer = io.BytesIO()
    skops.io.dump(content, buffer, compression=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(METADATA, json.dumps(metadata, indent=2))
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(buffer.getbuffer())
        unfinished.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        unfinished.unlink(missing_ok=True)


def load(path: Path) -> Model:
    """Read a model, and refuse everything that `gramian fit` would not have written.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Model
    """
    require("skops", purpose=f"Reading {path}")
    import skops.io

    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    try:
        content = path.read_bytes()  # once: what is checked is what is loaded
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror or error}.") from None
    task, layout = _metadata(content, path)
    try:
        needed = skops.io.get_untrusted_types(data=content)
    except Exception as error:  # of a damaged file, anything
        raise _no_model(path, error) from None
    foreign = sorted(set(needed) - allowed_types())
    if foreign:
        raise UserError(
            f"{path} is refused: it holds types that no model needs: {', '.join(foreign)}."
        )
    try:
        parts = skops.io.loads(content, trusted=needed)
    except Exception as error:
        raise _no_model(path, error) from None
    of_pairs = isinstance(layout, PairLayout)
    kinds = {
        "classification": PairwiseLogisticRegression if of_pairs else KernelLogisticRegression,
        "regression": PairwiseRidge if of_pairs else KernelRidge,
    }
    pipeline: Any = parts
    objects = None
    if of_pairs and isinstance(parts, dict) and isinstance(parts.get("tables"), Pairs):
        objects = Objects(parts.get("left"), parts.get("right"), parts["tables"])
        pipeline = parts.get("pipeline")
    last: Any = pipeline.steps[-1][1] if isinstance(pipeline, Pipeline) else None
    if not isinstance(last, kinds[task]) or of_pairs != (objects is not None):
        raise UserError(f"{path} holds no model for {task}; make one with `gramian fit`.")
    return Model(pipeline, task, layout, objects)


def allowed_types() -> set[str]:
    """Names of the types that a model file may hold: public classes of gramian, and a few more."""
    import gramian
    from gramian import kernels, labels, operators, selection, solvers
    from gramian.kernels import pairwise

    return OTHER_TYPES | {
        f"{entry.__module__}.{entry.__qualname__}"
        for module in (gramian, kernels, pairwise, labels, operators, selection, solvers)
        for entry in (getattr(module, name) for name in module.__all__)
        if inspect.isclass(entry)
    }


def _metadata(content: bytes, path: Path) -> tuple[str, Layout | PairLayout]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            metadata = json.loads(archive.read(METADATA))
        if metadata["task"] not in ("classification", "regression"):
            raise ValueError(f"task is {metadata['task']!r}")
        if "pairs" in metadata:
            return metadata["task"], PairLayout.from_json(metadata["pairs"])
        return metadata["task"], Layout(**metadata["layout"])
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise _no_model(path, error) from None


def _no_model(path: Path, error: Exception) -> UserError:
    return UserError(f"{path} is not a model of `gramian fit`, or it is damaged: {error}")
