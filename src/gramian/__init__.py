"""Kernel learning when the outputs have structure, in the manner of scikit-learn."""

from gramian.attributes import AttributeClassifier
from gramian.classification import KernelLogisticRegression, KernelSVC
from gramian.hierarchical import HierarchicalSVC
from gramian.multilabel import M3LClassifier
from gramian.pairs import Pairs
from gramian.pairwise import (
    PairwiseLogisticRegression,
    PairwiseRanker,
    PairwiseRidge,
    PairwiseSVC,
)
from gramian.regression import KernelRidge
from gramian.selection.pair_folds import PairKFold
from gramian.zero_shot import ZeroShotClassifier

__version__ = "0.1.0"

__all__ = [
    "AttributeClassifier",
    "HierarchicalSVC",
    "KernelLogisticRegression",
    "KernelRidge",
    "KernelSVC",
    "M3LClassifier",
    "PairKFold",
    "Pairs",
    "PairwiseLogisticRegression",
    "PairwiseRanker",
    "PairwiseRidge",
    "PairwiseSVC",
    "ZeroShotClassifier",
    "__version__",
]
