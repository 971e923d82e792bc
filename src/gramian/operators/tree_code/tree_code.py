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
from gramian.operators import costs
from gramian.operators.inputs.streamed import Streamed
from gramian.operators.tree_code.gaussian_grid import GaussianGrid, find_gaussian_grid
from gramian.operators.tree_code.near_cells import NearCells, find_near_cells
from gramian.operators.tree_code.task import Task

Plan = NearCells | GaussianGrid | None  # None is all pairs


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
        self._plans: dict[Any, Plan] = {}

    @property
    def methods(self) -> tuple[str, ...]:
        """How each term is multiplied, in the order of their first products."""
        return tuple("all pairs" if plan is None else plan.name for plan in self._plans.values())

    @property
    def error_bound(self) -> float:
        """Bound on the error of a row, the largest of all terms multiplied so far, each relative to its variance."""
        return max((plan.error_bound for plan in self._plans.values() if plan), default=0.0)

    def _radial(self, term: Any, B: np.ndarray) -> np.ndarray:
        if 0 in (*self.shape, B.shape[1]):
            return super()._radial(term, B)
        dtype = np.float32 if np.result_type(self.X, B) == np.float32 else np.float64
        plan = self._plan(term, dtype, B.shape[1])
        return super()._radial(term, B) if plan is None else plan.product(B)

    def _term_work(self, term: Any, n_columns: int) -> float:
        plan = None
        if term.profile is not None and 0 not in (*self.shape, n_columns):
            dtype = np.float32 if self.dtype == np.float32 else np.float64
            plan = self._plan(term, dtype, n_columns)
        return super()._term_work(term, n_columns) if plan is None else plan.work(n_columns)

    def _plan(self, term: Any, dtype: type, n_columns: int) -> Plan:
        """The cheapest way to multiply so many columns; None is all pairs."""
        if term.metric != "squared":  # bounds of cells are Euclidean
            return None
        length_scale = np.asarray(term.length_scale, dtype=np.float64)
        all_pairs = costs.all_pairs(self.shape, n_columns, dtype, symmetric=self.Z is None)
        key = (term.profile, length_scale.tobytes(), dtype)
        if key not in self._plans:
            task = Task(self.X, self.Z, length_scale, term.profile, self.error, dtype, n_columns)
            grid = find_gaussian_grid(task, all_pairs) if term.profile == "rbf" else None
            least = all_pairs if grid is None else grid.work(n_columns)
            near = find_near_cells(task, least / costs.near_pair(n_columns, dtype))
            self._plans[key] = near or grid
        plan = self._plans[key]
        # found for the columns of the first product; there may be more or fewer of them now
        return None if plan is None or plan.work(n_columns) > all_pairs else plan

    def in_single(self) -> None:
        return None  # a plan takes as long to find as many products

    def _with_kernel(self, kernel: Kernel) -> TreeCode:
        return TreeCode(kernel, self.X, self.Z, error=self.error)

    @property
    def nbytes(self) -> int:
        return sum(plan.nbytes for plan in self._plans.values() if plan)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_plans": {}}  # found again when needed
