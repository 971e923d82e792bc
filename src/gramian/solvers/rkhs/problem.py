"""The one optimisation problem all solvers share.

    minimise over A    P(A) = Σ_i w_i loss(u_i, y_i) + (λ/2) ⟨A, 𝒦A⟩,      U = 𝒦A

The gradient in A is ``𝒦ρ`` with the residual ``ρ = ∇L(U) + λA``, so ρ = 0 is optimal. The dual is
``D(G) = −L*(G) − ⟨G, 𝒦G⟩ / (2λ)``; at ``G = ∇L(U)`` Young's inequality is an equality and

    P(A) − D(∇L(U)) = ⟨ρ, 𝒦ρ⟩ / (2λ).

The squared residual in the RKHS norm is therefore a duality gap, for every convex differentiable
loss: it bounds ``P(A) − P*`` from above, and ``‖f − f*‖ ≤ √(2 gap / λ)``. For the squared loss D is
the lower bound quadratic of regularised least squares (Gibbs; Ratliff & Bagnell §4).

Arrays are kept as ``(n, C, q)``: q independent problems in lockstep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramian._core.arrays import Array, asarray_like, device_of, in_float64, namespace
from gramian._core.fused import inner
from gramian.losses import Loss
from gramian.operators import Operator


@dataclass(frozen=True, eq=False)
class Problem:
    """Loss, Gram operator and data of one minimisation, or of q of them in lockstep.

    Parameters
    ----------
    operator : Operator
        𝒦, of shape (n, n).
    loss : Loss
    targets : array of shape (n, C) or (n, C, q)
        Of the array library and dtype that the coefficients shall have.
    regularization : float or array of shape (q,), default=1.0
        λ > 0.
    weights : array of shape (n,) or (n, q), default=None
        Weights ≥ 0 of the examples. A zero takes an example out: folds are columns of zeros and
        ones.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF
    >>> from gramian.losses import Squared
    >>> from gramian.operators import Dense
    >>> from gramian.solvers import Problem, newton
    >>> X = np.linspace(0, 1, 5)[:, None]
    >>> problem = Problem(Dense(RBF(), X), Squared(), np.sin(3 * X), regularization=0.1)
    >>> solution = newton(problem, tol=1e-10)
    >>> solution.status
    'converged'
    """

    operator: Operator
    loss: Loss
    targets: Array
    regularization: Any = 1.0
    weights: Array | None = None
    strength: Array = field(init=False, repr=False)  # λ as a float64 array of shape (q,)

    def __post_init__(self) -> None:
        targets, weights, n = self.targets, self.weights, self.operator.shape[0]
        if targets.ndim not in (2, 3) or targets.shape[0] != n:
            raise ValueError(
                f"targets must have shape ({n}, C) or ({n}, C, q), got {targets.shape}."
            )
        strength = np.atleast_1d(np.asarray(self.regularization, dtype=float))
        if strength.ndim != 1 or not np.all(np.isfinite(strength)) or np.any(strength <= 0):
            raise ValueError(
                f"regularization must be positive and finite, got {self.regularization!r}."
            )
        sizes = {strength.size, *map(int, targets.shape[2:])}
        if weights is not None:
            if weights.ndim not in (1, 2) or weights.shape[0] != n:
                raise ValueError(
                    f"weights must have shape ({n},) or ({n}, q), got {weights.shape}."
                )
            sizes.update(map(int, weights.shape[1:]))
            weights = asarray_like(
                weights, targets
            )  # float64 must not promote float32 coefficients
            if bool(namespace(weights).any(weights < 0)):
                raise ValueError("weights must not be negative.")
        if len(sizes - {1}) > 1:
            raise ValueError(
                f"targets, regularization and weights disagree about q: {sorted(sizes)}."
            )
        set_field = object.__setattr__  # the dataclass is frozen
        set_field(self, "weights", weights)
        set_field(self, "targets", targets if targets.ndim == 3 else targets[:, :, None])
        full = np.broadcast_to(strength, (max(sizes),)).copy()
        set_field(self, "strength", in_float64(full, targets))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape (n, C, q) of the coefficients."""
        n, n_outputs, _ = self.targets.shape
        return int(n), int(n_outputs), int(self.strength.shape[0])

    def spread(self, values: Array) -> Array:
        """Shape (q,) values, in the dtype of the problem, so that they multiply (n, C, q) arrays."""
        xp = namespace(self.targets)
        return xp.reshape(xp.astype(values, self.targets.dtype), (1, 1, -1))

    def start(self, coefficients: Array | None) -> Array:
        """Return a starting point as an (n, C, q) array; zeros by default."""
        xp = namespace(self.targets)
        if coefficients is None:
            return xp.zeros(self.shape, dtype=self.targets.dtype, device=device_of(self.targets))
        A = asarray_like(coefficients, self.targets)
        A = A if A.ndim == 3 else A[:, :, None]
        if tuple(A.shape) != self.shape:
            raise ValueError(f"start must have shape {self.shape}, got {tuple(A.shape)}.")
        return xp.asarray(A, copy=True)

    def objective(self, A: Array, U: Array) -> Array:
        """P for each column, shape (q,), float64."""
        loss = self.loss.value(U, self.targets, self.weights)
        return loss + 0.5 * self.strength * inner(A, U)

    def residual(self, A: Array, U: Array) -> Array:
        """ρ = ∇L(U) + λA."""
        gradient = self.loss.gradient(U, self.targets, self.weights)
        return gradient + self.spread(self.strength) * A

    def curvature(self, U: Array) -> Any:
        """The Hessian W of the loss at U."""
        return self.loss.curvature(U, self.targets, self.weights)

    def gap(self, squared_norm: Array) -> Array:
        """Duality gap from ⟨ρ, 𝒦ρ⟩; rounding may make that negative."""
        return namespace(squared_norm).clip(squared_norm, min=0) / (2 * self.strength)
