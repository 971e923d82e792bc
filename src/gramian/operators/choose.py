"""Which operator: by the kernel, the size, the memory at hand and the estimated cost of a product.

Costs come from `costs` and are never measured at run time, so that the same data give the same operator. Each operator
becomes a `Candidate` with its cost, its bytes and what speaks against it. The cheapest one without an objection wins:

- dense: the matrix must fit the budget, scikit-learn's ``working_memory`` (1 GiB unless set);
- linear: a linear kernel, with fewer feature values than the n × n matrix;
- streamed: always possible;
- tree_code: an RBF or Matérn term on few features; exact up to a bound, so it must beat a stored matrix by far;
- low_rank: an approximation, only if a rank was given, and only where the matrix does not fit.

Pairs have an operator of their own, `PairGram`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import scipy.sparse as sp

from gramian._core.arrays import Array, is_numpy, itemsize
from gramian._core.memory import working_memory
from gramian.kernels import Kernel
from gramian.kernels.pairwise import PairwiseKernel
from gramian.operators import costs
from gramian.operators.base import InputOperator
from gramian.operators.inputs.dense import Dense
from gramian.operators.inputs.distances import Distances
from gramian.operators.inputs.linear import LinearFeatures, n_stored
from gramian.operators.inputs.low_rank import LowRank
from gramian.operators.inputs.streamed import Streamed
from gramian.operators.pairs.gram import PairGram
from gramian.operators.record import Candidate, OperatorRecord, readable_bytes
from gramian.operators.tree_code.tree_code import TreeCode

logger = logging.getLogger("gramian")

OPERATORS = ("auto", "dense", "linear", "streamed", "tree_code", "low_rank")

DEFAULT_RANK = 1000


def choose_operator(
    kernel: Kernel,
    X: Array,
    name: str = "auto",
    *,
    copies: int = 1,
    distances: Distances | None = None,
    rank: int | None = None,
    random_state: Any = None,
    n_columns: int = 1,
    gradients: bool = False,
) -> tuple[InputOperator, OperatorRecord]:
    """Build the input operator for training.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse array of shape (n_samples, n_features)
    name : {"auto", "dense", "linear", "streamed", "tree_code", "low_rank"}, default="auto"
        For pairs {"auto", "dual", "primal"}.
    copies : int, default=1
        How many such operators there will be; they share the budget.
    distances : Distances, default=None
        Distances to reuse if the matrix is stored.
    rank : int, default=None
        Rank of "low_rank"; None is 1000, or fewer if the factor would take more than half of
        ``working_memory``. With "auto" a number is consent to an approximation where the matrix does not fit.
    random_state : int, RandomState or None, default=None
        Which active set "low_rank" takes.
    n_columns : int, default=1
        Right-hand sides of a typical product.
    gradients : bool, default=False
        Whether gradients in the parameters will be asked for; a stored matrix gives them fastest.

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
        return pairs, _recorded(pairs, pairs.form, pairs.reason, [])
    if name not in OPERATORS:
        raise ValueError(
            f"operator must be one of {', '.join(map(repr, OPERATORS))}; got {name!r}."
        )
    request = _Request(kernel, X, copies, rank, n_columns, gradients)
    candidates = _candidates(request) if name == "auto" else []
    chosen, reason = _choice(request, candidates) if name == "auto" else (name, "asked for")
    if kernel.is_precomputed and chosen != "dense":
        raise ValueError(
            f"operator must be 'auto' or 'dense' for a precomputed kernel, got {name!r}."
        )
    operator: InputOperator
    if chosen == "dense":
        operator = Dense(kernel, X, distances)
    elif chosen == "low_rank":
        wanted_rank = default_rank(request.n) if rank is None else rank
        operator = LowRank(kernel, X, wanted_rank, random_state=random_state)
        reason = f"{reason}, rank {operator.rank} of {operator.shape[0]}"
    elif chosen == "tree_code":
        operator = request.tree  # planned already, if it was weighed
    else:
        operator = {"linear": LinearFeatures, "streamed": Streamed}[chosen](kernel, X)
    return operator, _recorded(operator, chosen, reason, candidates)


def _recorded(
    operator: InputOperator, name: str, reason: str, candidates: list[Candidate]
) -> OperatorRecord:
    record = OperatorRecord(name, reason, operator.shape[0], operator.nbytes, tuple(candidates))
    logger.info("operator %s: %s", record.name, record.reason)
    return record


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
    operator = Streamed if kernel.linear_variance is None else LinearFeatures
    return operator(kernel, X_new, X_train)


def default_rank(n: int) -> int:
    """Rank where none is given: 1000, or as much as half of ``working_memory`` holds in float64.

    Examples
    --------
    >>> from gramian.operators.choose import default_rank
    >>> default_rank(400), default_rank(20_000), default_rank(1_000_000)
    (400, 1000, 67)
    """
    budget = working_memory() / 2
    return max(1, min(n, DEFAULT_RANK, int(budget // (8 * n))))


@dataclass(frozen=True)
class _Request:
    """What an operator is wanted for, and what several candidates ask about it."""

    kernel: Kernel
    X: Any
    copies: int
    rank: int | None
    n_columns: int
    gradients: bool

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def matrix_bytes(self) -> int:
        return self.copies * self.n * self.n * itemsize(self.X)

    @property
    def fits(self) -> bool:
        """Whether all matrices may be stored."""
        return self.matrix_bytes <= working_memory()

    @property
    def size(self) -> str:
        """The size of the matrices against the memory at hand, in words."""
        times = "" if self.copies == 1 else f"{self.copies} times "
        budget = working_memory() / 2**20
        taken = f"{times}{self.n} x {self.n} values take {readable_bytes(self.matrix_bytes)}"
        return f"{taken}, {'within' if self.fits else 'more than'} working_memory = {budget:g} MiB"

    @property
    def is_linear(self) -> bool:
        return self.kernel.linear_variance is not None

    @cached_property
    def tree(self) -> TreeCode:
        """The tree code, which plans its products when it is asked for their cost."""
        return TreeCode(self.kernel, self.X)


def _candidates(request: _Request) -> list[Candidate]:
    """All operators with what speaks against them; a precomputed kernel is a stored matrix."""
    stored = costs.stored_product(request.n * request.n, request.n_columns)
    if request.kernel.is_precomputed:
        return [Candidate("dense", stored, request.matrix_bytes, "")]
    dense = Candidate("dense", stored, request.matrix_bytes, "" if request.fits else request.size)
    streamed = _streamed(request)
    tree_code = _tree_code(request, stored, streamed.cost or 0.0)
    return [dense, _linear(request), streamed, tree_code, _low_rank(request)]


def _linear(request: _Request) -> Candidate:
    if not request.is_linear:
        return Candidate("linear", None, 0, "needs the kernel Linear()")
    values = 2 * n_stored(request.X)
    wide = request.fits and values > request.n * request.n
    objection = "more feature values than kernel values" if wide else ""
    return Candidate("linear", costs.stored_product(values, request.n_columns), 0, objection)


def _streamed(request: _Request) -> Candidate:
    objection = _first(
        (request.fits, "the matrix itself fits"),
        (request.is_linear, "features multiply without kernel values"),
    )
    cost = Streamed(request.kernel, request.X).work(request.n_columns)
    return Candidate("streamed", cost, 0, objection)


def _tree_code(request: _Request, stored: float, streamed: float) -> Candidate:
    X, few, features = request.X, costs.MOST_EXAMPLES_WITHOUT_TREE, costs.MOST_TREE_FEATURES
    terms = [term for _, term in request.kernel.summands()]
    no_profile = all(term.profile is None or term.metric != "squared" for term in terms)
    fast_enough = f"a stored matrix of at most {few} examples is exact and fast enough"
    objection = _first(
        (not is_numpy(X), "needs a NumPy array"),
        (no_profile, "needs an RBF or Matérn term"),
        (X.shape[1] > features, f"more than {features} features: all cells are near"),
        (request.fits and request.n <= few, fast_enough),
        (request.fits and request.gradients, "a stored matrix gives gradients faster"),
    )
    if objection:
        return Candidate("tree_code", None, 0, objection)
    cost = request.tree.work(request.n_columns)
    dear = request.fits and costs.LEAST_TREE_GAIN * cost > stored
    objection = _first(
        (dear, "not much cheaper than a stored matrix, which is exact"),
        (cost >= streamed, "no pairs to leave out"),
    )
    return Candidate("tree_code", cost, request.tree.nbytes, objection)


def _low_rank(request: _Request) -> Candidate:
    if request.rank is None:
        return Candidate("low_rank", None, 0, "approximates: pass rank to allow it")
    served = is_numpy(request.X) or sp.issparse(request.X)
    objection = _first(
        (request.fits, "the matrix itself fits"),
        (request.copies > 1, "needs one kernel for all functions"),
        (not served, "needs a NumPy or a sparse array"),
    )
    values = request.n * min(request.n, request.rank)
    cost = costs.stored_product(2 * values, request.n_columns)
    return Candidate("low_rank", cost, values * itemsize(request.X), objection)


def _first(*objections: tuple[bool, str]) -> str:
    """The first objection that holds, "" if none does."""
    return next((words for holds, words in objections if holds), "")


def _choice(request: _Request, candidates: list[Candidate]) -> tuple[str, str]:
    """The cheapest candidate without an objection, and why it is taken."""
    if request.kernel.is_precomputed:
        return "dense", "the kernel is precomputed"
    costs_of = {one.name: one.cost for one in candidates if one.cost is not None}
    open_to = [one.name for one in candidates if one.name in costs_of and not one.objection]
    chosen = min(open_to, key=costs_of.__getitem__)
    if chosen == "linear" and request.fits:
        n, values = request.n, n_stored(request.X)
        return chosen, f"{values} feature values twice are fewer than {n} x {n} kernel values"
    if chosen == "tree_code":
        gain = min(costs_of["dense"], costs_of["streamed"]) / costs_of[chosen]
        return chosen, f"products cost {gain:.2g} times less than all pairs"
    return chosen, request.size
