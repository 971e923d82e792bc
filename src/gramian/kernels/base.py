"""What a kernel is: values, diagonal, vector-Jacobian product, and algebra.

A kernel is ``k(x, z; θ)`` with positive parameters that live in log space, as in
`sklearn.gaussian_process.kernels`. Learning needs the gradient of ``Σ_ij G_ij k(x_i, z_j)``, never
the ``n × m × p`` array of derivatives: that is ``vjp``, and it costs about one evaluation.

Parameters are set in the constructor and not changed afterwards; ``set_params`` exists because
scikit-learn's model selection asks for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gramian._arrays import Array, namespace, to_numpy

DEFAULT_BOUNDS = (1e-5, 1e5)


class Kernel(ABC, BaseEstimator):
    """Base class of all kernels.

    A new kernel implements `_evaluate`, `diag` and `_vjp`, and names its positive parameters in
    ``_parameters``; each parameter ``p`` has a constructor argument ``p_bounds``, a pair or
    ``"fixed"``.
    """

    _parameters: tuple[str, ...] = ()

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
        Z, offset = _same_if_none(X, Z, offset)
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
        Z, offset = _same_if_none(X, Z, offset)
        return self._vjp(X, Z, G, offset)

    @property
    def theta(self) -> np.ndarray:
        """Logarithms of the parameters that are not fixed, shape (n_parameters,)."""
        values = [np.atleast_1d(self._number(name)) for name in self._free()]
        return np.log(np.concatenate(values)) if values else np.empty(0)

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
        theta = _checked_theta(theta, self.theta.size)
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

    @property
    def is_precomputed(self) -> bool:
        """Whether X is a Gram matrix rather than features."""
        return False

    # --- algebra ----------------------------------------------------------------------------

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, _as_kernel(other))

    def __radd__(self, other: Any) -> Kernel:
        return Sum(_as_kernel(other), self)

    def __mul__(self, other: Any) -> Kernel:
        return Product(self, _as_kernel(other))

    def __rmul__(self, other: Any) -> Kernel:
        return Product(_as_kernel(other), self)

    def __pow__(self, exponent: float) -> Kernel:
        return Power(self, exponent)

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
        shown = ", ".join(
            f"{name}={_shown(getattr(self, name))}" for name in self._shown_parameters()
        )
        return f"{type(self).__name__}({shown})"

    def set_params(self, **params: Any) -> Kernel:
        """Set parameters, as scikit-learn's model selection does on its own copies."""
        super().set_params(**params)
        self._validate()
        return self

    # --- for subclasses ---------------------------------------------------------------------

    def _shown_parameters(self) -> tuple[str, ...]:
        return self._parameters

    def _validate(self) -> None:
        """Refuse parameters that are not positive, with an error that names them."""
        for name in self._parameters:
            check_positive(f"{type(self).__name__}({name}=...)", getattr(self, name))
            check_bounds(
                f"{type(self).__name__}({name}_bounds=...)", getattr(self, f"{name}_bounds")
            )

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


class _Pair(Kernel):
    """Two kernels joined; their log-parameters are concatenated, left first."""

    _symbol = "?"

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
    def bounds(self) -> np.ndarray:
        return np.concatenate([self.left.bounds, self.right.bounds])

    def clone_with_theta(self, theta: np.ndarray) -> Kernel:
        cut = self.left.theta.size
        theta = _checked_theta(theta, cut + self.right.theta.size)
        return type(self)(
            self.left.clone_with_theta(theta[:cut]), self.right.clone_with_theta(theta[cut:])
        )

    def resolve(self, X: Array, weights: Array | None = None) -> Kernel:
        return type(self)(self.left.resolve(X, weights), self.right.resolve(X, weights))

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
    def bounds(self) -> np.ndarray:
        return self.kernel.bounds

    def clone_with_theta(self, theta: np.ndarray) -> Kernel:
        return Power(self.kernel.clone_with_theta(theta), self.exponent)

    def resolve(self, X: Array, weights: Array | None = None) -> Kernel:
        return Power(self.kernel.resolve(X, weights), self.exponent)

    @property
    def is_precomputed(self) -> bool:
        return self.kernel.is_precomputed

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        base = f"({self.kernel!r})" if isinstance(self.kernel, Power) else _bracketed(self.kernel)
        return f"{base} ** {_shown(self.exponent)}"


# --- helpers ----------------------------------------------------------------------------------


def data_scale(X: Array, weights: Array | None = None) -> float:
    """Return ``n_features · Var(X)``, the scale behind ``gamma="scale"``; 1 for constant X.

    The variance is over all entries, with the weights of the rows.
    """
    if hasattr(X, "tocsr"):  # sparse: the zeros count
        sums = [
            np.asarray(X.sum(axis=1)).reshape(-1),
            np.asarray(X.multiply(X).sum(axis=1)).reshape(-1),
        ]
        w = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=float)
        mean, square = (float(w @ part) / (float(w.sum()) * X.shape[1]) for part in sums)
        variance = square - mean**2
    else:
        xp = namespace(X)
        rows = xp.ones_like(X[:, 0]) if weights is None else weights
        w = xp.astype(rows, xp.float64)[:, None]
        count = float(xp.sum(w)) * X.shape[1]
        mean = float(xp.sum(w * xp.astype(X, xp.float64))) / count
        variance = float(xp.sum(w * (xp.astype(X, xp.float64) - mean) ** 2)) / count
    scale = X.shape[1] * variance
    return scale if scale > 0 and np.isfinite(scale) else 1.0


def float_sum(values: Array) -> float:
    """Sum of all entries, accumulated in float64."""
    xp = namespace(values)
    return float(xp.sum(values, dtype=xp.float64))


def as_vector(values: Array) -> np.ndarray:
    """One-dimensional float64 NumPy copy."""
    return np.asarray(to_numpy(values), dtype=np.float64).reshape(-1)


def is_fixed(bounds: Any) -> bool:
    return isinstance(bounds, str) and bounds == "fixed"


def check_positive(name: str, value: Any, *, vector: bool = False) -> None:
    """Refuse anything but a positive finite number or, with ``vector``, a vector of them."""
    words = "a positive number or a vector of them" if vector else "a positive number"
    try:
        number = np.asarray(value).dtype.kind not in "USbc"  # these would convert silently
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        number = False
    if not number:
        raise TypeError(f"{name} must be {words}, got {value!r}.")
    if array.ndim > vector or array.size == 0:
        raise ValueError(f"{name} must be {words}, got {value!r}.")
    if not np.all(np.isfinite(array)) or not np.all(array > 0):
        raise ValueError(f"{name} must be positive and finite, got {value!r}.")


def check_bounds(name: str, bounds: Any) -> None:
    """Refuse bounds that are neither "fixed" nor positive increasing pairs."""
    if is_fixed(bounds):
        return
    try:
        pairs = np.asarray(bounds, dtype=float).reshape(-1, 2)
    except (TypeError, ValueError):
        raise ValueError(f'{name} must be "fixed" or a pair (low, high), got {bounds!r}.') from None
    if not np.all(pairs > 0) or not np.all(pairs[:, 0] <= pairs[:, 1]):
        raise ValueError(f"{name} must satisfy 0 < low <= high, got {bounds!r}.")


def _same_if_none(X: Array, Z: Array | None, offset: int | None) -> tuple[Array, int | None]:
    return (X, 0) if Z is None else (Z, offset)


def _checked_theta(theta: Any, size: int) -> np.ndarray:
    theta = np.asarray(theta, dtype=float)
    if theta.shape != (size,):
        raise ValueError(f"theta must have shape ({size},), got {theta.shape}.")
    return theta


def _as_kernel(value: Any) -> Kernel:
    if isinstance(value, Kernel):
        return value
    if isinstance(value, Real):
        from gramian.kernels.simple import (
            Constant,
        )  # a number next to a kernel is a constant kernel

        return Constant(float(value))
    raise TypeError(f"A kernel combines with kernels and numbers, got {value!r}.")


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Kernel) or isinstance(b, Kernel):
        return a == b
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


def _shown(value: Any) -> str:
    if isinstance(value, Real):
        return f"{float(value):.4g}"
    if isinstance(value, str):
        return repr(value)
    entries = [f"{float(v):.4g}" for v in np.asarray(value)]
    if len(entries) > 6:
        entries = [*entries[:3], "...", *entries[-2:]]
    return f"[{', '.join(entries)}]"


def _bracketed(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, (Sum, Product)) else repr(kernel)
