"""Preconditioners of problems in weights of features, whose operator 𝒦 is diagonal.

    P = λ (λI + H𝒦)⁻¹,     H about the curvature of the weights

is self-adjoint and positive in ``⟨x, y⟩_𝒦``: ``𝒦P = λ (λ𝒦⁻¹ + H)⁻¹`` is symmetric. H is

* its diagonal for sparse features: counts of words differ by orders of magnitude (Zipf), and so do the curvatures of
  their weights; dividing by them is most of what there is to gain. Cost: O(d C);
* ``Φᵀ diag(w_c) Φ`` for each output c, if features are few (dense ones, or those of a low-rank operator), with the
  curvature w of the examples; and the diagonal for rows that depend on no features. One matrix for all outputs, with
  their average, takes twice the steps: each output is in doubt about other examples. Most examples are in doubt about
  no output, and those that count little are taken in proportion to what they count (`losses.features.thinned`).
  Cost: n d² / 2 multiplications and C d³ / 6 for each new curvature, d² C for each application.

For chains ``λ Z (Zᵀ (λ𝒦⁻¹ + H) Z)⁻¹ Zᵀ`` is added to 𝒦P, where Z are sums of transitions and intercepts that about
cancel (`losses.chain.sums`): there the parts of H overestimate the curvature most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from gramian._core.arrays import itemsize
from gramian._core.memory import working_memory
from gramian._core.threads import quiet_blas
from gramian.losses import Curvature
from gramian.losses.features import FeatureCurvature
from gramian.solvers.rkhs.problem import Problem

GRAM_PRODUCTS = 25  # that matrices H may cost in flops, of which BLAS needs half


class WeightPreconditioner:
    """P for one curvature; see the header.

    Parameters
    ----------
    problem : Problem
        With a diagonal operator.
    diagonal : ndarray of shape (n, C, q)
        Of H.
    grams : iterable of ndarray of shape (m, m) or None, default=()
        H of the first rows, one for each output, or one for all of them; none where the diagonal is used.
    sums : pair of sparse array of shape (rows C, k) and ndarray of shape (k, k), default=None
        Z on the last rows, and ``Zᵀ H Z``.

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
    >>> for grams in ([], [np.ones((1, 1))]):
    ...     P = WeightPreconditioner(problem, np.ones((1, 1, 1)), grams)
    ...     [round(part.item(), 9) for part in P.apply(r, Kr)]
    [1.0, 2.0]
    [1.0, 2.0]
    """

    def __init__(
        self,
        problem: Problem,
        diagonal: np.ndarray,
        grams: Iterable[np.ndarray | None] = (),
        sums: tuple[Any, np.ndarray] | None = None,
    ):
        own = np.asarray(problem.operator.diagonal(problem.shape[1]), dtype=np.float64)
        self._share = problem.strength / (problem.strength + diagonal * own[:, :, None])
        self._own, strength = own, float(problem.strength[0])
        parts = [gram for gram in grams if gram is not None]
        outputs = [slice(None)] if len(parts) == 1 else [slice(c, c + 1) for c in range(len(parts))]
        self._factors = [
            (columns, _factor(gram, strength, own[: len(gram), columns.start or 0]))
            for columns, gram in zip(outputs, parts, strict=True)
        ]
        self._sums = None
        if sums is not None:
            Z, H = sums
            last = len(own) - Z.shape[0] // own.shape[1]
            prior = (Z.T @ Z.multiply(1 / own[last:].reshape(-1, 1))).toarray()
            self._sums = Z, _cholesky(H / strength + prior), last

    def apply(self, r: np.ndarray, Kr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P r and 𝒦 P r."""
        Pr, KPr = self._share * r, self._share * Kr
        for outputs, factor in self._factors:
            if factor is not None:
                m = len(factor)
                right = r[:m, outputs, 0].astype(factor.dtype)
                solved = cho_solve((factor, True), right, check_finite=False)
                Pr[:m, outputs, 0], KPr[:m, outputs, 0] = solved / self._own[:m, outputs], solved
        if self._sums is not None and self._sums[1] is not None:
            Z, factor, last = self._sums
            right = Z.T @ r[last:].reshape(Z.shape[0], -1)
            added = Z @ cho_solve((factor, True), right, check_finite=False)
            added = added.reshape(r[last:].shape)
            Pr[last:] += added / self._own[last:, :, None]
            KPr[last:] += added
        return Pr, KPr


def _factor(gram: np.ndarray, strength: float, own: np.ndarray) -> np.ndarray | None:
    """Lower Cholesky factor of ``𝒦⁻¹ + H/λ``, in the place of H."""
    gram /= strength
    gram[np.diag_indices_from(gram)] += 1 / own
    return _cholesky(gram)


def _cholesky(system: np.ndarray) -> np.ndarray | None:
    """Lower Cholesky factor; None if rounding leaves none, so that the diagonal remains."""
    try:
        return cho_factor(system, lower=True, overwrite_a=True, check_finite=False)[0]
    except LinAlgError:
        return None


def weight_preconditioner(problem: Problem, curvature: Curvature) -> WeightPreconditioner | None:
    """Return the preconditioner of a problem with a diagonal operator, if its curvature knows a diagonal."""
    diagonal = curvature.jacobi() if problem.operator.is_diagonal else None
    if diagonal is None:
        return None
    own = np.asarray(problem.operator.diagonal(problem.shape[1]))
    if problem.shape[2] > 1 or not isinstance(curvature, FeatureCurvature) or not np.all(own > 0):
        return WeightPreconditioner(problem, np.asarray(diagonal))
    grams, m = _grams(curvature, own), curvature.map.n_weights
    with quiet_blas(float(m) ** 3 if grams else 0.0):
        return WeightPreconditioner(problem, np.asarray(diagonal), grams, curvature.sums())


def _grams(curvature: FeatureCurvature, own: np.ndarray) -> Iterable[np.ndarray | None]:
    """H of each output, or their average where these take too much memory; none where features are many."""
    m, n_outputs = curvature.map.n_weights, own.shape[1]
    if m > 4 * GRAM_PRODUCTS * n_outputs:
        return ()
    if n_outputs * itemsize(curvature.map.features) * float(m) ** 2 <= working_memory():
        return curvature.grams()
    return () if np.any(own[:, :1] - own) else (curvature.average_gram(),)
