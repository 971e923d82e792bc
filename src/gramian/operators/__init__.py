"""The Gram operator 𝒦 as something to multiply with."""

from gramian.operators.base import InputOperator, Operator
from gramian.operators.choose import choose_operator, cross_operator
from gramian.operators.inputs.dense import Dense
from gramian.operators.inputs.gram_rows import GramRows
from gramian.operators.inputs.linear import LinearFeatures
from gramian.operators.inputs.low_rank import LowRank
from gramian.operators.inputs.streamed import Streamed
from gramian.operators.outputs.direct_sum import DirectSum
from gramian.operators.outputs.intercept import Intercept
from gramian.operators.outputs.label_mixed import LabelMixed
from gramian.operators.outputs.lifted import Lifted
from gramian.operators.outputs.separate import Separate
from gramian.operators.outputs.transition_functions import TransitionFunctions
from gramian.operators.outputs.transitions import Transitions
from gramian.operators.outputs.weights import Weights
from gramian.operators.pairs.gram import PairGram
from gramian.operators.pairs.route import Route
from gramian.operators.pairs.sampled_kronecker import SampledKronecker
from gramian.operators.record import OperatorRecord
from gramian.operators.tree_code.tree_code import TreeCode

__all__ = [
    "Dense",
    "DirectSum",
    "GramRows",
    "InputOperator",
    "Intercept",
    "LabelMixed",
    "Lifted",
    "LinearFeatures",
    "LowRank",
    "Operator",
    "OperatorRecord",
    "PairGram",
    "Route",
    "SampledKronecker",
    "Separate",
    "Streamed",
    "TransitionFunctions",
    "Transitions",
    "TreeCode",
    "Weights",
    "choose_operator",
    "cross_operator",
]
