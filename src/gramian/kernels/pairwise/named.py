"""The pairwise kernels with a name: each is a tuple of terms. The formulas are in `base`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array
from gramian.kernels import Kernel, as_kernel
from gramian.kernels.pairwise.base import PairwiseKernel, Places, Term
from gramian.kernels.pairwise.of_kernels import OfOne, OfTwo, checked_base, weighted_tables
from gramian.kernels.parameters import DEFAULT_BOUNDS, bounds_around
from gramian.kernels.stationary import RBF

DIFFERENCE: Places = ((0, 0, 1.0), (1, 1, -1.0))  # the left object minus the right one


class Linear(OfTwo):
    """``K_ik + T_jl``: effects of the two objects add up, no interaction.

    Parameters
    ----------
    left, right : str or Kernel, default="rbf"
        Kernels of the left and right objects.

    Examples
    --------
    >>> from gramian import Pairs
    >>> from gramian.kernels.pairwise import Linear
    >>> pairs = Pairs([[1.0], [2.0]], [[3.0]], [0, 1], [0, 0])
    >>> Linear("linear", "linear")(pairs)
    array([[10., 11.],
           [11., 13.]])
    """

    terms = (Term("kernel", "ones"), Term("ones", "kernel"))


class Poly2D(OfTwo):
    """``(K_ik + T_jl)²``: effects of each object, of its squares, and interactions.

    Parameters
    ----------
    left, right : str or Kernel, default="rbf"
        Kernels of the left and right objects.

    Examples
    --------
    >>> from gramian import Pairs
    >>> from gramian.kernels.pairwise import Poly2D
    >>> Poly2D("linear", "linear")(Pairs([[1.0]], [[3.0]], [0], [0]))
    array([[100.]])
    """

    terms = (
        Term("square", "ones"),
        Term("kernel", "kernel", 2.0),
        Term("ones", "square"),
    )


class Kronecker(OfTwo):
    """``K_ik T_jl``: pairs are alike if both their ends are; universal if both kernels are.

    Parameters
    ----------
    left, right : str or Kernel, default="rbf"
        Kernels of the left and right objects.

    Examples
    --------
    >>> from gramian import Pairs
    >>> from gramian.kernels import RBF
    >>> from gramian.kernels.pairwise import Kronecker
    >>> kernel = Kronecker(RBF(1.0), "linear")
    >>> kernel(Pairs([[1.0]], [[3.0]], [0], [0]))
    array([[9.]])
    >>> kernel.parameter_names
    ['left RBF.length_scale']
    """

    terms = (Term("kernel", "kernel"),)


class Cartesian(OfTwo):
    """``K_ik [j = l] + [i = k] T_jl``: pairs are alike if they share an end and the others are alike.

    Objects are recognised by their ids, or without ids by their features. Pairs of two new objects have a kernel of
    zero with all others, so nothing can be predicted for them (setting D).

    Parameters
    ----------
    left, right : str or Kernel, default="rbf"
        Kernels of the left and right objects.

    Examples
    --------
    >>> from gramian import Pairs
    >>> from gramian.kernels.pairwise import Cartesian
    >>> pairs = Pairs([[1.0], [2.0]], [[3.0], [4.0]], [0, 1, 1], [0, 0, 1])
    >>> Cartesian("linear", "linear")(pairs)
    array([[10.,  2.,  0.],
           [ 2., 13., 12.],
           [ 0., 12., 20.]])
    """

    terms = (Term("kernel", "identity"), Term("identity", "kernel"))


class Symmetric(OfOne):
    """``K_ik K_jl + K_il K_jk``: the order of the two ends does not matter.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"

    Examples
    --------
    >>> from gramian import Pairs
    >>> from gramian.kernels.pairwise import Symmetric
    >>> Symmetric("linear")(Pairs([[1.0], [2.0]], None, [0, 1], [1, 0]))
    array([[8., 8.],
           [8., 8.]])
    """

    terms = (Term("kernel", "kernel", sources=((0, 1, 1.0), (1, 0, 1.0))),)


class Antisymmetric(OfOne):
    """``K_ik K_jl − K_il K_jk``: exchanging the ends changes the sign, as for preferences.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"

    Examples
    --------
    >>> from gramian import Pairs
    >>> from gramian.kernels import RBF
    >>> from gramian.kernels.pairwise import Antisymmetric
    >>> Antisymmetric(RBF(1.0))(Pairs([[0.0], [9.0]], None, [0, 1], [1, 0])).round(3)
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    is_odd = True
    terms = (Term("kernel", "kernel", sources=((0, 1, 1.0), (1, 0, -1.0))),)


class Ranking(OfOne):
    """``K_ik − K_il − K_jk + K_jl``: the difference of a score of the two ends.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"

    Examples
    --------
    >>> from gramian import Pairs
    >>> from gramian.kernels.pairwise import Ranking
    >>> Ranking("linear")(Pairs([[1.0], [3.0]], None, [0, 1], [1, 0]))
    array([[ 4., -4.],
           [-4.,  4.]])
    """

    is_odd = True
    terms = (Term("kernel", "ones", reads=DIFFERENCE, sources=DIFFERENCE),)


class MLPK(OfOne):
    """``(K_ik − K_il − K_jk + K_jl)²``: metric learning; functions of the difference of the two ends.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"

    Examples
    --------
    >>> from gramian import Pairs
    >>> from gramian.kernels.pairwise import MLPK
    >>> MLPK("linear")(Pairs([[1.0], [3.0]], None, [0, 1], [1, 0]))
    array([[16., 16.],
           [16., 16.]])
    """

    # M = K L K is symmetric, so M_ij and M_ji are read as one
    terms = (
        Term(
            "kernel",
            "kernel",
            reads=((0, 0, 1.0), (1, 1, 1.0), (0, 1, -2.0)),
            sources=((0, 0, 1.0), (1, 1, 1.0), (0, 1, -1.0), (1, 0, -1.0)),
        ),
    )


@dataclass(eq=False, repr=False)
class Gaussian(PairwiseKernel):
    """``exp(−(‖x_i − x_k‖² + ‖y_j − y_l‖²) / (2 ℓ²))``: the RBF kernel of the features of both ends side by side.

    Parameters
    ----------
    length_scale : float or "scale", default="scale"
        "scale" takes it from the training data, as ``SVC(gamma="scale")`` does on the wide table.
    length_scale_bounds : pair of float or "fixed", default=(1e-5, 1e5)

    Examples
    --------
    >>> from gramian import Pairs
    >>> from gramian.kernels import RBF
    >>> from gramian.kernels.pairwise import Gaussian
    >>> pairs = Pairs([[1.0], [2.0]], [[3.0], [5.0]], [0, 1], [0, 1])
    >>> bool(abs(Gaussian(2.0)(pairs) - RBF(2.0)(pairs.to_wide())).max() < 1e-12)
    True
    """

    _parameters = ("length_scale",)
    terms = (Term("kernel", "kernel"),)

    length_scale: Any = "scale"
    length_scale_bounds: Any = DEFAULT_BOUNDS

    def _validate(self) -> None:
        if np.ndim(self.length_scale):
            raise TypeError(
                f"Gaussian(length_scale=...) must be one number or 'scale', got {self.length_scale!r}. "
                "Use Kronecker with one RBF for each side."
            )
        self.bases()

    def bases(self) -> tuple[Kernel, Kernel]:
        kernel = RBF(self.length_scale, self.length_scale_bounds)
        return kernel, kernel

    def resolve(self, X: Any, weights: Array | None = None) -> Kernel:
        if not isinstance(self.length_scale, str):
            return self
        value = float(np.sqrt(_wide_scale(weighted_tables(X, weights)) / 2))
        return Gaussian(value, bounds_around(value, self.length_scale_bounds))


_OF_TWO = (Linear, Poly2D, Kronecker, Cartesian)
_OF_ONE = (Symmetric, Antisymmetric, Ranking, MLPK)
_BY_NAME: dict[str, Any] = {kind.__name__.lower(): kind for kind in (Gaussian, *_OF_TWO, *_OF_ONE)}


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
    if kind is Gaussian:
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


def _wide_scale(sides: Any) -> float:
    """`data_scale` of the wide table, from the tables and the weights of their rows."""
    features = sum(table.shape[1] for table, _ in sides)
    entries = features * sides[0][1].sum()
    sums = [float(np.sum(counts @ table)) for table, counts in sides]
    mean = sum(sums) / entries
    variance = 0.0
    for (table, counts), total in zip(sides, sums, strict=True):
        if sp.issparse(table):  # the zeros count
            squares = float(np.sum(counts @ table.multiply(table)))
            variance += squares - 2 * mean * total + mean**2 * counts.sum() * table.shape[1]
        else:
            variance += float(np.sum(counts @ (table.astype(np.float64) - mean) ** 2))
    scale = features * variance / entries
    return scale if scale > 0 and np.isfinite(scale) else 1.0
