"""Contract suites: what breaks a contract is refused, and the message names the clause."""

import numpy as np
import pytest

from gramian.kernels import RBF
from gramian.labels import Diagonal
from gramian.losses import Logistic, Squared
from gramian.operators import Dense
from gramian.solvers import newton
from gramian.testing import (
    CountingOperator,
    check_kernel,
    check_loss,
    check_operator,
    check_solver,
    check_structure,
)

X = np.random.default_rng(0).normal(size=(10, 3))
U, Y = np.random.default_rng(1).normal(size=(2, 6, 2))


def refused(words, check, subject, *args, **options):
    """The suite refuses the subject and says of it what the words are."""
    with pytest.raises(AssertionError, match="breaks its contract") as caught:
        check(subject, *args, **options)
    assert words in str(caught.value).splitlines()[0]


def broken(base, **methods):
    """A class that differs from another in some methods; this module has it, so that it can be pickled."""
    kind = type("Broken", (base,), methods | {"__module__": __name__})
    globals()["Broken"] = kind
    return kind


# --- kernels ------------------------------------------------------------------------------------


def _asymmetric(self, X, Z=None, *, offset=None):
    K = RBF.__call__(self, X, Z, offset=offset)
    return K + 0.1 * (np.arange(K.shape[1]) == 1)


def _modifying(self, X, Z=None, *, offset=None):
    K = RBF.__call__(self, X, Z, offset=offset)
    if X.flags.writeable:
        X[0] += 1e-6
    return K


@pytest.mark.parametrize(
    ("words", "methods"),
    [
        ("evaluate alike", {"resolve": lambda self, X, weights=None: RBF(np.random.random() + 1)}),
        ("hash alike", {"__hash__": object.__hash__}),
        ("dtype of X", {"diag": lambda self, X: np.ones(len(X), dtype=np.float32)}),
        ("negative eigenvalue", {"__call__": _asymmetric}),
        ("diagonal of kernel(X)", {"diag": lambda self, X: np.full(len(X), 2.0)}),
        ("gradient in theta", {"vjp": lambda self, *_, offset=None: np.ones(1)}),
        ("wrong size", {"clone_with_theta": lambda self, theta: type(self)(np.exp(theta[0]))}),
        ("not modified", {"__call__": _modifying}),
    ],
)
def test_a_kernel_that_breaks_its_contract(words, methods):
    refused(words, check_kernel, broken(RBF, **methods)(1.5), X, sparse=False)


def test_noise_must_be_announced():
    refused("white noise", check_kernel, RBF(1.5), X, noisy=True)


# --- label structures ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "methods"),
    [
        ("diagonal of S", {"diagonal": lambda self, C: np.ones(C)}),
        ("gradient of", {"vjp": lambda self, E, G: np.zeros(3)}),
        ("float32", {"mix": lambda self, B: Diagonal.mix(self, B).astype(float)}),
        ("leaves the structure alone", {"clone_with_theta": lambda self, theta: Diagonal(np.exp(theta))}),
    ],
)  # fmt: skip
def test_a_structure_that_breaks_its_contract(words, methods):
    copies = {"clone_with_theta": lambda self, theta: type(self)(np.exp(theta))}
    refused(words, check_structure, broken(Diagonal, **(copies | methods))([1.0, 2.0, 4.0]), 3)


def test_a_structure_is_compared_with_what_it_should_be():
    refused("B S", check_structure, Diagonal([1.0, 2.0]), 2, np.eye(2))


# --- losses -------------------------------------------------------------------------------------


class _Half:
    """A curvature that is half of what it should be."""

    def __init__(self, curvature):
        self.curvature, self.coupled = curvature, curvature.coupled
        self.diagonal = curvature.diagonal / 2

    def apply(self, V):
        return self.curvature.apply(V) / 2


@pytest.mark.parametrize(
    ("words", "methods"),
    [
        ("derivative of value", {"gradient": lambda self, U, Y, w=None: 2 * Squared.gradient(self, U, Y, w)}),
        ("derivative of gradient", {"curvature": lambda self, *args: _Half(Squared.curvature(self, *args))}),
        ("name of the class", {"__repr__": lambda self: "loss"}),
        ("weight multiplies", {"value": lambda self, U, Y, w=None: Squared.value(self, U, Y, None)}),
    ],
)  # fmt: skip
def test_a_loss_that_breaks_its_contract(words, methods):
    with pytest.raises(AssertionError) as caught:
        check_loss(broken(Squared, **methods)(), U, Y)
    assert "breaks its contract" in str(caught.value)
    if words != "weight multiplies":  # a gradient of unweighted values is found first
        assert words in str(caught.value).splitlines()[0]


# --- operators ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "methods"),
    [
        ("dense form", {"__matmul__": lambda self, B: 2 * (self.operator @ B)}),
        ("as close to it", {"accurate": lambda self, B: 2 * (self.operator @ B)}),
        ("zeros give zeros", {"__matmul__": lambda self, B: self.operator @ B + 1e-12}),
        ("diagonal of", {"diagonal": lambda self, C=1: np.zeros((10, C))}),
        ("gradient of", {"vjp": lambda self, E, F: np.zeros(1)}),
        ("leaves the operator alone", {"clone_with_theta": lambda self, theta: self.operator}),
    ],
)
def test_an_operator_that_breaks_its_contract(words, methods):
    copies = {
        "clone_with_theta": lambda self, theta: type(self)(self.operator.clone_with_theta(theta))
    }
    operator = broken(CountingOperator, **(copies | methods))(Dense(RBF(1.5), X))
    refused(words, check_operator, operator, RBF(1.5)(X))


# --- solvers ------------------------------------------------------------------------------------


def _changed(**fields):
    """Newton's method, with other values in its solution."""

    def solve(problem, **options):
        from dataclasses import replace

        solution = newton(problem, **options)
        return replace(solution, **{name: change(solution) for name, change in fields.items()})

    return solve


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("both are what A says", {"objective": lambda s: 2 * s.objective}),
        ("both are what A says", {"coefficients": lambda s: 1.1 * s.coefficients}),
        ("history has one row", {"n_iter": lambda s: s.n_iter + 1}),
        ("history has one row", {"history": lambda s: {k: v for k, v in s.history.items() if k != "seconds"}}),
        ("minimum ≤ objective", {"history": lambda s: s.history | {"gap": 0.0 * s.history["gap"]}}),
    ],
)  # fmt: skip
def test_a_solver_that_breaks_its_contract(words, fields):
    refused(words, check_solver, _changed(**fields), losses=[Logistic()])


def test_the_message_names_solver_and_loss():
    refused(
        "solve with Logistic()", check_solver, _changed(n_iter=lambda s: 0), losses=[Logistic()]
    )
