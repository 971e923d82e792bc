"""A kernel matrix that is neither stored nor evaluated where it does not matter, with a bound on the error.

Three ways to multiply with a term of the kernel, of which the cheapest is taken:

- `near_cells`: far pairs of cells of a k-d tree are left out; for length scales short against the spread of the data;
- `gaussian_grid`: cells with many points are summarised by interpolation; for RBF kernels with long length scales,
  few features;
- all pairs, as in `Streamed`, where neither helps; also for terms that are not RBF or Matérn.

Each row of the matrix is off by at most ``error`` in the sum of magnitudes, whatever the right-hand side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._core.arrays import Array, is_numpy
from gramian.kernels import Kernel
from gramian.operators.inputs.streamed import MIRRORED, Streamed, profile_of
from gramian.operators.tree_code.gaussian_grid import GaussianGrid, find_gaussian_grid
from gramian.operators.tree_code.near_cells import NearCells, find_near_cells

__all__ = ["TreeCode"]

# Seconds of one kernel value on one core (Zen 4), and for each further column: streamed, and of near cells, which
# gather points and columns. Two and four features, 1 to 200 columns; streaming at its best: it is given up late.
PER_VALUE = {np.float32: (3.2e-10, 0.24e-10), np.float64: (8.0e-10, 0.5e-10)}
PER_NEAR_VALUE = {np.float32: (4.5e-10, 0.66e-10), np.float64: (9.5e-10, 1.1e-10)}
FLOPS = 5e10  # of a matrix product in float64 in a second of that core


class TreeCode(Streamed):
    """The matrix ``k(X, Z)`` of kernels that fall with the distance, within a bound on the error.

    Parameters
    ----------
    kernel : Kernel
        Terms of a sum that are not RBF or Matérn are streamed.
    X : ndarray of shape (n_samples, n_features)
        Worthwhile for few features, up to six or so.
    Z : ndarray of shape (m_samples, n_features), default=None
        None means X itself: the symmetric training matrix, with white noise on its diagonal.
    error : float, default=1e-8
        Each row of the matrix is off by at most this × the variance of the kernel, in the sum of magnitudes. So a
        product with B is off by at most ``error`` × the largest magnitude in B, and for the symmetric matrix by
        ``error`` × the norm of B in norm. Rounding comes on top.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.operators import Streamed, TreeCode
    >>> X = np.linspace(0, 1000, 4000)[:, None]
    >>> B = np.sin(X)
    >>> operator = TreeCode(RBF(2.0), X)
    >>> bool(np.abs(operator @ B - Streamed(RBF(2.0), X) @ B).max() <= 1e-8)
    True
    >>> operator.methods
    ('near cells',)
    """

    def __init__(self, kernel: Kernel, X: Array, Z: Array | None = None, *, error: float = 1e-8):
        if not (is_numpy(X) and (Z is None or is_numpy(Z))):
            raise TypeError(
                f"operator='tree_code' needs NumPy arrays, got {type(X).__name__}; use operator='streamed'."
            )
        if not 0 < error < 1:
            raise ValueError(f"error must lie between 0 and 1, got {error!r}.")
        super().__init__(kernel, X, Z)
        self.error = error
        self._plans: dict[Any, NearCells | GaussianGrid | None] = {}

    @property
    def methods(self) -> tuple[str, ...]:
        """How each term is multiplied, in the order of their first products."""
        names = {NearCells: "near cells", GaussianGrid: "grid", type(None): "all pairs"}
        return tuple(names[type(plan)] for plan in self._plans.values())

    @property
    def error_bound(self) -> float:
        """Bound on the error of a row, the largest of all terms multiplied so far, each relative to its variance."""
        return max((plan.error_bound for plan in self._plans.values() if plan), default=0.0)

    def _radial(self, kernel: Any, profile: str, B: np.ndarray) -> np.ndarray:
        if 0 in (*self.shape, B.shape[1]):
            return super()._radial(kernel, profile, B)
        dtype = np.float32 if np.result_type(self.X, B) == np.float32 else np.float64
        plan, _ = self._plan(kernel, profile, dtype, B.shape[1])
        return super()._radial(kernel, profile, B) if plan is None else plan.product(B)

    def _plan(
        self, kernel: Any, profile: str, dtype: Any, n_columns: int
    ) -> tuple[NearCells | GaussianGrid | None, float]:
        """The cheapest way, None for all pairs, and its estimated seconds on one core."""
        length_scale = np.asarray(kernel.length_scale, dtype=np.float64)
        costs = _Costs(self, dtype, n_columns)
        key = (profile, length_scale.tobytes(), dtype)
        if key not in self._plans:
            self._plans[key] = self._planned(length_scale, profile, dtype, costs)
        plan = self._plans[key]
        # found for the columns of the first product; there may be more or fewer of them now
        if plan is None or costs.planned(plan) > costs.streamed:
            return None, costs.streamed
        return plan, costs.planned(plan)

    def _term_work(self, kernel: Any, n_columns: int) -> float:
        profile = profile_of(kernel)
        if profile is None or 0 in (*self.shape, n_columns):
            return super()._term_work(kernel, n_columns)
        dtype = np.float32 if self.dtype == np.float32 else np.float64
        plan, seconds = self._plan(kernel, profile, dtype, n_columns)
        return super()._term_work(kernel, n_columns) if plan is None else FLOPS * seconds

    def _planned(
        self, length_scale: np.ndarray, profile: str, dtype: Any, costs: _Costs
    ) -> NearCells | GaussianGrid | None:
        """The cheapest way; found in the first product and kept."""
        data = self.X, self.Z, length_scale
        grid = None
        if profile == "rbf":
            grid = find_gaussian_grid(*data, self.error, costs.n_columns, costs.streamed)
        least = costs.streamed if grid is None else costs.planned(grid)
        near = find_near_cells(*data, profile, self.error, dtype, least / costs.near_value)
        return grid if near is None else near

    def cross(self, X_new: Array) -> TreeCode:
        return TreeCode(self.kernel, X_new, self.X, error=self.error)

    def clone_with_theta(self, theta: np.ndarray) -> TreeCode:
        return TreeCode(self.kernel.clone_with_theta(theta), self.X, self.Z, error=self.error)

    @property
    def nbytes(self) -> int:
        return sum(plan.nbytes for plan in self._plans.values() if plan)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_plans": {}}  # found again when needed


class _Costs:
    """Estimated seconds of products with so many columns, on one core."""

    def __init__(self, operator: TreeCode, dtype: Any, n_columns: int):
        (n, m), (first, further) = operator.shape, PER_VALUE[dtype]
        if operator.Z is None and n_columns <= MIRRORED:
            first /= 2  # each value serves its row and its column
        near_first, near_further = PER_NEAR_VALUE[dtype]
        self.n_columns = n_columns
        self.streamed = n * m * (first + further * (n_columns - 1))
        self.near_value = near_first + near_further * (n_columns - 1)

    def planned(self, plan: NearCells | GaussianGrid) -> float:
        if isinstance(plan, GaussianGrid):
            return plan.seconds * self.n_columns
        return plan.n_pairs * self.near_value
