"""The Laplacian kernel: a product over features, of the Manhattan distance.

    k(x, z) = exp(−D),    D = Σ_k |x_k − z_k| / ℓ_k

Its functions bend at the examples, along each feature by itself. Distances add up what features differ by and not
squares of it, so that a single feature that is far off does not decide. Where trees are good (tables of features with
units of their own), this kernel often is, too.

The derivative for a log length scale is ``dk/dlog ℓ_k = k |x_k − z_k| / ℓ_k``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian._core.arrays import Array, namespace
from gramian.kernels.manhattan import manhattan_distances, manhattan_sums
from gramian.kernels.parameters import DEFAULT_BOUNDS
from gramian.kernels.stationary import Stationary


@dataclass(eq=False, repr=False)
class Laplacian(Stationary):
    """Laplacian kernel ``exp(−Σ_k |x_k − z_k| / ℓ_k)``.

    Parameters
    ----------
    length_scale : float, array of shape (n_features,) or "scale", default=1.0
        One number, one for each feature, or ``"scale"``: the number of features times the standard deviation of the
        training data, as `sklearn.metrics.pairwise.laplacian_kernel` has it for features of variance one.
    length_scale_bounds : pair of float or "fixed", default=(1e-5, 1e5)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Laplacian
    >>> Laplacian(length_scale=2.0)(np.array([[0.0, 0.0], [1.0, 1.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    length_scale: Any = 1.0
    length_scale_bounds: Any = DEFAULT_BOUNDS

    metric = "manhattan"
    profile = "laplacian"
    rate = 1.0

    @staticmethod
    def _typical_scale(scale: float, n_features: int) -> float:
        return float(np.sqrt(scale * n_features))

    def radial(self, D: Array) -> Array:
        return namespace(D).exp(-D)

    _slope = radial

    def _distances(self, Xs: Array, Zs: Array) -> Array:
        return manhattan_distances(Xs, Zs)

    def _per_feature(self, Xs: Array, Zs: Array, H: Array) -> np.ndarray:
        return manhattan_sums(Xs, Zs, H)
