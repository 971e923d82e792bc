"""Separate kernels: one Gram matrix for each output (Seeger §3), ``(𝒦A)_c = M_c A_c``.

Cost: one product with each M_c. In the one equation S_c is the matrix with a single one at (c, c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gramian._arrays import Array, namespace
from gramian.operators.base import Operator, join, split_theta


class Separate(Operator):
    """One input operator for each output: ``(𝒦A)_c = M_c A_c`` ("separate kernels", Seeger §3).

    Parameters
    ----------
    operators : sequence of Operator, one for each output

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

    def __init__(self, operators: Sequence[Operator]):
        if not operators:
            raise ValueError("operators must hold one operator for each output.")
        shapes = {operator.shape for operator in operators}
        if len(shapes) > 1:
            raise ValueError(f"operators must have one shape, got {sorted(shapes)}.")
        self.operators = list(operators)
        self.shape = operators[0].shape
        self.dtype = operators[0].dtype

    def __matmul__(self, B: Array) -> Array:
        return self._columnwise(B, [operator.__matmul__ for operator in self.operators])

    def accurate(self, B: Array) -> Array:
        return self._columnwise(B, [operator.accurate for operator in self.operators])

    def _columnwise(self, B: Array, products: list[Callable[[Array], Array]]) -> Array:
        self._check(B.shape[1])
        columns = [product(B[:, c : c + 1, ...]) for c, product in enumerate(products)]
        return namespace(B).concat(columns, axis=1)

    def _check(self, n_outputs: int) -> None:
        if n_outputs != len(self.operators):
            raise ValueError(
                f"There are {len(self.operators)} separate kernels for {n_outputs} outputs."
            )

    def diagonal(self, n_outputs: int = 1) -> Array:
        self._check(n_outputs)
        values = [operator.diagonal(1)[:, 0] for operator in self.operators]
        return namespace(values[0]).stack(values, axis=1)

    def cross(self, X_new: Array) -> Separate:
        return Separate([operator.cross(X_new) for operator in self.operators])

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        pieces = [M.vjp(E[:, c, ...], F[:, c, ...]) for c, M in enumerate(self.operators)]
        return join(pieces)

    @property
    def theta(self) -> np.ndarray:
        return join([operator.theta for operator in self.operators])

    def clone_with_theta(self, theta: np.ndarray) -> Separate:
        pieces = split_theta(theta, self.operators)
        return Separate(
            [M.clone_with_theta(piece) for M, piece in zip(self.operators, pieces, strict=True)]
        )

    @property
    def nbytes(self) -> int:
        return sum(operator.nbytes for operator in self.operators)

    def blocks(self, n_outputs: int) -> list[tuple[Array, list[int]]]:
        self._check(n_outputs)
        return [(operator.blocks(1)[0][0], [c]) for c, operator in enumerate(self.operators)]
