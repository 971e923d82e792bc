"""Both sides of a complete table of pairs: Gram matrices with their eigendecompositions, whole and without a fold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

SINGULAR_RATIO = 1e-14  # a divisor so much smaller than the largest has no correct digits


class Side(NamedTuple):
    """The Gram matrix of one side and its eigendecomposition."""

    gram: np.ndarray
    values: np.ndarray
    vectors: np.ndarray

    @property
    def ones(self) -> np.ndarray:
        """A vector of ones in the basis of the eigenvectors."""
        return self.vectors.sum(axis=0)


Sides = tuple[Side, Side]


class Part(NamedTuple):
    """One side without one of its folds."""

    inside: np.ndarray  # the objects that train
    outside: np.ndarray  # those of the fold
    side: Side  # of the former
    cross: np.ndarray  # Gram matrix of the fold with the former × eigenvectors


def decomposed(gram: np.ndarray) -> Side:
    """Return a Gram matrix with its eigendecomposition."""
    if not len(gram):  # a fold that leaves nothing to train on
        return Side(gram, np.empty(0), np.empty((0, 0)))
    return Side(gram, *eigh(gram))


def parts(side: Side, folds: np.ndarray) -> Iterator[Part]:
    """Yield a side without each of its folds."""
    for fold in np.unique(folds):
        outside, inside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        rest = decomposed(side.gram[np.ix_(inside, inside)])
        yield Part(inside, outside, rest, side.gram[np.ix_(outside, inside)] @ rest.vectors)


def divisor(left: Side, right: Side, strength: float) -> np.ndarray:
    """Return the eigenvalues of the system, l sᵀ + λ."""
    return safe(np.multiply.outer(left.values, right.values) + strength, strength)


def safe(numbers: np.ndarray, strength: float) -> np.ndarray:
    """Return the numbers to divide by, unless some of them are rounding errors."""
    sizes = np.abs(numbers)
    if numbers.size and sizes.min() <= SINGULAR_RATIO * sizes.max():
        raise ValueError(
            f"K A T + λA = Y is singular to working precision for λ = {strength:g}"
            f"{', as K ⊗ T is indefinite' if numbers.min() < 0 else ''}. Change regularization."
        )
    return numbers
