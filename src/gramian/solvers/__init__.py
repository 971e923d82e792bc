"""Solvers: from a `Problem` to a `Solution` with a certificate."""

from gramian.solvers.blocked_ascent import blocked_ascent
from gramian.solvers.contrast_ascent import contrast_ascent
from gramian.solvers.contrast_problem import ContrastProblem
from gramian.solvers.contrast_split import ContrastSplit
from gramian.solvers.coordinate_ascent import coordinate_ascent
from gramian.solvers.dual_averaging import SplitObjective, dual_averaging
from gramian.solvers.exact import exact
from gramian.solvers.expectation_maximization import expectation_maximization
from gramian.solvers.kernel_cg import kernel_cg
from gramian.solvers.kronecker_exact import has_closed_form, kronecker_exact
from gramian.solvers.kronecker_ridge import KroneckerRidge
from gramian.solvers.margin_problem import MarginProblem
from gramian.solvers.minres import minres
from gramian.solvers.newton import newton
from gramian.solvers.parameter_cg import parameter_cg
from gramian.solvers.problem import Problem
from gramian.solvers.smo import smo
from gramian.solvers.solution import Progress, Solution

__all__ = [
    "ContrastProblem",
    "ContrastSplit",
    "KroneckerRidge",
    "MarginProblem",
    "Problem",
    "Progress",
    "Solution",
    "SplitObjective",
    "blocked_ascent",
    "contrast_ascent",
    "coordinate_ascent",
    "dual_averaging",
    "exact",
    "expectation_maximization",
    "has_closed_form",
    "kernel_cg",
    "kronecker_exact",
    "minres",
    "newton",
    "parameter_cg",
    "smo",
]
