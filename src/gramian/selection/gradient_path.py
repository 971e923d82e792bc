"""A path along the gradient of a criterion, for folds that judge to choose from.

    θ ← θ − step,     a step of log-parameters has the length share √size, one of others share ‖θ‖

in the direction of the gradient of each of the two kinds. Points are evenly spaced on a logarithmic scale, and none is
left out: a line search would leap over what judges are looking for, and evaluate points that it does not keep. Where
the value rises, the path goes back and takes half the share.

Cost: one evaluation for each step. It is no way to a minimum; it ends when judges have not approved for a while.
"""

from __future__ import annotations

import contextlib

import numpy as np

from gramian.selection.descent import LOOSEST_TOL, Criterion, Descent, Evaluation, Stop

PATH_PATIENCE = (
    2  # evaluations without a better one for the folds that judge, after which a path ends
)
LEAST_SHARE = 0.02  # below which it has come to its end


class GradientPath(Descent):
    """A descent by small steps along the gradient; parameters as for `Descent`."""

    def follow(
        self,
        criterion: Criterion,
        n_samples: int,
        theta: np.ndarray,
        logs: np.ndarray,
        share: float,
    ) -> tuple[np.ndarray, str, bool]:
        """Follow the gradient from theta, of which ``logs`` says what are log-parameters.

        Returns what `minimise` returns.
        """
        self._begin(criterion, n_samples, theta, None)
        self.patience = PATH_PATIENCE
        best: Evaluation | None = None
        with contextlib.suppress(Stop):
            while share > LEAST_SHARE:
                self.tol = LOOSEST_TOL
                row = self._evaluated(theta)
                if best is None or row.loss < best.loss:
                    best = row
                    self.accepted.add(len(self.rows) - 1)
                else:
                    share /= 2
                step = np.zeros_like(theta)
                for part, size in (
                    (self.free & logs, np.sqrt(np.sum(self.free & logs))),
                    (self.free & ~logs, np.linalg.norm(best.theta[self.free & ~logs])),
                ):
                    slope = best.gradient[part]
                    step[part] = share * size * slope / (np.linalg.norm(slope) or 1.0)
                theta = np.clip(best.theta - step, *self.bounds.T)
        self.theta = self._best().theta
        if share > LEAST_SHARE:
            message, converged = self._cut_short(0.0)
            return self.theta, message, converged
        return self.theta, "no step along the gradient lowers the loss", True
