"""Regularised dual averaging with bounds: Algorithm 1 of Zhou, Xiao & Wu (2011), for any sum φ + Ψ.

Objective
    minimise over w    J(w) = φ(w) + Ψ(w)        (eq. 8)

    with φ given by an oracle and Ψ strongly convex and simple. At a point v the oracle returns φ(v) and a g with

        φ(w) ≥ φ(v) + ⟨g, w⟩ − ⟨g, v⟩        for all w.

Method
    The average of all such minorants, with mean ḡ and mean constant δ of φ(v) − ⟨g, v⟩, is one too. The next point
    minimises it together with Ψ (eq. 9), and the minimum is a lower bound of J everywhere:

        w⁺ = argmin over w of ⟨ḡ, w⟩ + Ψ(w),        J* ≥ δ + ⟨ḡ, w⁺⟩ + Ψ(w⁺).

    The smallest J(w⁺) so far is the upper bound. Both are certificates, whatever the rate.

Cost
    One call of the oracle an iteration; O(ln(t) / t) above the optimum after t of them (eq. 10), if subgradients stay
    bounded.

Deviations
    The derivation asks of ⟨g, w⟩ that it be linear in g, not in w, and so do we: minorants of φ may be curved, and φ
    itself need not be convex. `ContrastSplit` makes use of it. Nothing is known of J before the first subgradient but
    what the objective says; the paper's bounds C and 0 are those of its hinge losses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from gramian.solvers.history import Bounds
from gramian.solvers.solution import Callback, Solution


class SplitObjective(Protocol):
    """What `dual_averaging` asks of J = φ + Ψ. Points may be of any type, the g of the oracle are arrays.

    Attributes
    ----------
    lower : float
        A lower bound of J that is known beforehand, or minus infinity.
    """

    lower: float

    def start(self) -> Any:
        """Return the first point."""
        ...

    def oracle(self, w: Any) -> tuple[float, np.ndarray]:
        """Return φ(w) and a subgradient of φ there: φ(v) ≥ φ(w) + ⟨g, v⟩ − ⟨g, w⟩ for all v."""
        ...

    def pairing(self, g: np.ndarray, w: Any) -> float:
        """Return ⟨g, w⟩, linear in g."""
        ...

    def strong(self, w: Any) -> float:
        """Return Ψ(w)."""
        ...

    def minimiser(self, g: np.ndarray) -> Any:
        """Return the point with the least ⟨g, w⟩ + Ψ(w)."""
        ...

    def coefficients(self, w: Any) -> np.ndarray:
        """Return a point as the array that callbacks and the solution shall hold."""
        ...


def dual_averaging(
    objective: SplitObjective,
    *,
    epsilon: float | Callable[[float], float],
    max_iter: int = 10_000,
    callback: Callback | None = None,
) -> Solution:
    """Minimise φ + Ψ until the upper and the lower bound are at most ε apart.

    Parameters
    ----------
    objective : SplitObjective
    epsilon : float or callable
        Allowed gap, or a function that returns it for the best upper bound so far.
    max_iter : int, default=10_000
        Steps; each takes one subgradient, and there is one at the start.
    callback : callable, default=None
        Called after each step; returns True to stop.

    Returns
    -------
    Solution
        Its coefficients are those of the best point. "products" counts subgradients. The history has the best bounds as
        "objective" and "objective" − "gap", and those of each point as "value" and "dual".

    Examples
    --------
    ``|w − 3| + ½ w²`` is smallest at 1:

    >>> import numpy as np
    >>> from gramian.solvers import dual_averaging
    >>> class Example:
    ...     lower = -np.inf
    ...
    ...     def start(self):
    ...         return np.zeros(1)
    ...
    ...     def oracle(self, w):
    ...         return float(abs(w - 3).sum()), np.sign(w - 3)
    ...
    ...     def pairing(self, g, w):
    ...         return float(g @ w)
    ...
    ...     def strong(self, w):
    ...         return 0.5 * float(w @ w)
    ...
    ...     def minimiser(self, g):
    ...         return -g
    ...
    ...     def coefficients(self, w):
    ...         return w
    >>> solution = dual_averaging(Example(), epsilon=1e-6)
    >>> solution.coefficients, solution.objective
    (array([1.]), 2.5)
    """
    if not callable(epsilon) and not epsilon >= 0:
        raise ValueError(f"epsilon must be >= 0 or callable, got {epsilon!r}.")
    if not max_iter >= 1:
        raise ValueError(f"max_iter must be >= 1, got {max_iter!r}.")
    allowed = epsilon if callable(epsilon) else lambda upper: epsilon
    # bounds may rest for long, and then move again: patience is no sign of rounding errors
    recorder = Bounds(allowed, "epsilon", max_iter, callback, patience=max_iter + 1)
    w = objective.start()
    mean, constant, dual = 0.0, 0.0, objective.lower
    best = w
    for step in range(1, max_iter + 2):
        phi, g = objective.oracle(w)
        recorder.n_products += 1
        value = phi + objective.strong(w)
        if not np.isfinite(value):
            raise ValueError(f"The objective is {value} after {step - 1} steps.")
        if value < recorder.upper:
            best = w
        status = recorder.record(partial(objective.coefficients, w), value, dual)
        if status is not None:
            return recorder.done(objective.coefficients(best), status)
        mean = mean + (g - mean) / step
        constant += (phi - objective.pairing(g, w) - constant) / step
        w = objective.minimiser(mean)
        dual = constant + objective.pairing(mean, w) + objective.strong(w)
    raise AssertionError("the recorder ends the loop")
