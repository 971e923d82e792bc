"""Blocks of rows with operators of their own: ``(𝒦₁ ⊕ 𝒦₂)(A₁; A₂) = (𝒦₁ A₁; 𝒦₂ A₂)``.

Latent values may hold more than one row for each example: the scores of label sequences have rows of transitions below
those of positions. A direct sum makes one Gram operator of their priors, and gradients fall apart in the same way.
Cost: that of the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gramian._core.arrays import Array, namespace
from gramian.operators.base import CompositeOperator, Operator


class DirectSum(CompositeOperator):
    """Operators on consecutive blocks of rows.

    Parameters
    ----------
    operators : sequence of Operator
        The first one is that of the examples: its dtype is that of the sum, and `compress` is its own.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import DirectSum, Intercept
    >>> B = np.array([[1.0], [2.0], [3.0]])
    >>> parts = [Intercept(1.0, like=B, n_rows=2), Intercept(10.0, like=B, n_rows=1)]
    >>> (DirectSum(parts) @ B).ravel()
    array([ 3.,  3., 30.])
    """

    def __init__(self, operators: Sequence[Operator]):
        self.operators = self._parts = list(operators)
        ends = np.cumsum([0, *(operator.shape[0] for operator in operators)]).tolist()
        self._rows = [slice(first, last) for first, last in pairwise(ends)]
        self.shape = (ends[-1], ends[-1])
        self.dtype = operators[0].dtype

    def blocks_of(self, B: Array) -> list[Array]:
        """Return the rows of B that each operator acts on."""
        return [B[rows, ...] for rows in self._rows]

    def __matmul__(self, B: Array) -> Array:
        parts = zip(self.operators, self.blocks_of(B), strict=True)
        return namespace(B).concat([operator @ block for operator, block in parts], axis=0)

    def accurate(self, B: Array) -> Array:
        parts = zip(self.operators, self.blocks_of(B), strict=True)
        return namespace(B).concat([operator.accurate(block) for operator, block in parts], axis=0)

    def diagonal(self, n_outputs: int = 1) -> Array:
        values = [operator.diagonal(n_outputs) for operator in self.operators]
        xp = namespace(values[0])
        return xp.concat([xp.astype(part, values[0].dtype) for part in values], axis=0)

    @property
    def is_diagonal(self) -> bool:
        return all(operator.is_diagonal for operator in self.operators)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        parts = zip(self.operators, self.blocks_of(E), self.blocks_of(F), strict=True)
        return np.concatenate([operator.vjp(e, f) for operator, e, f in parts])

    def _with_parts(self, parts: list) -> DirectSum:
        return DirectSum(parts)

    def compress(self, A: Array) -> tuple[Array | None, Array]:
        return self.operators[0].compress(A[self._rows[0], ...])
