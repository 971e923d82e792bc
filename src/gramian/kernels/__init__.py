"""Kernels k(x, x′): values, diagonals, and gradients for their log-parameters.

Kernels combine by ``+``, ``*`` and ``**``; a number stands for a constant kernel.
"""

from __future__ import annotations

from typing import Any

from gramian.kernels.algebra import Power, Product, Sum, scales_itself, split_amplitude
from gramian.kernels.base import Kernel
from gramian.kernels.dot_product import Linear, Polynomial
from gramian.kernels.laplacian import Laplacian
from gramian.kernels.simple import Constant, Precomputed, White
from gramian.kernels.stationary import RBF, Matern, RationalQuadratic

_BY_NAME = {
    "rbf": RBF("scale"),
    "matern12": Matern("scale", nu=0.5),
    "matern32": Matern("scale", nu=1.5),
    "matern52": Matern("scale", nu=2.5),
    "rational_quadratic": RationalQuadratic("scale"),
    "laplacian": Laplacian("scale"),
    "linear": Linear(),
    "polynomial": Polynomial(gamma="scale"),
    "precomputed": Precomputed(),
}


def as_kernel(kernel: Any) -> Kernel:
    """Return a kernel for a kernel or a name.

    Parameters
    ----------
    kernel : Kernel or str
        Names are "rbf", "matern12", "matern32", "matern52", "rational_quadratic", "laplacian", "linear",
        "polynomial" and "precomputed"; length scales and gamma then come from the training data.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from gramian.kernels import as_kernel
    >>> as_kernel("matern32")
    Matern(length_scale='scale', nu=1.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in _BY_NAME:
        return _BY_NAME[kernel]
    names = ", ".join(repr(name) for name in _BY_NAME)
    error = ValueError if isinstance(kernel, str) else TypeError
    raise error(f"kernel must be an object of gramian.kernels or one of {names}; got {kernel!r}.")


__all__ = [
    "RBF",
    "Constant",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Sum",
    "White",
    "as_kernel",
    "scales_itself",
    "split_amplitude",
]
