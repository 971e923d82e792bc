"""When a preconditioner pays: it is bought when the products already spent would have paid for it many times.

Nobody knows in advance how many products a solver will need. So it starts without one; when it has spent `PRICES_SPENT`
times what a coarse space of m functions costs (columns, factor, and what it takes in the steps to come), and the gap
falls so slowly that `PRICES_TO_COME` times its cost is still to come, the space is built. It is used if the trace of
what it leaves of 𝒦 is small enough against λ, otherwise one that promises to leave little enough is tried when that has
become affordable. So little is lost where it is no use, and a hard problem soon gets what it needs.

Costs are counted in flops (`InputOperator.work`), not measured: a fit gives the same numbers each time. Factors take
at most half of scikit-learn's ``working_memory``.

Problems in weights of features have a diagonal operator and a preconditioner from the start (`weights`).

Operators of low rank know all their functions (`feature_space`): these are used from the start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._core.arrays import is_numpy
from gramian._core.memory import working_memory
from gramian._core.threads import quiet_blas
from gramian.losses import Curvature
from gramian.operators import Operator, Streamed
from gramian.solvers.rkhs.preconditioning.coarse_fit import coarse_fit
from gramian.solvers.rkhs.preconditioning.coarse_space import CoarseSpace, coarse_space
from gramian.solvers.rkhs.preconditioning.feature_space import feature_space
from gramian.solvers.rkhs.preconditioning.preconditioner import Preconditioner
from gramian.solvers.rkhs.preconditioning.space import FunctionSpace, parts_of
from gramian.solvers.rkhs.preconditioning.weights import (
    WeightPreconditioner,
    weight_preconditioner,
)
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder

# Products spent and products to come, in prices of a space, and the factor on the price after a useless space.
PRICES_SPENT, PRICES_TO_COME, PRICE_RISE = 4, 2, 2
FIRST_RANK, RANK_GROWTH, EXAMPLES_PER_FUNCTION = 64, 3, 2  # the rank is at most n / the last
# Where products are recomputed each time, spaces are tried before the first one: a small one, and then those that
# promise to leave little enough, one after the other. Fits with RBF kernels of 20 features took 65 to 160 products from
# zeros and without a space.
PRICE_OF_FIRST, PRICE_OF_PROMISING = 3, 25
# Trace of what a coarse space of m functions leaves of 𝒦, in units of m λ. If it leaves more, a slow problem becomes
# slower: its complement is then as ill-conditioned as 𝒦, and no longer dominated by few directions. (The largest
# eigenvalue left is some left / m.) Measured at n = 2000: 2 saves two thirds of the products and more, 6 half of them,
# 15 some, 60 costs more.
USEFUL_REST = 6.0
SUFFICIENT_REST = 5.0  # the same trace in units of λ: a larger space has nothing to add
# Where rank m leaves t of the trace and m/2 leaves h, rank m' leaves some t (m / m')^a, a = DECAY_EXPONENT log₂(h / t):
# smooth kernels fall faster than a power. Normal data in three dimensions: 312, 30, 0.015 predicted, and 327, 19,
# 0.009 found.
DECAY_EXPONENT = 2
BUILD_FLOPS, FUNCTION_FLOPS = (
    5e8,
    1e7,
)  # of the calls to build a space, and for each of its functions
NEWTON_STEPS = 6  # to come, as the price assumes
INNER_STEPS = 8  # within the space for each step of CG, where outputs are coupled
APPLICATION_PRODUCTS = 4  # that applying a preconditioner may cost: it saves most of them
# λ relative to the trace of 𝒦 (a bound of its norm) below which 𝒦Pr, of the size of λ / norm, drowns in the rounding
# of 𝒦r.
SMALLEST_STRENGTH = 100 * float(np.finfo(np.float64).eps)


class Preconditioning:
    """The coarse space of a solve: there is none at first, and larger ones are built as they become worth it.

    Parameters
    ----------
    problem : Problem
    asked : {"auto"}, int or None
        A number asks for a space of this rank from the start, None for no space at all.
    operator : Operator, default=None
        The one whose products are taken if that is not 𝒦 itself, but 𝒦 in single precision.
    usable : bool, default=True
        Whether the solver can use one for this problem.
    """

    def __init__(
        self, problem: Problem, asked: Any, operator: Operator | None = None, *, usable: bool = True
    ):
        whole = isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 1
        rank = int(asked) if whole else 0
        if asked is not None and not rank and not (isinstance(asked, str) and asked == "auto"):
            raise ValueError(
                f"preconditioner must be 'auto', None or a rank of at least 1, got {asked!r}."
            )
        self.problem, self.asked, self._dear = problem, asked, False
        self.space: FunctionSpace | None = None
        self._preconditioner: Preconditioner | None = None
        self._curvature: Curvature | None = None
        self._price, self._next = np.inf, FIRST_RANK
        n, n_outputs, q = problem.shape
        usable = usable and problem.loss.separable and is_numpy(problem.targets)
        # columns of weights are folds: an active set would give coefficients to examples held out in some
        usable = usable and (problem.weights is None or problem.weights.ndim == 1)
        operator = operator or problem.operator
        parts = parts_of(operator, n_outputs) if asked is not None and usable else None
        if parts is None:
            return
        trace = float(np.max(np.sum(problem.operator.diagonal(n_outputs), axis=0)))
        if not float(np.min(problem.strength)) > SMALLEST_STRENGTH * trace:
            return
        self._columns = n_outputs * q
        self._dear = isinstance(parts.matrix, Streamed)
        self._product, self._column = parts.matrix.work(self._columns), parts.matrix.column_work
        quadratic, mixing = problem.loss.quadratic, parts.basis is not None
        coupled = problem.curvature(problem.start(None)).coupled
        self._coupled = coupled or (mixing and not quadratic)
        # weights that have a matrix of their own in each Newton step
        self._weights = q if coupled or mixing or quadratic else self._columns
        self._most = min(n // EXAMPLES_PER_FUNCTION, int(working_memory() / 2 / (8 * n)))
        self.space = feature_space(problem.operator, n_outputs)
        if self.space is None and rank:
            self.space = self._built(rank)
        elif self.space is None:
            self._price = self._cost(FIRST_RANK)

    def _built(self, rank: int, enough: float = 0.0) -> CoarseSpace | None:
        problem = self.problem
        n_outputs, weights = problem.shape[1], problem.weights
        return coarse_space(problem.operator, n_outputs, rank, enough=enough, weights=weights)

    def _cost(self, rank: int) -> float:
        """Cost of building a space and using it in the Newton steps to come, in products; infinite if it cannot pay."""
        n = self.problem.shape[0]
        steps = 1 if self.problem.loss.quadratic else NEWTON_STEPS
        calls = BUILD_FLOPS + FUNCTION_FLOPS * rank
        build = calls + n * rank * (self._column + 6 * rank) + 3.0 * rank**3
        refresh = steps * (2.5 * n * rank**2 + 2.0 * rank**3 + 2e7) * self._weights
        inner_steps = INNER_STEPS if self._coupled else 1
        use = (4.0 * n * rank + 2.0 * rank**2) * self._columns * inner_steps
        if rank > self._most or use > APPLICATION_PRODUCTS * self._product:
            return np.inf
        return (build + refresh) / self._product

    def _larger(self, rank: int) -> int:
        """The rank to try after this one; beyond what is allowed if there is none."""
        return min(RANK_GROWTH * rank, self._most) if 5 * rank < 4 * self._most else self._most + 1

    def _promising(self, space: CoarseSpace, unit: float) -> int:
        """The next rank that promises to leave little enough, or the largest."""
        half = space.leading(space.rank // 2).left
        decay, rank = DECAY_EXPONENT * np.log2(half / space.left), self._larger(space.rank)
        while (
            space.left * (space.rank / rank) ** decay > USEFUL_REST * unit * rank
            and self._larger(rank) <= self._most
        ):
            rank = self._larger(rank)
        return rank

    def start(self, tol: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Return coefficients to start from and their product with 𝒦 where products are dear, else None.

        They are the best ones of a space that preconditions what follows. Without such a space a start saves nothing:
        coefficients of few examples are large, and steps from there on are as many as from zeros.
        """
        if not self._dear or self._price > PRICE_OF_FIRST:
            return None
        curvature = self.problem.curvature(self.problem.start(None))
        self._tried(self._affordable(FIRST_RANK, PRICE_OF_FIRST), curvature)
        while self.space is None and self._price <= PRICE_RISE * PRICE_OF_PROMISING:
            self._tried(self._next, curvature)
        if not isinstance(self.space, CoarseSpace):
            return None
        return coarse_fit(self.problem, self.space, tol)

    def _affordable(self, rank: int, budget: float) -> int:
        """The largest rank from this one on whose price is within a budget."""
        while budget >= self._cost(self._larger(rank)):
            rank = self._larger(rank)
        return rank

    def grown(self, recorder: Recorder, curvature: Curvature) -> bool:
        """Build what has become affordable; say whether there is a new space."""
        spent = recorder.n_products
        if spent < PRICES_SPENT * self._price:
            return False
        budget = min(spent / PRICES_SPENT, recorder.remaining() / PRICES_TO_COME)
        if budget < self._price:
            return False
        before = self.space
        self._tried(self._affordable(self._next, budget), curvature)
        return self.space is not before

    def _tried(self, rank: int, curvature: Curvature) -> None:
        """Build a space, take it if it leaves little enough, and set the price of the next one."""
        bend = float(np.max(curvature.diagonal, initial=0.0))
        unit = float(np.min(self.problem.strength)) / bend if bend > 0 else 0.0
        enough = SUFFICIENT_REST * unit
        with quiet_blas(6.0 * self.problem.shape[0] * rank**2):
            space = self._built(rank, enough)
        if space is None or space.left <= enough:
            self._price = np.inf  # nothing to gain from a larger one
        else:
            self._next = self._promising(space, unit)
            self._price = self._cost(self._next)
        if space is None or space.left > USEFUL_REST * unit * space.rank:
            self._price *= PRICE_RISE
        else:
            self.space, self._curvature = space, None

    def at(self, curvature: Curvature) -> Preconditioner | WeightPreconditioner | None:
        """The preconditioner for a curvature."""
        if self.asked == "auto" and self.problem.operator.is_diagonal:
            return weight_preconditioner(self.problem, curvature)
        if self.space is not None and self._curvature is not curvature:
            with quiet_blas(2.0 * self.space.factor.size * self.space.rank * self._columns):
                self._preconditioner = Preconditioner(self.space, curvature, self.problem.strength)
            self._curvature = curvature
        return self._preconditioner
