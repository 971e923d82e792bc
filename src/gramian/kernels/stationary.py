"""Kernels of the scaled distance: RBF, Matérn, rational quadratic. Isotropic or ARD, dense or sparse.

Each is a profile of ``D = Σ_k (x_k − z_k)² / ℓ_k²``. With ``H = −2 dk/dD`` the derivative for a log
length scale is ``dk/dlog ℓ_k = H (x_k − z_k)² / ℓ_k²``, so one weighted sum serves all length
scales:

    Σ_ij G_ij H_ij (x_ik − z_jk)² = Σ_i r_i x_ik² + Σ_j c_j z_jk² − 2 Σ_i x_ik ((G∘H) Z)_ik

with r and c the row and column sums of G∘H: O(n m d), like the evaluation itself.

Distances come from one matrix product, ``‖x‖² + ‖z‖² − 2 x·z`` on centred data (cancellation grows
with the distance from the origin). Sparse data are not centred.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array, as_vector, asarray_like, float_sum, namespace
from gramian.kernels.base import Kernel
from gramian.kernels.dot_product import dot_products, squared_norms
from gramian.kernels.parameters import DEFAULT_BOUNDS, bounds_around, data_scale, largest_number
from gramian.kernels.simple import filled


class Stationary(Kernel):
    """A profile of the scaled distance: the squared Euclidean one, unless a kernel has another."""

    _parameters = ("length_scale",)
    _from_data = _vectors = ("length_scale",)
    _rooted = False  # whether k takes the square root of D
    length_scale: Any
    length_scale_bounds: Any

    metric = "squared"
    #: The number c if the kernel is ``exp(−c D)``, else None.
    rate: float | None = None

    @abstractmethod
    def radial(self, D: Array) -> Array:
        """Return k as a function of the scaled distance."""

    @abstractmethod
    def _slope(self, D: Array) -> Array:
        """−p dk/dD for a distance that goes with the power p of what is compared: ``D ∝ ℓ^−p``."""

    def _extra_vjp(self, D: Array, G: Array) -> dict[str, float]:
        """Gradients of parameters other than the length scale."""
        return {}

    @property
    def is_isotropic(self) -> bool:
        return np.ndim(self.length_scale) == 0

    def resolve(self, X: Array, weights: Array | None = None) -> Kernel:
        if isinstance(self.length_scale, str):
            value = self._typical_scale(data_scale(X, weights), X.shape[1])
            bounds = bounds_around(value, self.length_scale_bounds)
            numbers = {"length_scale": value, "length_scale_bounds": bounds}
            return type(self)(**(self.get_params(deep=False) | numbers))
        self._check_features(X)
        return self

    @staticmethod
    def _typical_scale(scale: float, n_features: int) -> float:
        """The length scale of the RBF with gamma = 1 / scale, as SVC(gamma="scale")."""
        return float(np.sqrt(scale / 2))

    def _check_features(self, X: Array) -> None:
        scale = self._number("length_scale")
        if np.ndim(scale) and np.size(scale) != X.shape[1]:
            raise ValueError(
                f"{type(self).__name__}(length_scale=...) has {np.size(scale)} entries, but X has "
                f"{X.shape[1]} features. Give one number, or one for each feature."
            )

    def _evaluate(self, X: Array, Z: Array, offset: int | None) -> Array:
        return self.radial(self._compared(X, Z)[2])

    def _compared(self, X: Array, Z: Array) -> tuple[Array, Array, Array]:
        """Scaled examples and their distances."""
        self._check_features(X)
        Xs, Zs = scaled(X, Z, self._number("length_scale"))
        return Xs, Zs, self._distances(Xs, Zs)

    def _distances(self, Xs: Array, Zs: Array) -> Array:
        """Distances D of scaled examples."""
        return squared_distances(Xs, Zs, rooted=self._rooted)

    def _per_feature(self, Xs: Array, Zs: Array, H: Array) -> np.ndarray:
        """The part of ``Σ_ij H_ij D_ij`` that each feature has."""
        return _squares_per_feature(Xs, Zs, H)

    def diag(self, X: Array) -> Array:
        return filled(X, (X.shape[0],), 1.0)

    def _vjp(self, X: Array, Z: Array, G: Array, offset: int | None) -> np.ndarray:
        Xs, Zs, D = self._compared(X, Z)
        if self.is_isotropic:
            return self.radial_vjp(D, G)
        gradient: dict[str, Any] = self._extra_vjp(D, G)
        if "length_scale" in self._free():
            gradient["length_scale"] = self._per_feature(Xs, Zs, G * self._slope(D))
        return self._gathered(gradient)

    def radial_vjp(self, D: Array, G: Array) -> np.ndarray:
        """Gradient of ``Σ_ij G_ij k_ij`` in ``theta`` from scaled distances; isotropic kernels only."""
        gradient: dict[str, Any] = self._extra_vjp(D, G)
        if "length_scale" in self._free():
            gradient["length_scale"] = float_sum(G * self._slope(D) * D)
        return self._gathered(gradient)

    def _gathered(self, gradient: dict[str, Any]) -> np.ndarray:
        values = [np.atleast_1d(gradient[name]) for name in self._free()]
        return np.concatenate(values) if values else np.empty(0)


@dataclass(eq=False, repr=False)
class RBF(Stationary):
    """Squared exponential kernel ``exp(−Σ_k (x_k − z_k)² / (2 ℓ_k²))``.

    Parameters
    ----------
    length_scale : float, array of shape (n_features,) or "scale", default=1.0
        One number (isotropic), one for each feature (ARD), or ``"scale"``: taken from the training
        data so that the kernel equals ``SVC(gamma="scale")``'s.
    length_scale_bounds : pair of float or "fixed", default=(1e-5, 1e5)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> kernel = RBF(length_scale=2.0)
    >>> kernel(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> kernel.theta.round(4)
    array([0.6931])
    """

    profile = "rbf"
    rate = 0.5

    length_scale: Any = 1.0
    length_scale_bounds: Any = DEFAULT_BOUNDS

    def radial(self, D: Array) -> Array:
        return namespace(D).exp(-0.5 * D)

    _slope = radial


@dataclass(eq=False, repr=False)
class Matern(Stationary):
    """Matérn kernel with smoothness 1/2, 3/2 or 5/2.

    Parameters
    ----------
    length_scale : float, array of shape (n_features,) or "scale", default=1.0
    nu : {0.5, 1.5, 2.5}, default=1.5
        Functions drawn from the prior are ``nu − 1/2`` times differentiable.
    length_scale_bounds : pair of float or "fixed", default=(1e-5, 1e5)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Matern
    >>> Matern(length_scale=2.0, nu=0.5)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    length_scale: Any = 1.0
    nu: float = 1.5
    length_scale_bounds: Any = DEFAULT_BOUNDS

    _rooted = True

    def _validate(self) -> None:
        super()._validate()
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"Matern(nu=...) must be 0.5, 1.5 or 2.5, got {self.nu!r}.")

    def _shown_parameters(self) -> tuple[str, ...]:
        return ("length_scale", "nu")

    @property
    def profile(self) -> str:
        return f"matern{round(2 * self.nu)}2"

    def radial(self, D: Array) -> Array:
        xp = namespace(D)
        s = xp.sqrt(2 * float(self.nu) * D)
        decay = xp.exp(-s)
        if self.nu == 0.5:
            return decay
        return (1 + s) * decay if self.nu == 1.5 else (1 + s + s * s / 3) * decay

    def _slope(self, D: Array) -> Array:
        xp = namespace(D)
        s = xp.sqrt(2 * float(self.nu) * D)
        # At distance zero it multiplies a difference of zero (for nu = 1/2 it is infinite there); to
        # leave it out spares the rounding errors of that difference.
        apart = s > 0
        decay = xp.where(apart, xp.exp(-s), xp.zeros_like(s))
        if self.nu == 0.5:
            return decay / xp.where(apart, s, xp.ones_like(s))
        return 3 * decay if self.nu == 1.5 else (5 / 3) * (1 + s) * decay


@dataclass(eq=False, repr=False)
class RationalQuadratic(Stationary):
    """Rational quadratic kernel ``(1 + D / (2 alpha)) ** −alpha``, a scale mixture of RBF kernels.

    Parameters
    ----------
    length_scale : float, array of shape (n_features,) or "scale", default=1.0
    alpha : float, default=1.0
        The larger, the closer to the RBF kernel.
    length_scale_bounds, alpha_bounds : pair of float or "fixed", default=(1e-5, 1e5)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RationalQuadratic
    >>> RationalQuadratic(2.0, alpha=0.5)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """

    _parameters = ("length_scale", "alpha")

    length_scale: Any = 1.0
    alpha: float = 1.0
    length_scale_bounds: Any = DEFAULT_BOUNDS
    alpha_bounds: Any = DEFAULT_BOUNDS

    def radial(self, D: Array) -> Array:
        alpha = self._number("alpha")
        return (1 + D / (2 * alpha)) ** -alpha

    def _slope(self, D: Array) -> Array:
        alpha = self._number("alpha")
        return (1 + D / (2 * alpha)) ** (-alpha - 1)

    def _extra_vjp(self, D: Array, G: Array) -> dict[str, float]:
        xp = namespace(D)
        alpha = self._number("alpha")
        base = 1 + D / (2 * alpha)
        slope = base**-alpha * (D / (2 * base) - alpha * xp.log(base))
        return {"alpha": float_sum(G * slope)}


# --- distances --------------------------------------------------------------------------------


def scaled(X: Array, Z: Array, length_scale: Any) -> tuple[Array, Array]:
    """Divide by the length scales; dense data are centred on Z as well."""
    inverse = _inverse(length_scale, X, Z)
    if sp.issparse(X):
        inverse = inverse.astype(X.dtype)
        if inverse.ndim == 0:
            return X * inverse, Z * inverse
        diagonal = sp.diags_array(inverse).astype(X.dtype)
        return (X @ diagonal).tocsr(), (Z @ diagonal).tocsr()
    xp = namespace(X, Z)
    inverse = asarray_like(inverse, X)
    centre = xp.mean(Z, axis=0, keepdims=True) if Z.shape[0] else 0
    return (X - centre) * inverse, (Z - centre) * inverse


def _inverse(length_scale: Any, X: Array, Z: Array) -> np.ndarray:
    """1 / ℓ, or less where squared distances would overflow: they are then merely very large."""
    with np.errstate(over="ignore"):
        inverse = 1.0 / np.asarray(length_scale, dtype=float)
    # centred data are up to twice as large, distances twice that; the rest is for profiles
    most = float(np.sqrt(largest_number(X) / (256 * max(1, X.shape[1]))))
    # at other length scales only absurd data overflow: a pass over them is spared
    if inverse.max(initial=0.0) > np.sqrt(most):
        inverse = np.minimum(inverse, most / max(_magnitude(X), _magnitude(Z), 1 / most))
    return inverse


def _magnitude(X: Array) -> float:
    values = X.data if sp.issparse(X) else X
    return float(namespace(values).max(abs(values))) if 0 not in values.shape else 0.0


def squared_distances(Xs: Array, Zs: Array, *, rooted: bool) -> Array:
    """``‖x_i − z_j‖²`` by one matrix product; what is below the rounding error may be set to zero.

    It always is if the root of the distance will be taken, which magnifies the rounding error of tiny distances.
    """
    X_norms, Z_norms = squared_norms(Xs), squared_norms(Zs)
    D = dot_products(Xs, Zs)
    D *= -2
    D += X_norms[:, None]
    D += Z_norms[None, :]
    D = namespace(D).clip(D, min=0)
    noisy = rooted or _noise_shows(D, X_norms, Z_norms)
    return _above_noise(D, X_norms, Z_norms) if noisy else D


def _above_noise(D: Array, X_norms: Array, Z_norms: Array) -> Array:
    xp = namespace(D)
    size = X_norms[:, None] + Z_norms[None, :]
    return xp.where(D > 8 * float(xp.finfo(D.dtype).eps) * size, D, xp.zeros_like(D))


def _noise_shows(D: Array, X_norms: Array, Z_norms: Array) -> bool:
    """Whether examples may differ from their copies by more than the root of eps, as at short length scales."""
    if 0 in D.shape:
        return False
    xp = namespace(D)
    size = float(xp.max(X_norms)) + float(xp.max(Z_norms))
    return 4 * size * float(xp.finfo(D.dtype).eps) ** 0.5 > 1


def _squares_per_feature(Xs: Array, Zs: Array, H: Array) -> np.ndarray:
    """Σ_ij H_ij (x_ik − z_jk)² for every feature k."""
    xp = namespace(H)
    rows, columns = xp.sum(H, axis=1), xp.sum(H, axis=0)
    if sp.issparse(Xs):
        cross = Xs.multiply(sp.csr_array(H @ Zs)).sum(axis=0)
        squares = rows @ Xs.multiply(Xs) + columns @ Zs.multiply(Zs)
        return np.asarray(squares - 2 * cross, dtype=float).reshape(-1)
    cross = xp.sum(Xs * (H @ Zs), axis=0, dtype=xp.float64)
    squares = rows @ (Xs * Xs) + columns @ (Zs * Zs)
    return as_vector(xp.astype(squares, xp.float64) - 2 * cross)
