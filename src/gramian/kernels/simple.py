"""Kernels that do not look at the features: constant, white noise, precomputed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from gramian._core.arrays import Array, device_of, float_sum, namespace
from gramian.kernels.base import Kernel
from gramian.kernels.parameters import DEFAULT_BOUNDS, check_size


class _Level(Kernel):
    """A kernel with one parameter: the value it has on the diagonal."""

    @property
    def _level(self) -> float:
        return self._number(self._parameters[0])

    def resolve(self, X: Array, weights: Array | None = None) -> Kernel:
        check_size(self, self._level, X)
        return self

    def diag(self, X: Array) -> Array:
        return filled(X, (X.shape[0],), self._level)

    def scales_itself(self) -> bool:
        return self.theta.size > 0


@dataclass(eq=False, repr=False)
class Constant(_Level):
    """The same value for every pair; scales other kernels: ``10.0 * RBF(2.0)``.

    Parameters
    ----------
    value : float, default=1.0
        The value, a variance when it multiplies a correlation kernel.
    value_bounds : pair of float or "fixed", default=(1e-5, 1e5)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Constant
    >>> Constant(3.0)(np.zeros((2, 1)))
    array([[3., 3.],
           [3., 3.]])
    """

    _parameters = ("value",)

    value: float = 1.0
    value_bounds: Any = DEFAULT_BOUNDS

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        return filled(X, (X.shape[0], Z.shape[0]), self.value)

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        return np.full(len(self._free()), self.value * float_sum(G))


@dataclass(eq=False, repr=False)
class White(_Level):
    """Independent noise of each example: ``noise`` where x and z are the same example, else 0.

    Two different rows with equal features are different examples, so ``White()(X, X.copy())`` is
    zero and ``White()(X)`` is diagonal. Predictions never contain it.

    Parameters
    ----------
    noise : float, default=1.0
        Variance of the noise.
    noise_bounds : pair of float or "fixed", default=(1e-5, 1e5)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import White
    >>> White(0.5)(np.zeros((2, 1)))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    _parameters = ("noise",)
    is_diagonal = True

    noise: float = 1.0
    noise_bounds: Any = DEFAULT_BOUNDS

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        shape = (X.shape[0], Z.shape[0])
        return (
            filled(X, shape, 0.0) if offset is None else float(self.noise) * _eye(X, shape, offset)
        )

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        trace = 0.0 if offset is None else float_sum(G * _eye(X, G.shape, offset))
        return np.full(len(self._free()), self.noise * trace)

    def smooth_diag(self, X: Array) -> Array:
        return filled(X, (X.shape[0],), 0.0)

    def summands(self) -> list[tuple[float, Kernel]]:
        return [(float(self.noise), White(1.0))]  # not rounded to the precision of X


class Precomputed(Kernel):
    """X already holds kernel values: train × train in ``fit``, new × train in ``predict``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Precomputed
    >>> Precomputed()(np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """

    is_precomputed = True

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        return X.toarray() if hasattr(X, "toarray") else X

    def diag(self, X: Array) -> Array:
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"X must be square to have a diagonal, got shape {X.shape}.")
        if hasattr(X, "diagonal") and hasattr(X, "toarray"):
            return X.diagonal()
        return namespace(X).linalg.diagonal(X)

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        return np.empty(0)


def filled(X: Array, shape: tuple[int, ...], value: float) -> Array:
    """A new array of one value, of the library, device and dtype of X."""
    xp, like = _like(X)
    return xp.full(shape, float(value), **like)


def _eye(X: Array, shape: tuple[int, ...], offset: int) -> Array:
    xp, like = _like(X)
    return xp.eye(shape[0], shape[1], k=offset, **like)


def _like(X: Array) -> tuple[Any, dict[str, Any]]:
    """The array library for X, and what makes its new arrays like X; NumPy for sparse arrays and pairs."""
    dtype = X.dtype
    if not is_array_api_obj(X):
        return np, {"dtype": dtype}
    return namespace(X), {"dtype": dtype, "device": device_of(X)}
