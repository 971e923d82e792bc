"""Kernels from kernels: sums, products and powers, written ``+``, ``*`` and ``**``.

Values and derivatives follow the rules of calculus; log-parameters are concatenated, left first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np

from gramian._core.arrays import Array
from gramian.kernels.base import Kernel
from gramian.kernels.parameters import check_positive, clones_with_theta, shown
from gramian.kernels.simple import Constant


class OfParts(Kernel):
    """A kernel whose log-parameters are those of other kernels, its parts, in order."""

    _part_names: tuple[str, ...] = ("left", "right")

    @property
    def _parts(self) -> list[Kernel]:
        return [getattr(self, name) for name in self._part_names]

    def _with_parts(self, parts: Iterable[Kernel]) -> Kernel:
        changed = dict(zip(self._part_names, parts, strict=True))
        return type(self)(**(self.get_params(deep=False) | changed))

    @property
    def theta(self) -> np.ndarray:
        return np.concatenate([part.theta for part in self._parts])

    @property
    def parameter_names(self) -> list[str]:
        return [name for part in self._parts for name in part.parameter_names]

    @property
    def bounds(self) -> np.ndarray:
        return np.concatenate([part.bounds for part in self._parts])

    def clone_with_theta(self, theta: np.ndarray) -> Kernel:
        return self._with_parts(clones_with_theta(self._parts, theta))

    @property
    def is_precomputed(self) -> bool:
        return any(part.is_precomputed for part in self._parts)


class _Composite(OfParts):
    """A kernel whose values are made of those of its parts."""

    def __init__(self, left: Kernel, right: Kernel):
        self.left = left
        self.right = right
        self._validate()

    @abstractmethod
    def _combined(self, *values: Array) -> Array:
        """The values of this kernel from those of its parts."""

    def _of_parts(self, answers: Iterable[bool]) -> bool:
        """Whether something holds for this kernel that holds for these of its parts: for one of them."""
        return any(answers)

    def _validate(self) -> None:
        for name, part in zip(self._part_names, self._parts, strict=True):
            if not isinstance(part, Kernel):
                raise TypeError(f"{name} must be a kernel, got {part!r}.")

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        return self._combined(*(part._evaluate(X, Z, offset) for part in self._parts))

    def diag(self, X: Array) -> Array:
        return self._combined(*(part.diag(X) for part in self._parts))

    def smooth_diag(self, X: Array) -> Array:
        return self._combined(*(part.smooth_diag(X) for part in self._parts))

    def resolve(self, X: Array, weights: Array | None = None) -> Kernel:
        resolved = self._with_parts(part.resolve(X, weights) for part in self._parts)
        return resolved._of_usable_size(X)

    @property
    def is_diagonal(self) -> bool:
        return self._of_parts(part.is_diagonal for part in self._parts)

    def scales_itself(self) -> bool:
        return self._of_parts(part.scales_itself() for part in self._parts)


class Sum(_Composite):
    """Sum of two kernels; written ``left + right``.

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> from gramian.kernels import RBF, White
    >>> RBF(2.0) + White(0.1)
    RBF(length_scale=2) + White(noise=0.1)
    """

    def _combined(self, *values: Array) -> Array:
        return values[0] + values[1]

    def _of_parts(self, answers: Iterable[bool]) -> bool:
        return all(answers)

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        return np.concatenate([part._vjp(X, Z, G, offset) for part in self._parts])

    def summands(self) -> list[tuple[float, Kernel]]:
        return self.left.summands() + self.right.summands()

    def addends(self) -> list[Kernel]:
        return self.left.addends() + self.right.addends()

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{self.left!r} + {self.right!r}"


class Product(_Composite):
    """Product of two kernels; written ``left * right``.

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> from gramian.kernels import RBF
    >>> 10.0 * RBF(2.0)
    Constant(value=10) * RBF(length_scale=2)
    """

    def _combined(self, *values: Array) -> Array:
        return values[0] * values[1]

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        parts = []
        for one, other in ((self.left, self.right), (self.right, self.left)):
            weighted = G * other._evaluate(X, Z, offset) if one.theta.size else None
            parts.append(np.empty(0) if weighted is None else one._vjp(X, Z, weighted, offset))
        return np.concatenate(parts)

    def amplitude(self) -> tuple[Constant | None, Kernel]:
        left, right = self.left, self.right
        for factor, other in ((left, right), (right, left)):
            if isinstance(factor, Constant):
                return factor, other
        constant, rest = left.amplitude()
        if constant is not None:
            return constant, Product(rest, right)
        constant, rest = right.amplitude()
        return constant, self if constant is None else Product(left, rest)

    def summands(self) -> list[tuple[float, Kernel]]:
        constant, rest = self.amplitude()
        if constant is None:
            return super().summands()
        return [(float(constant.value) * factor, term) for factor, term in rest.summands()]

    @property
    def linear_variance(self) -> float | None:
        constant, rest = self.amplitude()
        inner = None if constant is None else rest.linear_variance
        return None if constant is None or inner is None else float(constant.value) * inner

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{_bracketed(self.left)} * {_bracketed(self.right)}"


class Power(_Composite):
    """A kernel raised to a positive power; written ``kernel ** exponent``.

    Parameters
    ----------
    kernel : Kernel
    exponent : float
        A whole number keeps every positive definite kernel positive definite.

    Examples
    --------
    >>> from gramian.kernels import Linear
    >>> (1.0 + Linear()) ** 2
    (Constant(value=1) + Linear()) ** 2
    """

    _part_names = ("kernel",)

    def __init__(self, kernel: Kernel, exponent: float):
        self.kernel = kernel
        self.exponent = exponent
        self._validate()

    def _validate(self) -> None:
        super()._validate()
        check_positive("Power(exponent=...)", self.exponent)

    def _combined(self, *values: Array) -> Array:
        return values[0] ** float(self.exponent)

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        exponent = float(self.exponent)
        slope = exponent * self.kernel._evaluate(X, Z, offset) ** (exponent - 1)
        return self.kernel._vjp(X, Z, G * slope, offset)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        base = f"({self.kernel!r})" if isinstance(self.kernel, Power) else _bracketed(self.kernel)
        return f"{base} ** {shown(self.exponent)}"


def split_amplitude(kernel: Kernel) -> tuple[Constant | None, Kernel]:
    """Return the constant factor of a product and the rest; None if there is none.

    Examples
    --------
    >>> from gramian.kernels import RBF, split_amplitude
    >>> split_amplitude(10.0 * RBF(2.0))
    (Constant(value=10), RBF(length_scale=2))
    """
    return kernel.amplitude()


def scales_itself(kernel: Kernel) -> bool:
    """Whether some log-parameters multiply the whole kernel by any constant."""
    return kernel.scales_itself()


def as_term(value: Any) -> Kernel:
    """Return a kernel for a kernel or a number; a number next to a kernel is a constant kernel."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, Real):
        return Constant(float(value))
    raise TypeError(f"A kernel combines with kernels and numbers, got {value!r}.")


def _bracketed(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, (Sum, Product)) else repr(kernel)
