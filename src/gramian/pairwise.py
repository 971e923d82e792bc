"""Learning from pairs of objects; the estimators themselves are in `gramian.estimators.pairs`."""

from gramian.estimators.pairs.classification import (
    PairwiseLogisticRegression,
    PairwiseSVC,
    pairwise_from_svc,
)
from gramian.estimators.pairs.regression import PairwiseRanker, PairwiseRidge

__all__ = [
    "PairwiseLogisticRegression",
    "PairwiseRanker",
    "PairwiseRidge",
    "PairwiseSVC",
    "pairwise_from_svc",
]
