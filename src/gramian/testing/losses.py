"""The contract of a loss."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.losses import Loss
from gramian.testing import _clauses as check


def check_loss(loss: Loss, U: Any, Y: Any, *, seed: int = 0) -> None:
    """Check that a loss keeps its contract.

    Parameters
    ----------
    loss : Loss
    U : array of shape (n, C)
        Latent values; a handful of examples where the loss is twice differentiable.
    Y : array of shape (n, C)
        Targets the loss accepts.
    seed : int, default=0

    Raises
    ------
    AssertionError
        The message names the clause that fails.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.losses import Logistic
    >>> from gramian.testing import check_loss
    >>> check_loss(Logistic(), np.array([[0.5], [-1.0], [2.0]]), np.array([[0.0], [1.0], [0.3]]))
    """
    U, Y = (check.read_only(np.asarray(array, dtype=float)) for array in (U, Y))
    _LossContract(loss, seed, U, Y)._check()


@dataclass(frozen=True)
class _LossContract(check.Contract):
    subject: Loss
    U: np.ndarray
    Y: np.ndarray

    @property
    def _weights(self) -> np.ndarray:
        return check.read_only(self._rng.uniform(0.5, 2.0, size=len(self.U)))

    def _matrix(self, weights: np.ndarray | None) -> np.ndarray:
        """W as a matrix on U.reshape(-1)."""
        curvature = self.subject.curvature(self.U, self.Y, weights)
        basis = np.eye(self.U.size).reshape(-1, *self.U.shape)
        return np.array([curvature.apply(e).reshape(-1) for e in basis]).T

    def _derivative(self, function: Callable[..., Any], weights: np.ndarray | None) -> np.ndarray:
        """Derivative in U of a method of the loss."""
        return check.numerical_gradient(lambda U: function(U, self.Y, weights), self.U)

    def is_a_value(self) -> None:
        """A pickled copy is equal and hashes alike; the name of the class is printed."""
        loss, copy = self.subject, pickle.loads(pickle.dumps(self.subject))
        assert copy == loss, "a pickled copy is not equal."
        assert hash(copy) == hash(loss), "a pickled copy has another hash."
        assert type(loss).__name__ in repr(loss), f"printed as {loss!r}."

    def has_shapes(self) -> None:
        """value is a float64 scalar; gradient and curvature have the shape and dtype of U."""
        value = np.asarray(self.subject.value(self.U, self.Y))
        assert value.shape == (), f"value has shape {value.shape}."
        assert value.dtype == np.float64, f"value has dtype {value.dtype}."
        curvature = self.subject.curvature(self.U, self.Y)
        for name, array in [
            ("gradient", self.subject.gradient(self.U, self.Y)),
            ("curvature.diagonal", curvature.diagonal),
            ("curvature.apply", curvature.apply(self.U)),
        ]:
            assert array.shape == self.U.shape, f"{name} has shape {array.shape}."
            assert array.dtype == self.U.dtype, f"{name} has dtype {array.dtype}."

    def has_gradient(self) -> None:
        """gradient is the derivative of value in U, with and without weights."""
        for weights in (None, self._weights):
            expected = self._derivative(self.subject.value, weights).reshape(self.U.shape)
            check.close(self.subject.gradient(self.U, self.Y, weights), expected, 1e-7)

    def has_curvature(self) -> None:
        """curvature applies the derivative of gradient in U, with and without weights."""
        for weights in (None, self._weights):
            expected = self._derivative(self.subject.gradient, weights)
            check.close(self._matrix(weights), expected.reshape(self.U.size, -1), 1e-7)

    def curvature_has_the_promised_form(self) -> None:
        """W is symmetric, positive semidefinite, and D − D 1 w⁻¹ 1ᵀ D within an example (D if not coupled).

        A loss that is not a sum over examples has another form, of which D is the diagonal.
        """
        n, C = self.U.shape
        for weights in (np.ones(n), self._weights):
            W = self._matrix(weights)
            check.positive_semidefinite(W, 1e-12)
            curvature = self.subject.curvature(self.U, self.Y, weights)
            D = curvature.diagonal
            if not self.subject.separable:
                check.close(np.diag(W), D.reshape(-1), 1e-10, "diagonal")
                continue
            expected = np.zeros((n, C, n, C))
            for i in range(n):
                coupling = np.outer(D[i], D[i]) / weights[i] if curvature.coupled else 0.0
                expected[i, :, i, :] = np.diag(D[i]) - coupling
            scale = float(np.abs(D).max())
            check.close(W, expected.reshape(n * C, n * C), 1e-10, "form", scale)

    def quadratic_is_quadratic(self) -> None:
        """A loss that calls itself quadratic has the same curvature everywhere."""
        if self.subject.quadratic:
            elsewhere = self.U + self._rng.normal(size=self.U.shape)
            here, there = (self.subject.curvature(U, self.Y) for U in (self.U, elsewhere))
            check.close(here.diagonal, there.diagonal, 1e-12)

    def is_convex(self) -> None:
        """value lies below its chords and above its tangents."""
        loss, rng = self.subject, self._rng
        for _ in range(20):
            P, Q = rng.normal(scale=4.0, size=(2, *self.U.shape))
            at_p, at_q = loss.value(P, self.Y), loss.value(Q, self.Y)
            slack = 1e-12 * (abs(at_p) + abs(at_q))
            for t in (0.25, 0.5, 0.75):
                between = loss.value((1 - t) * P + t * Q, self.Y)
                assert between <= (1 - t) * at_p + t * at_q + slack, "above a chord."
            tangent = at_p + np.sum(loss.gradient(P, self.Y) * (Q - P))
            assert at_q >= tangent - slack, "below a tangent."

    def weights_multiply(self) -> None:
        """A weight multiplies the loss of its example: value, gradient and curvature are sums over examples."""
        loss, U, Y, w = self.subject, self.U, self.Y, self._weights
        ones = loss.value(U, Y, np.ones(len(U)))
        check.close(ones, loss.value(U, Y), 1e-14, "weights of one are no weights")
        if not loss.separable:
            return
        alone = [loss.value(U[i : i + 1], Y[i : i + 1]) for i in range(len(U))]
        check.close(loss.value(U, Y, w), np.dot(w, alone), 1e-10, "value")
        check.close(loss.gradient(U, Y, w), w[:, None] * loss.gradient(U, Y), 1e-12, "gradient")
        V = self._rng.normal(size=U.shape)
        expected = w[:, None] * loss.curvature(U, Y).apply(V)
        check.close(loss.curvature(U, Y, w).apply(V), expected, 1e-12, "curvature")

    def weight_zero_removes(self) -> None:
        """An example of weight zero counts for nothing."""
        loss, U, Y, w = self.subject, self.U, self.Y, self._weights.copy()
        w[0] = 0.0
        check.close(loss.value(U, Y, w), loss.value(U[1:], Y[1:], w[1:]), 1e-12, "value")
        assert not np.any(loss.gradient(U, Y, w)[0]), "its gradient is not zero."
        assert not np.any(loss.curvature(U, Y, w).apply(U + 1)[0]), "its curvature is not zero."

    def weight_two_repeats(self) -> None:
        """An example of weight two is the example twice."""
        w = np.ones(len(self.U))
        w[-1] = 2.0
        again = [np.concatenate([array, array[-1:]]) for array in (self.U, self.Y)]
        check.close(self.subject.value(self.U, self.Y, w), self.subject.value(*again), 1e-12)

    def serves_columns(self) -> None:
        """A trailing axis of q problems gives what they give one by one, with weights (n,) and (n, q)."""
        loss, rng = self.subject, self._rng
        U = np.stack([self.U, self.U[::-1], 0.5 * self.U], axis=2)
        V = rng.normal(size=U.shape)
        own = rng.uniform(0.0, 2.0, size=(len(U), 3))
        for Y in (np.stack([self.Y] * 3, axis=2), self.Y[:, :, None]):
            for weights in (None, self._weights, own):
                value = loss.value(U, Y, weights)
                assert value.shape == (3,), f"value has shape {value.shape}, not (3,)."
                gradient = loss.gradient(U, Y, weights)
                applied = loss.curvature(U, Y, weights).apply(V)
                for j in range(3):
                    args = (U[:, :, j], self.Y, own[:, j] if weights is own else weights)
                    what = f"column {j}, weights {None if weights is None else weights.shape}"
                    check.close(value[j], loss.value(*args), 1e-12, f"value, {what}")
                    check.close(gradient[..., j], loss.gradient(*args), 1e-12, f"gradient, {what}")
                    expected = loss.curvature(*args).apply(V[:, :, j])
                    check.close(applied[..., j], expected, 1e-12, f"curvature, {what}")

    def is_stable(self) -> None:
        """Latent values of ±1000 give finite results without warnings, in float32 and float64."""
        loss = self.subject
        sign = np.where(self._rng.random(self.U.shape) < 0.5, -1.0, 1.0)
        for dtype in (np.float32, np.float64):
            Y, there = self.Y.astype(dtype), f"in {np.dtype(dtype)}."
            for U in (1e3 * sign, -1e3 * sign, 1e3 * np.ones_like(sign)):
                U = U.astype(dtype)
                with np.errstate(over="raise", invalid="raise", divide="raise"):
                    try:
                        value, gradient = loss.value(U, Y), loss.gradient(U, Y)
                        applied = loss.curvature(U, Y).apply(U)
                    except FloatingPointError as error:
                        raise AssertionError(f"{error}, {there}") from error
                for result in (value, gradient, applied):
                    assert np.all(np.isfinite(result)), f"not finite {there}"
                around = loss.value(U - dtype(1), Y) + loss.value(U + dtype(1), Y)
                assert 2 * value <= around * (1 + 1e-5), f"not convex there {there}"

    def keeps_single_precision(self) -> None:
        """float32 stays float32, except value, which is summed in float64."""
        loss, double = self.subject, (self.U, self.Y, self._weights)
        single = tuple(array.astype(np.float32) for array in double)
        value = np.asarray(loss.value(*single))
        check.agree([("value", value, loss.value(*double))], 1e-5, np.float64)
        W, W_double = loss.curvature(*single), loss.curvature(*double)
        rows = [
            ("gradient", loss.gradient(*single), loss.gradient(*double)),
            ("curvature", W.apply(single[0]), W_double.apply(self.U)),
            ("curvature.diagonal", W.diagonal, W_double.diagonal),
        ]
        check.agree(rows, 1e-4, np.float32)

    def leaves_inputs_alone(self) -> None:
        """Inputs are not modified, and may be read-only (the suite passes such arrays everywhere)."""
        loss = self.subject

        def use(U: np.ndarray, Y: np.ndarray, w: np.ndarray) -> list[Any]:
            return [loss.value(U, Y, w), loss.gradient(U, Y, w), loss.curvature(U, Y, w).apply(U)]

        check.unchanged(use, U=self.U, Y=self.Y, w=self._weights)
