"""What a kernel is: values, diagonal, vector-Jacobian product, and algebra.

A kernel is ``k(x, z; θ)`` with positive parameters that live in log space, as in
`sklearn.gaussian_process.kernels`. Learning needs the gradient of ``Σ_ij G_ij k(x_i, z_j)``, never
the ``n × m × p`` array of derivatives: that is ``vjp``, and it costs about one evaluation.

Parameters are set in the constructor and not changed afterwards; ``set_params`` exists because
scikit-learn's model selection asks for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from gramian._core.arrays import Array, namespace
from gramian.kernels.parameters import (
    check_bounds,
    check_positive,
    check_size,
    checked_theta,
    is_fixed,
    shown,
)

if TYPE_CHECKING:
    from gramian.kernels.simple import Constant


class Kernel(ABC, BaseEstimator):
    """Base class of all kernels.

    A new kernel implements `_evaluate`, `diag` and `_vjp`, and names its positive parameters in
    ``_parameters``; each parameter ``p`` has a constructor argument ``p_bounds``, a pair or
    ``"fixed"``.
    """

    _parameters: tuple[str, ...] = ()
    _from_data: tuple[str, ...] = ()  # parameters that may be "scale"
    _vectors: tuple[str, ...] = ()  # parameters that may have a value for each feature

    #: Whether X is a Gram matrix rather than features.
    is_precomputed: bool = False
    #: Whether the kernel is a function of the distance over one length scale, see ``radial``.
    is_isotropic: bool = False
    #: Which distance that is: "squared" (Euclidean) or "manhattan".
    metric: str | None = None
    #: Whether different examples always have the value zero, as with white noise.
    is_diagonal: bool = False
    #: Name of the profile of the scaled distance that compiled products know, if there is one.
    profile: str | None = None
    #: The factor v if the kernel is ``v · Linear()``, else None.
    linear_variance: float | None = None

    # --- to implement -----------------------------------------------------------------------

    @abstractmethod
    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        """Values of shape (n, m)."""

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """Return ``k(x_i, x_i)`` as an array of shape (n_samples,)."""

    @abstractmethod
    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        """Gradient in ``theta`` of Σ_ij G_ij k(x_i, z_j)."""

    # --- public -----------------------------------------------------------------------------

    def __call__(self, X: Array, Z: Array | None = None, *, offset: int | None = None) -> Array:
        """Return the values ``k(x_i, z_j)``.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        Z : array or sparse array of shape (m_samples, n_features), default=None
            None means X itself.
        offset : int, default=None
            Row ``i`` of X is the very same example as row ``i + offset`` of Z. White noise lives
            there.

        Returns
        -------
        array of shape (n_samples, m_samples)
        """
        Z, offset = (X, 0) if Z is None else (Z, offset)
        return self._evaluate(X, Z, offset)

    def vjp(self, X: Array, Z: Array | None, G: Array, *, offset: int | None = None) -> np.ndarray:
        """Return the gradient of ``Σ_ij G_ij k(x_i, z_j)`` in ``theta``.

        Parameters
        ----------
        X, Z, offset
            As in ``kernel(X, Z)``.
        G : array of shape (n_samples, m_samples)
            The weights.

        Returns
        -------
        ndarray of shape (len(theta),)
        """
        Z, offset = (X, 0) if Z is None else (Z, offset)
        return self._vjp(X, Z, G, offset)

    @property
    def theta(self) -> np.ndarray:
        """Logarithms of the parameters that are not fixed, shape (n_parameters,)."""
        values = [np.atleast_1d(self._number(name)) for name in self._free()]
        return np.log(np.concatenate(values)) if values else np.empty(0)

    @property
    def parameter_names(self) -> list[str]:
        """A name for each entry of ``theta``."""
        names = []
        for name in self._free():
            value = self._number(name)
            entries = [""] if np.ndim(value) == 0 else [f"[{k}]" for k in range(np.size(value))]
            names += [f"{type(self).__name__}.{name}{entry}" for entry in entries]
        return names

    @property
    def bounds(self) -> np.ndarray:
        """Logarithms of the bounds of ``theta``, shape (n_parameters, 2)."""
        rows = []
        for name in self._free():
            size = np.atleast_1d(self._number(name)).size
            pair = np.asarray(getattr(self, f"{name}_bounds"), dtype=float).reshape(-1, 2)
            rows.append(np.broadcast_to(pair, (size, 2)))
        return np.log(np.concatenate(rows)) if rows else np.empty((0, 2))

    def clone_with_theta(self, theta: np.ndarray) -> Kernel:
        """Return a copy of the kernel with other log-parameters."""
        theta = checked_theta(theta, self.theta.size)
        params, start = self.get_params(deep=False), 0
        for name in self._free():
            old = self._number(name)
            size = np.atleast_1d(old).size
            values = np.exp(theta[start : start + size])
            params[name] = float(values[0]) if np.ndim(old) == 0 else values
            start += size
        return type(self)(**params)

    def resolve(self, X: Array, weights: Array | None = None) -> Kernel:
        """Return the kernel with data-driven values such as ``"scale"`` replaced by numbers.

        Refuses parameters with which values on X are too large for sums over examples.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        weights : array of shape (n_samples,), default=None
            Weights of the examples: a weight of 2 counts an example twice.

        Returns
        -------
        Kernel
        """
        return self

    # --- what a kernel says of itself: operators and priors ask ------------------------------

    def amplitude(self) -> tuple[Constant | None, Kernel]:
        """Return the constant factor of a product and the rest; None if there is no such factor."""
        return None, self

    def summands(self) -> list[tuple[float, Kernel]]:
        """Return the terms of a sum with their constant factors: the kernel is ``Σ factor · term``."""
        return [(1.0, self)]

    def addends(self) -> list[Kernel]:
        """Return the kernels that this one is the sum of, constant factors and log-parameters as they are."""
        return [self]

    def smooth_diag(self, X: Array) -> Array:
        """Return ``k(x_i, z)`` for another example z with the features of x_i: white noise is zero there."""
        return self.diag(X)

    def scales_itself(self) -> bool:
        """Whether some log-parameters multiply the whole kernel by any constant."""
        return False

    # --- algebra ----------------------------------------------------------------------------

    def __add__(self, other: Any) -> Kernel:
        return _algebra().Sum(self, _algebra().as_term(other))

    def __radd__(self, other: Any) -> Kernel:
        return _algebra().as_term(other) + self

    def __mul__(self, other: Any) -> Kernel:
        return _algebra().Product(self, _algebra().as_term(other))

    def __rmul__(self, other: Any) -> Kernel:
        return _algebra().as_term(other) * self

    def __pow__(self, exponent: float) -> Kernel:
        return _algebra().Power(self, exponent)

    # Operators meet NumPy scalars on the left (np.float64(2) * kernel): refuse to be treated as an array.
    __array_ufunc__ = None

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)  # type: ignore[attr-defined]
        return all(_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash((type(self).__name__, repr(self)))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = ", ".join(
            f"{name}={shown(getattr(self, name))}" for name in self._shown_parameters()
        )
        return f"{type(self).__name__}({text})"

    def set_params(self, **params: Any) -> Kernel:
        """Set parameters, as scikit-learn's model selection does on its own copies."""
        super().set_params(**params)
        self._validate()
        return self

    # --- for subclasses ---------------------------------------------------------------------

    def _of_usable_size(self, X: Array) -> Kernel:
        """The kernel itself, if its values on X are not too large to compute with: no value exceeds the diagonal."""
        # a Gram matrix may have no diagonal, and that of pairs is not cheap; their parts are checked
        if not self.is_precomputed and not hasattr(X, "left_index") and X.shape[0]:
            with np.errstate(over="ignore", invalid="ignore"):
                diagonal = self.diag(X)
                check_size(self, float(namespace(diagonal).max(diagonal)), X)
        return self

    def __post_init__(self) -> None:
        """Kernels are dataclasses whose fields are their parameters, which are checked once."""
        self._validate()

    def _shown_parameters(self) -> tuple[str, ...]:
        return self._parameters

    def _validate(self) -> None:
        """Refuse parameters that are not positive, with an error that names them."""
        kernel = type(self).__name__
        for name in self._parameters:
            self._check_value(name, f"{kernel}({name}=...)", getattr(self, name))
            check_bounds(f"{kernel}({name}_bounds=...)", getattr(self, f"{name}_bounds"))

    def _check_value(self, name: str, shown_name: str, value: Any) -> None:
        """Refuse a value of one parameter; only some may come from the data, or be a vector."""
        if name in self._from_data and isinstance(value, str):
            if value != "scale":
                raise ValueError(f'{shown_name} must be positive or "scale", got {value!r}.')
        else:
            check_positive(shown_name, value, vector=name in self._vectors)

    def _free(self) -> list[str]:
        return [name for name in self._parameters if not is_fixed(getattr(self, f"{name}_bounds"))]

    def _number(self, name: str) -> Any:
        value = getattr(self, name)
        if isinstance(value, str):
            raise ValueError(
                f"{type(self).__name__}({name}={value!r}) has no number yet: call kernel.resolve(X) to "
                "take it from data, or give a number. Estimators do this in fit."
            )
        # a NumPy scalar, as grid searches give it, would turn float32 arrays into float64
        return float(value) if np.ndim(value) == 0 else value


def _algebra() -> Any:
    """The module of sums and products: it is built on the class above, hence imported when it is used."""
    from gramian.kernels import algebra

    return algebra


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Kernel) or isinstance(b, Kernel):
        return a == b
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))
