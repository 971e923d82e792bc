"""Losses L(U, Y): value, gradient, curvature."""

from gramian.losses.base import (
    Curvature,
    CurvatureDifference,
    DiagonalCurvature,
    Loss,
    SoftmaxCurvature,
)
from gramian.losses.chain.likelihood import (
    ChainCurvature,
    ChainLikelihood,
    PartialChainLikelihood,
)
from gramian.losses.features import FeatureLoss
from gramian.losses.logistic import Logistic, sigmoid
from gramian.losses.observed_squared import ObservedSquared
from gramian.losses.partial_softmax import PartialSoftmax
from gramian.losses.ranking import RankingCurvature, SquaredRanking
from gramian.losses.softmax import Softmax, log_sum_exp, softmax
from gramian.losses.squared import Squared
from gramian.losses.squared_hinge import SquaredHinge

__all__ = [
    "ChainCurvature",
    "ChainLikelihood",
    "Curvature",
    "CurvatureDifference",
    "DiagonalCurvature",
    "FeatureLoss",
    "Logistic",
    "Loss",
    "ObservedSquared",
    "PartialChainLikelihood",
    "PartialSoftmax",
    "RankingCurvature",
    "Softmax",
    "SoftmaxCurvature",
    "Squared",
    "SquaredHinge",
    "SquaredRanking",
    "log_sum_exp",
    "sigmoid",
    "softmax",
]
