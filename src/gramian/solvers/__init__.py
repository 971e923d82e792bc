"""Solvers: from a `Problem` to a `Solution` with a certificate."""

from gramian.solvers.contrast.ascent import contrast_ascent
from gramian.solvers.contrast.problem import ContrastProblem
from gramian.solvers.contrast.split import ContrastSplit
from gramian.solvers.dual_averaging import SplitObjective, dual_averaging
from gramian.solvers.kronecker.exact import has_closed_form, kronecker_exact
from gramian.solvers.kronecker.ridge import KroneckerRidge
from gramian.solvers.margin.blocked_ascent import blocked_ascent
from gramian.solvers.margin.coordinate_ascent import coordinate_ascent
from gramian.solvers.margin.problem import MarginProblem
from gramian.solvers.margin.smo import smo
from gramian.solvers.rkhs.conjugate_gradient import kernel_cg, parameter_cg
from gramian.solvers.rkhs.exact import exact
from gramian.solvers.rkhs.expectation_maximization import expectation_maximization
from gramian.solvers.rkhs.minres import minres
from gramian.solvers.rkhs.newton import newton
from gramian.solvers.rkhs.problem import Problem
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
