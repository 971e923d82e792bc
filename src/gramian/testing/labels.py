"""The contract of a label structure."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.labels import LabelStructure
from gramian.testing._clauses import assert_close, numerical_gradient, read_only, run_clauses

__all__ = ["check_structure"]


@dataclass(frozen=True)
class _Case:
    structure: LabelStructure
    n_outputs: int
    S: np.ndarray
    seed: int

    def arrays(self, *shape: int, count: int = 1) -> list[np.ndarray]:
        rng = np.random.default_rng(self.seed)
        return [read_only(rng.normal(size=shape)) for _ in range(count)]


def check_structure(
    structure: LabelStructure, n_outputs: int, dense: Any = None, *, seed: int = 0
) -> None:
    """Check that a label structure keeps its contract.

    Parameters
    ----------
    structure : LabelStructure
    n_outputs : int
        Number C of outputs to try it with.
    dense : array of shape (n_outputs, n_outputs), default=None
        What S should be, from elsewhere. By default the suite takes ``mix(I)`` and checks the rest against it.
    seed : int, default=0

    Raises
    ------
    AssertionError
        The message names the clause that fails.

    Examples
    --------
    >>> from gramian.labels import Diagonal
    >>> from gramian.testing import check_structure
    >>> check_structure(Diagonal([1.0, 2.0, 4.0]), 3)
    """
    S = structure.mix(np.eye(n_outputs)) if dense is None else np.asarray(dense, dtype=float)
    clauses = [
        _is_symmetric_positive,
        _mixes,
        _serves_columns,
        _has_diagonal,
        _takes_theta,
        _has_gradient,
        _keeps_single_precision,
        _pickles,
    ]
    run_clauses(structure, clauses, _Case(structure, n_outputs, np.array(S), seed))


def _is_symmetric_positive(case: _Case) -> None:
    """S is symmetric and has no negative eigenvalue."""
    S = case.structure.mix(np.eye(case.n_outputs))
    assert_close(S, S.T, 1e-12)
    eigenvalues = np.linalg.eigvalsh(S)
    assert eigenvalues[0] >= -1e-10 * abs(eigenvalues[-1]), f"eigenvalues {eigenvalues}."


def _mixes(case: _Case) -> None:
    """mix(B) is B S for B of shape (n, C)."""
    (B,) = case.arrays(7, case.n_outputs)
    assert_close(case.structure.mix(B), B @ case.S, 1e-10)


def _serves_columns(case: _Case) -> None:
    """mix(B) is B S along axis 1 for B of shape (n, C, q)."""
    (B,) = case.arrays(5, case.n_outputs, 4)
    expected = np.einsum("icq,cd->idq", B, case.S)
    assert_close(case.structure.mix(B), expected, 1e-10)


def _has_diagonal(case: _Case) -> None:
    """diagonal(C) is the diagonal of S, shape (C,)."""
    assert_close(case.structure.diagonal(case.n_outputs), np.diagonal(case.S), 1e-10)


def _takes_theta(case: _Case) -> None:
    """clone_with_theta(theta) has that theta and leaves the structure alone."""
    theta = case.structure.theta
    assert isinstance(theta, np.ndarray), f"theta is {type(theta).__name__}."
    assert theta.ndim == 1, f"theta has shape {theta.shape}."
    moved = theta + np.linspace(0.1, 0.4, theta.size)
    other = case.structure.clone_with_theta(moved)
    assert type(other) is type(case.structure), f"clone_with_theta gives {type(other).__name__}."
    assert_close(other.theta, moved, 1e-12, "theta of the copy")
    assert_close(case.structure.theta, theta, 0.0, "theta of the original")
    same = case.structure.clone_with_theta(theta).mix(np.eye(case.n_outputs))
    assert_close(same, case.S, 1e-10, "S")


def _has_gradient(case: _Case) -> None:
    """vjp(E, G) is the gradient of ⟨E, G S⟩ in theta, for (n, C) and (n, C, q)."""
    theta = case.structure.theta
    for shape in [(6, case.n_outputs), (6, case.n_outputs, 3)]:
        E, G = case.arrays(*shape, count=2)

        def product(theta, E=E, G=G):
            return np.sum(E * case.structure.clone_with_theta(theta).mix(G))

        gradient = case.structure.vjp(E, G)
        assert gradient.shape == theta.shape, f"vjp has shape {gradient.shape}."
        assert_close(gradient, numerical_gradient(product, theta).reshape(-1), 1e-8, f"{shape}")


def _keeps_single_precision(case: _Case) -> None:
    """mix of float32 is float32."""
    for shape in [(5, case.n_outputs), (5, case.n_outputs, 2)]:
        (B,) = case.arrays(*shape)
        mixed = case.structure.mix(B.astype(np.float32))
        assert mixed.dtype == np.float32, f"dtype {mixed.dtype}."
        assert_close(mixed, case.structure.mix(B), 1e-4)


def _pickles(case: _Case) -> None:
    """A pickled copy mixes alike."""
    (B,) = case.arrays(5, case.n_outputs)
    copy = pickle.loads(pickle.dumps(case.structure))
    np.testing.assert_array_equal(copy.mix(B), case.structure.mix(B))
