"""Kernel regression of single examples."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from gramian._core.arrays import is_numpy
from gramian._core.docstrings import described
from gramian.estimators.answers import NumberAnswers
from gramian.estimators.coupled import CoupledMachine
from gramian.estimators.single import SOLVERS
from gramian.estimators.smooth import SolverChoice
from gramian.estimators.targets import SharedNumbers
from gramian.operators import OperatorRecord
from gramian.operators.outputs.label_mixed import couples_outputs
from gramian.solvers import Problem

# Cholesky costs the same whatever the conditioning. Seconds at 5000 rows, 10 features, two cores: 0.9 to 2.3,
# against 0.4 (λ = 1) and 3.1 (λ = 0.01) of kernel CG. Beyond that size its n³ operations take too long.
LARGEST_CHOLESKY = 5000  # rows


def _cholesky_or_cg(problem: Problem, record: OperatorRecord, watched: bool) -> str:
    small = record.name == "dense" and record.n_samples <= LARGEST_CHOLESKY
    alone = not couples_outputs(problem.operator)
    return "exact" if small and alone and is_numpy(problem.targets) else "kernel_cg"


@described(CoupledMachine)
@dataclass(eq=False, repr=False)
class KernelRidge(NumberAnswers, CoupledMachine):
    """Kernel ridge regression, the mean of a Gaussian process.

    Minimises ``Σ_i w_i ½ (u(x_i) − y_i)² + (λ/2) ‖f‖²`` over ``u = f + b`` for each output, with
    the intercept b penalised by ``(λ/2) b² / σ²``. With ``intercept_variance=0`` this is
    scikit-learn's ``KernelRidge(alpha=λ)``. Where there are several outputs, targets may be missing (NaN), which then
    count for nothing, and ``coupling`` lets outputs learn from each other.

    Parameters
    ----------
    |kernel|
    |coupling|
    |optimize|
    |cv|
    |regularization|
    intercept_variance : float, default=1e4
        Prior variance σ² of the intercepts; 0 means none. Targets are seldom centred: with 1e4, adding a number to y
        adds it to predictions and changes little else, whatever the unit of y.
    |operator|
    |rank|
    solver : {"auto", "exact", "kernel_cg", "newton", "parameter_cg"}, default="auto"
        "auto" is "exact" (Cholesky) for stored matrices up to 5000 examples without a coupling, else "kernel_cg".
    |tol|
    |max_iter|
    |warm_start|
    |random_state|
    |copy_X|

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples, n_outputs)
    intercept_ : array of shape (n_outputs,)
    |kernel_|
    variances_ : ndarray of shape (1,)
        Its variance.
    |coupling_|
    |n_couplings_|
    |judged_loss_|
    cv_loss_ : float
        Cross-validated mean of ½ (u − y)², summed over outputs, for the learned parameters.
    |optimization_path_|
    |operator_|
    |solution_|
    |n_iter_|
    |X_fit_|
    |n_features_in_|
    |feature_names_in_|

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> model = KernelRidge(kernel="rbf", regularization=1e-3).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.5]]).round(3)
    array([0.998])
    >>> model.operator_.name
    'dense'
    """

    _: KW_ONLY
    intercept_variance: float = 1e4

    _solvers = SolverChoice(SOLVERS, _cholesky_or_cg)

    def _targets(self) -> SharedNumbers:
        return SharedNumbers(self.coupling)
