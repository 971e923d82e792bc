"""Pairwise kernels whose parts are kernels of objects: one for each side, or one for both. `named` has them by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian._core.arrays import Array
from gramian._core.validation import indefinite_spectrum
from gramian.kernels import Kernel, as_kernel
from gramian.kernels.algebra import OfParts
from gramian.kernels.pairwise.base import PairwiseKernel
from gramian.kernels.similarity import Repaired
from gramian.kernels.simple import Precomputed
from gramian.pairs import Pairs


class OfKernels(PairwiseKernel, OfParts):
    """A pairwise kernel whose parts are one or two kernels of objects, or their names."""

    @property
    def _parts(self) -> list[Kernel]:
        return [checked_base(name, getattr(self, name)) for name in self._part_names]

    def _validate(self) -> None:
        for name, part in zip(self._part_names, self._parts, strict=True):
            if isinstance(part, PairwiseKernel):
                raise TypeError(f"{name} must be a kernel of objects, got {part!r}.")
            if part.is_precomputed and not isinstance(part, Precomputed):
                raise ValueError(
                    f"{name} must be Precomputed() alone where objects come as similarities, got {part!r}. Combine the "
                    "matrices themselves, and give the result as the table."
                )

    def bases(self) -> tuple[Kernel, Kernel]:
        parts = self._parts
        return parts[0], parts[-1]

    def repaired(self, X: Pairs, repair: str) -> PairwiseKernel:
        sides = zip(("X.left", "X.right"), self._parts, self.arranged(X).sides, strict=False)
        changed = self._with_parts(
            _repaired(name, part, s.table, repair) for name, part, s in sides
        )
        assert isinstance(changed, PairwiseKernel)
        return changed

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._parts))})"


@dataclass(eq=False, repr=False)
class OfTwo(OfKernels):
    """A kernel for left and one for right objects."""

    left: Any = "rbf"
    right: Any = "rbf"

    @property
    def parameter_names(self) -> list[str]:
        sides = zip(self._part_names, self._parts, strict=True)
        return [f"{side} {name}" for side, kernel in sides for name in kernel.parameter_names]

    def resolve(self, X: Any, weights: Array | None = None) -> Kernel:
        sides = zip(self._parts, weighted_tables(X, weights), strict=True)
        return self._with_parts(kernel.resolve(*side) for kernel, side in sides)

    def joined(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.concatenate([left, right])


@dataclass(eq=False, repr=False)
class OfOne(OfKernels):
    """One kernel for both ends."""

    homogeneous = True
    _part_names = ("kernel",)

    kernel: Any = "rbf"

    def resolve(self, X: Any, weights: Array | None = None) -> Kernel:
        (table, at_left), (_, at_right) = weighted_tables(self.arranged(X), weights)
        return self._with_parts([self._parts[0].resolve(table, at_left + at_right)])


def checked_base(name: str, kernel: Any) -> Kernel:
    """Return the kernel of objects for a name or a kernel; errors name the argument."""
    try:
        return as_kernel(kernel)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _repaired(name: str, kernel: Kernel, table: Any, repair: str) -> Kernel:
    """The kernel of objects, repaired if it is a table of similarities that are no kernel."""
    if not kernel.is_precomputed or isinstance(kernel, Repaired):
        return kernel
    return kernel if indefinite_spectrum(name, table) is None else Repaired.of(table, repair)


def weighted_tables(X: Pairs, weights: Any) -> list[tuple[Any, np.ndarray]]:
    """The table of each side, and the weight of all pairs of each of its objects."""
    return [
        (side.table, np.bincount(side.index, weights=weights, minlength=side.size).astype(float))
        for side in X.sides
    ]
