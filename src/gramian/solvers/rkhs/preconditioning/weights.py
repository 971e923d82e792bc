"""Preconditioners of problems in weights of features, whose operator 𝒦 is diagonal.

    P = λ (λI + H𝒦)⁻¹,     H about the curvature of the weights

is self-adjoint and positive in ``⟨x, y⟩_𝒦``: ``𝒦P = λ (λ𝒦⁻¹ + H)⁻¹`` is symmetric. H is

* its diagonal for sparse features: counts of words differ by orders of magnitude (Zipf), and so do the curvatures of
  their weights; dividing by them is most of what there is to gain. Cost: O(d C);
* ``Φᵀ diag(w) Φ`` for few features (dense ones, or those of a low-rank operator), with the curvature of each example
  averaged over outputs, so that one factor serves them all; and the diagonal for rows that depend on no features.
  Cost: n d² / 2 multiplications and d³ / 6 for each new curvature, d² C for each application.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from gramian._core.threads import quiet_blas
from gramian.losses import Curvature
from gramian.solvers.rkhs.problem import Problem

GRAM_PRODUCTS = 25  # that a matrix H may cost in flops, of which BLAS needs half


class WeightPreconditioner:
    """P for one curvature; see the header.

    Parameters
    ----------
    problem : Problem
        With a diagonal operator.
    diagonal : ndarray of shape (n, C, q)
        Of H.
    gram : ndarray of shape (m, m) or None
        H of the first rows, for all outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Identity
    >>> from gramian.losses import Logistic
    >>> from gramian.operators import Weights
    >>> from gramian.solvers import Problem
    >>> like = np.zeros((1, 1))
    >>> problem = Problem(Weights(2.0, Identity(), 1, like), Logistic(), like, regularization=1.0)
    >>> r, Kr = np.full((1, 1, 1), 3.0), np.full((1, 1, 1), 6.0)
    >>> for gram in (None, np.ones((1, 1))):
    ...     P = WeightPreconditioner(problem, np.ones((1, 1, 1)), gram)
    ...     [round(part.item(), 9) for part in P.apply(r, Kr)]
    [1.0, 2.0]
    [1.0, 2.0]
    """

    def __init__(self, problem: Problem, diagonal: np.ndarray, gram: np.ndarray | None):
        own = np.asarray(problem.operator.diagonal(problem.shape[1]), dtype=np.float64)
        self._share = problem.strength / (problem.strength + diagonal * own[:, :, None])
        self._factor: Any = None
        if gram is None:
            return
        self._own, strength = own[: len(gram), 0], float(problem.strength[0])
        system = gram / strength
        system[np.diag_indices_from(system)] += 1 / self._own
        with contextlib.suppress(LinAlgError):  # rounding leaves no factor: the diagonal remains
            self._factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)

    def apply(self, r: np.ndarray, Kr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P r and 𝒦 P r."""
        Pr, KPr = self._share * r, self._share * Kr
        if self._factor is not None:
            m = self._own.size
            flat = r[:m].reshape(m, -1)
            solved = cho_solve(self._factor, flat, check_finite=False).reshape(r[:m].shape)
            Pr[:m], KPr[:m] = solved / self._own[:, None, None], solved
        return Pr, KPr


def weight_preconditioner(problem: Problem, curvature: Curvature) -> WeightPreconditioner | None:
    """Return the preconditioner of a problem with a diagonal operator, if its curvature knows a diagonal."""
    diagonal = curvature.jacobi() if problem.operator.is_diagonal else None
    if diagonal is None:
        return None
    return WeightPreconditioner(problem, np.asarray(diagonal), _gram(problem, curvature))


def _gram(problem: Problem, curvature: Any) -> np.ndarray | None:
    """H of the weights of features, if these are few and all outputs have the same prior."""
    n, n_outputs, q = problem.shape
    own = np.asarray(problem.operator.diagonal(n_outputs))
    alike = not np.any(own[:, :1] - own) and np.all(own > 0)
    m = getattr(getattr(curvature, "map", None), "n_weights", n)
    if q > 1 or not alike or m > 4 * GRAM_PRODUCTS * n_outputs:
        return None
    with quiet_blas(float(m) ** 3):
        return curvature.gram()
