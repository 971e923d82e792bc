"""Kernels of pairs ``(i, j)``, made of kernels of their objects.

With K the matrix of the left kernel and T that of the right one, every kernel here is a short sum of terms

    Σ_r Σ_s w_r w_s A[o_r, o_s] B[o'_r, o'_s]

where A and B are K or T, their squares, the identity or ones, and r and s run over a few ways to place the two ends of
a pair on rows and columns. Such a term is one vec trick (`operators.SampledKronecker`), and none where a factor is
ones; so metric learning needs one, not ten.

=============  ===========================================  =================================================
kernel         k((i, j), (k, l))                            product with v; V[k, l] = v, z₁, z₂ its margins
=============  ===========================================  =================================================
linear         K_ik + T_jl                                  (K z₁)_i + (T z₂)_j
poly2d         (K_ik + T_jl)²                               (K∘K z₁)_i + 2 (K V T)_ij + (T∘T z₂)_j
kronecker      K_ik T_jl                                    (K V T)_ij
gaussian       exp(−(‖x_i−x_k‖² + ‖y_j−y_l‖²) / 2ℓ²)         kronecker of two Gaussians
cartesian      K_ik [j=l] + [i=k] T_jl                      (K V)_ij + (V T)_ij
symmetric      K_ik K_jl + K_il K_jk                        (K (V + Vᵀ) K)_ij
antisymmetric  K_ik K_jl − K_il K_jk                        (K (V − Vᵀ) K)_ij
ranking        K_ik − K_il − K_jk + K_jl                    f_i − f_j,  f = K (z₁ − z₂)
mlpk           (K_ik − K_il − K_jk + K_jl)²                 M_ii + M_jj − 2 M_ij,  M = K (diag(z₁+z₂) − V − Vᵀ) K
=============  ===========================================  =================================================

The last four are for pairs of one kind of object (homogeneous) and have one kernel. White noise in a kernel of objects
is a property of each training object; as for single examples, predictions never contain it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import Array
from gramian.kernels import Kernel, as_kernel, scales_itself, split_amplitude
from gramian.kernels.parameters import DEFAULT_BOUNDS, checked_theta
from gramian.kernels.stationary import RBF
from gramian.pairs import Pairs, match_objects

__all__ = [
    "MLPK",
    "Antisymmetric",
    "Cartesian",
    "Gaussian",
    "Kronecker",
    "Linear",
    "PairwiseKernel",
    "Poly2D",
    "Ranking",
    "Symmetric",
    "Term",
    "as_pairwise_kernel",
]

Places = tuple[tuple[int, int, float], ...]
HERE: Places = ((0, 1, 1.0),)
ENTRIES = 256  # of a matrix that are evaluated at a time, with all others of their rows and columns


@dataclass(frozen=True)
class Term:
    """One term of a pairwise kernel.

    Attributes
    ----------
    left, right : {"kernel", "square", "identity", "ones"}
        The factors A and B.
    coefficient : float
    reads, sources : tuple of (end, end, weight)
        Where a new and a training pair is placed: which of its ends (0 left, 1 right) is the row, which the column.

    Examples
    --------
    >>> from gramian.kernels.pairwise import Symmetric
    >>> Symmetric.terms[0].sources
    ((0, 1, 1.0), (1, 0, 1.0))
    """

    left: str
    right: str
    coefficient: float = 1.0
    reads: Places = HERE
    sources: Places = HERE


class PairwiseKernel(Kernel):
    """A kernel whose examples are `Pairs`; see a subclass."""

    terms: ClassVar[tuple[Term, ...]]
    homogeneous: ClassVar[bool] = False

    def bases(self) -> tuple[Kernel, Kernel]:
        """The kernels of left and right objects."""
        raise NotImplementedError

    def joined(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Gradient in ``theta`` from those in the parameters of `bases`."""
        raise NotImplementedError

    def arranged(self, X: Pairs) -> Pairs:
        """The pairs as the kernel needs them: of one table if it is for one kind of object."""
        return X.as_homogeneous() if self.homogeneous else X

    def scales_itself(self) -> bool:
        """Whether some log-parameters multiply the whole kernel by any constant."""
        return False

    def __call__(self, X: Any, Z: Any = None, *, offset: int | None = None) -> Array:
        """Return the values ``k(x, z)`` for pairs x and z.

        Parameters
        ----------
        X, Z : Pairs
            Z=None means X itself.
        offset : int, default=None
            Not used: objects, not pairs, are recognised.

        Returns
        -------
        ndarray of shape (len(X), len(Z))
        """
        return self._evaluate(X, X if Z is None else Z, offset)

    def _evaluate(self, X: Any, Z: Any, offset: int | None) -> Array:
        same = X is Z
        X = self.arranged(X)
        Z = X if same else self.arranged(Z)
        ends, other = (X.left_index, X.right_index), (Z.left_index, Z.right_index)
        matrices = self.matrices(X, Z)
        total = np.zeros((len(X), len(Z)), dtype=X.dtype)
        for term in self.terms:
            A, B = (
                _factor(name, matrices[side], X, Z, side)
                for side, name in enumerate((term.left, term.right))
            )
            for row, column, weight in term.reads:
                for k, l, source_weight in term.sources:
                    value = A[np.ix_(ends[row], other[k])] * B[np.ix_(ends[column], other[l])]
                    total += term.coefficient * weight * source_weight * value
        return total

    def matrices(
        self, X: Pairs, Z: Pairs, columns: tuple[np.ndarray, np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Matrices of the base kernels: objects of X by objects of Z.

        ``columns`` are the numbers of the objects of Z in the tables that precomputed similarities were given for;
        by default all of them.
        """
        left, right = self.bases()
        used = (None, None) if columns is None else columns
        K = _matrix(left, X.left, None if X is Z else Z.left, used[0])
        if self.homogeneous:
            return K, K
        return K, _matrix(right, X.right, None if X is Z else Z.right, used[1])

    def diag(self, X: Any) -> Array:
        X = self.arranged(X)
        ends = (X.left_index, X.right_index)
        total = np.zeros(len(X), dtype=X.dtype)
        for term in self.terms:
            for row, column, weight in term.reads:
                for k, l, source_weight in term.sources:
                    value = self._entries(term.left, X, 0, ends[row], ends[k])
                    value = value * self._entries(term.right, X, 1, ends[column], ends[l])
                    total += term.coefficient * weight * source_weight * value
        return total

    def _entries(
        self, name: str, X: Pairs, side: int, rows: np.ndarray, columns: np.ndarray
    ) -> Any:
        """Some entries of A (side 0) or B of a term, without the matrix."""
        if name == "ones":
            return 1.0
        if name == "identity":
            number = same_objects(X, X, side)
            return number[rows] == number[columns]
        side = 0 if self.homogeneous else side
        values = _at(self.bases()[side], (X.left, X.right)[side], rows, columns)
        return values * values if name == "square" else values

    def _vjp(self, X: Any, Z: Any, G: Array, offset: int | None) -> np.ndarray:
        same = X is Z
        X = self.arranged(X)
        Z = X if same else self.arranged(Z)
        ends = [_selection(index, n) for index, n in _ends(X)]
        other = [_selection(index, n) for index, n in _ends(Z)]
        matrices = self.matrices(X, Z)
        gradients = [np.zeros(matrix.shape) for matrix in matrices]
        for term in self.terms:
            names = (term.left, term.right)
            factors = [_factor(name, matrices[s], X, Z, s) for s, name in enumerate(names)]
            for side, name in enumerate(names):
                if name not in ("kernel", "square"):
                    continue
                slope = 1.0 if name == "kernel" else 2 * matrices[side]
                for *places, weight in term.reads:
                    for *origins, source_weight in term.sources:
                        row, k = places[side], origins[side]
                        column, l = places[1 - side], origins[1 - side]
                        rest = factors[1 - side][
                            np.ix_(_ends(X)[column][0], _ends(Z)[l][0])
                        ]  # the other factor at each entry of G
                        share = ends[row].T @ (np.asarray(G) * rest) @ other[k]
                        gradients[side] += term.coefficient * weight * source_weight * slope * share
        return self.base_vjp(X, Z, *gradients)

    def base_vjp(self, X: Pairs, Z: Pairs, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Gradient in ``theta`` from those in the entries of the two matrices."""
        K, T = self.bases()
        if self.homogeneous:
            left, right = left + right, right
        parts = []
        for kernel, table, other, gradient in (
            (K, X.left, Z.left, left),
            (T, X.right, Z.right, right),
        ):
            again = self.homogeneous and parts  # both ends are in the first part already
            if again or not kernel.theta.size:
                parts.append(np.zeros(kernel.theta.size))
            elif X is Z:
                parts.append(kernel.vjp(table, None, gradient))
            else:
                parts.append(kernel.vjp(table, other, gradient))
        return self.joined(*parts)

    @property
    def is_precomputed(self) -> bool:
        return any(kernel.is_precomputed for kernel in self.bases())


class _TwoKernels(PairwiseKernel):
    """A kernel for left and one for right objects."""

    def __init__(self, left: Any = "rbf", right: Any = "rbf"):
        self.left = left
        self.right = right
        self._validate()

    def _validate(self) -> None:
        for side in ("left", "right"):
            if isinstance(_checked(side, getattr(self, side)), PairwiseKernel):
                raise TypeError(f"{side} must be a kernel of objects, got {getattr(self, side)!r}.")

    def bases(self) -> tuple[Kernel, Kernel]:
        return as_kernel(self.left), as_kernel(self.right)

    @property
    def theta(self) -> np.ndarray:
        left, right = self.bases()
        return np.concatenate([left.theta, right.theta])

    @property
    def bounds(self) -> np.ndarray:
        left, right = self.bases()
        return np.concatenate([left.bounds, right.bounds])

    @property
    def parameter_names(self) -> list[str]:
        left, right = self.bases()
        return [f"left {name}" for name in left.parameter_names] + [
            f"right {name}" for name in right.parameter_names
        ]

    def clone_with_theta(self, theta: np.ndarray) -> Kernel:
        left, right = self.bases()
        theta = checked_theta(theta, left.theta.size + right.theta.size)
        cut = left.theta.size
        return type(self)(left.clone_with_theta(theta[:cut]), right.clone_with_theta(theta[cut:]))

    def resolve(self, X: Any, weights: Array | None = None) -> Kernel:
        left, right = self.bases()
        return type(self)(
            left.resolve(X.left, _counts(X.left_index, X.n_left, weights)),
            right.resolve(X.right, _counts(X.right_index, X.n_right, weights)),
        )

    def joined(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.concatenate([left, right])

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        left, right = self.bases()
        return f"{type(self).__name__}({left!r}, {right!r})"


class _OneKernel(PairwiseKernel):
    """One kernel for both ends."""

    homogeneous = True

    def __init__(self, kernel: Any = "rbf"):
        self.kernel = kernel
        self._validate()

    def _validate(self) -> None:
        if isinstance(_checked("kernel", self.kernel), PairwiseKernel):
            raise TypeError(f"kernel must be a kernel of objects, got {self.kernel!r}.")

    def bases(self) -> tuple[Kernel, Kernel]:
        kernel = as_kernel(self.kernel)
        return kernel, kernel

    @property
    def theta(self) -> np.ndarray:
        return as_kernel(self.kernel).theta

    @property
    def bounds(self) -> np.ndarray:
        return as_kernel(self.kernel).bounds

    @property
    def parameter_names(self) -> list[str]:
        return as_kernel(self.kernel).parameter_names

    def clone_with_theta(self, theta: np.ndarray) -> Kernel:
        return type(self)(as_kernel(self.kernel).clone_with_theta(theta))

    def resolve(self, X: Any, weights: Array | None = None) -> Kernel:
        X = self.arranged(X)
        count = _counts(X.left_index, X.n_left, weights)
        count = count + _counts(X.right_index, X.n_left, weights)
        return type(self)(as_kernel(self.kernel).resolve(X.left, count))

    def joined(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left + right

    def scales_itself(self) -> bool:
        return scales_itself(as_kernel(self.kernel))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{type(self).__name__}({as_kernel(self.kernel)!r})"


class Linear(_TwoKernels):
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

    def scales_itself(self) -> bool:
        return all(map(scales_itself, self.bases()))


class Poly2D(_TwoKernels):
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

    def scales_itself(self) -> bool:
        return all(map(scales_itself, self.bases()))


class Kronecker(_TwoKernels):
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

    def scales_itself(self) -> bool:
        return any(map(scales_itself, self.bases()))


class Cartesian(_TwoKernels):
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

    def scales_itself(self) -> bool:
        return all(map(scales_itself, self.bases()))


class Symmetric(_OneKernel):
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


class Antisymmetric(_OneKernel):
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

    terms = (Term("kernel", "kernel", sources=((0, 1, 1.0), (1, 0, -1.0))),)


class Ranking(_OneKernel):
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

    terms = (
        Term(
            "kernel", "ones", reads=((0, 0, 1.0), (1, 1, -1.0)), sources=((0, 0, 1.0), (1, 1, -1.0))
        ),
    )


class MLPK(_OneKernel):
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

    def __init__(self, length_scale: Any = "scale", length_scale_bounds: Any = DEFAULT_BOUNDS):
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds
        self._validate()

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

    def joined(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left + right

    def resolve(self, X: Any, weights: Array | None = None) -> Kernel:
        if not isinstance(self.length_scale, str):
            return self
        sides = (
            (X.left, _counts(X.left_index, X.n_left, weights)),
            (X.right, _counts(X.right_index, X.n_right, weights)),
        )
        return Gaussian(float(np.sqrt(_wide_scale(sides) / 2)), self.length_scale_bounds)


_OF_TWO: dict[str, type[_TwoKernels]] = {
    "linear": Linear,
    "poly2d": Poly2D,
    "kronecker": Kronecker,
    "cartesian": Cartesian,
}
_OF_ONE: dict[str, type[_OneKernel]] = {
    "symmetric": Symmetric,
    "antisymmetric": Antisymmetric,
    "ranking": Ranking,
    "mlpk": MLPK,
}
_NAMES = ("gaussian", *_OF_TWO, *_OF_ONE)


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
    if isinstance(pairwise, Kernel) and isinstance(split_amplitude(pairwise)[1], PairwiseKernel):
        if given:
            raise ValueError(
                f"{given[0]}_kernel must be None when pairwise_kernel is an object, which has its kernels: "
                f"{pairwise!r}."
            )
        return pairwise
    if not isinstance(pairwise, str) or pairwise not in _NAMES:
        names = ", ".join(map(repr, _NAMES))
        error = ValueError if isinstance(pairwise, str) else TypeError
        raise error(
            f"pairwise_kernel must be an object of gramian.kernels.pairwise or one of {names}; got {pairwise!r}."
        )
    if pairwise == "gaussian":
        if given:
            raise ValueError(
                f"{given[0]}_kernel must be None for pairwise_kernel='gaussian', which is its own kernel. For other "
                "Gaussians use 'kronecker' with RBF kernels, or gramian.kernels.pairwise.Gaussian(length_scale)."
            )
        return Gaussian()
    if pairwise in _OF_ONE:
        if right is not None and (left is None or as_kernel(right) != as_kernel(left)):
            raise ValueError(
                f"right_kernel must be None for pairwise_kernel={pairwise!r}: both ends are objects of one kind, with "
                f"left_kernel; got {right!r}."
            )
        return _OF_ONE[pairwise](_or_rbf("left_kernel", left))
    return _OF_TWO[pairwise](_or_rbf("left_kernel", left), _or_rbf("right_kernel", right))


def _or_rbf(name: str, kernel: Any) -> Any:
    return "rbf" if kernel is None else _checked(name, kernel)


def _checked(name: str, kernel: Any) -> Kernel:
    try:
        return as_kernel(kernel)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _matrix(kernel: Kernel, table: Any, other: Any, columns: np.ndarray | None) -> np.ndarray:
    if kernel.is_precomputed:
        values = table.toarray() if sp.issparse(table) else table
        return values if columns is None else np.ascontiguousarray(values[:, columns])
    return kernel(table, other)


def _at(kernel: Kernel, table: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Entries ``K[rows, columns]`` of the matrix of a table's objects, one for each pair of numbers."""
    if kernel.is_precomputed:
        return _matrix(kernel, table, None, None)[rows, columns]
    values = np.asarray(kernel.diag(table))[rows]
    differ = np.flatnonzero(rows != columns)
    for start in range(0, differ.size, ENTRIES):
        some = differ[start : start + ENTRIES]
        values[some] = np.diagonal(kernel(table[rows[some]], table[columns[some]]))
    return values


def _factor(name: str, matrix: np.ndarray, X: Pairs, Z: Pairs, side: int) -> np.ndarray:
    """A or B of a term as a whole matrix."""
    if name == "kernel":
        return matrix
    if name == "square":
        return matrix * matrix
    if name == "ones":
        return np.ones_like(matrix)
    return same_objects(X, Z, side)[:, None] == same_objects(Z, Z, side)[None, :]


def same_objects(X: Pairs, Z: Pairs, side: int) -> np.ndarray:
    """For each left (side 0) or right object of X, its number in Z; −1 if it is not there.

    Objects without ids that look alike are one object, whichever tables they are in: the number is that of the first.
    """
    table, ids = (Z.left, Z.left_ids) if side == 0 else (Z.right, Z.right_ids)
    new, new_ids = (X.left, X.left_ids) if side == 0 else (X.right, X.right_ids)
    if new is table and ids is None:
        new = table.copy()  # otherwise rows would be matched by their numbers
    return match_objects(table, ids, new, new_ids)


def _ends(X: Pairs) -> tuple[tuple[np.ndarray, int], tuple[np.ndarray, int]]:
    return (X.left_index, X.n_left), (X.right_index, X.n_right)


def _selection(index: np.ndarray, size: int) -> Any:
    ones = np.ones(index.size)
    return sp.csr_array((ones, (np.arange(index.size), index)), shape=(index.size, size))


def _counts(index: np.ndarray, size: int, weights: Any) -> np.ndarray:
    """Weight of all pairs of each object."""
    return np.bincount(index, weights=weights, minlength=size).astype(float)


def _wide_scale(sides: Any) -> float:
    """`data_scale` of the wide table, from the tables and the weights of their rows."""
    features = sum(table.shape[1] for table, _ in sides)
    entries = features * sides[0][1].sum()
    mean = sum(float(np.sum(counts @ table)) for table, counts in sides) / entries
    variance = 0.0
    for table, counts in sides:
        if sp.issparse(table):  # the zeros count
            squares = float(np.sum(counts @ table.multiply(table)))
            crossed = float(np.sum(counts @ table))
            variance += squares - 2 * mean * crossed + mean**2 * counts.sum() * table.shape[1]
        else:
            variance += float(np.sum(counts @ (table.astype(np.float64) - mean) ** 2))
    scale = features * variance / entries
    return scale if scale > 0 and np.isfinite(scale) else 1.0
