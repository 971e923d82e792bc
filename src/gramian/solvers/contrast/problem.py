"""Large margins for contrasts of outputs, with any penalty on their normals: hierarchical and flat multi-class SVMs.

    minimise over W    J(W) = Ω(W) + Σ_k c_k ℓ_{y_k}(W x_k),      ℓ_y(u) = max(0, max_a ρ_a (1 − u_{i_a} + u_{j_a}))

over the normals W (m × d), with the contrasts a = (i_a, j_a, ρ_a) of each label (`labels.margins.contrasts`), caps
c ≥ 0 and a penalty Ω that is quadratic or pushes normals to be orthogonal (`labels.margins.orthogonality`). It is eq. 7
of Zhou, Xiao & Wu (2011), and each of its rivals in section 5. Their caps are C / n, ours any.

Dual
    Each example has a coefficient for each of its contrasts, β_ka ≥ 0 with Σ_a β_ka ≤ c_k. With
    P = Σ_ka β_ka ρ_a (e_i − e_j) x_kᵀ, G = P Pᵀ and S the inverse of the quadratic form at signs σ,

        D(β, σ) = Σ_ka β_ka ρ_a − ½ tr(S G) ≤ min J,      W = S P.

    The representer theorem (their theorem 3) is constructive here: w_i = Σ_k c_ik x_k with c = A S, A_ki = Σ ±β_ka ρ_a.

The gap falls apart into terms that are never negative: with the cost v_ka = ρ_a (1 − u_i + u_j) of each contrast

    J(W) − D(β, σ) = Σ_k [c_k ℓ_k − Σ_a β_ka v_ka] + [Ω(W) − ½ tr(S G)].

Relative gap
    With strong regularisation J hardly falls from its value J(0) at W = 0, and a gap that is small against J may still
    be larger than all that was gained. Gaps are therefore compared with the smaller of J and J(0) − J.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np

from gramian._core.threads import share
from gramian.labels.margins.contrasts import Contrasts
from gramian.operators.inputs.feature_rows import as_rows
from gramian.solvers.contrast.mixed import MixedCoefficients


@dataclass(frozen=True, eq=False)
class ContrastProblem:
    """Examples, their labels, the contrasts of labels, a penalty and caps.

    Parameters
    ----------
    inputs : GramRows, FeatureRows, or array or CSR array of shape (n, d)
        The Gram matrix K by its rows, or features X with K = X Xᵀ, which are kept as `FeatureRows`.
    labels : int array of shape (n_units,)
        Labels as the contrasts number them.
    contrasts : Contrasts
    penalty : QuadraticPenalty or OrthogonalPenalty
    caps : float or array of shape (n_units,), default=1.0
        Weight of each loss. Zero takes it out.
    examples : int array of shape (n_units,), default=None
        The example of each loss, where one example has several; by default each has one.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import OrthogonalPenalty, Taxonomy
    >>> from gramian.labels import orthogonality_weights, sibling_contrasts
    >>> from gramian.solvers import ContrastProblem, contrast_ascent
    >>> pets = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None})
    >>> X, y = np.eye(3), np.array([0, 1, 2])
    >>> contrasts = sibling_contrasts(pets, pets.index(["cat", "dog", "car"]))
    >>> penalty = OrthogonalPenalty(orthogonality_weights(pets, 0.5))
    >>> solution = contrast_ascent(ContrastProblem(X, y, contrasts, penalty), tol=1e-6)
    >>> solution.status
    'converged'
    """

    inputs: Any
    labels: np.ndarray
    contrasts: Contrasts
    penalty: Any
    caps: Any = 1.0
    examples: Any = None  # an array once the problem is made

    def __post_init__(self) -> None:
        inputs = as_rows(self.inputs)
        labels = np.asarray(self.labels, dtype=np.int64)
        caps = np.asarray(self.caps, dtype=np.float64)
        if caps.shape not in ((), labels.shape):
            raise ValueError(
                f"caps must be a number, or {labels.size} numbers, one for each loss; got shape {caps.shape}."
            )
        caps = np.array(np.broadcast_to(caps, labels.shape))
        examples = np.arange(labels.size) if self.examples is None else np.asarray(self.examples)
        # compiled loops do not check their indices
        for name, value, end in (
            ("labels", labels, self.contrasts.n_labels),
            ("examples", examples, inputs.shape[0]),
        ):
            if value.shape != labels.shape or np.any(value < 0) or np.any(value >= end):
                raise ValueError(
                    f"{name} must be {labels.size} numbers from 0 to {end - 1}, one for each loss; got shape "
                    f"{value.shape} from {value.min(initial=0)} to {value.max(initial=0)}."
                )
        if not np.all(np.isfinite(caps) & (caps >= 0)):
            raise ValueError(
                f"caps must be finite and not negative, got {caps.min(initial=0):g} to {caps.max(initial=0):g}."
            )
        m = self.contrasts.n_outputs
        if self.penalty.n_outputs != m:
            raise ValueError(
                f"penalty must be for the {m} outputs of the contrasts, got one for {self.penalty.n_outputs}."
            )
        checked = {"inputs": inputs, "labels": labels, "caps": caps, "examples": examples}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n, m) of the coefficients."""
        return self.inputs.shape[0], self.contrasts.n_outputs

    @property
    def value_at_zero(self) -> float:
        """J(0)."""
        return float(self.caps @ self.contrasts.most()[self.labels])

    def allowed_gap(self, objective: float, tol: float) -> float:
        """Return the gap that a relative tolerance allows; what rounding leaves of J is always within one."""
        rounding = 16 * np.finfo(float).eps * objective if tol > 0 else 0.0
        return max(tol * min(objective, self.value_at_zero - objective), rounding)

    def restricted(self, rows: np.ndarray) -> ContrastProblem:
        """Return the problem with the losses of some examples only, given by a mask."""
        return replace(self, caps=self.caps * rows[self.examples])

    def weighted(self, C: float) -> ContrastProblem:
        """Return the problem with all losses multiplied by a number."""
        return replace(self, caps=self.caps * C)

    def known(self) -> np.ndarray:
        """Return which examples have a loss that counts, boolean of shape (n,)."""
        known = np.zeros(self.shape[0], dtype=bool)
        known[self.examples[self.caps > 0]] = True
        return known

    def mixed(self, V: np.ndarray) -> np.ndarray:
        """Return V: coefficients are those of the normals already."""
        return V

    def latent(self, coefficients: np.ndarray | MixedCoefficients) -> np.ndarray:
        """Return U = K c, shape (n, m): column i is ⟨w_i, x⟩ for w_i = Σ_k c_ki x_k."""
        if isinstance(coefficients, MixedCoefficients):
            return coefficients.mixed(self.inputs @ coefficients.latent.toarray())
        return self.inputs @ coefficients

    def losses(self, U: np.ndarray) -> tuple[float, np.ndarray]:
        """Return Σ_k c_k ℓ_k and the worst contrast of each unit, by row and rival: −1 where none costs anything."""
        c = self.contrasts
        costs, worst = np.zeros(self.labels.size), np.full((self.labels.size, 2), -1)
        contrasts = c.start, c.own, c.first, c.end, c.scale
        units = self.labels, self.examples
        share(_worst, self.labels.size, contrasts, units, U, costs, worst)
        return float(self.caps @ costs), worst

    def subgradient(self, worst: np.ndarray) -> np.ndarray:
        """Return coefficients (n, m) of a subgradient of the losses, from their worst contrasts (section 4.1)."""
        c, A = self.contrasts, np.zeros(self.shape)
        found = np.flatnonzero(worst[:, 0] >= 0)
        row, rival = worst[found].T
        weight, examples = self.caps[found] * c.scale[row], self.examples[found]
        np.add.at(A, (examples, c.own[row]), -weight)
        np.add.at(A, (examples, rival), weight)
        return A


@numba.njit(cache=True, nogil=True)
def _worst(first, last, contrasts, units, U, costs, worst):
    start, own, begin, end, scale = contrasts
    labels, examples = units
    for k in range(first, last):
        u = U[examples[k]]
        for a in range(start[labels[k]], start[labels[k] + 1]):
            for j in range(begin[a], end[a]):
                cost = scale[a] * (1.0 - u[own[a]] + u[j])
                if cost > costs[k]:
                    costs[k], worst[k, 0], worst[k, 1] = cost, a, j
