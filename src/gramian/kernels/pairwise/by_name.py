"""Pairwise kernels by name, with the kernels of the objects."""

from __future__ import annotations

from typing import Any

from gramian.kernels import Kernel, as_kernel
from gramian.kernels.pairwise import named
from gramian.kernels.pairwise.base import PairwiseKernel, checked_base

__all__ = ["as_pairwise_kernel"]

_BY_NAME: dict[str, Any] = {name.lower(): getattr(named, name) for name in sorted(named.__all__)}


def as_pairwise_kernel(pairwise: Any, left: Any = None, right: Any = None) -> Kernel:
    """Return a pairwise kernel from a name and the kernels of the objects.

    Parameters
    ----------
    pairwise : str or PairwiseKernel
        "linear", "poly2d", "kronecker", "gaussian", "cartesian", "symmetric", "antisymmetric", "ranking" or "mlpk"; a
        `PairwiseKernel`, or a constant times one, has its kernels already.
    left, right : str or Kernel, default=None
        None is "rbf", and for the right objects of a homogeneous kernel the left one.

    Returns
    -------
    PairwiseKernel, or a constant times one

    Examples
    --------
    >>> from gramian.kernels.pairwise import as_pairwise_kernel
    >>> as_pairwise_kernel("kronecker", "linear", "linear")
    Kronecker(Linear(), Linear())
    """
    given = [name for name, kernel in (("left", left), ("right", right)) if kernel is not None]
    if isinstance(pairwise, Kernel) and isinstance(pairwise.amplitude()[1], PairwiseKernel):
        if given:
            raise ValueError(
                f"{given[0]}_kernel must be None when pairwise_kernel is an object, which has its kernels: "
                f"{pairwise!r}."
            )
        return pairwise
    if not isinstance(pairwise, str) or pairwise not in _BY_NAME:
        names = ", ".join(map(repr, _BY_NAME))
        error = ValueError if isinstance(pairwise, str) else TypeError
        raise error(
            f"pairwise_kernel must be an object of gramian.kernels.pairwise or one of {names}; got {pairwise!r}."
        )
    kind = _BY_NAME[pairwise]
    if kind is named.Gaussian:
        if given:
            raise ValueError(
                f"{given[0]}_kernel must be None for pairwise_kernel='gaussian', which is its own kernel. For other "
                "Gaussians use 'kronecker' with RBF kernels, or gramian.kernels.pairwise.Gaussian(length_scale)."
            )
        return kind()
    first = checked_base("left_kernel", "rbf" if left is None else left)
    if not kind.homogeneous:
        return kind(first, checked_base("right_kernel", "rbf" if right is None else right))
    if right is not None and (left is None or as_kernel(right) != as_kernel(left)):
        raise ValueError(
            f"right_kernel must be None for pairwise_kernel={pairwise!r}: both ends are objects of one kind, with "
            f"left_kernel; got {right!r}."
        )
    return kind(first)
