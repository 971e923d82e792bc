"""Kernels from kernels: sums, products and powers, written ``+``, ``*`` and ``**``.

Values and derivatives follow the rules of calculus; log-parameters are concatenated, left first.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from gramian._core.arrays import Array
from gramian.kernels.base import Kernel
from gramian.kernels.parameters import check_positive, checked_theta, shown
from gramian.kernels.simple import Constant, White


class _Pair(Kernel):
    """Two kernels joined; their log-parameters are concatenated, left first."""

    def __init__(self, left: Kernel, right: Kernel):
        self.left = left
        self.right = right
        self._validate()

    def _validate(self) -> None:
        for name in ("left", "right"):
            if not isinstance(getattr(self, name), Kernel):
                raise TypeError(f"{name} must be a kernel, got {getattr(self, name)!r}.")

    @property
    def theta(self) -> np.ndarray:
        return np.concatenate([self.left.theta, self.right.theta])

    @property
    def parameter_names(self) -> list[str]:
        return self.left.parameter_names + self.right.parameter_names

    @property
    def bounds(self) -> np.ndarray:
        return np.concatenate([self.left.bounds, self.right.bounds])

    def clone_with_theta(self, theta: np.ndarray) -> Kernel:
        cut = self.left.theta.size
        theta = checked_theta(theta, cut + self.right.theta.size)
        return type(self)(
            self.left.clone_with_theta(theta[:cut]), self.right.clone_with_theta(theta[cut:])
        )

    def resolve(self, X: Array, weights: Array | None = None) -> Kernel:
        resolved = type(self)(self.left.resolve(X, weights), self.right.resolve(X, weights))
        return resolved._of_usable_size(X)

    @property
    def is_precomputed(self) -> bool:
        return self.left.is_precomputed or self.right.is_precomputed


class Sum(_Pair):
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

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        return self.left._evaluate(X, Z, offset) + self.right._evaluate(X, Z, offset)

    def diag(self, X: Array) -> Array:
        return self.left.diag(X) + self.right.diag(X)

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        return np.concatenate([self.left._vjp(X, Z, G, offset), self.right._vjp(X, Z, G, offset)])

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{self.left!r} + {self.right!r}"


class Product(_Pair):
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

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        return self.left._evaluate(X, Z, offset) * self.right._evaluate(X, Z, offset)

    def diag(self, X: Array) -> Array:
        return self.left.diag(X) * self.right.diag(X)

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        parts = []
        for one, other in ((self.left, self.right), (self.right, self.left)):
            weighted = G * other._evaluate(X, Z, offset) if one.theta.size else None
            parts.append(np.empty(0) if weighted is None else one._vjp(X, Z, weighted, offset))
        return np.concatenate(parts)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{_bracketed(self.left)} * {_bracketed(self.right)}"


class Power(Kernel):
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

    def __init__(self, kernel: Kernel, exponent: float):
        self.kernel = kernel
        self.exponent = exponent
        self._validate()

    def _validate(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a kernel, got {self.kernel!r}.")
        check_positive("Power(exponent=...)", self.exponent)

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        return self.kernel._evaluate(X, Z, offset) ** float(self.exponent)

    def diag(self, X: Array) -> Array:
        return self.kernel.diag(X) ** float(self.exponent)

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        exponent = float(self.exponent)
        slope = exponent * self.kernel._evaluate(X, Z, offset) ** (exponent - 1)
        return self.kernel._vjp(X, Z, G * slope, offset)

    @property
    def theta(self) -> np.ndarray:
        return self.kernel.theta

    @property
    def parameter_names(self) -> list[str]:
        return self.kernel.parameter_names

    @property
    def bounds(self) -> np.ndarray:
        return self.kernel.bounds

    def clone_with_theta(self, theta: np.ndarray) -> Kernel:
        return Power(self.kernel.clone_with_theta(theta), self.exponent)

    def resolve(self, X: Array, weights: Array | None = None) -> Kernel:
        return Power(self.kernel.resolve(X, weights), self.exponent)._of_usable_size(X)

    @property
    def is_precomputed(self) -> bool:
        return self.kernel.is_precomputed

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
    if isinstance(kernel, Product):
        for factor, other in ((kernel.left, kernel.right), (kernel.right, kernel.left)):
            if isinstance(factor, Constant):
                return factor, other
        for side in ("left", "right"):
            constant, rest = split_amplitude(getattr(kernel, side))
            if constant is not None:
                return constant, Product(**(kernel.get_params(deep=False) | {side: rest}))
    return None, kernel


def scales_itself(kernel: Kernel) -> bool:
    """Whether some log-parameters multiply the whole kernel by any constant."""
    if isinstance(kernel, Sum):
        return scales_itself(kernel.left) and scales_itself(kernel.right)
    if isinstance(kernel, Product):
        return scales_itself(kernel.left) or scales_itself(kernel.right)
    if isinstance(kernel, Power):
        return scales_itself(kernel.kernel)
    if hasattr(kernel, "scales_itself"):  # a pairwise kernel knows
        return kernel.scales_itself()
    return isinstance(kernel, (Constant, White)) and kernel.theta.size > 0


def as_term(value: Any) -> Kernel:
    """Return a kernel for a kernel or a number; a number next to a kernel is a constant kernel."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, Real):
        return Constant(float(value))
    raise TypeError(f"A kernel combines with kernels and numbers, got {value!r}.")


def _bracketed(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, (Sum, Product)) else repr(kernel)
