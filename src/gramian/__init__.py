"""Kernel learning when the outputs have structure, in the manner of scikit-learn."""

from gramian.classification import KernelLogisticRegression, KernelSVC
from gramian.pairs import Pairs
from gramian.regression import KernelRidge

__version__ = "0.1.0"

__all__ = ["KernelLogisticRegression", "KernelRidge", "KernelSVC", "Pairs", "__version__"]
