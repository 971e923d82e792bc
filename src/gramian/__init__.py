"""Kernel learning when the outputs have structure, in the manner of scikit-learn."""

from gramian.estimators.classification import KernelLogisticRegression, KernelSVC
from gramian.estimators.margin.multilabel import M3LClassifier
from gramian.estimators.pairs.classification import PairwiseLogisticRegression, PairwiseSVC
from gramian.estimators.pairs.regression import PairwiseRanker, PairwiseRidge
from gramian.estimators.regression import KernelRidge
from gramian.estimators.sequences.crf import KernelCRF
from gramian.estimators.tree.hierarchical import HierarchicalSVC
from gramian.estimators.zero_shot.attributes import AttributeClassifier
from gramian.estimators.zero_shot.zero_shot import ZeroShotClassifier
from gramian.pairs import Pairs
from gramian.selection.pair_folds import PairKFold
from gramian.sequences import Sequences

__version__ = "0.1.0"

__all__ = [
    "AttributeClassifier",
    "HierarchicalSVC",
    "KernelCRF",
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
    "Sequences",
    "ZeroShotClassifier",
    "__version__",
]
