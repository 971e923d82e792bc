"""Model files: a skops archive, with gramian.json inside that says what the model was trained on.

Loading runs no code from the file: skops rebuilds objects of known types, and a file that asks for any other type
is refused before anything is rebuilt. A pickle is not an archive of skops and is not even opened as one.
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

from gramian import KernelLogisticRegression, KernelRidge, __version__
from gramian.cli.errors import UserError, require
from gramian.cli.tables import Layout

__all__ = ["Model", "load", "save"]

METADATA = "gramian.json"

# Needed besides what skops trusts by itself (estimators of scikit-learn, arrays, numbers, text).
OTHER_TYPES = {
    "gramian._prior.Prior",
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
    layout : Layout
    """

    pipeline: Pipeline
    task: str
    layout: Layout

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

    metadata = {"gramian": __version__, "task": model.task, "layout": asdict(model.layout)}
    buffer = io.BytesIO()
    skops.io.dump(model.pipeline, buffer, compression=zipfile.ZIP_DEFLATED)
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
        pipeline = skops.io.loads(content, trusted=needed)
    except Exception as error:
        raise _no_model(path, error) from None
    kinds = {"classification": KernelLogisticRegression, "regression": KernelRidge}
    if not isinstance(pipeline, Pipeline) or not isinstance(pipeline[-1], kinds[task]):
        raise UserError(f"{path} holds no model for {task}; make one with `gramian fit`.")
    return Model(pipeline, task, layout)


def allowed_types() -> set[str]:
    """Names of the types that a model file may hold: public classes of gramian, and a few more."""
    import gramian
    from gramian import kernels, labels, operators, selection, solvers

    return OTHER_TYPES | {
        f"{entry.__module__}.{entry.__qualname__}"
        for module in (gramian, kernels, labels, operators, selection, solvers)
        for entry in (getattr(module, name) for name in module.__all__)
        if inspect.isclass(entry)
    }


def _metadata(content: bytes, path: Path) -> tuple[str, Layout]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            metadata = json.loads(archive.read(METADATA))
        if metadata["task"] not in ("classification", "regression"):
            raise ValueError(f"task is {metadata['task']!r}")
        return metadata["task"], Layout(**metadata["layout"])
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise _no_model(path, error) from None


def _no_model(path: Path, error: Exception) -> UserError:
    return UserError(f"{path} is not a model of `gramian fit`, or it is damaged: {error}")
