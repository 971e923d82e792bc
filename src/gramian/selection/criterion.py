"""The cross-validation criterion and its exact gradient in all hyperparameters (Seeger §5, §6.3).

    Ψ(θ) = Σ_k Σ_{i held out in k} w_i loss(u_i^(k), y_i) / Σ w,     U^(k) = 𝒦 A^(k)

A^(k) minimises the training objective of fold k. With r the derivative of Ψ in the held-out latent values and W the
curvature of the training loss, implicit differentiation of the optimality condition gives

    (λI + W𝒦) F = λ r,        dΨ = Σ_k ⟨A^(k), d𝒦 F^(k)⟩.

The adjoint F is one more Newton system with the same operator. Its cost does not depend on the number of
hyperparameters; neither does ``operator.vjp``, which contracts A and F with all derivatives at once.

Cost: the products of a warm-started Newton solve for all folds in lockstep; for the adjoint two products and one more
for each CG step; one for the variances.

Deviates from the paper in

1. folds are columns of zero weights in one problem (see `folds`), so nothing is shuffled;
2. the system is solved by CG in the RKHS inner product and warm-started from the adjoint of the last evaluation;
3. Ψ is corrected for the inexact fit: the adjoint predicts the effect of the remaining residual ρ, ``−⟨F, ρ⟩_𝒦 / λ``.
   What is left is of second order, so a loose fit gives an accurate criterion, at no further product. A fit that ends
   too far from its optimum for that, by rounding or after too many steps, is judged as it is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gramian._core.arrays import (
    Array,
    asarray_like,
    float_sum,
    namespace,
    ratio,
    to_numpy,
)
from gramian._core.fused import inner
from gramian.losses.base import of_single_examples, weighted
from gramian.operators import Operator
from gramian.selection.folds import checked_mask
from gramian.solvers import Problem, newton
from gramian.solvers.rkhs.descend import State
from gramian.solvers.rkhs.newton_system import solve_newton_system
from gramian.solvers.rkhs.recorder import Recorder

MAX_STEPS = 30  # of Newton in the fits; more are wanted only where rounding errors are in the way
MAX_ADJOINT_STEPS = 500  # of conjugate gradients
TRUSTED = 0.05  # largest relative correction that is applied, if no larger one was allowed
FINEST_TOL = 1e-10  # relative gap below which fits are not refined further


class NoRoles(ValueError):
    """Folds that cannot be parted into some that drive and some that judge."""


class CrossValidationCriterion:
    """Mean held-out loss as a function of the log-parameters of the Gram operator, with its gradient.

    Parameters
    ----------
    problem : Problem
        The problem on all examples, with targets of shape (n, C).
    training : array of shape (n, n_folds)
        1 where an example trains, else 0; see `fold_masks`.
    held_out : array of shape (n, n_folds), default=None
        1 where an example is judged; None means all that do not train.

    Attributes
    ----------
    latent : array of shape (n, C, n_folds)
        Latent values of the last evaluation; those of held-out examples are predictions.
    n_products : int
        Products with the Gram operator in the last evaluation, each for all folds.
    judged : float
        Mean loss of the folds that do not drive, in the last evaluation; see `drive`.
    judged_losses : ndarray of shape (n_judged,) or None
        Losses of the examples that they judge by, where the loss is a sum over examples.
    judging_weights : ndarray of shape (n_judged,)
        Weights of these examples.
    warm_start : pair of arrays of shape (n, C, n_folds)
        Coefficients and adjoint of the last evaluation, from which the next one starts.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Squared
    >>> from gramian.operators import Dense
    >>> from gramian.selection import CrossValidationCriterion, fold_masks
    >>> from gramian.solvers import Problem
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> problem = Problem(Dense(RBF(0.3), X), Squared(), np.sin(9 * X), regularization=1e-3)
    >>> training, held_out = fold_masks(5, X, X[:, 0])
    >>> criterion = CrossValidationCriterion(problem, training, held_out)
    >>> value, gradient = criterion(np.log([0.3]))
    >>> step = np.array([1e-4])
    >>> ahead, behind = criterion(np.log([0.3]) + step)[0], criterion(np.log([0.3]) - step)[0]
    >>> bool(abs((ahead - behind) / 2e-4 - gradient[0]) < 1e-4 * abs(gradient[0]))
    True
    """

    def __init__(self, problem: Problem, training: Array, held_out: Array = None):
        if problem.shape[2] != 1:
            raise ValueError(
                f"problem must have targets of shape (n, C), got {problem.targets.shape}."
            )
        training = checked_mask("training", training, problem)
        held_out = 1 - training if held_out is None else checked_mask("held_out", held_out, problem)
        _check_folds(training, held_out)
        held_out = weighted(held_out, problem.weights)
        self.problem = problem
        self.total_weight = float(namespace(held_out).sum(held_out))
        if self.total_weight <= 0:
            raise ValueError("held_out must give weight to at least one example.")
        self._every = training, held_out
        self.drive(None)
        self.warm_start: tuple[Array, Array] = (None, None)
        self._sizes: Array = None  # of the variances of the outputs, in the last evaluation
        self.latent: Array = None
        self.n_products = 0
        self.n_folds = int(training.shape[1])

    def drive(self, folds: np.ndarray | None) -> None:
        """Let the value and the gradient be those of some folds, and `judged` the mean loss of the others.

        Examples that the others judge by take no part in folds that drive: a pair of examples, one that trains and one
        that is held out, would else count in both directions, and judges would approve of what was fitted to them.

        Parameters
        ----------
        folds : bool array of shape (n_folds,) or None
            None lets all of them drive.

        Raises
        ------
        NoRoles
            If all examples that are held out would judge, or none.
        """
        training, held_out = self._every
        xp, self.judged = namespace(held_out), np.nan
        self._trains, driving, self._judging, self.judged_losses = training, held_out, None, None
        if folds is not None:
            drives = asarray_like(np.asarray(folds, dtype=float), held_out)
            judging = held_out * (1 - drives)
            judges = xp.any(judging > 0, axis=1)[:, None] & (drives > 0)[None, :]
            self._trains = xp.where(judges, 0 * training, training)
            driving = xp.where(judges, 0 * held_out, held_out * drives)
            self._judging = judging / _positive(judging, "judge")
            weights = to_numpy(judging)
            self._judged_cells = [np.flatnonzero(column) for column in weights.T]
            self.judging_weights = weights.T[weights.T > 0]
        self._held_out = driving / _positive(driving, "drive the search")
        self._training = weighted(self._trains, self.problem.weights)

    def __call__(
        self, theta: np.ndarray, tol: float = 1e-10, accuracy: float = 0.05
    ) -> tuple[float, np.ndarray]:
        """Return the criterion and its gradient.

        Parameters
        ----------
        theta : array of shape (n_parameters,)
            Log-parameters of the operator.
        tol : float, default=1e-10
            Relative duality gap of the fits. The error of the value is of this order, that of the gradient of
            its root.
        accuracy : float, default=0.05
            Largest relative correction of the value for an inexact fit; above it the fit is refined, because the
            correction is of first order only.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_parameters,)
        """
        operator = self.problem.operator.clone_with_theta(theta)
        folds = replace(self.problem, operator=operator, weights=self._training)
        recorder = Recorder(folds, tol, MAX_ADJOINT_STEPS, None, patience=0)
        xp = namespace(folds.targets)
        start = self._start(operator)
        while True:
            solution = newton(folds, start=start, tol=tol, max_iter=MAX_STEPS)
            A = xp.reshape(solution.coefficients, folds.shape)
            U = xp.reshape(solution.latent, folds.shape)
            r = folds.loss.gradient(U, folds.targets, self._held_out)
            F, KF = self._solved_adjoint(recorder, U, r, tol)
            value = float_sum(folds.loss.value(U, folds.targets, self._held_out))
            correction = float_sum(inner(KF, folds.residual(A, U)) / folds.strength)
            recorder.n_products += solution.n_products
            start, self.warm_start, self.latent = A, (A, F), U
            if abs(correction) <= accuracy * abs(value) or tol <= FINEST_TOL:
                break
            if solution.status != "converged":  # rounding is in the way: no other tolerance helps
                break
            tol = max(FINEST_TOL, tol / 100)
        if self._judging is not None:
            self.judged = float_sum(folds.loss.value(U, folds.targets, self._judging))
            if folds.loss.separable:
                self.judged_losses = self._losses_of_judged(U)
        gradient = operator.vjp(A, F)
        self.n_products = recorder.n_products + 1
        doubtful = max(accuracy, TRUSTED) * abs(value) < abs(correction) < np.inf
        return value if doubtful else value - correction, gradient

    def _start(self, operator: Operator) -> Array | None:
        """Coefficients of the last evaluation; with a larger variance, smaller ones give about the same function."""
        before, A = self._sizes, self.warm_start[0]
        xp = namespace(self.problem.targets)
        self._sizes = xp.mean(operator.diagonal(self.problem.shape[1]), axis=0)
        if A is None or before is None:
            return A
        return A * xp.astype(before / self._sizes, A.dtype)[None, :, None]

    def combined_coefficients(self) -> Array:
        """Mean coefficients of each example over the folds it trains in, shape (n, C): a start on all of them."""
        xp = namespace(self._training)
        count = xp.sum(xp.astype(self._training > 0, self._training.dtype), axis=1)
        return xp.sum(self.warm_start[0], axis=2) / xp.clip(count, min=1)[:, None]

    def _losses_of_judged(self, U: Array) -> np.ndarray:
        loss, targets, losses = self.problem.loss, self.problem.targets, [np.empty(0)]
        for k, rows in enumerate(self._judged_cells):
            if rows.size:
                losses.append(of_single_examples(loss, U[:, :, k : k + 1], targets)[rows])
        return np.concatenate(losses)

    def _solved_adjoint(
        self, recorder: Recorder, U: Array, r: Array, tol: float
    ) -> tuple[Array, Array]:
        """F and 𝒦F; where an example does not train, F is r."""
        folds = recorder.problem
        xp = namespace(U)
        strength = folds.spread(folds.strength)
        trains = self._training[:, None, :] > 0
        before = self.warm_start[1]
        F = r if before is None else xp.where(trains, before, r)
        curvature = folds.curvature(U)
        KF = recorder.product(F)
        rho = strength * (F - r) + curvature.apply(KF)
        K_rho = recorder.product(rho)
        # residual ≤ √tol ‖λF‖ makes the error of F as small as that of the fit at this tolerance
        size = folds.strength**2 * inner(F, KF)
        norm = inner(rho, K_rho)
        relative = xp.sqrt(
            ratio(tol * xp.abs(size), norm, norm > 0)
        )  # rounding may leave it below zero
        state = State(F, KF, rho, K_rho, xp.zeros_like(norm), done=norm <= 0, fresh=True)
        s, Ks = solve_newton_system(recorder, curvature, state, relative, MAX_ADJOINT_STEPS)
        return F + s, KF + Ks


def _positive(held_out: Array, role: str) -> float:
    total = float(namespace(held_out).sum(held_out))
    if total <= 0:
        raise NoRoles(
            f"cv leaves no examples to {role}: what folds have to approve of needs two folds or more that hold out "
            "different examples. Use cv=5."
        )
    return total


def _check_folds(training: Array, held_out: Array) -> None:
    xp = namespace(training)
    if training.shape != held_out.shape:
        raise ValueError(
            f"training and held_out must have one shape, got {tuple(training.shape)} and {tuple(held_out.shape)}."
        )
    if bool(xp.any((training > 0) & (held_out > 0))):
        raise ValueError("An example must not both train and be held out in one fold.")
    if not bool(xp.all(xp.any(training > 0, axis=0))):
        raise ValueError("training must keep at least one example in every fold.")
