"""A diagonal preconditioner, for problems in weights of features, whose operator is diagonal.

    P = λ (λI + D𝒦)⁻¹,    D about the diagonal of the curvature,  𝒦 diagonal

is self-adjoint and positive in ``⟨x, y⟩_𝒦``, because everything commutes. Counts of words differ by orders of magnitude
(Zipf), and so do the curvatures of their weights; dividing by them is most of what there is to gain. Cost: O(d C).
"""

from __future__ import annotations

import numpy as np

from gramian.losses import Curvature
from gramian.solvers.rkhs.problem import Problem


class DiagonalPreconditioner:
    """P for one curvature; see the header.

    Parameters
    ----------
    diagonal : ndarray of shape (n, C, q)
        D.
    problem : Problem
        With a diagonal operator.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import Identity
    >>> from gramian.losses import Logistic
    >>> from gramian.operators import Weights
    >>> from gramian.solvers import Problem
    >>> like = np.zeros((1, 1))
    >>> problem = Problem(Weights(2.0, Identity(), 1, like), Logistic(), like, regularization=1.0)
    >>> P = DiagonalPreconditioner(np.ones((1, 1, 1)), problem)
    >>> [part.item() for part in P.apply(np.full((1, 1, 1), 3.0), np.full((1, 1, 1), 6.0))]
    [1.0, 2.0]
    """

    def __init__(self, diagonal: np.ndarray, problem: Problem):
        own = np.asarray(problem.operator.diagonal(problem.shape[1]))[:, :, None]
        self._share = problem.strength / (problem.strength + diagonal * own)

    def apply(self, r: np.ndarray, Kr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P r and 𝒦 P r."""
        return self._share * r, self._share * Kr


def diagonal_preconditioner(
    problem: Problem, curvature: Curvature
) -> DiagonalPreconditioner | None:
    """Return the preconditioner of a problem with a diagonal operator, if its curvature knows a diagonal."""
    diagonal = curvature.jacobi() if problem.operator.is_diagonal else None
    return None if diagonal is None else DiagonalPreconditioner(diagonal, problem)
