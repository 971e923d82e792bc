"""Kernel learning when the outputs have structure, in the manner of scikit-learn.

Names and rooms are imported when they are first asked for, because all of them and Numba take most of a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "AttributeClassifier": "estimators.zero_shot.attributes",
    "HierarchicalSVC": "estimators.tree.hierarchical",
    "KernelCRF": "estimators.sequences.crf",
    "KernelLogisticRegression": "estimators.classification",
    "KernelRidge": "estimators.regression",
    "KernelSVC": "estimators.classification",
    "M3LClassifier": "estimators.margin.multilabel",
    "PairKFold": "selection.pair_folds",
    "Pairs": "pairs",
    "PairwiseLogisticRegression": "estimators.pairs.classification",
    "PairwiseRanker": "estimators.pairs.regression",
    "PairwiseRidge": "estimators.pairs.regression",
    "PairwiseSVC": "estimators.pairs.classification",
    "Sequences": "sequences",
    "ZeroShotClassifier": "estimators.zero_shot.zero_shot",
}
_ROOMS = {
    "datasets",
    "estimators",
    "kernels",
    "labels",
    "losses",
    "metrics",
    "operators",
    "pairs",
    "pairwise",
    "plot",
    "selection",
    "sequences",
    "solvers",
    "testing",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"gramian.{_HOMES[name]}"), name)
        globals()[name] = value  # the next access does not come here
        return value
    if name in _ROOMS:
        return import_module(f"gramian.{name}")
    raise AttributeError(f"module 'gramian' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_ROOMS})
