"""Losses L(U, Y): value, gradient, curvature."""

from gramian.losses.base import Curvature, DiagonalCurvature, Loss, SoftmaxCurvature
from gramian.losses.logistic import Logistic, sigmoid
from gramian.losses.partial_softmax import PartialSoftmax
from gramian.losses.ranking import RankingCurvature, SquaredRanking
from gramian.losses.softmax import Softmax, log_sum_exp, softmax
from gramian.losses.squared import Squared
from gramian.losses.squared_hinge import SquaredHinge

__all__ = [
    "Curvature",
    "DiagonalCurvature",
    "Logistic",
    "Loss",
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
