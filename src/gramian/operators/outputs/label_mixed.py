"""The Gram operator of the one equation: ``𝒦(A) = Σ_l M_l A S_l``.

Cost: one product with each M_l for all outputs at once, plus the mixing. Gradients follow from the
parts: ``⟨E, M F S⟩`` is ``⟨E S, M F⟩`` for the parameters of M (S is symmetric) and ``⟨E, (M F)
S⟩`` for those of S.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from gramian._core.arrays import Array, asarray_like
from gramian.labels import Diagonal, Identity, LabelStructure, Scalar
from gramian.operators.base import CompositeOperator, KroneckerForm, Operator
from gramian.operators.outputs.intercept import Intercept


class LabelMixed(CompositeOperator):
    """Sum of terms ``M A S``.

    Parameters
    ----------
    terms : sequence of (InputOperator, LabelStructure)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> from gramian.labels import Diagonal
    >>> from gramian.operators import Dense, LabelMixed
    >>> M = Dense(Linear(), np.array([[1.0], [2.0]]))
    >>> LabelMixed([(M, Diagonal([1.0, 10.0]))]) @ np.ones((2, 2))
    array([[ 3., 30.],
           [ 6., 60.]])
    """

    def __init__(self, terms: Sequence[tuple[Operator, LabelStructure]]):
        if not terms:
            raise ValueError("terms must hold at least one (operator, label structure) pair.")
        shapes = {operator.shape for operator, _ in terms}
        if len(shapes) > 1:
            raise ValueError(f"terms must have operators of one shape, got {sorted(shapes)}.")
        self.terms = list(terms)
        self._parts = [part for term in terms for part in term]
        self.shape = terms[0][0].shape
        self.dtype = terms[0][0].dtype

    def __matmul__(self, B: Array) -> Array:
        return reduce(add, (structure.mix(operator @ B) for operator, structure in self.terms))

    def accurate(self, B: Array) -> Array:
        return reduce(add, (s.mix(operator.accurate(B)) for operator, s in self.terms))

    def diagonal(self, n_outputs: int = 1) -> Array:
        parts = []
        for operator, structure in self.terms:
            values = operator.diagonal(n_outputs)
            parts.append(values * asarray_like(structure.diagonal(n_outputs), values)[None, :])
        return reduce(add, parts)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        pieces = [np.empty(0)]
        for operator, structure in self.terms:
            if operator.theta.size:
                pieces.append(operator.vjp(structure.mix(E), F))
            if structure.theta.size:
                pieces.append(structure.vjp(E, operator @ F))
        return np.concatenate(pieces)

    def _with_parts(self, parts: list) -> LabelMixed:
        return LabelMixed(list(zip(parts[::2], parts[1::2], strict=True)))

    def compress(self, A: Array) -> tuple[Array | None, Array]:
        # the other term there may be is an intercept, which needs no examples
        return self.terms[0][0].compress(A)

    def kronecker(self) -> KroneckerForm | None:
        (operator, structure), *others = self.terms
        form = operator.kronecker()
        intercepts = [(part, s) for part, s in others if isinstance(part, Intercept)]
        alike = all(isinstance(s, (Identity, Scalar)) for _, s in self.terms)
        if form is None or not alike or len(intercepts) < len(others):
            return None
        variances = [part.variance * float(s.diagonal(1)[0]) for part, s in intercepts]
        scale = float(structure.diagonal(1)[0])
        return form._replace(
            left=scale * form.left, constant=scale * form.constant + float(sum(variances))
        )

    def blocks(self, n_outputs: int) -> list[tuple[Array, list[int]]]:
        if couples_outputs(self):
            return super().blocks(n_outputs)
        scales = np.stack([structure.diagonal(n_outputs) for _, structure in self.terms])
        parts = [dict(_by_output(operator.blocks(n_outputs))) for operator, _ in self.terms]
        groups: dict[tuple, list[int]] = {}
        for c in range(n_outputs):
            key = tuple(
                (id(part[c]), scale) for part, scale in zip(parts, scales[:, c], strict=True)
            )
            groups.setdefault(key, []).append(c)
        blocks = []
        for outputs in groups.values():
            c = outputs[0]
            matrix = sum(float(s) * part[c] for part, s in zip(parts, scales[:, c], strict=True))
            blocks.append((matrix, outputs))
        return blocks


def couples_outputs(operator: Operator) -> bool:
    """Whether label structures mix outputs, so that an operator has no matrix for each of them."""
    if not isinstance(operator, LabelMixed):
        return False
    if any(couples_outputs(part) for part, _ in operator.terms):
        return True
    return not all(isinstance(s, (Identity, Scalar, Diagonal)) for _, s in operator.terms)


def _by_output(blocks: list[tuple[Array, list[int]]]):
    for matrix, outputs in blocks:
        for c in outputs:
            yield c, matrix
