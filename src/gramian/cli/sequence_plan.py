"""From a file of label sequences to a pipeline, and a table that says what was decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from gramian import KernelCRF
from gramian.cli.errors import UserError, refuse_options
from gramian.cli.options import Settings
from gramian.cli.plan import (
    CLASSIFICATION,
    REGRESSION,
    Plan,
    chosen_kernel,
    parameters,
    preprocessing,
    target_summary,
)
from gramian.cli.sequence_tables import SequenceColumns, known_labels, read_training_sequences
from gramian.cli.tables import Layout
from gramian.cli.taxonomy_file import read_taxonomy
from gramian.sequences import SequenceVectorizer


def plan_sequences(data: Path, settings: Settings) -> Plan:
    """Read label sequences, and decide preprocessing and kernel where the user did not.

    Parameters
    ----------
    data : Path
    settings : Settings

    Returns
    -------
    Plan
    """
    why_not = "is for pairs, not for label sequences: leave it out."
    refuse_options(why_not, pairwise_kernel=settings.pairwise_kernel, setting=settings.setting)
    if settings.task == REGRESSION:
        raise UserError("--task regression is not for label sequences: leave it out.")
    taxonomy = None if settings.taxonomy is None else read_taxonomy(settings.taxonomy)
    X, y, layout = read_training_sequences(
        data, settings.sequence, settings.target, labels_are_text=taxonomy is not None
    )
    known, n_positions = known_labels(y), sum(map(len, y))
    if known.dtype.kind == "f":
        raise UserError(
            f"--target {layout.target} must hold labels, text or whole numbers; {data} has {known[known % 1 != 0][0]}."
        )
    if taxonomy is not None:
        taxonomy.index(np.unique(known))  # a label that is not in it: now, not after preprocessing
    kernel, kernel_reason = _kernel(settings, X, layout)
    first, features = _first_step(layout, X)
    missing = n_positions - len(known)
    decisions = [
        ("Sequences", f"{len(y)}, of {n_positions} positions"),
        ("Target", f"{_target_name(layout)}: {target_summary(CLASSIFICATION, known)}"),
        ("Not known", f"labels of {missing} positions" if missing else ""),
        *features,
        ("Left out", "; ".join(f"{name} ({why})" for name, why in layout.left_out.items())),
        ("Taxonomy", "" if taxonomy is None else f"{taxonomy.n_nodes} nodes, {taxonomy.n_leaves} leaves"),
        ("Kernel", f"{kernel} ({kernel_reason})"),
        ("Model", KernelCRF.__name__),
        ("Learned", "kernel parameters, by cross-validation" if settings.optimize else ""),
    ]  # fmt: skip
    estimator = KernelCRF(kernel, **parameters(settings, taxonomy))
    pipeline = Pipeline([("positions", first), ("model", estimator)])
    return Plan(pipeline, CLASSIFICATION, X, y, layout, decisions)


def _kernel(settings: Settings, X: Any, layout: Layout) -> tuple[str, str]:
    """Return the kernel, and why."""
    if layout.sequence is None and settings.kernel is None:
        return "linear", "sparse indicators"
    return chosen_kernel(settings, X, layout, otherwise="rbf")


def _first_step(layout: Layout, X: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Return what makes sequences of the data, and what it does."""
    if layout.sequence is not None:
        columns, features = preprocessing(layout, X)
        return SequenceColumns(layout.sequence, columns), features
    said = [("Tokens", "the word, its endings and shape, the words beside it: indicators")]
    others = [str(k) for k in range(1, layout.n_features) if str(k) != layout.target]
    if others:
        said.append(("Other fields", f"{', '.join(others)}: indicators"))
    return SequenceVectorizer(), said


def _target_name(layout: Layout) -> str:
    return f"field {layout.target}" if layout.sequence is None else f"{layout.target}"
