"""What `coupling` means: outputs that are unrelated, related by a matrix, or to find out what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from gramian.labels import Coupling, LearnedCoupling
from gramian.labels.correlation.inputs import symmetric_array
from gramian.selection.prior import Prior


def learned_coupling(name: str, value: Any) -> LearnedCoupling | None:
    """Return how a coupling is to be learned, None if it is given or absent; refuse what is neither."""
    if value is None or np.ndim(value) == 2 or hasattr(value, "columns"):
        return None
    asked = value
    if isinstance(value, str) and value == "auto":
        asked = LearnedCoupling()
    elif isinstance(value, Integral) and not isinstance(value, bool):
        asked = LearnedCoupling(rank=value)
    if not isinstance(asked, LearnedCoupling):
        raise TypeError(
            f"{name} must be None, 'auto', a number of factors, a LearnedCoupling or a symmetric matrix, got {value!r}."
        )
    asked.check()
    return asked


@dataclass(frozen=True, eq=False)
class Relation:
    """What `coupling` means to some outputs.

    Attributes
    ----------
    prior : Prior
        With the coupling, if it is given.
    learned : LearnedCoupling or None
        How it is to be learned.
    fitted : dict
        Fitted attributes, as long as nothing is learned.
    """

    prior: Prior
    learned: LearnedCoupling | None
    fitted: dict[str, Any]


def related(coupling: Any, prior: Prior, outputs: Sequence[Any]) -> Relation:
    """Return what a coupling means to outputs with these names."""
    if coupling is None:
        return Relation(prior, None, {})
    alone = prior.taxonomy is None and prior.variances.size > 1
    if alone or not prior.is_shared:
        raise ValueError(
            f"coupling relates outputs that share one kernel, but share gives them {prior.variances.size}. "
            "Use share='tied', or coupling=None."
        )
    n_outputs = len(outputs)
    learned = learned_coupling("coupling", coupling)
    if learned is not None:
        flat = {"coupling_": np.eye(n_outputs), "n_couplings_": 0, "judged_loss_": np.nan}
        return Relation(prior, learned if n_outputs > 1 else None, flat)
    matrix = symmetric_array("coupling", coupling, outputs, "output")
    if len(matrix) != n_outputs:
        few = " (two classes have one)" if n_outputs == 1 else ""
        raise ValueError(
            f"coupling must have a row and a column for each of {n_outputs} outputs{few}, got {matrix.shape}."
        )
    given = Coupling(matrix)
    return Relation(replace(prior, coupling=given), None, {"coupling_": given.matrix})
