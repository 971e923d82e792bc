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
import zipfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

import gramian
from gramian import kernels, labels, operators, selection, sequences, solvers
from gramian.cli import errors
from gramian.cli.errors import UserError, require
from gramian.cli.pair_tables import Objects, PairLayout, read_new_pairs
from gramian.cli.sequence_tables import SequenceColumns, read_new_sequences
from gramian.cli.tables import Layout, read_new
from gramian.cli.unpacking import check_archive
from gramian.cli.writing import whole_file
from gramian.estimators.record import Fitted
from gramian.estimators.sequences.targets import ChainShape
from gramian.kernels import pairwise
from gramian.operators.record import Candidate
from gramian.selection.chain_prior import ChainPrior
from gramian.selection.prior import Prior

METADATA = "gramian.json"

# Needed besides what skops trusts by itself (estimators of scikit-learn, arrays, numbers, text).
OTHER_TYPES = (
    Fitted,
    Prior,
    ChainPrior,
    ChainShape,
    Candidate,
    SequenceColumns,
    np.dtype,
    sp.csr_array,
    sp.csr_matrix,
)

# By task, and what an example is.
EXAMPLES, PAIRS, SEQUENCES = "single examples", "pairs", "sequences"
ESTIMATORS = {
    ("classification", EXAMPLES): gramian.KernelLogisticRegression,
    ("classification", PAIRS): gramian.PairwiseLogisticRegression,
    ("classification", SEQUENCES): gramian.KernelCRF,
    ("regression", EXAMPLES): gramian.KernelRidge,
    ("regression", PAIRS): gramian.PairwiseRidge,
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
        What pairs are made of; None for other models.
    """

    pipeline: Pipeline
    task: str
    layout: Any
    objects: Objects | None = None

    @property
    def kind(self) -> str:
        """What an example is: `EXAMPLES`, `PAIRS` or `SEQUENCES`."""
        if self.objects is not None:
            return PAIRS
        return SEQUENCES if self.layout.of_sequences else EXAMPLES

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
    metadata = {"gramian": gramian.__version__, "task": model.task, kind: asdict(model.layout)}
    content = model.pipeline
    if model.objects is not None:
        content = {"pipeline": model.pipeline, **vars(model.objects)}
    buffer = io.BytesIO()
    skops.io.dump(content, buffer, compression=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(METADATA, json.dumps(metadata, indent=2))
    with whole_file(path) as file:
        file.write_bytes(buffer.getbuffer())


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

    content = errors.read_or_say(path, path.read_bytes)  # once: what is checked is what is loaded
    try:
        check_archive(content, path)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error) as error:
        raise _no_model(path, error) from None
    task, layout = _metadata(content, path)
    try:
        needed = skops.io.get_untrusted_types(data=content)
        foreign = sorted(set(needed) - allowed_types())
        parts = None if foreign else skops.io.loads(content, trusted=needed)
    except Exception as error:  # a damaged file may raise anything
        raise _no_model(path, error) from None
    if foreign:
        raise UserError(
            f"{path} is refused: it holds types that no model needs: {', '.join(foreign)}."
        )
    model = _model(parts, task, layout)
    if model is None:
        raise UserError(f"{path} holds no model for {task}; make one with `gramian fit`.")
    return model


def _model(parts: Any, task: str, layout: Layout | PairLayout) -> Model | None:
    """Return the model that the parts of an archive make, or None if they are others than the metadata promise."""
    pipeline: Any = parts
    objects = None
    if isinstance(layout, PairLayout):
        if not isinstance(parts, dict) or not isinstance(parts.get("tables"), gramian.Pairs):
            return None
        pipeline = parts.get("pipeline")
        objects = Objects(parts.get("left"), parts.get("right"), parts["tables"])
    if not isinstance(pipeline, Pipeline):
        return None
    model = Model(pipeline, task, layout, objects)
    estimator = pipeline[-1]
    if not isinstance(estimator, ESTIMATORS.get((task, model.kind), ())):
        return None
    return None if model.kind == SEQUENCES and not _fits_together(estimator) else model


def _fits_together(estimator: Any) -> bool:
    """Whether scores of transitions have the shapes that compiled loops take for granted; a file may say anything."""
    chain, rows = getattr(estimator, "_chain", None), getattr(estimator, "_score_rows", None)
    if not isinstance(chain, ChainShape) or not isinstance(rows, np.ndarray):
        return False
    C = np.size(getattr(estimator, "classes_", ()))
    allowed_fits = chain.allowed is None or np.shape(chain.allowed) == (C + 2, C)
    n_rows = C + 2 if chain.ends else C
    fits = allowed_fits and chain.n_classes == C and rows.shape == (n_rows, C)
    if not fits or not chain.moving:
        return fits
    pairs = getattr(estimator, "_pair_coef", None)
    return isinstance(pairs, np.ndarray) and pairs.shape == (len(estimator.dual_coef_), C * C)


def load_with_data(
    path: Path, data: Path, left: Path | None, right: Path | None, *, need_target: bool
) -> tuple[Model, Any, Any]:
    """Read a model, then features, pairs or sequences in its layout, and the target if it is needed.

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
    X : DataFrame, ndarray, CSR array, Pairs or list of lists of tokens
    y : ndarray of shape (n_samples,) or None
        For sequences an array of labels each.
    """
    with errors.readable_warnings():  # other versions of scikit-learn, for example
        model = load(path)
    if model.objects is not None:
        tables = (left, right, model.layout, model.objects)
        return model, *read_new_pairs(data, *tables, need_target=need_target)
    why = f"is for models of pairs; this one is of {model.kind}."
    errors.refuse_options(why, left=left, right=right)
    if model.kind == SEQUENCES:
        return model, *read_new_sequences(data, model.layout, need_target=need_target)
    return model, *read_new(data, model.layout, need_target=need_target)


def allowed_types() -> set[str]:
    """Names of the types that a model file may hold: public classes of gramian, and a few more."""
    public = [
        getattr(module, name)
        for module in (gramian, kernels, pairwise, labels, operators, selection, sequences, solvers)
        for name in module.__all__
    ]
    return {
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in (*OTHER_TYPES, *filter(inspect.isclass, public))
    }


def _metadata(content: bytes, path: Path) -> tuple[str, Layout | PairLayout]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            metadata = json.loads(archive.read(METADATA))
        task = metadata["task"]
        if (task, EXAMPLES) not in ESTIMATORS:
            raise ValueError(f"task is {task!r}")
        if "pairs" in metadata:
            return task, PairLayout.from_json(metadata["pairs"])
        return task, Layout(**metadata["layout"])
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, RecursionError) as error:
        raise _no_model(path, error) from None


def _no_model(path: Path, error: Exception) -> UserError:
    return UserError(f"{path} is not a model of `gramian fit`, or it is damaged: {error}")
