"""The Gram operator 𝒦 as something to multiply with."""

from gramian.operators.base import InputOperator, Operator
from gramian.operators.choose import choose_operator, cross_operator
from gramian.operators.dense import Dense
from gramian.operators.gram_rows import GramRows
from gramian.operators.intercept import Intercept
from gramian.operators.kronecker_route import Route
from gramian.operators.label_mixed import LabelMixed
from gramian.operators.lifted import Lifted
from gramian.operators.linear import LinearFeatures
from gramian.operators.low_rank import LowRank
from gramian.operators.masked import Masked
from gramian.operators.operator_record import OperatorRecord
from gramian.operators.pair_gram import PairGram
from gramian.operators.sampled_kronecker import SampledKronecker
from gramian.operators.separate import Separate
from gramian.operators.streamed import Streamed
from gramian.operators.tree_code import TreeCode

__all__ = [
    "Dense",
    "GramRows",
    "InputOperator",
    "Intercept",
    "LabelMixed",
    "Lifted",
    "LinearFeatures",
    "LowRank",
    "Masked",
    "Operator",
    "OperatorRecord",
    "PairGram",
    "Route",
    "SampledKronecker",
    "Separate",
    "Streamed",
    "TreeCode",
    "choose_operator",
    "cross_operator",
]
