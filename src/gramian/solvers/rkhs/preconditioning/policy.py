"""When a preconditioner pays: it is bought when the products already spent would have paid for it many times.

Nobody knows before how many products a solver will need. So it starts without; when it has spent `PATIENCE` times
what a coarse space of m functions costs (columns, factor, and what it takes in the steps to come), and the gap
falls so slowly that `PROSPECT` times its cost is still to come, the space is built. It is used if the trace of what
it leaves of 𝒦 is small enough against λ, otherwise one that promises to leave little enough is tried when that has
become affordable. So little is lost where it is no use, and a hard problem soon gets what it needs.

Costs are counted in flops (`InputOperator.work`), not measured: a fit gives the same numbers each time. Factors take
at most half of scikit-learn's ``working_memory``.

Operators of low rank know all their functions (`feature_space`): these are used from the start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._core.arrays import is_numpy
from gramian._core.memory import working_memory
from gramian._core.threads import quiet_blas
from gramian.losses import Curvature
from gramian.solvers.rkhs.preconditioning.coarse_space import (
    CoarseSpace,
    coarse_parts,
    coarse_space,
    eigenvectors,
)
from gramian.solvers.rkhs.preconditioning.feature_space import FeatureSpace, feature_space
from gramian.solvers.rkhs.preconditioning.preconditioner import Preconditioner
from gramian.solvers.rkhs.problem import Problem
from gramian.solvers.rkhs.recorder import Recorder

__all__ = ["Preconditioning"]

PATIENCE, PROSPECT = 4, 2  # products spent and products to come, in prices of a space
CAUTION = 2  # times that, after a space that was no use
SMALLEST, GROWTH = 64, 3  # first rank, and factor to the next
LARGEST = 2  # the rank is at most n / LARGEST
# A coarse space of m functions that leaves more of 𝒦 than LEFT m λ makes a slow problem slower: its complement is
# then as ill-conditioned as 𝒦, and no longer dominated by few directions. (The largest eigenvalue left is some
# left / m.) Measured at n = 2000: 2 saves two thirds of the products and more, 6 half of them, 15 some, 60 costs more.
# FEW λ is enough.
LEFT, FEW = 6.0, 5.0
# Where rank m leaves t of the trace and m/2 leaves h, rank m' leaves some t (m / m')^a, a = FASTER log₂(h / t): smooth
# kernels fall faster than a power. Normal data in three dimensions: 312, 30, 0.015 predicted, 327, 19, 0.009 found.
FASTER = 2
OVERHEAD, EACH = 5e8, 1e7  # flops of the calls to build a space, and for each of its functions
STEPS = 6  # Newton steps to come
WITHIN = 8  # steps within the space for each step of CG, where outputs are coupled
DEAREST = 4  # products that applying a preconditioner may cost: it saves most of them
# λ relative to the trace of 𝒦 (a bound of its norm) below which 𝒦Pr, of the size of λ / norm, drowns in the rounding
# of 𝒦r.
ROUNDING = 100 * float(np.finfo(np.float64).eps)


class Preconditioning:
    """The coarse space of a solve: none at first, larger ones as they become worth it.

    Parameters
    ----------
    problem : Problem
    asked : {"auto"}, int or None
        A number is a rank from the start, None is never.
    usable : bool, default=True
        Whether the solver can use one for this problem.
    """

    def __init__(self, problem: Problem, asked: Any, *, usable: bool = True):
        whole = isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 1
        if asked is not None and not whole and not (isinstance(asked, str) and asked == "auto"):
            raise ValueError(
                f"preconditioner must be 'auto', None or a rank of at least 1, got {asked!r}."
            )
        self.problem = problem
        self.space: CoarseSpace | FeatureSpace | None = None
        self._preconditioner: Preconditioner | None = None
        self._curvature: Curvature | None = None
        self._price, self._next = np.inf, 0
        _, n_outputs, q = problem.shape
        usable = usable and problem.loss.separable and is_numpy(problem.targets)
        # columns of weights are folds: an active set would give coefficients to examples held out in some
        usable = usable and (problem.weights is None or problem.weights.ndim == 1)
        if asked is None or not usable:
            return
        parts = coarse_parts(problem.operator, n_outputs)
        if parts is None:
            return
        trace = float(np.max(np.sum(problem.operator.diagonal(n_outputs), axis=0)))
        if not float(np.min(problem.strength)) > ROUNDING * trace:
            return
        matrix, S, _ = parts
        self._product, self._column = matrix.work(n_outputs * q), matrix.column_work
        self._columns = n_outputs * q
        curvature = problem.curvature(problem.start(None))
        mixing = eigenvectors(S)[1] is not None
        self._coupled = curvature.coupled or (mixing and not problem.loss.quadratic)
        # weights that have a matrix of their own in each Newton step
        self._weights = (
            q if curvature.coupled or mixing or problem.loss.quadratic else n_outputs * q
        )
        budget = working_memory() / 2
        self._most = min(problem.shape[0] // LARGEST, int(budget / (8 * problem.shape[0])))
        self.space = feature_space(problem.operator, n_outputs)
        if self.space is not None:
            return
        if whole:
            self.space = coarse_space(
                problem.operator, n_outputs, int(asked), weights=problem.weights
            )
        else:
            self._next = SMALLEST
            self._price = self._cost(SMALLEST)

    def _cost(self, rank: int) -> float:
        """Of building a space and using it in the Newton steps to come, in products; infinite if it is no use."""
        n, k = self.problem.shape[0], self._columns
        steps = 1 if self.problem.loss.quadratic else STEPS
        build = OVERHEAD + EACH * rank + n * rank * (self._column + 6 * rank) + 3.0 * rank**3
        refresh = steps * (2.5 * n * rank**2 + 2.0 * rank**3 + 2e7) * self._weights
        use = (4.0 * n * rank + 2.0 * rank**2) * k * (WITHIN if self._coupled else 1)
        if rank > self._most or use > DEAREST * self._product:
            return np.inf
        return (build + refresh) / self._product

    def _larger(self, rank: int) -> int:
        """The rank to try after this one; beyond what is allowed if there is none."""
        return min(GROWTH * rank, self._most) if 5 * rank < 4 * self._most else self._most + 1

    def _promising(self, space: CoarseSpace, unit: float) -> int:
        """The next rank that promises to leave little enough, or the largest."""
        tail = space.factor[:, space.rank // 2 :]
        half = space.left + space.variances.max() * np.einsum("ij,ij->", tail, tail)
        decay, rank = FASTER * np.log2(half / space.left), self._larger(space.rank)
        while (
            space.left * (space.rank / rank) ** decay > LEFT * unit * rank
            and self._larger(rank) <= self._most
        ):
            rank = self._larger(rank)
        return rank

    def grown(self, recorder: Recorder, curvature: Curvature) -> bool:
        """Build what has become affordable; say whether there is a new space."""
        spent = recorder.n_products
        if spent < PATIENCE * self._price:
            return False
        budget = min(spent / PATIENCE, recorder.remaining() / PROSPECT)
        if budget < self._price:
            return False
        rank = self._next
        while budget >= self._cost(self._larger(rank)):
            rank = self._larger(rank)
        strength = float(np.min(self.problem.strength))
        bend = float(np.max(curvature.diagonal, initial=0.0))
        problem = self.problem
        unit = strength / bend if bend > 0 else 0.0
        enough = FEW * unit
        with quiet_blas(6.0 * problem.shape[0] * rank**2):
            space = coarse_space(
                problem.operator, problem.shape[1], rank, enough=enough, weights=problem.weights
            )
        if space is None or space.left <= enough:
            self._price = np.inf  # nothing to gain from a larger one
        else:
            self._next = self._promising(space, unit)
            self._price = self._cost(self._next)
        if space is None or space.left > LEFT * unit * space.rank:
            self._price *= CAUTION
            return False
        self.space, self._curvature = space, None
        return True

    def at(self, curvature: Curvature) -> Preconditioner | None:
        """The preconditioner for a curvature."""
        if self.space is None:
            return None
        if self._curvature is not curvature:
            with quiet_blas(2.0 * self.space.factor.size * self.space.rank * self._columns):
                self._preconditioner = Preconditioner(self.space, curvature, self.problem.strength)
            self._curvature = curvature
        return self._preconditioner
