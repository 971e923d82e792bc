"""Which operator: by the kernel, the size and the memory at hand.

- a linear kernel works through its features when they are fewer numbers than the n × n matrix;
- otherwise the matrix is stored if it fits the budget, scikit-learn's ``working_memory`` (1 GiB unless set);
- otherwise it is approximated at the rank that was given, if one was, else streamed;
- pairs have an operator of their own, see `pair_gram`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import sklearn

from gramian._arrays import Array, is_numpy, itemsize
from gramian.kernels import Kernel
from gramian.kernels.pairwise import PairwiseKernel
from gramian.operators.base import InputOperator
from gramian.operators.dense import Dense
from gramian.operators.distances import SquaredDistances
from gramian.operators.linear import LinearFeatures, linear_variance
from gramian.operators.low_rank import LowRank
from gramian.operators.pair_gram import PairGram
from gramian.operators.streamed import Streamed
from gramian.operators.tree_code import TreeCode

logger = logging.getLogger("gramian")

OPERATORS = ("auto", "dense", "linear", "streamed", "tree_code", "low_rank")

DEFAULT_RANK = 1000


@dataclass(frozen=True)
class OperatorRecord:
    """Which operator an estimator used, and why.

    Attributes
    ----------
    name : str
        "dense", "linear", "streamed" or "low_rank"; for pairs "dual", "primal" or "streamed".
    reason : str
        Why it was chosen, in words.
    n_samples : int
    nbytes : int
        Bytes the operator keeps beyond the training data.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> KernelRidge().fit(np.arange(4.0)[:, None], np.arange(4.0)).operator_.name
    'dense'
    """

    name: str
    reason: str
    n_samples: int
    nbytes: int


def choose_operator(
    kernel: Kernel,
    X: Array,
    name: str = "auto",
    *,
    copies: int = 1,
    distances: SquaredDistances | None = None,
    rank: int | None = None,
    random_state: Any = None,
) -> tuple[InputOperator, OperatorRecord]:
    """Build the input operator for training.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse array of shape (n_samples, n_features)
    name : {"auto", "dense", "linear", "streamed", "low_rank"}, default="auto"
        For pairs {"auto", "dual", "primal"}.
    copies : int, default=1
        How many such operators there will be; they share the budget.
    distances : SquaredDistances, default=None
        Distances to reuse if the matrix is stored.
    rank : int, default=None
        Rank of "low_rank"; None is 1000, or fewer if the factor would take more than half of
        ``working_memory``. With "auto" a number is consent to an approximation where the matrix does not fit.
    random_state : int, RandomState or None, default=None
        Which active set "low_rank" takes.

    Returns
    -------
    operator : InputOperator
    record : OperatorRecord

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.operators import choose_operator
    >>> operator, record = choose_operator(RBF(), np.zeros((5, 2)))
    >>> record.name, record.reason
    ('dense', '5 x 5 values take 200 B, within working_memory = 1024 MiB')
    """
    if isinstance(kernel, PairwiseKernel):
        pairs = PairGram(kernel, X, form=name)
        return pairs, _recorded(pairs, pairs.form, pairs.reason)
    if name not in OPERATORS:
        raise ValueError(
            f"operator must be one of {', '.join(map(repr, OPERATORS))}; got {name!r}."
        )
    chosen, reason = _choice(kernel, X, copies, rank) if name == "auto" else (name, "asked for")
    if kernel.is_precomputed and chosen != "dense":
        raise ValueError(
            f"operator must be 'auto' or 'dense' for a precomputed kernel, got {name!r}."
        )
    operator: InputOperator
    if chosen == "dense":
        operator = Dense(kernel, X, distances)
    elif chosen == "low_rank":
        wanted = default_rank(int(X.shape[0])) if rank is None else rank
        operator = LowRank(kernel, X, wanted, random_state=random_state)
        reason = f"{reason}, rank {operator.rank} of {operator.shape[0]}"
    else:
        operator = _CLASSES[chosen](kernel, X)
    return operator, _recorded(operator, chosen, reason)


def _recorded(operator: InputOperator, name: str, reason: str) -> OperatorRecord:
    record = OperatorRecord(name, reason, operator.shape[0], operator.nbytes)
    logger.info("operator %s: %s", record.name, record.reason)
    return record


_CLASSES = {"linear": LinearFeatures, "streamed": Streamed, "tree_code": TreeCode}


def cross_operator(
    kernel: Kernel, X_new: Array, X_train: Array, name: str = "auto"
) -> InputOperator:
    """Return the operator from training examples to new ones, for prediction.

    ``name`` is that of the operator in training: a tree code predicts by a tree code.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Linear
    >>> from gramian.operators import cross_operator
    >>> cross_operator(Linear(), np.array([[3.0]]), np.array([[1.0], [2.0]])) @ np.ones((2, 1))
    array([[9.]])
    """
    if isinstance(kernel, PairwiseKernel):
        return PairGram(kernel, X_new, X_train)
    if name == "tree_code":
        return TreeCode(kernel, X_new, X_train)
    linear = linear_variance(kernel) is not None
    return (LinearFeatures if linear else Streamed)(kernel, X_new, X_train)


def default_rank(n: int) -> int:
    """Rank where none is given: 1000, or as much as half of ``working_memory`` holds in float64.

    Examples
    --------
    >>> from gramian.operators.choose import default_rank
    >>> default_rank(400), default_rank(20_000), default_rank(1_000_000)
    (400, 1000, 67)
    """
    budget = float(sklearn.get_config()["working_memory"]) * 2**20 / 2
    return max(1, min(n, DEFAULT_RANK, int(budget // (8 * n))))


def _choice(kernel: Kernel, X: Array, copies: int, rank: int | None) -> tuple[str, str]:
    n = int(X.shape[0])
    if kernel.is_precomputed:
        return "dense", "the kernel is precomputed"
    if linear_variance(kernel) is not None:
        stored = int(X.nnz) if hasattr(X, "nnz") else n * int(X.shape[1])
        if 2 * stored <= n * n:
            return "linear", f"{stored} feature values twice are fewer than {n} x {n} kernel values"
    budget = float(sklearn.get_config()["working_memory"])
    need = copies * n * n * itemsize(X)
    times = "" if copies == 1 else f"{copies} times "
    size = f"{times}{n} x {n} values take {_readable(need)}"
    if need <= budget * 2**20:
        return "dense", f"{size}, within working_memory = {budget:g} MiB"
    if linear_variance(kernel) is not None:
        return "linear", f"{size}, more than working_memory = {budget:g} MiB"
    approximate = rank is not None and copies == 1 and (is_numpy(X) or hasattr(X, "nnz"))
    chosen = "low_rank" if approximate else "streamed"
    return chosen, f"{size}, more than working_memory = {budget:g} MiB"


def _readable(nbytes: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.3g} GiB"
