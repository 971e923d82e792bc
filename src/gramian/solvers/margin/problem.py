"""Hinge losses of many labels, coupled by a prior label correlation: the M3L problem.

    minimise over A    P(A) = Σ_il c_il max(0, m_il − y_il u_il) + ½ ⟨A, U⟩,      U = K A R

Signs y are ±1, margins m ≥ 0 and caps c ≥ 0 are numbers for each example and label, K is the Gram matrix of the
examples and R that of the labels. The dual keeps each coefficient in a box,

    maximise over A    D(A) = Σ_il m_il α_il − ½ ⟨A, U⟩,      0 ≤ α_il = y_il a_il ≤ c_il,

and the gap falls apart into terms that are never negative, so that it has no cancellation and shows where work is left:

    P(A) − D(A) = Σ_il (c_il − α_il) max(0, s_il) + α_il max(0, −s_il),      s_il = m_il − y_il u_il.

The slope s is the gradient of D in α. A is optimal iff α = 0 where s < 0, α = c where s > 0.

With squared hinge losses, c max(0, m − y u)², there are no caps on α. The dual has −Σ α²/(4c) instead: a ridge
r = 1/(2c) on each coefficient, so that s = m − y u − r α is its gradient, and

    P(A) − D(A) = Σ_il c_il s_il²  where m − y u > 0,      Σ_il α_il (r α_il / 2 − (m − y u))  elsewhere.

Hariharan, Vishwanathan & Varma (2012), eqs. 12 and 25. Their α is half of ours and their cost Δ_l of a wrong label
twice the margin: with Hamming loss m = 1 and c = 2C (§3.1), with a loss from the kernel on labels m = y (R y) (§3.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np

from gramian._core.threads import share
from gramian.operators.inputs.feature_rows import as_rows

NO_CAP = 1e100  # compiled loops assume that numbers are finite, and square some of them


@dataclass(frozen=True, eq=False)
class MarginProblem:
    """Examples, signs of labels, margins, caps and the label correlation of one M3L problem.

    Parameters
    ----------
    inputs : GramRows, FeatureRows, or array or CSR array of shape (n, d)
        The Gram matrix K by its rows, or features X with K = X Xᵀ, which are kept as `FeatureRows`.
    signs : array of int8 of shape (n, L)
        +1 where an example has a label, −1 where it has not.
    correlation : array of shape (L, L), default=None
        R, symmetric and positive definite. None is the identity: unrelated labels.
    margins, caps : float or array that broadcasts to (n, L), default=1.0
        A cap of zero takes an example out.
    squared : bool, default=False
        Whether hinge losses are squared. Caps are then their weights, and coefficients have none.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.solvers import MarginProblem, coordinate_ascent
    >>> X = np.array([[1.0, 2.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> signs = np.array([[1, -1], [-1, -1], [-1, 1]], dtype=np.int8)
    >>> problem = MarginProblem(X, signs, np.array([[1.0, -0.5], [-0.5, 1.0]]))
    >>> coordinate_ascent(problem, tol=1e-9).status
    'converged'
    """

    inputs: Any
    signs: np.ndarray
    correlation: np.ndarray | None = None
    margins: Any = 1.0
    caps: Any = 1.0
    squared: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", as_rows(self.inputs))
        shape = self.signs.shape
        for name in ("margins", "caps"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, np.broadcast_to(values, shape))

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n, L) of the coefficients."""
        return self.signs.shape

    def restricted(self, rows: np.ndarray) -> MarginProblem:
        """Return the problem with the losses of some examples only, given by a mask."""
        return replace(self, caps=self.caps * rows[:, None])

    def weighted(self, C: float) -> MarginProblem:
        """Return the problem with all losses multiplied by a number."""
        return replace(self, caps=self.caps * C)

    def known(self) -> np.ndarray:
        """Return which examples have a loss that counts, boolean of shape (n,)."""
        return np.any(self.caps > 0, axis=1)

    def bounds(self) -> np.ndarray:
        """Return the largest α of each example and label, shape (n, L)."""
        return np.where(self.caps > 0, NO_CAP, 0.0) if self.squared else self.caps

    def ridge(self) -> np.ndarray:
        """Return the ridge of each coefficient, shape (L, n); shape (L, 0) for losses that are not squared."""
        if not self.squared:
            return np.empty((self.shape[1], 0))
        caps = np.ascontiguousarray(self.caps.T)
        return np.divide(0.5, caps, out=np.zeros(caps.shape), where=caps > 0)

    def boxes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return targets y m and the bounds of A, each of shape (L, n): labels are what loops run along."""
        signs = self.signs.T
        bound = np.ascontiguousarray(self.bounds().T * signs)
        target = np.ascontiguousarray(self.margins.T * signs)
        return target, np.minimum(bound, 0.0), np.maximum(bound, 0.0)

    def start(self, coefficients: np.ndarray | None) -> np.ndarray | None:
        """Return a starting point, clipped into the boxes; None is zero."""
        if coefficients is None:
            return None
        A = np.asarray(coefficients, dtype=np.float64)
        if A.shape != self.shape:
            raise ValueError(
                f"start must have shape {self.shape}, one coefficient for each example and label; got {A.shape}."
            )
        return self.signs * np.clip(self.signs * A, 0.0, self.bounds())

    def mixed(self, V: np.ndarray) -> np.ndarray:
        """Return V R."""
        return V if self.correlation is None else V @ self.correlation

    def latent(self, A: np.ndarray) -> np.ndarray:
        """Return U = K A R in float64."""
        return self.mixed(self.inputs @ A)

    def values(self, A: np.ndarray, U: np.ndarray) -> tuple[float, np.ndarray, float]:
        """Return the objective P, the gap of each label, and the largest violation of optimality.

        The violation is the magnitude of the projected gradient of D (eq. 31).
        """
        A, U = (np.ascontiguousarray(values.T) for values in (A, U))
        return certificate(*self.boxes(), self.ridge(), A, U)


def certificate(
    target: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    ridge: np.ndarray,
    A: np.ndarray,
    U: np.ndarray,
) -> tuple[float, np.ndarray, float]:
    """Return what `MarginProblem.values` does, from arrays of shape (L, n): boxes and ridge of it, Aᵀ and Uᵀ."""
    sums = np.empty((len(A), 3))
    share(_write_sums, len(A), (target, low, high), ridge, A, U, sums)
    return float(sums[:, :2].sum()), sums[:, 1].copy(), float(sums[:, 2].max(initial=0.0))


@numba.njit(cache=True, nogil=True)
def _write_sums(first, last, boxes, ridge, A, U, sums):
    """Dual value, gap and largest violation of each label from first to last."""
    target, low, high = boxes
    pull = np.empty(A.shape[1])
    for k in range(first, last):
        found = pulls(target[k], low[k], high[k], ridge[k], A[k], U[k], pull)
        sums[k, 0], sums[k, 1], sums[k, 2] = found


@numba.njit(cache=True, nogil=True)
def gap_with_ridge(lack, ridge, bound, a):
    """The gap of a signed coefficient of a squared hinge loss; ``lack`` is y m − u, ``bound`` has the sign of y."""
    if bound == 0:  # its loss does not count
        return 0.0
    p = lack - ridge * a
    return 0.5 * p * p / ridge if lack * bound > 0 else a * (0.5 * ridge * a - lack)


@numba.njit(cache=True, nogil=True, fastmath=True)
def pulls(target, low, high, ridge, a, u, pull):
    """Write the pull of each coefficient of a label that can move, else zero.

    The pull p = y m − u is the gradient of D in the signed coefficient a; its part of the gap is |p| times its way to
    the bound that p points to. Return the dual value, the gap and the strongest pull.
    """
    if ridge.size > 0:
        return _pulls_with_ridge(target, low, high, ridge, a, u, pull)
    dual = gap = strongest = 0.0
    for i in range(a.size):
        p = target[i] - u[i]
        room = (high[i] - a[i]) if p > 0 else (low[i] - a[i])
        dual += a[i] * (target[i] - 0.5 * u[i])
        gap += room * p
        p = p if room != 0 else 0.0
        pull[i] = p
        strongest = max(strongest, abs(p))
    return dual, gap, strongest


@numba.njit(cache=True, nogil=True, fastmath=True)
def _pulls_with_ridge(target, low, high, ridge, a, u, pull):
    """As `pulls`, for squared hinge losses: p = y m − u − r a."""
    dual = gap = strongest = 0.0
    for i in range(a.size):
        lack = target[i] - u[i]
        p = lack - ridge[i] * a[i]
        room = (high[i] - a[i]) if p > 0 else (low[i] - a[i])
        dual += a[i] * (target[i] - 0.5 * (u[i] + ridge[i] * a[i]))
        gap += gap_with_ridge(lack, ridge[i], high[i] + low[i], a[i])
        p = p if room != 0 else 0.0
        pull[i] = p
        strongest = max(strongest, abs(p))
    return dual, gap, strongest
