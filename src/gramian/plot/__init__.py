"""Figures in the manner of scikit-learn's displays; they need matplotlib."""

from gramian.plot.convergence import ConvergenceDisplay
from gramian.plot.reliability import ReliabilityDisplay

__all__ = ["ConvergenceDisplay", "ReliabilityDisplay"]
