"""What `coupling` means: outputs that are unrelated, related by a matrix, or to find out what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from gramian.labels import Coupling, DenseStructure, LearnedCoupling
from gramian.labels.correlation.inputs import symmetric_array
from gramian.labels.coupling import Coregionalization
from gramian.selection.prior import Prior


def learned_coupling(name: str, value: Any) -> LearnedCoupling | None:
    """Return how a coupling is to be learned, None if it is given or absent; refuse what is neither."""
    if value is None or _n_axes(value) in (2, 3):
        return None
    asked = value
    if isinstance(value, str) and value == "auto":
        asked = LearnedCoupling()
    elif isinstance(value, Integral) and not isinstance(value, bool):
        asked = LearnedCoupling(rank=value)
    if not isinstance(asked, LearnedCoupling):
        raise TypeError(
            f"{name} must be None, 'auto', a number of factors, a LearnedCoupling, a symmetric matrix, or one for each "
            f"term of the kernel, got {value!r}."
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
        unrelated = np.eye(n_outputs)
        if learned.summands == "apart":
            n_terms = _n_terms(prior, "LearnedCoupling(summands='apart')", 2)
            unrelated = np.tile(unrelated, (n_terms, 1, 1))
        flat = {"coupling_": unrelated, "n_couplings_": 0, "judged_loss_": np.nan}
        return Relation(prior, learned if n_outputs > 1 else None, flat)
    given = _given(coupling, prior, outputs)
    return Relation(replace(prior, coupling=given), None, {"coupling_": given.matrix})


def _given(coupling: Any, prior: Prior, outputs: Sequence[Any]) -> Coupling | Coregionalization:
    """The coupling that a matrix is, or one for each term of the kernel."""
    if _n_axes(coupling) == 2:
        return Coupling(_matrix("coupling", coupling, outputs))
    n_terms = _n_terms(prior, "coupling with a matrix for each term of the kernel", 1)
    if len(coupling) != n_terms:
        raise ValueError(
            f"coupling must have one matrix for each of {n_terms} terms of the kernel {prior.kernels[0]!r}, got "
            f"{len(coupling)}."
        )
    named = ((f"coupling[{k}]", matrix) for k, matrix in enumerate(coupling))
    return Coregionalization(np.stack([_matrix(name, matrix, outputs) for name, matrix in named]))


def _n_axes(value: Any) -> int:
    """2 for a matrix, and 3 for several of them; lists are told by their first entry."""
    if isinstance(value, (list, tuple)) and value:
        return 1 + np.ndim(value[0])
    return np.ndim(value)


def _matrix(name: str, matrix: Any, outputs: Sequence[Any]) -> np.ndarray:
    """A symmetric, positive semidefinite matrix in the order of the outputs."""
    array = symmetric_array(name, matrix, outputs, "output")
    if len(array) != len(outputs):
        few = " (two classes have one)" if len(outputs) == 1 else ""
        raise ValueError(
            f"{name} must have a row and a column for each of {len(outputs)} outputs{few}, got {array.shape}."
        )
    return DenseStructure(array, name).matrix


def _n_terms(prior: Prior, what: str, least: int) -> int:
    """The number of terms of the kernel, each of which may relate outputs in its own way."""
    if prior.taxonomy is not None:
        raise ValueError(
            f"{what} cannot be used with a hierarchy, whose nodes have one kernel: use one coupling for all terms of "
            "the kernel, or hierarchy=None."
        )
    kernel = prior.kernels[0]
    n_terms = len(kernel.addends())
    if n_terms < least:
        raise ValueError(
            f"{what} needs a kernel that is a sum, such as RBF(1.0) + RBF(10.0); got {kernel!r}."
        )
    return n_terms
