"""Separate kernels: one Gram matrix for each group of outputs (Seeger §3), ``(𝒦A)_c = M_g(c) A_c``.

Cost: one product with each M_g, for the columns of its group. In the one equation S_g is the identity on
the outputs of the group and zero elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramian._core.arrays import Array, device_of, namespace
from gramian.operators.base import CompositeOperator, Operator


class Separate(CompositeOperator):
    """One input operator for each output or group of outputs ("separate kernels", Seeger §3).

    Parameters
    ----------
    operators : sequence of Operator, one for each group
    groups : array of int of shape (n_outputs,), default=None
        Which operator an output has; None gives each output its own.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> from gramian.operators import Dense, Separate
    >>> X = np.array([[1.0], [2.0]])
    >>> Separate([Dense(Linear(), X), Dense(2.0 * Linear(), X)]) @ np.ones((2, 2))
    array([[ 3.,  6.],
           [ 6., 12.]])
    """

    def __init__(self, operators: Sequence[Operator], groups: Any = None):
        if not operators:
            raise ValueError("operators must hold one operator for each group of outputs.")
        shapes = {operator.shape for operator in operators}
        if len(shapes) > 1:
            raise ValueError(f"operators must have one shape, got {sorted(shapes)}.")
        self.operators = self._parts = list(operators)
        size = len(self.operators)
        self.groups = np.arange(size) if groups is None else np.asarray(groups, dtype=np.int64)
        if self.groups.ndim != 1 or np.any((self.groups < 0) | (self.groups >= size)):
            raise ValueError(
                f"groups must be a vector of numbers from 0 to {size - 1}, one for each output; got {groups!r}."
            )
        self.shape = operators[0].shape
        self.dtype = operators[0].dtype
        self._members = [np.flatnonzero(self.groups == g) for g in range(size)]
        gathered = np.concatenate(self._members)
        in_order = np.array_equal(gathered, np.arange(gathered.size))
        self._back = None if in_order else np.argsort(gathered)

    def __matmul__(self, B: Array) -> Array:
        return self._groupwise(B, [operator.__matmul__ for operator in self.operators])

    def accurate(self, B: Array) -> Array:
        return self._groupwise(B, [operator.accurate for operator in self.operators])

    def _groupwise(self, B: Array, products: list[Callable[[Array], Array]]) -> Array:
        self._check(B.shape[1])
        xp = namespace(B)
        pieces = [
            product(_columns(B, members))
            for product, members in zip(products, self._members, strict=True)
            if members.size
        ]
        out = xp.concat(pieces, axis=1)
        return out if self._back is None else xp.take(out, _indices(self._back, out), axis=1)

    def _check(self, n_outputs: int) -> None:
        if n_outputs != self.groups.size:
            raise ValueError(
                f"The separate kernels serve {self.groups.size} outputs, not {n_outputs}."
            )

    def diagonal(self, n_outputs: int = 1) -> Array:
        self._check(n_outputs)
        values = [operator.diagonal(1)[:, 0] for operator in self.operators]
        return namespace(values[0]).stack([values[g] for g in self.groups], axis=1)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        pieces = [
            M.vjp(_columns(E, members), _columns(F, members))
            for M, members in zip(self.operators, self._members, strict=True)
        ]
        return np.concatenate(pieces)

    def _with_parts(self, parts: list[Operator]) -> Separate:
        return Separate(parts, self.groups)

    def blocks(self, n_outputs: int) -> list[tuple[Array, list[int]]]:
        self._check(n_outputs)
        return [
            (operator.blocks(1)[0][0], members.tolist())
            for operator, members in zip(self.operators, self._members, strict=True)
            if members.size
        ]


def _columns(B: Array, members: np.ndarray) -> Array:
    """Outputs of one group; neighbours without a copy."""
    if members.size and members[-1] - members[0] + 1 == members.size:
        return B[:, int(members[0]) : int(members[-1]) + 1, ...]
    return namespace(B).take(B, _indices(members, B), axis=1)


def _indices(numbers: np.ndarray, like: Array) -> Array:
    return namespace(like).asarray(numbers, device=device_of(like))
