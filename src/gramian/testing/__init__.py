"""Contract suites: a new kernel, loss, label structure, operator or solver inherits its tests.

Each ``check_...`` raises AssertionError with the clause of the contract that fails; none needs pytest.
"""

from gramian.testing.certificates import check_certificate
from gramian.testing.kernels import check_kernel
from gramian.testing.labels import check_structure
from gramian.testing.losses import check_loss
from gramian.testing.operators import CountingOperator, check_operator
from gramian.testing.solvers import check_solver, optimum

__all__ = [
    "CountingOperator",
    "check_certificate",
    "check_kernel",
    "check_loss",
    "check_operator",
    "check_solver",
    "check_structure",
    "optimum",
]
