"""Learning from pairs of objects; the estimators themselves are in `gramian.estimators.pairs`."""

from gramian.estimators.pairs.pairwise import (
    PairwiseLogisticRegression,
    PairwiseRanker,
    PairwiseRidge,
    PairwiseSVC,
    pairwise_from_svc,
)

__all__ = [
    "PairwiseLogisticRegression",
    "PairwiseRanker",
    "PairwiseRidge",
    "PairwiseSVC",
    "pairwise_from_svc",
]
