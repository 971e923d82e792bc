"""The pairwise kernels with a name: each is a tuple of terms. The formulas are in `base`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array
from gramian._core.validation import indefinite_spectrum
from gramian.kernels import Kernel, as_kernel
from gramian.kernels.algebra import OfParts
from gramian.kernels.pairwise.base import PairwiseKernel, Places, Term
from gramian.kernels.parameters import DEFAULT_BOUNDS
from gramian.kernels.similarity import Repaired
from gramian.kernels.simple import Precomputed
from gramian.kernels.stationary import RBF
from gramian.pairs import Pairs

DIFFERENCE: Places = ((0, 0, 1.0), (1, 1, -1.0))  # the left object minus the right one


class _OfKernels(PairwiseKernel, OfParts):
    """A pairwise kernel whose parts are one or two kernels of objects, or their names."""

    @property
    def _parts(self) -> list[Kernel]:
        return [_checked_base(name, getattr(self, name)) for name in self._part_names]

    def _validate(self) -> None:
        for name, part in zip(self._part_names, self._parts, strict=True):
            if isinstance(part, PairwiseKernel):
                raise TypeError(f"{name} must be a kernel of objects, got {part!r}.")
            if part.is_precomputed and not isinstance(part, Precomputed):
                raise ValueError(
                    f"{name} must be Precomputed() alone where objects come as similarities, got {part!r}. Combine the "
                    "matrices themselves, and give the result as the table."
                )

    def bases(self) -> tuple[Kernel, Kernel]:
        parts = self._parts
        return parts[0], parts[-1]

    def repaired(self, X: Pairs, repair: str) -> PairwiseKernel:
        sides = zip(("X.left", "X.right"), self._parts, self.arranged(X).sides, strict=False)
        changed = self._with_parts(
            _repaired(name, part, s.table, repair) for name, part, s in sides
        )
        assert isinstance(changed, PairwiseKernel)
        return changed

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._parts))})"


@dataclass(eq=False, repr=False)
class _OfTwo(_OfKernels):
    """A kernel for left and one for right objects."""

    left: Any = "rbf"
    right: Any = "rbf"

    @property
    def parameter_names(self) -> list[str]:
        sides = zip(self._part_names, self._parts, strict=True)
        return [f"{side} {name}" for side, kernel in sides for name in kernel.parameter_names]

    def resolve(self, X: Any, weights: Array | None = None) -> Kernel:
        sides = zip(self._parts, _tables(X, weights), strict=True)
        return self._with_parts(kernel.resolve(*side) for kernel, side in sides)

    def joined(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.concatenate([left, right])


@dataclass(eq=False, repr=False)
class _OfOne(_OfKernels):
    """One kernel for both ends."""

    homogeneous = True
    _part_names = ("kernel",)

    kernel: Any = "rbf"

    def resolve(self, X: Any, weights: Array | None = None) -> Kernel:
        (table, at_left), (_, at_right) = _tables(self.arranged(X), weights)
        return self._with_parts([self._parts[0].resolve(table, at_left + at_right)])


class Linear(_OfTwo):
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


class Poly2D(_OfTwo):
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


class Kronecker(_OfTwo):
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


class Cartesian(_OfTwo):
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


class Symmetric(_OfOne):
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


class Antisymmetric(_OfOne):
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


class Ranking(_OfOne):
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


class MLPK(_OfOne):
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
        scale = _wide_scale(_tables(X, weights))
        return Gaussian(float(np.sqrt(scale / 2)), self.length_scale_bounds)


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
    first = _checked_base("left_kernel", "rbf" if left is None else left)
    if not kind.homogeneous:
        return kind(first, _checked_base("right_kernel", "rbf" if right is None else right))
    if right is not None and (left is None or as_kernel(right) != as_kernel(left)):
        raise ValueError(
            f"right_kernel must be None for pairwise_kernel={pairwise!r}: both ends are objects of one kind, with "
            f"left_kernel; got {right!r}."
        )
    return kind(first)


def _checked_base(name: str, kernel: Any) -> Kernel:
    """Return the kernel of objects for a name or a kernel; errors name the argument."""
    try:
        return as_kernel(kernel)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _repaired(name: str, kernel: Kernel, table: Any, repair: str) -> Kernel:
    """The kernel of objects, repaired if it is a table of similarities that are no kernel."""
    if not kernel.is_precomputed or isinstance(kernel, Repaired):
        return kernel
    return kernel if indefinite_spectrum(name, table) is None else Repaired.of(table, repair)


def _tables(X: Pairs, weights: Any) -> list[tuple[Any, np.ndarray]]:
    """The table of each side, and the weight of all pairs of each of its objects."""
    return [
        (side.table, np.bincount(side.index, weights=weights, minlength=side.size).astype(float))
        for side in X.sides
    ]


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
