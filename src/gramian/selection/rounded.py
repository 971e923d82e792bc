"""A Gram operator for searches: stored in single precision as long as a fit does not feel it.

Formula
    Entries that are rounded to float32 change 𝒦 by an E with ``‖E‖₂ ≈ ε √n max(𝒦)``, ε = 6e-8, because the signs of
    rounding errors are as good as random.

Method
    Each evaluation of a criterion asks for the operator at other parameters. It gets one in single precision where
    ``ε √n max(𝒦) ≤ 0.001 λ``, else one in double precision, which is made when it is first needed. Far below λ, E does
    not change the held-out loss; the limit is lower than that because conjugate gradients take more steps when
    products are rounded (twice as many at 0.002 λ, a tenth more at 0.0002 λ).

Cost
    Half the bytes, and about half the time of a product. Matrices that stay in the cache are not worth it. The fit that
    follows a search is in the precision of X.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from gramian._core.arrays import Array, to_numpy
from gramian.operators import Operator

FELT = 1e-3  # of λ
CACHE_BYTES = 2**25  # matrices of fewer bytes in float64 are stored as they are


class Rounded(Operator):
    """The operator of a search over log-parameters, whose copies are in single precision where that is harmless.

    Parameters
    ----------
    single : Operator
        With stored matrices in float32.
    double : callable
        Makes the same operator in float64.
    regularization : float
    n_outputs : int

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.labels import Scalar
    >>> from gramian.operators import Dense, LabelMixed
    >>> from gramian.operators.inputs.distances import Distances
    >>> from gramian.selection.rounded import Rounded
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> def build(dtype):
    ...     return LabelMixed([(Dense(RBF(1.0), X, Distances(X, dtype)), Scalar(1.0))])
    >>> operator = Rounded(build("float32"), lambda: build("float64"), 1.0, n_outputs=1)
    >>> operator.clone_with_theta(np.log([1.0, 10.0])).dtype
    dtype('float32')
    >>> operator.clone_with_theta(np.log([1.0, 1e6])).dtype
    dtype('float64')
    """

    def __init__(
        self,
        single: Operator,
        double: Callable[[], Operator],
        regularization: float,
        n_outputs: int,
    ):
        self.single, self._make = single, double
        self.regularization, self.n_outputs = float(regularization), n_outputs
        self.shape, self.dtype = single.shape, single.dtype

    @cached_property
    def double(self) -> Operator:
        """The operator in double precision, made when it is first asked for."""
        return self._make()

    @property
    def theta(self) -> np.ndarray:
        return self.single.theta

    def clone_with_theta(self, theta: np.ndarray) -> Operator:
        single = self.single.clone_with_theta(theta)
        largest = float(np.max(to_numpy(single.diagonal(self.n_outputs)), initial=0.0))
        felt = 0.5 * np.finfo(np.float32).eps * np.sqrt(self.shape[0]) * largest
        if felt <= FELT * self.regularization:
            return single
        return self.double.clone_with_theta(theta)

    def __matmul__(self, B: Array) -> Array:
        return self.single @ B

    def accurate(self, B: Array) -> Array:
        return self.single.accurate(B)

    def diagonal(self, n_outputs: int = 1) -> Array:
        return self.single.diagonal(n_outputs)

    def vjp(self, E: Array, F: Array) -> np.ndarray:
        return self.single.vjp(E, F)


def rounded(
    build: Callable[[Any], Operator], dtype: Any, regularization: float, n_outputs: int
) -> Operator:
    """Return an operator for a search: `Rounded` where matrices in double precision would be stored beyond the cache.

    Parameters
    ----------
    build : callable
        Makes the operator; its argument is the dtype of what is stored, None for that of X.
    dtype : dtype of X
    regularization : float
    n_outputs : int
    """
    if not isinstance(dtype, np.dtype) or dtype != np.float64:  # of another array library
        return build(None)
    single = build(np.float32)
    if single.dtype != np.float32:  # nothing was rounded; to make it again may be costly
        return single
    if 8 * single.shape[0] ** 2 < CACHE_BYTES:
        return build(None)
    return Rounded(single, lambda: build(None), regularization, n_outputs)
