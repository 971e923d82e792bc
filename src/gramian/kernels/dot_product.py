"""Kernels of the inner product x·z: linear and polynomial. Dense or sparse."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from gramian._core.arrays import BLOCK_BYTES, Array, float_sum, is_numpy, namespace, row_blocks
from gramian.kernels.base import Kernel
from gramian.kernels.parameters import DEFAULT_BOUNDS, bounds_around, data_scale


class Linear(Kernel):
    """``k(x, z) = x · z``.

    Has no parameter of its own; ``10.0 * Linear()`` has a variance and ``Linear() + Constant(1.0)``
    an offset.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    linear_variance = 1.0

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        return dot_products(X, Z)

    def diag(self, X: Array) -> Array:
        return squared_norms(X)

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        return np.empty(0)


@dataclass(eq=False, repr=False)
class Polynomial(Kernel):
    """``k(x, z) = (gamma · x·z + coef0) ** degree``.

    Parameters
    ----------
    degree : int, default=3
    gamma : float or "scale", default=1.0
        ``"scale"`` takes ``1 / (n_features · Var(X))`` from the training data.
    coef0 : float, default=1.0
        Not negative. A value of 0 stays 0 when parameters are learned.
    gamma_bounds, coef0_bounds : pair of float or "fixed", default=(1e-5, 1e5)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Polynomial
    >>> Polynomial(degree=2)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    _parameters = ("gamma", "coef0")
    _from_data = ("gamma",)

    degree: int = 3
    gamma: Any = 1.0
    coef0: float = 1.0
    gamma_bounds: Any = DEFAULT_BOUNDS
    coef0_bounds: Any = DEFAULT_BOUNDS

    def _validate(self) -> None:
        super()._validate()
        if not isinstance(self.degree, Real) or self.degree != self.degree // 1 or self.degree < 1:
            raise ValueError(
                f"Polynomial(degree=...) must be a whole number >= 1, got {self.degree!r}."
            )

    def _check_value(self, name: str, shown_name: str, value: Any) -> None:
        if name != "coef0" or not isinstance(value, Real) or value != 0:
            super()._check_value(name, shown_name, value)

    def _free(self) -> list[str]:
        return [name for name in super()._free() if name != "coef0" or self.coef0 != 0]

    def _shown_parameters(self) -> tuple[str, ...]:
        return ("degree", *self._parameters)

    def resolve(self, X: Array, weights: Array | None = None) -> Kernel:
        if not isinstance(self.gamma, str):
            return self._of_usable_size(X)
        gamma = 1.0 / data_scale(X, weights)
        numbers = {"gamma": gamma, "gamma_bounds": bounds_around(gamma, self.gamma_bounds)}
        return Polynomial(**(self.get_params(deep=False) | numbers))._of_usable_size(X)

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        return self._power(dot_products(X, Z))

    def diag(self, X: Array) -> Array:
        return self._power(squared_norms(X))

    def _power(self, products: Array) -> Array:
        return (self._number("gamma") * products + self._number("coef0")) ** int(self.degree)

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        products = self._number("gamma") * dot_products(X, Z)
        degree, coef0 = int(self.degree), self._number("coef0")
        slope = G * (degree * (products + coef0) ** (degree - 1))
        gradient = {"gamma": float_sum(slope * products), "coef0": coef0 * float_sum(slope)}
        return np.array([gradient[name] for name in self._free()])


def dot_products(X: Array, Z: Array) -> Array:
    """All inner products ``x_i · z_j`` as a dense array of shape (n, m)."""
    products = X @ Z.T
    return products.toarray() if hasattr(products, "toarray") else products


def squared_norms(X: Array) -> Array:
    """``‖x_i‖²`` as an array of shape (n,)."""
    if hasattr(X, "toarray"):
        return np.asarray(X.multiply(X).sum(axis=1)).reshape(-1)
    if not is_numpy(X):
        return namespace(X).sum(X * X, axis=1)
    norms = np.empty(X.shape[0], dtype=X.dtype)
    for rows in row_blocks(X.shape[0], X.shape[1] * X.itemsize, BLOCK_BYTES):
        norms[rows] = np.sum(X[rows] * X[rows], axis=1)
    return norms
