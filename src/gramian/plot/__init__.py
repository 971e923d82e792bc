"""Figures in the manner of scikit-learn's displays; they need matplotlib."""

from gramian.plot.confusion import HierarchicalConfusionDisplay
from gramian.plot.convergence import ConvergenceDisplay
from gramian.plot.correlation import (
    CorrelationLossDisplay,
    LabelCorrelationDisplay,
    plot_hamming_against_correlation,
    plot_label_correlation,
)
from gramian.plot.coupling import CouplingDisplay
from gramian.plot.hyperparameters import HyperparameterPathDisplay
from gramian.plot.iterations import IterationDisplay
from gramian.plot.normals import NormalCosineDisplay
from gramian.plot.pairs import PairMatrixDisplay
from gramian.plot.reject import RejectCurveDisplay
from gramian.plot.reliability import ReliabilityDisplay
from gramian.plot.sequences import SequenceDisplay
from gramian.plot.taxonomy import TaxonomyDisplay
from gramian.plot.transitions import TransitionDisplay

__all__ = [
    "ConvergenceDisplay",
    "CorrelationLossDisplay",
    "CouplingDisplay",
    "HierarchicalConfusionDisplay",
    "HyperparameterPathDisplay",
    "IterationDisplay",
    "LabelCorrelationDisplay",
    "NormalCosineDisplay",
    "PairMatrixDisplay",
    "RejectCurveDisplay",
    "ReliabilityDisplay",
    "SequenceDisplay",
    "TaxonomyDisplay",
    "TransitionDisplay",
    "plot_hamming_against_correlation",
    "plot_label_correlation",
]
