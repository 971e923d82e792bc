"""The prior of label sequences: latent functions of positions, and scores of transitions beside them.

    𝒦 = 𝒦_positions ⊕ τ² (S ⊗ S) [⊕ υ M ⊗ I],        log τ² is the last log-parameter

The first is a `Prior` like any other. Scores of transitions, first and last labels depend on no input, see
`operators.outputs.transitions`. Further scores of transitions may be functions of the position, see
`operators.outputs.transition_functions`; they are left out while hyperparameters are learned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramian._core.arrays import Array
from gramian.kernels import Kernel
from gramian.kernels.parameters import is_fixed
from gramian.labels import Identity, LabelStructure, TreeStructure
from gramian.operators import (
    DirectSum,
    LabelMixed,
    Operator,
    OperatorRecord,
    TransitionFunctions,
    Transitions,
)
from gramian.selection.prior import GramSettings, Prior


@dataclass(frozen=True, eq=False)
class ChainPrior:
    """Prior of positions and of transitions; it has the interface of a `Prior` whose examples are `Sequences`.

    Parameters
    ----------
    positions : Prior
    n_classes : int
    ends : bool
        Whether first and last labels have scores.
    variance : float
        τ².
    variance_bounds : pair of float or "fixed"
    function_variance : float, default=0.0
        υ, relative to the variance of functions of positions; 0 if transitions depend on no input.
    """

    positions: Prior
    n_classes: int
    ends: bool
    variance: float
    variance_bounds: Any
    function_variance: float = 0.0

    @property
    def is_independent(self) -> bool:
        """Whether labels are problems of their own."""
        return self.positions.is_independent

    @property
    def coupling(self) -> None:
        """Labels of sequences are related by their transitions."""
        return None

    @property
    def variances(self) -> np.ndarray:
        return self.positions.variances

    @property
    def groups(self) -> np.ndarray:
        return self.positions.groups

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self.positions.kernels

    def kernels_with_variances(self) -> tuple[Kernel, ...]:
        """One kernel for each group, with its variance as a constant factor."""
        return self.positions.kernels_with_variances()

    # --- parameters ---------------------------------------------------------------------------

    @property
    def theta(self) -> np.ndarray:
        """Log-parameters of positions, then log τ²."""
        return np.append(self.positions.theta, np.log(self.variance))

    @property
    def bounds(self) -> np.ndarray:
        """Log-bounds of ``theta``; equal ones for what is fixed."""
        fixed = is_fixed(self.variance_bounds)
        pair = np.log([self.variance] * 2 if fixed else self.variance_bounds)
        return np.concatenate([self.positions.bounds, [pair]])

    @property
    def names(self) -> list[str]:
        """Names of the log-parameters."""
        return [*self.positions.names, "transition variance"]

    @property
    def tied(self) -> np.ndarray | None:
        """Numbers that are the same for corresponding log-parameters of all groups and features, see `Prior.tied`."""
        tied = self.positions.tied
        return None if tied is None else np.append(tied, tied.max() + 1)

    def starts(self) -> np.ndarray:
        """Log-parameters to look at before a descent: scores of transitions are as large as those of positions.

        Where functions of positions have a larger variance, labels are more certain, and so are transitions.
        """
        starts = self.positions.starts()
        of_positions = np.char.startswith(np.array(self.positions.names), "variance")
        larger = (starts - self.positions.theta)[:, of_positions].max(axis=1, initial=-np.inf)
        of_transitions = np.log(self.variance) + np.where(np.isfinite(larger), larger, 0.0)
        return np.column_stack([starts, np.clip(of_transitions, *self.bounds[-1])])

    def with_variances_only(self) -> ChainPrior:
        """Return a copy of which only the variances are learned."""
        return replace(self, positions=self.positions.with_variances_only())

    def as_it_is(self) -> ChainPrior:
        """Return a copy of which nothing is learned."""
        return replace(self, positions=self.positions.as_it_is(), variance_bounds="fixed")

    def in_units_of(self, X: Any) -> ChainPrior:
        """Return a copy whose variances are relative to the values of the kernel on the positions of X."""
        return replace(self, positions=self.positions.in_units_of(X.positions))

    def with_theta(self, theta: np.ndarray) -> ChainPrior:
        """Return a copy with other log-parameters."""
        positions = self.positions.with_theta(theta[:-1])
        return replace(self, positions=positions, variance=float(np.exp(theta[-1])))

    # --- operators ----------------------------------------------------------------------------

    def operator(
        self,
        X: Any,
        like: Array,
        gram: GramSettings,
        *,
        learning: bool = False,
        dtype: Any = None,
    ) -> tuple[Operator, OperatorRecord]:
        """The Gram operator on training sequences; see `Prior.operator`."""
        rows = X.n_positions
        on_positions, record = self.positions.operator(
            X.positions, like[:rows, ...], gram, learning=learning, dtype=dtype
        )
        n_ends = 2 if self.ends else 0
        below = Transitions(self.variance, self._structure(), self.n_classes, n_ends, like)
        parts = [on_positions, below]
        if self.function_variance > 0 and not learning:
            parts.append(self.transition_functions(on_positions))
        return DirectSum(parts), record

    def cross(self, X_new: Array, X: Array, name: str = "auto") -> Operator:
        """The operator from training to new positions, without intercept and transitions."""
        return self.positions.cross(X_new, X, name)

    def transition_functions(self, on_positions: Operator) -> TransitionFunctions:
        """Scores of transitions for positions, all with the kernel that functions of the positions have in common."""
        assert isinstance(on_positions, LabelMixed)
        matrix, structure = on_positions.terms[0]
        variance = self.function_variance * float(structure.diagonal(1)[0])
        return TransitionFunctions(matrix, variance, self.n_classes)

    def _structure(self) -> LabelStructure:
        """Labels that are neighbours in a tree have similar transitions; the deepest ones have a variance of one."""
        prior = self.positions
        if prior.taxonomy is None:
            return Identity()
        deepest = float(np.max(prior.taxonomy.depth))
        return TreeStructure(prior.taxonomy, [1 / deepest], order=prior.order)


AnyPrior = Prior | ChainPrior  # of single examples, or of sequences
