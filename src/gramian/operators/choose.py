"""Which operator: by the kernel, the size, the memory at hand and the estimated cost of a product.

Costs are flops (`InputOperator.work`) whose constants were measured once; they are never measured at run time, so that
the same data give the same operator. The cheapest candidate without an objection wins:

- dense: the matrix must fit the budget, scikit-learn's ``working_memory`` (1 GiB unless set);
- linear: a linear kernel, with fewer feature values than the n × n matrix;
- streamed: always possible;
- tree_code: an RBF or Matérn term on few features; exact up to a bound, so it must beat a stored matrix by far;
- low_rank: an approximation, only if a rank was given, and only where the matrix does not fit.

Pairs have an operator of their own, see `pair_gram`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp

from gramian._core.arrays import Array, is_numpy, itemsize
from gramian._core.memory import working_memory
from gramian.kernels import Kernel
from gramian.kernels.pairwise import PairwiseKernel
from gramian.operators.base import READING, InputOperator
from gramian.operators.inputs.dense import Dense
from gramian.operators.inputs.distances import SquaredDistances
from gramian.operators.inputs.linear import LinearFeatures, linear_variance
from gramian.operators.inputs.low_rank import LowRank
from gramian.operators.inputs.streamed import Streamed, has_radial_term
from gramian.operators.pairs.gram import PairGram
from gramian.operators.record import OperatorRecord, readable_bytes
from gramian.operators.tree_code.tree_code import TreeCode

logger = logging.getLogger("gramian")

OPERATORS = ("auto", "dense", "linear", "streamed", "tree_code", "low_rank")

DEFAULT_RANK = 1000


# A tree code does not compete with a stored matrix of so few examples, which also serves the exact solver, nor on more
# features, where its cells are all near each other. It must be that many times cheaper than a stored matrix.
TREE_FROM, TREE_FEATURES, TREE_GAIN = 5000, 8, 4.0

Candidate = tuple[str, float | None, int, str]


def choose_operator(
    kernel: Kernel,
    X: Array,
    name: str = "auto",
    *,
    copies: int = 1,
    distances: SquaredDistances | None = None,
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
    distances : SquaredDistances, default=None
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
        return pairs, _recorded(pairs, pairs.form, pairs.reason)
    if name not in OPERATORS:
        raise ValueError(
            f"operator must be one of {', '.join(map(repr, OPERATORS))}; got {name!r}."
        )
    candidates: list[Candidate] = []
    chosen, reason, built = name, "asked for", None
    if name == "auto":
        wanted = _Wanted(kernel, X, copies, rank, n_columns, gradients)
        candidates, built = _weighed(wanted)
        chosen, reason = _choice(wanted, candidates)
    if kernel.is_precomputed and chosen != "dense":
        raise ValueError(
            f"operator must be 'auto' or 'dense' for a precomputed kernel, got {name!r}."
        )
    operator: InputOperator
    if chosen == "dense":
        operator = Dense(kernel, X, distances)
    elif chosen == "low_rank":
        wanted_rank = default_rank(int(X.shape[0])) if rank is None else rank
        operator = LowRank(kernel, X, wanted_rank, random_state=random_state)
        reason = f"{reason}, rank {operator.rank} of {operator.shape[0]}"
    elif chosen == "tree_code" and built is not None:
        operator = built
    else:
        operator = _CLASSES[chosen](kernel, X)
    return operator, _recorded(operator, chosen, reason, tuple(candidates))


def _recorded(
    operator: InputOperator, name: str, reason: str, candidates: tuple[Candidate, ...] = ()
) -> OperatorRecord:
    record = OperatorRecord(name, reason, operator.shape[0], operator.nbytes, candidates)
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
    budget = working_memory() / 2
    return max(1, min(n, DEFAULT_RANK, int(budget // (8 * n))))


@dataclass(frozen=True)
class _Wanted:
    """What an operator is wanted for."""

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
        return self.matrix_bytes <= working_memory()

    @property
    def size(self) -> str:
        times = "" if self.copies == 1 else f"{self.copies} times "
        budget = working_memory() / 2**20
        taken = f"{times}{self.n} x {self.n} values take {readable_bytes(self.matrix_bytes)}"
        return f"{taken}, {'within' if self.fits else 'more than'} working_memory = {budget:g} MiB"

    @property
    def stored_features(self) -> int:
        X = self.X
        return int(X.nnz) if hasattr(X, "nnz") else self.n * int(X.shape[1])


def _weighed(wanted: _Wanted) -> tuple[list[Candidate], TreeCode | None]:
    """All operators with cost, bytes and objection; and the tree code, which is planned to know its cost."""
    kernel, X, n, k = wanted.kernel, wanted.X, wanted.n, wanted.n_columns
    stored = float(n) * n * max(2 * k, READING)
    if kernel.is_precomputed:
        return [("dense", stored, wanted.matrix_bytes, "")], None
    linear = linear_variance(kernel) is not None
    through = 2.0 * wanted.stored_features * max(2 * k, READING) if linear else None
    objection = "" if linear else "needs the kernel Linear()"
    if linear and wanted.fits and 2 * wanted.stored_features > n * n:
        objection = "more feature values than kernel values"
    streamed = Streamed(kernel, X).work(k)
    tree, against = _tree(wanted)
    tree_cost = None if tree is None else tree.work(k)
    if tree_cost is not None and wanted.fits and TREE_GAIN * tree_cost > stored:
        against = "not much cheaper than a stored matrix, which is exact"
    elif tree_cost is not None and tree_cost >= streamed:
        against = "no pairs to leave out"
    rank = default_rank(n) if wanted.rank is None else min(n, wanted.rank)
    low = None if wanted.rank is None else 2.0 * n * rank * max(2 * k, READING)
    return [
        ("dense", stored, wanted.matrix_bytes, "" if wanted.fits else wanted.size),
        ("linear", through, 0, objection),
        ("streamed", streamed, 0, _streamed_objection(wanted, linear)),
        ("tree_code", tree_cost, 0 if tree is None else tree.nbytes, against),
        (
            "low_rank",
            low,
            0 if low is None else n * rank * itemsize(X),
            _low_rank_objection(wanted),
        ),
    ], tree


def _tree(wanted: _Wanted) -> tuple[TreeCode | None, str]:
    """A planned tree code, or why there is none."""
    if not is_numpy(wanted.X):
        return None, "needs a NumPy array"
    if not has_radial_term(wanted.kernel):
        return None, "needs an RBF or Matérn term"
    if wanted.X.shape[1] > TREE_FEATURES:
        return None, f"more than {TREE_FEATURES} features: all cells are near"
    if wanted.fits and wanted.n <= TREE_FROM:
        return None, f"a stored matrix of at most {TREE_FROM} examples is exact and fast enough"
    if wanted.fits and wanted.gradients:
        return None, "a stored matrix gives gradients faster"
    return TreeCode(wanted.kernel, wanted.X), ""


def _streamed_objection(wanted: _Wanted, linear: bool) -> str:
    if wanted.fits:
        return "the matrix itself fits"
    return "features multiply without kernel values" if linear else ""


def _low_rank_objection(wanted: _Wanted) -> str:
    if wanted.rank is None:
        return "approximates: pass rank to allow it"
    if wanted.fits:
        return "the matrix itself fits"
    if wanted.copies > 1:
        return "needs one kernel for all functions"
    return "" if is_numpy(wanted.X) or sp.issparse(wanted.X) else "needs a NumPy or a sparse array"


def _choice(wanted: _Wanted, candidates: list[Candidate]) -> tuple[str, str]:
    """The cheapest without an objection, and why."""
    if wanted.kernel.is_precomputed:
        return "dense", "the kernel is precomputed"
    costs = {name: cost for name, cost, _, remark in candidates if cost is not None and not remark}
    chosen = min(costs, key=costs.__getitem__)
    if chosen == "linear" and wanted.fits:
        stored, n = wanted.stored_features, wanted.n
        return chosen, f"{stored} feature values twice are fewer than {n} x {n} kernel values"
    if chosen == "tree_code":
        others = [cost for name, cost, _, _ in candidates if name in ("dense", "streamed") and cost]
        return chosen, f"products cost {min(others) / costs[chosen]:.2g} times less than all pairs"
    return chosen, wanted.size
