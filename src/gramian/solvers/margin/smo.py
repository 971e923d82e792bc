"""Sequential minimal optimisation of margin problems: two coefficients of one label at a time.

    maximise over A    D(A) = Σ_il m_il α_il − ½ ⟨A, K A R⟩,      0 ≤ α_il = y_il a_il ≤ c_il

The kernelised M3L of Hariharan, Vishwanathan & Varma (2012), eqs. 26–36 and their appendix A. In signed coefficients A
the gradient is G = y∘m − U, and A is optimal iff no coefficient can follow its gradient: g ≤ 0 at its upper bound,
g ≥ 0 at its lower one, g = 0 between. The label with the largest violation is visited. A step takes its largest
violation p, and the q with which both together would gain most if there were no box (eq. 30),

    (g_p² K_qq + g_q² K_pp − 2 g_p g_q K_pq) / (2 R_ll (K_pp K_qq − K_pq²)),

and maximises D over both exactly. During a visit only the gradient of its label is kept up to date; what the others
have to hear is gathered in u = Σ_i K_i δ_i and told once, at its end: G_k ← G_k − R_kl u (eqs. 34–36). A visit takes L
steps, so this costs no more than the steps themselves: O(n) for a coefficient and not O(n L).

Cost
    2n multiply-adds and n kernel values, seldom new ones, for each of two coefficients; n L for a visit.

Differences from the paper
    - The box is searched without the cases of Algorithm 2: the maximum without a box if it is inside, else the best of
      its four edges.
    - A pair of nearly equal directions (K_pq² close to K_pp K_qq) is not taken: its gain is all rounding.
    - Shrinking, by LIBSVM's rule: during a visit, points at a bound whose gradient points outwards by more than the
      largest violation are passed over. As u brings all gradients up to date at its end, nothing has to be restored.
    - A visit ends early where the violation has fallen to `VISIT_END` of what it was, since the other labels will
      change the gradient again, and may take `MIN_STEPS` where L is less.
    - Stops on the duality gap; a violation that is zero up to rounding ends the search, too.
    - Rows come from `GramRows`: the stored matrix, or a cache that all labels share.
"""

from __future__ import annotations

import math

import numpy as np

from gramian.operators.inputs.gram_rows import GramRows
from gramian.solvers.margin import smo_loops as loops
from gramian.solvers.margin.ascent import Ascent
from gramian.solvers.margin.problem import MarginProblem, certificate
from gramian.solvers.solution import Callback, Solution

# With few labels a visit of L steps would spend its time on telling the others: with 10 labels of 2000 rows, visits of
# 32 steps need 18 % fewer multiply-adds than visits of 10, visits of 64 steps 20 or 21 %.
MIN_STEPS = 32
# Fewer multiply-adds than without it for 80 labels: a third for 300 rows, 6 % for 1000.
VISIT_END = 0.1


def smo(
    problem: MarginProblem,
    *,
    start: np.ndarray | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Solve a margin problem by steps in two coefficients of one label.

    Parameters
    ----------
    problem : MarginProblem
        Its inputs are `GramRows`.
    start : ndarray of shape (n, L), default=None
        Coefficients to begin with, which are clipped into their box; None is zero.
    tol : float, default=1e-4
        Relative duality gap to reach.
    max_iter : int, default=None
        An iteration is n steps, which ends with a certificate. None is 1000 L.
    callback : callable, default=None
        Called with `Progress` after each iteration; returns True to stop.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.operators import GramRows
    >>> from gramian.solvers import MarginProblem, smo
    >>> X = np.array([[1.0, 2.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> signs = np.array([[1, -1], [-1, -1], [-1, 1]], dtype=np.int8)
    >>> rows = GramRows(RBF(1.0), X, 1.0)
    >>> smo(MarginProblem(rows, signs, np.array([[1.0, -0.5], [-0.5, 1.0]])), tol=1e-9).status
    'converged'
    """
    return _SMO(problem, start, tol).solve(max_iter, callback)


class _SMO(Ascent):
    """Gradients G of all labels, and the steps that change them. A sweep is n steps."""

    solver = "smo"
    inputs = GramRows

    def prepare(self) -> None:
        problem, (n_labels, _) = self.problem, self.A.shape
        self.max_sweeps = 1000 * n_labels
        self.patience = 50 * max(1, n_labels)  # the gap falls label by label
        self.target, self.lower, self.upper = problem.boxes()
        self.ridge = problem.ridge()
        self.G = self.target.copy()
        self.rise = (self.A < self.upper).astype(np.int8)
        self.fall = (self.A > self.lower).astype(np.int8)
        self.violation = self._violations()
        self.n_correlated = np.count_nonzero(self.R, axis=0)
        self.diagonal = problem.inputs.diagonal()
        # below that the determinant of a pair is rounding
        self.parallel = math.sqrt(np.finfo(problem.inputs.dtype).eps)

    def refresh(self) -> None:
        self.G[:] = self.target - self.problem.latent(self.A.T).T
        if self.problem.squared:
            self.G -= self.ridge * self.A
        self.rise[:], self.fall[:] = self.A < self.upper, self.A > self.lower
        self.violation = self._violations()

    def _violations(self) -> np.ndarray:
        """The largest violation of each label."""
        violations = np.maximum(self.rise * self.G, -self.fall * self.G)
        return violations.max(axis=1, initial=0.0)

    def values(self) -> tuple[float, np.ndarray, float]:
        U = self.target - self.G
        if self.problem.squared:
            U -= self.ridge * self.A
        # how large a gradient may be by rounding alone
        terms = sum(np.abs(part).max(initial=0.0) for part in (self.target, U))
        self.rounding = 4 * np.finfo(np.float64).eps * float(terms)
        return certificate(self.target, self.lower, self.upper, self.ridge, self.A, U)

    def sweep(self, objective: float, gaps: np.ndarray) -> None:
        taken = 0
        while taken < self.A.shape[1]:
            steps = self._visit(int(np.argmax(self.violation)))
            if not steps:
                break
            taken += steps
        self.moved = taken > 0

    def _visit(self, label: int) -> int:
        """Take steps in one label and tell the others; return how many there were."""
        rows, g = self.problem.inputs, self.G[label].copy()
        rise, fall = self.rise[label], self.fall[label]
        variance, ridge = float(self.R[label, label]), self.ridge[label]
        before = self.A[label].copy() if ridge.size else None
        visit = loops.Visit(
            a=self.A[label],
            lower=self.lower[label],
            upper=self.upper[label],
            rise=rise,
            fall=fall,
            g=g,
            u=np.zeros_like(g),
            active=loops.active_points(g, rise, fall, self.violation[label]),
            # a ridge is one more entry of the diagonal of R_ll K
            diagonal=self.diagonal + ridge / variance if ridge.size else self.diagonal,
            ridge=ridge,
            variance=variance,
            parallel=self.parallel,
            floor=max(self.rounding, VISIT_END * float(self.violation[label])),
        )
        limit = max(MIN_STEPS, len(self.A))
        if rows.matrix is None:
            steps, changed = loops.steps_by_rows(rows, visit, limit)
        else:
            steps, changed = loops.steps_by_matrix(rows.matrix, visit, limit)
        if steps:
            if before is not None:
                self.G[label] -= ridge * (self.A[label] - before)
            loops.tell(self.G, self.rise, self.fall, self.R[label], visit.u, self.violation)
            self.operations += changed * (g.size + visit.active.size)
            self.operations += g.size * self.n_correlated[label]
        return steps
