"""The contract of a loss."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.losses import Loss
from gramian.testing._clauses import assert_close, numerical_gradient, read_only, run_clauses

__all__ = ["check_loss"]


@dataclass(frozen=True)
class _Case:
    loss: Loss
    U: np.ndarray
    Y: np.ndarray
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @property
    def weights(self) -> np.ndarray:
        return read_only(self.rng.uniform(0.5, 2.0, size=len(self.U)))


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
    U = read_only(np.asarray(U, dtype=float))
    Y = read_only(np.asarray(Y, dtype=float))
    clauses = [
        _is_a_value,
        _has_shapes,
        _has_gradient,
        _has_curvature,
        _curvature_has_the_promised_form,
        _quadratic_is_quadratic,
        _is_convex,
        _weights_multiply,
        _weight_zero_removes,
        _weight_two_repeats,
        _serves_columns,
        _is_stable,
        _keeps_single_precision,
        _leaves_inputs_alone,
    ]
    run_clauses(loss, clauses, _Case(loss, U, Y, seed))


def _is_a_value(case: _Case) -> None:
    """A pickled copy is equal and hashes alike; the name of the class is printed."""
    copy = pickle.loads(pickle.dumps(case.loss))
    assert copy == case.loss, "a pickled copy is not equal."
    assert hash(copy) == hash(case.loss), "a pickled copy has another hash."
    assert type(case.loss).__name__ in repr(case.loss), f"printed as {case.loss!r}."


def _has_shapes(case: _Case) -> None:
    """value is a float64 scalar; gradient and curvature have the shape and dtype of U."""
    value = np.asarray(case.loss.value(case.U, case.Y))
    assert value.shape == (), f"value has shape {value.shape}."
    assert value.dtype == np.float64, f"value has dtype {value.dtype}."
    gradient = case.loss.gradient(case.U, case.Y)
    curvature = case.loss.curvature(case.U, case.Y)
    for name, array in [
        ("gradient", gradient),
        ("curvature.diagonal", curvature.diagonal),
        ("curvature.apply", curvature.apply(case.U)),
    ]:
        assert array.shape == case.U.shape, f"{name} has shape {array.shape}."
        assert array.dtype == case.U.dtype, f"{name} has dtype {array.dtype}."


def _has_gradient(case: _Case) -> None:
    """gradient is the derivative of value in U, with and without weights."""
    for weights in (None, case.weights):

        def value(U, weights=weights):
            return case.loss.value(U, case.Y, weights)

        expected = numerical_gradient(value, case.U).reshape(case.U.shape)
        assert_close(case.loss.gradient(case.U, case.Y, weights), expected, 1e-7)


def _has_curvature(case: _Case) -> None:
    """curvature applies the derivative of gradient in U, with and without weights."""
    for weights in (None, case.weights):

        def gradient(U, weights=weights):
            return case.loss.gradient(U, case.Y, weights).reshape(-1)

        expected = numerical_gradient(gradient, case.U)
        assert_close(_matrix(case, weights), expected, 1e-7)


def _curvature_has_the_promised_form(case: _Case) -> None:
    """W is symmetric, positive semi-definite, and D − D 1 w⁻¹ 1ᵀ D within an example (D if not coupled).

    A loss that is not a sum over examples has another form, of which D is the diagonal.
    """
    n, C = case.U.shape
    for weights in (np.ones(n), case.weights):
        W = _matrix(case, weights)
        assert_close(W, W.T, 1e-12, "symmetry")
        eigenvalues = np.linalg.eigvalsh(W)
        assert eigenvalues[0] >= -1e-12 * max(1.0, eigenvalues[-1]), (
            f"the smallest eigenvalue is {eigenvalues[0]:.3g}."
        )
        curvature = case.loss.curvature(case.U, case.Y, weights)
        if not case.loss.separable:
            assert_close(np.diag(W), curvature.diagonal.reshape(-1), 1e-10, "diagonal")
            continue
        expected = np.zeros((n, C, n, C))
        for i in range(n):
            d = curvature.diagonal[i]
            block = np.diag(d)
            if curvature.coupled:
                block = block - np.outer(d, d) / weights[i]
            expected[i, :, i, :] = block
        scale = float(np.abs(curvature.diagonal).max())
        assert_close(W, expected.reshape(n * C, n * C), 1e-10, "form", scale=scale)


def _quadratic_is_quadratic(case: _Case) -> None:
    """A loss that calls itself quadratic has the same curvature everywhere."""
    if case.loss.quadratic:
        here = case.loss.curvature(case.U, case.Y).diagonal
        there = case.loss.curvature(case.U + case.rng.normal(size=case.U.shape), case.Y).diagonal
        assert_close(here, there, 1e-12)


def _is_convex(case: _Case) -> None:
    """value lies below its chords and above its tangents."""
    loss, rng = case.loss, case.rng
    for _ in range(20):
        P, Q = rng.normal(scale=4.0, size=(2, *case.U.shape))
        at_p, at_q = loss.value(P, case.Y), loss.value(Q, case.Y)
        slack = 1e-12 * (abs(at_p) + abs(at_q))
        for t in (0.25, 0.5, 0.75):
            between = loss.value((1 - t) * P + t * Q, case.Y)
            assert between <= (1 - t) * at_p + t * at_q + slack, "above a chord."
        tangent = at_p + np.sum(loss.gradient(P, case.Y) * (Q - P))
        assert at_q >= tangent - slack, "below a tangent."


def _weights_multiply(case: _Case) -> None:
    """A weight multiplies the loss of its example: value, gradient and curvature are sums over examples."""
    loss, U, Y, w = case.loss, case.U, case.Y, case.weights
    ones = loss.value(U, Y, np.ones(len(U)))
    assert_close(ones, loss.value(U, Y), 1e-14, "weights of one are no weights")
    if not loss.separable:
        return
    alone = [loss.value(U[i : i + 1], Y[i : i + 1]) for i in range(len(U))]
    assert_close(loss.value(U, Y, w), np.dot(w, alone), 1e-10, "value")
    assert_close(loss.gradient(U, Y, w), w[:, None] * loss.gradient(U, Y), 1e-12, "gradient")
    V = case.rng.normal(size=U.shape)
    expected = w[:, None] * loss.curvature(U, Y).apply(V)
    assert_close(loss.curvature(U, Y, w).apply(V), expected, 1e-12, "curvature")


def _weight_zero_removes(case: _Case) -> None:
    """An example of weight zero counts for nothing."""
    loss, U, Y, w = case.loss, case.U, case.Y, case.weights.copy()
    w[0] = 0.0
    assert_close(loss.value(U, Y, w), loss.value(U[1:], Y[1:], w[1:]), 1e-12, "value")
    assert not np.any(loss.gradient(U, Y, w)[0]), "its gradient is not zero."
    assert not np.any(loss.curvature(U, Y, w).apply(U + 1)[0]), "its curvature is not zero."


def _weight_two_repeats(case: _Case) -> None:
    """An example of weight two is the example twice."""
    loss, U, Y = case.loss, case.U, case.Y
    w = np.ones(len(U))
    w[-1] = 2.0
    again = [np.concatenate([array, array[-1:]]) for array in (U, Y)]
    assert_close(loss.value(U, Y, w), loss.value(*again), 1e-12)


def _serves_columns(case: _Case) -> None:
    """A trailing axis of q problems gives what they give one by one, with weights (n,) and (n, q)."""
    loss, n = case.loss, len(case.U)
    rng = case.rng
    U = np.stack([case.U, case.U[::-1], 0.5 * case.U], axis=2)
    V = rng.normal(size=U.shape)
    shared, own = case.weights, rng.uniform(0.0, 2.0, size=(n, 3))
    three = np.stack([case.Y] * 3, axis=2)
    for Y in (three, case.Y[:, :, None]):
        for weights in (None, shared, own):
            value = loss.value(U, Y, weights)
            assert value.shape == (3,), f"value has shape {value.shape}, not (3,)."
            gradient = loss.gradient(U, Y, weights)
            applied = loss.curvature(U, Y, weights).apply(V)
            for j in range(3):
                w = weights if weights is None or weights.ndim == 1 else weights[:, j]
                args = (U[:, :, j], case.Y, w)
                what = f"column {j}, weights {None if weights is None else weights.shape}"
                assert_close(value[j], loss.value(*args), 1e-12, f"value, {what}")
                assert_close(gradient[..., j], loss.gradient(*args), 1e-12, f"gradient, {what}")
                expected = loss.curvature(*args).apply(V[:, :, j])
                assert_close(applied[..., j], expected, 1e-12, f"curvature, {what}")


def _is_stable(case: _Case) -> None:
    """Latent values of ±1000 give finite results without warnings, in float32 and float64."""
    sign = np.where(case.rng.random(case.U.shape) < 0.5, -1.0, 1.0)
    for dtype in (np.float32, np.float64):
        for U in (1e3 * sign, -1e3 * sign, 1e3 * np.ones_like(sign)):
            U, Y = U.astype(dtype), case.Y.astype(dtype)
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                try:
                    results = [
                        case.loss.value(U, Y),
                        case.loss.gradient(U, Y),
                        case.loss.curvature(U, Y).apply(U),
                    ]
                except FloatingPointError as error:
                    raise AssertionError(f"{np.dtype(dtype)}: {error}") from error
            assert all(np.all(np.isfinite(r)) for r in results), f"not finite in {np.dtype(dtype)}."
            low = case.loss.value(U - dtype(1), Y)
            high = case.loss.value(U + dtype(1), Y)
            middle = results[0]
            assert 2 * middle <= (low + high) * (1 + 1e-5), (
                f"not convex there in {np.dtype(dtype)}."
            )


def _keeps_single_precision(case: _Case) -> None:
    """float32 stays float32, except value, which is summed in float64."""
    U, Y, w = (a.astype(np.float32) for a in (case.U, case.Y, case.weights))
    value = case.loss.value(U, Y, w)
    assert np.asarray(value).dtype == np.float64, f"value has dtype {np.asarray(value).dtype}."
    assert_close(value, case.loss.value(case.U, case.Y, case.weights), 1e-5, "value")
    curvature = case.loss.curvature(U, Y, w)
    double = case.loss.curvature(case.U, case.Y, case.weights)
    for name, single, expected in [
        ("gradient", case.loss.gradient(U, Y, w), case.loss.gradient(case.U, case.Y, case.weights)),
        ("curvature", curvature.apply(U), double.apply(case.U)),
        ("curvature.diagonal", curvature.diagonal, double.diagonal),
    ]:
        assert single.dtype == np.float32, f"{name} has dtype {single.dtype}."
        assert_close(single, expected, 1e-4, name)


def _leaves_inputs_alone(case: _Case) -> None:
    """Inputs are not modified, and may be read-only (the suite passes such arrays everywhere)."""
    arrays = [case.U.copy(), case.Y.copy(), case.weights.copy()]
    case.loss.value(*arrays)
    case.loss.gradient(*arrays)
    case.loss.curvature(*arrays).apply(arrays[0])
    for name, now, then in zip("UYw", arrays, (case.U, case.Y, case.weights)):
        np.testing.assert_array_equal(now, then, err_msg=f"{name} was modified.")


def _matrix(case: _Case, weights: np.ndarray | None) -> np.ndarray:
    """W as a matrix on U.reshape(-1)."""
    curvature = case.loss.curvature(case.U, case.Y, weights)
    basis = np.eye(case.U.size).reshape(-1, *case.U.shape)
    return np.array([curvature.apply(e).reshape(-1) for e in basis]).T
