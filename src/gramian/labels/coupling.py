"""Outputs that share: label Gram matrices between outputs, given by a matrix or learned as factors (Seeger §7.2).

Formula
    A given relation R has S = v R. A learned one has p common factors and what each output keeps for itself:

        S = v (B Bᵀ + diag d),      B of shape (C, p),  d > 0 one number for all outputs or one for each.

Gradient
    ⟨E, G S⟩ = tr(Q S) with Q = EᵀG, so that its derivatives are v (Q + Qᵀ) B in B, v d ∘ diag Q in log d, and tr(Q S)
    in log v. Q is never formed: Gᵀ(E B) + Eᵀ(G B).

Cost: O(nCp) for products and gradients of factors; with few outputs products are O(nC²), which is then faster.

Couplings are learned without a gradient in B (`selection.coupling`). Whoever descends by that gradient should know
three things. B → B R with a rotation R leaves S as it was, so that S means something and B does not. B = 0 is a saddle
of every criterion: begin beside it, along the directions of S in which the criterion falls. A softmax does not see what
is added to all outputs, and neither does its gradient: columns of B that sum to zero at the start do so for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gramian._core.arrays import Array, asarray_like, namespace
from gramian._core.validation import check_choice, check_number
from gramian.labels.structure import (
    DenseStructure,
    LabelStructure,
    Variances,
    check_outputs,
    checked_variances,
    column_sums,
    contracted,
    multiplied,
)

# In units of the variance of unrelated outputs: no factor needs more, and beyond it fits become slow.
LARGEST_FACTOR = 5.0
OWN_BOUNDS = (1e-3, 1e2)  # of d
# With few outputs one product with S takes less time than two with B: 20 outputs in 5 folds of 120 examples 34 and
# 135 µs, 50 outputs in 5 folds of 1000 examples 1.2 and 2.0 ms.
FEW_OUTPUTS = 100


class Coupling(Variances):
    """Outputs that are related as a given matrix says: S = v R.

    Parameters
    ----------
    matrix : array of shape (n_outputs, n_outputs)
        R, symmetric and positive semidefinite. A DataFrame is taken in its own order.
    variance : float, default=1.0
        v.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Coupling
    >>> Coupling([[1.0, 0.5], [0.5, 1.0]], variance=2.0).mix(np.array([[1.0, 0.0]]))
    array([[2., 1.]])
    """

    def __init__(self, matrix: Any, variance: float = 1.0):
        check_number("variance", variance, strict=True)
        self.matrix = DenseStructure(matrix).matrix
        self.variance = float(variance)
        self.variances = np.array([self.variance])
        self._dense = self.variance * self.matrix

    def with_variance(self, variance: float) -> Coupling:
        """Return the same relation with another variance."""
        return Coupling(self.matrix, variance)

    def mix(self, B: Array) -> Array:
        check_outputs(B, len(self.matrix))
        return multiplied(B, self._dense)

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return self.variance * np.diagonal(self.matrix)

    def clone_with_theta(self, theta: np.ndarray) -> Coupling:
        return self.with_variance(float(np.exp(theta[0])))

    def vjp(self, E: Array, G: Array) -> np.ndarray:
        return np.array([column_sums(E * self.mix(G)).sum()])


class FactoredCoupling(LabelStructure):
    """Outputs with common factors: S = v (B Bᵀ + diag d), with B and log d as parameters.

    Parameters
    ----------
    factors : array of shape (n_outputs, rank)
        B. Its entries are parameters as they are, not by their logarithms.
    own : float or array of shape (n_outputs,)
        d, what outputs keep for themselves: the same for all of them, or one number for each.
    variance : float, default=1.0
        v, which is no parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import FactoredCoupling
    >>> structure = FactoredCoupling([[1.0], [-1.0], [0.0]], own=0.5)
    >>> structure.matrix
    array([[ 1.5, -1. ,  0. ],
           [-1. ,  1.5,  0. ],
           [ 0. ,  0. ,  0.5]])
    >>> structure.parameter_names
    ('factor 0 [0]', 'factor 0 [1]', 'factor 0 [2]', 'own variance')
    """

    def __init__(self, factors: Any, own: Any, variance: float = 1.0):
        check_number("variance", variance, strict=True)
        self.variance = float(variance)
        self.factors = np.array(factors, dtype=float)
        if self.factors.ndim != 2 or not np.all(np.isfinite(self.factors)):
            raise ValueError(
                f"factors must be a finite array of shape (n_outputs, rank), got {factors!r}."
            )
        self.own = checked_variances("own", np.atleast_1d(own))
        if self.own.size not in (1, len(self.factors)):
            raise ValueError(
                f"own must be one number or {len(self.factors)}, one for each output; got {self.own.size}."
            )

        few = len(self.factors) <= max(FEW_OUTPUTS, 2 * self.factors.shape[1])
        self._dense = self.variance * self.matrix if few else None

    @property
    def matrix(self) -> np.ndarray:
        """The relation B Bᵀ + diag d."""
        own = np.broadcast_to(self.own, len(self.factors))
        return self.factors @ self.factors.T + np.diag(own)

    def mix(self, B: Array) -> Array:
        check_outputs(B, len(self.factors))
        if self._dense is not None:
            return multiplied(B, self._dense)
        own = asarray_like((self.variance * self.own).reshape(-1, *[1] * (B.ndim - 2)), B)
        common = multiplied(multiplied(B, self.factors), self.variance * self.factors.T)
        return B * own + common

    def diagonal(self, n_outputs: int) -> np.ndarray:
        return self.variance * (np.sum(self.factors**2, axis=1) + self.own)

    @property
    def theta(self) -> np.ndarray:
        """Entries of B row by row, then log d."""
        return np.concatenate([self.factors.reshape(-1), np.log(self.own)])

    @property
    def bounds(self) -> np.ndarray:
        """Bounds of ``theta``."""
        of_factors = np.tile([-LARGEST_FACTOR, LARGEST_FACTOR], (self.factors.size, 1))
        return np.concatenate([of_factors, np.tile(np.log(OWN_BOUNDS), (self.own.size, 1))])

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of ``theta``."""
        outputs, rank = self.factors.shape
        factors = [f"factor {j} [{c}]" for c in range(outputs) for j in range(rank)]
        own = [f"own variance [{c}]" for c in range(self.own.size)]
        return (*factors, *(own if self.own.size > 1 else ["own variance"]))

    def clone_with_theta(self, theta: np.ndarray) -> FactoredCoupling:
        factors, own = np.split(np.asarray(theta, dtype=float), [self.factors.size])
        return FactoredCoupling(factors.reshape(self.factors.shape), np.exp(own), self.variance)

    def vjp(self, E: Array, G: Array) -> np.ndarray:
        along = [multiplied(values, self.factors) for values in (E, G)]
        in_factors = contracted(G, along[0]) + contracted(E, along[1])
        in_own = column_sums(E * G)
        in_own = in_own if self.own.size > 1 else in_own.sum(keepdims=True)
        return self.variance * np.concatenate([in_factors.reshape(-1), self.own * in_own])


@dataclass(frozen=True, eq=False)
class Coregionalization:
    """Outputs that are related differently by each term of a kernel that is a sum: Σ_l M_l A v R_l.

    The linear model of coregionalisation; with one term it is a `Coupling`.

    Attributes
    ----------
    matrix : ndarray of shape (n_terms, n_outputs, n_outputs)
        R_l, symmetric and positive semidefinite.
    """

    matrix: np.ndarray

    @property
    def structures(self) -> list[LabelStructure]:
        """R_l as label structures."""
        return [DenseStructure(R) for R in self.matrix]


class CouplingOfColumns(LabelStructure):
    """Problems in lockstep whose outputs are related differently: column k of B, of shape (n, C, q), is mixed by S_k.

    Parameters
    ----------
    matrices : array of shape (q, n_outputs, n_outputs)
    """

    columns_alike = False

    def __init__(self, matrices: np.ndarray):
        self.matrices = matrices

    def mix(self, B: Array) -> Array:
        check_outputs(B, self.matrices.shape[1])
        columns = [B[:, :, k] @ asarray_like(S, B) for k, S in enumerate(self.matrices)]
        return namespace(B).stack(columns, axis=2)

    def diagonal(self, n_outputs: int) -> np.ndarray:
        """The largest diagonal: an operator has one for all columns."""
        return np.max(np.diagonal(self.matrices, axis1=1, axis2=2), axis=0)


@dataclass(eq=False, repr=False)
class LearnedCoupling(BaseEstimator):
    """How outputs are to find out what they have in common; ``coupling="auto"`` is this with its defaults.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Number of common factors. "auto" lets all directions of outputs that are of no use fade, as far as folds that
        judge approve.
    diagonal : {"tied", "free"}, default="tied"
        Whether what outputs keep for themselves, besides a given number of factors, has one variance for all of them,
        or one for each.
    summands : {"together", "apart"}, default="together"
        Whether the terms of a kernel that is a sum relate outputs in the same way, or each of them in its own: what
        outputs have in common over long distances need not be what they have in common over short ones.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelLogisticRegression
    >>> from gramian.labels import LearnedCoupling
    >>> model = KernelLogisticRegression(coupling=LearnedCoupling(rank=1))
    >>> model.fit(*load_iris(return_X_y=True)).coupling_.shape
    (3, 3)
    """

    rank: Any = "auto"
    diagonal: str = "tied"
    summands: str = "together"

    def check(self) -> None:
        """Refuse what is no rank and no kind of diagonal."""
        if not (isinstance(self.rank, str) and self.rank == "auto"):
            name = "LearnedCoupling(rank=...)"
            if isinstance(self.rank, str):
                raise TypeError(f"{name} must be a whole number or 'auto', got {self.rank!r}.")
            check_number(name, self.rank, low=1, whole=True)
        check_choice("LearnedCoupling(diagonal=...)", self.diagonal, choices=("tied", "free"))
        choices = ("together", "apart")
        check_choice("LearnedCoupling(summands=...)", self.summands, choices=choices)
