"""The cross-validation criterion of ridge regression in closed form: one inverse serves all folds.

With ``G = (K + λ W⁻¹)⁻¹`` (W the weights of the examples) and ``a = G Y``, leaving out the examples I gives

    y_I − u_I = G_II⁻¹ a_I,      A = a − G_·I G_II⁻¹ a_I,      F = G_·I G_II⁻¹ r_I

by the formula for the inverse of a partitioned matrix: held-out residuals, coefficients (zero on I) and the adjoint of
`criterion` (r the derivative of the criterion in the held-out values). Nothing is iterated, so value and gradient
are exact.

Cost: n³ flops for the inverse whatever the number of folds, outputs and parameters, against some tens to hundreds of
products for all folds with an iterative fit. For pairs, whose products go through small matrices of objects, K is
gathered from those for each evaluation; gradients go through the objects all the same.

Deviates from the paper: it is for the squared loss what its appendix B (marked there as not up to date) does for
Newton steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import get_lapack_funcs

from gramian._core.arrays import Array, is_numpy
from gramian._core.factors import raise_diagonal
from gramian._core.memory import working_memory
from gramian._core.threads import quiet_blas
from gramian.labels import Identity, Scalar
from gramian.losses import Squared
from gramian.operators import Dense, LabelMixed, Operator, PairGram
from gramian.selection.criterion import CrossValidationCriterion
from gramian.solvers import Problem

# Seconds of one evaluation with five folds on two cores, closed form against iterative after a small step
# (benchmarks/crossover.py): 0.11 / 0.11 at 1000 rows, 0.6 / 1.2 at 3000, 3.0 / 3.6 at 5000.
# Beyond, its cube is too dear.
CLOSED_FORM_ROWS = 5000
# Pairs multiply faster, through their objects. The same seconds on one core, where 30 % of all pairs are known, at the
# variances 100 and 1000 that a search may meet: 0.06 / 0.09 and 0.3 for 1000 pairs, 0.32 / 0.26 and 0.8 for 2000, 1.3 /
# 0.5 and 1.5 for 3000, 4.4 / 0.9 and 2.3 for 5000.
CLOSED_FORM_PAIRS = 2000
# in the place of zero: the example then has coefficients far below rounding
SMALLEST_WEIGHT = 1e-100


class RidgeCriterion(CrossValidationCriterion):
    """Mean held-out squared loss and its gradient, in closed form; see `CrossValidationCriterion`.

    Parameters
    ----------
    problem : Problem
        With the squared loss, NumPy arrays and one Gram matrix for all outputs.
    training : array of shape (n, n_folds)
        1 where an example trains.
    held_out : array of shape (n, n_folds), default=None
        1 where an example is judged; None means all that do not train.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Squared
    >>> from gramian.operators import Dense
    >>> from gramian.selection import CrossValidationCriterion, RidgeCriterion, fold_masks
    >>> from gramian.solvers import Problem
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> problem = Problem(Dense(RBF(0.3), X), Squared(), np.sin(9 * X), regularization=1e-3)
    >>> training, _ = fold_masks(5, X, X[:, 0])
    >>> exact, _ = RidgeCriterion(problem, training)(np.log([0.3]))
    >>> iterative, _ = CrossValidationCriterion(problem, training)(np.log([0.3]))
    >>> bool(abs(exact - iterative) < 1e-8)
    True
    """

    def drive(self, folds: np.ndarray | None) -> None:
        super().drive(folds)
        self._folds = [np.flatnonzero(column == 0) for column in np.asarray(self._trains).T]

    def __call__(
        self, theta: np.ndarray, tol: float = 0.0, accuracy: float = 0.0
    ) -> tuple[float, np.ndarray]:
        """Return the criterion and its gradient in ``theta``; tolerances have no meaning here."""
        with quiet_blas(float(len(self.problem.targets)) ** 3):  # its threads wait for busy cores
            return self._evaluated(theta)

    def _evaluated(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        operator = self.problem.operator.clone_with_theta(theta)
        Y = self.problem.targets[:, :, 0]
        ((matrix, _),) = operator.blocks(Y.shape[1])
        G = _inverse(matrix, self.problem)
        a = G @ Y
        A = np.repeat(a[:, :, None], len(self._folds), axis=2)
        F = np.empty_like(A)
        self.latent = np.repeat(Y[:, :, None], len(self._folds), axis=2)
        value, judged = 0.0, 0.0
        for k, rows in enumerate(self._folds):
            block = _factor(lambda rows=rows: G[np.ix_(rows, rows)])
            residual = cho_solve(block, a[rows])
            weights = self._held_out[rows, k][:, None]
            value += 0.5 * float(np.sum(weights * residual**2))
            if self._judging is not None:
                judged += 0.5 * float(self._judging[rows, k] @ np.sum(residual**2, axis=1))
            columns = G[:, rows]
            A[:, :, k] -= columns @ residual
            A[rows, :, k] = 0.0
            F[:, :, k] = columns @ cho_solve(block, -weights * residual)
            self.latent[rows, :, k] -= residual
        self._coefficients = a
        self.n_products = 1
        if self._judging is not None:
            self.judged = judged
        return value, operator.vjp(A, F)

    def combined_coefficients(self) -> Array:
        """The exact coefficients of all examples, shape (n, C)."""
        return self._coefficients


def choose_criterion(
    problem: Problem, training: Array, held_out: Array
) -> CrossValidationCriterion:
    """The closed form where it applies and is faster, else the iterative criterion."""
    squared = is_numpy(problem.targets) and problem.loss == Squared()
    closed = squared and problem.shape[0] <= _most_rows(problem.operator)
    return (RidgeCriterion if closed else CrossValidationCriterion)(problem, training, held_out)


def _most_rows(operator: Operator) -> int:
    """Up to how many examples the closed form is to be used: none if there is no Gram matrix for it."""
    matrix, structure = operator.terms[0] if isinstance(operator, LabelMixed) else (None, None)
    if not isinstance(structure, (Identity, Scalar)):  # outputs need one matrix for all of them
        return 0
    if isinstance(matrix, PairGram):  # it is gathered for each evaluation, and must fit the memory
        return min(CLOSED_FORM_PAIRS, int((working_memory() / 8) ** 0.5))
    return CLOSED_FORM_ROWS if isinstance(matrix, Dense) else 0


def _factor(make: Callable[[], np.ndarray]) -> tuple[np.ndarray, bool]:
    """The Cholesky factor of a new matrix. Rounding errors are covered by noise, which a criterion can bear."""
    matrix = make()
    largest, n, dtype = float(np.max(np.diagonal(matrix), initial=0.0)), len(matrix), matrix.dtype

    def attempt(more: float) -> tuple[np.ndarray, bool]:
        raised = make() if more else matrix
        raised[np.diag_indices_from(raised)] += more
        return cho_factor(raised, lower=True, overwrite_a=True, check_finite=False)

    return raise_diagonal(attempt, largest, n, dtype)


def _inverse(matrix: np.ndarray, problem: Problem) -> np.ndarray:
    """(K + λ W⁻¹)⁻¹, full."""
    weights = 1.0 if problem.weights is None else np.asarray(problem.weights, dtype=np.float64)
    noise = float(problem.strength[0]) / np.maximum(weights, SMALLEST_WEIGHT)

    def regularised() -> np.ndarray:
        M = np.array(matrix, dtype=np.float64)
        M[np.diag_indices_from(M)] += noise
        return M

    factor, lower = _factor(regularised)
    (potri,) = get_lapack_funcs(("potri",), (factor,))
    inverse, _ = potri(factor, lower=lower, overwrite_c=True)
    return np.tril(inverse) + np.tril(inverse, -1).T
